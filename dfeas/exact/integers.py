"""Exact linear algebra with dense matrices of integers of any length: independence, systems, null spaces.

FLINT does the work (p-adic lifting, Dixon 1982).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import flint
import numpy as np

from dfeas.exact.arithmetic import Indices
from dfeas.exact.dyadic import Integers

PRIME = 2**61 - 1
"""Independence modulo a prime is independence; what depends modulo this one is looked at again in integers."""


def independent(rows: Integers) -> Indices:
    """The first rows (r,) of a matrix (s, d) that are independent of those before them: a basis of what all rows span."""
    if not rows.size:
        return np.zeros(0, np.int64)
    pivots = _pivots_modulo(rows.T)
    if len(pivots) == min(rows.shape):
        return pivots
    # modulo a prime a rank can only be too small: all others must vanish against the null space of the pivots, rows or columns,
    # whichever is the smaller one
    wide = rows.shape[1] > rows.shape[0]
    tall, chosen = (rows.T, _pivots_modulo(rows)) if wide else (rows, pivots)
    if not product(tall, nullspace(tall[chosen])).any():
        return pivots
    echelon, _, rank = flint.fmpz_mat(rows.T.tolist()).rref()
    return _pivots_of(echelon, rank)


def solve(matrix: Integers, right: Integers) -> tuple[Integers, int]:
    """x (r, k) and a denominator > 0 with matrix (r, r) x = denominator right (r, k), for a regular matrix."""
    fractions: Any = flint.fmpz_mat(matrix.tolist()).solve(flint.fmpz_mat(right.tolist()))
    numerators, denominator = fractions.numer_denom()
    return _integers(numerators, right.shape), int(denominator)


def complete(rows: Integers, given: Integers, ranked: Indices) -> Integers | None:
    """x (s,) with x'rows = 0, of rows (s, d): those that are ``ranked`` first, and independent, have what follows, others that
    are ranked have what is given, times a number above 0, and all others 0. None where those ranked are independent.
    """
    basis = ranked[independent(rows[ranked])]
    free = np.setdiff1d(ranked, basis)
    if not len(free):
        return None
    features = independent(rows[basis].T)
    right = -(given[free] @ rows[free])[features]
    follows, denominator = solve(rows[np.ix_(basis, features)].T, right[:, None])
    x = np.zeros(len(rows), object)
    x[free], x[basis] = given[free] * denominator, follows[:, 0]
    return None if (x @ rows).any() else x


def nullspace(rows: Integers) -> Integers:
    """A basis (d, k) of all vectors that are orthogonal to rows (s, d); each is as short as its common divisor allows."""
    d = rows.shape[1]
    if not len(rows):
        return np.eye(d, dtype=object)
    basis, count = flint.fmpz_mat(rows.tolist()).nullspace()
    vectors = _integers(basis, (d, d))[:, : int(count)]
    return np.array([primitive(column) for column in vectors.T.tolist()], object).reshape(-1, d).T


def orthogonal(rows: Integers) -> Integers:
    """The same, also of rows by far more than there are features; sooner where they span all of the space."""
    basis = rows[independent(rows)]
    return nullspace(basis) if len(basis) < rows.shape[1] else np.zeros((rows.shape[1], 0), object)


def primitive(values: Sequence[int]) -> list[int]:
    """Integers without what all of them have in common."""
    common = math.gcd(*values) or 1
    return [v // common for v in values]


def shorten_vectors(vectors: Integers) -> Integers:
    """Each of them (d, k) as short as integers can be."""
    return np.array([primitive(column) for column in vectors.T.tolist()], object).reshape(vectors.shape[1], len(vectors)).T


def unscale_vectors(vectors: Integers, exponent: Indices) -> Integers:
    """Vectors (d, k) for the stored features, the integer ones times 2**exponent; each as short as integers can be."""
    return shorten_vectors(vectors << (exponent.max(initial=0) - exponent).astype(object)[:, None])


def product(first: Integers, second: Integers) -> Integers:
    """The product of (s, d) and (d, k)."""
    shape = (len(first), second.shape[1])
    if not first.size or not second.size:
        return np.zeros(shape, object)
    return _integers(flint.fmpz_mat(first.tolist()) * flint.fmpz_mat(second.tolist()), shape)


def _integers(matrix: Any, shape: tuple[int, ...]) -> Integers:
    return np.array([int(v) for v in matrix.entries()], object).reshape(shape)


def _pivots_modulo(rows: Integers) -> Indices:
    """Columns that are independent of those before them modulo a prime."""
    return _pivots_of(*flint.nmod_mat(len(rows), rows.shape[1], rows.ravel().tolist(), PRIME).rref())


def _pivots_of(echelon: Any, rank: int) -> Indices:
    """Columns of the pivots of an echelon form."""
    if rank == echelon.ncols():
        return np.arange(rank)
    pivots, start = [], 0
    for row in range(rank):
        start = next(j for j in range(start, echelon.ncols()) if echelon[row, j])
        pivots.append(start)
        start += 1
    return np.array(pivots, np.int64)
