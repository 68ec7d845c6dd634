"""Pieces of an ingest that other processes do: each reads a part of the source, and writes its blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from numpy.typing import NDArray

from dfeas.store.splitting import Splitting
from dfeas.store.writing import DatasetWriter, Written

T = TypeVar("T")
R = TypeVar("R")


class Spread(Protocol):
    """Does work elsewhere, some at a time; results come in any order."""

    def __call__(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """``work(item)`` of each item; both travel."""


@dataclass(frozen=True)
class Piece:
    """Blocks that are read and written in one go."""

    source: Splitting
    target: DatasetWriter
    blocks: range
    label: NDArray[Any]  # of their points

    def write(self) -> tuple[int, Written]:
        """How many points were written, and what is known of them."""
        rows, first = self.target.block_rows, self.blocks.start * self.target.block_rows
        points = self.source.blocks(first, first + len(self.label), rows)
        for index, some in zip(self.blocks, points, strict=True):
            at = index * rows - first
            self.target.write(index, some, self.label[at : at + rows])
        return len(self.label), self.target.written
