"""What was proved, and what blocks showed on the way."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dfeas.verify.transform import Numbers

WRONG = 5
"""So many points on the wrong side are enough."""


@dataclass(frozen=True)
class Check:
    """What was proved."""

    verdict: str  # "feasible" | "infeasible" | "eps-infeasible"
    proof: str  # "exact" | "rigorous"
    margin_lower: float  # proved: some unit y has at least this margin (-1 if nothing is known)
    margin_upper: float  # proved: no unit y has more (1 if nothing is known)
    points: int  # points that were read
    exact_points: int  # of them, decided beyond float64
    message: str
    rounding: float = 0.0  # what margin_upper allows for rounding errors, which other orders of summation share


Support = list[tuple[Any, NDArray[np.float64]]]
"""Signed points (r, d) as stored, arrays or CSR matrices, and their factors (r,): weight over norm."""


@dataclass
class Found:
    """What some consecutive blocks showed."""

    points: int = 0
    margin: float = math.inf  # least proved margin of a point
    exact_points: int = 0
    wrong: list[int] = field(default_factory=list)  # points that are not on the positive side
    total: NDArray[np.float64] | None = None  # (d,) sum of weighted signed unit columns
    spread: NDArray[np.float64] | None = None  # (d,) sum of their absolute values
    terms: int = 0
    zero: bool = False  # a point with a weight is zero
    support: Support = field(default_factory=list)
    origin: NDArray[np.float64] | None = None  # what weighs as much as all of the support, if it is seen from somewhere

    def add(self, other: Found) -> None:
        """What the blocks that follow showed."""
        self.points += other.points
        self.margin = min(self.margin, other.margin)
        self.exact_points += other.exact_points
        self.wrong = (self.wrong + other.wrong)[:WRONG]
        if self.total is None or self.spread is None:
            self.total, self.spread = other.total, other.spread
        elif other.total is not None and other.spread is not None:
            self.total, self.spread = self.total + other.total, self.spread + other.spread
        self.terms += other.terms + int(self.terms > 0 and other.terms > 0)  # zeros are added exactly
        self.zero = self.zero or other.zero
        self.support += other.support
        self.origin = other.origin if self.origin is None else self.origin


@dataclass
class Looked:
    """What some consecutive blocks showed of several certificates."""

    checksums: list[tuple[int, int]]  # of points and labels of each block, as stored
    found: list[Found]  # of each certificate
    numbers: Numbers | None = None  # that a transform is made of
    signs: bool = True  # whether all labels are -1 or +1

    def add(self, other: Looked) -> None:
        """What the blocks that follow showed."""
        self.checksums += other.checksums
        self.signs = self.signs and other.signs
        for mine, others in zip(self.found, other.found, strict=True):
            mine.add(others)
        if self.numbers is None or other.numbers is None:
            self.numbers = self.numbers or other.numbers
        else:
            self.numbers.add(other.numbers)


Node = tuple[int, int, Looked]
"""(level, i, what the blocks i 2^level .. (i + 1) 2^level - 1 showed)."""


class Adds(Protocol):
    """What blocks showed."""

    def add(self, other: Any) -> None:
        """What the blocks that follow showed."""


A = TypeVar("A", bound=Adds)


def joined(nodes: list[tuple[int, int, A]], node: tuple[int, int, A]) -> None:
    """Append a node, and add up pairs: the sums are the same, to the bit, whoever looked at which blocks."""
    while nodes and node[1] % 2 == 1 and nodes[-1][:2] == (node[0], node[1] - 1):
        level, index, found = nodes.pop()
        found.add(node[2])
        node = (level + 1, index // 2, found)
    nodes.append(node)
