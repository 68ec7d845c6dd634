"""Working set: columns in memory answer the question, passes only look for what they miss.

Reference: own; the soft margin of Mangasarian 2002 in memory, cutting planes over the data; von Neumann's bound below.

    W <- a random sample of about sqrt(m n) columns                       (a few blocks: a share of a pass)
    repeat
      separate W: a separator w, or a conflict among W (then stop: it is one of all columns)
      one pass with w: low and violations of all points, and columns for W: the first time the lowest-scoring ones, five times
        the sample, violated or not; later every column that scores below half of the least score on W, or inside of the
        soft margin of W where that is large
      none violated -> w separates                                        (else W <- W + taken)

Taking far more than what is violated on the first pass is what makes nine passes two: a sample of s columns leaves about
m n / s violated, and their neighbours decide the next round.

Guarantee, while memory holds W: columns are never dropped and every pass adds one, so it ends. When W reaches ``cap`` columns:
let x be the best weights on W and z = Ax. Kept are the at most m + 1 columns of a basic x with the same z (Caratheodory);
others go for what is taken, the highest-scoring first, and the pass asks y = z. If some column has a_j'z <= 0, the segment from
z to a_j has a point z' with

    1 / |z'|^2 >= 1 / |z|^2 + 1,

a_j is among the taken (the lowest always is), and the next x is at least as good as that point. So after t such passes
|Ax| <= 1 / sqrt(t): a run ends within 1 / rho^2 passes when the margin rho is positive, and within 1 / eps^2 when |Ax| <= eps
is asked (von Neumann's bound; Ramdas and Pena 2014, Algorithm 5). It needs cap >= m + 2.

Evidence: both ends of the bracket over all data: low of every pass, and |Ax| of the weights on W, which are sparse. ``hopeful``
while W has a separator, and for ``PATIENCE`` passes once columns are dropped: a small |Ax| is then no reason to stop, for a
separator of all may be near.
Where W would have all columns and they are too wide for a basis, mirror prox leads for ``LEAD`` passes: it keeps nothing, and
on 20,000 x 20,000 it separated before W was in memory.
``WorkingSet`` is what those of points, kernels and cones share: each has a solver in memory, and says what a pass looks for.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import isqrt
from typing import Any, Protocol

import numpy as np

from dfeas.linalg.basic import basic
from dfeas.linalg.columns import BASIS_BYTES
from dfeas.linalg.points import Floats, Indices
from dfeas.linalg.separate import CONFLICT, SEPARATED, Solution, solve
from dfeas.linalg.sparse_columns import DIRECT_SPARSE, column_matrix
from dfeas.methods.protocol import Bracket, Evidence, Facts, Method, MethodCost, S, Sparse, Traits
from dfeas.passes.block import Columns
from dfeas.passes.protocol import Partial
from dfeas.passes.select import Select, Selection, sample

SAMPLE_LEAST = 20
"""Columns of the sample per feature, at least."""
FILL = 5
"""The first full pass takes so many times the sample."""
SMALL_BYTES = 4 << 20
"""Of columns that are few."""
ROW_OVERHEAD = 100
"""Bytes of a column in memory beside its entries: index, factor, score and what the solver keeps of it."""
FROM_EACH = 16
"""Blocks of the sample, at least, where there are many: neighbours are often alike."""


def column_bytes(facts: Facts) -> int:
    """Bytes of a column in memory."""
    return int(facts.column_bytes) + ROW_OVERHEAD


def holds_basis(facts: Facts) -> bool:
    """Whether there is room for a basis of dense columns in float64."""
    return 8 * min(facts.m, facts.n) * facts.m <= BASIS_BYTES


def solver_bytes(facts: Facts) -> int:
    """Bytes of the systems that the solver in memory works on, whatever W: about twenty of m x m in float64. Dense columns
    with no room for a basis meet vectors only, and what is small enough for a factor.
    """
    if not facts.entries and not holds_basis(facts):
        return 4 * BASIS_BYTES
    size = min(facts.m, facts.n, DIRECT_SPARSE) if facts.entries else min(facts.m, facts.n)
    return 160 * size**2 + 160 * facts.m * bool(facts.entries)


def capacity(facts: Facts) -> int:
    """Columns that W may hold."""
    return max(0, min(facts.n, (facts.memory - solver_bytes(facts) // 4) // column_bytes(facts)))


def least_bytes(facts: Facts) -> int:
    """Bytes without which the method does not work well: for all columns, or for four times a basis."""
    return min(facts.n, 4 * (facts.m + 1)) * column_bytes(facts) + solver_bytes(facts) // 4


def fits(facts: Facts) -> bool:
    """Whether memory has the least bytes."""
    return facts.memory >= least_bytes(facts)


def sample_size(facts: Facts, cap: int) -> int:
    """About sqrt(m n) columns, at least 20 m; all of them, when the first pass would take them anyway, or they are few."""
    count = max(isqrt(facts.m * facts.n), SAMPLE_LEAST * facts.m, 1000)
    whole = facts.n <= cap and (facts.n <= FILL * count or at_once(facts))
    return facts.n if whole else min(count, max(1, cap // 2))


def at_once(facts: Facts) -> bool:
    """Whether all columns are so few that a pass less is worth more than what it takes to solve all of them."""
    return facts.n * column_bytes(facts) <= SMALL_BYTES


def first_question(facts: Facts, cap: int, seed: int) -> Partial:
    """The question for the sample."""
    return sample(facts.m, sample_size(facts, cap), facts.n, facts.blocks, min(FROM_EACH, -(-facts.blocks // 8)), seed)


def usual_columns(facts: Facts) -> int:
    """Columns of W after the first full pass."""
    return min(facts.n, (1 + FILL) * sample_size(facts, capacity(facts)))


def held_columns(facts: Facts) -> int:
    """Columns that W usually gets."""
    return min(capacity(facts), usual_columns(facts))


def drops(facts: Facts) -> bool:
    """Whether W holds so few of the columns it wants that it drops some."""
    return 2 * held_columns(facts) < usual_columns(facts)


LEAD = 8
"""Passes that a leader may take before points of many features come into memory: about what reading them there costs."""


def passes_ahead(facts: Facts) -> int:
    """How many passes a method that keeps nothing leads: where W has all columns, and its solver no room for a basis of them,
    a few products separate many of them before the solver has begun.
    """
    wide = not facts.entries and not holds_basis(facts) and facts.n <= capacity(facts)
    return LEAD if wide and facts.tolerance is None else 0


FULL_PASSES = 2
"""Passes over all data that it usually takes: benchmarks/working_set.py."""
COPIES = 2.5
"""Copies of W in memory while it grows."""
DROPPING_PASSES = 10
"""More passes when memory holds less than half of the columns it wants: halfspace 1000 x 500,000 with 256 MB."""
CLOSEST = 1e-6
"""Nearest to the widest margin that is tried when the checker refuses separators."""
DENSE_MOST = 4000
"""Features of sparse columns up to which a basis of them is held dense."""
SLACK = 0.01
"""|Ax| is brought so far below eps that rounding leaves it there."""
WRONG = 8
"""Columns outside of the sample that a conflict is looked for with: wrong labels score far below what a sample misses."""
PATIENCE = 100
"""Passes with dropped columns after which a separator is expected no more."""
CAPPED_TOLERANCE = 0.5
"""How near to the best margin of W its separator must be when columns have been dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingSetState:
    """W, and what passes with its y have told."""

    facts: Facts
    cap: int  # columns that W may hold
    columns: Any = None  # W; None before the sample
    full: int = 0  # passes over all data
    best: Sparse | None = None  # x with |Ax| = bracket.upper
    bracket: Bracket = field(default_factory=Bracket)
    violated: int | None = None  # by the y that was last asked
    steps: int = 0  # of the solver in memory
    stalled: str = ""


