"""Kernels as the text of a certificate says them, and their values in float64 with bounds of their errors, for the checker.

The model: with u = 2**-53, sums of k products have relative errors of at most gamma_k = k u / (1 - k u) of the sum of absolute
values, in any order; square roots are rounded correctly; ``exp`` and ``pow`` have relative errors of at most 4 u, which the
libraries in use promise and no theorem does.

``bound_values`` takes distances as sums of squares of differences, without cancellation. ``bound_quickly`` takes them from one
product of matrices, |x|^2 + |z|^2 - 2 x'z with an error of at most gamma(k+8) (|x| + |z|)^2, and bounds all errors of a row at
once: where e bounds that of t, exp(-t) is off by exp(-t) (exp(e) - 1), and where it is r t by r / (1 - r) / e (Euler's), for t
exp(-t) <= 1 / e. Dense points are seen from the middle of some, c, for they may be far from the origin: x - c is off by u |x -
c|, and the square of a distance by 3 u (|x - c| + |z - c|)^2 for it. Sparse points have products, or |x| + |z| less what that
is too much, where they cannot be filled up; k is then the entries of the longest row.

Points that a transform has rounded, z^ for z = (x - c) s, are off by gamma_3 |z^| each. A distance is off by as much of both
lengths, e, and its square by 2 d e + e^2; a unit vector is off by 2 gamma_3, and the product of two by twice that.

A polynomial is a power of a quotient, (g x'z + c) / sqrt((g |x|^2 + c) (g |z|^2 + c)), the product of two unit vectors of
sqrt(g) x and sqrt(c). These are divided by a power of two of their own first, which makes no difference to the quotient: then
every number of float64 will do for g, c and x, and no power of a length is taken. Without c neither does g make one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them
from numpy.typing import NDArray

from dfeas.errors import BadInputError, UsageError
from dfeas.exact.arithmetic import ELEMENTARY, Floats, Indices, U, Wide, gamma, without_zeros
from dfeas.exact.arithmetic import UP_SUMS as UP
from dfeas.verify.tallies import Function

DISTANCES = ("rbf", "exponential")
"""Functions of a distance."""
PRODUCTS = ("polynomial", "linear", "cosine")
"""Functions of x'z."""
FAR = 1000
"""Points are scaled by at most this power of two: then the largest entry is such that its square is a number of float64."""
TINY = 2.0**-1000
"""More than underflow takes from a value."""
LOST = 2.0**-1070
"""More than underflow takes from a product."""
DENSE_WORK, DENSE_BYTES = 400, 32 << 20
"""A multiplication of stored entries takes so many times as long as one of arrays; bytes of an array that is made for it."""
Same = tuple[Indices, Indices]
"""Rows and columns of some values."""


@dataclass(frozen=True)
class Kernel:
    """A kernel and its parameters; 0 where it has none."""

    name: str
    gamma: float
    degree: int
    coef0: float
    function: Function | None = None  # of "callable"
    rounded: bool = False  # whether points are those of a transform, up to its roundings

    @classmethod
    def from_text(cls, text: str, function: Function | None = None) -> Kernel:
        """Of a certificate. Raises BadInputError for none, or a function that is not given, UsageError for indefinite ones."""
        try:
            values = json.loads(text)
            kernel = cls(str(values["name"]), float(values["gamma"]), int(values["degree"]), float(values["coef0"]), function)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise BadInputError(f"the kernel {text!r} cannot be read: {error}") from None
        name, polynomial, most = kernel.name, kernel.name == "polynomial", 1_000_000
        if name == "callable":
            if function is None:
                raise BadInputError("this was solved with a kernel function of Python, which is needed again: kernel=function")
        elif name not in DISTANCES + PRODUCTS:
            expected = ", ".join(DISTANCES + PRODUCTS)
            raise UsageError(f"unknown kernel {name}; expected {expected}, or a function of two blocks of points")
        elif (name in DISTANCES or polynomial) and not 0 < kernel.gamma < np.inf:
            raise UsageError(f"gamma {kernel.gamma:g} of the {name} kernel: expected a number above 0")
        elif polynomial and not 1 <= kernel.degree <= most:
            raise UsageError(f"degree {kernel.degree} of the polynomial kernel: expected a whole number from 1 to {most}")
        elif polynomial and not 0 <= kernel.coef0 < np.inf:
            raise UsageError(
                f"coef0 {kernel.coef0:g} of the polynomial kernel: expected a number of at least 0, or it is no kernel"
            )
        return kernel

    @property
    def of_distance(self) -> bool:
        return self.name in DISTANCES

    @property
    def zero_at_zero(self) -> bool:
        """Whether the point 0 is the origin of the kernel's space, too."""
        return self.name in ("linear", "cosine") or (self.name == "polynomial" and self.coef0 == 0)

    @property
    def plain(self) -> bool:
        """Whether its unit vectors are those of the points themselves."""
        return self.zero_at_zero and (self.name != "polynomial" or self.degree == 1)


