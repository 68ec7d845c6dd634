"""Dual variables of a soft margin: n of them, which follow from little.

    hinge           max  sum_j alpha_j - |sum_j alpha_j b_j|^2 / 2                            over 0 <= alpha_j <= c_j
    squared hinge   max  sum_j (alpha_j - alpha_j^2 / (4 c_j)) - |sum_j alpha_j b_j|^2 / 2    over 0 <= alpha_j

with b_j = l_j x_j, and sum_j alpha_j l_j = 0 where the bias is free. Any alpha there bounds the minimum of f from below, and
the lower end that a method tells is the value of one. With w the sum of alpha_j b_j, |v - w|^2 / 2 <= f(v) - value for any v:
the loss of a point is nowhere below the line that alpha_j makes of it (Fenchel and Young), and what is left are two squares.

    f_i(w) = |w|^2 / 2 + sum_j c_ij loss(1 - l_j x_j'w),     loss(z) = max(0, z) or max(0, z)^2,

over the points as they are stored. The bias is the weight of a last feature equal to 1; it is free (Chevaleyre's notes, 4; as
LIBSVM has it), or adds b^2 / (2 s^2) (as LIBLINEAR has it). c_ij
is C_i times the weights of the class and of the point, and 0 for points of the fold that problem i leaves out.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol, Self

import numpy as np
from msgspec import Struct

from dfeas.linalg.points import Floats, Indices
from dfeas.methods.protocol import Facts, Sparse
from dfeas.methods.soft_margin.band import DIRECT, DIRECT_SPARSE, NARROW, SignedRows
from dfeas.passes.block import Columns
from dfeas.passes.hinge import HingeAnswer, SquaredHingeAnswer
from dfeas.passes.protocol import Partial, Question
from dfeas.passes.select import sample
from dfeas.passes.slacks import Multipliers, SampleCosts
from dfeas.records import replace


class Dual(Struct, frozen=True):
    """Those of one problem whose value is its lower end."""

    squared: bool  # of the squared hinge
    at: Floats | None  # (m,) the w whose scores tell those of all points but ``index``; None: all are 0
    index: Indices  # (r,) ascending
    multiplier: Floats  # (r,)
    factors: tuple[float, float] = (1.0, 1.0)  # of the classes -1 and +1

    @classmethod
    def zero(cls, squared: bool) -> Dual:
        """All are 0, and so is their value."""
        return cls(squared, None, np.empty(0, np.int64), np.empty(0))

    @classmethod
    def of_scores(cls, w: Floats, factors: tuple[float, float]) -> Dual:
        return cls(True, w.copy(), np.empty(0, np.int64), np.empty(0), factors)

    @classmethod
    def of_model(cls, w: Floats, index: Indices, multiplier: Floats) -> Dual:
        """Of the hinge, from a model made at w that kept some points."""
        return cls(False, w.copy(), index, multiplier)

    def sparse(self) -> Sparse | None:
        """Those of ``index``, divided by their sum; None where there are none."""
        rows = np.flatnonzero(self.multiplier)
        return Sparse(self.index[rows], self.multiplier[rows] / self.multiplier.sum()) if len(rows) else None

    def question(self, counted: SampleCosts) -> Multipliers:
        """The pass that tells all of them; ``counted`` is of this problem alone."""
        return Multipliers(self.at, counted, self.squared, self.index, self.multiplier, self.factors)


STEEP = "C times the square of the points' lengths is large beside what float64 tells: lower C, or shorter points, help"
"""Why the minimum is told no better: multipliers of that size cancel in the sum that is w."""
TRIALS = (0.5, 0.25, 0.0625, 0.01)
"""Parts of the way at which f is told, too, after a step that was too long."""


def problems(C: Sequence[float], folds: int) -> list[tuple[float, int]]:
    """(C, fold left out): each C on all points (-1), and, with folds, without each of them."""
    return list(product(C, range(-1, folds if folds > 1 else 0)))


def make_costs(
    C: Sequence[float], folds: int = 0, classes: tuple[float, float] = (1.0, 1.0), weight: Floats | None = None, seed: int = 0
) -> SampleCosts:
    """Costs of all problems; ``classes`` are the weights of the classes -1 and +1."""
    both = problems(C, folds)
    left_out = np.array([fold for _, fold in both], np.int64)
    return SampleCosts(np.array([c for c, _ in both]), left_out, *classes, weight, max(1, folds), seed)


class Best(Struct, frozen=True):
    """Both ends of the minima of k problems, and where the upper ones are attained."""

    squares: Floats  # (m,) of ``Width``
    Y: Floats  # (m, k)
    objective: Floats  # (k,) f at Y
    lower: Floats  # (k,) of the minima
    support: Indices  # (k,) points with l_j x_j'y <= 1
    error: Floats  # (k,) weighted share of the tested points on the wrong side: of the fold that is left out, or of all

    @classmethod
    def initial(cls, squares: Floats, k: int) -> Best:
        """Before the first pass: the loss is not negative."""
        return cls(
            squares, np.zeros((len(squares), k)), np.full(k, np.inf), np.zeros(k), np.zeros(k, np.int64), np.full(k, np.nan)
        )

    @property
    def gap(self) -> Floats:
        """(k,) relative: (objective - lower) / objective; 0 where the objective is 0."""
        if (self.objective > 0).all() and np.isfinite(self.objective).all():
            return (self.objective - self.lower) / self.objective
        with np.errstate(invalid="ignore", divide="ignore"):
            share = (self.objective - self.lower) / self.objective
        return np.where(self.objective == 0, 0.0, np.where(np.isfinite(self.objective), share, 1.0))

    def after(self, problem: Indices, Y: Floats, answer: HingeAnswer | SquaredHingeAnswer) -> tuple[Best, Floats]:
        """After a read that told f at some Y (m, q) of some problems (q,), with f (q,)."""
        objective = np.einsum("i,ij,ij->j", self.squares, Y, Y) / 2 + answer.loss
        with np.errstate(invalid="ignore", divide="ignore"):
            error = np.where(answer.tested > 0, answer.wrong / answer.tested, np.nan)  # nan where nothing was tested
        best = Best(self.squares, self.Y.copy(), self.objective.copy(), self.lower, self.support.copy(), self.error.copy())
        for column, i in enumerate(problem):
            if objective[column] < best.objective[i]:
                best.Y[:, i], best.objective[i] = Y[:, column], objective[column]
                best.support[i], best.error[i] = answer.support[column], error[column]
        return best, objective

    def raise_lower(self, lower: Floats) -> Best:
        """With better lower ends; one above the objective is rounding, and is brought down to it."""
        return replace(self, lower=np.minimum(np.maximum(self.lower, lower), self.objective))

    def narrower(self, before: Best) -> bool:
        """Whether the ends of a problem are nearer than before, or f is less, by what is worth a read."""
        return bool((self.objective < (1 - 1e-4) * before.objective).any() or (self.gap < 0.99 * before.gap).any())


class Progress(Struct, frozen=True):
    """What a method can show now."""

    best: Best
    steps: int  # of Newton, or updates
    kept: int  # points in memory
    stalled: str = ""  # why no further pass can help, if so
    duals: tuple[Dual, ...] = ()  # of all problems, their values the lower ends; none where they are not known


class MarginCost(Struct, frozen=True):
    """What some problems take."""

    reads: float  # that a relative gap of 1e-3 usually takes: benchmarks/soft_margin.py
    kept: float  # bytes, with the answers of the passes
    points: int = 0  # that are kept in memory
    enough: bool = True  # whether memory holds as much as is wanted
    remark: str = ""  # what else they take, for a plan


class SoftMargin(Protocol):
    """As a ``Method``, with another kind of evidence. States are frozen; memory is that of ``facts``."""

    counted: SampleCosts  # of all problems
    name: str  # as users call it

    def init(self, facts: Facts) -> Any:
        """State before the first pass."""

    def ask(self, state: Any) -> Question:
        """The question of the next pass."""

    def tell(self, state: Any, answer: Any) -> Any:
        """The state after the answer to what it has asked."""

    def evidence(self, state: Any) -> Progress:
        """What is known in this state."""

    def confirms(self, state: Any) -> bool:
        """Whether it asks for the first time about the minima of all points, or where it was told to begin: no other question
        follows, as a rule.
        """
        return False

    @classmethod
    def of(cls, costs: SampleCosts, squares: Floats, gap: float, start: Floats | None) -> SoftMargin:
        """For some problems up to a gap, from ``start`` (m, k) if there is one; ``squares`` (m,) are those of ``Width``."""

    def with_options(self, name: str) -> SoftMargin:
        """The same with the options that stand after its ``name``."""
        return self

    @classmethod
    def cost(cls, facts: Facts, k: int) -> MarginCost:
        """What k problems take."""


@dataclass(frozen=True)
class SampledMargin(SoftMargin):
    """One that begins at the minima for a sample, and ends when reads bring the ends no nearer; ``gap`` is what is aimed at."""

    counted: SampleCosts
    squares: Floats  # (m,)
    gap: float
    seed: int = 0  # of the sample
    start: Floats | None = None  # (m, k) where the first pass looks, instead of a sample

    @classmethod
    def of(cls, costs: SampleCosts, squares: Floats, gap: float, start: Floats | None) -> Self:
        return cls(costs, squares, gap, start=start)

    @abstractmethod
    def sample_size(self, state: Any) -> int:
        """Points of the sample, about so many where they are not all."""

    def confirms(self, state: Any) -> bool:
        if state.asked is None or not np.isinf(state.best.objective).all():
            return False
        return self.start is not None or self.samples_all(state.facts, self.sample_size(state))

    def sample_minimum(self, rows: SignedRows, cost: Floats, before: Any, whole: bool) -> Any:
        """``w`` (m,) and ``steps`` of one problem, from those of one with lower costs, if there is one. Of the ``whole``, which
        is a sample of all points, it is as near as is aimed at.
        """

    def sample_minima(self, facts: Facts, columns: Columns, centre: Floats | None = None) -> tuple[list[Any], int]:
        """The minima of k problems for the sample, less a centre, one for each C, and the steps: folds change less than the
        sample does not know.
        """
        counted, whole = self.counted, self.samples_all(facts, len(columns))
        weight = facts.n / max(1, len(columns))  # the sample stands for all points
        costs, rows = counted.matrix(columns.index, columns.scale) * weight, SignedRows.of(columns, centre)
        minima, steps, sampled = [None] * len(counted.C), 0, None
        for C in sorted(set(counted.C.tolist())):
            same = np.flatnonzero(counted.C == C)
            sampled = self.sample_minimum(rows, costs[:, same[0]], sampled, whole)
            steps += sampled.steps
            for i in same:
                minima[i] = sampled
        return minima, steps

    def samples_all(self, facts: Facts, count: int) -> bool:
        """Whether the minima for a sample of so many points are those that are looked for."""
        return count == facts.n and bool((self.counted.left_out < 0).all())

    def evidence(self, state: Any) -> Progress:
        # 6: passes without a narrower gap after which no further one is expected to help
        return Progress(state.best, state.steps, 0, self._reason(state) if state.still >= 6 else "", state.duals)

    def _reason(self, state: Any) -> str:
        """Why no pass brings the ends nearer."""
        steep = float(self.counted.C.max()) * state.facts.radius**2 * max(self.counted.negative, self.counted.positive)
        # 2.0**27: C times that square, from where on it may be
        return f"float64 tells the minimum no better{f', as {STEEP}' if steep > 2.0**27 else ''}"


def looks(targets: Floats, best: Best, reach: Floats) -> tuple[Floats, Indices, Floats]:
    """What a pass tells f of, Y (m, q), of which the first k are what is asked of each problem (m, k); where ``reach`` (k,) is
    below 1, also parts of the way to it from the best. With the problem (q,) and that part of the way (q,) of each.
    """
    moves, k = np.flatnonzero((reach < 1) & (targets != best.Y).any(axis=0)), targets.shape[1]
    if not len(moves):
        return targets, np.arange(k), np.ones(k)
    between = [best.Y[:, moves] + t * (targets - best.Y)[:, moves] for t in TRIALS]
    part = np.repeat([1.0, *TRIALS], [k, *[len(moves) for _ in TRIALS]])
    return np.hstack([targets, *between]), np.concatenate([np.arange(k), *[moves for _ in TRIALS]]), part


def sample_of(facts: Facts, count: int, seed: int) -> Partial:
    """About ``count`` points as they are stored, from some blocks."""
    # 16: blocks of a sample, at least, where there are many: neighbours are often alike
    least = min(16, -(-facts.blocks // 4))
    return sample(facts.m, count, facts.n, facts.blocks, least, seed, unit=False)


def capacity(facts: Facts, k: int, squared: bool = False) -> int:
    """Points that memory holds beside k problems; at least 1."""
    return max(1, round((facts.memory - _fixed_bytes(facts, k, squared)) / _point_bytes(facts, k)))


def least_memory(facts: Facts, k: int, squared: bool) -> int:
    """Bytes of ``facts.memory`` without which k problems cannot work."""
    # 1000: points with which a soft margin can work, where m + 2 are more
    return round(_fixed_bytes(facts, k, squared) + min(facts.n, facts.m + 2, 1000) * _point_bytes(facts, k))


def kept_bytes(facts: Facts, k: int, points: int, squared: bool = False) -> float:
    """Bytes of vectors and systems, and of some points."""
    return _fixed_bytes(facts, k, squared) + points * _point_bytes(facts, k)


def _fixed_bytes(facts: Facts, k: int, squared: bool) -> int:
    """Of vectors, and of a system with its pieces: of the hinge one of points, where these are fewer than features."""
    side = facts.m if squared else min(facts.m, max(facts.n, NARROW))
    # 11: m-vectors of each problem: in the state, in what a pass asks, and in the partials of its answer
    return 8 * (5 * min(side, DIRECT_SPARSE if facts.entries else DIRECT) ** 2 + 11 * k * facts.m)


def _point_bytes(facts: Facts, k: int) -> float:
    """Of one point: up to three copies as it is stored, in float64 with some of them twice, and what problems know of it."""
    wide = facts.entries * (3 * facts.itemsize + 44) if facts.entries else facts.m * (3 * facts.itemsize + 12)
    return wide + 8 * (12 + 6 * k)
