"""Slacks of soft margins: which points count, how far each is from its margin, and what its dual variable is worth.

Several problems ride on one read: each has its own C, and leaves out its own fold.

Problems with the same direction, such as all folds before the first step, look along it once; what a problem leaves out is in
the weights that its sums are taken with. All sums are products of matrices.

At y, with s_j = l_j x_j'y of the points as stored and costs c_j: alpha_j is c_j where s_j < 1 and 0 elsewhere (hinge), but for
points whose alpha_j is given; or 2 c_j max(0, 1 - s_j) times a factor of the class (squared hinge). Everything is in float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.linalg.blas import cut_evenly
from dfeas.linalg.points import Floats, Indices, Tile, add_combinations, combine_rows, dense, largest, moments, times
from dfeas.passes.block import Block
from dfeas.passes.protocol import Plain, SumPass

_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def fold_of(index: Indices, folds: int, seed: int) -> Indices:
    """The fold (r,) of each point, 0 .. folds - 1: by its index and the seed alone, as if drawn (splitmix64, Vigna 2015)."""
    mixed = (index.astype(np.uint64) + np.uint64(seed % 2**32 * 2**32)) * np.uint64(_GOLDEN)
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return ((mixed ^ (mixed >> np.uint64(31))) % np.uint64(folds)).astype(np.int64)


class SampleCosts(Struct, frozen=True):
    """Costs c_j of points in k problems: C times the weight of the class times the weight of the point, 0 where left out."""

    C: Floats  # (k,) > 0
    left_out: Indices  # (k,) the fold that is left out; -1: none
    negative: float = 1.0  # weight of the class -1
    positive: float = 1.0
    weight: Floats | None = None  # (n,) of points, >= 0; None: all 1
    folds: int = 1
    seed: int = 0

    def weights(self, index: Indices, label: NDArray[np.generic]) -> Floats:
        """(r,) of class times point."""
        weights = np.where(np.asarray(label) > 0, self.positive, self.negative)
        return weights if self.weight is None else weights * self.weight[index]

    def matrix(self, index: Indices, label: NDArray[np.generic]) -> Floats:
        """c_j (r, k) of the points with these indices and labels."""
        costs = np.multiply.outer(self.weights(index, label), self.C)
        out = self.out(index)
        if out is not None:
            costs[out] = 0.0
        return np.asarray(costs)

    def out(self, index: Indices) -> NDArray[np.bool_] | None:
        """Whether points (r,) are of the fold that a problem leaves out (r, k); None when no problem leaves out any."""
        if (self.left_out < 0).all():
            return None
        return np.asarray(fold_of(index, self.folds, self.seed)[:, None] == self.left_out)

    def take(self, problems: Indices) -> SampleCosts:
        """Some of the problems, in this order; one may come several times."""
        chosen = self.C[problems], self.left_out[problems]
        return SampleCosts(*chosen, self.negative, self.positive, self.weight, self.folds, self.seed)


class Directions(Struct, frozen=True):
    """Directions of k problems, equal ones once."""

    Y: Floats  # (m, u)
    which: Indices  # (k,) the column of each problem
    costs: SampleCosts  # of k problems

    @classmethod
    def of(cls, Y: Floats, costs: SampleCosts) -> Directions:
        """From directions (m, k) of k problems."""
        places: dict[bytes, int] = {}
        which = [places.setdefault(Y[:, i].tobytes(), len(places)) for i in range(Y.shape[1])]
        first = [which.index(place) for place in range(len(places))]
        return cls(np.ascontiguousarray(Y[:, first]), np.array(which, np.int64), costs)

    def runs(self, block: Block) -> Iterator[slice]:
        """The points of a block, in runs of equal length that stay in cache; none for no points."""
        size = block.size
        # 1 << 19: slacks of a run of points: they stay in cache from one operation to the next
        # 1 << 21: entries of a run in float64: they stay in cache from the first product to the last
        runs = max(1, round(8 * len(self.which) * size / (1 << 19)), round(8 * block.points.size / (1 << 21)))
        return iter(cut_evenly(size, min(size, runs)))


class Slacks(Struct, frozen=True):
    """t points; to be used before this thread looks at others."""

    directions: Directions
    points: Tile  # (t, m) float64, without the intercept
    intercept: bool
    label: Floats  # (t,) -1 or +1
    weight: Floats  # (t,) of class times point
    fold: Indices | None  # (t,) of the point; None when no problem leaves out any
    counts: Floats  # (1 or 1 + folds, t) weights with nothing left out, and without each fold
    slack: Floats  # (u, t) 1 - l_j x_j'y

    @classmethod
    def of(cls, block: Block, rows: slice, directions: Directions) -> Slacks:
        costs, index = directions.costs, np.arange(block.start + rows.start, block.start + rows.stop)
        points, label = block.tile(rows, False), block.label[rows].astype(np.float64)
        weight, fold = costs.weights(index, label), None
        counts = weight[None, :]
        if (costs.left_out >= 0).any():
            fold = fold_of(index, costs.folds, costs.seed)
            counts = np.concatenate([counts, weight * (np.arange(costs.folds)[:, None] != fold)])
        slack = products_along(points, directions.Y, block.intercept)
        slack *= -label
        slack += 1
        return cls(directions, points, block.intercept, label, weight, fold, counts, slack)

    def sums(self, values: Floats) -> Floats:
        """(k,) sum of values (u, t) times weights of the points that count in each problem."""
        return self._of_problems(values @ self.counts.T)

    def support(self) -> Indices:
        """(k,) points with l_j x_j'y <= 1 that count."""
        return self._of_problems((self.slack >= 0).astype(np.float64) @ (self.counts > 0).T).astype(np.int64)

    def weigh_errors(self) -> tuple[Floats, Floats]:
        """(k,) weight of the points that a problem is tested on, its fold or all, and (k,) of those with l_j x_j'y <= 0."""
        tests = self.counts[0] - self.counts
        tests[0] = self.counts[0]
        wrong = (self.slack >= 1).astype(np.float64) @ tests.T
        return tests.sum(axis=1)[self._place], self._of_problems(wrong)

    def amounts(self, values: Floats | NDArray[np.bool_], near: int) -> Floats:
        """(near, t) values (u, t) times weights, of the first problems."""
        amounts = self.counts[self._place[:near]]
        amounts *= values[self.directions.which[:near]]
        return amounts

    def add_pull(self, total: Floats, amount: Floats) -> None:
        """Add sum_j amount_j l_j x_j to sums (k, m), for amounts (k, t), which are changed."""
        amount *= self.label
        m = self.points.shape[1]
        if self.intercept:
            total[:, m] += amount.sum(axis=1)
        add_combinations(total[:, :m], amount, self.points)

    def add_curvature(self, total: Floats, centre: Floats | None) -> None:
        """Add sum of weights times x_j x_j' over points with slack > 0 to the matrices (near, m, m) of the first problems, of
        dense points less a centre. Problems with one direction, which differ in the fold that they leave out, share the sums of
        the folds.
        """
        which, place = self.directions.which[: len(total)], self._place[: len(total)]
        for column in range(len(self.slack)):
            problems, active = np.flatnonzero(which == column), (self.slack[column] > 0) & (self.weight > 0)
            if self.fold is None or len(problems) == 1:
                for alike in np.unique(place[problems]):
                    same = problems[place[problems] == alike]
                    rows = np.flatnonzero(active & (self.counts[alike] > 0))
                    total[same] += self._moments(rows, self.weight[rows], centre)
                continue
            for fold in range(len(self.counts) - 1):
                rows = np.flatnonzero(active & (self.fold == fold))
                total[problems[place[problems] != fold + 1]] += self._moments(rows, self.weight[rows], centre)

    def _moments(self, rows: Indices, weight: Floats, centre: Floats | None) -> Floats:
        """sum_j weight_j x_j x_j' (m, m) over some rows, with the intercept."""
        some = self.points[rows] if centre is None else self.points[rows] - centre
        square = moments(some, weight)
        if not self.intercept:
            return square
        edge = combine_rows(weight, some)[:, None]
        return np.block([[square, edge], [edge.T, weight.sum()]])

    def along(self, vectors: Floats) -> Floats:
        """(k, t) x_j'v of vectors (m, k)."""
        return products_along(self.points, vectors, self.intercept)

    def distance(self, near: int, length: Floats) -> Floats:
        """|1 - s_j| / |x_j| (t,) for the nearest of the first directions; inf for a zero point and one of no weight."""
        first = int(self.directions.which[:near].max()) + 1  # directions are in the order of the problems
        with np.errstate(divide="ignore", over="ignore"):
            distance = np.abs(self.slack[:first]).min(axis=0) / length
        return np.where((length > 0) & (self.weight > 0), distance, np.inf)

    @property
    def _place(self) -> Indices:
        """(k,) the row of ``counts`` of each problem."""
        return self.directions.costs.left_out + 1 if self.fold is not None else np.zeros_like(self.directions.which)

    def correct(self) -> None:
        """Compute slacks anew that rounding could change to any effect."""
        sizes = 1 + np.multiply.outer(np.abs(self.directions.Y).sum(axis=0), np.maximum(largest(self.points), 1.0))
        reach = (self.points.shape[1] + 2) * np.finfo(np.float64).eps * sizes
        # 2.0**30: rounding is less than one part in so many of slacks that are larger than this times it
        for u, t in np.argwhere((np.abs(self.slack) <= 2.0**30 * reach) & (self.weight > 0)).tolist():
            point, label, bias = dense(self.points[t : t + 1])[0], self.label[t], np.ones(int(self.intercept))
            y = np.append(self.directions.Y[:, u], 1.0)
            self.slack[u, t] = -label * exact_product(np.concatenate([point, bias, [-label]]), y)

    def _of_problems(self, values: Floats) -> Floats:
        """(k,) from values (u, 1 or 1 + folds)."""
        return np.asarray(values[self.directions.which, self._place])


