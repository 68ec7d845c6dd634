"""Sparse rows of cones, each with room for its own features only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dfeas.linalg.csr import Floats, Indices, csr_array, row_numbers, take_rows


class Narrow(NamedTuple):
    """The entries of c cones of d rows each; a cone has room for a power of two of features, whatever others have."""

    dimension: int  # d
    value: Floats  # (e,)
    row: Indices  # (e,) of all rows (c d,)
    place: Indices  # (e,) among the features of its cone
    first: Indices  # (c + 1,) where the features of each cone begin
    feature: Indices  # ascending in each cone
    widths: Indices  # (c,) powers of two

    @classmethod
    def of(cls, rows: csr_array, dimension: int) -> Narrow:
        """Of rows (c d, m)."""
        m, row = rows.shape[1], row_numbers(rows)
        cone = row // dimension
        key, where = np.unique(cone * m + rows.indices, return_inverse=True)
        first = np.searchsorted(key, m * np.arange(rows.shape[0] // dimension + 1))
        widths = 1 << np.ceil(np.log2(np.maximum(1, np.diff(first)))).astype(np.int64)
        return cls(dimension, rows.data.astype(np.float64), row, where.reshape(-1) - first[cone], first, key % m, widths)

    def dense(self, some: Indices, width: int) -> Floats:
        """Rows (s, d, width) of some cones, ascending, that have no more features."""
        order = np.full(len(self.widths), -1)
        order[some] = np.arange(len(some))
        cone = order[self.row // self.dimension]
        entries = np.flatnonzero(cone >= 0)
        found = np.zeros((len(some), self.dimension, width))
        found[cone[entries], self.row[entries] % self.dimension, self.place[entries]] = self.value[entries]
        return found

    def features(self, some: Indices, width: int) -> Indices:
        """Numbers (s, width) of the features of these cones, any one where a cone has fewer: their entries are zeros."""
        counts = self.first[some + 1] - self.first[some]
        place = np.minimum(np.arange(width), np.maximum(counts - 1, 0)[:, None])
        found = np.zeros((len(some), width), np.int64)
        filled = counts > 0
        found[filled] = self.feature[(self.first[some][:, None] + place)[filled]]
        return found


def few_at_once(points: csr_array, rows: Indices, at_once: int) -> Iterator[tuple[slice, csr_array]]:
    """Runs of cones with rows (c, d), one at least, of about so many entries as arrays; and these rows below each other."""
    d = rows.shape[1]
    stored = points.indptr[rows[:, -1] + 1] - points.indptr[rows[:, 0]]
    size = np.cumsum(d * np.maximum(1, 2 * np.minimum(stored.astype(np.int64), points.shape[1])))
    first, before = 0, 0
    while first < len(rows):
        stop = max(first + 1, int(np.searchsorted(size, before + at_once, side="right")))
        yield slice(first, stop), take_rows(points, rows[first:stop].reshape(-1))
        first, before = stop, int(size[stop - 1])
