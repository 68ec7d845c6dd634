"""Readers of what lies in an object store: a request for each chunk, read ahead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import cpu_count
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import obstore
from numpy.typing import NDArray

from dfeas.data.storage.readers import AnyArray, Buffers, Reader, SliceReader
from dfeas.data.storage.remote.bucket import said
from dfeas.data.storage.remote.path import ObjectPath, Tags, tag_of
from dfeas.data.storage.remote.prefetch import Ahead, KeptBlocks
from dfeas.data.storage.sparse_readers import pieces
from dfeas.errors import CorruptDataError

if TYPE_CHECKING:
    from obstore import GetOptions


@dataclass(frozen=True)
class ObjectReader:
    """Chunks as ``DirectReader`` reads them, from an object store, with a cache on this machine or without one."""

    name: str
    tags: Tags  # of the folder of the chunks
    key: Callable[[int], str]  # block index -> name of its chunk in the folder
    n: int
    block_rows: int
    row: tuple[int, ...]  # shape of a row
    dtype: np.dtype[Any]
    trailer: int  # bytes of checksum after the entries
    kept: KeptBlocks | None = None

    overlaps = False
    distant = True

    def read(self, index: int, buffers: Buffers) -> AnyArray:
        """Read a chunk; raises CorruptDataError when it is missing or has another size."""
        whole = self.block_rows * self.dtype.itemsize * int(np.prod(self.row, dtype=np.int64))
        rows = min(self.block_rows, self.n - index * self.block_rows)
        content: AnyArray = self._content(index, buffers)
        if content.size != whole + self.trailer:
            raise CorruptDataError(
                f"{self._where(index)}: chunk {index} of {self.name} has {content.size} bytes, expected "
                f"{whole + self.trailer}; restore or ingest again"
            )
        found = content[: rows * (whole // self.block_rows)].view(self.dtype).reshape(rows, *self.row)
        return found if found.flags.aligned else found.copy()

    def _content(self, index: int, buffers: Buffers) -> NDArray[np.uint8]:
        """All bytes of a chunk, from this machine where they are kept."""
        name = self.key(index)
        where = self._where(index)
        if self.kept is not None:
            held = self.kept.read(where, self.tags(name), lambda size: buffers.take(f"{self.name} kept", size))
            if held is not None:
                return held
        try:
            with said(where):
                found = obstore.get(self.tags.folder.bucket.store, f"{self.tags.folder.key}/{name}")
                content = np.frombuffer(memoryview(found.bytes()), np.uint8)
        except FileNotFoundError:
            raise CorruptDataError(f"{where}: chunk {index} of {self.name} is missing; restore or ingest again") from None
        tag = tag_of(found.meta)
        self.tags.correct(name, tag)
        if self.kept is not None:
            self.kept.write(where, tag, content)
        return content

    def _where(self, index: int) -> str:
        return f"{self.tags.folder}/{self.key(index)}"

    def advise(self, index: int) -> None:
        """Nothing to do: see Ahead."""

    def stamp(self, index: int) -> int:
        """The ETag, as a number."""
        return self.tags(self.key(index))


@dataclass(frozen=True)
class EntryObjects:
    """One array of entries in plain chunks, as ``EntryFiles`` reads them from files."""

    name: str
    tags: Tags  # of the folder of the chunks
    key: Callable[[int], str]  # chunk -> name in the folder
    dtype: np.dtype[Any]
    chunk: int
    trailer: int

    def read(self, first: int, stop: int, buffers: Buffers) -> NDArray[Any]:
        """Entries first .. stop-1. Raises CorruptDataError when a chunk is missing or has another size."""
        size = self.dtype.itemsize
        buffer = buffers.take(self.name, (stop - first) * size)
        done = 0
        for index, within, count in pieces(self.chunk, first, stop):
            content = self._content(self.key(index), within * size, (within + count) * size)
            buffer[done : done + content.size] = content
            done += content.size
        return buffer.view(self.dtype)

    def _content(self, name: str, first: int, stop: int) -> NDArray[np.uint8]:
        folder = self.tags.folder
        where, expected = f"{folder}/{name}", self.chunk * self.dtype.itemsize + self.trailer
        asked: GetOptions = {"range": (first, stop)}
        try:
            with said(where):
                found = obstore.get(folder.bucket.store, f"{folder.key}/{name}", options=asked)
                size = found.meta["size"]
                content = np.frombuffer(memoryview(found.bytes()), np.uint8) if size == expected else None
        except FileNotFoundError:
            raise CorruptDataError(f"{where}: a chunk of {self.name} is missing; restore or ingest again") from None
        if content is None or content.size != stop - first:
            raise CorruptDataError(
                f"{where}: a chunk of {self.name} has {size} bytes, expected {expected}; restore or ingest again"
            )
        self.tags.correct(name, tag_of(found.meta))
        return content

    def advise(self, first: int, stop: int) -> None:
        """Nothing to do: see Ahead."""

    def stamps(self, first: int, stop: int) -> tuple[int, ...]:
        """The ETags of the chunks with these entries, as numbers."""
        return tuple(self.tags(self.key(index)) for index, _, _ in pieces(self.chunk, first, stop))


T = TypeVar("T")

HELD = 16 * (4 + (cpu_count() or 1))
"""Blocks that are held at most: twice what all threads of a process ask for."""


def object_reader(
    name: str,
    folder: ObjectPath,
    key: Callable[[int], str],
    n: int,
    block_rows: int,
    row: tuple[int, ...],
    dtype: np.dtype[Any],
    trailer: int,
    cache_dir: str,
) -> Ahead[AnyArray]:
    """Of chunks that are plain objects."""
    kept = KeptBlocks.at(cache_dir) if cache_dir else None
    return Ahead(ObjectReader(name, Tags(folder), key, n, block_rows, row, dtype, trailer, kept), HELD)


def object_entries(
    name: str, folder: ObjectPath, key: Callable[[int], str], dtype: np.dtype[Any], chunk: int, trailer: int
) -> EntryObjects:
    """Of one array of a sparse matrix."""
    return EntryObjects(name, Tags(folder), key, dtype, chunk, trailer)


def ahead(reader: Reader[T]) -> Ahead[T]:
    """The same blocks, fetched before they are wanted."""
    return Ahead(reader, HELD)


def distant_reader(reader: SliceReader, folder: ObjectPath, names: Callable[[int], Sequence[str]]) -> Ahead[AnyArray]:
    """Of an array that zarr reads."""
    return Ahead(replace(reader, array=_Said(reader.array, folder), files=names, look=Tags(folder)), HELD)


class _Said:
    """An array whose errors are those of dfeas."""

    def __init__(self, array: Any, where: ObjectPath) -> None:
        self._array, self._where = array, where

    def __getitem__(self, rows: slice) -> Any:
        with said(self._where):
            return self._array[rows]
