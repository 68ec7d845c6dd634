"""Norms of cones: for each a bound of |A q| over the extreme points q of its base; a cone is divided by its norm.

Of an entry of the orthant it is the length of its row, so that the orthant is a dataset of unit points. Of a second-order cone
with rows a_0 and A_1 it is |a_0| + sigma(A_1), the largest singular value, and of a semidefinite one sigma of its rows: extreme
points (1, u) and vv' have |u| = |vv'| = 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.cones.groups import groups_of
from dfeas.passes.block import Floats
from dfeas.passes.points import norms

AT_ONCE = 1 << 21
"""Entries of cones that are looked at at a time."""


def cone_norms(points: NDArray[Any], label: NDArray[Any]) -> Floats:
    """Norms (b,) of the cones that the rows (b, m) of a block belong to; 1 for padding. Entries must be finite."""
    found = np.ones(len(label))
    for group in groups_of(label):
        rows = group.rows()
        at_once = max(1, AT_ONCE // (group.dimension * points.shape[1]))
        for first in range(0, len(rows), at_once):
            some = rows[first : first + at_once]
            if group.kind == "l":  # as a dataset of points has them
                found[some[:, 0]] = norms(points[some[:, 0]])
            else:
                found[some] = norms_of(group.kind, points[some].astype(np.float64))[:, None]
    return found


def norms_of(kind: str, X: Floats) -> Floats:
    """Norms (c,) of cones of one kind with rows (c, d, m)."""
    if kind == "s":
        return _sigma(X)
    first = norms(X[:, 0])
    return first if kind == "l" else first + _sigma(X[:, 1:])


def _sigma(X: Floats) -> Floats:
    """Largest singular values (c,) of matrices (c, d, m)."""
    size = np.abs(X).max(axis=(1, 2), initial=0.0)
    scale = np.where((size > 0) & np.isfinite(1 / np.where(size > 0, size, 1.0)), size, 1.0)[:, None, None]
    X = X / scale  # squares neither overflow nor underflow
    across = np.swapaxes(X, 1, 2)
    gram = X @ across if X.shape[1] <= X.shape[2] else across @ X
    largest = np.linalg.eigvalsh(gram)[:, -1]
    return np.asarray(np.sqrt(np.maximum(largest, 0.0)) * scale[:, 0, 0])
