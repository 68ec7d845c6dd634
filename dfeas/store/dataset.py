"""A dataset: n points with labels, read as blocks, checked on first touch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import CorruptDataError
from dfeas.passes.block import Block, Sides, norms
from dfeas.passes.survey import checksum
from dfeas.store.layout import Header
from dfeas.store.reading import Buffers, Cost, RowReader

AHEAD = 8
"""Blocks that the kernel is asked to read ahead."""

SIDES_BYTES = 64 << 20
"""Labels and norms of the first blocks are kept in a process up to this size, and read or computed again beyond it."""

WARM = 4e9
"""Bytes a second above which the page cache is being read, and the kernel need not be asked to read ahead."""


@dataclass
class Dataset:
    """Points, labels and norms behind readers. Safe to read from several threads, each with its own buffers."""

    where: str  # how messages call it
    n: int
    m: int  # features as stored, without the intercept
    dtype: np.dtype[Any]
    block_rows: int
    points: RowReader
    labels: RowReader
    stored_norms: RowReader | None  # None: computed when a block is read
    classes: tuple[str, ...] = ()
    intercept: bool = False
    expected: NDArray[np.uint32] | None = None  # (blocks, 3) checksums of X, label, norm
    header: Header | None = None  # of a dataset that dfeas wrote
    fingerprint: str = ""
    _touched: set[int] = field(default_factory=set)
    _sides: dict[int, Sides] = field(default_factory=dict)
    _sides_bytes: int = 0

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return -(-self.n // self.block_rows)

    @property
    def dimension(self) -> int:
        """Length of a column: m, or m + 1 with the intercept."""
        return self.m + self.intercept

    @property
    def block_bytes(self) -> int:
        """Bytes of a full block of points."""
        return self.block_rows * self.m * self.dtype.itemsize

    @property
    def bytes(self) -> int:
        """Bytes of all points: what one pass reads."""
        return self.n * self.m * self.dtype.itemsize

    def read(self, index: int, buffers: Buffers) -> Block:
        """One block. Raises CorruptDataError when it is missing, damaged, or not what was ingested."""
        points = self.points.read(index, buffers)
        sides = self._sides.get(index)
        if sides is None:
            label = self.labels.read(index, buffers)
            stored = self.stored_norms
            norm = norms(points) if stored is None else stored.read(index, buffers)
            if index not in self._touched:
                self._check(index, points, label, norm)
                self._touched.add(index)
            sides = Sides(label, norm, self.intercept)
            if self._sides_bytes + sides.nbytes <= SIDES_BYTES:
                sides = sides.copy()
                self._sides_bytes += sides.nbytes
                self._sides[index] = sides
        return Block(index * self.block_rows, points, sides)

    def _check(self, index: int, points: NDArray[Any], label: NDArray[Any], norm: NDArray[Any]) -> None:
        """Compare with the checksums of the header, where there are some."""
        if self.expected is None:
            return
        found = [checksum(points), checksum(label), checksum(norm)]
        for name, was, now in zip(("X", "label", "norm"), self.expected[index], found, strict=True):
            if was != now:
                raise CorruptDataError(
                    f"{self.where}: chunk {index} of {name} is damaged (crc32c {now:08x}, expected {was:08x}); "
                    "restore or ingest again"
                )

    def read_blocks(self, indices: Sequence[int], cost: Cost) -> Iterator[Block]:
        """Some blocks in the order given, reading ahead; adds points, bytes and waiting time to ``cost``."""
        blocks = self._advised(indices) if self.points.overlaps else self._prefetched(indices)
        while True:
            began = perf_counter()
            block = next(blocks, None)
            cost.read_seconds += perf_counter() - began
            if block is None:
                return
            cost.bytes_read += block.points.nbytes
            cost.points += block.size
            yield block

    def _advised(self, indices: Sequence[int]) -> Iterator[Block]:
        buffers = Buffers()
        advised = 0  # this many were asked for
        for done, index in enumerate(indices, 1):
            began = perf_counter()
            block = self.read(index, buffers)
            if self.block_bytes < WARM * (perf_counter() - began):
                for coming in indices[max(advised, done) : done + AHEAD]:
                    self.points.advise(coming)
                advised = done + AHEAD
            yield block

    def _prefetched(self, indices: Sequence[int]) -> Iterator[Block]:
        # two sets of buffers: one block is scanned while the next is read
        buffers = (Buffers(), Buffers())
        with ThreadPoolExecutor(1, "dfeas-read") as pool:
            coming = pool.submit(self.read, indices[0], buffers[0])
            for done, _ in enumerate(indices, 1):
                block = coming.result()
                if done < len(indices):
                    coming = pool.submit(self.read, indices[done], buffers[done % 2])
                yield block
