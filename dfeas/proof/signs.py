"""Signs of scores that float64 cannot tell: compensated products, and integers where these do not do either.

The compensated product (Dot2 of Ogita, Rump and Oishi, Accurate sum and dot product, SIAM J. Sci. Comput. 2005) is as good as
one in twice the precision: |result - x'y| <= u |x'y| + gamma_m^2 |x|'|y| + 5 m 2**-1074, with u = 2**-53.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.proof.dyadic import Dyadic, Floats

U = 2.0**-53
TINY = 2.0**-1074
UP = 1 + 2.0**-45
SPLIT = 2.0**27 + 1
LARGE = 1e140
"""Magnitudes below this are split and multiplied without overflow."""
SMALL = 2.0**-900
"""Products above this have errors that do not underflow."""
PIECE = 100_000
"""Entries that are integers at a time."""


def signs(points: Floats, y: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Signs (k,) of the scores x_j'y of points (k, m), and lower bounds (k,) of their magnitudes."""
    score, bound = compensated(points, y)
    with np.errstate(invalid="ignore"):
        least = (np.abs(score) - bound) / UP
        sure = least > 0
    sign = np.where(sure, np.sign(score), 0).astype(np.int8)
    least = np.where(sure, least, 0.0)
    left = np.flatnonzero(~sure)
    rows = max(1, PIECE // len(y))
    exact_y = Dyadic.of(y)
    for first in range(0, len(left), rows):
        chosen = left[first : first + rows]
        exact = Dyadic.of(points[chosen]) @ exact_y
        sign[chosen] = exact.sign()
        least[chosen] = np.maximum(np.abs(exact.floats()) - TINY, 0.0) / UP
    return sign, least


def compensated(points: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Scores (k,) of points (k, m), and bounds (k,) of their errors; infinite where nothing is known."""
    m = len(y)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        total, rest = np.zeros(len(points)), np.zeros(len(points))
        for column, factor in zip(np.ascontiguousarray(points.T), y.tolist(), strict=True):
            product = column * factor
            high, low = _halves(column)
            other, lower = _halves(np.float64(factor))
            error = low * lower - (((product - high * other) - low * other) - high * lower)
            added = total + product
            part = added - total
            rest += error + ((total - (added - part)) + (product - part))
            total = added
        score = total + rest
        gamma = m * U / (1 - m * U)
        bound = (U * np.abs(score) + gamma**2 * (np.abs(points) @ np.abs(y)) * (1 + 4 * gamma)) * UP + 5 * m * TINY
    sizes = np.abs(points).max(axis=1, initial=0.0)
    safe = (sizes < LARGE) & (np.abs(y).max() < LARGE) & np.isfinite(score)
    return score, np.where(safe, bound, np.inf)


def products(first: Floats, second: Floats) -> tuple[Floats, Floats] | None:
    """Products (m,) as pairs of floats whose sums they are exactly; None where one under- or overflows."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        product = first * second
        (high, low), (other, lower) = _halves(first), _halves(second)
        error = low * lower - (((product - high * other) - low * other) - high * lower)
    sizes = np.abs(product)
    zero = (first == 0) | (second == 0)
    safe = zero | ((sizes > SMALL) & (np.abs(first) < LARGE) & (np.abs(second) < LARGE))
    return (product, np.where(zero, 0.0, error)) if safe.all() else None


def _halves(values: Any) -> tuple[Any, Any]:
    """Two numbers of at most 26 bits each whose sum the value is (Dekker 1971)."""
    shifted = SPLIT * values
    high = shifted - (shifted - values)
    return high, values - high
