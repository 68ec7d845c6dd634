"""Mirror prox in one pass a step, for min over x in the simplex, max over y in the unit ball, of y'Ax.

Reference: Chambolle and Pock 2016, Algorithm 1 with Bregman distances (ergodic rate); Malitsky and Pock 2018, Algorithm 1 (line
search, for Euclidean distances; the proof below has it for these). Of methods that use the last gradient again (Popov 1980;
Malitsky and Tam 2020) it is the one whose x step sees the y step just made, and so may step twice as far. Scaling as in mirror
prox, alpha_x = 1 / log n, alpha_y = 2:

    y+ = project(y + (gamma Ax + d) / alpha_y)      d = gamma_last A(x - x_last): the step before, once more
    g+ = g + (gamma/alpha_x) y+                     x+ = softmax(-A'g+)

g is the running sum of (gamma/alpha_x) y, so that nothing n-dimensional is kept, and its direction is that of the average of y:
min_j a_j'y of the average is ``low`` of the soft question itself. The averages of x+ and y+, weighted by gamma, are the answer.

Test of a step, all of it known after the one read at g+:   gamma^2 |A(x+ - x)|^2 / (2 alpha_y) <= alpha_x KL(x+, x).
Guarantee: with steps that pass, |A x_average| - min_j a_j'y_average <= 2 / (sum of gamma) after every step, plus the 1e-6 that
``AdaptiveSteps`` allows for rounding. gamma = 1/L = sqrt(alpha_x alpha_y) always passes (Pinsker, |a_j| <= 1), and then the gap
after t steps, which are t + 1 passes, is at most sqrt(2 log n) / t: that of mirror prox in half the passes.
Proof: for every p on the simplex and q in the ball, with D(x, y) = alpha_x KL(p, x) + alpha_y/2 |q - y|^2, the three-point
inequalities of the two steps add up to

    gamma (q'Ax+ - y+'Ap) <= D(x, y) - D(x+, y+) + d+'(q - y+) - d'(q - y)
                             + d'(y+ - y) - alpha_y/2 |y+ - y|^2 - alpha_x KL(x+, x)

where d'(y+ - y) <= |d|^2 / (2 alpha_y) + alpha_y/2 |y+ - y|^2, and the test of the step before pays the first from its KL.
The sum telescopes to D(x_0, y_0) <= 2, less the last D, plus d'(q - y), less the last KL: at most 2 by the last test.
Passes: one for Ax at the start, then one a step, however many steps are tried on it.
Evidence: both ends of the bracket; x is a mixture of the softmaxes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from math import log, sqrt

import numpy as np

from dfeas.linalg.points import Floats
from dfeas.methods.mirror_prox import AdaptiveSteps, Steps, average, ladder_gap, project, safe_step
from dfeas.methods.protocol import Bracket, Evidence, Facts, Method, Traits
from dfeas.passes.softmin import Softmin, SoftminAnswer

LADDER = AdaptiveSteps((0.35, 0.6, 1.0, 1.7, 2.8), 0.2)
"""Five steps on one read. Three, (0.5, 1, 2), need about as many passes on halfspaces and a few more on short runs."""

LONGEST = 1e9
"""Where A(x+ - x) = 0, as for one point, every step passes."""


@dataclass(frozen=True, slots=True)
class OnePassState:
    """Between passes."""

    gamma: float  # step that was last taken
    log_n: float
    g: Floats  # (m,) x = softmax(-A'g)
    y: Floats  # (m,)
    Ax: Floats | None  # (m,) None before the first pass
    lse: float  # of g
    d: Floats  # (m,) gamma A(x - x before)
    steps: int  # accepted steps
    weight: float  # sum of gamma over accepted steps
    Ax_sum: Floats  # (m,) sum of gamma A x+
    asked: tuple[tuple[Floats, float, float, Floats], ...]  # (g, lse, gamma, A x) of each x in the average
    best: int  # how many of them make the x with |Ax| = bracket.upper
    bracket: Bracket


@dataclass(frozen=True, slots=True)
class OnePassMirrorProx(Method[OnePassState]):
    """One pass a step, with a rule for it."""

    rule: Steps = field(default=LADDER)
    traits: Traits = Traits("mirror-prox-one-pass", "one read a step", points=0.025, cones=0.025, weighs_all=True)

    def init(self, facts: Facts) -> OnePassState:
        """x uniform, y = 0, gamma = 1/L."""
        zero = np.zeros(facts.m)
        log_n = max(log(facts.n), log(2))  # one point: any positive scale will do
        return OnePassState(safe_step(log_n), log_n, zero, zero, None, 0.0, zero, 0, 0.0, zero, (), 0, Bracket())

    def ask(self, state: OnePassState) -> Softmin:
        """Soft questions, one for each gamma that is tried, and hard ones for candidates that ride along."""
        if state.Ax is None:
            return Softmin(state.g[:, None], np.ones(1))
        gammas = self._gammas(state)
        soft = [_next_g(state, gamma) for gamma in gammas]
        hard = [_next_y(state, gammas[-1]), state.Ax_sum][: 2 if state.steps else 1]
        return Softmin(np.column_stack([*soft, *hard]), np.array([1.0] * len(soft) + [0.0] * len(hard)))

    def tell(self, state: OnePassState, answer: SoftminAnswer) -> OnePassState:
        """A step: the largest that stands, or smaller ones to try."""
        if state.Ax is None:
            return replace(state, Ax=answer.mean[:, 0], lse=float(answer.lse[0]))
        last, bracket = state.Ax, state.bracket
        for y, low in zip(self.ask(state).Y.T, answer.low, strict=True):  # g+ has the direction of an average of y
            bracket = bracket.with_separator(y, float(low))
        state = replace(state, bracket=bracket)
        safe = safe_step(state.log_n)
        for i, gamma in reversed(list(enumerate(self._gammas(state)))):
            g, Ax, lse = _next_g(state, gamma), answer.mean[:, i], float(answer.lse[i])
            d = gamma * (Ax - last)
            kl = float((state.g - g) @ Ax) - lse + state.lse
            if gamma <= safe or self.rule.accept(float(d @ d) / 4 - kl / state.log_n, gamma):
                break
        else:
            return replace(state, gamma=max(state.gamma * self.rule.retry, safe))
        asked = (*state.asked, (g, lse, gamma, Ax))
        weight, Ax_sum = state.weight + gamma, state.Ax_sum + gamma * Ax
        upper = float(np.linalg.norm(Ax_sum)) / weight
        return OnePassState(
            gamma=gamma,
            log_n=state.log_n,
            g=g,
            y=_next_y(state, gamma),
            Ax=Ax,
            lse=lse,
            d=d,
            steps=state.steps + 1,
            weight=weight,
            Ax_sum=Ax_sum,
            asked=asked,
            best=len(asked) if upper < state.bracket.upper else state.best,
            bracket=state.bracket.with_upper(upper),
        )

    def _gammas(self, state: OnePassState) -> list[float]:
        return [min(state.gamma * factor, LONGEST) for factor in self.rule.factors]

    def bound(self, facts: Facts, margin: float) -> float:
        """One pass, and one for each of sqrt(2 log n) / margin steps of 1/L, the last of which must pass the margin.

        Steps of 1/L stand, and the ladder's neighbours differ by r = 1.7, so that steps are at least 1 / (r L) long. A pass on
        which none stands is paid for: the step before k of them was longer than 5^(k - 1) / (0.35 L).
        """
        return 2 + ladder_gap(self.rule) * sqrt(2 * log(max(2, facts.n))) / margin

    def evidence(self, state: OnePassState) -> Evidence:
        """Both ends of the bracket."""
        mixture = partial(average, state.asked[: state.best]) if state.best else None
        return Evidence(state.bracket, mixture, state.steps)


def _next_y(state: OnePassState, gamma: float) -> Floats:
    assert state.Ax is not None
    return project(state.y + (gamma * state.Ax + state.d) / 2)


def _next_g(state: OnePassState, gamma: float) -> Floats:
    return state.g + gamma * state.log_n * _next_y(state, gamma)
