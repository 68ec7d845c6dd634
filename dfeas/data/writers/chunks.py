"""Writing the chunks of an array, in any order: each is a file, or goes into a shard, which the index and a rename make one.

A shard is never held in memory. On this machine each chunk has its place, and the file another name until its index is on the
disk. To an object store chunks are uploaded in parts, and there is no object until the last one. So what is interrupted leaves
nothing that looks whole.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from fastcrc.crc32 import iscsi as crc32c
from numpy.typing import NDArray

from dfeas.data.storage.chunks import ABSENT, ENTRY
from dfeas.data.storage.files import name_in_errors, put, write_parts
from dfeas.data.storage.places import Place, translate_errors_at
from dfeas.data.storage.readers import PAGE_BYTES, in_pages
from dfeas.data.storage.stored_array import CRC, StoredArray
from dfeas.passes.survey import SHOWN, Summary
from dfeas.settings import parse_bytes

if TYPE_CHECKING:
    from dfeas.data.storage.object_path import ObjectPath

SHARD_BYTES = 10**9
"""Of a shard, where nothing else is asked for."""
SHARDED_ABOVE = 10 * 10**9
"""Bytes of points from which on they are stored in shards, unless something else is asked for."""
CHUNKS = 1 << 16
"""Of a shard, at most: readers hold its index as a whole, and a file has 16 bytes also for a chunk that never comes."""
PIECE_BYTES = 64 << 20
"""Of points that a process writes in one piece of work."""
SIDE_CHUNKS = 16
"""Of a shard of labels, of norms, or of where sparse rows begin, at most, where points are in none: one alone is small."""
PART_BYTES = 8 << 20


def shard_bytes(asked: str | int | None) -> int | None:
    """Bytes of a shard from what was typed; None where nothing was. Raises UsageError for what is no size."""
    return None if asked is None else parse_bytes(asked, "shard")


def chunks_of_shard(asked: int | None, points: int, block: int) -> int:
    """Chunks of a shard of so many bytes, of ``points`` and ``block`` bytes of all points and of a block; 0: no shards."""
    size = (SHARD_BYTES if points > SHARDED_ABOVE else 0) if asked is None else asked
    return max(1, min(CHUNKS, size // (block + CRC))) if size else 0


def chunks_of_piece(block: int) -> int:
    """Chunks that are written in one piece of work, of ``block`` bytes each."""
    return max(1, PIECE_BYTES // block)


def chunks_of_sides(block: int) -> int:
    """Chunks of a shard of labels and norms of points in blocks of so many bytes: a piece has whole ones."""
    return min(SIDE_CHUNKS, chunks_of_piece(block))


class ChunkWriter:
    """Takes the chunks of one array, each once, in any order and from several threads. Travels while no shard is begun. Files
    are begun in the folder ``aside``, if any: they are in their places whole then.
    """

    def __init__(self, folder: Place, array: StoredArray, aside: Path | None = None) -> None:
        self.folder, self.array, self.aside = folder, array, aside
        self._begun: dict[int, _BegunFile | _BegunObject] = {}
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        assert not self._begun, "its shards are whole"
        return ChunkWriter, (self.folder, self.array, self.aside)

    def write(self, index: int, values: NDArray[Any], crc: int) -> None:
        """Write a chunk: its entries, whose checksum is known, and fill values behind a short one."""
        parts: list[Any] = [np.ascontiguousarray(values).data]
        if len(values) < self.array.rows:
            shape = self.array.rows - len(values), *values.shape[1:]
            rest = np.full(shape, self.array.fill, self.array.dtype)
            parts.append(rest.data)
            crc = crc32c(rest.reshape(-1).view(np.uint8).data, crc)
        self.put(index, *parts, crc.to_bytes(CRC, "little"))

    def put(self, index: int, *parts: Any) -> None:
        if not self.array.shard:
            put(self.folder / self.array.file(index), *parts, aside=self.aside)
            return
        shard, place = divmod(index, self.array.shard)
        with self._lock:
            begun = self._begun.get(shard)
            if begun is None:
                begun = self._begun[shard] = self._begin(shard)
        if begun.put(place, parts):
            with self._lock:
                del self._begun[shard]
            begun.finish()

    def _begin(self, shard: int) -> _BegunFile | _BegunObject:
        where = self.folder / self.array.file(shard)
        if not isinstance(where, Path):
            return _BegunObject(where, self.array.shard)
        return _BegunFile(where, self.aside or where.parent, self.array.shard, self.array.chunk_bytes)

    def finish(self) -> None:
        """End the shards that have begun; no chunk is written meanwhile."""
        for shard in list(self._begun):
            self._begun.pop(shard).finish()


def seal_index(table: NDArray[np.uint64]) -> bytes:
    """An index (chunks, 2), and its crc32c."""
    body = np.ascontiguousarray(table, ENTRY).tobytes()
    return body + int(crc32c(body)).to_bytes(CRC, "little")


class _BegunFile:
    """A shard that is being written: chunk i lies behind i others; larger ones begin with a page."""

    def __init__(self, where: Path, folder: Path, chunks: int, size: int) -> None:
        self._where, self._size = where, size
        # a chunk of 64 pages begins with a page of its file: so it can be read past the page cache, into place
        self._apart = in_pages(size) if size >= 64 * PAGE_BYTES else size
        self._part = folder / f".{uuid.uuid4().hex}.part"
        self._written = np.zeros(chunks, np.bool_)
        self._lock = Lock()
        with name_in_errors(where):
            self._part.touch(exist_ok=False)

    def put(self, place: int, parts: Sequence[Any]) -> bool:
        """Write a chunk; whether none is missing then."""
        with name_in_errors(self._where), self._part.open("r+b") as file:
            file.seek(place * self._apart)
            write_parts(file, parts)
        with self._lock:
            self._written[place] = True
            return bool(self._written.all())

    def finish(self) -> None:
        """Write the index, and make it a shard. Chunks that were never written are absent."""
        places = np.arange(len(self._written), dtype=np.uint64) * np.uint64(self._apart)
        table = np.stack([places, np.full(len(places), self._size, np.uint64)], axis=1)
        table[~self._written] = ABSENT
        with name_in_errors(self._where), self._part.open("r+b") as file:
            file.seek(0, os.SEEK_END)
            file.write(seal_index(table))
            file.flush()
            os.fsync(file.fileno())
        self._part.replace(self._where)


class _BegunObject:
    """The same: chunks lie one behind the other, as they came."""

    def __init__(self, where: ObjectPath, chunks: int) -> None:
        self._where = where
        with translate_errors_at(where):
            self._file = where.writer(PART_BYTES, 4)  # parts of an object that are uploaded at the same time
        self._table = np.full((chunks, 2), ABSENT, np.uint64)
        self._end = 0
        self._lock = Lock()

    def put(self, place: int, parts: Sequence[Any]) -> bool:
        with self._lock:
            first = self._end
            with translate_errors_at(self._where):
                for part in parts:
                    self._end += self._file.write(memoryview(part).cast("B"))
            self._table[place] = first, self._end - first
            return bool((self._table[:, 0] != ABSENT).all())

    def finish(self) -> None:
        with translate_errors_at(self._where):
            self._file.write(seal_index(self._table))
            self._file.close()


_ROW = np.dtype(
    [
        ("written", "?"),
        ("positive", "<i8"),
        ("zero", "<i8"),
        ("norm_min", "<f8"),
        ("norm_max", "<f8"),
        ("checksums", "<u4", (3,)),
        ("entries", "<i8"),
    ]
)


class Ledger:
    """Of blocks by their numbers, which come in any order, and from several threads. Travels with the rows that it has."""

    def __init__(self) -> None:
        self._table = np.zeros(0, _ROW)
        self._first_zero: dict[int, tuple[int, ...]] = {}  # of blocks that have zero points
        self._lock = Lock()

    def __getstate__(self) -> tuple[Any, ...]:
        some = np.flatnonzero(self._table["written"])
        return some, self._table[some], self._first_zero

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        some, rows, self._first_zero = state
        self._table, self._lock = np.zeros(int(some.max(initial=-1)) + 1, _ROW), Lock()
        self._table[some] = rows

    def _reach(self, count: int) -> None:
        if count > len(self._table):
            table = np.zeros(max(count, 2 * len(self._table)), _ROW)
            table[: len(self._table)] = self._table
            self._table = table

    def note(self, index: int, summary: Summary, checksums: tuple[int, int, int]) -> None:
        """A block was written: a survey of it, and the checksums of points, labels and norms."""
        with self._lock:
            self._reach(index + 1)
            row = self._table[index]
            row["written"], row["checksums"] = True, checksums
            row["norm_min"], row["norm_max"] = summary.norm_min, summary.norm_max
            row["positive"], row["zero"] = summary.positive, summary.zero
            if summary.zero:
                self._first_zero[index] = summary.first_zero

    def relabel(self, index: int, positive: int, checksum: int) -> None:
        """Of a block that was written the labels are others."""
        self._table["positive"][index], self._table["checksums"][index, 1] = positive, checksum

    def note_entries(self, index: int, entries: int) -> None:
        with self._lock:
            self._reach(index + 1)
            self._table["entries"][index] = entries

    def add(self, other: Ledger) -> None:
        some = np.flatnonzero(other._table["written"])
        self._reach(len(other._table))
        self._table[some] = other._table[some]
        self._first_zero.update(other._first_zero)

    def count_missing(self, blocks: int) -> int:
        return blocks - int(self._table["written"][:blocks].sum())

    def checksums(self, blocks: int) -> NDArray[np.uint32]:
        """crc32c (blocks, 3) of points, labels and norms of the first blocks."""
        return np.ascontiguousarray(self._table["checksums"][:blocks])

    def entries(self, blocks: int) -> NDArray[np.int64]:
        return np.ascontiguousarray(self._table["entries"][:blocks])

    def facts(self, blocks: int) -> dict[str, Any]:
        """Of the points of the first blocks what a header says: how many are positive, which are zero, the range of norms."""
        table, first_zero = self._table[:blocks], sorted(point for some in self._first_zero.values() for point in some)
        return {
            "positive": int(table["positive"].sum()),
            "zero": int(table["zero"].sum()),
            "first_zero": tuple(first_zero[:SHOWN]),
            "norm_min": float(table["norm_min"].min(initial=np.inf)),
            "norm_max": float(table["norm_max"].max(initial=0.0)),
        }
