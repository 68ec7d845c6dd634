"""Working set for kernels: points in memory answer the question, passes only look for what they miss.

Reference: own; the decomposition of support vector machines (Osuna, Freund and Girosi 1997) without a soft margin.

    W <- a random sample, or the points of an earlier expansion, or conflict, by their numbers
    repeat
      the widest separator of W, an expansion y over points of W, or a conflict among W (then stop: it is one of all points);
        it is found from few of W, which more join as they score low
      one pass with y: low and violations of all points, and points for W: those that score below half of the least score on W,
        the lowest first, at most as many as W has
      none violated -> y separates                                        (else W <- W + taken)

Points are dropped only when memory is full, and only such as y does not use. A pass evaluates n s kernel values for the s
points of y, and not n^2.

Guarantee: the points that y uses stay and each pass adds one on which they disagree, so that the margin on W shrinks with every
pass; there are finitely many sets of points that y may use, so it ends, as long as memory holds these.
Evidence: both ends of the bracket over all points: low of every pass, and |Ax| of the weights on W.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import isqrt

import numpy as np
from msgspec import field

from dfeas.kernels.distances import squares
from dfeas.kernels.kernel import NormalisedKernel, as_floating, opposite, scores
from dfeas.kernels.nearest import Matrix, nearest_of
from dfeas.linalg.blas import one_thread
from dfeas.linalg.points import Floats, Indices, Points, longest, stack_points, working_type
from dfeas.methods.protocol import Bracket, Facts, Sparse, Traits
from dfeas.methods.vector import Expansion
from dfeas.methods.working_set import WorkingSet, WorkingSetState
from dfeas.passes.block import Block, Columns
from dfeas.passes.protocol import Batchable, Partial
from dfeas.passes.select import Named, Selection, SelectPartial, finish_lowest, merge_lowest, sample
from dfeas.records import replace

FIRST = 1000
"""Points of the sample, at least."""


@dataclass(frozen=True, slots=True)
class KernelSelect(Batchable):
    """Points with a_j'y <= threshold, y = sum_i amount_i a_i: of each block the ``quota`` lowest, of all the ``cap`` lowest."""

    kernel: NormalisedKernel
    index: Indices  # (s,) of the points of the expansion, ascending
    points: Points  # (s, m) as stored
    amount: Floats  # (s,) times the labels: of unit vectors without signs
    threshold: float
    cap: int
    quota: int
    code: int | None = None  # of the class that is +1; None: labels are signs

    @property
    def batch_key(self) -> Hashable:
        return "select", self.kernel

    def batch(self, questions: Sequence[KernelSelect]) -> KernelSelects:
        """All of them; points that several expansions have are taken once."""
        index, first = np.unique(np.concatenate([each.index for each in questions]), return_index=True)
        amounts = np.zeros((len(index), len(questions)))
        for column, each in enumerate(questions):
            amounts[np.searchsorted(index, each.index), column] = each.amount
        return KernelSelects(tuple(questions), stack_points([each.points for each in questions])[first], amounts)

    def of_class(self, code: int) -> KernelSelect:
        return replace(self, code=code)

    def scan(self, block: Block) -> SelectPartial:
        """Select from one block: fast scores choose, scores in float64 decide."""
        if not block.size:
            return SelectPartial(0, np.inf, -1, ())
        slack = self.slack(block)
        return self.select(block, scores(self.kernel, self.points, self.amount, as_floating(block.points), slack > 0), slack)

    def select(self, block: Block, fast: Floats, slack: float) -> SelectPartial:
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
        """How far float32 may move a score of the block; 0 where it must not be used, as the checker rounds in float64."""
        if working_type(block.points.dtype) != np.float32 or not self.kernel.of_products or self.points.dtype != np.float32:
            return 0.0
        slack = float(np.abs(self.amount).sum()) * self._rounding(block)
        return slack if slack <= 0.1 else 0.0  # scores that float32 may move farther are computed in float64 at once

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
        score = scores(self.kernel, self.points, self.amount, as_floating(block.points[rows]), False)
        return np.asarray(score * block.label[rows], np.float64)

    def merge(self, first: SelectPartial, second: SelectPartial) -> SelectPartial:
        return merge_lowest(first, second, self.cap)

    def finish(self, partial: SelectPartial) -> Selection:
        return finish_lowest(partial, self.cap, self.points.shape[1])


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
        score = scores(self.questions[0].kernel, self.points, self.amounts, as_floating(block.points), single)
        return tuple(
            each.select(block, score[:, column], slacks[column] if single else 0.0)
            for column, each in enumerate(self.questions)
        )

    def merge(self, first: tuple[SelectPartial, ...], second: tuple[SelectPartial, ...]) -> tuple[SelectPartial, ...]:
        return tuple(each.merge(a, b) for each, a, b in zip(self.questions, first, second, strict=True))

    def finish(self, partial: tuple[SelectPartial, ...]) -> tuple[Selection, ...]:
        return tuple(each.finish(part) for each, part in zip(self.questions, partial, strict=True))


