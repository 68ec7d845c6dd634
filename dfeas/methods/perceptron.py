"""Perceptron with corrections gathered per pass.

Reference: Ramdas and Pena 2014, Algorithm 1; Chevaleyre's notes, section 1.4; bound by Novikoff 1962.

    y <- y + a_j    for any j with a_j'y <= 0

Passes: one for as many corrections as the gathered columns allow. Every correction is a mistake in Novikoff's sense, so

    corrections <= 1 / rho^2     in total and in any order, when the margin rho is positive.

Evidence: y = sum of k corrections, so with x = counts / k on the simplex Ax = y / k and |Ax| <= 1 / sqrt(k) at every step:
the classical perceptron is a (slow) witness of infeasibility, too.

In a kernel's space (kernelised Algorithm 1, KPCT of Yu et al. 2014) columns are gathered by a product: the ``cap`` worst of
those that are wrong are asked together; then legal corrections are made among them until none of them is wrong.

    alpha <- alpha + e_j    for any j with (G alpha)_j <= 0

Products: one of ``cap`` unit vectors for as many corrections as they allow; with ``cap`` and ``most`` of 1 it is the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dfeas.errors import format_bytes
from dfeas.linalg.points import Floats, Indices
from dfeas.methods.mistakes import Amounts, CorrectionRule, Mistakes
from dfeas.methods.protocol import Bracket, Ends, Evidence, Facts, Method, MethodCost, Traits
from dfeas.methods.vector import Combination, Products, ScoredAnswer, Vector, column, softmin, upper_end
from dfeas.passes.protocol import Ordered
from dfeas.passes.softmin import SoftminAnswer
from dfeas.passes.steps import Online, OnlineAnswer
from dfeas.passes.vectors import POINT_BYTES
from dfeas.records import replace


@dataclass(frozen=True, slots=True)
class Novikoff(CorrectionRule):
    """Unit columns on the wrong side are added as they are; there is nothing to guess."""

    def bound(self, facts: Facts, margin: float) -> float:
        """Novikoff's; also |Ax| <= margin then, if there is no separator."""
        return 1 / margin**2


TRAITS = Traits("perceptron", "one read for many corrections; proves infeasibility slowly", points=0.04)


def perceptron(cap: int = 0, most: int = 0) -> Mistakes:
    """``cap`` = 1 and ``most`` = 1: one correction a pass, of the worst column."""
    return Mistakes(Novikoff(), TRAITS, cap, most)


@dataclass(frozen=True, slots=True)
class KernelPerceptronState:
    """After some corrections, all of them known by their products."""

    corrections: int
    total: Combination  # alpha: how often each point was corrected
    cap: int  # columns of a product
    ends: Ends

    @property
    def wrong(self) -> Indices:
        """The worst points (c,) on the wrong side; the worst of all when there is none."""
        worst = np.argsort(self.total.scores, kind="stable")[: self.cap]
        wrong = worst[self.total.scores[worst] <= 0]
        return np.sort(wrong) if wrong.size else worst[:1]


@dataclass(frozen=True, slots=True)
class KernelPerceptron(Method[KernelPerceptronState]):
    """At most ``cap`` columns are gathered by a product, and at most ``most`` corrections follow it."""

    # 16: columns that are gathered by a product, as a rule
    cap: int = 16
    most: int = 1000
    traits: Traits = Traits("perceptron", kernel=0.2)

    def init(self, facts: Facts) -> KernelPerceptronState:
        """alpha = 0, which every column is a mistake of."""
        assert isinstance(facts.zero, Combination), "in a kernel's space"
        return KernelPerceptronState(0, facts.zero, self.cost(facts).products, Ends())

    def cost(self, facts: Facts) -> MethodCost:
        """Columns of a product that fit: each with its copies in a merge and on their way."""
        return MethodCost(products=min(self.cap, max(1, facts.memory // (64 * facts.n)), facts.n))

    def ask(self, state: KernelPerceptronState) -> Any:
        wrong = state.wrong
        V = np.zeros((len(state.total.alpha), len(wrong)))
        V[wrong, np.arange(len(wrong))] = 1
        return Products(V, state.total.floor)

    def tell(self, state: KernelPerceptronState, answer: Floats) -> KernelPerceptronState:
        wrong, columns = state.wrong, np.ascontiguousarray(answer.T)
        alpha, scores = state.total.alpha.copy(), state.total.scores.copy()
        fresh = 0
        while fresh < self.most:
            place = int(scores[wrong].argmin())
            if scores[wrong[place]] > 0:
                break
            alpha[wrong[place]] += 1
            scores += columns[place]
            fresh += 1
        total, corrections = Combination(alpha, scores, state.total.floor), state.corrections + fresh
        ends = state.ends.with_simplex(total / max(1, corrections))
        return KernelPerceptronState(corrections, total, state.cap, ends)

    def bound(self, facts: Facts, margin: float) -> float:
        """Products: one for each of 1 / margin^2 corrections; far fewer as a rule."""
        return 1 / margin**2

    def evidence(self, state: KernelPerceptronState) -> Evidence:
        violated = int((state.total.scores <= 0).sum()) if state.corrections else None
        done = violated is not None and not violated
        stalled = "no point is a mistake any more, and nothing else is corrected" if done else ""
        return state.ends.evidence(state.corrections, violated, stalled)


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
    """Normalized perceptron: the worst column, averaged.

    Reference: Ramdas and Pena 2014, Algorithm 2 on unit columns:

        j = argmin_j a_j'w,   theta_k = 1 / (k + 1),   w <- (1 - theta_k) w + theta_k a_j

    w_k is the average of k columns. It is the subgradient method with steps 1 / (k + 1), mirror descent in the ball's geometry,
    for |w|^2 / 2 - min_j a_j'w, whose least value is -rho^2 / 2; and k w_k is the perceptron that corrects the worst column, as
    long as there is a mistake.

    Passes: one a step.
    Guarantee, with rho > 0: while no separator was found |w_k| <= 1 / sqrt(k), so one is found within 1 / rho^2 steps; and it
    goes on to the maximum margin: after k steps rho <= |w_k| <= rho + (1 + log k) / (2 rho k), and for k > 1 / rho^2 the best
    margin so far is at least (rho - 1 / (rho k)) / (1 + (1 + log k) / (rho^2 k)),
    both from |k w_k|^2 = sum of (2 (t w_t)'a + 1).
    Evidence: both ends; x = counts / k has Ax = w_k, and |w_k| <= 1 / sqrt(k) if there is no separator.
    """

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
    """Online perceptron: points in the order of the stream, each against the y that the points before it left.

    Reference: Chevaleyre's notes, sections 1.4 and 1.5 (Block, Novikoff); the bias, b <- b + l_j, is the virtual intercept. The
    notes have points as they are stored: ``transform="lengths"`` divides all of them by one number, which changes no sign.

        for t = 1, 2, ..:  y <- y + a_t  if a_t'y <= 0

    Passes: one over all points in order, with as many corrections as there are mistakes. Blocks are worked on one after the
    other; only the reading is done ahead, so it cannot be faster than one core.
    Guarantee: at most 1 / rho^2 corrections in total when the margin rho is positive, so at most that many passes have one; a
    pass without a mistake has y as separator.
    Evidence: a separator once a pass makes no mistake: before that the lower end of the bracket is not known, as y changes
    while it is scored. As for the perceptron x = counts / k has |Ax| = |y| / k <= 1 / sqrt(k). Counts take 16 bytes for each
    point that has one.
    """

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
