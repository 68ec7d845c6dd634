"""How an answer is shown: on one line, as the lines that a command prints, and as a table of a notebook.

A class says its ``_brief`` and its ``_parts``, rows of a word and a text, and grids of cells; all three are made of them here.
What is quoted comes from files that anybody wrote: lines have controls as escapes, and tables have no markup but their own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from textwrap import wrap

from dfeas.errors import visible

BRIEF = 100
"""Characters of the one line."""
WORD = 12
"""Columns of the word before a text."""
INDENT = "    "
"""Before a remark that has no room beside its row."""
LEAST_NAME = 8
"""Characters that are left of a name where a line is too long."""

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
        """Lines of equal columns, which have room in so many if that can be."""
        kept = list(range(len(self.head)))
        for word in self.spare:
            if max(map(len, self._aligned(kept, math.inf))) <= columns:
                break
            kept = [place for place in kept if self.head[place] != word]
        return list(self._aligned(kept, columns))

    def _aligned(self, kept: Sequence[int], columns: float) -> Iterator[str]:
        """Of some columns; names are cut, and remarks stand below their rows, where there is no room."""
        rows = [self.head, *self.rows]
        widths = [max(len(row[place]) for row in rows) for place in kept]
        over = sum(widths) + 2 * (len(widths) - 1) - columns
        if over > 0:
            widths[0] = min(widths[0], max(LEAST_NAME, widths[0] - int(over)))
        for row in rows:
            cells = [_cell(row[place], width, place < self.left) for place, width in zip(kept, widths, strict=True)]
            remark = row[len(self.head) :]
            whole = "  ".join([*cells, *remark]).rstrip()
            if len(whole) <= columns or not any(remark):
                yield whole
                continue
            yield "  ".join(cells).rstrip()
            yield from wrap(remark[0], int(columns), initial_indent=INDENT, subsequent_indent=INDENT)

    def html(self) -> str:
        """A table of its own."""
        head = "".join(_html("th", text) for text in self.head)
        rows = "".join(f"<tr>{''.join(_html('td', text) for text in row)}</tr>" for row in self.rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


Part = Row | Grid


class Displayed(ABC):
    """An answer that says in a few words what it is, and has the lines and the table that its command prints."""

    __slots__ = ()

    @abstractmethod
    def _brief(self) -> str:
        """A few words, for the one line."""

    @abstractmethod
    def _parts(self) -> Iterator[Part]:
        """Rows and grids, which are all that is printed."""

    def __repr__(self) -> str:
        return cut(visible(f"<{type(self).__name__} {self._brief()}"), BRIEF - 1) + ">"

    def __str__(self) -> str:
        return "\n".join(lines(self._parts()))

    def _repr_html_(self) -> str:
        """The table that a notebook shows."""
        return "".join(_tables(self._parts()))


def lines(parts: Iterable[Part], columns: float = math.inf, paint: Paint = str) -> Iterator[str]:
    """Parts as text; grids fit in so many columns if they can."""
    for part in parts:
        if isinstance(part, Grid):
            yield from map(visible, part.lines(columns))
            continue
        word = "" if part.word is None else f"{part.word:{WORD}} "
        painted = paint(visible(part.verdict)) if part.verdict else ""
        yield f"{visible(word)}{painted}{visible(part.text)}".rstrip()


def cut(text: str, most: int) -> str:
    """The same, or its beginning where it has more than so many characters."""
    return text if len(text) <= most else f"{text[: most - 2]}.."


def _cell(text: str, width: int, left: bool) -> str:
    return cut(text, width).ljust(width) if left else text.rjust(width)


def _tables(parts: Iterable[Part]) -> Iterator[str]:
    """Rows that follow each other are one table."""
    for gridded, some in groupby(parts, lambda part: isinstance(part, Grid)):
        if gridded:
            yield from (part.html() for part in some if isinstance(part, Grid))
        else:
            rows = "".join(_html_row(part) for part in some if isinstance(part, Row) and (part.text or part.verdict))
            yield f"<table><tbody>{rows}</tbody></table>" if rows else ""


def _html_row(row: Row) -> str:
    verdict = f"<b>{escape(visible(row.verdict))}</b>" if row.verdict else ""
    text = f"{verdict}{escape(visible(row.text))}"
    if row.word is None:
        return f'<tr><td colspan="2" style="text-align:left">{text}</td></tr>'
    return f'<tr>{_html("th", row.word)}<td style="text-align:left">{text}</td></tr>'


def _html(tag: str, text: str) -> str:
    return f'<{tag} style="text-align:left">{escape(visible(text))}</{tag}>'
