"""Sources of which any run of points can be read apart from the others, also by another process."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dfeas.errors import changed
from dfeas.passes.points import Points
from dfeas.store.array_points import stored_points
from dfeas.store.changed import rounded
from dfeas.store.lines import Lines, TextFile
from dfeas.store.marks import Marks
from dfeas.store.places import place
from dfeas.store.signs import Coded
from dfeas.store.sources import open_rows
from dfeas.store.streams import Batch, blocks

if TYPE_CHECKING:
    from dfeas.store.tables import Parquet


class Splitting(Protocol):
    """All points of a source, or some of them."""

    def part(self, first: int, stop: int) -> Splitting:
        """What it takes to read points first .. stop-1: small enough to travel with every piece of work."""

    def blocks(self, first: int, stop: int, size: int) -> Iterator[tuple[Points, list[Coded]]]:
        """Points first .. stop-1 in blocks of ``size``, the last one shorter, with such labels as come with them."""


@dataclass(frozen=True)
class SplitArray:
    """An array of a file whose rows can be read anywhere."""

    path: str
    name: str  # of the array in the file
    sparse: bool  # how points are stored

    def part(self, first: int, stop: int) -> SplitArray:
        """See Splitting."""
        return self

    def blocks(self, first: int, stop: int, size: int) -> Iterator[tuple[Points, list[Coded]]]:
        """See Splitting."""
        with open_rows(place(self.path), self.name) as rows:
            for begin in range(first, stop, size):
                yield stored_points(rows[begin : min(stop, begin + size)], self.sparse), []


@dataclass(frozen=True)
class SplitTable:
    """A Parquet file or folder, rounded to a type."""

    table: Parquet
    dtype: np.dtype[Any]

    def part(self, first: int, stop: int) -> SplitTable:
        """See Splitting."""
        return self

    def blocks(self, first: int, stop: int, size: int) -> Iterator[tuple[Points, list[Coded]]]:
        """See Splitting."""
        with closing(self.table.batches(first, stop)) as batches:
            yield from blocks(self._rounded(batches, first), size)

    def _rounded(self, batches: Iterator[Batch], first: int) -> Iterator[Batch]:
        for batch in batches:
            yield Batch(rounded(batch.points, self.dtype, first, self.table.where), batch.labels)
            first += batch.points.shape[0]


class Parser(Protocol):
    """Knows what lines of text say."""

    where: str  # for messages

    def parse(self, run: Lines) -> Batch:
        """The points of some lines."""


@dataclass(frozen=True)
class SplitText:
    """A text file of which is known where its points are, rounded to a type."""

    parser: Parser
    path: str
    dtype: np.dtype[Any]
    marks: Marks

    def part(self, first: int, stop: int) -> SplitText:
        """See Splitting."""
        return replace(self, marks=self.marks.part(first, stop))

    def blocks(self, first: int, stop: int, size: int) -> Iterator[tuple[Points, list[Coded]]]:
        """See Splitting. Raises CorruptDataError when there are other points than at the first look."""
        with closing(self._batches(first, stop)) as batches:
            yield from blocks(batches, size)

    def _batches(self, first: int, stop: int) -> Generator[Batch, None, None]:
        marks, file = self.marks, TextFile(place(self.path))
        at = int(marks.point[0])
        for run in file.runs(int(marks.byte[0]), int(marks.byte[-1]), int(marks.line[0])):
            batch = self.parser.parse(run)
            count = batch.points.shape[0]
            here = slice(max(first - at, 0), min(stop - at, count))
            if here.start < here.stop:
                some = batch.points if here == slice(0, count) else batch.points[here]
                yield Batch(rounded(some, self.dtype, at + here.start, self.parser.where), batch.labels[here])
            at += count
        if at != marks.point[-1]:
            raise changed(self.parser.where)
