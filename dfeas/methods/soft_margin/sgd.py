"""Stochastic subgradient steps for the hinge loss, in the order of the points: to compare with.

Reference: Shalev-Shwartz, Singer, Srebro and Cotter 2011 (Pegasos), with a few points a step and costs of points. After T
points

    w = (n / T) sum over steps of c_j b_j where b_j'w < 1 at that step,     b_j = l_j x_j.

After E whole reads that is w = sum alpha_j b_j with alpha_j = c_j times the share of the reads on which the point was short
of the margin, so alpha is in the box, and sum alpha_j - |w|^2 / 2 is a lower bound of the minimum. A second read tells f at
w, and at the mean of all w of the read before.

Guarantee: f falls like log(T) / T in expectation, for points in random order; there is none for points that are sorted.

Reference: Chevaleyre's notes, section 5, steps of one length, ``sgd:alpha=0.01``. With c_j = C, for each point in order

    w <- w + alpha b_j - alpha / (n C) w  if b_j'w < 1,  else  w <- w - alpha / (n C) w

The notes print alpha / C: a C of theirs is n C here, as each point has a share of |w|^2 / 2. A point has added alpha c_j / C
times powers of kept = 1 - alpha / (n C), at most c_j (alpha / C) (1 - kept^T) / (1 - kept^n) in T / n reads, which is c_j and
a little more: times the inverse, or less, w is that of an alpha in the box.

Guarantee (Zinkevich 2003): with g_j = |w|^2 / (2 n C) + c_j / C max(0, 1 - b_j'w), the sum of g_j(w_j) - g_j(u) over the steps
is at most |u|^2 / (2 alpha) + alpha / 2 sum |g_j'|^2 for any u, in any order of the points: f at the mean comes down to about
the minimum and a term in alpha, and no further.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from math import expm1, inf, log1p

import numpy as np
from msgspec import Struct

from dfeas.errors import UsageError
from dfeas.linalg.points import Floats
from dfeas.methods.protocol import Facts
from dfeas.methods.soft_margin.problem import Best, MarginCost, Progress, SoftMargin
from dfeas.passes.hinge import Hinge, HingeAnswer
from dfeas.passes.protocol import Ordered
from dfeas.passes.slacks import SampleCosts
from dfeas.passes.steps import FixedSteps, Stochastic, StochasticCarry
from dfeas.records import replace


class StochasticState(Struct, frozen=True):
    """Between reads, of which every second one tells f."""

    facts: Facts
    carry: StochasticCarry
    fresh: bool  # f at the last w is not known yet
    best: Best


@dataclass(frozen=True)
class StochasticMargin(SoftMargin):
    """One problem: one C, no folds."""

    counted: SampleCosts
    squares: Floats
    name: str = "sgd"

    @classmethod
    def of(cls, costs: SampleCosts, squares: Floats, gap: float, start: object) -> StochasticMargin:
        return cls(costs, squares)

    def with_options(self, name: str) -> StochasticMargin:
        alpha = read_alpha(name)
        return FixedStepMargin(self.counted, self.squares, name, alpha) if alpha else self

    @classmethod
    def cost(cls, facts: Facts, k: int) -> MarginCost:
        return MarginCost(100.0, 64 * facts.m, remark="one core, in the order of the points")

    def init(self, facts: Facts) -> StochasticState:
        nothing = StochasticCarry(np.zeros(facts.m), 0.0, 0, np.zeros(facts.m))
        return StochasticState(facts, nothing, False, Best.initial(self.squares, 1))

    def ask(self, state: StochasticState) -> Ordered | Hinge:
        if not state.fresh:
            return Ordered(self._steps(state))
        return Hinge(self._both(state), self.counted.take(np.zeros(2, np.int64)), 0, 0, 0)

    def _steps(self, state: StochasticState) -> Stochastic:
        return Stochastic(state.carry, self.counted, state.facts.n)

    def _last(self, state: StochasticState) -> Floats:
        """w (m,) after the last point."""
        return state.carry.pull * (state.facts.n / state.carry.seen)

    def _lower(self, state: StochasticState, w: Floats) -> float:
        """The value of the multipliers of that."""
        return float(state.carry.total * state.facts.n / state.carry.seen - w @ w / 2)

    def _both(self, state: StochasticState) -> Floats:
        """(m, 2) the last w, and the mean."""
        return np.stack([self._last(state), state.carry.mean / state.facts.n], axis=1)

    def tell(self, state: StochasticState, answer: StochasticCarry | HingeAnswer) -> StochasticState:
        if isinstance(answer, StochasticCarry):
            return replace(state, carry=answer, fresh=True)
        Y = self._both(state)
        best, _ = state.best.after(np.zeros(2, np.int64), Y, answer)
        return replace(state, fresh=False, best=best.raise_lower(np.array([self._lower(state, Y[:, 0])])))

    def evidence(self, state: StochasticState) -> Progress:
        return Progress(state.best, state.carry.seen, 0)


@dataclass(frozen=True)
class FixedStepMargin(StochasticMargin):
    """Steps of one length, for each point."""

    alpha: float = 0.0

    def _steps(self, state: StochasticState) -> Stochastic:
        return FixedSteps(state.carry, self.counted, state.facts.n, self.alpha)

    def _last(self, state: StochasticState) -> Floats:
        return self.alpha * state.carry.pull

    def _lower(self, state: StochasticState, w: Floats) -> float:
        """The largest value of a share of the multipliers, all of which are in the box at ``most``."""
        n, C, seen = state.facts.n, float(self.counted.C[0]), state.carry.seen
        faded = log1p(-self.alpha / (n * C))
        most = expm1(n * faded) / (expm1(seen * faded) * self.alpha / C)
        total, square = self.alpha * state.carry.total, float(w @ w)
        share = min(most, total / square if square > 0 else inf)
        return share * total - share**2 * square / 2


def read_alpha(name: str, most: float = inf) -> float:
    """The length of a step of ``sgd:alpha=A``, 0 of ``sgd``; ``most`` is n C, from where on w would change its sign. Raises
    UsageError for other text after the name.
    """
    found = re.fullmatch(r"sgd(?::alpha=([0-9.e+-]+))?", name)
    with suppress(ValueError):
        if found is not None and (found[1] is None or 0 < float(found[1]) < most):
            return float(found[1] or 0)
    below = "" if most == inf else f" and below n C = {most:g}"
    raise UsageError(f"method {name}: expected sgd, or sgd:alpha=A, A above 0{below}")
