"""A Dask array or frame of the caller: points in partitions of whole blocks, which stay where they lie.

A partition comes to a task as an array, with a window that says what dataset it is a part of. Dask is the caller's: nothing of
it is imported here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.arrays import open_given, stored_dtype
from dfeas.data.dataset import Dataset
from dfeas.data.frames import Table, is_lazy, split
from dfeas.data.labels import Categories, LabelEncoder, encode_array, require_usable, stored_type
from dfeas.data.source import Transform
from dfeas.data.storage.layout import default_block_rows
from dfeas.data.storage.numbers import array_of, exact, is_dask_array, unwrap_array
from dfeas.data.storage.readers import SliceReader
from dfeas.data.storage.sparse_readers import Entries, has_sparse_chunks
from dfeas.data.storage.zarr_arrays import check_shape
from dfeas.data.views import transform_features
from dfeas.errors import BadInputError, CorruptDataError

WHERE = "X"
LABELS = f"labels of {WHERE}"
Compute = Callable[[Sequence[Any]], list[Any]]
"""Gives what parts of a collection come to, from its cluster."""
LEAST_SHARE = 2
"""Blocks that divide the chunks of an array have at least the usual rows over that."""


def is_collection(X: Any) -> bool:
    """Whether it is an array or a frame of Dask."""
    return is_lazy(X) or is_dask_array(unwrap_array(X))


def is_frame(X: Any) -> bool:
    """Whether X, of Dask, has partitions of pandas."""
    return hasattr(X, "map_partitions")


def map_rows(function: Callable[[Any], NDArray[Any]], X: Any, m: int, example: NDArray[Any], *, named: bool = False) -> Any:
    """``function`` of points (b, m), which returns (b,) or (b, k): of each chunk of a Dask array, or partition of a frame,
    which stays a frame if it is ``named``. ``example`` has its type and the shape of its answer for one point. This computes
    nothing.
    """
    if not is_frame(X):
        chunked = X.rechunk({1: -1})
        more = {"drop_axis": 1} if example.ndim == 1 else {"chunks": (chunked.chunks[0], (example.shape[1],))}
        return chunked.map_blocks(function, dtype=example.dtype, meta=example[:0], **more)

    def of_partition(part: Any) -> Any:
        points = part if named else exact(part, np.float64, WHERE).reshape(len(part), m)
        kind = type(part.iloc[:, 0]) if example.ndim == 1 else type(part)
        return kind(function(points) if len(part) else example[:0], index=part.index)

    return X.map_partitions(of_partition, meta=of_partition(X._meta))


@dataclass(frozen=True, eq=False, repr=False)
class Fetched:
    """Rows of a Dask array, computed on its cluster."""

    compute: Compute
    array: Any
    known: tuple[str, ...] | None = None  # of labels: their classes

    def __getitem__(self, rows: slice) -> Any:
        found = self.compute([self.array[rows]])[0]
        found = found if hasattr(found, "tocsr") else array_of(found, WHERE if self.known is None else LABELS)
        return found if self.known is None else encode_array(found, len(found), LABELS, known=self.known)[1]


@dataclass(frozen=True, eq=False, repr=False)
class Collection:
    """Points (n, m) and labels (n,) in partitions of whole blocks."""

    X: Any  # a Dask array whose rows are in partitions
    labels: Any  # a Dask array in the same partitions, (n,) as they are stored in memory, or None: all are +1
    rows: int  # of every partition but the last

    @property
    def partitions(self) -> int:
        return -(-int(self.X.shape[0]) // self.rows)

    def range(self, partition: int) -> range:
        return range(partition * self.rows, min((partition + 1) * self.rows, int(self.X.shape[0])))


@dataclass(frozen=True, eq=False, repr=False)
class PartitionReader(SliceReader):
    """A reader in the driver of a few blocks of a collection."""

    collection: Collection | None = None


def collection_of(dataset: Dataset) -> Collection | None:
    """The collection whose points a dataset has, maybe transformed; None for others."""
    points = (dataset.stored or dataset).points
    return points.collection if isinstance(points, PartitionReader) else None


def table_of(X: Any, labels: Any) -> Table:
    """Of a Dask array, or of a frame, of which ``labels`` may name a column or be one; its partitions are counted. Raises
    BadInputError for what cannot be used.
    """
    if is_lazy(X) and isinstance(labels, str) and labels in list(X.columns):
        X, labels = X.drop(columns=[labels]), X[labels]
    if is_lazy(labels) and len(labels.columns) == 1:
        labels = labels[labels.columns[0]]
    table = split(unwrap_array(X), None if hasattr(labels, "to_dask_array") else unwrap_array(labels))
    points = table.X
    n, _ = check_shape(points.shape, WHERE)
    stored_dtype(np.dtype(points.dtype), WHERE)
    if hasattr(labels, "to_dask_array"):
        labels = _column(labels, points.chunks[0])
    elif table.labels is not None:
        labels = open_given(table.labels)
        labels = labels if is_collection(labels) else array_of(labels, LABELS)
    if labels is not None and tuple(labels.shape) not in ((n,), (n, 1)):
        raise BadInputError(f"{LABELS}: expected {n} labels, one a point, got an array of shape {tuple(labels.shape)}")
    labels = labels if labels is None else labels.reshape(-1)
    if is_dask_array(labels):  # of one type in all blocks, before Dask puts any of them together
        kind = labels.dtype if labels.dtype.kind in "biuf" else np.dtype(object)
        labels = labels.map_blocks(_in_type, kind, LABELS, dtype=kind, meta=np.empty(0, kind))
    return Table(points, labels, table.features)


def in_partitions(X: Any, rows: int) -> Any:
    """Points in chunks of so many rows; where they are put together anew each is looked at in the chunk that it came in."""
    chunks, dtype = {0: rows, 1: -1}, stored_dtype(np.dtype(X.dtype), WHERE)
    if X.rechunk(chunks).chunks == X.chunks or has_sparse_chunks(X):
        return X.rechunk(chunks)
    return X.map_blocks(_in_type, dtype, WHERE, dtype=dtype, meta=np.empty((0, 0), dtype)).rechunk(chunks)


def _in_type(block: Any, dtype: np.dtype[Any], where: str) -> NDArray[Any]:
    return array_of(block, where).astype(object) if dtype.hasobject else exact(block, dtype, where)


def _column(column: Any, lengths: tuple[int, ...]) -> Any:
    """A column of a Dask frame as a Dask array, with what NumPy has no type for as objects."""
    categories = getattr(column.dtype, "categories", None)
    kind = column.dtype if categories is None else categories.dtype
    if not isinstance(kind, np.dtype):
        kind = np.dtype(np.float64 if getattr(kind, "kind", "O") in "iuf" else object)
    column = column if kind == column.dtype else column.astype(kind)
    return column.to_dask_array(lengths=lengths if column.npartitions == len(lengths) else True)


def block_rows_of(X: Any) -> int:
    """Rows of a block: those of an ingest, or about as many that fit regular chunks, which then need not be cut across."""
    n, m = X.shape
    usual = default_block_rows(m, stored_dtype(np.dtype(X.dtype), WHERE).itemsize, n)
    chunk, *others = X.chunks[0]
    if usual == n or set(others[:-1]) - {chunk} or (others and others[-1] > chunk):
        return usual
    if chunk <= usual:
        return int(chunk * (usual // chunk))
    return next((rows for rows in range(usual, usual // LEAST_SHARE, -1) if chunk % rows == 0), usual)


Labelled = tuple[tuple[str, ...], dict[int, int]]
"""Classes of the labels of all partitions, and points of each label as it is stored."""


def dataset_of(
    compute: Compute,
    table: Table,
    block_rows: int,
    labelled: Labelled,
    *,
    intercept: bool | None,
    entries: Entries | None = None,
) -> Dataset:
    """A dataset whose points stay in partitions of about the chunks that they came in; sparse ones have ``entries``."""
    n, m = check_shape(table.X.shape, WHERE)
    dtype = stored_dtype(np.dtype(table.X.dtype), WHERE)
    rows = max(1, round(max(table.X.chunks[0]) / block_rows)) * block_rows
    X, labels, (classes, counts) = in_partitions(table.X, rows), table.labels, labelled
    kind = stored_type(classes)
    known: Any = np.broadcast_to(np.int8(1), n)
    if isinstance(labels, np.ndarray):
        known = labels = encode_array(labels, n, LABELS, known=classes)[1]
    elif labels is not None:
        labels = labels.rechunk({0: rows})
        known = Fetched(compute, labels, classes)
    points = PartitionReader(WHERE, Fetched(compute, X), n, block_rows, dtype, collection=Collection(X, labels, rows))
    return Dataset(
        where=WHERE,
        n=n,
        m=m,
        dtype=dtype,
        block_rows=block_rows,
        points=points,
        entries=entries,
        counts=counts,
        labels=SliceReader("label", known, n, block_rows, kind, overlaps=True),
        classes=classes,
        intercept=bool(classes) if intercept is None else intercept,
        features=table.features,
    )


def label_counts(labels: Any, first: int) -> dict[Any, int]:
    """The labels of a partition from point ``first`` on, and how many have each. Raises BadInputError for unusable ones."""
    values = array_of(labels, LABELS).reshape(-1)
    require_usable(values, LABELS, first)
    encoder = LabelEncoder(LABELS, column=False)
    codes = encoder.encode(Categories.of(values), first)
    return dict(zip(encoder.values, np.bincount(codes).tolist(), strict=True))


def add_counts(found: Sequence[dict[Any, int]], n: int, positive: str | None, *, many: bool) -> Labelled:
    """From the labels of all partitions. Raises BadInputError as ``LabelEncoder.finish``."""
    encoder, total = LabelEncoder(LABELS, None if many else positive, column=False), Counter[int]()
    for counts in found:
        codes = encoder.encode(Categories(np.arange(len(counts)), list(counts)), 0)
        total.update(dict(zip(codes.tolist(), counts.values(), strict=True)))
    classes, table = encoder.finish(n, many)
    counted = Counter[int]()
    for code, count in total.items():
        counted[int(table[code])] += count
    return classes, dict(counted)


@dataclass(frozen=True, eq=False, repr=False)
class _Rows:
    """Rows of an array whose first one has a number."""

    array: Any  # of NumPy, or CSR
    first: int

    def __getitem__(self, rows: slice) -> Any:
        return self.array[rows.start - self.first : rows.stop - self.first]


@dataclass(frozen=True, eq=False, repr=False)
class Window:
    """What travels with a task beside a partition: the dataset without its points."""

    rows: range  # of the partition
    known: tuple[str, ...] | None  # classes of labels that come as they are; None: they come as they are stored
    transform: Transform | None
    expected: NDArray[np.uint32] | None  # checksums of the blocks of the partition
    about: dict[str, Any]  # all else that makes the dataset, as it is stored

    @classmethod
    def of(cls, dataset: Dataset, collection: Collection, partition: int) -> Window:
        """On one partition of a dataset as it is seen now."""
        stored, rows = dataset.stored or dataset, collection.range(partition)
        blocks = slice(rows.start // dataset.block_rows, -(-rows.stop // dataset.block_rows))
        reader = dataset.labels
        known = reader.array.known if isinstance(reader, SliceReader) and isinstance(reader.array, Fetched) else None
        expected = None if stored.expected is None else stored.expected[blocks]
        names = ("where", "n", "m", "block_rows", "entries", "classes", "positive", "intercept")
        about = {name: getattr(dataset, name) for name in names}
        return cls(rows, known, dataset.transform, expected, {**about, "dtype": stored.dtype})

    def open(self, X: Any, labels: Any) -> Dataset:
        """The dataset, of which the blocks of the partition can be read, and are compared with what they were. Raises
        CorruptDataError for a partition of another shape, or with other classes than before.
        """
        n, block_rows, shape = self.about["n"], self.about["block_rows"], (len(self.rows), self.about["m"])
        first, points = self.rows.start // block_rows, array_of(X, WHERE) if self.about["entries"] is None else X
        label = np.broadcast_to(np.int8(1), len(self.rows)) if labels is None else array_of(labels, LABELS).reshape(-1)
        if points.shape != shape or len(label) != len(self.rows):
            raise CorruptDataError(
                f"{WHERE}: block {first} (from point {self.rows.start}) and those after it came as {points.shape} points with "
                f"{len(label)} labels, expected {shape}; let the partitions be the same each time"
            )
        if self.known is not None:
            try:
                label = encode_array(label, len(label), LABELS, known=self.known)[1]
            except BadInputError as error:
                raise CorruptDataError(f"{error}; from point {self.rows.start} on they were others before") from None
        expected = None
        if self.expected is not None:
            expected = np.zeros((-(-n // block_rows), 2), np.uint32)
            expected[first : first + len(self.expected)] = self.expected

        def reader(name: str, array: NDArray[Any], dtype: np.dtype[Any]) -> SliceReader:
            return SliceReader(name, _Rows(array, self.rows.start), n, block_rows, dtype, overlaps=True)

        stored, labels = reader(WHERE, points, self.about["dtype"]), reader("label", label, label.dtype)
        dataset = Dataset(points=stored, labels=labels, expected=expected, **self.about)
        return dataset if self.transform is None else transform_features(dataset, self.transform)
