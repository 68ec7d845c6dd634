"""Floats as integers: every float64 is an integer times a power of two; and signs that float64 cannot tell.

The compensated product (Dot2 of Ogita, Rump and Oishi, Accurate sum and dot product, SIAM J. Sci. Comput. 2005) is as good as
one in twice the precision: |result - x'y| <= u |x'y| + gamma_m^2 |x|'|y| + 5 m 2**-1074, with u = 2**-53.

Products of points with vectors of integers of any length, their signs and whether they vanish, take three steps, each for what
the one before it left open: float64 with a bound of its error; residues modulo enough primes that only zero has none of them
(so zeros, which are many on a face, cost a few products of matrices); Python's integers.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.errors import CheckFailedError
from dfeas.exact.arithmetic import TINY, UP_LOOSE, Floats, U, gamma, row_numbers
from dfeas.exact.arithmetic import UP_SUMS as UP

Integers = NDArray[np.object_]
"""Python integers of any length."""
FAR = 1 << 20
"""Above all exponents."""


def mantissas(values: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Finite floats as integers of 53 bits, and the powers of two that these are times."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(mantissa, 53).astype(np.int64), exponent.astype(np.int64) - 53


def zeros_of(whole: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many binary zeros are at the end of each integer; -1 of zero."""
    return np.asarray(np.frexp((whole & -whole).astype(np.float64))[1] - 1, np.int64)


def undo_factor(values: Floats, factor: float) -> Floats | None:
    """Floats whose products with a factor are rounded to these values: of several the one with the fewest bits. None where a
    value has none.
    """
    near = values / factor
    tried = np.stack([near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf)])
    zeros = np.where(tried == 0, 64, zeros_of(mantissas(tried)[0]))
    zeros[tried * factor != values] = -1
    if not (zeros.max(axis=0) >= 0).all():
        return None
    return np.asarray(np.take_along_axis(tried, zeros.argmax(axis=0)[None], 0)[0])


def _align(whole: NDArray[np.int64], power: NDArray[np.int64], axis: int | None = None) -> tuple[Any, Any]:
    """Powers beside the least one along an axis of numbers that are not zero, 0 where they are; and that one, 0 without any."""
    least = np.where(whole != 0, power, FAR).min(axis=axis, initial=FAR)
    least = np.where(least == FAR, 0, least)
    return np.where(whole != 0, power - (least if axis is None else np.expand_dims(least, axis)), 0), least


class Dyadic(Struct, frozen=True, eq=False):
    """``digits`` 2**``exponent``, exactly. Digits have any shape; the exponent is one for all."""

    digits: Integers
    exponent: int

    @classmethod
    def of(cls, values: Floats) -> Dyadic:
        whole, power = mantissas(values)
        shift, least = _align(whole, power)
        return cls(whole.astype(object) << shift.astype(object), int(least))

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
        return np.array([(d > 0) - (d < 0) for d in self.digits.ravel().tolist()], np.int8).reshape(self.digits.shape)


MOST_PLANES = 8
"""Digits of points, up to which they are multiplied digit by digit."""
STEP = 28
"""Bits of a digit of an exact sum: in int64 digits of 2**34 points add up, in float64 those of 2**24."""


class ExactSums(Struct, eq=False):
    """Sums (m,) of the features of points, exactly: those of digits[i] 2**(STEP i), of either sign."""

    digits: dict[int, NDArray[np.int64]]  # (m,) each

    @classmethod
    def of(cls, points: Floats) -> ExactSums:
        """Of points (r, m), r <= 2**24. Raises CheckFailedError when an entry is not below ``LARGEST``. Adding and taking away
        3 2**(51 + STEP i) rounds what is smaller to multiples of 2**(STEP i), and what is left of it is exact, too.
        """
        rest, whole, ones = points.copy(), np.empty_like(points), np.ones(len(points))
        digits = dict[int, NDArray[np.int64]]()
        greatest = max(rest.max(initial=0.0), -rest.min(initial=0.0))
        if not greatest < 2.0**900:  # magnitudes below this are added up exactly
            raise CheckFailedError("an entry is not finite, or too large for exact sums of its feature; nothing can be proved")
        place = int(np.frexp(greatest)[1]) // STEP
        while rest.any():
            anchor = np.ldexp(3.0, 51 + STEP * place)
            np.subtract(np.add(rest, anchor, out=whole), anchor, out=whole)
            np.subtract(rest, whole, out=rest)
            digits[place] = np.ldexp(ones @ whole, -STEP * place).astype(np.int64)
            place -= 1
        return cls(digits)

    def add(self, other: ExactSums) -> None:
        for place, more in other.digits.items():
            self.digits[place] = self.digits[place] + more if place in self.digits else more

    def exact(self, m: int) -> Dyadic:
        """The sums (m,) as integers times a power of two."""
        least = min(self.digits, default=0)
        total = np.zeros(m, object)
        for place, digits in self.digits.items():
            total = total + (digits.astype(object) << (STEP * (place - least)))
        return Dyadic(total, STEP * least)


