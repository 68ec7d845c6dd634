"""Kernel values in float64 with bounds of their errors, for the checker.

The model: with u = 2**-53, sums of k products have relative errors of at most gamma_k = k u / (1 - k u) of the sum of absolute
values, in any order; square roots are rounded correctly; ``exp`` and ``pow`` have relative errors of at most 4 u, which the
libraries in use promise and no theorem does.

``bounded`` takes distances as sums of squares of differences, without cancellation. ``by_products`` takes them from one product
of matrices, |x|^2 + |z|^2 - 2 x'z with an error of at most gamma_(k+8) (|x| + |z|)^2, and bounds all errors of a row at once:
where e bounds that of t, exp(-t) is off by exp(-t) (exp(e) - 1), and where it is r t by r / (1 - r) / e (Euler's), for
t exp(-t) <= 1 / e. Dense points are seen from the middle of some, c, for they may be far from the origin: x - c is off by
u |x - c|, and the square of a distance by 3 u (|x - c| + |z - c|)^2 for it. Sparse points have products, or |x| + |z| less what
that is too much, where they cannot be filled up; k is then the entries of the longest row.

A polynomial is a power of a quotient, (g x'z + c) / sqrt((g |x|^2 + c) (g |z|^2 + c)), in which a power of two that divides g
and c makes no difference, nor does g without c: no power of a length is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them

from dfeas.errors import CheckFailedError
from dfeas.geometry.kernel.distances import Floats, cityblock
from dfeas.geometry.kernel.kernel import Kernel
from dfeas.linalg.csr import csr, magnitudes, products, row_sums
from dfeas.linalg.points import Indices, Points, any_entry, dense, is_dense, longest

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
FILLED = 1 << 22
"""Entries of sparse points that are filled up."""
SOME = 64
"""Points of whose middle the others are seen."""
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
        return np.asarray((self.relative * np.abs(self.value) + self.absolute) * UP)

    def errors(self, amounts: Floats) -> Floats:
        """Bounds (b, k) of the errors of sums of values times amounts (s, k), that of the sums included."""
        sizes = np.abs(amounts)
        total = np.abs(self.value) @ sizes
        rounding = 2 * gamma_(len(amounts) + 2)
        found = (self.relative + rounding) * total * UP + self.absolute * (1 + rounding) * sizes.sum(axis=0) * UP
        return np.asarray(found * UP)


def bounded(kernel: Kernel, points: Points, others: Points, same: Same | None = None) -> tuple[Floats, Floats]:
    """Normalised kernel (b, s) of points (b, m) and others (s, m), and how far each value is off at most.

    ``same`` says where both are one point. For a function of Python nothing bounds its own errors; zeros are returned for them.
    Raises CheckFailedError for points whose squares are lost.
    """
    filled = _filled(points, others) if kernel.of_distance else None
    if filled is not None:
        return _of_differences(kernel, *filled)
    found = by_products(kernel, points, others, same)
    error = found.error
    if kernel.of_distance and same is not None:
        error[same] = 0
    return found.value, error


def by_products(kernel: Kernel, points: Points, others: Points, same: Same | None = None) -> Bounded:
    """The same in the time of one product of matrices, a little less sharp where distances are small beside lengths.

    ``same`` says where both are one point.
    """
    count = points.shape[0]
    if kernel.name == "callable":
        value = kernel.called(points, others)
        return Bounded(value, np.zeros((count, 1)), np.zeros((count, 1)))
    if kernel.name == "laplacian":
        if is_dense(points) and is_dense(others):
            value, error = _of_differences(kernel, points, others)
        else:
            value, error = _of_magnitudes(kernel.gamma, points, others)
        return Bounded(value, np.zeros((count, 1)), error.max(axis=1, initial=0.0)[:, None])
    if kernel.of_distance:
        return _of_distance(kernel, points, others, same)
    return _of_product(kernel, points, others)


def _filled(points: Points, others: Points) -> tuple[Floats, Floats] | None:
    """Both as arrays, of the features that any of them has where they are sparse; None where that takes much memory."""
    if is_dense(points) and is_dense(others):
        return points, others
    assert not is_dense(points), "points are all dense or all sparse"
    assert not is_dense(others), "points are all dense or all sparse"
    features, places = np.unique(np.concatenate([points.indices, others.indices]), return_inverse=True)
    k, entries = len(features), len(points.indices)
    if k * (points.shape[0] + others.shape[0]) > FILLED:
        return None
    return (
        dense(csr(points.data, places[:entries], points.indptr.astype(places.dtype), k)),
        dense(csr(others.data, places[entries:], others.indptr.astype(places.dtype), k)),
    )


def _of_differences(kernel: Kernel, points: Floats, others: Floats) -> tuple[Floats, Floats]:
    share = gamma_(points.shape[1] + 6)
    with np.errstate(over="ignore", invalid="ignore"):
        distance, lost = _apart(kernel.name, points, others)
        exponent, lost = np.multiply(distance, kernel.gamma, out=distance), kernel.gamma * lost * UP
        value = np.asarray(np.exp(-exponent))
        error = value * (np.expm1(exponent * share + lost) + ELEMENTARY + 2 * U) * UP + TINY
        gone = exponent * (1 - share) - lost > GONE  # an exponent above 700 is one, rounding or not
    return value, np.where(gone, TINY, np.fmin(error, 1.0))


def _apart(name: str, points: Floats, others: Floats) -> tuple[Floats, Floats | float]:
    """What gamma multiplies (b, s), and what underflow may have taken from it. |sqrt(a) - sqrt(b)| is as below."""
    if name == "laplacian":
        return cityblock(points, others), 0.0
    square = np.asarray(scipy.spatial.distance.cdist(points, others, "sqeuclidean"))
    lost = points.shape[1] * LOST
    if name == "rbf":
        return square, lost
    root, least = np.sqrt(square, out=square), np.sqrt(lost)
    nearest = float(root.min(initial=np.inf))
    if nearest > least:
        return root, lost / nearest
    return root, np.where(cityblock(points, others) == 0, 0, lost / np.maximum(root, least))


def _of_magnitudes(gamma: float, points: Points, others: Points) -> tuple[Floats, Floats]:
    """The laplacian of sparse points, whose distances lose digits where they are small beside |x| + |z|."""
    assert not is_dense(points), "points are all dense or all sparse"
    assert not is_dense(others), "points are all dense or all sparse"
    with np.errstate(over="ignore", invalid="ignore"):
        exponent = gamma * cityblock(points, others)
        value = np.asarray(np.exp(-exponent))
        sizes = magnitudes(points)[:, None] + magnitudes(others)
        off = 3 * gamma * gamma_(_terms(points, others) + 8) * sizes * UP
        error = value * (np.expm1(off) + ELEMENTARY + 2 * U) * UP + TINY
        gone = exponent - off > GONE
    return value, np.where(gone, TINY, np.fmin(error, 1.0))


def _of_distance(kernel: Kernel, points: Points, others: Points, same: Same | None) -> Bounded:
    terms = _terms(points, others)
    with np.errstate(over="ignore", invalid="ignore"):
        if is_dense(points) and is_dense(others):
            origin = np.median(others[:: -(-len(others) // SOME)], axis=0)
            points, others = points - origin, others - origin
        ours, theirs = _squares(points), _squares(others)
        square = _products(points, others)
        square *= -2
        square += ours[:, None]
        square += theirs
        np.maximum(square, 0, out=square)
        if same is not None:
            square[same] = np.inf
        reach = np.sqrt(ours) + np.sqrt(theirs.max(initial=0.0))
        off = (gamma_(terms + 12) * reach**2 * UP + terms * LOST)[:, None]  # of the square
        if kernel.name == "exponential":
            # |sqrt(a) - sqrt(b)| is at most sqrt(|a - b|), and at most |a - b| / sqrt(a)
            nearest = np.sqrt(square.min(axis=1, initial=np.inf))[:, None]
            root = np.sqrt(off)
            off = np.where(nearest > root, off / np.maximum(nearest, root), root) * UP
            np.sqrt(square, out=square)
        square *= -kernel.gamma
        value = np.exp(square, out=square)
        relative = (np.expm1(kernel.gamma * off * UP) * UP + ELEMENTARY + 2 * U) * UP
    # the rounding of the root and of the product with gamma
    absolute = np.full((points.shape[0], 1), 3 * gamma_(4) / np.e + TINY)
    unknown = ~(relative[:, 0] < 1)  # all of such a row is between 0 and 1
    value[unknown], relative[unknown], absolute[unknown] = 0, 0, 1
    if same is not None:
        value[same] = 1
    return Bounded(value, relative, absolute)


def _of_product(kernel: Kernel, points: Points, others: Points) -> Bounded:
    polynomial = kernel.name == "polynomial"
    scale, shift = (kernel.gamma, kernel.coef0) if polynomial and kernel.coef0 else (1.0, 0.0)
    power = int(np.frexp(max(scale, shift))[1])
    scale, shift = float(np.ldexp(scale, -power)), float(np.ldexp(shift, -power))
    with np.errstate(over="ignore"):
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
    if is_dense(points):
        return np.asarray(np.einsum("ij,ij->i", points, points))
    return row_sums(points, points.data * points.data)


def _products(points: Points, others: Points) -> Floats:
    if not is_dense(points) and not is_dense(others):
        return np.asarray(products(points, others), np.float64)
    return np.asarray(points @ others.T)


def _terms(points: Points, others: Points) -> int:
    """Of sums of products, or of magnitudes, at most."""
    return max(longest(points), longest(others), 1)


def gamma_(terms: int) -> float:
    """Bound of the relative error of so many roundings."""
    return terms * U / (1 - terms * U)