def call_function(function: Function, points: Any, others: Any) -> Floats:
    """What a function of Python says (b, s), normalised. Raises BadInputError for what it must not say."""

    def values(left: Any, right: Any) -> Floats:
        answer: Any = function(left, right)
        expected = left.shape[0], right.shape[0]
        tile = np.asarray(answer.toarray() if hasattr(answer, "toarray") else answer, np.float64)
        if tile.shape != expected:
            raise BadInputError(
                f"the kernel function returned shape {tile.shape} for blocks of {expected[0]} and {expected[1]} points, "
                f"expected {expected}"
            )
        if not np.isfinite(tile).all():
            raise BadInputError("the kernel function returned numbers that are not finite")
        return tile

    def squares(some: Any) -> Floats:
        diagonal_rows = 64  # points at a time whose K(x, x) is asked of a function
        pieces = (some[first : first + diagonal_rows] for first in range(0, some.shape[0], diagonal_rows))
        found = np.concatenate([np.diagonal(values(piece, piece)) for piece in pieces])
        if not (found >= 0).all():
            raise BadInputError(f"the kernel function is not positive: K(x, x) = {found.min():g} for some point x")
        return found

    ours, theirs = squares(points)[:, None], squares(others)
    none = (ours == 0) | (theirs == 0)  # of what the function said: a product of lengths may be zero without that
    sizes = [np.sqrt(np.where(square == 0, 1.0, square)) for square in (ours, theirs)]
    return np.asarray(np.where(none, 0.0, values(points, others) / sizes[0] / sizes[1]))


@dataclass(frozen=True)
class BoundedValues:
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
        rounding = 2 * gamma(len(amounts) + 2)
        error = (self.relative + rounding) * total * UP + self.absolute * (1 + rounding) * sizes.sum(axis=0) * UP
        return np.asarray(error * UP)


def bound_values(kernel: Kernel, points: Any, others: Any, same: Same | None = None) -> tuple[Floats, Floats]:
    """Normalised kernel (b, s) of points (b, m) and others (s, m), and how far each value is off at most. ``same`` says where
    both are one point. For a function of Python nothing bounds its own errors; zeros are returned for them.
    """
    filled = _fill_rows(points, others) if kernel.of_distance else None
    if filled is not None:
        value, error = _of_differences(kernel, *filled)
    else:
        products = bound_quickly(kernel, points, others, same)
        value, error = products.value, products.error
    if kernel.of_distance and same is not None:
        error[same] = 0
    return value, error


def bound_quickly(kernel: Kernel, points: Any, others: Any, same: Same | None = None) -> BoundedValues:
    """The same by one product of matrices, less sharp for small distances of long points; ``same``: where both are one."""
    count = points.shape[0]
    if kernel.name == "callable":
        assert kernel.function is not None, "a callable kernel has its function"
        value = call_function(kernel.function, points, others)
        return BoundedValues(value, np.zeros((count, 1)), np.zeros((count, 1)))
    if kernel.of_distance:
        return _of_distance(kernel, points, others, same)
    return _of_product(kernel, points, others)


def _fill_rows(points: Any, others: Any) -> tuple[Floats, Floats] | None:
    """Both as arrays, of the features that any of them has where they are sparse; None where that takes much memory."""
    if isinstance(points, np.ndarray):
        return points, others
    both, _ = without_zeros(scipy.sparse.vstack([points, others], format="csr"))
    if both.shape[0] * both.shape[1] > 1 << 22:  # entries of sparse points that are filled up
        return None
    filled = np.asarray(both.toarray(), np.float64)
    return filled[: points.shape[0]], filled[points.shape[0] :]


def _of_differences(kernel: Kernel, points: Floats, others: Floats) -> tuple[Floats, Floats]:
    share = gamma(points.shape[1] + 6)
    with np.errstate(over="ignore", invalid="ignore"):
        distance, lost = _apart(kernel.name, points, others)
        off = distance * share + lost
        if kernel.rounded:
            moved = _bound_move(Wide(points).norm()[:, None] + Wide(others).norm(), points.shape[1])
            off = off + (moved if kernel.name == "exponential" else (2 * np.sqrt(distance) * UP + moved) * moved) * UP
        return _exponentials(kernel.gamma, distance, off)


def _bound_move(lengths: Floats, m: int) -> Floats:
    """How far a transform may have moved two points of m features from each other, of which these are both lengths."""
    # 1e-140: lengths whose squares underflow are no longer than that
    return np.asarray((gamma(4) * (lengths + 1e-140) + m * LOST) * UP)


def _exponentials(rate: float, distance: Floats, off: Floats) -> tuple[Floats, Floats]:
    """exp(-t) of a rate times distances that are off by so much at most, the product included, and how far it is off itself."""
    value = np.asarray(np.exp(-rate * distance))
    error = value * (np.expm1(rate * off * UP) + ELEMENTARY + 2 * U) * UP + TINY
    gone = rate * (distance - off) > 700.0  # an exponent above 700 is one, rounding or not, also beyond float64
    return value, np.where(gone, TINY, np.fmin(error, 1.0))


