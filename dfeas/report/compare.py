"""Several runs as rows of one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dfeas.report.runs import find_runs, load_values
from dfeas.table import aligned

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


def compare(runs: Sequence[str | Path]) -> list[dict[str, Any]]:
    """One dict a run: ``run`` (its name), ``folder`` and keys of its ``result.json``, in the order given.

    A folder that holds runs stands for all of them. Raises BadInputError where there is no finished run, CorruptDataError
    for a damaged one.
    """
    return [row(name, folder, load_values(folder)) for name, folder in find_runs(runs).items()]


def row(name: str, folder: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """What is compared of a run."""
    return {"run": name, "folder": str(folder), **{key: values[key] for key in KEYS}}


def cells(row: Mapping[str, Any]) -> list[str]:
    """The texts of a row under ``COLUMNS``."""
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
    return aligned([COLUMNS, *(cells(row) for row in rows)], WORDS)


def warning(rows: Sequence[Mapping[str, Any]]) -> str:
    """One sentence when the runs are not about the same points and labels; empty when they are."""
    marks = {row["fingerprint"] for row in rows}
    return (
        f"these runs are on {len(marks)} different sets of points and labels: their fingerprints differ"
        if len(marks) > 1
        else ""
    )