def exact_product(x: Floats, y: Floats) -> float:
    """x'y, rounded once: each product is a sum of two numbers in float64 (Dekker 1971)."""
    split = 2.0**27 + 1
    high_x, high_y = (split * v - (split * v - v) for v in (x, y))
    product = x * y
    rest = ((high_x * high_y - product) + high_x * (y - high_y) + (x - high_x) * high_y) + (x - high_x) * (y - high_y)
    return math.fsum([*product.tolist(), *rest.tolist()])


def products_along(points: Tile, vectors: Floats, intercept: bool) -> Floats:
    """Products (k, t) of points (t, m) with vectors (m, k) or, with an intercept, (m+1, k), in float64."""
    m = points.shape[1]
    products = np.asarray(times(points, vectors[:m]), np.float64)
    if intercept:
        products += vectors[m][:, None]
    return products


class MultipliersAnswer(Struct, frozen=True):
    """Of some points (partial and answer alike)."""

    pieces: tuple[tuple[int, Floats], ...]  # runs of points in their order: the first one, and alpha (b,)
    total: float  # sum of alpha_j; of the squared hinge less alpha_j^2 / (4 c_j)
    pull: Floats  # (m,) sum of alpha_j l_j x_j
    support: int  # points with alpha_j > 0
    full: int  # points with alpha_j = c_j > 0, of the hinge


