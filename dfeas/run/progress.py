"""How a run is shown: its line or table of progress, what is logged, the log of the cluster, what it will take."""

from __future__ import annotations

import logging
import math
import sys
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dfeas.display import Grid
from dfeas.errors import format_bytes, visible
from dfeas.geometry.registry import geometry_of
from dfeas.problem import never
from dfeas.run.result_files import TRACE
from dfeas.run.screen import Line, Screen
from dfeas.run.termination import Goal, ProgressRecord, Record, passes_to_gap, remaining_passes
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

LONG = 0.5
"""Seconds of a read after which it is shown how far it is."""

HEAD = ("passes", "iterations", "margin lower", "margin upper", "violated", "seconds")
SPARE = ("iterations", "violated", "seconds", "passes")
"""Columns that a narrow terminal goes without, in this order."""
MOST_ROWS = 20

logger = logging.getLogger("dfeas")


@dataclass
class Reading:
    """How far a read of the data is."""

    began: float
    done: int  # blocks, or pairs of them
    of: int
    size: int  # bytes of all of them

    def rate(self, now: float) -> str:
        """Bytes in a second."""
        return f"{format_bytes(self.size * self.done / self.of / max(now - self.began, 1e-9))}/s" if self.size else ""

    def left(self, now: float) -> float:
        """Seconds."""
        return (now - self.began) * (self.of - self.done) / self.done if self.done else math.inf


