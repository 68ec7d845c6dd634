"""Smooth kernel perceptron - von Neumann, once and iterated: the smooth perceptron with Euclidean prox, which ends either way.

Reference: Ramdas and Pena 2014, Algorithm 6 (SNKPVN). With d_q(p) = |p - q|^2 / 2, any lambda >= the largest eigenvalue of G,

    p^q_mu(alpha) = argmin over the simplex of <alpha, p>_G + mu d_q(p) = projection of q - G alpha / mu
    alpha_0 = q,  mu_0 = 2 lambda,  p_0 = p^q_mu0(alpha_0),  theta_k = 2 / (k + 3)
    alpha_k+1 = (1 - theta) (alpha_k + theta p_k) + theta^2 p^q_muk(alpha_k)
    mu_k+1    = (1 - theta) mu_k
    p_k+1     = (1 - theta) p_k + theta p^q_muk+1(alpha_k+1)

until G alpha_k > 0, or |p_k|_G < delta, 0.0005 or that of ``snkpvn:delta=0.01``. The paper takes lambda = n. Where K is
never negative, as that of a distance, no eigenvalue is above the largest row sum of K~: one product gives it.

Products: one for lambda where K is of a distance, one for G q, then one a step.
Guarantee: -|p_k|_G^2 / 2 >= L^q_mu(alpha_k) at every step (Lemmas 8 and 9), with L^q_mu(alpha) = max over the simplex of
-<alpha, p>_G - mu d_q(p), + |alpha|_G^2 / 2; hence with rho > delta a separator within 2 sqrt(2 lambda) / rho steps.
Evidence: both ends; alpha_k and p_k are points of the simplex.

Reference: Ramdas and Pena 2014, Algorithm 7 (ISNKPVN): loops of it, the first one around q = 1/n, each to the accuracy
delta = |q|_G / gamma; then q <- p_k and again. gamma is 2, or that of ``ispvn:gamma=4``; lambda is n for ``ispvn:lambda=n``.

Products: as for one loop, one a step.
Guarantee (Theorem 4): with rho > 0 a loop ends within 2 sqrt(2 lambda) / rho steps, and log(1 / rho) / log(gamma) loops do.
Evidence: both ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import Any

import numpy as np

from dfeas.linalg.points import Floats
from dfeas.methods.ispvn import DELTA, GAMMA, read_options
from dfeas.methods.protocol import Ends, Evidence, Facts, Method, Traits
from dfeas.methods.smooth_perceptron import theta
from dfeas.methods.vector import Combination, Products, length, uniform
from dfeas.records import replace


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

    def question(self) -> Floats:
        return project_to_simplex(self.q - self.y.scores / self.mu)

    def after(self, near: Combination) -> tuple[Combination, Loop]:
        """p_k, and the loop at the next step."""
        share, step = theta(self.k - 1), theta(self.k)
        p = near if self.p is None else (1 - share) * self.p + share * near
        y = (1 - step) * (self.y + step * p) + step**2 * near
        return p, Loop(self.k + 1, self.q, y, (1 - step) * self.mu, p)


@dataclass(frozen=True, slots=True)
class SnkpvnState:
    """Which question comes next follows from what is known."""

    zero: Combination
    lambda_: float  # no eigenvalue of G is above it; 0 before it is known
    rounds: int  # loops begun
    steps: int  # of all loops
    loop: Loop | None  # None before G 1/n is known
    reached: float  # the last |p_k|_G
    delta: float  # that the loop is to reach; 0 before it is known
    ends: Ends

    def question(self) -> Floats:
        n = len(self.zero.alpha)
        if self.lambda_ == 0:
            return np.ones(n)
        return uniform(n) if self.loop is None else self.loop.question()


@dataclass(frozen=True, slots=True)
class Snkpvn(Method[SnkpvnState]):
    """One loop around 1/n, to the accuracy ``delta``; with 0 loop after loop, each to its own accuracy."""

    delta: float = DELTA
    traits: Traits = Traits("snkpvn", kernel=0.03, weighs_all=True)
    gamma: float = GAMMA
    of_n: bool = False  # whether lambda is n, though row sums tell a smaller one

    def with_options(self, name: str) -> Snkpvn:
        gamma, delta, of_n = read_options(self, name)
        return replace(self, gamma=gamma, delta=delta, of_n=of_n, traits=replace(self.traits, name=name))

    def init(self, facts: Facts) -> SnkpvnState:
        """Nothing is known, but lambda = n where row sums tell nothing."""
        assert isinstance(facts.zero, Combination), "in a kernel's space"
        lambda_ = 0.0 if facts.row_sums and not self.of_n else float(facts.n)
        return SnkpvnState(facts.zero, lambda_, 0, 0, None, 1.0, self.delta, Ends())

    def ask(self, state: SnkpvnState) -> Any:
        """The row sums of K~; or a product with G."""
        return Products(state.question()[:, None], state.zero.floor, signed=state.lambda_ > 0)

    def tell(self, state: SnkpvnState, answer: Floats) -> SnkpvnState:
        if self._stop_reason(state):
            return state
        if state.lambda_ == 0:
            # 1.0 + 1e-5: rounding in row sums of tiles in float32 is below this
            return replace(state, lambda_=(1.0 + 1e-5) * float(answer.max()))
        product = Combination(state.question(), np.ascontiguousarray(answer[:, 0]), state.zero.floor)
        if state.loop is None:
            return self._around(replace(state, ends=state.ends.with_simplex(product)), product)
        p, loop = state.loop.after(product)
        ends = state.ends.with_simplex(p).with_simplex(loop.y)
        state = replace(state, steps=state.steps + 1, loop=loop, reached=length(p), ends=ends)
        return self._around(state, p) if not self.delta and state.reached < state.delta else state

    def _around(self, state: SnkpvnState, q: Combination) -> SnkpvnState:
        size = length(q)
        loop, delta = Loop.around(q, state.lambda_), self.delta or size / self.gamma
        return replace(state, rounds=state.rounds + 1, loop=loop, reached=size, delta=delta)

    def _stop_reason(self, state: SnkpvnState) -> str:
        if self.delta:
            return f"|x|_G is below delta = {self.delta:g}, which is where it ends" if state.reached < self.delta else ""
        lost = state.delta > 0 and (self.gamma * state.delta) ** 2 <= state.zero.floor
        return "|x|_G is as small as rounding lets it be" if lost else ""

    def bound(self, facts: Facts, margin: float) -> float:
        """Products: two, and one for each of 2 sqrt(2 n) / margin steps of each loop, of which there are log(1 / margin)."""
        steps = 2 * sqrt(2 * facts.n) / margin
        return 3 + steps if self.delta else 2 + max(1, ceil(log(1 / margin) / log(self.gamma))) * (1 + steps)

    def evidence(self, state: SnkpvnState) -> Evidence:
        return state.ends.evidence(state.steps, stalled=self._stop_reason(state))


ITERATED = Snkpvn(0.0, Traits("ispvn", kernel=0.02, weighs_all=True))


def project_to_simplex(v: Floats) -> Floats:
    """The nearest point of the simplex to v (n,), by sorting."""
    order = np.sort(v)[::-1]
    threshold = (np.cumsum(order) - 1) / np.arange(1, len(v) + 1)
    last = int(np.flatnonzero(order > threshold)[-1])
    nearest = np.maximum(v - threshold[last], 0)
    return np.asarray(nearest / nearest.sum())
