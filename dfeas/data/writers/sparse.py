"""Writing a sparse dataset: as a dense one, but for X, which is a group in the AnnData layout.

OUT/X              attributes encoding-type csr_matrix, encoding-version, shape
OUT/X/data         (entries,)  chunks of ``CHUNK_ENTRIES``, uncompressed, crc32c
OUT/X/indices      (entries,)  int32, or int64 for 2**31 features or more; ascending in each row
OUT/X/indptr       (n + 1,)    int64, a chunk for each block
OUT/offset         (blocks + 1,) int64: where the entries of each block begin

With shards many of these chunks lie in a file, for data and indices the same number.

Where many processes write, each block first lies in a file OUT/pieces/INDEX: data, indices, and where its rows begin, from 0
on. ``join`` makes the chunks of X of them, again in pieces of work.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar

import crc32c
import numpy as np
from numpy.typing import NDArray

from dfeas.data.storage.files import put
from dfeas.data.storage.layout import SPARSE_BLOCK_BYTES
from dfeas.data.storage.metadata import put_array, put_group, put_whole_array
from dfeas.data.storage.places import Place, remove
from dfeas.data.storage.shards import CRC
from dfeas.data.storage.sparse_readers import CHUNK_ENTRIES
from dfeas.data.writers.dataset import DatasetWriter, Pool
from dfeas.data.writers.shards import ShardWriter
from dfeas.errors import BadInputError, CorruptDataError
from dfeas.linalg.csr import rows_ascend

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ENCODING = {"encoding-type": "csr_matrix", "encoding-version": "0.1.0"}


class Appended:
    """An array that is written chunk by chunk from its first entry on, with running checksums; one chunk is in memory.

    With ``shard`` so many chunks lie in a file.
    """

    def __init__(
        self, folder: Place, dtype: np.dtype[Any], chunk: int, count: int = 0, aside: Path | None = None, shard: int = 0
    ) -> None:
        self.folder, self.dtype, self.chunk, self.shard, self._aside = folder, dtype, chunk, shard, aside
        self._shards = ShardWriter(folder, 1, shard, chunk * dtype.itemsize + CRC, aside) if shard else None
        self.filled = bool(shard)  # whether the only chunk is filled up, too
        self.count = count  # of entries that are written, here or, of whole chunks, by others
        self._parts: list[NDArray[Any]] = []  # of the chunk that has begun
        self._crc = 0

    def append(self, values: NDArray[Any]) -> None:
        values = np.ascontiguousarray(values, self.dtype.newbyteorder("<"))
        while len(values):
            some, values = np.split(values, [self.chunk - self.count % self.chunk])
            self._crc = crc32c.crc32c(some.view(np.uint8), self._crc)
            self._parts.append(some.copy())
            self.count += len(some)
            if self.count % self.chunk == 0:
                self._put(self.count // self.chunk - 1)

    def _put(self, index: int) -> None:
        parts = *(part.data for part in self._parts), self._crc.to_bytes(CRC, "little")
        if self._shards is None:
            put(self.folder / f"c.{index}", *parts, aside=self._aside)
        else:
            self._shards.put(index, *parts)
        self._parts, self._crc = [], 0

    def finish(self) -> int:
        """End the last chunk, which is filled up unless it is the only one; returns entries of a chunk."""
        index, within = divmod(self.count, self.chunk)
        filled = bool(index) or self.filled
        if within and filled:
            self.append(np.zeros(self.chunk - within, self.dtype))
        elif within:
            self._put(0)
        if self._shards is not None:
            self._shards.finish()
        return self.chunk if filled else max(1, within)


class SparseWriter(DatasetWriter):
    """Takes blocks (b, m) as CSR matrices with ascending indices; those that come early wait for the others.

    ``shard`` blocks of labels and norms lie in a file, and as many chunks of entries as have about the bytes of so many blocks.
    """

    chunk_entries: ClassVar[int] = CHUNK_ENTRIES

    def _create_points(self) -> None:
        """Chunks are written as they fill; the metadata of X is made at the end, when lengths are known."""
        self._data, self._indices = self._appended(0)
        self._shard_indptr()
        if isinstance(self.path, Path):
            for name in ("data", "indices", "indptr"):
                (self.path / "X" / name).mkdir(parents=True)
        self._offsets = [0]
        self._short: NDArray[np.int64] = np.empty(0, np.int64)  # where rows begin in a last block that is not full
        self._waiting: dict[int, csr_array] = {}
        self._lock = Lock()

    def _shard_indptr(self) -> None:
        if self._shard:
            size = self.block_rows * START.itemsize + CRC
            self._shards["X/indptr"] = ShardWriter(self.path / "X" / "indptr", 1, self._shard, size)

    def _appended(self, count: int) -> tuple[Appended, Appended]:
        """Data and indices behind the first ``count`` entries."""
        index = np.dtype(np.int32 if self.m < 2**31 else np.int64)
        folder, chunk = self.path / "X", self.chunk_entries
        size = chunk * max(self.dtype.itemsize, index.itemsize)
        shard = max(1, self._shard * SPARSE_BLOCK_BYTES // size) if self._shard else 0
        kinds = (("data", self.dtype), ("indices", index))
        data, indices = (Appended(folder / name, dtype, chunk, count, self._aside, shard) for name, dtype in kinds)
        return data, indices

    def write(self, index: int, points: Any, label: NDArray[Any]) -> None:
        """Survey and store a block. Raises BadInputError for indices that do not ascend in a row, or are out of range."""
        indices = points.indices
        if not rows_ascend(indices, points.indptr) or (len(indices) and (indices.min() < 0 or indices.max() >= self.m)):
            raise BadInputError(f"{self.path}: indices of block {index} do not ascend within 0 .. {self.m - 1}")
        super().write(index, points, label)

    def _store_points(self, index: int, points: Any, sums: NDArray[np.uint32]) -> None:
        """Append all blocks whose turn has come."""
        with self._lock:
            self._waiting[index] = points
            while len(self._offsets) - 1 in self._waiting:
                self._append(len(self._offsets) - 1, self._waiting.pop(len(self._offsets) - 1))

    def _append(self, index: int, points: csr_array) -> None:
        first = self._offsets[-1]
        self._data.append(points.data)
        self._indices.append(points.indices)
        self._offsets.append(first + len(points.indices))
        self._put_starts(index, points.indptr[:-1].astype(np.int64) + first)

    def _put_starts(self, index: int, starts: NDArray[np.int64]) -> None:
        """Where the rows of a block begin in X. Those of a last one that is not full wait for the end."""
        if len(starts) == self.block_rows:
            self._put_indptr(index, starts)
        else:
            self._short = starts

    def _put_indptr(self, index: int, values: NDArray[np.int64]) -> None:
        """A chunk of indptr; the last one has the end, too, and is filled up."""
        filled = np.zeros(self.block_rows, "<i8")
        filled[: len(values)] = values
        crc = crc32c.crc32c(filled.view(np.uint8)).to_bytes(CRC, "little")
        if self._shard:
            self._shards["X/indptr"].put(index, filled.data, crc)
        else:
            put(self.path / "X" / "indptr" / f"c.{index}", filled.data, crc, aside=self._aside)

    def _finish_points(self) -> dict[str, Any]:
        """End the chunks, and make the metadata beside them; what the header says of them."""
        self._indices.finish()
        return self._described(self._data.finish())

    def _described(self, chunk: int) -> dict[str, Any]:
        """Metadata, beside chunks of so many entries."""
        self._put_indptr(self.n // self.block_rows, np.append(self._short, self._offsets[-1]))
        put_group(self.path / "X", {**ENCODING, "shape": [self.n, self.m]})
        offsets = self.offsets
        for appended in self._appended(0):
            put_array(self.path, f"X/{appended.folder.name}", (int(offsets[-1]),), chunk, appended.dtype, 0, appended.shard)
        put_array(self.path, "X/indptr", (self.n + 1,), self.block_rows, np.dtype(np.int64), 0, self._shard)
        put_whole_array(self.path, "offset", offsets)
        return {"entries": int(offsets[-1]), "block_entries": int(np.diff(offsets).max())}

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where the entries of each block that was written begin (blocks + 1,)."""
        return np.asarray(self._offsets, np.int64)