class Watched(Sink):
    """What is shown of the records of a run, and of a read while it goes on."""

    def __init__(self, stream: IO[str], *, every: float = 5.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.screen = Screen(stream, every=every, clock=clock)
        self.clock = clock
        self.reading: Reading | None = None

    def observe(self, done: int, of: int, size: int) -> None:
        """So many of the blocks of a read are done, and all of them have so many bytes; an engine says it."""
        if done == 0 or self.reading is None or of != self.reading.of:
            self.reading = Reading(self.clock(), done, of, size)
        self.reading.done = done
        if done < of and self.long is not None and self.screen.due():
            self.show()

    @property
    def long(self) -> Reading | None:
        """The read that goes on, if it does so for a while."""
        reading = self.reading
        there = reading is not None and reading.done < reading.of and self.clock() - reading.began >= LONG
        return reading if there else None

    @abstractmethod
    def show(self) -> None:
        """What there is now."""


class Terminal(Watched):
    """A line with the last pass, and how far the next one is; notes have lines of their own.

    ``left`` says how many more passes the goal that was asked for takes.
    """

    def __init__(self, stream: IO[str], left: Left, **how: Any) -> None:
        super().__init__(stream, **how)
        self._left = left
        self._records: list[ProgressRecord] = []
        self._until = math.inf  # when the goal is reached
        self._unseen = False

    def record(self, record: ProgressRecord) -> None:
        self.reading = None
        self._records.append(record)
        if len(self._records) > 4096:
            del self._records[1:-2048:2]
        self._unseen = True
        if self.screen.due():
            self.show()

    def show(self) -> None:
        self._unseen = False
        now = self.clock()
        if self._records and self.reading is None:
            last = self._records[-1]
            self._until = now + self._left(self._records) * last.seconds / max(1, last.passes)
        self.screen.show([self._line(now)])

    def _line(self, now: float) -> Line:
        left, long = self._until - now, self.long
        if long is not None:
            left = left if left < FORESEEABLE else long.left(now)
            last = f"pass {self._records[-1].passes:.4g}  {self._records[-1].ends}" if self._records else "first read"
            more = filter(None, (long.rate(now), time_left(left).removeprefix("about ")))
            return Line(last, long.done / long.of, "  ".join(more))
        return Line(describe(self._records[-1], left, math.isinf(self.screen.columns)) if self._records else "")

    def note(self, event: str, text: str, **values: Any) -> None:
        if self._unseen and not self.screen.live:
            self.show()
        self._unseen = False
        if not logger.isEnabledFor(logging.INFO):  # otherwise it is there
            self.screen.say(text)

    def close(self) -> None:
        if self._unseen:
            self.show()
        self.screen.leave()


Left = Callable[[Sequence[ProgressRecord]], float]
"""Passes that a run still takes after some of them; inf when they tell nothing yet."""


def describe(last: ProgressRecord, left: float, whole: bool = True) -> str:
    """One line: passes, bracket, violated points, speed, time left; without what is of little use if not the ``whole``."""
    speed = (last.bytes_read + last.cached_bytes) / last.pass_seconds if last.pass_seconds > 0 else 0.0
    parts = [f"pass {last.passes:.4g}", last.ends]
    if whole and isinstance(last, Record) and last.violated is not None:
        parts.append(f"{last.violated} violated")
    return "  ".join(filter(None, (*parts, f"{format_bytes(speed)}/s", f"{last.seconds:.1f} s", time_left(left))))


def time_left(seconds: float) -> str:
    """About so much; nothing where nobody can know."""
    if not seconds < FORESEEABLE:
        return ""
    return f"about {max(0.0, seconds):.0f} s left" if seconds < 5400 else f"about {seconds / 3600:.1f} h left"


class Scoreboard(Watched):
    """Rows of all methods, or classes, on one stream; of many only some that go on are shown."""

    def __init__(self, stream: IO[str], title: str = "method", **how: Any) -> None:
        super().__init__(stream, **how)
        self.title = title
        self._rows: dict[str, Record | None] = {}
        self._ended: dict[str, str] = {}

    def row(self, name: str) -> Sink:
        """The sink of one method, or class."""
        self._rows[name] = None
        return _Row(self, name)

    def update(self, name: str, record: Record) -> None:
        """After a pass of one of them."""
        self.reading = None
        self._rows[name] = record
        if self.screen.due():
            self.show()

    def say(self, text: str) -> None:
        """A line of its own, above the table."""
        if not logger.isEnabledFor(logging.INFO):
            self.screen.say(text)

    def end(self, name: str, text: str) -> None:
        self._ended[name] = text
        if len(self._ended) == len(self._rows):
            self.screen.leave([Line(line) for line in self._table()])

    def close(self) -> None:
        """Of a run that ended otherwise nothing stays."""
        self.screen.leave()

    def show(self) -> None:
        now, long = self.clock(), self.long
        lines = [Line(text) for text in self._table()]
        if long is not None:
            lines.append(Line("a read", long.done / long.of, f"{long.rate(now)}  {time_left(long.left(now))}"))
        self.screen.show(lines)

    def _table(self) -> list[str]:
        """As many columns as the screen has room for."""
        shown = list(self._rows)
        if len(shown) > MOST_ROWS:
            shown = [name for name in shown if name not in self._ended][:MOST_ROWS]
        rows = [self._cells(name, self._rows[name]) for name in shown]
        lines = Grid((self.title, *HEAD), rows, spare=SPARE).lines(self.screen.columns)
        if len(self._rows) > MOST_ROWS:
            lines.append(f"{len(self._ended)} of {len(self._rows)} have ended")
        return lines

    def _cells(self, name: str, record: Record | None) -> tuple[str, ...]:
        ended = self._ended.get(name, "")
        if record is None:
            return (name, *[""] * len(HEAD), ended)
        violated = "" if record.violated is None else str(record.violated)
        margins = f"{record.margin_lower:+.3e}", f"{record.margin_upper:.3e}"
        return (name, f"{record.passes:.4g}", str(record.iterations), *margins, violated, f"{record.seconds:.1f}", ended)


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


class IngestProgress:
    """Points written, with speed and time left, and a line at the end."""

    def __init__(self, stream: IO[str], *, every: float = 5.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._screen = Screen(stream, every=every, clock=clock)
        self._clock, self._began = clock, clock()

    def __call__(self, done: int, total: int) -> None:
        """Show that ``done`` points of about ``total`` are written, if it is time; all are when the two are the same."""
        seconds = max(self._clock() - self._began, 1e-9)
        if done < total:
            if seconds >= (LONG if self._screen.live else self._screen.every) and self._screen.due():
                left = time_left(seconds * (total - done) / max(done, 1))
                points = f"{done} of {total} points"
                rate = f"{done / seconds:.0f} points/s  {left}"
                self._screen.show([Line(points, done / total, rate) if self._screen.live else Line(f"{points}  {rate}")])
        else:
            self._screen.leave([Line(f"{done} points written in {seconds:.1f} s, {done / seconds:.0f} points/s")])


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


class Log(Sink):
    """What is no progress, by the logging module."""

    def note(self, event: str, text: str, **values: Any) -> None:
        logger.info("%s", visible(text))


def terminal(progress: bool, job: RunSpec) -> Terminal | None:
    """A line of progress on stderr, where it is shown."""
    if not progress or sys.stderr is None:
        return None
    asked = job.asked
    left: Any = partial(remaining_passes, goal=Goal(asked.eps, asked.margin_tolerance))
    return Terminal(sys.stderr, left if job.soft is None else partial(passes_to_gap, goal=asked.eps))


def run_sinks(
    stack: ExitStack, session: Session, job: RunSpec, folder: Path | None, options: RunOptions, earlier: Checkpoint | None
) -> list[Sink]:
    """Those of a job that is one method; the stack closes them."""
    shown = terminal(options.progress, job)
    size = 0 if earlier is None else earlier.traces.get(job.methods[0], 0)
    _watch(session, shown)
    return [*_sinks(stack, session, folder, shown, size), *options.more]


def _watch(session: Session, shown: Sink | None) -> None:
    """Have engines say how far a read is to whoever shows it."""
    if isinstance(shown, Watched):
        session.engine.watch(shown.observe)
        session.checking.engine.watch(shown.observe)


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
    _watch(session, next((each for each in (board, *more) if isinstance(each, Watched)), None))
    if board is not None:
        stack.callback(board.close)
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
    sinks.append(Log())
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
        Screen(sys.stderr).say(text)