class WorkingSet(Method[S], Protocol[S]):
    """A solver in memory separates W, and a pass with its y says what W misses."""

    def take_sample(self, state: S, answer: Any) -> Any:
        return answer

    def solve_columns(self, state: S) -> S:
        """With the y of W that is asked next, and with its x where |Ax| is less than before."""

    def update_bracket(self, state: S, answer: Any) -> tuple[Bracket, int]:
        """The bracket after a pass with y, and the points on its wrong side."""

    def grow(self, state: S, answer: Any, before: Bracket) -> S:
        """With what W missed, and solved; or stalled. ``before`` is the bracket before this pass."""

    def hopeful(self, state: S) -> bool:
        """Whether a separator is expected, however small |Ax| is."""

    def tell(self, state: Any, answer: Any) -> Any:
        if state.columns is None:
            return self.solve_columns(replace(state, columns=self.take_sample(state, answer)))
        bracket, violated = self.update_bracket(state, answer)
        after = replace(state, full=state.full + 1, bracket=bracket, violated=violated)
        return self.grow(after, answer, state.bracket)

    def evidence(self, state: Any) -> Evidence:
        best = None if state.best is None else lambda: state.best
        return Evidence(state.bracket, best, state.steps, state.violated, state.stalled, hopeful=self.hopeful(state))


