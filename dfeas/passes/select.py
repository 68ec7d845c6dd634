"""Select and Sample: the columns whose score is at most a threshold, lowest first, and columns at random.

A block gives at most ``quota`` of them, all blocks together ``cap``. With a quota of a few times cap / blocks the partials of a
whole pass hold no more than a few times cap columns, wherever they are; data in random order loses nothing by it. A million
small blocks with one column each would come as a million objects: pieces of few points are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.linalg.points import Array, Floats, Indices, are_among
from dfeas.passes.block import Block, Columns, exact_scores_of, in_precision, rounding
from dfeas.passes.protocol import Blocks, Partial, ScoringPass

T = TypeVar("T")

FEW_BYTES = 1 << 16
"""Bytes up to which pieces are joined: copying them takes less than keeping them apart."""


def in_order(
    first: tuple[T, ...],
    second: tuple[T, ...],
    index: Callable[[T], Indices],
    size: Callable[[T], int],
    joined: Callable[[list[T]], T],
    take: Callable[[T, Indices], T],
) -> tuple[T, ...]:
    """Pieces in the order of the points, whose numbers ``index`` ascend in each and from one to the next, of some and others.
    ``size`` is that of a piece in bytes, ``joined`` puts some behind each other, and ``take`` picks points by their places.
    """
    if not (first and second):
        return first or second
    if index(second[0])[0] < index(first[0])[0]:
        first, second = second, first
    both, apart = first + second, bool(index(first[-1])[-1] < index(second[0])[0])
    if apart and any(total > FEW_BYTES for total in accumulate(map(size, both))):
        return both
    whole = joined(list(both))
    return (whole if apart else take(whole, np.argsort(index(whole))),)


Piece = tuple[Floats, Columns]
"""Scores and columns."""


class Selection(Struct, frozen=True, eq=False):
    """Columns at or below the threshold."""

    violated: int  # points with a_j'y <= 0, kept or not
    low: float  # min_j a_j'y over all points
    arg: int  # the first index that attains it
    score: Floats  # (c,) a_j'y of the kept ones
    pieces: list[Columns]  # in the order of the points; at least one until they are taken

    @property
    def columns(self) -> Columns:
        """All of them: a copy, where there are several pieces."""
        return Columns.concatenate(list(self.pieces))

    def append_to(self, others: Columns, most: int) -> Columns:
        """Other columns, and behind them those of these that are new, all of which are taken out; with room for ``most``."""
        fresh = ~are_among(self.index, others.index)

        def take(mine: NDArray[np.bool_]) -> Columns:
            piece = self.pieces.pop(0)
            return piece if mine.all() else piece.take(mine)

        edges = np.cumsum([len(piece) for piece in self.pieces])[:-1]
        return Columns.concatenate([others, *map(take, np.split(fresh, edges))], most)

    @property
    def index(self) -> Indices:
        return np.concatenate([piece.index for piece in self.pieces])


class SelectPartial(Struct, frozen=True):
    """The same for some blocks, in pieces, so that a merge copies few columns unless it drops some."""

    violated: int
    low: float  # inf when there is no point
    arg: int  # -1 when there is no point
    pieces: tuple[Piece, ...]  # in the order of the points; at most ``cap`` columns in all


class Select(ScoringPass, Struct, frozen=True, eq=False):
    """Columns with a_j'y <= threshold: of each block the ``quota`` lowest, of all blocks the ``cap`` lowest."""

    y: Floats  # (dimension,)
    threshold: float  # may be inf
    cap: int
    quota: int
    raw: bool = False  # threshold, order and scores are those of the points as stored, l_j x_j'y, and not of unit columns

    def scored_by(self) -> Floats:
        return self.y

    def scan(self, block: Block) -> SelectPartial:
        """Select from one block: fast scores choose, scores in float64 by a fixed order of summation decide."""
        return self.scan_run([block])

    def scan_run(self, blocks: Sequence[Block]) -> SelectPartial:
        y = in_precision(self.y, all(block.single for block in blocks))
        return self._select(blocks, [block.fast_scores(y) for block in blocks])

    def scan_scored(self, block: Block, fast: Array) -> SelectPartial:
        return self._select([block], [fast])

    def _select(self, blocks: Sequence[Block], each: Sequence[Array]) -> SelectPartial:
        """From consecutive blocks and their scores: several at once take as many looks at all scores as one does."""
        fast: Any = each[0] if len(each) == 1 else np.concatenate(each)
        if not fast.size:
            return SelectPartial(0, np.inf, -1, ())
        length = float(np.sqrt(self.y @ self.y))
        slack = rounding(max(block.terms for block in blocks), fast.dtype == np.float32) * length
        least = float(fast.min())
        violated, unsure = self._count_violated(fast, least, slack)
        # y = 0 scores every column 0, and the first row stands for all
        lowest = np.flatnonzero(fast <= least + 2 * slack) if length > 0 else np.zeros(1, np.int64)
        exact = exact_scores_of(blocks, np.concatenate((lowest, unsure)) if unsure.size else lowest, self.y)
        violated += int((exact[len(lowest) :] <= 0).sum()) if unsure.size else 0
        best = int(exact[: len(lowest)].argmin())
        low, arg = float(exact[best]), blocks[0].start + int(lowest[best])
        if not self.raw and least > self.threshold + slack:
            return SelectPartial(violated, low, arg, ())
        taken = [self._take_lowest(block, scores, slack, length > 0) for block, scores in zip(blocks, each, strict=True)]
        return SelectPartial(violated, low, arg, tuple(piece for piece in taken if len(piece[0])))

    def _take_lowest(self, block: Block, fast: Array, slack: float, apart: bool) -> Piece:
        """The ``quota`` lowest of a block; ``apart`` is false where all scores are 0."""
        size = block.sides.lengths() if self.raw else np.ones(1)
        fast, error = (fast * size, slack * size) if self.raw else (fast, np.full(1, slack))
        rows = np.flatnonzero(fast <= self.threshold + error)
        if len(rows) > self.quota:
            rows = _could_be_lowest(rows, fast, error, self.quota) if apart else rows[: self.quota]
        score = block.exact_scores(rows, self.y) * (size[rows] if self.raw else 1.0)
        kept = np.flatnonzero(score <= self.threshold)
        if len(kept) > self.quota:
            kept = np.sort(kept[np.argsort(score[kept], kind="stable")[: self.quota]])
        rows, score = rows[kept], score[kept]
        return score, Columns.of(block, rows)

    def _count_violated(self, fast: Array, least: float, slack: float) -> tuple[int, Indices]:
        """Rows that are certainly on the wrong side, and which may be."""
        none = np.empty(0, np.int64)
        if least > slack:
            return 0, none
        wrong, maybe = fast < -slack, fast <= slack
        count, most = int(np.count_nonzero(wrong)), int(np.count_nonzero(maybe))
        if not slack:  # y = 0
            return most, none
        return count, none if count == most else np.flatnonzero(wrong ^ maybe)

    def merge(self, first: SelectPartial, second: SelectPartial) -> SelectPartial:
        return merge_lowest(first, second, self.cap)

    def finish(self, partial: SelectPartial) -> Selection:
        return finish_lowest(partial, self.cap, len(self.y))


