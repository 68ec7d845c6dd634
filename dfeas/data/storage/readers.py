"""Readers: rows of one array, block by block. Plain files where the layout allows, anything sliceable otherwise."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.data.storage.files import damage, refused_by_system
from dfeas.data.storage.numbers import exact
from dfeas.data.storage.patience import persist
from dfeas.errors import CorruptDataError, DfeasError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

AnyArray = NDArray[Any]
Points: TypeAlias = "NDArray[Any] | csr_array"
T = TypeVar("T", covariant=True)
V = TypeVar("V")

Stop = Callable[[], bool]


class StoppedError(Exception):
    """A look at some blocks was told to stop."""


def unless_stopped(values: Iterable[V], stopped: Stop | None) -> Iterator[V]:
    """The values, one for each block. Raises StoppedError when it is asked between two of them, and the answer is yes."""
    for value in values:
        if stopped is not None and stopped():
            raise StoppedError
        yield value


Looks = dict[tuple[int, int], int]
"""Stamps of files that several blocks lie in, by the id of their reader and their number, on one way through the blocks."""
PAGE_BYTES = 4096
"""Buffers begin at multiples of this, as reads past the page cache must. Where malloc often begins, 16 bytes after a page, the
kernel copies at half the speed.
"""


class Buffers:
    """Buffers that are used again for every block: fresh memory a read would cost as much as the read."""

    def __init__(self, **held: NDArray[np.uint8]) -> None:
        self._held = held

    def take(self, name: str, size: int) -> NDArray[np.uint8]:
        """A buffer of ``size`` bytes; what an earlier call with this name returned is overwritten."""
        held = self._held.get(name)
        if held is None or held.size < size:
            fresh = np.empty(size + PAGE_BYTES, np.uint8)
            first = -fresh.ctypes.data % PAGE_BYTES
            held = self._held[name] = fresh[first : first + size]
        return held[:size]


class Reader(Protocol[T]):
    """Rows of one stored array in runs of ``block_rows``."""

    @property
    def overlaps(self) -> bool:
        """Whether ``advise`` alone makes reading overlap with work, so that no thread needs to read ahead."""

    @property
    def distant(self) -> bool:
        """Whether blocks come over a network, so that several are asked for before the first is needed."""

    def read(self, index: int, buffers: Buffers) -> T:
        """Rows of a block, C order, native byte order; may be a view of a buffer."""

    def advise(self, index: int) -> None:
        """Say that a block will soon be wanted."""

    def stamp(self, index: int, looks: Looks | None = None) -> int | None:
        """A number that changes when the stored block does, without reading it; None where there is no file to look at. What
        lies in a file with others is what it was when somebody looked at it, if ``looks`` says so.
        """


RowReader = Reader[AnyArray]
PointReader = Reader[Points]
"""Of an array or of a CSR matrix."""


def stamp_of(path: str) -> int:
    """A number that changes when a file does: from its inode, its size, the times of its contents and of its attributes."""
    try:
        status = os.stat(path)
    except OSError:
        return -1  # the read itself will say what is wrong
    return hash((status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))


def fill(descriptor: int, buffer: NDArray[np.uint8], offset: int = 0) -> int:
    """Fill the buffer from a byte of a file on; returns the bytes that came."""
    done = 0
    while done < buffer.size:
        got = os.preadv(descriptor, [buffer.data[done:]], offset + done)
        if not got:
            break
        done += got
    return done


def in_pages(size: int) -> int:
    """Bytes of the whole pages that so many take."""
    return -(-size // PAGE_BYTES) * PAGE_BYTES


def past_page_cache(path: str, buffer: NDArray[np.uint8], offset: int = 0) -> int:
    """Read a file from a page on into whole pages, past the page cache; returns the bytes that came, maybe none. The kernel
    neither looks for room in memory nor copies: of data that memory cannot hold that is most of its work.
    """
    with suppress(OSError):  # not on this storage; or the read through the page cache will say what is wrong
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
        try:
            return os.preadv(descriptor, [buffer.data], offset)
        finally:
            os.close(descriptor)
    return 0


def advise_chunk(path: str, offset: int, length: int) -> None:
    """Ask the kernel to read a part of a file ahead, where it can; of length 0 to its end. Where the page cache has both ends
    it has the rest, or reads it in one go: to go through its pages takes a third of what reading them does.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return  # the read itself will say what is wrong
    try:
        last = (offset + length if length else os.fstat(descriptor).st_size) - 1
        if not (_is_cached(descriptor, offset) and _is_cached(descriptor, last)):
            os.posix_fadvise(descriptor, offset, length, os.POSIX_FADV_WILLNEED)
    finally:
        os.close(descriptor)


def _is_cached(descriptor: int, offset: int) -> bool:
    """Whether a byte of a file can be read without waiting; False where that cannot be told, too."""
    with suppress(OSError, ValueError):
        return os.preadv(descriptor, [bytearray(1)], offset, os.RWF_NOWAIT) == 1
    return False


Take = Callable[[int], NDArray[np.uint8]]
"""A buffer of so many bytes."""


