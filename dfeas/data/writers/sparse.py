"""Writing a sparse dataset: as a dense one, but for X, which is a group in the AnnData layout.

OUT/X              attributes encoding-type csr_matrix, encoding-version, shape
OUT/X/data         (entries,)  chunks of ``CHUNK_ENTRIES``, uncompressed, crc32c
OUT/X/indices      (entries,)  int32, or int64 for 2**31 features or more; ascending in each row
OUT/X/indptr       (n + 1,)    int64, a chunk for each block
OUT/offset         (blocks + 1,) int64: where the entries of each block begin

With shards many of these chunks lie in a file, for data and indices the same number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

import numpy as np
from fastcrc.crc32 import iscsi as crc32c
from numpy.typing import NDArray

from dfeas.data.storage.files import put
from dfeas.data.storage.layout import SPARSE_BLOCK_BYTES
from dfeas.data.storage.places import remove
from dfeas.data.storage.sparse_readers import CHUNK_ENTRIES
from dfeas.data.storage.stored_array import CRC, StoredArray, group_node, put_list
from dfeas.data.writers.chunks import ChunkWriter
from dfeas.data.writers.dataset import DatasetWriter, Pool
from dfeas.errors import BadInputError, CorruptDataError
from dfeas.linalg.csr import csr_array, rows_ascend

DATA, INDICES, STARTS = "X/data", "X/indices", "X/indptr"
ENCODING = {"encoding-type": "csr_matrix", "encoding-version": "0.1.0"}


class EntryWriter:
    """Writes the entries of an array as they come, from one on, with running checksums; one chunk is in memory."""

    def __init__(self, chunks: ChunkWriter, count: int = 0) -> None:
        self.chunks, self.chunk = chunks, chunks.array.rows
        self.count = count  # of entries that are written, here or, of whole chunks, by others
        self._parts: list[NDArray[Any]] = []  # of the chunk that has begun
        self._crc = 0

    def append(self, values: NDArray[Any]) -> None:
        values = np.ascontiguousarray(values, self.chunks.array.dtype)
        while len(values):
            some, values = np.split(values, [self.chunk - self.count % self.chunk])
            self._crc = crc32c(some.view(np.uint8).data, self._crc)
            self._parts.append(some.copy())
            self.count += len(some)
            if self.count % self.chunk == 0:
                self._put(self.count // self.chunk - 1)

    def _put(self, index: int) -> None:
        self.chunks.put(index, *(part.data for part in self._parts), self._crc.to_bytes(CRC, "little"))
        self._parts, self._crc = [], 0

    def finish(self) -> None:
        """End the last chunk, which is filled up, unless it is the only one in a file of its own."""
        index, within = divmod(self.count, self.chunk)
        if within and (index or self.chunks.array.shard):
            self.append(np.zeros(self.chunk - within, self.chunks.array.dtype))
        elif within:
            self._put(0)
        self.chunks.finish()


class SparseWriter(DatasetWriter):
    """Takes blocks (b, m) as CSR matrices with ascending indices; those that come early wait for the others. ``shard`` blocks
    of labels and norms lie in a file, and as many chunks of entries as have about the bytes of so many blocks.
    """

    chunk_entries: ClassVar[int] = CHUNK_ENTRIES
    block_bytes = SPARSE_BLOCK_BYTES

    def _create_points(self) -> None:
        self._create_entries()
        self._entries = [EntryWriter(self._arrays[name]) for name in (DATA, INDICES)]
        self._waiting: dict[int, csr_array] = {}
        self._lock = Lock()

    def _create_entries(self) -> None:
        types, chunk = (self.dtype, np.dtype(np.int32 if self.m < 2**31 else np.int64)), self.chunk_entries
        size = chunk * max(dtype.itemsize for dtype in types)
        shard = max(1, self._shard * SPARSE_BLOCK_BYTES // size) if self._shard else 0
        for name, dtype in zip((DATA, INDICES), types, strict=True):
            self._add(name, name, StoredArray((0,), chunk, dtype, shard))
        self._add(STARTS, STARTS, StoredArray((0,), self.block_rows, np.dtype(np.int64), self._sides))
        self._offsets = [0]
        self._short: NDArray[np.int64] = np.empty(0, np.int64)  # where rows begin in a last block that is not full

    def write(self, index: int, points: Any, label: NDArray[Any]) -> None:
        """Survey and store a block. Raises BadInputError for indices that do not ascend in a row, or are out of range."""
        indices = points.indices
        if not rows_ascend(indices, points.indptr) or (len(indices) and (indices.min() < 0 or indices.max() >= self.m)):
            raise BadInputError(f"{self.path}: indices of block {index} do not ascend within 0 .. {self.m - 1}")
        super().write(index, points, label)

    def _store_points(self, index: int, points: Any, crc: int) -> None:
        with self._lock:
            self._waiting[index] = points
            while (turn := len(self._offsets) - 1) in self._waiting:
                block, first = self._waiting.pop(turn), self._offsets[-1]
                for entries, values in zip(self._entries, (block.data, block.indices), strict=True):
                    entries.append(values)
                self._offsets.append(first + len(block.indices))
                self._put_starts(turn, block.indptr[:-1].astype(np.int64) + first)

    def _put_starts(self, index: int, starts: NDArray[np.int64]) -> None:
        """Where the rows of a block begin in X. Those of a last one that is not full wait for the end."""
        if len(starts) == self.block_rows:
            self._put_indptr(index, starts)
        else:
            self._short = starts

    def _put_indptr(self, index: int, values: NDArray[np.int64]) -> None:
        """A chunk of indptr; the last one has the end, too, and is filled up."""
        filled = np.zeros(self.block_rows, np.int64)
        filled[: len(values)] = values
        self._arrays[STARTS].write(index, filled, crc32c(filled.view(np.uint8).data))

    def _finish_points(self) -> dict[str, Any]:
        """End the chunks, and make the metadata beside them; what the header says of them."""
        for entries in self._entries:
            entries.finish()
        total, offsets = self._offsets[-1], np.asarray(self._offsets, np.int64)
        self._put_indptr(self.n // self.block_rows, np.append(self._short, total))
        self._put_node("X", group_node({**ENCODING, "shape": [self.n, self.m]}))
        for name in (DATA, INDICES):
            array = self._arrays[name].array
            rows = array.rows if array.shard else max(1, min(total, array.rows))
            self._describe(name, total, rows)
        self._describe(STARTS, self.n + 1)
        self._nodes["offset"] = put_list(self.path / "offset", offsets)
        return {"entries": total, "block_entries": int(np.diff(offsets).max())}


PIECES = "pieces"


class SparsePieces(SparseWriter):
    """Takes blocks in any order, in any process; ``join`` comes before ``finish``.

    Where many processes write, each block first lies in a file OUT/pieces/INDEX: data, indices, and where its rows begin, from
    0 on. ``join`` makes the chunks of X of them, again in pieces of work.
    """

    def _create_points(self) -> None:
        self._create_entries()
        self._entries = []  # others write them, when all blocks are there
        self._pieces.mkdir()

    @property
    def _pieces(self) -> Path:
        """A folder with a file of each block: its data, its indices, and where its rows begin, from 0 on."""
        assert isinstance(self.path, Path), "many processes write to a folder"
        return self.path / PIECES

    @property
    def _types(self) -> list[np.dtype[Any]]:
        """Of the three arrays in the file of a block."""
        return [self._arrays[name].array.dtype for name in (DATA, INDICES, STARTS)]

    def _store_points(self, index: int, points: csr_array, crc: int) -> None:
        self.written.note_entries(index, len(points.indices))
        arrays = zip((points.data, points.indices, points.indptr[:-1]), self._types, strict=True)
        parts = (np.ascontiguousarray(values, dtype).data for values, dtype in arrays)
        put(self._pieces / f"{index}", *parts, aside=self._arrays[DATA].aside)

    def join(self, pool: Pool) -> None:
        """Make the chunks of X, when all blocks are there."""
        offsets = np.concatenate([[0], np.cumsum(self.written.entries(self.blocks))])
        array = self._arrays[DATA].array
        # chunks of data, and of indices, that are made in one piece of work, where they are not in shards
        total, step = int(offsets[-1]), (array.shard or 8) * array.rows
        pieces: list[Callable[[], None]] = []
        for first in range(0, max(1, total), step):
            stop = min(total, first + step)
            low, high = int(np.searchsorted(offsets, first, "right")) - 1, int(np.searchsorted(offsets, stop))
            pieces.append(partial(self.for_worker().join_entries, low, offsets[low : high + 1], first, stop))
        # shards that are written in one piece of work of where rows begin, likewise
        step, full = self._shard or 8 * self._sides, self.n // self.block_rows
        rest = full - full % step  # these go with the end of all, which is in their shard
        pieces += [partial(self.for_worker().join_starts, b, offsets[b : b + step + 1]) for b in range(0, rest, step)]
        for _ in pool(operator.call, pieces):
            pass
        self.join_starts(rest, offsets[rest:])
        self._offsets = offsets.tolist()
        remove(self._pieces)

    def _read(self, index: int, place: int, size: int, here: slice) -> NDArray[Any]:
        """Some of the values of one of the arrays in the file of a block of ``size`` entries."""
        file, dtype, count = self._pieces / f"{index}", self._types[place], here.stop - here.start
        before = size * sum(each.itemsize for each in self._types[:place])
        values = np.fromfile(file, dtype, count, offset=before + here.start * dtype.itemsize)
        if len(values) != count:
            raise CorruptDataError(f"{file}: {len(values)} of {count} entries; run the same ingest again")
        return values

    def join_entries(self, low: int, offsets: NDArray[np.int64], first: int, stop: int) -> None:
        """Make the chunks with the entries first .. stop-1 of blocks from ``low`` on, which begin at ``offsets``."""
        for place, name in enumerate((DATA, INDICES)):
            entries = EntryWriter(self._arrays[name], first)
            for index, (begin, end) in enumerate(pairwise(offsets.tolist()), low):
                here = slice(max(first - begin, 0), min(stop, end) - begin)
                if here.start < here.stop:
                    entries.append(self._read(index, place, end - begin, here))
            entries.finish()

    def join_starts(self, low: int, offsets: NDArray[np.int64]) -> None:
        """Write where the rows of blocks, from ``low`` on, begin in X, of which their first entries are ``offsets``."""
        for index, (begin, end) in enumerate(pairwise(offsets.tolist()), low):
            rows = min(self.block_rows, self.n - index * self.block_rows)
            self._put_starts(index, self._read(index, 2, end - begin, slice(0, rows)) + begin)
