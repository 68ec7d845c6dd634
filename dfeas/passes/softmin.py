"""The central pass: low, arg, lse and mean of k questions, all from one read.

For columns a_j and a question (y, mu):

    low  = min_j a_j'y            arg  = the first j that attains it
    lse  = log sum_j exp(-a_j'y / mu)
    mean = A softmax(-A'y / mu)   the gradient of -mu lse

mu = 0 is the limit: mean is the column ``arg`` and lse is not finite. Each tile is read once: scores, running minimum,
exponentials, weighted sum; earlier sums are rescaled when the minimum drops (the flash-attention pattern).

``low`` and ``arg`` do not depend on how the points are cut into blocks, nor on the precision of the fast product: every
column that could attain the minimum, by the rounding bound of that product, is scored again in a fixed order in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from threading import local

import numpy as np

from dfeas.linalg.points import Array, Floats, Indices, Tile, add_combinations, times
from dfeas.passes.block import Block, rounding

SINGLE_LIMIT = 2.0**14
"""Largest |y| / mu for float32 products: the weights then carry a relative error of about 2**-24 * 2**14 = 1e-3."""
NEGLIGIBLE = 100.0
"""A tile whose weights are all below exp(-100) of the greatest adds nothing to float64 sums."""


_spare = local()
"""Of each thread ``moment`` (k, m), the last that was used up, for the next block: fresh memory costs more than sums."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SoftminAnswer:
    """What softmin found for k questions."""

    low: Floats  # (k,) min_j a_j'y
    arg: Indices  # (k,) first index that attains it
    lse: Floats  # (k,) log sum_j exp(-a_j'y / mu); not finite for mu = 0
    mean: Floats  # (m, k) A softmax(-A'y / mu); the column arg for mu = 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SoftminPartial:
    """Sums over some blocks, relative to their own minimum."""

    low: Floats  # (k,) inf when empty
    arg: Indices  # (k,)
    total: Floats  # (k,) sum_j exp((low - a_j'y) / mu); 1 for mu = 0
    moment: Floats  # (k, m) sum_j exp((low - a_j'y) / mu) a_j; the column arg for mu = 0


