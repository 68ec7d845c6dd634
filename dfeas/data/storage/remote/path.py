"""A place in an object store with the methods of pathlib.Path that data is opened by, an object as a file, and ETags."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from hashlib import blake2b
from io import BufferedReader
from pathlib import PurePosixPath
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
import obstore
from numpy.typing import NDArray
from obstore.exceptions import PreconditionError

from dfeas.data.storage.remote.bucket import Bucket, parse, said
from dfeas.data.storage.remote.prefetch import pool
from dfeas.errors import CorruptDataError

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta

BUFFER = 1 << 20
"""Bytes that small reads of a file are served from."""


@dataclass(frozen=True)
class Stat:
    """What is known of an object without reading it."""

    st_size: int  # bytes
    tag: str  # changes with the contents


@dataclass(frozen=True)
class ObjectPath:
    """An object, or a folder: a key before which other keys begin."""

    bucket: Bucket
    key: str

    @classmethod
    def of(cls, url: str) -> ObjectPath:
        """From a URL; raises what ``parse`` does."""
        return cls(*parse(url))

    def __reduce__(self) -> tuple[Any, ...]:
        return ObjectPath.of, (str(self),)

    def __str__(self) -> str:
        return f"{self.bucket.url}/{self.key}"

    def __truediv__(self, name: str) -> ObjectPath:
        return ObjectPath(self.bucket, f"{self.key}/{name}")

    def __lt__(self, other: ObjectPath) -> bool:
        return str(self) < str(other)

    @property
    def name(self) -> str:
        return PurePosixPath(self.key).name

    @property
    def suffix(self) -> str:
        """The last part from its last dot on."""
        return PurePosixPath(self.key).suffix

    def with_suffix(self, suffix: str) -> ObjectPath:
        return ObjectPath(self.bucket, str(PurePosixPath(self.key).with_suffix(suffix)))

    def absolute(self) -> ObjectPath:
        return self

    def stat(self) -> Stat:
        """Raises FileNotFoundError when there is no such object."""
        with said(self):
            found = obstore.head(self.bucket.store, self.key)
        return Stat(found["size"], found["e_tag"] or "")

    def is_file(self) -> bool:
        """Whether there is such an object."""
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self) -> bool:
        """Whether there are objects below it."""
        return next(self._listed(1), None) is not None

    def exists(self) -> bool:
        return self.is_file() or self.is_dir()

    def open(self, mode: str = "rb") -> BufferedReader:
        assert mode == "rb", "objects are written whole"
        found = self.stat()
        return BufferedReader(ObjectFile(self.bucket.store, self.key, str(self), found.st_size, found.tag), BUFFER)

    def read_bytes(self) -> bytes:
        """Its contents. Raises FileNotFoundError when there is no such object."""
        with said(self):
            return bytes(obstore.get(self.bucket.store, self.key).bytes())

    def read_text(self, errors: str = "strict") -> str:
        return self.read_bytes().decode(errors=errors)

    def write_bytes(self, content: bytes) -> None:
        try:
            with said(self):
                obstore.put(self.bucket.store, self.key, content)
        except FileNotFoundError as error:
            raise CorruptDataError(f"{self}: cannot be written: {str(error)[:200]}") from None

    def unlink(self, missing_ok: bool = False) -> None:
        try:
            with said(self):
                obstore.delete(self.bucket.store, self.key)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def listed(self) -> Iterator[ObjectMeta]:
        """What obstore says of all objects below it: ``path``, a key of the bucket, ``size``, ``e_tag``."""
        return self._listed(1000)

    def _listed(self, chunk: int) -> Iterator[ObjectMeta]:
        with said(self):
            for some in obstore.list(self.bucket.store, self.key, chunk_size=chunk):
                yield from some

    def rglob(self, pattern: str) -> Iterator[ObjectPath]:
        """Objects below it whose names match."""
        for found in self.listed():
            if PurePosixPath(found["path"]).match(pattern):
                yield ObjectPath(self.bucket, found["path"])


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
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        """The place of the next byte."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
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
        keys, found = self._listed
        place = _place(keys, name)
        return 0 if place is None else int(found[place])

    def _list(self) -> None:
        began = monotonic()
        skipped = len(self.folder.key) + 1
        pairs = [(_number(found["path"][skipped:]), tag_of(found)) for found in self.folder.listed()]
        both = np.array(pairs, np.uint64).reshape(-1, 2)
        order = np.argsort(both[:, 0])
        self._listed = both[order, 0], both[order, 1]
        now = monotonic()
        self._until = now + max(FRESH_SECONDS, SELDOM * (now - began))

    def correct(self, name: str, tag: int) -> None:
        """What a request said of an object just now."""
        with self._lock:
            keys, found = self._listed
            place = _place(keys, name)
            if place is not None:
                found[place] = tag


def _place(keys: NDArray[np.uint64], name: str) -> int | None:
    key = np.uint64(_number(name))
    place = int(np.searchsorted(keys, key))
    return place if place < len(keys) and keys[place] == key else None


def tag_of(found: Any) -> int:
    """A number for what obstore says of an object: listings and answers may differ in quotes, and there may be no ETag."""
    mark = (found["e_tag"] or "").removeprefix("W/").strip('"') or int(found["last_modified"].timestamp())
    return _number(f"{mark} {found['size']}") or 1


def _number(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
