"""CSR and CSC matrices in files: rows by consecutive slices.

Entries lie by columns, so that all are read for some rows: as many rows are gathered in one read as memory takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dfeas.data.storage.places import require_column, require_entries
from dfeas.data.storage.sparse_readers import block_of, sparse_shape
from dfeas.errors import BadInputError, CorruptDataError, describe_change
from dfeas.linalg import csr
from dfeas.linalg.csr import csr_array

PARTS = ("data", "indices", "indptr")
"""Arrays of a CSR matrix."""


def _unfit(kind: str, shape: tuple[int, int], where: str) -> CorruptDataError:
    n, m = shape
    return CorruptDataError(f"{where}: not a {kind} matrix of shape {n} x {m}: indptr, indices and data do not fit")


class SparseRows:
    """Rows of a CSR matrix by slices; of ``indptr`` what a slice needs is read with it, if any part of it can be."""

    def __init__(self, parts: dict[str, Any], shape: Any, where: str) -> None:
        self._where, self._data, self._indices = where, parts["data"], parts["indices"]
        n, m = sparse_shape(shape, where)
        self.shape, self.dtype = (n, m), parts["data"].dtype
        self._indptr = parts["indptr"]
        if self._indptr.shape != (n + 1,) or {self._indptr.dtype.kind, self._indices.dtype.kind} - {"i", "u"}:
            raise _unfit("CSR", self.shape, self._where)
        self.entries = int(self._indptr[n : n + 1][0])
        if self._indptr[0:1][0] != 0 or (self._data.shape, self._indices.shape) != ((self.entries,), (self.entries,)):
            raise _unfit("CSR", self.shape, self._where)

    @classmethod
    def of(cls, matrix: Any) -> SparseRows:
        rows = matrix.tocsr()
        return cls({part: getattr(rows, part) for part in PARTS}, rows.shape, "the matrix")

    def __getitem__(self, rows: slice) -> csr_array:
        first, stop, _ = rows.indices(self.shape[0])
        indptr = np.asarray(self._indptr[first : stop + 1]).astype(np.int64)
        if (np.diff(indptr) < 0).any() or indptr[0] < 0 or indptr[-1] > self.entries:
            raise _unfit("CSR", self.shape, self._where)
        require_entries(int(indptr[-1] - indptr[0]), self.dtype.itemsize, self._where)
        here = slice(int(indptr[0]), int(indptr[-1]))
        data, indices = np.asarray(self._data[here]), np.asarray(self._indices[here])
        bad = np.flatnonzero((indices < 0) | (indices >= self.shape[1]))
        if len(bad):
            point = first + int(np.searchsorted(indptr - indptr[0], bad[0], side="right")) - 1
            raise BadInputError(
                f"{self._where}: point {point} has an entry in feature {indices[bad[0]]}, expected 0 .. {self.shape[1] - 1}"
            )
        return block_of(data, indices, indptr - indptr[0], self.shape[1])


def kind_and_shape(archive: Any) -> tuple[str, NDArray[Any]]:
    """Of the matrix in an .npz file of SciPy."""
    with archive.open("format.npy") as stream:
        kind = npy.read_array(stream, allow_pickle=False).item()
    with archive.open("shape.npy") as stream:
        shape = npy.read_array(stream, allow_pickle=False)
    return (kind.decode() if isinstance(kind, bytes) else str(kind)), shape


class CscRows:
    """Rows of a CSC matrix by slices that follow each other; how many entries each has, 8 bytes a point, is in memory."""

    gathered_entries: ClassVar[int] = 6_000_000
    """Entries of the rows that are gathered at a time: with their places and their order they take half a GB."""
    read_entries: ClassVar[int] = 1 << 20
    """Entries that are read at a time."""

    def __init__(self, parts: dict[str, Any], shape: Any, where: str) -> None:
        self._where, self._data, self._indices = where, parts["data"], parts["indices"]
        self.shape, self.dtype = sparse_shape(shape, where), parts["data"].dtype
        indptr = parts["indptr"]
        require_column(prod(indptr.shape) * indptr.dtype.itemsize, f"{where}: indptr")
        column = np.asarray(indptr[0 : indptr.shape[0]])
        whole = {indptr.dtype.kind, self._indices.dtype.kind} <= {"i", "u"} and len(column) == self.shape[1] + 1
        self._column = column.astype(np.int64) if whole else np.full(1, -1)
        self.entries = int(self._column[-1])
        fits = (self._data.shape, self._indices.shape) == ((self.entries,), (self.entries,))
        if self._column[0] != 0 or (np.diff(self._column) < 0).any() or not fits:
            raise _unfit("CSC", self.shape, where)
        self._starts: NDArray[np.int64] | None = None  # (n + 1,) where rows would begin
        self._held: tuple[int, csr_array] | None = None  # rows that were gathered, from a first one on

    def reads(self, size: int) -> int:
        """How often all entries are read for slices of ``size`` rows: once to count those of each row, and to gather them."""
        count, first = 1, 0
        while first < self.shape[0]:
            count, first = count + 1, self._end(first, size)
        return count

    def __getitem__(self, rows: slice) -> csr_array:
        first, stop, _ = rows.indices(self.shape[0])
        if self._held is None or not self._held[0] <= first <= stop <= self._held[0] + self._held[1].shape[0]:
            self._held = None
            self._held = first, self._gather(first, self._end(first, stop - first))
        begin, held = self._held
        return csr.rows_of(held, slice(first - begin, stop - begin))

    def _end(self, first: int, size: int) -> int:
        """Behind the rows from ``first`` on that are gathered together: whole slices of ``size`` rows, one at least."""
        most = self._row_starts[first] + self.gathered_entries
        rows = int(np.searchsorted(self._row_starts, most, "right")) - 1 - first
        if first + rows == self.shape[0]:
            return self.shape[0]
        return min(self.shape[0], first + max(1, rows // size) * size)

    @property
    def _row_starts(self) -> NDArray[np.int64]:
        if self._starts is None:
            counts = np.zeros(self.shape[0] + 1, np.int64)
            for begin, indices, _ in self._chunks(values=False):
                bad = np.flatnonzero((indices < 0) | (indices >= self.shape[0]))
                if len(bad):
                    raise BadInputError(
                        f"{self._where}: feature {self._features(begin, len(indices))[bad[0]]} has an entry in point "
                        f"{indices[bad[0]]}, expected 0 .. {self.shape[0] - 1}"
                    )
                counts[1:] += np.bincount(indices, minlength=self.shape[0])
            self._starts = np.cumsum(counts)
        return self._starts

    def _chunks(self, values: bool) -> Iterator[tuple[int, NDArray[np.int64], NDArray[Any] | None]]:
        """The number of a first entry, points of entries, and what they are."""
        for begin in range(0, self.entries, self.read_entries):
            here = slice(begin, min(self.entries, begin + self.read_entries))
            indices = np.asarray(self._indices[here]).astype(np.int64)
            yield begin, indices, np.asarray(self._data[here]) if values else None

    def _features(self, begin: int, count: int) -> NDArray[np.int64]:
        low, high = np.searchsorted(self._column, [begin, begin + count - 1], "right") - 1
        edges = np.clip(self._column[low : high + 2], begin, begin + count)
        return np.repeat(np.arange(low, high + 1), np.diff(edges))

    def _gather(self, first: int, stop: int) -> csr_array:
        gathered: list[tuple[NDArray[Any], ...]] = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, self.dtype))]
        for begin, indices, data in self._chunks(values=True):
            assert data is not None, "values were asked for"
            at = np.flatnonzero((indices >= first) & (indices < stop))
            gathered.append((indices[at], self._features(begin, len(indices))[at], data[at]))
        row, feature, value = (np.concatenate(parts) for parts in zip(*gathered, strict=True))
        order = np.argsort(row, kind="stable")  # features of a row ascend already
        starts = self._row_starts[first : stop + 1] - self._row_starts[first]
        if len(order) != starts[-1]:
            raise describe_change(self._where)
        return block_of(value[order], feature[order], starts, self.shape[1])
