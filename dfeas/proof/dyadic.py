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
        return np.array([_float(d, self.exponent) for d in self.digits.ravel().tolist()]).reshape(self.digits.shape)

    def sign(self) -> NDArray[np.int8]:
        """-1, 0 or 1 of each."""
        return np.array([(d > 0) - (d < 0) for d in self.digits.ravel().tolist()], np.int8).reshape(self.digits.shape)


def _float(digits: int, exponent: int) -> float:
    """digits 2**exponent with a relative error below 2**-50; it may be off by TINY where it underflows."""
    more = max(0, digits.bit_length() - 64)
    leading: Any = float(abs(digits) >> more)
    try:
        value = float(np.ldexp(leading, exponent + more))
    except OverflowError:
        value = float("inf") if exponent + more > 0 else 0.0
    return -value if digits < 0 else value
