"""The first point that is not zero."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfeas.passes.block import Block, Floats
from dfeas.passes.points import any_entry, dense


@dataclass(frozen=True, slots=True)
class FirstPoint:
    """Where it is (partial and answer alike); no row: nowhere."""

    index: int = -1
    row: Floats | None = None  # (m,) as stored


@dataclass(frozen=True, slots=True)
class Nonzero:
    """Looks for the first point that is not zero."""

    def scan(self, block: Block) -> FirstPoint:
        """That of one block."""
        found = np.flatnonzero(any_entry(block.points))
        if not found.size:
            return FirstPoint()
        return FirstPoint(block.start + int(found[0]), dense(block.points[found[:1]])[0])

    def merge(self, first: FirstPoint, second: FirstPoint) -> FirstPoint:
        """That of both; the first comes first."""
        return second if first.row is None else first

    def finish(self, partial: FirstPoint) -> FirstPoint:
        """That of all points."""
        return partial
