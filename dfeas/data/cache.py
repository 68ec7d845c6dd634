"""What stays in a process from pass to pass: points of blocks under a byte budget, their labels and norms, and checksums.

Passes go through the blocks in a cycle, where dropping the least recently used one would drop each just before it is wanted
again. So the first blocks that come are kept, and nothing is dropped for the sake of another.
"""

from __future__ import annotations

import mmap
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


class Kept:
    """What a process keeps of the blocks of one dataset: all of some under a budget, each after so many reads of it, labels and
    norms, and how blocks were when they were verified. Safe to use from several threads.
    """

    def __init__(self, budget: int = 0, after: int = 0) -> None:
        self.budget = budget  # bytes of blocks
        self.after = after  # reads of a block before the one that keeps it
        self.taken = 0  # bytes of the budget
        self.sides: dict[int, Sides] = {}
        self.sides_bytes = 0
        self.sides_limit = SIDES_BYTES
        self.first: dict[int, NDArray[np.uint32]] = {}  # checksums (chunks, 2) at the first touch, where none are expected
        self._blocks: dict[int, Block] = {}
        self._reads: dict[int, int] = {}  # of blocks that came, but not often enough
        self._slab: NDArray[np.uint8] = np.empty(0, np.uint8)  # what is left of the last one
        self._stamps = np.empty(0, np.int64)  # (blocks,) 0: not verified
        self._lock = Lock()

    def __contains__(self, index: int) -> bool:
        return index in self._blocks

    def get(self, index: int) -> Block | None:
        return self._blocks.get(index)

    def is_due(self, index: int) -> bool:
        """Whether a block that is read now came often enough to be kept, where any are."""
        if not self.budget:
            return False
        before = self._reads.get(index, 0)
        self._reads[index] = before + 1
        return before >= self.after

    def take(self, size: int, more: int = 0) -> NDArray[np.uint8] | None:
        """Memory of ``size`` bytes for the points of a block, and room for ``more``; None when the budget is used up."""
        with self._lock:
            if self.taken + size + more > self.budget:
                return None
            self.taken += size + more
            if self._slab.size < size:
                self._slab = _slab(max(size, min(SLAB_BYTES, self.budget - self.taken + size)))
            memory, self._slab = self._slab[:size], self._slab[-(-size // LINE_BYTES) * LINE_BYTES :]
        return memory

    def keep(self, index: int, block: Block) -> None:
        """Keep a block whose points lie in memory that was taken; nobody writes to them any more."""
        for array in parts(block.points):
            array.flags.writeable = False
        self._blocks[index] = block
        self._release(index)

    def keep_sides(self, index: int, sides: Sides) -> Sides:
        """A copy of the labels and norms of a block, which stays, or the same where there is no room."""
        size = HELD_BYTES + sides.nbytes
        if self.sides_bytes + size > self.sides_limit:
            return sides
        self.sides_bytes += size
        self.sides[index] = sides = sides.copy()
        return sides

    def _release(self, index: int) -> None:
        """Make room for labels and norms of another block: those of this one are with its points, or wrong."""
        sides = self.sides.pop(index, None)
        self.sides_bytes -= 0 if sides is None else HELD_BYTES + sides.nbytes

    def is_verified(self, index: int, stamp: int) -> bool:
        return index < len(self._stamps) and int(self._stamps[index]) == stamp

    def mark_verified(self, index: int, stamp: int, blocks: int) -> None:
        """One of so many blocks was verified with this stamp, which is not 0."""
        if blocks > len(self._stamps):
            with self._lock:
                if blocks > len(self._stamps):
                    self._stamps = np.zeros(blocks, np.int64)
        self._stamps[index] = stamp

    def doubt(self) -> None:
        """Every block is verified again when it is read next, whether its files changed or not: an array may have."""
        self._stamps[:] = 0

    def forget(self, index: int) -> None:
        """Nothing that is kept of a block is what is stored now; its bytes stay taken."""
        self._blocks.pop(index, None)
        self._release(index)

    def close(self) -> None:
        """Forget all blocks, labels and norms, and keep none from now on."""
        with self._lock:
            self.budget = self.taken = self.sides_limit = self.sides_bytes = 0
            self._slab = np.empty(0, np.uint8)
            self._blocks.clear()
            self.sides.clear()


def _slab(size: int) -> NDArray[np.uint8]:
    """Fresh memory, whose pages count when they are written."""
    memory = mmap.mmap(-1, size)
    memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8)
