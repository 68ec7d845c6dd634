"""Whole cones whose least eigenvalue is at most a threshold, and the element of a product, rebuilt block by block.

    x = sum_t share_t exp(-A*y_t / mu_t - lse_t),   of trace 1

Its rows are numbers of any sign: x is in the cone, and the sum over its traces is <e, x>.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfeas.data.cones import Spectrum, groups_of
from dfeas.geometry.cones.batch import Batch
from dfeas.geometry.cones.softmin import factors, fast_scores
from dfeas.linalg.points import Floats, Indices, dense
from dfeas.passes.block import Block
from dfeas.passes.vectors import Recover, SparseWeights


@dataclass(frozen=True, slots=True)
class Kept:
    """Rows of whole cones in memory, scaled: X / norm."""

    index: Indices  # (r,) of the stored rows, ascending
    label: NDArray[np.int32]  # (r,) codes
    rows: Floats  # (r, m)

    def joined(self, other: Kept) -> Kept:
        """Both, in the order of the rows."""
        index = np.concatenate([self.index, other.index])
        order = np.argsort(index, kind="stable")
        return Kept(
            index[order], np.concatenate([self.label, other.label])[order], np.concatenate([self.rows, other.rows])[order]
        )

    def cones(self) -> Indices:
        """The cone (r,) that each row is of, counted from 0."""
        return np.asarray(np.cumsum(self.label > 0) - 1)

    def take(self, cones: NDArray[np.bool_]) -> Kept:
        """Some of the cones (c,)."""
        rows = cones[self.cones()]
        return Kept(self.index[rows], self.label[rows], self.rows[rows])

    def without(self, other: Kept) -> Kept:
        """The cones that the other does not have."""
        first = self.index[self.label > 0]
        return self.take(~np.isin(first, other.index))


def none(m: int) -> Kept:
    """No cones."""
    return Kept(np.empty(0, np.int64), np.empty(0, np.int32), np.empty((0, m)))


@dataclass(frozen=True, slots=True)
class Selected:
    """Cones at or below the threshold (partial and answer alike)."""

    violated: int  # cones with a least eigenvalue of at most 0, kept or not
    least: Floats  # (c,) least eigenvalues of those that are kept
    cones: Kept


@dataclass(frozen=True, slots=True)
class SelectCones:
    """Of each block the lowest cones of at most ``quota`` rows, of all blocks those of at most ``cap`` rows.

    With y = 0 they are spread evenly over the block. At least one cone is kept, whatever its size.
    """

    y: Floats  # (m,)
    threshold: float  # may be inf
    cap: int
    quota: int

    def scan(self, block: Block) -> Selected:
        """Select from one block, by products in float64."""
        factor = factors(block)
        (scores,) = fast_scores(block, self.y[:, None], factor, False)
        starts, values, sizes = [], [], []
        for group in groups_of(block.label):
            some, value = np.arange(len(group.starts)), np.zeros(len(group.starts))
            if self.y.any():
                batch = Batch.of(group, scores)
                some = batch.up_to(some, self.threshold)
                value = batch.least(some)
            kept = value <= self.threshold
            starts.append(group.starts[some[kept]])
            values.append(value[kept])
            sizes.append(np.full(int(kept.sum()), group.dimension))
        if not starts:
            return Selected(0, np.empty(0), none(block.dimension))
        start, value, size = np.concatenate(starts), np.concatenate(values), np.concatenate(sizes)
        quota = min(self.quota, self.cap)
        order = np.lexsort((start, value)) if self.y.any() else _spread(start, size, quota)
        chosen = order[_within(size[order], quota)]
        chosen = chosen[np.argsort(start[chosen])]
        rows = np.concatenate(
            [np.arange(a, a + d) for a, d in zip(start[chosen], size[chosen], strict=True)] or [np.empty(0, np.int64)]
        )
        cones = Kept(block.start + rows, block.label[rows].astype(np.int32), dense(block.points[rows]) * factor[rows, None])
        return Selected(int((value <= 0).sum()), value[chosen], cones)

    def merge(self, first: Selected, second: Selected) -> Selected:
        if len(first.least) and len(second.least) and first.cones.index[0] > second.cones.index[0]:
            first, second = second, first
        cones, value = first.cones.joined(second.cones), np.concatenate([first.least, second.least])
        violated = first.violated + second.violated
        if len(cones.index) <= self.cap:
            return Selected(violated, value, cones)
        size = np.bincount(cones.cones())
        order = np.lexsort((np.flatnonzero(cones.label > 0), value)) if self.y.any() else np.argsort(_shuffled(len(value)))
        kept = np.zeros(len(value), bool)
        kept[order[_within(size[order], self.cap)]] = True
        return Selected(violated, value[kept], cones.take(kept))

    def finish(self, partial: Selected) -> Selected:
        return partial


def _within(size: Indices, most: int) -> NDArray[np.bool_]:
    """Which of some sizes, one after the other, stay within ``most`` rows; the first one always does."""
    found = np.cumsum(size) <= most
    found[:1] = True
    return np.asarray(found)


def _spread(start: Indices, size: Indices, quota: int) -> Indices:
    """Positions of about ``quota`` rows of cones, spread evenly over a block, and then the others."""
    place = np.argsort(start)
    step = max(1, int(-(-size.sum() // quota)))
    return np.concatenate([place[first::step] for first in range(step)])


def _shuffled(count: int) -> Floats:
    """Numbers that spread over 0 .. 1, the same each time."""
    return np.asarray((np.arange(count) * 0.6180339887498949) % 1.0)


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
