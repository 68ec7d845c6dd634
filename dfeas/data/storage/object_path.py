"""Objects as files and paths: read in parts that are asked for ahead, written whole."""

from __future__ import annotations

import io
import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, PreconditionError
from obstore.store import AzureStore

from dfeas.data.storage.object_store import store_of, translate_errors
from dfeas.data.storage.patience import Patience, limit, persist
from dfeas.errors import CorruptDataError, StorageAwayError, UsageError, format_bytes
from dfeas.settings import SCHEMES

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta, WritableFile

R = TypeVar("R")

_URL = re.compile(
    r"([a-z0-9]+)://([A-Za-z0-9][A-Za-z0-9._-]*(?::\d+)?)(?:@(\w+)(?:\.(?:dfs|blob)\.core\.windows\.net)?)?(?:/(.*))?"
)
_ACCOUNT = "AZURE_STORAGE_ACCOUNT_NAME"


def ask(where: object, request: Callable[[], R]) -> R:
    """What the store answers to a request, which is made again while it is away. Raises what ``translate_errors`` does."""

    def attempt() -> R:
        with translate_errors(where):
            return request()

    return persist(attempt)


@lru_cache(maxsize=1)
def pool() -> ThreadPoolExecutor:
    """The threads of this process that wait for requests."""
    return ThreadPoolExecutor(32, "dfeas-fetch")  # requests under way in a process


os.register_at_fork(after_in_child=pool.cache_clear)  # a child has no threads of its parent


def get_part(
    store: Any, key: str, where: object, first: int, size: int, tag: str | None = None
) -> tuple[memoryview, ObjectMeta]:
    """``size`` bytes of an object from ``first`` on, before 0 from its end, and what it is; with a ``tag`` of this version.
    They are asked for twice when fewer came than there are. Raises FileNotFoundError when there is no such object.
    """
    if first < 0 and isinstance(store, AzureStore):  # which takes no ranges from the end
        with translate_errors(where):
            first = max(0, obstore.head(store, key)["size"] - size)
    options: GetOptions = {"range": (first, first + size) if first >= 0 else {"suffix": size}}
    if tag is not None:
        options["if_match"] = tag
    for _ in range(2):
        with translate_errors(where):
            answer = obstore.get(store, key, options=options)
            content = memoryview(answer.bytes())
        if len(content) == min(size, answer.meta["size"] - max(0, first)):
            break
    return content, answer.meta


PART_BYTES = 4 << 20


class ObjectFile(io.RawIOBase):
    """Bytes of an object that does not change meanwhile: each request names the ETag of the first one."""

    def __init__(self, store: Any, key: str, where: str, size: int, tag: str | None) -> None:
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
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence])
        return self._at

    def readinto(self, buffer: Any) -> int:
        if self._at >= self._size or not len(buffer):
            return 0
        if not self._part_at <= self._at < self._part_at + len(self._part):
            persist(self._fetch)
        content = memoryview(self._part)[self._at - self._part_at :][: len(buffer)]
        memoryview(buffer).cast("B")[: len(content)] = content
        self._at += len(content)
        return len(content)

    def _fetch(self) -> None:
        """The part that begins here. Where reading goes on in order more are asked for."""
        in_order = self._at == self._part_at + len(self._part)
        if not self._coming or self._coming[0][0] != self._at:
            self._drop()
            self._ask(self._at)
        if in_order:
            # requests under way while a file is read in order: 6 of 4 MiB hide a latency of 50 ms at 400 MB/s
            while len(self._coming) <= 6 and self._coming[-1][0] + PART_BYTES < self._size:
                self._ask(self._coming[-1][0] + PART_BYTES)
        self._part_at, coming = self._coming.popleft()
        self._part = coming.result()

    def _ask(self, first: int) -> None:
        stop = min(self._size, first + PART_BYTES)
        self._coming.append((first, pool().submit(self._get, first, stop)))

    def _get(self, first: int, stop: int) -> bytes:
        try:
            content, _ = get_part(self._store, self._key, self._where, first, stop - first, self._tag)
        except FileNotFoundError:
            raise CorruptDataError(f"{self._where}: changed or removed while it was read; run again") from None
        if len(content) != stop - first:
            text = f"{len(content)} bytes came from byte {first} on, expected {stop - first}, twice"
            raise CorruptDataError(f"{self._where}: {text}; check what lies between here and the store, and run again")
        return bytes(content)

    def _drop(self) -> None:
        while self._coming:
            self._coming.pop()[1].cancel()

    def close(self) -> None:
        self._drop()
        super().close()


