"""Multipliers: the dual variables of a soft margin, and what they are worth, from a hyperplane and those of few points.

At y, with s_j = l_j x_j'y of the points as stored and costs c_j: alpha_j is c_j where s_j < 1 and 0 elsewhere (hinge), but for
points whose alpha_j is given; or 2 c_j max(0, 1 - s_j) (squared hinge). Everything is in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfeas.passes.block import Block, Floats, Indices
from dfeas.passes.counted import Counted
from dfeas.passes.seen import Directions, Seen


@dataclass(frozen=True, slots=True)
class MultipliersAnswer:
    """Of some points (partial and answer alike)."""

    pieces: tuple[tuple[int, Floats], ...]  # runs of points in their order: the first one, and alpha (b,)
    total: float  # sum of alpha_j; of the squared hinge less alpha_j^2 / (4 c_j)
    pull: Floats  # (m,) sum of alpha_j l_j x_j
    support: int  # points with alpha_j > 0
    full: int  # points with alpha_j = c_j > 0, of the hinge


@dataclass(frozen=True, slots=True)
class Multipliers:
    """Of one problem."""

    at: Floats | None  # (m,) y; None: all are 0
    counted: Counted  # of one problem
    squared: bool
    index: Indices  # (r,) ascending
    multiplier: Floats  # (r,) alpha of these points

    def scan(self, block: Block) -> MultipliersAnswer:
        """Those of one block."""
        alpha, pull, total, full = np.zeros(block.size), np.zeros((1, block.dimension)), 0.0, 0
        if self.at is None:
            return MultipliersAnswer(((block.start, alpha),), total, pull[0], 0, 0)
        directions, (C,) = Directions.of(self.at[:, None], self.counted), self.counted.C
        for run in directions.runs(block):
            seen = Seen.of(block, run, directions)
            short = np.maximum(seen.slack, 0.0)
            weight = seen.amounts(np.ones_like(short), 1)[0]
            cost = C * weight
            if self.squared:  # summed before they are multiplied by 2 C, as the method does it: the same terms cancel
                amount, factor = weight * short[0], 2 * C
                here = factor * amount
                total += float(cost @ (short[0] * (2 - short[0])))
            else:
                here = np.where(short[0] > 0, cost, 0.0)
                given = slice(*np.searchsorted(self.index, [block.start + run.start, block.start + run.stop]))
                here[self.index[given] - block.start - run.start] = self.multiplier[given]
                total += float(here.sum())
                full += int(((here == cost) & (cost > 0)).sum())
                amount, factor = here, 1.0
            alpha[run] = here
            part = np.zeros_like(pull)
            seen.add_pull(part, amount[None].copy())
            pull += factor * part
        return MultipliersAnswer(((block.start, alpha),), total, pull[0], int((alpha > 0).sum()), full)

    def merge(self, first: MultipliersAnswer, second: MultipliersAnswer) -> MultipliersAnswer:
        """Both, in the order of the points."""
        return MultipliersAnswer(
            tuple(sorted(first.pieces + second.pieces, key=lambda piece: piece[0])),
            first.total + second.total,
            first.pull + second.pull,
            first.support + second.support,
            first.full + second.full,
        )

    def finish(self, partial: MultipliersAnswer) -> MultipliersAnswer:
        """All of them."""
        return partial
