"""A run of points as soft margins see them: the slack of each for each direction, in float64, and sums of problems over it.

Problems with the same direction, such as all folds before the first step, look along it once; what a problem leaves out is in
the weights that its sums are taken with. All sums are products of matrices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfeas.passes.block import Block, Floats, Indices
from dfeas.passes.counted import Counted, fold_of
from dfeas.passes.points import Tile, add_combinations, combined, moments, times

SLACK_BYTES = 1 << 19
"""Slacks of a run of points: they stay in cache from one operation to the next."""

RUN_BYTES = 1 << 21
"""Entries of a run in float64: they stay in cache from the first product to the last."""


@dataclass(frozen=True, slots=True)
class Directions:
    """Directions of k problems, equal ones once."""

    Y: Floats  # (m, u)
    which: Indices  # (k,) the column of each problem
    counted: Counted  # of k problems

    @classmethod
    def of(cls, Y: Floats, counted: Counted) -> Directions:
        """From directions (m, k) of k problems."""
        places: dict[bytes, int] = {}
        which = [places.setdefault(Y[:, i].tobytes(), len(places)) for i in range(Y.shape[1])]
        first = [which.index(place) for place in range(len(places))]
        return cls(np.ascontiguousarray(Y[:, first]), np.array(which, np.int64), counted)

    def runs(self, block: Block) -> Iterator[slice]:
        """The points of a block, in runs of equal length that stay in cache; none for no points."""
        size = block.size
        runs = max(1, round(8 * len(self.which) * size / SLACK_BYTES), round(8 * block.points.size / RUN_BYTES))
        count = min(size, runs)
        for i in range(count):
            yield slice(size * i // count, size * (i + 1) // count)


@dataclass(frozen=True, slots=True)
class Seen:
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
    def of(cls, block: Block, rows: slice, directions: Directions) -> Seen:
        """Some rows of a block."""
        counted, index = directions.counted, np.arange(block.start + rows.start, block.start + rows.stop)
        points, label = block.tile(rows, False), block.label[rows].astype(np.float64)
        weight, fold = counted.weights(index, label), None
        counts = weight[None, :]
        if (counted.left_out >= 0).any():
            fold = fold_of(index, counted.folds, counted.seed)
            counts = np.concatenate([counts, weight * (np.arange(counted.folds)[:, None] != fold)])
        slack = seen_along(points, directions.Y, block.intercept)
        slack *= -label
        slack += 1
        return cls(directions, points, block.intercept, label, weight, fold, counts, slack)

    def sums(self, values: Floats) -> Floats:
        """(k,) sum of values (u, t) times weights of the points that count in each problem."""
        return self._of_problems(values @ self.counts.T)

    def support(self) -> Indices:
        """(k,) points with l_j x_j'y <= 1 that count."""
        return self._of_problems((self.slack >= 0).astype(np.float64) @ (self.counts > 0).T).astype(np.int64)

    def tested(self) -> tuple[Floats, Floats]:
        """(k,) weight of the points that a problem is tested on, its fold or all, and (k,) of those with l_j x_j'y <= 0."""
        tests = self.counts[0] - self.counts
        tests[0] = self.counts[0]
        wrong = (self.slack >= 1).astype(np.float64) @ tests.T
        return tests.sum(axis=1)[self._place], self._of_problems(wrong)

    def amounts(self, values: Floats | NDArray[np.bool_], near: int) -> Floats:
        """(near, t) values (u, t) times weights, of the first problems."""
        found = self.counts[self._place[:near]]
        found *= values[self.directions.which[:near]]
        return found

    def add_pull(self, total: Floats, amount: Floats) -> None:
        """Add sum_j amount_j l_j x_j to sums (k, m), for amounts (k, t), which are changed."""
        amount *= self.label
        m = self.points.shape[1]
        if self.intercept:
            total[:, m] += amount.sum(axis=1)
        add_combinations(total[:, :m], amount, self.points)

    def add_curvature(self, total: Floats) -> None:
        """Add sum of weights times x_j x_j' over points with slack > 0 to the matrices (near, m, m) of the first problems.

        Problems with one direction, which differ in the fold that they leave out, share the sums of the folds.
        """
        which, place = self.directions.which[: len(total)], self._place[: len(total)]
        for column in range(len(self.slack)):
            problems, active = np.flatnonzero(which == column), (self.slack[column] > 0) & (self.weight > 0)
            if self.fold is None or len(problems) == 1:
                for alike in np.unique(place[problems]):
                    same = problems[place[problems] == alike]
                    rows = np.flatnonzero(active & (self.counts[alike] > 0))
                    total[same] += self._moments(rows, self.weight[rows])
                continue
            for fold in range(len(self.counts) - 1):
                rows = np.flatnonzero(active & (self.fold == fold))
                total[problems[place[problems] != fold + 1]] += self._moments(rows, self.weight[rows])

    def _moments(self, rows: Indices, weight: Floats) -> Floats:
        """sum_j weight_j x_j x_j' (m, m) over some rows, with the intercept."""
        some = self.points[rows]
        found = moments(some, weight)
        if not self.intercept:
            return found
        edge = combined(weight, some)[:, None]
        return np.block([[found, edge], [edge.T, weight.sum()]])

    def along(self, vectors: Floats) -> Floats:
        """(k, t) x_j'v of vectors (m, k)."""
        return seen_along(self.points, vectors, self.intercept)

    def distance(self, near: int, length: Floats) -> Floats:
        """|1 - s_j| / |x_j| (t,) for the nearest of the first directions; inf for a zero point and one of no weight."""
        first = int(self.directions.which[:near].max()) + 1  # directions are in the order of the problems
        with np.errstate(divide="ignore", over="ignore"):
            found = np.abs(self.slack[:first]).min(axis=0) / length
        return np.where((length > 0) & (self.weight > 0), found, np.inf)

    @property
    def _place(self) -> Indices:
        """(k,) the row of ``counts`` of each problem."""
        return self.directions.counted.left_out + 1 if self.fold is not None else np.zeros_like(self.directions.which)

    def _of_problems(self, values: Floats) -> Floats:
        """(k,) from values (u, 1 or 1 + folds)."""
        return np.asarray(values[self.directions.which, self._place])


def seen_along(points: Tile, vectors: Floats, intercept: bool) -> Floats:
    """Products (k, t) of points (t, m) with vectors (m, k) or, with an intercept, (m+1, k), in float64."""
    m = points.shape[1]
    found = np.asarray(times(points, vectors[:m]), np.float64)
    if intercept:
        found += vectors[m][:, None]
    return found