class Got(Struct, frozen=True, eq=False):
    """Bytes of a file or an object, and what is known of the whole."""

    content: NDArray[np.uint8]
    size: int | None  # of the whole; None of what was kept
    mark: int  # changes with the whole


class Folder(Protocol):
    """Files of a folder, or objects below a key."""

    distant: bool

    @property
    def overlaps(self) -> bool:
        """Whether ``advise`` alone makes reading overlap with work."""

    def where(self, name: str) -> str:
        """How messages call one of them."""

    def stamp(self, name: str) -> int:
        """A number that changes with it."""

    def get(self, name: str, first: int, size: int, what: str, take: Take, keep: int | None = None) -> Got:
        """``size`` bytes from ``first`` on, before 0 from the end; fewer where there are no more. May be those of ``take``.
        What is far away may be kept here by the mark ``keep`` of the whole, and read from here the next time. Raises
        CorruptDataError when there is no such file, which messages call ``what``.
        """

    def advise(self, name: str, first: int, size: int) -> None:
        """Say that some bytes will soon be wanted, of ``size`` 0 all from the first on."""


class Files(Struct, frozen=True):
    """Those of a folder of this machine."""

    folder: Path
    past_cache: bool = False  # whether chunks are read past the page cache, which cannot hold all of them

    distant = False

    @property
    def overlaps(self) -> bool:
        return not self.past_cache

    def where(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def stamp(self, name: str) -> int:
        return stamp_of(self.where(name))

    def get(self, name: str, first: int, size: int, what: str, take: Take, keep: int | None = None) -> Got:
        return persist(lambda: self._get(name, first, size, what, take))

    def _get(self, name: str, first: int, size: int, what: str, take: Take) -> Got:
        path, direct = self.where(name), self.past_cache and first >= 0 and first % PAGE_BYTES == 0
        pages = take(in_pages(size) if direct else size)
        buffer, done = pages[:size], min(size, past_page_cache(path, pages, first)) if direct else 0
        try:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                status = os.fstat(descriptor)
                first = first if first >= 0 else max(0, status.st_size + first)
                done += fill(descriptor, buffer[done:], first + done)
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            raise CorruptDataError(f"{path}: {what} is missing; restore or ingest again") from None
        except OSError as error:
            raise refused_by_system(f"{path}: {what}", error) from None
        mark = hash((status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
        return Got(pages if done == pages.size else pages[:done], status.st_size, mark)

    def advise(self, name: str, first: int, size: int) -> None:
        if not self.past_cache:
            advise_chunk(self.where(name), first, size)


def chunks_of(index: int, together: int, n: int, chunk_rows: int) -> range:
    """Numbers of the chunks of a block, of which each has so many, but the last; none of one behind it."""
    return range(index * together, min((index + 1) * together, -(-n // chunk_rows)))


class SliceReader(Struct, frozen=True, eq=False):
    """Anything that gives rows by ``array[start:stop]``: zarr, NumPy, HDF5, chunks of Dask."""

    name: str
    array: Any
    n: int
    block_rows: int
    dtype: np.dtype[Any]
    overlaps: bool = False  # True for arrays in memory
    files: Callable[[int], Sequence[str]] | None = None  # block index -> paths of what it is read from, where there are any
    reading: Callable[[], AbstractContextManager[None]] = nullcontext  # in which the array is read

    distant = False

    def read(self, index: int, buffers: Buffers) -> Any:
        """Slice, cast exactly; raises CorruptDataError when the array cannot be decoded."""
        first = index * self.block_rows
        where = f"{self.name}: block {index} (from point {first})"
        try:
            with self.reading():
                rows = self.array[first : min(first + self.block_rows, self.n)]
                if hasattr(rows, "tocsr"):  # of ``csr_chunks``
                    return rows
                rows = exact(rows, self.dtype, where)
        except DfeasError:
            raise
        except damage() as error:
            raise CorruptDataError(f"{where} cannot be read: {type(error).__name__}: {error}") from None
        return np.ascontiguousarray(rows)

    def advise(self, index: int) -> None:
        """Nothing to do: a thread reads ahead."""

    def stamp(self, index: int, looks: Looks | None = None) -> int | None:
        return None if self.files is None else hash(tuple(map(stamp_of, self.files(index))))


class Cost(Struct):
    """What reading some blocks took."""

    points: int = 0
    bytes_read: int = 0  # from storage, or from arrays in memory
    cached_bytes: int = 0  # that were not read, because this process had kept them
    digest: int = 0  # sum over the blocks of their marks modulo 2**64, where workers cannot tell if they see the same
    read_seconds: float = 0.0  # waiting for data
    scan_seconds: float = 0.0  # computing on it
    wall_seconds: float = 0.0  # of the whole pass, seen by who asked

    def add(self, other: Cost) -> None:
        """Add what another range took; wall time is not additive and stays."""
        self.points += other.points
        self.bytes_read += other.bytes_read
        self.cached_bytes += other.cached_bytes
        self.digest = (self.digest + other.digest) % 2**64
        self.read_seconds += other.read_seconds
        self.scan_seconds += other.scan_seconds
