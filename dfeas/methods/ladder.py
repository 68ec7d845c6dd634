"""Steps of mirror prox: some lengths are tried on the same reads, and the largest that stands is taken; averages of steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import log, sqrt
from typing import Any, Protocol

import numpy as np

from dfeas.linalg.points import Floats
from dfeas.methods.protocol import Bracket, Evidence, Facts, Method, Mixture, S, x_of
from dfeas.methods.vector import ScoredAnswer, Vector, length, recorded, upper_end, weights_of
from dfeas.passes.softmin import SoftminAnswer

LONGEST = 1e9
"""Where A(x+ - x) = 0, as for one point, every step passes."""


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


Asked = tuple[tuple[Floats, float, float, Floats], ...]
"""(point, lse, gamma, A softmax) of each softmax in an average."""


class Ladder(Method[S], Protocol[S]):
    """Steps of some lengths are tried on the same reads, and the largest that stands is taken."""

    @property
    def rule(self) -> Steps:
        """Which lengths, and when one stands."""

    def gammas(self, state: Any) -> list[float]:
        """The lengths."""
        return [min(state.gamma * factor, LONGEST) for factor in self.rule.factors]

    def standing(self, state: Any, excess: Callable[[int, float], float]) -> int | None:
        """Which stands. A step of 1/L needs no test, and gets none: in float32 the KL of a short step far out can be all
        rounding.
        """
        for i, gamma in reversed(list(enumerate(self.gammas(state)))):
            if gamma <= safe_step(state.log_n) or self.rule.accept(excess(i, gamma), gamma):
                return i
        return None

    def shorter(self, state: Any) -> float:
        """The gamma to try when none stands."""
        return max(float(state.gamma) * self.rule.retry, safe_step(state.log_n))

    @property
    def gap(self) -> float:
        """The largest factor between steps that are tried together; 1 for one step."""
        return max([1.0, *(b / a for a, b in pairwise(self.rule.factors))])

    def steps(self, facts: Facts, margin: float) -> float:
        """sqrt(2 log n) / margin steps of 1/L, and what longer ones take: steps of 1/L stand, and those that are tried differ
        by ``gap``, so that steps are at least 1 / (gap L) long. A step tried in vain is paid for by the long ones before it.
        """
        return self.gap * sqrt(2 * log(max(2, facts.n))) / margin

    def evidence(self, state: Any) -> Evidence:
        mixture = partial(average, state.asked[: state.best]) if state.best else None
        return Evidence(state.bracket, x_of(state.x, mixture), state.steps)


def raised(bracket: Bracket, y: Sequence[Vector], answer: SoftminAnswer | ScoredAnswer) -> Bracket:
    """With the best of what was asked: g+ has the direction of an average of y."""
    for each, low in zip(y, answer.low, strict=True):
        bracket = bracket.with_separator(each, float(low))
    return bracket


def averaged(state: Any, point: Vector, lse: float, gamma: float, Ax: Vector) -> dict[str, Any]:
    """What is known of the averages after one more step."""
    weight, Ax_sum = state.weight + gamma, state.Ax_sum + gamma * Ax
    asked = recorded(state.asked, (point, lse, gamma, Ax))
    upper = upper_end(Ax_sum, weight)
    best, x = (len(asked), weights_of(Ax_sum)) if upper < state.bracket.upper else (state.best, state.x)
    found = {"steps": state.steps + 1, "weight": weight, "Ax_sum": Ax_sum, "asked": asked, "best": best, "x": x}
    return {**found, "gamma": gamma, "bracket": state.bracket.with_upper(upper)}


def average(asked: Asked) -> Mixture:
    """The average of softmaxes."""
    point, lse, gamma, mean = zip(*asked, strict=True)
    share = np.array(gamma) / sum(gamma)
    return Mixture(np.column_stack(point), np.ones(len(asked)), np.array(lse), share, np.column_stack(mean))


def safe_step(log_n: float) -> float:
    """1/L."""
    return sqrt(2 / log_n)


def size_of(facts: Facts) -> float:
    """log n; of one point any positive scale will do."""
    return max(log(facts.n), log(2))


def project(y: Any) -> Any:
    """The nearest point of the unit ball."""
    size = length(y)
    return y / size if size > 1 else y
