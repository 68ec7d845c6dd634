"""Merging partials in a tree whose shape depends on the number of blocks only.

A node (level, i) covers blocks i 2^level .. (i+1) 2^level - 1. Any cut of the blocks into ranges leaves each range a few
maximal nodes; completing them gives the same merges, hence the same bits, whoever scanned what.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dfeas.passes import AnyPass, OnPairs, VectorPass


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
