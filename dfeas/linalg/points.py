"""Points of a block, one a row, as they are stored: a dense array or a CSR matrix. What passes ask of either is here.

Entries are stored in their own type and worked on in float32 where that holds each of them exactly, otherwise in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from math import prod
from mmap import MADV_HUGEPAGE, MAP_ANONYMOUS, MAP_PRIVATE, mmap
from threading import local
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dfeas.linalg import csr
from dfeas.linalg.blas import side_by_side
from dfeas.linalg.csr import csr_array
from dfeas.machine import threads_here

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Floats = NDArray[np.float64]
Array = NDArray[np.float32] | NDArray[np.float64]
Points: TypeAlias = "NDArray[Any] | csr_array"
Tile: TypeAlias = "Array | csr_array"
"""Points in float32 or float64."""
Indices = NDArray[np.int64]

LOW = ("int8", "uint8", "int16", "uint16", "float16")
"""Types of entries that take fewer bytes than float32, which holds them exactly."""
UNPACKED = 990_000
"""Multiplications in a product that OpenBLAS does in place (its limit is 100**3)."""
FEW_ROWS, MORE_ROWS = 24, 128
"""Where fewer rows of wide points would make it, it has some features of so many: a third to a half of the time."""
CONVERTED = 1 << 20
"""Entries that are converted at a time, at most."""
PART = 4096
"""Features whose products are summed at once: the more, the less is known of how a sum is rounded."""
SUMMED, SPARSE_SUMMED = 256, 4096
"""Products of weights and points that are summed in their precision."""
LARGE_PAGE, SLAB_BYTES, LINE_BYTES = 2 << 20, 6 << 20, 64
"""Bytes of a page of the kernel's larger ones, of those that smaller arrays of a thread share, and of a line of the cache."""
_held = local()  # buffers of each thread: fresh memory for each tile would cost as much as the product


