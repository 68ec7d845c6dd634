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
from dataclasses import dataclass

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.linalg.points import Floats, Indices, norms
from dfeas.methods.protocol import Facts
from dfeas.methods.soft_margin.band import Band, BandSolution, SignedRows, Width, minimise_alike
from dfeas.methods.soft_margin.problem import (
    TRIALS,
    Best,
    Dual,
    MarginCost,
    Progress,
    SampledMargin,
    capacity,
    kept_bytes,
    looks,
    sample_of,
)
from dfeas.passes.block import Columns
from dfeas.passes.hinge import Hinge, HingeAnswer
from dfeas.passes.protocol import Partial
from dfeas.records import replace


class HingeState(Struct, frozen=True):
    """Between passes: both ends, and what the last model kept."""

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


SHARE = 0.3
"""Of the gap, which the solver in memory may leave."""


def wanted_points(facts: Facts) -> int:
    """About 2 (n^2 m)^(1/3) points: the w of a sample of half as many is so near that those on the wrong side are kept."""
    # 20_000: up to so many points the hinge keeps all
    return max(20_000, round(2 * math.cbrt(facts.n**2 * facts.m)))


class SampleMinimum(Struct, frozen=True):
    """The minimum for a sample, which multipliers of other costs begin from."""

    w: Floats  # (m,)
    steps: int
    cost: Floats  # (r,)
    multiplier: Floats  # (r,)


