"""Recover: the n-vector of a certificate, rebuilt block by block from the m-vectors that a method recorded.

Entropic methods hold x = sum_t c_t softmax(-A'y_t / mu_t) only through (y_t, mu_t, lse_t, c_t):

    x_j = sum_t c_t exp(-a_j'y_t / mu_t - lse_t).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfeas.passes.block import Block, Floats, Indices
from dfeas.passes.points import CONVERTED


@dataclass(frozen=True, slots=True)
class SparseWeights:
    """Weights on points: entries that were kept (partial and answer alike)."""

    pieces: tuple[tuple[Indices, Floats], ...]  # (index, weight) per run of points

    def index(self) -> Indices:
        """Indices (s,), ascending."""
        return np.concatenate([piece[0] for piece in self.pieces])

    def weight(self) -> Floats:
        """Weights (s,), in the order of the indices."""
        return np.concatenate([piece[1] for piece in self.pieces])

    def total(self) -> float:
        """What divides them to be a point of the simplex."""
        return float(self.weight().sum())

    def with_others(self, others: SparseWeights) -> SparseWeights:
        """Both, in the order of the points."""
        pieces = [p for p in self.pieces + others.pieces if len(p[0])]
        return SparseWeights(tuple(sorted(pieces, key=lambda p: int(p[0][0]))) or self.pieces[:1])


@dataclass(frozen=True, slots=True)
class Recover:
    """Weights of a mixture of T softmaxes; weights of at most ``floor`` are left out."""

    Y: Floats  # (m, T)
    mu: Floats  # (T,) > 0
    lse: Floats  # (T,) as softmin answered them
    share: Floats  # (T,) on the simplex
    floor: float

    def scan(self, block: Block) -> SparseWeights:
        """Weights of one block, always in float64."""
        scale = block.sides.scale()
        m = block.points.shape[1]
        weight = np.zeros(block.size)
        questions = self.Y / self.mu
        offset = np.log(self.share) - self.lse
        rows_at_once = max(1, min((1 << 20) // len(self.mu), CONVERTED // m))
        for first in range(0, block.size, rows_at_once):
            rows = slice(first, first + rows_at_once)
            scores = block.tile(rows, False) @ questions[:m]
            if block.intercept:
                scores += questions[m]
            weight[rows] = np.exp(offset - scores * scale[rows, None]).sum(axis=1)
        kept = np.flatnonzero(weight > self.floor)
        return SparseWeights(((block.start + kept, weight[kept]),))

    def merge(self, first: SparseWeights, second: SparseWeights) -> SparseWeights:
        """Both, in the order of the points."""
        return first.with_others(second)

    def finish(self, partial: SparseWeights) -> SparseWeights:
        """All kept weights."""
        return partial
