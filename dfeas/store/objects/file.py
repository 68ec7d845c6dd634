"""An object as a file: read in order with several requests under way, or here and there."""

from __future__ import annotations

import io
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import PreconditionError

from dfeas.errors import CorruptDataError
from dfeas.store.objects.ahead import pool
from dfeas.store.objects.bucket import said

if TYPE_CHECKING:
    from obstore import GetOptions

PART_BYTES = 4 << 20
PARTS_AHEAD = 6
"""Requests under way while a file is read in order: 6 of 4 MiB hide a latency of 50 ms at 400 MB/s."""


class ObjectFile(io.RawIOBase):
    """Bytes of an object that does not change meanwhile: each request names the ETag of the first one."""

    def __init__(self, store: Any, key: str, where: str, size: int, tag: str) -> None:
        self._store, self._key, self._where, self._size, self._tag = store, key, where, size, tag
        self._at = 0
        self._part = b""  # what was read last
        self._part_at = 0
        self._coming: deque[tuple[int, Future[bytes]]] = deque()  # parts that follow each other

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """The place of the next byte."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to another place."""
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence])
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Some bytes from here on; 0 at the end."""
        if self._at >= self._size or not len(buffer):
            return 0
        if not self._part_at <= self._at < self._part_at + len(self._part):
            self._fetch()
        found = memoryview(self._part)[self._at - self._part_at :][: len(buffer)]
        memoryview(buffer).cast("B")[: len(found)] = found
        self._at += len(found)
        return len(found)

    def _fetch(self) -> None:
        """The part that begins here. Where reading goes on in order more are asked for."""
        in_order = self._at == self._part_at + len(self._part)
        if not self._coming or self._coming[0][0] != self._at:
            self._drop()
            self._ask(self._at)
        if in_order:
            while len(self._coming) <= PARTS_AHEAD and self._coming[-1][0] + PART_BYTES < self._size:
                self._ask(self._coming[-1][0] + PART_BYTES)
        self._part_at, coming = self._coming.popleft()
        self._part = coming.result()

    def _ask(self, first: int) -> None:
        stop = min(self._size, first + PART_BYTES)
        self._coming.append((first, pool().submit(self._get, first, stop)))

    def _get(self, first: int, stop: int) -> bytes:
        try:
            with said(self._where):
                try:
                    asked: GetOptions = {"range": (first, stop), "if_match": self._tag}
                    return bytes(obstore.get(self._store, self._key, options=asked).bytes())
                except PreconditionError:
                    raise FileNotFoundError from None
        except FileNotFoundError:
            raise CorruptDataError(f"{self._where}: changed or removed while it was read; run again") from None

    def _drop(self) -> None:
        while self._coming:
            self._coming.pop()[1].cancel()

    def close(self) -> None:
        """Forget what was asked for."""
        self._drop()
        super().close()
