"""Basic vectors: the same sum from few columns (Caratheodory), by eliminating directions that change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them

from dfeas.blas import one_thread
from dfeas.workingset.matrix import Floats, Indices

DEPENDENT = 1e-10
"""What is below this share of the largest is zero, in a triangular factor and among singular values."""

BATCH = (32, 128)
"""Further columns that are taken up at a time: as many as there are features, within; a quarter of them where they are many."""


def basic(columns: Callable[[Indices], Floats], dimension: int, x: Floats) -> tuple[Indices, Floats]:
    """At most d + 1 entries with the same sum_j x_j a_j and sum_j x_j, up to rounding.

    ``columns`` gives columns (r, d) by their positions (r,), one a row: few are looked at at a time. ``x`` (c,) is >= 0.
    Returns positions, ascending, and entries.
    """
    most, batch = dimension + 1, max(min(max(dimension, BATCH[0]), BATCH[1]), dimension // 4)
    x = x.copy()
    active = np.arange(0)
    waiting = np.flatnonzero(x > 0)
    with one_thread(of_scipy=True):
        while len(waiting):
            free = most - len(active) + batch
            active, waiting = np.concatenate([active, waiting[:free]]), waiting[free:]
            if len(active) > most:
                system = np.column_stack([columns(active), np.ones(len(active))])
                x[active] = eliminate(x[active], _null_space(system))
            active = active[x[active] > 0]
    active.sort()
    return active, x[active]


def independent(columns: Floats, x: Floats) -> tuple[Indices, Floats]:
    """Positions and entries of fewer columns (s, d) with the same sums, as long as they and a 1 below each are dependent.

    What is left has one such x, and none for a part of it. A pivoted QR tells whether the null space is needed at all.
    """
    system = np.vstack([columns.T, np.ones(len(x))])
    if rank(scipy.linalg.qr(system, mode="r", pivoting=True, check_finite=False)[0]) < len(x):
        x = eliminate(x, scipy.linalg.null_space(system, rcond=DEPENDENT))
    some = np.flatnonzero(x > 0)
    return some, x[some]


def rank(factor: Any) -> int:
    """Rank of a matrix, from the R of its pivoted QR."""
    size = np.abs(np.diagonal(factor))
    return int((size > DEPENDENT * size.max()).sum())


def _null_space(system: Floats) -> Floats:
    """Orthonormal directions v (s, s - r) with v'system = 0, for a system (s, r) with s > r."""
    s, r = system.shape
    last = np.zeros((s, s - r))
    last[r:] = np.eye(s - r)
    # overwrite_c lets it have more rows than there are reflections
    return np.array(scipy.linalg.qr_multiply(system, last, mode="left", overwrite_c=True)[0])


def eliminate(x: Floats, directions: Floats) -> Floats:
    """Follow each direction (s, k) from x (s,) >= 0 until an entry is zero: k entries, at least, are zero in the end."""
    x, rows = x.copy(), np.array(directions.T, order="C")
    changes = np.empty_like(rows)
    for d, row in enumerate(rows):
        most = row.max()
        size, v = max(most, -row.min()), row if most > 0 else -row
        falling = (v > 1e-13 * size).nonzero()[0]
        steps = x[falling] / v[falling]
        first = int(steps.argmin())
        out = int(falling[first])
        x -= steps[first] * v
        np.maximum(x, 0.0, out=x)
        x[out] = 0.0
        # the other directions leave the entry that is now zero alone
        rest, change = rows[d + 1 :], changes[d + 1 :]
        np.multiply(rest[:, out, None], v / v[out], out=change)
        rest -= change
        rest[:, out] = 0.0
    return x
