"""n-vectors: rebuilt block by block from the m-vectors of a method, and projected onto the simplex on scratch storage.

Entropic methods hold x = sum_t c_t softmax(-A'y_t / mu_t) only through (y_t, mu_t, lse_t, c_t):

    x_j = sum_t c_t exp(-a_j'y_t / mu_t - lse_t).

    p = argmin over the simplex of <A'y, p> + (mu / 2) |p - q|^2 = max(v - tau, 0),   v = q - A'y / mu,
    with tau such that the entries sum to 1.

Three questions: ``Shift`` reads the points once and writes v; ``Excess`` finds tau by some reductions over v alone; ``Combine``
reads the points once more for A p, and writes the running average of the projections.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from dfeas.linalg.points import CONVERTED, Floats, Indices
from dfeas.passes.block import Block, rounding
from dfeas.passes.protocol import Plain, SumPass
from dfeas.passes.select import in_order

POINT_BYTES = 40
"""Indices and weights of points, 16 bytes each, and copies of them, where a method's certificate needs all points."""


Piece = tuple[Indices, Floats]
"""Numbers of points and their weights."""


def _concatenate(pieces: list[Piece]) -> Piece:
    return np.concatenate([index for index, _ in pieces]), np.concatenate([weight for _, weight in pieces])


def _take(piece: Piece, rows: Indices) -> Piece:
    return piece[0][rows], piece[1][rows]


class SparseWeights(Struct, frozen=True, eq=False):
    """Weights on points: entries that were kept (partial and answer alike)."""

    pieces: tuple[Piece, ...]  # per run of points

    def index(self) -> Indices:
        return np.concatenate([piece[0] for piece in self.pieces])

    def weight(self) -> Floats:
        return np.concatenate([piece[1] for piece in self.pieces])

    def total(self) -> float | None:
        """What divides them to be a point of the simplex; None for their sum."""
        return None

    def with_others(self, others: SparseWeights) -> SparseWeights:
        first, second = (tuple(piece for piece in each.pieces if len(piece[0])) for each in (self, others))
        pieces = in_order(
            first, second, lambda piece: piece[0], lambda piece: piece[0].nbytes + piece[1].nbytes, _concatenate, _take
        )
        return SparseWeights(pieces or self.pieces[:1])


class Gathers(Plain[SparseWeights]):
    """Whose partials are weights on some points."""

    __slots__ = ()

    def merge(self, first: SparseWeights, second: SparseWeights) -> SparseWeights:
        return first.with_others(second)


