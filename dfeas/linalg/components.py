"""Parts of sparse matrices that have no row and no feature in common: singular values of a matrix are those of its parts.

Rows are connected that have an entry of the same feature, directly or by way of others. Where each feature has few entries, as
in matrix inequalities of many small terms, parts are small, and the largest singular value is found at little cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from dfeas.linalg.csr import row_numbers, take_rows
from dfeas.linalg.points import Indices

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ROOMY = 4
"""Features of all matrices, for each entry, up to which each has a place; of more those that are there are sorted out."""


def label_components(left: Indices, right: Indices, count: int) -> Indices:
    """The least node (count,) that each node is connected with, in a graph with edges (e,)."""
    least = np.arange(count)
    while True:
        ours, theirs = least[left], least[right]
        if np.array_equal(ours, theirs):
            return least
        low = np.minimum(ours, theirs)
        np.minimum.at(least, ours, low)
        np.minimum.at(least, theirs, low)
        nearer = least[least]
        while not np.array_equal(nearer, least):
            least, nearer = nearer, nearer[nearer]


def parts(rows: csr_array, dimension: int) -> Iterator[tuple[Indices, csr_array]]:
    """Parts of matrices of ``dimension`` rows that follow each other (c d, m), those of as many rows r at a time.

    The matrix (p,) that each is of, and their rows (p r, m). Rows without entries are in none.
    """
    count, m = rows.shape
    row = row_numbers(rows)
    feature = row // dimension * m + rows.indices  # those of a matrix are its own
    nodes = count // dimension * m
    if nodes > ROOMY * len(feature):
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
