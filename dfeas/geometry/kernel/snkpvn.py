"""Smooth kernel perceptron - von Neumann, once and iterated: the smooth perceptron with Euclidean prox, which ends either way.

Reference: Ramdas and Pena 2014, Algorithm 6 (SNKPVN). With d_q(p) = |p - q|^2 / 2, any lambda >= the largest eigenvalue of G,

    p^q_mu(alpha) = argmin over the simplex of <alpha, p>_G + mu d_q(p) = projection of q - G alpha / mu
    alpha_0 = q,  mu_0 = 2 lambda,  p_0 = p^q_mu0(alpha_0),  theta_k = 2 / (k + 3)
    alpha_k+1 = (1 - theta) (alpha_k + theta p_k) + theta^2 p^q_muk(alpha_k)
    mu_k+1    = (1 - theta) mu_k
    p_k+1     = (1 - theta) p_k + theta p^q_muk+1(alpha_k+1)

until G alpha_k > 0, or |p_k|_G < delta. The paper takes lambda = n. Where K is never negative, as that of a distance, no
eigenvalue is above the largest row sum of K~: one product gives it.

Products: one for lambda where K is of a distance, one for G q, then one a step.
Guarantee: -|p_k|_G^2 / 2 >= L^q_mu(alpha_k) at every step (Lemmas 8 and 9), with L^q_mu(alpha) = max over the simplex of
-<alpha, p>_G - mu d_q(p), + |alpha|_G^2 / 2; hence with rho > delta a separator within 2 sqrt(2 lambda) / rho steps.
Evidence: both ends; alpha_k and p_k are points of the simplex.

Reference: Ramdas and Pena 2014, Algorithm 7 (ISNKPVN): loops of ``snkpvn``, the first one around q = 1/n, each to the accuracy
delta = |q|_G / gamma; then q <- p_k and again.

Products: as for ``snkpvn``, one a step.
Guarantee (Theorem 4): with rho > 0 a loop ends within 2 sqrt(2 lambda) / rho steps, and log(1 / rho) / log(gamma) loops do.
Evidence: both ends.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, log, sqrt

import numpy as np

from dfeas.geometry.kernel.combination import Combination, Ends, uniform
from dfeas.geometry.kernel.distances import Floats
from dfeas.geometry.kernel.gram import GramProduct
from dfeas.geometry.kernel.kernel import DISTANCES, Kernel
from dfeas.methods.ispvn import GAMMA
from dfeas.methods.protocol import Evidence, Facts, Method, Traits
from dfeas.methods.smooth_perceptron import theta

SAFE = 1.0 + 1e-5
"""Rounding in row sums of tiles in float32 is below this."""


@dataclass(frozen=True, slots=True)
class Loop:
    """At step k, before p^q_muk(alpha_k) is known."""

    k: int
    q: Floats  # (n,)
    y: Combination  # alpha_k
    mu: float  # mu_k
    p: Combination | None  # p_k-1; None at k = 0

    @classmethod
    def around(cls, q: Combination, lambda_: float) -> Loop:
        return cls(0, q.alpha, q, 2 * lambda_, None)

    def asked(self) -> Floats:
        return projected(self.q - self.y.scores / self.mu)

    def told(self, near: Combination) -> tuple[Combination, Loop]:
        """p_k, and the loop at the next step."""
        p = near if self.p is None else self.p.towards(near, theta(self.k - 1))
        step = theta(self.k)
        y = (1 - step) * (self.y + step * p) + step**2 * near
        return p, Loop(self.k + 1, self.q, y, (1 - step) * self.mu, p)


@dataclass(frozen=True, slots=True)
class SnkpvnState:
    """Which question comes next follows from what is known."""

    n: int
    lambda_: float  # no eigenvalue of G is above it; 0 before it is known
    rounds: int  # loops begun
    steps: int  # of all loops
    loop: Loop | None  # None before G 1/n is known
    reached: float  # the last |p_k|_G
    ends: Ends

    def asked(self) -> Floats:
        """What is multiplied next (n,)."""
        if self.lambda_ == 0:
            return np.ones(self.n)
        return uniform(self.n) if self.loop is None else self.loop.asked()


def first_state(kernel: Kernel, facts: Facts) -> SnkpvnState:
    """Nothing is known, but lambda = n where row sums tell nothing."""
    return SnkpvnState(facts.n, 0.0 if kernel.name in DISTANCES else float(facts.n), 0, 0, None, 1.0, Ends.open(facts))


def question(kernel: Kernel, state: SnkpvnState) -> GramProduct:
    """The row sums of K~; or a product with G."""
    return GramProduct(kernel, state.asked()[:, None], signed=state.lambda_ > 0)


def after(state: SnkpvnState, answer: Floats) -> SnkpvnState:
    """What was asked for, and p_k of the loop if it was that."""
    if state.lambda_ == 0:
        return replace(state, lambda_=SAFE * float(answer.max()))
    told = Combination(state.asked(), np.ascontiguousarray(answer[:, 0]))
    if state.loop is None:
        return begun(replace(state, ends=state.ends.with_simplex(told)), told)
    p, loop = state.loop.told(told)
    ends = state.ends.with_simplex(p).with_simplex(loop.y)
    return replace(state, steps=state.steps + 1, loop=loop, reached=p.length, ends=ends)


def begun(state: SnkpvnState, q: Combination) -> SnkpvnState:
    """A loop around q."""
    return replace(state, rounds=state.rounds + 1, loop=Loop.around(q, state.lambda_), reached=q.length)


@dataclass(frozen=True, slots=True)
class Snkpvn(Method[SnkpvnState]):
    """One loop around 1/n, to the accuracy ``delta``."""

    kernel: Kernel
    delta: float = 5e-4
    traits: Traits = Traits("snkpvn", kernel=0.03, weighs_all=True)

    def init(self, facts: Facts) -> SnkpvnState:
        return first_state(self.kernel, facts)

    def ask(self, state: SnkpvnState) -> GramProduct:
        return question(self.kernel, state)

    def tell(self, state: SnkpvnState, answer: Floats) -> SnkpvnState:
        return state if state.reached < self.delta else after(state, answer)

    def bound(self, facts: Facts, margin: float) -> float:
        """Products: two, and one for each of 2 sqrt(2 n) / margin steps."""
        return 3 + 2 * sqrt(2 * facts.n) / margin

    def evidence(self, state: SnkpvnState) -> Evidence:
        """Both ends of the bracket."""
        stalled = f"|x|_G is below delta = {self.delta:g}, which is where it ends" if state.reached < self.delta else ""
        return state.ends.evidence(state.steps, stalled=stalled)


def projected(v: Floats) -> Floats:
    """The nearest point of the simplex to v (n,), by sorting."""
    order = np.sort(v)[::-1]
    threshold = (np.cumsum(order) - 1) / np.arange(1, len(v) + 1)
    last = int(np.flatnonzero(order > threshold)[-1])
    found = np.maximum(v - threshold[last], 0)
    return np.asarray(found / found.sum())


@dataclass(frozen=True, slots=True)
class KernelIspvnState:
    """A loop, and the accuracy that it is to reach."""

    inner: SnkpvnState
    delta: float  # |q|_G / gamma; 0 before q is known

    @property
    def lost(self) -> bool:
        return self.delta > 0 and (GAMMA * self.delta) ** 2 <= self.inner.ends.floor


@dataclass(frozen=True, slots=True)
class KernelIspvn(Method[KernelIspvnState]):
    """No parameters."""

    kernel: Kernel
    traits: Traits = Traits("ispvn", kernel=0.02, weighs_all=True)

    def init(self, facts: Facts) -> KernelIspvnState:
        return KernelIspvnState(first_state(self.kernel, facts), 0.0)

    def ask(self, state: KernelIspvnState) -> GramProduct:
        return question(self.kernel, state.inner)

    def tell(self, state: KernelIspvnState, answer: Floats) -> KernelIspvnState:
        """One step; a new loop when this one is done."""
        if state.lost:
            return state
        inner, loop = after(state.inner, answer), state.inner.loop
        if inner.loop is None:
            return KernelIspvnState(inner, 0.0)
        if loop is None:
            return KernelIspvnState(inner, inner.reached / GAMMA)
        if inner.reached >= state.delta:
            return KernelIspvnState(inner, state.delta)
        assert inner.loop.p is not None
        return KernelIspvnState(begun(inner, inner.loop.p), inner.reached / GAMMA)

    def bound(self, facts: Facts, margin: float) -> float:
        """Products: two, and one for each of 2 sqrt(2 n) / margin steps of each of log(1 / margin) loops."""
        loops = max(1, ceil(log(1 / margin) / log(GAMMA)))
        return 2 + loops * (1 + 2 * sqrt(2 * facts.n) / margin)

    def evidence(self, state: KernelIspvnState) -> Evidence:
        """Both ends of the bracket."""
        stalled = "|x|_G is as small as rounding lets it be" if state.lost else ""
        return state.inner.ends.evidence(state.inner.steps, stalled=stalled)
