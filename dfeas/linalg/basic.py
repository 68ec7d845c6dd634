"""Basic vectors: the same sum from few columns (Caratheodory), by eliminating directions that vanish."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from dfeas.linalg.blas import beat, one_thread
from dfeas.linalg.points import Floats, Indices

DEPENDENT = 1e-10
"""What is below this share of the largest is zero, in a triangular factor and among singular values."""
FIRM = 1e-6
"""Share of the largest below which a pivot of an LU makes directions whose sums are wrong by more than rounding: 7e-9 where
near pairs of points made them wrong by 6e-8, 0.02 where by 6e-15.
"""
BATCH = (32, 128)
"""Further columns that are taken up at a time: as many as there are features, within; half of them where they are many."""
MANY = 512
"""Features from which a factor of the columns at hand gives directions, and products of matrices follow them: a null space from
a QR takes three times the flops.
"""
LOADING = 256
"""Unknowns of a system up to which NumPy solves it, in 0.6 ms: ``scipy.linalg``, faster for a triangle, takes 0.2 s to load."""


def solve_triangular(factor: Floats, wanted: Floats, *, transposed: bool = False) -> Floats:
    """R x = b or R'x = b for an upper triangle; raises LinAlgError for a zero on its diagonal. NumPy's LU of an upper triangle
    is itself, and of a small one takes no longer than the loading of ``scipy.linalg``.
    """
    if len(factor) > LOADING:
        import scipy

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
        beat()
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
    import scipy

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
        # 1e-13: of sums, by directions from a factor, from which a null space is taken instead
        if float(np.linalg.norm((fewer - x) @ system)) <= 1e-13:
            return fewer
    return eliminate(x, _null_space(system))


def _directions(system: Floats) -> Floats | None:
    """Directions as of ``_null_space``, not orthonormal: each moves a late row against the first r; None where these are
    nearly dependent.
    """
    import scipy

    s, r = system.shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)  # of a zero on the diagonal, which is looked for
        factor = scipy.linalg.lu_factor(system[:r].T, check_finite=False)
    size = np.abs(np.diagonal(factor[0]))
    if size.min() <= FIRM * size.max():
        return None
    return np.vstack([scipy.linalg.lu_solve(factor, -system[r:].T, check_finite=False), np.eye(s - r)])


def _null_space(system: Floats) -> Floats:
    """Orthonormal directions v (s, s - r) with v'system = 0, for a system (s, r) with s > r."""
    import scipy

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
    # 32: directions that change one by one where all at hand have more entries than that
    # 2**15: entries of directions that fit into a processor's own cache, where they may change one by one
    few = 32 if len(rows) <= BATCH[1] and rows.size > (2**15) else BATCH[1]
    if len(rows) <= few:
        return _follow_few(x, rows)
    import scipy

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
