"""Plain chunks, each a file or an object, or many in a shard, whose index says where they lie; they are read by position.

The index has an offset and a length, uint64, for each chunk of the shard, at its end or at its beginning, with a crc32c or
without one. It is read once, and again when the shard changes. A chunk that is absent has 2**64 - 1 twice; zarr reads it as
fill values, here it is an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from math import prod
from threading import Lock
from typing import Any, NamedTuple

import crc32c
import numpy as np
from numpy.typing import NDArray

from dfeas.data.storage.files import COUNT, conform
from dfeas.data.storage.readers import AnyArray, Buffers, Folder, Looks, Take, chunks_of, in_pages
from dfeas.errors import BadInputError, CorruptDataError

ABSENT = np.uint64(2**64 - 1)
ENTRY = np.dtype("<u8")
WRITE_EMPTY = "zarr.create_array('X', data=X, config={'write_empty_chunks': True})"
"""What writes chunks that zarr leaves out, where all of their entries are the fill value."""

CRC = 4
"""Bytes of a crc32c."""

CODEC = "sharding_indexed"

MOST_CHUNKS = 1 << 22
"""Of a shard, whose index is read as a whole: 64 MiB."""

_CODECS = [{"name": str, "configuration?": dict}]
_SHAPE = {"chunk_shape": [COUNT], "codecs": _CODECS, "index_codecs": _CODECS, "index_location?": str}


def codecs_of(array: Any) -> list[dict[str, Any]]:
    """Those of an array of zarr format 3, as its metadata say them."""
    return [codec.to_dict() for codec in array.metadata.codecs]


@dataclass(frozen=True)
class Form:
    """How an array lies in shards."""

    shape: tuple[int, ...]  # of the array
    chunk: tuple[int, ...]
    per: tuple[int, ...]  # chunks of a shard along each axis
    codecs: list[dict[str, Any]]  # of a chunk
    at_end: bool  # where the index is
    sealed: bool  # whether the index has a crc32c

    @classmethod
    def of(cls, array: Any, where: object) -> Form | None:
        """That of an array of zarr; None without shards. Raises BadInputError for shards that are not read."""
        codecs = codecs_of(array)
        if CODEC not in [codec["name"] for codec in codecs]:
            return None
        try:
            if len(codecs) > 1:
                raise ValueError(f"{[codec['name'] for codec in codecs]} around them")
            values = codecs[0]["configuration"]
            values = {name: list(entry) if isinstance(entry, tuple) else entry for name, entry in values.items()}
            conform(values, _SHAPE)
            inner, place = list(values["codecs"]), values.get("index_location", "end")
            if CODEC in [codec["name"] for codec in inner]:
                raise ValueError("shards in each other")
            if place not in ("start", "end"):
                raise ValueError(f"an index at their {place}")
            sealed = _index_sealed(values["index_codecs"])
        except ValueError as error:
            raise BadInputError(f"{where}: its shards are not read: {error}; write it with plain shards, or none") from None
        shards, chunk = tuple(array.shards), tuple(array.chunks)
        if min((*shards, *chunk)) < 1 or any(a % b for a, b in zip(shards, chunk, strict=True)):
            raise CorruptDataError(f"{where}: its zarr metadata cannot be read: chunks of {chunk} in shards of {shards}")
        per = tuple(a // b for a, b in zip(shards, chunk, strict=True))
        if prod(per) > MOST_CHUNKS:
            raise BadInputError(f"{where}: {prod(per)} chunks in a shard, at most {MOST_CHUNKS}; write it with smaller shards")
        return cls(tuple(array.shape), chunk, per, inner, place == "end", sealed)

    @cached_property
    def chunks(self) -> int:
        """How many chunks a shard has."""
        return prod(self.per)

    @property
    def index_bytes(self) -> int:
        return 2 * ENTRY.itemsize * self.chunks + CRC * self.sealed

    def places(self) -> Iterable[tuple[int, ...]]:
        """Of all shards of the array."""
        width = (a * b for a, b in zip(self.per, self.chunk, strict=True))
        return product(*(range(-(-size // each)) for size, each in zip(self.shape, width, strict=True)))

    def wanted(self, place: Sequence[int]) -> NDArray[np.bool_]:
        """Which chunks (chunks,) of a shard have entries of the array."""
        found = np.ones((), np.bool_)
        for at, per, width, size in zip(place, self.per, self.chunk, self.shape, strict=True):
            found = np.logical_and.outer(found, (at * per + np.arange(per)) * width < size)
        return found.reshape(-1)


def _index_sealed(codecs: Sequence[dict[str, Any]]) -> bool:
    """Whether an index has a crc32c. Raises ValueError for one that is packed otherwise."""
    names = [codec["name"] for codec in codecs]
    endian = (codecs[0].get("configuration") or {}).get("endian", "little") if codecs else ""
    if names not in (["bytes"], ["bytes", "crc32c"]) or str(getattr(endian, "value", endian)) != "little":
        raise ValueError(f"an index of {names}, expected bytes and crc32c, little-endian")
    return len(names) == 2


class Index(NamedTuple):
    """Where the chunks of a shard lie."""

    offsets: NDArray[np.uint64] | range  # (chunks,) a range where they lie at equal distances, which takes no memory
    mark: int  # of the shard when it was read


def read_index(folder: Folder, name: str, form: Form, place: Sequence[int], what: str, size: int | None = None) -> Index:
    """The index of a shard, by its place among the others; ``size`` is that of each of its chunks, where it is known.

    Raises CorruptDataError when it is damaged, or when a chunk with entries of the array is absent, lies outside, or has
    another size.
    """
    first = -form.index_bytes if form.at_end else 0
    content, whole, mark = folder.get(name, first, form.index_bytes, what, lambda size: np.empty(size, np.uint8))
    where, again = folder.where(name), "restore or ingest again"
    assert whole is not None, "it was not kept"
    if content.size < form.index_bytes:
        raise CorruptDataError(f"{where}: the shard has {whole} bytes, its index alone {form.index_bytes}; {again}")
    body = content[: form.index_bytes - CRC * form.sealed]
    if form.sealed:
        expected, found = int.from_bytes(content[body.size :].tobytes(), "little"), crc32c.crc32c(body)
        if found != expected:
            text = f"the index of the shard is damaged (crc32c {found:08x}, expected {expected:08x})"
            raise CorruptDataError(f"{where}: {text}; {again}")
    offsets, lengths = np.frombuffer(body.tobytes(), ENTRY).reshape(-1, 2).astype(np.uint64).T
    wanted = form.wanted(place)
    low, high = (0, whole - form.index_bytes) if form.at_end else (form.index_bytes, whole)
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
        return Index(range(first, first + step * (len(steps) + 1), step), mark)
    return Index(offsets, mark)


def require_chunks_in(folder: Folder, array: Any, form: Form) -> None:
    """Look at the index of every shard of an array: what zarr reads of one that lost a chunk is zeros.

    Raises CorruptDataError as ``read_index`` does.
    """

    def look(place: tuple[int, ...]) -> None:
        read_index(folder, array.metadata.encode_chunk_key(place), form, place, "the shard")

    if folder.distant:
        from dfeas.data.storage.bucket import pool

        for _ in pool().map(look, form.places()):
            pass
    else:
        for place in form.places():
            look(place)


STRETCH = 1 << 20
"""Of smaller chunks so many bytes are asked for ahead, where one reaches over a multiple of it."""

TRIES = 5
"""So often a chunk is read whose shard changes meanwhile."""


@dataclass(frozen=True)
class ChunkReader:
    """Plain chunks of whole rows: uncompressed, little-endian, one or more a block, with or without crc32c."""

    name: str
    folder: Folder
    key: Callable[[int], str]  # file -> its name in the folder
    form: Form
    sharded: bool  # whether a file has many chunks and an index, or is one chunk
    dtype: np.dtype[Any]
    trailer: int  # bytes of checksum behind the entries of a chunk
    together: int = 1  # chunks of a block
    _known: dict[int, Index] = field(default_factory=dict)  # by shard
    _turns: dict[int, Lock] = field(default_factory=dict)  # of who reads the index of a shard

    @property
    def overlaps(self) -> bool:
        return self.folder.overlaps

    @property
    def distant(self) -> bool:
        return self.folder.distant

    @cached_property
    def _row(self) -> int:
        """Bytes of a row of the array."""
        return int(np.prod(self.form.shape[1:], dtype=np.int64)) * self.dtype.itemsize

    @cached_property
    def size(self) -> int:
        """Bytes of a chunk with its checksum."""
        return self.form.chunk[0] * self._row + self.trailer

    def _index(self, shard: int, stale: Index | None = None) -> Index:
        """Where the chunks of a shard lie, read by one thread where it is not known, or known to be ``stale``."""
        known = self._known.get(shard)
        if known is not None and known is not stale:
            return known
        with self._turns.setdefault(shard, Lock()):
            known = self._known.get(shard)
            if known is None or known is stale:
                place = (shard, *(0,) * (len(self.form.shape) - 1))
                what = f"the shard with chunks of {self.name}"
                known = read_index(self.folder, self.key(shard), self.form, place, what, self.size)
                self._known[shard] = known
        return known

    def _chunks(self, index: int) -> range:
        return chunks_of(index, self.together, self.form.shape[0], self.form.chunk[0])

    def read(self, index: int, buffers: Buffers) -> AnyArray:
        """Read a block into the buffer. Raises CorruptDataError when a chunk or its shard is missing or damaged."""
        chunks, size = self._chunks(index), self.form.chunk[0] * self._row
        rows = min(self.form.shape[0], chunks.stop * self.form.chunk[0]) - chunks.start * self.form.chunk[0]
        if len(chunks) == 1:
            content = self._part(chunks.start, 0, rows * self._row, lambda size: buffers.take(self.name, size))
            entries = content.view(self.dtype).reshape(rows, *self.form.shape[1:])
            return entries if entries.flags.aligned else entries.copy()
        content = buffers.take(f"{self.name} block", len(chunks) * size)
        first = chunks.start
        while first < chunks.stop:
            stop = min(chunks.stop, (first // self.form.chunks + 1) * self.form.chunks)
            part = content[(first - chunks.start) * size : (stop - chunks.start) * size]
            self._read_together(first, part.reshape(stop - first, size), buffers)
            first = stop
        return content[: rows * self._row].view(self.dtype).reshape(rows, *self.form.shape[1:])

    def _read_together(self, first: int, into: NDArray[np.uint8], buffers: Buffers) -> None:
        """Chunks (c, bytes) of one file from one on: by one read where they lie at equal distances, as they were written."""
        file, place = divmod(first, self.form.chunks)
        count, size = into.shape
        for _ in range(TRIES if count > 1 else 0):
            known = self._index(file)
            step = known.offsets.step if isinstance(known.offsets, range) else 0
            if not self.size <= step <= in_pages(self.size):
                break
            length = (count - 1) * step + size
            where, what = int(known.offsets[place]), f"the shard with chunks of {self.name}"
            got = self.folder.get(self.key(file), where, length, what, lambda size: buffers.take(self.name, size), keep=True)
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
        file, place = divmod(index, self.form.chunks)
        name, what = self.key(file), f"chunk {index} of {self.name}"
        if not self.sharded:
            got = self.folder.get(name, start, size, what, take, keep=True)
            if got.content.size != size or got.size not in (None, self.size):
                text = f"{what} has {got.size} bytes, expected {self.size}; restore or ingest again"
                raise CorruptDataError(f"{self.folder.where(name)}: {text}")
            return got.content
        stale = None
        for _ in range(TRIES):
            known = self._index(file, stale)
            got = self.folder.get(name, int(known.offsets[place]) + start, size, f"the shard with {what}", take, keep=True)
            if got.mark == known.mark and got.content.size == size:
                return got.content
            stale = known
        raise CorruptDataError(f"{self.folder.where(name)}: changes while {what} is read; wait for its writer, and run again")

    def advise(self, index: int) -> None:
        chunks = self._chunks(index)
        if not self.overlaps or not chunks:
            return
        if not self.sharded:
            for chunk in chunks:
                self.folder.advise(self.key(chunk), 0, 0)
            return
        shard, place = divmod(chunks.start, self.form.chunks)
        with contextlib.suppress(CorruptDataError):  # the read itself will say what is wrong
            first, size = int(self._index(shard).offsets[place]), self.size * len(chunks)
            if size < STRETCH:  # to ask for each small chunk would take as long as to read it
                if first // STRETCH == (first + size) // STRETCH:
                    return
                size += STRETCH
            self.folder.advise(self.key(shard), first, size)

    def stamp(self, index: int, looks: Looks | None = None) -> int:
        """Of the files that a block lies in."""
        chunks = self._chunks(index)
        first, last = chunks.start // self.form.chunks, (chunks.stop - 1) // self.form.chunks
        if first == last:
            return self._stamp(first, looks)
        return hash(tuple(self._stamp(shard, looks) for shard in range(first, last + 1)))

    def _stamp(self, shard: int, looks: Looks | None) -> int:
        if looks is None or self.folder.distant or not self.sharded:
            return self.folder.stamp(self.key(shard))
        known, index_of = looks.get((id(self), shard)), self._known.get(shard)
        if known is None or (index_of is not None and index_of.mark != known):  # a read has found another one since
            known = looks[id(self), shard] = self.folder.stamp(self.key(shard))
        return known
