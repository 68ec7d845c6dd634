"""Readers of sparse points: CSR in three arrays (the AnnData layout), as plain files or in memory.

``data`` and ``indices`` are cut into chunks of so many entries, wherever blocks begin; a block reads its part of some of them.
``indptr`` has a chunk for each block. What is read is checked before anybody multiplies with it: an index out of range would
reach beyond the arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.data.storage.layout import index_size, sparse_block_rows
from dfeas.data.storage.numbers import exact, is_dask_array
from dfeas.data.storage.readers import Buffers, Looks, RowReader, chunks_of, stamp_of
from dfeas.errors import BadInputError, CorruptDataError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from dfeas.data.storage.chunks import ChunkReader

CHUNK_ENTRIES = 1 << 20
"""Entries of a chunk of ``data`` and of ``indices``."""


class Entries(Struct, frozen=True, eq=False):
    """How much a sparse matrix stores."""

    offsets: NDArray[np.int64]  # (blocks + 1,) where the entries of each block begin
    bytes: int  # of data, indices and indptr
    block_bytes: int  # of the largest block

    @classmethod
    def of(cls, n: int, offsets: NDArray[np.int64], block_rows: int, itemsize: int, index_size: int) -> Entries:
        entry, pointer = itemsize + index_size, 8
        most = int(np.diff(offsets).max())
        return cls(offsets, int(offsets[-1]) * entry + n * pointer, most * entry + block_rows * pointer)

    @property
    def count(self) -> int:
        return int(self.offsets[-1])


def pieces(chunk: int, first: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """(chunk, first entry in it, entries) of the chunks, of ``chunk`` entries each, with the entries first .. stop-1."""
    while first < stop:
        index, within = divmod(first, chunk)
        count = min(chunk - within, stop - first)
        yield index, within, count
        first += count


class EntryChunks(Struct, frozen=True, eq=False):
    """One array of entries in plain chunks, of which blocks have parts."""

    chunks: ChunkReader

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.chunks.array.dtype

    @property
    def chunk(self) -> int:
        return self.chunks.array.rows

    def read(self, first: int, stop: int, buffers: Buffers) -> NDArray[Any]:
        """Entries first .. stop-1. Raises CorruptDataError when a chunk or its shard is missing or damaged."""
        size, done = self.dtype.itemsize, 0
        buffer = buffers.take(self.chunks.name, (stop - first) * size)
        for index, within, count in pieces(self.chunk, first, stop):
            self.chunks.fill(index, within * size, buffer[done : done + count * size], buffers)
            done += count * size
        return buffer.view(self.dtype)

    def advise(self, first: int, stop: int) -> None:
        size = self.dtype.itemsize
        for index, within, count in pieces(self.chunk, first, stop):
            if self.chunks.array.shard:
                self.chunks.advise(index)
            else:
                self.chunks.folder.advise(self.chunks.array.file(index), within * size, count * size)

    def stamps(self, first: int, stop: int, looks: Looks | None = None) -> tuple[int, ...]:
        """Numbers that change when the files with these entries do."""
        of_file = self.chunks.array.chunks_of_file
        return tuple(self.chunks.stamp(file * of_file, looks) for file, _, _ in pieces(of_file * self.chunk, first, stop))


class CsrChunks(Struct, frozen=True, eq=False):
    """Blocks of a sparse matrix in plain chunks."""

    where: str
    n: int
    features: int
    chunk_rows: int
    offsets: NDArray[np.int64]  # (chunks + 1,) where the entries of the rows of each chunk begin
    data: EntryChunks
    indices: EntryChunks
    indptr: RowReader
    together: int = 1  # chunks of a block

    overlaps = True
    distant = False

    def _chunks(self, index: int) -> range:
        return chunks_of(index, self.together, self.n, self.chunk_rows)

    def _range(self, index: int) -> tuple[int, int]:
        chunks = self._chunks(index)
        return int(self.offsets[chunks.start]), int(self.offsets[chunks.stop])

    def read(self, index: int, buffers: Buffers) -> csr_array:
        """A block; its arrays may be views of buffers. Raises CorruptDataError when it is missing, or no matrix."""
        (first, stop), chunks = self._range(index), self._chunks(index)
        rows = min(self.n, chunks.stop * self.chunk_rows) - chunks.start * self.chunk_rows
        data, indices = self.data.read(first, stop, buffers), self.indices.read(first, stop, buffers)
        indptr = np.empty(rows + 1, np.int64)
        np.subtract(self.indptr.read(index, buffers)[:rows], first, out=indptr[:rows])
        indptr[rows] = stop - first
        begins = self.offsets[chunks.start : chunks.stop] - first
        if not (np.array_equal(indptr[: -1 : self.chunk_rows], begins) and (indptr[:-1] <= indptr[1:]).all()):
            moved = indptr[: -1 : self.chunk_rows] != begins
            at = int(moved.argmax()) if moved.any() else int((indptr[:-1] > indptr[1:]).argmax()) // self.chunk_rows
            raise self._damage_error(chunks[at], "indptr")
        unsigned = indices.view(np.dtype(f"u{indices.dtype.itemsize}"))  # a negative index is a large one
        if len(indices) and int(unsigned.max()) >= self.features:
            place = int((unsigned >= self.features).argmax())
            row = int(np.searchsorted(indptr, place, side="right")) - 1
            raise self._damage_error(chunks[row // self.chunk_rows], "indices")
        return block_of(data, indices, indptr, self.features)

    def _damage_error(self, chunk: int, what: str) -> CorruptDataError:
        text = f"chunk {chunk} of X is damaged: its {what} are out of range; restore or ingest again"
        return CorruptDataError(f"{self.where}: {text}")

    def advise(self, index: int) -> None:
        if self._chunks(index):
            for files in (self.data, self.indices):
                files.advise(*self._range(index))

    def stamp(self, index: int, looks: Looks | None = None) -> int:
        span = self._range(index)
        return hash((self.data.stamps(*span, looks), self.indices.stamps(*span, looks), self.indptr.stamp(index, looks)))


class CsrRows(Struct, frozen=True, eq=False):
    """Blocks of a sparse matrix in memory, with ascending indices in each row."""

    matrix: csr_array  # (n, m)
    block_rows: int
    dtype: np.dtype[Any]  # of the entries as blocks have them
    files: Callable[[int], Sequence[str]] | None = None  # as of a ``SliceReader``

    overlaps = True
    distant = False

    def read(self, index: int, buffers: Buffers) -> csr_array:
        """A block, of views where types allow."""
        n, features = self.matrix.shape
        starts = self.matrix.indptr[index * self.block_rows : min(n, (index + 1) * self.block_rows) + 1]
        low, high = int(starts[0]), int(starts[-1])
        indptr = starts.astype(np.int64) - low
        return block_of(exact(self.matrix.data[low:high], self.dtype, "X"), self.matrix.indices[low:high], indptr, features)

    def advise(self, index: int) -> None:
        """Nothing to do: it is there."""

    def stamp(self, index: int, looks: Looks | None = None) -> int | None:
        return None if self.files is None else hash(tuple(map(stamp_of, self.files(index))))


def has_sparse_chunks(X: Any) -> bool:
    """Whether it is a Dask array that declares sparse chunks."""
    return is_dask_array(X) and hasattr(getattr(X, "_meta", None), "tocsr")


def csr_chunks(X: Any, dtype: np.dtype[Any], where: str) -> tuple[Any, Any]:
    """A Dask array of CSR chunks (r, m), each looked at when it comes, and one (n,) of how many entries rows have."""
    import scipy

    empty = scipy.sparse.csr_array((0, 0), dtype=dtype)
    for _ in range(2 if X.numblocks[1] > 1 else 1):  # before Dask puts them together, and after
        X = X.map_blocks(csr_rows, dtype, where, dtype=dtype, meta=empty).rechunk({1: -1})
    return X, X.map_blocks(lambda chunk: np.diff(chunk.indptr).astype(np.int64), drop_axis=1, dtype=int, meta=np.empty(0, int))


def csr_rows(matrix: Any, dtype: np.dtype[Any] | None, where: str) -> Any:
    """A CSR matrix with ascending indices, each once, and entries of this type, if any, not copied where it is that.
    Raises BadInputError for what is none.
    """
    import scipy

    found: Any = matrix.tocsr() if hasattr(matrix, "tocsr") else scipy.sparse.csr_array(exact(matrix, dtype, where))
    try:
        found.check_format(full_check=True)
    except ValueError as error:
        raise BadInputError(f"{where}: not a CSR matrix: {error}") from None
    if not found.has_canonical_format:
        found = found.copy() if found is matrix else found
        found.sum_duplicates()
    return found if dtype is None else block_of(exact(found.data, dtype, where), found.indices, found.indptr, found.shape[1])


def cut_entries(indptr: NDArray[Any], itemsize: int, m: int) -> tuple[int, Entries]:
    """Rows of a block of a matrix with m columns, and what its blocks have."""
    n = len(indptr) - 1
    rows = sparse_block_rows(int(indptr[-1]) / n, itemsize + index_size(m), n)
    ends = np.append(indptr[:-1:rows], indptr[-1]).astype(np.int64)
    return rows, Entries.of(n, ends, rows, itemsize, index_size(m))


def sparse_shape(shape: Any, where: str) -> tuple[int, int]:
    """Points and features of a sparse matrix. Raises CorruptDataError when that is not what it says."""
    try:
        n, m = (int(size) for size in np.asarray(shape).reshape(-1))
    except (TypeError, ValueError, OverflowError):
        raise CorruptDataError(f"{where}: the shape of the sparse matrix cannot be read") from None
    if min(n, m) < 0:
        raise CorruptDataError(f"{where}: the shape of the sparse matrix is {n} x {m}")
    return n, m


def block_of(data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[np.int64], features: int) -> csr_array:
    """A matrix whose index arrays have one type: int32 where that holds them."""
    narrow = features < 2**31 and int(indptr[-1]) < 2**31
    kind = np.int32 if narrow else np.int64
    block = copy(_empty(len(indptr) - 1, features))
    block.data, block.indices, block.indptr = data, indices.astype(kind, copy=False), indptr.astype(kind, copy=False)
    return block


@lru_cache(maxsize=64)
def _empty(size: int, features: int) -> csr_array:
    """A matrix to copy, whose arrays are replaced: SciPy takes several times as long to make one."""
    import scipy

    empty = scipy.sparse.csr_array((size, features))
    empty.indptr = empty.indptr[:0].copy()
    return empty
