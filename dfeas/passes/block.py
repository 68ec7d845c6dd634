"""A block: consecutive points with their labels and norms, seen as signed unit columns.

Row j of ``points`` is point x_j. The column of the mathematics is a_j = l_j x_j / |x_j|; it is never stored.
With ``intercept`` every point has one more feature, equal to 1, which is never stored either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Array = NDArray[np.float32] | NDArray[np.float64]
Indices = NDArray[np.int64]

TILE_BYTES = 4 << 20
"""A scan works on tiles of this size: they stay in cache between the two products, and cost few Python calls."""

# Single precision neither overflows nor underflows in a product with entries of at most 1 for norms in this range.
_SINGLE_NORMS = (1e-25, 1e25)


def norms(points: Array) -> Floats:
    """Euclidean norms (b,) in float64 of points (b, m); overflow gives inf and underflow 0, without a warning."""
    wide = points.astype(np.float64, copy=False)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", wide, wide)))


def in_precision(array: Array, single: bool) -> Array:
    """The array in float32 or float64, not copied when it is so already."""
    return array.astype(np.float32, copy=False) if single else array.astype(np.float64, copy=False)


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive points of a dataset.

    ``points`` may be a view of a buffer that the reader uses again: a scan must not keep it.
    """

    start: int  # index of the first point in the dataset
    points: Array  # (b, m) float32 or float64, C order
    label: Floats  # (b,) -1.0 or +1.0
    norm: Floats  # (b,) Euclidean norms of the stored points, without the intercept
    intercept: bool = False

    @property
    def dimension(self) -> int:
        """Length of a column: m, or m + 1 with the intercept."""
        return int(self.points.shape[1]) + self.intercept

    @property
    def size(self) -> int:
        """Number of points."""
        return int(self.points.shape[0])

    def scale(self) -> Floats:
        """Factors (b,) l_j / |x_j| that turn points into signed unit columns; 0 for a zero point."""
        norm = np.hypot(self.norm, 1.0) if self.intercept else self.norm
        if norm.min(initial=1.0) > 0:
            return np.asarray(self.label / norm)
        return np.divide(self.label, norm, out=np.zeros(self.size), where=norm > 0)

    def single(self) -> bool:
        """Whether products of these points may be formed in float32 without leaving its range."""
        if self.points.dtype != np.float32:
            return False
        least, greatest = _SINGLE_NORMS
        return bool(self.norm.min(initial=least) >= least and self.norm.max(initial=greatest) <= greatest)

    def tiles(self) -> Iterator[slice]:
        """Runs of rows of equal length, of about ``TILE_BYTES``."""
        count = max(1, min(self.size, round(self.points.nbytes / TILE_BYTES)))
        for i in range(count):
            yield slice(self.size * i // count, self.size * (i + 1) // count)

    def exact_scores(self, rows: Indices, scale: Floats, y: Floats) -> Floats:
        """Scores (r,) a_j'y in float64, each by one fixed order of summation: the same bits in any partition.

        ``rows`` are rows of this block, ``scale`` is ``scale()``, ``y`` has length ``dimension``.
        """
        m = self.points.shape[1]
        scores = (self.points[rows].astype(np.float64) * y[:m]).sum(axis=1)
        if self.intercept:
            scores += y[m]
        return np.asarray(scores * scale[rows])

    def columns(self, rows: Indices, scale: Floats) -> Floats:
        """Signed unit columns (r, dimension) of the given rows, one a row, in float64."""
        wide = self.points[rows].astype(np.float64)
        if self.intercept:
            wide = np.hstack([wide, np.ones((len(rows), 1))])
        wide *= scale[rows, None]
        return wide