def multiply_exactly(points: Floats, x: Dyadic) -> Dyadic:
    """Products (r,) of points (r, d) with integers (d,). Both are cut into digits of so few bits that float64 adds up products
    of them exactly, an eighth of what integers take; these are for entries so far apart that there would be many digits.
    """
    step, rest, planes = (53 - points.shape[1].bit_length()) // 2, points.copy(), dict[int, Floats]()
    signs, left, vectors = np.sign(x.digits), np.abs(x.digits), list[Floats]()
    while left.any():
        vectors.append(np.asarray(signs * (left & ((1 << step) - 1)), np.float64))
        left = left >> step
    greatest = max(rest.max(initial=0.0), -rest.min(initial=0.0))
    if not (vectors and 2.0**-900 < greatest < 2.0**900):  # magnitudes at which nothing over- or underflows here
        return Dyadic.of(points) @ x
    place = int(np.frexp(greatest)[1]) // step
    while True:
        anchor, unit = np.ldexp(3.0, 51 + step * place), np.ldexp(1.0, -step * place)
        whole = rest + anchor
        whole -= anchor
        rest -= whole
        whole *= unit
        planes[place] = whole @ np.stack(vectors, axis=1)
        if not rest.any():
            break
        place -= 1
        if len(planes) == MOST_PLANES:
            return Dyadic.of(points) @ x
    total = np.zeros(len(points), object)
    for at, sums in planes.items():
        for i, digits in enumerate(sums.T):
            total = total + (digits.astype(np.int64).astype(object) << (step * (at - place + i)))
    return Dyadic(total, step * place + x.exponent)


def common(values: Floats) -> tuple[Integers, NDArray[np.int64]]:
    """Finite floats (s, d) as the smallest integers (s, d) times a power of two for each column, exactly; and its exponents."""
    whole, power = mantissas(values)
    zeros = np.maximum(zeros_of(whole), 0)
    whole = whole >> zeros
    shift, least = _align(whole, power + zeros, 0)
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


def split_integers(integers: Integers) -> Floats:
    """Vectors (k, d) of floats whose sum is a vector of integers (d,), divided by a power of two, exactly; the first is its
    rounding, with entries of at most 1. Raises OverflowError for integers that are too far apart for float64.
    """
    bits, rest, parts = max(1, *(abs(v).bit_length() for v in integers.tolist())), integers, list[Floats]()
    while len(parts) < 40 and (rest.any() or not parts):  # floats that an entry is a sum of, at most: 2,000 bits
        parts.append(Dyadic(rest, -bits).floats())
        left = Dyadic(rest, -bits) + -Dyadic.of(parts[-1])
        rest = left.digits >> (-bits - left.exponent)
    if rest.any():
        raise OverflowError("integers are too far apart")
    return np.array(parts)


LARGE = 1e140
"""Magnitudes below this are split and multiplied without overflow."""


