"""A working set that begins from what an earlier run knew: its direction y, or the points of its conflict.

Reference: own; the rapid incremental retraining that Yu, Kilinc-Karzan and Carbonell 2014 name in section 8.

    of a conflict     W <- its points, by their numbers; if they still conflict, stop after the share of a pass that has them;
                      if not, y is asked about the blocks that a sample would read: none wrong, as below
    of new points     the blocks that have them are met first; if y has none of these wrong, or there are none, as below
    few are wrong     y <- one that has these right and the points that the earlier run was nearest to, and as below; where they
                      conflict W <- the lowest-scoring of these, and of the blocks that a sample would read
    more than m       W <- the lowest-scoring of these, and a sample: another y would have the lowest right and all others wrong
    otherwise         one pass with y: none violated -> y separates; else W <- the lowest-scoring columns, as many as the first
                      full pass would add to a sample, and where half of them are wrong a sample
    then              as the working set goes on, from y

Guarantee: a y that separates is proved in one pass and the share of it that has new points. What an earlier run says is
believed of no point: y is asked about all of them, and a conflict is one of columns that were read. So the bound is that of the
working set with two passes more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from dfeas.linalg import separation
from dfeas.linalg.points import Floats, are_among
from dfeas.linalg.separation.solver import CONFLICT, SEPARATED, Solution
from dfeas.methods.mirror_prox_one_pass import OnePassMirrorProx
from dfeas.methods.protocol import Evidence, Facts, Led, RideAlong, Start, Traits, Wrapping
from dfeas.methods.smooth_perceptron import SmoothPerceptron
from dfeas.methods.working_set.batches import Schedule, passes_ahead, schedule
from dfeas.methods.working_set.method import PointWorkingSet, PointWorkingSetState
from dfeas.passes.block import Columns
from dfeas.passes.protocol import Partial, Together
from dfeas.passes.select import Named, Select, Selection
from dfeas.records import replace

KNOWN, NEW, NEAREST, SAMPLE, ALL = "the conflict", "new points", "nearest points", "sample", "all points"
"""What the next pass looks for."""


class StartState(Struct, frozen=True, eq=False):
    """Until W has columns."""

    first: PointWorkingSetState  # of the method, as if y separated its W
    looks_for: str
    columns: Columns | None = None  # for W, until others join them


class WarmStart(Wrapping, Struct, frozen=True, eq=False):
    """The method itself where no earlier run is known."""

    method: PointWorkingSet

    def init(self, facts: Facts) -> Any:
        state, start = self.method.init(facts), facts.start
        if start is None:
            return state
        of_conflict = KNOWN if start.blocks else NEAREST
        looks_for = of_conflict if len(start.rows) else NEW if start.blocks else ALL
        return StartState(replace(state, solution=_as_solution(start.y)), looks_for)

    def ask(self, state: Any) -> Any:
        if not isinstance(state, StartState):
            return self.method.ask(state)
        facts, plan, half = state.first.facts, self._plan(state), state.first.cap // 2
        start, drawn = _start_of(facts), plan.sample
        if state.looks_for == KNOWN:
            return Partial(Named(facts.m, start.rows), start.blocks)
        if state.looks_for == NEW:
            return Partial(_lowest(start.y, min(plan.count, half), len(start.blocks)), start.blocks)
        if state.looks_for == ALL:
            wanted = plan.band or facts.n
            return _lowest(_y_of(state), min(wanted, max(state.first.cap - plan.count, half)), facts.blocks)
        lowest = _lowest(start.y, min(plan.count, half), len(drawn.blocks))
        return replace(drawn, pass_=Together((lowest, drawn.pass_)))

    def _plan(self, state: StartState) -> Schedule:
        return schedule(state.first.facts, state.first.cap, self.method.seed)

    def tell(self, state: Any, answer: Any) -> Any:
        if not isinstance(state, StartState):
            return self.method.tell(state, answer)
        facts = state.first.facts
        if state.looks_for == KNOWN:
            again = replace(state, looks_for=NEAREST) if _start_of(facts).y.any() else self.method.init(facts)
            return self._find_conflict(state, answer) or again
        if state.looks_for == NEW:
            if not answer.violated:
                return replace(state, looks_for=ALL)
            columns = answer.columns
            return self._turn(state, columns) if answer.violated <= facts.m else StartState(state.first, SAMPLE, columns)
        if state.looks_for == ALL:
            return self._take_lowest(state, answer)
        lowest, drawn = answer
        if state.columns is None and not lowest.violated:
            return replace(state, looks_for=ALL)
        near = state.looks_for == NEAREST and lowest.violated <= facts.m
        return self._join(state, lowest.columns if near else drawn)

    def _turn(self, state: StartState, columns: Columns) -> StartState:
        """Ask a y that has the new points right, and those that the earlier run was nearest to, if there is one."""
        left, then = _start_of(state.first.facts).nearest, StartState(state.first, NEAREST, columns)
        if left is None:
            return then
        joined = Columns.concatenate([left, columns])
        turned = self.method.solve_columns(replace(state.first, columns=joined)).solution
        if turned is None or turned.outcome != SEPARATED:
            return then
        return StartState(replace(state.first, solution=_as_solution(turned.y)), ALL)

    def _find_conflict(self, state: StartState, columns: Columns) -> PointWorkingSetState | None:
        """The method's state where the points of the earlier conflict still conflict."""
        found = self._solve(replace(state.first, columns=columns, solution=None))
        return found if found.solution is not None and found.solution.outcome == CONFLICT else None

    def _solve(self, state: PointWorkingSetState) -> PointWorkingSetState:
        """Separate W. Points that conflict are scored by y, which has the earlier ones right."""
        found, y = self.method.solve_columns(state), _start_of(state.facts).y
        if found.solution is None or found.solution.outcome != CONFLICT or found.best is None or not y.any():
            return found
        assert found.columns is not None
        order = np.argsort(found.columns.index)
        place = order[np.searchsorted(found.columns.index, found.best.index, sorter=order)]
        return replace(found, best=replace(found.best, score=found.columns.take(place).unit() @ y, y=y))

    def _take_lowest(self, state: StartState, answer: Selection) -> Any:
        """After a pass with y. Many on its wrong side would be separated by another y that has all others wrong."""
        facts, columns = state.first.facts, answer.columns
        bracket = state.first.bracket.with_separator(_y_of(state), answer.low)
        met = len(self._plan(state).batches)
        first = replace(state.first, full=1, bracket=bracket, violated=answer.violated, met=met)
        if 2 * answer.violated > len(columns):
            return StartState(first, SAMPLE, columns)
        first = replace(first, columns=columns, closeness=facts.tolerance)
        return first if bracket.lower > 0 and facts.tolerance is None else self._solve(first)

    def _join(self, state: StartState, columns: Columns) -> PointWorkingSetState:
        """W of the columns that were read last and those before, as many of them as memory has room for."""
        if state.columns is not None:
            others = np.flatnonzero(~are_among(columns.index, state.columns.index))
            room = max(0, state.first.cap - len(state.columns))
            if len(others) > room:
                others = others[np.linspace(0, len(others) - 1, room).astype(np.int64)]
            columns = Columns.concatenate([columns.take(others), state.columns])
        return self._solve(replace(state.first, columns=columns))

    def evidence(self, state: Any) -> Evidence:
        if not isinstance(state, StartState):
            return self.method.evidence(state)
        return Evidence(state.first.bracket, None, 0, state.first.violated, hopeful=True)

    def bound(self, facts: Facts, margin: float) -> float:
        return self.method.bound(facts, margin) + (0 if facts.start is None else 2)


def _y_of(state: StartState) -> Floats:
    assert state.first.solution is not None, "it begins with that of an earlier run"
    return state.first.solution.y


def _start_of(facts: Facts) -> Start:
    assert facts.start is not None, "a start comes from an earlier run"
    return facts.start


def _lowest(y: Floats, count: int, blocks: int) -> Select:
    """The columns that score lowest, violated or not."""
    return Select(y, np.inf, count, -(-2 * count // blocks))


def _as_solution(y: Floats) -> Solution:
    none = np.empty(0, np.int64)
    return Solution(SEPARATED, y, 0.0, none, np.empty(0), 1.0, separation.AT.first_c, 0)


TRAITS = Traits("working-set", "a few reads; columns in memory; names conflicts", points=1.0, columns=True)
PLAIN = WarmStart(PointWorkingSet())
WORKING_SET = Led(RideAlong(PLAIN, SmoothPerceptron(), TRAITS), OnePassMirrorProx(), passes_ahead)
"""A method rides on its later passes, and where points are wide another one leads."""
