"""Finished runs: where they are, what all of their files say, and several as rows of one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import fields

from dfeas.answers.files import (
    CERTIFICATE,
    FINGERPRINT,
    RACE,
    RESULT,
    SOFT_MARGIN,
    SOFT_MARGINS,
    SUSPECTS,
    TRACE,
    VERDICTS,
    certificate_of,
    classes_of,
    load_values,
)
from dfeas.answers.trace import Trace, read_trace
from dfeas.answers.words import UNDECIDED, Proof
from dfeas.data.frames import make_frame
from dfeas.data.storage import files
from dfeas.data.storage.files import conform, read_json
from dfeas.data.storage.places import Place, paths_of, place
from dfeas.data.storage.scratch import total
from dfeas.display import Displayed, Grid
from dfeas.errors import BadInputError, CorruptDataError, UsageError, visible
from dfeas.run.termination import Record
from dfeas.verify.certificate import Certificate

if TYPE_CHECKING:
    from dfeas.data.storage.object_path import ObjectPath


class Comparison(Displayed, list[dict[str, Any]]):
    """Rows of finished runs, each a dict; print it for a table, or make a frame, a table of LaTeX or a figure of it."""

    def _parts(self) -> Iterator[Grid]:
        yield (SOFT_MARGINS if "objective" in self[0] else VERDICTS).grid(self)

    def to_frame(self) -> Any:
        """A row for each run, in a frame of pandas, or of polars where pandas is not there; UsageError without both."""
        return make_frame(self)

    def to_latex(self) -> str:
        """The table as a ``tabular`` of LaTeX, which needs the package booktabs."""
        grid = next(self._parts())
        head, *rows = (" & ".join(map(_in_latex, cells)) + r" \\" for cells in (grid.head, *grid.rows))
        begin = rf"\begin{{tabular}}{{{'l' * grid.left + 'r' * (len(grid.head) - grid.left)}}}"
        return "\n".join([begin, r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"])

    def plot(self, ax: Any = None, *, gap: bool = False, against: str = "passes") -> Any:
        """Draw what the runs knew after each pass over each other, as ``Result.plot`` does."""
        from dfeas.figures import plot_traces

        traces = {row["run"]: Trace(place(row["folder"]) / TRACE) for row in self}
        return plot_traces(traces, ax, gap, against)


_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", **{c: rf"\{c}" for c in "&%$#_{}"}}


def _in_latex(cell: str) -> str:
    """Text that LaTeX sets as it is, with the sign of a number."""
    text = "".join(_LATEX.get(letter, letter) for letter in visible(cell))
    return f"$-${text[1:]}" if text[:1] == "-" and len(text) > 1 else text


def compare(*runs: str | Path | Sequence[str | Path]) -> Comparison:
    """Rows of finished runs: ``run`` (its name), ``folder`` and keys of its ``result.json``, in the order given.

    Parameters
    ----------
    *runs : path, or sequence of paths
        Folders of runs, single or in lists; a folder that holds runs stands for all of them.

    Returns
    -------
    Comparison
        A list of dictionaries, one for each run; print it for a table. Soft margins have keys of their own. It has
        ``to_frame()``, ``to_latex()`` and ``plot()``. The proof of a run whose certificate is missing is ``none``.

    Raises
    ------
    BadInputError
        There is no finished run.
    CorruptDataError
        A run is damaged.
    UsageError
        No run is given, or soft margins together with other runs.

    Examples
    --------
    >>> import dfeas
    >>> X = [[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]]
    >>> race = dfeas.race(X, [1, 1, -1], methods=["perceptron", "working-set"], out="race")
    >>> [(row["run"], row["verdict"]) for row in dfeas.compare("race")]
    [('working-set', 'feasible'), ('perceptron', 'feasible')]
    """
    folders = find_runs([folder for each in runs for folder in paths_of(each, "runs")])
    soft, values = load_alike(folders)
    table, rows = SOFT_MARGINS if soft else VERDICTS, Comparison()
    for name, folder in folders.items():
        certificate_of(folder, values[name])  # what a row says stands or falls with it
        lost = not soft and find_loss(folder, values[name])
        rows.append(table.row(name, folder, {**values[name], "proof": Proof.NONE} if lost else values[name]))
    return rows


def load_alike(folders: Mapping[str, Place]) -> tuple[bool, dict[str, dict[str, Any]]]:
    """Whether all runs are soft margins, and the keys of their results. Raises UsageError when only some are."""
    values = {name: load_values(folder, soft=True) for name, folder in folders.items()}
    soft = [name for name in values if values[name].get("kind") == SOFT_MARGIN]
    if 0 < len(soft) < len(values):
        raise UsageError(f"{soft[0]} is a soft margin, and others are not: they have nothing to compare; name one kind of runs")
    return bool(soft), values


def explain_difference(rows: Sequence[Mapping[str, Any]]) -> str:
    """One sentence when the runs are not about the same points and labels; empty when they are."""
    marks = len({row[FINGERPRINT] for row in rows})
    return f"these runs are on {marks} different sets of points and labels: their fingerprints differ" if marks > 1 else ""


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A finished run and its files."""

    folder: Place
    name: str  # how the report calls it
    values: dict[str, Any]  # the keys of result.json
    records: tuple[Record, ...]  # one a pass
    notes: tuple[dict[str, Any], ...]  # between the passes: event, text and more
    certificate: Certificate | None  # None when there is no file


