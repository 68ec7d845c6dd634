"""Which of some points conflict, and which a hyperplane has strictly beyond it: exactly one partition of them in two.

For points a_1 .. a_s of integers there is exactly one partition of them in two (Goldman and Tucker 1956): some y has y'a_j > 0
on the one part and y'a_j = 0 on the other, and the other part has weights x > 0 with sum x_j a_j = 0. It is found by facial
reduction; every step decides in integers, float64 only guesses:

* a conflict, x >= 0 with a zero sum, puts what it spans, L, on the hyperplane of every y: go on across L, in integers;
* a direction, y'a_j >= 0 on all points and > 0 on some, takes these out of every conflict: go on with the others;
* where neither guess holds, the dual simplex method goes from basis to basis until it has one or the other: bases are looked at
  exactly, and float64 guesses from the exact tableau which one is next; where it comes back to a basis, a pivot is exact.

Each step lowers the rank of what is left, and the least-index rule (Terlaky 1985) ends a row of pivots that is too long. No
answer depends on a tolerance. Who hears its beats may end it there.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import count, takewhile

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.exact.dyadic import Integers
from dfeas.exact.integers import independent, nullspace, primitive, product, solve
from dfeas.linalg.blas import beat
from dfeas.run.exact.guesses import APART, EvenPoints, guess_basis, heavy, nearest, order, parts, widest

HEAVY = 0.5
"""Points that are in a conflict have a weight of at least one, all others have none."""

LONG = 100
"""Pivots for each dimension after which the least-index rule follows, which never cycles (Terlaky 1985)."""
AT_ONCE = 1 << 20
"""Products of integers between two beats, about; a system of d equations is solved for 1024 / d right sides."""


class FacePartition(Struct, frozen=True):
    """Exact for the points that were given."""

    y: Integers | None  # (d,) positive on the points beyond, zero on the others; None when none is beyond
    beyond: NDArray[np.bool_]  # (s,)
    weights: Integers  # (s,) >= 0 with a zero sum; the points that have one span all that are not beyond


def partition(points: Integers, *, separable: bool = False) -> FacePartition:
    """The partition of points (s, d); ``separable`` when all are expected beyond."""
    s, d = points.shape
    nonzero = points.any(axis=1)
    features = independent(points[nonzero].T) if nonzero.any() else np.zeros(0, np.int64)
    if not len(features):
        return FacePartition(None, np.zeros(s, np.bool_), np.ones(s, object))
    reduced = points[np.ix_(nonzero, features)]
    moved, centre, constant = _centre_features(reduced)
    inner = _reduce_faces(moved, separable)
    beyond, weights = np.zeros(s, np.bool_), np.ones(s, object)
    beyond[nonzero], weights[nonzero] = inner.beyond, inner.weights
    if inner.y is None:
        return FacePartition(None, beyond, weights)
    inner_y = inner.y.copy()
    if constant >= 0:
        inner_y[constant] -= int(centre @ inner_y)
    if inner.beyond.all():
        inner_y = shorten(reduced, inner_y)
    y = np.zeros(d, object)
    y[features] = primitive(inner_y.tolist())
    return FacePartition(y, beyond, weights)


def shorten(points: Integers, y: Integers) -> Integers:
    """A direction (d,) that is positive on points (s, d), with so few binary digits that each keeps half of its score. That of
    a basis has a thousand digits or more, which floats do not hold, nor sums of them.
    """
    score, longest = product(points, y[:, None]), max(v.bit_length() for v in y.tolist())
    # at first as many binary digits as a float64 has
    for digits in takewhile(lambda digits: digits < longest, (53 << i for i in count())):
        excess = np.array([max(0, v.bit_length() - digits) for v in y.tolist()], object)
        short = np.asarray((y + (1 << excess >> 1) >> excess) << excess, object)
        if (2 * product(points, short[:, None]) >= score).all():
            return short
    return y


def _centre_features(points: Integers) -> tuple[Integers, Integers, int]:
    """Points with multiples of the intercept taken from features far from zero; the multiples, and its place."""
    none = np.zeros(points.shape[1], object), -1
    size = np.abs(points)
    likely = (size[:2] == size[0]).all(axis=0) & (size[0] > 0)  # by two points: a look at all of each feature takes longer
    constant = next((i for i in likely.nonzero()[0].tolist() if (size[:, i] == size[0, i]).all()), -1)
    if constant < 0 or max(int(v) for v in size.max(axis=0)).bit_length() > 1000:
        return points, *none
    ratio = (points / points[:, constant, None]).astype(np.float64)
    with np.errstate(over="ignore"):
        # a mean of four spreads is worth centring
        far = np.abs(ratio.mean(axis=0)) > 4.0 * ratio.std(axis=0)
    centre = np.array([round(v) for v in np.where(far, ratio.mean(axis=0), 0).tolist()], object)
    centre[constant] = 0
    if not centre.any():
        return points, *none
    return points - points[:, constant, None] * centre, centre, constant


def _reduce_faces(points: Integers, separable: bool) -> FacePartition:
    """Of points, none zero, whose features are independent."""
    beat()
    even = EvenPoints.of(points)
    if separable:
        split = _all_beyond(points, even)
        if split is not None:
            return split
    only = _only_conflict(even.points)
    whole = None if only is None else _balance_rows(points, even, only, np.arange(len(points)))
    if whole is not None:
        return _across(points, *whole)
    x, guessed = np.ones(len(points)), heavy(even.points)
    if guessed is not None:
        x, z = guessed
        rows = np.flatnonzero(x > HEAVY)
        balanced = _balance_rows(points, even, x, rows) if len(rows) else None
        if balanced is not None:
            return _across(points, *balanced)
        split = _peel_direction(points, even.direction(z)) or (None if separable else _all_beyond(points, even))
        if split is not None:
            return split
    # points without a weight come last when a basis is chosen
    return _pivot_bases(points, order(even.points, 1e-3 + x))


def _only_conflict(points: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Positive weights (s,) of the only conflict of a few points (s, d), by least squares, which take less than a linear
    programme; None where there seems to be none, or not only one.
    """
    s, d = points.shape
    x = nearest(points) if s <= d + 1 else None
    if x is None or not (x > 0).all() or float(np.linalg.norm(x @ points)) > APART * float(x.sum()):
        return None
    return x


