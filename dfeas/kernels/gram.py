"""Products with the signed normalised Gram matrix, tile by tile; the matrix is never stored.

    G_ij = l_i l_j K(x_i, x_j) / sqrt(K(x_i, x_i) K(x_j, x_j))      (n, n)

G is symmetric, so a tile of two runs of rows answers for both. Where few rows of V are not zero only their columns of G are
computed: for s of them a product costs n s m rather than n^2 m / 2.

Tiles may be kept from one product to the next, in the type in which they were computed, float32 where that is safe: the bits of
a product are always the same.

Reference: Ramdas and Pena 2014, section 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from dfeas.engine.tile_cache import Spill, TileCache
from dfeas.kernels.distances import TILE_ROWS, Prepared, cuts, squares
from dfeas.kernels.kernel import NormalisedKernel, as_floating
from dfeas.linalg.points import Array, Floats, Indices, Points, row_slice, with_ones
from dfeas.passes.block import Block, against
from dfeas.passes.protocol import OnPairs
from dfeas.records import replace


@dataclass(frozen=True)
class TileRun:
    """A run of points, prepared for tiles in the precisions that were asked for."""

    kernel: NormalisedKernel
    start: int
    points: Points  # (b, m), or (b, m + 1) with the intercept
    label: Floats  # (b,) -1 or +1, or codes of classes
    tile_rows: int = TILE_ROWS  # of each tile, at most
    partner: TileRun | None = None  # the run on the left of tiles, if it is another one

    @classmethod
    def of(cls, kernel: NormalisedKernel, block: Block, tile_rows: int = TILE_ROWS) -> TileRun:
        """Views of a block, but for the intercept."""
        points = as_floating(block.points)
        if block.intercept:
            points = with_ones(points)
        return cls(kernel, block.start, points, block.label.astype(np.float64), tile_rows)

    def beside(self, other: TileRun) -> TileRun:
        """The same points, for the right of tiles with those of another run."""
        return replace(self, partner=other)

    @cached_property
    def middle(self) -> Floats | None:
        """Where tiles in float64 are seen from (m,), on both sides."""
        return self.kernel.middle(self.points) if self.partner is None else self.partner.middle

    @property
    def rows(self) -> slice:
        return slice(self.start, self.start + self.points.shape[0])

    @cached_property
    def cuts(self) -> list[slice]:
        return cuts(self.points.shape[0], self.tile_rows)

    @cached_property
    def safe(self) -> bool:
        """Whether products in float32 are good enough. The square root of "exponential" would double their relative error."""
        if self.points.dtype != np.float32 or not self.kernel.of_products or self.kernel.name == "exponential":
            return False
        if self.kernel.name != "rbf":
            return True  # products of unit vectors
        # in float32 exp(-gamma |x - z|^2), of a difference of such numbers, is right to about 1e-6
        return bool(self.kernel.gamma * squares(self.points).max() <= 8.0)

    @cached_property
    def narrow(self) -> list[tuple[Prepared, Prepared]]:
        return [self.kernel.prepare(row_slice(self.points, cut), True) for cut in self.cuts]

    @cached_property
    def wide(self) -> list[tuple[Prepared, Prepared]]:
        return [self.kernel.prepare(row_slice(self.points, cut), False, self.middle) for cut in self.cuts]

    def tiles(self, single: bool) -> list[tuple[Prepared, Prepared]]:
        """For the left and for the right of ``Kernel.tile``, cut by cut."""
        return self.narrow if single else self.wide


@dataclass(frozen=True)
class Spilled:
    """Tiles on the disk, one behind the other."""

    spill: Spill
    name: str
    dtype: np.dtype[Any]
    places: dict[tuple[int, int], tuple[int, tuple[int, int]]]  # byte, and shape, of each

    @classmethod
    def of(cls, spill: Spill, name: str, tiles: Tiles) -> Spilled:
        """In the order of the places."""
        places, byte = {}, 0
        for i, j, here, there in tiles.places:
            shape = here.stop - here.start, there.stop - there.start
            places[i, j] = byte, shape
            byte += shape[0] * shape[1] * tiles.dtype.itemsize
        return cls(spill, name, tiles.dtype, places)

    def read(self, i: int, j: int) -> Array:
        byte, shape = self.places[i, j]
        return self.spill.read(self.name, byte, shape, self.dtype)


@dataclass(frozen=True)
class Tiles:
    """The kernel of a run with another one, or with itself: then those on and above the diagonal."""

    left: tuple[slice, ...]  # rows of each tile
    right: tuple[slice, ...]
    square: bool
    single: bool
    runs: tuple[TileRun, TileRun] | None  # None where all are kept
    kept: dict[tuple[int, int], Array] = field(default_factory=dict)
    spilled: Spilled | None = None

    @classmethod
    def of(cls, left: TileRun, right: TileRun, single: bool, tile_cache: TileCache | None) -> Tiles:
        """Those of two runs; all are computed and kept if the tile cache has room, in memory or on the disk."""
        open_tiles = cls(tuple(left.cuts), tuple(right.cuts), left is right, single, (left, right))
        if tile_cache is None:
            return open_tiles
        key = left.kernel, left.start, right.start
        if tile_cache.take(open_tiles.bytes):
            settled = replace(open_tiles, runs=None, kept={(i, j): open_tiles.tile(i, j) for i, j, _, _ in open_tiles.places})
        elif tile_cache.spill is not None:
            name = f"{left.start}-{right.start}"
            tiles = (np.asarray(open_tiles.tile(i, j), open_tiles.dtype) for i, j, _, _ in open_tiles.places)
            if not tile_cache.spill.write(name, tiles, open_tiles.bytes):
                return open_tiles
            settled = replace(open_tiles, runs=None, spilled=Spilled.of(tile_cache.spill, name, open_tiles))
        else:
            return open_tiles
        tile_cache.put(key, settled)
        return settled

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of all tiles; a kernel of distances between cells, and a function, give float64 for any points."""
        return np.dtype(np.float32 if self.single else np.float64)

    @property
    def places(self) -> Iterator[tuple[int, int, slice, slice]]:
        for i, here in enumerate(self.left):
            for j in range(i if self.square else 0, len(self.right)):
                yield i, j, here, self.right[j]

    @property
    def bytes(self) -> int:
        return sum(
            self.dtype.itemsize * (here.stop - here.start) * (there.stop - there.start) for _, _, here, there in self.places
        )

    def tile(self, i: int, j: int) -> Array:
        """The kernel (b, c) of some rows of both."""
        if self.spilled is not None:
            return self.spilled.read(i, j)
        if self.runs is None:
            return self.kept[i, j]
        left, right = self.runs
        return left.kernel.tile(left.tiles(self.single)[i][0], right.tiles(self.single)[j][1])


