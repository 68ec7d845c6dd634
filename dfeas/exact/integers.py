"""Exact linear algebra with dense matrices of integers of any length: independence, systems, null spaces.

FLINT does the work (p-adic lifting, Dixon 1982).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import flint
import numpy as np

from dfeas.exact.arithmetic import Indices
from dfeas.exact.dyadic import Integers

PRIME = 2**61 - 1
"""Independence modulo a prime is independence; what depends modulo this one is looked at again in integers."""

FEW, MANY = 64, 8
"""Equations of a system, at least, and entries for each of them, at most, which are worth to be looked at one by one."""


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
    """x (r, k) and a denominator > 0 with matrix (r, r) x = denominator right (r, k), for a regular matrix. Equations of one
    unknown, and unknowns of one equation, are left out, one after the other: of bounds and of flows nothing is left.
    """
    place = np.argwhere(matrix != 0) if len(matrix) >= FEW else np.zeros((0, 2), np.int64)
    first, last, inner = _peel(place, len(matrix)) if len(place) <= MANY * len(matrix) else ([], [], place)
    if not len(first) and not len(last):
        return _solve_dense(matrix, right)
    entries = [dict[int, int]() for _ in range(len(matrix))]
    for (i, j), entry in zip(place.tolist(), matrix[tuple(place.T)].tolist(), strict=True):
        entries[i][j] = entry
    x = np.full(right.shape, Fraction(0), object)
    for i, j in first:
        x[j] = _substitute(entries[i], j, right[i], x)
    if len(inner):
        rows, columns = inner.T
        left = np.array([_substitute(entries[i], -1, right[i], x) for i in rows.tolist()], object).reshape(len(inner), -1)
        common = math.lcm(*(v.denominator for v in left.ravel().tolist()))
        whole = np.array([v.numerator * (common // v.denominator) for v in left.ravel().tolist()], object).reshape(left.shape)
        follows, denominator = _solve_dense(matrix[np.ix_(rows, columns)], whole)
        x[columns] = follows * Fraction(1, denominator * common)
    for i, j in last:
        x[j] = _substitute(entries[i], j, right[i], x)
    flat = x.ravel().tolist()
    denominator = math.lcm(*(v.denominator for v in flat))
    return np.array([v.numerator * (denominator // v.denominator) for v in flat], object).reshape(x.shape), denominator


def _substitute(entries: Mapping[int, int], j: int, right: Any, x: Any) -> Any:
    """Unknown j (k,) of an equation whose others are known; of none what is left of its right side."""
    for other, entry in entries.items():
        if other != j and x[other].any():
            right = right - entry * x[other]
    return right * Fraction(1, entries.get(j, 1))


def _peel(place: Indices, r: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]], Indices]:
    """Of entries (e, 2) that are not zero: equations and unknowns in the order in which the first follow from their equations
    alone, and the last from all others; and equations and unknowns (s, 2) of what is left, in any pairs.
    """
    rows, columns = _lines(place, (r, r))
    first = _take_single(rows, columns)
    last = [(i, j) for j, i in reversed(_take_single(columns, rows))]
    gone = {i for i, _ in first + last}, {j for _, j in first + last}
    left = [[a for a in range(r) if a not in some] for some in gone]
    return first, last, np.array(left, np.int64).T


def _lines(place: Indices, shape: tuple[int, ...]) -> tuple[list[set[int]], list[set[int]]]:
    """Columns of the entries (e, 2) of each row, and rows of those of each column."""
    rows, columns = [set[int]() for _ in range(shape[0])], [set[int]() for _ in range(shape[1])]
    for i, j in place.tolist():
        rows[i].add(j)
        columns[j].add(i)
    return rows, columns


def _take_single(lines: list[set[int]], crossing: list[set[int]]) -> list[tuple[int, int]]:
    """Lines of one entry, each with the line that crosses it there and is taken out with it, in an order in which they are."""
    single, order = [a for a, line in enumerate(lines) if len(line) == 1], list[tuple[int, int]]()
    while single:
        a = single.pop()
        if len(lines[a]) != 1:  # what crossed it was taken out
            continue
        (b,) = lines[a]
        order.append((a, b))
        for other in crossing[b]:
            lines[other].discard(b)
            if len(lines[other]) == 1:
                single.append(other)
        crossing[b] = set()
    return order


def _solve_dense(matrix: Integers, right: Integers) -> tuple[Integers, int]:
    fractions: Any = flint.fmpz_mat(matrix.tolist()).solve(flint.fmpz_mat(right.tolist()))
    numerators, denominator = fractions.numer_denom()
    return _integers(numerators, right.shape), int(denominator)


def combine(weights: Integers, rows: Integers) -> Integers:
    """The sum (d,) of rows (s, d), each times its weight (s,); of rows with many zeros sooner than by a product."""
    total = np.zeros(rows.shape[1], object)
    for weight, row in zip(weights.tolist(), rows, strict=True):
        if weight:
            held = np.flatnonzero(row)
            total[held] += weight * row[held]
    return total


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
    return None if combine(x, rows).any() else x


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
    """Columns that are independent of those before them modulo a prime. A column is that of all others, too, which has the only
    entry of a row.
    """
    place = np.argwhere(rows != 0) if min(rows.shape) >= FEW else np.zeros((0, 2), np.int64)
    if not 0 < len(place) <= MANY * max(rows.shape):
        return _pivots_dense(rows)
    lines = _lines(place, rows.shape)
    single = [j for _, j in _take_single(*lines)]
    left = np.setdiff1d(np.arange(rows.shape[1]), single)
    if not len(single) or not len(left):
        return np.sort(single) if single else _pivots_dense(rows)
    others = np.array([i for i, line in enumerate(lines[0]) if line], np.int64)
    return np.sort(np.concatenate([single, left[_pivots_dense(rows[np.ix_(others, left)])]]))


def _pivots_dense(rows: Integers) -> Indices:
    if not rows.size:
        return np.zeros(0, np.int64)
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
