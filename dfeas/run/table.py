"""Runs of one kind, or methods, or classes, as the rows of one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dfeas.data.storage.places import Place
from dfeas.display import Grid
from dfeas.errors import format_bytes

FINGERPRINT = "fingerprint"


@dataclass(frozen=True)
class RunTable:
    """The columns of runs of one kind: the keys of ``result.json``, how their numbers are written, and their headings."""

    words: tuple[str, ...]  # columns of text, which are named by their keys
    numbers: Mapping[str, Callable[[Any], str]]  # key -> how the others are written
    headings: Mapping[str, str]  # of keys that are not headings themselves
    spare: tuple[str, ...]  # headings of columns that a narrow terminal goes without, in this order

    def row(self, name: str, folder: Place, values: Mapping[str, Any]) -> dict[str, Any]:
        keys = (*self.words, *self.numbers, FINGERPRINT)
        return {"run": name, "folder": str(folder), **{key: values[key] for key in keys}}

    def grid(self, rows: Sequence[Mapping[str, Any]]) -> Grid:
        """Headings, and the cells of each row under them; what is null was not known, or has no bound. A method that is the
        name of its run, as in a race, is not said twice.
        """
        own = any(row["method"] != row["run"] for row in rows)
        words = ["run", *(word for word in self.words if own or word != "method")]
        head = [*words, *(self.headings.get(key, key.replace("_", " ")) for key in self.numbers)]
        numbers = [["-" if row[key] is None else form(row[key]) for key, form in self.numbers.items()] for row in rows]
        cells = [[*(str(row[key]) for key in words), *some] for row, some in zip(rows, numbers, strict=True)]
        return Grid(head, cells, len(words), self.spare)


VERDICTS = RunTable(
    ("method", "verdict", "stopped", "proof"),
    {
        **dict.fromkeys(("passes", "reads"), "{:.4g}".format),
        "iterations": str,
        **dict.fromkeys(("margin_lower", "margin_upper"), "{:.6g}".format),
        "bytes_read": format_bytes,
        "seconds": "{:.2f}".format,
    },
    {"bytes_read": "read"},
    ("iterations", "reads", "read", "stopped", "passes", "proof", "method"),
)
SOFT_MARGINS = RunTable(
    ("method", "loss", "stopped"),
    dict.fromkeys(("C", "objective", "lower", "gap", "support", "error", "passes", "reads", "seconds"), "{:.6g}".format),
    {"lower": "at least"},
    ("reads", "support", "passes", "stopped", "method", "loss"),
)
