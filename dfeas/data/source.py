"""What the data is, how it is seen and how a process reads it, as values that travel.

A transform has the numbers that centre and scale features, and the length that all points are divided by: points are
z = (x - shift) * factor, and columns z over its own length, or, not normalised, over the length of the longest of all, so that
no column is longer than 1.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from dfeas.data.frames import columns_of, point_of, select_columns
from dfeas.data.labels import plain
from dfeas.data.storage.features import NAMED, names_of, no_column, require_distinct
from dfeas.data.storage.files import COUNT, Number, conform, parse_json
from dfeas.data.storage.places import absolute, local, paths_of
from dfeas.display import Displayed, Grid, Part, Row
from dfeas.errors import BadInputError, CorruptDataError, UsageError, spell
from dfeas.records import replace
from dfeas.settings import require_type

ALL_POSITIVE = "all-positive"
"""Labels that ask the homogeneous question by name: A'y > 0 for all points as they are."""
SCALES: tuple[str, ...] = ("maxabs", "std")
FACTORS = (1e-130, 1e130)
"""What a feature is multiplied by is within; beyond it a feature is as good as zero, or as infinite."""
LENGTHS = (1e-140, 1e140)
"""The length that points are divided by is within."""
SHARE = 4
"""A file that is opened as it is takes at most memory over this."""
FILE_BYTES = 2_000_000_000 // SHARE
"""Of such a file, where nobody said how much memory there is."""
Floats = NDArray[np.float64]


_SHAPE = {
    "scale": str | None,
    "center": bool,
    "normalize": bool,
    "points": COUNT,
    "shift": [Number(-1e308, 1e308)],
    "factor": [Number(*FACTORS)],
    "length": Number(*LENGTHS, none=True),
}


class Transform(Struct, frozen=True):
    """What was asked for, and the numbers that it took: the same ones for all who read these points."""

    scale: str | None = None  # "maxabs" | "std"
    center: bool = False
    normalize: bool = True
    points: int = 0  # the numbers are those of so many first points
    shift: tuple[float, ...] = ()  # (m,) means; empty when not centred
    factor: tuple[float, ...] = ()  # (m,) positive; empty when not scaled
    length: float | None = None  # of the longest point, with its intercept, when not normalised

    @property
    def features(self) -> bool:
        """Whether features change, and not lengths only."""
        return self.center or self.scale is not None

    def __bool__(self) -> bool:
        return self.features or not self.normalize

    @property
    def words(self) -> str:
        scaled = [] if self.scale is None else [f"scaled by {self.scale}"]
        words = [*scaled, *(["centred"] if self.center else []), *([] if self.normalize else ["not normalised"])]
        return " and ".join(words) or "as they are stored"

    def to_json(self) -> dict[str, Any]:
        return {**structs.asdict(self), "shift": list(self.shift), "factor": list(self.factor)}

    @classmethod
    def from_json(cls, values: Any) -> Transform:
        """The same again. Raises CorruptDataError when it is none."""
        try:
            conform(values, _SHAPE)
        except ValueError as error:
            raise CorruptDataError(f"not a readable transform of the points: {error}") from None
        numbers = {name: tuple(map(float, values[name])) for name in ("shift", "factor")}
        transform = cls(**{name: values[name] for name in cls.__struct_fields__} | numbers)
        sound = (
            transform.scale in (None, *SCALES)
            and transform.center == bool(transform.shift)
            and (transform.scale is not None) == bool(transform.factor)
            and transform.normalize == (transform.length is None)
            and transform.points > 0
        )
        if not sound:
            raise CorruptDataError("not a readable transform of the points: its numbers are not what it says")
        return transform

    def restore_plane(self, y: Floats, m: int) -> tuple[Floats, float]:
        """(w, bias) of stored points from y (m,) or (m+1,) of transformed ones: x'w + bias is z'y, up to rounding."""
        w = y[:m] * np.asarray(self.factor) if self.factor else y[:m]
        bias = float(y[m:].sum())
        return w, bias - float(np.asarray(self.shift) @ w) if self.shift else bias


