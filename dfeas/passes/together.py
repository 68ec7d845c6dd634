"""Together: several passes that ride on one read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dfeas.passes.block import Block
from dfeas.passes.protocol import AnyPass


@dataclass(frozen=True, slots=True)
class Together:
    """Answers each of its passes from the same read; the answer is a tuple in their order."""

    passes: tuple[AnyPass, ...]

    def scan(self, block: Block) -> tuple[Any, ...]:
        """Scan the block once for each pass, while it is in cache."""
        return tuple(p.scan(block) for p in self.passes)

    def merge(self, first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
        """Merge pass by pass."""
        return tuple(p.merge(a, b) for p, a, b in zip(self.passes, first, second, strict=True))

    def finish(self, partial: tuple[Any, ...]) -> tuple[Any, ...]:
        """Finish pass by pass."""
        return tuple(p.finish(a) for p, a in zip(self.passes, partial, strict=True))