@dataclass(frozen=True, slots=True, kw_only=True)
class PointWorkingSetState(WorkingSetState):
    """With what the solver says of W, and how closely it is asked."""

    columns: Columns | None = None
    solution: Solution | None = None  # of W
    z: Floats | None = None  # (m,) what is asked instead of the separator once columns were dropped: Ax of the best x
    closeness: float | None = None  # how near to the widest margin of W its separator must be; None for any


@dataclass(frozen=True, slots=True)
class PointWorkingSet(WorkingSet[PointWorkingSetState]):
    """``cap`` limits W below what memory allows; ``seed`` draws the sample."""

    cap: int = 0
    seed: int = 0
    traits: Traits = Traits("working-set-plain", "the same without a method that rides along", points=1.0, columns=True)

    def init(self, facts: Facts) -> PointWorkingSetState:
        return PointWorkingSetState(facts=facts, cap=max(facts.m + 2, min(self.cap or facts.n, capacity(facts))))

    def ask(self, state: PointWorkingSetState) -> Partial | Select:
        facts = state.facts
        if state.columns is None or state.solution is None:
            return first_question(facts, state.cap, self.seed)
        if len(state.columns) == facts.n:
            return Select(_direction(state), -np.inf, 0, 0)  # W misses nothing
        cap = max(state.cap - len(state.columns), (state.cap - facts.m) // 2)
        return Select(_direction(state), self._threshold(state), cap, -(-2 * cap // facts.blocks))

    def _threshold(self, state: PointWorkingSetState) -> float:
        """Columns up to this score are wanted: on the first pass, by the scores of the sample, ``FILL`` times the sample."""
        assert state.solution is not None
        columns, separated = state.columns, state.bracket.lower > 0
        if state.full == 0 and columns is not None:
            score = column_matrix(columns.points, columns.scale).scores(state.solution.y, np.inf)
            share = min(1.0, FILL * len(score) / state.facts.n, (state.cap - len(score)) / state.facts.n)
            return max(0.5 * state.solution.margin, float(np.quantile(score, share)))
        if state.z is not None:
            return float(np.linalg.norm(state.z)) if separated else 0.0
        margin = state.solution.margin
        if not separated and margin > 0 and columns is not None and column_matrix(columns.points, columns.scale).large:
            # all that the soft margin feels: another pass is dearer than some more columns
            return max(0.5 * margin, 1 / float(np.linalg.norm(state.solution.w)))
        return max(0.0, (2.0 if separated else 0.5) * margin)

    def take_sample(self, state: PointWorkingSetState, answer: Columns) -> Columns:
        spread = np.linspace(0, len(answer) - 1, min(len(answer), state.cap)).astype(np.int64)
        return answer if len(answer) <= state.cap else answer.take(spread)

    def update_bracket(self, state: PointWorkingSetState, answer: Selection) -> tuple[Bracket, int]:
        return state.bracket.with_separator(_direction(state), answer.low), answer.violated

    def grow(self, state: PointWorkingSetState, answer: Selection, before: Bracket) -> PointWorkingSetState:
        columns, first = state.columns, state.bracket.lower > 0 >= before.lower
        assert columns is not None
        closeness = state.closeness or state.facts.tolerance
        if state.facts.tolerance is None and state.bracket.lower > 0:
            if first:
                return state
            # the checker has refused the separator: the next one is nearer to the widest margin
            closeness = 0.1 if closeness is None else max(CLOSEST, closeness / 10)
        known = np.isin(columns.index, answer.index)
        fresh = len(answer.index) - int(known.sum())
        full = state.z is not None or len(columns) + fresh > state.cap
        if not (len(answer.index) if full else fresh) and (full or closeness == state.closeness):
            if first:
                return state  # this pass asked for violated columns; those that bound the margin come with the next
            return replace(state, stalled="all columns that matter are in memory, and float64 tells their margin no better")
        state = replace(state, closeness=closeness)
        if full:
            after = self._drop_columns(state, answer.columns.take(np.argsort(answer.score, kind="stable")))
            moved = fresh or (after.bracket.lower, after.bracket.upper) != (before.lower, before.upper)
            return after if moved else replace(after, stalled="float64 tells the margin of the kept columns no better")
        others = columns.take(~known) if known.any() else columns
        return self.solve_columns(replace(state, columns=answer.append_to(others)))

    def solve_columns(self, state: PointWorkingSetState) -> PointWorkingSetState:
        """Separate W from where the last separator stands, and more closely where that is wanted."""
        columns = state.columns
        assert columns is not None
        matrix = column_matrix(columns.points, columns.scale)
        solution = solve(matrix, state.solution, eps=(1 - SLACK) * state.facts.eps)
        steps = state.steps + solution.steps
        if solution.outcome == CONFLICT and state.solution is not None:
            solution = self._concentrate(state.facts, state.cap, columns, solution, state.solution.y)
        if state.closeness is not None and solution.outcome == SEPARATED:
            closer = solve(matrix, solution, state.closeness)
            steps += closer.steps
            solution = closer.with_upper(solution) if closer.outcome == SEPARATED else solution.with_upper(closer)
        state = replace(state, solution=solution, steps=steps)
        if state.best is None or solution.upper < state.bracket.upper:
            score = matrix.scores_of(solution.rows, solution.y)
            index = columns.index[solution.rows]
            order = np.argsort(index)
            best = Sparse(index[order], solution.weight[order], score[order], solution.y)
            state = replace(state, best=best, bracket=state.bracket.with_upper(solution.upper))
        if solution.outcome not in (SEPARATED, CONFLICT):
            state = replace(state, stalled="the columns in memory have a margin below the rounding of float64, if any")
        return state

    def _concentrate(self, facts: Facts, cap: int, columns: Columns, solution: Solution, y: Floats) -> Solution:
        """A conflict in fewer blocks, where there is one, as these are read once more to check it: among the blocks of the
        sample, which have many columns, and the few columns that were most wrong by the ``y`` that separated all others.
        """
        sampled = first_question(facts, cap, self.seed).blocks
        if len(np.unique(columns.index[solution.rows] * facts.blocks // facts.n)) <= len(sampled) + WRONG:
            return solution
        score = column_matrix(columns.points, columns.scale).scores(y, np.inf)
        chosen = np.isin(columns.index * facts.blocks // facts.n, sampled)
        chosen[np.argsort(score, kind="stable")[:WRONG]] = True
        rows = np.flatnonzero(chosen)
        some = columns.take(rows)
        other = solve(column_matrix(some.points, some.scale))
        if other.outcome != CONFLICT:
            return solution
        return replace(solution, rows=rows[other.rows], weight=other.weight, upper=other.upper)

    def _drop_columns(self, state: PointWorkingSetState, taken: Columns) -> PointWorkingSetState:
        """Make room for the taken columns, the lowest first; the next x is no worse than on the segment to the first."""
        assert state.columns is not None
        assert state.best is not None
        if state.facts.entries and state.facts.m > DENSE_MOST:
            return replace(state, stalled="memory holds no more columns, and these are too wide to choose which to drop")
        closeness = min(CAPPED_TOLERANCE, state.closeness or 1.0)
        old, weight = _locate(state.columns, state.best)
        held = state.columns
        kept, weight = basic(lambda chosen: held.take(old[chosen]).unit(), state.facts.m, weight)
        anchors = held.take(old[kept])
        fresh = taken.take(~np.isin(taken.index, anchors.index))
        fresh = fresh.take(np.arange(min(len(fresh), state.cap - len(anchors))))
        x = _toward(weight / weight.sum(), anchors, taken.take(np.zeros(1, np.int64)))
        others = state.columns.take(~np.isin(state.columns.index, np.concatenate([anchors.index, fresh.index])))
        room = state.cap - len(anchors) - len(fresh)
        score = column_matrix(others.points, others.scale).scores(_direction(state), -np.inf)
        lowest = np.argsort(score, kind="stable")[:room]
        columns = Columns.concatenate([anchors, fresh, others.take(lowest)])
        best = _sparse(np.append(anchors.index, taken.index[:1]), x)
        z = _combine(columns, best)
        bracket = state.bracket.with_upper(float(np.linalg.norm(z)))
        after = self.solve_columns(replace(state, columns=columns, best=best, z=z, bracket=bracket, closeness=closeness))
        return replace(after, z=_combine(columns, after.best or best))

    def bound(self, facts: Facts, margin: float) -> float:
        """One for each point while memory holds them all, otherwise a sample and 1 / margin^2 passes after W is full."""
        cap = capacity(facts)
        return facts.n + 1.0 if cap >= facts.n else cap + 1 + 1 / margin**2

    def passes(self, facts: Facts, margin: float, share: float) -> float:
        """Those over all data, with the share of the blocks that the sample reads; more while columns are dropped."""
        sample = len(first_question(facts, capacity(facts), 0).blocks) / facts.blocks
        passes = 2.0 if sample == 1 else FULL_PASSES + sample
        return passes + DROPPING_PASSES if fits(facts) and drops(facts) else passes

    def cost(self, facts: Facts) -> MethodCost:
        kept = COPIES * held_columns(facts) * column_bytes(facts) + solver_bytes(facts)
        remark = "fewer passes with more memory: columns will be dropped" if fits(facts) and drops(facts) else ""
        return MethodCost(kept=kept, least=4 * least_bytes(facts), remark=remark)

    def hopeful(self, state: PointWorkingSetState) -> bool:
        separated = state.solution is not None and state.solution.outcome == SEPARATED
        return separated and (state.z is None or state.full < PATIENCE)


def _direction(state: PointWorkingSetState) -> Floats:
    """The y of the next pass, of length 1."""
    assert state.solution is not None
    length = 0.0 if state.z is None else float(np.linalg.norm(state.z))
    return state.solution.y if state.z is None or length == 0 else state.z / length


def _locate(columns: Columns, x: Sparse) -> tuple[Indices, Floats]:
    """Positions (s,) of the columns that x weighs, and their weights."""
    place = np.flatnonzero(np.isin(columns.index, x.index))
    return place, x.weight[np.searchsorted(x.index, columns.index[place])]


def _combine(columns: Columns, x: Sparse) -> Floats:
    place, weight = _locate(columns, x)
    return columns.take(place).combine(weight)


def _toward(x: Floats, anchors: Columns, column: Columns) -> Floats:
    """Weights (s + 1,) of the point nearest to zero on the segment from that of x (s,) to the column."""
    z, end = anchors.combine(x), column.unit()[0]
    step = end - z
    square = float(step @ step)
    t = min(1.0, max(0.0, -float(z @ step) / square)) if square > 0 else 0.0
    return np.append((1 - t) * x, t)


def _sparse(index: Indices, weight: Floats) -> Sparse:
    """Weights by ascending index; the weights of an index that comes twice are added."""
    support, place = np.unique(index, return_inverse=True)
    total: Floats = np.bincount(place, weight, len(support)).astype(np.float64)
    return Sparse(support[total > 0], total[total > 0])
