"""Soft margin with the squared hinge: Newton steps, each from one read.

Reference: Mangasarian 2002; Keerthi and DeCoste 2005. At w, with z_j = max(0, 1 - b_j'w), b_j = l_j x_j, and Q of ``Width``,

    f(w) = w'Qw/2 + sum c_j z_j^2,    grad = Qw - 2 sum c_j z_j b_j,    H = Q + 2 sum over z_j > 0 of c_j b_j b_j'
    v = w - H^-1 grad;    f is not less at v: the best of some parts of the way to v, told by the next read

Guarantee: f is strongly convex and piecewise quadratic; Newton steps with a line search reach the minimum after finitely many
steps. alpha_j = 2 s_l c_j z_j, with factors s >= 0 of the two classes, is feasible for the other problem, so that every read
tells both ends. With T_l, L_l, P_l the sums of c_j z_j, c_j z_j^2 and c_j z_j b_j over a class,

    f* >= sum over l of (2 s_l T_l - s_l^2 L_l) - 2 |Q^(-1/2) sum of s_l P_l|^2,

which is f(w) - |grad|^2 / 2 for s = 1 and Q = I. Of a free bias sum alpha_j l_j must be 0, so s_l is 1 / T_l but for one
factor: what is left of the pulls is the difference of two means, which is the same wherever the points are.

Up to ``DIRECT`` features the read gives H; beyond that conjugate gradients solve with it, a read for each product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from dfeas.linalg.points import Floats, is_dense
from dfeas.linalg.separation.newton import line_search
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
from dfeas.records import replace

DIRECT = 4000
"""Features up to which the curvature is read as a matrix, memory allowing."""
SAMPLE = 20_000
"""Points of the sample of the squared hinge, at most."""
MATRICES = 8
"""Copies of the curvature: in partials of an answer, and where it is solved with."""


class ClassBound(Struct, frozen=True):
    """A lower end, and the factors s of the classes that make it."""

    value: float
    factors: tuple[float, float]

    @classmethod
    def largest(cls, squares: Floats, total: Floats, square: Floats, pull: Floats) -> ClassBound:
        """From T (2,), L (2,) and P (2, m): that of s along n is (T'n)^2 / |An|^2, with A'A = diag(L) + 2 P Q^-1 P'."""
        kept = squares > 0
        columns = np.hstack([pull[:, kept] * np.sqrt(2 / squares[kept]), np.diag(np.sqrt(square))])
        # 2.0**-51: rounding of a sum, beside the sizes of its terms: factors that make it small may have found only that
        best, sizes = cls(0.0, (0.0, 0.0)), 2.0**-51 * np.linalg.norm(columns, axis=1)
        for n in [total[::-1]] if not kept.all() else [np.ones(2), *np.eye(2), _widest(columns, total)]:
            weight, noise = float(total @ n), 0.0 if n[0] == n[1] else float(sizes @ n)
            length = float(np.linalg.norm(n @ columns)) + noise
            if weight > 0 and length > 0 and n.min() >= 0:
                mantissa, exponent = np.frexp(weight / length / length)
                factors = n * np.ldexp(np.rint(mantissa * 2**26), exponent - 26)  # exact ones stay: as good as the nearest one
                best = max(best, cls((weight / length) ** 2, tuple(factors.tolist())), key=lambda each: each.value)
        return best


def _widest(columns: Floats, total: Floats) -> Floats:
    """The n (2,) with A'A n = T but for a factor, by a step of Gram and Schmidt on the columns of A."""
    total, (first, second) = total / (total.max() or 1.0), columns / (np.abs(columns).max() or 1.0)
    square = float(first @ first)
    share = float(first @ second) / square if square else 0.0
    rest = second - share * first
    along, across = total[0] * float(rest @ rest), (total[1] - share * total[0]) * square
    return np.array([along - share * across, across])


class Conjugate(Struct, frozen=True):
    """Conjugate gradients for H d = -grad, in k problems at once."""

    step: Floats  # (m, k) d
    residual: Floats  # (m, k)
    along: Floats  # (m, k)
    enough: Floats  # (k,) length of the residual at which it ends
    products: int

    @classmethod
    def start(cls, gradient: Floats) -> Conjugate:
        size = np.linalg.norm(gradient, axis=0)
        # 0.1: they end when the residual is this part of the gradient
        return cls(np.zeros_like(gradient), -gradient, -gradient, 0.1 * size, 0)

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
        # 30: reads of conjugate gradients for one step
        return self.products == 30 or bool((np.linalg.norm(self.residual, axis=0) <= self.enough).all())


class SquaredHingeState(Struct, frozen=True):
    """Between passes: both ends, and the step that is being found."""

    facts: Facts
    asked: Floats | None  # (m, k) where the next pass looks; None before the sample
    best: Best
    short: Floats  # (k,) 1, or less after a step that was too long
    conjugate: Conjugate | None  # steps from the best w that are being found
    steps: int
    still: int  # passes since a gap became narrower
    duals: tuple[Dual, ...]  # (k) whose values are the lower ends
    centre: Floats | None = None  # (m - 1,) of the sample, with a free bias and dense points


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
        points, matrices = min(facts.n, capacity(facts, k, True), SAMPLE), matrix_bytes(facts, k)
        return MarginCost(5.0, kept_bytes(facts, k, points, True) + matrices, points, enough=facts.m > DIRECT or matrices > 0)

    def init(self, facts: Facts) -> SquaredHingeState:
        k = len(self.counted.C)
        return SquaredHingeState(
            facts, self.start, Best.initial(self.squares, k), np.ones(k), None, 0, 0, (Dual.zero(True),) * k
        )

    def _matrix(self, facts: Facts) -> bool:
        """Whether memory holds the curvature of all problems, in a few partials."""
        return facts.m <= self.direct and 8 * MATRICES * facts.m**2 * len(self.counted.C) <= facts.memory

    def sample_size(self, state: SquaredHingeState) -> int:
        return min(state.facts.n, SAMPLE, capacity(state.facts, len(self.counted.C), True))

    def _at_minima(self, state: SquaredHingeState) -> bool:
        """Whether it looks at those of all points: no step follows, as a rule, and no curvature is needed."""
        return self.start is None and self.confirms(state)

    def ask(self, state: SquaredHingeState) -> Partial | SquaredHinge:
        facts, k = state.facts, len(self.counted.C)
        if state.asked is None:
            return sample_of(facts, self.sample_size(state), self.seed)
        if state.conjugate is not None:
            return SquaredHinge(state.best.Y, self.counted, k, along=state.conjugate.along)
        Y, which, _ = looks(state.asked, state.best, state.short)
        matrix = self._matrix(facts) and not self._at_minima(state)
        return SquaredHinge(Y, self.counted.take(which), k, matrix=matrix, centre=state.centre)

    def tell(self, state: SquaredHingeState, answer: Columns | SquaredHingeAnswer) -> SquaredHingeState:
        if isinstance(answer, Columns):
            centred = self.squares[-1] == 0 and is_dense(answer.points) and len(answer) > 0
            centre = np.asarray(answer.points[:, :-1].mean(axis=0, dtype=np.float64)) if centred else None
            sampled, steps = self.sample_minima(state.facts, answer, centre)
            minima = np.stack([each.w for each in sampled], axis=1)
            if centre is not None:
                minima[-1] -= centre @ minima[:-1]
            return replace(state, asked=minima, steps=steps, centre=centre)
        if state.conjugate is not None:
            along = state.conjugate.along
            conjugate = state.conjugate.after(self.squares[:, None] * along + 2 * answer.curvature.T)
            if not conjugate.over:
                return replace(state, conjugate=conjugate)
            return replace(state, conjugate=None, asked=state.best.Y + conjugate.step, steps=state.steps + 1)
        assert state.asked is not None
        target, before, k, matrix = state.asked, state.best, len(self.counted.C), self._matrix(state.facts)
        Y, which, _ = looks(target, before, state.short)
        best, objective = before.after(which, Y, answer)
        gradient = self.squares[:, None] * target - 2 * answer.pull.sum(axis=1).T
        sums = zip(answer.total, answer.square, answer.pull, strict=True)
        bounds = [ClassBound.largest(self.squares, *of_classes) for of_classes in sums]
        duals = tuple(
            Dual.of_scores(target[:, i], bound.factors) if bound.value > best.lower[i] else state.duals[i]
            for i, bound in enumerate(bounds)
        )
        best = best.raise_lower(np.array([bound.value for bound in bounds]))
        following, short = best.Y.copy(), np.ones(k)
        following_conjugate: Conjugate | None = None
        there = (target == best.Y).all(axis=0)
        # where a gap is left after all, the next look is the same one, with the curvature
        going = (best.gap > self.gap) & (not (matrix and self._at_minima(state)))
        for i in np.flatnonzero(going & ~there):
            if not (objective[which == i] <= best.objective[i]).any():
                short[i] = TRIALS[1] if state.short[i] == 1 else TRIALS[-1]
                following[:, i] += short[i] * (target[:, i] - best.Y[:, i])
        if matrix:
            for i in np.flatnonzero(going & there):
                system = 2 * answer.curvature[i]
                system.flat[:: len(system) + 1] += self.squares
                following[:, i] -= solve_about(state.centre, system, gradient[:, i])
        elif (going & there).any():
            following_conjugate = Conjugate.start(np.where(going & there, gradient, 0.0))
        still = 0 if best.narrower(before) else state.still + 1
        steps = state.steps + (following_conjugate is None)
        return SquaredHingeState(state.facts, following, best, short, following_conjugate, steps, still, duals, state.centre)

    def sample_minimum(self, rows: SignedRows, cost: Floats, before: Minimum | None, whole: bool) -> Minimum:
        return newton(rows, cost, self.squares, np.zeros(rows.features) if before is None else before.w)


def solve_about(centre: Floats | None, system: Floats, gradient: Floats) -> Floats:
    """The step of a system that is one of w and of the bias at a centre, where points are short."""
    if centre is None:
        return positive_solve(system, gradient)
    step = positive_solve(system, np.append(gradient[:-1] - gradient[-1] * centre, gradient[-1]))
    step[-1] -= centre @ step[:-1]
    return step


class Minimum(Struct, frozen=True):
    """Of points in memory, roughly."""

    w: Floats  # (m,)
    steps: int


def newton(rows: SignedRows, cost: Floats, squares: Floats, w: Floats, most: int = 30) -> Minimum:
    """For points in memory with costs (r,): Newton steps, each as long as makes f least along it."""
    score, root = rows.scores(w), np.sqrt(2 * cost)
    short = np.maximum(0.0, 1 - score)
    value = _value(w, squares, cost, short)
    for step in range(most):
        pulled = cost * short
        gradient = squares * w - 2 * rows.combine(pulled)
        if gradient @ gradient / 2 <= 1e-4 * value:
            return Minimum(w, step)
        active = pulled.nonzero()[0]
        if len(w) > DIRECT:
            curved = 2 * float(cost[active] @ rows.part(active).scores(gradient) ** 2) / float(gradient @ gradient)
            direction = -gradient / (1 + curved)
        else:
            system = 2 * rows.gram(active, cost[active])
            system.flat[:: len(w) + 1] += squares
            direction = -positive_solve(system, gradient)
        slope = rows.scores(direction)
        t = line_search(
            root * (1 - score), root * slope, float(squares * w @ direction), float(squares * direction @ direction), 1.0
        )
        further, score = w + t * direction, score + t * slope
        short = np.maximum(0.0, 1 - score)
        lower = _value(further, squares, cost, short)
        if not lower < value:
            return Minimum(w, step)
        w, value = further, lower
    return Minimum(w, most)


def _value(w: Floats, squares: Floats, cost: Floats, short: Floats) -> float:
    return float(squares * w @ w / 2 + cost @ short**2)
