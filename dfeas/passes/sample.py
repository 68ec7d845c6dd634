"""Sample: columns at random, from a few blocks drawn at random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfeas.passes.block import Block
from dfeas.passes.columns import Columns
from dfeas.passes.protocol import Partial


@dataclass(frozen=True, slots=True)
class Sample:
    """``quota`` columns of each block, drawn without replacement; the same for the same seed, however blocks are cut."""

    dimension: int
    quota: int
    seed: int
    unit: bool = True  # false: factors of the columns are labels only

    def scan(self, block: Block) -> tuple[Columns, ...]:
        """Draw from one block."""
        if not block.size:
            return ()
        random = np.random.default_rng((self.seed, block.start))
        rows = np.sort(random.choice(block.size, min(self.quota, block.size), replace=False))
        return (Columns.of(block, rows, self.unit),)

    def merge(self, first: tuple[Columns, ...], second: tuple[Columns, ...]) -> tuple[Columns, ...]:
        """Both, in the order of the points."""
        return tuple(sorted(first + second, key=lambda part: int(part.index[0])))

    def finish(self, partial: tuple[Columns, ...]) -> Columns:
        """All columns that were drawn, in the order of the points."""
        return Columns.joined(partial) if partial else Columns.none(self.dimension)


def sample(dimension: int, count: int, n: int, blocks: int, least: int, seed: int, unit: bool = True) -> Partial:
    """About ``count`` of the ``n`` columns in ``blocks`` blocks of equal size; all of them for count >= n.

    As few blocks are read as leave half of each unused, but at least ``least`` of them: neighbours are often alike.
    """
    if count >= n:
        return Partial(Sample(dimension, n, seed, unit), tuple(range(blocks)))
    wanted = min(blocks, max(least, -(-2 * count * blocks // n)))
    drawn = np.sort(np.random.default_rng(seed).choice(blocks, wanted, replace=False))
    return Partial(Sample(dimension, -(-count // wanted), seed, unit), tuple(int(b) for b in drawn))
