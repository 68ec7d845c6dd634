"""Weights on few points, as they are corrected: x of the simplex, held by its entries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfeas.methods.protocol import Sparse
from dfeas.passes.block import Floats, Indices


@dataclass(frozen=True, slots=True)
class Tally:
    """Amounts on points; a new one for each change."""

    index: Indices  # (s,) ascending
    amount: Floats  # (s,) >= 0

    @classmethod
    def none(cls) -> Tally:
        """No point."""
        return cls(np.empty(0, np.int64), np.empty(0))

    def plus(self, index: Indices, amount: Floats) -> Tally:
        """With more of some points; ``index`` (c,) is ascending, each point once."""
        place = np.searchsorted(self.index, index)
        known = np.zeros(len(index), bool)
        inside = place < len(self.index)
        known[inside] = self.index[place[inside]] == index[inside]
        total = self.amount.copy()
        total[place[known]] += amount[known]
        if known.all():
            return Tally(self.index, total)
        new = ~known
        return Tally(np.insert(self.index, place[new], index[new]), np.insert(total, place[new], amount[new]))

    def times(self, factor: float) -> Tally:
        """All of it, scaled."""
        return Tally(self.index, self.amount * factor)

    def sparse(self) -> Sparse:
        """As a point of the simplex."""
        some = self.amount > 0
        return Sparse(self.index[some], self.amount[some] / self.amount.sum())
