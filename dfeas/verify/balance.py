"""Proves that some positive weights of given points sum them to exactly zero, from weights that nearly do.

With the support's signed points as columns of C (d, s) and nearly balancing weights w > 0, either of two ways proves an x >= 0,
x != 0 with Cx = 0. Both decide by integers or by bounds, never by rounded numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.exact.arithmetic import UP_SUMS, Floats, Indices, gamma
from dfeas.exact.dyadic import Dyadic, Integers, common, multiply_exactly
from dfeas.exact.integers import complete

SHARES = (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)
"""Of the heaviest weight: lighter ones are left out, for they may be rounding of zero."""
LOST = 2.0**-900
"""More than underflow can take from what is bounded here."""


@dataclass(frozen=True)
class Balance:
    """Weights that sum the points to exactly zero exist near the given ones."""

    support: int  # points with a positive weight
    off: float  # largest difference from the given weights, as a share of the largest; an estimate


def balance(points: Floats, weights: Floats, whole: Integers | None = None) -> Balance | None:
    """Whether signed points (s, d), not zero and as stored, have weights x >= 0 with an exactly zero sum, near those given.
    ``whole`` (s, d) are they in integers, where floats are near them only. None when nothing is proved.
    """
    used = weights > 0
    points, weights, whole = points[used], weights[used], whole if whole is None else whole[used]
    if not points.any():
        return None
    columns, w, exact = _scale_columns(points, weights)
    proved = _by_inverse(columns, w) if exact and whole is None else None
    return proved or _by_elimination(points, weights, columns, w, whole)


def _scale_columns(points: Floats, weights: Floats) -> tuple[Floats, Floats, bool]:
    """Columns (r, s) without zero rows, and weights, scaled by powers of two to lengths of about 1; and whether exactly."""
    columns = points.T[points.any(axis=0)]
    none = -(10**6)  # stands for the exponent of zero
    exponents = np.where(columns != 0, np.frexp(columns)[1], none)
    across = exponents.max(axis=0)  # of columns: what divides a column multiplies its weight
    along = (exponents - across).max(axis=1)  # of rows, which are equations
    shift = across + along[:, None]
    # least exponent of two of an entry beside a greatest of 0: scaling by powers of two is exact
    exact = bool(np.where(exponents == none, 0, exponents - shift).min() >= -900)
    w = np.ldexp(weights, across)
    return np.ldexp(columns, -shift), np.ldexp(w, -int(np.frexp(w.max())[1])), exact


def _by_inverse(columns: Floats, w: Floats) -> Balance | None:
    """Where C has full row rank d < s: keep w on all columns but d well-conditioned ones, J, and solve for these. With an
    approximate inverse R of M = C_J and alpha >= |I - R M| < 1, M is regular and the solution of M x = b is within |R (b - M
    x~)| / (1 - alpha) of any x~ (norms are maximum norms). If that leaves every entry positive, x exists. (Rump, Verification
    methods, Acta Numerica 2010, sections 10 and 13.)
    """
    d, s = columns.shape
    if s <= d:
        return None
    chosen = _choose_columns(columns, w)
    matrix = columns[:, chosen]
    try:
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(inverse).all():
        return None
    alpha = _defect(inverse, matrix)
    if not alpha < 0.5:  # largest |I - R M| that is used
        return None
    x = Dyadic.of(w)
    for _ in range(8):  # refinements at most; each divides the error by 1 / |I - R M|
        residual = _residual(columns, x)
        step = np.zeros(s)
        step[chosen] = inverse @ residual
        # how far the solution is from x, in any entry
        error = float((np.abs(step[chosen]) + gamma(d + 16) * (np.abs(inverse) @ np.abs(residual))).max())
        error = error * _slack(d) / (1 - alpha) + LOST
        known = x.floats()
        least = known[chosen].min()  # the others stay as they are
        if least > error * UP_SUMS:
            return Balance(s, float(np.abs(known - w).max()))
        if not (least > -error and np.isfinite(step).all()):
            return None
        x = x + Dyadic.of(step)
    return None


def _residual(columns: Floats, x: Dyadic) -> Floats:
    """-Cx, exact but for its last bits. In pieces: integers take much memory."""
    rows = max(1, 200_000 // columns.shape[1])  # entries that are integers at a time
    pieces = [multiply_exactly(columns[i : i + rows], x) for i in range(0, len(columns), rows)]
    return np.concatenate([(-piece).floats() for piece in pieces])


def _choose_columns(columns: Floats, w: Floats) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """As many columns as there are rows, well-conditioned and of large weight."""
    d, s = columns.shape
    if s == d + 1:  # without any one of them the others are independent, or all of this is in vain
        return np.delete(np.arange(s), int(w.argmax()))
    import scipy

    return np.asarray(scipy.linalg.qr(columns * w, mode="r", pivoting=True)[1][:d], np.int64)


def _defect(inverse: NDArray[Any], matrix: Floats) -> float:
    """A bound of |I - R M| in the maximum norm, rounded up."""
    d = len(matrix)
    rounding = gamma(d) * (np.abs(inverse) @ (np.abs(matrix).sum(axis=1)))
    product = inverse @ matrix
    product[np.diag_indices(d)] -= 1
    return float((np.abs(product).sum(axis=1) + rounding).max()) * _slack(d) + LOST


def _slack(d: int) -> float:
    """Covers the roundings of a bound that is made of sums of d numbers, none of them negative."""
    return (1 + 4 * gamma(d + 16)) * UP_SUMS


def most_bits(entries: int) -> float:
    """Of so many integers that are eliminated, at most."""
    # entries of points to the power 1.5, times the bits of the longest integer: 100,000 of 53 bits, or 1.4 million of 0
    # and 1 take seconds, and more take minutes
    return float(1.7e9 / entries**1.5)


def _by_elimination(points: Floats, weights: Floats, columns: Floats, w: Floats, whole: Integers | None) -> Balance | None:
    """``columns`` and ``w`` are points and weights as scaled for float64.

    For points of any rank and scale: w stays on all columns but a basis J of what they span, and x_J follows in integers. What
    comes out is an x that sums the points to zero, entry by entry, and proves itself. Columns times their weights are about
    even, and J is chosen among these by pivots, so that small errors of w stay small beside each entry of x_J. Weights that may
    be rounding of zero are left out step by step, the lightest first.
    """
    most = most_bits(points.size)
    if most < 1:
        return None
    whole, given = common(points)[0] if whole is None else whole, Dyadic.of(weights).digits
    if int(np.abs(whole).max()).bit_length() > most:
        return None
    last = np.zeros(0, np.int64)
    for share in SHARES:
        kept = np.flatnonzero(w > share * w.max())
        x = None if np.array_equal(kept, last) else _complete_weights(whole, given, columns * w, kept)
        if x is not None:
            shares = np.array([v / max(x) for v in x])
            return Balance(int((x > 0).sum()), float(np.abs(shares - weights / weights.max()).max()))
        last = kept
    return None


def _complete_weights(whole: Integers, given: Integers, columns: Floats, kept: Indices) -> Integers | None:
    """x (s,) >= 0, not zero, with a zero sum of points (s, d) in integers: the weights given to some of those that are kept,
    and what follows from these for the others. None when that is negative. ``columns`` (r, s) are about even.
    """
    import scipy

    x = complete(whole, given, kept[scipy.linalg.qr(columns[:, kept], mode="r", pivoting=True)[1]])
    return x if x is not None and (x >= 0).all() and x.any() else None
