"""Dual variables of a soft margin: n of them, which follow from little.

    hinge           max  sum_j alpha_j - |sum_j alpha_j b_j|^2 / 2                            over 0 <= alpha_j <= c_j
    squared hinge   max  sum_j (alpha_j - alpha_j^2 / (4 c_j)) - |sum_j alpha_j b_j|^2 / 2    over 0 <= alpha_j

with b_j = l_j x_j. Any alpha there bounds the minimum of f from below, and the lower end that a method tells is the value of
one. With w the sum of alpha_j b_j, |v - w|^2 / 2 <= f(v) - value for any v: the loss of a point is nowhere below the line that
alpha_j makes of it (Fenchel and Young), and what is left are two squares.

    f_i(w) = |w|^2 / 2 + sum_j c_ij loss(1 - l_j x_j'w),     loss(z) = max(0, z) or max(0, z)^2,

over the points as they are stored, with the intercept, if there is one, a feature like the others (as LIBLINEAR has it). c_ij
is C_i times the weights of the class and of the point, and 0 for points of the fold that problem i leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Protocol

import numpy as np

from dfeas.linalg.points import Floats, Indices
from dfeas.methods.protocol import Facts
from dfeas.methods.soft_margin.rows import kept_bytes
from dfeas.passes.block import Columns
from dfeas.passes.protocol import Partial, Question
from dfeas.passes.select import sample
from dfeas.passes.slacks import Multipliers, SampleCosts


@dataclass(frozen=True, slots=True)
class Dual:
    """Those of one problem whose value is its lower end."""

    squared: bool  # of the squared hinge
    at: Floats | None  # (m,) the w whose scores tell those of all points but ``index``; None: all are 0
    index: Indices  # (r,) ascending
    multiplier: Floats  # (r,)

    @classmethod
    def nothing(cls, squared: bool) -> Dual:
        """All are 0, and so is their value."""
        return cls(squared, None, np.empty(0, np.int64), np.empty(0))

    @classmethod
    def of_scores(cls, w: Floats) -> Dual:
        """Of the squared hinge, at w."""
        return cls(True, w.copy(), np.empty(0, np.int64), np.empty(0))

    @classmethod
    def of_model(cls, w: Floats, index: Indices, multiplier: Floats) -> Dual:
        """Of the hinge, from a model made at w that kept some points."""
        return cls(False, w.copy(), index, multiplier)

    def question(self, counted: SampleCosts) -> Multipliers:
        """The pass that tells all of them; ``counted`` is of this problem alone."""
        return Multipliers(self.at, counted, self.squared, self.index, self.multiplier)


FROM_EACH = 16
"""Blocks of a sample, at least, where there are many: neighbours are often alike."""

STILL = 6
"""Passes without a narrower gap after which no further one is expected to help."""

STEEPEST = 2.0**27
"""C times that square, from where on it may be."""
STEEP = "C times the square of the points' lengths is large beside what float64 tells: lower C, or shorter points, help"
"""Why the minimum is told no better: multipliers of that size cancel in the sum that is w."""

TRIALS = (0.5, 0.25, 0.0625, 0.01)
"""Parts of the way at which f is told, too, after a step that was too long."""


def problems(C: Sequence[float], folds: int) -> list[tuple[float, int]]:
    """(C, fold left out): each C on all points (-1), and, with folds, without each of them."""
    return list(product(C, range(-1, folds if folds > 1 else 0)))


def counted(
    C: Sequence[float], folds: int = 0, classes: tuple[float, float] = (1.0, 1.0), weight: Floats | None = None, seed: int = 0
) -> SampleCosts:
    """Costs of all problems; ``classes`` are the weights of the classes -1 and +1."""
    both = problems(C, folds)
    left_out = np.array([fold for _, fold in both], np.int64)
    return SampleCosts(np.array([c for c, _ in both]), left_out, *classes, weight, max(1, folds), seed)


@dataclass(frozen=True, slots=True)
class Best:
    """Both ends of the minima of k problems, and where the upper ones are attained."""

    Y: Floats  # (m, k)
    objective: Floats  # (k,) f at Y
    lower: Floats  # (k,) of the minima
    support: Indices  # (k,) points with l_j x_j'y <= 1
    error: Floats  # (k,) weighted share of the tested points on the wrong side: of the fold that is left out, or of all

    @classmethod
    def nothing(cls, m: int, k: int) -> Best:
        """Before the first pass: the loss is not negative."""
        return cls(np.zeros((m, k)), np.full(k, np.inf), np.zeros(k), np.zeros(k, np.int64), np.full(k, np.nan))

    @property
    def gap(self) -> Floats:
        """(k,) relative: (objective - lower) / objective; 0 where the objective is 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            found = (self.objective - self.lower) / self.objective
        return np.where(self.objective == 0, 0.0, np.where(np.isfinite(self.objective), found, 1.0))

    def seen(self, problem: Indices, Y: Floats, objective: Floats, support: Indices, error: Floats) -> Best:
        """After a read that told f at some Y (m, q) of some problems (q,)."""
        found = Best(self.Y.copy(), self.objective.copy(), self.lower, self.support.copy(), self.error.copy())
        for column, i in enumerate(problem):
            if objective[column] < found.objective[i]:
                found.Y[:, i], found.objective[i] = Y[:, column], objective[column]
                found.support[i], found.error[i] = support[column], error[column]
        return found

    def raised(self, lower: Floats) -> Best:
        """With better lower ends; one above the objective is rounding, and is brought down to it."""
        return replace(self, lower=np.minimum(np.maximum(self.lower, lower), self.objective))


