"""How an answer is shown: on one line, as the lines that a command prints, in a notebook, and as values of JSON.

A class says its ``_parts``, rows of a word and a text, and grids of cells; all are made of them here. What is quoted comes from
files that anybody wrote: controls are shown as escapes, and text has no markup.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from textwrap import wrap
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct

from dfeas.errors import visible
from dfeas.records import is_record, names_of

BRIEF = 100
"""Characters of the one line."""
WORD = 12
"""Columns of the word before a text."""
INDENT = "    "
"""Before a remark that has no room beside its row."""
LEAST_NAME = 8
"""Characters that are left of a name where a line is too long."""
LONG = 1000
"""Bits of integers that JSON gets as numbers; longer ones are strings of hexadecimal digits."""
_MEASURED = r"(\d) (s|ms|min|h|[kMGT]?i?B(?:/s)?)(?=[\s,;.)]|$)"
"""A number and its unit."""
Paint = Callable[[str], str]
"""Gives a verdict the codes of a colour."""


class Row(Struct, frozen=True):
    """A word, and what is said of it."""

    word: str | None  # None: the text is a sentence by itself; empty: it goes on with the row above
    text: str
    verdict: str = ""  # that stands before the text, and has a colour on a terminal


class Grid(Struct, frozen=True):
    """Cells under headings; a row may have one more, a remark beside it."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1  # so many columns are words, and stand to the left
    spare: Sequence[str] = ()  # headings of columns that a narrow terminal goes without, in this order

    def lines(self, columns: float = math.inf) -> list[str]:
        """Lines of equal columns, which have room in so many if that can be; otherwise remarks stand below their rows."""
        from rich.cells import cell_len

        rows = [[visible(cell) for cell in row] for row in (self.head, *self.rows)]
        kept = list(range(len(self.head)))
        widths = [max(cell_len(row[place]) for row in rows) for place in kept]
        remarks = ["".join(f"  {text}" for text in row[len(self.head) :]) for row in rows]
        longest = max(map(cell_len, remarks))
        for word in self.spare:
            if sum(widths[place] + 2 for place in kept) - 2 + longest <= columns:
                break
            kept.remove(list(self.head).index(word))
        over = max(0.0, sum(widths[place] + 2 for place in kept) - 2 - columns)
        widths[0] = min(widths[0], max(LEAST_NAME, widths[0] - int(over)))
        found = []
        for row, remark in zip(rows, remarks, strict=True):
            line = "  ".join(_fill(row[place], widths[place], place < self.left) for place in kept)
            if cell_len(line + remark) <= columns:
                found.append(f"{line}{remark}".rstrip())
            else:
                found.append(line.rstrip())
                found += fold(INDENT + remark.strip(), columns, len(INDENT))
        return found


def _fill(text: str, width: int, left: bool) -> str:
    """A text in so many columns, whose end is lost if it is longer."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "…"
    gap = " " * (width - cell_len(text))
    return text + gap if left else gap + text


Part = Row | Grid


class Displayed:
    """An answer that says in a few words what it is, has the lines that its command prints, and values of JSON."""

    __slots__ = ()

    HIDDEN: ClassVar[tuple[str, ...]] = ()  # fields that JSON does not get
    DERIVED: ClassVar[tuple[str, ...]] = ()  # properties that it does
    BESIDE: ClassVar[str] = ""  # key under which its command prints it beside its result

    @property
    def is_decided(self) -> bool:
        """Whether it decides what was asked, so that no limit ended its run."""
        return True

    @abstractmethod
    def _parts(self) -> Iterator[Part]:
        """Rows and grids, which are all that is printed; the first one stands for all in a few words."""

    def to_json(self) -> dict[str, Any]:
        """Fields as plain values of JSON."""
        names = [name for name in names_of(type(self)) if name not in self.HIDDEN]
        return {name: plain(getattr(self, name)) for name in (*names, *self.DERIVED)}

    def __dir__(self) -> list[str]:
        """What can be asked of it: also fields that are found when they are asked for, and no constants of its class."""
        own = set(names_of(type(self)) if is_record(self) else ())
        return sorted(own | {name for name in super().__dir__() if not name.isupper()})

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
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


def lines(parts: Iterable[Part], columns: float = math.inf, paint: Paint = str) -> Iterator[str]:
    """Parts as text, which fits in so many columns if it can: a text that is longer continues below its first line."""
    for part in parts:
        if isinstance(part, Grid):
            yield from part.lines(columns)
            continue
        word = "" if part.word is None else visible(f"{part.word:{WORD}} ")
        verdict = visible(part.verdict)
        first, *more = fold(f"{word}{verdict}{visible(part.text)}".rstrip(), columns, len(word))
        whole = verdict and first.startswith(word + verdict)
        yield f"{word}{paint(verdict)}{first[len(word + verdict) :]}" if whole else first
        yield from more


def fold(text: str, columns: float, indent: int = 0) -> list[str]:
    """A text in lines that are no longer than so many columns, but for words that are: no word, number or path is broken, and
    a number stays with its unit. Lines after the first one stand behind an indent.
    """
    if len(text) <= columns:
        return [text]
    words = text.lstrip(" ")
    glued, first = re.sub(_MEASURED, "\\1\0\\2", words), " " * (len(text) - len(words))
    found = wrap(
        glued,
        int(columns),
        initial_indent=first,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in found] or [text]


def plain(value: Any) -> Any:
    """A value as JSON has it: numbers that are not finite are null, long integers and what JSON does not know are strings."""
    if is_record(value):
        return {name: plain(getattr(value, name)) for name in names_of(type(value))}
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


def parse_integers(values: Iterable[Any]) -> list[int]:
    """Several of them."""
    return [parse_integer(value) for value in values]


def parse_integer(value: Any) -> int:
    """An integer that ``plain`` has written. Raises TypeError for what is none, and ValueError for text that is no long one."""
    if type(value) is int:
        return value
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no integer")
    number = int(value, 16)
    if hex(number) != value or number.bit_length() <= LONG:
        raise ValueError(f"{value[:40]!r} is no integer of more than {LONG} bits")
    return number
