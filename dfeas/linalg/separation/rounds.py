"""Rounds of cutting planes in memory: some columns are solved, all are scored by one product, and the lowest join."""

from __future__ import annotations

import math

import numpy as np

from dfeas.linalg.points import Array, Floats, Indices
from dfeas.linalg.separation import AT
from dfeas.linalg.separation.columns import ColumnMatrix, multiply_out
from dfeas.linalg.separation.newton import Newton

SAMPLED = 4096
"""Scores of which some tell a bar, at least."""


class Round:
    """Columns that are solved, and those that wait; more are solved from one round to the next, and none leaves."""

    def __init__(self, matrix: ColumnMatrix, v: Floats, *, at_once: bool, score: Floats | None = None) -> None:
        """Begin with the lowest under v, or with columns from all over where v is zero. With scores (c,) v is near to a
        separator: no more are solved than it, and those after it, have wrong, times a few.
        """
        self.matrix, self.near = matrix, score is not None
        c, d = matrix.shape
        first = AT.first * d
        if at_once or 2 * first > c or (self.light and v.any()):
            self.rows = np.arange(c)
            self.newton = Newton(matrix, v, score)
            return
        if score is not None:
            first = max(first, AT.wrong * int((score <= 0).sum()))
        elif v.any():
            score = matrix.scores(v)
        self.rows = np.arange(first) * c // first if score is None else np.sort(lowest(score, first))
        self.newton = Newton(multiply_out(matrix, self.rows), v)

    def begin(self, C: float) -> None:
        """Take a step on every second of the columns, which tell as much of the first one as all do; or, where all columns are
        solved, find out how long a vector to begin with.
        """
        if self.whole:
            self.newton.stretch(C)
            return
        half = Newton(self.newton.matrix.some(np.arange(0, len(self.rows), 2)), self.newton.point.v)
        half.minimise(C, self.enough, AT.rough, 1)
        self.newton.start_from(half.point.v)

    @property
    def whole(self) -> bool:
        return len(self.rows) == self.matrix.shape[0]

    @property
    def light(self) -> bool:
        """Whether scores of all columns take less than a Gram matrix of a basis, so that they are not solved in parts."""
        c, d = self.matrix.shape
        return 8 * c <= d * d

    @property
    def is_promising(self) -> bool:
        """Whether it is time for all columns, as those that are solved do not look like a conflict."""
        return self.light and not self.whole and float((self.newton.point.score <= 0).mean()) < AT.hopeless

    @property
    def near_c(self) -> float:
        """The first C near to a separator. Where r columns have one more unit of score, d are as near as d / r, which is about
        1 / |w|, and w is C times the sum of d that each lack some of 1. Light ones are all there, as dense as a normal law.
        """
        score, d = self.newton.point.score, self.matrix.shape[1]
        reach = math.sqrt(float(score @ score) * math.pi / 2 / len(score)) if self.light else float(score.max())
        dense = len(score) / max(reach, np.finfo(np.float64).tiny)
        return min(AT.thin_c, max(AT.light_c if self.light else AT.near_c, AT.dense * dense**2 / d**3))

    @property
    def enough(self) -> float:
        """Scores above this are good enough for now."""
        return AT.early if self.matrix.large or self.near else AT.enough

    def scores(self) -> Floats:
        """Of all columns (c,); in float64 at least where they are not clearly above the lowest that is solved."""
        point = self.newton.point
        return point.score if self.whole else self.matrix.scores(point.v, point.low)

    def has_right(self, score: Floats) -> bool:
        """Whether columns that wait are right, by scores of all (c,)."""
        return float(score.min()) > AT.clear * self.newton.point.low

    def grow(self, score: Floats) -> None:
        """Take the lowest of those that wait, as many as there are; all, if that makes more than half, or they are light."""
        c, count = self.matrix.shape[0], len(self.rows)
        if self.near:
            level = AT.clear * max(0.0, self.newton.point.low)
            count = min(count, max(self.matrix.shape[1], 2 * int((score <= level).sum())))
        chosen = np.full(c, self.light or 4 * len(self.rows) > c)
        chosen[self.rows] = True
        place = np.flatnonzero(~chosen)
        chosen[place[lowest(score[place], count)]] = True
        before, self.rows = self.rows, np.flatnonzero(chosen)
        place = np.searchsorted(self.rows, before)
        self.newton.extend(lambda: self.matrix if self.whole else multiply_out(self.matrix, self.rows), place)


def lowest(score: Array, count: int) -> Indices:
    """Positions of so many of the lowest scores, or of all, in no order."""
    if count >= len(score):
        return np.arange(len(score))
    if len(score) >= 4 * max(SAMPLED, count):  # few are below a bar that some of them tell
        some = score[:: len(score) // SAMPLED]
        share = count * len(some) / len(score)
        bar = np.partition(some, place := int(share + 4 * math.sqrt(share) + 1))[place]
        below = np.flatnonzero(score <= bar)
        if count < len(below):
            return below[np.argpartition(score[below], count - 1)[:count]]
    return np.argpartition(score, count - 1)[:count]
