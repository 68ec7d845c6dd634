"""exp((level - S) / mu) of many symmetric matrices of one order, by products alone: weights need no eigenvectors.

    exp((level - S) / mu) = (T((mid - S) / (2^h mu)) exp((level - mid) / (2^h mu)))^(2^h),    mid = trace / order

T is Taylor's polynomial, in powers up to the fourth (Paterson and Stockmeyer 1973), accurate to rounding within ``REACH``; then
h squares (Higham, Functions of Matrices, 2008, chapter 10). Their errors grow with |S| / mu as those of an eigenvalue do.

Of semidefinite cones few are decomposed. Whether least eigenvalues are above a level is seen from factorisations L D L' of all
S - level I at once, and weights are polynomials (``exponentials``).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, factorial, log2, sqrt

import numpy as np
from numpy.typing import NDArray

from dfeas.cones.algebra import Group, Spectrum, squares, triangle
from dfeas.linalg.blas import beat
from dfeas.linalg.points import Array, Floats, Indices

DEGREE = {4: 8, 8: 16}
"""Of the polynomial, for float32 and float64."""
REACH = {4: 0.69, 8: 0.82}
"""Norm up to which the first term that is left out is below the rounding of the type."""


def exponentials(S: Array, mid: Floats, size: float, level: float, mu: float) -> Array:
    """exp((level - S) / mu) (c, k, k), in the type of the symmetric matrices S (c, k, k), which are overwritten. ``mid`` (c,)
    are their traces over k; no |S - mid I| is above ``size``. Eigenvalues are not far below ``level``.
    """
    halvings = max(0, ceil(log2(size / (mu * REACH[S.itemsize])))) if size > 0 else 0
    scale = 1 / (mu * 2.0**halvings)
    diagonal = np.einsum("cii->ci", S)
    diagonal -= mid[:, None].astype(S.dtype)
    S *= -scale
    power = _polynomial(S, DEGREE[S.itemsize])
    np.multiply(power, np.exp((level - mid) * scale)[:, None, None], out=power, casting="same_kind")
    for _ in range(halvings):
        beat()
        power = np.matmul(power, power)
    return power


def _polynomial(A: Array, degree: int) -> Array:
    """sum_i A^i / i! up to a degree that is a multiple of four."""
    second = A @ A
    beat()
    powers = A, second, second @ A
    beat()
    fourth = second @ second
    total: Array = fourth / factorial(degree)
    for first in range(degree - 4, -1, -4):
        if first < degree - 4:
            beat()
            total = total @ fourth
        for i, power in enumerate(powers, first + 1):
            total += power * (1 / factorial(i))
        diagonal = np.einsum("cii->ci", total)
        diagonal += 1 / factorial(first)
    return total


NEGLIGIBLE = 60.0
"""Weights below exp(-60) of the greatest add nothing that counts, and would leave the range of float32 soon."""


@dataclass(frozen=True, slots=True)
class ConeBatch:
    """Elements of c cones. Their least eigenvalues are between centre - outer radius and centre - inner radius."""

    group: Group
    rows: Array  # (d, c) float32 or float64
    centre: Array  # (c,) mean of the eigenvalues
    radius: Array  # (c,) their standard deviation; (0,) of an orthant
    outer: float
    inner: float

    @classmethod
    def of(cls, group: Group, scores: Array) -> ConeBatch:
        """From scores (b,) of all rows of a block."""
        rows = np.ascontiguousarray(group.take(scores).T)
        if group.kind == "l":
            return cls(group, rows, rows[0], rows[0, :0], 0.0, 0.0)
        if group.kind == "q":
            return cls(group, rows, rows[0], _lengths(rows[1:]), 1.0, 1.0)
        # Wolkowicz and Styan 1980; the mean is subtracted first, so that spreads are as accurate as entries
        k, (i, j, _) = group.size, triangle(group.size)
        centre = rows[i == j].mean(axis=0)
        apart = rows.copy()
        apart[i == j] -= centre
        return cls(group, rows, centre, _lengths(apart) / rows.dtype.type(sqrt(k)), sqrt(k - 1), 1 / sqrt(k - 1))

    @property
    def below(self) -> Array:
        """Lower bounds (c,) of the least eigenvalues; the eigenvalues themselves but of semidefinite cones."""
        return self.centre - self.outer * self.radius if self.outer else self.centre

    @property
    def above(self) -> Array:
        return self.centre - self.inner * self.radius if self.inner else self.centre

    def least(self, some: Indices) -> Floats:
        """Least eigenvalues of some cones."""
        if self.group.kind != "s":
            return self.below[some].astype(np.float64)
        S = np.moveaxis(squares(self.rows[:, some], self.group.size), 2, 0)
        beat()
        return np.asarray(np.linalg.eigvalsh(S.astype(np.float64))[:, 0])

    def up_to(self, some: Indices, level: float) -> Indices:
        """Those of some cones whose least eigenvalues are not seen to be above a level: all that are not, and few others."""
        return self._not_above(some[self.below[some] <= level], level)

    def _not_above(self, some: Indices, level: float) -> Indices:
        if self.group.kind != "s" or len(some) <= 1:
            return some
        return some[~_definite(squares(self.rows[:, some], self.group.size).astype(np.float64, copy=False), level)]

    def lowest(self, level: float, off: float, slack: float) -> tuple[Indices, Floats]:
        """Cones whose least eigenvalue may be the least of all, which is at most ``level``, and these eigenvalues. Bounds are
        wrong by ``off``, eigenvalues by ``slack``.
        """
        level = min(level, float(self.above.min()) + off)
        some = np.flatnonzero(self.below <= level + off + 2 * slack)
        some = self._not_above(some, level + 2 * slack)
        # the least eigenvalues of few matrices are a first guess of the least of all
        tried = min(16, len(some) // 8)
        if self.group.kind == "s" and tried:
            middle = self.centre[some] - 0.5 * (self.outer + self.inner) * self.radius[some]
            level = min(level, float(self.least(some[np.argpartition(middle, tried)[:tried]]).min()))
            some = self._not_above(some, level + 2 * slack)
        return some, self.least(some)

    def gibbs(self, low: float, mu: float) -> tuple[float, Indices | None, Array]:
        """exp((low - element) / mu): the sum over eigenvalues, the cones that have some of it (None: all), and it, (d, c')."""
        if self.group.kind == "s":
            return self._of_matrices(low, mu)
        exponent = (low - self.below) / mu
        near = np.exp(exponent)
        near[exponent < -NEGLIGIBLE] = 0
        if self.group.kind == "l":
            return float(near.sum()), None, near[None]
        less = near * np.expm1(-2 / mu * self.radius)  # the weight of the greater eigenvalue minus that of the least
        total = 2 * near + less
        element = self.rows * (less / np.maximum(self.radius, np.finfo(self.rows.dtype).tiny))
        element[0] = total
        return float(total.sum()), None, element

    def _of_matrices(self, low: float, mu: float) -> tuple[float, Indices | None, Array]:
        k, end = self.group.size, low + NEGLIGIBLE * mu
        some = np.flatnonzero(self.below < end)
        if float(self.above.max()) > end:
            some = self.up_to(some, end)
        if not len(some):
            return 0.0, some, self.rows[:, :0]
        rows, mid, radius = self.rows, self.centre, self.radius
        whole = len(some) == len(mid)
        if not whole:
            rows, mid, radius = rows[:, some], mid[some], radius[some]
        size = sqrt(k) * float(radius.max())
        beat()
        # of a larger spread of eigenvalues few cones have a weight, and squares are many: they are decomposed
        if size > 2.0**20 * mu:
            sums, element = Spectrum.of("s", k, rows.T).gibbs(low, mu)
            return float(sums.sum()), some, element.T
        S = np.moveaxis(squares(rows, k), 2, 0).copy()
        W = exponentials(S, mid.astype(np.float64), size, low, mu)
        i, j, factor = triangle(k)
        element_rows: Array = W[:, i, j].T
        np.multiply(element_rows, factor[:, None], out=element_rows, casting="same_kind")
        return float(np.einsum("cii->", W)), None if whole else some, element_rows


def _lengths(rows: Array) -> Array:
    """Euclidean lengths (c,) of columns (d, c)."""
    length: Array = np.sqrt(np.einsum("ij,ij->j", rows, rows))
    return length


def _definite(S: Floats, level: float) -> NDArray[np.bool_]:
    """For which symmetric matrices (k, k, c), which are overwritten, S - level I is seen to be positive definite."""
    k = len(S)
    np.einsum("iic->ic", S)[:] -= level
    # above this order LAPACK's factorisations, one by one, are as fast as those side by side
    if k > 24:
        return np.array([_factorises(each) for each in np.moveaxis(S, 2, 0)])
    definite = np.ones(S.shape[2], bool)
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(k):
            positive = S[i, i] > 0
            definite &= positive
            column = S[i + 1 :, i] / np.where(positive, S[i, i], np.inf)
            S[i + 1 :, i + 1 :] -= column[:, None] * S[i + 1 :, i]
    return definite


def _factorises(S: Floats) -> bool:
    beat()
    try:
        np.linalg.cholesky(S)
    except np.linalg.LinAlgError:
        return False
    return True
