"""The answer of ``dfeas.suspects``: shown, written, read back, and checked against the data."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dfeas.answers.base import FLOATS, Answer
from dfeas.answers.check.conflicts import labels_of, numbers_of
from dfeas.answers.check.proof import find_data
from dfeas.answers.files import SUSPECTS, require_placed
from dfeas.answers.words import FEASIBLE, INFEASIBLE, UNDECIDED, Proof, Stop
from dfeas.data.dataset import Dataset
from dfeas.data.frames import make_frame
from dfeas.data.open import open_source
from dfeas.data.source import ChosenTable, DataSpec, Source
from dfeas.data.storage.files import SUSPECTS as SUSPECTS_FORMAT
from dfeas.data.storage.files import Number, atomic_write, read_json
from dfeas.data.storage.outputs import OutputKind, begins_with
from dfeas.data.storage.places import Place, place, require_folder
from dfeas.display import Grid, Part, Row
from dfeas.engine.local import LocalEngine, local_engine
from dfeas.errors import BadInputError, CheckFailedError
from dfeas.linalg.points import Floats
from dfeas.records import replace
from dfeas.settings import parse_bytes, require_type
from dfeas.verify.certificate import Certificate, Check
from dfeas.verify.core import check_conflicts, find_wrong

SHOWN = 10
"""Suspects that are printed."""
NAMED = 4
"""Points that are named in the first line."""
COLUMNS = ("point", "name", "label", "score", "needed", "flip")
SUSPECTS_CSV = OutputKind(lambda path: path.is_file() and begins_with(path, ",".join(COLUMNS).encode()))
"""What ``to_csv`` writes."""
SHOWN_AS = {"needed": "remove", "flip": "relabel"}
"""Columns that people see by other names."""
_SHAPE = {
    **dict.fromkeys(("at_least", "enough", "n"), int),
    "points": [{"point": int, "label": str, "needed": bool, "flip": bool}],
    "conflicts": [[int]],
    "y": [Number(-math.inf, math.inf)],
    "weights": [[Number(0, 1)]],
    **dict.fromkeys(("passes", "reads", "seconds"), int | float),
    **dict.fromkeys(("stopped", "fingerprint", "view"), str),
    "data": dict | None,
    "positive": str | None,
    "intercept": bool,
    "table?": {"rows": int | None, "id": str | None, "label": str | None},
}


@dataclass(frozen=True, repr=False)
class Suspects(Answer):
    """Points that must be removed or relabelled before a hyperplane separates the others.

    Attributes
    ----------
    at_least : int
        At least so many points must be removed, proved by as many ``conflicts`` without a common point.
    enough : int
        So many points are enough, those that are ``needed``: y separates all others, proved.
    points : list of dict
        Needed points, which y has not on its side, the most suspect first (that each is in conflict with some that stay is what
        float64 found), then others on the wrong side of a hyperplane with a wider margin: ``point`` is
        the index, ``name`` that of the row in a frame or in the ``id`` of a table, ``label`` the class, ``score`` a_j'y under
        that hyperplane, and ``flip`` says that the other label is right for y, or for that hyperplane: proved. Of a folder of
        files, or several datasets, also ``file`` and the ``row`` in it.
    stopped : Stop
        ``verdict``: each needed point conflicts with some that stay; otherwise the limit that came first.
    n : int
        Number of points.
    y : array (m,) or (m+1,) of float64
        The separator, with the intercept last.
    conflicts : list of list of int
        The points of each conflict.
    weights : list of list of float
        Their weights, which make the signed points of each conflict cancel.
    passes, reads : float
        Reads that looked for suspects; all reads, with survey and checker.
    seconds : float
        Wall time.
    data : dict, optional
        Where the data is and how it is seen; None if it was in memory.
    fingerprint, view, positive, intercept : str, str, str or None, bool
        Of the data, as in ``dfeas.Certificate`` and ``dfeas.solve``.
    table : dict, optional
        What a table must have to be the one that the points are from: so many ``rows``, unless there is a mask, and the names
        of the column or index of ``id`` and of the column ``label``, where there are such.
    loaded : bool
        Whether it was read back from a folder.

    Examples
    --------
    >>> import dfeas
    >>> found = dfeas.suspects([[1.0], [2.0], [3.0], [4.0], [5.0]], [0, 1, 0, 1, 1])
    >>> found.at_least, found.enough, len(found.points)
    (1, 1, 1)
    """

    FILE: ClassVar = SUSPECTS
    FORMAT: ClassVar = SUSPECTS_FORMAT
    HIDDEN: ClassVar = ("loaded",)
    READ: ClassVar = {"y": lambda entries: FLOATS(entries) + 0.0, "stopped": Stop}

    at_least: int
    enough: int
    points: list[dict[str, Any]]
    stopped: Stop
    n: int
    y: Floats
    conflicts: list[list[int]]
    weights: list[list[float]]
    passes: float
    reads: float
    seconds: float
    data: dict[str, Any] | None
    fingerprint: str
    view: str
    positive: str | None
    intercept: bool
    table: dict[str, Any] | None = None
    loaded: bool = False

    @classmethod
    def load(cls, run: str | Place) -> Suspects:
        """Read it back from the folder of its run. Raises CorruptDataError where it is damaged."""
        values: Mapping[str, Any] = read_json(place(run) / SUSPECTS, _SHAPE, "list of suspects", cls.FORMAT)
        if values["data"] is not None:
            require_placed(values["data"])
        return cls.from_json(values, loaded=True)

    def _parts(self) -> Iterator[Part]:
        count = len(self.points)
        listed = f"{count} of {self.n} points {'is' if count == 1 else 'are'} suspect"
        if self.enough:
            yield Row("suspects", f"{listed}; without {self._name_needed} a hyperplane separates the others (proved)")
            least = f"at least {self.at_least} {'has' if self.at_least == 1 else 'have'} to go (proved)"
            yield Row("", least if self.at_least else "no conflict was found, so that maybe none has to go")
        else:
            more = f"; {listed}, and may stay" if count else ""
            yield Row("suspects", f"none has to go: a hyperplane separates all points (proved){more}")
        if not self.is_decided:
            yield Row("", f"{self.stopped.sentence}; fewer may be enough")
        shown = [[_cell(name, value, each) for name, value in each.items()] for each in self.points[:SHOWN]]
        yield from [Grid([SHOWN_AS.get(name, name) for name in self.points[0]], shown)] if shown else []
        if count > SHOWN:
            yield Row("", f"and {count - SHOWN} more")
        yield Row("cost", f"{self.passes:.4g} passes, {self.reads:.4g} reads in all, {self.seconds:.2f} s")

    @property
    def _name_needed(self) -> str:
        """Those that are enough, by name where they are few."""
        names = [str(each["point"] if each.get("name") is None else each["name"]) for each in self.points if each["needed"]]
        if len(names) > NAMED:
            return f"the first {len(names)} of them"
        return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))

    @property
    def is_decided(self) -> bool:
        return self.stopped == Stop.VERDICT

    def to_frame(self, source: Any = None) -> Any:
        """A row for each point, in a frame of pandas, or of polars where pandas is not there.

        Parameters
        ----------
        source : path, data frame, or what ``dfeas.table`` returns, optional
            The table that the points are from, with the same rows in the same order: its columns follow, those that are called
            as columns of the list as ``source_NAME``; of a folder of files also ``file`` and ``row`` in it.

        Raises
        ------
        UsageError
            There is neither pandas nor polars, or ``source`` is no table.
        BadInputError
            It has other rows than the data, as far as their number, ids and labels tell.
        """
        rows = self._rows(source)
        return make_frame(rows, [*rows[0]] if rows else COLUMNS)

    def to_csv(self, path: str | Path, source: Any = None) -> None:
        """Write what ``to_frame`` has as CSV. Raises what it does, and BadInputError where there is no folder for it."""
        require_folder(out := place(path))
        text, rows = StringIO(), self._rows(source)
        csv.writer(text, lineterminator="\n").writerows([[*rows[0]] if rows else COLUMNS, *(each.values() for each in rows)])
        with atomic_write(out) as file:
            file.write(text.getvalue().encode())

    def _rows(self, source: Any) -> list[dict[str, Any]]:
        if source is None or not self.points:
            return self.points
        from dfeas.data.table import take_rows  # with readers of all formats

        columns, n = take_rows(source, [each["point"] for each in self.points])
        if n < self.n or (self.table or {}).get("rows") not in (None, n):
            raise BadInputError(f"source has {n} rows, the data had {self.n} points: give the table that they are from")
        self._require_rows(source, columns)
        own = self.points[0].keys() - {"file", "row"}
        there = {f"source_{name}" if name in own else name: values for name, values in columns.items()}
        return [{**each, **{name: values[place] for name, values in there.items()}} for place, each in enumerate(self.points)]

    def _require_rows(self, source: Any, columns: Mapping[str, list[Any]]) -> None:
        """Raise BadInputError where the ids or labels of a table, in its rows of the points, are not those of the points."""
        from dfeas.data.ids import INDEX, call_index, plain
        from dfeas.data.index import ids_in_memory

        known, rows = self.table or {}, [each["point"] for each in self.points]
        chosen, X = isinstance(source, ChosenTable), source.X if isinstance(source, ChosenTable) else source
        named, label = known.get("id"), (source.label if chosen else None) or known.get("label")
        if chosen and source.choice.id is not None and named not in (None, INDEX):
            named = source.choice.id
        names = {call_index(name): values for name, values in columns.items()}.get(str(named))
        if names is None and (ids := ids_in_memory(X)) is not None and ids.name == named:
            names = [*map(ids.take(rows).get, rows)]
        for each, name in zip(self.points, names or (), strict=False):
            if not _is_same(plain(name), each["name"]):
                what = f"row {each['point']} is {name} in {named}, and the point was {each['name']}"
                raise BadInputError(f"source has other rows than the data: {what}")
        for each, value in zip(self.points, columns.get(str(label), ()) if self.positive is not None else (), strict=False):
            if _is_same(value, self.positive) != _is_same(each["label"], self.positive):
                what = f"row {each['point']} is {value} in {label}, and the point was {each['label']}"
                raise BadInputError(f"source has other labels than the data: {what}")

    def verify(
        self, X: Any = None, y: Any = None, *, mask: Any = None, memory: str | int | None = None, follow: bool = False
    ) -> Check:
        """Check against the data, exactly, that the needed points are enough, and that as many as ``at_least`` must be removed.

        Parameters
        ----------
        X, y, mask : optional
            The data, if it was in memory or has been moved, as of ``dfeas.suspects``.
        memory : int or str
            Budget in bytes for blocks.
        follow : bool
            As in ``dfeas.verify_run``.

        Returns
        -------
        Check
            What was proved: ``verdict`` is undecided where points are enough to remove, and no conflict shows that any must be
            removed. Scores, and points that may stay, are not checked.

        Raises
        ------
        CheckFailedError
            It does not follow.
        UsageError
            The file has a URL as the place of the data, and neither ``X`` is given nor ``follow``.
        BadInputError, CorruptDataError
            The data is not given, or is other data.
        """
        require_type("follow", follow, "bool")
        known = {"data": self.data, "sides": {"+1": {"name": self.positive}}, "intercept": self.intercept}
        spec = find_data("the list", known, DataSpec(X, y, mask=mask), self.view, follow or not self.loaded)
        dataset = open_source(Source(spec).within(parse_bytes(memory)))
        seen = (dataset.view, dataset.classes[1] if dataset.classes else None, dataset.intercept)
        if (self.view, self.positive, self.intercept) != seen or self.y.shape != (dataset.dimension,):
            raise CheckFailedError(
                f"{SUSPECTS}: view, positive, intercept or the length of y are not those of the data, {seen}"
            )
        with local_engine(dataset, parse_bytes(memory)) as engine:
            self._check_enough(engine, dataset)
            self._check_least(engine, dataset)
        text = f"without {self.enough} points a hyperplane separates the other {self.n - self.enough}"
        if self.at_least:
            text += f"; {self.at_least} conflicts without a common point: at least {self.at_least} have to go"
        verdict, n = INFEASIBLE if self.at_least else UNDECIDED if self.enough else FEASIBLE, self.n
        placed = ("file", "row") if any("file" in each for each in self.points) else ()
        beside = ("format", "score", "name", "table", *placed, "points that may stay", "stopped", "passes", "reads", "seconds")
        return Check(str(verdict), str(Proof.EXACT), -1.0, 1.0, n, n, text, points_read=n, not_checked=beside)

    def _check_enough(self, engine: LocalEngine, dataset: Dataset) -> None:
        blank = Certificate("separator", self.fingerprint, y=self.y, view=self.view)
        ((wrong, flat),) = find_wrong(engine, dataset, [blank])
        wrong = np.sort(wrong)
        needed = zip(
            numbers_of(dataset, wrong).tolist(), labels_of(dataset, wrong), (~np.isin(wrong, flat)).tolist(), strict=True
        )
        said = sorted((each["point"], each["label"], each["flip"]) for each in self.points if each["needed"])
        if said != [*needed] or self.enough != len(said) or self.n != dataset.n:
            raise CheckFailedError(f"{SUSPECTS}: y does not have just the needed points wrong, but {len(wrong)} of {dataset.n}")

    def _check_least(self, engine: LocalEngine, dataset: Dataset) -> None:
        numbers = np.arange(dataset.n) if dataset.numbers is None else np.asarray(dataset.numbers)
        met = np.array([point for each in self.conflicts for point in each], np.int64)
        if len(np.unique(met)) < len(met) or not np.isin(met, numbers).all():
            raise CheckFailedError(f"{SUSPECTS}: its conflicts have a common point, or one that the data has not")
        if self.at_least != len(self.conflicts) or [*map(len, self.conflicts)] != [*map(len, self.weights)]:
            raise CheckFailedError(f"{SUSPECTS}: its conflicts are not {self.at_least}, or a point has no weight")
        support = [np.searchsorted(numbers, each) for each in self.conflicts]
        blank = Certificate("gordan", self.fingerprint, view=self.view)
        pairs = zip(support, self.weights, strict=True)
        certificates = [replace(blank, support=some, weights=np.array(weights)) for some, weights in pairs]
        for number, answer in enumerate(check_conflicts(engine, dataset, certificates).answers):
            if not isinstance(answer, Check) or answer.verdict != INFEASIBLE:
                raise CheckFailedError(f"{SUSPECTS}: conflict {number} is none: its points do not cancel")


def _is_same(one: object, other: object) -> bool:
    """Whether two cells are the same text or number, as files and frames write them: 007 and 7, 1 and 1.0, true and True."""
    first, second = (str(each).lower() if str(each).lower() in ("true", "false") else str(each) for each in (one, other))
    try:
        return first == second or Decimal(first) == Decimal(second)
    except InvalidOperation:  # one is no number
        return False


def _cell(name: str, value: Any, point: Mapping[str, Any]) -> str:
    """As a person reads it; no label has to change of a point that may stay."""
    if value is None or (name == "flip" and not point["needed"]):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:+.4f}" if isinstance(value, float) else str(value)
