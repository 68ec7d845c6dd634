"""Which points count in a soft margin, and how much: C, class weights, weights of points, and folds that are left out.

Several problems ride on one read: each has its own C, and leaves out its own fold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfeas.passes.block import Floats, Indices

_GOLDEN, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def fold_of(index: Indices, folds: int, seed: int) -> Indices:
    """The fold (r,) of each point, 0 .. folds - 1: by its index and the seed alone, as if drawn (splitmix64, Vigna 2015)."""
    mixed = (index.astype(np.uint64) + np.uint64(seed % 2**32 * 2**32)) * np.uint64(_GOLDEN)
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return ((mixed ^ (mixed >> np.uint64(31))) % np.uint64(folds)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Counted:
    """Costs c_j of points in k problems: C times the weight of the class times the weight of the point, 0 where left out."""

    C: Floats  # (k,) > 0
    left_out: Indices  # (k,) the fold that is left out; -1: none
    negative: float = 1.0  # weight of the class -1
    positive: float = 1.0
    weight: Floats | None = None  # (n,) of points, >= 0; None: all 1
    folds: int = 1
    seed: int = 0

    def weights(self, index: Indices, label: NDArray[np.generic]) -> Floats:
        """(r,) of class times point."""
        found = np.where(np.asarray(label) > 0, self.positive, self.negative)
        return found if self.weight is None else found * self.weight[index]

    def costs(self, index: Indices, label: NDArray[np.generic]) -> Floats:
        """c_j (r, k) of the points with these indices and labels."""
        found = np.multiply.outer(self.weights(index, label), self.C)
        out = self.out(index)
        if out is not None:
            found[out] = 0.0
        return np.asarray(found)

    def out(self, index: Indices) -> NDArray[np.bool_] | None:
        """Whether points (r,) are of the fold that a problem leaves out (r, k); None when no problem leaves out any."""
        if (self.left_out < 0).all():
            return None
        return np.asarray(fold_of(index, self.folds, self.seed)[:, None] == self.left_out)

    def take(self, problems: Indices) -> Counted:
        """Some of the problems, in this order; one may come several times."""
        chosen = self.C[problems], self.left_out[problems]
        return Counted(*chosen, self.negative, self.positive, self.weight, self.folds, self.seed)
