"""Where the points of a text file are: found by a read of its own, in spans that other processes can look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dfeas.data.ingest.text import TextFile
from dfeas.data.labels import Codes, coded
from dfeas.data.storage.places import Place, absolute, place
from dfeas.data.writers.dataset import DatasetWriter, Written
from dfeas.errors import changed

if TYPE_CHECKING:
    from dfeas.data.ingest.partitions import Splitting

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


SPAN_BYTES = 64 << 20
"""Of text that is looked at in one piece of work."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tally:
    """What some lines hold."""

    points: int = 0
    entries: int = 0  # of sparse text
    last: int = -1  # greatest of the last indices of its lines
    bytes: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.points + other.points,
            self.entries + other.entries,
            max(self.last, other.last),
            self.bytes + other.bytes,
        )


@dataclass(frozen=True)
class Marks:
    """Where runs of whole lines begin, and last of all where they end."""

    byte: Numbers  # (r + 1,)
    line: Numbers  # (r + 1,) numbers from 1
    point: Numbers  # (r + 1,) numbers from 0

    def part(self, first: int, stop: int) -> Marks:
        """Those of the runs with the points first .. stop-1."""
        low = int(np.searchsorted(self.point, first, "right")) - 1
        here = slice(low, int(np.searchsorted(self.point, stop, "left")) + 1)
        return Marks(self.byte[here], self.line[here], self.point[here])


@dataclass(frozen=True)
class Looked:
    """Runs of whole lines that follow each other, and what is in them."""

    byte: Numbers  # (r + 1,)
    lines: Numbers  # (r,) in each run
    points: Numbers  # (r,)
    tally: Tally


@dataclass(frozen=True)
class Span:
    """Lines that begin in the bytes begin .. stop-1 of a text file that is not compressed; small enough to travel."""

    path: str
    begin: int
    stop: int
    exact: bool  # whether a line begins at ``begin``
    tally: Callable[[bytes], Tally]

    def look(self) -> Looked:
        """Read them. Raises BadInputError for a line that does not end."""
        file = TextFile(place(self.path))
        begin = self.begin if self.exact else file.line_from(self.begin)
        stop = file.line_from(self.stop)
        edges, lines, points, total = [begin], [], [], Tally()
        for run in file.runs(begin, stop) if begin < stop else ():
            found = self.tally(run.text)
            edges.append(run.stop)
            lines.append(run.text.count(b"\n"))
            points.append(found.points)
            total += found
        return Looked(np.array(edges, np.int64), np.array(lines, np.int64), np.array(points, np.int64), total)


def marks_of(path: Place, body: tuple[int, int], tally: Callable[[bytes], Tally], spread: Spread) -> tuple[Marks, Tally]:
    """Of all lines from ``body`` on, a byte and the number of the line that begins there.

    Raises CorruptDataError when the file changes meanwhile.
    """
    begin, line = body
    size = path.stat().st_size
    firsts = [begin, *range((begin // SPAN_BYTES + 1) * SPAN_BYTES, size, SPAN_BYTES)]
    spans = [Span(absolute(path), *each, each[0] == begin, tally) for each in pairwise([*firsts, size])]
    looked = sorted(spread(Span.look, spans), key=lambda each: (each.byte[0], each.byte[-1]))
    edges = [(begin, begin), *((each.byte[0], each.byte[-1]) for each in looked), (size, size)]
    if any(before[1] != after[0] for before, after in pairwise(edges)):
        raise changed(str(path))
    lines, points = (np.concatenate([[0], *(getattr(each, name) for each in looked)]) for name in ("lines", "points"))
    byte = np.concatenate([[begin], *(each.byte[1:] for each in looked)])
    return Marks(byte, line + np.cumsum(lines), np.cumsum(points)), sum((each.tally for each in looked), Tally())
