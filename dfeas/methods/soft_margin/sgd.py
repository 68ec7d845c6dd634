"""Stochastic subgradient steps for the hinge loss, in the order of the points: to compare with.

Reference: Shalev-Shwartz, Singer, Srebro and Cotter 2011 (Pegasos), with a few points a step and costs of points. After T
points

    w = (n / T) sum over steps of c_j b_j where b_j'w < 1 at that step,     b_j = l_j x_j.

After E whole reads that is w = sum alpha_j b_j with alpha_j = c_j times the share of the reads on which the point was short
of the margin, so alpha is in the box, and sum alpha_j - |w|^2 / 2 is a lower bound of the minimum. A second read tells f at
w, and at the mean of all w of the read before.

Guarantee: f falls like log(T) / T in expectation, for points in random order; there is none for points that are sorted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfeas.linalg.points import Floats
from dfeas.methods.protocol import Facts
from dfeas.methods.soft_margin.problem import Best, MarginCost, Progress, SoftMargin
from dfeas.passes.hinge import Hinge, HingeAnswer
from dfeas.passes.protocol import Ordered
from dfeas.passes.slacks import SampleCosts
from dfeas.passes.steps import Stochastic, StochasticCarry
from dfeas.records import replace


@dataclass(frozen=True, slots=True)
class StochasticState:
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

    @classmethod
    def cost(cls, facts: Facts, k: int) -> MarginCost:
        return MarginCost(100.0, 64 * facts.m, remark="one core, in the order of the points")

    def init(self, facts: Facts) -> StochasticState:
        nothing = StochasticCarry(np.zeros(facts.m), 0.0, 0, np.zeros(facts.m))
        return StochasticState(facts, nothing, False, Best.initial(self.squares, 1))

    def ask(self, state: StochasticState) -> Ordered | Hinge:
        if not state.fresh:
            return Ordered(Stochastic(state.carry, self.counted, state.facts.n))
        return Hinge(self._both(state), self.counted.take(np.zeros(2, np.int64)), 0, 0, 0)

    def _both(self, state: StochasticState) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """(m, 2) the last w, and the mean."""
        carry, n = state.carry, state.facts.n
        return np.stack([carry.pull * (n / carry.seen), carry.mean / n], axis=1)

    def tell(self, state: StochasticState, answer: StochasticCarry | HingeAnswer) -> StochasticState:
        if isinstance(answer, StochasticCarry):
            return replace(state, carry=answer, fresh=True)
        Y, carry = self._both(state), state.carry
        best, _ = state.best.after(np.zeros(2, np.int64), Y, answer)
        lower = carry.total * state.facts.n / carry.seen - Y[:, 0] @ Y[:, 0] / 2
        return replace(state, fresh=False, best=best.raise_lower(np.array([lower])))

    def evidence(self, state: StochasticState) -> Progress:
        return Progress(state.best, state.carry.seen, 0)
