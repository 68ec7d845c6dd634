"""What was proved, and what blocks showed on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import CheckFailedError

if TYPE_CHECKING:
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


T = TypeVar("T")
Answer = Check | CheckFailedError
"""What was proved, or why nothing was."""


def attempt(prove: Callable[..., T], *words: Any) -> T | CheckFailedError:
    """What it proves; what it raises for want of a proof is an answer, too."""
    try:
        return prove(*words)
    except CheckFailedError as error:
        return error


class Maps(Protocol):
    """What the checker needs of an engine."""

    def map(self, function: Any, *args: Any) -> list[Any]:
        """``function(data, first, stop, *args)`` over ranges of blocks, in order; where it can be stopped in the middle also
        with ``stopped=``, which says so.
        """


@dataclass
class Found:
    """What some consecutive blocks showed of a certificate."""

    margin: float = math.inf  # least proved margin
    wrong: list[int] = field(default_factory=list)  # points, or first rows of cones, that are not proved to be positive
    total: NDArray[np.float64] | None = None  # (d,) sum of weighted unit columns
    spread: NDArray[np.float64] | None = None  # (d,) sum of their absolute values
    terms: int = 0

    def add(self, other: Any) -> None:
        """What the blocks that follow showed."""
        self.margin = min(self.margin, other.margin)
        self.wrong = (self.wrong + other.wrong)[:WRONG]
        if self.total is None or self.spread is None:
            self.total, self.spread = other.total, other.spread
        elif other.total is not None and other.spread is not None:
            self.total, self.spread = self.total + other.total, self.spread + other.spread
        self.terms += other.terms + int(self.terms > 0 and other.terms > 0)  # zeros are added exactly

    def sums(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        assert self.total is not None, "every block adds to the sum"
        assert self.spread is not None, "every block adds to the sum"
        return self.total, self.spread


@dataclass
class Looked:
    """What some consecutive blocks showed of several certificates."""

    checksums: list[tuple[int, int]]  # of points and labels of each block, as stored
    found: list[Any]  # of each certificate
    numbers: Numbers | None = None  # that a transform is made of
    signs: bool = True  # whether all labels are -1 or +1

    def add(self, other: Looked) -> None:
        self.checksums += other.checksums
        self.signs = self.signs and other.signs
        for mine, others in zip(self.found, other.found, strict=True):
            mine.add(others)
        if self.numbers is None or other.numbers is None:
            self.numbers = self.numbers or other.numbers
        else:
            self.numbers.add(other.numbers)


class Part(Protocol):
    """What some consecutive blocks showed."""

    checksums: list[tuple[int, int]]

    def add(self, other: Any) -> None:
        """What the blocks that follow showed."""


P = TypeVar("P", bound=Part)
Node = tuple[int, int, P]
"""(level, i, what the blocks i 2^level .. (i + 1) 2^level - 1 showed)."""


def joined(nodes: list[Node[P]], node: Node[P]) -> None:
    """Append a node, and add up pairs: the sums are the same, to the bit, whoever looked at which blocks."""
    while nodes and node[1] % 2 == 1 and nodes[-1][:2] == (node[0], node[1] - 1):
        level, index, part = nodes.pop()
        part.add(node[2])
        node = (level + 1, index // 2, part)
    nodes.append(node)


def nodes_of(parts: Iterable[tuple[int, P]]) -> list[Node[P]]:
    """Of what blocks showed, each with its number."""
    nodes: list[Node[P]] = []
    for index, part in parts:
        joined(nodes, (0, index, part))
    return nodes


def whole(ranges: Iterable[list[Node[P]]]) -> P:
    """What all blocks showed, from the nodes of ranges of them."""
    nodes: list[Node[P]] = []
    for node in (node for each in ranges for node in each):
        joined(nodes, node)
    part = nodes[0][2]
    for _, _, rest in nodes[1:]:
        part.add(rest)
    return part
