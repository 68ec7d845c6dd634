"""What the working set of cones keeps: how many rows, and how much memory that takes."""

from __future__ import annotations

from dataclasses import dataclass

SAMPLED = 20
"""Rows of the sample for each entry of y."""
GATHERED = 60
"""Rows that join after a pass, at most, for each entry of y."""
USUAL = 200
"""Rows that memory is projected for, for each entry of y: 20 to 90 were there in the end of trials of all kinds with m = 50."""
LEAST = 4
"""Rows for each entry of y without which a sample says little."""
COPIES = 6
"""Of the rows in memory, while the solver works."""
ANSWERED = 8
"""Of the rows that memory holds one in so many is in an answer: some answers wait to be merged."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of whole cones that memory holds, and needs."""

    m: int
    memory: int  # bytes for what a method keeps
    largest: int = 1  # rows of the largest cone

    @property
    def most(self) -> int:
        """That memory holds."""
        return max(1, self.memory // (8 * self.m * COPIES))

    @property
    def answered(self) -> int:
        """Of an answer, at most; a larger cone comes alone."""
        return max(1, min(GATHERED * self.m, self.most // ANSWERED))

    @property
    def least_memory(self) -> int:
        """Bytes without which it is of no use: for a sample, and for three of the largest cones."""
        return 8 * self.m * COPIES * max(LEAST * self.m, 3 * self.largest)

    @property
    def fits(self) -> bool:
        """Whether it is of use."""
        return self.memory >= self.least_memory

    @property
    def usual(self) -> int:
        """That it usually has in the end."""
        return min(self.most, max(USUAL * self.m, 3 * self.largest))

    @property
    def usual_bytes(self) -> int:
        """Bytes that these take, with answers."""
        return 8 * self.m * (COPIES * self.usual + ANSWERED * self.answered)
