"""What a Dask user hands over, as partitions that are asked for once.

Dask decides for each question anew which columns it reads, and reads neighbouring partitions as one where few columns are left:
what was counted by one question need not be what the next one gets. So a frame is asked for its partitions once, and points,
labels and names of rows are made of these. Dask is the caller's: nothing of it is imported here.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.data.arrays import open_given
from dfeas.data.frames import (
    Table,
    is_lazy,
    kinds_of,
    make_numbers,
    other_rows,
    plain_column,
    require_aligned,
    require_file,
    require_partitions,
    rows_in_order,
    values_of,
)
from dfeas.data.labels import Categories, LabelEncoder, require_usable
from dfeas.data.storage.features import are_dates, require_distinct, run_like_ids, say_that_others
from dfeas.data.storage.numbers import array_of, exact, is_dask_array, is_lazy_table, unwrap_array
from dfeas.data.storage.zarr_arrays import check_shape
from dfeas.errors import BadInputError, ClusterLostError, UsageError
from dfeas.records import replace

WHERE = "X"
LABELS = f"labels of {WHERE}"
Compute = Callable[[Sequence[Any]], list[Any]]
"""Gives what parts of a collection come to, from its cluster, or by the scheduler that Dask has chosen."""
Counts = dict[Any, int]
"""Points of each label as it came."""
HERE = "here"
"""Beside clients: this process."""
_by: ContextVar[Any] = ContextVar("by", default=None)
_ROOT, _BITS = 0x9E3779B97F4A7C15, 1 << 64
"""An odd number, by whose powers names of rows are told in order, modulo 2**64."""


def compute_here(*collections: Any) -> Compute:
    """How parts of these collections come to this process: by what ``computed_by`` says, else by the scheduler that Dask has
    chosen; what lies on a cluster always comes from there.
    """
    by, distributed = _by.get(), sys.modules.get("distributed")
    if by is HERE:
        held = distributed is not None and distributed.futures_of([each for each in collections if each is not None])
        by = None if held or sys.modules["dask"].config.get("scheduler", None) not in (None, "dask.distributed") else "threads"
    return partial(_compute, by)


def _compute(by: Any, parts: Sequence[Any]) -> list[Any]:
    """Raises ClusterLostError for what is lost with its cluster."""
    try:
        return list(sys.modules["dask"].compute(*parts, scheduler=by))
    except Exception as error:
        if not type(error).__module__.startswith("distributed"):
            raise
        reason = " ".join(str(error).split())
        raise ClusterLostError(f"Dask could not compute X or labels: {type(error).__name__}: {reason}") from error


@contextmanager
def computed_by(who: Any) -> Iterator[None]:
    """What comes to this process meanwhile is computed by a client, or by this process (HERE). None changes nothing."""
    token = _by.set(_by.get() if who is None else who)
    try:
        with nullcontext() if who is None or who is HERE else who.as_current():
            yield
    finally:
        _by.reset(token)


class Names(Struct, frozen=True):
    """The index of some rows, by a number that tells it from others, and from the same one in another order."""

    rows: int
    ordered: int
    first: int | None  # where it only counts rows, from so many on

    @classmethod
    def of(cls, index: Any) -> Names:
        """Of an index of pandas."""
        from pandas.util import hash_pandas_object

        counts = type(index).__name__ == "RangeIndex" and index.step == 1
        hashes = hash_pandas_object(index).to_numpy().astype(np.uint64)
        powers = np.full(len(hashes), _ROOT, np.uint64)
        powers[:1] = 1
        ordered = (hashes[::-1] * np.multiply.accumulate(powers)).sum(dtype=np.uint64) if len(hashes) else 0
        return cls(len(hashes), int(ordered), int(index.start) if counts else None)

    @classmethod
    def join(cls, parts: Sequence[Names]) -> Names:
        """Of partitions that follow each other. Rows that are counted anew in each are counted, too."""
        rows, ordered, counts = 0, 0, True
        for part in parts:
            counts &= part.first in (0, rows) or not part.rows
            ordered = (ordered * pow(_ROOT, part.rows, _BITS) + part.ordered) % _BITS
            rows += part.rows
        return cls(rows, ordered, 0 if counts else None)

    def require(self, other: Names, what: str, beside: str = "X") -> None:
        """Raise BadInputError where other rows, or the same in another order, stand beside these. Numbers of rows, as readers
        count them, of each file anew or not, name nothing.
        """
        if self.ordered != other.ordered and None in (self.first, other.first):
            raise other_rows(what, beside)


Spans = dict[Any, tuple[float, float, bool]]
"""By column the least number and the largest one, and whether they are days."""


class Glimpse(Struct, frozen=True):
    """What a partition was when it came."""

    rows: int
    names: Names | None  # None of an array
    labels: NDArray[Any] | Counts | None  # as they came where they are kept, or cannot be used
    spans: Spans | None = None  # of columns that are whole numbers, none of which comes twice in it, or days


def _look(part: Any, at: int | None, keep: bool, columns: Sequence[Any] = ()) -> Glimpse:
    """Whatever is asked of a partition before blocks are made; its labels are column ``at``, or all of it (-1); ``columns`` are
    those that might be ids.
    """
    names = Names.of(part.index) if hasattr(part, "iloc") else None
    spans = {name: span for name in columns if (span := _span(part[name].to_numpy(np.float64))) is not None}
    if at is None:
        return Glimpse(int(part.shape[0]), names, None, spans)
    values = _labels_in(part, at)
    try:
        return Glimpse(len(values), names, values if keep else label_counts(values, 0), spans)
    except BadInputError:
        return Glimpse(len(values), names, values)  # whoever knows the numbers of its points says what is wrong


def _span(values: NDArray[Any]) -> tuple[float, float, bool] | None:
    """The ends of whole numbers of which none comes twice, or which are days, and which of both; None of others."""
    head = np.sort(values[:256])  # rows that are looked at first
    if len(head) == 0 or not (head == np.floor(head)).all():
        return None
    days = are_dates(values)
    distinct = not days and bool((head[1:] > head[:-1]).all()) and len(np.unique(values)) == len(values)
    return (float(values.min()), float(values.max()), days) if days or distinct else None


def _warn_of_others(seen: Sequence[Glimpse], columns: Sequence[Any]) -> None:
    """Of columns that are ids or days in all partitions that are not empty."""
    parts = [each for each in seen if each.rows]
    ends = {name: [each.spans[name] for each in parts if each.spans and name in each.spans] for name in columns}
    whole = {name: np.array(each) for name, each in ends.items() if parts and len(each) == len(parts)}
    n = sum(each.rows for each in parts)
    named = {name: each for name, each in whole.items() if not each[:, 2].any()}
    ids = [name for name, each in named.items() if run_like_ids(each[:, 0].min(), each[:, 1].max(), n)]
    say_that_others(list(map(str, ids)), [str(name) for name, each in whole.items() if each[:, 2].all()], WHERE)


def label_counts(values: NDArray[Any], first: int) -> Counts:
    """How many points from ``first`` on have each label. Raises BadInputError for labels that cannot be used."""
    require_usable(values, LABELS, first)
    encoder = LabelEncoder(LABELS, column=False)
    codes = encoder.encode(Categories.of(values), first)
    return dict(zip(encoder.values, np.bincount(codes).tolist(), strict=True))


def _labels_in(part: Any, at: int, kind: np.dtype[Any] | None = None) -> NDArray[Any]:
    """The labels in a partition, with what NumPy has no type for as objects."""
    values = array_of(plain_column(part if at < 0 else part.iloc[:, at]) if hasattr(part, "iloc") else part, LABELS).reshape(-1)
    if kind is None:
        return values
    return values.astype(object) if kind.hasobject else exact(values, kind, LABELS)


def _points_in(part: Any, names: Sequence[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Columns by their names."""
    return make_numbers(part[list(names)], dtype)


