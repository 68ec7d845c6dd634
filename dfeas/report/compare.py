"""Several runs as rows of one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dfeas.data.storage.places import paths_of
from dfeas.errors import UsageError
from dfeas.report.numbers import number, size
from dfeas.run.progress import aligned
from dfeas.run.result_files import SOFT_MARGIN, find_runs, load_result, load_values, require_shape

_FINGERPRINT = "fingerprint"


@dataclass(frozen=True)
class Table:
    """The columns of runs of one kind: the keys of ``result.json``, how their numbers are written, and their headings."""

    words: tuple[str, ...]  # columns of text, which are named by their keys
    numbers: Mapping[str, Callable[[Any], str]]  # key -> how the others are written
    headings: Mapping[str, str]  # of keys that are not headings themselves

    @property
    def keys(self) -> tuple[str, ...]:
        """What is compared, by the keys of ``result.json``."""
        return (*self.words, *self.numbers, _FINGERPRINT)

    def _words(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        """Columns of text: a method that is the name of its run, as in a race, is not said twice."""
        return [word for word in self.words if word != "method" or any(row["method"] != row["run"] for row in rows)]

    def left(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """How many columns, from the left, are words."""
        return 1 + len(self._words(rows))

    def lines(self, rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
        """Headings, and the texts of each row under them."""
        words = self._words(rows)
        head = ["run", *words, *(self.headings.get(key, key.replace("_", " ")) for key in self.numbers)]
        return [head, *([*(str(row[key]) for key in ("run", *words)), *self._numbers(row)] for row in rows)]

    def row(self, name: str, folder: Path, values: Mapping[str, Any]) -> dict[str, Any]:
        """What is compared of a run."""
        return {"run": name, "folder": str(folder), **{key: values[key] for key in self.keys}}

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
        "bytes_read": size,
        "seconds": _written(".2f"),
    },
    {"bytes_read": "read"},
)
SOFT_MARGINS = Table(
    ("method", "loss", "stopped"),
    dict.fromkeys(("C", "objective", "lower", "gap", "support", "error", "passes", "reads", "seconds"), number),
    {"lower": "at least"},
)
_SOFT_SHAPE = {**dict.fromkeys(SOFT_MARGINS.words, str), **dict.fromkeys(SOFT_MARGINS.numbers, int | float | None)}


def compare(*runs: str | Path | Sequence[str | Path]) -> list[dict[str, Any]]:
    """One dict a run: ``run`` (its name), ``folder`` and keys of its ``result.json``, in the order given.

    ``runs`` are folders, each by itself or in lists; one that holds runs stands for all of them. Of soft margins the keys are
    theirs. Raises BadInputError where there is no finished run, CorruptDataError for a damaged one, UsageError for soft margins
    among others.
    """
    folders = find_runs([folder for each in runs for folder in paths_of(each, "runs")])
    if all_soft(folders):
        return [SOFT_MARGINS.row(name, folder, load_soft(folder)) for name, folder in folders.items()]
    return [VERDICTS.row(name, folder, load_values(folder)) for name, folder in folders.items()]


def all_soft(folders: Mapping[str, Path]) -> bool:
    """Whether all runs are soft margins. Raises UsageError when only some are."""
    kinds = {name: load_result(folder, soft=True).get("kind") == SOFT_MARGIN for name, folder in folders.items()}
    if len(set(kinds.values())) > 1:
        name = next(name for name, soft in kinds.items() if soft)
        raise UsageError(f"{name} is a soft margin, and others are not: they have nothing to compare; name one kind of runs")
    return all(kinds.values())


def load_soft(folder: Path) -> dict[str, Any]:
    """The keys of the result of a soft margin. Raises CorruptDataError when some are missing or of another type."""
    values = load_result(folder, soft=True)
    require_shape(folder, values, _SOFT_SHAPE)
    return values


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Aligned lines, the headings first: words to the left, numbers to the right."""
    kind = SOFT_MARGINS if "objective" in rows[0] else VERDICTS
    return aligned(kind.lines(rows), kind.left(rows))


def warning(rows: Sequence[Mapping[str, Any]]) -> str:
    """One sentence when the runs are not about the same points and labels; empty when they are."""
    marks = {row[_FINGERPRINT] for row in rows}
    return (
        f"these runs are on {len(marks)} different sets of points and labels: their fingerprints differ"
        if len(marks) > 1
        else ""
    )
