"""How a run is shown: its line or table of progress, the log of the cluster, what it will take."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar

from dfeas.errors import visible
from dfeas.geometry.registry import geometry_of
from dfeas.problem import never
from dfeas.run.result_files import TRACE
from dfeas.run.termination import ProgressRecord, Record, remaining_passes
from dfeas.run.trace import Sink, TraceFile

if TYPE_CHECKING:
    from dfeas.data.dataset import Dataset
    from dfeas.problem import Output
    from dfeas.run.checkpoint.folder import Checkpoint
    from dfeas.run.cost import Projection
    from dfeas.run.session import Session
    from dfeas.run.spec import RunSpec

FORESEEABLE = 100 * 86400.0
"""Seconds; a longer guess of the time left says nothing."""

HEAD = ("passes", "iterations", "margin lower", "margin upper", "violated", "seconds")
MOST_ROWS = 20


def aligned(lines: Sequence[Sequence[str]], words: int) -> list[str]:
    """Lines of equal columns: the first ``words`` of them to the left, the others to the right; a last text may hang over.

    All lines have the cells of the first one, or one more, which is not aligned.
    """
    columns = len(lines[0])
    widths = [max(len(line[i]) for line in lines) for i in range(columns)]
    texts = []
    for line in lines:
        cells = [line[i].ljust(widths[i]) if i < words else line[i].rjust(widths[i]) for i in range(columns)]
        texts.append("  ".join([*cells, *line[columns:]]).rstrip())
    return texts


@dataclass
class Display:
    """What a person sees: written over on a terminal, said again now and then in a pipe.

    A stream may be lost: a terminal that nobody reads any more does not end a run.
    """

    LIVE_SECONDS: ClassVar[float] = 0.1  # between two looks of a terminal

    stream: IO[str]
    every: float = field(default=5.0, kw_only=True)  # seconds between two in a pipe
    clock: Callable[[], float] = field(default=time.monotonic, kw_only=True)
    _lost: bool = field(default=False, init=False)
    _shown: float = field(default=-math.inf, init=False)  # when
    _width: int = field(default=0, init=False)  # of the line that can be written over

    @property
    def live(self) -> bool:
        """Whether what is written can be written over."""
        return not self._lost and self.stream.isatty()

    def write(self, text: str) -> None:
        """Write, until nobody reads any more."""
        if self._lost:
            return
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):
            self._lost = True

    def due(self, now: float) -> bool:
        """Whether it is time to show something again, which is then taken as shown."""
        if now - self._shown < (self.LIVE_SECONDS if self.live else self.every):
            return False
        self._shown = now
        return True

    def put(self, text: str) -> None:
        """A line, in place of the last one on a terminal."""
        if self.live:
            self.write("\r" + text.ljust(self._width))
            self._width = len(text)
        else:
            self.write(text + "\n")


@dataclass
class Terminal(Display, Sink):
    """A line with the last pass; notes have lines of their own."""

    eps: float
    _records: list[ProgressRecord] = field(default_factory=list, init=False)
    _unseen: bool = field(default=False, init=False)

    def record(self, record: ProgressRecord) -> None:
        self._records.append(record)
        if len(self._records) > 4096:
            del self._records[1:-2048:2]
        self._unseen = not self.due(self.clock())
        if not self._unseen:
            self.put(describe(self._records, self.eps))

    def note(self, event: str, text: str, **values: Any) -> None:
        if self._unseen and not self._width:
            self.write(describe(self._records, self.eps) + "\n")
        self._unseen = False
        if self._width:
            self.write("\r" + " " * self._width + "\r")
            self._width = 0
        self.write(visible(text) + "\n")

    def close(self) -> None:
        if self._width:
            self.write("\n")
            self._width = 0


def describe(records: Sequence[ProgressRecord], eps: float) -> str:
    """One line: passes, bracket, violated points, speed, time left."""
    last = records[-1]
    speed = (last.bytes_read + last.cached_bytes) / last.pass_seconds / 1e9 if last.pass_seconds > 0 else 0.0
    parts = [f"pass {last.passes:.4g}", last.ends, f"{speed:.2f} GB/s", f"{last.seconds:.1f} s"]
    if not isinstance(last, Record):
        return "  ".join(parts)
    if last.violated is not None:
        parts.insert(2, f"{last.violated} violated")
    brackets = [record for record in records if isinstance(record, Record)]
    left = remaining_passes(brackets, eps) * last.seconds / max(1, last.passes)
    if left < FORESEEABLE and not last.hopeful:
        parts.append(f"about {left:.0f} s left" if left < 5400 else f"about {left / 3600:.1f} h left")
    return "  ".join(parts)


@dataclass
class Scoreboard(Display):
    """Rows of all methods, or classes, on one stream; of many only some that go on are shown."""

    LIVE_SECONDS: ClassVar[float] = 0.2

    title: str = "method"
    _rows: dict[str, Record | None] = field(default_factory=dict, init=False)
    _ended: dict[str, str] = field(default_factory=dict, init=False)
    _lines: int = field(default=0, init=False)  # of the table that stands on the terminal

    def row(self, name: str) -> Sink:
        """The sink of one method, or class."""
        self._rows[name] = None
        return _Row(self, name)

    def update(self, name: str, record: Record) -> None:
        """After a pass of one of them."""
        self._rows[name] = record
        if self.due(self.clock()):
            self.show()

    def say(self, text: str) -> None:
        """A line of its own, above the table."""
        self.write(self._cleared() + visible(text) + "\n")
        if self.live:
            self.show()

    def end(self, name: str, text: str) -> None:
        self._ended[name] = text
        if len(self._ended) == len(self._rows):
            self.show()
            self._lines = 0

    def show(self) -> None:
        """The table, in place of the last one on a terminal."""
        shown = list(self._rows)
        if len(shown) > MOST_ROWS:
            shown = [name for name in shown if name not in self._ended][:MOST_ROWS]
        lines = aligned([(self.title, *HEAD), *(self._cells(name, self._rows[name]) for name in shown)], 1)
        if len(self._rows) > MOST_ROWS:
            lines.append(f"{len(self._ended)} of {len(self._rows)} have ended")
        self.write(self._cleared() + "".join(visible(line) + "\n" for line in lines))
        self._lines = len(lines) if self.live else 0

    def _cells(self, name: str, record: Record | None) -> list[str]:
        ended = self._ended.get(name, "")
        if record is None:
            return [name, *[""] * len(HEAD), ended]
        violated = "" if record.violated is None else str(record.violated)
        margins = [f"{record.margin_lower:+.3e}", f"{record.margin_upper:.3e}"]
        return [name, f"{record.passes:.4g}", str(record.iterations), *margins, violated, f"{record.seconds:.1f}", ended]

    def _cleared(self) -> str:
        """What takes the last table from the terminal."""
        up = f"\x1b[{self._lines}A\x1b[J" if self._lines else ""
        self._lines = 0
        return up


@dataclass
class _Row(Sink):
    """The events of one method, or class."""

    board: Scoreboard
    name: str

    def record(self, record: ProgressRecord) -> None:
        assert isinstance(record, Record), "methods of a race look for a margin"
        self.board.update(self.name, record)

    def note(self, event: str, text: str, **values: Any) -> None:
        if event == "stopped":
            self.board.end(self.name, f"{values['verdict']}, {values['stopped']}")
        elif event not in ("start", "method", "projection"):
            self.board.say(f"{self.name}: {text}")


@dataclass
class IngestProgress(Display):
    """Points written, with speed and time left, and a line at the end."""

    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self._shown = self.clock()

    def __call__(self, done: int, total: int) -> None:
        """Show that ``done`` points of about ``total`` are written, if it is time; all are when the two are the same."""
        now = self.clock()
        if not self.due(now) and done < total:
            return
        seconds = max(now - self._began, 1e-9)
        if done < total:
            left = seconds * (total - done) / max(done, 1)
            self.put(f"{done} of {total} points  {done / seconds:.0f} points/s  about {left:.0f} s left")
        else:
            self.put(f"{done} points written in {seconds:.1f} s, {done / seconds:.0f} points/s")
            self.write("\n" if self.live else "")


class Callback(Sink):
    """A function of the caller that is given each record, and may end the run: it returns True, or raises StopIteration."""

    def __init__(self, function: Callable[[ProgressRecord], object]) -> None:
        self.function = function
        self.ends = False

    def record(self, record: ProgressRecord) -> None:
        try:
            self.ends = self.function(record) is True or self.ends
        except StopIteration:
            self.ends = True


@dataclass(frozen=True)
class RunOptions:
    """How a run is kept and shown; the result does not depend on it."""

    checkpoint_every: float  # seconds
    progress: bool
    stop: Callable[[], bool]
    more: tuple[Sink, ...] = ()  # sinks that the caller gave
    returns: bool = False  # an interrupted run is returned; otherwise what interrupted it is raised, once it is saved
    interruptions: list[BaseException] = field(default_factory=list)


def run_options(checkpoint_every: float, output: Output) -> RunOptions:
    """With the callback of the caller, if there is one."""
    progress, stop, returns = output.progress, output.stop, output.stop is not never
    if output.callback is None:
        return RunOptions(checkpoint_every, progress, stop, returns=returns)
    sink = Callback(output.callback)
    return RunOptions(checkpoint_every, progress, lambda: sink.ends or stop(), (sink,), returns)


def terminal(progress: bool, eps: float) -> Sink | None:
    """A line of progress on stderr, where it is shown."""
    return Terminal(sys.stderr, eps) if progress and sys.stderr is not None else None


def run_sinks(
    stack: ExitStack, session: Session, job: RunSpec, folder: Path | None, options: RunOptions, earlier: Checkpoint | None
) -> list[Sink]:
    """Those of a job that is one method; the stack closes them."""
    shown = terminal(options.progress, job.asked.eps)
    size = 0 if earlier is None else earlier.traces.get(job.methods[0], 0)
    return [*_sinks(stack, session, folder, shown, size), *options.more]


def lane_sinks(
    stack: ExitStack,
    session: Session,
    folders: Mapping[str, Path | None],
    board: Scoreboard | None,
    earlier: Checkpoint | None,
    more: Sequence[Sink] = (),
) -> dict[str, list[Sink]]:
    """Those of each of several methods, or classes, that run side by side, with their folders; the stack closes them."""
    sizes = {} if earlier is None else earlier.traces
    return {
        name: [*_sinks(stack, session, folder, None if board is None else board.row(name), sizes.get(name, 0)), *more]
        for name, folder in folders.items()
    }


def _sinks(stack: ExitStack, session: Session, folder: Path | None, shown: Sink | None, size: int) -> list[Sink]:
    """The trace in a folder, which goes on after ``size`` bytes, what is shown, and the log of the cluster."""
    sinks: list[Sink] = []
    if folder is not None:
        folder.mkdir(exist_ok=True)
        sinks.append(TraceFile(folder / TRACE, size))
    if shown is not None:
        sinks.append(shown)
    for sink in sinks:
        stack.callback(sink.close)
    return sinks if session.log is None else [*sinks, session.log]


def report_start(
    sinks: Sequence[Sink], dataset: Dataset, method: str, why: str, earlier: Checkpoint | None, lane: str = ""
) -> None:
    """Say what begins, or goes on; ``lane`` is its name in the job, if that is not the method's."""
    features = f"{dataset.m} features{' and an intercept' if dataset.intercept else ''}"
    if dataset.transform is not None:
        features += f", {dataset.transform.words}"
    what = geometry_of(dataset).describe(dataset)
    for sink in sinks:
        text = f"{dataset.where}: {what}, {features}, {method}"
        sink.note("start", text, n=dataset.n, m=dataset.m, method=method)
        sink.note("method", f"{method}: {why}", method=method, why=why)
        if earlier is not None:
            done = earlier.passes(lane or method)
            sink.note("resume", f"going on after pass {done:.4g} and {earlier.seconds:.1f} s", passes=done)


def report_cost(sinks: Sequence[Sink], projection: Projection, **circumstances: Any) -> None:
    """Say what the run will take; its circumstances stand beside that in the trace."""
    for sink in sinks:
        sink.note("projection", str(projection), **projection.to_json(), **circumstances)


def print_status(progress: bool, text: str) -> None:
    """A line on stderr, where progress is shown: of what comes before a run has sinks."""
    if progress and sys.stderr is not None:
        Display(sys.stderr).write(f"{visible(text)}\n")
