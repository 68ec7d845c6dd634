"""What a driver knows of an engine, and the tree in which all engines merge partials.

Its shape depends on the number of blocks only.

A node (level, i) covers blocks i 2^level .. (i+1) 2^level - 1. Any cut of the blocks into ranges leaves each range a few
maximal nodes; completing them gives the same merges, hence the same bits, whoever scanned what.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dfeas.data.storage.readers import Cost
from dfeas.passes.protocol import AnyPass, OnPairs, Question, VectorPass

R = TypeVar("R")


class Engine(Protocol):
    """Executes passes over one dataset; the answers have the same bits whatever the engine and its size."""

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n) of A: dimension of a column and number of points."""

    @property
    def cost(self) -> Cost:
        """What the most recent pass took."""

    @property
    def parallel(self) -> int:
        """Threads that scan at the same time."""

    def run(self, question: Question) -> Any:
        """Exactly one read of the data, or what the question asks: some blocks of it, in order, or vectors beside it."""

    def map(self, function: Callable[..., R], *args: Any, count: int | None = None) -> list[R]:
        """``function(dataset, first, stop, *args)`` over ranges that cover all blocks, or ``count`` of them, in order."""

    def keep_pairs(self, budget: int, scratch: Path | None = None) -> None:
        """Let each process that reads keep so many bytes of what questions to pairs can use again, and more in a ``scratch``
        folder of its machine.
        """

    def close(self) -> None:
        """Release workers and buffers."""


@dataclass
class Tree:
    """Partials of consecutive blocks, merged as far as the fixed tree allows."""

    pass_: AnyPass | VectorPass[Any, Any] | OnPairs
    nodes: list[tuple[int, int, Any]] = field(default_factory=list)  # (level, index, partial), in order of blocks

    def push(self, level: int, index: int, partial: Any) -> None:
        """Append the node that follows the last one."""
        while self.nodes and index % 2 == 1 and self.nodes[-1][:2] == (level, index - 1):
            partial = self.pass_.merge(self.nodes.pop()[2], partial)
            level, index = level + 1, index // 2
        self.nodes.append((level, index, partial))

    def finish(self) -> Any:
        """The answer from the nodes of all blocks; the ragged right end is folded from the right."""
        partials = [node[2] for node in self.nodes]
        last = partials.pop()
        while partials:
            last = self.pass_.merge(partials.pop(), last)
        return self.pass_.finish(last)
