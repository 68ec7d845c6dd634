"""How a run is shown: its line or table of progress, the log of the cluster, what it will take."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from dfeas import options
from dfeas.data.dataset import Dataset
from dfeas.errors import visible
from dfeas.geometry.registry import geometry_of
from dfeas.run.checkpoint.job import Checkpoint, Job
from dfeas.run.cost.projection import Projection
from dfeas.run.results import TRACE
from dfeas.run.session import Setting
from dfeas.run.termination import Record, Told
from dfeas.run.trace import Output, Sink, Terminal, TraceFile


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


HEAD = ("passes", "iterations", "margin lower", "margin upper", "violated", "seconds")


MOST_ROWS = 20


@dataclass
class Scoreboard:
    """Rows of all methods, or classes, on one stream; of many only some that go on are shown."""

    stream: IO[str]
    title: str = "method"
    every: float = 5.0  # seconds between tables in a pipe
    clock: Callable[[], float] = time.monotonic
    _rows: dict[str, Record | None] = field(default_factory=dict)
    _ended: dict[str, str] = field(default_factory=dict)
    _shown: float = -math.inf
    _lines: int = 0  # of the table that stands on the terminal
    _out: Output = field(init=False)

    def __post_init__(self) -> None:
        self._out = Output(self.stream)

    def row(self, method: str) -> Sink:
        """The sink of one method."""
        self._rows[method] = None
        return _Row(self, method)

    def update(self, method: str, record: Record) -> None:
        """After a pass of one method."""
        self._rows[method] = record
        now = self.clock()
        if now - self._shown >= (0.2 if self._out.live else self.every):
            self._shown = now
            self.show()

    def say(self, text: str) -> None:
        """A line of its own, above the table."""
        self._out.write(self._cleared() + visible(text) + "\n")
        if self._out.live:
            self.show()

    def end(self, method: str, text: str) -> None:
        self._ended[method] = text
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
        self._out.write(self._cleared() + "".join(visible(line) + "\n" for line in lines))
        self._lines = len(lines) if self._out.live else 0

    def _cells(self, method: str, record: Record | None) -> list[str]:
        ended = self._ended.get(method, "")
        if record is None:
            return [method, *[""] * len(HEAD), ended]
        violated = "" if record.violated is None else str(record.violated)
        margins = [f"{record.margin_lower:+.3e}", f"{record.margin_upper:.3e}"]
        return [method, f"{record.passes:.4g}", str(record.iterations), *margins, violated, f"{record.seconds:.1f}", ended]

    def _cleared(self) -> str:
        """What takes the last table from the terminal."""
        up = f"\x1b[{self._lines}A\x1b[J" if self._lines else ""
        self._lines = 0
        return up


@dataclass
class _Row:
    """One method's events."""

    board: Scoreboard
    method: str

    def record(self, record: Told) -> None:
        """After each of its passes."""
        assert isinstance(record, Record), "methods of a race look for a margin"
        self.board.update(self.method, record)

    def note(self, event: str, text: str, **values: Any) -> None:
        if event == "stopped":
            self.board.end(self.method, f"{values['verdict']}, {values['stopped']}")
        elif event not in ("start", "method", "projection"):
            self.board.say(f"{self.method}: {text}")

    def close(self) -> None:
        """Nothing is kept open."""


@dataclass(frozen=True)
class How:
    """How a run is kept and shown; the result does not depend on it."""

    checkpoint_every: float  # seconds
    progress: bool
    stop: Callable[[], bool]
    more: tuple[Sink, ...] = ()  # sinks that the caller gave


class Calls:
    """A function of the caller that is given each record, and may end the run: it returns True, or raises StopIteration."""

    def __init__(self, function: Callable[[Told], object]) -> None:
        self.function = function
        self.ends = False

    def record(self, record: Told) -> None:
        try:
            self.ends = self.function(record) is True or self.ends
        except StopIteration:
            self.ends = True

    def note(self, event: str, text: str, **values: Any) -> None:
        """It is told of reads only."""

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True)
class Visible:
    """A sink that people look at: notes quote names from the data, and say them without steering the terminal."""

    inner: Sink

    def record(self, record: Told) -> None:
        self.inner.record(record)

    def note(self, event: str, text: str, **values: Any) -> None:
        self.inner.note(event, visible(text), **values)

    def close(self) -> None:
        self.inner.close()


