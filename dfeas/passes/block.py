"""A block, consecutive points with their labels and norms seen as signed unit columns, and columns taken out of blocks.

Row j of ``points`` is point x_j. The column of the mathematics is a_j = l_j x_j / |x_j|; it is never stored. Where points are
not normalised it is l_j x_j / max |x|: no column is longer than 1, which is all that methods need.
With ``intercept`` every point has one more feature, equal to 1, which is never stored either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import hypot
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.linalg.blas import cut_evenly
from dfeas.linalg.points import (
    Array,
    Floats,
    Indices,
    Points,
    Tile,
    combine_rows,
    copy_rows,
    dense,
    dots,
    is_dense,
    largest,
    nbytes,
    pick_together,
    product,
    take_together,
    terms,
    tile,
    times,
    times_rows,
    with_ones,
    working_type,
)
from dfeas.records import replace

TILE_BYTES = 4 << 20
"""A scan works on tiles of this size: they stay in cache between the two products, and need few Python calls, which is
what threads of one process contend for."""
TILE_ROWS, WIDE_TILE_BYTES = 64, 4 * TILE_BYTES
"""Of wide points one has so many rows, or as many as have so many bytes: sums over fewer take longer to add up than to make."""
AT_ONCE = 1 << 17
"""Entries of rows that are scored at once for several questions, as long as these are few."""

# Single precision neither overflows nor underflows in a product with entries of at most 1 for norms in this range.
_SINGLE_NORMS = (1e-25, 1e25)


def in_precision(array: Array, single: bool) -> Array:
    """The array in float32 or float64, not copied when it is so already."""
    return array.astype(np.float32, copy=False) if single else array.astype(np.float64, copy=False)


def rounding(terms: int, single: bool) -> float:
    """|fast score - score in float64| of unit columns and a unit y, for any order of summation."""
    return 1.02 * (terms + 6) * (2.0**-24 if single else 2.0**-53)


def against(label: NDArray[Any], code: int) -> NDArray[np.int8]:
    """Signs (b,) of labels: +1 of one class, -1 of all others."""
    return np.asarray((label == code).view(np.int8) * np.int8(2) - np.int8(1))


class Sides(Struct, frozen=True, eq=False, dict=True):
    """Labels and norms of a block's points: what turns points into columns. Kept from pass to pass where memory allows."""

    label: NDArray[Any]  # (b,) -1 or +1; of several classes codes, and ``against`` makes signs of them; of cones codes, too
    norm: Floats  # (b,) Euclidean norms of the stored points, without the intercept
    intercept: bool = False
    length: float | None = None  # what all points are divided by; None: each by its own length
    codes: NDArray[Any] | None = None  # (b,) labels as they are stored, where those of one class were made of them

    def lengths(self, rows: Indices | slice = slice(None)) -> Floats:
        """What the given rows (r,) are divided by: |x_j| with the intercept, or one length for all."""
        norm = self.norm[rows]
        if self.length is not None:
            return np.full(len(norm), self.length)
        return np.hypot(norm, 1.0) if self.intercept else norm

    def scale(self, rows: Indices | slice = slice(None)) -> Floats:
        """Factors (r,) l_j / |x_j| of the given rows, which make signed unit columns of points; 0 for a zero point."""
        norm, label = self.lengths(rows), self.label[rows]
        if (norm > 0).all():
            return np.asarray(label / norm)
        with np.errstate(divide="ignore"):
            return np.where(norm > 0, label / norm, 0.0)

    @cached_property
    def narrow(self) -> NDArray[np.float32]:
        return self.scale().astype(np.float32)

    @cached_property
    def moderate(self) -> bool:
        """Whether products in float32 with entries of at most 1 neither overflow nor underflow."""
        least, greatest = _SINGLE_NORMS
        if self.length is not None and not least <= self.length <= greatest:
            return False
        return bool(self.norm.min(initial=least) >= least and self.norm.max(initial=greatest) <= greatest)

    def against(self, code: int) -> Sides:
        sides = Sides(against(self.label, code), self.norm, self.intercept, self.length, self.label)
        vars(sides)["moderate"] = self.moderate  # norms are the same
        return sides

    def copy(self) -> Sides:
        return Sides(self.label.copy(), self.norm.copy(), self.intercept, self.length)

    @property
    def nbytes(self) -> int:
        """Bytes that are kept, ``narrow`` included."""
        return (12 + self.label.itemsize) * len(self.norm)


