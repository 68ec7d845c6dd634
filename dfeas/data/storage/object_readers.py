"""Readers of what lies in an object store: a request for each chunk, before it is wanted; a disk here may keep the chunks."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import crc32c
import numpy as np
import obstore
from numpy.typing import NDArray

from dfeas.data.storage.object_store import ObjectPath, pool, translate_errors
from dfeas.data.storage.readers import Buffers, Got, Looks, Reader, Take
from dfeas.errors import CorruptDataError, UsageError, spell

if TYPE_CHECKING:
    from obstore import GetOptions

T = TypeVar("T")

HELD = 16 * (4 + (os.cpu_count() or 1))
"""Blocks that are held at most: twice what all threads of a process ask for."""

FRESH_SECONDS = 10.0
"""A listing is used for so long, or for 20 times as long as it took. A request lists 1,000 ETags; what is read says its own."""

SELDOM = 20


class Tags:
    """Numbers that change with the objects below a folder, the same in every process. Safe to use from several threads."""

    def __init__(self, folder: ObjectPath) -> None:
        self.folder = folder
        # sorted hashes of keys, and of ETags: 16 bytes an object
        self._listed: tuple[NDArray[np.uint64], NDArray[np.uint64]] = np.empty(0, np.uint64), np.empty(0, np.uint64)
        self._until = 0.0
        self._lock = Lock()

    def __call__(self, name: str) -> int:
        """That of an object, by its name in the folder; 0 when there is none."""
        if monotonic() >= self._until:
            with self._lock:
                if monotonic() >= self._until:
                    self._list()
        keys, tags = self._listed
        place = _place(keys, name)
        return 0 if place is None else int(tags[place])

    def _list(self) -> None:
        began = monotonic()
        skipped = len(self.folder.key) + 1
        pairs = [(_number(each["path"][skipped:]), tag_of(each)) for each in self.folder.objects()]
        both = np.array(pairs, np.uint64).reshape(-1, 2)
        order = np.argsort(both[:, 0])
        self._listed = both[order, 0], both[order, 1]
        now = monotonic()
        self._until = now + max(FRESH_SECONDS, SELDOM * (now - began))

    def correct(self, name: str, tag: int) -> None:
        """What a request said of an object just now."""
        with self._lock:
            keys, tags = self._listed
            place = _place(keys, name)
            if place is not None:
                tags[place] = tag


def _place(keys: NDArray[np.uint64], name: str) -> int | None:
    key = np.uint64(_number(name))
    place = int(np.searchsorted(keys, key))
    return place if place < len(keys) and keys[place] == key else None


def tag_of(meta: Any) -> int:
    """A number for what obstore says of an object: listings and answers may differ in quotes, and there may be no ETag."""
    mark = (meta["e_tag"] or "").removeprefix("W/").strip('"') or int(meta["last_modified"].timestamp())
    return _number(f"{mark} {meta['size']}") or 1


def _number(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Ahead(Generic[T]):
    """A reader of blocks that were asked for before. What a pass asked for and never read is dropped when others come."""

    inner: Reader[T]
    most: int = HELD  # blocks that are held
    _coming: dict[int, Future[T]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    overlaps = True
    distant = True

    def read(self, index: int, buffers: Buffers) -> T:
        with self._lock:
            coming = self._coming.pop(index, None)
        return self.inner.read(index, buffers) if coming is None else coming.result()

    def advise(self, index: int) -> None:
        with self._lock:
            if index not in self._coming:
                self._coming[index] = pool().submit(self.inner.read, index, Buffers())
            for oldest in list(self._coming)[: -self.most]:
                self._coming.pop(oldest).cancel()

    def stamp(self, index: int, looks: Looks | None = None) -> int | None:
        return self.inner.stamp(index, looks)


_TRAILER = 4


@dataclass(frozen=True)
class KeptBlocks:
    """A folder with one file a chunk: its bytes and their crc32c. A file is named by the URL and the ETag of its chunk.

    Files appear whole, so that any number of processes may share the folder. What cannot be kept is no error.
    """

    folder: Path

    free_share: ClassVar[float] = 0.05
    """Nothing more is kept when less of the disk is free."""

    @classmethod
    def at(cls, folder: str) -> KeptBlocks:
        """Make the folder. Raises UsageError when it cannot be written."""
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{spell('cache_dir')} {folder}: cannot be written: {error.strerror}") from None
        return cls(Path(folder))

    def _path(self, url: str, tag: int) -> Path:
        name = sha256(f"{url} {tag}".encode()).hexdigest()
        return self.folder / name[:2] / name[2:]

    def read(self, url: str, tag: int, take: Callable[[int], NDArray[np.uint8]]) -> NDArray[np.uint8] | None:
        """The bytes of a chunk, in a buffer; None when they are not here. A damaged file is removed."""
        path = self._path(url, tag)
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

    def write(self, url: str, tag: int, content: NDArray[np.uint8]) -> None:
        """Keep the bytes of a chunk, where there is room."""
        path = self._path(url, tag)
        part = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.part")
        try:
            usage = shutil.disk_usage(self.folder)
            if usage.free < self.free_share * usage.total + content.size:
                return
            path.parent.mkdir(exist_ok=True)
            with part.open("wb") as file:
                file.write(content.data)
                file.write(_trailer(content))
            part.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)


def _trailer(content: NDArray[np.uint8]) -> bytes:
    return int(crc32c.crc32c(content)).to_bytes(_TRAILER, "little")


@dataclass(frozen=True)
class Objects:
    """Those below a key, as ``Files`` has files: a request for each range, which a disk here may keep."""

    tags: Tags
    kept: KeptBlocks | None = None

    distant = True
    overlaps = False

    def where(self, name: str) -> str:
        return f"{self.tags.folder}/{name}"

    def stamp(self, name: str) -> int:
        return self.tags(name)

    def get(self, name: str, first: int, size: int, what: str, take: Take, keep: bool = False) -> Got:
        where, tag, kept = self.where(name), self.tags(name), self.kept if keep else None
        part = f"{where} {first} {size}"
        held = None if kept is None else kept.read(part, tag, take)
        if held is not None:
            return Got(held, None, tag)
        options: GetOptions = {"range": (first, first + size) if first >= 0 else {"suffix": size}}
        folder = self.tags.folder
        try:
            with translate_errors(where):
                answer = obstore.get(folder.store, f"{folder.key}/{name}", options=options)
                content = np.frombuffer(memoryview(answer.bytes()), np.uint8)
        except FileNotFoundError:
            raise CorruptDataError(f"{where}: {what} is missing; restore or ingest again") from None
        tag = tag_of(answer.meta)
        self.tags.correct(name, tag)
        if kept is not None:
            kept.write(part, tag, content)
        return Got(content, answer.meta["size"], tag)

    def advise(self, name: str, first: int, size: int) -> None:
        """Nothing to do: see Ahead."""
