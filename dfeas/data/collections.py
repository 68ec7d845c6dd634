"""A Dask array or frame of the caller: points in partitions of whole blocks, which stay where they lie or come to this process.

A task on a cluster gets a partition as an array, with a window that says what dataset it is a part of. Dask is the caller's:
nothing of it is imported here.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import Lock
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.data.arrays import assemble, stored_dtype
from dfeas.data.dataset import Dataset
from dfeas.data.frames import Table, is_lazy
from dfeas.data.labels import Categories, LabelEncoder, encode_array, stored_type
from dfeas.data.partitions import LABELS, WHERE, Compute, Counts, chunks_of, compute_here, table_of
from dfeas.data.source import DataSpec, Source, Transform
from dfeas.data.storage.layout import default_block_rows
from dfeas.data.storage.numbers import array_of, as_declared, exact, is_dask_array, unwrap_array
from dfeas.data.storage.readers import SliceReader
from dfeas.data.storage.sparse_readers import Entries, csr_chunks, cut_entries, has_sparse_chunks
from dfeas.data.storage.zarr_arrays import check_shape
from dfeas.errors import BadInputError, CorruptDataError
from dfeas.records import replace

LEAST_SHARE = 2
"""Blocks that divide the chunks of an array have at least the usual rows over that."""
HELD_BYTES = 64 << 20
"""Chunks that this process holds as long as blocks of them may be asked for, where nobody said how much memory there is."""

_seen: ContextVar[dict[Any, tuple[Table, Any, Any]]] = ContextVar("seen")


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
        chunked = unwrap_array(X).rechunk({1: -1})
        more = {"drop_axis": 1} if example.ndim == 1 else {"chunks": (chunked.chunks[0], (example.shape[1],))}

        def of_chunk(chunk: Any) -> NDArray[Any]:
            return function(chunk) if chunk.shape[0] else example[:0]

        return chunked.map_blocks(of_chunk, dtype=example.dtype, meta=example[:0], **more)

    def of_partition(part: Any) -> Any:
        points = part if named else exact(part, np.float64, WHERE).reshape(len(part), m)
        kind = type(part.iloc[:, 0]) if example.ndim == 1 else type(part)
        return kind(function(points) if len(part) else example[:0], index=part.index)

    return X.map_partitions(of_partition, meta=of_partition(X._meta))


class Fetched(Struct, eq=False):
    """Rows of a Dask array, computed on its cluster."""

    compute: Compute
    array: Any
    known: tuple[str, ...] | None = None  # of labels: their classes
    count: int = 0  # rows that were computed so far

    def __getitem__(self, rows: slice) -> Any:
        self.count += min(rows.stop, self.array.shape[0]) - rows.start
        found = join_rows([*self.compute(chunks_of(self.array[rows]))], self.array.dtype)
        return found if self.known is None else encode_array(found, len(found), LABELS, known=self.known)[1]


class Collection(Struct, frozen=True, eq=False):
    """Points (n, m) and labels (n,) in partitions of whole blocks."""

    X: Any  # a Dask array whose rows are in partitions
    labels: Any  # a Dask array in the same partitions, (n,) as they are stored in memory, or None: all are +1
    rows: int  # of every partition but the last

    @property
    def partitions(self) -> int:
        return -(-int(self.X.shape[0]) // self.rows)

    def range(self, partition: int) -> range:
        return range(partition * self.rows, min((partition + 1) * self.rows, int(self.X.shape[0])))


class PartitionReader(SliceReader, frozen=True, eq=False):
    """A reader in the driver of a few blocks of a collection."""

    collection: Collection | None = None


def collection_of(dataset: Dataset) -> Collection | None:
    """The collection whose points a dataset has, maybe transformed; None for others."""
    points = (dataset.stored or dataset).points
    return points.collection if isinstance(points, PartitionReader) else None


def join_rows(parts: Sequence[Any], dtype: np.dtype[Any]) -> Any:
    """Rows of several chunks, arrays or CSR matrices, in the type that was declared."""
    if hasattr(parts[0], "tocsr"):
        import scipy

        return parts[0] if len(parts) == 1 else scipy.sparse.vstack(parts, "csr")
    found = [array_of(part, WHERE) for part in parts]
    if len(found) == 1:
        return found[0]
    return np.concatenate([part if dtype.hasobject else exact(part, dtype, WHERE) for part in found])  # NumPy would just cast


def fetched_share(dataset: Dataset) -> float:
    """The share of a read that rows took which came to the driver by themselves, of a collection on its cluster."""
    arrays = (getattr(reader, "array", None) for reader in (dataset.base.points, dataset.labels))
    return sum(array.count for array in arrays if isinstance(array, Fetched)) / dataset.n


def lazy_table(spec: DataSpec, compute: Compute, *, keep: bool) -> Table:
    """That of a collection, seen once for all who open it in a call; the first of them has the read to count."""
    seen, key = _seen.get({}), (id(spec.where), id(spec.beside), keep)
    if key in seen:
        return replace(seen[key][0], reads=0)
    table = table_of(spec.where, spec.beside, compute, keep=keep)
    seen[key] = table, spec.where, spec.beside  # which live as long, or another object could have their number
    return table


@contextmanager
def see_once() -> Iterator[None]:
    """What is seen of collections in here is not asked again."""
    token = _seen.set({})
    try:
        yield
    finally:
        _seen.reset(token)


class LazyRows:
    """Rows of a Dask array that come to this process. Chunks that follow each other are computed together, in as many bytes as
    may be held, and each once for all blocks that a read takes of it.
    """

    def __init__(self, array: Any, held_bytes: int = HELD_BYTES) -> None:
        array = array.rechunk({1: -1}) if array.ndim > 1 else array
        self.shape, self.dtype, self._held_bytes = array.shape, array.dtype, held_bytes
        self._chunks, self._sparse = chunks_of(array), has_sparse_chunks(array)
        self._ends = np.cumsum([0, *array.chunks[0]])
        self._held = OrderedDict[int, list[Any]]()  # chunks, each with how many of its rows were taken; the newest last
        # where Dask finds its current client: threads of an engine have another context
        self._compute_parts, self._context = compute_here(array), copy_context()
        self._lock = Lock()

    def __getitem__(self, rows: slice) -> Any:
        n = int(self._ends[-1])
        first, stop = rows.start or 0, n if rows.stop is None else min(rows.stop, n)
        chunks = range(int(np.searchsorted(self._ends, first, "right")) - 1, int(np.searchsorted(self._ends, stop)))
        return join_rows([self._take(chunk, first, stop) for chunk in chunks], self.dtype)

    def _take(self, chunk: int, first: int, stop: int) -> Any:
        """Some rows of a chunk, which is let go when all of them were taken, or where newer ones need its place."""
        begin, end = (int(edge) for edge in self._ends[chunk : chunk + 2])
        some = slice(max(first, begin) - begin, min(stop, end) - begin)
        with self._lock:
            if chunk not in self._held:
                self._compute(chunk)
            held = self._held[chunk]
            held[1] += some.stop - some.start
            if held[1] >= end - begin:
                del self._held[chunk]
        return held[0][some]

    def _compute(self, chunk: int) -> None:
        """A chunk and those behind it. Raises BadInputError for other points than those that are declared."""
        row = int(np.prod(self.shape[1:])) * self.dtype.itemsize
        last = int(np.searchsorted(self._ends, self._ends[chunk] + self._held_bytes // (2 * max(1, row)), "right")) - 1
        wanted = [each for each in range(chunk, max(chunk + 1, last)) if each not in self._held]
        computed = self._context.run(self._compute_parts, [self._chunks[each] for each in wanted])
        for each, found in zip(wanted, computed, strict=True):
            points = found if self._sparse else array_of(as_declared(found), WHERE)
            declared = int(np.diff(self._ends)[each])
            if points.shape[0] != declared:
                what = f"a chunk of {points.shape[0]} points where {declared} are declared"
                raise BadInputError(f"{WHERE}: {what}; call compute_chunk_sizes()")
            self._held[each] = [points, 0]
        while len(self._held) > len(wanted) and sum(int(np.diff(self._ends)[k]) for k in self._held) * row > self._held_bytes:
            self._held.popitem(last=False)


def open_lazily(source: Source) -> Dataset:
    """A dataset of a collection whose partitions come to this process, one after the other, when their blocks are read."""
    table = lazy_table(source.spec, compute_here(source.spec.where, source.spec.beside), keep=True)
    X, labels = table.X, table.labels
    n, m = check_shape(X.shape, WHERE)
    dtype, more, rows = stored_dtype(np.dtype(X.dtype), WHERE), dict[str, Any](), 0
    if has_sparse_chunks(X):
        X, counts = csr_chunks(X, dtype, WHERE)
        rows, more["entries"] = cut_entries(np.append(0, np.cumsum(array_of(counts, WHERE))), dtype.itemsize, m)
    rows = rows or default_block_rows(m, dtype.itemsize, n)
    points = SliceReader(WHERE, LazyRows(X, source.file_bytes // 2), n, rows, dtype)
    dataset = assemble(WHERE, points, (n, m), labels, source, features=table.features, **more)
    return replace(dataset, opened=table.reads + bool(more), names=table.names)


def in_partitions(X: Any, rows: int) -> Any:
    """Points in chunks of so many rows; where they are put together anew each is looked at in the chunk that it came in."""
    chunks, dtype = {0: rows, 1: -1}, stored_dtype(np.dtype(X.dtype), WHERE)
    if X.rechunk(chunks).chunks == X.chunks or has_sparse_chunks(X):
        return X.rechunk(chunks)
    return X.map_blocks(_in_type, dtype, WHERE, dtype=dtype, meta=np.empty((0, 0), dtype)).rechunk(chunks)


def _in_type(block: Any, dtype: np.dtype[Any], where: str) -> NDArray[Any]:
    block = as_declared(block)
    return array_of(block, where).astype(object) if dtype.hasobject else exact(block, dtype, where)


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
        features=table.features,
        opened=table.reads + (entries is not None),
        names=table.names,
    )


def add_counts(found: Sequence[Counts], n: int, positive: str | None, *, many: bool) -> Labelled:
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


class _Rows(Struct, frozen=True, eq=False):
    """Rows of an array whose first one has a number."""

    array: Any  # of NumPy, or CSR
    first: int

    def __getitem__(self, rows: slice) -> Any:
        return self.array[rows.start - self.first : rows.stop - self.first]


class Window(Struct, frozen=True, eq=False):
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
        if self.transform is None:
            return dataset
        from dfeas.data.views import transform_features

        return transform_features(dataset, self.transform)
