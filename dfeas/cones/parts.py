"""Some cones in memory, of one kind and size, and what a step asks of their rows.

Rows are an array, or a CSR matrix where that is less work (``dfeas.cones.curvature``).

tr F_i Z F_j Z of columns of few entries comes from products of two entries of Z, for all cones at once: an entry of a symmetric
matrix at (a, b), with its mirror, and one at (c, d) add Z_ac Z_bd + Z_ad Z_bc, times both values, to the entry of their
columns. Which these are is the same in each step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfeas.cones.algebra import Group, least, triangle, unit
from dfeas.cones.scaling import NesterovTodd
from dfeas.linalg.csr import row_numbers
from dfeas.linalg.points import Floats, Tile

AT_ONCE = 1 << 18
"""Entries of cones whose curvature is found at a time, and pairs of entries."""
PAIR_BYTES = 28
"""Bytes of a pair of entries."""


@dataclass(frozen=True)
class ConePart(ABC):
    """Cones of one kind and size, with rows D of m + 1 entries: those of A, and -e for t."""

    group: Group

    @abstractmethod
    def element(self, z: Floats) -> Floats:
        """Dz = A*y - t e (c, d), of z = (y, t)."""

    @abstractmethod
    def pull_back(self, x: Floats) -> Floats:
        """The rows times x (c, d), D'x (m + 1,)."""

    @abstractmethod
    def curvature(self, scaling: NesterovTodd) -> Floats:
        """D'F''D (m + 1, m + 1), F'' the Hessian of the barrier in the w of a scaling."""

    def low(self, y: Floats) -> float:
        return float(least(self.group.kind, self.group.size, self.element(np.append(y, 0.0))).min())

    def first(self) -> Floats:
        """Minus the gradient of the barrier in e (c, d)."""
        e = unit(self.group.kind, self.group.size)
        return np.tile(2 * e if self.group.kind == "q" else e, (len(self.group.starts), 1))


@dataclass(frozen=True)
class DensePart(ConePart):
    """With rows (c, d, m + 1)."""

    D: Floats

    @classmethod
    def of(cls, group: Group, rows: Floats) -> DensePart:
        """Of rows (c, d, m)."""
        down = np.broadcast_to(-unit(group.kind, group.size)[:, None], (*rows.shape[:2], 1))
        return cls(group, np.concatenate([rows, down], axis=2))

    def element(self, z: Floats) -> Floats:
        return np.asarray(self.D @ z)

    def pull_back(self, x: Floats) -> Floats:
        return np.asarray(self.D.reshape(-1, self.D.shape[2]).T @ x.reshape(-1))

    def curvature(self, scaling: NesterovTodd) -> Floats:
        count, d, width = self.D.shape
        at_once = max(1, AT_ONCE // (d * width))
        total = np.zeros((width, width))
        for first in range(0, count, at_once):
            some = slice(first, first + at_once)
            total += scaling.gram(self.D[some], some)
        return total


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