class Multipliers(Plain[MultipliersAnswer], Struct, frozen=True):
    """Dual variables of all points at one y, of one problem."""

    at: Floats | None  # (m,) y; None: all are 0
    costs: SampleCosts  # of one problem
    squared: bool
    index: Indices  # (r,) ascending
    multiplier: Floats  # (r,) alpha of these points
    factors: tuple[float, float] = (1.0, 1.0)  # of the classes -1 and +1, of the squared hinge

    def scan(self, block: Block) -> MultipliersAnswer:
        alpha, pull, total, full = np.zeros(block.size), np.zeros((1, block.dimension)), 0.0, 0
        if self.at is None:
            return MultipliersAnswer(((block.start, alpha),), total, pull[0], 0, 0)
        directions, (C,) = Directions.of(self.at[:, None], self.costs), self.costs.C
        for run in directions.runs(block):
            slacks = Slacks.of(block, run, directions)
            short = np.maximum(slacks.slack, 0.0)
            weight = slacks.amounts(np.ones_like(short), 1)[0]
            cost = C * weight
            if self.squared:  # summed before they are multiplied by 2 C, as the method does it: the same terms cancel
                short[0] *= np.where(slacks.label > 0, self.factors[1], self.factors[0])
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
            slacks.add_pull(part, amount[None].copy())
            pull += factor * part
        if block.intercept:  # times what the bias may be, which is large where points are far
            pull[0, -1] = math.fsum((alpha * block.label).tolist())
        return MultipliersAnswer(((block.start, alpha),), total, pull[0], int((alpha > 0).sum()), full)

    def merge(self, first: MultipliersAnswer, second: MultipliersAnswer) -> MultipliersAnswer:
        pieces = tuple(sorted(first.pieces + second.pieces, key=lambda piece: piece[0]))
        total, pull = first.total + second.total, first.pull + second.pull
        return MultipliersAnswer(pieces, total, pull, first.support + second.support, first.full + second.full)


