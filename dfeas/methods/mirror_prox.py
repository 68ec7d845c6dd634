"""Mirror prox for the saddle point min over x in the simplex, max over y in the unit ball, of y'Ax.

Reference: Yu, Kilinc-Karzan and Carbonell 2014, Algorithm 1 (MPLFP); Nemirovski 2004. F(x, y) = (A'y, -Ax), entropy for x and
half the squared norm for y, Omega_x = log n, Omega_y = 1/2, alpha_x = 1 / Omega_x, alpha_y = 1 / Omega_y:

    w_x = softmax(-A'(g + (gamma/alpha_x) v_y)),   w_y = project(v_y + (gamma/alpha_y) A v_x)
    g+  = g + (gamma/alpha_x) w_y,                 v_x+ = softmax(-A'g+),   v_y+ = project(v_y + (gamma/alpha_y) A w_x)

g is the running sum of (gamma/alpha_x) w_y, so that nothing n-dimensional is kept: v_x = softmax(-A'g). The averages of w_x and
w_y, weighted by gamma, are the answer.

Guarantee: with gamma = 1/L = sqrt(alpha_x alpha_y) the gap of the averages after t steps is at most sqrt(2 log n) / t; with any
steps that pass the test  gamma <F(w), w - v+> <= V_v(v+)  it is at most 2 / (sum of gamma).
Passes: one for A v_x at the start, then two a step, at the point of w_x and at g+. The direction of g is that of the average of
w_y, so its min_j a_j'y is known without a question of its own; other candidates ride along.
Evidence: both ends of the bracket; x is a mixture of the softmaxes w_x.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from math import log, sqrt
from typing import Protocol

import numpy as np

from dfeas.linalg.points import Floats
from dfeas.methods.protocol import Bracket, Evidence, Facts, Method, Mixture, Traits
from dfeas.passes.softmin import Softmin, SoftminAnswer


class Steps(Protocol):
    """A rule for gamma: several are tried on the same two reads, and the largest that stands is taken."""

    @property
    def factors(self) -> tuple[float, ...]:
        """Ascending factors of the last gamma to try."""

    def accept(self, excess: float, gamma: float) -> bool:
        """Whether a step stands; ``excess`` is gamma <F(w), w - v+> - V_v(v+)."""

    @property
    def retry(self) -> float:
        """Factor of gamma when none stands."""


@dataclass(frozen=True, slots=True)
class FixedSteps:
    """gamma = 1/L throughout: what the theorem asks; the test holds by itself."""

    factors: tuple[float, ...] = (1.0,)
    retry: float = 1.0

    def accept(self, excess: float, gamma: float) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class AdaptiveSteps:
    """A line search that costs no read. One step a trial, grown by 1.2 and redone when it fails, needs 1.7 times the passes."""

    factors: tuple[float, ...] = (0.7, 1.0, 1.4)
    retry: float = 0.4

    def accept(self, excess: float, gamma: float) -> bool:
        """Whether the test holds, up to the rounding of float32 products."""
        return excess <= 1e-6 * gamma


@dataclass(frozen=True, slots=True)
class MirrorProxState:
    """Between passes. ``half`` is the answer at the points of w while the second pass of the step is awaited."""

    gamma: float  # step that was last taken
    log_n: float
    g: Floats  # (m,) v_x = softmax(-A'g)
    v: Floats  # (m,) v_y
    Av: Floats | None  # (m,) A v_x; None before the first pass
    lse: float  # of g
    half: tuple[Floats, Floats] | None  # A w_x (m, f) and lse (f,) for the f steps that are tried
    steps: int  # accepted steps
    weight: float  # sum of gamma over accepted steps
    Ax_sum: Floats  # (m,) sum of gamma A w_x
    asked: tuple[tuple[Floats, float, float, Floats], ...]  # (point, lse, gamma, A w_x) of each w_x in the average
    best: int  # how many of them make the x with |Ax| = bracket.upper
    bracket: Bracket


@dataclass(frozen=True, slots=True)
class MirrorProx(Method[MirrorProxState]):
    """Mirror prox with a rule for the step."""

    rule: Steps = field(default_factory=AdaptiveSteps)
    traits: Traits = Traits("mirror-prox", "two reads a step", points=0.03, cones=0.03, weighs_all=True)

    def init(self, facts: Facts) -> MirrorProxState:
        """v_x uniform, v_y = 0, gamma = 1/L."""
        zero = np.zeros(facts.m)
        log_n = max(log(facts.n), log(2))  # one point: any positive scale will do
        return MirrorProxState(safe_step(log_n), log_n, zero, zero, None, 0.0, None, 0, 0.0, zero, (), 0, Bracket())

    def ask(self, state: MirrorProxState) -> Softmin:
        """Soft questions, one for each gamma that is tried, and hard ones for candidates that ride along."""
        if state.Av is None:
            return Softmin(state.g[:, None], np.ones(1))
        gammas = self._gammas(state)
        if state.half is None:
            # the direction of Ax: at the optimum it is the widest separator
            return _question([_point(state, gamma) for gamma in gammas], [state.Ax_sum] if state.steps else [])
        return _question([_next_g(state, gamma) for gamma in gammas], [_next_v(state, gammas[-1], state.half[0][:, -1])])

    def tell(self, state: MirrorProxState, answer: SoftminAnswer) -> MirrorProxState:
        if state.Av is None:
            return replace(state, Av=answer.mean[:, 0], lse=float(answer.lse[0]))
        tried = len(self.rule.factors)
        bracket = state.bracket
        for y, low in zip(self.ask(state).Y.T, answer.low, strict=True):  # g+ has the direction of the average of w_y
            bracket = bracket.with_separator(y, float(low))
        state = replace(state, bracket=bracket)
        mean, lse = answer.mean[:, :tried], answer.lse[:tried]
        return replace(state, half=(mean, lse)) if state.half is None else self._step(state, mean, lse)

    def _step(self, state: MirrorProxState, Av_next: Floats, lse_next: Floats) -> MirrorProxState:
        """Take the largest step that stands, or try smaller ones."""
        assert state.half is not None
        Aw, lse_w = state.half
        alpha_x, alpha_y = 1 / state.log_n, 2.0
        safe = safe_step(state.log_n)
        for i, gamma in reversed(list(enumerate(self._gammas(state)))):
            w, g_next, v_next = _w(state, gamma), _next_g(state, gamma), _next_v(state, gamma, Aw[:, i])
            # <F(w), w - v+> = w_y'A(w_x - v_x+) - (A w_x)'(w_y - v_y+)
            gain = gamma * float(Aw[:, i] @ v_next - w @ Av_next[:, i])
            kl = float((state.g - g_next) @ Av_next[:, i]) - float(lse_next[i]) + state.lse
            distance = alpha_x * kl + alpha_y / 2 * float((v_next - state.v) @ (v_next - state.v))
            if gamma <= safe or self.rule.accept(gain - distance, gamma):
                break
        else:
            return replace(state, gamma=max(state.gamma * self.rule.retry, safe), half=None)
        asked = (*state.asked, (_point(state, gamma), float(lse_w[i]), gamma, Aw[:, i]))
        weight, Ax_sum = state.weight + gamma, state.Ax_sum + gamma * Aw[:, i]
        upper = float(np.linalg.norm(Ax_sum)) / weight
        return MirrorProxState(
            gamma=gamma,
            log_n=state.log_n,
            g=g_next,
            v=v_next,
            Av=Av_next[:, i],
            lse=float(lse_next[i]),
            half=None,
            steps=state.steps + 1,
            weight=weight,
            Ax_sum=Ax_sum,
            asked=asked,
            best=len(asked) if upper < state.bracket.upper else state.best,
            bracket=state.bracket.with_upper(upper),
        )

    def _gammas(self, state: MirrorProxState) -> list[float]:
        return [state.gamma * factor for factor in self.rule.factors]

    def bound(self, facts: Facts, margin: float) -> float:
        """One pass, and two for each of sqrt(2 log n) / margin steps of 1/L.

        Steps of 1/L stand, and those that are tried differ by r = 1.43 at most, so that steps are at least 1 / (r L) long. A
        step tried in vain is paid for: the step before k of them was longer than 2.5^(k - 1) / (0.7 L).
        """
        return 1 + 2 * ladder_gap(self.rule) * sqrt(2 * log(max(2, facts.n))) / margin

    def evidence(self, state: MirrorProxState) -> Evidence:
        """Both ends of the bracket."""
        mixture = partial(average, state.asked[: state.best]) if state.best else None
        return Evidence(state.bracket, mixture, state.steps)


FIXED = MirrorProx(
    FixedSteps(),
    Traits("mirror-prox-fixed", "two reads a step, the theorem's step", points=0.2, cones=0.2, weighs_all=True),
)


def average(asked: tuple[tuple[Floats, float, float, Floats], ...]) -> Mixture:
    """The average of softmaxes: (point, lse, gamma, A softmax) of each."""
    point, lse, gamma, mean = zip(*asked, strict=True)
    share = np.array(gamma) / sum(gamma)
    return Mixture(np.column_stack(point), np.ones(len(asked)), np.array(lse), share, np.column_stack(mean))


def _point(state: MirrorProxState, gamma: float) -> Floats:
    """w_x = softmax(-A' of this)."""
    return state.g + gamma * state.log_n * state.v


def _w(state: MirrorProxState, gamma: float) -> Floats:
    assert state.Av is not None
    return project(state.v + gamma / 2 * state.Av)


def _next_g(state: MirrorProxState, gamma: float) -> Floats:
    return state.g + gamma * state.log_n * _w(state, gamma)


def _next_v(state: MirrorProxState, gamma: float, Aw: Floats) -> Floats:
    return project(state.v + gamma / 2 * Aw)


def ladder_gap(rule: Steps) -> float:
    """The largest factor between steps that are tried together; 1 for one step."""
    return max([1.0, *(b / a for a, b in pairwise(rule.factors))])


def safe_step(log_n: float) -> float:
    """1/L. Such a step needs no test, and gets none: in float32 the KL of a short step far out can be all rounding."""
    return sqrt(2 / log_n)


def project(y: Floats) -> Floats:
    """The nearest point of the unit ball."""
    length = float(np.linalg.norm(y))
    return y / length if length > 1 else y


def _question(soft: list[Floats], hard: list[Floats]) -> Softmin:
    """Soft questions with mu = 1, and min_j a_j'y of some y."""
    return Softmin(np.column_stack([*soft, *hard]), np.array([1.0] * len(soft) + [0.0] * len(hard)))