class Recover(Gathers, Struct, frozen=True, eq=False):
    """Weights of a mixture of T softmaxes; weights of at most ``floor`` are left out."""

    Y: Floats  # (m, T)
    mu: Floats  # (T,) > 0
    lse: Floats  # (T,) as softmin answered them
    share: Floats  # (T,) on the simplex
    floor: float

    def scan(self, block: Block) -> SparseWeights:
        """Weights of one block, always in float64."""
        scale = block.sides.scale()
        m = block.points.shape[1]
        weight = np.zeros(block.size)
        questions = self.Y / self.mu
        offset = np.log(self.share) - self.lse
        rows_at_once = max(1, min((1 << 20) // len(self.mu), CONVERTED // m))
        for first in range(0, block.size, rows_at_once):
            rows = slice(first, first + rows_at_once)
            scores = block.tile(rows, False) @ questions[:m]
            if block.intercept:
                scores += questions[m]
            weight[rows] = np.exp(offset - scores * scale[rows, None]).sum(axis=1)
        kept = np.flatnonzero(weight > self.floor)
        return SparseWeights(((block.start + kept, weight[kept]),))


class ShiftAnswer(Struct, frozen=True, eq=False):
    """What is known of v (partial and answer alike)."""

    low: float  # min_j a_j'y, inf for no point
    greatest: float  # max_j v_j
    total: float  # sum_j v_j


class Shift(Plain[ShiftAnswer], Struct, frozen=True, eq=False):
    """Write v = q - A'y / mu. Reads q, or nothing when q is uniform."""

    y: Floats  # (dimension,)
    mu: float  # > 0
    uniform: float  # 1 / n, for a uniform q

    def scan(self, rows: range, block: Block | None, vectors: tuple[Floats, ...]) -> tuple[ShiftAnswer, tuple[Floats, ...]]:
        """One block of v; the least score by a fixed order of summation."""
        assert block is not None
        scores = np.asarray(block.fast_scores(self.y), np.float64)
        slack = rounding(block.terms, False) * float(np.linalg.norm(self.y))
        lowest = np.flatnonzero(scores <= scores.min() + 2 * slack)
        v = (vectors[0] if vectors else self.uniform) - scores / self.mu
        low = float(block.exact_scores(lowest, self.y).min())
        return ShiftAnswer(low, float(v.max()), float(v.sum())), (v,)

    def merge(self, first: ShiftAnswer, second: ShiftAnswer) -> ShiftAnswer:
        return ShiftAnswer(min(first.low, second.low), max(first.greatest, second.greatest), first.total + second.total)


class ExcessAnswer(Struct, frozen=True, eq=False):
    """For each threshold, entries above it (partial and answer alike)."""

    total: Floats  # (k,) their sum
    count: Floats  # (k,) how many


class Excess(SumPass[ExcessAnswer], Struct, frozen=True, eq=False):
    """Entries of v above each of some thresholds. Reads v only."""

    tau: Floats  # (k,)

    def scan(self, rows: range, block: Block | None, vectors: tuple[Floats, ...]) -> tuple[ExcessAnswer, tuple[Floats, ...]]:
        v = np.sort(vectors[0][vectors[0] > self.tau.min()])
        above = np.concatenate([np.cumsum(v[::-1])[::-1], [0.0]])
        first = np.searchsorted(v, self.tau, side="right")
        return ExcessAnswer(above[first], (len(v) - first).astype(np.float64)), ()


class CombineAnswer(Struct, frozen=True, eq=False):
    """The projection seen from the columns (partial and answer alike)."""

    Ap: Floats  # (dimension,)


class Combine(SumPass[CombineAnswer], Struct, frozen=True):
    """A p for p = max(v - tau, 0) / total, and the average (1 - theta) old + theta p. Reads v, and old unless theta = 1."""

    dimension: int
    tau: float
    total: float  # makes the sum 1: thresholds of large v are rounded
    theta: float

    def scan(self, rows: range, block: Block | None, vectors: tuple[Floats, ...]) -> tuple[CombineAnswer, tuple[Floats, ...]]:
        """One block: only the points with a positive weight are multiplied."""
        assert block is not None
        p = self.project(block, vectors[0])
        used = np.flatnonzero(p)
        Ap = np.zeros(self.dimension)
        for first in range(0, len(used), ROWS):
            Ap += self.multiply(block, p, used[first : first + ROWS])
        average = p if self.theta == 1 else (1 - self.theta) * vectors[1] + self.theta * p
        return CombineAnswer(Ap), (average,)

    def project(self, block: Block, v: Floats) -> Floats:
        return np.asarray(np.maximum(v - self.tau, 0.0) / self.total)

    def multiply(self, block: Block, p: Floats, some: Indices) -> Floats:
        """A p over some points."""
        return block.combine(p[some], some)


ROWS = 4096
"""Columns that are unpacked at a time."""


class Positive(Gathers, Struct, frozen=True):
    """The positive entries of an n-vector, above a floor, as sparse weights. Reads the vector only."""

    floor: float

    def scan(self, rows: range, block: Block | None, vectors: tuple[Floats, ...]) -> tuple[SparseWeights, tuple[Floats, ...]]:
        kept = np.flatnonzero(vectors[0] > self.floor)
        return SparseWeights(((rows.start + kept, vectors[0][kept]),)), ()