def _apart(name: str, points: Floats, others: Floats) -> tuple[Floats, Floats | float]:
    """What gamma multiplies (b, s), and what underflow may have taken from it. |sqrt(a) - sqrt(b)| is as below."""
    square = np.asarray(scipy.spatial.distance.cdist(points, others, "sqeuclidean"))
    lost = points.shape[1] * LOST
    if name == "rbf":
        return square, lost
    root, least = np.sqrt(square, out=square), np.sqrt(lost)
    nearest = float(root.min(initial=np.inf))
    if nearest > least:
        return root, lost / nearest
    same = scipy.spatial.distance.cdist(points, others, "cityblock") == 0
    return root, np.where(same, 0, lost / np.maximum(root, least))


def _of_distance(kernel: Kernel, points: Any, others: Any, same: Same | None) -> BoundedValues:
    terms = _terms(points, others)
    with np.errstate(over="ignore", invalid="ignore"):
        if kernel.rounded:
            moved = _bound_move(Wide(points).norm() + Wide(others).norm().max(initial=0.0), points.shape[1])
        if isinstance(points, np.ndarray):
            origin = np.median(others[:: -(-len(others) // 64)], axis=0)  # points of whose middle the others are seen
            points, others = points - origin, others - origin
        ours, theirs = Wide(points).squares(), Wide(others).squares()
        square = _products(points, others)
        square *= -2
        square += ours[:, None]
        square += theirs
        np.maximum(square, 0, out=square)
        if same is not None:
            square[same] = np.inf
        reach = np.sqrt(ours) + np.sqrt(theirs.max(initial=0.0))
        off = gamma(terms + 12) * reach**2 * UP + terms * LOST  # of the square
        if kernel.rounded:
            off += (2 * reach * UP + moved) * moved * UP
        off = off[:, None]
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
    absolute = np.full((points.shape[0], 1), 3 * gamma(4) / np.e + TINY)
    unknown = ~(relative[:, 0] < 1)  # all of such a row is between 0 and 1
    value[unknown], relative[unknown], absolute[unknown] = 0, 0, 1
    if same is not None:
        value[same] = 1
    return BoundedValues(value, relative, absolute)


def _of_product(kernel: Kernel, points: Any, others: Any) -> BoundedValues:
    with np.errstate(over="ignore", invalid="ignore"):
        (ours, mine), (theirs, yours) = _units(kernel, points), _units(kernel, others)
        cosine = _products(ours, theirs)
        if not kernel.zero_at_zero:
            cosine += np.outer(mine, yours)
    nothing = np.zeros((points.shape[0], 1))
    terms = _terms(points, others) + 10 + 3 * kernel.rounded
    error = 3 * gamma(terms) * UP  # of two unit vectors, half that of a square each, and of the product
    if kernel.name != "polynomial":
        return BoundedValues(cosine, nothing, nothing + error)
    degree = kernel.degree
    error = (degree * error * (1 + error) ** (degree + 1) + ELEMENTARY * (1 + error) ** degree) * UP
    return BoundedValues(cosine**degree, nothing, nothing + error)


def _units(kernel: Kernel, points: Any) -> tuple[Any, Floats]:
    """Unit vectors whose products are the kernel, but for its power: entries of points (b, m), and the last one (b,)."""
    root, shift = (1.0, 0.0) if kernel.zero_at_zero else (np.sqrt(kernel.gamma), np.sqrt(kernel.coef0))
    largest, own = Wide(points).largest(), int(np.frexp(root)[1])
    power = np.maximum(_exponents(largest) + own, _exponents(shift)).clip(own - FAR, own + FAR)
    scaled, last = Wide(Wide(points).scale_rows(np.ldexp(root, -power))), np.ldexp(shift, -power)
    length = np.sqrt(scaled.squares() + last**2)
    length[(largest == 0) & (kernel.zero_at_zero or kernel.coef0 == 0)] = 1  # of the exact numbers: those above are rounded
    return scaled.scale_rows(1 / length), last / length


def _exponents(sizes: Any) -> NDArray[np.int64]:
    """Of powers of two above some numbers that are not negative; of zero one below all."""
    return np.where(np.asarray(sizes) == 0, -4 * FAR, np.frexp(sizes)[1])


def _products(points: Any, others: Any) -> Floats:
    """All products (b, s) of the rows of both. Where many entries are stored those of arrays are faster."""
    if isinstance(points, np.ndarray):
        return np.asarray(points @ others.T)
    (b, m), s = points.shape, others.shape[0]
    if DENSE_WORK * points.nnz * others.nnz > b * s * m * m and max(b, s) * m * points.dtype.itemsize <= DENSE_BYTES:
        return np.asarray(points.toarray() @ others.toarray().T, np.float64)
    return np.asarray((points @ others.T).toarray(), np.float64)


def _terms(points: Any, others: Any) -> int:
    """Of sums of products, or of magnitudes, at most."""
    return max(Wide(points).terms, Wide(others).terms, 1)
