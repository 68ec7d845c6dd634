"""Softmin over the eigenvalues of all cones: the central pass, where s = A*y is an element of a product of cones.

For a question (y, mu), with the eigenvalues lambda_i of A*y over all cones and the extreme points q_i that they belong to:

    low  = min lambda_i               arg  = the first row of the first cone that attains it
    lse  = log sum_i exp(-lambda_i / mu)
    mean = A x,  x = sum_i q_i exp(-lambda_i / mu - lse)    the gradient of -mu lse

which is exp(-A*y / mu) / trace on semidefinite cones. Of an orthant it is softmin over its rows. mu = 0 is the limit: x is an
extreme point of the base of cone ``arg``, and it is part of the answer.

``low``, ``arg`` and that point do not depend on how the cones are cut into blocks: every cone that could attain the minimum, by
the rounding bounds of product and eigenvalues, is looked at again in float64 from products in a fixed order. Cones whose
eigenvalues are bounded away from what counts are not decomposed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfeas.cones.groups import Group, groups_of
from dfeas.cones.scores import combined, exact_scores, factors, fast_scores
from dfeas.cones.spectrum import bounds, extreme, gibbs
from dfeas.passes.block import Array, Block, Floats, Indices
from dfeas.passes.points import add_combinations
from dfeas.passes.softmin import NEGLIGIBLE, Softmin, SoftminAnswer, SoftminPartial


@dataclass(frozen=True, slots=True)
class SpectralAnswer(SoftminAnswer):
    """The same, and the extreme points of questions with mu = 0."""

    extreme: tuple[Floats, ...] = ()  # (dimension of cone ``arg``,) for each question; (0,) for mu > 0


@dataclass(frozen=True, slots=True)
class SpectralPartial(SoftminPartial):
    """Sums over some cones, relative to their own minimum."""

    extreme: tuple[Floats, ...] = ()


@dataclass(frozen=True)
class SpectralSoftmin(Softmin):
    """k questions to a dataset of cones: Y (m, k) in any scale, mu (k,) >= 0."""

    def empty(self) -> SpectralPartial:
        """The neutral element."""
        plain = super().empty()
        none = (np.empty(0),) * len(self.mu)
        return SpectralPartial(plain.low, plain.arg, plain.total, plain.moment, none)

    def scan(self, block: Block) -> SpectralPartial:
        """Answer all questions for one block."""
        partial = self.empty()
        groups = groups_of(block.label)
        if not groups:
            return partial
        single = self._admits_single and block.single
        factor = factors(block)
        scores = fast_scores(block, self._narrow if single else self.Y, factor, single)
        weights = np.zeros((len(self._soft), block.size))
        found = []
        for i in range(len(self.mu)):
            found.append(self._lowest(block, groups, scores[i], i, factor, single))
            partial.low[i], start, point = found[i]
            partial.arg[i] = block.start + start
            if self.mu[i] == 0:
                partial.total[i] = 1.0
                partial.moment[i] = combined(block, np.arange(start, start + len(point)), point, factor)
        for place, i in enumerate(self._soft):
            for group in groups:
                partial.total[i] += self._fill(weights[place], group, scores[i], partial.low[i], self.mu[i])
        if len(self._soft):
            self._gather(partial, block, weights, factor, single)
        points = tuple(point if mu == 0 else np.empty(0) for (_, _, point), mu in zip(found, self.mu, strict=True))
        return SpectralPartial(partial.low, partial.arg, partial.total, partial.moment, points)

    def _lowest(
        self, block: Block, groups: list[Group], scores: Array, i: int, factor: Floats, single: bool
    ) -> tuple[float, int, Floats]:
        """The least eigenvalue of a block, the first row of its cone, and its extreme point."""
        length, y = float(self._lengths[i]), self.Y[:, i]
        ends = [bounds(group.kind, group.size, group.take(scores)) for group in groups]
        best = min(float(above.min()) for _, above in ends)
        found: list[tuple[float, int, Floats]] = []
        for group, (below, _) in zip(groups, ends, strict=True):
            # of all rows of a cone together, and of the eigenvalues: |s| <= sqrt(d) |y| for rows of a scaled cone
            terms = block.terms + 6 + 20 * group.dimension
            slack = 1.02 * terms * np.sqrt(group.dimension) * (2.0**-24 if single else 2.0**-53) * length
            some = np.flatnonzero(below <= best + 2 * slack)
            # y = 0 scores every cone 0, and the first one stands for all
            some = some if length > 0 else some[:1]
            if group.kind == "s" and len(some) > 1:
                some = _least_of(group, scores, some, slack)
            if len(some):
                value, point = extreme(group.kind, group.size, exact_scores(block, group.rows(some), y, factor))
                first = int(value.argmin())
                found.append((float(value[first]), int(group.starts[some[first]]), point[first]))
        return min(found, key=lambda each: each[:2])

    def _fill(self, weights: Floats, group: Group, scores: Array, low: float, mu: float) -> float:
        """Write the exponential weights of a group's rows, relative to ``low``; returns the sum over its eigenvalues."""
        s = group.take(scores)
        live = np.flatnonzero(bounds(group.kind, group.size, s)[0] - low < NEGLIGIBLE * mu)
        if not len(live):
            return 0.0
        total, element = gibbs(group.kind, group.size, s[live].astype(np.float64), low, mu)
        if len(live) == len(s) and np.may_share_memory(group.take(weights), weights):
            group.take(weights)[:] = element
        else:
            weights[group.rows(live)] = element
        return float(total.sum())

    def _gather(self, partial: SpectralPartial, block: Block, weights: Floats, factor: Floats, single: bool) -> None:
        """Add the weighted rows of a block to the sums; only those that have a weight, where they are few."""
        some = np.flatnonzero(weights.any(axis=0))
        weights *= factor
        moment = partial.moment[self._soft]
        if 2 * len(some) < block.size:
            moment += weights[:, some] @ block.points[some].astype(np.float64)
        else:
            chosen: Array = weights.astype(np.float32) if single else weights
            for rows in block.tiles():
                add_combinations(moment, chosen[:, rows], block.tile(rows, single))
        partial.moment[self._soft] = moment

    def merge(self, first: SoftminPartial, second: SoftminPartial) -> SpectralPartial:
        """Combine the sums of two disjoint sets of cones."""
        both = super().merge(first, second)
        assert isinstance(first, SpectralPartial), "partials are of this pass"
        assert isinstance(second, SpectralPartial), "partials are of this pass"
        points = tuple(
            a if arg == mine else b for a, b, arg, mine in zip(first.extreme, second.extreme, both.arg, first.arg, strict=True)
        )
        return SpectralPartial(both.low, both.arg, both.total, both.moment, points)

    def finish(self, partial: SoftminPartial) -> SpectralAnswer:
        """The answers; raises ValueError when there was no cone at all."""
        assert isinstance(partial, SpectralPartial), "partials are of this pass"
        plain = super().finish(partial)
        return SpectralAnswer(plain.low, plain.arg, plain.lse, plain.mean, partial.extreme)


def _least_of(group: Group, scores: Array, some: Indices, slack: float) -> Indices:
    """Those of some semidefinite cones whose least eigenvalue may be the least of them."""
    value, _ = extreme(group.kind, group.size, np.asarray(group.take(scores)[some], np.float64))
    return np.asarray(some[value <= value.min() + 2 * slack])
