"""Smooth kernel perceptron.

Reference: Ramdas and Pena 2014, Algorithm 4 (SNKP). With p_mu(alpha) = softmax(-G alpha / mu):

    alpha_0 = 1/n,  mu_0 = 2,  p_0 = p_mu0(alpha_0),  theta_k = 2 / (k + 3)
    alpha_k+1 = (1 - theta) (alpha_k + theta p_k) + theta^2 p_muk(alpha_k)
    mu_k+1    = (1 - theta) mu_k
    p_k+1     = (1 - theta) p_k + theta p_muk+1(alpha_k+1)

Products: one for alpha_0, one for p_0, then one a step, of p_muk+1(alpha_k+1): all else is a combination.
Guarantee: L_mu(alpha_k) <= -|p_k|_G^2 / 2 at every step (Lemma 5), with L_mu(alpha) = mu (lse - log n) + |alpha|_G^2 / 2,
hence a separator within 2 sqrt(2 log n) / rho steps (Theorem 1), and |p_k|_G <= 2 sqrt(2 log n) / (k + 1) when there is none.
Evidence: both ends; alpha_k and p_k are points of the simplex, and both are tried for both ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from dfeas.kernels.distances import Floats
from dfeas.kernels.gram import GramProduct
from dfeas.kernels.kernel import Kernel
from dfeas.kernels.methods.combination import Combination, uniform
from dfeas.kernels.methods.ends import Ends
from dfeas.methods import Evidence, Facts
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
class KernelSmoothPerceptron:
    """No parameters."""

    kernel: Kernel
    name: str = "smooth-perceptron"

    def init(self, facts: Facts) -> KernelSmoothPerceptronState:
        """Nothing is known."""
        return KernelSmoothPerceptronState(-1, facts.n, None, 2.0, None, None, Ends.open(facts))

    def ask(self, state: KernelSmoothPerceptronState) -> GramProduct:
        """The softmax at the next alpha and mu; alpha_0 at first."""
        return GramProduct(self.kernel, _asked(state)[:, None])

    def tell(self, state: KernelSmoothPerceptronState, answer: Floats) -> KernelSmoothPerceptronState:
        """One step."""
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
