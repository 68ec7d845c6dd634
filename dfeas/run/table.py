"""Runs of one kind, or methods, or classes, as the rows of one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dfeas.display import Grid
from dfeas.errors import format_bytes

FINGERPRINT = "fingerprint"


@dataclass(frozen=True)
class Table:
    """The columns of runs of one kind: the keys of ``result.json``, how their numbers are written, and their headings."""

    words: tuple[str, ...]  # columns of text, which are named by their keys
    numbers: Mapping[str, Callable[[Any], str]]  # key -> how the others are written
    headings: Mapping[str, str]  # of keys that are not headings themselves
    spare: tuple[str, ...]  # headings of columns that a narrow terminal goes without, in this order

    @property
    def keys(self) -> tuple[str, ...]:
        return (*self.words, *self.numbers, FINGERPRINT)

    def row(self, name: str, folder: Path, values: Mapping[str, Any]) -> dict[str, Any]:
        return {"run": name, "folder": str(folder), **{key: values[key] for key in self.keys}}

    def grid(self, rows: Sequence[Mapping[str, Any]]) -> Grid:
        """Headings, and the cells of each row under them; what is null was not known, or has no bound."""
        words = ["run", *self._words(rows)]
        head = [*words, *(self.headings.get(key, key.replace("_", " ")) for key in self.numbers)]
        cells = [[*(str(row[key]) for key in words), *self._numbers(row)] for row in rows]
        return Grid(head, cells, len(words), self.spare)

    def _words(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        """Columns of text: a method that is the name of its run, as in a race, is not said twice."""
        return [word for word in self.words if word != "method" or any(row["method"] != row["run"] for row in rows)]

    def _numbers(self, row: Mapping[str, Any]) -> list[str]:
        return ["-" if row[key] is None else form(row[key]) for key, form in self.numbers.items()]


def _written(form: str) -> Callable[[Any], str]:
    return lambda value: format(value, form)


VERDICTS = Table(
    ("method", "verdict", "stopped", "proof"),
    {
        **dict.fromkeys(("passes", "reads"), _written(".4g")),
        "iterations": str,
        **dict.fromkeys(("margin_lower", "margin_upper"), _written(".6g")),
        "bytes_read": format_bytes,
        "seconds": _written(".2f"),
    },
    {"bytes_read": "read"},
    ("iterations", "reads", "read", "stopped", "passes", "proof", "method"),
)
SOFT_MARGINS = Table(
    ("method", "loss", "stopped"),
    dict.fromkeys(("C", "objective", "lower", "gap", "support", "error", "passes", "reads", "seconds"), _written(".6g")),
    {"lower": "at least"},
    ("reads", "support", "passes", "stopped", "method", "loss"),
)
