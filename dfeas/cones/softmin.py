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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfeas.cones.groups import Group, groups_of
from dfeas.cones.scores import combined, exact_scores, factors, fast_scores
from dfeas.cones.spectrum import Spectrum, bounds, least
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


class _Looked(NamedTuple):
    """Some cones of a group."""

    group: Group
    some: Indices  # (c,) which of them
    least: Floats  # (c,) eigenvalues
    spectrum: Spectrum | None  # of a question with mu > 0
    slack: float  # |eigenvalue - that of products in a fixed order|


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
        weights, used = np.zeros((len(self._soft), block.size)), np.zeros(block.size, bool)
        points = []
        for i, mu in enumerate(self.mu):
            looked = self._looked(block, groups, scores[i], i, single)
            low, start, point = self._lowest(block, looked, i, factor)
            partial.low[i], partial.arg[i] = low, block.start + start
            points.append(point if mu == 0 else np.empty(0))
            if mu == 0:
                partial.total[i] = 1.0
                partial.moment[i] = combined(block, np.arange(start, start + len(point)), point, factor)
                continue
            mine = weights[np.searchsorted(self._soft, i)]
            partial.total[i] = sum(_fill(mine, used, each, low, float(mu)) for each in looked)
        if len(self._soft):
            self._gather(partial, block, weights, used, factor, single)
        return SpectralPartial(partial.low, partial.arg, partial.total, partial.moment, tuple(points))

    def _looked(self, block: Block, groups: list[Group], scores: Array, i: int, single: bool) -> list[_Looked]:
        """The cones of a block that may matter to a question, decomposed."""
        length = float(self._lengths[i])
        ends = [bounds(group.kind, group.size, group.take(scores)) for group in groups]
        best = min(float(above.min()) for _, above in ends)
        found = []
        for group, (below, _) in zip(groups, ends, strict=True):
            # of all rows of a cone together, and of the eigenvalues: |s| <= sqrt(d) |y| for rows of a scaled cone
            terms = block.terms + 6 + 20 * group.dimension
            slack = 1.02 * terms * np.sqrt(group.dimension) * (2.0**-24 if single else 2.0**-53) * length
            near = best + max(2 * slack, NEGLIGIBLE * float(self.mu[i]))
            some = np.flatnonzero(below <= near)
            s = group.take(scores)
            chosen = s if len(some) == len(s) else s[some]
            spectrum = Spectrum.of(group.kind, group.size, chosen) if self.mu[i] > 0 else None
            value = least(group.kind, group.size, chosen) if spectrum is None else spectrum.least
            found.append(_Looked(group, some, value, spectrum, slack))
        return found

    def _lowest(self, block: Block, looked: list[_Looked], i: int, factor: Floats) -> tuple[float, int, Floats]:
        """The least eigenvalue of a block, the first row of its cone, and its extreme point, from products in a fixed order."""
        best = min(float(each.least.min(initial=np.inf)) for each in looked)
        found: list[tuple[float, int, Floats]] = []
        for group, some, value, _, slack in looked:
            # y = 0 scores every cone 0, and the first one stands for all
            near = some[value <= best + 2 * slack] if slack > 0 else some[:1]
            if len(near):
                exact = Spectrum.of(group.kind, group.size, exact_scores(block, group.rows(near), self.Y[:, i], factor))
                first = int(exact.least.argmin())
                point = exact.take(np.array([first])).extreme()[0]
                found.append((float(exact.least[first]), int(group.starts[near[first]]), point))
        return min(found, key=lambda each: each[:2])

    def _gather(
        self, partial: SpectralPartial, block: Block, weights: Floats, used: NDArray[np.bool_], factor: Floats, single: bool
    ) -> None:
        """Add the weighted rows of a block to the sums; only those that have a weight, where they are few."""
        weights *= factor
        moment = partial.moment[self._soft]
        if 2 * int(used.sum()) < block.size:
            some = np.flatnonzero(used)
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


def _fill(weights: Floats, used: NDArray[np.bool_], looked: _Looked, low: float, mu: float) -> float:
    """Write the exponential weights (b,) of a group's rows, relative to ``low``; returns the sum over its eigenvalues."""
    group, some, value, spectrum, _ = looked
    assert spectrum is not None, "decomposed for mu > 0"
    live = np.flatnonzero(value - low < NEGLIGIBLE * mu)
    if len(live) < len(some):
        some, spectrum = some[live], spectrum.take(live)
    total, element = spectrum.gibbs(low, mu)
    if len(some) == len(group.starts) and np.may_share_memory(group.take(weights), weights):
        group.take(weights)[:] = element
        group.take(used)[:] = True
    else:
        weights[group.rows(some)] = element
        used[group.rows(some)] = True
    return float(total.sum())
