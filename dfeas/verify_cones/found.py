"""What blocks of cones showed on the way to a proof."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dfeas.verify import WRONG

SHOWN = 3
"""Critical cones that are named."""


@dataclass(frozen=True, order=True)
class Critical:
    """A cone that the answer depends on; the first in order are named."""

    order: float  # its margin, or minus its weight
    row: int  # its first row, as stored
    kind: str
    size: int


@dataclass
class Found:
    """What some consecutive blocks showed."""

    m: int
    checksums: list[tuple[int, int]] = field(default_factory=list)  # of rows and codes of each block
    padding: list[int] = field(default_factory=list)  # rows of each block that are of no cone
    cones: int = 0
    margin: float = math.inf  # least proved margin of a cone
    critical: list[Critical] = field(default_factory=list)
    wrong: list[int] = field(default_factory=list)  # first rows of cones that are not proved to be positive
    total: NDArray[np.float64] | None = None  # (m,) A x of scaled cones
    spread: NDArray[np.float64] | None = None  # (m,) of absolute values
    shifts: float = 0.0  # |A e| times what makes x a member for certain, at most
    weight: float = 0.0  # <e, x>, at least
    terms: int = 0
    zero: int = -1  # first row of a cone of zeros that has a weight

    def add(self, other: Found) -> None:
        """What the blocks that follow showed."""
        self.checksums += other.checksums
        self.padding += other.padding
        self.cones += other.cones
        self.margin = min(self.margin, other.margin)
        self.critical = sorted(self.critical + other.critical)[:SHOWN]
        self.wrong = (self.wrong + other.wrong)[:WRONG]
        if self.total is None or self.spread is None:
            self.total, self.spread = other.total, other.spread
        elif other.total is not None and other.spread is not None:
            self.total, self.spread = self.total + other.total, self.spread + other.spread
        self.shifts += other.shifts
        self.weight += other.weight
        self.terms += other.terms + int(self.terms > 0 and other.terms > 0)  # zeros are added exactly
        self.zero = other.zero if self.zero < 0 else self.zero
