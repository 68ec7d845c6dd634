"""Squared hinge: for several directions the loss of a soft margin, its gradient, and its curvature as a matrix or along a
vector.

For direction y_i with costs c_j of its problem, and z_j = max(0, 1 - l_j x_j'y_i) of the points as stored: loss_i = sum_j c_j
z_j^2. All sums are in float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfeas.passes.block import Block, Floats, Indices
from dfeas.passes.counted import Counted
from dfeas.passes.seen import Seen


@dataclass(frozen=True, slots=True)
class SquaredHingeAnswer:
    """Sums over all points (partial and answer alike)."""

    loss: Floats  # (k,)
    support: Indices  # (k,) points with s_j <= 1 that count
    tested: Floats  # (k,) weight of the points that the problem is tested on: its fold, or all
    wrong: Floats  # (k,) weight of those with s_j <= 0
    total: Floats  # (near,) sum of c_j z_j
    pull: Floats  # (near, m) sum of c_j z_j l_j x_j
    curvature: Floats  # (near, m, m) sum of c_j x_j x_j' over points with z_j > 0, or (near, m) that times ``along``; or empty


@dataclass(frozen=True, slots=True)
class SquaredHinge:
    """Losses of all directions; gradient and curvature of the first ``near`` of them."""

    Y: Floats  # (m, k)
    counted: Counted  # of k problems
    near: int  # 0 .. k
    along: Floats | None = None  # (m, near) vectors for products with the curvature
    matrix: bool = False  # the curvature as matrices

    def scan(self, block: Block) -> SquaredHingeAnswer:
        """Sums of one block, tile by tile."""
        (m, k), near = self.Y.shape, self.near
        shape = (near, m, m) if self.matrix else (near, m) if self.along is not None else (0,)
        found = SquaredHingeAnswer(
            np.zeros(k), np.zeros(k, np.int64), np.zeros(k), np.zeros(k), np.zeros(near), np.zeros((near, m)), np.zeros(shape)
        )
        for tile in block.tiles():
            seen = Seen.of(block, tile, self.Y, self.counted)
            short = np.maximum(seen.slack, 0.0)
            seen.add(found.loss, found.support, found.tested, found.wrong, short * short)
            short = short[:, :near] * seen.weight[:, None] * self.counted.C[:near]
            if seen.out is not None:
                short[seen.out[:, :near]] = 0.0
            found.total[:] += short.sum(axis=0)
            found.pull[:] += (short * seen.label[:, None]).T @ seen.points
            for i in range(near if self.matrix else 0):
                rows = np.flatnonzero(short[:, i])
                points = seen.points[rows]
                found.curvature[i] += points.T @ (points * (self.counted.C[i] * seen.weight[rows, None]))
            if self.along is not None:
                inner = (seen.points @ self.along) * (short > 0) * seen.weight[:, None] * self.counted.C[:near]
                found.curvature[:] += inner.T @ seen.points
        return found

    def merge(self, first: SquaredHingeAnswer, second: SquaredHingeAnswer) -> SquaredHingeAnswer:
        """Add."""
        return SquaredHingeAnswer(*(getattr(first, name) + getattr(second, name) for name in first.__slots__))

    def finish(self, partial: SquaredHingeAnswer) -> SquaredHingeAnswer:
        """All sums."""
        return partial
