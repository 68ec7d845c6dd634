"""Kernel values in float64 with bounds of their errors, for the checker.

The model: with u = 2**-53, sums of k products have relative errors of at most gamma_k = k u / (1 - k u) of the sum of absolute
values, in any order; square roots are rounded correctly; ``exp`` and ``pow`` have relative errors of at most 4 u, which the
libraries in use promise and no theorem does.

``bounded`` takes distances as sums of squares of differences, without cancellation. ``by_products`` takes them from one product
of matrices, |x|^2 + |z|^2 - 2 x'z with an error of at most gamma_(k+8) (|x| + |z|)^2, and bounds all errors of a row at once:
where e bounds that of t, exp(-t) is off by exp(-t) (exp(e) - 1), and where it is r t by r / (1 - r) / e (Euler's), for
t exp(-t) <= 1 / e. Sparse points have products only, or |x| + |z| less what that is too much; k is then the
entries of the longest row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them

from dfeas.csr import magnitudes, products, row_sums
from dfeas.errors import CheckFailedError
from dfeas.kernels.kernel import Floats, Kernel, cityblock
from dfeas.passes.points import Indices, Points, any_entry, is_dense, longest

if TYPE_CHECKING:
    from scipy.sparse import csr_array

U = 2.0**-53
UP = 1 + 2.0**-45
ELEMENTARY = 4 * U
"""Relative error of exp and pow."""
SIZES = (1e-130, 1e130)
"""Lengths of points for which squares neither underflow nor overflow to any effect."""
TINY = 2.0**-1000
"""More than underflow takes from a value."""
GONE = 700.0
"""An exponent of which nothing is left but what underflow takes."""
LOST = 2.0**-1070
"""More than underflow takes from a product."""


Same = tuple[Indices, Indices]
"""Rows and columns of some values."""


@dataclass(frozen=True)
class Bounded:
    """Normalised kernel values (b, s), each off by at most ``relative`` times itself and ``absolute``."""

    value: Floats  # (b, s)
    relative: Floats  # (b, 1)
    absolute: Floats  # (b, 1)

    @property
    def error(self) -> Floats:
        """Bounds (b, s)."""
        return np.asarray((self.relative * np.abs(self.value) + self.absolute) * UP)

    def errors(self, amounts: Floats) -> Floats:
        """Bounds (b, k) of the errors of sums of values times amounts (s, k), that of the sums included."""
        sizes = np.abs(amounts)
        total = np.abs(self.value) @ sizes
        rounding = 2 * gamma_(len(amounts) + 2)
        found = (self.relative + rounding) * total * UP + self.absolute * (1 + rounding) * sizes.sum(axis=0) * UP
        return np.asarray(found * UP)


def bounded(kernel: Kernel, points: Points, others: Points) -> tuple[Floats, Floats]:
    """Normalised kernel (b, s) of points (b, m) and others (s, m), and how far each value is off at most.

    For a function of Python nothing bounds its own errors; zeros are returned for them. Raises CheckFailedError for points
    whose squares are lost.
    """
    if kernel.of_distance and is_dense(points) and is_dense(others):
        return _of_differences(kernel, points, others)
    found = by_products(kernel, points, others)
    return found.value, found.error


def by_products(kernel: Kernel, points: Points, others: Points, same: Same | None = None) -> Bounded:
    """The same in the time of one product of matrices, a little less sharp where distances are small beside lengths.

    ``same`` says where both are one point.
    """
    count = points.shape[0]
    if kernel.name == "callable":
        value = np.asarray(kernel.tile(points, others), np.float64)
        return Bounded(value, np.zeros((count, 1)), np.zeros((count, 1)))
    if kernel.name == "laplacian":
        value, error = _of_differences(kernel, points, others)
        return Bounded(value, np.zeros((count, 1)), error.max(axis=1, initial=0.0)[:, None])
    if kernel.of_distance:
        return _of_distance(kernel, points, others, same)
    return _of_product(kernel, points, others)


def _of_differences(kernel: Kernel, points: Points, others: Points) -> tuple[Floats, Floats]:
    if not is_dense(points) and not is_dense(others):
        return _of_magnitudes(kernel.gamma, points, others)
    assert is_dense(points), "points are all dense or all sparse"
    assert is_dense(others), "points are all dense or all sparse"
    if kernel.name == "laplacian":
        exponent = cityblock(points, others)
    else:
        exponent = np.asarray(scipy.spatial.distance.cdist(points, others, "sqeuclidean"))
    if kernel.name == "exponential":
        np.sqrt(exponent, out=exponent)
    exponent *= kernel.gamma
    value = np.asarray(np.exp(-exponent))
    with np.errstate(over="ignore", invalid="ignore"):
        error = value * (np.expm1(exponent * gamma_(points.shape[1] + 6)) + ELEMENTARY + 2 * U) * UP + TINY
    error[value == 0] = TINY  # an exponent above 700 is one, rounding or not
    return value, error


def _of_magnitudes(gamma: float, points: csr_array, others: csr_array) -> tuple[Floats, Floats]:
    """The laplacian of sparse points, whose distances lose digits where they are small beside |x| + |z|."""
    exponent = gamma * cityblock(points, others)
    value = np.asarray(np.exp(-exponent))
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = magnitudes(points)[:, None] + magnitudes(others)
        off = 3 * gamma * gamma_(_terms(points, others) + 8) * sizes * UP
        error = value * (np.expm1(off) + ELEMENTARY + 2 * U) * UP + TINY
        error[(value == 0) & ~(exponent - off > GONE)] = 1
    return value, error


def _of_distance(kernel: Kernel, points: Points, others: Points, same: Same | None) -> Bounded:
    ours, theirs = _squares(points), _squares(others)
    terms = _terms(points, others)
    with np.errstate(over="ignore", invalid="ignore"):
        square = _products(points, others)
        square *= -2
        square += ours[:, None]
        square += theirs
        np.maximum(square, 0, out=square)
        if same is not None:
            square[same] = np.inf
        reach = np.sqrt(ours) + np.sqrt(theirs.max(initial=0.0))
        off = (gamma_(terms + 8) * reach**2 * UP + terms * LOST)[:, None]  # of the square
        if kernel.name == "exponential":
            # |sqrt(a) - sqrt(b)| is at most sqrt(|a - b|), and at most |a - b| / sqrt(a)
            nearest = np.sqrt(square.min(axis=1, initial=np.inf))[:, None]
            root = np.sqrt(off)
            off = np.where(nearest > root, off / np.maximum(nearest, root), root) * UP
            np.sqrt(square, out=square)
        square *= -kernel.gamma
        value = np.exp(square, out=square)
        if same is not None:
            value[same] = 1
        relative = np.expm1(kernel.gamma * off * UP) * UP + ELEMENTARY + 2 * U
    # the rounding of the root and of the product with gamma
    return Bounded(value, relative * UP, np.full((points.shape[0], 1), 3 * gamma_(4) / np.e + TINY))


def _of_product(kernel: Kernel, points: Points, others: Points) -> Bounded:
    polynomial = kernel.name == "polynomial"
    scale, shift = (kernel.gamma, kernel.coef0) if polynomial else (1.0, 0.0)
    sizes = [np.sqrt(scale * _squares(some) + shift) for some in (points, others)]
    for some, size in zip((points, others), sizes, strict=True):
        if ((size < SIZES[0]) & (any_entry(some) | (shift > 0)) | ~(size < SIZES[1])).any():
            raise CheckFailedError(f"a point has a length in the kernel's space outside {SIZES[0]:g} .. {SIZES[1]:g}")
    length = np.outer(*sizes)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine = np.where(length > 0, (scale * _products(points, others) + shift) / length, 0.0)
    error = 3 * gamma_(_terms(points, others) + 10) * UP  # of a product of lengths at most ``length``, of both lengths, and of
    # the quotient
    nothing = np.zeros((points.shape[0], 1))
    if not polynomial:
        return Bounded(cosine, nothing, nothing + error)
    degree = kernel.degree
    error = (degree * error * (1 + error) ** (degree + 1) + ELEMENTARY * (1 + error) ** degree) * UP
    return Bounded(cosine**degree, nothing, nothing + error)


def _squares(points: Points) -> Floats:
    """|x|^2 (b,)."""
    if is_dense(points):
        return np.asarray(np.einsum("ij,ij->i", points, points))
    return row_sums(points, points.data * points.data)


def _products(points: Points, others: Points) -> Floats:
    """x'z (b, s)."""
    if not is_dense(points) and not is_dense(others):
        return np.asarray(products(points, others), np.float64)
    return np.asarray(points @ others.T)


def _terms(points: Points, others: Points) -> int:
    """Of sums of products, or of magnitudes, at most."""
    return max(longest(points), longest(others), 1)


def gamma_(terms: int) -> float:
    """Bound of the relative error of so many roundings."""
    return terms * U / (1 - terms * U)
