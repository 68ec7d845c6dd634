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

from dfeas.linalg.points import Floats, Indices
from dfeas.methods.mistakes import CorrectionRule, Mistakes
from dfeas.methods.protocol import Ends, Evidence, Facts, Method, MethodCost, Traits
from dfeas.methods.vector import Combination, Products


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


CAP = 16
"""Columns that are gathered by a product, as a rule."""


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

    cap: int = CAP
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
