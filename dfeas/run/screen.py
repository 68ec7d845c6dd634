"""Lines that a person sees while something goes on: written over on a terminal and in a notebook, said again now and then in
a log.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from threading import RLock
from typing import IO, Any, ClassVar

from dfeas.errors import visible

LEAST_BAR = 8
"""Columns of a bar, with its edges; where there are fewer only the percentage is shown."""
LEAST_COLUMNS = 20


@dataclass(frozen=True)
class Line:
    """A text, or the texts before and after a bar."""

    text: str
    share: float | None = None  # of the bar
    more: str = ""

    def __str__(self) -> str:
        share = "" if self.share is None else f"{100 * self.share:.0f} %"
        return "  ".join(part for part in (self.text, share, self.more) if part)

    def fitted(self, columns: int | None) -> str:
        """As a format of tqdm, in so many columns at most."""
        from tqdm.utils import disp_len, disp_trim

        whole = str(self)
        if self.share is None or (columns is not None and disp_len(whole) + LEAST_BAR > columns):
            return _literal(whole if columns is None else disp_trim(whole, columns))
        return f"{_literal(self.text)}  {{percentage:3.0f}}%|{{bar}}|  {_literal(self.more)}".rstrip()


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


@dataclass
class Screen:
    """Where lines are shown. A stream may be lost: a terminal that nobody reads any more does not end a run."""

    LIVE_SECONDS: ClassVar[float] = 0.1  # between two looks of a terminal

    stream: IO[str]
    every: float = field(default=5.0, kw_only=True)  # seconds between two in a log
    clock: Callable[[], float] = field(default=time.monotonic, kw_only=True)
    _lost: bool = field(default=False, init=False)
    _shown: float = field(default=-math.inf, init=False)  # when
    _bars: list[Any] = field(default_factory=list, init=False)  # of tqdm, one a line

    @property
    def live(self) -> bool:
        """Whether what is shown can be written over."""
        return not self._lost and (self.stream.isatty() or (self.stream is sys.stderr and in_notebook()))

    @property
    def size(self) -> tuple[int, int] | None:
        """Columns that may be written to, and rows; None in a notebook. The last column is left alone: some terminals begin a
        new row after it.
        """
        if not self.stream.isatty():
            return None
        try:
            columns, rows = os.get_terminal_size(self.stream.fileno())
        except (OSError, ValueError):
            columns, rows = shutil.get_terminal_size()
        return max(LEAST_COLUMNS, (columns or 80) - 1), rows or 24

    @property
    def columns(self) -> float:
        """That a line may have."""
        size = self.size if self.live else None
        return math.inf if size is None else size[0]

    def due(self) -> bool:
        """Whether it is time to show something again, which is then taken as shown."""
        now = self.clock()
        if now - self._shown < (self.LIVE_SECONDS if self.live else self.every):
            return False
        self._shown = now
        return True

    def show(self, lines: Sequence[Line]) -> None:
        """Lines in place of those that are shown; in a log below them."""
        if not self.live:
            self.write("".join(f"{visible(str(line))}\n" for line in lines))
            return
        while len(self._bars) > len(lines):
            self._bars.pop().close()
        columns, rows = self.size or (None, None)
        for place, line in enumerate(lines):
            shape = {"ncols": columns, "nrows": rows, "bar_format": line.fitted(columns)}
            if place == len(self._bars):
                bar = bars()(total=1, initial=line.share or 0, position=place, leave=False, file=self, **shape)
                self._bars.append(bar)
                continue
            for name, value in {**shape, "n": line.share or 0}.items():
                setattr(self._bars[place], name, value)
            self._bars[place].refresh()

    def say(self, text: str) -> None:
        """A line that stays, above those that are shown."""
        for bar in self._bars:
            bar.clear()
        self.write(f"{visible(text)}\n")

    def leave(self, lines: Sequence[Line] = ()) -> None:
        """Show nothing any more but lines that stay."""
        while self._bars:
            self._bars.pop().close()
        self.write("".join(f"{visible(str(line))}\n" for line in lines))

    def write(self, text: str) -> int:
        """Write, until nobody reads any more."""
        if not self._lost:
            try:
                self.stream.write(text)
                self.stream.flush()
            except (OSError, ValueError):
                self._lost = True
        return len(text)

    def flush(self) -> None:
        """Does nothing, for nothing is held back."""

    @property
    def encoding(self) -> str:
        """That of the stream, which says how bars are drawn."""
        return getattr(self.stream, "encoding", None) or "ascii"


@cache
def bars() -> Any:
    """The class of bars, of a terminal or of a notebook."""
    from tqdm.auto import tqdm

    class Bar(tqdm):  # type: ignore[misc]
        monitor_interval = 0  # no thread: whoever shows a line says when

    Bar.set_lock(RLock())  # no semaphore either: one process shows
    return Bar


def in_notebook() -> bool:
    """Whether this is one, with what it needs to show a bar."""
    shell = sys.modules.get("IPython")
    found = None if shell is None else shell.get_ipython()
    return found is not None and "IPKernelApp" in found.config and find_spec("ipywidgets") is not None


def print_status(progress: bool, text: str) -> None:
    """A line on stderr, where progress is shown: of what comes before a run has sinks."""
    if progress and sys.stderr is not None:
        Screen(sys.stderr).say(text)
