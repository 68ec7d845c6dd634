"""All points in memory, dense ones, solved as columns before a survey: the few that a direction has wrong lead to a separator
of all, or to a conflict.

Reference: own; cutting planes (``linalg.separation.rounds``), nonnegative least squares (``linalg.separation.conflict``).

    more than the root of m n are wrong: y <- a separator of a sample; without one, a conflict of the lowest among those that
      a soft margin of the sample touches                                                                   conflict.py: oppose
    a point is far on the wrong side of y (``FAR``): a conflict of it and those most opposed to it
    else w <- a soft margin of the lowest by y; those that it has wrong join, until it has none   solver.py: separate_from
    some stay wrong: a conflict of the lowest by w among those inside of its margin

Lengths are those that float32 measures, if points are, so that columns are longer or shorter than 1 by their rounding. What is
found is looked for, and proved by the checker.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from msgspec import Struct

from dfeas.data.dataset import Dataset
from dfeas.data.storage.readers import SliceReader
from dfeas.engine.local import SMALL_BYTES
from dfeas.linalg.points import Array, Floats, Indices, norms, product, with_ones, working_type
from dfeas.linalg.separation.conflict import oppose
from dfeas.linalg.separation.rounds import lowest
from dfeas.linalg.separation.solver import SEPARATED, separate_from
from dfeas.linalg.separation.sparse_columns import column_matrix
from dfeas.methods.protocol import Bracket, Evidence, Facts, Sparse
from dfeas.methods.working_set.batches import held_columns, left_columns
from dfeas.passes.block import Columns, in_precision
from dfeas.run.recovery import separator
from dfeas.run.solver_thread import run_solver, run_solver_here
from dfeas.verify.certificate import Certificate

FAR = 8.0
"""Score of a point, times the root of n / m over the root of the mean square of all, below which it is on the wrong side of any
separator: of half-spaces the lowest by the sum of all is at -3 to -4."""
NARROW = 256
"""Features up to which nonnegative least squares take less than a separation: 2 ms with 100, 30 with 200, 280 with 400."""
OPPOSED = 3
"""Columns for each feature of which the most opposed to one that is wrong are in conflict with it: of 16 half-spaces with 1 to
1000 wrong labels all are with so many, and 10 with two."""
ACTIVE = 8
"""The same of those that a soft margin touches, or are wrong: of 36 sets with labels that are wrong near to a half-space, or
anywhere, 6 were enough for all in which any number was."""


class Found(Struct, frozen=True, eq=False):
    """A certificate without a fingerprint, and what else is known."""

    certificate: Certificate
    evidence: Evidence


class ColumnSolver(Struct, frozen=True):
    """How points are solved: in what memory, and until when."""

    facts: Facts
    stop: Callable[[], bool]

    @classmethod
    def for_run(cls, dataset: Dataset, facts: Facts, memory: int, stop: Callable[[], bool]) -> ColumnSolver | None:
        """None where they are more than a run may have in ``memory``."""
        return None if dataset.bytes > memory else cls(facts, stop)

    @property
    def narrow(self) -> bool:
        """Whether there are so few features that a conflict is looked for, too."""
        return self.facts.m <= NARROW

    def solve(self, dataset: Dataset, y: Floats, scale: Array) -> Found | None:
        """What signed points show, with factors (n,) that make unit points of them, from where y (dimension,) stands. Raises
        Abandoned where a limit ends it.
        """
        points = _whole_array(dataset)
        run = run_solver_here if dataset.bytes <= SMALL_BYTES else run_solver
        return None if points is None else run(lambda: self._solve(points, dataset.intercept, y, scale), self.stop)

    def _solve(self, points: Array, intercept: bool, y: Floats, scale: Array) -> Found | None:
        score = scores(points, y) * scale
        if _are_many(score, points) and self.narrow:
            y, touched = _learn(points, y, scale)
            score = scores(points, y) * scale
            if touched is not None:
                return _find_conflict(points, y, scale, score, touched)
        if _are_many(score, points):
            return None
        if float(score.min()) < -FAR * math.sqrt(len(y)) / len(points) * float(np.linalg.norm(score)):
            found = _find_opposed(points, y, scale, score) if self.narrow else None
            if found is not None or intercept or not self.narrow:
                return found
        if intercept and len(points) * len(y) * points.itemsize > self.facts.memory:
            return None
        matrix = column_matrix(with_ones(points) if intercept else points, scale.astype(np.float64))
        solution, score = separate_from(matrix, y, score.astype(np.float64), held_columns(self.facts))
        if solution.outcome != SEPARATED:
            score /= max(float(np.linalg.norm(solution.w)), np.finfo(np.float64).tiny)
            return _find_conflict(points, solution.y, scale, score, solution.rows) if self.narrow else None
        bracket = Bracket().with_separator(solution.y, solution.margin).with_upper(solution.upper)
        count, sparse = left_columns(self.facts), Sparse(solution.rows, solution.weight)
        near = partial(_take_lowest, points, intercept, scale, score, count) if count else None
        return Found(separator(solution.y, ""), Evidence(bracket, lambda: sparse, solution.steps, nearest=near))


def _take_lowest(points: Array, intercept: bool, scale: Array, score: Floats, count: int) -> Columns:
    """Signed unit columns of so many points, a copy."""
    rows = np.sort(lowest(score, count))
    some = with_ones(points[rows]) if intercept else points[rows]
    return Columns(rows, some, np.sign(scale[rows]) / norms(some))


def _are_many(score: Array, points: Array) -> bool:
    """Whether more are wrong than of a half-space by scores (n,) of points (n, m): the root of n m, and not 0.4 of it."""
    return int((score <= 0).sum()) ** 2 > points.size


def _learn(points: Array, y: Floats, scale: Array) -> tuple[Floats, Indices | None]:
    """A direction that separates a sample of points, beginning with that of least squares for a sum y: where features depend on
    each other, that of the sum has many wrong. If none does, the best, and the points that its margin touches.
    """
    few = ACTIVE * len(y)  # of so few features several blocks have more points
    for count in (few, max(few, math.isqrt(points.size))):
        rows = np.arange(count) * len(points) // count
        columns = _unit_columns(points, rows, scale, len(y))
        if count == few:
            square = columns.T @ columns
            square.reshape(-1)[:: len(y) + 1] += 1e-9 * np.trace(square)  # of dependent features
            y = np.linalg.solve(square, y).astype(np.float64, copy=False)
        solution, _ = separate_from(column_matrix(columns, np.ones(count)), y, columns @ y, count)
        y = solution.y
        if solution.outcome != SEPARATED:
            return y, rows[solution.rows]
    return y, None


def _find_opposed(points: Array, y: Floats, scale: Array, score: Array) -> Found | None:
    """A conflict of the point that is most wrong, of scores (n,) by y, with those that are farthest along its opposite.

    That is a combination of points whose score for each unit along it averages its own: those of at most twice that are on both
    sides of it.
    """
    wrong, count = int(score.argmin()), OPPOSED * len(y)
    along = -scores(points, _unit_columns(points, np.array([wrong]), scale, len(y))[0]) * scale
    rows = np.flatnonzero((score > 0) & (score <= -2 * score[wrong] * along))
    return _find_conflict(points, y, scale, score, rows[lowest(-along[rows], count)]) if len(rows) >= count else None


def _find_conflict(points: Array, y: Floats, scale: Array, score: Array, rows: Indices) -> Found | None:
    """A conflict of the point that is most wrong, of scores (n,) by y, with some others, if few of these have one."""
    wrong = int(score.argmin())
    rows = rows[rows != wrong]
    few = min(len(rows), ACTIVE * len(y))
    if not few or not y.any():
        return None
    rows = np.append(rows[np.arange(few) * len(rows) // few], wrong)
    columns = _unit_columns(points, rows, scale, len(y))
    weight = oppose(columns)
    if weight is None:
        return None
    order = np.argsort(rows)
    order = order[weight[order] > 0]
    sparse = Sparse(rows[order], weight[order], columns[order] @ y, y)
    bracket = Bracket().with_separator(y, float(score[wrong])).with_upper(0.0)
    certificate = Certificate("gordan", "", support=sparse.index, weights=sparse.weight)
    return Found(certificate, Evidence(bracket, lambda: sparse, 0))


def _unit_columns(points: Array, rows: Indices, scale: Array, dimension: int) -> Floats:
    """Signed unit columns (r, dimension) of some rows in float64, maybe with an intercept."""
    columns = np.ones((len(rows), dimension))
    columns[:, : points.shape[1]] = points[rows]
    columns *= np.sign(scale[rows, None]) / np.linalg.norm(columns, axis=1)[:, None]
    return columns


def _whole_array(dataset: Dataset) -> Array | None:
    """All points (n, m) where they are stored as products take them."""
    array = dataset.points.array if isinstance(dataset.points, SliceReader) else None
    if not isinstance(array, np.ndarray) or not array.flags.c_contiguous:
        return None
    return array if array.dtype == dataset.dtype == working_type(dataset.dtype) else None


def scores(points: Array, y: Floats) -> Array:
    """Products (b,) of points (b, m), maybe with an intercept, and y (dimension,) in their precision."""
    direction, m = in_precision(y, points.dtype == np.float32), points.shape[1]
    with np.errstate(all="ignore"):  # of lengths that float32 does not measure, which the sums say
        score = product(points, direction[:m])
    if len(y) > m:
        score += direction[m]
    return score
