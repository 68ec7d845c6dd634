"""The cones of a block, grouped by kind and size, so that LAPACK and NumPy work on many at once, and their norms.

Of an entry of the orthant it is the length of its row, so that the orthant is a dataset of unit points. Of a second-order cone
with rows a_0 and A_1 it is |a_0| + sigma(A_1), the largest singular value, and of a semidefinite one sigma of its rows: extreme
points (1, u) and vv' have |u| = |vv'| = 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.storage.layout import codes_of, kind_of, rank_of, rows_of
from dfeas.linalg.points import Floats, Indices, norms
from dfeas.passes.block import Block


@dataclass(frozen=True, slots=True)
class Group:
    """Cones of one kind and size."""

    kind: str
    size: int
    starts: Indices  # (c,) first rows in the block, ascending

    @property
    def dimension(self) -> int:
        return rows_of(self.kind, self.size)

    @property
    def rank(self) -> int:
        return rank_of(self.kind, self.size)

    def take(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values (..., b) of rows as (..., c, dimension): a view where the cones follow each other."""
        d, count = self.dimension, len(self.starts)
        first = int(self.starts[0])
        if int(self.starts[-1]) - first == d * (count - 1):
            return values[..., first : first + d * count].reshape(*values.shape[:-1], count, d)
        return values[..., self.starts[:, None] + np.arange(d)]

    def put(self, target: NDArray[Any], some: Indices | None, values: NDArray[Any]) -> None:
        """Write values (dimension, c) of some of the cones, None: of all, into those (b,) of rows."""
        place = self.take(target) if some is None else None
        if place is not None and np.may_share_memory(place, target):
            place[:] = values.T
        else:
            target[self.rows(slice(None) if some is None else some)] = values.T

    def rows(self, some: Indices | slice = slice(None)) -> Indices:
        """Rows (c, dimension) of some of the cones."""
        return np.asarray(self.starts[some, None] + np.arange(self.dimension))


def groups_of(label: NDArray[Any]) -> list[Group]:
    """The cones in the codes (b,) of a block, in the order in which kinds and sizes first appear."""
    alike = _alike(label)
    if alike is not None:
        return [alike]
    starts = codes_of(label)
    if not len(starts):
        return []
    codes = label[starts]
    different, first = np.unique(codes, return_index=True)
    return [Group(*kind_of(int(each)), starts[codes == each]) for each in different[np.argsort(first)]]


def _alike(label: NDArray[Any]) -> Group | None:
    """The cones of a block that is full of cones of one kind and size, as most are; None for others."""
    if len(label) and label[0] > 0:
        kind, size = kind_of(int(label[0]))
        rows = rows_of(kind, size)
        firsts = label[::rows]
        if len(label) % rows == 0 and np.count_nonzero(label) == len(firsts) and (firsts == label[0]).all():
            return Group(kind, size, np.arange(0, len(label), rows))
    return None


def pieces(block: Block, groups: list[Group]) -> Iterator[tuple[slice, list[Group]]]:
    """Runs of rows of whole cones, about as long as tiles, and their cones with rows counted from there."""
    cuts = [rows.start for rows in block.tiles()]
    if len(cuts) == 1:
        yield slice(0, block.size), groups
        return
    starts = np.sort(np.concatenate([group.starts for group in groups]))
    ends = np.append(starts, block.size)[np.searchsorted(starts, cuts[1:])]
    for first, stop in pairwise([0, *np.unique([*ends, block.size]).tolist()]):
        some = []
        for group in groups:
            here = group.starts[slice(*np.searchsorted(group.starts, (first, stop)))]
            if len(here):
                some.append(Group(group.kind, group.size, here - first))
        yield slice(first, stop), some


AT_ONCE = 1 << 21
"""Entries of cones that are looked at at a time."""


def cone_norms(points: NDArray[Any], label: NDArray[Any]) -> Floats:
    """Norms (b,) of the cones that the rows (b, m) of a block belong to; 1 for padding. Entries must be finite."""
    norm = np.ones(len(label))
    for group in groups_of(label):
        rows = group.rows()
        at_once = max(1, AT_ONCE // (group.dimension * points.shape[1]))
        for first in range(0, len(rows), at_once):
            some = rows[first : first + at_once]
            if group.kind == "l":  # as a dataset of points has them
                norm[some[:, 0]] = norms(points[some[:, 0]])
            else:
                norm[some] = norms_of(group.kind, points[some].astype(np.float64))[:, None]
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
    scale = np.where((size > 0) & np.isfinite(1 / np.where(size > 0, size, 1.0)), size, 1.0)[:, None, None]
    X = X / scale  # squares neither overflow nor underflow
    across = np.swapaxes(X, 1, 2)
    gram = X @ across if X.shape[1] <= X.shape[2] else across @ X
    largest = np.linalg.eigvalsh(gram)[:, -1]
    return np.asarray(np.sqrt(np.maximum(largest, 0.0)) * scale[:, 0, 0])
