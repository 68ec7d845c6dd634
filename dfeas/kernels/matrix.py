"""Signed Gram matrices of points in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import BadInputError
from dfeas.kernels.distances import Floats
from dfeas.kernels.kernel import Kernel
from dfeas.kernels.nearest import require_definite
from dfeas.kernels.tiles import cuts
from dfeas.passes.points import Points, is_dense, row_slice

SYMMETRIC = 1e-6
"""K(x, z) and K(z, x) differ by no more."""


@dataclass
class Matrix:
    """The Gram matrix of the points that were asked for last, without signs: classes begin with the same points."""

    kernel: Kernel
    _points: Points | None = None
    _values: Floats | None = None

    def signed(self, points: Points, labels: Floats) -> Floats:
        """G (s, s) of points (s, m) in float64, K(x, x) = 1. Raises BadInputError for a function that is no kernel."""
        if self._values is None or self._points is None or not _equal(self._points, points):
            self._values = None  # before there is another one
            self._points, self._values = points, gram(self.kernel, points)
        found = self._values * labels[:, None]
        found *= labels
        return np.asarray(found)


def _equal(points: Points, others: Points) -> bool:
    if points.shape != others.shape or points.dtype != others.dtype:
        return False
    if is_dense(points) and is_dense(others):
        return bool(np.array_equal(points, others))
    assert not is_dense(points), "points are all dense or all sparse"
    assert not is_dense(others), "points are all dense or all sparse"
    arrays = ("indptr", "indices", "data")
    return all(np.array_equal(getattr(points, name), getattr(others, name)) for name in arrays)


def gram(kernel: Kernel, points: Points) -> Floats:
    """K (s, s) of points (s, m), normalised. Raises BadInputError when a function is not symmetric or not positive definite."""
    count = points.shape[0]
    found = np.empty((count, count))
    parts = cuts(count)
    middle = kernel.middle(points)
    prepared = [kernel.prepared(row_slice(points, part), False, middle) for part in parts]
    for i, here in enumerate(parts):
        for j, there in enumerate(parts[i:], i):
            tile = kernel.tile(prepared[i][0], prepared[j][1])
            if kernel.name == "callable":
                other = tile.T if i == j else kernel.tile(prepared[j][0], prepared[i][1]).T
                _compare(tile, other)
                tile = (tile + other) / 2
            elif i == j:
                tile = (tile + tile.T) / 2
            found[here, there], found[there, here] = tile, tile.T
    if kernel.name == "callable":
        require_definite(found)
    else:
        np.fill_diagonal(found, kernel.nonzero(points))
    return found


def _compare(one: NDArray[np.floating], other: NDArray[np.floating]) -> None:
    apart = np.abs(one - other)
    if apart.max() > SYMMETRIC:
        place = np.unravel_index(int(apart.argmax()), apart.shape)
        raise BadInputError(
            f"the kernel is not symmetric: K(x, z) = {one[place]:.6g} and K(z, x) = {other[place]:.6g} for two points"
        )
