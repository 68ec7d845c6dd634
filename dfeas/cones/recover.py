"""Recover: the element x of a product of cones, rebuilt block by block from the m-vectors that a method recorded.

    x = sum_t share_t exp(-A*y_t / mu_t - lse_t),   of trace 1

Its rows are numbers of any sign: x is in the cone, and the sum over its traces is <e, x>.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfeas.cones.batch import Batch
from dfeas.cones.groups import groups_of
from dfeas.cones.scores import factors, fast_scores
from dfeas.cones.spectrum import Spectrum
from dfeas.passes.block import Block
from dfeas.passes.recover import Recover, SparseWeights


@dataclass(frozen=True, slots=True)
class ConeWeights(SparseWeights):
    """Entries of x in the rows of the cones that were kept."""

    trace: float = 0.0  # <e, x>

    def total(self) -> float:
        """What makes them a point of the base."""
        return self.trace

    def with_others(self, others: SparseWeights) -> ConeWeights:
        """Both, in the order of the rows."""
        assert isinstance(others, ConeWeights), "weights are of this pass"
        both = super(ConeWeights, self).with_others(others)
        return ConeWeights(both.pieces, self.trace + others.trace)


@dataclass(frozen=True, slots=True)
class SpectralRecover(Recover):
    """The element of a mixture of T softmins; cones whose trace is at most ``floor`` times their rank are left out."""

    def scan(self, block: Block) -> ConeWeights:
        """Entries of one block, in float64."""
        factor, x = factors(block), np.zeros(block.size)
        groups = groups_of(block.label)
        trace = [np.zeros(len(group.starts)) for group in groups]
        scores = fast_scores(block, self.Y / self.mu, factor, False)
        offset = np.log(self.share) - self.lse
        for s, shift in zip(scores, offset, strict=True):
            for group, sums in zip(groups, trace, strict=True):
                mine = group.take(s)
                above = np.exp(np.minimum(shift - Batch.of(group, s).below, 700.0))
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
