"""Perceptrons in a kernel's space: with columns gathered per product, normalized, and smooth.

Reference: Ramdas and Pena 2014, Algorithm 4 (SNKP). With p_mu(alpha) = softmax(-G alpha / mu):

    alpha_0 = 1/n,  mu_0 = 2,  p_0 = p_mu0(alpha_0),  theta_k = 2 / (k + 3)
    alpha_k+1 = (1 - theta) (alpha_k + theta p_k) + theta^2 p_muk(alpha_k)
    mu_k+1    = (1 - theta) mu_k
    p_k+1     = (1 - theta) p_k + theta p_muk+1(alpha_k+1)

Products: one for alpha_0, one for p_0, then one a step, of p_muk+1(alpha_k+1): all else is a combination.
Guarantee: L_mu(alpha_k) <= -|p_k|_G^2 / 2 at every step (Lemma 5), with L_mu(alpha) = mu (lse - log n) + |alpha|_G^2 / 2,
hence a separator within 2 sqrt(2 log n) / rho steps (Theorem 1), and |p_k|_G <= 2 sqrt(2 log n) / (k + 1) when there is none.
Evidence: both ends; alpha_k and p_k are points of the simplex, and both are tried for both ends.

Reference: Ramdas and Pena 2014, Algorithm 3 (NKP):

    j = argmin_j (G alpha)_j,   theta_k = 1 / (k + 1),   alpha <- (1 - theta_k) alpha + theta_k e_j

Products: one of a unit vector a step.
Guarantee, with rho > 0: while no separator was found |alpha_k|_G <= 1 / sqrt(k), so one is found within 1 / rho^2 steps; and it
goes on to the maximum margin: after k steps rho <= |alpha_k|_G <= rho + (1 + log k) / (2 rho k).
Evidence: both ends; alpha_k is a point of the simplex.

Reference: the kernelised Algorithm 1 of Ramdas and Pena 2014, KPCT of Yu et al. 2014; bound by Novikoff 1962.

    alpha <- alpha + e_j    for any j with (G alpha)_j <= 0

The ``cap`` worst of the columns that are wrong are asked together; then legal corrections are made among them until none of
them is wrong. Every correction is a mistake in Novikoff's sense, so with a positive margin

    corrections <= 1 / rho^2     in total and in any order.

Products: one of ``cap`` unit vectors for as many corrections as they allow; with ``cap`` and ``most`` of 1 it is the paper's.
Evidence: both ends; x = alpha / k after k corrections, and |x|_G <= 1 / sqrt(k) at every step.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from dfeas.geometry.kernel.combination import Combination, Ends, uniform, unit
from dfeas.geometry.kernel.distances import Floats
from dfeas.geometry.kernel.gram import GramProduct
from dfeas.geometry.kernel.kernel import Kernel
from dfeas.linalg.points import Indices
from dfeas.methods.protocol import Evidence, Facts, Method, Traits
from dfeas.methods.smooth_perceptron import theta


@dataclass(frozen=True, slots=True)
class KernelSmoothPerceptronState:
    """After step ``step``; -1 before p_0 is known."""

    step: int  # k
    n: int
    y: Combination | None  # alpha_k; None before G alpha_0 is known
    mu: float  # mu_k
    p: Combination | None  # p_k
    soft: Combination | None  # p_muk(alpha_k)
    ends: Ends


@dataclass(frozen=True, slots=True)
class KernelSmoothPerceptron(Method[KernelSmoothPerceptronState]):
    """No parameters."""

    kernel: Kernel
    traits: Traits = Traits("smooth-perceptron", kernel=0.25, weighs_all=True)

    def init(self, facts: Facts) -> KernelSmoothPerceptronState:
        return KernelSmoothPerceptronState(-1, facts.n, None, 2.0, None, None, Ends.open(facts))

    def ask(self, state: KernelSmoothPerceptronState) -> GramProduct:
        """The softmax at the next alpha and mu; alpha_0 at first."""
        return GramProduct(self.kernel, _asked(state)[:, None])

    def tell(self, state: KernelSmoothPerceptronState, answer: Floats) -> KernelSmoothPerceptronState:
        told = Combination(_asked(state), np.ascontiguousarray(answer[:, 0]))
        if state.y is None:
            return KernelSmoothPerceptronState(-1, state.n, told, state.mu, None, None, state.ends.with_simplex(told))
        y, mu = _next(state, state.y)
        p = told if state.p is None else state.p.towards(told, theta(state.step))
        ends = state.ends.with_simplex(y).with_simplex(p)
        return KernelSmoothPerceptronState(state.step + 1, state.n, y, mu, p, told, ends)

    def bound(self, facts: Facts, margin: float) -> float:
        """Products: two, and one for each of 2 sqrt(2 log n) / margin steps."""
        return 2 + 2 * sqrt(2 * log(max(2, facts.n))) / margin

    def evidence(self, state: KernelSmoothPerceptronState) -> Evidence:
        """Both ends of the bracket."""
        return state.ends.evidence(max(0, state.step))


def _asked(state: KernelSmoothPerceptronState) -> Floats:
    if state.y is None:
        return uniform(state.n)
    y, mu = _next(state, state.y)
    return softmax(-y.scores / mu)


def _next(state: KernelSmoothPerceptronState, y: Combination) -> tuple[Combination, float]:
    """The next alpha and mu; the first ones before p_0 is known."""
    if state.p is None or state.soft is None:
        return y, state.mu
    share = theta(state.step)
    return (1 - share) * (y + share * state.p) + share**2 * state.soft, (1 - share) * state.mu


def softmax(exponents: Floats) -> Floats:
    """exp (n,), over its sum."""
    found = np.exp(exponents - exponents.max())
    return np.asarray(found / found.sum())


@dataclass(frozen=True, slots=True)
class KernelNormalizedPerceptronState:
    """After k steps."""

    k: int
    w: Combination  # alpha_k: the average of k columns
    ends: Ends


@dataclass(frozen=True, slots=True)
class KernelNormalizedPerceptron(Method[KernelNormalizedPerceptronState]):
    """No parameters."""

    kernel: Kernel
    traits: Traits = Traits("normalized-perceptron", kernel=0.5)

    def init(self, facts: Facts) -> KernelNormalizedPerceptronState:
        """alpha = 0, for which every column is the worst."""
        return KernelNormalizedPerceptronState(0, Combination.zero(facts.n), Ends.open(facts))

    def ask(self, state: KernelNormalizedPerceptronState) -> GramProduct:
        return GramProduct(self.kernel, unit(len(state.w.alpha), state.w.worst)[:, None])

    def tell(self, state: KernelNormalizedPerceptronState, answer: Floats) -> KernelNormalizedPerceptronState:
        column = Combination(unit(len(answer), state.w.worst), np.ascontiguousarray(answer[:, 0]))
        w = state.w.towards(column, 1 / (state.k + 1))
        return KernelNormalizedPerceptronState(state.k + 1, w, state.ends.with_simplex(w))

    def bound(self, facts: Facts, margin: float) -> float:
        """Products: one for each of 1 / margin^2 steps."""
        return 1 / margin**2

    def evidence(self, state: KernelNormalizedPerceptronState) -> Evidence:
        """Both ends of the bracket."""
        return state.ends.evidence(state.k)


CAP = 16
"""Columns that are gathered by a product, as a rule."""


@dataclass(frozen=True, slots=True)
class KernelPerceptronState:
    """After some corrections."""

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

    kernel: Kernel
    cap: int = CAP
    most: int = 1000
    traits: Traits = Traits("perceptron", kernel=0.2)

    def init(self, facts: Facts) -> KernelPerceptronState:
        """alpha = 0, which every column is a mistake of."""
        return KernelPerceptronState(0, Combination.zero(facts.n), self.columns(facts, self.cap), Ends.open(facts))

    @staticmethod
    def columns(facts: Facts, cap: int = CAP) -> int:
        """Columns of a product that fit: each with its copies in a merge and on their way."""
        return min(cap, max(1, facts.memory // (64 * facts.n)), facts.n)

    def ask(self, state: KernelPerceptronState) -> GramProduct:
        wrong = state.wrong
        V = np.zeros((len(state.total.alpha), len(wrong)))
        V[wrong, np.arange(len(wrong))] = 1
        return GramProduct(self.kernel, V)

    def tell(self, state: KernelPerceptronState, answer: Floats) -> KernelPerceptronState:
        """Correct among the gathered columns, the worst first."""
        wrong, columns = state.wrong, np.ascontiguousarray(answer.T)
        alpha, scores = state.total.alpha.copy(), state.total.scores.copy()
        made = 0
        while made < self.most:
            place = int(scores[wrong].argmin())
            if scores[wrong[place]] > 0:
                break
            alpha[wrong[place]] += 1
            scores += columns[place]
            made += 1
        total, corrections = Combination(alpha, scores), state.corrections + made
        ends = state.ends.with_simplex((1 / max(1, corrections)) * total)
        return KernelPerceptronState(corrections, total, state.cap, ends)

    def bound(self, facts: Facts, margin: float) -> float:
        """Products: one for each of 1 / margin^2 corrections; far fewer as a rule."""
        return 1 / margin**2

    def evidence(self, state: KernelPerceptronState) -> Evidence:
        """Both ends of the bracket."""
        violated = int((state.total.scores <= 0).sum()) if state.corrections else None
        done = violated is not None and not violated
        stalled = "no point is a mistake any more, and nothing else is corrected" if done else ""
        return state.ends.evidence(state.corrections, violated, stalled)
