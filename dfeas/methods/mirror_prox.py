"""Mirror prox for the saddle point min over x in the simplex, max over y in the unit ball, of y'Ax.

Reference: Yu, Kilinc-Karzan and Carbonell 2014, Algorithm 1 (MPLFP); Nemirovski 2004. F(x, y) = (A'y, -Ax), entropy for x and
half the squared norm for y, Omega_x = log n, Omega_y = 1/2, alpha_x = 1 / Omega_x, alpha_y = 1 / Omega_y:

    w_x = softmax(-A'(g + (gamma/alpha_x) v_y)),   w_y = project(v_y + (gamma/alpha_y) A v_x)
    g+  = g + (gamma/alpha_x) w_y,                 v_x+ = softmax(-A'g+),   v_y+ = project(v_y + (gamma/alpha_y) A w_x)

g is the running sum of (gamma/alpha_x) w_y, so that nothing n-dimensional is kept: v_x = softmax(-A'g). The averages of w_x and
w_y, weighted by gamma, are the answer.

Guarantee: with gamma = 1/L = sqrt(alpha_x alpha_y) the gap of the averages after t steps is at most sqrt(2 log n) / t; with any
steps that pass the test  gamma <F(w), w - v+> <= V_v(v+)  it is at most 2 / (sum of gamma).
Passes: one for A v_x at the start, then one a step: the points of w_x and of g+ are known before it, for w_y needs A v_x alone.
The direction of g is that of the average of w_y, so its min_j a_j'y is known without a question of its own.
Evidence: both ends of the bracket; x is a mixture of the softmaxes w_x.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import log, sqrt
from typing import Any

import numpy as np
from msgspec import Struct, field

from dfeas.methods.mixture import Average, Softmax
from dfeas.methods.protocol import Bracket, Evidence, Facts, Method, MethodCost, S, Traits, x_of
from dfeas.methods.vector import ScoredAnswer, Vector, column, length, softmin, upper_end
from dfeas.passes.softmin import SoftminAnswer
from dfeas.records import replace


class Steps(Struct, frozen=True):
    """A rule for gamma: several are tried on the same read, and the largest that stands is taken. One step a trial, grown by
    1.2 and redone when it fails, needs 1.7 times the passes.
    """

    factors: tuple[float, ...] = (0.7, 1.0, 1.4)  # of the last gamma, ascending
    retry: float = 0.4  # factor of gamma when none stands
    fewer: tuple[Steps, ...] = ()  # rules that try fewer, where sums of many long vectors take more memory than there is

    def accept(self, excess: float, gamma: float) -> bool:
        """Whether gamma <F(w), w - v+> - V_v(v+) lets a step stand, up to the rounding of float32 products."""
        return excess <= 1e-6 * gamma


CONSTANT = Steps((1.0,), 1.0)
"""gamma = 1/L throughout: what the theorem asks, and needs no test."""
TWO = Steps((0.8, 1.6))
"""On halfspaces a tenth more passes than three or five steps on a read."""
THREE = Steps(fewer=(TWO,))
"""Its default."""


class EuclideanBall(Struct, frozen=True):
    """|y|_2 <= 1, with half the squared norm: Omega_y = 1/2."""

    def alpha(self, m: int) -> float:
        """1 / Omega_y."""
        return 2.0

    def least(self, margin: float, m: int) -> float:
        """The margin over this ball, of points with such a margin over the unit ball."""
        return margin

    def move(self, z: Any, change: Any) -> Any:
        """What tells the next y, from what tells y and the gradient over alpha."""
        return project(z + change)

    def y(self, z: Any) -> Any:
        return z

    def square(self, d: Any) -> float:
        """Of the dual norm."""
        return float(d @ d)


class CrossPolytope(EuclideanBall, frozen=True):
    """|y|_1 <= 1, with the entropy of weights on features and their negatives: (u+, u-) = softmax(z, -z), y = u+ - u-, and
    Omega_y = log(2 m).
    """

    def alpha(self, m: int) -> float:
        return 1 / log(2 * m)

    def least(self, margin: float, m: int) -> float:
        """|y|_1 <= sqrt(m) |y|_2."""
        return margin / sqrt(m)

    def move(self, z: Any, change: Any) -> Any:
        return z + change

    def y(self, z: Any) -> Any:
        top = float(np.abs(z).max())
        plus, minus = np.exp(z - top), np.exp(-z - top)
        return (plus - minus) / (plus.sum() + minus.sum())

    def square(self, d: Any) -> float:
        """|y|_1 of the weights is at least that of y, and |d|_inf its dual norm."""
        return float(np.abs(d).max()) ** 2


class LadderState(Struct, frozen=True, kw_only=True):
    """What is known between two passes of steps, and of the averages."""

    gamma: float  # step that was last taken
    safe: float  # 1/L, which the theorem always allows
    log_n: float
    g: Vector  # x = softmax(-A'g)
    lse: float = 0.0  # of g
    steps: int = 0  # accepted steps
    weight: float = 0.0  # sum of gamma over accepted steps
    Ax_sum: Vector  # sum of gamma A x, of the x in the average
    average: Average = field(default_factory=Average)  # of these x; its best has |Ax| = bracket.upper
    bracket: Bracket = field(default_factory=Bracket)
    rung: int = 0  # which of the rules says how long steps are


class Ladder(Method[S]):
    """Steps of some lengths are tried on the same reads, and the largest that stands is taken."""

    @property
    @abstractmethod
    def rule(self) -> Steps:
        """Which lengths, and when one stands, unless memory is short."""

    @property
    def ball(self) -> EuclideanBall:
        """Where y is."""
        return EuclideanBall()

    def begin(self, facts: Facts) -> dict[str, Any]:
        """What a state is before the first pass: x = 1/n, and steps of 1/L."""
        log_n = max(log(facts.n), log(2))  # of one point any positive scale will do
        safe = sqrt(self.ball.alpha(facts.m) / log_n)
        zero, rung = facts.zero, self.rung(facts)
        return {"gamma": safe, "safe": safe, "log_n": log_n, "g": zero, "Ax_sum": zero, "rung": rung}

    def rung(self, facts: Facts) -> int:
        """The first of the rule and those that try ``fewer`` whose answers leave room for two threads; or the last."""
        rules = (self.rule, *self.rule.fewer)
        fitting = (i for i, rule in enumerate(rules) if facts.sums(self.questions(rule)) <= facts.memory // 2)
        return next(fitting, len(rules) - 1)

    def rule_of(self, rung: int) -> Steps:
        return (self.rule, *self.rule.fewer)[rung]

    @abstractmethod
    def questions(self, rule: Steps) -> int:
        """Vectors y of which one read tells, at most."""

    def gammas(self, state: LadderState) -> list[float]:
        """The lengths that are tried next, ascending."""
        # 1e9: where A(x+ - x) = 0, as for one point, every step passes
        return [min(state.gamma * factor, 1e9) for factor in self.rule_of(state.rung).factors]

    def choose_step(self, state: LadderState, excess: Callable[[int, float], float]) -> int | None:
        """Which stands. A step of 1/L gets no test: in float32 the KL of a short step far out can be all rounding."""
        for i, gamma in reversed(list(enumerate(self.gammas(state)))):
            if gamma <= state.safe or self.rule_of(state.rung).accept(excess(i, gamma), gamma):
                return i
        return None

    def shorter(self, state: LadderState) -> float:
        return max(state.gamma * self.rule_of(state.rung).retry, state.safe)

    def steps(self, facts: Facts, margin: float) -> float:
        """2 L / margin steps of 1/L, and what longer ones take: steps of 1/L stand, and those that are tried differ by a
        ``gap``, so that steps are at least 1 / (gap L) long. A step tried in vain is paid for by the long ones before it.
        """
        gap = max([1.0, *(b / a for a, b in pairwise(self.rule_of(self.rung(facts)).factors))])
        return gap * 2 / sqrt(self.ball.alpha(facts.m) / log(max(2, facts.n))) / self.ball.least(margin, facts.m)

    def cost(self, facts: Facts) -> MethodCost:
        own = Method.cost(self, facts)
        return replace(own, asked=self.questions(self.rule_of(self.rung(facts))), products=2 * len(self.rule.factors))

    def evidence(self, state: Any) -> Evidence:
        return Evidence(state.bracket, x_of(state.average), state.steps)


def raise_lower(bracket: Bracket, y: Sequence[Vector], answer: SoftminAnswer | ScoredAnswer) -> Bracket:
    """With the best of what was asked: g+ has the direction of an average of y."""
    for each, low in zip(y, answer.low, strict=True):
        bracket = bracket.with_separator(each, float(low))
    return bracket


def add_average(state: LadderState, point: Any, lse: float, gamma: float, Ax: Any) -> dict[str, Any]:
    """What is known of the averages after one more step."""
    weight, Ax_sum = state.weight + gamma, state.Ax_sum + gamma * Ax
    upper = upper_end(Ax_sum, weight)
    average = state.average.plus(Softmax(point, 1.0, lse, gamma, Ax), Ax_sum, upper < state.bracket.upper)
    averages = {"steps": state.steps + 1, "weight": weight, "Ax_sum": Ax_sum, "average": average}
    return {**averages, "gamma": gamma, "bracket": state.bracket.with_upper(upper)}


def project(y: Any) -> Any:
    """The nearest point of the unit ball."""
    size = length(y)
    return y / size if size > 1 else y


class MirrorProxState(LadderState, frozen=True, kw_only=True):
    """x is v_x, and the average is one of w_x."""

    v: Vector  # v_y
    Av: Vector | None = None  # A v_x; None before the first pass


class MirrorProx(Ladder[MirrorProxState], Struct, frozen=True):
    """Mirror prox with a rule for the step."""

    rule: Steps = THREE
    traits: Traits = Traits("mirror-prox", "one read a step", points=0.03, kernel=0.2, cones=0.03, weighs_all=True)

    def init(self, facts: Facts) -> MirrorProxState:
        return MirrorProxState(v=facts.zero, **self.begin(facts))

    def ask(self, state: MirrorProxState) -> Any:
        """Soft questions, two for each gamma that is tried, and a hard one for a candidate that rides along."""
        return softmin(*self._questions(state))

    def _questions(self, state: MirrorProxState) -> tuple[list[Vector], list[Vector]]:
        if state.Av is None:
            return [state.g], []
        gammas = self.gammas(state)
        soft = [*(state.g + gamma * state.log_n * state.v for gamma in gammas), *(_next_g(state, gamma) for gamma in gammas)]
        # x is softmax(-A' of these); the direction of Ax: at the optimum it is the widest separator
        return soft, [state.Ax_sum] if state.steps else []

    def tell(self, state: MirrorProxState, answer: Any) -> MirrorProxState:
        if state.Av is None:
            return replace(state, Av=column(answer, 0), lse=float(answer.lse[0]))
        tried, (soft, hard) = len(self.gammas(state)), self._questions(state)
        state = replace(state, bracket=raise_lower(state.bracket, [*soft, *hard], answer))
        columns = [column(answer, i) for i in range(2 * tried)]
        Aw, Av_next, lse_next = columns[:tried], columns[tried:], answer.lse[tried:]
        alpha_x, alpha_y = 1 / state.log_n, 2.0

        def excess(i: int, gamma: float) -> float:
            w, g_next, v_next = _w(state, gamma), _next_g(state, gamma), _next_v(state, gamma, Aw[i])
            # <F(w), w - v+> = w_y'A(w_x - v_x+) - (A w_x)'(w_y - v_y+)
            gain = gamma * float(Aw[i] @ v_next - w @ Av_next[i])
            kl = float((state.g - g_next) @ Av_next[i]) - float(lse_next[i]) + state.lse
            distance = alpha_x * kl + alpha_y / 2 * float((v_next - state.v) @ (v_next - state.v))
            return gain - distance

        i = self.choose_step(state, excess)
        if i is None:
            return replace(state, gamma=self.shorter(state))
        gamma = self.gammas(state)[i]
        known = add_average(state, soft[i], float(answer.lse[i]), gamma, Aw[i])
        v = _next_v(state, gamma, Aw[i])
        return replace(state, g=soft[tried + i], v=v, Av=Av_next[i], lse=float(lse_next[i]), **known)

    def bound(self, facts: Facts, margin: float) -> float:
        """One pass, and one a step."""
        return 1 + self.steps(facts, margin)

    def questions(self, rule: Steps) -> int:
        return 2 * len(rule.factors) + 1


FIXED = MirrorProx(
    CONSTANT,
    Traits("mirror-prox-fixed", "one read a step, the theorem's step", points=0.2, kernel=0.5, cones=0.2, weighs_all=True),
)
BALL = MirrorProx(traits=Traits("mirror-prox-euclidean", cones=0.03, weighs_all=True, ball=True))


def _w(state: MirrorProxState, gamma: float) -> Any:
    assert state.Av is not None
    return project(state.v + gamma / 2 * state.Av)


def _next_g(state: MirrorProxState, gamma: float) -> Any:
    return state.g + gamma * state.log_n * _w(state, gamma)


def _next_v(state: MirrorProxState, gamma: float, Aw: Vector) -> Any:
    return project(state.v + gamma / 2 * Aw)