@dataclass(frozen=True)
class Stat:
    """What is known of an object without reading it."""

    st_size: int  # bytes
    st_mtime: float  # seconds since the epoch
    tag: str  # changes with the contents


@dataclass(frozen=True)
class ObjectPath:
    """An object, or a folder: a key before which other keys begin."""

    bucket: str  # s3://name
    key: str

    @classmethod
    def of(cls, url: str) -> ObjectPath:
        """From a URL. Raises UsageError for other URLs; what may be a secret in one is not repeated."""
        match = _URL.fullmatch(url)
        scheme = url.partition("://")[0]
        plain = match is not None and (match[3] is None or match[1].startswith("abfs"))
        if match is None or not plain or "?" in url or match[1] not in SCHEMES:
            shown = f"a URL that begins with {scheme}://" if scheme.isalnum() else "this URL"
            expected = "s3://BUCKET/KEY, gs://BUCKET/KEY, az://CONTAINER/KEY or https://HOST/PATH, without credentials in it"
            raise UsageError(f"{shown}: expected {expected}")
        where = f"{SCHEMES[match[1]]}://{match[2]}"
        parts = [part for part in (match[4] or "").split("/") if part]
        if match[3] and match[3] != os.environ.get(_ACCOUNT):
            raise UsageError(f"{where}: for this account set {_ACCOUNT}={match[3]}, and its credentials beside it")
        if {".", ".."} & set(parts) or not all(part.isprintable() for part in parts):
            raise UsageError(f"{where}: a key without . and .. as parts and without control characters is expected")
        if not parts:
            raise UsageError(f"{where}: a key is missing, give {where}/KEY")
        store_of(where)  # which says whether its credentials are there
        return cls(where, "/".join(parts))

    @property
    def store(self) -> Any:
        return store_of(self.bucket)

    @property
    def below(self) -> Any:
        return store_of(self.bucket, self.key)

    def __str__(self) -> str:
        return f"{self.bucket}/{self.key}"

    def __truediv__(self, name: str) -> ObjectPath:
        return ObjectPath(self.bucket, f"{self.key}/{name}".removeprefix("/"))

    def __lt__(self, other: ObjectPath) -> bool:
        return str(self) < str(other)

    @property
    def parent(self) -> ObjectPath:
        return ObjectPath(self.bucket, self.key.rpartition("/")[0])

    @property
    def name(self) -> str:
        return PurePosixPath(self.key).name

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.key).suffix

    def with_suffix(self, suffix: str) -> ObjectPath:
        return ObjectPath(self.bucket, str(PurePosixPath(self.key).with_suffix(suffix)))

    def absolute(self) -> ObjectPath:
        return self

    def resolve(self) -> ObjectPath:
        return self

    def mkdir(self, exist_ok: bool = False) -> None:
        """Do nothing: a folder is there with the first object in it."""

    def head(self) -> ObjectMeta:
        """What obstore says of it. Raises FileNotFoundError when there is no such object, and so does ``stat``."""
        return ask(self, lambda: obstore.head(self.store, self.key))

    def stat(self) -> Stat:
        meta = self.head()
        return Stat(meta["size"], meta["last_modified"].timestamp(), meta["e_tag"] or "")

    def is_file(self) -> bool:
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    @property
    def is_web(self) -> bool:
        """Whether it is read by ranges, and nothing lists what is below it."""
        return self.bucket.startswith("http")

    def is_dir(self) -> bool:
        return next(self.objects(1), None) is not None

    def exists(self) -> bool:
        return self.is_file() or self.is_dir()

    def open(self, mode: str = "rb") -> BufferedReader:
        assert mode == "rb", "objects are written whole"
        stat = self.stat()
        # bytes that small reads of a file are served from
        return BufferedReader(ObjectFile(self.store, self.key, str(self), stat.st_size, stat.tag or None), 1 << 20)

    def read_bytes(self, most: int | None = None) -> bytes:
        """Its contents, by one request. Raises FileNotFoundError when there is no such object, ValueError for more bytes."""

        def get() -> bytes:
            answer = obstore.get(self.store, self.key)
            if most is not None and answer.meta["size"] > most:
                raise ValueError(f"{format_bytes(answer.meta['size'])}, at most {format_bytes(most)} are read")
            return bytes(answer.bytes())

        return ask(self, get)

    def read_text(self, errors: str = "strict") -> str:
        return self.read_bytes().decode(errors=errors)

    def require_writable(self) -> None:
        """Raise UsageError for a page of the web."""
        if self.is_web:
            raise UsageError(f"{self}: what is on the web is only read; choose a folder or a bucket to write to")

    def write_bytes(self, content: bytes | Path) -> None:
        """Put an object in its place, whole: bytes, or what a file has."""
        self.require_writable()
        try:
            ask(self, lambda: obstore.put(self.store, self.key, content))
        except FileNotFoundError as error:
            raise CorruptDataError(f"{self}: cannot be written: {str(error)[:200]}") from None

    def create(self, content: bytes) -> Any:
        """Write an object where there is none; its version. None where there is one already."""
        self.require_writable()
        with translate_errors(self):
            try:
                return obstore.put(self.store, self.key, content, mode="create")
            except AlreadyExistsError:
                return None

    def replace(self, content: bytes, version: Any) -> Any:
        """Write an object that is still of a version; the next one. None where it is of another, or gone."""
        known: Any = {name: version[name] for name in ("e_tag", "version") if version[name] is not None}
        with translate_errors(self):
            try:
                return obstore.put(self.store, self.key, content, mode=known)
            except (PreconditionError, FileNotFoundError):
                return None

    def writer(self, part_bytes: int, parts: int) -> WritableFile:
        """Takes its contents one after the other; there is no object before ``close``. Up to ``parts`` are under way."""
        return obstore.open_writer(
            store_of(self.bucket, patience=limit()), self.key, buffer_size=part_bytes, max_concurrency=parts
        )

    def unlink(self, missing_ok: bool = False) -> None:
        try:
            ask(self, lambda: obstore.delete(self.store, self.key))
        except FileNotFoundError:
            if not missing_ok:
                raise

    def objects(self, chunk: int = 1000) -> Iterator[ObjectMeta]:
        """What obstore says of all objects below it, ``path`` by keys of the bucket. The web lists none."""
        patience, last = Patience(), ""
        while not self.is_web:
            try:
                with translate_errors(self, listing=True):
                    for some in obstore.list(self.store, self.key, chunk_size=chunk, offset=last or None):
                        yield from some
                        patience, last = Patience(), some[-1]["path"]
                return
            except StorageAwayError as error:
                patience.bear(error)

    def iterdir(self) -> Iterator[ObjectPath]:
        """Objects and folders in it; none of the web, which lists nothing."""
        if self.is_web:
            return
        found = ask(self, lambda: obstore.list_with_delimiter(self.store, self.key))
        for key in [*found["common_prefixes"], *(each["path"] for each in found["objects"])]:
            yield ObjectPath(self.bucket, key)

    def rglob(self, pattern: str) -> Iterator[ObjectPath]:
        for each in self.objects():
            if PurePosixPath(each["path"]).match(pattern):
                yield ObjectPath(self.bucket, each["path"])
