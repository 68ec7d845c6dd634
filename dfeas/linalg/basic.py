"""Basic vectors, and conflicts: the same sum from few columns (Caratheodory), by eliminating directions that vanish."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import isqrt
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them

from dfeas.linalg.blas import one_thread
from dfeas.linalg.columns import ColumnMatrix
from dfeas.linalg.points import Floats, Indices

DEPENDENT = 1e-10
"""What is below this share of the largest is zero, in a triangular factor and among singular values."""
BATCH = (32, 128)
"""Further columns that are taken up at a time: as many as there are features, within; half of them where they are many."""
NEAR = 2**15
"""Entries of directions that fit into a processor's own cache, where they may change one by one."""
FOLLOWED = 32
"""Directions that change one by one where all at hand have more entries than that."""
MANY = 512
"""Features from which a factor of the columns at hand gives directions, and products of matrices follow them: a null space from
a QR takes three times the flops.
"""
LOADING = 256
"""Unknowns of a system up to which NumPy solves it, in 0.6 ms: ``scipy.linalg``, faster for a triangle, takes 0.2 s to load."""
DRIFT = 1e-13
"""Of sums, by directions from a factor, from which a null space is taken instead."""
SMALL = 3e-6
"""|Ax| below which columns are looked at in float64, if at all: the margin is tiny, or there is none."""
DEAR = 1e9
"""Flops of a factorisation, of which few are made."""
CLOSE = 1e-9
"""|Ax| below which a conflict is looked for where that is dear: near less exact weights a basis often has a negative one."""
AGAIN = 100.0
"""How many times less |Ax| is until a conflict is looked for once more."""


def solve_triangular(factor: Floats, wanted: Floats, *, transposed: bool = False) -> Floats:
    """R x = b or R'x = b for an upper triangle; raises LinAlgError for a zero on its diagonal. NumPy's LU of an upper triangle
    is itself, and of a small one takes no longer than the loading of ``scipy.linalg``.
    """
    if len(factor) > LOADING:
        with one_thread(of_scipy=True):
            return np.asarray(scipy.linalg.solve_triangular(factor, wanted, trans=1 if transposed else 0, check_finite=False))
    if transposed:
        return np.asarray(np.linalg.solve(factor.T[::-1, ::-1], wanted[::-1])[::-1], np.float64)
    return np.asarray(np.linalg.solve(factor, wanted), np.float64)


def basic(columns: Callable[[Indices], Floats], dimension: int, x: Floats) -> tuple[Indices, Floats]:
    """At most d + 1 entries with the same sum_j x_j a_j and sum_j x_j, up to rounding. ``columns`` gives columns (r, d) by
    their positions (r,), one a row: few are looked at at a time. ``x`` (c,) is >= 0. Returns positions, ascending, and entries.
    """
    most, batch = dimension + 1, min(max(dimension, BATCH[0]), BATCH[1] if dimension < MANY else dimension // 2)
    x = x.copy()
    active = np.arange(0)
    waiting = np.flatnonzero(x > 0)
    while len(waiting):
        free = most - len(active) + batch
        active, waiting = np.concatenate([active, waiting[:free]]), waiting[free:]
        if len(active) > most:
            x[active] = _fewer(np.column_stack([columns(active), np.ones(len(active))]), x[active])
        active = active[x[active] > 0]
    active.sort()
    return active, x[active]


@one_thread(of_scipy=True)
def independent(columns: Floats, x: Floats) -> tuple[Indices, Floats]:
    """Positions and entries of fewer columns (s, d) with the same sums, as long as they and a 1 below each are dependent. What
    is left has one such x, and none for a part of it. A pivoted QR tells whether the null space is needed at all: it is that of
    R, which has no more rows than columns, where there may be many features.
    """
    system = np.vstack([columns.T, np.ones(len(x))])
    factor, order = scipy.linalg.qr(system, mode="r", pivoting=True, check_finite=False)
    if rank(factor) < len(x):
        null = scipy.linalg.null_space(factor[: len(x)], rcond=DEPENDENT)
        directions = np.empty_like(null)
        directions[order] = null
        x = eliminate(x, directions)
    some = np.flatnonzero(x > 0)
    return some, x[some]


def rank(factor: Any) -> int:
    """Rank of a matrix, from the R of its pivoted QR."""
    size = np.abs(np.diagonal(factor))
    return int((size > DEPENDENT * size.max()).sum())


@one_thread(of_scipy=True)
def _fewer(system: Floats, x: Floats) -> Floats:
    """x (s,) with as many zeros, at least, as a system (s, r) has rows more than columns, and the same x'system."""
    directions = _directions(system) if system.shape[1] > MANY else None
    if directions is not None:
        fewer = eliminate(x, directions)
        if float(np.linalg.norm((fewer - x) @ system)) <= DRIFT:
            return fewer
    return eliminate(x, _null_space(system))


def _directions(system: Floats) -> Floats | None:
    """Directions as of ``_null_space``, not orthonormal: each moves a late row against the first r; None for dependent ones."""
    s, r = system.shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)  # of a zero on the diagonal, which is looked for
        factor = scipy.linalg.lu_factor(system[:r].T, check_finite=False)
    size = np.abs(np.diagonal(factor[0]))
    if size.min() <= DEPENDENT * size.max():
        return None
    return np.vstack([scipy.linalg.lu_solve(factor, -system[r:].T, check_finite=False), np.eye(s - r)])


