"""How a run is shown: the line or the table of its progress, and points that an ingest has written."""

from __future__ import annotations

import logging
import math
import sys
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any

from dfeas.answers.trace import ProgressRecord, Sink
from dfeas.data.writers.dataset import Progress
from dfeas.display import Grid
from dfeas.errors import format_bytes
from dfeas.run.progress.screen import Line, Screen
from dfeas.run.termination import Record
from dfeas.settings import read_setting, require_type

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

    def line(self, text: str, now: float, left: float = math.inf) -> Line:
        """How far it is; the time left is to its end where nothing better is known."""
        seconds = max(now - self.began, 1e-9)
        if not left < FORESEEABLE:
            left = seconds * (self.of - self.done) / self.done if self.done else math.inf
        rate = f"{format_bytes(self.size * self.done / self.of / seconds)}/s" if self.size else ""
        more = filter(None, (rate, time_left(left).removeprefix("about ")))
        return Line(text, self.done / self.of, "  ".join(more))


class Watched(Sink):
    """What is shown of the records of a run, and of a read while it goes on."""

    def __init__(self, stream: IO[str], *, every: float = 5.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.screen = Screen(stream, every=every, clock=clock)
        self.clock = clock
        self.reading: Reading | None = None
        self.solver = ""  # how far it is, while it works

    def observe(self, done: int, of: int, size: int) -> None:
        """So many of the blocks of a read are done, and all of them have so many bytes; an engine says it."""
        if done == 0 or self.reading is None or of != self.reading.of:
            self.reading = Reading(self.clock(), done, of, size)
        self.reading.done = done
        if done < of and self.long is not None and self.screen.due():
            self.show()

    def show_solver(self, text: str, seconds: float) -> None:
        self.reading = None
        if seconds >= LONG and self.screen.due():
            self.solver = f"solver in memory: {text + ', ' if text else ''}{seconds:.0f} s"
            self.show()
            self.solver = ""

    @property
    def long(self) -> Reading | None:
        """The read that goes on, if it does so for a while."""
        reading = self.reading
        there = reading is not None and reading.done < reading.of and self.clock() - reading.began >= LONG
        return reading if there else None

    def say(self, text: str) -> None:
        """Show a text beside what is shown, unless the log has it."""
        if not logger.isEnabledFor(logging.INFO):
            self.screen.say(text)

    def close(self) -> None:
        self.screen.leave()

    @abstractmethod
    def show(self) -> None:
        """Show what there is to say now."""


class Terminal(Watched):
    """A line with the last pass and how far the next is, above it notes; ``left`` says how many passes the goal takes."""

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
        last = self._records[-1] if self._records else None
        if self.solver:
            return Line(self.solver if last is None else f"pass {last.passes:.4g}  {self.solver}")
        if (reading := self.long) is not None:
            done = "first read" if last is None else f"pass {last.passes:.4g}  {last.ends}"
            return reading.line(done, now, self._until - now)
        return Line("" if last is None else describe(last, self._until - now, math.isinf(self.screen.columns)))

    def note(self, event: str, text: str, **values: Any) -> None:
        if self._unseen and not self.screen.live:
            self.show()
        self._unseen = False
        self.say(text)

    def close(self) -> None:
        if self._unseen:
            self.show()
        super().close()


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
    """About so much; nothing where nobody can know, or where it is none."""
    if not 0.5 < seconds < FORESEEABLE:
        return ""
    return f"about {seconds:.0f} s left" if seconds < 5400 else f"about {seconds / 3600:.1f} h left"


class Scoreboard(Watched):
    """Rows of all methods, or classes, on one stream; of many only some that go on are shown."""

    def __init__(self, stream: IO[str], title: str = "method", **how: Any) -> None:
        super().__init__(stream, **how)
        self.title = title
        self._rows: dict[str, Record | None] = {}
        self._ended: dict[str, str] = {}

    def row(self, name: str) -> Sink:
        self._rows[name] = None
        return _Row(self, name)

    def update(self, name: str, record: Record) -> None:
        self.reading = None
        self._rows[name] = record
        if self.screen.due():
            self.show()

    def end(self, name: str, text: str) -> None:
        self._ended[name] = text
        if len(self._ended) == len(self._rows):
            self.screen.leave([Line(line) for line in self._table()])

    def show(self) -> None:
        lines = [Line(text) for text in self._table()]
        if (reading := self.long) is not None:
            lines.append(reading.line("a read", self.clock()))
        if self.solver:
            lines.append(Line(self.solver))
        self.screen.show(lines)

    def _table(self) -> list[str]:
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


@dataclass(eq=False, repr=False)
class _Row(Sink):
    """The events of one method, or class."""

    board: Scoreboard
    name: str

    def record(self, record: ProgressRecord) -> None:
        assert isinstance(record, Record), "methods of a race look for a margin"
        self.board.update(self.name, record)

    def show_solver(self, text: str, seconds: float) -> None:
        self.board.show_solver(f"{self.name}, {text}" if text else self.name, seconds)

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
        screen, seconds = self._screen, max(self._clock() - self._began, 1e-9)
        rate = f"{done / seconds:.0f} points/s"
        if done >= total:
            screen.leave([Line(f"{done} points written in {seconds:.1f} s, {rate}")])
        elif seconds >= (LONG if screen.live else screen.every) and screen.due():
            left = time_left(seconds * (total - done) / max(done, 1))
            screen.show([Line(f"{done} of {total} points", done / total if screen.live else None, f"{rate}  {left}")])


def who_is_told(progress: bool | Progress | None) -> Progress | None:
    """Who is told how many points are written; None: nobody."""
    require_type("progress", progress, "bool | Callable | None")
    if callable(progress):
        return progress
    return IngestProgress(sys.stderr) if (read_setting("progress") if progress is None else progress) else None
