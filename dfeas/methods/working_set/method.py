"""The working set of points: what is asked, what joins W, and what is dropped; the algorithm is on the first page."""

from __future__ import annotations

from functools import partial
from math import ceil, log, sqrt
from typing import Any

import numpy as np
from msgspec import Struct

from dfeas.linalg.points import Floats, Indices, are_among
from dfeas.linalg.separation.columns import ColumnMatrix
from dfeas.linalg.separation.rounds import lowest
from dfeas.linalg.separation.solver import CONFLICT, SEPARATED, Solution, solve
from dfeas.linalg.separation.sparse_columns import column_matrix
from dfeas.methods.protocol import Bracket, Evidence, Facts, MethodCost, Sparse, Traits
from dfeas.methods.working_set import AT, WorkingSet, WorkingSetState
from dfeas.methods.working_set.batches import (
    Schedule,
    capacity,
    describe_unresolved,
    drops,
    fits,
    kept_bytes,
    least_bytes,
    left_columns,
    schedule,
    solver_room,
)
from dfeas.passes.block import Columns
from dfeas.passes.protocol import Blocks, Partial
from dfeas.passes.select import Select, Selection
from dfeas.records import replace


class PointWorkingSetState(WorkingSetState, frozen=True, kw_only=True, dict=True):
    """With what the solver says of W, and how closely it is asked."""

    columns: Columns | None = None
    solution: Solution | None = None  # of W
    z: Floats | None = None  # (m,) Ax of the best x
    dropped: bool = False  # some columns of W, as memory was full
    fewest: float = np.inf  # points that a separator had wrong since then
    falls_back: bool = False  # z is asked next, and not the separator
    met: int = 0  # batches of the schedule, before all blocks are
    closeness: float | None = None  # how near to the widest margin of W its separator must be; None for any
    refused: bool = False  # a conflict was told, and passes go on: W loses no columns for one any more


