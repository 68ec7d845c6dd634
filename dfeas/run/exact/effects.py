"""Levels of several effects: those that are on one side only leave, and what is left is decided by one sparse programme.

A level with one class only separates its rows (Correia, Guimaraes and Zylkin 2019); without these others are so. Of what is
left one linear programme guesses which points conflict, with weights, and a direction for the others. Eliminating the points
that conflict makes both exact: weights of a basis follow from the others, and entries of the direction at the pivots do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dfeas.exact.arithmetic import Floats
from dfeas.exact.dyadic import Integers, integer_signs
from dfeas.exact.echelon import Echelon, IntegerEntries, exponents
from dfeas.exact.integers import independent, nullspace, primitive, solve, unscale_vectors
from dfeas.records import replace
from dfeas.run.exact.guesses import APART, heavy, whole
from dfeas.run.exact.levels import Indices, Levels
from dfeas.run.exact.partition import HEAVY
from dfeas.run.exact.search import MOST_BESIDE, Conflict, Face, decide_levels
from dfeas.verify.separation import COMPLETE, OVERLAP, QUASI

FLAT = 20_000_000
"""Entries of vectors orthogonal to all points that are written, at most."""
BITS = 24
"""Guesses are rounded to so many binary places."""


def decide_effects(points: Any) -> tuple[Face, Conflict] | None:
    """What is proved of signed points (n, d), a CSR matrix, and a conflict of few of them. None where none has a level that
    could be eliminated, or too much depends on each other. Who hears its beats may end it.
    """
    points = points.copy()
    points.eliminate_zeros()
    left, first = peel_levels(points)
    none = np.zeros((points.shape[1], 0), object)
    if not len(left):
        return Face(COMPLETE, first, 0, left, none[0], 0, none, 1), (left, none[0])
    some = points[left]
    used = np.arange(points.shape[1]) if first is None else np.unique(some.indices)
    some = some[:, used]
    levels = Levels.of(some)
    if levels is None or len(levels.empty) * levels.d > FLAT:
        return None
    narrow = len(levels.columns) <= MOST_BESIDE
    decided = decide_levels(levels) if narrow else decide_sparse(some)
    if decided is None or first is None:
        return decided
    face, (few, amounts) = decided
    y, on = first, len(left)
    if face.y is not None:  # points that left are at 1 or more there, which outweighs what the others add
        y, on = first * (1 + int(abs(face.y).sum()) * math.ceil(abs(points.data).max())), face.on
        y[used] += face.y
    face = replace(face, kind=QUASI if on else COMPLETE, y=y, on=on, support=left[face.support], flat=none)
    return face, (left[few], amounts)


def peel_levels(points: Any) -> tuple[Indices, Integers | None]:
    """Numbers of the signed points, a CSR matrix, without a feature of 1 and -1 that is on one side only, and y (d,) by which
    the others leave. y'a is 0 for those that are left and at least 1 for the others; None where all are left. Points that leave
    make other levels one-sided, and what these are for points that left before is outweighed.
    """
    left, y, most = np.arange(points.shape[0]), None, int(np.diff(points.indptr).max(initial=0))
    plain = np.ones(points.shape[1], np.bool_)
    plain[points.indices[np.abs(points.data) != 1]] = False
    while len(left):
        some = points[left]
        above, below = (np.bincount(some.indices[some.data * side > 0], minlength=len(plain)) > 0 for side in (1, -1))
        chosen = plain & (above != below)
        if not chosen.any():
            break
        y = np.zeros(len(plain), object) if y is None else y * (most + 1)
        y[chosen] += np.where(above[chosen], 1, -1).astype(object)
        gone = np.repeat(np.arange(len(left)), np.diff(some.indptr))[chosen[some.indices]]
        left = np.delete(left, gone)
    return left, y


def decide_sparse(points: Any) -> tuple[Face, Conflict] | None:
    """The same by one linear programme; None where what follows from its guess is not so."""
    import scipy

    n, d = points.shape
    # HiGHS does not stop when it is asked to: no programme of many entries, or of long points
    if points.nnz > 150_000 or points.nnz > 16 * n:
        return None
    power = np.frexp(abs(points).max(axis=0).toarray())[1].astype(np.int64)
    scaled = scipy.sparse.csr_array(points * np.ldexp(1.0, -power))
    guessed = heavy(scaled)
    if guessed is None:
        return None
    x, z = guessed
    least, on = exponents(points), np.flatnonzero(x > HEAVY)
    entries = IntegerEntries.of(points[on], least)
    echelon = Echelon.of(entries, numbered=True)
    if len(echelon.others) * (d - len(echelon.terms)) > FLAT:
        return None
    rest, columns, basis = echelon.dense
    rank, weights = len(echelon.terms) + len(basis), _balance_points(entries, x[on], echelon)
    if weights is None or (len(on) == n and d * (d - rank) > FLAT):
        return None
    conflict = _find_few(points[on], least, scaled[on]) or (np.arange(len(on)), weights)
    few = on[conflict[0]], conflict[1]
    none = np.zeros((d, 0), object)
    if len(on) == n:
        flat = unscale_vectors(echelon.nullspace(np.arange(d)), least)
        return Face(OVERLAP, None, 0, on, weights, rank, flat, 1), few
    start = whole(np.rint(np.ldexp(z, BITS)), least - power)
    if len(columns):
        across = nullspace(rest[basis])
        start = start << max(int(v).bit_length() for v in [*across.flat, 0])
        times = np.linalg.lstsq(across.astype(np.float64), start[columns].astype(np.float64))[0]
        start[columns] = across @ np.array([round(v) for v in times.tolist()], object)
    y = unscale_vectors(echelon.lift(start)[:, None], least)[:, 0]
    sign = integer_signs(points, y)[0]
    if sign[on].any() or not (np.delete(sign, on) > 0).all():
        return None
    return Face(QUASI if len(on) else COMPLETE, y, len(on), on, weights, rank, none, 1), few


def _find_few(points: Any, least: Indices, scaled: Any) -> Conflict | None:
    """A conflict of few of these points (s, d), all of which conflict, a vertex of a linear programme, exactly."""
    import scipy

    if not points.shape[0]:
        return None
    bounds = [(1.0, 1.0)] + [(0.0, np.inf)] * (points.shape[0] - 1)
    matrix: Any = scipy.sparse.csc_array(scaled.T)
    zero, cost = np.zeros(points.shape[1]), np.ones(points.shape[0])
    optimum = scipy.optimize.linprog(cost, A_eq=matrix, b_eq=zero, bounds=bounds, method="highs-ds")
    if optimum.x is None or optimum.status != 0:
        return None
    few = np.flatnonzero(optimum.x > APART)
    entries = IntegerEntries.of(points[few], least)
    weights = _balance_points(entries, optimum.x[few], Echelon.of(entries, numbered=True))
    return None if weights is None else (few, weights)


def _balance_points(entries: IntegerEntries, x: Floats, echelon: Echelon) -> Integers | None:
    """Positive weights (s,) with an exactly zero sum, near a guess; None where they are not so."""
    rest, columns, basis = echelon.dense
    weights = np.array([round(v) for v in np.ldexp(x, BITS).tolist()], object)
    follows = echelon.reduce(dict(enumerate(entries.sum(weights).tolist())))
    denominator, change = 1, np.zeros(len(x), object)
    if len(basis):
        chosen = independent(rest[basis].T)
        right = np.array([[follows.get(column, 0)] for column in columns[chosen].tolist()], object)
        times, denominator = solve(rest[np.ix_(basis, chosen)].T, right)
        for row, factor in zip(basis.tolist(), times[:, 0].tolist(), strict=True):
            for column, value in echelon.others[row].items():
                if column < 0:
                    change[-1 - column] += factor * value
    for column, value in follows.items():
        if column < 0:
            change[-1 - column] -= denominator * value
    weights = denominator * weights + change
    if not (weights > 0).all() or entries.sum(weights).any():
        return None
    return np.array(primitive(weights.tolist()), object)
