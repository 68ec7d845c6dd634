"""Kernel select: the points whose score under an expansion is at most a threshold, lowest first.

The expansion has few points, which travel with the question, so that a pass takes n s m products and not n^2 m. Several
questions evaluate the kernel once for the points of all their expansions.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them

from dfeas.data.dataset import stored_rows
from dfeas.geometry.kernel.distances import Array, Floats, squares
from dfeas.geometry.kernel.kernel import Kernel, seen
from dfeas.geometry.protocol import Trained
from dfeas.linalg.points import Indices, Points, dense, in_type, is_dense, longest, row_slice, stacked, working
from dfeas.methods.vector import Expansion
from dfeas.passes.block import Block, Columns, against
from dfeas.passes.protocol import Batchable
from dfeas.passes.select import Selection, SelectPartial, finished, merged

TILE_BYTES = 4 << 20
"""Kernel values of some points with all of the expansion."""
MOST_SLACK = 0.1
"""Scores that float32 may move farther are computed in float64 at once."""


@dataclass(frozen=True, slots=True)
class KernelSelect(Batchable):
    """Points with a_j'y <= threshold, y = sum_i amount_i a_i: of each block the ``quota`` lowest, of all the ``cap`` lowest."""

    kernel: Kernel
    index: Indices  # (s,) of the points of the expansion, ascending
    points: Points  # (s, m) as stored
    amount: Floats  # (s,) times the labels: of unit vectors without signs
    threshold: float
    cap: int
    quota: int
    code: int | None = None  # of the class that is +1; None: labels are signs

    @property
    def batch_key(self) -> Hashable:
        """Selections with one kernel share its values."""
        return "select", self.kernel

    def joined(self, questions: Sequence[KernelSelect]) -> KernelSelects:
        """All of them; points that several expansions have are taken once."""
        index, first = np.unique(np.concatenate([each.index for each in questions]), return_index=True)
        amounts = np.zeros((len(index), len(questions)))
        for column, each in enumerate(questions):
            amounts[np.searchsorted(index, each.index), column] = each.amount
        return KernelSelects(tuple(questions), stacked([each.points for each in questions])[first], amounts)

    def of_class(self, code: int) -> KernelSelect:
        """With the signs of one class against the rest."""
        return replace(self, code=code)

    def scan(self, block: Block) -> SelectPartial:
        """Select from one block: fast scores choose, scores in float64 decide."""
        if not block.size:
            return SelectPartial(0, np.inf, -1, ())
        slack = self.slack(block)
        return self.chosen(block, scores(self.kernel, self.points, self.amount, seen(block.points), slack > 0), slack)

    def chosen(self, block: Block, fast: Floats, slack: float) -> SelectPartial:
        """The same from scores (b,) of the points without signs that are right up to ``slack``; none is left at 0."""
        block = block if self.code is None else block.against(self.code)
        score = fast * block.label
        unsure = np.flatnonzero((np.abs(score) <= slack) | (score <= score.min() + 2 * slack))
        if slack:
            score[unsure] = self._exactly(block, unsure)
        best = int(unsure[score[unsure].argmin()])
        rows = np.flatnonzero(score <= self.threshold + slack)
        if len(rows) > self.quota:
            rows = np.sort(rows[np.argpartition(score[rows], self.quota - 1)[: self.quota]])
        if slack:
            score[rows] = self._exactly(block, rows)
        rows = rows[score[rows] <= self.threshold]
        kept = ((score[rows], Columns.of(block, rows, unit=False)),) if len(rows) else ()
        return SelectPartial(int((score <= 0).sum()), float(score[best]), block.start + best, kept)

    def slack(self, block: Block) -> float:
        """How far float32 may move a score of the block; 0 where it must not be used: the checker knows the rounding of
        float64.
        """
        if working(block.points.dtype) != np.float32 or not self.kernel.of_products or self.points.dtype != np.float32:
            return 0.0
        slack = float(np.abs(self.amount).sum()) * self._rounding(block)
        return slack if slack <= MOST_SLACK else 0.0

    def _rounding(self, block: Block) -> float:
        """How far a kernel value in float32 is off: rounding errors of a product add up like a random walk, nearly always."""
        unit = 8 * np.sqrt(longest(block.points) + 8.0) * 2.0**-24
        if self.kernel.name not in ("rbf", "exponential"):
            return float(unit * max(1, self.kernel.degree))
        reach = float(block.norm.max()) + float(np.sqrt(squares(self.points).max()))
        if self.kernel.name == "exponential":
            return float(np.sqrt(unit) * self.kernel.gamma * reach)
        return float(unit * (self.kernel.gamma * reach * reach + 1))

    def _exactly(self, block: Block, rows: Indices) -> Floats:
        """Scores (r,) a_j'y of some rows, in float64."""
        found = scores(self.kernel, self.points, self.amount, seen(block.points[rows]), False)
        return np.asarray(found * block.label[rows], np.float64)

    def merge(self, first: SelectPartial, second: SelectPartial) -> SelectPartial:
        """Keep the ``cap`` lowest of both."""
        return merged(first, second, self.cap)

    def finish(self, partial: SelectPartial) -> Selection:
        """The selection of all points."""
        return finished(partial, self.cap, self.points.shape[1])


