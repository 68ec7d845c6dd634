"""Histogram: how many points have which score, by label, in fixed bins on a signed logarithmic scale.

The bins are the same for all data, so that counts of blocks add up. A fast product sorts out almost every point; those whose
rounding bound reaches over an edge are scored again in a fixed order, so the counts do not depend on the cut into blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dfeas.passes.block import Block, Floats, Indices

LEAST = 1e-12
"""Scores below this, on either side, are in the bin around zero."""

DECADES, BINS_A_DECADE = 12, 20


def _edges() -> Floats:
    """-1 .. -LEAST, LEAST .. 1: one bin more lies between the two halves."""
    exponents = np.arange(DECADES * BINS_A_DECADE + 1) / BINS_A_DECADE - DECADES
    positive = 10.0**exponents
    positive[-1] = 1.0
    return np.concatenate([-positive[::-1], positive])


EDGES: Floats = _edges()
"""Edges (bins + 1,), ascending; bin i holds EDGES[i] <= score < EDGES[i + 1], the last one also 1."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Points in each bin."""

    edges: Floats  # (bins + 1,) ascending, from -1 to 1
    counts: Indices  # (2, bins) points labelled -1 and +1; they add up to n


@dataclass(frozen=True)
class Histogram:
    """Scores a_j'y / |y| of all points; y (dimension,) of any length but zero."""

    y: Floats

    def __post_init__(self) -> None:
        if self.y.ndim != 1 or not np.isfinite(self.y).all() or not self.y.any():
            raise ValueError("y must be a vector, finite and not zero")

    @cached_property
    def _unit(self) -> Floats:
        scaled = self.y / np.abs(self.y).max()  # squares then neither overflow nor all underflow
        return np.asarray(scaled / np.linalg.norm(scaled), np.float64)

    def scan(self, block: Block) -> Indices:
        """Counts (2, bins) of one block."""
        bins = len(EDGES) - 1
        m = block.points.shape[1]
        slack = 1.02 * (block.terms + 8) * 2.0**-53
        factor = block.sides.scale()
        counts = np.zeros(2 * bins, np.int64)
        for rows in block.tiles():
            with np.errstate(invalid="ignore", over="ignore"):
                score = block.tile(rows, False) @ self._unit[:m]
                if block.intercept:
                    score += self._unit[m]
                score *= factor[rows]
            place = _bins(score - slack)
            unsure = np.flatnonzero(place != _bins(score + slack))
            place[unsure] = _bins(block.exact_scores(rows.start + unsure, self._unit))
            counts += np.bincount(place + bins * (block.label[rows] > 0), minlength=2 * bins)
        return counts.reshape(2, bins)

    def merge(self, first: Indices, second: Indices) -> Indices:
        """Counts of both."""
        return first + second

    def finish(self, partial: Indices) -> Counts:
        """Counts of all points."""
        return Counts(EDGES, partial)


def _bins(score: Floats) -> Indices:
    """The bin of each score; what rounding puts beyond -1 or 1 is in the outermost."""
    return np.asarray(np.clip(np.searchsorted(EDGES, score, side="right") - 1, 0, len(EDGES) - 2), np.int64)