def chunks_of(array: Any) -> list[Any]:
    """Chunks of a Dask array as they are made, each by keys that all who ask for some of them share."""
    return list(array.to_delayed(optimize_graph=False).ravel().tolist())


def partitions_of(frame: Any) -> list[Any]:
    """Those of a Dask frame, in the same order each time. Raises BadInputError for one that lacks some."""
    require_partitions(frame)
    with rows_in_order():
        return list(frame.to_delayed())


class _Lazy:
    """A Dask frame, series or array, and its partitions."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.is_array = is_dask_array(given)
        if self.is_array:
            rows = given.chunks[0]
            self.parts = chunks_of(given)[:: given.npartitions // len(rows)]  # the first columns tell how many rows there are
            self.lengths: Sequence[int] | None = None if any(size != size for size in rows) else rows
        else:
            self.parts, self.lengths = partitions_of(given), None
        self.seen: Sequence[Glimpse] = ()

    def looks(self, at: int | None, keep: bool, columns: Sequence[Any] = ()) -> list[Any]:
        return [_task("look", _look, part, at, keep, columns) for part in self.parts]

    def take(self, seen: Sequence[Glimpse]) -> None:
        """What was seen of the partitions."""
        self.seen, self.lengths = seen, [each.rows for each in seen]

    @property
    def names(self) -> Names | None:
        return Names.join([each.names for each in self.seen if each.names is not None]) if not self.is_array else None

    def labels(self) -> NDArray[Any]:
        """All of them, where they were kept."""
        return _side_by_side([each.labels for each in self.seen if isinstance(each.labels, np.ndarray)])

    def counts(self) -> list[Counts]:
        """How many labels there are in each partition. Raises BadInputError for those that cannot be used."""
        counts, first = list[Counts](), 0
        for each in self.seen:
            found = each.labels
            counts.append(label_counts(found, first) if isinstance(found, np.ndarray) else found or {})
            first += each.rows
        return counts

    def stack(self, row: tuple[int, ...], dtype: np.dtype[Any], name: str, make: Callable[..., Any], *args: Any) -> Any:
        """A Dask array of what is made of each partition that is not empty."""
        da = sys.modules["dask.array"]
        meta = np.empty((0,) * (1 + len(row)), dtype)
        some = [(part, rows) for part, rows in zip(self.parts, self.lengths or (), strict=True) if rows]
        if not some:
            raise BadInputError(f"{WHERE}: no points, in {len(self.parts)} partitions")
        chunks = [da.from_delayed(_task(name, make, part, *args), (rows, *row), meta=meta) for part, rows in some]
        return da.concatenate(chunks) if len(chunks) > 1 else chunks[0]


def _task(name: str, function: Callable[..., Any], *args: Any) -> Any:
    """What Dask's pages show as ``dfeas-NAME``."""
    return sys.modules["dask"].delayed(function, pure=False)(*args, dask_key_name=f"dfeas-{name}-{uuid.uuid4().hex}")


