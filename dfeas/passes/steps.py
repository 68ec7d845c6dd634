"""Passes in the order of the points: perceptron corrections, and subgradient steps for the hinge loss."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from dfeas.linalg.blas import beat
from dfeas.linalg.points import (
    CONVERTED,
    Array,
    Floats,
    Indices,
    Tile,
    add_row,
    combine_rows,
    product,
    row_dot,
    tile,
    times_rows,
    with_ones,
)
from dfeas.passes.block import Block, in_precision, rounding
from dfeas.passes.protocol import Plain
from dfeas.passes.slacks import SampleCosts, products_along

WINDOW = 32
"""Points that are scored at once after a correction; the window doubles while there is none."""


@dataclass(frozen=True, slots=True)
class OnlineCarry:
    """y after some blocks, and which of their points were corrected."""

    y: Floats  # (dimension,)
    low: float  # min_j a_j'y over the points before the first correction
    corrected: tuple[Indices, ...]  # points that were corrected, ascending


@dataclass(frozen=True, slots=True)
class OnlineAnswer:
    """y after all points, and which of them were corrected."""

    y: Floats  # (dimension,)
    low: float  # min_j a_j'y over all points, if none was corrected
    corrected: Indices  # (c,) points that were corrected, ascending, each once


@dataclass(frozen=True, slots=True)
class Online:
    """y <- y + a_j for each point in order with a_j'y <= 0."""

    y: Floats  # (dimension,)

    def start(self) -> OnlineCarry:
        return OnlineCarry(self.y, np.inf, ())

    def step(self, carry: OnlineCarry, block: Block) -> OnlineCarry:
        """One block: fast scores find the first mistake of a window, scores in float64 by a fixed order decide."""
        single = block.single
        factor: Array = block.sides.narrow if single else block.sides.scale()
        y, low = carry.y.copy(), carry.low
        narrow, slack = in_precision(y, single), rounding(block.terms, single) * sqrt(y @ y)
        corrected: list[int] = []
        first, size = 0, WINDOW
        most = max(WINDOW, CONVERTED // block.points.shape[1])
        with np.errstate(invalid="ignore"):  # OpenBLAS computes on lanes that it then throws away
            while first < block.size:
                rows = slice(first, min(first + size, block.size))
                scores = _scores(block.tile(rows, single), factor[rows], narrow, block.intercept)
                mistake = _first_mistake(block, first, scores, y, slack)
                if mistake < 0:
                    if not corrected and not carry.corrected:
                        low = min(low, _least(block, first, scores, y, slack))
                    first, size = rows.stop, min(most, 2 * size)
                    continue
                y += block.column(mistake)
                corrected.append(block.start + mistake)
                narrow, slack = in_precision(y, single), rounding(block.terms, single) * sqrt(y @ y)
                # about one mistake is expected in twice the last gap
                size = max(WINDOW, min(size, 2 * (mistake + 1 - first)))
                first = mistake + 1
        pieces = (np.array(corrected, np.int64),) if corrected else ()
        return OnlineCarry(y, low, carry.corrected + pieces)

    def finish(self, carry: OnlineCarry) -> OnlineAnswer:
        corrected = np.concatenate(carry.corrected) if carry.corrected else np.empty(0, np.int64)
        return OnlineAnswer(carry.y, carry.low, corrected)


def _scores(points: Tile, factor: Array, y: Array, intercept: bool) -> Array:
    m = points.shape[1]
    scores = product(points, y[:m])
    if intercept:
        scores += y[m]
    scores *= factor
    return scores


def _first_mistake(block: Block, first: int, scores: Array, y: Floats, slack: float) -> int:
    """The first row of a window with a_j'y <= 0, or -1."""
    for position in np.flatnonzero(scores <= slack):
        row = first + int(position)
        if scores[position] < -slack or block.exact_scores(np.array([row]), y)[0] <= 0:
            return row
    return -1


def _least(block: Block, first: int, scores: Array, y: Floats, slack: float) -> float:
    lowest = first + np.flatnonzero(scores <= scores.min() + 2 * slack)
    return float(block.exact_scores(lowest, y).min())


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
class Stochastic(Plain[StochasticCarry]):
    """One read, from where the one before ended. One problem."""

    carry: StochasticCarry
    costs: SampleCosts
    n: int

    def start(self) -> StochasticCarry:
        carry = self.carry
        return StochasticCarry(carry.pull, carry.total, carry.seen, np.zeros_like(carry.mean))

    def step(self, carry: StochasticCarry, block: Block) -> StochasticCarry:
        """One block: w <- (1 - b/T) w + (n/T) sum c_j l_j x_j over those of b points that are short of the margin at w."""
        pull, total, seen, mean = carry.pull.copy(), carry.total, carry.seen, carry.mean.copy()
        m = block.points.shape[1]
        for rows in block.tiles():
            points, label = block.tile(rows, False), block.label[rows].astype(np.float64)
            cost = self.costs.matrix(np.arange(block.start + rows.start, block.start + rows.stop), label)[:, 0]
            for first in range(0, len(label), BATCH):
                some = slice(first, first + BATCH)
                batch, sign = tile(points, some, False), label[some]
                scale = self.n / seen if seen else 0.0
                score = sign * products_along(batch, pull[:, None], block.intercept)[0]
                short = cost[some] * (score * scale < 1)
                pull[:m] += combine_rows(short * sign, batch)
                pull[m:] += short @ sign
                total += float(short.sum())
                seen += len(sign)
                mean += pull * (len(sign) * self.n / seen)
        return StochasticCarry(pull, total, seen, mean)


@dataclass(frozen=True, slots=True)
class FixedSteps(Stochastic):
    """The same by steps of one length for single points: w = alpha times the pull, whose terms fade, and so does ``total``."""

    alpha: float

    def step(self, carry: StochasticCarry, block: Block) -> StochasticCarry:
        """One block: w <- (1 - alpha / (n C)) w + alpha c_j / C l_j x_j, the last term where the point was short at w."""
        pull, total, mean = carry.pull.copy(), carry.total, carry.mean.copy()
        kept = 1 - self.alpha / (self.n * float(self.costs.C[0]))
        for rows in block.tiles():
            beat()
            points, label = block.tile(rows, False), block.label[rows].astype(np.float64)
            share = self.costs.weights(np.arange(block.start + rows.start, block.start + rows.stop), label)
            columns = times_rows(with_ones(points) if block.intercept else points, label * share)
            for j, own in enumerate(share.tolist()):
                short = self.alpha * row_dot(columns, j, pull) < own
                pull *= kept
                total *= kept
                if short:
                    add_row(pull, columns, j)
                    total += own
                mean += pull
        return StochasticCarry(pull, total, carry.seen + block.size, mean)

    def finish(self, partial: StochasticCarry) -> StochasticCarry:
        return StochasticCarry(partial.pull, partial.total, partial.seen, self.alpha * partial.mean)
