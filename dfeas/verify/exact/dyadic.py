"""Floats as integers: every float64 is an integer times a power of two; and signs that float64 cannot tell.

The compensated product (Dot2 of Ogita, Rump and Oishi, Accurate sum and dot product, SIAM J. Sci. Comput. 2005) is as good as
one in twice the precision: |result - x'y| <= u |x'y| + gamma_m^2 |x|'|y| + 5 m 2**-1074, with u = 2**-53.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.verify.rounding import TINY, U, gamma
from dfeas.verify.rounding import UP_SUMS as UP

Floats = NDArray[np.float64]
Integers = NDArray[np.object_]
"""Python integers of any length."""

_MANTISSA = 53
_FAR = 1 << 20
"""Above all exponents."""


@dataclass(frozen=True)
class Dyadic:
    """``digits`` 2**``exponent``, exactly. Digits have any shape; the exponent is one for all."""

    digits: Integers
    exponent: int

    @classmethod
    def of(cls, values: Floats) -> Dyadic:
        if not values.size:
            return cls(values.astype(object), 0)
        mantissa, exponent = np.frexp(values)
        whole = np.ldexp(mantissa, _MANTISSA).astype(np.int64)
        shift = np.where(whole != 0, exponent.astype(np.int64) - _MANTISSA, np.iinfo(np.int64).max)
        least = int(shift.min()) if (whole != 0).any() else 0
        shift = np.where(whole != 0, shift - least, 0)
        return cls(whole.astype(object) << shift.astype(object), least)

    def at(self, exponent: int) -> Integers:
        """The digits at a lower exponent."""
        return np.asarray(self.digits << (self.exponent - exponent), object)

    def __add__(self, other: Dyadic) -> Dyadic:
        least = min(self.exponent, other.exponent)
        return Dyadic(np.asarray(self.at(least) + other.at(least), object), least)

    def __neg__(self) -> Dyadic:
        return Dyadic(np.asarray(-self.digits, object), self.exponent)

    def __matmul__(self, other: Dyadic) -> Dyadic:
        return Dyadic(np.asarray(self.digits @ other.digits, object), self.exponent + other.exponent)

    def floats(self) -> Floats:
        """The nearest floats, or a few units in the last place beside them; beyond their range zero or infinite."""
        try:
            with np.errstate(over="ignore", under="ignore"):
                return np.asarray(np.ldexp(self.digits.astype(np.float64), self.exponent))
        except OverflowError:  # longer than a float can be
            pass
        return np.array([_float(d, self.exponent) for d in self.digits.ravel().tolist()]).reshape(self.digits.shape)

    def sign(self) -> NDArray[np.int8]:
        """-1, 0 or 1 of each."""
        return np.array([(d > 0) - (d < 0) for d in self.digits.ravel().tolist()], np.int8).reshape(self.digits.shape)


def common(values: Floats) -> tuple[Integers, NDArray[np.int64]]:
    """Finite floats (s, d) as the smallest integers (s, d) times a power of two for each column, exactly; and its exponents."""
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, _MANTISSA).astype(np.int64)
    used = whole != 0
    zeros = np.frexp((whole & -whole).astype(np.float64))[1] - 1  # at the end, in binary
    whole = np.where(used, whole >> np.where(used, zeros, 0), 0)
    power = np.where(used, exponent - _MANTISSA + zeros, _FAR)
    least = power.min(axis=0, initial=_FAR)
    least = np.where(least == _FAR, 0, least).astype(np.int64)
    shift = np.where(used, power - least, 0)
    if shift.max(initial=0) < 9:  # 53 bits and these fit into 64
        return (whole << shift).astype(object), least
    return np.asarray(whole.astype(object) << shift.astype(object), object), least


def _float(digits: int, exponent: int) -> float:
    """digits 2**exponent with a relative error below 2**-50; it may be off by TINY where it underflows."""
    more = max(0, digits.bit_length() - 64)
    leading: Any = float(abs(digits) >> more)
    try:
        value = float(np.ldexp(leading, exponent + more))
    except OverflowError:
        value = float("inf") if exponent + more > 0 else 0.0
    return -value if digits < 0 else value


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
        bound = (U * np.abs(score) + gamma(m) ** 2 * (np.abs(points) @ np.abs(y)) * (1 + 4 * gamma(m))) * UP + 5 * m * TINY
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
