"""Mirror prox in a kernel's space.

Reference: Yu, Kilinc-Karzan and Carbonell 2014, Algorithm 1 and section 6.1 (MPKFP); Nemirovski 2004. y = sum_j g_j a_j is kept
by g, F(x, y) = (G g, -x), entropy for x and half the squared norm for y, Omega_x = log n, Omega_y = 1/2, alpha = 1 / Omega:

    w_x = softmax(log v_x - (gamma/alpha_x) G v_g),    w_g = project(v_g + (gamma/alpha_y) v_x)
    v_x+ = softmax(log v_x - (gamma/alpha_x) G w_g),   v_g+ = project(v_g + (gamma/alpha_y) w_x)

project(g) = g / max(1, |g|_G). The averages of w_x and w_g, weighted by gamma, are the answer; v_x is the softmax of -log n
times the sum of gamma G w_g.

Products: one for v_x at the start, then one a step, of w_x and v_x+ together for each gamma that is tried: G w_g, from which
v_x+ follows, is known.
Guarantee: as for the linear twin: with gamma = 1/L the gap of the averages after t steps is at most sqrt(2 log n) / t; with any
steps that pass the test  gamma <F(w), w - v+> <= V_v(v+)  it is at most 2 / (sum of gamma).
Evidence: both ends of the bracket.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import log, sqrt

import numpy as np

from dfeas.geometry.kernel.combination import Combination, Ends, uniform
from dfeas.geometry.kernel.distances import Floats
from dfeas.geometry.kernel.gram import GramProduct
from dfeas.geometry.kernel.kernel import Kernel
from dfeas.geometry.kernel.perceptrons import softmax
from dfeas.methods.mirror_prox import AdaptiveSteps, Steps, ladder_gap, safe_step
from dfeas.methods.protocol import Evidence, Facts, Method, Traits


@dataclass(frozen=True, slots=True)
class KernelMirrorProxState:
    """After some steps."""

    n: int
    gamma: float  # step that was last taken
    log_n: float
    x: Combination | None  # v_x; None before the first product
    v: Combination  # v_g
    steps: int  # accepted steps
    weight: float  # sum of gamma over accepted steps
    x_sum: Combination  # of gamma w_x
    y_sum: Combination  # of gamma w_g
    ends: Ends


@dataclass(frozen=True, slots=True)
class Trial:
    """What is known of a step of some gamma before its product."""

    gamma: float
    w: Combination  # w_g
    w_x: Floats  # (n,)
    x_next: Floats  # (n,) v_x+
    kl: float  # of v_x+ from v_x

    @classmethod
    def of(cls, state: KernelMirrorProxState, x: Combination, gamma: float) -> Trial:
        """Softmaxes of scores that are known."""
        w = project(state.v + (gamma / 2) * x)
        before = -state.log_n * state.y_sum.scores
        w_x = softmax(before - gamma * state.log_n * state.v.scores)
        moved = -gamma * state.log_n * w.scores
        x_next = softmax(before + moved)
        kl = float(x_next @ moved) - _lse(before + moved) + _lse(before)
        return cls(gamma, w, w_x, x_next, kl)


@dataclass(frozen=True, slots=True)
class KernelMirrorProx(Method[KernelMirrorProxState]):
    """Mirror prox with a rule for the step."""

    kernel: Kernel
    rule: Steps = field(default_factory=AdaptiveSteps)
    traits: Traits = Traits("mirror-prox", kernel=0.2, weighs_all=True)

    def init(self, facts: Facts) -> KernelMirrorProxState:
        """v_x uniform, v_g = 0, gamma = 1/L."""
        log_n = max(log(facts.n), log(2))  # one point: any positive scale will do
        zero = Combination.zero(facts.n)
        return KernelMirrorProxState(facts.n, safe_step(log_n), log_n, None, zero, 0, 0.0, zero, zero, Ends.open(facts))

    def ask(self, state: KernelMirrorProxState) -> GramProduct:
        """w_x and v_x+ for each gamma that is tried."""
        if state.x is None:
            return GramProduct(self.kernel, uniform(state.n)[:, None])
        trials = self._trials(state, state.x)
        return GramProduct(self.kernel, np.column_stack([x for trial in trials for x in (trial.w_x, trial.x_next)]))

    def tell(self, state: KernelMirrorProxState, answer: Floats) -> KernelMirrorProxState:
        """Take the largest step that stands, or try smaller ones."""
        columns = np.ascontiguousarray(answer.T)
        if state.x is None:
            x = Combination(uniform(state.n), columns[0])
            return replace(state, x=x, ends=state.ends.with_simplex(x))
        safe = safe_step(state.log_n)
        for i, trial in reversed(list(enumerate(self._trials(state, state.x)))):
            w_x, x_next = Combination(trial.w_x, columns[2 * i]), Combination(trial.x_next, columns[2 * i + 1])
            v_next = project(state.v + (trial.gamma / 2) * w_x)
            # <F(w), w - v+> = w_g'G(w_x - v_x+) - w_x'G(w_g - v_g+)
            gain = trial.gamma * (w_x.dot(v_next) - trial.w.dot(x_next))
            distance = trial.kl / state.log_n + (v_next + -1.0 * state.v).square
            if trial.gamma <= safe or self.rule.accept(gain - distance, trial.gamma):
                return self._step(state, trial, w_x, x_next, v_next)
        return replace(state, gamma=max(state.gamma * self.rule.retry, safe))

    def _step(
        self, state: KernelMirrorProxState, trial: Trial, w_x: Combination, x_next: Combination, v_next: Combination
    ) -> KernelMirrorProxState:
        weight = state.weight + trial.gamma
        x_sum, y_sum = state.x_sum + trial.gamma * w_x, state.y_sum + trial.gamma * trial.w
        return replace(
            state,
            gamma=trial.gamma,
            x=x_next,
            v=v_next,
            steps=state.steps + 1,
            weight=weight,
            x_sum=x_sum,
            y_sum=y_sum,
            ends=state.ends.with_separator(y_sum).with_simplex((1 / weight) * x_sum),
        )

    def _trials(self, state: KernelMirrorProxState, x: Combination) -> list[Trial]:
        return [Trial.of(state, x, state.gamma * factor) for factor in self.rule.factors]

    def bound(self, facts: Facts, margin: float) -> float:
        """Products: one, and one for each of sqrt(2 log n) / margin steps of 1/L; steps that are tried in vain are paid for, as
        in the linear twin.
        """
        return 1 + ladder_gap(self.rule) * sqrt(2 * log(max(2, facts.n))) / margin

    def evidence(self, state: KernelMirrorProxState) -> Evidence:
        """Both ends of the bracket."""
        return state.ends.evidence(state.steps)


FIXED = Traits("mirror-prox-fixed", kernel=0.5, weighs_all=True)


def project(y: Combination) -> Combination:
    """The nearest point of the unit ball."""
    length = y.length
    return (1 / length) * y if length > 1 else y


def _lse(exponents: Floats) -> float:
    """log of the sum of exp."""
    top = float(exponents.max())
    return top + log(float(np.exp(exponents - top).sum()))
