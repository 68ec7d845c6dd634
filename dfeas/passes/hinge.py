"""Hinge: for several directions the loss of a soft margin, and the points near their margins; all others as a linear term.

For direction y_i with costs c_j of its problem, and s_j = l_j x_j'y_i of the points as stored: loss_i = sum_j c_j max(0, 1 -
s_j). Max(0, 1 - s) is at least 1 - s, and at least 0: with either of them in the place of the hinge of a point the sum is
nowhere larger, and about y_i it is the same as long as the point stays on its side. So points far from the margin are only
summed,

    rest_i = sum of c_j l_j x_j,  total_i = sum of c_j      over points with s_j < 1 that are not kept,

and the ``cap`` points that are nearest to the margin of some y_i are kept as they are. Everything is in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dfeas.passes.block import Block, Floats, Indices
from dfeas.passes.columns import Columns
from dfeas.passes.counted import Counted
from dfeas.passes.seen import Seen


class Kept(NamedTuple):
    """Points near a margin."""

    distance: Floats  # (r,) to the nearest margin, |1 - s_j| / |x_j|
    score: Floats  # (r, near) s_j
    columns: Columns  # with labels for factors


@dataclass(frozen=True, slots=True)
class HingePartial:
    """Sums over some blocks."""

    loss: Floats  # (k,)
    support: Indices  # (k,) points with s_j <= 1 that count
    tested: Floats  # (k,) weight of the points that the problem is tested on: its fold, or all
    wrong: Floats  # (k,) weight of those with s_j <= 0
    rest: Floats  # (near, m)
    total: Floats  # (near,)
    kept: tuple[Kept, ...]


@dataclass(frozen=True, slots=True)
class HingeAnswer:
    """Sums over all points; those of ``columns`` are not in ``rest`` and ``total``."""

    loss: Floats  # (k,)
    support: Indices  # (k,)
    tested: Floats  # (k,)
    wrong: Floats  # (k,)
    rest: Floats  # (near, m)
    total: Floats  # (near,)
    columns: Columns  # in the order of the points, with labels for factors


@dataclass(frozen=True, slots=True)
class Hinge:
    """Losses of all directions; points near the margins of the first ``near`` of them."""

    Y: Floats  # (m, k)
    counted: Counted  # of k problems
    near: int  # 0 .. k
    cap: int  # points that are kept
    quota: int  # of one block

    def scan(self, block: Block) -> HingePartial:
        """Sums of one block, tile by tile; each tile keeps its share of the quota."""
        (m, k), near = self.Y.shape, self.near
        sums = HingePartial(
            np.zeros(k), np.zeros(k, np.int64), np.zeros(k), np.zeros(k), np.zeros((near, m)), np.zeros(near), ()
        )
        kept, total = [], sums.total
        for tile in block.tiles():
            seen = Seen.of(block, tile, self.Y, self.counted)
            seen.add(sums.loss, sums.support, sums.tested, sums.wrong, np.maximum(seen.slack, 0.0))
            if not near:
                continue
            slack, size = seen.slack[:, :near], tile.stop - tile.start
            amount = (slack > 0) * seen.weight[:, None] * self.counted.C[:near]
            if seen.out is not None:
                amount[seen.out[:, :near]] = 0.0
            distance = seen.distance(near, block.sides.lengths(tile))
            rows = _nearest(distance, min(self.cap, -(-self.quota * size // block.size)))
            if len(rows):
                amount[rows] = 0.0
                columns = Columns.of(block, tile.start + rows, unit=False)
                kept.append(Kept(distance[rows], 1 - slack[rows], columns))
            total += amount.sum(axis=0)
            sums.rest[:] += (amount * seen.label[:, None]).T @ seen.points
        return self._within(HingePartial(sums.loss, sums.support, sums.tested, sums.wrong, sums.rest, total, tuple(kept)))

    def merge(self, first: HingePartial, second: HingePartial) -> HingePartial:
        """Add, and keep the ``cap`` nearest of both."""
        return self._within(
            HingePartial(
                first.loss + second.loss,
                first.support + second.support,
                first.tested + second.tested,
                first.wrong + second.wrong,
                first.rest + second.rest,
                first.total + second.total,
                first.kept + second.kept,
            )
        )

    def finish(self, partial: HingePartial) -> HingeAnswer:
        """All sums, and the points that are kept."""
        p, parts = partial, sorted(partial.kept, key=lambda part: int(part.columns.index[0]))
        columns = Columns.joined([part.columns for part in parts]) if parts else Columns.none(len(self.Y))
        return HingeAnswer(p.loss, p.support, p.tested, p.wrong, p.rest, p.total, columns)

    def _within(self, partial: HingePartial) -> HingePartial:
        """Points beyond the ``cap`` nearest by (distance, index) join the sums."""
        kept = partial.kept
        if sum(len(part.distance) for part in kept) <= self.cap:
            return partial
        index = np.concatenate([part.columns.index for part in kept])
        order = np.lexsort((index, np.concatenate([part.distance for part in kept])))
        stays = np.zeros(len(index), bool)
        stays[order[: self.cap]] = True
        rest, total, left = partial.rest.copy(), partial.total.copy(), []
        edges = np.cumsum([len(part.distance) for part in kept])[:-1]
        for part, mask in zip(kept, np.split(stays, edges), strict=True):
            gone = part.columns.take(~mask)
            if len(gone):
                cost = self.counted.costs(gone.index, gone.scale)[:, : self.near]
                amount = np.where(part.score[~mask] < 1, cost, 0.0)
                total += amount.sum(axis=0)
                rest += (amount * gone.scale[:, None]).T @ gone.points.astype(np.float64)
            if mask.all():
                left.append(part)
            elif mask.any():
                left.append(Kept(part.distance[mask], part.score[mask], part.columns.take(mask)))
        return HingePartial(partial.loss, partial.support, partial.tested, partial.wrong, rest, total, tuple(left))


def _nearest(distance: Floats, quota: int) -> Indices:
    """Ascending rows of the ``quota`` least distances that are finite."""
    rows = np.flatnonzero(np.isfinite(distance))
    if len(rows) > quota:
        rows = np.sort(rows[np.argpartition(distance[rows], quota - 1)[:quota]]) if quota else rows[:0]
    return rows
