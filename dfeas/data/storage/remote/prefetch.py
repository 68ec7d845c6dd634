"""Read-ahead over a network: blocks are fetched before they are wanted, and kept on a disk of this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

import crc32c
import numpy as np
from numpy.typing import NDArray

from dfeas.data.storage.readers import Buffers, Reader
from dfeas.errors import UsageError

T = TypeVar("T")

REQUESTS = 32
"""Requests under way in a process."""


@lru_cache(maxsize=1)
def pool() -> ThreadPoolExecutor:
    """The threads of this process that wait for requests."""
    return ThreadPoolExecutor(REQUESTS, "dfeas-fetch")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.cache_clear)  # a child has no threads of its parent


@dataclass(frozen=True)
class Ahead(Generic[T]):
    """A reader of blocks that were asked for before. What a pass asked for and never read is dropped when others come."""

    inner: Reader[T]
    most: int  # blocks that are held
    _coming: dict[int, Future[T]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    overlaps = True
    distant = True

    def read(self, index: int, buffers: Buffers) -> T:
        """Rows of a block; raises what the inner reader does."""
        with self._lock:
            coming = self._coming.pop(index, None)
        return self.inner.read(index, buffers) if coming is None else coming.result()

    def advise(self, index: int) -> None:
        with self._lock:
            if index not in self._coming:
                self._coming[index] = pool().submit(self.inner.read, index, Buffers())
            for oldest in list(self._coming)[: -self.most]:
                self._coming.pop(oldest).cancel()

    def stamp(self, index: int) -> int | None:
        return self.inner.stamp(index)


FREE_SHARE = 0.05
"""Nothing more is kept when less of the disk is free."""

_TRAILER = 4


@dataclass(frozen=True)
class KeptBlocks:
    """A folder with one file a chunk: its bytes and their crc32c. A file is named by the URL and the ETag of its chunk.

    Files appear whole, so that any number of processes may share the folder. What cannot be kept is no error.
    """

    folder: Path

    @classmethod
    def at(cls, folder: str) -> KeptBlocks:
        """Make the folder. Raises UsageError when it cannot be written."""
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--cache-dir {folder}: cannot be written: {error.strerror}") from None
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
            if usage.free < FREE_SHARE * usage.total + content.size:
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
