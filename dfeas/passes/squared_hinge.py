"""Squared hinge: for several directions the loss of a soft margin, its gradient, and its curvature as a matrix or along a
vector.

For direction y_i with costs c_j of its problem, and z_j = max(0, 1 - l_j x_j'y_i) of the points as stored: loss_i = sum_j c_j
z_j^2. All sums are in float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfeas.passes.block import Block, Floats, Indices
from dfeas.passes.counted import Counted
from dfeas.passes.seen import Directions, Seen


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
        directions, C = Directions.of(self.Y, self.counted), self.counted.C
        for run in directions.runs(block):
            seen = Seen.of(block, run, directions)
            short = np.maximum(seen.slack, 0.0)
            found.loss[:] += C * seen.sums(short * short)
            found.support[:] += seen.support()
            tested, wrong = seen.tested()
            found.tested[:] += tested
            found.wrong[:] += wrong
            if self.matrix:
                seen.add_curvature(found.curvature)
            elif self.along is not None:
                active = seen.amounts(short > 0, near)
                seen.add_pull(found.curvature, active * seen.along(self.along) * seen.label)  # the label twice: none
            amount = seen.amounts(short, near)
            found.total[:] += amount.sum(axis=1)
            seen.add_pull(found.pull, amount)
        found.total[:] *= C[:near]
        found.pull[:] *= C[:near, None]
        if found.curvature.size:
            found.curvature[:] = (found.curvature.T * C[:near]).T
        return found

    def merge(self, first: SquaredHingeAnswer, second: SquaredHingeAnswer) -> SquaredHingeAnswer:
        """Add."""
        return SquaredHingeAnswer(*(getattr(first, name) + getattr(second, name) for name in first.__slots__))

    def finish(self, partial: SquaredHingeAnswer) -> SquaredHingeAnswer:
        """All sums."""
        return partial