def find_runs(places: Sequence[str | Path | ObjectPath]) -> dict[str, Place]:
    """Folders of runs by name. A folder without a result whose direct subfolders have one stands for those, sorted by name, or
    as a race ranks them. The
    name is that of the folder, or the path as it was given where two have the same. Raises UsageError for no place at all,
    BadInputError where there is no finished run.
    """
    if not places:
        raise UsageError("no run was given")
    folders = list(dict.fromkeys(folder for each in places for folder in _runs_at(place(each))))
    names = [folder.resolve().name for folder in folders]
    return {name if names.count(name) == 1 else str(folder): folder for name, folder in zip(names, folders, strict=True)}


def _runs_at(folder: Place) -> list[Place]:
    if not folder.is_dir():
        raise BadInputError(f"{folder}: no such folder")
    if (folder / RESULT).is_file() or (folder / SUSPECTS).is_file():
        classes = classes_of(folder)
        return [folder] if classes is None else list(classes.values())
    inner = sorted((each for each in folder.iterdir() if (each / RESULT).is_file()), key=str)
    if (folder / RACE).is_file():
        ranked = [*read_json(folder / RACE, {"results": {str: dict}}, "race", files.RACE)["results"]]
        inner.sort(key=lambda each: ranked.index(each.name) if each.name in ranked else len(ranked))
    below = [run for each in inner for run in _runs_at(each)]
    if not below:
        raise BadInputError(f"{folder}: no finished run, {RESULT} is missing here and in the folders below")
    return below


def load_run(name: str, folder: Place) -> Run:
    """A run with all of its files; raises CorruptDataError when one is missing or damaged."""
    values = load_values(folder)
    records, notes = read_trace(folder / TRACE, _record)
    certificate = certificate_of(folder, values)
    if certificate is not None and certificate.kind == "gordan" and not total(certificate.weights) > 0:
        raise CorruptDataError(f"{folder / CERTIFICATE}: damaged: no point has a weight")
    return Run(folder, name, values, records, notes, certificate)


def find_loss(folder: Place, values: Mapping[str, Any]) -> str:
    """A sentence where the file that proves the verdict of a result, or has the hyperplane of a soft margin, is gone."""
    if (folder / CERTIFICATE).exists() or "violated" in values or values.get("verdict") == UNDECIDED:
        return ""
    what = "the hyperplane was there" if values.get("kind") == SOFT_MARGIN else f"nothing proves the verdict that {RESULT} says"
    return f"{folder / CERTIFICATE} is missing: {what}"


_KINDS: dict[Any, Any] = {str: str, bool: bool, int | None: int | float | None}
"""Of values in a trace, by the annotations of a record; others are numbers, which need not be finite."""


def _record(event: dict[str, Any]) -> Record:
    """A pass; keys that this version does not know are left out. Raises ValueError for one that is damaged."""
    entries = fields(Record)
    shape = {entry.name + "?" * (not entry.required): _KINDS.get(entry.type, int | float) for entry in entries}
    conform(event, shape)
    return Record(**{entry.name: event[entry.name] for entry in entries if entry.name in event})