def _could_be_lowest(rows: Indices, fast: Array, error: Floats, count: int) -> Indices:
    """Rows that may have one of the ``count`` lowest scores; fast scores are wrong by ``error`` (b or 1,) at most."""
    if not count:
        return rows[:0]
    score, wrong = fast[rows], error[rows] if len(error) > 1 else error
    bar = np.partition(score + wrong, count - 1)[count - 1]
    return np.asarray(rows[score - wrong <= bar])


def merge_lowest(first: SelectPartial, second: SelectPartial, cap: int) -> SelectPartial:
    """Both, with the ``cap`` lowest columns."""
    best = second if first.arg < 0 or (second.arg >= 0 and (second.low, second.arg) < (first.low, first.arg)) else first
    pieces = in_order(
        first.pieces, second.pieces, lambda piece: piece[1].index, lambda piece: piece[1].nbytes, _concatenate, _take
    )
    count = sum(len(score) for score, _ in pieces)
    if count > cap:
        pieces = _lowest(pieces, cap)
    return SelectPartial(first.violated + second.violated, best.low, best.arg, pieces)


def finish_lowest(partial: SelectPartial, cap: int, dimension: int) -> Selection:
    """The ``cap`` lowest columns in the order of the points."""
    pieces = partial.pieces
    if sum(len(score) for score, _ in pieces) > cap:
        pieces = _lowest(pieces, cap)
    if not pieces:
        return Selection(partial.violated, partial.low, partial.arg, np.empty(0), [Columns.none(dimension)])
    score = np.concatenate([piece[0] for piece in pieces])
    return Selection(partial.violated, partial.low, partial.arg, score, [piece[1] for piece in pieces])