@dataclass(frozen=True, eq=False, repr=False)
class Softmin:
    """k questions: Y (m, k) in any scale, mu (k,) >= 0."""

    Y: Floats
    mu: Floats

    def __post_init__(self) -> None:
        if self.Y.ndim != 2 or self.mu.shape != (self.Y.shape[1],):
            raise ValueError(f"expected Y (m, k) and mu (k,), got {self.Y.shape} and {self.mu.shape}")
        if not (np.isfinite(self.Y).all() and np.isfinite(self.mu).all() and (self.mu >= 0).all()):
            raise ValueError("Y and mu must be finite and mu >= 0")

    @property
    def width(self) -> int:
        return len(self.mu)

    def empty(self) -> SoftminPartial:
        m, k = self.Y.shape
        moment, _spare.moment = getattr(_spare, "moment", None), None
        if moment is None or moment.shape != (k, m):
            moment = np.zeros((k, m))
        else:
            moment.fill(0)
        return SoftminPartial(np.full(k, np.inf), np.full(k, -1, np.int64), np.zeros(k), moment)

    @cached_property
    def _soft(self) -> Indices:
        return np.flatnonzero(self.mu > 0)

    @cached_property
    def _lengths(self) -> Floats:
        return np.asarray(np.linalg.norm(self.Y, axis=0), np.float64)

    @cached_property
    def _admits_single(self) -> bool:
        return bool((self._lengths[self._soft] <= SINGLE_LIMIT * self.mu[self._soft]).all())

    @cached_property
    def _each(self) -> Floats:
        """The y (k, m), one a row."""
        return np.ascontiguousarray(self.Y.T)

    @cached_property
    def _narrow(self) -> Array:
        return np.ascontiguousarray(self.Y, np.float32)

    def scan(self, block: Block) -> SoftminPartial:
        partial = self.empty()
        single = self._admits_single and block.single
        questions: Array = self._narrow if single else self.Y
        factor: Array = block.sides.narrow if single else block.sides.scale()
        slack = rounding(block.terms, single) * self._lengths
        soft = self._soft
        # scores that only choose what is scored again may be summed in any order
        alone = block.fast_scores(questions[:, 0])[None] if len(self.mu) == 1 and not soft.size else None
        for rows in block.tiles():
            points = block.tile(rows, single)
            scores = _scores(points, factor[rows], questions, block.intercept) if alone is None else alone[:, rows]
            least = scores.min(axis=1)
            lower = np.flatnonzero(least <= partial.low + slack)
            near = np.minimum(least + 2 * slack, partial.low + slack)
            # y = 0 scores every column 0, and the first row stands for all
            lowest = [(scores[i] <= near[i]).nonzero()[0] if self._lengths[i] > 0 else np.zeros(1, np.int64) for i in lower]
            candidates = [rows.start + some for some in lowest]
            for i, some, exact in zip(lower, candidates, block.exact_scores_each(candidates, self._each[lower]), strict=True):
                self._lower(partial, i, block.start, some, exact)
            live = soft[least[soft] - partial.low[soft] < NEGLIGIBLE * self.mu[soft]]
            if live.size:
                self._weigh(partial, points, factor[rows], scores, _run(live), block.intercept)
        for hard in np.flatnonzero((self.mu == 0) & (partial.arg >= 0)):
            partial.total[hard] = 1.0
            partial.moment[hard] = block.columns(partial.arg[hard : hard + 1] - block.start)[0]
        return partial

    def _lower(self, partial: SoftminPartial, i: np.intp, start: int, candidates: Indices, exact: Floats) -> None:
        """Lower the running minimum of a question, and rescale its sums, if a candidate's score is lower."""
        if not exact.size or exact.min() >= partial.low[i]:
            return
        best = int(exact.argmin())
        shrink = np.exp((exact[best] - partial.low[i]) / self.mu[i]) if self.mu[i] > 0 else 0.0
        partial.total[i] *= shrink
        partial.moment[i] *= shrink
        partial.low[i] = exact[best]
        partial.arg[i] = start + candidates[best]

    def _weigh(
        self, partial: SoftminPartial, points: Tile, factor: Array, scores: Array, live: Indices | slice, intercept: bool
    ) -> None:
        """Add a tile's exponential weights and weighted columns to the sums; may overwrite the scores."""
        weights = scores[live]
        shift, mu = partial.low[live, None].astype(scores.dtype), self.mu[live, None].astype(scores.dtype)
        weights = np.subtract(shift, weights, out=weights)
        weights /= mu
        np.exp(weights, out=weights)
        partial.total[live] += weights.sum(axis=1)
        weights *= factor
        m = points.shape[1]
        moment = partial.moment[live]
        add_combinations(moment[:, :m], weights, points)
        if not isinstance(live, slice):
            partial.moment[live] = moment
        if intercept:
            partial.moment[live, m] += weights.sum(axis=1)

    def merge(self, first: SoftminPartial, second: SoftminPartial) -> SoftminPartial:
        return self._add(replace(first, moment=first.moment.copy()), replace(second, moment=second.moment.copy()))

    def absorb(self, first: SoftminPartial, second: SoftminPartial) -> SoftminPartial:
        """The same, where nobody needs the two any more: long vectors take no fresh memory."""
        both = self._add(first, second)
        _spare.moment = second.moment
        return both

    def _add(self, first: SoftminPartial, second: SoftminPartial) -> SoftminPartial:
        """Their sums in the moments of the first; those of the second are used up."""
        # where the first has the lower minimum, or an equal one that it met first; an empty partial never wins
        earlier = (second.arg < 0) | (first.arg < second.arg)
        wins = (first.arg >= 0) & ((first.low < second.low) | ((first.low == second.low) & earlier))
        low = np.where(wins, first.low, second.low)
        # factor of the sums that are not relative to the common minimum
        gap = np.where(first.low == second.low, 0.0, low - np.maximum(first.low, second.low))
        shrink = np.where(self.mu > 0, np.exp(gap / np.where(self.mu > 0, self.mu, 1.0)), 0.0)
        one, two = np.where(wins, 1.0, shrink), np.where(wins, shrink, 1.0)
        for sums, factors in ((first.moment, one), (second.moment, two)):
            if (factors != 1).any():
                sums *= factors[:, None]
        moment = first.moment
        moment += second.moment
        total = first.total * one + second.total * two
        return SoftminPartial(low, np.where(wins, first.arg, second.arg), total, moment)

    def finish(self, partial: SoftminPartial) -> SoftminAnswer:
        """The answers; raises ValueError when there was no point at all."""
        if (partial.arg < 0).any():
            raise ValueError("softmin needs at least one point")
        with np.errstate(divide="ignore", invalid="ignore"):
            lse = np.log(partial.total) - partial.low / self.mu
        return SoftminAnswer(partial.low, partial.arg, lse, (partial.moment / partial.total[:, None]).T)


def _run(numbers: Indices) -> Indices | slice:
    """Ascending numbers as a slice where they follow each other, so that what they pick is no copy."""
    first, last = int(numbers[0]), int(numbers[-1])
    return slice(first, last + 1) if last - first + 1 == len(numbers) else numbers


def _scores(points: Tile, factor: Array, questions: Array, intercept: bool) -> Array:
    """Fast scores (k, t) of a tile, in the precision of its arguments; ``questions`` is (m, k)."""
    m = points.shape[1]
    scores = times(points, questions[:m])
    if intercept:
        scores += questions[m][:, None]
    scores *= factor
    return scores