def view_text(positive: str | None, transform: Transform | None) -> str:
    """What certificates say of how the data is seen, as JSON; empty when it is taken as it is stored."""
    view: dict[str, Any] = {} if positive is None else {"positive": positive}
    if transform:
        view["transform"] = transform.to_json()
    return json.dumps(view) if view else ""


def parse_view(view: str) -> tuple[str | None, Transform | None]:
    """The positive class and the transform in what a certificate says. Raises CorruptDataError when it cannot be read."""
    if not view:
        return None, None
    try:
        values = parse_json(view, {"positive?": str, "transform?": dict})
        positive = str(values["positive"]) if "positive" in values else None
        transform = Transform.from_json(values["transform"]) if "transform" in values else None
    except (ValueError, LookupError, TypeError) as error:
        raise CorruptDataError(f"not a readable certificate: its view {view[:80]!r}: {error}") from None
    if positive is None and transform is None:
        raise CorruptDataError(f"not a readable certificate: its view {view[:80]!r} says nothing")
    return positive, transform


class Choice(Struct, frozen=True):
    """Columns that are features: these in this order, or all of the table, but for some. Falsy where that is all of them."""

    columns: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    id: str | None = None  # the column that names rows

    @classmethod
    def of(cls, columns: Any = None, without: Any = (), id: Any = None) -> Choice:
        """As a user says it. Raises UsageError for what are no names."""
        chosen = None if columns is None else names_of(columns, "columns")
        if chosen == ():
            raise UsageError("columns: none is named; leave it out for all columns")
        named = None if id is None else names_of([id], "id")[0]
        return cls(chosen, () if without is None else names_of(without, "without"), named)

    def to_json(self) -> dict[str, Any]:
        """As ``of`` takes it."""
        return {"columns": None if self.columns is None else [*self.columns], "without": [*self.without], "id": self.id}

    def __bool__(self) -> bool:
        return self.columns is not None or bool(self.without) or self.id is not None

    @property
    def names(self) -> set[str]:
        """All that were said, and patterns."""
        return {*(self.columns or ()), *self.without, *([] if self.id is None else [self.id])}

    def features(self, columns: Sequence[str], label: str | None, where: str) -> list[str]:
        """Of the columns of a table. Raises BadInputError for a name or pattern that no column has, and where none is left."""
        others = dict.fromkeys(name for name in columns if name not in (label, self.id))
        if self.id is not None and self.id not in columns:
            raise no_column(self.id, columns, where)

        def match(pattern: str) -> list[str]:
            if pattern in others:
                return [pattern]
            found = [name for name in others if fnmatchcase(name, pattern)]
            if not found and self.id is not None and (pattern == self.id or fnmatchcase(self.id, pattern)):
                return []
            if not found and "," in pattern:
                return [name for part in pattern.split(",") for name in match(part.strip())]
            if not found and pattern == label:
                raise UsageError(f"{where}: column {pattern} has the labels, which are no feature: leave it out")
            if not found:
                raise no_column(pattern, [*others], where)
            return found

        chosen = others if self.columns is None else [name for pattern in self.columns for name in match(pattern)]
        found = drop_names([*dict.fromkeys(chosen)], {name for pattern in self.without for name in match(pattern)})
        if not found and others:
            raise BadInputError(f"{where}: no column is left; the columns are {', '.join([*others][:NAMED])}")
        require_distinct(columns, found, where)
        return found

    def note(self, columns: Sequence[str], chosen: Sequence[str], label: str | None) -> list[str]:
        """Which columns are no features, for the user."""
        gone = drop_names(columns, {*chosen, label, self.id})
        more = f" and {len(gone) - NAMED} more" if len(gone) > NAMED else ""
        return [f"left out: {', '.join(gone[:NAMED])}{more}"] if self and gone else []


def drop_names(columns: Sequence[str], some: Container[str | None]) -> list[str]:
    """Those that are none of some, in their order."""
    return [name for name in columns if name not in some]


ALL = Choice()
TWICE = "the table says itself what its labels are: leave out y"


