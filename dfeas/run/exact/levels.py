"""Fixed effects: a feature of 1 and -1 for each level, at most one of them in a point, eliminated exactly.

Let a_j = (z_j, v_j e_f) be a signed point of level f, v_j = 1 or -1, and alpha_f the entry of y at f, b the others: some
alpha_f has b'z_j + v_j alpha_f >= 0 for all points of the level exactly when b'(z_j + z_k) >= 0 for all j, k of it with
v_j = 1 and v_k = -1. So separation asks about these sums, which are *pairs* here, and about the points without a level, in the
few dimensions of b alone; the least b'z_j of both sides of a level tell all its pairs. A level of one side asks for nothing:
Correia, Guimaraes and Zylkin (2019) drop these before a regression with fixed effects; here nothing is left open.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.exact.arithmetic import Floats
from dfeas.exact.dyadic import Integers, bound_products, find_orthogonal, scale_integers
from dfeas.exact.echelon import IntegerEntries, exponents, units

Indices = NDArray[np.int64]
Pairs = NDArray[np.int64]
"""(p, 2) numbers of rows whose sum is meant."""
PIECE = 200_000
"""Rows that are looked at at a time."""


def even_places(n: int, count: int) -> Indices:
    """So many places of n at equal distances: all of few."""
    return np.unique(np.linspace(0, n - 1, min(n, count)).astype(np.int64))


class Levels(Struct, frozen=True):
    """Signed points (n, d) without their levels, ordered by level and side: a *side* holds points of one level and one v."""

    rest: Any  # (n + 1, k) CSR; the last row is zero, and the other side of each point without a level
    least: Indices  # (k,) exponents: rest 2**-least are integers
    columns: Indices  # (k,) features of the data that these are
    empty: Indices  # features that no point has
    row: Indices  # (n,) numbers of these points in the data
    first: Indices  # (s,) where sides begin; the last one is the zero row
    side: Indices  # (n + 1,) of each row
    level: Indices  # (s,) feature of the level of each side; -1 without one
    value: NDArray[np.int64]  # (s,) v
    joint: Pairs  # (j, 2) both sides of a level, or the side of a point without one and that of the zero row
    d: int

    @classmethod
    def of(cls, points: Any) -> Levels | None:
        """Signed points (n, d), a CSR matrix of finite float64; None where there are no levels."""
        import scipy

        points = points.copy()
        points.eliminate_zeros()
        n, d = points.shape
        chosen = units(points)
        if not len(chosen):
            return None
        turn = np.full(d, -1)
        turn[chosen] = np.arange(len(chosen))
        row = np.repeat(np.arange(n), np.diff(points.indptr))
        here = turn[points.indices] >= 0
        key = 2 * len(chosen) + np.arange(n)  # a side of its own
        key[row[here]] = 2 * turn[points.indices[here]] + (points.data[here] < 0)
        order = np.argsort(key, kind="stable")
        key = np.append(key[order], 2 * len(chosen) + n)
        first = np.flatnonzero(np.diff(key, prepend=-1))
        kind = key[first]
        levelled = kind < 2 * len(chosen)
        level = np.where(levelled, chosen[np.minimum(kind // 2, len(chosen) - 1)], -1)
        both = np.flatnonzero((level[:-1] == level[1:]) & levelled[:-1])
        alone = np.flatnonzero(~levelled)[:-1]
        zero = np.full(len(alone), len(first) - 1)
        used = np.bincount(points.indices, minlength=d) > 0
        columns = np.flatnonzero(used & (turn < 0))
        rest = scipy.sparse.vstack([points[order][:, columns], scipy.sparse.csr_array((1, len(columns)))], format="csr")
        side, value = np.repeat(np.arange(len(first)), np.diff(np.append(first, n + 1))), np.where(kind % 2, -1, 1)
        joint = np.concatenate([np.column_stack([both, both + 1]), np.column_stack([alone, zero])])
        least, empty = exponents(rest), np.flatnonzero(~used)
        return cls(rest, least, columns, empty, order, first, side, level, value, joint, d)

    def integers(self, pairs: Pairs) -> Integers:
        rows, back = np.unique(pairs, return_inverse=True)
        whole = self._entries(rows).dense(np.arange(len(rows)))
        back = back.reshape(pairs.shape)
        return np.asarray(whole[back[:, 0]] + whole[back[:, 1]], object)

    def sum(self, pairs: Pairs) -> Integers:
        rows, count = np.unique(pairs, return_counts=True)
        return self._entries(rows).sum(count.astype(object))

    def _entries(self, rows: Indices) -> IntegerEntries:
        return IntegerEntries.of(self.rest[rows], self.least)

    def products(self, rows: Indices, b: Integers) -> Integers:
        products = [self._entries(rows[i : i + PIECE]).times(b) for i in range(0, len(rows), PIECE)]
        return np.concatenate([np.zeros(0, object), *products])

    def spread(self, count: int, seed: int = 0) -> Pairs:
        """Pairs of sides at equal distances, of rows by chance."""
        joint = self.joint[even_places(len(self.joint), count)]
        size = np.diff(np.append(self.first, len(self.side)))[joint]
        share = np.random.default_rng(seed).random(joint.shape)
        return np.asarray(self.first[joint] + np.floor(share * size).astype(np.int64), np.int64)

    def scale_to_stored(self, b: Integers) -> Integers:
        """b for the features as they are stored, times a power of two: see ``top``."""
        return np.asarray(b << (self.top - self.least).astype(object), object)

    @property
    def one_sided(self) -> NDArray[np.bool_]:
        free = self.level >= 0
        free[self.joint] = False
        return free

    @property
    def top(self) -> int:
        """The exponent of two that makes integers of b for the features as they are stored."""
        return max(0, int(self.least.max(initial=0)))


class Gaps(Struct, frozen=True):
    """The least of all pairs of each level: b'(z_j + z_k)."""

    sign: NDArray[np.int8]  # (j,)
    share: Floats  # (j,) their sizes beside what rounding leaves open
    least: Pairs  # (j, 2) rows of a pair that has it, or of one that is as negative
    on: Indices  # rows in pairs of zero

    @classmethod
    def of(cls, levels: Levels, b: Integers | None) -> Gaps:
        """Of some b (k,); without one all pairs are zero."""
        joint = levels.joint
        if b is None:
            inside = np.zeros(len(levels.first), np.bool_)
            inside[joint] = True
            none = np.zeros(len(joint))
            return cls(none.astype(np.int8), none, levels.first[joint], np.flatnonzero(inside[levels.side]))
        low, high = _near(levels, b)
        under, over = np.minimum.reduceat(low, levels.first), np.minimum.reduceat(high, levels.first)
        gap_under, gap_over = under[joint].sum(axis=1), over[joint].sum(axis=1)
        # more than the share by which a sum of two floats is rounded
        rounding = 2.0**-50 * (np.abs(under) + np.abs(over))[joint].sum(axis=1)
        sign = (gap_under > rounding).astype(np.int8) - (gap_over < -rounding).astype(np.int8)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.nan_to_num((gap_under + gap_over) / (gap_over - gap_under + rounding))
        open_ = np.flatnonzero(sign == 0)
        doubtful = np.zeros(len(levels.first), np.bool_)
        doubtful[joint[open_]] = True
        rows = np.flatnonzero((low <= over[levels.side]) & doubtful[levels.side])
        value = levels.products(rows, b)
        least = _least(levels, rows, value)
        exact = least[joint[open_, 0]] + least[joint[open_, 1]]
        sign[open_] = (exact > 0).astype(np.int8) - (exact < 0).astype(np.int8)
        zero = np.zeros(len(levels.first), np.bool_)
        zero[joint[sign == 0]] = True
        best = rows[value == least[levels.side[rows]]]
        lowest = np.zeros(len(levels.first), np.int64)
        reached = np.flatnonzero(high == over[levels.side])
        lowest[levels.side[reached]] = reached
        lowest[levels.side[best[::-1]]] = best[::-1]
        return cls(sign, share, lowest[joint], best[zero[levels.side[best]]])