@dataclass(frozen=True, slots=True)
class KernelSelects:
    """Several selections from one evaluation of the kernel; the answer is a tuple in their order."""

    questions: tuple[KernelSelect, ...]
    points: Points  # (s, m) of all expansions
    amounts: Floats  # (s, k)

    def scan(self, block: Block) -> tuple[SelectPartial, ...]:
        """Select for each of them. In float32 only where that will do for all."""
        if not block.size:
            return tuple(each.scan(block) for each in self.questions)
        slacks = [each.slack(block) for each in self.questions]
        single = min(slacks) > 0
        found = scores(self.questions[0].kernel, self.points, self.amounts, seen(block.points), single)
        return tuple(
            each.chosen(block, found[:, column], slacks[column] if single else 0.0)
            for column, each in enumerate(self.questions)
        )

    def merge(self, first: tuple[SelectPartial, ...], second: tuple[SelectPartial, ...]) -> tuple[SelectPartial, ...]:
        return tuple(each.merge(a, b) for each, a, b in zip(self.questions, first, second, strict=True))

    def finish(self, partial: tuple[SelectPartial, ...]) -> tuple[Selection, ...]:
        return tuple(each.finish(part) for each, part in zip(self.questions, partial, strict=True))


def scores(kernel: Kernel, points: Points, amounts: Floats, others: Points, single: bool) -> Floats:
    """Scores (r,) or (r, k) of other points (r, m) under the sums of the unit vectors of points (s, m) times amounts (s,) or
    (s, k).
    """
    middle = kernel.middle(points)
    _, right = kernel.prepared(points, single, middle)
    weights: Array = amounts.astype(np.float32) if single else amounts
    found = np.empty((others.shape[0], *amounts.shape[1:]))
    size = max(1, TILE_BYTES // (weights.dtype.itemsize * max(1, len(amounts))))
    for first in range(0, len(found), size):
        left, _ = kernel.prepared(row_slice(others, slice(first, first + size)), single, middle)
        found[first : first + size] = kernel.tile(left, right) @ weights
    return found


@dataclass(frozen=True)
class Expansions:
    """Directions y = sum_i amount_i a_i of one kernel."""

    kernel: Kernel
    points: Points  # (s, m) of all of them
    amounts: Floats  # (s, k) of unit vectors without signs

    @classmethod
    def of(cls, kernel: Kernel, trained: Trained) -> Expansions:
        """Those of a run, whose data is needed: each is about a class, or about labels as the data is seen."""
        data, sums = trained.data, [y for y in trained.directions if isinstance(y, Expansion)]
        assert data is not None, "a kernel needs its points"
        index = np.unique(np.concatenate([each.index for each in sums]))
        points, labels = stored_rows(data, index)
        amounts = np.zeros((len(index), len(sums)))
        for column, each in enumerate(sums):
            rows = np.searchsorted(index, each.index)
            if trained.classes is None:
                signs = data.signs(labels)
            else:
                signs = against(labels, data.codes[data.classes.index(trained.classes[column])])
            amounts[rows, column] = each.amount * signs[rows]
        return cls(kernel, seen(points), amounts)

    @property
    def width(self) -> int:
        return int(max(self.amounts.shape))

    def scores(self, points: Points) -> Floats:
        """Scores (b, k) of points (b, m), which may be sparse or not, whatever those of the expansion are."""
        others = seen(points)
        if is_dense(others) != is_dense(self.points):
            others = scipy.sparse.csr_array(others) if is_dense(others) else dense(others)
        return scores(self.kernel, in_type(self.points, np.float64), self.amounts, others, False)