class ChosenTable(Displayed, Struct, frozen=True, eq=False):
    """What ``dfeas.table`` returns.

    Attributes
    ----------
    X : str, or data frame
        The absolute path of the table, or the frame.
    y : str, array, or series, optional
        The column of labels, or what is beside the table.
    label : str, optional
        Name of the column of labels, if it is one of the table.
    features : tuple of str
        Names of the columns that are features.
    left_out : tuple of str
        Names of those that are not, but for the labels.
    choice : Choice
        What was asked for.
    """

    HIDDEN: ClassVar = ("X", "y", "choice")

    X: Any
    y: Any
    label: str | None
    features: tuple[str, ...]
    left_out: tuple[str, ...]
    choice: Choice

    def _parts(self) -> Iterator[Part]:
        where = self.X if isinstance(self.X, str) else f"a frame of {type(self.X).__module__.partition('.')[0]}"
        yield Row("table", f"{where}: {len(self.features)} features")
        rows = [] if self.label is None else [(self.label, "label")]
        rows += [(name, "feature") for name in self.features]
        rows += [(name, "id" if name == self.choice.id else "left out") for name in self.left_out]
        yield Grid(("column", "use"), [list(row) for row in rows], 2)

    def in_memory(self) -> Any:
        """The features of a frame. Raises UsageError for a table that is a file."""
        if isinstance(self.X, str):
            raise UsageError(f"{self.X}: an estimator takes the table of a frame, in memory or of Dask; solve takes files")
        return select_columns(self.X, [*self.features])

    def labels_for(self, labels: Any) -> Any:
        """Those that were given, or those of the table."""
        if labels is not None and self.y is not None:
            raise UsageError(TWICE)
        return select_columns(self.X, [self.label]) if labels is None and self.label is not None else self.y

    def take(self, labels: Any) -> tuple[Any, Any, Choice, Any]:
        """What a verb takes as X, with labels that are its own or given to the verb, what is left to choose of a path, and of a
        frame the column that names rows.
        Raises UsageError where both have labels, and other ones.
        """
        same = labels is self.y or (isinstance(labels, str) and labels == self.label)
        if labels is not None and self.y is not None and not same:
            raise UsageError(TWICE)
        labels = self.y if labels is None else labels
        if isinstance(self.X, str):
            return self.X, labels, self.choice, None
        among = isinstance(labels, str | int | tuple) and str(labels) in columns_of(self.X)
        features = [name for name in self.features if not among or name != str(labels)]
        ids = None if self.choice.id is None else select_columns(self.X, [self.choice.id])
        return select_columns(self.X, [*features, *([str(labels)] if among else [])]), labels, ALL, ids


