"""How an answer is shown: on one line, as the lines that a command prints, in a notebook, and as values of JSON.

A class says its ``_parts``, rows of a word and a text, and grids of cells; all are made of them here. What is quoted comes from
files that anybody wrote: controls are shown as escapes, and text has no markup.
"""

from __future__ import annotations

import io
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from html import escape
from textwrap import wrap
from typing import Any, ClassVar

import numpy as np

from dfeas.errors import visible

BRIEF = 100
"""Characters of the one line."""
WORD = 12
"""Columns of the word before a text."""
INDENT = "    "
"""Before a remark that has no room beside its row."""
LEAST_NAME = 8
"""Characters that are left of a name where a line is too long."""
WIDEST = 1 << 16
"""Columns where there is no terminal."""
LONG = 1000
"""Bits of integers that JSON gets as numbers; longer ones are strings of hexadecimal digits."""

Paint = Callable[[str], str]
"""Gives a verdict the codes of a colour."""


@dataclass(frozen=True)
class Row:
    """A word, and what is said of it."""

    word: str | None  # None: the text is a sentence by itself; empty: it goes on with the row above
    text: str
    verdict: str = ""  # that stands before the text, and has a colour on a terminal


@dataclass(frozen=True)
class Grid:
    """Cells under headings; a row may have one more, a remark beside it."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1  # so many columns are words, and stand to the left
    spare: Sequence[str] = ()  # headings of columns that a narrow terminal goes without, in this order

    def lines(self, columns: float = math.inf) -> list[str]:
        """Lines of equal columns, which have room in so many if that can be; otherwise remarks stand below their rows."""
        from rich.cells import cell_len

        kept, rows = list(range(len(self.head))), [self.head, *self.rows]
        widths = [max(cell_len(visible(row[place])) for row in rows) for place in kept]
        remarks = ["".join(f"  {visible(text)}" for text in row[len(self.head) :]) for row in rows]
        longest = max(map(cell_len, remarks))
        for word in self.spare:
            if sum(widths[place] + 2 for place in kept) - 2 + longest <= columns:
                break
            kept = [place for place in kept if self.head[place] != word]
        over = max(0.0, sum(widths[place] + 2 for place in kept) - 2 - columns)
        found = []
        for line, remark in zip(self._print_table(kept, max(LEAST_NAME, widths[0] - int(over))), remarks, strict=True):
            if not remark or cell_len(line + remark) <= columns:
                found.append(f"{line}{remark}".rstrip())
            else:
                found.append(line.rstrip())
                found += wrap(remark.strip(), int(columns), initial_indent=INDENT, subsequent_indent=INDENT)
        return found

    def _print_table(self, kept: Sequence[int], longest: int) -> list[str]:
        """Some columns, the first of which has room for so many letters."""
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
        for place in kept:
            side: Any = "left" if place < self.left else "right"
            table.add_column(visible(self.head[place]), justify=side, no_wrap=True)
        for row in self.rows:
            cells = [Text(visible(row[place])) for place in kept]
            cells[0].truncate(longest, overflow="ellipsis")
            table.add_row(*cells)
        file = io.StringIO()
        Console(file=file, width=WIDEST, color_system=None, highlight=False, markup=False, emoji=False).print(table)
        return file.getvalue().splitlines()


Part = Row | Grid


class Displayed(ABC):
    """An answer that says in a few words what it is, has the lines that its command prints, and values of JSON."""

    __slots__ = ()

    HIDDEN: ClassVar[tuple[str, ...]] = ()  # fields that JSON does not get
    DERIVED: ClassVar[tuple[str, ...]] = ()  # properties that it does

    @abstractmethod
    def _parts(self) -> Iterator[Part]:
        """Rows and grids, which are all that is printed; the first one stands for all in a few words."""

    def to_json(self) -> dict[str, Any]:
        """Fields as plain values of JSON."""
        assert is_dataclass(self), "or it has values of its own"
        names = [entry.name for entry in fields(self) if entry.name not in self.HIDDEN]
        return {name: plain(getattr(self, name)) for name in (*names, *self.DERIVED)}

    def __repr__(self) -> str:
        first = next(self._parts(), Row(None, "nothing"))
        if isinstance(first, Grid):
            first = Row(None, ", ".join(f"{row[0]} ({row[1]})" for row in first.rows))
        text = f"{first.word or ''} {first.verdict}{first.text}".strip()
        text = visible(f"<{type(self).__name__} {text}")
        return (text if len(text) < BRIEF else f"{text[: BRIEF - 3]}..") + ">"

    def __str__(self) -> str:
        return "\n".join(lines(self._parts()))

    def _repr_html_(self) -> str:
        """What a notebook shows: the lines, one below the other."""
        return f"<pre>{escape(str(self))}</pre>"


def lines(parts: Iterable[Part], columns: float = math.inf, paint: Paint = str) -> Iterator[str]:
    """Parts as text; grids fit in so many columns if they can."""
    for part in parts:
        if isinstance(part, Grid):
            yield from part.lines(columns)
            continue
        word = "" if part.word is None else f"{part.word:{WORD}} "
        painted = paint(visible(part.verdict)) if part.verdict else ""
        yield f"{visible(word)}{painted}{visible(part.text)}".rstrip()


def plain(value: Any) -> Any:
    """A value as JSON has it: numbers that are not finite are null, long integers and what JSON does not know are strings."""
    if is_dataclass(value):
        return {entry.name: plain(getattr(value, entry.name)) for entry in fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, int):
        return value if value.bit_length() <= LONG else hex(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str) else str(value)
