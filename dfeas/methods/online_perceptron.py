"""Online perceptron: points in the order of the stream, each against the y that the points before it left.

Reference: Chevaleyre's notes, sections 1.4 and 1.5 (Block, Novikoff); the bias, b <- b + l_j, is the virtual intercept.

    for t = 1, 2, ..:  y <- y + a_t  if a_t'y <= 0

Passes: one over all points in order, with as many corrections as there are mistakes. Blocks are worked on one after the other;
only the reading is done ahead, so it cannot be faster than one core.
Guarantee: at most 1 / rho^2 corrections in total when the margin rho is positive, so at most that many passes have one; a
pass without a mistake has y as separator.
Evidence: a separator once a pass makes no mistake: before that the lower end of the bracket is not known, as y changes while it
is scored. As for the perceptron x = counts / k has |Ax| = |y| / k <= 1 / sqrt(k). Counts take 16 bytes for each
point that has one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dfeas.errors import format_bytes
from dfeas.linalg.points import Floats
from dfeas.methods.mistakes import Amounts
from dfeas.methods.protocol import Bracket, Evidence, Facts, Method, MethodCost, Traits
from dfeas.passes.protocol import Ordered
from dfeas.passes.steps import Online, OnlineAnswer
from dfeas.passes.vectors import POINT_BYTES


@dataclass(frozen=True, slots=True)
class OnlinePerceptronState:
    """After some passes over all points in their order."""

    y: Floats  # (m,) sum of corrections
    corrections: int
    count: Amounts  # how often each point was corrected
    bracket: Bracket
    mistakes: int | None  # of the last pass
    best: Amounts | None  # the counts with |Ax| = bracket.upper


@dataclass(frozen=True, slots=True)
class OnlinePerceptron(Method[OnlinePerceptronState]):
    """The order of the points is all that it depends on."""

    traits: Traits = Traits(
        "online-perceptron", "points in order, one core; proves infeasibility slowly", points=0.025, ordered=True
    )

    def init(self, facts: Facts) -> OnlinePerceptronState:
        return OnlinePerceptronState(np.zeros(facts.m), 0, Amounts.none(), Bracket(), None, None)

    def ask(self, state: OnlinePerceptronState) -> Ordered:
        return Ordered(Online(state.y))

    def tell(self, state: OnlinePerceptronState, answer: OnlineAnswer) -> OnlinePerceptronState:
        mistakes = len(answer.corrected)
        if mistakes == 0:
            return replace(state, bracket=state.bracket.with_separator(state.y, answer.low), mistakes=0)
        count, corrections = state.count.plus(answer.corrected, np.ones(mistakes)), state.corrections + mistakes
        state = replace(state, y=answer.y, corrections=corrections, count=count, mistakes=mistakes)
        upper = float(np.linalg.norm(answer.y)) / corrections
        if upper < state.bracket.upper:
            state = replace(state, bracket=state.bracket.with_upper(upper), best=count)
        return state

    def bound(self, facts: Facts, margin: float) -> float:
        """One for each of 1 / margin^2 corrections, and one to see that none is left; far fewer as a rule."""
        return 1 + 1 / margin**2

    def cost(self, facts: Facts) -> MethodCost:
        weights, remark = POINT_BYTES * facts.n, f"one core; at most {format_bytes(16 * facts.n)} for weights"
        return MethodCost(kept=weights, least=weights, remark=remark)

    def evidence(self, state: OnlinePerceptronState) -> Evidence:
        stalled = "no point is violated, and nothing else is corrected" if state.mistakes == 0 else ""
        gordan = None if state.best is None else state.best.sparse
        return Evidence(state.bracket, gordan, state.corrections, state.mistakes, stalled)