class KernelWorkingSetState(WorkingSetState, frozen=True, kw_only=True):
    """With the y that separates W."""

    columns: Columns | None = None  # with labels for factors
    amount: Floats = field(default_factory=lambda: np.empty(0))  # (w,) of y, |y| = 1, on signed unit vectors
    margin: float = 0.0  # of y on W


@dataclass(frozen=True)
class KernelWorkingSet(WorkingSet[KernelWorkingSetState]):
    """``cap`` limits W below what memory allows; ``seed`` draws the sample; several may have one ``matrix``, in one thread."""

    matrix: Matrix
    cap: int = 0
    seed: int = 0
    traits: Traits = Traits("working-set", kernel=1.0, columns=True)

    @property
    def kernel(self) -> NormalisedKernel:
        return self.matrix.kernel

    def init(self, facts: Facts) -> KernelWorkingSetState:
        return KernelWorkingSetState(facts=facts, cap=min(facts.n, self.cap or capacity(facts)))

    def ask(self, state: KernelWorkingSetState) -> Partial | KernelSelect:
        facts, columns = state.facts, state.columns
        if columns is None:
            start = facts.start
            if start is not None and len(start.rows) <= state.cap // 2:
                return Partial(Named(facts.m, start.rows, unit=False), start.blocks)
            count = min(FIRST, max(1, state.cap // 2)) if facts.n > state.cap else min(facts.n, 2 * FIRST)
            # blocks of the sample, at least, where there are many: neighbours are often alike
            least = min(16, -(-facts.blocks // 8))
            return sample(facts.m, count, facts.n, facts.blocks, least, self.seed, unit=False)
        used = np.flatnonzero(state.amount)
        chosen = columns.take(used)
        cap = max(1, min(len(columns) if facts.start is None else FIRST, state.cap - len(used)))
        share = 2.0 if state.bracket.lower > 0 else 0.5
        threshold = max(0.0, share * state.margin)
        quota = -(-4 * cap // facts.blocks)
        amount = state.amount[used] * chosen.scale
        return KernelSelect(self.kernel, chosen.index, as_floating(chosen.points), amount, threshold, cap, quota)

    def update_bracket(self, state: KernelWorkingSetState, answer: Selection) -> tuple[Bracket, int]:
        bracket, low = state.bracket, _sure(answer.low, state.amount)
        if low > bracket.lower:
            assert state.columns is not None
            used = np.flatnonzero(state.amount)
            order = used[np.argsort(state.columns.index[used])]
            bracket = replace(bracket, lower=low, y=Expansion(state.columns.index[order], state.amount[order]))
        return bracket, answer.violated

    def grow(self, state: KernelWorkingSetState, answer: Selection, before: Bracket) -> KernelWorkingSetState:
        columns = state.columns
        assert columns is not None
        if state.facts.tolerance is None and state.bracket.lower > 0 >= before.lower:
            return state
        fresh = answer.columns.take(~np.isin(answer.index, columns.index))
        if not len(fresh):
            return replace(state, stalled="all points that matter are in memory, and float64 tells their margin no better")
        if len(columns) + len(fresh) > state.cap and int((state.amount != 0).sum()) >= state.cap:
            return replace(
                state, stalled=f"a separator needs more than the {state.cap} points that memory holds; raise --memory"
            )
        return self.solve_columns(_with(state, columns, fresh))

    def solve_columns(self, state: KernelWorkingSetState) -> KernelWorkingSetState:
        """The widest separator of W; or the conflict of a zero point or of two equal ones. The same bits on any machine."""
        with one_thread(of_scipy=True):
            return self._solve_columns(state)

    def _solve_columns(self, state: KernelWorkingSetState) -> KernelWorkingSetState:
        columns, tolerance = state.columns, state.facts.tolerance
        assert columns is not None
        points = as_floating(columns.points)
        own = self.kernel.nonzero(points)
        if not own.all():
            return _conflict(state, columns.index[[int(own.argmin())]])
        pair = opposite(points, columns.scale)
        if pair is not None:
            return _conflict(state, np.sort(columns.index[list(pair)]))
        start = state.amount / state.margin if state.margin > 0 else None
        solution = nearest_of(self.matrix, points, columns.scale, start, tolerance)
        if state.best is None or solution.upper < state.bracket.upper:
            rows = np.flatnonzero(solution.weight)
            rows = rows[np.argsort(columns.index[rows])]
            best = Sparse(columns.index[rows], solution.weight[rows])
            state = replace(state, best=best, bracket=state.bracket.with_upper(solution.upper))
        if not solution.separates and solution.upper > 1e-3:  # |Ax| above which points that are not separated are no conflict
            state = replace(state, stalled="the points in memory have a margin below the rounding of float64, if any")
        return replace(state, amount=solution.x, margin=solution.low, steps=state.steps + solution.steps)

    def hopeful(self, state: KernelWorkingSetState) -> bool:
        return state.margin > 0

    def bound(self, facts: Facts, margin: float) -> float:
        return facts.n + 1.0


def _sure(low: float, amount: Floats) -> float:
    """What rounding leaves of the least score of y, |y| = 1: thin margins are sums of unit vectors times large amounts."""
    size = float(np.abs(amount).sum())
    rounding = 2.0**-50  # a sum of unit vectors, and a product with it, are off by this share of the amounts
    left = low - rounding * size
    return left / float(np.sqrt(1 + rounding * size**2)) if left > 0 else left


def capacity(facts: Facts, classes: int = 1) -> int:
    """Points that W may hold: four matrices of kernel values, of one class at a time, and the points of each class."""
    of_points = point_bytes(facts) * classes
    # 32 c^2 + of_points c = memory
    count = (isqrt(of_points**2 + 128 * facts.memory) - of_points) // 64
    return max(2, min(facts.n, 8000, count))  # more take a factorisation an unreasonable time


def point_bytes(facts: Facts) -> int:
    """Bytes of a point in memory, as it is stored or in float64."""
    return int(20 * facts.entries) + 8 if facts.entries else 8 * facts.m


def _with(state: KernelWorkingSetState, columns: Columns, fresh: Columns) -> KernelWorkingSetState:
    """W with fresh points; without some of those that y does not use, if memory is full."""
    amount, room = state.amount, state.cap - len(fresh)
    if len(columns) > room:
        order = np.argsort(amount == 0, kind="stable")  # what y uses first
        kept = np.sort(order[: max(0, room)])
        columns, amount = columns.take(kept), amount[kept]
    return replace(state, columns=Columns.concatenate([columns, fresh]), amount=np.append(amount, np.zeros(len(fresh))))


def _conflict(state: KernelWorkingSetState, index: Indices) -> KernelWorkingSetState:
    """A point whose K(x, x) is 0, or two equal ones with opposite labels: their unit vectors sum to zero."""
    best, nothing = Sparse(index, np.full(len(index), 1 / len(index))), np.zeros(len(state.columns or ()))
    return replace(state, best=best, bracket=state.bracket.with_upper(0.0), amount=nothing, margin=0.0)
