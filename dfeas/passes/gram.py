"""Gram: A A', from which the largest singular value of A follows, and the sum of the columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfeas.passes.block import Block, Floats


@dataclass(frozen=True, slots=True)
class GramAnswer:
    """Sums over all columns (partial and answer alike)."""

    square: Floats  # (m, m) A A'
    total: Floats  # (m,) A 1


@dataclass(frozen=True, slots=True)
class Gram:
    """A A' and A 1 in float64. The partial has m^2 entries."""

    def scan(self, block: Block) -> GramAnswer:
        """Sums of one block."""
        m = block.dimension
        square, total = np.zeros((m, m)), np.zeros(m)
        for rows in block.dense_tiles():
            columns = block.columns(np.arange(rows.start, rows.stop))
            square += columns.T @ columns
            total += columns.sum(axis=0)
        return GramAnswer(square, total)

    def merge(self, first: GramAnswer, second: GramAnswer) -> GramAnswer:
        """Add."""
        return GramAnswer(first.square + second.square, first.total + second.total)

    def finish(self, partial: GramAnswer) -> GramAnswer:
        """All sums."""
        return partial
