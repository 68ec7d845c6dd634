"""Products of points, which are floats, with vectors of integers of any length: their signs, and whether they vanish, exactly.

Three steps, each for what the one before it left open: float64 with a bound of its error; residues modulo enough primes that
only zero has none of them (so zeros, which are many on a face, cost a few products of matrices); Python's integers.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them
from numpy.typing import NDArray

from dfeas.verify.exact.dyadic import Dyadic, Floats, Integers
from dfeas.verify.rounding import UP_LOOSE as UP
from dfeas.verify.rounding import U

LOST = 2.0**-1060
"""More than underflow takes from an entry of a vector, or from a product of it with an entry of a point above one."""
BELOW = 1 << 20
"""Primes are smaller: sums of up to 2**13 products of two residues are exact in float64."""
PRIME_BITS = 19
"""Less than the logarithm of each prime that is used: the product of k of them is above 2**(19 k)."""
WIDTH = 1 << 13
FLOOR = 2.0**-1000
"""Bounds below this are taken for it."""

Matrix = Any
"""Points (r, d) of float64: an array, or a CSR matrix."""


def signs(points: Matrix, y: Integers) -> tuple[NDArray[np.int8], Floats]:
    """Signs (r,) of x_j'y, and in float64 their sizes (r,) as shares of |x_j|'|y|: near one far from the hyperplane."""
    points, y = _used(points, y)
    near, _ = scaled(y[:, None])
    with np.errstate(over="ignore", invalid="ignore"):
        score, bound = bounded(points, near)
        sure = (np.abs(score) > bound)[:, 0]
    sign = np.where(sure, np.sign(score[:, 0]), 0).astype(np.int8)
    left = np.flatnonzero(~sure)
    left = left[~_vanish(points[left], y[:, None], (np.abs(score) + bound)[left])]
    for row in left.tolist():
        entries, place = _row(points, row)
        exact = int(Dyadic.of(entries).digits @ y[place])
        sign[row] = (exact > 0) - (exact < 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = score[:, 0] / bound[:, 0]
    return sign, np.where(sign != 0, np.nan_to_num(share), 0.0)


def vanishing(points: Matrix, basis: Integers) -> NDArray[np.bool_]:
    """Which points (r,) are orthogonal to all columns of a basis (d, k)."""
    found = np.ones(points.shape[0], np.bool_)
    if not basis.shape[1]:
        return found
    points, basis = _used(points, basis)
    near, _ = scaled(basis)
    with np.errstate(over="ignore", invalid="ignore"):
        score, bound = bounded(points, near)
        found = np.asarray(~(np.abs(score) > bound).any(axis=1), np.bool_)
    left = np.flatnonzero(found)
    found[left] = _vanish(points[left], basis, (np.abs(score) + bound)[left])
    return found


def _used(points: Matrix, vectors: Integers) -> tuple[Matrix, Integers]:
    """Without the features that no vector (d, ..) has."""
    used = np.flatnonzero(vectors.reshape(len(vectors), -1).any(axis=1))
    if not isinstance(points, np.ndarray) or len(used) == len(vectors):
        return points, vectors
    return points[:, used], vectors[used]


def bounded(points: Matrix, near: Floats) -> tuple[Floats, Floats]:
    """Products (r, k) in float64, and bounds of their errors; the vectors are rounded, too."""
    d = points.shape[1] if isinstance(points, np.ndarray) else int(np.diff(points.indptr).max(initial=0))
    rate = (d + 16) * U * UP
    size = abs(points)
    total = np.asarray(size.sum(axis=1)).reshape(-1, 1)
    bound = rate * (size @ np.abs(near)) + LOST * (d + total)
    return np.asarray(points @ near), np.where(np.isfinite(bound), bound, np.inf)


def scaled(basis: Integers) -> tuple[Floats, list[int]]:
    """Vectors (d, k) of integers as floats of at most 1, and the exponents of two that they are divided by."""
    shift = _bits(basis)
    columns = [Dyadic(column, -bits).floats() for column, bits in zip(basis.T, shift, strict=True)]
    return np.array(columns).T, shift


def _bits(basis: Integers) -> list[int]:
    """Of the longest entry of each column."""
    return [max(v.bit_length() for v in column) for column in basis.T.tolist()]


def _vanish(points: Matrix, basis: Integers, most: Floats) -> NDArray[np.bool_]:
    """Which points (r,) are orthogonal to all columns of a basis (d, k), where |products| are at most ``most`` (r, k), of the
    columns as ``scaled`` makes them.
    """
    alive = np.ones(points.shape[0], np.bool_)
    if not alive.size:
        return alive
    shift = np.array(_bits(basis))
    whole, power, least = _digits(points)
    with np.errstate(over="ignore"):
        known = np.where(np.isfinite(most), np.frexp(np.maximum(most, FLOOR))[1], 1025 + points.shape[1].bit_length())
    bits = max(1, int(((known + shift).max(axis=1) - least).max()) + 2)
    for prime in _primes(-(-bits // PRIME_BITS)):
        powers = np.array(_powers(prime, int(power.max(initial=0)) + 1))
        residue = whole % prime * powers[power] % prime
        columns = (basis % prime).astype(np.float64)
        alive &= ~(_product(points, residue.astype(np.float64), columns, prime) != 0).any(axis=1)
        if not alive.any():
            break
    return alive


def _product(points: Matrix, residue: Floats, columns: Floats, prime: int) -> Floats:
    """Residues (r, k) of products, from residues of the entries of points (in their layout) and of the columns (d, k)."""
    if not isinstance(points, np.ndarray):
        matrix = scipy.sparse.csr_array((residue, points.indices, points.indptr), shape=points.shape)
        assert np.diff(points.indptr).max(initial=0) <= WIDTH, "sums are exact"
        return np.asarray((matrix @ columns) % prime, np.float64)
    found = np.zeros((len(residue), columns.shape[1]))
    for first in range(0, residue.shape[1], WIDTH):
        found += residue[:, first : first + WIDTH] @ columns[first : first + WIDTH] % prime
    return np.asarray(found % prime, np.float64)


def _digits(points: Matrix) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Integers in the layout of the entries, exponents of two >= 0 with them, and the exponents (r,) that rows have besides."""
    entries = points if isinstance(points, np.ndarray) else points.data
    mantissa, exponent = np.frexp(entries)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    power = exponent.astype(np.int64) - 53
    none = np.iinfo(np.int64).max
    power[whole == 0] = none
    if isinstance(points, np.ndarray):
        least = power.min(axis=1, initial=none)
        least[least == none] = 0
        power -= least[:, None]
    else:
        least = np.full(points.shape[0], none)
        row = np.repeat(np.arange(points.shape[0]), np.diff(points.indptr))
        np.minimum.at(least, row, power)
        least[least == none] = 0
        power -= least[row]
    power[whole == 0] = 0
    return whole, power, least


def _row(points: Matrix, row: int) -> tuple[Floats, NDArray[np.int64] | slice]:
    """Entries of a row, and the features that they are of."""
    if isinstance(points, np.ndarray):
        return np.asarray(points[row]), slice(None)
    here = slice(points.indptr[row], points.indptr[row + 1])
    return points.data[here], points.indices[here]


@cache
def _powers(prime: int, count: int) -> list[int]:
    """Powers of two modulo a prime."""
    found = [1]
    for _ in range(count - 1):
        found.append(2 * found[-1] % prime)
    return found


@cache
def _primes(count: int) -> list[int]:
    """The largest primes below ``BELOW``."""
    sieve = np.ones(BELOW, np.bool_)
    for i in range(2, 1 << (BELOW.bit_length() // 2 + 1)):
        if sieve[i]:
            sieve[i * i :: i] = False
    return [int(v) for v in np.flatnonzero(sieve)[-count:][::-1]]
