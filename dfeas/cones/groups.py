"""The cones of a block, grouped by kind and size, so that LAPACK and NumPy work on many at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.passes.block import Indices
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

    def rows(self, some: Indices | slice = slice(None)) -> Indices:
        """Rows (c, dimension) of some of the cones."""
        return np.asarray(self.starts[some, None] + np.arange(self.dimension))


def groups_of(label: NDArray[Any]) -> list[Group]:
    """The cones in the codes (b,) of a block, in the order in which kinds and sizes first appear."""
    starts = codes_of(label)
    codes = label[starts]
    if not len(codes) or (codes == codes[0]).all():
        return [Group(*kind_of(int(codes[0])), starts)] if len(codes) else []
    different, first = np.unique(codes, return_index=True)
    return [Group(*kind_of(int(each)), starts[codes == each]) for each in different[np.argsort(first)]]
