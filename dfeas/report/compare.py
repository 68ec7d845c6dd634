"""Several runs as rows of one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dfeas.errors import CorruptDataError, UsageError
from dfeas.run.progress import aligned
from dfeas.run.results import RESULT, SOFT_MARGIN, find_runs, load_result, load_values

COLUMNS = (
    "run",
    "method",
    "verdict",
    "stopped",
    "proof",
    "passes",
    "reads",
    "iterations",
    "margin lower",
    "margin upper",
    "GB read",
    "seconds",
)
"""Headings of the table."""

WORDS = 5
"""How many of the columns, from the left, are words; the others are numbers."""

KEYS = (
    "method",
    "verdict",
    "stopped",
    "proof",
    "passes",
    "reads",
    "iterations",
    "margin_lower",
    "margin_upper",
    "bytes_read",
    "seconds",
    "fingerprint",
)
"""What is compared, by the keys of ``result.json``."""

SOFT_KEYS = (
    *("method", "loss", "stopped"),
    *("C", "objective", "lower", "gap", "support", "error", "passes", "reads", "seconds"),
    "fingerprint",
)
"""What is compared of soft margins."""

SOFT_COLUMNS = (
    *("run", "method", "loss", "stopped"),
    *("C", "objective", "at least", "gap", "support", "error", "passes", "reads", "seconds"),
)
"""Headings of their table."""

WORDS_OF_SOFT = 4
"""How many of these are words."""


def compare(runs: Sequence[str | Path]) -> list[dict[str, Any]]:
    """One dict a run: ``run`` (its name), ``folder`` and keys of its ``result.json``, in the order given.

    A folder that holds runs stands for all of them. Of soft margins the keys are theirs. Raises BadInputError where there is no
    finished run, CorruptDataError for a damaged one, UsageError for soft margins among others.
    """
    found = find_runs(runs)
    if all_soft(found):
        return [soft_row(name, folder, load_result(folder, soft=True)) for name, folder in found.items()]
    return [row(name, folder, load_values(folder)) for name, folder in found.items()]


def all_soft(folders: Mapping[str, Path]) -> bool:
    """Whether all runs are soft margins. Raises UsageError when only some are."""
    kinds = {name: load_result(folder, soft=True).get("kind") == SOFT_MARGIN for name, folder in folders.items()}
    if len(set(kinds.values())) > 1:
        name = next(name for name, soft in kinds.items() if soft)
        raise UsageError(f"{name} is a soft margin, and others are not: they have nothing to compare; name one kind of runs")
    return all(kinds.values())


def soft_row(name: str, folder: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """What is compared of a soft margin. Raises CorruptDataError when keys are missing or of another type."""
    numbers = [values.get(key) for key in SOFT_KEYS[WORDS_OF_SOFT - 1 : -1]]
    if not (
        all(isinstance(number, int | float | None) for number in numbers)
        and all(isinstance(values.get(key), str) for key in ("method", "loss", "stopped"))
    ):
        raise CorruptDataError(f"{folder / RESULT}: not a readable result: keys are missing or of another type")
    return {"run": name, "folder": str(folder), **{key: values[key] for key in SOFT_KEYS}}


def row(name: str, folder: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """What is compared of a run."""
    return {"run": name, "folder": str(folder), **{key: values[key] for key in KEYS}}


def cells(row: Mapping[str, Any]) -> list[str]:
    """The texts of a row under ``COLUMNS``, of a soft margin under ``SOFT_COLUMNS``."""
    if "objective" in row:
        numbers = [row[key] for key in SOFT_KEYS[WORDS_OF_SOFT - 1 : -1]]
        words = [str(row[key]) for key in ("run", *SOFT_KEYS[: WORDS_OF_SOFT - 1])]
        return [*words, *("-" if number is None else f"{number:.6g}" for number in numbers)]
    return [
        *(str(row[key]) for key in ("run", "method", "verdict", "stopped", "proof")),
        f"{row['passes']:.4g}",
        f"{row['reads']:.4g}",
        str(row["iterations"]),
        f"{row['margin_lower']:.6g}",
        f"{row['margin_upper']:.6g}",
        f"{row['bytes_read'] / 1e9:.3g}",
        f"{row['seconds']:.2f}",
    ]


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Aligned lines, the headings first: words to the left, numbers to the right."""
    columns, words = headings(rows)
    return aligned([columns, *(cells(row) for row in rows)], words)


def headings(rows: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], int]:
    """The headings of a table, and how many of them are words."""
    return (SOFT_COLUMNS, WORDS_OF_SOFT) if "objective" in rows[0] else (COLUMNS, WORDS)


def warning(rows: Sequence[Mapping[str, Any]]) -> str:
    """One sentence when the runs are not about the same points and labels; empty when they are."""
    marks = {row["fingerprint"] for row in rows}
    return (
        f"these runs are on {len(marks)} different sets of points and labels: their fingerprints differ"
        if len(marks) > 1
        else ""
    )
