"""What consecutive blocks showed of certificates, how it is added up, and who looks. Shares nothing with passes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from dfeas.data.storage.readers import Stop
from dfeas.records import replace
from dfeas.verify.blocks import Block, Data, blocks
from dfeas.verify.certificate import Answer, Certificate
from dfeas.verify.view import FeatureMoments

WRONG = 5
"""Points on the wrong side that are enough."""
Function = Callable[[Any, Any], Any]
"""Two blocks of points (b, m) and (c, m) to their kernel (b, c)."""


class Maps(Protocol):
    """What the checker needs of an engine."""

    def map(self, function: Any, *args: Any, count: int | None = None) -> list[Any]:
        """``function(data, first, stop, *args)`` over ranges of all blocks, or of ``count``, in order; where it can be
        stopped in the middle also with ``stopped=``, which says so.
        """


class BlockTally(Struct):
    """What some consecutive blocks showed of a certificate."""

    margin: float = math.inf  # least proved margin
    wrong: list[int] = field(default_factory=list)  # points, or first rows of cones, that are not proved to be positive
    total: NDArray[np.float64] | None = None  # (d,) sum of weighted unit columns
    spread: NDArray[np.float64] | None = None  # (d,) sum of their absolute values
    terms: int = 0
    most: int = WRONG  # points on the wrong side that are enough
    flat: list[int] = field(default_factory=list)  # of these, points that are on the hyperplane

    def add(self, other: Any) -> None:
        """What the blocks that follow showed."""
        self.margin = min(self.margin, other.margin)
        self.wrong = (self.wrong + other.wrong)[: self.most]
        self.flat = (self.flat + other.flat)[: self.most]
        if self.total is None or self.spread is None:
            self.total, self.spread = other.total, other.spread
        elif other.total is not None and other.spread is not None:
            self.total, self.spread = self.total + other.total, self.spread + other.spread
        self.terms += other.terms + int(self.terms > 0 and other.terms > 0)  # zeros are added exactly

    def sums(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        assert self.total is not None, "every block adds to the sum"
        assert self.spread is not None, "every block adds to the sum"
        return self.total, self.spread


class Tallies(Struct):
    """What some consecutive blocks showed of several certificates."""

    checksums: bytes  # of points and labels of each chunk, as stored
    tallies: list[Any]  # of each certificate
    numbers: FeatureMoments | None = None  # that a transform is made of
    signs: bool = True  # whether all labels are -1 or +1

    def add(self, other: Tallies) -> None:
        self.checksums = self.checksums + other.checksums
        self.signs = self.signs and other.signs
        for mine, others in zip(self.tallies, other.tallies, strict=True):
            mine.add(others)
        self.numbers = add_numbers(self.numbers, other.numbers)

    def beside(self, other: Tallies) -> Tallies:
        """Both, of which neither is changed; of blocks without numbers of a transform."""
        both = replace(self, tallies=[replace(tally) for tally in self.tallies])
        both.add(other)
        return both


def add_numbers(mine: FeatureMoments | None, others: FeatureMoments | None) -> FeatureMoments | None:
    """Of blocks that follow each other, of which some have none; the first may change."""
    if mine is None or others is None:
        return mine or others
    mine.add(others)
    return mine


class Addend(Protocol):
    """What some consecutive blocks showed."""

    checksums: bytes  # of points and labels of each chunk

    def add(self, other: Any) -> None:
        """What the blocks that follow showed."""


P = TypeVar("P", bound=Addend)
Node = tuple[int, int, P]
"""(level, i, what the blocks i 2^level .. (i + 1) 2^level - 1 showed)."""


def append_node(nodes: list[Node[P]], node: Node[P]) -> None:
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
        append_node(nodes, (0, index, part))
    return nodes


class Looker:
    """Looks at blocks for certificates. Picklable."""

    as_stored: ClassVar[bool] = False  # whether it looks at points without their transform

    @abstractmethod
    def look(self, data: Data, certificates: Sequence[Certificate]) -> Callable[[Block], Any]:
        """Takes blocks one after the other, and says what each shows of all certificates."""


class Checker(Looker):
    """How certificates of one kind are proved."""

    @abstractmethod
    def require(self, certificate: Certificate, data: Data) -> None:
        """Raise CheckFailedError when a certificate cannot be one of the data, whatever its blocks hold."""

    def choose_blocks(self, certificates: Sequence[Certificate], data: Data) -> tuple[int, ...] | None:
        """The blocks, ascending, that a first look at certificates needs; None for all."""
        return None

    def more(self, certificates: Sequence[Certificate]) -> int:
        """Reads of all blocks after the first look, as a rule."""
        return 0

    @abstractmethod
    def conclude(self, part: Any, certificates: Sequence[Certificate], data: Data, read: Callable[..., Any]) -> list[Answer]:
        """What all blocks show of each, or why that proves nothing; ``read`` has them looked at again, in another way. Raises
        CheckFailedError when one of them cannot be looked at.
        """


def look_at(
    data: Data,
    first: int,
    stop: int,
    looker: Looker,
    certificates: Sequence[Certificate],
    chosen: Sequence[int] | None,
    stopped: Stop | None = None,
) -> list[Node[Any]]:
    """What blocks first .. stop-1, of all or of the chosen ones, show of certificates."""
    indices = range(first, stop) if chosen is None else chosen[first:stop]
    look, points = looker.look(data, certificates), data.base.points if looker.as_stored else data.points
    return nodes_of((first + place, look(block)) for place, block in blocks(data, indices, stopped, points))


def whole(ranges: Iterable[list[Node[P]]]) -> P:
    """What all blocks showed, from the nodes of ranges of them."""
    nodes: list[Node[P]] = []
    for node in (node for each in ranges for node in each):
        append_node(nodes, node)
    part = nodes[0][2]
    for _, _, rest in nodes[1:]:
        part.add(rest)
    return part
