"""The cones of a block, grouped by kind and size, so that LAPACK and NumPy work on many at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.passes.block import Block, Indices
from dfeas.store.cone_table import codes_of, kind_of, rank_of, rows_of


@dataclass(frozen=True, slots=True)
class Group:
    """Cones of one kind and size."""

    kind: str
    size: int
    starts: Indices  # (c,) first rows in the block, ascending

    @property
    def dimension(self) -> int:
        """Rows of each."""
        return rows_of(self.kind, self.size)

    @property
    def rank(self) -> int:
        """Eigenvalues of each."""
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
