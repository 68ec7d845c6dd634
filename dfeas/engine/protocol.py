"""What a driver knows of an engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dfeas.data.storage.readers import Cost
from dfeas.passes.protocol import Question

R = TypeVar("R")

Observer = Callable[[int, int, int], None]
"""Is told how many blocks of a read are done, of how many, and the bytes of all of them: when it begins, and now and then."""


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

    def watch(self, observer: Observer) -> None:
        """Tell an observer of reads while they go on."""

    def run(self, question: Question) -> Any:
        """Exactly one read of the data, or what the question asks: some blocks of it, in order, or vectors beside it."""

    def map(self, function: Callable[..., R], *args: Any, count: int | None = None) -> list[R]:
        """``function(dataset, first, stop, *args)`` over ranges that cover all blocks, or ``count`` of them, in order."""

    def keep_pairs(self, budget: int, scratch: Path | None = None) -> None:
        """Let each process that reads keep so many bytes of what questions to pairs can use again, and more in a ``scratch``
        folder of its machine.
        """

    def close(self) -> None:
        """Release workers, buffers and blocks that were kept."""
