"""Smooth perceptron.

Reference: Ramdas and Pena 2014, Algorithm 4 with G = A'A; Soheili and Pena 2012. Excessive gap technique with entropy prox:

    mu_0 = 2,  y_0 = A 1/n,  Ax_0 = A softmax(-A'y_0 / mu_0),  theta_k = 2 / (k + 3)
    y_k+1  = (1 - theta) (y_k + theta Ax_k) + theta^2 A softmax(-A'y_k / mu_k)
    mu_k+1 = (1 - theta) mu_k
    Ax_k+1 = (1 - theta) Ax_k + theta A softmax(-A'y_k+1 / mu_k+1)

Passes: one for y_0, one for Ax_0, then one a step.
Guarantee: L_mu(y_k) <= -|Ax_k|^2 / 2 at every step (Lemma 5), with L_mu(y) = mu (lse - log n) + |y|^2 / 2, hence a separator
within 2 sqrt(2 log n) / rho steps when the margin rho is positive, and |Ax_k| <= 2 sqrt(2 log n) / (k + 1) when there is none.
Evidence: both ends of the bracket; x_k is the mixture of the softmaxes above.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any

from msgspec import Struct

from dfeas.methods.mixture import Average, Softmax
from dfeas.methods.protocol import Bracket, Evidence, Facts, Method, Traits, x_of
from dfeas.methods.vector import ScoredAnswer, Vector, column, softmin, upper_end
from dfeas.passes.softmin import SoftminAnswer
from dfeas.records import replace


class SmoothPerceptronState(Struct, frozen=True):
    """After step ``step``; -1 before y_0 is known, 0 without ``answers`` before Ax_0 is known."""

    step: int  # k
    y: Vector  # y_k
    mu: float  # mu_k
    Ax: Vector  # the weighted average of the answers
    mean: Vector  # A softmax(-A'y_k / mu_k)
    average: Average  # the last one is x_k; the best has |Ax| = bracket.upper
    bracket: Bracket
    answers: int = 0  # softmaxes in x_k


class SmoothPerceptron(Method[SmoothPerceptronState], Struct, frozen=True):
    """Its steps and temperatures depend on nothing."""

    traits: Traits = Traits("smooth-perceptron", "one read a step", points=0.25, kernel=0.25, cones=0.25, weighs_all=True)

    def init(self, facts: Facts) -> SmoothPerceptronState:
        """Nothing is known; y = 0 and mu = 1 ask for the average column."""
        zero = facts.zero
        return SmoothPerceptronState(-1, zero, 1.0, zero, zero, Average(), Bracket())

    def ask(self, state: SmoothPerceptronState) -> Any:
        """The softmax at the current y and mu, or, once x is known, at the next ones."""
        y, mu = _next(state)
        return softmin([y], mu=[mu])

    def tell(self, state: SmoothPerceptronState, answer: SoftminAnswer | ScoredAnswer) -> SmoothPerceptronState:
        mean, lse = column(answer, 0), float(answer.lse[0])
        if state.step < 0:
            return replace(state, step=0, y=mean, mu=2.0)
        y, mu = _next(state)
        share = theta(state.step) if state.answers else 1.0
        Ax = (1 - share) * state.Ax + share * mean
        upper, answers = upper_end(Ax), state.answers + 1
        # shares theta_k are weights 2, 4, 6 and so on of the softmaxes
        average = state.average.plus(Softmax(y, mu, lse, 2.0 * answers, mean), Ax, upper < state.bracket.upper)
        bracket = state.bracket.with_separator(y, float(answer.low[0])).with_known(Ax).with_upper(upper)
        return SmoothPerceptronState(answers - 1, y, mu, Ax, mean, average, bracket, answers)

    def bound(self, facts: Facts, margin: float) -> float:
        """Two passes, and one for each of 2 sqrt(2 log n) / margin steps."""
        return 2 + 2 * sqrt(2 * log(max(2, facts.n))) / margin

    def evidence(self, state: SmoothPerceptronState) -> Evidence:
        return Evidence(state.bracket, x_of(state.average), max(0, state.step))


def theta(k: int) -> float:
    """Weight of step k, also of the Euclidean variant."""
    return 2 / (k + 3)


def _next(state: SmoothPerceptronState) -> tuple[Any, float]:
    if not state.answers:
        return state.y, state.mu
    step = theta(state.step)
    y = (1 - step) * (state.y + step * state.Ax) + step**2 * state.mean
    return y, (1 - step) * state.mu
