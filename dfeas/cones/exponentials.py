"""exp((level - S) / mu) of many symmetric matrices of one order, by products alone: weights need no eigenvectors.

    exp((level - S) / mu) = (T((mid - S) / (2^h mu)) exp((level - mid) / (2^h mu)))^(2^h),    mid = trace / order

T is Taylor's polynomial, in powers up to the fourth (Paterson and Stockmeyer 1973), accurate to rounding within ``REACH``; then
h squares (Higham, Functions of Matrices, 2008, chapter 10). Their errors grow with |S| / mu as those of an eigenvalue do.
"""

from __future__ import annotations

from math import ceil, factorial, log2

import numpy as np

from dfeas.passes.block import Array, Floats

DEGREE = {4: 8, 8: 16}
"""Of the polynomial, for float32 and float64."""
REACH = {4: 0.69, 8: 0.82}
"""Norm up to which the first term that is left out is below the rounding of the type."""


def exponentials(S: Array, mid: Floats, size: float, level: float, mu: float) -> Array:
    """exp((level - S) / mu) (c, k, k), in the type of the symmetric matrices S (c, k, k), which are overwritten.

    ``mid`` (c,) are their traces over k; no |S - mid I| is above ``size``. Eigenvalues are not far below ``level``.
    """
    halvings = max(0, ceil(log2(size / (mu * REACH[S.itemsize])))) if size > 0 else 0
    scale = 1 / (mu * 2.0**halvings)
    diagonal = np.einsum("cii->ci", S)
    diagonal -= mid[:, None].astype(S.dtype)
    S *= -scale
    found = _polynomial(S, DEGREE[S.itemsize])
    np.multiply(found, np.exp((level - mid) * scale)[:, None, None], out=found, casting="same_kind")
    for _ in range(halvings):
        found = np.matmul(found, found)
    return found


def _polynomial(A: Array, degree: int) -> Array:
    """sum_i A^i / i! up to a degree that is a multiple of four."""
    second = A @ A
    powers, fourth = (A, second, second @ A), second @ second
    found: Array = fourth / factorial(degree)
    for first in range(degree - 4, -1, -4):
        if first < degree - 4:
            found = found @ fourth
        for i, power in enumerate(powers, first + 1):
            found += power * (1 / factorial(i))
        diagonal = np.einsum("cii->ci", found)
        diagonal += 1 / factorial(first)
    return found
