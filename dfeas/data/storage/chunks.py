"""Arrays of a dataset as they are stored: in chunks of whole rows, as memory has them, each with a crc32c behind it.

A chunk is a file or an object, or many are in one, a shard of zarr, whose index says where they lie: an offset and a length,
uint64, for each chunk, at its end and with a crc32c. It is read once, and again when the shard changes. A chunk that is absent
has 2**64 - 1 twice; zarr reads it as fill values, here it is an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from fastcrc.crc32 import iscsi as crc32c
from msgspec import Struct, field
from numpy.typing import NDArray

from dfeas.data.storage.patience import once_more
from dfeas.data.storage.places import Place
from dfeas.data.storage.readers import AnyArray, Buffers, Files, Folder, Looks, RowReader, Take, chunks_of, in_pages
from dfeas.data.storage.stored_array import CRC, StoredArray
from dfeas.errors import CorruptDataError
from dfeas.machine import available_bytes

if TYPE_CHECKING:
    from dfeas.data.storage.object_readers import KeptBlocks

WRITE_EMPTY = "zarr.create_array('X', data=X, config={'write_empty_chunks': True})"
"""What writes chunks that zarr leaves out, where all of their entries are the fill value."""
ABSENT = np.uint64(2**64 - 1)
ENTRY = np.dtype("<u8")


class IndexForm(Struct, frozen=True):
    """How the index of a shard is written."""

    chunks: int  # of the shard
    at_end: bool = True
    sealed: bool = True  # with a crc32c

    @property
    def bytes(self) -> int:
        return 2 * ENTRY.itemsize * self.chunks + CRC * self.sealed


class Index(Struct, frozen=True):
    """Where the chunks of a shard lie."""

    offsets: NDArray[np.uint64] | range  # (chunks,) a range where they lie at equal distances, which takes no memory
    mark: int  # of the shard when it was read


def read_index(
    folder: Folder, name: str, form: IndexForm, wanted: NDArray[np.bool_], what: str, size: int | None = None
) -> Index:
    """The index of a shard of which the chunks ``wanted`` (chunks,) have entries of the array; ``size`` is that of each of
    them, where it is known. Raises CorruptDataError when it is damaged, or when a wanted chunk is absent, lies outside, or has
    another size.
    """
    first = -form.bytes if form.at_end else 0
    got = folder.get(name, first, form.bytes, what, lambda size: np.empty(size, np.uint8))
    content, whole = got.content, got.size
    where, again = folder.where(name), "restore or ingest again"
    assert whole is not None, "it was not kept"
    if content.size < form.bytes:
        raise CorruptDataError(f"{where}: the shard has {whole} bytes, its index alone {form.bytes}; {again}")
    body = content[: form.bytes - CRC * form.sealed]
    if form.sealed:
        expected, found = int.from_bytes(content[body.size :].tobytes(), "little"), crc32c(body.data)
        if found != expected:
            text = f"the index of the shard is damaged (crc32c {found:08x}, expected {expected:08x})"
            raise CorruptDataError(f"{where}: {text}; {again}")
    offsets, lengths = np.frombuffer(body.tobytes(), ENTRY).reshape(-1, 2).astype(np.uint64).T
    low, high = (0, whole - form.bytes) if form.at_end else (form.bytes, whole)
    absent = wanted & (offsets == ABSENT) & (lengths == ABSENT)
    if absent.any():
        raise CorruptDataError(
            f"{where}: {absent.sum()} of the {wanted.sum()} chunks of the shard are absent, the first is number "
            f"{absent.argmax()}; {again} (or, if they are meant to be empty, write them: {WRITE_EMPTY})"
        )
    outside = (offsets < low) | (lengths > high) | (offsets > high - np.minimum(lengths, np.uint64(high)))
    for wrong, why in (
        (outside, f"outside of its {whole} bytes"),
        (lengths == 0 if size is None else lengths != size, f"of another size than {size or 'a chunk has'}"),
    ):
        if (wrong & wanted).any():
            at = int((wrong & wanted).argmax())
            text = f"chunk number {at} of the shard at {offsets[at]}, {lengths[at]} bytes: {why}"
            raise CorruptDataError(f"{where}: the index places {text}; {again}")
    steps = np.diff(offsets[: int(wanted.sum())].astype(np.int64))
    if wanted[: len(steps) + 1].all() and len(steps) and steps[0] > 0 and (steps == steps[0]).all():
        first, step = int(offsets[0]), int(steps[0])
        return Index(range(first, first + step * (len(steps) + 1), step), got.mark)
    return Index(offsets, got.mark)


class ChunkReader(Struct, frozen=True, eq=False):
    """Blocks of an array, each of one chunk or of some that follow each other."""

    name: str
    folder: Folder
    array: StoredArray
    together: int = 1  # chunks of a block
    _known: dict[int, Index] = field(default_factory=dict)  # by shard
    _turns: dict[int, Lock] = field(default_factory=dict)  # of who reads the index of a shard

    @property
    def overlaps(self) -> bool:
        return self.folder.overlaps

    @property
    def distant(self) -> bool:
        return self.folder.distant

    def _index(self, shard: int, stale: Index | None = None) -> Index:
        """Where the chunks of a shard lie, read by one thread where it is not known, or known to be ``stale``."""
        known = self._known.get(shard)
        if known is not None and known is not stale:
            return known
        with self._turns.setdefault(shard, Lock()):
            known = self._known.get(shard)
            if known is None or known is stale:
                per, what = self.array.shard, f"the shard with chunks of {self.name}"
                wanted = np.arange(per) < self.array.chunks - shard * per
                args = self.folder, self.array.file(shard), IndexForm(per), wanted, what, self.array.chunk_bytes
                known = self._known[shard] = once_more(lambda: read_index(*args), self.distant)
        return known

    def _indices(self, shard: int) -> Iterator[Index]:
        """Where the chunks of a shard lie, and where they do now, each time that it has changed meanwhile."""
        known = None
        for _ in range(5):  # so often a chunk is read whose shard changes meanwhile
            yield (known := self._index(shard, known))

    def _chunks(self, index: int) -> range:
        return chunks_of(index, self.together, self.array.shape[0], self.array.rows)

    def read(self, index: int, buffers: Buffers) -> AnyArray:
        """Read a block into the buffer. Raises CorruptDataError when a chunk or its shard is missing or damaged."""
        chunks, size = self._chunks(index), self.array.rows * self.array.row_bytes
        rows = min(self.array.shape[0], chunks.stop * self.array.rows) - chunks.start * self.array.rows
        if len(chunks) == 1:
            content = self._part(chunks.start, 0, rows * self.array.row_bytes, lambda size: buffers.take(self.name, size))
            entries = content.view(self.array.dtype).reshape(rows, *self.array.shape[1:])
            return entries if entries.flags.aligned else entries.copy()
        content = buffers.take(f"{self.name} block", len(chunks) * size)
        first = chunks.start
        while first < chunks.stop:
            stop = min(chunks.stop, (first // self.array.chunks_of_file + 1) * self.array.chunks_of_file)
            part = content[(first - chunks.start) * size : (stop - chunks.start) * size]
            self._read_together(first, part.reshape(stop - first, size), buffers)
            first = stop
        return content[: rows * self.array.row_bytes].view(self.array.dtype).reshape(rows, *self.array.shape[1:])

    def _read_together(self, first: int, into: NDArray[np.uint8], buffers: Buffers) -> None:
        """Chunks (c, bytes) of one file from one on: by one read where they lie at equal distances, as they were written."""
        file, place = divmod(first, self.array.chunks_of_file)
        count, size = into.shape
        for known in self._indices(file) if count > 1 else ():
            step = known.offsets.step if isinstance(known.offsets, range) else 0
            if not self.array.chunk_bytes <= step <= in_pages(self.array.chunk_bytes):
                break
            length = (count - 1) * step + size
            where, what = int(known.offsets[place]), f"the shard with chunks of {self.name}"
            name, take = self.array.file(file), lambda size: buffers.take(self.name, size)
            got = self.folder.get(name, where, length, what, take, known.mark)
            if got.mark == known.mark and got.content.size == length:
                np.copyto(into, np.lib.stride_tricks.as_strided(got.content, into.shape, (step, 1)))
                return
        for place in range(count):
            self.fill(first + place, 0, into[place], buffers)

    def fill(self, index: int, first: int, into: NDArray[np.uint8], buffers: Buffers) -> None:
        """Fill a part of a buffer with the bytes of a chunk from one on."""
        content = self._part(index, first, into.size, lambda size: into if size <= into.size else buffers.take(self.name, size))
        if content is not into:
            into[:] = content

    def _part(self, index: int, start: int, size: int, take: Take) -> NDArray[np.uint8]:
        """Bytes of a chunk from one on."""
        file, place = divmod(index, self.array.chunks_of_file)
        name, what = self.array.file(file), f"chunk {index} of {self.name}"
        if not self.array.shard:
            got = self.folder.get(name, start, size, what, take, 0)
            if got.content.size != size or got.size not in (None, self.array.chunk_bytes):
                whole = got.size not in (None, self.array.chunk_bytes)
                came, wanted = (got.size, self.array.chunk_bytes) if whole else (got.content.size, size)
                text = f"{what} has {came} bytes, expected {wanted}; restore or ingest again"
                raise CorruptDataError(f"{self.folder.where(name)}: {text}")
            return got.content
        for known in self._indices(file):
            first = int(known.offsets[place]) + start
            got = self.folder.get(name, first, size, f"the shard with {what}", take, known.mark)
            if got.mark == known.mark and got.content.size == size:
                return got.content
        raise CorruptDataError(f"{self.folder.where(name)}: changes while {what} is read; wait for its writer, and run again")

    def advise(self, index: int) -> None:
        chunks = self._chunks(index)
        if not self.overlaps or not chunks:
            return
        if not self.array.shard:
            for chunk in chunks:
                self.folder.advise(self.array.file(chunk), 0, 0)
            return
        shard, place = divmod(chunks.start, self.array.chunks_of_file)
        stretch = 1 << 20  # of smaller chunks so many bytes are asked for ahead, where one reaches over a multiple of it
        with contextlib.suppress(CorruptDataError):  # the read itself will say what is wrong
            first, size = int(self._index(shard).offsets[place]), self.array.chunk_bytes * len(chunks)
            if size < stretch:  # to ask for each small chunk would take as long as to read it
                if first // stretch == (first + size) // stretch:
                    return
                size += stretch
            self.folder.advise(self.array.file(shard), first, size)

    def stamp(self, index: int, looks: Looks | None = None) -> int:
        """Of the files that a block lies in."""
        chunks = self._chunks(index)
        first, last = chunks.start // self.array.chunks_of_file, (chunks.stop - 1) // self.array.chunks_of_file
        if first == last:
            return self._stamp(first, looks)
        return hash(tuple(self._stamp(shard, looks) for shard in range(first, last + 1)))

    def _stamp(self, shard: int, looks: Looks | None) -> int:
        if looks is None or self.folder.distant or not self.array.shard:
            return self.folder.stamp(self.array.file(shard))
        known, index_of = looks.get((id(self), shard)), self._known.get(shard)
        if known is None or (index_of is not None and index_of.mark != known):  # a read has found another one since
            known = looks[id(self), shard] = self.folder.stamp(self.array.file(shard))
        return known


CACHED = 1 << 26
"""Bytes that any page cache holds: what this one can hold takes as long to ask as to open an array."""


def open_folder(path: Place, kept: KeptBlocks | None = None, past_cache: bool = False, paged: bool = False) -> Folder:
    """What chunks lie in; those of an object store may be ``kept`` here and come several at once, files ``past_cache``."""
    if isinstance(path, Path):
        return Files(path, past_cache)
    from dfeas.data.storage.object_readers import Objects, PagedObjects

    return PagedObjects(path, kept) if paged else Objects(path, kept)


def chunk_reader(
    name: str,
    path: Place,
    array: StoredArray,
    kept: KeptBlocks | None = None,
    together: int = 1,
    compare: Callable[[int, AnyArray], None] | None = None,
) -> RowReader:
    """A reader of blocks of so many chunks ``together``, which asks early for what is far away, and has it compared."""
    size = array.shape[0] * array.row_bytes
    paged = bool(array.shard) and len(array.shape) == 1
    folder = open_folder(path, kept, size > CACHED and size > available_bytes(), paged)
    reader = ChunkReader(name, folder, array, together)
    if isinstance(path, Path):
        return reader
    from dfeas.data.storage.object_readers import Ahead

    return Ahead(reader, compare)
