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
from importlib.util import find_spec
from typing import IO, Any, ClassVar, NamedTuple, cast

from msgspec import Struct

from dfeas.display import fold
from dfeas.errors import visible


class Line(NamedTuple):
    """A text, or the texts before and after a bar."""

    text: str
    share: float | None = None  # of the bar
    more: str = ""

    def __str__(self) -> str:
        share = "" if self.share is None else f"{100 * self.share:.0f} %"
        return "  ".join(part for part in (self.text, share, self.more) if part)

    def build_row(self, columns: int) -> Any:
        """What rich shows in one row, with a bar where there is room for one."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        whole = Text(visible(str(self)), no_wrap=True, overflow="ellipsis")
        # a bar has its edges, too; without room for one there is the percentage only
        if self.share is None or whole.cell_len + 8 > columns:
            return whole
        row = Table.grid(padding=(0, 2, 0, 0), expand=True)
        for ratio in (None, 1, None):
            row.add_column(ratio=ratio, no_wrap=True)
        row.add_row(
            Text(visible(self.text)), ProgressBar(1.0, self.share), Text(visible(f"{self.share:.0%}  {self.more}".rstrip()))
        )
        return row


class Screen(Struct, eq=False):
    """Where lines are shown. A stream may be lost: a terminal that nobody reads any more does not end a run."""

    LIVE_SECONDS: ClassVar[float] = 0.1  # between two looks of a terminal

    stream: IO[str]
    every: float = 5.0  # seconds between two in a log
    clock: Callable[[], float] = time.monotonic
    _lost: bool = False
    _shown: float = -math.inf  # when
    _live: Any = None  # of rich, while something is shown

    @property
    def live(self) -> bool:
        return not self._lost and (self.stream.isatty() or (self.stream is sys.stderr and in_notebook()))

    @property
    def size(self) -> tuple[int, int] | None:
        """Columns and rows that may be written to; None in a notebook. In the last column some terminals begin a new row."""
        if not self.stream.isatty():
            return None
        try:
            columns, rows = os.get_terminal_size(self.stream.fileno())
        except (OSError, ValueError):
            columns, rows = shutil.get_terminal_size()
        return max(20, (columns or 80) - 1), rows or 24

    @property
    def columns(self) -> float:
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
        from rich.console import Group

        # a notebook says no width
        columns, rows = self.size or (100, len(lines))
        live = self._live or self._start()
        if self.size is not None:
            live.console.size = columns, rows
        live.update(Group(*(line.build_row(columns) for line in lines[:rows])), refresh=True)

    def _start(self) -> Any:
        """Begin to write over what is shown. No thread does it: whoever shows a line says when."""
        from rich.console import Console
        from rich.live import Live

        file, notebook = cast("IO[str]", self), self.size is None
        plain: dict[str, Any] = {"color_system": None, "highlight": False, "markup": False, "emoji": False}
        console = Console(file=file, force_terminal=not notebook, force_jupyter=notebook, **plain)
        keep: dict[str, Any] = {"auto_refresh": False, "redirect_stdout": False, "redirect_stderr": False}
        self._live = Live(console=console, transient=True, vertical_overflow="crop", **keep)
        self._live.start()
        return self._live

    def say(self, text: str) -> None:

        said = "\n".join(fold(visible(text), self.columns))
        if self._live is None:
            self.write(f"{said}\n")
        else:
            self._live.console.print(said, soft_wrap=True)

    def leave(self, lines: Sequence[Line] = ()) -> None:
        """Show nothing any more but lines that stay."""
        if self._live is not None:
            self._live.stop()
            self._live = None
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
        return getattr(self.stream, "encoding", None) or "ascii"


def in_notebook() -> bool:
    """Whether this is one, with what it needs to show a bar."""
    shell = sys.modules.get("IPython")
    found = None if shell is None else shell.get_ipython()
    return found is not None and "IPKernelApp" in found.config and find_spec("ipywidgets") is not None


def print_status(progress: bool, text: str) -> None:
    """A line on stderr, where progress is shown: of what comes before a run has sinks."""
    if progress and sys.stderr is not None:
        Screen(sys.stderr).say(text)