class Block(Struct, frozen=True, eq=False):
    """Consecutive points of a dataset, maybe views of a buffer that the reader uses again: a scan must not keep them."""

    start: int  # index of the first point in the dataset
    points: Points  # (b, m) as they are stored: an array in C order, or a CSR matrix
    sides: Sides
    chunk_rows: int = 0  # points of each of the chunks that it is stored in, the last one maybe shorter; 0: it is one
    stays: bool = False  # whether its points lie in an array that stays when the next block is read

    @classmethod
    def of(cls, start: int, points: Points, label: NDArray[Any], norm: Floats, intercept: bool = False) -> Block:
        """A block from labels (b,), -1 or +1, or codes in int16 or int32, and norms (b,)."""
        kind: Any = label.dtype if label.dtype in (np.int16, np.int32) else np.int8
        return cls(start, points, Sides(np.asarray(label, kind), norm, intercept))

    @property
    def label(self) -> NDArray[Any]:
        return self.sides.label

    @property
    def norm(self) -> Floats:
        return self.sides.norm

    @property
    def intercept(self) -> bool:
        return self.sides.intercept

    def against(self, code: int) -> Block:
        """The same points, one class against the rest."""
        return replace(self, sides=self.sides.against(code))

    @property
    def dimension(self) -> int:
        """Length of a column: m, or m + 1 with the intercept."""
        return int(self.points.shape[1]) + self.intercept

    @property
    def size(self) -> int:
        return int(self.points.shape[0])

    @property
    def nbytes(self) -> int:
        return nbytes(self.points)

    @property
    def terms(self) -> int:
        """Terms of a score, at most: what rounding depends on."""
        return terms(self.points) + self.intercept

    @property
    def single(self) -> bool:
        """Whether products in float32 are safe, and no entry is rounded in them."""
        return working_type(self.points.dtype) == np.float32 and self.sides.moderate

    def tiles(self) -> Iterator[slice]:
        """Runs of rows of equal length, of about ``TILE_BYTES`` when they are worked on; none for no points."""
        size = self.points.size * working_type(self.points.dtype).itemsize
        count = min(round(size / TILE_BYTES), max(self.size // TILE_ROWS, -(-size // WIDE_TILE_BYTES)))
        return iter(cut_evenly(self.size, min(self.size, max(1, count))))

    def dense_tiles(self) -> Iterator[slice]:
        """Runs of rows that may be looked at as dense columns."""
        if is_dense(self.points):
            yield from self.tiles()
            return
        rows = max(1, TILE_BYTES // (8 * self.dimension))
        for first in range(0, self.size, rows):
            yield slice(first, min(self.size, first + rows))

    def tile(self, rows: slice, single: bool) -> Tile:
        """Some rows in float32 or float64, for products; to be used before this thread asks for another tile."""
        return tile(self.points, rows, single)

    def fast_scores(self, y: Array) -> Array:
        """Scores (b,) a_j'y in the precision of y, which has length ``dimension``."""
        single, m = y.dtype == np.float32, self.points.shape[1]
        tiles = list(self.tiles())
        if len(tiles) == 1:
            scores: Array = product(self.tile(tiles[0], single), y[:m])
        else:
            scores = np.empty(self.size, y.dtype)
            for rows in tiles:
                scores[rows] = product(self.tile(rows, single), y[:m])
        if self.intercept:
            scores += y[m]
        scores *= self.sides.narrow if single else self.sides.scale()
        return scores

    def unsigned_scores(self, ys: Sequence[Floats]) -> Array:
        """Fast scores (k, b) of unit points, all signs +1, under several y (dimension,)."""
        single, m, k = self.single, self.points.shape[1], len(ys)
        Y: Array = in_precision(np.column_stack(ys), single)
        lengths = self.sides.lengths()
        factor: Array = in_precision(np.divide(1.0, lengths, out=np.zeros(self.size), where=lengths > 0), single)
        scores: Array = np.empty((k, self.size), Y.dtype)
        for rows in self.tiles():
            scores[:, rows] = times(self.tile(rows, single), Y[:m])
        if self.intercept:
            scores += Y[m][:, None]
        scores *= factor
        return scores

    def exact_scores(self, rows: Indices, y: Floats) -> Floats:
        """Scores (r,) a_j'y in float64, each by one fixed order of summation: the same bits in any partition. ``rows`` are rows
        of this block, ``y`` has length ``dimension``; of dense points each may have its own (r, dimension).
        """
        if not rows.size:
            return np.empty(0)
        m = self.points.shape[1]
        scores = dots(self.points, rows, y[..., :m])
        if self.intercept:
            scores += y[..., m]
        return np.asarray(scores * self.sides.scale(rows))

    def exact_scores_each(self, rows: Sequence[Indices], Y: Floats) -> list[Floats]:
        """``exact_scores`` of some rows under the first y, of some under the second, and so on; ``Y`` is (k, dimension)."""
        counts = [len(some) for some in rows]
        if len(rows) < 2 or not is_dense(self.points) or sum(counts) * self.dimension > AT_ONCE:
            return [self.exact_scores(some, y) for some, y in zip(rows, Y, strict=True)]
        together = self.exact_scores(np.concatenate(rows), np.repeat(Y, counts, axis=0))
        return np.split(together, np.cumsum(counts)[:-1])

    def column(self, row: int) -> Floats:
        """The signed unit column (dimension,) of one row, in float64."""
        wide: Floats = dense(self.points[row : row + 1])[0]
        if self.intercept:
            wide = np.append(wide, 1.0)
        length = self.sides.length
        if length is None:
            length = hypot(self.norm[row], 1.0) if self.intercept else float(self.norm[row])
        wide *= self.label[row] / length if length > 0 else 0.0
        return wide

    def columns(self, rows: Indices) -> Floats:
        """Signed unit columns (r, dimension) of the given rows, one a row, in float64."""
        wide = dense(self.points[rows])
        if self.intercept:
            wide = np.hstack([wide, np.ones((len(rows), 1))])
        wide *= self.sides.scale(rows)[:, None]
        return wide

    def combine(self, weights: Floats, rows: Indices) -> Floats:
        """sum_j weights_j a_j (dimension,) over the given rows, in float64."""
        if is_dense(self.points):
            return np.asarray(weights @ self.columns(rows))
        factors = weights * self.sides.scale(rows)
        total = combine_rows(factors, self.points[rows])
        return np.asarray(np.append(total, factors.sum()) if self.intercept else total, np.float64)


def exact_scores_of(blocks: Sequence[Block], rows: Indices, y: Floats) -> Floats:
    """``exact_scores`` of some rows, counted from the first of consecutive blocks on."""
    if len(blocks) == 1:
        return blocks[0].exact_scores(rows, y)
    first = np.cumsum([0, *(block.size for block in blocks)])
    place, scores = np.searchsorted(first, rows, "right") - 1, np.empty(len(rows))
    for i in np.unique(place).tolist():
        scores[place == i] = blocks[i].exact_scores(rows[place == i] - first[i], y)
    return scores


class Columns(Struct, frozen=True, eq=False):
    """Some columns a_j = scale_j times the stored point. Nothing is rounded: factors are float64."""

    index: Indices  # (c,) indices of the points
    points: Tile  # (c, dimension) one a row, C order or CSR; the intercept, if any, is a feature like the others
    scale: Floats  # (c,) l_j / |x_j|, 0 for a zero point

    @classmethod
    def none(cls, dimension: int, dtype: np.dtype[Any] | type = np.float64) -> Columns:
        points: Array = np.empty((0, dimension), dtype)
        return cls(np.empty(0, np.int64), points, np.empty(0))

    @classmethod
    def of(cls, block: Block, rows: Indices, unit: bool = True) -> Columns:
        """Some rows of a block, ascending; float64 where float32 products could overflow or underflow. They are copied, but for
        all of a block that stays. With ``unit`` false factors are labels only: what a kernel takes are the points as stored.
        """
        points, dtype = block.points, np.dtype(np.float32 if block.single else np.float64)
        if not (block.stays and len(rows) == block.size and points.dtype == dtype):
            points = copy_rows(points, rows, dtype)
        if block.intercept:
            points = with_ones(points)
        return cls(block.start + rows, points, block.sides.scale(rows) if unit else block.label[rows].astype(np.float64))

    @classmethod
    def concatenate(cls, parts: list[Columns], most: int = 0) -> Columns:
        """All of some columns, in the order given; at least one part. Empties the list: who holds no part elsewhere has memory
        for all of them once, and not twice. Behind them is room for as many as make ``most``, and others join there later.
        """
        some = [part for part in parts if not is_dense(part.points)] or list(parts)  # a dense one among sparse ones is ``none``
        parts.clear()
        if len(some) == 1:
            return some[0]
        index, scale = np.concatenate([part.index for part in some]), np.concatenate([part.scale for part in some])
        points = [part.points for part in some]
        some.clear()
        return cls(index, take_together(points, most), scale)

    @classmethod
    def pick(cls, parts: list[tuple[Columns, Indices]]) -> Columns:
        """Some rows of each part, in the order given: there is no copy of them beside."""
        index, scale = (
            np.concatenate([values[rows] for values, rows in each])
            for each in ([(part.index, rows) for part, rows in parts], [(part.scale, rows) for part, rows in parts])
        )
        return cls(index, pick_together([(part.points, rows) for part, rows in parts]), scale)

    def take(self, rows: Indices | NDArray[np.bool_]) -> Columns:
        return Columns(self.index[rows], copy_rows(self.points, rows), self.scale[rows])

    @property
    def nbytes(self) -> int:
        return nbytes(self.points) + self.index.nbytes + self.scale.nbytes

    def unit(self) -> Floats:
        """Signed unit columns (c, dimension) in float64, one a row."""
        if not is_dense(self.points):
            return np.asarray(dense(self.points) * self.scale[:, None])
        return np.asarray(self.points * self.scale[:, None], np.float64)

    def multiply_by(self, factors: Floats) -> Tile:
        """Signed unit columns times factors (c,) in float64, one a row, sparse if they are stored so."""
        if not is_dense(self.points):
            return times_rows(self.points, self.scale * factors)
        return np.asarray(self.unit() * factors[:, None])

    def largest(self) -> Floats:
        """The greatest magnitude (c,) in each signed unit column."""
        return largest(self.multiply_by(np.ones(len(self))))

    def combine(self, weights: Floats) -> Floats:
        """sum_j weights_j a_j (dimension,), in float64."""
        if not is_dense(self.points):
            return combine_rows(weights * self.scale, self.points)
        return np.asarray(weights @ self.unit())

    def __len__(self) -> int:
        return len(self.index)
