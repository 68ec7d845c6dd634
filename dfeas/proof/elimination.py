"""Gauss in integers: null vectors of small matrices, exactly."""

from __future__ import annotations

import math

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them

from dfeas.proof.dyadic import Floats

RANK = 1e-11
"""Diagonal entries of R in QR below this share of the first are taken for zero; integers decide afterwards."""


def independent(matrix: Floats) -> list[int]:
    """Rows that are independent and well-conditioned, as far as floating point tells; ascending."""
    r, pivots = scipy.linalg.qr(matrix.T, mode="r", pivoting=True)
    diagonal = np.abs(np.diagonal(r))
    return sorted(int(p) for p in pivots[: int((diagonal > RANK * diagonal[0]).sum())])


def null_vector(rows: list[list[int]], w: list[int]) -> list[int] | None:
    """Integers x with every row's product zero, in proportion to w on the columns that are free.

    Fraction-free elimination (Bareiss 1968): each entry is a minor of the matrix, every division is exact.
    """
    rows = [_shortest(row) for row in rows]
    pivots: list[int] = []
    last = 1
    for column in range(len(w)):
        k = len(pivots)
        if k == len(rows):
            break
        found = next((i for i in range(k, len(rows)) if rows[i][column]), None)
        if found is None:
            continue
        rows[k], rows[found] = rows[found], rows[k]
        head, pivot = rows[k][column:], rows[k][column]
        for row in rows[k + 1 :]:
            factor = row[column]
            row[column:] = [(pivot * v - factor * h) // last for v, h in zip(row[column:], head, strict=True)]
        last = pivot
        pivots.append(column)
    if len(pivots) == len(w):
        return None
    # times the last pivot, which is the determinant of all, so that what follows from these is whole (Cramer)
    x = [0 if j in set(pivots) else abs(last) * v for j, v in enumerate(w)]
    for row, column in zip(reversed(rows[: len(pivots)]), reversed(pivots), strict=True):
        x[column] = -sum(v * x[j] for j, v in enumerate(row) if j > column) // row[column]
    return x


def _shortest(row: list[int]) -> list[int]:
    """The row without what all its entries have in common."""
    common = math.gcd(*row)
    return [v // common for v in row]