def _near(levels: Levels, b: Integers) -> tuple[Floats, Floats]:
    """Bounds of b'z for all rows, of b as ``scale_integers`` makes it."""
    near = scale_integers(levels.scale_to_stored(b)[:, None])[0]
    with np.errstate(over="ignore", invalid="ignore"):
        score, bound = bound_products(levels.rest, near)
        low, high = (score - bound)[:, 0], (score + bound)[:, 0]  # bounds are wider than what is rounded here
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)


def _least(levels: Levels, rows: Indices, value: Integers) -> Integers:
    """The least value (s,) of the rows of each side, which ascend; 0 where a side has none."""
    least = np.zeros(len(levels.first), object)
    side = levels.side[rows]
    begin = np.flatnonzero(np.diff(side, prepend=-1))
    if len(rows):
        least[side[begin]] = np.minimum.reduceat(value, begin)
    return least


def outside(levels: Levels, gaps: Gaps, across: Integers) -> Pairs:
    """Pairs that are zero but not orthogonal to all columns (k, c); none only if there are none."""
    import scipy

    if not across.shape[1]:
        return np.zeros((0, 2), np.int64)
    stored = np.column_stack([levels.scale_to_stored(column) for column in across.T])
    both = np.vstack([stored, stored])
    partner = np.full(len(levels.first), -1)
    here = np.flatnonzero(gaps.sign == 0)
    partner[levels.joint[here]] = gaps.least[here][:, ::-1]
    inside = []
    rows = gaps.on[gaps.on < len(levels.row)]
    for piece in range(0, len(rows), PIECE):
        some = rows[piece : piece + PIECE]
        pairs = np.column_stack([some, partner[levels.side[some]]])
        wide = scipy.sparse.hstack([levels.rest[pairs[:, 0]], levels.rest[pairs[:, 1]]], format="csr")
        inside.append(pairs[~find_orthogonal(wide, both)])
    return np.concatenate([np.zeros((0, 2), np.int64), *inside])


