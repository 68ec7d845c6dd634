"""Floats as integers: every float64 is an integer times a power of two, and integers do not round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        """Finite floats, exactly."""
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