def _concatenate(pieces: list[Piece]) -> Piece:
    return np.concatenate([score for score, _ in pieces]), Columns.concatenate([columns for _, columns in pieces])


def _take(piece: Piece, rows: Indices) -> Piece:
    return piece[0][rows], piece[1].take(rows)


def _lowest(pieces: tuple[Piece, ...], cap: int) -> tuple[Piece, ...]:
    """The ``cap`` lowest by (score, index), piece by piece."""
    score = np.concatenate([piece[0] for piece in pieces])
    index = np.concatenate([piece[1].index for piece in pieces])
    keep = np.zeros(len(score), bool)
    keep[np.lexsort((index, score))[:cap]] = True
    edges = np.cumsum([len(piece[0]) for piece in pieces])[:-1]
    masks: list[Indices] = [np.flatnonzero(mask) for mask in np.split(keep, edges)]
    return tuple(
        (values, columns) if len(rows) == len(values) else (values[rows], columns.take(rows))
        for (values, columns), rows in zip(pieces, masks, strict=True)
        if len(rows)
    )


class Gathering:
    """A pass whose partials are columns, in pieces."""

    __slots__ = ()
    dimension: int
    room: int  # columns that there is memory for in all, as others will join

    def merge(self, first: tuple[Columns, ...], second: tuple[Columns, ...]) -> tuple[Columns, ...]:
        return in_order(first, second, lambda part: part.index, lambda part: part.nbytes, Columns.concatenate, Columns.take)

    def finish(self, partial: tuple[Columns, ...]) -> Columns:
        parts = list(partial)
        del partial  # who called it holds no part
        return Columns.concatenate(parts, self.room) if parts else Columns.none(self.dimension)


class Named(Gathering, Struct, frozen=True, eq=False):
    """The columns of some points."""

    dimension: int
    index: Indices  # (s,) of the points, ascending
    unit: bool = True  # as of a sample
    room: int = 0

    def scan(self, block: Block) -> tuple[Columns, ...]:
        rows = self.index[slice(*np.searchsorted(self.index, [block.start, block.start + block.size]))] - block.start
        return (Columns.of(block, rows, self.unit),) if len(rows) else ()


class Sample(Gathering, Struct, frozen=True):
    """``quota`` columns of each block, drawn without replacement; the same for the same seed, however blocks are cut."""

    dimension: int
    quota: int
    seed: int
    unit: bool = True  # false: factors of the columns are labels only
    room: int = 0

    def scan(self, block: Block) -> tuple[Columns, ...]:
        if not block.size:
            return ()
        if self.quota >= block.size:
            return (Columns.of(block, np.arange(block.size), self.unit),)
        random = np.random.default_rng((self.seed, block.start))
        rows = np.sort(random.choice(block.size, self.quota, replace=False))
        return (Columns.of(block, rows, self.unit),)


def sample(dimension: int, count: int, n: int, blocks: int, least: int, seed: int, unit: bool = True) -> Partial:
    """About ``count`` of the ``n`` columns in ``blocks`` blocks of equal size; all of them for count >= n. As few blocks are
    read as leave half of each unused, but at least ``least`` of them: neighbours are often alike.
    """
    if count >= n:
        return Partial(Sample(dimension, n, seed, unit), range(blocks))
    wanted = min(blocks, max(least, -(-2 * count * blocks // n)))
    drawn = np.sort(np.random.default_rng(seed).choice(blocks, wanted, replace=False))
    return Partial(Sample(dimension, -(-count // wanted), seed, unit), tuple(drawn.tolist()))


def shuffle_others(blocks: int, drawn: Blocks, seed: int) -> Indices:
    """Numbers of the blocks that a sample did not draw, in random order."""
    left = np.ones(blocks, bool)
    left[list(drawn)] = False
    return np.random.default_rng((seed, 1)).permutation(np.flatnonzero(left))
