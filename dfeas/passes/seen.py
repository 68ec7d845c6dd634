"""A run of points as a soft margin sees them: slack of each for each direction, in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.passes.block import Block, Floats, Indices
from dfeas.passes.counted import Counted
from dfeas.passes.points import dense


@dataclass(frozen=True, slots=True)
class Seen:
    """b points seen from k directions."""

    points: Floats  # (b, m) with the intercept
    label: NDArray[Any]  # (b,) -1 or +1
    weight: Floats  # (b,) of class times point
    out: NDArray[np.bool_] | None  # (b, k) left out by the problem of the direction; None for none
    slack: Floats  # (b, k) 1 - l_j x_j'y_i
    C: Floats  # (k,)
    whole: NDArray[np.bool_]  # (k,) whether the problem leaves out nothing: it is tested on all points

    @classmethod
    def of(cls, block: Block, tile: slice, Y: Floats, counted: Counted) -> Seen:
        """A tile of a block, seen from directions Y (m, k) of k problems."""
        points, label = dense(block.points[tile]), block.label[tile]
        if block.intercept:
            points = np.hstack([points, np.ones((len(points), 1))])
        index = np.arange(block.start + tile.start, block.start + tile.stop)
        slack = points @ Y
        slack *= -label[:, None].astype(np.float64)
        slack += 1
        return cls(points, label, counted.weights(index, label), counted.out(index), slack, counted.C, counted.left_out < 0)

    def add(self, loss: Floats, support: Indices, tested: Floats, wrong: Floats, losses: Floats) -> None:
        """Add what it has of all k problems; ``losses`` (b, k) of the points are changed."""
        active, missed, weight = self.slack >= 0, self.slack >= 1, self.weight
        if self.out is None:
            tested += weight.sum()
        else:
            losses[self.out] = 0.0
            active &= ~self.out
            tests = self.out | self.whole
            tested += weight @ tests
            missed &= tests
        if not weight.all():
            active &= (weight > 0)[:, None]
        loss += self.C * (weight @ losses)
        support += active.sum(axis=0)
        wrong += weight @ missed

    def distance(self, near: int, length: Floats) -> Floats:
        """|1 - s_j| / |x_j| (b,) for the nearest of the first directions for which the point counts.

        It is inf where it counts for none, and for a zero point.
        """
        away = np.abs(self.slack[:, :near])
        if self.out is not None:
            away[self.out[:, :near]] = np.inf
        with np.errstate(divide="ignore", over="ignore"):
            found = away.min(axis=1) / length
        return np.where((length > 0) & (self.weight > 0), found, np.inf)