def lift_direction(levels: Levels, b: Integers | None) -> Integers:
    """y (d,) of the data: of all alpha those with most points beyond the hyperplane of y, where all pairs have b'(..) >= 0."""
    side = len(levels.first)
    least = np.zeros(side, object)
    if b is not None:
        low, high = _near(levels, b)
        over = np.minimum.reduceat(high, levels.first)
        rows = np.flatnonzero(low <= over[levels.side])
        least = _least(levels, rows, levels.products(rows, b))
    free = levels.one_sided
    beyond = 1 << max((int(v).bit_length() for v in least), default=0)
    y = np.zeros(levels.d, object)
    two = levels.joint[levels.level[levels.joint[:, 0]] >= 0]
    alpha = np.zeros(side, object)
    alpha[two[:, 0]] = least[two[:, 1]] - least[two[:, 0]]
    alpha[free] = levels.value[free] * (beyond - 2 * least[free])
    some = np.concatenate([two[:, 0], np.flatnonzero(free)])
    y[levels.level[some]] = alpha[some] << levels.top
    if b is not None:
        y[levels.columns] = 2 * levels.scale_to_stored(b)
    return y


def flat(levels: Levels, across: Integers) -> Integers:
    """Vectors (d, c) orthogonal to all points, from columns (k, c) so to all pairs; those of features of no point are last."""
    count = across.shape[1]
    vectors = np.zeros((levels.d, count + len(levels.empty)), object)
    vectors[levels.empty, count + np.arange(len(levels.empty))] = 1
    sides = np.flatnonzero(levels.level >= 0)
    for place, column in enumerate(across.T):
        vectors[levels.columns, place] = levels.scale_to_stored(column)
        alpha = -levels.products(levels.first[sides], column) * levels.value[sides]
        vectors[levels.level[sides], place] = alpha << levels.top
    return vectors
