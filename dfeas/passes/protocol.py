"""What an engine knows of a pass: one read of all blocks as a reduction over a commutative monoid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from dfeas.passes.block import Block

P = TypeVar("P")
A = TypeVar("A", covariant=True)


class Pass(Protocol[P, A]):
    """A question to all blocks. Picklable, small; ``merge`` is associative and commutative up to rounding."""

    def scan(self, block: Block) -> P:
        """Answer for one block. Must not keep views of the block."""

    def merge(self, first: P, second: P) -> P:
        """Answer for the union of two disjoint sets of blocks."""

    def finish(self, partial: P) -> A:
        """Turn the partial of all blocks into the answer."""


AnyPass = Pass[Any, Any]


@dataclass(frozen=True, slots=True)
class Partial:
    """A pass that reads some blocks only. It counts as its share of a read."""

    pass_: AnyPass
    blocks: tuple[int, ...]  # ascending, at least one


Question = AnyPass | Partial
"""What an engine executes."""
