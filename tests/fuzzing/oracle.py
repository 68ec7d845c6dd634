"""What is true of labelled points, exactly where it can be; shares nothing with dfeas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy.optimize import nnls

from tests.exact import conflict, kind_of

Points = list[list[int]]
BITS = 20_000
"""Bits of a signed point, times n m^2 / 100: more than this takes the simplex too long for a fuzzer."""


def whole(X: np.ndarray, labels: np.ndarray | None = None, *, intercept: bool = False) -> Points:
    """Signed points (n, m) times positive numbers, in integers as small as can be; features are divided by powers of two.

    Neither changes which points can be separated, nor what kind of separation there is.
    """
    rows = [[Fraction(v) for v in row] + [Fraction(1)] * intercept for row in np.asarray(X).tolist()]
    signs = [1] * len(rows) if labels is None else [int(v) for v in labels]
    width = len(rows[0])
    largest = [max((abs(row[k]) for row in rows), default=Fraction(0)) for k in range(width)]
    shift = [Fraction(2) ** (math.frexp(float(v))[1] if v else 0) for v in largest]
    points = []
    for row, sign in zip(rows, signs, strict=True):
        scaled = [v / s for v, s in zip(row, shift, strict=True)]
        common = math.lcm(*(v.denominator for v in scaled))
        entries = [int(v * common) * sign for v in scaled]
        divisor = math.gcd(*entries) or 1
        points.append([v // divisor for v in entries])
    return points


def in_whole_numbers(numbers: Sequence[float], least: int = 1) -> list[int]:
    """Numbers times a power of two, at least this one, that makes them whole."""
    ratios = [v.as_integer_ratio() for v in numbers]
    common = max(least, *(d for _, d in ratios))
    return [n * (common // d) for n, d in ratios]


def as_stored(X: np.ndarray, labels: np.ndarray | None = None, *, intercept: bool = False, together: bool = True) -> Points:
    """Signed points in integers, with features as they are; all ``together``, or each, times a power of two."""
    rows = [row + [1] * intercept for row in np.asarray(X).tolist()]
    signs = [1] * len(rows) if labels is None else [int(v) for v in labels]
    common = max(v.as_integer_ratio()[1] for row in rows for v in row) if together else 1
    return [[v * sign for v in in_whole_numbers(row, common)] for row, sign in zip(rows, signs, strict=True)]


def scores(points: Points, y: Sequence[int]) -> list[int]:
    """y'a_j, exactly."""
    return [sum(p * v for p, v in zip(point, y, strict=True) if p) for point in points]


@dataclass
class Truth:
    """Labelled points as they are asked about: with an intercept there is one feature more, equal to 1."""

    X: np.ndarray
    labels: np.ndarray | None = None
    intercept: bool = False

    @cached_property
    def points(self) -> Points:
        return whole(self.X, self.labels, intercept=self.intercept)

    @cached_property
    def small(self) -> bool:
        """Whether the simplex method in integers decides it soon."""
        n, m = len(self.points), len(self.points[0])
        bits = max(max(abs(v) for v in point).bit_length() for point in self.points)
        return bits * n * m * m / 100 < BITS

    @cached_property
    def feasible(self) -> bool | None:
        """Whether some y is positive on all points; None when that takes too long."""
        return conflict(self.points)[0] is None if self.small else None

    @cached_property
    def kind(self) -> str | None:
        """Complete, quasi-complete or overlap; None when that takes too long."""
        return kind_of(self.points) if self.small else None

    @cached_property
    def columns(self) -> np.ndarray:
        """Signed unit points (n, d) in float64."""
        wide = np.asarray(self.X).astype(np.float64)
        if self.intercept:
            wide = np.hstack([wide, np.ones((len(wide), 1))])
        if self.labels is not None:
            wide = wide * np.asarray(self.labels, np.float64)[:, None]
        exponent = np.frexp(np.abs(wide).max(axis=1))[1]
        wide = np.ldexp(wide, -exponent[:, None])
        length = np.linalg.norm(wide, axis=1)
        return np.asarray(wide / np.where(length > 0, length, 1)[:, None])

    @cached_property
    def margin(self) -> tuple[float, float]:
        """A bracket of the best margin, but for rounding; the lower end is 0 or above."""
        return nearest(self.columns)

    def least(self, y: np.ndarray) -> float:
        """The margin of y, rounded from exact integers; below zero or zero when y is no separator."""
        direction = in_whole_numbers(y.tolist())
        size = sum(v * v for v in direction)
        worst: Fraction | None = None  # of sign(s) s^2 / |a|^2 |y|^2
        for point in as_stored(self.X, self.labels, intercept=self.intercept, together=False):
            score = sum(a * b for a, b in zip(point, direction, strict=True) if a)
            length = sum(a * a for a in point)
            share = Fraction(score * abs(score), length * size) if length and size else Fraction(0)
            worst = share if worst is None or share < worst else worst
        assert worst is not None
        return math.copysign(root(abs(worst)), worst)


def root(square: Fraction) -> float:
    """Its square root, also where the square leaves the range of float64."""
    if not square:
        return 0.0
    shift = 2 * ((square.denominator.bit_length() - square.numerator.bit_length()) // 2 + 64)
    scaled = square * Fraction(2) ** shift
    return math.ldexp(math.isqrt(int(scaled * 2**64)), -shift // 2 - 32)


def nearest(columns: np.ndarray) -> tuple[float, float]:
    """Both ends of max_y min_j a_j'y = the length of the shortest point of the hull, of unit points (n, d): by least distances.

    They hold whatever the method did: one is the least score of its direction, the other one the length of its point.
    """
    try:
        weights = nnls(np.vstack([columns.T, np.ones(len(columns))]), np.append(np.zeros(columns.shape[1]), 1.0))[0]
    except RuntimeError:  # it takes too many steps
        weights = np.ones(len(columns))
    point = weights / weights.sum() @ columns
    length = float(np.linalg.norm(point))
    low = float((columns @ point).min()) / length if length else 0.0
    return max(0.0, low), length