Partial = tuple[tuple[int, Floats], ...]
"""Rows of the answer: the first row of a run, and (b, k); in order of runs."""


@dataclass(frozen=True)
class Coefficients:
    """Some rows of V, signed, over a power of two that keeps float32 from overflow."""

    values: Array  # (b, k) entries of at most 1, none of them tiny
    scale: Floats  # (k,)

    @classmethod
    def of(cls, values: Floats, single: bool) -> Coefficients:
        scale = np.ldexp(1.0, np.frexp(np.abs(values).max(axis=0, initial=0.0))[1])
        dtype: Any = np.float32 if single else np.float64
        values = values / scale
        # a coefficient below this share of the greatest of its run is none: far below rounding, and slow where
        # float32 has no digits left for it
        return cls(np.where(np.abs(values) < 2.0**-100, 0, values).astype(dtype), scale)

    @cached_property
    def support(self) -> Indices:
        return np.flatnonzero(self.values.any(axis=1))


@dataclass(frozen=True, slots=True)
class GramProduct(OnPairs):
    """G V (n, k) float64; with unsigned, of K~_ij = G_ij l_i l_j, so that problems with other labels can share the tiles."""

    kernel: NormalisedKernel
    V: Floats  # (n, k)
    signed: bool | tuple[bool, ...] = True  # of all columns, or of each
    widths: tuple[int, ...] = ()  # columns of each question, where it answers several
    codes: tuple[int | None, ...] = (None,)  # of the class that is +1, of each question; None: labels are signs
    tile_rows: int = TILE_ROWS  # of each tile, at most

    @property
    def batch_key(self) -> tuple[NormalisedKernel, int]:
        """Products of one kernel share its tiles."""
        return self.kernel, self.tile_rows

    def batch(self, questions: Sequence[GramProduct]) -> GramProduct:
        """All their columns in one product: a tile is computed once for all of them."""
        widths = tuple(question.V.shape[1] for question in questions)
        signed = [part for question in questions for part in np.broadcast_to(question.signed, question.V.shape[1]).tolist()]
        codes = tuple(question.codes[0] for question in questions)
        return GramProduct(
            self.kernel, np.hstack([question.V for question in questions]), tuple(signed), widths, codes, self.tile_rows
        )

    def of_class(self, code: int) -> GramProduct:
        """The same with the signs of one class against the rest; the tiles are those of all classes."""
        return replace(self, codes=(code,))

    def touches(self, rows: range) -> bool:
        """Whether V is anything but zero there."""
        return bool(self.V[rows.start : rows.stop].any())

    def prepare(self, block: Block) -> TileRun:
        return TileRun.of(self.kernel, block, self.tile_rows)

    def scan(self, left: TileRun, right: TileRun, tile_cache: TileCache | None = None) -> Partial:
        """Tiles of both, or those of the columns that count where they are fewer."""
        kept = None if tile_cache is None else tile_cache.get((self.kernel, left.start, right.start))
        single = left.safe and right.safe if kept is None else kept.single
        if not single and right.middle is not left.middle:
            right = right.beside(left)
        ours, theirs = self._coefficients(left, single), self._coefficients(right, single)
        rows, others = left.points.shape[0], right.points.shape[0]
        few = rows * len(theirs.support) + others * len(ours.support) < rows * others
        answers: tuple[Floats, ...]
        if few and left is right:
            answers = (self._of_support(left, left, ours, single),)
        elif few:
            answers = self._of_support(left, right, theirs, single), self._of_support(right, left, ours, single)
        else:
            tiles = kept or Tiles.of(left, right, single, tile_cache)
            answers = (self._square(tiles, ours),) if left is right else self._both(tiles, ours, theirs)
        return tuple((run.start, self._with_sign(run, values)) for run, values in zip((left, right), answers, strict=False))

    def _coefficients(self, run: TileRun, single: bool) -> Coefficients:
        return Coefficients.of(self._with_sign(run, self.V[run.rows]), single)

    def _with_sign(self, run: TileRun, values: Floats) -> Floats:
        return np.where(self.signed, values * self._signs(run), values)

    def _signs(self, run: TileRun) -> Floats:
        """Labels (b, k), or (b, 1) where all columns have the same."""
        signs = np.column_stack([run.label if code is None else against(run.label, code) for code in self.codes])
        return np.asarray(np.repeat(signs, self.widths, axis=1) if self.widths else signs, np.float64)

    def _both(self, tiles: Tiles, ours: Coefficients, theirs: Coefficients) -> tuple[Floats, Floats]:
        """Each tile once, for the rows of both runs."""
        answers = np.zeros((len(ours.values), self.V.shape[1])), np.zeros((len(theirs.values), self.V.shape[1]))
        for i, j, here, there in tiles.places:
            if ours.values[here].any() or theirs.values[there].any():
                tile = tiles.tile(i, j)
                answers[0][here] += tile @ theirs.values[there]
                answers[1][there] += tile.T @ ours.values[here]
        return answers[0] * theirs.scale, answers[1] * ours.scale

    def _square(self, tiles: Tiles, ours: Coefficients) -> Floats:
        """A run with itself: tiles above the diagonal for both sides, those on it once."""
        answer = np.zeros((len(ours.values), self.V.shape[1]))
        for i, j, here, there in tiles.places:
            if ours.values[here].any() or ours.values[there].any():
                tile = tiles.tile(i, j)
                answer[here] += tile @ ours.values[there]
                if i != j:
                    answer[there] += tile.T @ ours.values[here]
        return answer * ours.scale

    def _of_support(self, run: TileRun, other: TileRun, theirs: Coefficients, single: bool) -> Floats:
        """Rows of one run, columns of another that count."""
        answer = np.zeros((run.points.shape[0], self.V.shape[1]))
        for some in cuts(len(theirs.support), self.tile_rows):
            chosen = theirs.support[some]
            _, columns = self.kernel.prepare(other.points[chosen], single, run.middle)
            values = theirs.values[chosen]
            for here, (one, _) in zip(run.cuts, run.tiles(single), strict=True):
                answer[here] += self.kernel.tile(one, columns) @ values
        return answer * theirs.scale

    def merge(self, first: Partial, second: Partial) -> Partial:
        rows = dict(first)
        for start, values in second:
            rows[start] = rows[start] + values if start in rows else values
        return tuple(sorted(rows.items()))

    def finish(self, partial: Partial) -> Floats | tuple[Floats, ...]:
        """All rows; those that met nothing are zero. For several questions the columns of each."""
        answer = np.zeros(self.V.shape)
        for start, values in partial:
            answer[start : start + len(values)] = values
        return tuple(np.split(answer, np.cumsum(self.widths)[:-1], axis=1)) if self.widths else answer
