"""Several runs as rows of one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dfeas.data.storage.places import paths_of
from dfeas.display import Displayed, Part
from dfeas.errors import UsageError
from dfeas.run.result_files import SOFT_MARGIN, certificate_of, find_runs, load_result, load_values, require_shape
from dfeas.run.table import FINGERPRINT, SOFT_MARGINS, VERDICTS

_SOFT_SHAPE = {**dict.fromkeys(SOFT_MARGINS.words, str), **dict.fromkeys(SOFT_MARGINS.numbers, int | float | None)}


class Comparison(Displayed, list[dict[str, Any]]):
    """Rows of finished runs, each a dict; print it for a table."""

    def _parts(self) -> Iterator[Part]:
        yield (SOFT_MARGINS if "objective" in self[0] else VERDICTS).grid(self)


def compare(*runs: str | Path | Sequence[str | Path]) -> Comparison:
    """Rows of finished runs: ``run`` (its name), ``folder`` and keys of its ``result.json``, in the order given.

    Parameters
    ----------
    *runs : path, or sequence of paths
        Folders of runs, each by itself or in lists; one that holds runs stands for all of them.

    Returns
    -------
    Comparison
        A list of dictionaries, one a run; print it for a table. Of soft margins the keys are theirs.

    Raises
    ------
    BadInputError
        There is no finished run.
    CorruptDataError
        One is damaged.
    UsageError
        No run, or soft margins among others.

    Examples
    --------
    >>> import dfeas
    >>> X = [[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]]
    >>> race = dfeas.race(X, [1, 1, -1], methods=["perceptron", "working-set"], to_the_end=True, out="race")
    >>> [(row["run"], row["verdict"]) for row in dfeas.compare("race")]
    [('perceptron', 'feasible'), ('working-set', 'feasible')]
    """
    folders = find_runs([folder for each in runs for folder in paths_of(each, "runs")])
    soft = all_soft(folders)
    table, rows = SOFT_MARGINS if soft else VERDICTS, Comparison()
    for name, folder in folders.items():
        values = load_soft(folder) if soft else load_values(folder)
        certificate_of(folder, values)  # what a row says stands or falls with it
        rows.append(table.row(name, folder, values))
    return rows


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


def explain_difference(rows: Sequence[Mapping[str, Any]]) -> str:
    """One sentence when the runs are not about the same points and labels; empty when they are."""
    marks = {row[FINGERPRINT] for row in rows}
    return (
        f"these runs are on {len(marks)} different sets of points and labels: their fingerprints differ"
        if len(marks) > 1
        else ""
    )
