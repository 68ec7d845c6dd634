"""Basic vectors: the same sum from few columns (Caratheodory), by eliminating directions that change nothing."""

from __future__ import annotations

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them

from dfeas.workingset.matrix import Floats, Indices

BATCH = 128
"""Further columns that are taken up at a time."""


def basic(columns: Floats, x: Floats) -> tuple[Indices, Floats]:
    """At most d + 1 entries with the same sum_j x_j a_j and sum_j x_j, up to rounding.

    ``columns`` (c, d), one a row, and ``x`` (c,) >= 0. Returns their positions, ascending, and the entries.
    """
    most = columns.shape[1] + 1
    x = x.copy()
    active = np.arange(0)
    waiting = np.flatnonzero(x > 0)
    while len(waiting):
        free = most - len(active) + BATCH
        active, waiting = np.concatenate([active, waiting[:free]]), waiting[free:]
        if len(active) > most:
            system = np.column_stack([columns[active], np.ones(len(active))])
            x[active] = _eliminate(system, x[active])
        active = active[x[active] > 0]
    return np.sort(active), x[np.sort(active)]


def _eliminate(system: Floats, x: Floats) -> Floats:
    """A vector >= 0 with the same x'system, ``system`` being (s, r) with s > r, and at most r entries above zero."""
    s, r = system.shape
    last = np.zeros((s, s - r))
    last[r:] = np.eye(s - r)
    # an orthonormal basis of the null space; overwrite_c lets it have more rows than there are reflections
    directions = np.array(scipy.linalg.qr_multiply(system, last, mode="left", overwrite_c=True)[0], order="F")
    x = x.copy()
    for d in range(s - r):
        v = directions[:, d]
        if not (v > 0).any():
            v = -v
        steps = np.divide(x, v, out=np.full(s, np.inf), where=v > 1e-13 * np.abs(v).max())
        out = int(steps.argmin())
        x = np.maximum(x - steps[out] * v, 0.0)
        x[out] = 0.0
        # the other directions leave the entry that is now zero alone
        rest = directions[:, d + 1 :]
        rest -= np.outer(v / v[out], rest[out])
        rest[out] = 0.0
    return x
