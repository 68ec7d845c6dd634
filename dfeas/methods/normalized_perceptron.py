"""Normalized perceptron: the worst column, averaged.

Reference: Ramdas and Pena 2014, Algorithm 2 on unit columns:

    j = argmin_j a_j'w,   theta_k = 1 / (k + 1),   w <- (1 - theta_k) w + theta_k a_j

w_k is the average of k columns. It is the subgradient method with steps 1 / (k + 1), mirror descent in the ball's geometry, for
|w|^2 / 2 - min_j a_j'w, whose least value is -rho^2 / 2; and k w_k is the perceptron that corrects the worst column, as long as
there is a mistake.

Passes: one a step.
Guarantee, with rho > 0: while no separator was found |w_k| <= 1 / sqrt(k), so one is found within 1 / rho^2 steps; and it goes
on to the maximum margin: after k steps rho <= |w_k| <= rho + (1 + log k) / (2 rho k), and for k > 1 / rho^2 the best margin so
far is at least (rho - 1 / (rho k)) / (1 + (1 + log k) / (rho^2 k)), both from |k w_k|^2 = sum of (2 (t w_t)'a + 1).
Evidence: both ends; x = counts / k has Ax = w_k, and |w_k| <= 1 / sqrt(k) if there is no separator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dfeas.methods.mistakes import Amounts
from dfeas.methods.protocol import Bracket, Evidence, Facts, Method, MethodCost, Traits
from dfeas.methods.vector import ScoredAnswer, Vector, column, softmin, upper_end
from dfeas.passes.softmin import SoftminAnswer


@dataclass(frozen=True, slots=True)
class NormalizedPerceptronState:
    """The average after k steps, and what it consists of."""

    k: int
    w: Vector  # average of k columns
    count: Amounts  # how often each was taken
    bracket: Bracket
    best: Amounts | None  # the counts with |Ax| = bracket.upper


@dataclass(frozen=True, slots=True)
class NormalizedPerceptron(Method[NormalizedPerceptronState]):
    """Its steps, 1 / (k + 1), depend on nothing."""

    traits: Traits = Traits(
        "normalized-perceptron", "one read a step; proves infeasibility slowly", points=0.4, kernel=0.5, cones=0.4
    )

    def init(self, facts: Facts) -> NormalizedPerceptronState:
        return NormalizedPerceptronState(0, facts.zero, Amounts.none(), Bracket(), None)

    def ask(self, state: NormalizedPerceptronState) -> Any:
        return softmin([], [state.w])

    def tell(self, state: NormalizedPerceptronState, answer: SoftminAnswer | ScoredAnswer) -> NormalizedPerceptronState:
        theta = 1 / (state.k + 1)
        w = (1 - theta) * state.w + theta * column(answer, 0)
        bracket = state.bracket.with_separator(state.w, float(answer.low[0]))
        count = state.count.plus(answer.arg, np.ones(1))
        state = replace(state, k=state.k + 1, w=w, count=count, bracket=bracket)
        upper = upper_end(w)
        if upper < bracket.upper:
            state = replace(state, bracket=bracket.with_upper(upper), best=count)
        return state

    def bound(self, facts: Facts, margin: float) -> float:
        """One for each of 1 / margin^2 steps, and one to see that it separates."""
        return 1 + 1 / margin**2

    def cost(self, facts: Facts) -> MethodCost:
        """Columns of x in memory beside what is known of each pass."""
        return MethodCost(per_pass=16, columns=min(4 * facts.m, facts.n))

    def evidence(self, state: NormalizedPerceptronState) -> Evidence:
        return Evidence(state.bracket, None if state.best is None else state.best.sparse, state.k)


WORST = NormalizedPerceptron(Traits("perceptron", cones=0.4))
"""The perceptron that corrects the worst column: its sum is k times the average."""
