"""Readers of what lies in an object store: a request for each chunk, before it is wanted; a disk here may keep the chunks."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from fastcrc.crc32 import iscsi as crc32c
from numpy.typing import NDArray

from dfeas.data.storage.object_path import ObjectPath, get_part, pool
from dfeas.data.storage.patience import is_afresh, once_more, persist, rest
from dfeas.data.storage.readers import Buffers, Got, Looks, Reader, Take
from dfeas.errors import CorruptDataError, UsageError, spell
from dfeas.machine import processors
from dfeas.records import replace

T = TypeVar("T")

HELD = 16 * (4 + processors())
"""Blocks that are held at most: twice what all threads of a process ask for."""


def tag_of(meta: Any) -> int:
    """A number for what obstore says of an object: answers may differ in quotes, and there may be no ETag."""
    mark = (meta["e_tag"] or "").removeprefix("W/").strip('"') or int(meta["last_modified"].timestamp())
    return int.from_bytes(blake2b(f"{mark} {meta['size']}".encode(), digest_size=8).digest(), "little") or 1


@dataclass(frozen=True)
class Ahead(Generic[T]):
    """A reader of blocks that were asked for before. What a pass asked for and never read is dropped when others come."""

    inner: Reader[T]
    compare: Callable[[int, T], None] | None = None  # raises CorruptDataError for a block that is not as it was written
    most: int = HELD  # blocks that are held
    _coming: dict[int, Future[T]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    overlaps = True
    distant = True

    def read(self, index: int, buffers: Buffers) -> T:
        """Wait for a block until patience is over; what is damaged is asked for once more."""
        try:
            return once_more(lambda: persist(lambda: self._read(index, buffers)))
        except BaseException:
            self._drop()
            raise

    def _read(self, index: int, buffers: Buffers) -> T:
        with self._lock:
            coming = self._coming.pop(index, None)
        if coming is None:
            return self._take(index, buffers)
        while wait([coming], 0.5).not_done:  # a request may take long to fail, and who reads may have to end
            rest(0)
        return coming.result()

    def _take(self, index: int, buffers: Buffers) -> T:
        block = self.inner.read(index, buffers)
        if self.compare is not None:
            self.compare(index, block)
        return block

    def _drop(self) -> None:
        """Nobody reads on: what is not under way yet is not asked for."""
        with self._lock:
            while self._coming:
                self._coming.popitem()[1].cancel()

    def advise(self, index: int) -> None:
        with self._lock:
            if index not in self._coming:
                self._coming[index] = pool().submit(self._take, index, Buffers())
            for oldest in list(self._coming)[: -self.most]:
                self._coming.pop(oldest).cancel()

    def stamp(self, index: int, looks: Looks | None = None) -> int | None:
        return self.inner.stamp(index, looks)


_TRAILER = 4


@dataclass(frozen=True)
class KeptBlocks:
    """A folder with one file a chunk: its bytes and their crc32c. Its name is that of the dataset, wherever it lies, and chunk.
    Files appear whole, so that any number of processes may share the folder. What cannot be kept is no error.
    """

    folder: Path
    mark: str  # of the dataset

    free_share: ClassVar[float] = 0.05
    """Nothing more is kept when less of the disk is free."""

    @classmethod
    def at(cls, folder: str, mark: str) -> KeptBlocks:
        """Make the folder. Raises UsageError when it cannot be written."""
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{spell('cache_dir')} {folder}: cannot be written: {error.strerror}") from None
        return cls(Path(folder), mark)

    def _path(self, part: str) -> Path:
        name = sha256(f"{self.mark} {part}".encode()).hexdigest()
        return self.folder / name[:2] / name[2:]

    def read(self, part: str, take: Callable[[int], NDArray[np.uint8]]) -> NDArray[np.uint8] | None:
        """The bytes of a chunk, in a buffer; None when they are not here. A damaged file is removed."""
        path = self._path(part)
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                content = take(size)
                got = file.readinto(content.data)
        except OSError:
            return None
        body = content[: size - _TRAILER]
        if got == size > _TRAILER and _trailer(body) == content[size - _TRAILER :].tobytes():
            return body
        path.unlink(missing_ok=True)
        return None

    def write(self, part: str, content: NDArray[np.uint8]) -> None:
        """Keep the bytes of a chunk, where there is room."""
        path = self._path(part)
        begun = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.part")
        try:
            usage = shutil.disk_usage(self.folder)
            if usage.free < self.free_share * usage.total + content.size:
                return
            path.parent.mkdir(exist_ok=True)
            with begun.open("wb") as file:
                file.write(content.data)
                file.write(_trailer(content))
            begun.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                begun.unlink(missing_ok=True)


def _trailer(content: NDArray[np.uint8]) -> bytes:
    return int(crc32c(content.data)).to_bytes(_TRAILER, "little")


@dataclass(frozen=True)
class Objects:
    """Those below a key, as ``Files`` has files: a request for each range, which a disk here may keep."""

    folder: ObjectPath
    kept: KeptBlocks | None = None

    distant = True
    overlaps = False

    def where(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def stamp(self, name: str) -> int:
        """Nobody looks at an object: what comes is compared whenever it comes."""
        return 0

    def get(self, name: str, first: int, size: int, what: str, take: Take, keep: int | None = None) -> Got:
        where, kept = self.where(name), None if keep is None else self.kept
        known_as = f"{self.folder.name}/{name} {first} {size} {keep}"
        held = None if kept is None or is_afresh.get() else kept.read(known_as, take)
        if held is not None:
            return Got(held, None if first >= 0 else held.size, keep or 0)
        try:
            part, meta = get_part(self.folder.store, f"{self.folder.key}/{name}", where, first, size)
        except FileNotFoundError:
            raise CorruptDataError(f"{where}: {what} is missing; restore or ingest again") from None
        content = np.frombuffer(part, np.uint8)
        if kept is not None and (first >= 0 or content.size == meta["size"]):
            kept.write(known_as, content)
        return Got(content, meta["size"], tag_of(meta))

    def advise(self, name: str, first: int, size: int) -> None:
        """Nothing to do: see Ahead."""


PAGE_BYTES = 4 << 20
"""Of an object that holds labels or norms of many blocks: one request brings so many."""
PAGES = 2 + processors()
"""Pages of an array that are held at most."""


@dataclass
class _Page:
    """A part of an object that is asked for once, and which parts of it were wanted since."""

    keep: int | None
    wanted: set[tuple[int, int]] = field(default_factory=set)
    turn: Lock = field(default_factory=Lock)  # of who asks for it
    got: Got | None = None


@dataclass(frozen=True)
class PagedObjects(Objects):
    """The same for small parts that are read one after the other: a page stays until one of them is wanted again."""

    _held: dict[tuple[str, int], _Page] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def get(self, name: str, first: int, size: int, what: str, take: Take, keep: int | None = None) -> Got:
        part = first, size
        end = self._page(name, -1, what, part if first < 0 else None)  # has the index, and all of an object that is small
        assert end.size is not None, "it is known of the end"
        begin = end.size - end.content.size
        if first < 0:
            return replace(end, content=end.content[max(0, end.content.size - size) :])
        if first >= begin:
            end = self._page(name, -1, what, part)
            return replace(end, content=end.content[first - begin :][:size])
        numbers = range(first // PAGE_BYTES, -(-(first + size) // PAGE_BYTES))
        pages = [self._page(name, number, what, part, end.mark) for number in numbers]
        content = np.concatenate([page.content for page in pages])[first - numbers.start * PAGE_BYTES :][:size]
        return Got(content, end.size, pages[0].mark if len({page.mark for page in pages}) == 1 else -1)

    def _page(self, name: str, number: int, what: str, part: tuple[int, int] | None, keep: int = 0) -> Got:
        """A page by its number, the last bytes for -1; asked for anew, and there, where the part was wanted before."""
        with self._lock:
            page = self._held.pop((name, number), None)
            if page is None or part in page.wanted:
                page = _Page(keep if page is None else None)
            self._held[name, number] = page
            if part is not None:
                page.wanted.add(part)
            for oldest in list(self._held)[:-PAGES]:
                del self._held[oldest]
        with page.turn:
            if page.got is None:
                first = -PAGE_BYTES if number < 0 else number * PAGE_BYTES
                page.got = super().get(name, first, PAGE_BYTES, what, lambda size: np.empty(size, np.uint8), page.keep)
        return page.got