def terminal(progress: bool, eps: float) -> Sink | None:
    """A line of progress on stderr, where it is shown."""
    return Visible(Terminal(sys.stderr, eps)) if progress and sys.stderr is not None else None


def how_of(checkpoint_every: float, output: options.Output) -> How:
    """With the callback of the caller, if there is one."""
    stop = output.stop
    if output.callback is None:
        return How(checkpoint_every, output.progress, stop)
    calls = Calls(output.callback)
    return How(checkpoint_every, output.progress, lambda: calls.ends or stop(), (calls,))


def run_sinks(
    stack: ExitStack, setting: Setting, job: Job, folder: Path | None, how: How, earlier: Checkpoint | None
) -> list[Sink]:
    """Those of a job that is one method; the stack closes them."""
    shown = terminal(how.progress, job.asked.eps)
    size = 0 if earlier is None else earlier.traces.get(job.methods[0], 0)
    return [*_sinks(stack, setting, folder, shown, size), *how.more]


def lane_sinks(
    stack: ExitStack,
    setting: Setting,
    folders: Mapping[str, Path | None],
    board: Scoreboard | None,
    earlier: Checkpoint | None,
    more: Sequence[Sink] = (),
) -> dict[str, list[Sink]]:
    """Those of each of several methods, or classes, that run side by side, with their folders; the stack closes them."""
    sizes = {} if earlier is None else earlier.traces
    return {
        name: [*_sinks(stack, setting, folder, None if board is None else board.row(name), sizes.get(name, 0)), *more]
        for name, folder in folders.items()
    }


def _sinks(stack: ExitStack, setting: Setting, folder: Path | None, shown: Sink | None, size: int) -> list[Sink]:
    """The trace in a folder, which goes on after ``size`` bytes, what is shown, and the log of the cluster."""
    sinks: list[Sink] = []
    if folder is not None:
        folder.mkdir(exist_ok=True)
        sinks.append(TraceFile(folder / TRACE, size))
    if shown is not None:
        sinks.append(shown)
    for sink in sinks:
        stack.callback(sink.close)
    return sinks if setting.log is None else [*sinks, Visible(setting.log)]


def announce(
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


def tell(sinks: Sequence[Sink], found: Projection) -> None:
    """Say what the run will take."""
    for sink in sinks:
        sink.note("projection", str(found), **found.to_json())


@dataclass
class Written:
    """Points written: a live line on a terminal, a plain line now and then in a pipe, and one at the end."""

    stream: IO[str]
    every: float = 5.0  # seconds between plain lines
    clock: Callable[[], float] = time.monotonic
    _began: float = math.nan
    _shown: float = -math.inf
    _width: int = 0
    _out: Output = field(init=False)

    def __post_init__(self) -> None:
        self._out = Output(self.stream)
        self._began = self._shown = self.clock()

    def __call__(self, done: int, total: int) -> None:
        """Show that ``done`` points of about ``total`` are written, if it is time; all are when the two are the same."""
        now = self.clock()
        if done < total and now - self._shown < (0.1 if self._out.live else self.every):
            return
        self._shown = now
        seconds = max(now - self._began, 1e-9)
        if done < total:
            left = seconds * (total - done) / max(done, 1)
            text = f"{done} of {total} points  {done / seconds:.0f} points/s  about {left:.0f} s left"
        else:
            text = f"{done} points written in {seconds:.1f} s, {done / seconds:.0f} points/s"
        if self._out.live:
            self._out.write("\r" + text.ljust(self._width) + ("\n" if done >= total else ""))
            self._width = len(text)
        else:
            self._out.write(text + "\n")
