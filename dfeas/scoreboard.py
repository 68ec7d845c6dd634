"""The table of a race while it runs: a row for each method, live on a terminal, now and then in a pipe."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any

from dfeas.table import aligned
from dfeas.termination import Record, Told
from dfeas.trace import Output, Sink
from dfeas.visible import visible

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
        """A method has ended."""
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
        """Between its passes."""
        if event == "stopped":
            self.board.end(self.method, f"{values['verdict']}, {values['stopped']}")
        elif event not in ("start", "method", "projection"):
            self.board.say(f"{self.method}: {text}")

    def close(self) -> None:
        """Nothing is kept open."""
