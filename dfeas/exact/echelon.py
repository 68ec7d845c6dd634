"""Sparse matrices of integers of any length: products, sums, features of units, elimination by pivots of 1 and -1, and rank.

Such pivots need no fractions. What they leave has few columns, and is dense.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct, field

from dfeas.exact.arithmetic import Indices, row_numbers
from dfeas.exact.dyadic import FAR, Integers, mantissas, zeros_of
from dfeas.exact.integers import independent, nullspace


class IntegerEntries(Struct, frozen=True):
    """A matrix (r, d) whose entries are digits, in the order of a CSR matrix."""

    digits: Integers  # (nnz,)
    row: Indices  # (nnz,) ascending
    column: Indices  # (nnz,)
    shape: tuple[int, int]

    @classmethod
    def of(cls, points: Any, least: Indices) -> IntegerEntries:
        """Of a CSR matrix of finite float64, times 2**-``least`` (d,) in each feature: see ``exponents``."""
        whole, power = mantissas(points.data)
        column = points.indices.astype(np.int64)
        shift = power - least[column]
        down = np.clip(-shift, 0, 62)  # these bits are zeros
        digits = (whole >> down).astype(object) << np.maximum(shift, 0).astype(object)
        row = row_numbers(points)
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
        matrix = np.zeros((len(rows), self.shape[1]), object)
        place = np.searchsorted(rows, self.row)
        here = np.flatnonzero(rows[np.minimum(place, len(rows) - 1)] == self.row) if len(rows) else np.zeros(0, np.int64)
        matrix[place[here], self.column[here]] = self.digits[here]
        return matrix


def _sums(values: Integers, group: Indices, count: int) -> Integers:
    """Of values with the same number of ascending ones, for each below ``count``."""
    sums = np.zeros(count, object)
    if len(values):
        first = np.flatnonzero(np.diff(group, prepend=-1))
        sums[group[first]] = np.add.reduceat(values, first)
    return sums


def exponents(points: Any) -> Indices:
    """Powers of two (d,) of which all entries of a feature of a CSR matrix are multiples, the largest; 0 without entries."""
    whole, power = mantissas(points.data)
    least = np.full(points.shape[1], FAR)
    np.minimum.at(least, points.indices[whole != 0], (power + zeros_of(whole))[whole != 0])
    return np.where(least == FAR, 0, least)


def units(points: Any) -> Indices:
    """Features of a CSR matrix without zeros among its entries, such that no row has two: all entries are 1 or -1. Features
    with few entries go first. In each round those are chosen that do so in all their rows.
    """
    count = np.bincount(points.indices, minlength=points.shape[1])
    unit = (np.bincount(points.indices[np.abs(points.data) == 1], minlength=points.shape[1]) == count) & (count > 0)
    turn = np.empty(len(count), np.int64)
    turn[np.lexsort((np.arange(len(count)), count))] = np.arange(len(count))
    column = points.indices.astype(np.int64)
    row = row_numbers(points)
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


class Echelon(Struct, dict=True):
    """Sparse rows of integers, eliminated by pivots of 1 and -1: modulo the rows a pivot is equal to its ``terms``. The column
    that fewest of these have goes first, so rows of one or two levels and few numbers fill up little. Columns below zero, which
    a caller may add, are no pivots.
    """

    count: Indices  # entries of each column
    terms: dict[int, dict[int, int]] = field(default_factory=dict)
    users: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))  # pivots with a column among their terms
    others: list[dict[int, int]] = field(default_factory=list)  # rows that had no 1 and no -1, or came when all was full
    work: int = 0  # entries that were changed

    @classmethod
    def of(cls, entries: IntegerEntries, numbered: bool = False) -> Echelon:
        """Of all rows; with ``numbered`` row i, which is equal to column -1 - i then, says what rows all others are made of."""
        echelon = cls(np.bincount(entries.column, minlength=entries.shape[1]))
        first = np.searchsorted(entries.row, np.arange(entries.shape[0] + 1)).tolist()
        columns, digits = entries.column.tolist(), entries.digits.tolist()
        for i in range(entries.shape[0]):
            here = slice(first[i], first[i + 1])
            echelon._add(dict(zip(columns[here], digits[here], strict=True)) | ({-1 - i: -1} if numbered else {}))
        echelon.others = [echelon.reduce(row) for row in echelon.others]
        return echelon

    def reduce(self, row: dict[int, int]) -> dict[int, int]:
        """The same modulo all rows, without pivots."""
        total = defaultdict[int, int](int)
        for column, value in row.items():
            for other, times in self.terms.get(column, {column: 1}).items():
                total[other] += value * times
        return {column: value for column, value in total.items() if value}

    @cached_property
    def dense(self) -> tuple[Integers, Indices, Indices]:
        """The other rows (r, k), their columns, and the first of them that are independent."""
        columns = sorted({column for row in self.others for column in row if column >= 0})
        rows = np.array([[row.get(column, 0) for column in columns] for row in self.others], object)
        rows = rows.reshape(len(self.others), len(columns))
        return rows, np.array(columns, np.int64), independent(rows)

    def lift(self, start: Integers) -> Integers:
        """The vector (d,) that is orthogonal to the rows with pivots, with these entries beside the pivots."""
        y = start.copy()
        for pivot, terms in self.terms.items():
            y[pivot] = sum(times * start[column] for column, times in terms.items() if column >= 0)
        return y

    def nullspace(self, among: Indices) -> Integers:
        """A basis (d, k) of what is orthogonal to all rows and has entries at these columns only, with those of the rows."""
        rest, columns, basis = self.dense
        across, free = nullspace(rest[basis]), np.setdiff1d(among, [*self.terms, *columns])
        start = np.zeros((len(self.count), len(free) + across.shape[1]), object)
        start[free, np.arange(len(free))] = 1
        start[columns, len(free) :] = across
        return np.column_stack([start[:, :0], *(self.lift(vector) for vector in start.T)])

    def _add(self, row: dict[int, int]) -> None:
        row = self.reduce(row)
        units = [column for column, value in row.items() if column >= 0 and abs(value) == 1]
        # entries that are changed, about, before what is left of rows is taken for dense
        if not units or self.work > 5_000_000:
            self.others += [row] if max(row, default=-1) >= 0 else []
            return
        pivot = min(units, key=lambda column: (len(self.users[column]), self.count[column], column))
        factor = -row.pop(pivot)
        self.terms[pivot] = terms = {column: factor * value for column, value in row.items()}
        self.work += len(row) * (1 + len(self.users[pivot]))
        for user in (pivot, *self.users.pop(pivot)):
            own = self.terms[user]
            times = own.pop(pivot, 0)
            for column, value in terms.items():
                own[column] = own.get(column, 0) + times * value
                (self.users[column].add if own[column] else self.users[column].discard)(user)
                if not own[column]:
                    del own[column]


def rank(points: Any) -> int:
    """Of a CSR matrix of finite float64."""
    points = points.copy()
    points.eliminate_zeros()
    echelon = Echelon.of(IntegerEntries.of(points, exponents(points)))
    return len(echelon.terms) + len(echelon.dense[2])
