"""Points that are not zero: how many, and the first of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfeas.passes.block import Block, Floats


@dataclass(frozen=True, slots=True)
class SomePoints:
    """How many there are, and the first (partial and answer alike)."""

    count: int = 0
    first: int = -1
    row: Floats | None = None  # (m,) of the first, as stored


@dataclass(frozen=True, slots=True)
class Nonzero:
    """Looks for points that are not zero."""

    def scan(self, block: Block) -> SomePoints:
        """Those of one block."""
        found = np.flatnonzero(block.points.any(axis=1))
        if not found.size:
            return SomePoints()
        return SomePoints(len(found), block.start + int(found[0]), block.points[found[0]].astype(np.float64))

    def merge(self, first: SomePoints, second: SomePoints) -> SomePoints:
        """Those of both."""
        early, late = (first, second) if second.count == 0 or 0 <= first.first < second.first else (second, first)
        return SomePoints(early.count + late.count, early.first, early.row)

    def finish(self, partial: SomePoints) -> SomePoints:
        """Those of all points."""
        return partial
