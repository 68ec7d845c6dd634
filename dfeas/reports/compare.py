"""Several runs as rows of one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dfeas.answers.files import FINGERPRINT, SOFT_MARGIN, SOFT_MARGINS, TRACE, VERDICTS, certificate_of, load_values
from dfeas.answers.trace import Trace
from dfeas.answers.words import Proof
from dfeas.data.frames import make_frame
from dfeas.data.storage.places import Place, paths_of, place
from dfeas.display import Displayed, Grid
from dfeas.errors import UsageError, visible
from dfeas.reports.runs import find_loss, find_runs


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
