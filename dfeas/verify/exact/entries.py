"""Sparse matrices of integers of any length: products and rank, exactly.

A feature whose entries are 1 and -1 is a pivot for all rows that have it; where no row has two of some such features, all of
them are eliminated at once, without fractions and without new features in any row. What is left has few features, and is dense.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.verify.exact.dyadic import Integers
from dfeas.verify.exact.linear import eye, independent, nullspace

Indices = NDArray[np.int64]

FAR = 1 << 20
"""Above all exponents."""
SPARE = 64
"""Rows beyond the features that a rank is looked for in at first."""


@dataclass(frozen=True)
class Entries:
    """A matrix (r, d) whose entries are digits, in the order of a CSR matrix."""

    digits: Integers  # (nnz,)
    row: Indices  # (nnz,) ascending
    column: Indices  # (nnz,)
    shape: tuple[int, int]

    @classmethod
    def of(cls, points: Any, least: Indices) -> Entries:
        """Of a CSR matrix of finite float64, times 2**-``least`` (d,) in each feature: see ``exponents``."""
        mantissa, power = np.frexp(points.data)
        whole = np.ldexp(mantissa, 53).astype(np.int64)
        column = points.indices.astype(np.int64)
        shift = power.astype(np.int64) - 53 - least[column]
        down = np.clip(-shift, 0, 62)  # these bits are zeros
        digits = (whole >> down).astype(object) << np.maximum(shift, 0).astype(object)
        row = np.repeat(np.arange(points.shape[0]), np.diff(points.indptr))
        return cls(np.asarray(digits, object), row, column, points.shape)

    def times(self, y: Integers) -> Integers:
        """Products (r,) with a vector (d,)."""
        used = np.flatnonzero((y != 0)[self.column])
        return _sums(self.digits[used] * y[self.column[used]], self.row[used], self.shape[0])

    def sum(self, weights: Integers) -> Integers:
        """The sum (d,) of all rows times weights (r,)."""
        used = np.flatnonzero((weights != 0)[self.row])
        used = used[np.argsort(self.column[used], kind="stable")]
        return _sums(self.digits[used] * weights[self.row[used]], self.column[used], self.shape[1])

    def dense(self, rows: Indices) -> Integers:
        """Some rows (k, d), by ascending numbers."""
        found = np.zeros((len(rows), self.shape[1]), object)
        place = np.searchsorted(rows, self.row)
        here = np.flatnonzero(rows[np.minimum(place, len(rows) - 1)] == self.row) if len(rows) else np.zeros(0, np.int64)
        found[place[here], self.column[here]] = self.digits[here]
        return found


def _sums(values: Integers, group: Indices, count: int) -> Integers:
    """Of values with the same number of ascending ones, for each below ``count``."""
    found = np.zeros(count, object)
    if len(values):
        first = np.flatnonzero(np.diff(group, prepend=-1))
        found[group[first]] = np.add.reduceat(values, first)
    return found


def exponents(points: Any) -> Indices:
    """Powers of two (d,) of which all entries of a feature of a CSR matrix are multiples, the largest; 0 without entries."""
    mantissa, power = np.frexp(points.data)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    zeros = np.frexp((whole & -whole).astype(np.float64))[1] - 1  # at the end, in binary
    least = np.full(points.shape[1], FAR)
    np.minimum.at(least, points.indices[whole != 0], (power + zeros - 53).astype(np.int64)[whole != 0])
    return np.where(least == FAR, 0, least)


def units(points: Any) -> Indices:
    """Features of a CSR matrix without zeros among its entries, such that no row has two: all entries are 1 or -1.

    Features with few entries go first. In each round those are chosen that do so in all their rows.
    """
    count = np.bincount(points.indices, minlength=points.shape[1])
    unit = (np.bincount(points.indices[np.abs(points.data) == 1], minlength=points.shape[1]) == count) & (count > 0)
    turn = np.empty(len(count), np.int64)
    turn[np.lexsort((np.arange(len(count)), count))] = np.arange(len(count))
    column = points.indices.astype(np.int64)
    row = np.repeat(np.arange(points.shape[0]), np.diff(points.indptr))
    chosen, open_ = np.zeros(len(count), np.bool_), unit
    while True:
        here = open_[column]
        row, column = row[here], column[here]
        if not len(row):
            return np.flatnonzero(chosen)
        first = np.flatnonzero(np.diff(row, prepend=-1))
        best = np.full(points.shape[0], len(count))
        best[row[first]] = np.minimum.reduceat(turn[column], first)
        goes = open_ & (np.bincount(column[turn[column] != best[row]], minlength=len(count)) == 0)
        chosen |= goes
        covered = np.zeros(points.shape[0], np.bool_)
        covered[row[goes[column]]] = True
        open_ = open_ & (np.bincount(column[covered[row]], minlength=len(count)) == 0)


def rank(points: Any) -> int:
    """Of a CSR matrix of finite float64."""
    points = points.copy()
    points.eliminate_zeros()
    pivots = units(points)
    others = np.setdiff1d(np.unique(points.indices), pivots)
    rest = points[:, others]
    entries = Entries.of(rest, exponents(rest))
    first, factor = _pivoted(points, pivots)
    if not len(others):
        return len(pivots)
    every = np.arange(points.shape[0])
    kept = np.unique(np.linspace(0, len(every) - 1, min(len(every), len(others) + SPARE)).astype(np.int64))
    basis = np.zeros((0, len(others)), object)
    while len(kept):
        more = entries.dense(kept) - factor[kept, None] * _dense(entries, first[kept])
        basis = np.vstack([basis, more])
        basis = basis[independent(basis)]
        across = nullspace(basis) if len(basis) else eye(len(others))
        beyond = np.zeros(len(every), np.bool_)
        for y in across.T:
            value = entries.times(y)
            beyond |= (value - factor * value[first]) != 0
        kept = np.flatnonzero(beyond)[: len(others) + SPARE]
    return len(pivots) + len(basis)


def _dense(entries: Entries, rows: Indices) -> Integers:
    order, back = np.unique(rows, return_inverse=True)
    return entries.dense(order)[back]


def _pivoted(points: Any, pivots: Indices) -> tuple[Indices, Integers]:
    """For each row the row of its pivot, and what times it has to be taken from it: 0 where it has none."""
    turn = np.full(points.shape[1], -1)
    turn[pivots] = np.arange(len(pivots))
    row = np.repeat(np.arange(points.shape[0]), np.diff(points.indptr))
    here = np.flatnonzero(turn[points.indices] >= 0)
    row, place, value = row[here], turn[points.indices[here]], points.data[here]
    head, value_of = np.zeros(len(pivots), np.int64), np.zeros(len(pivots))
    head[place[::-1]], value_of[place[::-1]] = row[::-1], value[::-1]
    first, factor = np.arange(points.shape[0]), np.zeros(points.shape[0], np.int64)
    first[row], factor[row] = head[place], (value * value_of[place]).astype(np.int64)
    return first, factor.astype(object)
