"""Signed points in memory, b_j = l_j x_j as rows in float64, with the products that solvers need; cut alike on any machine."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dfeas.blas import side_by_side
from dfeas.passes import Columns
from dfeas.workingset.matrix import Floats, Indices

PIECES = 4
"""Cuts of what is done side by side."""
WORTH = 1 << 19
"""Entries below which one thread is as fast as several."""


@dataclass(frozen=True)
class Rows:
    """r points of m features."""

    values: Floats  # (r, m) C order

    @classmethod
    def of(cls, columns: Columns) -> Rows:
        """Of points whose factors are their labels."""
        return cls(columns.unit())

    def _cuts(self, count: int) -> list[slice]:
        pieces = PIECES if count * self.values.shape[1] >= WORTH else 1
        return [slice(first, stop) for first, stop in pairwise(count * i // pieces for i in range(pieces + 1))]

    def scores(self, w: Floats) -> Floats:
        """(r,) b_j'w, or (r, k) of w (m, k)."""
        found, cuts = np.empty((len(self.values), *w.shape[1:])), self._cuts(len(self.values))

        def multiply(i: int) -> None:
            found[cuts[i]] = self.values[cuts[i]] @ w

        side_by_side(multiply, len(cuts))
        return found

    def combine(self, x: Floats) -> Floats:
        """(m,) sum_j x_j b_j, or (k, m) of x (r, k)."""
        cuts = self._cuts(len(self.values))
        return np.asarray(np.sum(side_by_side(lambda i: x[cuts[i]].T @ self.values[cuts[i]], len(cuts)), axis=0))

    def part(self, rows: Indices) -> Rows:
        """Some of them."""
        return Rows(self.values[rows])

    def some(self, rows: Indices) -> Floats:
        """A copy of some of them."""
        return self.values[rows]

    def gram(self, rows: Indices, cost: Floats) -> Floats:
        """(m, m) sum_j c_j b_j b_j' over some rows, with costs (len(rows),)."""
        cuts = self._cuts(len(rows))

        def multiply(i: int) -> Floats:
            part = self.values[rows[cuts[i]]]
            return part.T @ (part * cost[cuts[i], None])

        return np.asarray(np.sum(side_by_side(multiply, len(cuts)), axis=0))
