"""The central pass: low, arg, lse and mean of k questions, all from one read.

For columns a_j and a question (y, mu):

    low  = min_j a_j'y            arg  = the first j that attains it
    lse  = log sum_j exp(-a_j'y / mu)
    mean = A softmax(-A'y / mu)   the gradient of -mu lse

mu = 0 is the limit: mean is the column ``arg`` and lse is not finite. Each tile is read once: scores, running minimum,
exponentials, weighted sum; earlier sums are rescaled when the minimum drops (the flash-attention pattern). Sums are made
of each block alone, and of several at once they are added in the order of the tree: the same bits, in fewer Python calls.

``low`` and ``arg`` do not depend on how the points are cut into blocks, nor on the precision of the fast product: every
column that could attain the minimum, by the rounding bound of that product, is scored again in a fixed order in float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from threading import local
from typing import Any

import numpy as np
from msgspec import Struct

from dfeas.linalg.points import SPARSE_SUMMED, SUMMED, Array, Floats, Indices, Tile, add_combinations, product, times
from dfeas.passes.block import Block, rounding
from dfeas.records import replace

SINGLE_LIMIT, SINGLE_SIZE = 2.0**14, 1e30
"""Largest |y| / mu for float32 products: the weights then carry a relative error of about 2**-24 * 2**14 = 1e-3; and what |y|,
1 / |y| and 1 / mu are below, where they are finite.
"""
MOMENTS = 1 << 17
"""Numbers in the sums of blocks that are scanned at once."""

Near = tuple[int, Indices, Array]
"""A question, and rows of a block that may have its lowest score, with their fast scores."""
_spare = local()
"""Of each thread ``moment`` (k, m), the last that was used up, for the next block: fresh memory costs more than sums."""


def roundings(kind: np.dtype[Any], sparse: bool, n: int, m: int) -> float:
    """How far |mean| may be from that of weights which sum to 1, of n unit columns (m,) in a type: by each product of a tile,
    whose factors are rounded, by their sum, by that of the weights in runs of 128 and in pairs, by sums of these in float64,
    and by the length of what comes of it.
    """
    rows = SPARSE_SUMMED if sparse else SUMMED
    # 64: 16 to 24 roundings of a run, 20 of pairs, 4 of factors, and some to spare
    return 1.02 * ((rows + 64) * (2.0**-24 if kind == np.float32 else 2.0**-53) + (n / rows + m + 64) * 2.0**-53)


class SoftminAnswer(Struct, frozen=True, eq=False):
    """What softmin found for k questions."""

    low: Floats  # (k,) min_j a_j'y
    arg: Indices  # (k,) first index that attains it
    lse: Floats  # (k,) log sum_j exp(-a_j'y / mu); not finite for mu = 0
    mean: Floats  # (m, k) A softmax(-A'y / mu); the column arg for mu = 0


class SoftminPartial(Struct, frozen=True, eq=False):
    """Sums over some blocks, relative to the least of their fast scores."""

    low: Floats  # (k,) inf when empty
    arg: Indices  # (k,) -1 when empty
    shift: Floats  # (k,) the least fast score; inf when empty
    total: Floats  # (k,) sum_j exp((shift - a_j'y) / mu); 1 for mu = 0
    moment: Floats  # (k, m) sum_j exp((shift - a_j'y) / mu) a_j; the column arg for mu = 0


class SoftminSums(Struct, frozen=True, eq=False, dict=True):
    """k questions, of points or of cones: Y (m, k) in any scale, mu (k,) >= 0. What is found is merged alike."""

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
        shift, total, moment = self._sums(1)
        return SoftminPartial(shift[0].copy(), np.full(self.width, -1, np.int64), shift[0], total[0], moment[0])

    def _sums(self, blocks: int) -> tuple[Floats, Floats, Floats]:
        """Empty sums of so many blocks: shift (blocks, k), total (blocks, k) and moment (blocks, k, m)."""
        m, k = self.Y.shape
        moment, _spare.moment = getattr(_spare, "moment", None), None
        if blocks > 1 or moment is None or moment.shape != (k, m):
            moment = np.zeros((blocks, k, m))
        else:
            moment.fill(0)
        return np.full((blocks, k), np.inf), np.zeros((blocks, k)), moment.reshape(blocks, k, m)

    @cached_property
    def _soft(self) -> Indices:
        return np.flatnonzero(self.mu > 0)

    @cached_property
    def _lengths(self) -> Floats:
        size = np.abs(self.Y).max(axis=0, initial=0.0)
        return np.asarray(size * np.linalg.norm(self.Y / np.where(size > 0, size, 1.0), axis=0), np.float64)

    @cached_property
    def _admits_single(self) -> bool:
        mu, length, least = self.mu, self._lengths, 1 / SINGLE_SIZE
        sized = (length == 0) | ((least < length) & (length < SINGLE_SIZE))
        return bool((sized & ((mu == 0) | ((length <= SINGLE_LIMIT * mu) & (mu > least)))).all())

    @cached_property
    def _single_soft(self) -> bool:
        """Whether there is one question, with mu > 0."""
        return self.width == 1 and bool(self.mu[0] > 0)

    @cached_property
    def _each(self) -> Floats:
        """The y (k, m), one a row."""
        return np.ascontiguousarray(self.Y.T)

    @cached_property
    def _narrow(self) -> Array:
        return np.ascontiguousarray(self.Y, np.float32)

    def _shrink(self, shift: Floats, lower: Floats) -> Floats:
        """Factors of sums relative to ``shift`` that are to be relative to ``lower``; 1 for mu = 0."""
        gap = np.subtract(lower, shift, out=np.zeros(shift.shape), where=(lower < shift) & (self.mu > 0))
        return np.asarray(np.exp(gap / np.where(self.mu > 0, self.mu, 1.0)))

    def _add(self, first: Sequence[Floats], second: Sequence[Floats]) -> tuple[Floats, Floats, Floats]:
        """shift, total and moment of both, in the memory of the first; the second is used up."""
        lower = np.minimum(first[0], second[0])
        for shift, total, moment in (first, second):
            if (lower < shift).any():
                factor = self._shrink(shift, lower)
                total *= factor
                moment *= factor[..., None]
        _, total, moment = first
        total += second[1]
        moment += second[2]
        return lower, total, moment

    def merge(self, first: SoftminPartial, second: SoftminPartial) -> SoftminPartial:
        one, two = (replace(each, total=each.total.copy(), moment=each.moment.copy()) for each in (first, second))
        return self._join(one, two)

    def absorb(self, first: SoftminPartial, second: SoftminPartial) -> SoftminPartial:
        """The same, where nobody needs the two any more: long vectors take no fresh memory."""
        both = self._join(first, second)
        _spare.moment = second.moment
        return both

    def _join(self, first: SoftminPartial, second: SoftminPartial) -> SoftminPartial:
        """Their sums in the memory of the first; those of the second are used up."""
        # where the first has the lower minimum, or an equal one that it met first; an empty partial never wins
        earlier = (second.arg < 0) | (first.arg < second.arg)
        wins = (first.arg >= 0) & ((first.low < second.low) | ((first.low == second.low) & earlier))
        for partial, lost in ((first, ~wins), (second, wins)) if len(self._soft) < self.width else ():
            if (lost := lost & (self.mu == 0)).any():
                partial.total[lost] = 0.0
                partial.moment[lost] = 0.0
        sums = self._add(*((each.shift, each.total, each.moment) for each in (first, second)))
        return SoftminPartial(np.where(wins, first.low, second.low), np.where(wins, first.arg, second.arg), *sums)

    def finish(self, partial: SoftminPartial) -> SoftminAnswer:
        """The answers; raises ValueError when there was no point at all."""
        if (partial.arg < 0).any():
            raise ValueError("softmin needs at least one point")
        with np.errstate(divide="ignore", invalid="ignore"):
            lse = np.log(partial.total) - partial.shift / self.mu
        return SoftminAnswer(partial.low, partial.arg, lse, (partial.moment / partial.total[:, None]).T)


class Softmin(SoftminSums, frozen=True, eq=False):
    """k questions to points; products of float64 where sums are to be ``exact`` ones."""

    exact: bool = False

    def scan(self, block: Block) -> SoftminPartial:
        if not self._single_soft or not block.size:
            return self.scan_run([block])
        single = self._in_single(block)
        slack, (shift, total, moment) = rounding(block.terms, single) * self._lengths, self._sums(1)
        near = self._weigh_one(block, single, slack, shift[0], total[0], moment[0])
        bar = float(shift[0, 0] + 2 * slack[0])
        rows = near[0][1] if len(near) == 1 else np.concatenate([rows[fast <= bar] for _, rows, fast in near])
        values = block.exact_scores(rows, self._each[0])
        best = int(values.argmin())
        return SoftminPartial(values[best : best + 1], rows[best : best + 1] + block.start, shift[0], total[0], moment[0])

    def scan_run(self, blocks: Sequence[Block]) -> SoftminPartial:
        count = len(blocks)
        if count > 1 and (count * self.Y.size > MOMENTS or count & (count - 1)):
            left = 1 << (count - 1).bit_length() - 1
            return self.absorb(self.scan_run(blocks[:left]), self.scan_run(blocks[left:]))
        single = [self._in_single(block) for block in blocks]
        slack = np.array([rounding(block.terms, narrow) for block, narrow in zip(blocks, single, strict=True)])
        slack, sums = slack[:, None] * self._lengths, self._sums(count)
        weigh = self._weigh_one if self._single_soft else self._weigh
        near = [weigh(*each) for each in zip(blocks, single, slack, *sums, strict=True)]
        low, arg = self._find_low(blocks, near, (sums[0] + slack).min(axis=0), slack)
        while len(sums[0]) > 1:
            sums = self._add(*([each[i::2] for each in sums] for i in range(2)))
        shift, total, moment = (each[0] if count == 1 else each[0].copy() for each in sums)
        for hard in np.flatnonzero((self.mu == 0) & (arg >= 0)):
            block = next(block for block in blocks if arg[hard] < block.start + block.size)
            # 0.0 makes no difference but of a zero's sign, as it does when partials are added
            total[hard], moment[hard] = 1.0, block.columns(arg[hard : hard + 1] - block.start)[0] + 0.0
        return SoftminPartial(low, arg, shift, total, moment)

    def _in_single(self, block: Block) -> bool:
        return not self.exact and self._admits_single and block.single

    def _weigh(self, block: Block, single: bool, slack: Floats, shift: Floats, total: Floats, moment: Floats) -> list[Near]:
        """Make the sums of a block, which are empty, from fast scores that are off by ``slack`` (k,); returns the lowest."""
        questions: Array = self._narrow if single else self.Y
        factor: Array = block.sides.narrow if single else block.sides.scale()
        m, found = block.points.shape[1], list[Near]()
        for rows in block.tiles():
            points = block.tile(rows, single)
            scores = _scores(points, factor[rows], questions, block.intercept)
            least = scores.min(axis=1)
            if rows.start and (least < shift).any():
                shrink = self._shrink(shift, np.minimum(shift, least))
                total *= shrink
                moment *= shrink[:, None]
            np.minimum(shift, least, out=shift)
            for i in np.flatnonzero(least <= shift + 2 * slack).tolist():
                # y = 0 scores every column 0, and the first row stands for all
                lowest = (scores[i] <= least[i] + 2 * slack[i]).nonzero()[0] if self._lengths[i] > 0 else np.zeros(1, np.int64)
                found.append((i, rows.start + lowest, scores[i, lowest]))
            live = self._soft
            if rows.start:
                # 100.0: a tile whose weights are all below exp(-100) of the greatest adds nothing to float64 sums
                live = live[(least - shift)[live] < 100.0 * self.mu[live]]
            if not live.size:
                continue
            some = _run(live)
            weights = scores[some]
            weights = np.subtract(shift[some, None].astype(scores.dtype), weights, out=weights)
            weights /= self.mu[some, None].astype(scores.dtype)
            np.exp(weights, out=weights)
            total[some] += weights.sum(axis=1)
            weights *= factor[rows]
            sums = moment[some]
            add_combinations(sums[:, :m], weights, points)
            if not isinstance(some, slice):
                moment[some] = sums
            if block.intercept:
                moment[some, m] += weights.sum(axis=1)
        return found

    def _weigh_one(self, block: Block, single: bool, slack: Floats, shift: Floats, total: Floats, moment: Floats) -> list[Near]:
        """The same for one question with mu > 0, in as few calls as that takes: of 4 MiB they take as long as a product."""
        y, factor = (self._narrow[:, 0], block.sides.narrow) if single else (self._each[0], block.sides.scale())
        m, found, kind, mu = block.points.shape[1], list[Near](), factor.dtype.type, float(self.mu[0])
        low, mass, twice, zero = np.inf, 0.0, 2 * float(slack[0]), not self._lengths[0] > 0
        for rows in block.tiles():
            points, sides = block.tile(rows, single), factor[rows]
            scores = product(points, y[:m])
            if block.intercept:
                scores += y[m]
            scores *= sides
            least = float(scores.min())
            if least < low:
                if rows.start:
                    shrink = math.exp((least - low) / mu)
                    mass *= shrink
                    moment *= shrink
                low = least
            if least <= low + twice:
                # y = 0 scores every column 0, and the first row stands for all
                lowest = np.zeros(1, np.int64) if zero else (scores <= np.float64(least + twice)).nonzero()[0]
                found.append((0, rows.start + lowest, scores[lowest]))
            if rows.start and least - low >= 100.0 * mu:
                continue
            np.subtract(kind(low), scores, out=scores)
            scores /= kind(mu)
            np.exp(scores, out=scores)
            mass += float(scores.sum())
            scores *= sides
            add_combinations(moment[:, :m], scores[None], points)
            if block.intercept:
                moment[0, m] += scores.sum()
        shift[0], total[0] = low, mass
        return found

    def _find_low(
        self, blocks: Sequence[Block], near: Sequence[list[Near]], bar: Floats, slack: Floats
    ) -> tuple[Floats, Indices]:
        """low (k,), which is at most ``bar``, and arg (k,) of consecutive blocks whose fast scores are off by ``slack``."""
        low, arg = np.full(self.width, np.inf), np.full(self.width, -1, np.int64)
        for block, lowest, error in zip(blocks, near, slack, strict=True):
            some = [(i, rows[fast <= bar[i] + error[i]]) for i, rows, fast in lowest]
            some = [(i, rows) for i, rows in some if rows.size]
            asked = [i for i, _ in some]
            exact = block.exact_scores_each([rows for _, rows in some], self._each[asked]) if some else []
            for (i, rows), values in zip(some, exact, strict=True):
                best = int(values.argmin())
                if values[best] < low[i]:
                    low[i], arg[i] = values[best], block.start + rows[best]
        return low, arg


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
