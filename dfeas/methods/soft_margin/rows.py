"""Signed points in memory, b_j = l_j x_j as rows in float64, dense or sparse, with the products that solvers need.

Products are cut into pieces alike on any machine.
What they take is here, too: vectors of all problems, systems of equations, and points.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dfeas.linalg.blas import side_by_side
from dfeas.linalg.points import Floats, Indices, Tile, combine_rows, is_dense, moments, norms, products, tile, times_rows
from dfeas.methods.protocol import Facts
from dfeas.passes.block import Columns

DIRECT = 4000
"""Largest system that is factorised; beyond it conjugate gradients, by products with the points only."""
DIRECT_SPARSE = 500
"""The same where points are sparse, and products cost little beside a factorisation."""
PIECES = 4
"""Cuts of what is done side by side."""
WORTH = 1 << 19
"""Entries below which one thread is as fast as several."""


@dataclass(frozen=True)
class SignedRows:
    """r points of m features."""

    values: Tile  # (r, m) float64, C order or CSR

    @classmethod
    def of(cls, columns: Columns) -> SignedRows:
        """Of points whose factors are their labels."""
        return cls(columns.multiply_by(np.ones(len(columns))))

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @property
    def features(self) -> int:
        """m, as many as the points have."""
        return int(self.values.shape[1])

    @property
    def sparse(self) -> bool:
        """Whether only entries that are not zero are stored."""
        return not is_dense(self.values)

    def _cuts(self, count: int) -> list[slice]:
        pieces = PIECES if count * self.values.size >= WORTH * max(1, len(self)) else 1
        return [slice(first, stop) for first, stop in pairwise(count * i // pieces for i in range(pieces + 1))]

    def _pieces(self) -> list[tuple[slice, Tile]]:
        return [(cut, tile(self.values, cut, False)) for cut in self._cuts(len(self))]

    def scores(self, w: Floats) -> Floats:
        """(r,) b_j'w, or (r, k) of w (m, k)."""
        score, pieces = np.empty((len(self), *w.shape[1:])), self._pieces()

        def multiply(i: int) -> None:
            cut, part = pieces[i]
            score[cut] = part @ w

        side_by_side(multiply, len(pieces))
        return score

    def combine(self, x: Floats) -> Floats:
        """(m,) sum_j x_j b_j, or (k, m) of x (r, k)."""
        pieces = self._pieces()

        def multiply(i: int) -> Floats:
            cut, part = pieces[i]
            return combine_rows(x[cut].T, part)

        return np.asarray(np.sum(side_by_side(multiply, len(pieces)), axis=0))

    def part(self, rows: Indices) -> SignedRows:
        return SignedRows(self.values[rows])

    def scale_by(self, factors: Floats) -> SignedRows:
        values = self.values
        return SignedRows(values * factors[:, None] if isinstance(values, np.ndarray) else times_rows(values, factors))

    def longest(self) -> float:
        """The length of the longest; 0 without any."""
        return float(norms(self.values).max(initial=0.0))

    def products(self) -> Floats:
        return products(self.values)

    def gram(self, rows: Indices, cost: Floats) -> Floats:
        """(m, m) sum_j c_j b_j b_j' over some rows, with costs (len(rows),)."""
        cuts = self._cuts(len(rows))

        def multiply(i: int) -> Floats:
            return moments(self.values[rows[cuts[i]]], cost[cuts[i]])

        return np.asarray(np.sum(side_by_side(multiply, len(cuts)), axis=0))


VECTORS = 11
"""m-vectors of each problem: in the state, in what a pass asks, and in the partials of its answer."""

LEAST = 1000
"""Points with which a soft margin can work, where m + 2 are more."""


def capacity(facts: Facts, k: int) -> int:
    """Points that memory holds beside k problems; at least 1."""
    return max(1, round((facts.memory - _fixed_bytes(facts, k)) / _point_bytes(facts, k)))


def least_memory(facts: Facts, k: int) -> int:
    """Bytes of ``facts.memory`` without which k problems cannot work."""
    return round(_fixed_bytes(facts, k) + min(facts.n, facts.m + 2, LEAST) * _point_bytes(facts, k))


def fits(facts: Facts, k: int) -> bool:
    """Whether k problems can work in this memory."""
    return least_memory(facts, k) <= facts.memory


def kept_bytes(facts: Facts, k: int, points: int) -> float:
    """Bytes of vectors and systems, and of some points."""
    return _fixed_bytes(facts, k) + points * _point_bytes(facts, k)


def _fixed_bytes(facts: Facts, k: int) -> int:
    return 8 * (5 * min(facts.m, DIRECT_SPARSE if facts.entries else DIRECT) ** 2 + VECTORS * k * facts.m)


def _point_bytes(facts: Facts, k: int) -> float:
    """Of one point: up to three copies as it is stored, in float64 with some of them twice, and what problems know of it."""
    wide = facts.entries * (3 * facts.itemsize + 44) if facts.entries else facts.m * (3 * facts.itemsize + 12)
    return wide + 8 * (12 + 6 * k)
