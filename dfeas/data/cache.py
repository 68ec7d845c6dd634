"""What stays in a process from pass to pass: points of blocks under a byte budget, their labels and norms, and checksums.

Passes go through the blocks in a cycle, where dropping the least recently used one would drop each just before it is wanted
again. So the first blocks that come are kept, and nothing is dropped for the sake of another.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from dfeas.linalg.points import parts
from dfeas.passes.block import Block, Sides

SLAB_BYTES = 64 << 20
"""Memory is taken from the kernel in pieces of this size: large pages where it has them, and all of it goes back to the kernel,
however malloc was configured."""

LINE_BYTES = 64
"""Blocks begin at multiples of this."""

SIDES_BYTES = 64 << 20
"""Labels and norms of the first blocks are kept up to this size, and more of them under a budget; beyond that they are read or
computed again."""

HELD_BYTES = 1024
"""Of the objects that hold a block, or labels and norms of one: of small blocks more than what they hold."""


class BlockCache:
    """Blocks of one dataset, each kept after so many reads of it. Safe to use from several threads."""

    def __init__(self, budget: int, after: int = 0) -> None:
        self.budget = budget  # bytes
        self._after = after
        self._reads: dict[int, int] = {}  # of blocks that came, but not often enough
        self._taken = 0
        self._slab: NDArray[np.uint8] = np.empty(0, np.uint8)  # what is left of the last one
        self._blocks: dict[int, Block] = {}
        self._lock = Lock()

    def __contains__(self, index: int) -> bool:
        return index in self._blocks

    @property
    def bytes(self) -> int:
        """Bytes that were taken of the budget."""
        return self._taken

    def get(self, index: int) -> Block | None:
        return self._blocks.get(index)

    def is_due(self, index: int) -> bool:
        """Whether a block that is read now came often enough to be kept."""
        before = self._reads.get(index, 0)
        self._reads[index] = before + 1
        return before >= self._after

    def take(self, size: int, more: int = 0) -> NDArray[np.uint8] | None:
        """Memory of ``size`` bytes for the points of a block, and room for ``more``; None when the budget is used up."""
        with self._lock:
            if self._taken + size + more > self.budget:
                return None
            self._taken += size + more
            if self._slab.size < size:
                self._slab = _slab(max(size, min(SLAB_BYTES, self.budget - self._taken + size)))
            taken, self._slab = self._slab[:size], self._slab[-(-size // LINE_BYTES) * LINE_BYTES :]
        return taken

    def keep(self, index: int, block: Block) -> None:
        """Keep a block whose points lie in memory that was taken; nobody writes to them any more."""
        for array in parts(block.points):
            array.flags.writeable = False
        self._blocks[index] = block

    def drop(self, index: int) -> None:
        """Forget a block; its bytes stay taken."""
        self._blocks.pop(index, None)

    def close(self) -> None:
        """Forget everything, and keep nothing from now on."""
        with self._lock:
            self.budget = self._taken = 0
            self._slab = np.empty(0, np.uint8)
            self._blocks.clear()


def _slab(size: int) -> NDArray[np.uint8]:
    """Fresh memory, whose pages count when they are written."""
    memory = mmap.mmap(-1, size)
    memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8)


@dataclass
class Kept:
    """What a process keeps of blocks that it read: checksums and stamps, labels and norms, and all of some in a cache."""

    cache: BlockCache | None = None
    least: int = SIDES_BYTES  # bytes of labels and norms that are kept whatever the budget
    more: int = 0  # bytes of them under a budget
    sides: dict[int, Sides] = field(default_factory=dict)
    bytes: int = 0  # of ``sides``
    first: dict[int, NDArray[np.uint32]] = field(
        default_factory=dict
    )  # checksums (chunks, 2) of the first touch, where none are expected
    _lock: Lock = field(default_factory=Lock)
    _stamps: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))  # (blocks,) 0: not verified

    def is_verified(self, index: int, stamp: int) -> bool:
        return index < len(self._stamps) and int(self._stamps[index]) == stamp

    def mark_verified(self, index: int, stamp: int, blocks: int) -> None:
        """One of so many blocks was verified with this stamp, which is not 0."""
        if blocks > len(self._stamps):
            with self._lock:
                if blocks > len(self._stamps):
                    self._stamps = np.zeros(blocks, np.int64)
        self._stamps[index] = stamp

    def keep_sides(self, index: int, sides: Sides) -> Sides:
        """A copy of the labels and norms of a block, which stays, or the same where there is no room."""
        size = HELD_BYTES + sides.nbytes
        if self.bytes + size > self.least + self.more:
            return sides
        self.bytes += size
        self.sides[index] = sides = sides.copy()
        return sides

    def forget(self, index: int) -> None:
        """Nothing that is kept of a block is what is stored now."""
        if self.cache is not None:
            self.cache.drop(index)
        self.release(index)

    def release(self, index: int) -> None:
        """Make room for labels and norms of another block: those of this one are with its points, or wrong."""
        sides = self.sides.pop(index, None)
        self.bytes -= 0 if sides is None else HELD_BYTES + sides.nbytes

    def close(self) -> None:
        """Keep nothing from now on."""
        if self.cache is not None:
            self.cache.close()
        self.least = self.more = self.bytes = 0
        self.sides.clear()
