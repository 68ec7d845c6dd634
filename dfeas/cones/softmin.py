"""Softmin over the eigenvalues of all cones: the central pass, where s = A*y is an element of the product.

Every cone that could attain it, by the rounding bounds of product and eigenvalues, is looked at again in float64: the answer
does not depend on how the cones are cut into blocks.

For a question (y, mu), with the eigenvalues lambda_i of A*y over all cones and the extreme points q_i that they belong to:

    low  = min lambda_i               arg  = the first row of the first cone that attains it
    lse  = log sum_i exp(-lambda_i / mu)
    mean = A x,  x = sum_i q_i exp(-lambda_i / mu - lse)    the gradient of -mu lse

which is exp(-A*y / mu) / trace on semidefinite cones. Of an orthant it is softmin over its rows. mu = 0 is the limit: x is an
extreme point of the base of cone ``arg``, and it is part of the answer.

A block is looked at in pieces that stay in cache: scores, least eigenvalue, weights, weighted sum; earlier sums are rescaled
when the least eigenvalue drops. ``low``, ``arg`` and that point do not depend on how the cones are cut into blocks
(``Lowest``).

The element of a mixture of T softmins is rebuilt block by block: ``x = sum_t share_t exp(-A*y_t / mu_t - lse_t)``, of trace 1.
Its rows are numbers of any sign: x is in the cone, and the sum over its traces is <e, x>.

Of one second-order cone there is another choice, too. Its base is {(1, u), |u| <= 1}. With half of |u|^2 in place of the
entropy the prox of s = A*y at the temperature mu is u = -(s_1 / mu) projected onto the ball, with

    lse  = max over the ball of -(s_0 + s_1'u) / mu - |u|^2 / 2      mean = A (1, u)

in the place of what softmin answers: the Bregman distances that mirror prox computes of them are those of this choice. Its
size, 1/2, is below the log 2 of the entropy of one cone, so every guarantee holds. Of one semidefinite cone the paper's choice
is the matrix entropy, that is softmin itself.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct, field

from dfeas.cones.algebra import Group, Spectrum, groups_of, pieces
from dfeas.cones.batch import ConeBatch
from dfeas.linalg.blas import beat
from dfeas.linalg.points import Array, Floats, Indices, Tile, add_combinations, dots, in_type, take_rows, times
from dfeas.linalg.points import combine_rows as combinations
from dfeas.methods.mixture import Mixture
from dfeas.passes.block import Block, in_precision
from dfeas.passes.softmin import SoftminAnswer, SoftminPartial, SoftminSums
from dfeas.passes.vectors import Recover, SparseWeights


def factors(block: Block) -> Floats:
    """One over the norm of its cone (b,) of each row; 0 for a cone of zeros."""
    norm = block.norm
    if norm.min(initial=np.inf) > 0:
        return np.asarray(1 / norm)
    return np.divide(1.0, norm, out=np.zeros(len(norm)), where=norm > 0)


def fast_scores(block: Block, questions: Array, factor: Floats, single: bool) -> Array:
    """Scores (k, b) of questions (m, k) by products in their precision."""
    scores: Array = np.empty((questions.shape[1], block.size), questions.dtype)
    for rows in block.tiles():
        scores[:, rows] = times(block.tile(rows, single), questions)
    scores *= factor.astype(scores.dtype)
    return scores


def exact_scores(block: Block, rows: Indices, y: Floats, factor: Floats) -> Floats:
    """Scores (c, d) of rows (c, d) in float64, each by one fixed order of summation: the same bits in any partition."""
    flat = rows.reshape(-1)
    return np.asarray(dots(block.points, flat, y) * factor[flat]).reshape(rows.shape)


def combine_scaled(block: Block, rows: Indices, weights: Floats, factor: Floats) -> Floats:
    """sum of weights (r,) times scaled rows (r,), a vector (m,), in float64."""
    return combinations(weights * factor[rows], in_type(take_rows(block.points, rows), np.float64))


class Lowest(Struct):
    """For a question y, what some cones of a block have shown."""

    y: Floats  # (m,)
    length: float  # |y|
    terms: int  # of a product
    single: bool  # products are in float32
    best: float = np.inf  # the least eigenvalue so far, as it was computed
    _near: list[tuple[Group, Indices, Floats, float]] = field(default_factory=list)  # first rows, eigenvalues, their error

    def add(self, start: int, batch: ConeBatch) -> None:
        group = batch.group
        if self.length == 0:  # every cone scores 0, and the first one of a kind stands for all
            some, value, slack = np.zeros(1, np.int64), np.zeros(1), 0.0
        else:
            off, slack = self._errors(group)
            some, value = batch.lowest(self.best, off, slack)
        if len(some):
            self.best = min(self.best, float(value.min()))
            kept = value <= self.best + 2 * slack
            self._near.append((group, start + group.starts[some[kept]], value[kept], slack))

    def _errors(self, group: Group) -> tuple[float, float]:
        """What bounds of eigenvalues, and eigenvalues themselves, are off from those of products in a fixed order, at most."""
        # the rows of a scaled cone together are at most as long as sqrt(min(d, m)) of its columns, and those as 1
        d, fine = group.dimension, 2.0**-53
        spread = 1.02 * np.sqrt(min(d, self.terms)) * self.length * (2.0**-24 if self.single else fine)
        product, sums = (self.terms + 6) * spread, (d + 8) * spread
        return sums, product + 20 * np.sqrt(d) * d * fine * self.length + (0.0 if group.kind == "s" else sums)

    def exact(self, block: Block, factor: Floats) -> tuple[float, int, Floats]:
        """The least eigenvalue, the first row of its cone, and its extreme point; ``factor`` (b,) scales rows."""
        candidates: list[tuple[float, int, Floats]] = []
        for group, starts, value, slack in self._near:
            near = starts[value <= self.best + 2 * slack]
            if len(near):
                rows = near[:, None] + np.arange(group.dimension)
                beat()
                exact = Spectrum.of(group.kind, group.size, exact_scores(block, rows, self.y, factor))
                first = int(exact.least.argmin())
                point = exact.take(np.array([first])).extreme()[0]
                candidates.append((float(exact.least[first]), int(near[first]), point))
        return min(candidates, key=lambda each: each[:2])


class SpectralAnswer(SoftminAnswer, frozen=True):
    """The same, and the extreme points of questions with mu = 0."""

    extreme: tuple[Floats, ...] = ()  # (dimension of cone ``arg``,) for each question; (0,) for mu > 0


class SpectralPartial(SoftminPartial, frozen=True):
    """Sums over some cones, relative to their own minimum."""

    extreme: tuple[Floats, ...] = ()


class SpectralSoftmin(SoftminSums, frozen=True):
    """k questions to a dataset of cones: Y (m, k) in any scale, mu (k,) >= 0."""

    def empty(self) -> SpectralPartial:
        plain = super().empty()
        none = (np.empty(0),) * len(self.mu)
        return SpectralPartial(plain.low, plain.arg, plain.shift, plain.total, plain.moment, none)

    def scan(self, block: Block) -> SpectralPartial:
        partial = self.empty()
        groups = groups_of(block.label)
        if not groups:
            return partial
        single = self._admits_single and block.single
        factor = factors(block)
        narrow: Array = in_precision(factor, single)
        questions: Array = self._narrow if single else self.Y
        lowest = [Lowest(self.Y[:, i], float(self._lengths[i]), block.terms, single) for i in range(len(self.mu))]
        for rows, some in pieces(block, groups):
            points = block.tile(rows, single)
            scores = times(points, questions)
            scores *= narrow[rows]
            weights: Array = np.zeros((len(self._soft), scores.shape[1]), scores.dtype)
            for i, s in enumerate(scores):
                batches, before = [ConeBatch.of(group, s) for group in some], lowest[i].best
                for batch in batches:
                    lowest[i].add(rows.start, batch)
                if self.mu[i] > 0:
                    mine = weights[np.searchsorted(self._soft, i)]
                    self._weigh_cones(partial, i, batches, mine, before, lowest[i].best)
            weights *= narrow[rows]
            self._gather(partial, points, weights)
        extreme = []
        for i, mu in enumerate(self.mu.tolist()):
            low, start, point = lowest[i].exact(block, factor)
            partial.low[i], partial.arg[i] = low, block.start + start
            extreme.append(point if mu == 0 else np.empty(0))
            if mu == 0:
                partial.total[i] = 1.0
                partial.moment[i] = combine_scaled(block, np.arange(start, start + len(point)), point, factor)
            else:
                self._rescale(partial, i, low - lowest[i].best)
        return SpectralPartial(partial.low, partial.arg, partial.low.copy(), partial.total, partial.moment, tuple(extreme))

    def _rescale(self, partial: SpectralPartial, i: int, drop: float) -> None:
        """Make sums of a question relative to a level that is lower by ``-drop``."""
        shrink = np.exp(drop / self.mu[i])
        partial.total[i] *= shrink
        partial.moment[i] *= shrink

    def _weigh_cones(
        self, partial: SpectralPartial, i: int, batches: list[ConeBatch], weights: Array, before: float, level: float
    ) -> None:
        """Add the weights of some cones to the total of a question, and write them into those (b,) of rows."""
        if level < before < np.inf:
            self._rescale(partial, i, level - before)
        for batch in batches:
            total, some, element = batch.gibbs(level, float(self.mu[i]))
            partial.total[i] += total
            batch.group.put(weights, some, element)

    def _gather(self, partial: SpectralPartial, points: Tile, weights: Array) -> None:
        """Add weighted rows to the sums; only those that have a weight, where they are few."""
        if not len(weights):
            return
        moment = partial.moment[self._soft]
        # rows with a weight are gathered where they are fewer than one in so many
        if 8 * np.count_nonzero(weights) < weights.size:
            some = np.flatnonzero(weights.any(axis=0))
            moment += combinations(weights[:, some].astype(np.float64), in_type(take_rows(points, some), np.float64))
        else:
            add_combinations(moment, weights, points)
        partial.moment[self._soft] = moment

    def merge(self, first: SoftminPartial, second: SoftminPartial) -> SpectralPartial:
        both = super().merge(first, second)
        assert isinstance(first, SpectralPartial), "partials are of this pass"
        assert isinstance(second, SpectralPartial), "partials are of this pass"
        points = tuple(
            a if arg == mine else b for a, b, arg, mine in zip(first.extreme, second.extreme, both.arg, first.arg, strict=True)
        )
        return SpectralPartial(both.low, both.arg, both.shift, both.total, both.moment, points)

    def absorb(self, first: SoftminPartial, second: SoftminPartial) -> SpectralPartial:
        return self.merge(first, second)

    def finish(self, partial: SoftminPartial) -> SpectralAnswer:
        """The answers; raises ValueError when there was no cone at all."""
        assert isinstance(partial, SpectralPartial), "partials are of this pass"
        plain = super().finish(partial)
        return SpectralAnswer(plain.low, plain.arg, plain.lse, plain.mean, partial.extreme)


class ConeWeights(SparseWeights, frozen=True):
    """Entries of x in the rows of the cones that were kept."""

    trace: float = 0.0  # <e, x>

    def total(self) -> float:
        """What makes them a point of the base."""
        return self.trace

    def with_others(self, others: SparseWeights) -> ConeWeights:
        """Both, in the order of the rows."""
        assert isinstance(others, ConeWeights), "weights are of this pass"
        both = super().with_others(others)
        return ConeWeights(both.pieces, self.trace + others.trace)


class SpectralRecover(Recover, frozen=True):
    """The element of a mixture of T softmins; cones whose trace is at most ``floor`` times their rank are left out."""

    def scan(self, block: Block) -> ConeWeights:
        factor, x = factors(block), np.zeros(block.size)
        groups = groups_of(block.label)
        trace = [np.zeros(len(group.starts)) for group in groups]
        scores = fast_scores(block, self.Y / self.mu, factor, False)
        offset = np.log(self.share) - self.lse
        for s, shift in zip(scores, offset, strict=True):
            for group, sums in zip(groups, trace, strict=True):
                mine = group.take(s)
                above = np.exp(np.minimum(shift - ConeBatch.of(group, s).below, 700.0))
                beat()
                live = np.flatnonzero(above > self.floor / len(scores) / 2)
                total, element = Spectrum.of(group.kind, group.size, mine[live]).gibbs(shift, 1.0)
                x[group.rows(live)] += element
                sums[live] += total
        kept, whole = np.zeros(block.size, bool), 0.0
        for group, sums in zip(groups, trace, strict=True):
            some = np.flatnonzero(sums > self.floor * group.rank / 2)
            kept[group.rows(some)] = True
            whole += float(sums[some].sum())
        rows = np.flatnonzero(kept)
        return ConeWeights(((block.start + rows, x[rows]),), whole)


def project_to_base(s: Floats) -> tuple[Floats, float]:
    """(1, u) of the base (d,) for s = A*y / mu, and ``lse``."""
    length = float(np.linalg.norm(s[1:]))
    u = -s[1:] / max(1.0, length)
    return np.append(1.0, u), float(-s[0] - s[1:] @ u - u @ u / 2)


class EuclideanSoftmin(SpectralSoftmin, frozen=True):
    """k questions to one second-order cone; those with mu = 0 are as ever."""

    def scan(self, block: Block) -> SpectralPartial:
        plain = SpectralSoftmin(self.Y, np.zeros(len(self.mu))).scan(block)
        factor = factors(block)
        rows = np.arange(block.size)
        for i in self._soft:
            (s,) = fast_scores(block, self.Y[:, i : i + 1], factor, False)
            x, lse = project_to_base(np.asarray(s, np.float64) / self.mu[i])
            # a softmin partial is relative to its minimum: total = exp(lse + low / mu)
            plain.total[i] = np.exp(lse + plain.low[i] / self.mu[i])
            plain.moment[i] = combine_scaled(block, rows, x, factor) * plain.total[i]
        points = tuple(point if mu == 0 else np.empty(0) for point, mu in zip(plain.extreme, self.mu, strict=True))
        return SpectralPartial(plain.low, plain.arg, plain.shift, plain.total, plain.moment, points)

    def merge(self, first: SoftminPartial, second: SoftminPartial) -> SpectralPartial:
        """There is one cone, in one block."""
        assert (first.arg < 0).all() or (second.arg < 0).all(), "one cone"
        return super().merge(first, second)


class EuclideanRecover(SpectralRecover, frozen=True):
    """The element of a mixture of T such points."""

    def scan(self, block: Block) -> ConeWeights:
        scores = fast_scores(block, self.Y / self.mu, factors(block), False)
        x = self.share @ np.array([project_to_base(np.asarray(s, np.float64))[0] for s in scores])
        return ConeWeights(((block.start + np.arange(block.size), x),), float(x[0]))


class EuclideanMixture(Mixture, frozen=True):
    """x = sum_t share_t (1, u_t)."""

    def question(self, floor: float) -> EuclideanRecover:
        return EuclideanRecover(self.Y, self.mu, self.lse, self.share, floor)