@dataclass(frozen=True, slots=True)
class Progress:
    """What a method can show now."""

    best: Best
    steps: int  # of Newton, or updates
    kept: int  # points in memory
    stalled: str = ""  # why no further pass can help, if so
    duals: tuple[Dual, ...] = ()  # of all problems, their values the lower ends; none where they are not known


class SoftMargin(Protocol):
    """As a ``Method``, with another kind of evidence. States are frozen; memory is that of ``facts``."""

    counted: SampleCosts  # of all problems
    name: str  # as users call it

    def init(self, facts: Facts) -> Any:
        """State before the first pass."""

    def ask(self, state: Any) -> Question:
        """The question of the next pass."""

    def tell(self, state: Any, answer: Any) -> Any:
        """State after the answer."""

    def evidence(self, state: Any) -> Progress:
        """What is known."""

    @classmethod
    def of(cls, costs: SampleCosts, gap: float, start: Floats | None) -> SoftMargin:
        """For some problems up to a gap, from ``start`` (m, k) if there is one."""

    @classmethod
    def kept_points(cls, facts: Facts, k: int) -> int:
        """Points that are kept in memory for k problems."""
        return 0

    @classmethod
    def own_bytes(cls, facts: Facts, k: int) -> float:
        """Bytes that are kept for k problems, with the answers of the passes."""
        return kept_bytes(facts, k, cls.kept_points(facts, k))

    @classmethod
    def enough(cls, facts: Facts, k: int) -> bool:
        """Whether memory holds as much as is wanted."""
        return True

    @classmethod
    def reads(cls, facts: Facts, k: int) -> float:
        """Reads that a relative gap of 1e-3 usually takes: benchmarks/soft_margin.py."""

    @classmethod
    def remark(cls, facts: Facts, k: int) -> str:
        """What else it takes, for a plan."""
        return ""


@dataclass(frozen=True, slots=True)
class Looks:
    """What a pass tells f of."""

    Y: Floats  # (m, q); the first k are what is asked
    problem: Indices  # (q,)
    part: Floats  # (q,) of the way from the best w to what is asked


def looks(asked: Floats, best: Best, reach: Floats) -> Looks:
    """What is asked of each problem (m, k); where ``reach`` (k,) is below 1, also parts of the way to it from the best."""
    moves = np.flatnonzero((reach < 1) & (asked != best.Y).any(axis=0))
    between = [best.Y[:, moves] + t * (asked - best.Y)[:, moves] for t in TRIALS]
    k = asked.shape[1]
    part = np.repeat([1.0, *TRIALS], [k, *[len(moves) for _ in TRIALS]])
    return Looks(np.hstack([asked, *between]), np.concatenate([np.arange(k), *[moves for _ in TRIALS]]), part)


def told_no_better(counted: SampleCosts, facts: Facts) -> str:
    """Why further passes do not help."""
    steep = float(counted.C.max()) * facts.radius**2 * max(counted.negative, counted.positive) > STEEPEST
    return f"float64 tells the minimum no better{f', as {STEEP}' if steep else ''}"


def sample_of(facts: Facts, count: int, seed: int) -> Partial:
    """About ``count`` points as they are stored, from some blocks."""
    least = min(FROM_EACH, -(-facts.blocks // 4))
    return sample(facts.m, count, facts.n, facts.blocks, least, seed, unit=False)


def sample_costs(counted: SampleCosts, columns: Columns, n: int) -> Floats:
    """Costs (r, k) of a sample that stands for n points."""
    return counted.matrix(columns.index, columns.scale) * (n / max(1, len(columns)))


def error_of(wrong: Floats, tested: Floats) -> Floats:
    """Share (k,) of the weight that is on the wrong side; nan where nothing was tested."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(tested > 0, wrong / tested, np.nan))
