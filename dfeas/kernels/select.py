"""Kernel select: the points whose score under an expansion is at most a threshold, lowest first.

The expansion has few points, which travel with the question, so that a pass takes n s m products and not n^2 m.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfeas.kernels.kernel import Array, Floats, Kernel, seen
from dfeas.passes.block import Block, Indices, working
from dfeas.passes.columns import Columns
from dfeas.passes.select import Selection, SelectPartial, finished, merged

TILE_BYTES = 4 << 20
"""Kernel values of some points with all of the expansion."""


@dataclass(frozen=True, slots=True)
class KernelSelect:
    """Points with a_j'y <= threshold, y = sum_i amount_i a_i: of each block the ``quota`` lowest, of all the ``cap`` lowest."""

    kernel: Kernel
    points: Array  # (s, m) of the expansion, as stored
    amount: Floats  # (s,) times the labels: of unit vectors without signs
    threshold: float
    cap: int
    quota: int

    def scan(self, block: Block) -> SelectPartial:
        """Select from one block: fast scores choose, scores in float64 decide."""
        if not block.size:
            return SelectPartial(0, np.inf, -1, ())
        fast, slack = self._fast(block)
        unsure = np.flatnonzero((np.abs(fast) <= slack) | (fast <= fast.min() + 2 * slack))
        score = fast.copy()
        if slack:
            score[unsure] = self.scores(block, unsure)
        best = int(unsure[score[unsure].argmin()])
        rows = np.flatnonzero(score <= self.threshold + slack)
        if len(rows) > self.quota:
            rows = np.sort(rows[np.argpartition(score[rows], self.quota - 1)[: self.quota]])
        if slack:
            score[rows] = self.scores(block, rows)
        rows = rows[score[rows] <= self.threshold]
        kept = ((score[rows], Columns.of(block, rows, unit=False)),) if len(rows) else ()
        return SelectPartial(int((score <= 0).sum()), float(score[best]), block.start + best, kept)

    def _fast(self, block: Block) -> tuple[Floats, float]:
        """Scores (b,), and how far rounding may have moved them; 0 for float64, whose rounding the checker knows."""
        if working(block.points.dtype) != np.float32 or not self.kernel.of_products or self.points.dtype != np.float32:
            return self.scores(block, np.arange(block.size)), 0.0
        slack = float(np.abs(self.amount).sum()) * self._rounding(block)
        if slack > 0.1:
            return self.scores(block, np.arange(block.size)), 0.0
        return self.scores(block, np.arange(block.size), single=True), slack

    def _rounding(self, block: Block) -> float:
        """How far a kernel value in float32 is off: rounding errors of a product add up like a random walk, nearly always."""
        unit = 8 * np.sqrt(block.points.shape[1] + 8.0) * 2.0**-24
        if self.kernel.name not in ("rbf", "exponential"):
            return float(unit * max(1, self.kernel.degree))
        reach = float(block.norm.max()) + float(np.linalg.norm(self.points, axis=1).max())
        exponent = (self.kernel.gamma * reach) ** 2 if self.kernel.name == "exponential" else self.kernel.gamma * reach**2
        return float(np.sqrt(unit * exponent) if self.kernel.name == "exponential" else unit * (exponent + 1))

    def scores(self, block: Block, rows: Indices, *, single: bool = False) -> Floats:
        """Scores (r,) a_j'y of some rows."""
        found = scores(self.kernel, self.points, self.amount, seen(block.points[rows]), single)
        return np.asarray(found * block.label[rows], np.float64)

    def merge(self, first: SelectPartial, second: SelectPartial) -> SelectPartial:
        """Keep the ``cap`` lowest of both."""
        return merged(first, second, self.cap)

    def finish(self, partial: SelectPartial) -> Selection:
        """The selection of all points."""
        return finished(partial, self.cap, self.points.shape[1])


def scores(kernel: Kernel, points: Array, amount: Floats, others: Array, single: bool) -> Floats:
    """Scores (r,) of other points (r, m) under the sum of the unit vectors of points (s, m) times amounts (s,)."""
    _, right = kernel.prepared(points, single)
    weights: Array = amount.astype(np.float32) if single else amount
    found = np.empty(len(others))
    size = max(1, TILE_BYTES // (right.dtype.itemsize * max(1, len(points))))
    for first in range(0, len(others), size):
        left, _ = kernel.prepared(others[first : first + size], single)
        found[first : first + size] = kernel.tile(left, right) @ weights
    return found
