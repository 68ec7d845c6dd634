"""Proves how infeasible points are: a ball about the origin in the hull of their unit vectors.

For infeasible points the best margin is negative, -r, where r is the radius of the largest ball about the origin in the hull of
the unit points (Ramdas and Pena 2014, Theorem 3). Finding r is hard where points are many: it is the distance of the nearest of
all facets. A lower bound needs weights only. Let a_j (j = 1 .. s) be unit points in d dimensions, x > 0, and G (s, d) with rows
g_j and E = I - sum_j a_j g_j'. For a unit vector u and rho = min_j x_j / |g_j| the weights c = x + rho G u are not negative,
and their combination of points has the product

    sum_j c_j a_j'u = rho - rho u'E u + (sum_j x_j a_j)'u >= rho (1 - |E|) - |Ax|

with u. A point of the hull is that combination over the sum of c, which is at most sigma = sum_j x_j + rho |sum_j g_j|. As
this holds for every u, r >= (rho (1 - |E|) - |Ax|) / sigma, whatever x and G are. Taken is the G of least sum_j |g_j|^2 / x_j
with E = 0: of d + 1 points with Ax = 0, sum(x) = 1 that is the only one for which the sum of c stays 1, and the bound is the
distance of the nearest facet, which is r of these points. With more points it is at least the least eigenvalue of
sum_j x_j a_j a_j', and for no weights above 1 / d.

Many points show more than that. Let b_i (i = 1 .. d) be nearly orthonormal, the columns of B, and let the hull have points
v_i+ = s_i+ b_i + e and v_i- = -s_i- b_i + e, with |e| <= eta. With s_i the lesser of both, one has with u a product of at least
max_i s_i |b_i'u| - eta, and as |B'u|^2 = sum_i (b_i'u)^2 it follows that

    r >= sqrt(1 - |I - BB'|) / sqrt(sum_i 1 / s_i^2) - eta.

Linear programs, min sum(x) with sum_j x_j a_j = +-b_i, x >= 0, find these points, and are not believed. Where one direction is
far thinner than all others and b_1 is it, this is nearly r.
"""

from __future__ import annotations

import numpy as np

from dfeas.exact.arithmetic import UP_SUMS, Floats, gamma, longest

DIGITS = 24
"""Bits of a radius that are reported: the others depend on the order of sums."""


def bound_radius(units: Floats, x: Floats, off: float) -> float:
    """A lower bound of the radius of the ball about the origin in the hull of points, from weights x (s,) > 0 of unit points
    (s, d), each of which is at most ``off`` from the one that is meant. 0 where none is proved, as of points that do not span.
    """
    s, d = units.shape
    if s <= d:
        return 0.0
    root = np.sqrt(x / x.sum())
    with np.errstate(all="ignore"):
        q, triangle = np.linalg.qr(units * root[:, None])
        try:
            rule = root[:, None] * _solve(triangle, q.T).T
        except np.linalg.LinAlgError:
            return 0.0
        if not np.isfinite(rule).all():
            return 0.0
        return _prove_radius(units, x / x.sum(), rule, off)


def _solve(triangle: Floats, wanted: Floats) -> Floats:
    """R X = B for an upper triangle; raises LinAlgError for a zero on its diagonal. NumPy takes three times as long for it."""
    if len(triangle) <= 256:  # which take less than the loading of ``scipy.linalg``
        return np.asarray(np.linalg.solve(triangle, wanted), np.float64)
    import scipy

    return np.asarray(scipy.linalg.solve_triangular(triangle, wanted, check_finite=False))


def _prove_radius(units: Floats, x: Floats, rule: Floats, off: float) -> float:
    s, d = units.shape
    product, magnitude = np.abs(np.eye(d) - units.T @ rule), np.abs(units).T @ np.abs(rule)
    wrong = float(longest((product + gamma(s + 2) * (magnitude + 1)).reshape(-1))) * UP_SUMS
    residual = float(longest(np.abs(x @ units) + gamma(s + 2) * (x @ np.abs(units)))) * UP_SUMS
    used = np.abs(rule).max(axis=1) > 0
    rho = float((x[used] / longest(rule[used])).min()) / UP_SUMS
    drift = np.abs(rule.sum(axis=0)) + gamma(s + 2) * np.abs(rule).sum(axis=0)
    sigma = (float(x.sum()) * (1 + gamma(s)) + rho * float(longest(drift))) * UP_SUMS
    return _round_down((rho * (1 - wrong) / UP_SUMS - residual) / sigma / UP_SUMS - off)


def _round_down(radius: float) -> float:
    if not radius > 0:
        return 0.0
    power = DIGITS - int(np.frexp(radius)[1])
    return float(np.ldexp(np.floor(np.ldexp(radius, power)), -power))


def bound_across(units: Floats, y: Floats, off: float) -> float:
    """A lower bound of that radius from points (s, d) along their principal axes, or with y (d,) as the first: along those on
    which they reach farther. 0 where none is proved.
    """
    s, d = units.shape
    plain = np.linalg.eigh(units.T @ units)[1]
    axes = max(plain, np.linalg.qr(np.column_stack([y, plain]))[0], key=lambda axes: _seen_across(units @ axes))
    reach, wrong = np.empty((d, 2)), 0.0
    for i, side in np.ndindex(d, 2):
        axis = axes[:, i] * (1 - 2 * side)
        x = _find_amounts(units, axis)
        if x is None:
            return 0.0
        x = x / x.sum()
        point = x @ units
        reach[i, side] = float(point @ axis)
        rest = np.abs(point - reach[i, side] * axis) + gamma(s + 4) * (x @ np.abs(units) + np.abs(point) + 1)
        wrong = max(wrong, float(longest(rest)) * UP_SUMS)
    product = np.abs(np.eye(d) - axes @ axes.T) + gamma(d + 2) * (np.abs(axes) @ np.abs(axes.T) + 1)
    skew, least = float(longest(product.reshape(-1))) * UP_SUMS, reach.min(axis=1)
    if not (least.min() > 0 and skew < 1):
        return 0.0
    across = float(np.sqrt(1 - skew)) / float(longest(1 / least)) / UP_SUMS**2
    return _round_down(across - (wrong + off) * UP_SUMS)


def _seen_across(along: Floats) -> float:
    """What the bound is at most, of points (s, d) by their places along the axes."""
    least = np.minimum(along.max(axis=0), -along.min(axis=0))
    return 0.0 if least.min() <= 0 else 1 / float(np.linalg.norm(1 / least))


def _find_amounts(units: Floats, axis: Floats) -> Floats | None:
    """x (s,) >= 0 of about the least sum with which points (s, d) sum to about an axis; None where none is found."""
    import scipy

    found = scipy.optimize.linprog(np.ones(len(units)), A_eq=units.T, b_eq=axis, bounds=(0, None), method="highs")
    if found.x is None or not found.x.any():
        return None
    used = np.flatnonzero(found.x > 0)
    x = np.zeros(len(units))
    x[used] = np.maximum(np.linalg.lstsq(units[used].T, axis, rcond=None)[0], 0.0)
    return x if x.any() else None
