"""Exact linear algebra with matrices of integers: independence, systems, null spaces.

FLINT does the work where python-flint is installed (p-adic lifting, Dixon 1982); without it fraction-free elimination in
Python's integers does (Bareiss 1968), which is as exact and slower by one to three orders of magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.verify.exact.dyadic import Integers

flint: Any
try:
    import flint
except ImportError:  # a platform without its wheels
    flint = None

Indices = NDArray[np.int64]

PRIME = 2**61 - 1
"""Independence modulo a prime is independence; what depends modulo this one is looked at again in integers."""


def independent(rows: Integers) -> Indices:
    """The first rows (r,) of a matrix (s, d) that are independent of those before them: a basis of what all rows span."""
    pivots = _pivots_modulo(rows.T.tolist() if rows.size else [])
    if len(pivots) == min(rows.shape) or not rows.size:
        return np.array(pivots, np.int64)
    # modulo a prime a rank can only be too small: all others must vanish against the null space of the pivots, rows or columns,
    # whichever is the smaller one
    wide = rows.shape[1] > rows.shape[0]
    tall, chosen = (rows.T, _pivots_modulo(rows.tolist())) if wide else (rows, pivots)
    if not product(tall, nullspace(tall[chosen])).any():
        return np.array(pivots, np.int64)
    return np.array(_pivots_of(rows.T.tolist()), np.int64)


def solve(matrix: Integers, right: Integers) -> tuple[Integers, int]:
    """x (r, k) and a denominator > 0 with matrix (r, r) x = denominator right (r, k), for a regular matrix."""
    if flint is not None:
        numerators, denominator = flint.fmpz_mat(matrix.tolist()).solve(flint.fmpz_mat(right.tolist())).numer_denom()
        return _integers(numerators, right.shape), int(denominator)
    size = len(matrix)
    wide, last, pivots = _eliminated([[*row, *more] for row, more in zip(matrix.tolist(), right.tolist(), strict=True)], size)
    assert len(pivots) == size, "the matrix is regular"
    x: list[list[int]] = [[] for _ in range(size)]
    for i in reversed(range(size)):
        row = wide[i]
        x[i] = [
            (last * row[size + k] - sum(row[j] * x[j][k] for j in range(i + 1, size))) // row[i] for k in range(right.shape[1])
        ]
    sign = -1 if last < 0 else 1
    return sign * np.array(x, object).reshape(right.shape), abs(last)


def nullspace(rows: Integers) -> Integers:
    """A basis (d, k) of all vectors that are orthogonal to rows (s, d); each is as short as its common divisor allows."""
    d = rows.shape[1]
    if not len(rows):
        return eye(d)
    if flint is not None:
        basis, count = flint.fmpz_mat(rows.tolist()).nullspace()
        found = _integers(basis, (d, d))[:, : int(count)]
    else:
        found = _free(*_eliminated(rows.tolist(), d), d)
    return np.array([primitive(column) for column in found.T.tolist()], object).reshape(-1, d).T


def primitive(values: Sequence[int]) -> list[int]:
    """Integers without what all of them have in common."""
    common = math.gcd(*values) or 1
    return [v // common for v in values]


def product(first: Integers, second: Integers) -> Integers:
    """The product of (s, d) and (d, k)."""
    shape = (len(first), second.shape[1])
    if flint is None or not first.size or not second.size:
        return np.asarray(first @ second, object).reshape(shape)
    return _integers(flint.fmpz_mat(first.tolist()) * flint.fmpz_mat(second.tolist()), shape)


def _integers(matrix: Any, shape: tuple[int, ...]) -> Integers:
    return np.array([int(v) for v in matrix.entries()], object).reshape(shape)


def eye(size: int) -> Integers:
    """The identity."""
    found = np.zeros((size, size), object)
    found[np.diag_indices(size)] = 1
    return found


def _pivots_modulo(rows: list[list[int]]) -> list[int]:
    """Columns that are independent of those before them modulo a prime."""
    if not rows:
        return []
    if flint is None:
        return _pivots_of([[v % PRIME for v in row] for row in rows], PRIME)
    echelon, rank = flint.nmod_mat(len(rows), len(rows[0]), [v for row in rows for v in row], PRIME).rref()
    pivots, start = [], 0
    for row in echelon.tolist()[:rank]:
        start = next(j for j in range(start, len(row)) if int(row[j]))
        pivots.append(start)
        start += 1
    return pivots


def _pivots_of(rows: list[list[int]], modulus: int = 0) -> list[int]:
    """Columns that are independent of those before them, in integers or modulo a prime."""
    return _eliminated(rows, len(rows[0]), modulus)[2]


def _eliminated(rows: list[list[int]], columns: int, modulus: int = 0) -> tuple[list[list[int]], int, list[int]]:
    """Echelon form of the first columns, the last pivot and the columns of pivots; each entry is a minor of the matrix."""
    rows = [list(row) for row in rows]
    pivots: list[int] = []
    last = 1
    for column in range(columns):
        k = len(pivots)
        place = next((i for i in range(k, len(rows)) if rows[i][column]), None)
        if place is None:
            continue
        rows[k], rows[place] = rows[place], rows[k]
        head, pivot = rows[k], rows[k][column]
        for row in rows[k + 1 :]:
            factor = row[column]
            if modulus:
                row[column:] = [(pivot * v - factor * h) % modulus for v, h in zip(row[column:], head[column:], strict=True)]
            else:
                row[column:] = [(pivot * v - factor * h) // last for v, h in zip(row[column:], head[column:], strict=True)]
        last = pivot
        pivots.append(column)
    return rows, last, pivots


def _free(rows: list[list[int]], last: int, pivots: list[int], columns: int) -> Integers:
    """The null space of an echelon form: one vector for each column without a pivot (Cramer)."""
    free = sorted(set(range(columns)) - set(pivots))
    found = np.zeros((columns, len(free)), object)
    for place, column in enumerate(free):
        x = found[:, place]
        x[column] = last
        for i in reversed(range(len(pivots))):
            x[pivots[i]] = -sum(rows[i][j] * x[j] for j in range(pivots[i] + 1, columns) if x[j]) // rows[i][pivots[i]]
    return found
