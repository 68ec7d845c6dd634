"""Conflicts: weights on few columns whose sum is zero, near approximate ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import isqrt

import numpy as np

from dfeas.linalg.basic import DEPENDENT, LOADING, basic, independent, rank, solve_triangular
from dfeas.linalg.blas import beat, one_thread
from dfeas.linalg.points import Floats, Indices
from dfeas.linalg.separation import AT
from dfeas.linalg.separation.columns import ColumnMatrix

NEGLIGIBLE = (1e-5, 1e-7, 1e-9, 1e-11, 0.0)
"""Weights below such a share of the largest are taken for zero, if the others alone make a conflict."""
CLEAR = 1e-11
"""Share of the largest weight below which a weight may be rounding of zero."""
HEAVY = (0.5, 0.1, 0.03, 0.01, 1e-3)
"""Shares of the largest weight above which a conflict is looked for."""


def conflict(matrix: ColumnMatrix, x: Floats) -> tuple[Indices, Floats] | None:
    """A basic solution of A x = 0, sum(x) = 1, x >= 0 near an approximate one (c,), or None when there is none. Returns
    positions (s,), s <= d + 1, ascending, and weights (s,) > 0; no part of them is in conflict, as far as float64 tells.
    Columns are weighed as the matrix sees them, with its feature factors, and scaled to length 1: that changes the weights,
    which are given for the columns as they are.
    """
    return _among_few(matrix, x) if matrix.wide else _among_all(matrix, x)


def _among_all(matrix: ColumnMatrix, x: Floats) -> tuple[Indices, Floats] | None:
    """``conflict`` among all columns that have weight."""
    rows = np.flatnonzero(x)
    length = matrix.lengths(rows)
    null = np.flatnonzero(length == 0)
    if len(null):
        return rows[null[:1]], np.ones(1)

    def unit(chosen: Indices) -> Floats:
        return np.asarray(matrix.gather(rows[chosen]) / length[chosen, None])

    weight = x[rows] * length
    kept, weight = basic(unit, matrix.shape[1], weight / weight.sum())
    # of d + 1 independent columns that all clearly weigh no part is in conflict: none is looked for
    whole = LOADING < len(kept) == matrix.shape[1] + 1
    for share in (0.0, *NEGLIGIBLE) if whole else NEGLIGIBLE:
        heavy = weight > share * weight.max()
        found = _refine(unit(kept[heavy]), weight[heavy])
        if found is not None and (not whole or (found[1] and found[0].min() > CLEAR * found[0].max())):
            refined, only = found
            large, refined = kept[heavy][refined > 0], refined[refined > 0]
            if not only:
                some, refined = _irreducible(unit(large), refined)
                large = large[some]
            refined /= length[large]
            return rows[large], refined / refined.sum()
        whole = False
    return None


def among_heavy(matrix: ColumnMatrix, x: Floats, products: int = 0) -> tuple[Indices, Floats, bool] | None:
    """``conflict`` among the heaviest columns alone, or where there is none weights on them with less |Ax|; and whether it is a
    conflict. A QR of them must take less than ``products`` with all columns, unless they are few: k of c columns take k^2 d
    multiplications, a product takes c d. Only where there are more features than a few: some columns all but agree by chance
    otherwise, and more of them make a better conflict.
    """
    tried, most = 0, max(AT.few, isqrt(products * matrix.shape[0]))
    best = None
    for share in HEAVY if matrix.shape[1] > AT.few else ():
        beat()
        rows = np.flatnonzero(x > share * x.max())
        if len(rows) > most or not matrix.has_room(rows):
            break
        if len(rows) > max(1, tried):
            spanned = matrix.within(rows).project_to_span()
            weight = nearest(spanned.gather(slice(None)))
            basis = _among_all(spanned, x[rows]) if weight is None else None  # independent ones are in no conflict
            if basis is not None:
                return rows[basis[0]], basis[1], True
            best = best if weight is None else (rows[weight > 0], weight[weight > 0], False)
        tried = len(rows)
    return best


def find_conflict(matrix: ColumnMatrix, slack: Floats, tried: float, dear: bool) -> tuple[tuple[Indices, Floats] | None, float]:
    """A conflict of heavy columns, or of all that have weight where their |Ax| says that there is one, or that may be dear; and
    the |Ax| at which these were last tried.
    """
    if not slack.any():
        return None, tried
    x = slack / slack.sum()
    heavy = among_heavy(matrix, slack)
    if heavy is not None and heavy[2]:
        return heavy[:2], tried
    upper = float(np.linalg.norm(matrix.combine(x)))
    small = AT.close if int((slack > 0).sum()) * matrix.shape[1] ** 2 > AT.dear else AT.small
    return (conflict(matrix, x), upper) if dear or upper < min(small, tried / AT.again) else (None, tried)


def oppose(columns: Floats) -> Floats | None:
    """Weights (s,) on the simplex of unit columns (s, d) whose sum is zero, if the opposite of the last one is a nonnegative
    combination of the others: by nonnegative least squares (Lawson and Hanson 1974), which use d of them at most.
    """
    from dfeas.linalg.routines import nnls  # where it is used: few runs do

    try:
        x = np.append(nnls(columns[:-1].T, -columns[-1]), 1.0)
    except RuntimeError:
        return None
    return x / x.sum() if np.linalg.norm(x @ columns) <= AT.vanished * x.sum() else None


def solve_gram(columns: Floats, dependent: float = DEPENDENT) -> Floats | None:
    """Amounts (s,) whose combination of columns (s, d) has the product 1 with each; None for dependent columns."""
    factor = np.asarray(np.linalg.qr(columns.T, mode="r"), np.float64)
    size = np.abs(np.diagonal(factor))
    if len(factor) < len(columns) or size.min() <= dependent * size.max():
        return None
    return solve_triangular(factor, solve_triangular(factor, np.ones(len(columns)), transposed=True))


def nearest(columns: Floats) -> Floats | None:
    """Weights (s,) on the simplex whose combination of columns (s, d) is near to zero: the least of all in the span of those
    that are not 0, found by leaving out what it would weigh negatively. None for dependent columns.
    """
    kept = np.arange(len(columns))
    while len(kept):
        weight = solve_gram(columns[kept])
        if weight is None:
            return None
        if (weight > 0).all():
            x = np.zeros(len(columns))
            x[kept] = weight / weight.sum()
            return x
        kept = kept[weight > 0]
    return None


def _among_few(matrix: ColumnMatrix, x: Floats) -> tuple[Indices, Floats] | None:
    """``conflict`` among the heaviest columns, without the features that they do not have, where all would be too many; None
    where there is no room for a basis of these either.
    """
    for share in NEGLIGIBLE:
        rows = np.flatnonzero(x > share * x.max())
        if len(rows) > matrix.direct or not matrix.has_room(rows):
            break
        basis = _among_all(matrix.within(rows).project_to_span(), x[rows])
        if basis is not None:
            return rows[basis[0]], basis[1]
    return None


def _irreducible(columns: Floats, x: Floats) -> tuple[Indices, Floats]:
    """Some of the columns, independent ones: then there is one x for them, and none for a part of them."""
    some, fewer = independent(columns, x)
    found = _refine(columns[some], fewer) if len(some) < len(x) else None
    if found is None:
        return np.arange(len(x)), x
    return some[found[0] > 0], found[0][found[0] > 0]


@one_thread(of_scipy=True)
def _refine(columns: Floats, x: Floats) -> tuple[Floats, bool] | None:
    """x (s,) >= 0 with sum(x) = 1 and x'columns = 0 up to rounding, near an approximate one, or None; and whether it is the
    only one, so that no part of these columns is in conflict.
    """
    beat()
    s, d = columns.shape
    system = np.vstack([columns.T, np.ones(s)])
    wanted = np.zeros(d + 1)
    wanted[d] = 1
    solve = _factorise(system) if LOADING < s == d + 1 else None
    only = solve is not None
    if solve is None:
        solve, only = _factorise_by_rank(system)
    x = x.copy()
    for _ in range(3):
        x += solve(wanted - system @ x)
    if not np.isfinite(x).all() or x.min() < -CLEAR * abs(x).max():
        return None
    x = np.where(x > 1e-14 * x.max(), x, 0.0)  # what is less is rounding of zero
    total = float(x.sum())
    if not total > 0.5 or float(np.linalg.norm(x @ columns)) > AT.vanished * total:
        return None
    return np.asarray(x / total), only


Solve = Callable[[Floats], Floats]


def _factorise(system: Floats) -> Solve | None:
    """Solves a square system by LU, a fifth of what a pivoted QR takes; None where it is not certainly regular."""
    import scipy

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)  # of a zero on the diagonal, which is looked for
        factor = scipy.linalg.lu_factor(system, check_finite=False)
    if rank(factor[0]) < len(system):
        return None
    return lambda rest: np.asarray(scipy.linalg.lu_solve(factor, rest, check_finite=False))


def _factorise_by_rank(system: Floats) -> tuple[Solve, bool]:
    """Solves a system (d + 1, s) by independent columns, as well as it can be; and whether all are independent."""
    import scipy

    basis, factor, order = scipy.linalg.qr(system, mode="economic", pivoting=True, check_finite=False)
    r = rank(factor)

    def solve(rest: Floats) -> Floats:
        step = np.zeros(system.shape[1])
        step[order[:r]] = scipy.linalg.solve_triangular(factor[:r, :r], basis[:, :r].T @ rest, check_finite=False)
        return step

    return solve, r == system.shape[1]
