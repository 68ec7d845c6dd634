"""Real algebraic numbers: recognised by many of their digits, and then computed with exactly, modulo a polynomial.

Numbers are given as integers v, for v / 2**bits. What they are is guessed by integer relations (Lenstra, Lenstra and Lovasz,
Factoring polynomials with rational coefficients, 1982); what is concluded from a field holds for the root that it names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import flint
import numpy as np
from msgspec import Struct

from dfeas.exact.arithmetic import Floats
from dfeas.exact.dyadic import Integers

DEGREE = 8
"""Of a field, at most."""
GUARD = 60
"""Bits at the end of each number that may be wrong."""


def relation(values: Sequence[int], bits: int) -> list[int] | None:
    """Integers (k,), not all zero, with a sum of products with k numbers that is zero as far as can be seen; None without any
    that are far shorter than those that any k numbers have.
    """
    rows = [[int(i == j) for j in range(len(values))] + [value >> GUARD] for i, value in enumerate(values)]
    *found, rest = map(int, flint.fmpz_mat(rows).lll().tolist()[0])
    length = sum(abs(each).bit_length() for each in found)
    return found if length < 0.6 * (bits - GUARD) and abs(rest) <= sum(map(abs, found)) else None


class Field(Struct, frozen=True):
    """The numbers sum_t c_t theta^t with rational c, theta a root of a polynomial with the leading coefficient 1."""

    modulus: list[int]  # (degree + 1,) the constant first
    near: int  # theta, nearly
    bits: int

    @classmethod
    def of(cls, values: Sequence[int], bits: int) -> tuple[Field, Integers, int] | None:
        """A field that all of n numbers seem to be in, and their coefficients (n, degree) and one denominator of all these."""
        irrational = [value for value in values if relation([1 << bits, value], bits) is None]
        for theta in irrational or [0]:
            field = cls._generated_by(theta, bits)
            if field is None:
                return None
            powers = field._powers()
            found = [relation([value, *powers], bits) for value in values]
            if all(each is not None and each[0] for each in found):
                rows = [each for each in found if each is not None]
                common = math.lcm(1, *(each[0] for each in rows))
                digits = [[-v * (common // each[0]) for v in each[1:]] for each in rows]
                return field, np.array(digits, object).reshape(len(rows), field.degree), common
        return None

    @classmethod
    def _generated_by(cls, theta: int, bits: int) -> Field | None:
        powers = [1 << bits]
        for degree in range(1, DEGREE + 1):
            powers.append(powers[-1] * theta >> bits)
            found = relation(powers, bits)
            if found is not None and found[-1]:
                found = [each * (1 if found[-1] > 0 else -1) for each in found]
                lead = found[-1]  # with theta times this the leading coefficient is 1
                monic = [each * lead ** (degree - 1 - t) for t, each in enumerate(found[:-1])]
                return cls([*monic, 1], theta * lead, bits)
        return None

    @property
    def degree(self) -> int:
        return len(self.modulus) - 1

    def _powers(self) -> list[int]:
        powers = [1 << self.bits]
        for _ in range(self.degree - 1):
            powers.append(powers[-1] * self.near >> self.bits)
        return powers

    def power_table(self, count: int) -> Integers:
        """Coefficients (count, degree) of powers of theta."""
        rows = np.zeros((count, self.degree), object)
        rows[0, 0] = 1
        for t in range(1, count):
            rows[t, 1:] = rows[t - 1, :-1]
            rows[t] -= rows[t - 1, -1] * np.array(self.modulus[:-1], object)
        return rows

    def floats(self, digits: Integers, common: int) -> Floats:
        """Numbers (...) nearly, of coefficients (..., degree) over a denominator."""
        return np.asarray((digits @ np.array(self._powers(), object)) / (common << self.bits), np.float64)

    def are_definite(self, matrices: Sequence[Integers]) -> bool:
        """Whether symmetric matrices (r, r, degree) are positive definite, proved by balls (Johansson, Arb, 2017)."""
        with flint.ctx.workprec(2 * self.bits):
            target, size = flint.arb(self.near) / 2**self.bits, flint.arb(2) ** (-self.bits // 2)
            found: Any = flint.fmpz_poly(self.modulus).complex_roots()
            roots = [root.real for root, _ in found if root.imag == 0]
            near = [root for root in roots if abs(root - target) < size]
            if len(near) != 1:
                return False
            powers = [near[0] ** t for t in range(self.degree)]
            return all(_is_definite((each @ np.array(powers, object)).tolist()) for each in matrices)


def _is_definite(rows: list[list[Any]]) -> bool:
    """By Gauss's elimination with balls, whose signs are certain."""
    for i, pivot in enumerate(rows):
        if not pivot[i] > 0:
            return False
        for other in rows[i + 1 :]:
            factor = other[i] / pivot[i]
            other[i:] = [a - factor * b for a, b in zip(other[i:], pivot[i:], strict=True)]
    return True