class DataSpec(Struct, frozen=True):
    """What the data is, and how it is seen: made by a verb, and kept as it is by a checkpoint, a result and a source. Raises
    UsageError for what contradicts each other, whatever the data is.
    """

    where: Any  # an absolute path or a URL, or what the caller has in memory; None: that is not there any more
    labels: Any = None  # a path, a column or an array of a file, what is in memory, or ``ALL_POSITIVE``
    also: tuple[str, ...] = ()  # datasets whose points follow
    mask: Any = None  # path of booleans, one a point or cone, or what is in memory: those that count
    positive: str | None = None
    intercept: bool | None = None  # None: where points have labels
    point: tuple[float, ...] | None = None  # the points are seen from there, without labels
    point_features: tuple[str, ...] = ()  # names of the entries of the point, where they have names
    transform: Transform | None = None  # of features and lengths; without its numbers until they are known
    choice: Choice = ALL  # of the columns of a table
    ids: Any = None  # the column that names rows, in memory
    one_vs_rest: bool = False  # labels of an array become codes of classes, which ``positive`` then chooses from
    system: Any = None  # what makes points of rows of linear inequalities, ``inequalities.Sides``

    def __post_init__(self) -> None:
        def become(**values: Any) -> None:
            for name, value in values.items():
                structs.force_setattr(self, name, value)

        if isinstance(self.where, ChosenTable):
            where, labels, choice, ids = self.where.take(self.labels)
            become(where=where, labels=labels, choice=choice, ids=ids)
        if isinstance(self.positive, int | np.integer | np.bool_):
            become(positive=plain(self.positive))  # as labels that are numbers are called
        require_type("positive", self.positive, "str | None")
        require_type("intercept", self.intercept, "bool | None")
        if isinstance(self.where, list | tuple) and any(isinstance(each, str | Path) for each in self.where):
            first, *more = paths_of(self.where, "X")
            become(where=first, also=tuple(map(str, more)))
        if isinstance(self.where, str | Path):
            become(where=absolute(self.where), also=tuple(map(absolute, self.also)))
            if not isinstance(self.labels, str | Path | None):
                kind = type(self.labels).__name__
                raise UsageError(f"labels of data given by path are a path, or of a table the name of a column, got {kind}")
            if not isinstance(self.mask, str | Path | None):
                raise UsageError(f"with data given by path, {spell('mask')} must be the path of a .npy file")
        if isinstance(self.mask, str | Path):
            become(mask=str(local(self.mask, "mask").absolute()))
        if not self.transform:
            become(transform=None)
        if self.point is not None:
            if self.transform is not None:
                raise UsageError(f"{spell('transform')} is for labelled points: leave it out where a point asks for their hull")
            if self.beside is not None or self.positive is not None or self.intercept:
                raise UsageError("a point asks for the hull of all points: leave out labels, positive and intercept")
            if self.mask is not None or self.also:
                raise UsageError("a point asks for the hull of all points of one dataset: leave out the others, and the mask")
            values, names = point_of(self.point)
            become(intercept=False, point=tuple(values.tolist()), point_features=names or self.point_features)

    @property
    def by_path(self) -> bool:
        """Whether others than the caller find it, too."""
        return isinstance(self.where, str)

    @property
    def all_positive(self) -> bool:
        """Whether the question is asked without labels, by name."""
        return isinstance(self.labels, str) and self.labels == ALL_POSITIVE

    @property
    def beside(self) -> Any:
        """The labels, where some were given."""
        return None if self.all_positive else self.labels

    def without_memory(self) -> DataSpec:
        """What can be kept of it: all but what the caller has in memory."""
        kept = self.by_path and self.system is None
        return self if kept else replace(self, where=None, also=(), labels=None, mask=None, ids=None, system=None)

    def to_json(self) -> dict[str, Any] | None:
        """What a result keeps of it; None of data in memory, and of a system, which is more than A."""
        if not self.by_path or self.system is not None:
            return None
        values = {name: getattr(self, field) for name, field in IN_JSON.items()}
        if self.choice:
            values |= self.choice.to_json()
        return values | {"labels": self.beside, "transform": None if self.transform is None else self.transform.to_json()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> DataSpec:
        """The data of a finished run, from ``data`` of its result. Raises CorruptDataError for a transform that is none."""
        given = {field: values[name] for name, field in IN_JSON.items() if name in values}
        if given.get("transform") is not None:
            given["transform"] = Transform.from_json(given["transform"])
        try:
            choice = Choice.of(values.get("columns"), values.get("without", ()), values.get("id"))
        except UsageError as error:
            raise CorruptDataError(f"not a readable choice of columns: {error}") from None
        return cls(**given, choice=choice)


IN_JSON = {"path": "where", "labels": "labels", "positive": "positive", "intercept": "intercept", "point": "point"}
IN_JSON |= {"many": "one_vs_rest", "also": "also", "mask": "mask", "transform": "transform"}
"""What results call the fields of a ``DataSpec``."""


There = tuple[str, dict[str, Any] | None]
"""A kind of ``open.OPENERS``, and what ``zarr.json`` says, where there is one."""


class Source(Struct, frozen=True):
    """Data, and how a process reads it: by path small enough to travel with every task."""

    spec: DataSpec
    run: str = ""  # blocks are checked on first touch once a run
    fingerprint: str = ""  # of the dataset that is meant; none for a foreign array
    cache_bytes: int = 0  # that each process may keep of the blocks it read
    cache_dir: str = ""  # folder of each machine that keeps blocks of object stores
    cones: bool = False  # whoever opens it knows what to do with cones
    file_bytes: int = FILE_BYTES  # that a file of points may have, on disk and in memory
    known: tuple[str, ...] = ()  # classes that labels have which come with points or beside them; none: those that they show
    features: int | None = None  # of a file of svmlight, whose lines leave out zeros; None: up to the last that one of them has
    there: There | None = None  # by whoever opens it now; it does not travel

    def within(self, memory: int) -> Source:
        """The same for whoever has so much memory."""
        return replace(self, file_bytes=memory // SHARE)
