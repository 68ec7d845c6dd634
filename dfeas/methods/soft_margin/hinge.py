"""Soft margin with the hinge loss: points that are near the margin in memory, all others as a linear term.

Reference: own; a cutting plane (Joachims 2006; Franc and Sonnenburg 2009) that leaves out of the cut what memory holds.

    w <- the minimum for a random sample
    repeat
      one pass with w: f(w), the points nearest to the margin, B, and the sums of all others by their side of it
      v <- the minimum of the model  |v|^2/2 + rest + sum_B c_j max(0, 1 - b_j'v)
      gap = best f - best minimum of a model; small enough: stop                                     (else w <- v)

Guarantee: the hinge of a point is nowhere below the line that stands for it, so the minimum of each model is a lower bound of
the minimum of f, whatever B is; with multipliers alpha in the box it is a dual value, where points not in B have alpha_j = 0
or c_j. The model is f itself where no point outside B has changed its side. Let t be the part of the way from w to v that is
free of these; then f(w + t (v - w)) - f* <= (1 - t) (f(w) - f*), as f is convex and v minimises what is below it. The pass at
v also tells f at parts of the way, and the next one is made at the best, so that f descends. The closer w, the nearer v,
until no point crosses: then t = 1, and the gap is what the solver in memory leaves. The fewer points are in B, the more
passes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dfeas.linalg.points import Floats, Indices
from dfeas.methods.protocol import Facts
from dfeas.methods.soft_margin.band import Band, BandSolution, minimise_alike
from dfeas.methods.soft_margin.problem import (
    STILL,
    TRIALS,
    Best,
    Dual,
    Progress,
    SoftMargin,
    error_of,
    looks,
    sample_costs,
    sample_of,
    told_no_better,
)
from dfeas.methods.soft_margin.rows import Rows, capacity
from dfeas.passes.block import Columns
from dfeas.passes.hinge import Hinge, HingeAnswer
from dfeas.passes.protocol import Partial
from dfeas.passes.slacks import SampleCosts

FEW = 20_000
"""Up to so many points the hinge keeps all."""

LONGER = 8.0
"""Factor of the part of the way after a step that was not too long."""

SAMPLE_GAP = 1e-3
"""Of the minimum for the sample, which is farther from that of all points."""

SHARE = 0.3
"""The share of the gap that the solver in memory may leave."""


@dataclass(frozen=True, slots=True)
class HingeState:
    """Between passes."""

    facts: Facts
    cap: int  # points that are kept
    asked: Floats | None  # (m, k) where the next pass looks; None before the sample
    best: Best
    reach: Floats  # (k,) part of the way to the minimum of the model that is gone
    index: Indices  # (r,) points that the last model kept
    multiplier: Floats  # (r, k) theirs
    steps: int
    still: int  # passes since the widest gap became narrower
    duals: tuple[Dual, ...]  # (k) whose values are the lower ends


def wanted(facts: Facts) -> int:
    """About 2 (n^2 m)^(1/3) points: the w of a sample of half as many is so near that those on the wrong side are kept."""
    return max(FEW, round(2 * math.cbrt(facts.n**2 * facts.m)))


@dataclass(frozen=True)
class HingeMargin(SoftMargin):
    """``cap`` limits the points in memory below what memory allows; ``gap`` is what is aimed at; ``seed`` draws the sample."""

    counted: SampleCosts
    gap: float
    cap: int = 0
    seed: int = 0
    start: Floats | None = None  # (m, k) where the first pass looks, instead of a sample
    name: str = "hinge"

    @classmethod
    def of(cls, costs: SampleCosts, gap: float, start: Floats | None) -> HingeMargin:
        return cls(costs, gap, start=start)

    @classmethod
    def kept_points(cls, facts: Facts, k: int) -> int:
        return min(facts.n, capacity(facts, k), wanted(facts))

    @classmethod
    def enough(cls, facts: Facts, k: int) -> bool:
        return cls.kept_points(facts, k) >= min(facts.n, wanted(facts))

    @classmethod
    def reads(cls, facts: Facts, k: int) -> float:
        return 4.0 if cls.enough(facts, k) else 12.0

    @classmethod
    def remark(cls, facts: Facts, k: int) -> str:
        return "" if cls.enough(facts, k) else "fewer reads with more memory"

    def init(self, facts: Facts) -> HingeState:
        k = len(self.counted.C)
        cap = min(facts.n, self.cap or wanted(facts), capacity(facts, k))
        best, none = Best.nothing(facts.m, k), np.empty(0, np.int64)
        return HingeState(facts, cap, self.start, best, np.ones(k), none, np.empty((0, k)), 0, 0, (Dual.nothing(False),) * k)

    def ask(self, state: HingeState) -> Partial | Hinge:
        """A sample; or f, and the points near the margin."""
        facts, asked = state.facts, state.asked
        if asked is None:
            return sample_of(facts, state.cap if state.cap == facts.n else max(1, state.cap // 2), self.seed)
        seen = looks(asked, state.best, state.reach)
        quota = -(-2 * state.cap // facts.blocks)
        return Hinge(seen.Y, self.counted.take(seen.problem), asked.shape[1], state.cap, quota)

    def tell(self, state: HingeState, answer: Columns | HingeAnswer) -> HingeState:
        """Minimise the models of all problems that are not done."""
        if isinstance(answer, Columns):
            return self._sampled(state, answer)
        asked, before = state.asked, state.best
        assert asked is not None
        seen = looks(asked, before, state.reach)
        objective = np.einsum("ij,ij->j", seen.Y, seen.Y) / 2 + answer.loss
        error = error_of(answer.wrong, answer.tested)
        best = before.seen(seen.problem, seen.Y, objective, answer.support, error)
        following, lower, reach, steps = best.Y.copy(), best.lower.copy(), state.reach.copy(), state.steps
        multiplier, duals = self._known(state, answer.columns.index)[0], list(state.duals)
        for i, found in self._models(state, answer, best).items():
            multiplier[:, i], steps = found.multiplier, steps + found.steps
            told = found.lower + float(answer.total[i])
            if told > lower[i]:
                lower[i], duals[i] = told, Dual.of_model(asked[:, i], answer.columns.index, found.multiplier)
            if (asked[:, i] == best.Y[:, i]).all():
                following[:, i] += reach[i] * (found.w - asked[:, i])
                reach[i] = min(1.0, LONGER * reach[i])
            else:
                # away from the best w a model is only a bound: the next one is made there, or nearer to it
                better = seen.part[(seen.problem == i) & (objective <= best.objective[i])]
                if len(better):
                    reach[i] *= better.max()
                else:
                    shorter = TRIALS[1] if reach[i] == 1 else TRIALS[-1]
                    reach[i] *= shorter
                    following[:, i] += shorter * (asked[:, i] - best.Y[:, i])
        best = best.raised(lower)
        narrower = (best.gap < 0.99 * before.gap).any() or (best.objective < (1 - 1e-4) * before.objective).any()
        return replace(
            state,
            asked=following,
            best=best,
            reach=reach,
            index=answer.columns.index,
            multiplier=multiplier,
            steps=steps,
            still=0 if narrower else state.still + 1,
            duals=tuple(duals),
        )

    def _models(self, state: HingeState, answer: HingeAnswer, best: Best) -> dict[int, BandSolution]:
        """The minima of the models of all problems that are not done; each begins with the multipliers of one before."""
        assert state.asked is not None
        columns, found = answer.columns, dict[int, BandSolution]()
        rows = Rows.of(columns)
        costs = self.counted.matrix(columns.index, columns.scale)[:, : len(self.counted.C)]
        known, same = self._known(state, columns.index)
        targets = SHARE * self.gap * best.objective
        for C in np.unique(self.counted.C):
            alike = np.flatnonzero((best.gap > self.gap) & (self.counted.C == C))
            for i in map(int, alike if same.any() else alike[:1]):
                cost, w, multiplier = costs[:, i], state.asked[:, i], None
                if same.any():
                    # points that the model before did not have begin with their side
                    multiplier = np.where(same, known[:, i], cost * (rows.scores(w) < 1))
                elif found:
                    multiplier = self._alike(found[max(found)].multiplier, costs[:, max(found)], cost)
                found[i] = Band(rows, cost, answer.rest[i]).minimise(w, multiplier, targets[i])
            if len(alike) > 1 and not same.any():
                others, first = alike[1:], found[int(alike[0])]
                bands = [Band(rows, costs[:, i], answer.rest[i]) for i in others]
                found |= dict(zip(map(int, others), minimise_alike(bands, first, targets[others]), strict=True))
        return found

    def _alike(self, multiplier: Floats, cost: Floats, wanted: Floats) -> Floats:
        """Multipliers at the same places in boxes of other sizes; half of those that had none."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(cost > 0, multiplier / cost, 0.5) * wanted

    def _known(self, state: HingeState, index: Indices) -> tuple[Floats, NDArray[np.bool_]]:
        """Multipliers (r, k) of the points that the model before had, and which (r,) these are."""
        found, same = np.zeros((len(index), state.multiplier.shape[1])), np.zeros(len(index), bool)
        if len(state.index):
            place = np.minimum(np.searchsorted(state.index, index), len(state.index) - 1)
            same = state.index[place] == index
            found[same] = state.multiplier[place[same]]
        return found, same

    def _sampled(self, state: HingeState, columns: Columns) -> HingeState:
        """The minima for the sample, one for each C: what a fold changes is less than what the sample does not know."""
        counted, m = self.counted, state.facts.m
        costs, rows, none = sample_costs(counted, columns, state.facts.n), Rows.of(columns), np.zeros(m)
        asked, steps, w, last = np.zeros((m, len(counted.C))), 0, none, None
        for C in np.unique(counted.C):
            same = np.flatnonzero(counted.C == C)
            cost = costs[:, same[0]]
            multiplier = None if last is None else self._alike(last[1], last[0], cost)
            band = Band(rows, cost, none)
            found = band.minimise(w, multiplier, SAMPLE_GAP * band.value(w, rows.scores(w)))
            asked[:, same], steps, w, last = found.w[:, None], steps + found.steps, found.w, (cost, found.multiplier)
        return replace(state, asked=asked, steps=steps)

    def evidence(self, state: HingeState) -> Progress:
        why = told_no_better(self.counted, state.facts) if state.still >= STILL else ""
        return Progress(state.best, state.steps, len(state.index), why, state.duals)
