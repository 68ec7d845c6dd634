"""Stochastic: subgradient steps for the hinge loss in the order of the points, a few points a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfeas.passes.block import Block, Floats
from dfeas.passes.counted import Counted
from dfeas.passes.points import dense

BATCH = 64
"""Points of a step."""


@dataclass(frozen=True, slots=True)
class StochasticCarry:
    """After T points, w = (n / T) sum over the points seen of c_j l_j x_j, where they were short of the margin."""

    pull: Floats  # (m,) that sum
    total: float  # sum of c_j over the same points
    seen: int  # T
    mean: Floats  # (m,) sum of w after each point of this read


@dataclass(frozen=True, slots=True)
class Stochastic:
    """One read, from where the one before ended. One problem."""

    carry: StochasticCarry
    counted: Counted
    n: int

    def start(self) -> StochasticCarry:
        """Where the read before ended."""
        carry = self.carry
        return StochasticCarry(carry.pull, carry.total, carry.seen, np.zeros_like(carry.mean))

    def step(self, carry: StochasticCarry, block: Block) -> StochasticCarry:
        """One block: w <- (1 - b/T) w + (n/T) sum c_j l_j x_j over those of b points that are short of the margin at w."""
        pull, total, seen, mean = carry.pull.copy(), carry.total, carry.seen, carry.mean.copy()
        for tile in block.tiles():
            points = dense(block.points[tile])
            if block.intercept:
                points = np.hstack([points, np.ones((len(points), 1))])
            points *= block.label[tile][:, None]
            index = np.arange(block.start + tile.start, block.start + tile.stop)
            cost = self.counted.costs(index, block.label[tile])[:, 0]
            for first in range(0, len(points), BATCH):
                rows = points[first : first + BATCH]
                scale = self.n / seen if seen else 0.0
                short = cost[first : first + BATCH] * (rows @ pull * scale < 1)
                pull += short @ rows
                total += float(short.sum())
                seen += len(rows)
                mean += pull * (len(rows) * self.n / seen)
        return StochasticCarry(pull, total, seen, mean)

    def finish(self, carry: StochasticCarry) -> StochasticCarry:
        """The last carry."""
        return carry