def _all_beyond(points: Integers, even: EvenPoints) -> FacePartition | None:
    """All points beyond a hyperplane that is a guess."""
    z = widest(even.points)
    if z is None:
        return None
    y = even.direction(z)
    if not (points @ y > 0).all():
        return None
    return FacePartition(y, np.ones(len(points), np.bool_), np.zeros(len(points), object))


def _balance_rows(
    points: Integers, even: EvenPoints, x: NDArray[np.float64], rows: NDArray[np.int64]
) -> tuple[Integers, NDArray[np.int64]] | None:
    """Weights (s,) of zero sum, positive exactly on some rows, near a guess x (s,), and a basis of these rows; None without."""
    some = points[rows]
    ranked = rows[order(even.points[rows], x[rows])]
    basis = ranked[independent(points[ranked])]
    d = points.shape[1]
    features = np.arange(d) if len(basis) == d else independent(points[basis].T)
    left = np.zeros(len(points), np.bool_)
    left[rows], left[basis] = True, False
    free = np.flatnonzero(left)
    if not len(free):
        return None
    # guessed weights may be rough: the others follow exactly
    rounded = np.ldexp(np.round(np.ldexp(np.frexp(x)[0], 20)), np.frexp(x)[1] - 20)
    given = even.weights(np.where(x > 0, rounded, 1.0))
    right = -(given[free] @ points[free])[features]
    follows, denominator = solve(points[np.ix_(basis, features)].T, right[:, None])
    weights = np.zeros(len(points), object)
    weights[free], weights[basis] = given[free] * denominator, follows[:, 0]
    if not (weights[rows] > 0).all() or (weights[rows] @ some).any():
        return None
    return np.array(primitive(weights.tolist()), object), basis


def _across(points: Integers, weights: Integers, basis: NDArray[np.int64]) -> FacePartition:
    """Go on across what a conflict spans, of whose points some are a basis."""
    beyond = np.zeros(len(points), np.bool_)
    if len(basis) == points.shape[1]:
        return FacePartition(None, beyond, weights)
    across = nullspace(points[basis])
    projected = product(points, across)
    others = np.flatnonzero(projected.any(axis=1))
    inner = partition(projected[others], separable=True)
    beyond[others] = inner.beyond
    if inner.weights.any():
        more = np.zeros(len(points), object)
        more[others] = inner.weights
        weights = extend_weights(points, weights, more, basis)
    return FacePartition(None if inner.y is None else across @ inner.y, beyond, weights)


