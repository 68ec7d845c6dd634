"""A conflict: few columns with positive weights whose sum is zero up to rounding (a basic Gordan certificate)."""

from __future__ import annotations

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them

from dfeas.workingset.basic import basic, independent, rank
from dfeas.workingset.matrix import ColumnMatrix, Floats, Indices

VANISHED = 1e-13
"""|sum_j x_j b_j| of unit columns b_j, sum(x) = 1, that is rounding of float64 and nothing else."""

NEGLIGIBLE = (1e-5, 1e-7, 1e-9, 1e-11, 0.0)
"""Weights below such a share of the largest are taken for zero, if the others alone make a conflict."""

ROUNDING = 1e-14
"""Weights below this share of the largest are rounding of zero."""


def conflict(matrix: ColumnMatrix, x: Floats) -> tuple[Indices, Floats] | None:
    """A basic solution of A x = 0, sum(x) = 1, x >= 0 near an approximate one (c,), or None when there is none.

    Returns positions (s,), s <= d + 1, ascending, and weights (s,) > 0; no part of them is in conflict, as far as float64
    tells. Columns are weighed as the matrix sees them, with its feature factors, and scaled to length 1: that changes the
    weights, which are given for the columns as they are.
    """
    rows = np.flatnonzero(x)
    if matrix.wide:
        return _among_few(matrix, x)
    length = matrix.lengths(rows)
    null = np.flatnonzero(length == 0)
    if len(null):
        return rows[null[:1]], np.ones(1)

    def unit(chosen: Indices) -> Floats:
        return np.asarray(matrix.gather(rows[chosen]) / length[chosen, None])

    weight = x[rows] * length
    kept, weight = basic(unit, matrix.shape[1], weight / weight.sum())
    for share in NEGLIGIBLE:
        heavy = weight > share * weight.max()
        found = _refined(unit(kept[heavy]), weight[heavy])
        if found is not None:
            large = kept[heavy][found > 0]
            some, found = _irreducible(unit(large), found[found > 0])
            found /= length[large[some]]
            return rows[large[some]], found / found.sum()
    return None


def _among_few(matrix: ColumnMatrix, x: Floats) -> tuple[Indices, Floats] | None:
    """``conflict`` among the heaviest columns, without the features that they do not have, where all would be too many."""
    for share in NEGLIGIBLE:
        rows = np.flatnonzero(x > share * x.max())
        if len(rows) > matrix.direct:
            break
        found = conflict(matrix.within(rows), x[rows])
        if found is not None:
            return rows[found[0]], found[1]
    return None


def _irreducible(columns: Floats, x: Floats) -> tuple[Indices, Floats]:
    """Some of the columns, independent ones: then there is one x for them, and none for a part of them."""
    some, fewer = independent(columns, x)
    found = _refined(columns[some], fewer) if len(some) < len(x) else None
    if found is None:
        return np.arange(len(x)), x
    return some[found > 0], found[found > 0]


def _refined(columns: Floats, x: Floats) -> Floats | None:
    """x (s,) >= 0 with sum(x) = 1 and x'columns = 0 up to rounding, near an approximate one, or None."""
    s, d = columns.shape
    system = np.vstack([columns.T, np.ones(s)])
    wanted = np.zeros(d + 1)
    wanted[d] = 1
    basis, factor, order = scipy.linalg.qr(system, mode="economic", pivoting=True, check_finite=False)
    r = rank(factor)
    x = x.copy()
    for _ in range(3):
        rest = basis[:, :r].T @ (wanted - system @ x)
        x[order[:r]] += scipy.linalg.solve_triangular(factor[:r, :r], rest, check_finite=False)
    if not np.isfinite(x).all() or x.min() < -1e-11 * abs(x).max():
        return None
    x = np.where(x > ROUNDING * x.max(), x, 0.0)
    total = float(x.sum())
    if not total > 0.5 or float(np.linalg.norm(x @ columns)) > VANISHED * total:
        return None
    return np.asarray(x / total)