class PointWorkingSet(WorkingSet[PointWorkingSetState], Struct, frozen=True):
    """``cap`` limits W below what memory allows; ``seed`` draws the sample."""

    cap: int = 0
    seed: int = 0
    traits: Traits = Traits("working-set-plain", "the same without a method that rides along", points=1.0, columns=True)

    def init(self, facts: Facts) -> PointWorkingSetState:
        return PointWorkingSetState(facts=facts, cap=max(facts.m + 2, min(self.cap or facts.n, capacity(facts))))

    def ask(self, state: PointWorkingSetState) -> Partial | Select:
        facts = state.facts
        if state.columns is None or state.solution is None:
            plan = self._schedule(state)
            drawn: Any = plan.sample.pass_
            return replace(plan.sample, pass_=replace(drawn, room=min(state.cap, plan.columns)))
        if len(state.columns) == facts.n:
            return Select(_direction(state), -np.inf, 0, 0)  # W misses nothing
        if batch := self._batch(state):
            taken = self._schedule(state).taken
            each = taken / len(batch)
            return Partial(Select(_direction(state), np.inf, taken, ceil(each + AT.spread * sqrt(each))), batch)
        cap = max(state.cap - len(state.columns), state.cap // 2)
        known = vars(state)  # who rides along asks for the question when it is put, and again when it is answered
        if "threshold" not in known:
            known["threshold"] = self._threshold(state)
        return Select(_direction(state), known["threshold"], cap, -(-2 * cap // facts.blocks))

    def _schedule(self, state: PointWorkingSetState) -> Schedule:
        return schedule(state.facts, state.cap, self.seed)

    def _batch(self, state: PointWorkingSetState) -> Blocks:
        """The blocks that are met before all are; none when it is time for these."""
        batches = self._schedule(state).batches
        ready = state.solution is not None and state.solution.outcome == SEPARATED
        return batches[state.met] if ready and state.met < len(batches) else ()

    def tell(self, state: PointWorkingSetState, answer: Any) -> Any:
        if state.solution is not None and state.solution.outcome == CONFLICT:
            state = replace(state, refused=True)
        if state.columns is None or not self._batch(state):
            return WorkingSet.tell(self, state, answer)
        if not answer.violated:
            return replace(state, met=len(self._schedule(state).batches))
        met = replace(state, met=state.met + 1)
        if len(state.columns) + len(answer.index) <= state.cap:
            return self._solve_with(met, answer)
        columns = _keep_lowest(state.columns, answer, _direction(state), state.cap)
        return self.solve_columns(replace(met, columns=columns))

    def _threshold(self, state: PointWorkingSetState) -> float:
        """Columns up to this score are wanted: on the first pass, by the scores of the sample, as many as the schedule says."""
        assert state.solution is not None
        columns, separated = state.columns, state.bracket.lower > 0
        if state.full == 0 and columns is not None:
            plan = self._schedule(state)
            drawn = slice(plan.count) if state.met else slice(None)
            score = column_matrix(columns.points[drawn], columns.scale[drawn]).scores(state.solution.y, 0.0)
            share = min(1.0, plan.band / state.facts.n, (state.cap - len(columns)) / state.facts.n)
            return max(0.5 * state.solution.margin, _quantile(score, share))
        if state.falls_back and state.z is not None:
            return float(np.linalg.norm(state.z)) if separated else 0.0
        if state.dropped and columns is not None:
            return float(column_matrix(columns.points, columns.scale).scores(state.solution.y, np.inf).max())
        margin = state.solution.margin
        if not separated and margin > 0 and columns is not None:
            # another pass is dearer than some more columns
            score = column_matrix(columns.points, columns.scale).scores(state.solution.y, 0.0)
            few = min(AT.nearest * state.facts.m, len(score) - 1)
            return max(0.5 * margin, float(np.partition(score, few)[few]))
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
            closeness = 0.1 if closeness is None else max(AT.closest, closeness / 10)
        known = are_among(columns.index, answer.index)
        fresh = len(answer.index) - int(known.sum())
        full = state.dropped or len(columns) + fresh > state.cap
        if not (len(answer.index) if full else fresh) and (full or closeness == state.closeness):
            if first:
                return state  # this pass asked for violated columns; those that bound the margin come with the next
            return replace(state, stalled="all columns that matter are in memory, and float64 tells their margin no better")
        state = replace(state, closeness=closeness)
        if full:
            after = self._drop_columns(state, answer)
            moved = fresh or (after.bracket.lower, after.bracket.upper) != (before.lower, before.upper)
            return after if moved else replace(after, stalled="float64 tells the margin of the kept columns no better")
        return self._solve_with(state, answer)

    def _solve_with(self, state: PointWorkingSetState, answer: Selection) -> PointWorkingSetState:
        """With what was taken; of wrong labels with a conflict among few columns, if there is one, before all are joined."""
        parts, drawn = self._look_wrong(state, answer)
        near = self._find_near_conflict(state, parts, drawn) if len(drawn) else None
        if near is not None:
            return near
        # in memory that has room for what the schedule expects, so that W is not copied each time
        assert state.columns is not None
        joined = answer.append_to(state.columns, min(state.cap, self._schedule(state).columns))
        return self.solve_columns(replace(state, columns=joined), spread=not parts)

    def solve_columns(self, state: PointWorkingSetState, spread: bool = True) -> PointWorkingSetState:
        """Separate W from where the last separator stands, and more closely where that is wanted; if a conflict is ``spread``
        over many blocks, look for one of few.
        """
        columns = state.columns
        assert columns is not None
        matrix = column_matrix(columns.points, columns.scale, solver_room(state.facts))
        solution = solve(matrix, state.solution, eps=(1 - AT.slack) * state.facts.eps)
        if spread and state.solution is not None and not state.refused and self._is_spread(state, columns, solution):
            sampled = np.isin(state.facts.block_of(columns.index), self._schedule(state).sample.blocks)
            scored = [(columns, matrix.scores(state.solution.y, 0.0))]
            near = self._find_near_conflict(state, scored, np.flatnonzero(sampled))
            if near is not None:
                return near
        if state.closeness is not None and solution.outcome == SEPARATED:
            closer = solve(matrix, solution, state.closeness)
            steps = solution.steps + closer.steps
            solution = closer.with_upper(solution) if closer.outcome == SEPARATED else solution.with_upper(closer)
            solution = replace(solution, steps=steps)
        return _note_solution(state, matrix, solution)

    def _look_wrong(self, state: PointWorkingSetState, answer: Selection) -> tuple[list[tuple[Columns, Floats]], Indices]:
        """W and what was taken with their scores by the y that separated W, if some of it is as wrong as columns at random are
        right: what a sample misses is near to its hyperplane. The score of what W has already is infinite. And how many of the
        sample are in conflict with the most wrong one, from all over it; none where all are too few for that.
        """
        columns, before, drawn = state.columns, state.solution, self._schedule(state).count
        assert columns is not None
        assert before is not None
        none, m = np.empty(0, np.int64), state.facts.m
        if before.outcome != SEPARATED or state.dropped or state.refused or drawn >= len(columns) + len(answer.score):
            return [], none
        score = column_matrix(columns.points, columns.scale).scores(before.y, 0.0)
        drawn, usual = min(drawn, len(columns)), _quantile(score[:drawn], 0.5)
        if answer.low >= -AT.like * usual:
            return [], none
        others = np.where(are_among(answer.index, columns.index), np.inf, answer.score)
        edges = np.cumsum([len(piece) for piece in answer.pieces])[:-1]
        wanted = AT.opposed * m / -answer.low
        # 1.5 m^0.5 times the usual score is 1 for random columns, and less where these are near to each other
        alone = 2 * drawn < min(1.0, 1.5 * sqrt(m) * usual) * wanted
        near = np.arange(0 if alone else min(drawn, int(wanted)))
        near = near * drawn // max(1, len(near))
        return [(columns, score), *zip(answer.pieces, np.split(others, edges), strict=True)], near

    def _is_spread(self, state: PointWorkingSetState, columns: Columns, solution: Solution) -> bool:
        """Whether a conflict lies in more blocks than those of the sample, which have many columns, and few others."""
        blocks = set(state.facts.block_of(columns.index[solution.rows]).tolist()) if solution.outcome == CONFLICT else ()
        return len(blocks) > len(self._schedule(state).sample.blocks) + AT.wrong

    def _find_near_conflict(
        self, state: PointWorkingSetState, parts: list[tuple[Columns, Floats]], near: Indices
    ) -> PointWorkingSetState | None:
        """With a conflict in few blocks, as these are read once more to check it, and among few columns, which takes less:
        those of W that are ``near``, and the few that were most wrong by the y that separated all others, as far as they are
        half as wrong as the first of them. W is these then.
        """
        assert state.solution is not None
        facts, scores = state.facts, np.concatenate([score for _, score in parts])
        chosen = np.zeros(len(scores), bool)
        chosen[near] = True
        wrong = np.argsort(scores, kind="stable")[: AT.wrong]
        chosen[wrong[scores[wrong] <= AT.like * scores[wrong[0]]]] = True
        edges = np.cumsum([len(part) for part, _ in parts])[:-1]
        each = np.split(chosen & (scores < np.inf), edges)
        columns = Columns.pick(
            [(part, np.flatnonzero(mine)) for (part, _), mine in zip(parts, each, strict=True) if mine.any()]
        )
        matrix = column_matrix(columns.points, columns.scale, solver_room(facts))
        found = solve(matrix)
        if found.outcome != CONFLICT:
            return None
        # the y that has the others right shows which are wrong
        found = replace(found, w=state.solution.w, margin=float(scores.min()))
        return _note_solution(replace(state, columns=columns), matrix, found)

    def _drop_columns(self, state: PointWorkingSetState, answer: Selection) -> PointWorkingSetState:
        """Keep the lowest of W and of what was taken, as many as there is room for, and separate them; |Ax| does not grow."""
        assert state.columns is not None
        columns = _keep_lowest(state.columns, answer, _direction(state), state.cap)
        answer.pieces.clear()
        wider = state.facts.tolerance is not None or state.bracket.lower > 0
        closeness = min(AT.capped_tolerance, state.closeness or 1.0) if wider else None
        state = replace(state, columns=columns, closeness=closeness, dropped=True)
        if state.falls_back:
            return replace(self.solve_columns(_approach(state, answer)), falls_back=wider)
        helped = answer.violated <= AT.fewer * state.fewest
        after = self.solve_columns(replace(state, fewest=min(state.fewest, answer.violated)))
        return replace(after, falls_back=wider or not helped)

    def evidence(self, state: PointWorkingSetState) -> Evidence:
        return replace(WorkingSet.evidence(self, state), nearest=partial(_find_nearest, state))

    def bound(self, facts: Facts, margin: float) -> float:
        """One for each point while memory holds them all, otherwise as above: a sample, those until W is full, and others."""
        cap, fewer = capacity(facts), log(facts.n) / -log(AT.fewer)
        return facts.n + 1.0 if cap >= facts.n else cap + 2 + fewer + 2 / margin**2

    def passes(self, facts: Facts, margin: float, share: float) -> float:
        """Those over all data, with the share of it that is met before; more while columns are dropped."""
        plan = schedule(facts, capacity(facts), 0)
        passes = 2.0 if plan.count == facts.n else AT.full_passes + plan.share(facts.blocks)
        return passes + AT.dropping_passes if fits(facts) and drops(facts) else passes

    def cost(self, facts: Facts) -> MethodCost:
        remark = "fewer passes with more memory: columns will be dropped" if fits(facts) and drops(facts) else ""
        return MethodCost(kept=kept_bytes(facts), least=4 * least_bytes(facts), remark=remark)

    def hopeful(self, state: PointWorkingSetState) -> bool:
        separated = state.solution is not None and state.solution.outcome == SEPARATED
        return separated and (not state.dropped or state.full < AT.patience)


def _note_solution(state: PointWorkingSetState, matrix: ColumnMatrix, solution: Solution) -> PointWorkingSetState:
    """With a solution of W, and with its x where |Ax| is less than before."""
    columns = state.columns
    assert columns is not None
    state = replace(state, solution=solution, steps=state.steps + solution.steps)
    if state.best is None or solution.upper < state.bracket.upper:
        score = matrix.scores_of(solution.rows, solution.y)
        index = columns.index[solution.rows]
        order = np.argsort(index)
        best = Sparse(index[order], solution.weight[order], score[order], solution.y)
        z = matrix.combine_rows(solution.rows, solution.weight)
        state = replace(state, best=best, z=z, bracket=state.bracket.with_upper(solution.upper))
    if solution.outcome == CONFLICT and len(columns) == state.facts.n:
        low = float(matrix.scores(solution.y, np.inf).min())
        state = replace(state, bracket=state.bracket.with_separator(solution.y, low))
    if solution.outcome not in (SEPARATED, CONFLICT):
        state = replace(state, stalled=describe_unresolved(state.facts))
    return state


def _quantile(values: Floats, share: float) -> float:
    """``np.quantile``, but for loading ``numpy.ma``."""
    place = share * (len(values) - 1)
    low = int(place)
    lower, upper = np.partition(values, [low, min(low + 1, len(values) - 1)])[[low, min(low + 1, len(values) - 1)]].tolist()
    rest = place - low
    return float(upper - (upper - lower) * (1 - rest) if rest >= 0.5 else lower + (upper - lower) * rest)


def _direction(state: PointWorkingSetState) -> Floats:
    """The y of the next pass, of length 1."""
    assert state.solution is not None
    length = 0.0 if state.z is None or not state.falls_back else float(np.linalg.norm(state.z))
    return state.solution.y if state.z is None or length == 0 else state.z / length


def _find_nearest(state: PointWorkingSetState) -> Columns | None:
    """The columns of W nearest to the separator; None where there is none, or room for so few that they tell nothing."""
    columns, y = state.columns, state.bracket.y
    count = left_columns(state.facts)
    if columns is None or not isinstance(y, np.ndarray) or not count:
        return None
    return columns.take(np.sort(lowest(column_matrix(columns.points, columns.scale).scores(y, 0.0), count)))


def _keep_lowest(columns: Columns, answer: Selection, y: Floats, count: int) -> Columns:
    """The columns that a pass has taken, and of the others as many as there is room for, the lowest under y."""
    score = column_matrix(columns.points, columns.scale).scores(y, np.inf)
    others = np.flatnonzero(~are_among(columns.index, answer.index))
    kept = others[np.argsort(score[others], kind="stable")[: max(0, count - len(answer.score))]]
    return Columns.pick([(columns, np.sort(kept)), *((piece, np.arange(len(piece))) for piece in answer.pieces)])


def _approach(state: PointWorkingSetState, answer: Selection) -> PointWorkingSetState:
    """With the point nearest to zero on the segment from z to the lowest column, and its x."""
    assert state.columns is not None
    assert state.best is not None
    assert state.z is not None
    place = np.flatnonzero(state.columns.index == answer.arg)
    step = state.columns.take(place).unit().sum(axis=0) - state.z
    square = float(step @ step)
    t = min(1.0, max(0.0, -float(state.z @ step) / square)) if square > 0 and len(place) else 0.0
    z = state.z + t * step
    best = _sparse(np.append(state.best.index, answer.arg), np.append((1 - t) * state.best.weight, t))
    return replace(state, z=z, best=best, bracket=state.bracket.with_upper(float(np.linalg.norm(z))))


def _sparse(index: Indices, weight: Floats) -> Sparse:
    """Weights by ascending index; the weights of an index that comes twice are added."""
    support, place = np.unique(index, return_inverse=True)
    total: Floats = np.bincount(place, weight, len(support)).astype(np.float64)
    return Sparse(support[total > 0], total[total > 0])