def signs(points: Floats, y: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Signs (k,) of the scores x_j'y of points (k, m), and lower bounds (k,) of their magnitudes."""
    score, bound = multiply_compensated(points, y)
    with np.errstate(invalid="ignore"):
        least = (np.abs(score) - bound) / UP
        sure = least > 0
    sign = np.where(sure, np.sign(score), 0).astype(np.int8)
    least = np.where(sure, least, 0.0)
    left = np.flatnonzero(~sure)
    rows = max(1, 100_000 // len(y))  # entries that are integers at a time
    exact_y = Dyadic.of(y)
    for first in range(0, len(left), rows):
        chosen = left[first : first + rows]
        exact = Dyadic.of(points[chosen]) @ exact_y
        sign[chosen] = exact.sign()
        least[chosen] = np.maximum(np.abs(exact.floats()) - TINY, 0.0) / UP
    return sign, least


def multiply_compensated(points: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Scores (k,) of points (k, m), and bounds (k,) of their errors; infinite where nothing is known."""
    m = len(y)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        total, rest = np.zeros(len(points)), np.zeros(len(points))
        for column, factor in zip(np.ascontiguousarray(points.T), y.tolist(), strict=True):
            product, error = _multiply(column, np.float64(factor))
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
        product, error = _multiply(first, second)
    sizes = np.abs(product)
    zero = (first == 0) | (second == 0)
    # products above this have errors that do not underflow
    safe = zero | ((sizes > 2.0**-900) & (np.abs(first) < LARGE) & (np.abs(second) < LARGE))
    return (product, np.where(zero, 0.0, error)) if safe.all() else None


def _multiply(first: Any, second: Any) -> tuple[Any, Any]:
    """Products, and what rounding has taken from them."""
    product, (high, low), (other, lower) = first * second, _halves(first), _halves(second)
    return product, low * lower - (((product - high * other) - low * other) - high * lower)


def _halves(values: Any) -> tuple[Any, Any]:
    """Two numbers of at most 26 bits each whose sum the value is (Dekker 1971)."""
    shifted = (2.0**27 + 1) * values
    high = shifted - (shifted - values)
    return high, values - high


Matrix = Any
"""Points (r, d) of float64: an array, or a CSR matrix."""


def integer_signs(points: Matrix, y: Integers) -> tuple[NDArray[np.int8], Floats]:
    """Signs (r,) of x_j'y, and in float64 how many times (r,) these are the bounds of their errors, shares of |x_j|'|y|."""
    points, y = _drop_unused(points, y)
    near, _ = scale_integers(y[:, None])
    with np.errstate(over="ignore", invalid="ignore"):
        score, bound = bound_products(points, near)
        sure = (np.abs(score) > bound)[:, 0]
    sign = np.where(sure, np.sign(score[:, 0]), 0).astype(np.int8)
    left = np.flatnonzero(~sure)
    left = left[~_are_orthogonal(points[left], y[:, None], (np.abs(score) + bound)[left])]
    for row in left.tolist():
        entries, place = _row(points, row)
        exact = int(Dyadic.of(entries).digits @ y[place])
        sign[row] = (exact > 0) - (exact < 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = score[:, 0] / bound[:, 0]
    return sign, np.where(sign != 0, np.nan_to_num(share), 0.0)


def find_orthogonal(points: Matrix, basis: Integers) -> NDArray[np.bool_]:
    """Which points (r,) are orthogonal to all columns of a basis (d, k)."""
    zero = np.ones(points.shape[0], np.bool_)
    if not basis.shape[1]:
        return zero
    points, basis = _drop_unused(points, basis)
    near, _ = scale_integers(basis)
    with np.errstate(over="ignore", invalid="ignore"):
        score, bound = bound_products(points, near)
        zero = np.asarray(~(np.abs(score) > bound).any(axis=1), np.bool_)
    left = np.flatnonzero(zero)
    zero[left] = _are_orthogonal(points[left], basis, (np.abs(score) + bound)[left])
    return zero


def _drop_unused(points: Matrix, vectors: Integers) -> tuple[Matrix, Integers]:
    """Without the features that no vector (d, ..) has."""
    used = np.flatnonzero(vectors.reshape(len(vectors), -1).any(axis=1))
    if not isinstance(points, np.ndarray) or len(used) == len(vectors):
        return points, vectors
    return points[:, used], vectors[used]


def bound_products(points: Matrix, near: Floats) -> tuple[Floats, Floats]:
    """Products (r, k) in float64, and bounds of their errors; the vectors are rounded, too."""
    d = points.shape[1] if isinstance(points, np.ndarray) else int(np.diff(points.indptr).max(initial=0))
    rate = (d + 16) * U * UP_LOOSE
    size = abs(points)
    total = np.asarray(size.sum(axis=1)).reshape(-1, 1)
    # more than underflow takes from an entry of a vector, or from a product of it with an entry of a point above one
    bound = rate * (size @ np.abs(near)) + 2.0**-1060 * (d + total)
    return np.asarray(points @ near), np.where(np.isfinite(bound), bound, np.inf)


def scale_integers(basis: Integers) -> tuple[Floats, list[int]]:
    """Vectors (d, k) of integers as floats of at most 1, and the exponents of two that they are divided by."""
    shift = _bits(basis)
    columns = [Dyadic(column, -bits).floats() for column, bits in zip(basis.T, shift, strict=True)]
    return np.array(columns).T, shift


def _bits(basis: Integers) -> list[int]:
    """Of the longest entry of each column."""
    return [max(v.bit_length() for v in column) for column in basis.T.tolist()]


def _are_orthogonal(points: Matrix, basis: Integers, most: Floats) -> NDArray[np.bool_]:
    """Which points (r,) are orthogonal to a ``scaled`` basis (d, k), where |products| are at most ``most`` (r, k)."""
    alive = np.ones(points.shape[0], np.bool_)
    if not alive.size:
        return alive
    shift = np.array(_bits(basis))
    whole, power, least = _digits(points)
    with np.errstate(over="ignore"):
        # smaller bounds are taken for 2**-1000
        known = np.where(np.isfinite(most), np.frexp(np.maximum(most, 2.0**-1000))[1], 1025 + points.shape[1].bit_length())
    bits = max(1, int(((known + shift).max(axis=1) - least).max()) + 2)
    if basis.shape[1] * (2000 + bits) < bits * (15 + basis.shape[1] // 5):  # nanoseconds of an entry in both, times 19
        for row in range(len(alive)):
            entries, place = _row(points, row)
            alive[row] = not (Dyadic.of(entries).digits @ basis[place]).any()
        return alive
    # the logarithm of each prime that is used is above 19: the product of k of them is above 2**(19 k)
    for prime in _primes(-(-bits // 19)):
        powers = np.array(_powers(prime, int(power.max(initial=0)) + 1))
        residue = whole % prime * powers[power] % prime
        columns = (basis % prime).astype(np.float64)
        alive &= ~(_product(points, residue.astype(np.float64), columns, prime) != 0).any(axis=1)
        if not alive.any():
            break
    return alive


def _product(points: Matrix, residue: Floats, columns: Floats, prime: int) -> Floats:
    """Residues (r, k) of products, from residues of the entries of points (in their layout) and of the columns (d, k)."""
    width = 1 << 13  # so many products of two residues are summed exactly in float64
    if not isinstance(points, np.ndarray):
        import scipy

        matrix = scipy.sparse.csr_array((residue, points.indices, points.indptr), shape=points.shape)
        assert np.diff(points.indptr).max(initial=0) <= width, "sums are exact"
        return np.asarray((matrix @ columns) % prime, np.float64)
    sums = np.zeros((len(residue), columns.shape[1]))
    for first in range(0, residue.shape[1], width):
        sums += residue[:, first : first + width] @ columns[first : first + width] % prime
    return np.asarray(sums % prime, np.float64)


def _digits(points: Matrix) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Integers in the layout of the entries, exponents of two >= 0 with them, and the exponents (r,) that rows have besides."""
    entries = points if isinstance(points, np.ndarray) else points.data
    whole, power = mantissas(entries)
    if isinstance(points, np.ndarray):
        return whole, *_align(whole, power, 1)
    least, none = np.full(points.shape[0], FAR), whole == 0
    row = row_numbers(points)
    np.minimum.at(least, row[~none], power[~none])
    least[least == FAR] = 0
    return whole, np.where(none, 0, power - least[row]), least


def _row(points: Matrix, row: int) -> tuple[Floats, NDArray[np.int64] | slice]:
    """Entries of a row, and the features that they are of."""
    if isinstance(points, np.ndarray):
        return np.asarray(points[row]), slice(None)
    here = slice(points.indptr[row], points.indptr[row + 1])
    return points.data[here], points.indices[here]


@cache
def _powers(prime: int, count: int) -> list[int]:
    powers = [1]
    for _ in range(count - 1):
        powers.append(2 * powers[-1] % prime)
    return powers


@cache
def _primes(count: int) -> list[int]:
    """The largest primes below 2**20."""
    below = 1 << 20  # primes are smaller: sums of up to 2**13 products of two residues are exact in float64
    sieve = np.ones(below, np.bool_)
    for i in range(2, 1 << (below.bit_length() // 2 + 1)):
        if sieve[i]:
            sieve[i * i :: i] = False
    return [int(v) for v in np.flatnonzero(sieve)[-count:][::-1]]
