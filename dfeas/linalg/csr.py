"""Sparse points: CSR matrices, one point a row, whose arrays may be views of buffers.

SciPy checks and may copy what it is given; here matrices are put together from their parts as they are. Sums of a row are taken
in the order of its entries, so that they are the same in any cut into blocks.
"""

from __future__ import annotations

from copy import copy
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import scipy

csr_array: TypeAlias = "scipy.sparse.csr_array"
csc_array: TypeAlias = "scipy.sparse.csc_array"
Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

DENSE_WORK = 400
"""A multiplication of stored entries takes so many times as long as one of arrays."""
DENSE_BYTES = 32 << 20
"""Of an array that is made of sparse rows for it."""


def csr(data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], features: int) -> csr_array:
    """A matrix of these arrays, without a copy or a check; ``indices`` and ``indptr`` have one type."""
    matrix: csr_array = copy(_empty(len(indptr) - 1, features, False))
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix


def transpose(points: csr_array) -> csc_array:
    """The same arrays, seen as columns."""
    matrix: csc_array = copy(_empty(*points.shape, True))
    matrix.data, matrix.indices, matrix.indptr = points.data, points.indices, points.indptr
    return matrix


@lru_cache(maxsize=128)
def _empty(size: int, features: int, by_columns: bool) -> Any:
    """A matrix to copy, whose arrays are replaced: SciPy takes several times as long to make one."""
    import scipy

    matrix = scipy.sparse.csc_array((features, size)) if by_columns else scipy.sparse.csr_array((size, features))
    matrix.indptr = matrix.indptr[:0].copy()
    return matrix


def with_data(points: csr_array, data: NDArray[Any]) -> csr_array:
    """Other entries in the same places."""
    return csr(data, points.indices, points.indptr, points.shape[1])


def rows_of(points: csr_array, rows: slice) -> csr_array:
    """Consecutive rows (b, m), as views."""
    first, stop, _ = rows.indices(points.shape[0])
    if stop - first == points.shape[0]:
        return points
    low, high = int(points.indptr[first]), int(points.indptr[stop])
    return csr(points.data[low:high], points.indices[low:high], points.indptr[first : stop + 1] - low, points.shape[1])


def spread(points: csr_array, some: NDArray[np.bool_]) -> csr_array:
    """The same rows in some places (b,), and empty ones in the others."""
    if some.all():
        return points
    counts = np.zeros(len(some), points.indptr.dtype)
    counts[some] = np.diff(points.indptr)
    indptr = np.append(np.zeros(1, counts.dtype), np.cumsum(counts, dtype=counts.dtype))
    return csr(points.data, points.indices, indptr, points.shape[1])


def take_rows(points: csr_array, rows: Indices) -> csr_array:
    """Some rows, in the order given. For few of them SciPy's own way takes several times as long, with its checks."""
    # 16: less than one row in so many is picked without SciPy
    if 16 * len(rows) > points.shape[0]:
        return points[rows]
    starts = points.indptr[rows]
    counts = points.indptr[rows + 1] - starts
    indptr = np.zeros(len(rows) + 1, points.indptr.dtype)
    np.cumsum(counts, out=indptr[1:])
    places = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], counts)
    return csr(points.data[places], points.indices[places], indptr, points.shape[1])


def astype(points: csr_array, dtype: Any) -> csr_array:
    """The same in another type, not copied when it is in it already."""
    return points if points.dtype == dtype else with_data(points, points.data.astype(dtype))


def row_sums(points: csr_array, values: Floats) -> Floats:
    """Sums (b,) of values (nnz,) in the places of the entries."""
    return np.asarray(with_data(points, values) @ np.ones(points.shape[1]))


def products(points: csr_array, others: csr_array) -> NDArray[Any]:
    """All products (b, c) of the rows of both. Where many entries are stored those of arrays are faster."""
    (b, m), c = points.shape, others.shape[0]
    dense = DENSE_WORK * points.nnz * others.nnz > b * c * m * m
    if dense and max(b, c) * m * points.dtype.itemsize <= DENSE_BYTES:
        return np.asarray(points.toarray() @ others.toarray().T)
    return np.asarray((points @ others.T).toarray())


def with_columns(points: csr_array, columns: NDArray[Any]) -> csr_array:
    """With more features (b, k), behind the others."""
    b, m = points.shape
    k = columns.shape[1]
    ends = np.repeat(points.indptr[1:], k)
    data = np.insert(points.data, ends, columns.astype(points.dtype).reshape(-1))
    indices = np.insert(points.indices, ends, np.tile(np.arange(m, m + k), b))
    return csr(data, indices, points.indptr + k * np.arange(b + 1, dtype=points.indptr.dtype), m + k)


def scale_rows(points: csr_array, factors: Floats) -> csr_array:
    """Each row times its factor (b,)."""
    return with_data(points, points.data * np.repeat(factors, np.diff(points.indptr)))


def row_numbers(points: csr_array) -> Indices:
    """The row (nnz,) of each entry."""
    return np.repeat(np.arange(points.shape[0]), np.diff(points.indptr))


def longest(points: csr_array) -> int:
    """Entries of the longest row."""
    return int(np.diff(points.indptr).max(initial=0))


def nbytes(points: csr_array) -> int:
    """Bytes of the three arrays."""
    return int(points.data.nbytes + points.indices.nbytes + points.indptr.nbytes)


def stack_rows(parts: list[csr_array]) -> csr_array:
    """The rows of all parts, below each other."""
    import scipy

    return scipy.sparse.csr_array(scipy.sparse.vstack(parts, format="csr"))


def copy_into(memory: NDArray[np.uint8], points: csr_array) -> csr_array:
    """A copy in memory of ``nbytes`` bytes."""
    placed: dict[str, NDArray[Any]] = {}
    first = 0
    for name in sorted(("data", "indices", "indptr"), key=lambda name: -getattr(points, name).itemsize):  # each is aligned
        array = getattr(points, name)
        placed[name] = memory[first : first + array.nbytes].view(array.dtype)
        placed[name][:] = array
        first += array.nbytes
    return csr(placed["data"], placed["indices"], placed["indptr"], points.shape[1])


def canonicalise(points: csr_array) -> csr_array:
    """Without stored zeros, indices ascending, entries of the same place added; not copied when it is so already."""
    if points.has_canonical_format and (points.data != 0).all():
        return points
    tidy = points.copy()
    tidy.sum_duplicates()
    tidy.eliminate_zeros()
    return tidy


def rows_ascend(indices: NDArray[Any], ends: NDArray[Any]) -> bool:
    """Whether the indices (e,) ascend in each row; ``ends`` (b + 1,) says where rows begin and end."""
    rising = indices[1:] > indices[:-1]
    rising[ends[1:-1][(ends[1:-1] > 0) & (ends[1:-1] < len(indices))] - 1] = True
    return bool(rising.all())


def is_csr(value: Any) -> bool:
    """Whether a value is a CSR matrix; SciPy's sparse part is not loaded for it."""
    return type(value).__name__ == "csr_array"
