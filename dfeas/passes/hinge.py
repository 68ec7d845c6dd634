"""Hinge and squared hinge: for several directions the loss of a soft margin, its gradient, and the points near the margin.

For direction y_i with costs c_j of its problem, and s_j = l_j x_j'y_i of the points as stored: loss_i = sum_j c_j max(0, 1 -
s_j). Max(0, 1 - s) is at least 1 - s, and at least 0: with either of them in the place of the hinge of a point the sum is
nowhere larger, and about y_i it is the same as long as the point stays on its side. So points far from the margin are only
summed,

    rest_i = sum of c_j l_j x_j,  total_i = sum of c_j      over points with s_j < 1 that are not kept,

and the ``cap`` points that are nearest to the margin of some y_i are kept as they are.

Of the squared hinge, with z_j = max(0, 1 - s_j), loss_i = sum_j c_j z_j^2 comes with its gradient in two parts, one of each
class, and with its curvature as a matrix or times a vector. Everything is in float64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.linalg.points import Floats, Indices, add_combinations, in_type
from dfeas.passes.block import Block, Columns
from dfeas.passes.protocol import SumPass, add_fields
from dfeas.passes.slacks import Directions, SampleCosts, Slacks


class NearPoints(NamedTuple):
    """Points near a margin, which are kept as they are."""

    distance: Floats  # (r,) to the nearest margin, |1 - s_j| / |x_j|
    short: NDArray[np.bool_]  # (near, r) s_j < 1
    columns: Columns  # with labels for factors


class HingePartial(Struct, frozen=True):
    """Sums over some blocks, and the points near margins, which are not in all of them."""

    loss: Floats  # (k,)
    support: Indices  # (k,) points with s_j <= 1 that count
    tested: Floats  # (k,) weight of the points that the problem is tested on: its fold, or all
    wrong: Floats  # (k,) weight of those with s_j <= 0
    rest: Floats  # (near, m)
    total: Floats  # (near,)
    kept: tuple[NearPoints, ...]


class HingeAnswer(Struct, frozen=True):
    """Sums over all points; those of ``columns`` are not in ``rest`` and ``total``."""

    loss: Floats  # (k,)
    support: Indices  # (k,)
    tested: Floats  # (k,)
    wrong: Floats  # (k,)
    rest: Floats  # (near, m)
    total: Floats  # (near,)
    columns: Columns  # in the order of the points, with labels for factors


class Hinge(Struct, frozen=True):
    """Losses of all directions; points near the margins of the first ``near`` of them."""

    Y: Floats  # (m, k)
    costs: SampleCosts  # of k problems
    near: int  # 0 .. k
    cap: int  # points that are kept
    quota: int  # of one block

    def scan(self, block: Block) -> HingePartial:
        """Sums of one block, tile by tile; each tile keeps its share of the quota."""
        (m, k), near, C = self.Y.shape, self.near, self.costs.C
        directions = Directions.of(self.Y, self.costs)
        loss, support, tested, wrong = np.zeros(k), np.zeros(k, np.int64), np.zeros(k), np.zeros(k)
        rest, total, kept = np.zeros((near, m)), np.zeros(near), []
        for run in directions.runs(block):
            slacks = Slacks.of(block, run, directions)
            loss += C * slacks.sums(np.maximum(slacks.slack, 0.0))
            support += slacks.support()
            tests, missed = slacks.weigh_errors()
            tested += tests
            wrong += missed
            if not near:
                continue
            size = run.stop - run.start
            distance = slacks.distance(near, block.sides.lengths(run))
            rows = _nearest(distance, min(self.cap, -(-self.quota * size // block.size)))
            short = slacks.slack > 0
            if len(rows):
                columns = Columns.of(block, run.start + rows, unit=False)
                kept.append(NearPoints(distance[rows], short[directions.which[:near]][:, rows], columns))
            if len(rows) < size:
                amount = slacks.amounts(short, near)
                amount[:, rows] = 0.0
                total += amount.sum(axis=1)
                slacks.add_pull(rest, amount)
        total *= C[:near]
        rest *= C[:near, None]
        return self._within(HingePartial(loss, support, tested, wrong, rest, total, tuple(kept)))

    def merge(self, first: HingePartial, second: HingePartial) -> HingePartial:
        return self._within(add_fields(first, second))

    def finish(self, partial: HingePartial) -> HingeAnswer:
        p, parts = partial, sorted(partial.kept, key=lambda part: int(part.columns.index[0]))
        columns = Columns.concatenate([part.columns for part in parts]) if parts else Columns.none(len(self.Y))
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
                amount = self.costs.matrix(gone.index, gone.scale)[:, : self.near].T * part.short[:, ~mask]
                total += amount.sum(axis=1)
                add_combinations(rest, amount * gone.scale, in_type(gone.points, np.float64))
            if mask.all():
                left.append(part)
            elif mask.any():
                left.append(NearPoints(part.distance[mask], part.short[:, mask], part.columns.take(mask)))
        return HingePartial(partial.loss, partial.support, partial.tested, partial.wrong, rest, total, tuple(left))


def _nearest(distance: Floats, quota: int) -> Indices:
    """Ascending rows of the ``quota`` least distances that are finite."""
    rows = np.flatnonzero(np.isfinite(distance))
    if len(rows) > quota:
        rows = np.sort(rows[np.argpartition(distance[rows], quota - 1)[:quota]]) if quota else rows[:0]
    return rows


class SquaredHingeAnswer(Struct, frozen=True):
    """Sums over all points (partial and answer alike)."""

    loss: Floats  # (k,)
    support: Indices  # (k,) points with s_j <= 1 that count
    tested: Floats  # (k,) weight of the points that the problem is tested on: its fold, or all
    wrong: Floats  # (k,) weight of those with s_j <= 0
    total: Floats  # (near, 2) sum of c_j z_j over the points of each class, -1 and +1
    square: Floats  # (near, 2) sum of c_j z_j^2 over them
    pull: Floats  # (near, 2, m) sum of c_j z_j l_j x_j over them
    curvature: Floats  # (near, m, m) sum of c_j x_j x_j' over points with z_j > 0, or (near, m) that times ``along``; or empty


class SquaredHinge(SumPass[SquaredHingeAnswer], Struct, frozen=True):
    """Losses of all directions; gradient and curvature of the first ``near`` of them."""

    Y: Floats  # (m, k)
    costs: SampleCosts  # of k problems
    near: int  # 0 .. k
    along: Floats | None = None  # (m, near) vectors for products with the curvature
    matrix: bool = False  # the curvature as matrices
    centre: Floats | None = None  # (m - 1,) is taken from dense points, beside the intercept, in matrices

    def scan(self, block: Block) -> SquaredHingeAnswer:
        (m, k), near = self.Y.shape, self.near
        shape = (near, m, m) if self.matrix else (near, m) if self.along is not None else (0,)
        of_all = np.zeros(k), np.zeros(k, np.int64), np.zeros(k), np.zeros(k)
        sums = SquaredHingeAnswer(*of_all, np.zeros((near, 2)), np.zeros((near, 2)), np.zeros((near, 2, m)), np.zeros(shape))
        directions, C = Directions.of(self.Y, self.costs), self.costs.C
        for run in directions.runs(block):
            slacks = Slacks.of(block, run, directions)
            short = np.maximum(slacks.slack, 0.0)
            sums.loss[:] += C * slacks.sums(short * short)
            sums.support[:] += slacks.support()
            tested, wrong = slacks.weigh_errors()
            sums.tested[:] += tested
            sums.wrong[:] += wrong
            if self.matrix:
                slacks.add_curvature(sums.curvature, self.centre)
            elif self.along is not None:
                active = slacks.amounts(short > 0, near)
                slacks.add_pull(sums.curvature, active * slacks.along(self.along) * slacks.label)  # the label twice: none
            classes = np.stack([slacks.label < 0, slacks.label > 0])
            sums.square[:] += slacks.amounts(short * short, near) @ classes.T
            amount = slacks.amounts(short, near)[:, None] * classes
            sums.total[:] += amount.sum(axis=2)
            slacks.add_pull(sums.pull.reshape(-1, m), amount.reshape(2 * near, -1))
        sums.total[:] *= C[:near, None]
        sums.square[:] *= C[:near, None]
        sums.pull[:] *= C[:near, None, None]
        if sums.curvature.size:
            sums.curvature[:] = (sums.curvature.T * C[:near]).T
        return sums
