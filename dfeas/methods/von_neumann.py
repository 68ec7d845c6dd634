"""von Neumann's algorithm: Ax is moved as near to the origin as the worst column allows; with or without away steps.

Reference: Ramdas and Pena 2014, Algorithm 5; Dantzig 1992; Epelman and Freund 2000. Away steps: Guelat and Marcotte 1986.
p starts at one column and stays sparse:

    w = A p,   j = argmin_j a_j'w,   lambda = argmin over [0, 1] of |(1 - lambda) w + lambda a_j|
    p <- (1 - lambda) p + lambda e_j

An away step moves from the column v of p that is farthest along w, w <- w + lambda (w - v), when that promises more; a column
whose weight it takes away is dropped. The columns of p are then kept in memory.

Passes: one a step.
Guarantee: as long as no separator is found 1 / |w|^2 grows by at least 1 a step, so |w_t| <= 1 / sqrt(t) after the t-th column;
with away steps in every step that drops no column, and there are no more drops than other steps: |w_t| <= sqrt(2 / t).
With rho > 0 therefore a separator within 1 / rho^2, or 2 / rho^2, steps. If the hull of the columns has a ball of radius r
around the origin, some a_j'w <= -r |w|, so |w+| <= sqrt(1 - r^2) |w|: |w| <= eps within 2 log(1 / eps) / r^2 steps.
Evidence: both ends of the bracket.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dfeas.linalg.basic import basic
from dfeas.linalg.points import Floats
from dfeas.methods.mistakes import Amounts
from dfeas.methods.protocol import Bracket, Evidence, Facts, Method, MethodCost, Traits
from dfeas.methods.vector import ScoredAnswer, Vector, column, resolution, softmin, upper_end
from dfeas.passes.softmin import SoftminAnswer
from dfeas.records import replace


@dataclass(frozen=True, slots=True)
class VonNeumannState:
    """p and w = A p."""

    steps: int  # columns looked for
    w: Vector
    p: Amounts  # weights on the simplex
    columns: Floats  # (s, m) of p, one a row; empty without away steps
    most: int  # columns that memory holds
    bracket: Bracket
    settled: bool  # no column brings w nearer to the origin


@dataclass(frozen=True, slots=True)
class VonNeumann(Method[VonNeumannState]):
    """With ``away`` steps or without."""

    away: bool = False
    traits: Traits = Traits("von-neumann", "one read a step", points=0.25, kernel=0.4, cones=0.25)

    def init(self, facts: Facts) -> VonNeumannState:
        most = max(facts.m + 2, facts.memory // (24 * facts.m))
        return VonNeumannState(0, facts.zero, Amounts.none(), np.empty((0, facts.m)), most, Bracket(), False)

    def ask(self, state: VonNeumannState) -> Any:
        return softmin([], [state.w])

    def tell(self, state: VonNeumannState, answer: SoftminAnswer | ScoredAnswer) -> VonNeumannState:
        nearest: Any = column(answer, 0)
        if state.steps == 0:
            first = nearest[None, :] if self.away else state.columns
            p, bracket = Amounts(answer.arg, np.ones(1)), state.bracket.with_upper(upper_end(nearest))
            return replace(state, steps=1, w=nearest, p=p, columns=first, bracket=bracket)
        state = replace(state, steps=state.steps + 1, bracket=state.bracket.with_separator(state.w, float(answer.low[0])))
        gain = float(state.w @ (state.w - nearest))
        least = resolution(state.w)
        if self.away:
            w: Any = state.w
            scores = (state.columns - w) @ w
            far = int(scores.argmax())
            if scores[far] > max(gain, least):
                return self._update_bracket(self._away_step(state, far))
        if gain <= least:
            return replace(state, settled=True)
        return self._update_bracket(self._step(state, int(answer.arg[0]), nearest, gain))

    def _step(self, state: VonNeumannState, j: int, nearest: Any, gain: float) -> VonNeumannState:
        d = nearest - state.w
        share = min(1.0, gain / float(d @ d))
        p = state.p.times(1 - share).plus(np.array([j]), np.array([share]))
        columns = state.columns
        if self.away and len(p.index) > len(state.p.index):
            columns = np.insert(columns, np.searchsorted(state.p.index, j), nearest, axis=0)
        return replace(state, w=state.w + share * d, p=p, columns=columns)

    def _away_step(self, state: VonNeumannState, far: int) -> VonNeumannState:
        """Away from a column of p, at most until its weight is 0; then it is dropped."""
        d = state.w - state.columns[far]
        weight = state.p.amount[far]
        most = weight / (1 - weight)
        share = min(most, -float(state.w @ d) / float(d @ d))
        amount = state.p.amount * (1 + share)
        amount[far] = max(0.0, amount[far] - share)
        kept = np.arange(len(amount)) != far if share == most else np.ones(len(amount), bool)
        p = Amounts(state.p.index[kept], amount[kept])
        return replace(state, w=state.w + share * d, p=p, columns=state.columns[kept])

    def _update_bracket(self, state: VonNeumannState) -> VonNeumannState:
        """The bracket at the new p; with fewer columns of the same sum if memory is full."""
        if len(state.columns) > state.most:
            columns = state.columns
            kept, amount = basic(lambda some: columns[some], columns.shape[1], state.p.amount)
            state = replace(state, p=Amounts(state.p.index[kept], amount), columns=columns[kept])
        return replace(state, bracket=state.bracket.with_upper(upper_end(state.w)))

    def bound(self, facts: Facts, margin: float) -> float:
        """One for each step, and one to see that it separates."""
        return 1 + (2 if self.away else 1) / margin**2

    def cost(self, facts: Facts) -> MethodCost:
        """Columns of x in memory beside what is known of each pass."""
        return MethodCost(per_pass=16, columns=min(4 * facts.m, facts.n))

    def evidence(self, state: VonNeumannState) -> Evidence:
        """Both ends of the bracket; |w| never grows, so the last p is the best."""
        stalled = "no column brings Ax nearer to the origin" if state.settled else ""
        return Evidence(state.bracket, state.p.sparse if state.steps else None, state.steps, stalled=stalled)


AWAY = VonNeumann(away=True, traits=Traits("von-neumann-away", "the same with away steps", points=0.12, cones=0.12))
