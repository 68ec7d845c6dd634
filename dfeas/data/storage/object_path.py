"""A place in an object store with the methods of pathlib.Path that data is opened by, and its lock while it is written.

There are no locks in an object store that go with the process. So the lock is an object that was created where there was none,
and that its writer writes again now and then; one that is old belongs to nobody.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import PurePosixPath
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from dfeas.data.storage.bucket import Bucket, ObjectFile, parse, translate_errors
from dfeas.data.storage.files import LOCK
from dfeas.errors import BadInputError, CorruptDataError, UsageError

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


BEAT_SECONDS = 20.0
"""How often a writer says that it lives."""

DEAD_SECONDS = 120.0
"""A lock that was written so long ago is taken over."""


@contextmanager
def output_lock(path: ObjectPath, marker: str) -> Iterator[None]:
    """Hold the lock of an output, and remove everything again when the body raises. What a dead writer left is removed first.

    Raises UsageError when there is something already, or another process writes there.
    """
    try:
        lock = _Lock.taken(path, marker)
    except BadInputError as error:
        raise UsageError(str(error)) from None
    stopped = Event()
    beats = Thread(target=lock.beat, args=(stopped,), name="dfeas-lock", daemon=True)
    beats.start()
    try:
        try:
            with translate_errors(path):
                yield
        finally:
            stopped.set()
            beats.join()
        lock.require()
    except BaseException:
        if lock.held:
            _clear(path)
        raise
    (path / LOCK).unlink(missing_ok=True)


class _Lock:
    """The lock of this process; ``held`` until another one took it."""

    def __init__(self, path: ObjectPath, tag: Any) -> None:
        self._path, self._tag, self.held = path, tag, True

    @classmethod
    def taken(cls, path: ObjectPath, marker: str) -> _Lock:
        there = path / LOCK
        taken = UsageError(f"{path}: exists already; choose another output or remove it")
        with translate_errors(path):
            try:
                version = obstore.put(there.bucket.store, there.key, _who(), mode="create")
            except AlreadyExistsError:
                if (path / marker).is_file():
                    raise taken from None
                return cls._taken_over(path)
        others = {ObjectPath(path.bucket, each["path"]) for each in path.listed()} - {there}
        if others or path.is_file():
            there.unlink()
            raise taken
        return cls(path, version)

    @classmethod
    def _taken_over(cls, path: ObjectPath) -> _Lock:
        """The lock of a writer that is dead, and its output removed."""
        there = path / LOCK
        busy = UsageError(
            f"{path}: another process writes it, or died less than {DEAD_SECONDS:.0f} s ago; wait, or choose another output"
        )
        try:
            with translate_errors(path):
                held = obstore.head(there.bucket.store, there.key)
                probe = path / f"{LOCK}.{os.getpid()}"
                probe.write_bytes(b"")  # the time as the store sees it
                age = obstore.head(probe.bucket.store, probe.key)["last_modified"] - held["last_modified"]
                probe.unlink()
                if age.total_seconds() < DEAD_SECONDS:
                    raise busy
                try:
                    version = obstore.put(there.bucket.store, there.key, _who(), mode=_version(held))
                except PreconditionError:
                    raise busy from None
        except FileNotFoundError:  # its writer has just ended
            raise busy from None
        _clear(path, but=there)
        return cls(path, version)

    def beat(self, stopped: Event) -> None:
        """Say now and then that this process lives."""
        while self.held and not stopped.wait(BEAT_SECONDS):
            self._renew()

    def _renew(self) -> None:
        there = self._path / LOCK
        try:
            self._tag = obstore.put(there.bucket.store, there.key, _who(), mode=_version(self._tag))
        except (PreconditionError, FileNotFoundError):
            self.held = False
        except BaseError:
            return  # the writes themselves will say so

    def require(self) -> None:
        """Raise CorruptDataError when another process took the lock; nobody says any more that this one lives."""
        if self.held:
            self._renew()
        if not self.held:
            raise CorruptDataError(
                f"{self._path}: another process took the output over, this one was silent too long; run again"
            )


def _who() -> bytes:
    return f"{socket.gethostname()} {os.getpid()} {os.urandom(8).hex()}\n".encode()


def _version(meta: Any) -> Any:
    return {name: meta[name] for name in ("e_tag", "version") if meta[name] is not None}


def _clear(path: ObjectPath, but: ObjectPath | None = None) -> None:
    """Remove all objects below a folder, the lock last."""
    lock = path / LOCK
    for each in list(path.listed()):
        if each["path"] != lock.key:
            ObjectPath(path.bucket, each["path"]).unlink(missing_ok=True)
    if but is None:
        lock.unlink(missing_ok=True)