def extend_weights(points: Integers, weights: Integers, more: Integers, basis: NDArray[np.int64]) -> Integers:
    """Weights (s,) with a zero sum, positive where either was: ``more`` sums to something in what the first ones span."""
    features = independent(points[basis].T)
    right = -(more @ points)[features]
    follows, denominator = solve(points[np.ix_(basis, features)].T, right[:, None])
    total = denominator * more
    total[basis] += follows[:, 0]
    short = np.flatnonzero((total <= 0) & (weights > 0))
    times = max([1] + [-(int(total[j]) // int(weights[j])) + 1 for j in short])
    return np.array(primitive((total + times * weights).tolist()), object)


def _peel_direction(points: Integers, y: Integers) -> FacePartition | None:
    """Go on with what a direction leaves on its hyperplane; None when it is none."""
    score = points @ y
    if (score < 0).any() or not (score > 0).any():
        return None
    beyond = score > 0
    weights = np.zeros(len(points), object)
    rest = np.flatnonzero(~beyond)
    if not len(rest):
        return FacePartition(y, beyond, weights)
    inner = partition(points[rest])
    weights[rest] = inner.weights
    if inner.y is None:
        return FacePartition(y, beyond, weights)
    first, second = score[beyond].tolist(), (points[beyond] @ inner.y).tolist()
    # the first outweighs what the other takes, but by no more than that needs
    times = 2 + max(b.bit_length() - a.bit_length() for a, b in zip(first, second, strict=True))
    beyond[rest] = inner.beyond
    return FacePartition((y << max(0, times)) + (inner.y << max(0, -times)), beyond, weights)


def _pivot_bases(points: Integers, ranked: NDArray[np.int64]) -> FacePartition:
    """Pivots until all points are in one conflict, or there is a direction: the dual simplex method. Weights 1 + u, u >= 0 on a
    basis, with a zero sum: sum_i u_i a_i = -sum_j a_j. Where a u_i is negative, the vector y with products 1 with a_i and 0
    with the rest of the basis is a direction, or some a_j with y'a_j < 0 comes in for it. At each basis integers decide whether
    it ends; the next one is a guess of float64 while these are new, and otherwise an exact pivot.
    """
    basis = ranked[independent(points[ranked])]
    known: set[tuple[int, ...]] = set()
    cost = _costs(points, basis)
    for pivots in count():
        inverse, denominator = _invert(points[basis])
        tableau = _multiply(points, inverse)  # (s, r) coordinates in terms of the basis
        u = -tableau.sum(axis=0)
        negative = np.flatnonzero(u < 0)
        if not len(negative):
            weights = np.full(len(points), denominator, object)
            weights[basis] += u
            return FacePartition(None, np.zeros(len(points), np.bool_), np.array(primitive(weights.tolist()), object))
        for i in negative.tolist():
            if not (tableau[:, i] < 0).any():
                split = _peel_direction(points, inverse[:, i])
                assert split is not None, "its product with one of the basis is positive"
                return split
        reduced = cost * denominator - tableau @ cost[basis]
        if (reduced < 0).any():  # float64 has lost the way
            cost = _costs(points, basis)
            reduced = cost
        known.add(tuple(sorted(basis.tolist())))
        ahead = guess_basis(tableau, u, reduced, basis)
        if tuple(sorted(ahead.tolist())) in known or len(independent(points[ahead])) < len(ahead):  # float64 saw no zero pivot
            ahead = basis.copy()
            if pivots < LONG * len(basis):
                out = int(negative[_least(u[negative])])
                # the point with a negative coordinate for which it costs the least to become zero
                row = tableau[:, out]
                ahead[out] = min(np.flatnonzero(row < 0).tolist(), key=lambda j: Fraction(int(reduced[j]), -int(row[j])))
            else:
                out = int(negative[np.argmin(basis[negative])])
                ahead[out] = np.flatnonzero(tableau[:, out] < 0)[0]
        basis = ahead
    raise AssertionError("the least-index rule ends")


def _invert(matrix: Integers) -> tuple[Integers, int]:
    """The inverse (d, d) times a denominator > 0, some columns after the others, which is no slower."""
    d = len(matrix)
    eye, parts, few = np.eye(d, dtype=object), [], max(1, 1024 // d)
    for first in range(0, d, few):
        beat()
        parts.append(solve(matrix, eye[:, first : first + few]))
    denominator = math.lcm(*(each for _, each in parts))
    return np.hstack([some * (denominator // each) for some, each in parts]), denominator


def _multiply(points: Integers, matrix: Integers) -> Integers:
    """The product of points (s, d) and a matrix (d, d), in pieces."""
    few = max(1, AT_ONCE // matrix.size)
    pieces = []
    for first in range(0, len(points), few):
        beat()
        pieces.append(product(points[first : first + few], matrix))
    return np.vstack(pieces)


def _costs(points: Integers, basis: NDArray[np.int64]) -> Integers:
    """Costs (s,), none on a basis: any will do, and those of chance tell all bases apart."""
    cost = np.random.default_rng(0).integers(1 << 20, 1 << 21, len(points)).astype(object)
    cost[basis] = 0
    return np.asarray(cost, object)


def _least(values: Integers) -> int:
    mantissa, exponent = parts(values)
    return int(np.lexsort((mantissa, -exponent))[0])
