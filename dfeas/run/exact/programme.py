"""A system of inequalities in memory, asked as a linear programme in float64 (HiGHS), and what follows from that exactly.

Points (s, d) stand for the system as in ``dfeas.data.inequalities``: x has (x, 1) on the positive side of each. Where there
are equalities a vertex tells a solution; a search among points finds one slowly, as no hyperplane has all of them beyond it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from dfeas.data.storage.patience import at_most
from dfeas.exact.dyadic import Dyadic, Integers, common, integer_signs, multiply_exactly
from dfeas.exact.integers import combine, independent, primitive, solve
from dfeas.linalg.blas import beat
from dfeas.linalg.points import Floats, Indices

TIGHT = 1e-7
"""Share of its terms up to which an inequality of a guess is taken for an equality, and so is one of a multiplier for none."""
SIMPLE = 64
"""Denominators up to which numbers of a guess are taken for fractions."""
TRIES = 64
"""Programmes that are asked for a smaller conflict, at most."""
PIVOTS = 100
"""Exact ones, at most, from a guess that nearly holds."""
SECONDS = 60.0
"""Of a programme that takes longer nothing is said: what is done without it may take less."""


def ask(points: Any, plus: Indices, minus: Indices) -> tuple[Floats, Floats] | None:
    """x (d - 1,) that violates points (s, d), CSR, by as little in sum as any, and the multipliers (s,) >= 0 that prove it, all
    zero where nothing is violated. Those of ``plus`` are of one side of equalities, of ``minus`` of the other.
    None where HiGHS has no optimum.
    """
    import scipy

    (s, m), (left, right) = (points.shape[0], points.shape[1] - 1), _sides(points)
    limits, bound = _bounds(left, right, np.concatenate([plus, minus]))
    rows = np.setdiff1d(np.arange(s), np.concatenate([plus, minus, bound[bound >= 0]]))
    n, p = len(rows), len(plus)
    eye, none = scipy.sparse.eye_array, scipy.sparse.csr_array
    kept = np.flatnonzero(np.diff(left.indptr)[rows])
    if (right[np.delete(rows, kept)] < 0).any():
        return None
    rows, n = rows[kept], len(kept)
    above = scipy.sparse.hstack([left[rows], -eye(n), none((n, 2 * p))], "csc") if n else None
    equal = scipy.sparse.hstack([left[plus], none((p, n)), eye(p), -eye(p)], "csc") if p else None
    bounds: Any = np.vstack([limits, np.tile([0.0, np.inf], (n + 2 * p, 1))])
    optimum = scipy.optimize.linprog(
        np.concatenate([np.zeros(m), np.ones(n + 2 * p)]),
        A_ub=above,
        b_ub=right[rows] if n else None,
        A_eq=equal,
        b_eq=right[plus] if p else None,
        bounds=bounds,
        method="highs-ds",
        options={"time_limit": at_most(SECONDS)},
    )
    if optimum.x is None or optimum.fun is None or optimum.status != 0:
        return None
    weights = np.zeros(s)
    if n:
        weights[rows] = -optimum.ineqlin.marginals
    if p:
        weights[plus], weights[minus] = np.maximum(-optimum.eqlin.marginals, 0), np.maximum(optimum.eqlin.marginals, 0)
    for side, sign, marginals in ((0, 1, optimum.lower.marginals), (1, -1, optimum.upper.marginals)):
        there = bound[:, side] >= 0
        weights[bound[there, side]] = sign * marginals[:m][there]
    weights[weights <= TIGHT * weights.max(initial=0.0)] = 0.0
    violated = optimum.fun > TIGHT * (1 + float(np.abs(right).max(initial=0.0)))
    return optimum.x[:m], weights if violated else np.zeros(s)


def _bounds(left: Any, right: Floats, others: Indices) -> tuple[Floats, Indices]:
    """Lower and upper bounds (m, 2) that points say, but for some others, and which points (m, 2) say so; -1 for none."""
    m = left.shape[1]
    bounds, place = np.tile([-np.inf, np.inf], (m, 1)), np.full((m, 2), -1)
    single = np.setdiff1d(np.flatnonzero(np.diff(left.indptr) == 1), others)
    entry, feature = left.data[left.indptr[single]], left.indices[left.indptr[single]]
    for j, a, i in zip(single.tolist(), entry.tolist(), feature.tolist(), strict=True):
        side, value = int(a > 0), right[j] * a
        # +-1: of another factor the bound would be rounded
        if abs(a) == 1 and (value < bounds[i, 1] if side else value > bounds[i, 0]):
            bounds[i, side], place[i, side] = value, j
    return bounds, place


def narrow(points: Any, plus: Indices, minus: Indices, weights: Floats) -> Indices:
    """Fewer points (r,) that conflict than those that have weights (s,) >= 0: rows are left out, many at once and then fewer,
    as long as the others, and all bounds, conflict. As many programmes are asked as are worth it.
    """
    bounds = _bounds(*_sides(points), np.concatenate([plus, minus]))[1]
    bounds = np.append(bounds[bounds >= 0], points.shape[0] - 1)
    other = np.full(points.shape[0], -1)
    other[plus], other[minus] = minus, plus
    best, asked = np.flatnonzero(weights), 0
    held = np.setdiff1d(best, points.shape[0] - 1)
    if len(held) < points.shape[1] and len(independent(common(points[held].toarray())[0])) == len(held):
        return best
    rows = np.setdiff1d(best, bounds)
    size, first = len(rows) // 2, 0
    until = time.monotonic() + SECONDS
    while size and asked < TRIES and time.monotonic() < until:
        beat()
        fewer = np.delete(rows, np.s_[first : first + size])
        kept = np.unique(np.concatenate([fewer, other[fewer][other[fewer] >= 0], bounds]))
        some = np.flatnonzero(np.isin(plus, kept))
        found = ask(points[kept], np.searchsorted(kept, plus[some]), np.searchsorted(kept, minus[some]))
        asked += 1
        if found is not None and found[1].any():
            best = kept[np.flatnonzero(found[1])]
            rows = np.setdiff1d(best, bounds)
        else:
            first += size
        size = min(size, len(rows) - 1)
        if first >= len(rows):
            size, first = size // 2, 0
    return best


def _sides(points: Any) -> tuple[Any, Floats]:
    """Left sides, CSR, and right sides of inequalities."""
    import scipy

    m = points.shape[1] - 1
    return scipy.sparse.csr_array(-points[:, :m]), points[:, [m]].toarray()[:, 0]


def settle(points: Any, plus: Indices, minus: Indices, x: Floats) -> tuple[Integers | None, tuple[Indices, Integers] | None]:
    """(x, 1) times a number above 0 in integers (d,), near a guess x (d - 1,) and with no point (s, d) on its negative side; or
    points that conflict with the last one, which rounding hid, and their weights; None where neither is found. Tried are
    simple fractions, and then what solves exactly all that seem to be equalities.
    """
    y = _whole([Fraction(v).limit_denominator(SIMPLE) for v in x.tolist()])
    if (integer_signs(points, y)[0] >= 0).all():
        return y, None
    size = abs(points) @ np.append(np.abs(x), 1.0)
    near = np.flatnonzero(points @ np.append(x, 1.0) <= TIGHT * size)
    tight = np.setdiff1d(near, np.concatenate([plus, minus]))
    other = dict(zip(plus.tolist() + minus.tolist(), minus.tolist() + plus.tolist(), strict=True))
    for _ in range(PIVOTS):
        beat()
        # equalities are the first, so that what follows from others is an inequality
        values, rows, features = _solve_tight(points, np.concatenate([plus, tight]), x)
        y = _whole(values)
        wrong = np.flatnonzero(integer_signs(points, y)[0] < 0)
        if not len(wrong):
            return y, None
        fixed = tight[np.diff(points[tight][:, : len(x)].indptr) == 1]
        found, against = _combine_dependent(points, int(wrong[0]), rows, features, fixed, other)
        if found is not None:
            return None, found
        # the dual simplex method: it is zero there next, and not on one that is against it, with the least numbers (Bland 1977)
        tight = np.setdiff1d(np.union1d(tight, wrong[:1]), [*against[:1], *other])
    return None, None


def _solve_tight(points: Any, tight: Indices, x: Floats) -> tuple[list[Fraction], Indices, Indices]:
    """The exact x (d - 1,) near a guess with a product of zero with the tight ones of points (s, d), CSR, as far as these are
    independent; those of them that are, but for bounds, and the features (r,) that follow from these.
    """
    m = len(x)
    left = points[tight][:, :m]
    found, free, none = [Fraction(v) for v in x.tolist()], np.ones(m, np.bool_), np.zeros(0, np.int64)
    for j in np.flatnonzero(np.diff(left.indptr) == 1).tolist():
        i, a = left.indices[left.indptr[j]], left.data[left.indptr[j]]
        if free[i]:
            found[i], free[i] = -Fraction(float(points[tight[j], m])) / Fraction(float(a)), False
    rows = np.flatnonzero(np.diff(left.indptr) > 1)
    some = np.flatnonzero(free & (left[rows] != 0).sum(axis=0).astype(bool))
    if not len(rows) or not len(some):
        return found, none, none
    digits, exponent = common(left[rows][:, some].toarray())
    rank = independent(digits)
    chosen = independent(digits[rank].T)
    basis = some[chosen]
    known = np.setdiff1d(np.flatnonzero([bool(v) for v in found]), basis)
    scale = lcm(*(found[i].denominator for i in known.tolist()))
    vector = np.array([*(int(found[i] * scale) for i in known.tolist()), scale], object)
    beside = points[tight[rows[rank]]][:, [*known.tolist(), m]].toarray()
    right = multiply_exactly(beside, Dyadic(vector, 0))
    follows, denominator = solve(digits[np.ix_(rank, chosen)], -right.digits[:, None])
    for i, power, value in zip(basis.tolist(), exponent[chosen].tolist(), follows[:, 0].tolist(), strict=True):
        found[i] = Fraction(value, denominator * scale) * Fraction(2) ** (right.exponent - power)
    return found, tight[rows[rank]], basis


def _combine_dependent(
    points: Any, j: int, rows: Indices, features: Indices, fixed: Indices, other: Mapping[int, int]
) -> tuple[tuple[Indices, Integers] | None, list[int]]:
    """Points that conflict with the last one, and their weights: j, on the negative side of what is zero on independent rows
    and bounds that are ``fixed``, and those that cancel its features. Otherwise those whose weights would be negative, if they
    have no ``other`` side.
    """
    d, r, number = points.shape[1], len(rows), np.append(j, rows)
    digits, weights = common(points[number].toarray())[0], np.ones(1 + len(rows), object)
    if r:
        follows, weights[0] = solve(digits[1:, features].T, digits[0, features][:, None])
        weights[1:] = -follows[:, 0]
    against = list[int]()
    for k in np.flatnonzero(weights < 0).tolist():
        opposite = other.get(int(number[k]))
        if opposite is None:
            against.append(int(number[k]))
        else:
            number[k], digits[k], weights[k] = opposite, -digits[k], -weights[k]
    of = points[fixed][:, : d - 1].indices
    there = combine(weights, digits)[of] != 0
    number, of = np.concatenate([number, fixed[there], [points.shape[0] - 1]]), of[there]
    digits = common(points[number].toarray())[0]
    weights = np.append(weights, np.zeros(1 + len(of), object))
    total = combine(weights, digits)
    missed = dict[int, int]()
    for k, i in enumerate(of.tolist(), 1 + r):
        if total[i] and (total[i] > 0) == (digits[k, i] > 0):
            missed[i] = int(number[k])
        elif total[i]:
            times = abs(int(digits[k, i]))
            weights, total = weights * times, total * times
            weights[k] = abs(total[i]) // times
            total = total + weights[k] * digits[k]
    open_features = np.flatnonzero(total[: d - 1])
    if against or len(open_features) or total[-1] >= 0:
        against += [missed[i] for i in open_features.tolist() if i in missed]
        return None, sorted(against) if all(i in missed for i in open_features.tolist()) else []
    weights = weights * digits[-1, -1]
    weights[-1] = -total[-1]
    held = np.flatnonzero(weights)
    order = held[np.argsort(number[held])]
    return (number[order], np.array(primitive(weights[order].tolist()), object)), []


def _whole(values: list[Fraction]) -> Integers:
    """(values, 1) times a number above 0."""
    times = lcm(*(v.denominator for v in values))
    return np.array(primitive([*(v.numerator * (times // v.denominator) for v in values), times]), object)