@lru_cache(maxsize=32)
def working_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float32 or float64: the narrowest type in which products see the entries exactly."""
    return np.dtype(np.float32 if dtype.name in (*LOW, "float32") else np.float64)


def is_dense(points: Any) -> TypeIs[NDArray[Any]]:
    """Whether points are an array; otherwise they are a CSR matrix."""
    return isinstance(points, np.ndarray)


def nbytes(points: Points) -> int:
    """Bytes of what is stored."""
    return int(points.nbytes) if is_dense(points) else csr.nbytes(points)


def longest(points: Points) -> int:
    """Entries of the longest row: as many terms has a product with it at most."""
    return int(points.shape[1]) if is_dense(points) else csr.longest(points)


def terms(points: Points) -> int:
    """Terms of a ``product`` on which rounding depends, at most: those of a part, and the parts."""
    m = longest(points)
    return min(m, PART) + (m - 1) // PART if is_dense(points) else m


def norms(points: Points) -> Floats:
    """Euclidean norms (b,) in float64 of points (b, m); overflow gives inf and underflow 0, without a warning."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        if not is_dense(points):
            wide = points.data.astype(np.float64, copy=False)
            return np.sqrt(csr.row_sums(points, wide * wide))
        if points.dtype == np.float64:
            return np.asarray(np.sqrt(np.einsum("ij,ij->i", points, points)))
        # 1 << 17: entries whose float64 stay in cache until they are squared: two thirds of the time that smaller tiles take
        rows = max(1, min(len(points), (1 << 17) // points.shape[1]))
        norm, held = np.empty(len(points)), np.empty((rows, points.shape[1]))  # fresh memory for each tile takes a third more
        for first in range(0, len(points), rows):
            tile = points[first : first + rows]
            some = held[: len(tile)]
            np.copyto(some, tile)
            np.einsum("ij,ij->i", some, some, out=norm[first : first + rows])
        np.sqrt(norm, out=norm)
        return norm


def tile(points: Points, rows: slice, single: bool) -> Tile:
    """Some rows in float32 or float64; in a buffer that this thread uses again for the next tile, if they are in neither."""
    dtype = np.dtype(np.float32 if single else np.float64)
    if not is_dense(points):
        some = csr.rows_of(points, rows)
        return some if some.dtype == dtype else csr.with_data(some, convert_entries(some.data, dtype))
    return convert_entries(points[rows], dtype)


def convert_entries(stored: NDArray[Any], dtype: np.dtype[Any]) -> Array:
    """Entries in another type, in a buffer that this thread uses again for the next ones, or as they are."""
    if stored.dtype == dtype:
        return stored
    converted: Array = buffer("converted", stored.shape, dtype)
    np.copyto(converted, stored)
    return converted


def gather_rows(points: NDArray[Any], rows: Indices | slice) -> NDArray[Any]:
    """Some dense points: a view of consecutive ones, others in a buffer that this thread uses again for the next ones."""
    if isinstance(rows, slice):
        return points[rows]
    some = buffer("gathered", (len(rows), points.shape[1]), points.dtype)
    return np.take(points, rows, axis=0, out=some, mode="clip")  # another mode would make a copy first


def buffer(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Memory of this thread, which is used again by the next who asks for this name."""
    size = prod(shape) * dtype.itemsize
    held = getattr(_held, name, None)
    if held is None or held.size < size:
        held = np.empty(size, np.uint8)
        setattr(_held, name, held)
    taken: NDArray[Any] = held[:size].view(dtype).reshape(shape)
    return taken


def fresh(shape: tuple[int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Memory of points that stay from read to read."""
    return np.ndarray(shape, dtype, pages(shape, dtype))


def pages(shape: tuple[int, int], dtype: np.dtype[Any]) -> mmap | NDArray[np.uint8] | None:
    """What goes back to the kernel with an array; None for a small one. In the heaps of malloc, 220 of 500
    MiB were free and not given back between two passes of 1000 x 500,000 points.
    """
    size = prod(shape) * dtype.itemsize
    # 1 << 17: arrays of so many bytes that stay for a while have pages of their own
    if size < (1 << 17):
        return None
    if size >= SLAB_BYTES:
        return _large_pages(size)
    slab: NDArray[np.uint8] | None = getattr(_held, "slab", None)
    if slab is None or slab.size < size:
        memory = np.frombuffer(_large_pages(SLAB_BYTES + LARGE_PAGE), np.uint8)
        first = -memory.ctypes.data % LARGE_PAGE
        slab = memory[first : first + SLAB_BYTES]
    _held.slab = slab[-(-size // LINE_BYTES) * LINE_BYTES :]
    return slab[:size]


def _large_pages(size: int) -> mmap:
    """Memory of the kernel, in large pages where it has them: 40 MB in small ones take 27 ms until they are filled, not 6."""
    try:
        memory = mmap(-1, size, MAP_PRIVATE | MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(str(error)) from None
    with suppress(OSError):  # of a kernel without them
        memory.madvise(MADV_HUGEPAGE)
    return memory


def copy_rows(points: Points, rows: Indices | NDArray[np.bool_], dtype: np.dtype[Any] | None = None) -> Points:
    """Some points that stay for a while, in a type."""
    kind = points.dtype if dtype is None else dtype
    if not is_dense(points):
        return in_type(points[rows], kind.type)
    places = rows.nonzero()[0] if rows.dtype == bool else rows
    copy = fresh((len(places), points.shape[1]), kind)
    if points.dtype == kind:
        np.take(points, places, axis=0, out=copy, mode="clip")  # another mode would make a copy first
        return copy
    step = max(1, CONVERTED // points.shape[1])
    for first in range(0, len(places), step):
        copy[first : first + step] = points[places[first : first + step]]
    return copy


def product(points: Tile, y: Array) -> Array:
    """Products (t,) of a tile with y (m,), in their precision; of wide points each is a sum of those of ``PART`` features."""
    with np.errstate(invalid="ignore"):  # OpenBLAS computes on lanes that it then throws away
        if not is_dense(points):
            return np.asarray(points @ y)
        total: Array = points[:, :PART] @ y[:PART]
        for left in range(PART, len(y), PART):
            total += points[:, left : left + PART] @ y[left : left + PART]
    return total


def times(points: Tile, questions: Array) -> Array:
    """Products (k, t) of a tile with questions (m, k), each rounded as ``product`` or less."""
    k = questions.shape[1]
    if k == 1:
        return product(points, questions[:, 0])[None, :]
    found: Array = np.empty((k, points.shape[0]), points.dtype)
    if not is_dense(points):
        # 4: vectors that sparse points are multiplied with together: fewer take less one by one, and seven half to a third more
        if k >= 4:
            found[:] = (points @ np.ascontiguousarray(questions)).T
        else:
            for i in range(k):
                found[i] = points @ np.ascontiguousarray(questions[:, i])
        return found
    for rows, some in _small_products(points, k, PART):
        part = (points[rows, some] @ questions[some]).T
        if some.start:
            found[:, rows] += part
        else:
            found[:, rows] = part
    return found


def add_combinations(total: Floats, weights: Array, points: Tile) -> None:
    """Add weights (k, t) times a tile to sums (k, m). No more than ``SUMMED`` products are summed in the precision of the tile,
    or ``SPARSE_SUMMED`` of a sparse one: a sum of many equal numbers is wrong by as many roundings.
    """
    count, m = points.shape
    if not isinstance(points, np.ndarray):
        for first in range(0, count, SPARSE_SUMMED):
            some = slice(first, first + SPARSE_SUMMED)
            columns = csr.transpose(csr.rows_of(points, some))
            for i in range(len(weights)):
                total[i] += columns @ weights[i, some]
        return
    rows, features = _product_size(len(weights), SUMMED, m, m)
    even = count - count % rows
    runs, each = points[:even].reshape(-1, rows, m), weights[:, :even].reshape(len(weights), -1, rows).swapaxes(0, 1)
    for left in range(0, m, features):
        some = slice(left, left + features)
        if even:
            total[:, some] += (each @ runs[:, :, some]).sum(axis=0, dtype=np.float64)
        if even < count:
            total[:, some] += weights[:, even:] @ points[even:, some]


def _small_products(points: Array, k: int, most: int) -> list[tuple[slice, slice]]:
    """Runs of rows, and of at most so many features, for products with k vectors."""
    t, m = points.shape
    rows, features = _product_size(k, t, m, most)
    runs = [slice(first, first + rows) for first in range(0, t, rows)]
    return [(run, slice(left, left + features)) for run in runs for left in range(0, m, features)]


def _product_size(k: int, t: int, m: int, most: int) -> tuple[int, int]:
    """Rows, t at most, and features for products of (t, m) points with k vectors. OpenBLAS multiplies narrow matrices 3 to 8
    times faster below a size at which it copies them into its own order first; one vector has no such limit.
    """
    rows, features = (max(1, min(t, UNPACKED // (m * k))), m) if k > 1 else (t, m)
    if m > most or rows < FEW_ROWS:
        rows = min(t, MORE_ROWS)
        features = min(most, max(1, UNPACKED // (rows * k)))
    return rows, features


def row_slice(points: Points, rows: slice) -> Points:
    """Consecutive points (b, m), as views."""
    return points[rows] if is_dense(points) else csr.rows_of(points, rows)


def take_rows(points: Points, rows: Indices) -> Points:
    """Some points, in the order given."""
    return points[rows] if is_dense(points) else csr.take_rows(points, rows)


def dots(points: Points, rows: Indices, y: Floats) -> Floats:
    """Products (r,) of points with y (m,), or of dense ones with one each (r, m), in float64, by one order of summation."""
    if not is_dense(points):
        return np.asarray(csr.astype(csr.take_rows(points, rows), np.float64) @ y)
    m, dot = points.shape[1], np.empty(len(rows))
    # 1 << 14: products for which fresh memory is best
    if len(rows) * m <= 1 << 14:
        return np.asarray(np.multiply(points[rows], y, dtype=np.float64).sum(axis=1))
    # 1 << 15: the same of those that are summed at a time: half the time of a whole block, or less
    step = max(1, (1 << 15) // m)
    products: Floats = buffer("products", (min(step, len(rows)), m), np.dtype(np.float64))
    for first in range(0, len(rows), step):
        here = slice(first, first + step)
        each = products[: len(rows) - first]
        np.copyto(each, gather_rows(points, rows[here]))
        each *= y if y.ndim == 1 else y[here]
        each.sum(axis=1, out=dot[here])
    return dot


def combine_rows(weights: Floats, points: Points) -> Floats:
    """sum_j weights_j x_j (m,), or (k, m) of weights (k, b), in float64."""
    if is_dense(points):
        return np.asarray(weights @ points)
    return np.asarray((csr.transpose(csr.astype(points, np.float64)) @ weights.T).T)


def moments(points: Tile, weights: Floats) -> Floats:
    """sum_j weights_j x_j x_j' (m, m), in the precision of the points."""
    if isinstance(points, np.ndarray):
        return np.asarray(points.T @ np.multiply(points, weights[:, None], out=buffer("weighed", points.shape, points.dtype)))
    scaled, size = csr.scale_rows(points, weights), points.shape[0] * points.shape[1]
    # of a thirtieth of entries or more, and an array that stays in cache: the same sums in half the time, or less
    if size <= min(1 << 18, 30 * points.nnz):
        return np.asarray(csr.transpose(points) @ scaled.toarray())
    return np.asarray((csr.transpose(points) @ scaled).toarray())


def products(points: Tile) -> Floats:
    """x_i'x_j (t, t) of all pairs, in the precision of the points."""
    if isinstance(points, np.ndarray):
        return np.asarray(points @ points.T)
    return np.asarray((points @ csr.transpose(points)).toarray())


def dense(points: Points) -> Floats:
    """A copy (b, m) in float64."""
    return np.asarray(points.astype(np.float64) if is_dense(points) else csr.astype(points, np.float64).toarray())


def in_type(points: Points, dtype: type) -> Points:
    """The same in another type, not copied when it is in it already."""
    return points.astype(dtype, copy=False) if is_dense(points) else csr.astype(points, dtype)


def with_ones(points: Points) -> Points:
    """With one more feature, equal to 1: the intercept."""
    ones = np.ones((points.shape[0], 1), points.dtype)
    if not is_dense(points):
        return csr.with_columns(points, ones)
    more = fresh((points.shape[0], points.shape[1] + 1), points.dtype)
    np.concatenate((points, ones), axis=1, out=more)
    return more


def stack_points(parts: Sequence[Points]) -> Points:
    """Points below each other, all dense or all sparse."""
    if is_dense(parts[0]):
        return np.concatenate([part for part in parts if is_dense(part)])
    return csr.stack_rows([part for part in parts if not is_dense(part)])


class Shelf(np.ndarray[Any, np.dtype[Any]]):
    """Rows in memory with room behind those that are ``used``, which are somebody's and stay as they are."""

    used = 0


def take_together(parts: list[Points], most: int = 0) -> Points:
    """The same, which empties the list: dense parts go when they are copied, so that memory holds all of them once. With
    ``most`` there is room for so many rows, and where the first part is followed by room for the others it is not copied.
    """
    first = parts[0]
    if not is_dense(first):
        return stack_points([parts.pop(0) for _ in range(len(parts))])
    if (together := _view_together([part for part in parts if is_dense(part)])) is not None:
        return together
    row, dtype, shelf = sum(len(part) for part in parts), np.result_type(*parts), first.base
    if isinstance(shelf, Shelf) and shelf.used == len(first) and row <= len(shelf) and shelf.dtype == dtype:
        del parts[0]
    else:
        room = max(row, most), first.shape[1]
        shelf = Shelf(room, dtype, pages(room, dtype))
    shelf.used, whole = row, np.ndarray((row, first.shape[1]), dtype, shelf)
    while parts:
        some: list[tuple[int, NDArray[Any]]] = []
        while parts and len(some) < threads_here():
            part = parts.pop()  # the last first: malloc gives back to the kernel what is at the end
            assert is_dense(part), "parts are all dense or all sparse"
            row -= len(part)
            some.append((row, part))

        def copy(i: int, some: list[tuple[int, NDArray[Any]]] = some) -> None:
            first, part = some[i]
            whole[first : first + len(part)] = part

        side_by_side(copy, len(some))
    return whole


def _view_together(parts: Sequence[NDArray[Any]]) -> NDArray[Any] | None:
    """Rows that follow each other in one array, as a view; None of others."""
    first, end = parts[0], 0
    for part in parts:
        here = part.__array_interface__["data"][0]
        if part.base is None or part.base is not first.base or part.dtype != first.dtype or end not in (0, here):
            return None
        end = here + part.nbytes
    return np.lib.stride_tricks.as_strided(first, (sum(map(len, parts)), first.shape[1]), first.strides)


def pick_together(parts: list[tuple[Points, Indices]]) -> Points:
    """Some rows of each part, one part behind the other, copied once."""
    first = parts[0][0]
    if not is_dense(first):
        return stack_points([points[rows] for points, rows in parts])
    # 1 << 18: entries that are picked at a time
    count, size = sum(len(rows) for _, rows in parts), max(1, (1 << 18) // first.shape[1])
    whole = fresh((count, first.shape[1]), np.result_type(*[points for points, _ in parts]))
    end = 0
    for points, rows in parts:
        for begin in range(0, len(rows), size):
            some = rows[begin : begin + size]
            whole[end : end + len(some)] = points[some]
            end += len(some)
    return whole


def are_among(index: Indices, others: Indices) -> NDArray[np.bool_]:
    """Which of some numbers (c,) are among others: ``np.isin``, but for loading ``numpy.ma`` the first time, 6 ms."""
    if not len(others):
        return np.zeros(len(index), bool)
    known = np.sort(others)
    found: NDArray[np.bool_] = known[np.minimum(np.searchsorted(known, index), len(known) - 1)] == index
    return found


def any_entry(points: Points) -> NDArray[np.bool_]:
    """Whether each point (b,) has an entry that is not zero."""
    if is_dense(points):
        return np.asarray(points.any(axis=1))
    return np.bincount(csr.row_numbers(points)[points.data != 0], minlength=points.shape[0]) > 0


def nonfinite(points: Points) -> tuple[Indices, Indices, NDArray[Any]]:
    """Points, features and values of the entries that are NaN or infinite."""
    if is_dense(points):
        row, feature = np.nonzero(~np.isfinite(points))
        return row, feature, points[row, feature]
    at = np.flatnonzero(~np.isfinite(points.data))
    return csr.row_numbers(points)[at], points.indices[at].astype(np.int64), points.data[at]


def parts(points: Points) -> tuple[NDArray[Any], ...]:
    """The arrays that hold the points, in the order in which they count for a checksum."""
    return (points,) if is_dense(points) else (points.indptr.astype(np.int64, copy=False), points.indices, points.data)


def copy_into(memory: NDArray[np.uint8], points: Points) -> Points:
    """The same points in memory of ``nbytes(points)`` bytes; they may lie there already."""
    if not is_dense(points):
        return csr.copy_into(memory, points)
    kept = memory.view(points.dtype).reshape(points.shape)
    if not np.may_share_memory(kept, points):
        kept[:] = points
    return kept


def times_rows(points: Points, factors: Floats) -> Tile:
    """Each point times its factor (b,), in float64."""
    return points * factors[:, None] if is_dense(points) else csr.scale_rows(points, factors)


def largest(points: Tile) -> Floats:
    """The greatest magnitude (b,) of each point."""
    if isinstance(points, np.ndarray):
        return np.asarray(np.abs(points).max(axis=1), np.float64)
    greatest = np.zeros(points.shape[0])
    np.maximum.at(greatest, csr.row_numbers(points), np.abs(points.data))
    return greatest


def row_dot(points: Tile, row: int | np.signedinteger[Any], y: Floats) -> float:
    """The product of one point with y (m,)."""
    if isinstance(points, np.ndarray):
        return float(points[row] @ y)
    here = slice(points.indptr[row], points.indptr[row + 1])
    return float(points.data[here] @ y[points.indices[here]])


def add_row(total: Floats, points: Tile, row: int | np.signedinteger[Any]) -> None:
    """Add one point to a sum (m,)."""
    if isinstance(points, np.ndarray):
        total += points[row]
        return
    here = slice(points.indptr[row], points.indptr[row + 1])
    total[points.indices[here]] += points.data[here]
