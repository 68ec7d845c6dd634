"""Working set for kernels: points in memory answer the question, passes only look for what they miss.

Reference: own; the decomposition of support vector machines (Osuna, Freund and Girosi 1997) without a soft margin.

    W <- a random sample
    repeat
      the widest separator of W, an expansion y over points of W, or a conflict among W (then stop: it is one of all points)
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

from dataclasses import dataclass, field, replace
from math import isqrt

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them

from dfeas.geometry.kernel.distances import Floats
from dfeas.geometry.kernel.kernel import Kernel, opposite, seen
from dfeas.geometry.kernel.nearest import Matrix, Nearest, least_score, length_of, nearest
from dfeas.geometry.kernel.select import KernelSelect
from dfeas.linalg.columns import ColumnMatrix
from dfeas.linalg.points import Indices
from dfeas.linalg.separate import SEPARATED, solve
from dfeas.methods.protocol import Bracket, Facts, Sparse, Traits
from dfeas.methods.vector import Expansion
from dfeas.methods.working_set import WorkingSet, WorkingSetState
from dfeas.passes.block import Columns
from dfeas.passes.protocol import Partial
from dfeas.passes.select import Selection, sample

FIRST = 1000
"""Points of the sample, at least."""
MOST = 8000
"""Points that a factorisation takes in reasonable time."""
CLOSE = 0.05
"""How near to the widest margin of W its separator is."""
HALF = 0.5
"""A separator of a smaller share of the upper end is looked for in coordinates, which have all digits."""
RESIDUAL = 1e-13
"""Cholesky stops where what is left of every K(x, x) = 1 is below this."""
NEARLY = 1e-3
"""|Ax| above which points that are not separated are no conflict."""
ROUNDING = 2.0**-50
"""A sum of unit vectors, and a product with it, are off by this share of the amounts."""
BLOCKS = 16
"""Blocks of the sample, at least, where there are many: neighbours are often alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelWorkingSetState(WorkingSetState):
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
    def kernel(self) -> Kernel:
        return self.matrix.kernel

    def init(self, facts: Facts) -> KernelWorkingSetState:
        return KernelWorkingSetState(facts=facts, cap=min(facts.n, self.cap or capacity(facts)))

    def ask(self, state: KernelWorkingSetState) -> Partial | KernelSelect:
        """A sample, or the points that W misses."""
        facts, columns = state.facts, state.columns
        if columns is None:
            count = min(FIRST, max(1, state.cap // 2)) if facts.n > state.cap else min(facts.n, 2 * FIRST)
            least = min(BLOCKS, -(-facts.blocks // 8))
            return sample(facts.m, count, facts.n, facts.blocks, least, self.seed, unit=False)
        used = np.flatnonzero(state.amount)
        chosen = columns.take(used)
        cap = max(1, min(len(columns), state.cap - len(used)))
        share = 2.0 if state.bracket.lower > 0 else 0.5
        threshold = max(0.0, share * state.margin)
        quota = -(-4 * cap // facts.blocks)
        amount = state.amount[used] * chosen.scale
        return KernelSelect(self.kernel, chosen.index, seen(chosen.points), amount, threshold, cap, quota)

    def scored(self, state: KernelWorkingSetState, answer: Selection) -> tuple[Bracket, int]:
        bracket, low = state.bracket, _sure(answer.low, state.amount)
        if low > bracket.lower:
            assert state.columns is not None
            used = np.flatnonzero(state.amount)
            order = used[np.argsort(state.columns.index[used])]
            bracket = replace(bracket, lower=low, y=Expansion(state.columns.index[order], state.amount[order]))
        return bracket, answer.violated

    def grown(self, state: KernelWorkingSetState, answer: Selection, before: Bracket) -> KernelWorkingSetState:
        """With the points that were taken, unless y has separated all."""
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
        return self.solved(_with(state, columns, fresh))

    def solved(self, state: KernelWorkingSetState) -> KernelWorkingSetState:
        """The widest separator of W; or the conflict of a zero point or of two equal ones."""
        columns, tolerance = state.columns, state.facts.tolerance
        assert columns is not None
        gram = self.matrix.signed(seen(columns.points), columns.scale)
        if not (np.diagonal(gram) > 0).all():
            return _conflict(state, columns.index[[int(np.diagonal(gram).argmin())]])
        pair = opposite(seen(columns.points), columns.scale)
        if pair is not None:
            return _conflict(state, np.sort(columns.index[list(pair)]))
        start = state.amount / state.margin if state.margin > 0 else None
        solution = nearest(gram, start, CLOSE if tolerance is None else min(CLOSE, tolerance / 4))
        if solution.low < HALF * solution.upper:
            solution = by_rows(gram, solution, tolerance)
        if state.best is None or solution.upper < state.bracket.upper:
            rows = np.flatnonzero(solution.weight)
            rows = rows[np.argsort(columns.index[rows])]
            best = Sparse(columns.index[rows], solution.weight[rows])
            state = replace(state, best=best, bracket=state.bracket.with_upper(solution.upper))
        if not solution.separated and solution.upper > NEARLY:
            state = replace(state, stalled="the points in memory have a margin below the rounding of float64, if any")
        length = length_of(gram, solution.x)
        amount = solution.x / length if length > 0 else np.zeros(len(columns))
        return replace(state, amount=amount, margin=solution.low, steps=state.steps + solution.steps)

    def hopeful(self, state: KernelWorkingSetState) -> bool:
        return state.margin > 0

    def bound(self, facts: Facts, margin: float) -> float:
        return facts.n + 1.0


def _sure(low: float, amount: Floats) -> float:
    """What rounding leaves of the least score of y, |y| = 1, both sums of unit vectors times large amounts where a margin is
    thin.
    """
    size = float(np.abs(amount).sum())
    left = low - ROUNDING * size
    return left / float(np.sqrt(1 + ROUNDING * size**2)) if left > 0 else left


def capacity(facts: Facts, classes: int = 1) -> int:
    """Points that W may hold: four matrices of kernel values, of one class at a time, and the points of each class."""
    of_points = point_bytes(facts) * classes
    # 32 c^2 + of_points c = memory
    count = (isqrt(of_points**2 + 128 * facts.memory) - of_points) // 64
    return max(2, min(facts.n, MOST, count))


def point_bytes(facts: Facts) -> int:
    """Bytes of a point in memory, as it is stored or in float64."""
    return int(20 * facts.entries) + 8 if facts.entries else 8 * facts.m


def by_rows(gram: Floats, known: Nearest, tolerance: float | None) -> Nearest:
    """What the linear solver says of the points in coordinates of their span, where it is better.

    G = F F' by Cholesky with pivots (LAPACK's dpstrf), which stops at rounding: row j of F (s, r) is point j, and r of the rows
    are a triangle, so that any y in the span is an expansion over these.
    """
    lower, pivots, rank, _ = scipy.linalg.lapack.dpstrf(gram, tol=RESIDUAL, lower=1)
    order, r = np.asarray(pivots, np.int64) - 1, int(rank)
    factor = np.zeros((len(gram), r))
    factor[order] = np.tril(lower)[:, :r]
    matrix = ColumnMatrix.of(factor, np.ones(len(factor)))
    solution = solve(matrix)
    if tolerance is not None and solution.outcome == SEPARATED:
        solution = solve(matrix, solution, tolerance / 4).with_upper(solution)
    weight = np.zeros(len(gram))
    weight[solution.rows] = solution.weight
    x = np.zeros(len(gram))
    x[order[:r]] = scipy.linalg.solve_triangular(factor[order[:r]], solution.y, trans=1, lower=True, check_finite=False)
    low, upper = least_score(gram, x), length_of(gram, weight)
    best = (x, low) if low > known.low else (known.x, known.low)
    nearer = (weight, upper) if upper < known.upper else (known.weight, known.upper)
    return Nearest(*best, *nearer, known.steps + solution.steps)


def _with(state: KernelWorkingSetState, columns: Columns, fresh: Columns) -> KernelWorkingSetState:
    """W with fresh points; without some of those that y does not use, if memory is full."""
    amount, room = state.amount, state.cap - len(fresh)
    if len(columns) > room:
        order = np.argsort(amount == 0, kind="stable")  # what y uses first
        kept = np.sort(order[: max(0, room)])
        columns, amount = columns.take(kept), amount[kept]
    return replace(state, columns=Columns.joined([columns, fresh]), amount=np.append(amount, np.zeros(len(fresh))))


def _conflict(state: KernelWorkingSetState, index: Indices) -> KernelWorkingSetState:
    """A point whose K(x, x) is 0, or two equal ones with opposite labels: their unit vectors sum to zero."""
    best, nothing = Sparse(index, np.full(len(index), 1 / len(index))), np.zeros(len(state.columns or ()))
    return replace(state, best=best, bracket=state.bracket.with_upper(0.0), amount=nothing, margin=0.0)
