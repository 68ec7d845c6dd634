"""Exponents of kernels of a distance, and points prepared for tiles of a kernel.

    rbf  gamma |x - z|^2,   exponential  gamma |x - z|

Both come from one product of matrices, |x|^2 + |z|^2 - 2 x'z, for points as they are seen from the middle of some of
them: nothing else of what is far from the origin cancels. What still does is known from the lengths. Where it would show in the
kernel, for points that are near each other beside their distance from the middle, the exponent is the sum of differences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dfeas.linalg import csr
from dfeas.linalg.blas import cut_evenly
from dfeas.linalg.csr import csr_array
from dfeas.linalg.points import Array, Floats, Points, is_dense, longest, take_rows

SHOWN = 1e-12
"""An error of a kernel value that is noticed."""
TILE_ROWS = 512
"""Of both sides of a tile: it is 1 MB in float32, and stays in cache until it has been used."""


@dataclass(frozen=True)
class Prepared:
    """Points on one side of a tile."""

    points: Points  # (b, m) as they are
    features: Points  # (b, k) whose products give the kernel; the points themselves for a kernel that is none of products
    sizes: Floats | None = None  # (b,) scaled distances from the middle: rounding errors of exponents are shares of these


def cuts(rows: int, most: int = TILE_ROWS) -> list[slice]:
    """Rows of tiles of about equal length, at most so many."""
    return cut_evenly(rows, -(-rows // most))


@dataclass(frozen=True)
class Distance:
    """What a kernel is exp of, but for the sign."""

    name: str
    gamma: float

    @property
    def scale(self) -> float:
        """Of differences: its square need not be a number of float64."""
        return float(np.sqrt(self.gamma)) if self.name == "rbf" else self.gamma

    def middle(self, points: Points) -> Floats | None:
        """The middle (m,) of some points in every feature, whether one is far from all others or not; None for sparse ones, and
        where it is so near to the origin that it makes no difference.
        """
        if not is_dense(points) or not len(points):
            return None
        some = np.sort(points[:: -(-len(points) // 64)], axis=0)  # points whose middle is taken
        middle = np.asarray(some[len(some) // 2], np.float64)
        with np.errstate(over="ignore"):
            off = self._off(2 * np.sqrt(squares(self.scale * middle[None])), len(middle))
        return middle if off.item() > SHOWN / 4 else None

    def prepare(self, points: Points, single: bool, middle: Floats | None) -> tuple[Prepared, Prepared]:
        """Points (b, m) for the left and for the right of ``exponents``, in float32 or float64, seen from the middle."""
        dtype: Any = np.float32 if single else np.float64
        with np.errstate(over="ignore", invalid="ignore"):
            ours, theirs, square = self._features(points, dtype, middle)
            sizes = np.sqrt(square)
        return Prepared(points, ours, sizes), Prepared(points, theirs, sizes)

    def _features(self, points: Points, dtype: Any, middle: Floats | None) -> tuple[Points, Points, Floats]:
        """(2 s x, -s |x|^2, 1), (x, 1, -s |x|^2) and s |x|^2, s the square of the scale: where it overflows so do exponents."""
        scale = self.scale * self.scale
        if not is_dense(points):
            wide = csr.astype(points, np.float64)
            square, one = scale * squares(wide), np.ones(points.shape[0])
            left = csr.with_columns(csr.with_data(wide, 2 * scale * wide.data), np.column_stack([-square, one]))
            right = csr.with_columns(wide, np.column_stack([one, -square]))
            return csr.astype(left, dtype), csr.astype(right, dtype), square
        m = points.shape[1]
        ours, theirs = np.empty((2, len(points), m + 2), dtype)  # filled in place: copies take longer than the sums
        if middle is None:
            theirs[:, :m] = shifted = points
        else:
            shifted = np.subtract(points, middle, out=theirs[:, :m], dtype=np.float64)
        square = scale * squares(shifted)
        np.multiply(shifted, 2 * scale, out=ours[:, :m], dtype=np.float64, casting="same_kind")
        ours[:, m], ours[:, m + 1] = -square, 1
        theirs[:, m], theirs[:, m + 1] = 1, -square
        return ours, theirs, square

    def exponents(self, left: Prepared, right: Prepared) -> Array:
        """Those (b, c) of prepared points, with a minus."""
        with np.errstate(over="ignore", invalid="ignore"):
            exponent: Array = inner(left.features, right.features)
            nearest = float(exponent.max(initial=-np.inf))
            if not nearest <= 0:
                nearest = float(np.minimum(exponent, 0, out=exponent).max())
            if self.name == "exponential":
                np.sqrt(np.negative(exponent, out=exponent), out=exponent)
                np.negative(exponent, out=exponent)
                nearest = -math.sqrt(-nearest)
        if exponent.dtype == np.float64:
            self._mend(exponent, left, right, nearest)
        return exponent

    def _mend(self, exponent: Array, left: Prepared, right: Prepared, nearest: float) -> None:
        """Exponents, all up to ``nearest``, that rounding may have changed to any effect, by differences."""
        ours, theirs = left.sizes, right.sizes
        assert ours is not None, "exponents of sums have sizes"
        assert theirs is not None, "exponents of sums have sizes"
        terms = longest(left.points)
        limit = self._limits(ours, theirs.max(initial=0.0), terms)
        most = limit.max(initial=0.0)
        if most == 0 or nearest <= -most:
            return
        i, j = np.divmod(np.flatnonzero(~(exponent <= -most)), exponent.shape[1])
        unsure = ~(exponent[i, j] <= -self._limits(ours[i], theirs[j], terms))
        i, j = i[unsure], j[unsure]
        size = max(1, (1 << 18) // max(1, longest(left.points) + longest(right.points)))  # entries of differences at a time
        for first in range(0, len(i), size):
            a, b = i[first : first + size], j[first : first + size]
            exponent[a, b] = -self._pair_exponents(take_rows(left.points, a), take_rows(right.points, b))

    def _limits(self, ours: Floats, theirs: Floats | float, terms: int) -> Floats:
        """Exponents (r,) from which on rounding errors in sums of terms of such sizes do not show; 0 where they never do."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            off = self._off(ours + theirs, terms)
            error = np.sqrt(off) if self.name == "exponential" else off  # at most
            limit = np.where(error > SHOWN, np.log(error / SHOWN) + 2 * error, 0)
            if self.name == "exponential":
                limit = np.minimum(limit, off / SHOWN)  # a root is off by off / root
        return np.where(np.isnan(off), np.inf, limit)

    def _off(self, sizes: Floats, terms: int) -> Floats:
        """Rounding errors (r,) in sums of terms: those of a product add up like a random walk."""
        return np.asarray((8 + np.sqrt(terms)) * 2.0**-53 * sizes**2)

    def _pair_exponents(self, points: Points, others: Points) -> Floats:
        """Exponents (r,) of pairs of points (r, m), from their differences."""
        with np.errstate(over="ignore"):
            if is_dense(points) and is_dense(others):
                apart = np.subtract(points, others, dtype=np.float64) * self.scale
                square = squares(apart)
            else:
                assert not is_dense(points), "points are all dense or all sparse"
                assert not is_dense(others), "points are all dense or all sparse"
                between: csr_array = csr.astype(points, np.float64) - csr.astype(others, np.float64)
                scaled = np.asarray(between.data) * self.scale
                square = csr.row_sums(between, scaled * scaled)
            return square if self.name == "rbf" else np.sqrt(square)


def inner(points: Points, others: Points) -> Array:
    """Products (b, c) of all rows of both, which are all dense or all sparse."""
    if not is_dense(points) and not is_dense(others):
        return csr.products(points, others)
    return np.asarray(points @ others.T)


def squares(points: Points) -> Floats:
    """|x|^2 (b,), summed in float64."""
    if is_dense(points):
        return np.asarray(np.einsum("ij,ij->i", points, points, dtype=np.float64))
    wide = points.data.astype(np.float64, copy=False)
    return csr.row_sums(points, wide * wide)
