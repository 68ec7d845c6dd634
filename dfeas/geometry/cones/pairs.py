"""Products of two entries of the inverse of a scaling: tr F_i Z F_j Z of columns of few entries, of all cones at once.

An entry of a symmetric matrix at (a, b), with its mirror, and one at (c, d) add Z_ac Z_bd + Z_ad Z_bc, times both values, to
the entry of their columns. Which these are is the same in each step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfeas.data.cones import triangle
from dfeas.linalg.csr import row_numbers
from dfeas.linalg.points import Floats, Tile

PAIR_BYTES = 28
"""Bytes of a pair."""
AT_ONCE = 1 << 18
"""Pairs whose products are found at a time."""

Places = NDArray[np.int32]


def pairs_of(stored: NDArray[np.int64]) -> int:
    """Pairs of entries, where the cones have so many (c,)."""
    return int((stored * (stored + 1) // 2).sum())


@dataclass(frozen=True)
class Pairs:
    """Pairs (p,) of entries of the same cone, each once."""

    places: tuple[Places, Places, Places, Places]  # of Z_ac, Z_bd, Z_ad and Z_bc among the entries of all Z
    target: Places  # where their columns meet in a matrix of all columns
    value: Floats

    @classmethod
    def of(cls, rows: Tile, k: int) -> Pairs:
        """Of sparse rows (c d, w) of semidefinite cones of order k."""
        assert not isinstance(rows, np.ndarray), "rows are sparse"
        i, j, factor = triangle(k)
        cone, place = np.divmod(row_numbers(rows), len(i))
        value = rows.data / np.where(i == j, 2.0, factor)[place]  # of E_ab + E_ba
        ends = np.searchsorted(cone, np.arange(1, rows.shape[0] // len(i) + 1))
        entry = np.arange(len(cone))
        count = ends[cone] - entry  # each with itself and those behind it in its cone
        start = np.cumsum(count) - count
        q = np.arange(int(count.sum())) - np.repeat(start - entry, count)
        first, row, column = (each.astype(np.int32) for each in (cone * k * k, i[place], j[place]))
        a, b = (np.repeat(first + each * k, count) for each in (row, column))
        c, d = row[q], column[q]
        feature = rows.indices.astype(np.int32)
        target = np.repeat(feature * rows.shape[1], count) + feature[q]
        both = np.repeat(value, count) * value[q]
        both *= 2  # the other order is that of the mirrored matrix
        both[start] /= 2
        return cls((a + c, b + d, a + d, b + c), target, both)

    def gram(self, Z: Floats, width: int) -> Floats:
        """The sums (w, w) over the cones, for Z (c, k, k)."""
        total, flat = np.zeros(width * width), Z.reshape(-1)
        for first in range(0, len(self.value), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            # NumPy takes five times as long by indices of a type that is not its own
            ac, bd, ad, bc = (flat.take(each[some].astype(np.intp)) for each in self.places)
            ac *= bd
            ad *= bc
            ac += ad
            ac *= self.value[some]
            total += np.bincount(self.target[some], ac, len(total))
        square = total.reshape(width, width)
        return np.asarray(square + square.T)
