"""Proves that some positive weights of given points sum them to exactly zero, from weights that nearly do.

With the support's signed points as columns of C (d, s) and nearly balancing weights w > 0, either of two ways proves an x >= 0,
x != 0 with Cx = 0. Both decide by integers or by bounds, never by rounded numbers.

* Inverse. Where C has full row rank d < s: keep w on all columns but d well-conditioned ones, J, and solve for these. With an
  approximate inverse R of M = C_J and alpha >= |I - R M| < 1, M is regular and the solution of M x = b is within
  |R (b - M x~)| / (1 - alpha) of any x~ (norms are maximum norms). If that leaves every entry positive, x exists. (Rump,
  Verification methods, Acta Numerica 2010, sections 10 and 13.) Being regular M also shows that the support spans the space.
* Partition. For points of any rank and scale: ``dfeas.proof.partition`` says which of them are in a conflict, in integers, and
  gives its weights; those of the heaviest points are looked at first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them
from numpy.typing import NDArray

from dfeas.verify.exact.dyadic import Dyadic, Floats, common
from dfeas.verify.exact.linear import independent
from dfeas.verify.exact.partition import partition

U = 2.0**-53
UP = 1 + 2.0**-45  # covers the roundings in a bound itself
REGULAR = 0.5
"""Largest |I - R M| that is used."""
STEPS = 8
"""Refinements at most; each divides the error by 1 / |I - R M|."""
MANY = 100_000
"""Entries of points that are partitioned, at most: beyond that linear programmes take minutes."""
PIECE = 200_000
"""Entries that are integers at a time."""
LOST = 2.0**-900
"""More than underflow can take from what is bounded here."""
NONE = -(10**6)
"""Stands for the exponent of zero."""
LEAST = -900
"""Least exponent of two of an entry beside a greatest of 0: scaling by powers of two is exact."""


@dataclass(frozen=True)
class Balance:
    """Weights that sum the points to exactly zero exist near the given ones."""

    support: int  # points with a positive weight
    off: float  # largest difference from the given weights, as a share of the largest; an estimate
    spans: bool  # whether the support was shown to span the space


def balance(points: Floats, weights: Floats) -> Balance | None:
    """Whether signed points (s, d), not zero and as stored, have weights x >= 0 with an exactly zero sum, near those given.

    None when nothing is proved.
    """
    scaled = _scaled(points, weights)
    found = None
    if scaled is not None:
        columns, w = scaled
        found = _by_inverse(columns, w, spans=len(columns) == points.shape[1])
    return found or _by_partition(points, weights)


def _scaled(points: Floats, weights: Floats) -> tuple[Floats, Floats] | None:
    """Columns (r, s) without rows of zeros, rows and columns of about length one, and weights, all scaled by powers of two."""
    used = weights > 0
    columns, w = points[used].T, weights[used]
    columns = columns[columns.any(axis=1)]
    if not columns.size:
        return None
    exponents = np.where(columns != 0, np.frexp(columns)[1], NONE)
    across = exponents.max(axis=0)  # of columns: what divides a column multiplies its weight
    along = (exponents - across).max(axis=1)  # of rows, which are equations
    shift = across + along[:, None]
    if np.where(exponents == NONE, 0, exponents - shift).min() < LEAST:
        return None
    w = np.ldexp(w, across)
    return np.ldexp(columns, -shift), np.ldexp(w, -int(np.frexp(w.max())[1]))


def _by_inverse(columns: Floats, w: Floats, *, spans: bool) -> Balance | None:
    d, s = columns.shape
    if s <= d:
        return None
    chosen = _chosen(columns, w)
    matrix = columns[:, chosen]
    try:
        inverse = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(inverse).all():
        return None
    alpha = _defect(inverse, matrix)
    if not alpha < REGULAR:
        return None
    x = Dyadic.of(w)
    for _ in range(STEPS):
        residual = _residual(columns, x)
        step = np.zeros(s)
        step[chosen] = inverse @ residual
        # how far the solution is from x, in any entry
        error = float((np.abs(step[chosen]) + _gamma(d + 16) * (np.abs(inverse) @ np.abs(residual))).max())
        error = error * _slack(d) / (1 - alpha) + LOST
        known = x.floats()
        least = known[chosen].min()  # the others stay as they are
        if least > error * UP:
            return Balance(s, float(np.abs(known - w).max()), spans)
        if not (least > -error and np.isfinite(step).all()):
            return None
        x = x + Dyadic.of(step)
    return None


def _residual(columns: Floats, x: Dyadic) -> Floats:
    """-Cx, exact but for its last bits. In pieces: integers take much memory."""
    rows = max(1, PIECE // columns.shape[1])
    pieces = [-(Dyadic.of(columns[i : i + rows]) @ x) for i in range(0, len(columns), rows)]
    return np.concatenate([piece.floats() for piece in pieces])


def _chosen(columns: Floats, w: Floats) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """As many columns as there are rows, well-conditioned and of large weight."""
    d, s = columns.shape
    if s == d + 1:  # without any one of them the others are independent, or all of this is in vain
        return np.delete(np.arange(s), int(w.argmax()))
    return np.asarray(scipy.linalg.qr(columns * w, mode="r", pivoting=True)[1][:d], np.int64)


def _defect(inverse: NDArray[Any], matrix: Floats) -> float:
    """A bound of |I - R M| in the maximum norm, rounded up."""
    d = len(matrix)
    rounding = _gamma(d) * (np.abs(inverse) @ (np.abs(matrix).sum(axis=1)))
    product = inverse @ matrix
    product[np.diag_indices(d)] -= 1
    return float((np.abs(product).sum(axis=1) + rounding).max()) * _slack(d) + LOST


def _gamma(terms: int) -> float:
    return terms * U / (1 - terms * U)


def _slack(d: int) -> float:
    """Covers the roundings of a bound that is made of sums of d numbers, none of them negative."""
    return (1 + 4 * _gamma(d + 16)) * UP


def _by_partition(points: Floats, weights: Floats) -> Balance | None:
    """Of all points that weigh, those in a conflict."""
    used = np.flatnonzero(weights > 0)
    if not 0 < len(used) * points.shape[1] <= MANY:
        return None
    whole = common(points[used])[0]
    found = partition(whole).weights
    support = np.flatnonzero(found)
    if not len(support):
        return None
    most = max(found)
    shares = np.array([v / most for v in found])
    given = weights[used]
    spans = len(independent(whole[support])) == points.shape[1]
    return Balance(len(support), float(np.abs(shares - given / given.max()).max()), spans)