def _side_by_side(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Labels of all partitions, which need not be of one type."""
    kinds = {part.dtype for part in parts}
    if len(kinds) == 1 or {kind.kind for kind in kinds} in ({"U"}, {"S"}):
        return np.concatenate(parts)
    numbers = all(kind.kind in "iuf" for kind in kinds)
    return np.concatenate([exact(part, np.float64, LABELS) if numbers else part.astype(object) for part in parts])


def table_of(X: Any, labels: Any, compute: Compute | None = None, *, keep: bool = False) -> Table:
    """A Dask frame or array as a Dask array of points in chunks of known length, with its labels: a Dask array in chunks of
    their own, or where they are kept or come from memory an array, of which counts are not taken. ``labels`` may name a column
    of a frame. Whatever is not known is seen in one read, by ``compute``. Raises BadInputError for what cannot be used.
    """
    require_aligned(X, labels, "labels")
    X, labels = unwrap_array(X), unwrap_array(labels)
    require_held(X, labels)
    if is_lazy(labels) and len(labels.columns) == 1:
        labels = labels[labels.columns[0]]
    framed, at = is_lazy(X), None
    columns = list(X.columns) if framed else []
    require_distinct(columns, map(str, columns), "X")
    if framed and isinstance(labels, str | int | tuple) and labels in columns:
        at = columns.index(labels)
    elif framed and is_lazy_table(labels) and _same_rows(X, labels):
        X, at = X.assign(**{_free_name(columns): labels}), len(columns)
    elif framed and not is_dask_array(labels):
        require_file(labels, list(map(str, columns)))
    names = [name for place, name in enumerate(columns) if place != at]
    kinds = kinds_of([(name, kind) for place, (name, kind) in enumerate(X.dtypes.items()) if place != at]) if framed else None
    points = _Lazy(X)
    beside = points if at is not None else _Lazy(labels) if is_lazy_table(labels) or is_dask_array(labels) else None
    read = _show(points, beside, at, compute or compute_here(X, labels), keep, names)
    of_names = points.names
    if kinds is not None:
        found = points.stack((len(names),), kinds, "points", _points_in, names, kinds)
    else:
        found = _with_lengths(X, points)
    check_shape(found.shape, WHERE)
    table = Table(found, None, tuple(map(str, names)), read, of_names)
    if beside is None:
        return table if labels is None else replace(table, labels=_in_memory(labels, table))
    _require_one_each(found.shape[0], sum(beside.lengths or ()), beside.given.shape[1:] if beside.is_array else ())
    if of_names is not None and beside is not points and beside.names is not None:
        of_names.require(beside.names, "labels")
    if keep:
        return replace(table, labels=beside.labels())
    counts = beside.counts()
    kind = _type_of(counts)
    stored = beside.stack((), kind, "labels", _labels_in, -1 if at is None else at, kind)
    return replace(table, labels=stored, counts=counts)


def _in_memory(labels: Any, table: Table) -> NDArray[Any]:
    """Labels of the caller, or of a file, for points in partitions."""
    require_aligned(table.X, labels, "labels", table.names)
    values = array_of(open_given(values_of(labels)), LABELS)
    _require_one_each(table.X.shape[0], len(values), values.shape[1:])
    return values.reshape(-1)


def _type_of(counts: Sequence[Counts]) -> np.dtype[Any]:
    """The type of all labels that there are, whatever was declared: of mixed numbers float64, of text objects."""
    kinds = {type(label) for each in counts for label in each}
    if kinds <= {bool, int, float}:
        return np.dtype(next(iter(kinds)) if len(kinds) == 1 else np.float64)
    return np.dtype(object)


def _require_one_each(n: int, labels: int, more: tuple[int, ...]) -> None:
    if labels != n or more not in ((), (1,)):
        shape = (labels, *more)
        raise BadInputError(f"{LABELS}: expected {n} labels, one a point, got an array of shape {shape}")


def _show(points: _Lazy, beside: _Lazy | None, at: int | None, compute: Compute, keep: bool, columns: Sequence[Any]) -> int:
    """Look at what is not known yet, all at once; how many reads of the points that takes. Columns that look like ids or dates
    are warned of.
    """
    of_points = points.looks(at, keep, columns) if at is not None or points.lengths is None else []
    of_labels = beside.looks(-1, keep) if beside is not None and beside is not points else []
    seen = compute([*of_points, *of_labels]) if of_points or of_labels else []
    if of_points:
        points.take(seen[: len(of_points)])
        _warn_of_others(points.seen, columns)
    if beside is not None and of_labels:
        beside.take(seen[len(of_points) :])
    together = bool(of_labels) and not _layers(points.given).isdisjoint(_layers(beside.given if beside else None))
    return int(bool(of_points) or together)


def _layers(X: Any) -> set[str]:
    """Names of what a Dask array is made of."""
    return set(getattr(X.__dask_graph__(), "layers", ())) if is_dask_array(X) else set()


def _with_lengths(X: Any, points: _Lazy) -> Any:
    """A Dask array whose chunks have known lengths, and none is empty."""
    if any(size != size for size in X.chunks[0]):
        X = X.copy()
        X._chunks = (tuple(points.lengths or ()), *X.chunks[1:])
    if 0 in X.chunks[0] and X.shape[0]:
        some = [X.blocks[place] for place, rows in enumerate(X.chunks[0]) if rows]
        X = sys.modules["dask.array"].concatenate(some) if len(some) > 1 else some[0]
    return X


def names_of(frame: Any) -> Names | None:
    """The index of a Dask frame, which is read for it."""
    lazy = _Lazy(frame.index.to_frame())
    lazy.take(compute_here(frame)(lazy.looks(None, False)))
    return lazy.names


def _same_rows(X: Any, labels: Any) -> bool:
    """Whether a frame and a series are columns of one: then Dask reads both at once."""
    # it is no public name; without it both are read apart
    are_co_aligned = getattr(sys.modules.get("dask.dataframe.dask_expr._expr"), "are_co_aligned", None)
    return are_co_aligned is not None and bool(are_co_aligned(X.expr, labels.expr))


def _free_name(columns: Sequence[Any]) -> str:
    return "label" + "_" * (1 + max((len(str(name)) for name in columns), default=0))


def require_held(*collections: Any, address: str | None = None) -> None:
    """Raise UsageError for what was persisted and is gone, or is on another cluster than the one with this address."""
    distributed = sys.modules.get("distributed")
    for each in collections:
        if distributed is None or not hasattr(each, "__dask_graph__"):
            continue
        for future in distributed.futures_of(each):
            holder = future.client
            if future.status in ("cancelled", "lost") or holder.status not in ("running", "connecting"):
                raise UsageError(
                    "X or labels were persisted by a Dask client that is closed, or on a cluster that was restarted: they are "
                    "gone; make them anew, and persist them again"
                )
            there = holder.scheduler.address if holder.scheduler else None
            if address not in (None, there):
                raise UsageError(f"X or labels were persisted on the Dask cluster at {there}, and client is one of {address}")
