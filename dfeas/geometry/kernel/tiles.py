"""Runs of points, prepared, and the tiles of their kernel; tiles may be kept from one product to the next.

They are kept in the type in which they were computed, float32 where that is safe: the bits of a product are always the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dfeas.geometry.kernel.distances import Array, Floats, Prepared, squares
from dfeas.geometry.kernel.kernel import Kernel, seen
from dfeas.linalg.points import Points, row_slice, with_ones
from dfeas.passes.block import Block
from dfeas.passes.protocol import Keeps, Spills

TILE_ROWS = 512
"""Of both sides: a tile is 1 MB in float32, and stays in cache until it has been used."""
SINGLE_SQUARE = 8.0
"""In float32 exp(-gamma |x - z|^2) is right to about 1e-6 up to this gamma |x|^2: it is a difference of such numbers."""


@dataclass(frozen=True)
class Run:
    """A run of points, prepared for tiles in the precisions that were asked for."""

    kernel: Kernel
    start: int
    points: Points  # (b, m), or (b, m + 1) with the intercept
    label: Floats  # (b,) -1 or +1, or codes of classes
    partner: Run | None = None  # the run on the left of tiles, if it is another one

    @classmethod
    def of(cls, kernel: Kernel, block: Block) -> Run:
        """Views of a block, but for the intercept."""
        points = seen(block.points)
        if block.intercept:
            points = with_ones(points)
        return cls(kernel, block.start, points, block.label.astype(np.float64))

    def beside(self, other: Run) -> Run:
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
        """Rows of each tile, of about equal length."""
        return cuts(self.points.shape[0])

    @cached_property
    def safe(self) -> bool:
        """Whether products in float32 are good enough. The square root of "exponential" would double their relative error."""
        if self.points.dtype != np.float32 or not self.kernel.of_products or self.kernel.name == "exponential":
            return False
        if self.kernel.name != "rbf":
            return True  # products of unit vectors
        return bool(self.kernel.gamma * squares(self.points).max() <= SINGLE_SQUARE)

    @cached_property
    def narrow(self) -> list[tuple[Prepared, Prepared]]:
        return [self.kernel.prepared(row_slice(self.points, cut), True) for cut in self.cuts]

    @cached_property
    def wide(self) -> list[tuple[Prepared, Prepared]]:
        return [self.kernel.prepared(row_slice(self.points, cut), False, self.middle) for cut in self.cuts]

    def tiles(self, single: bool) -> list[tuple[Prepared, Prepared]]:
        """For the left and for the right of ``Kernel.tile``, cut by cut."""
        return self.narrow if single else self.wide


def cuts(rows: int) -> list[slice]:
    """Rows of tiles of about equal length, at most ``TILE_ROWS``."""
    count = -(-rows // TILE_ROWS)
    return [slice(rows * i // count, rows * (i + 1) // count) for i in range(count)]


@dataclass(frozen=True)
class Spilled:
    """Tiles on the disk, one behind the other."""

    spill: Spills
    name: str
    dtype: np.dtype[Any]
    places: dict[tuple[int, int], tuple[int, tuple[int, int]]]  # byte, and shape, of each

    @classmethod
    def of(cls, spill: Spills, name: str, tiles: Tiles) -> Spilled:
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
    runs: tuple[Run, Run] | None  # None where all are kept
    kept: dict[tuple[int, int], Array] = field(default_factory=dict)
    spilled: Spilled | None = None

    @classmethod
    def of(cls, left: Run, right: Run, single: bool, tile_cache: Keeps | None) -> Tiles:
        """Those of two runs; all are computed and kept if the tile cache has room, in memory or on the disk."""
        open_tiles = cls(tuple(left.cuts), tuple(right.cuts), left is right, single, (left, right))
        if tile_cache is None:
            return open_tiles
        key = left.kernel, left.start, right.start
        if tile_cache.take(open_tiles.bytes):
            found = replace(open_tiles, runs=None, kept={(i, j): open_tiles.tile(i, j) for i, j, _, _ in open_tiles.places})
        elif tile_cache.spill is not None:
            name = f"{left.start}-{right.start}"
            tiles = (np.asarray(open_tiles.tile(i, j), open_tiles.dtype) for i, j, _, _ in open_tiles.places)
            if not tile_cache.spill.write(name, tiles, open_tiles.bytes):
                return open_tiles
            found = replace(open_tiles, runs=None, spilled=Spilled.of(tile_cache.spill, name, open_tiles))
        else:
            return open_tiles
        tile_cache.put(key, found)
        return found

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of all tiles; a kernel of distances between cells, and a function, give float64 for any points."""
        return np.dtype(np.float32 if self.single else np.float64)

    @property
    def places(self) -> Iterator[tuple[int, int, slice, slice]]:
        """Number and rows of each tile, on the left and on the right."""
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
