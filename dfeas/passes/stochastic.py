"""Stochastic: subgradient steps for the hinge loss in the order of the points, a few points a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfeas.passes.block import Block, Floats
from dfeas.passes.counted import Counted
from dfeas.passes.points import combined, tile
from dfeas.passes.seen import seen_along

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
        m = block.points.shape[1]
        for rows in block.tiles():
            points, label = block.tile(rows, False), block.label[rows].astype(np.float64)
            cost = self.counted.costs(np.arange(block.start + rows.start, block.start + rows.stop), label)[:, 0]
            for first in range(0, len(label), BATCH):
                some = slice(first, first + BATCH)
                batch, sign = tile(points, some, False), label[some]
                scale = self.n / seen if seen else 0.0
                score = sign * seen_along(batch, pull[:, None], block.intercept)[0]
                short = cost[some] * (score * scale < 1)
                pull[:m] += combined(short * sign, batch)
                pull[m:] += short @ sign
                total += float(short.sum())
                seen += len(sign)
                mean += pull * (len(sign) * self.n / seen)
        return StochasticCarry(pull, total, seen, mean)

    def finish(self, carry: StochasticCarry) -> StochasticCarry:
        """The last carry."""
        return carry