def _null_space(system: Floats) -> Floats:
    """Orthonormal directions v (s, s - r) with v'system = 0, for a system (s, r) with s > r."""
    s, r = system.shape
    last = np.zeros((s, s - r))
    last[r:] = np.eye(s - r)
    # overwrite_c lets it have more rows than there are reflections
    return np.array(scipy.linalg.qr_multiply(system, last, mode="left", overwrite_c=True)[0])


def eliminate(x: Floats, directions: Floats) -> Floats:
    """Follow each direction (s, k) from x (s,) >= 0 until an entry is zero: k entries, at least, are zero in the end."""
    x = x.copy()
    _follow(x, np.array(directions.T, order="C"))
    return x


def _follow(x: Floats, rows: Floats) -> Indices:
    """Follow directions (k, s) from x (s,), which is overwritten, one after another; returns the entries (k,) that ended them.
    Each direction is overwritten by what those before it leave of it: of the first few one by one, then at once of all behind
    them, and so for as many as are followed together.
    """
    few = FOLLOWED if len(rows) <= BATCH[1] and rows.size > NEAR else BATCH[1]
    if len(rows) <= few:
        return _follow_few(x, rows)
    ends = np.zeros(len(rows), np.int64)
    for first in range(0, len(rows), few):
        some, rest = rows[first : first + few], rows[first + few :]
        ends[first : first + few] = out = _follow(x, some)
        if len(rest):
            # row i of some has zeros where those before it ended
            share = scipy.linalg.solve_triangular(some[:, out], rest[:, out].T, trans=1, check_finite=False)
            rest -= share.T @ some
            rest[:, out] = 0.0
    return ends


def _follow_few(x: Floats, rows: Floats) -> Indices:
    """``_follow``, where each direction changes all that come after it at once."""
    changes, ends = np.empty_like(rows), np.zeros(len(rows), np.int64)
    for d, row in enumerate(rows):
        most = row.max()
        size, v = max(most, -row.min()), row if most > 0 else -row
        falling = (v > 1e-13 * size).nonzero()[0]
        steps = x[falling] / v[falling]
        first = int(steps.argmin())
        ends[d] = out = int(falling[first])
        x -= steps[first] * v
        np.maximum(x, 0.0, out=x)
        x[out] = 0.0
        # the other directions leave the entry that is now zero alone
        rest, change = rows[d + 1 :], changes[d + 1 :]
        np.multiply(rest[:, out, None], v / v[out], out=change)
        rest -= change
        rest[:, out] = 0.0
    return ends


VANISHED = 2e-15
"""|sum_j x_j b_j| of unit columns b_j, sum(x) = 1, that is rounding of float64 and nothing else."""
NEGLIGIBLE = (1e-5, 1e-7, 1e-9, 1e-11, 0.0)
"""Weights below such a share of the largest are taken for zero, if the others alone make a conflict."""
HEAVY, FEW = (0.5, 0.1, 0.03, 0.01, 1e-3), 64
"""Shares of the largest weight above which a conflict is looked for, and so many columns of which it may always be."""
ROUNDING = 1e-14
"""Weights below this share of the largest are rounding of zero."""


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
    for share in NEGLIGIBLE:
        heavy = weight > share * weight.max()
        refined = _refine(unit(kept[heavy]), weight[heavy])
        if refined is not None:
            large = kept[heavy][refined > 0]
            some, refined = _irreducible(unit(large), refined[refined > 0])
            refined /= length[large[some]]
            return rows[large[some]], refined / refined.sum()
    return None


def among_heavy(matrix: ColumnMatrix, x: Floats, products: int = 0) -> tuple[Indices, Floats, bool] | None:
    """``conflict`` among the heaviest columns alone, or where there is none weights on them with less |Ax|; and whether it is a
    conflict. A QR of them must take less than ``products`` with all columns, unless they are few: k of c columns take k^2 d
    multiplications, a product takes c d. Only where there are more features than a few: some columns all but agree by chance
    otherwise, and more of them make a better conflict.
    """
    tried, most = 0, max(FEW, isqrt(products * matrix.shape[0]))
    best = None
    for share in HEAVY if matrix.shape[1] > FEW else ():
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
    small = CLOSE if int((slack > 0).sum()) * matrix.shape[1] ** 2 > DEAR else SMALL
    return (conflict(matrix, x), upper) if dear or upper < min(small, tried / AGAIN) else (None, tried)


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
    refined = _refine(columns[some], fewer) if len(some) < len(x) else None
    if refined is None:
        return np.arange(len(x)), x
    return some[refined > 0], refined[refined > 0]


@one_thread(of_scipy=True)
def _refine(columns: Floats, x: Floats) -> Floats | None:
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
