"""Pieces of an ingest that other processes do: each reads a part of the source, and writes its blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from numpy.typing import NDArray

from dfeas.store.signs import Codes, coded
from dfeas.store.writing import DatasetWriter, Written

if TYPE_CHECKING:
    from dfeas.store.splitting import Splitting

T = TypeVar("T")
R = TypeVar("R")


class Spread(Protocol):
    """Does work elsewhere, some at a time; results come in any order."""

    def __call__(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """``work(item)`` of each item; both travel."""


@dataclass(frozen=True)
class Done:
    """What became of a piece."""

    block: int  # its first one
    points: int
    written: Written
    labels: list[Any]  # the label of each code that it wrote, where labels came with the points


@dataclass(frozen=True)
class Piece:
    """Blocks that are read and written in one go."""

    source: Splitting
    target: DatasetWriter
    blocks: range
    label: NDArray[Any] | None  # of their points; None where labels come with them
    where: str  # the source, for messages

    def write(self) -> Done:
        """Read and write them; labels that come with the points become codes of this piece."""
        rows, begin = self.target.block_rows, self.blocks.start * self.target.block_rows
        stop = min(self.target.n, self.blocks.stop * rows)
        codes = Codes(None, f"labels of {self.where}")
        for index, (points, labels) in zip(self.blocks, self.source.blocks(begin, stop, rows), strict=True):
            first = index * rows
            known = self.label[first - begin : first - begin + rows] if self.label is not None else coded(codes, labels, first)
            self.target.write(index, points, known)
        return Done(self.blocks.start, stop - begin, self.target.written, codes.values)
