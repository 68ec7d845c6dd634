"""A conic programme in the form of SCS, A x + s = b with s in a product of cones, as rows of cones that have no right side.

The question is whether some x has s in the interior. It is asked of y = (x, t) with t > 0 and b t - A x inside: then x / t is
such an x, and of such an x (x, 1) is such a y, so that neither answer says less or more. The row of t is behind all others.

Equalities (the zero cone) are solved by Gauss's elimination in fractions: (x, t) = basis y, with an entry of y for each
variable that is left, and the rows are asked about y. That is done where all of it is float64 exactly, and refused otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used

from dfeas.errors import BadInputError
from dfeas.linalg.points import Floats

EQUALITIES = ("z", "f")
"""Kinds of the zero cone, the second one of older versions."""
MOST_PRODUCTS = 1 << 22
"""Products that equalities may take, in fractions or integers: half a minute, or ten seconds."""
LONG = 64
"""Bits of a denominator that are still looked at: float64 holds 53."""

Row = dict[int, Fraction]
"""Entries that are not zero, by their columns."""


@dataclass(frozen=True)
class Program:
    """How the points of rows of cones are those of the programme that they were made of."""

    basis: Floats | None = None  # (m + 1, k), with which (x, t) is basis y; None without equalities: it is y

    def x(self, y: Floats) -> Floats:
        """(m,) of a separator (k,), each entry rounded to float64 once."""
        if self.basis is None:
            return np.asarray(y[:-1] / y[-1])
        *x, t = (sum(v * Fraction(float(y[j])) for j, v in row.items()) for row in _entries(self.basis))
        return np.array([float(v / t) for v in x])

    def explain(self, verdict: str, message: str) -> str:
        """What a verdict and its proof about y say of x."""
        known = {"feasible": "some x has", "infeasible": "no x has"}
        said = f"{known.get(verdict, 'it is not decided whether some x has')} b - A x in the interior of the cones"
        return f"{said}; of {'y' if self.basis is None else 'basis y'} = (x, t) and rows b t - A x: {message}"


def _entries(rows: Any) -> list[Row]:
    """Of each row, exactly."""
    held = scipy.sparse.csr_array(rows)
    pairs = list(zip(held.indices.tolist(), map(Fraction, held.data.tolist()), strict=True))
    return [_sum(pairs[first:stop]) for first, stop in zip(held.indptr[:-1], held.indptr[1:], strict=True)]


def _sum(pairs: Iterable[tuple[int, Fraction]]) -> Row:
    total: Row = {}
    for column, value in pairs:
        total[column] = total.get(column, Fraction(0)) + value
    return {column: value for column, value in total.items() if value}


def solutions(rows: Any) -> Floats:
    """A basis (d, k) of the y with rows (p, d) times y zero: whole numbers, zeros where 0 is the only y.

    A variable that was solved for is a sum of others, and t is one only where the rows make it zero. Raises BadInputError where
    that takes too long, or numbers that float64 does not hold.
    """
    solved: dict[int, Row] = {}
    work = 0
    for equation in _entries(rows):
        row = _put(solved, equation)
        if not row:
            continue
        pivot = min(row)
        known = {pivot: {c: -v / row[pivot] for c, v in row.items() if c != pivot}}
        changed = {j: _put(known, other) for j, other in solved.items() if pivot in other} | known
        solved |= changed
        work += len(row) + sum(map(len, changed.values()))
        if work > MOST_PRODUCTS or any(v.denominator.bit_length() > LONG for v in known[pivot].values()):
            raise _refused("take too long to be solved in fractions")
    left = [column for column in range(rows.shape[1]) if column not in solved]
    basis = np.zeros((rows.shape[1], max(1, len(left))))
    for place, column in enumerate(left):
        of_column = {j: row[column] for j, row in solved.items() if column in row} | {column: Fraction(1)}
        scale = math.lcm(*(v.denominator for v in of_column.values()))
        for j, v in of_column.items():
            basis[j, place] = _float(int(v * scale), 1)
    return basis


def _put(solved: dict[int, Row], row: Row) -> Row:
    """A row with others in the place of the variables that were solved for."""
    return _sum((c, v * w) for j, v in row.items() for c, w in solved.get(j, {j: Fraction(1)}).items())


def times(rows: Any, basis: Floats) -> Any:
    """Rows (r, d) times a basis (d, k) of whole numbers, in float64 exactly, and sparse where rows are."""
    held, across = scipy.sparse.csr_array(rows), [{c: int(v) for c, v in row.items()} for row in _entries(basis)]
    if int(np.count_nonzero(basis, axis=1)[held.indices].sum()) > MOST_PRODUCTS:
        raise _refused("are too many to be put into so many rows")
    ratios = [value.as_integer_ratio() for value in held.data.tolist()]
    one = max((under for _, under in ratios), default=1)  # a power of two, as all of them
    digits, indices = [over * (one // under) for over, under in ratios], held.indices.tolist()
    data: list[float] = []
    columns: list[int] = []
    ends = [0]
    for first, stop in pairwise(held.indptr.tolist()):
        total: dict[int, int] = {}
        for j, digit in zip(indices[first:stop], digits[first:stop], strict=True):
            for c, w in across[j].items():
                total[c] = total.get(c, 0) + digit * w
        columns += total
        data += [_float(value, one) for value in total.values()]
        ends.append(len(data))
    found = scipy.sparse.csr_array((data, columns, ends), shape=(rows.shape[0], basis.shape[1]), dtype=np.float64)
    return found if hasattr(rows, "tocsr") else found.toarray()


def _float(over: int, under: int) -> float:
    """The same number as a fraction. Raises BadInputError where it is no float64."""
    try:
        value = over / under
    except OverflowError:
        value = 0.0
    exact = value.as_integer_ratio()
    if exact[0] * under != over * exact[1]:
        raise _refused("are not solved in float64 without rounding")
    return value


def _refused(why: str) -> BadInputError:
    text = "solve them for some variables, put these into the other rows, and leave 'z' out"
    return BadInputError(f"cones: the equalities of 'z' {why}; {text}")
