"""Soft margin with the squared hinge: Newton steps, each from one read.

Reference: Mangasarian 2002; Keerthi and DeCoste 2005. At w, with z_j = max(0, 1 - b_j'w), b_j = l_j x_j,

    f(w) = |w|^2/2 + sum c_j z_j^2,    grad = w - 2 sum c_j z_j b_j,    H = I + 2 sum over z_j > 0 of c_j b_j b_j'
    v = w - H^-1 grad;    f is not less at v: the best of some parts of the way to v, told by the next read

Guarantee: f is strongly convex and piecewise quadratic; Newton steps with a line search reach the minimum after finitely many
steps. alpha_j = 2 c_j z_j is feasible for the other problem, so that every read tells both ends:

    f* >= sum over j of c_j (2 z_j - z_j^2) - |2 sum c_j z_j b_j|^2 / 2 = f(w) - |grad|^2 / 2.

Up to ``DIRECT`` features the read gives H; beyond that conjugate gradients solve with it, a read for each product.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dfeas.linalg.newton import line_search
from dfeas.linalg.points import Floats
from dfeas.methods.protocol import Facts
from dfeas.methods.soft_margin.band import SignedRows, positive_solve
from dfeas.methods.soft_margin.problem import (
    TRIALS,
    Best,
    Dual,
    MarginCost,
    SampledMargin,
    capacity,
    kept_bytes,
    looks,
    sample_of,
)
from dfeas.passes.block import Columns
from dfeas.passes.hinge import SquaredHinge, SquaredHingeAnswer
from dfeas.passes.protocol import Partial

DIRECT = 4000
"""Features up to which the curvature is read as a matrix, memory allowing."""

SAMPLE = 20_000
"""Points of the sample of the squared hinge, at most."""

MATRICES = 8
"""Copies of the curvature: in partials of an answer, and where it is solved with."""

PRODUCTS = 30
"""Reads of conjugate gradients for one step."""

CLOSE = 0.1
"""They end when the residual is this part of the gradient."""


@dataclass(frozen=True, slots=True)
class Conjugate:
    """Conjugate gradients for H d = -grad, in k problems at once."""

    step: Floats  # (m, k) d
    residual: Floats  # (m, k)
    along: Floats  # (m, k)
    enough: Floats  # (k,) length of the residual at which it ends
    products: int

    @classmethod
    def start(cls, gradient: Floats) -> Conjugate:
        size = np.linalg.norm(gradient, axis=0)
        return cls(np.zeros_like(gradient), -gradient, -gradient, CLOSE * size, 0)

    def after(self, product: Floats) -> Conjugate:
        """After the product (m, k) of H with ``along``; problems that are solved stay as they are."""
        square, curved = (self.residual**2).sum(axis=0), (self.along * product).sum(axis=0)
        going = (np.sqrt(square) > self.enough) & (curved > 0)
        length = np.where(going, square / np.where(going, curved, 1.0), 0.0)
        residual = self.residual - length * product
        share = np.where(going, (residual**2).sum(axis=0) / np.where(square > 0, square, 1.0), 0.0)
        return Conjugate(
            self.step + length * self.along, residual, residual + share * self.along, self.enough, self.products + 1
        )

    @property
    def over(self) -> bool:
        return self.products == PRODUCTS or bool((np.linalg.norm(self.residual, axis=0) <= self.enough).all())


@dataclass(frozen=True, slots=True)
class SquaredHingeState:
    """Between passes: both ends, and the step that is being found."""

    facts: Facts
    asked: Floats | None  # (m, k) where the next pass looks; None before the sample
    best: Best
    short: Floats  # (k,) 1, or less after a step that was too long
    conjugate: Conjugate | None  # steps from the best w that are being found
    steps: int
    still: int  # passes since a gap became narrower
    duals: tuple[Dual, ...]  # (k) whose values are the lower ends


def matrix_bytes(facts: Facts, k: int) -> int:
    """Bytes of the curvatures of k problems, where they are matrices; 0 where conjugate gradients are used."""
    need = 8 * MATRICES * facts.m**2 * k
    return need if facts.m <= DIRECT and need <= facts.memory else 0


@dataclass(frozen=True)
class SquaredHingeMargin(SampledMargin):
    """``direct`` limits the features for which the curvature is a matrix."""

    direct: int = DIRECT
    name: str = "squared-hinge"

    @classmethod
    def cost(cls, facts: Facts, k: int) -> MarginCost:
        points, matrices = min(facts.n, capacity(facts, k), SAMPLE), matrix_bytes(facts, k)
        return MarginCost(5.0, kept_bytes(facts, k, points) + matrices, points, enough=facts.m > DIRECT or matrices > 0)

    def init(self, facts: Facts) -> SquaredHingeState:
        k = len(self.counted.C)
        return SquaredHingeState(facts, self.start, Best.initial(facts.m, k), np.ones(k), None, 0, 0, (Dual.zero(True),) * k)

    def _matrix(self, facts: Facts) -> bool:
        """Whether memory holds the curvature of all problems, in a few partials."""
        return facts.m <= self.direct and 8 * MATRICES * facts.m**2 * len(self.counted.C) <= facts.memory

    def ask(self, state: SquaredHingeState) -> Partial | SquaredHinge:
        facts, k = state.facts, len(self.counted.C)
        if state.asked is None:
            return sample_of(facts, min(facts.n, SAMPLE, capacity(facts, k)), self.seed)
        if state.conjugate is not None:
            return SquaredHinge(state.best.Y, self.counted, k, along=state.conjugate.along)
        places = looks(state.asked, state.best, state.short)
        return SquaredHinge(places.Y, self.counted.take(places.problem), k, matrix=self._matrix(facts))

    def tell(self, state: SquaredHingeState, answer: Columns | SquaredHingeAnswer) -> SquaredHingeState:
        if isinstance(answer, Columns):
            minima, steps = self.sample_minima(state.facts, answer)
            return replace(state, asked=minima, steps=steps)
        if state.conjugate is not None:
            conjugate = state.conjugate.after(state.conjugate.along + 2 * answer.curvature.T)
            if not conjugate.over:
                return replace(state, conjugate=conjugate)
            return replace(state, conjugate=None, asked=state.best.Y + conjugate.step, steps=state.steps + 1)
        assert state.asked is not None
        places, target, before, k = looks(state.asked, state.best, state.short), state.asked, state.best, len(self.counted.C)
        best, objective = before.after(places.problem, places.Y, answer)
        gradient = target - 2 * answer.pull.T
        # sum c (2 z - z^2) - |2 pull|^2 / 2, which is f - |grad|^2 / 2
        lower = 2 * answer.total - answer.loss[:k] - 2 * (answer.pull**2).sum(axis=1)
        higher = lower > best.lower
        duals = tuple(Dual.of_scores(target[:, i]) if higher[i] else state.duals[i] for i in range(k))
        best = best.raise_lower(lower)
        following, short = best.Y.copy(), np.ones(k)
        along: Conjugate | None = None
        there = (target == best.Y).all(axis=0)
        going = best.gap > self.gap
        for i in np.flatnonzero(going & ~there):
            if not (objective[places.problem == i] <= best.objective[i]).any():
                short[i] = TRIALS[1] if state.short[i] == 1 else TRIALS[-1]
                following[:, i] += short[i] * (target[:, i] - best.Y[:, i])
        if self._matrix(state.facts):
            for i in np.flatnonzero(going & there):
                system = 2 * answer.curvature[i]
                system[np.diag_indices_from(system)] += 1
                following[:, i] -= positive_solve(system, gradient[:, i])
        elif (going & there).any():
            along = Conjugate.start(np.where(going & there, gradient, 0.0))
        still = 0 if best.narrower(before) else state.still + 1
        steps = state.steps + (along is None)
        return SquaredHingeState(state.facts, following, best, short, along, steps, still, duals)

    def sample_minimum(self, rows: SignedRows, cost: Floats, before: Minimum | None) -> Minimum:
        return newton(rows, cost, np.zeros(rows.features) if before is None else before.w)


@dataclass(frozen=True, slots=True)
class Minimum:
    """Of points in memory, roughly."""

    w: Floats  # (m,)
    steps: int


def newton(rows: SignedRows, cost: Floats, w: Floats, most: int = 30) -> Minimum:
    """For points in memory with costs (r,): Newton steps, each as long as makes f least along it."""
    score, root = rows.scores(w), np.sqrt(2 * cost)
    value = _value(w, cost, score)
    for step in range(most):
        short = np.maximum(0.0, 1 - score)
        gradient = w - 2 * rows.combine(cost * short)
        active = np.flatnonzero(short * cost)
        if gradient @ gradient / 2 <= 1e-4 * value:
            return Minimum(w, step)
        if len(w) > DIRECT:
            curved = 2 * float(cost[active] @ rows.part(active).scores(gradient) ** 2) / float(gradient @ gradient)
            direction = -gradient / (1 + curved)
        else:
            system = 2 * rows.gram(active, cost[active])
            system[np.diag_indices_from(system)] += 1
            direction = -positive_solve(system, gradient)
        slope = rows.scores(direction)
        t = line_search(root * (1 - score), root * slope, float(w @ direction), float(direction @ direction), 1.0)
        further, scored = w + t * direction, score + t * slope
        lower = _value(further, cost, scored)
        if not lower < value:
            return Minimum(w, step)
        w, score, value = further, scored, lower
    return Minimum(w, most)


def _value(w: Floats, cost: Floats, score: Floats) -> float:
    return float(w @ w / 2 + cost @ np.maximum(0.0, 1 - score) ** 2)