@dataclass(frozen=True)
class HingeMargin(SampledMargin):
    """``cap`` limits the points in memory below what memory allows."""

    cap: int = 0
    name: str = "hinge"

    @classmethod
    def cost(cls, facts: Facts, k: int) -> MarginCost:
        points = min(facts.n, capacity(facts, k), wanted_points(facts))
        kept = kept_bytes(facts, k, points)
        if points >= min(facts.n, wanted_points(facts)):
            return MarginCost(4.0, kept, points)
        return MarginCost(12.0, kept, points, enough=False, remark="fewer reads with more memory")

    def init(self, facts: Facts) -> HingeState:
        k = len(self.counted.C)
        cap = min(facts.n, self.cap or wanted_points(facts), capacity(facts, k))
        best, none = Best.initial(self.squares, k), np.empty(0, np.int64)
        return HingeState(facts, cap, self.start, best, np.ones(k), none, np.empty((0, k)), 0, 0, (Dual.zero(False),) * k)

    def sample_size(self, state: HingeState) -> int:
        return state.cap if state.cap == state.facts.n else max(1, state.cap // 2)

    def ask(self, state: HingeState) -> Partial | Hinge:
        facts, target = state.facts, state.asked
        if target is None:
            return sample_of(facts, self.sample_size(state), self.seed)
        Y, which, _ = looks(target, state.best, state.reach)
        quota = -(-2 * state.cap // facts.blocks)
        return Hinge(Y, self.counted.take(which), target.shape[1], state.cap, quota)

    def tell(self, state: HingeState, answer: Columns | HingeAnswer) -> HingeState:
        if isinstance(answer, Columns):
            sampled, steps = self.sample_minima(state.facts, answer)
            state = replace(state, asked=np.stack([each.w for each in sampled], axis=1), steps=steps)
            if not self.samples_all(state.facts, len(answer)):
                return state
            return replace(state, index=answer.index, multiplier=np.stack([each.multiplier for each in sampled], axis=1))
        target, before = state.asked, state.best
        assert target is not None
        Y, which, part = looks(target, before, state.reach)
        best, objective = before.after(which, Y, answer)
        following, lower, reach, steps = best.Y.copy(), best.lower.copy(), state.reach.copy(), state.steps
        multiplier, duals = self._known_multipliers(state, answer.columns.index)[0], list(state.duals)
        for i, model in self._models(state, answer, best).items():
            multiplier[:, i], steps = model.multiplier, steps + model.steps
            dual = model.lower + float(answer.total[i])
            if dual > lower[i]:
                lower[i], duals[i] = dual, Dual.of_model(target[:, i], answer.columns.index, model.multiplier)
            if (target[:, i] == best.Y[:, i]).all():
                following[:, i] += reach[i] * (model.w - target[:, i])
                # 8.0: factor of the part of the way after a step that was not too long
                reach[i] = min(1.0, 8.0 * reach[i])
            else:
                # away from the best w a model is only a bound: the next one is made there, or nearer to it
                better = part[(which == i) & (objective <= best.objective[i])]
                if len(better):
                    reach[i] *= better.max()
                else:
                    shorter = TRIALS[1] if reach[i] == 1 else TRIALS[-1]
                    reach[i] *= shorter
                    following[:, i] += shorter * (target[:, i] - best.Y[:, i])
        best = best.raise_lower(lower)
        still = 0 if best.narrower(before) else state.still + 1
        state = replace(state, asked=following, best=best, reach=reach, steps=steps, still=still, duals=tuple(duals))
        return replace(state, index=answer.columns.index, multiplier=multiplier)

    def _models(self, state: HingeState, answer: HingeAnswer, best: Best) -> dict[int, BandSolution]:
        """The minima of the models of all problems that are not done; each begins with the multipliers of one before."""
        assert state.asked is not None
        columns, models = answer.columns, dict[int, BandSolution]()
        rows = SignedRows.of(columns)
        costs = self.counted.matrix(columns.index, columns.scale)[:, : len(self.counted.C)]
        known, same = self._known_multipliers(state, columns.index)
        targets = SHARE * self.gap * best.objective
        widths = [Width(self.squares, state.facts.radius, float(objective)) for objective in best.objective]
        for C in np.unique(self.counted.C):
            alike = np.flatnonzero((best.gap > self.gap) & (self.counted.C == C))
            for i in map(int, alike if same.any() else alike[:1]):
                cost, w, multiplier = costs[:, i], state.asked[:, i], None
                if same.any():
                    # points that the model before did not have begin with their side
                    multiplier = np.where(same, known[:, i], cost * (rows.scores(w) < 1))
                elif models:
                    multiplier = self._alike(models[max(models)].multiplier, costs[:, max(models)], cost)
                models[i] = Band(rows, cost, answer.rest[i], widths[i]).minimise(w, multiplier, targets[i])
            if len(alike) > 1 and not same.any():
                others, first = alike[1:], models[int(alike[0])]
                bands = [Band(rows, costs[:, i], answer.rest[i], widths[i]) for i in others]
                models |= dict(zip(map(int, others), minimise_alike(bands, first, targets[others]), strict=True))
        return models

    def _alike(self, multiplier: Floats, cost: Floats, wanted: Floats) -> Floats:
        """Multipliers at the same places in boxes of other sizes; half of those that had none."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(cost > 0, multiplier / cost, 0.5) * wanted

    def _known_multipliers(self, state: HingeState, index: Indices) -> tuple[Floats, NDArray[np.bool_]]:
        """Multipliers (r, k) of the points that the model before had, and which (r,) these are."""
        known, same = np.zeros((len(index), state.multiplier.shape[1])), np.zeros(len(index), bool)
        if len(state.index):
            place = np.minimum(np.searchsorted(state.index, index), len(state.index) - 1)
            same = state.index[place] == index
            known[same] = state.multiplier[place[same]]
        return known, same

    def sample_minimum(self, rows: SignedRows, cost: Floats, before: SampleMinimum | None, whole: bool) -> SampleMinimum:
        w = np.zeros(rows.features) if before is None else before.w
        multiplier = None if before is None else self._alike(before.multiplier, before.cost, cost)
        width = Width(self.squares, float(norms(rows.values).max(initial=0.0)), float(cost.sum()))
        band = Band(rows, cost, np.zeros(rows.features), width)
        # 1e-3: of the minimum for the sample, which is farther from that of all points
        solution = band.minimise(w, multiplier, 1e-3 * band.value(w, rows.scores(w)))
        target, steps = SHARE * self.gap * solution.value, solution.steps
        if whole and solution.value - solution.lower > target:
            # 0.01: a rough minimum that is farther off takes longer to begin from than none
            near = solution.value - solution.lower <= 0.01 * solution.value
            solution = band.minimise(solution.w, solution.multiplier if near else None, target)
            steps += solution.steps
        return SampleMinimum(solution.w, steps, cost, solution.multiplier)

    def evidence(self, state: HingeState) -> Progress:
        return replace(super().evidence(state), kept=len(state.index))