PIECES = "pieces"
JOINED_CHUNKS = 8
"""Chunks of data, and of indices, that are made in one piece of work, where they are not in shards."""
JOINED_BLOCKS = 64
"""Blocks of which it is written in one piece of work where their rows begin, likewise."""

START = np.dtype("<i8")


class SparsePieces(SparseWriter):
    """Takes blocks in any order, in any process; ``join`` comes before ``finish``."""

    def _create_points(self) -> None:
        """Folders for chunks, and for the blocks that they are made of."""
        assert isinstance(self.path, Path), "many processes write to a folder"
        self._chunks = self._appended(0)
        self._shard_indptr()
        self._short = np.empty(0, np.int64)
        for folder in (PIECES, "X/data", "X/indices", "X/indptr"):
            (self.path / folder).mkdir(parents=True)

    def _store_points(self, index: int, points: csr_array, sums: NDArray[np.uint32]) -> None:
        """A file of the block."""
        self.written.stored(index, len(points.indices))
        arrays = zip((points.data, points.indices, points.indptr[:-1]), self._types, strict=True)
        put(self._file(index), *(np.ascontiguousarray(values, dtype).data for values, dtype in arrays), aside=self._aside)

    def join(self, pool: Pool) -> None:
        """Make the chunks of X, when all blocks are there."""
        offsets = np.concatenate([[0], np.cumsum(self.written.entries(self.blocks))])
        self._offsets = offsets.tolist()
        total, step = self._offsets[-1], (self._chunks[0].shard or JOINED_CHUNKS) * self._chunks[0].chunk
        pieces = []
        for first in range(0, max(1, total), step):
            stop = min(total, first + step)
            low, high = int(np.searchsorted(offsets, first, "right")) - 1, int(np.searchsorted(offsets, stop))
            pieces.append(Joined(self.for_worker(), offsets[low : high + 1], low, first, stop, stop == total))
        for _ in pool(Joined.write, pieces):
            pass
        step, full = self._shard or JOINED_BLOCKS, self.n // self.block_rows
        rest = full - full % step  # these go with the end of all, which is in their shard
        for _ in pool(Starts.write, (Starts(self.for_worker(), b, offsets[b : b + step + 1]) for b in range(0, rest, step))):
            pass
        Starts(self, rest, offsets[rest:]).write()
        remove(self.path / PIECES)

    def _finish_points(self) -> dict[str, Any]:
        chunk, total = self._chunks[0].chunk, self._offsets[-1]
        return self._described(chunk if self._shard or total >= chunk else max(1, total))

    @property
    def _types(self) -> tuple[np.dtype[Any], np.dtype[Any], np.dtype[Any]]:
        """Of the three arrays in the file of a block."""
        data, indices = (each.dtype.newbyteorder("<") for each in self._chunks)
        return data, indices, START

    def _file(self, index: int) -> Path:
        assert isinstance(self.path, Path), "many processes write to a folder"
        return self.path / PIECES / f"{index}"

    def _read(self, index: int, dtype: np.dtype[Any], offset: int, count: int) -> NDArray[Any]:
        entries = np.fromfile(self._file(index), dtype, count, offset=offset)
        if len(entries) != count:
            raise CorruptDataError(f"{self._file(index)}: {len(entries)} of {count} entries; run the same ingest again")
        return entries

    def entries(self, index: int, size: int, here: slice) -> tuple[NDArray[Any], NDArray[Any]]:
        """Data and indices of some entries of a block that has ``size``."""
        data, indices, _ = self._types
        count = here.stop - here.start
        behind = size * data.itemsize + here.start * indices.itemsize
        return self._read(index, data, here.start * data.itemsize, count), self._read(index, indices, behind, count)

    def chunks_from(self, count: int) -> tuple[Appended, Appended]:
        """Data and indices behind the first ``count`` entries, which are whole chunks."""
        arrays = self._appended(count)
        for each, begun in zip(arrays, self._chunks, strict=True):
            each.chunk = begun.chunk
        return arrays

    def put_starts(self, index: int, first: int, size: int) -> None:
        """Where the rows of a block of ``size`` entries begin in X, of which ``first`` is its first entry."""
        data, indices, _ = self._types
        rows = min(self.block_rows, self.n - index * self.block_rows)
        starts = self._read(index, START, size * (data.itemsize + indices.itemsize), rows).astype(np.int64)
        self._put_starts(index, starts + first)


@dataclass(frozen=True)
class Joined:
    """Consecutive chunks of the entries of X."""

    target: SparsePieces
    offsets: NDArray[np.int64]  # (b + 1,) where the entries of blocks begin
    low: int  # the first of these blocks
    first: int  # entry
    stop: int
    last: bool

    def write(self) -> None:
        """Make them of the files of the blocks."""
        arrays = self.target.chunks_from(self.first)
        for index, (begin, end) in enumerate(pairwise(self.offsets.tolist()), self.low):
            here = slice(max(self.first - begin, 0), min(self.stop, end) - begin)
            if here.start < here.stop:
                for array, values in zip(arrays, self.target.entries(index, end - begin, here), strict=True):
                    array.append(values)
        if self.last:
            for array in arrays:
                array.finish()


@dataclass(frozen=True)
class Starts:
    """Where the rows of consecutive blocks begin in X."""

    target: SparsePieces
    first: int  # block
    offsets: NDArray[np.int64]  # (b + 1,) where the entries of the blocks begin

    def write(self) -> None:
        """Read it from the files of the blocks."""
        for index, (begin, end) in enumerate(pairwise(self.offsets.tolist()), self.first):
            self.target.put_starts(index, begin, end - begin)
