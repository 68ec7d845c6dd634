"""Singular values: the largest one of a matrix that is known by its products, and the parts of a sparse matrix that have them.

The largest comes by Lanczos steps with full reorthogonalisation (Golub and Van Loan, Matrix Computations, 2013, chapter 10).
The first vector is fixed, nothing is drawn, and so the value is the same each time: ARPACK draws anew where it breaks down.

Singular values of a matrix are those of its parts that have no row and no feature in common. Rows are connected that have an
entry of the same feature, directly or by way of others. Where each feature has few entries, as in matrix inequalities of many
small terms, parts are small, and the largest singular value is found at little cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used

from dfeas.linalg.csr import csr_array, row_numbers, take_rows
from dfeas.linalg.points import Floats, Indices


def largest_singular(X: Any) -> float:
    """The largest singular value of X (d, m), an array or a sparse matrix."""
    m = X.shape[1]
    across = X.T
    steps = min(m, 300)  # a value that is not accurate by then is too small by the part of the square that it is not
    basis = np.empty((steps, m))
    diagonal, beside = np.zeros(steps), np.zeros(steps)
    v: Floats = np.cos(np.arange(m) * 0.7) + 1.5  # no structure of the data is across to it
    v /= np.linalg.norm(v)
    value, done = 0.0, 0
    accurate = 1e-12  # residual, over the square of the value, that is small enough
    for i in range(steps):
        basis[i], done = v, i + 1
        w: Floats = np.asarray(across @ (X @ v))
        diagonal[i] = w @ v
        for _ in range(2):
            w -= basis[:done].T @ (basis[:done] @ w)
        beside[i] = np.linalg.norm(w)
        last = done == steps or beside[i] <= accurate * diagonal[:done].max()
        if last or done % 8 == 0:  # the values of the tridiagonal matrix are found now and then
            found, vectors = scipy.linalg.eigh_tridiagonal(diagonal[:done], beside[:i], select="i", select_range=(i, i))
            value = float(found[0])
            if last or beside[i] * abs(vectors[-1, 0]) <= accurate * value:
                break
        v = w / beside[i]
    return float(np.sqrt(max(0.0, value)))


def label_components(left: Indices, right: Indices, count: int) -> Indices:
    """The least node (count,) that each node is connected with, in a graph with edges (e,)."""
    edges = scipy.sparse.coo_array((np.ones(len(left), bool), (left, right)), shape=(count, count))
    label = scipy.sparse.csgraph.connected_components(edges, directed=False)[1]
    return np.unique(label, return_index=True)[1][label]


def parts(rows: csr_array, dimension: int) -> Iterator[tuple[Indices, csr_array]]:
    """Parts of matrices of ``dimension`` rows that follow each other (c d, m), those of as many rows r at a time. The matrix
    (p,) that each is of, and their rows (p r, m). Rows without entries are in none.
    """
    count, m = rows.shape
    row = row_numbers(rows)
    feature = row // dimension * m + rows.indices  # those of a matrix are its own
    nodes = count // dimension * m
    # features of all matrices, for each entry, up to which each has a place; of more those that are there are sorted out
    if nodes > 4 * len(feature):
        own, places = np.unique(feature, return_inverse=True)
        feature, nodes = places.reshape(-1), len(own)
    least = label_components(row, count + feature, count + nodes)[:count]
    filled = np.flatnonzero(np.diff(rows.indptr))
    filled = filled[np.argsort(least[filled], kind="stable")]
    first, many = np.unique(least[filled], return_counts=True)
    begin = np.cumsum(many) - many
    for size in np.unique(many).tolist():
        alike = np.flatnonzero(many == size)
        yield first[alike] // dimension, take_rows(rows, filled[(begin[alike, None] + np.arange(size)).reshape(-1)])
