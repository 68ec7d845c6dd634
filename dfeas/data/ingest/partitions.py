"""Sources of which any run of points can be read apart from the others, and a sparse dataset that many processes write.

Until then each lies in a file OUT/pieces/INDEX: data, indices, and where its rows begin, from 0 on. ``join`` makes the chunks
of X of them, again in pieces of work.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dfeas.data.ingest.array_files import open_rows
from dfeas.data.ingest.array_points import stored_points
from dfeas.data.ingest.index import Marks, Spread
from dfeas.data.ingest.streams import Batch, blocks, rounded
from dfeas.data.ingest.text import Lines, TextFile
from dfeas.data.labels import Coded
from dfeas.data.storage.places import place, put, remove
from dfeas.data.writers.dataset import DatasetWriter, Written
from dfeas.data.writers.sparse import Appended, SparseWriter
from dfeas.errors import CorruptDataError, changed
from dfeas.linalg.points import Points

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from dfeas.data.ingest.tables import Parquet


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
        return self

    def blocks(self, first: int, stop: int, size: int) -> Iterator[tuple[Points, list[Coded]]]:
        with open_rows(place(self.path), self.name) as rows:
            for begin in range(first, stop, size):
                yield stored_points(rows[begin : min(stop, begin + size)], self.sparse), []


@dataclass(frozen=True)
class SplitTable:
    """A Parquet file or folder, rounded to a type."""

    table: Parquet
    dtype: np.dtype[Any]

    def part(self, first: int, stop: int) -> SplitTable:
        return self

    def blocks(self, first: int, stop: int, size: int) -> Iterator[tuple[Points, list[Coded]]]:
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


PIECES = "pieces"
JOINED_CHUNKS = 8
"""Chunks of data, and of indices, that are made in one piece of work."""

START = np.dtype("<i8")


class SparsePieces(SparseWriter):
    """Takes blocks in any order, in any process; ``join`` comes before ``finish``."""

    def _create_points(self) -> None:
        """Folders for chunks, and for the blocks that they are made of."""
        assert isinstance(self.path, Path), "many processes write to a folder"
        self._chunks = self._appended(0)
        self._short = np.empty(0, np.int64)
        self._entries: dict[int, int] = {}
        for folder in (PIECES, "X/data", "X/indices", "X/indptr"):
            (self.path / folder).mkdir(parents=True)

    def apart(self) -> DatasetWriter:
        found = super().apart()
        assert isinstance(found, SparsePieces), "of the same kind"
        found._entries = {}
        return found

    @property
    def written(self) -> Written:
        return Written(self._summaries, self._checksums, self._entries)

    def adopt(self, written: Written) -> None:
        super().adopt(written)
        self._entries.update(written.entries)

    def _store_points(self, index: int, points: csr_array, crc: int) -> None:
        """A file of the block."""
        self._entries[index] = len(points.indices)
        arrays = zip((points.data, points.indices, points.indptr[:-1]), self._types, strict=True)
        put(self._file(index), *(np.ascontiguousarray(values, dtype).data for values, dtype in arrays), aside=self._aside)

    def join(self, spread: Spread) -> None:
        """Make the chunks of X, when all blocks are there."""
        offsets = np.concatenate([[0], np.cumsum([self._entries[index] for index in range(self.blocks)])])
        self._offsets = offsets.tolist()
        total, step = self._offsets[-1], JOINED_CHUNKS * self._chunks[0].chunk
        pieces = []
        for first in range(0, max(1, total), step):
            stop = min(total, first + step)
            begin, end = (int(np.searchsorted(offsets[:-1], at)) for at in (first, stop))
            own = range(begin, self.blocks if stop == total else end)
            low = max(0, begin - 1)
            pieces.append(Joined(self.apart(), offsets[low : own.stop + 1], low, own, first, stop, stop == total))
        for _ in spread(Joined.write, pieces):
            pass
        if self.n % self.block_rows:
            self._short = self.starts(self.blocks - 1, self._entries[self.blocks - 1]) + self._offsets[-2]
        remove(self.path / PIECES)

    def _finish_points(self) -> dict[str, Any]:
        chunk, total = self._chunks[0].chunk, self._offsets[-1]
        return self._described(chunk if total >= chunk else max(1, total))

    @property
    def _types(self) -> tuple[np.dtype[Any], np.dtype[Any], np.dtype[Any]]:
        """Of the three arrays in the file of a block."""
        data, indices = (each.dtype.newbyteorder("<") for each in self._chunks)
        return data, indices, START

    def _file(self, index: int) -> Path:
        assert isinstance(self.path, Path), "many processes write to a folder"
        return self.path / PIECES / f"{index}"

    def _read(self, index: int, dtype: np.dtype[Any], offset: int, count: int) -> NDArray[Any]:
        found = np.fromfile(self._file(index), dtype, count, offset=offset)
        if len(found) != count:
            raise CorruptDataError(f"{self._file(index)}: {len(found)} of {count} entries; run the same ingest again")
        return found

    def entries(self, index: int, size: int, here: slice) -> tuple[NDArray[Any], NDArray[Any]]:
        """Data and indices of some entries of a block that has ``size``."""
        data, indices, _ = self._types
        count = here.stop - here.start
        behind = size * data.itemsize + here.start * indices.itemsize
        return self._read(index, data, here.start * data.itemsize, count), self._read(index, indices, behind, count)

    def starts(self, index: int, size: int) -> NDArray[np.int64]:
        """Where the rows of a block of ``size`` entries begin in it."""
        data, indices, _ = self._types
        rows = min(self.block_rows, self.n - index * self.block_rows)
        return self._read(index, START, size * (data.itemsize + indices.itemsize), rows).astype(np.int64)

    def chunks_from(self, count: int) -> tuple[Appended, Appended]:
        """Data and indices behind the first ``count`` entries, which are whole chunks."""
        found = self._appended(count)
        for each, begun in zip(found, self._chunks, strict=True):
            each.chunk = begun.chunk
        return found

    def put_starts(self, index: int, first: int, size: int) -> None:
        """Where the rows of a block begin in X, of which ``first`` is its first entry."""
        self._put_starts(index, self.starts(index, size) + first)


@dataclass(frozen=True)
class Joined:
    """Consecutive chunks of X, and the rows of the blocks that begin in them."""

    target: DatasetWriter
    offsets: NDArray[np.int64]  # (b + 1,) where the entries of blocks begin
    low: int  # the first of these blocks
    own: range  # blocks that begin in the chunks
    first: int  # entry
    stop: int
    last: bool

    def write(self) -> None:
        """Make them of the files of the blocks."""
        target = self.target
        assert isinstance(target, SparsePieces), "it has the pieces"
        arrays = target.chunks_from(self.first)
        for index, (begin, end) in enumerate(pairwise(self.offsets.tolist()), self.low):
            here = slice(max(self.first - begin, 0), min(self.stop, end) - begin)
            if here.start < here.stop:
                for array, values in zip(arrays, target.entries(index, end - begin, here), strict=True):
                    array.append(values)
            if index in self.own:
                target.put_starts(index, begin, end - begin)
        if self.last:
            for array in arrays:
                array.finish()
