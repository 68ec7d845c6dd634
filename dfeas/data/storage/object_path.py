"""A place in an object store with the methods of pathlib.Path that data is opened by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import obstore

from dfeas.data.storage.bucket import Bucket, ObjectFile, parse, translate_errors
from dfeas.errors import CorruptDataError

if TYPE_CHECKING:
    from obstore import ObjectMeta, WritableFile

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
        with translate_errors(self):
            meta = obstore.head(self.bucket.store, self.key)
        return Stat(meta["size"], meta["e_tag"] or "")

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
        stat = self.stat()
        return BufferedReader(ObjectFile(self.bucket.store, self.key, str(self), stat.st_size, stat.tag), BUFFER)

    def read_bytes(self) -> bytes:
        """Its contents. Raises FileNotFoundError when there is no such object."""
        with translate_errors(self):
            return bytes(obstore.get(self.bucket.store, self.key).bytes())

    def read_text(self, errors: str = "strict") -> str:
        return self.read_bytes().decode(errors=errors)

    def write_bytes(self, content: bytes) -> None:
        try:
            with translate_errors(self):
                obstore.put(self.bucket.store, self.key, content)
        except FileNotFoundError as error:
            raise CorruptDataError(f"{self}: cannot be written: {str(error)[:200]}") from None

    def writer(self, part_bytes: int, parts: int) -> WritableFile:
        """Takes its contents one after the other; there is no object before ``close``. Up to ``parts`` are under way."""
        return obstore.open_writer(self.bucket.store, self.key, buffer_size=part_bytes, max_concurrency=parts)

    def unlink(self, missing_ok: bool = False) -> None:
        try:
            with translate_errors(self):
                obstore.delete(self.bucket.store, self.key)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def listed(self) -> Iterator[ObjectMeta]:
        """What obstore says of all objects below it: ``path``, a key of the bucket, ``size``, ``e_tag``."""
        return self._listed(1000)

    def _listed(self, chunk: int) -> Iterator[ObjectMeta]:
        with translate_errors(self):
            for some in obstore.list(self.bucket.store, self.key, chunk_size=chunk):
                yield from some

    def rglob(self, pattern: str) -> Iterator[ObjectPath]:
        """Objects below it whose names match."""
        for each in self.listed():
            if PurePosixPath(each["path"]).match(pattern):
                yield ObjectPath(self.bucket, each["path"])
