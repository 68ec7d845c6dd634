"""The lock of an output in an object store, while it is written.

There are no locks in an object store that go with the process. So the lock is an object that was created where there was none,
and that its writer writes again now and then; one that is old belongs to nobody.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from dfeas.data.storage.files import LOCK
from dfeas.data.storage.object_store import ObjectPath, translate_errors
from dfeas.errors import BadInputError, CorruptDataError, UsageError

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
        lock = _Lock.take(path, marker)
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
    def take(cls, path: ObjectPath, marker: str) -> _Lock:
        there = path / LOCK
        taken = UsageError(f"{path}: exists already; choose another output or remove it")
        with translate_errors(path):
            try:
                version = obstore.put(there.store, there.key, _who(), mode="create")
            except AlreadyExistsError:
                if (path / marker).is_file():
                    raise taken from None
                return cls._take_over(path)
        others = {ObjectPath(path.bucket, each["path"]) for each in path.objects()} - {there}
        if others or path.is_file():
            there.unlink()
            raise taken
        return cls(path, version)

    @classmethod
    def _take_over(cls, path: ObjectPath) -> _Lock:
        """The lock of a writer that is dead, and its output removed."""
        there = path / LOCK
        busy = UsageError(
            f"{path}: another process writes it, or died less than {DEAD_SECONDS:.0f} s ago; wait, or choose another output"
        )
        try:
            with translate_errors(path):
                held = obstore.head(there.store, there.key)
                probe = path / f"{LOCK}.{os.getpid()}"
                probe.write_bytes(b"")  # the time as the store sees it
                age = obstore.head(probe.store, probe.key)["last_modified"] - held["last_modified"]
                probe.unlink()
                if age.total_seconds() < DEAD_SECONDS:
                    raise busy
                try:
                    version = obstore.put(there.store, there.key, _who(), mode=_version(held))
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
            self._tag = obstore.put(there.store, there.key, _who(), mode=_version(self._tag))
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
    for each in list(path.objects()):
        if each["path"] != lock.key:
            ObjectPath(path.bucket, each["path"]).unlink(missing_ok=True)
    if but is None:
        lock.unlink(missing_ok=True)
