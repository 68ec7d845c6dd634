"""A sparse dataset that many processes write: how many entries stand before a block is known when all blocks are there.

Until then each lies in a file OUT/pieces/INDEX: data, indices, and where its rows begin, from 0 on. ``join`` makes the chunks
of X of them, again in pieces of work.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import CorruptDataError
from dfeas.store.places import put, remove
from dfeas.store.sparse_writing import Appended, SparseWriter
from dfeas.store.spread import Spread
from dfeas.store.writing import DatasetWriter, Written

if TYPE_CHECKING:
    from scipy.sparse import csr_array

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
        """See DatasetWriter."""
        found = super().apart()
        assert isinstance(found, SparsePieces), "of the same kind"
        found._entries = {}
        return found

    @property
    def written(self) -> Written:
        """See DatasetWriter."""
        return Written(self._summaries, self._checksums, self._entries)

    def adopt(self, written: Written) -> None:
        """See DatasetWriter."""
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
        """See DatasetWriter."""
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