class Losses(Plain[Floats], Struct, frozen=True):
    """(k,) sum_j c_j loss(1 - l_j x_j'y) of all points, at directions (m, k) of k problems. Slacks that rounding could change
    to any effect are sums of exact products, rounded once.
    """

    Y: Floats
    costs: SampleCosts
    squared: bool

    def scan(self, block: Block) -> Floats:
        total = np.zeros(len(self.costs.C))
        if not len(total):
            return total
        directions = Directions.of(self.Y, self.costs)
        for run in directions.runs(block):
            slacks = Slacks.of(block, run, directions)
            slacks.correct()
            short = np.maximum(slacks.slack, 0.0)
            total += self.costs.C * slacks.sums(short * short if self.squared else short)
        return total

    def merge(self, first: Floats, second: Floats) -> Floats:
        return first + second


SCORE_RANGE, SCORE_BINS = 16.0, 4096
"""Scores of soft margins are counted from minus to plus so much, in so many bins; those beyond in the last ones."""


class ScoreSums(Struct, frozen=True):
    """Of some points (partial and answer alike)."""

    sums: Floats  # (2, 2, SCORE_BINS) of the labels -1 and +1: weights, and weights times scores


class LeftOut(SumPass[ScoreSums], Struct, frozen=True):
    """Scores of all points, each by the hyperplane of the fold that it was left out of."""

    Y: Floats  # (m, folds)
    costs: SampleCosts

    def scan(self, block: Block) -> ScoreSums:
        index, rows = np.arange(block.start, block.start + block.size), np.arange(block.size)
        scores = products_along(block.tile(slice(0, block.size), False), self.Y, block.intercept)
        score = scores[fold_of(index, self.costs.folds, self.costs.seed), rows]
        weight = np.ones(block.size) if self.costs.weight is None else self.costs.weight[index]
        place = np.clip((score + SCORE_RANGE) * (SCORE_BINS / 2 / SCORE_RANGE), 0, SCORE_BINS - 1).astype(np.int64)
        place += SCORE_BINS * (np.asarray(block.label) > 0)
        both = [np.bincount(place, values, 2 * SCORE_BINS) for values in (weight, weight * score)]
        return ScoreSums(np.asarray(np.stack(both).reshape(2, 2, SCORE_BINS).transpose(1, 0, 2), np.float64))
