"""Norms of cones: what bounds |A q| over the extreme points q of the base of each.

Of an entry of the orthant it is the length of its row, so that the orthant is a dataset of unit points. Of a second-order cone
with rows a_0 and A_1 it is |a_0| + sigma(A_1), the largest singular value, and of a semidefinite one sigma of its rows: extreme
points (1, u) and vv' have |u| = |vv'| = 1.

Sparse rows are looked at in parts that have no feature in common, small ones as arrays of their features, a large one as it is.
Either way the norm of a cone depends on its rows alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.cones import Group, groups_of, length
from dfeas.linalg.csr import Narrow, few_at_once, take_rows, with_data
from dfeas.linalg.points import Floats, Points, is_dense, norms
from dfeas.linalg.points import take_rows as some_of
from dfeas.linalg.singular import largest_singular, parts

if TYPE_CHECKING:
    from scipy.sparse import csr_array

AT_ONCE = 1 << 21
"""Entries of cones that are looked at at a time."""


def cone_norms(points: Points, label: NDArray[Any]) -> Floats:
    """Norms (b,) of the cones that the rows (b, m) of a block belong to; 1 for padding. Entries must be finite."""
    norm = np.ones(len(label))
    for group in groups_of(label):
        rows = group.rows()
        if group.kind == "l":  # as a dataset of points has them
            norm[rows[:, 0]] = norms(some_of(points, rows[:, 0]))
        elif is_dense(points):
            at_once = max(1, AT_ONCE // (group.dimension * points.shape[1]))
            for first in range(0, len(rows), at_once):
                some = rows[first : first + at_once]
                norm[some] = norms_of(group.kind, points[some].astype(np.float64))[:, None]
        else:
            norm[rows] = _of_sparse(points, group)[:, None]
    return norm


def norms_of(kind: str, X: Floats) -> Floats:
    """Norms (c,) of cones of one kind with rows (c, d, m)."""
    if kind == "s":
        return _sigma(X)
    first = norms(X[:, 0])
    return first if kind == "l" else first + _sigma(X[:, 1:])


def _sigma(X: Floats) -> Floats:
    """Largest singular values (c,) of matrices (c, d, m)."""
    size = np.abs(X).max(axis=(1, 2), initial=0.0)
    with np.errstate(over="ignore"):
        usable = (size > 0) & np.isfinite(1 / np.where(size > 0, size, 1.0))
    scale = np.where(usable, size, 1.0)[:, None, None]
    X = X / scale  # squares neither overflow nor underflow
    if min(X.shape[1:]) == 1:
        return np.asarray(length(X.reshape(len(X), -1)) * scale[:, 0, 0])
    across = np.swapaxes(X, 1, 2)
    gram = X @ across if X.shape[1] <= X.shape[2] else across @ X
    largest = np.linalg.eigvalsh(gram)[:, -1]
    return np.asarray(np.sqrt(np.maximum(largest, 0.0)) * scale[:, 0, 0])


def _of_sparse(points: csr_array, group: Group) -> Floats:
    rows = group.rows()
    if group.kind == "s":
        return _sigma_of_sparse(take_rows(points, rows.reshape(-1)), group.dimension)
    first, others = take_rows(points, rows[:, 0]), take_rows(points, rows[:, 1:].reshape(-1))
    return norms(first) + _sigma_of_sparse(others, group.dimension - 1)


def _sigma_of_sparse(rows: csr_array, d: int) -> Floats:
    """Largest singular values (c,) of matrices (d, m) below each other: those of their parts."""
    sigma = np.zeros(rows.shape[0] // d)
    for owner, some in parts(rows, d):
        size = some.shape[0] // len(owner)
        for run, here in few_at_once(some, np.arange(some.shape[0]).reshape(-1, size), AT_ONCE):
            one = here.shape[0] == size
            if one and size * np.count_nonzero(np.bincount(here.indices)) > AT_ONCE:
                found = np.array([_of_large(here)])
            else:
                narrow, found = Narrow.of(here, size), np.empty(here.shape[0] // size)
                for width in np.unique(narrow.widths).tolist():
                    alike = np.flatnonzero(narrow.widths == width)
                    found[alike] = _sigma(narrow.dense(alike, width))
            np.maximum.at(sigma, owner[run], found)
    return sigma


def _of_large(rows: csr_array) -> float:
    scale = float(np.abs(rows.data).max(initial=0.0))
    if scale == 0 or not np.isfinite(1 / scale):
        scale = 1.0
    filled = take_rows(rows, np.flatnonzero(np.diff(rows.indptr) > 0))
    return largest_singular(with_data(filled, filled.data.astype(np.float64) / scale)) * scale
