"""Who writes an output: one process has its lock, and that it was killed gives it back.

A lock of a folder is one of the system. There are none in an object store that go with the process: there it is an object that
was created where there was none, and that its writer writes again now and then; one that is old belongs to nobody.
"""

from __future__ import annotations

import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from dfeas.data.storage.files import LOCK, try_lock
from dfeas.data.storage.patience import waiting
from dfeas.data.storage.places import Place, translate_errors_at
from dfeas.errors import BadInputError, CorruptDataError, DfeasError, StorageAwayError, UsageError

if TYPE_CHECKING:
    from dfeas.data.storage.object_store import ObjectPath


def claim(path: Path, marker: str) -> int:
    """Create an output folder, or take over and empty one that has no ``marker`` and that nobody writes.

    Returns the descriptor that holds the lock. Raises UsageError when the folder exists otherwise, or is being written.
    """
    abandoned = require_free(path, marker)
    try:
        if not abandoned:
            path.mkdir()
        lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except FileExistsError:
        raise _exists_error(path) from None
    except FileNotFoundError:
        raise UsageError(f"{path.parent}: no such folder to write to") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        if not try_lock(lock):
            raise UsageError(f"{path}: another process is writing it; wait for it or choose another output")
        # its writer may have finished, or given up, between the look above and the lock
        if (path / marker).exists() or not os.path.samestat(os.fstat(lock), (path / LOCK).stat()):
            raise FileExistsError
        _empty(path)
    except UsageError:
        os.close(lock)
        raise
    except OSError:
        os.close(lock)
        raise _exists_error(path) from None
    return lock


def _exists_error(path: Place) -> UsageError:
    return UsageError(f"{path}: exists already; choose another output or remove it")


def require_free(path: Path, marker: str) -> bool:
    """Whether a folder without ``marker`` is there, to be taken over. Raises UsageError when the path exists otherwise."""
    abandoned = path.is_dir() and (path / LOCK).exists() and not (path / marker).exists()
    if os.path.lexists(path) and not abandoned:
        raise _exists_error(path)
    return abandoned


def reclaim(path: Path) -> int:
    """Lock an output folder to go on with what is in it. Raises UsageError when another process writes there."""
    try:
        lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if not try_lock(lock) or not os.path.samestat(os.fstat(lock), (path / LOCK).stat()):
                raise BlockingIOError
        except OSError:
            os.close(lock)
            raise
    except (BlockingIOError, FileNotFoundError):
        raise UsageError(f"{path}: another process is writing it; wait for it") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    return lock


def being_written(path: Path) -> bool:
    """Whether some process holds the lock of an output folder."""
    try:
        lock = os.open(path / LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not try_lock(lock, shared=True)
    finally:
        os.close(lock)


def _empty(path: Path) -> None:
    """Remove all but the lock."""
    for entry in path.iterdir():
        if entry.name == LOCK:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def discard(path: Path, lock: int) -> None:
    """Remove the folder, the lock last: what a worker may still be writing leaves a folder that can be taken over."""
    for _ in range(20):
        _empty(path)
        if [entry.name for entry in path.iterdir()] == [LOCK]:
            break
    try:
        release(path, lock)
        path.rmdir()
    except OSError:
        (path / LOCK).touch()


def release(path: Path, lock: int) -> None:
    """Give the lock of a finished output back; first its name goes, so that nobody locks what is about to go."""
    try:
        (path / LOCK).unlink(missing_ok=True)
    finally:
        os.close(lock)


def abandon(lock: int) -> None:
    """Give the lock of an output back that is not finished: its file stays, and the next one takes the folder over."""
    os.close(lock)


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
            with translate_errors_at(path):
                yield
        finally:
            stopped.set()
            beats.join()
        lock.require()
    except BaseException:
        if lock.held:
            with waiting(time.sleep, 0.0), suppress(StorageAwayError):  # which the body has waited for
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
        version = there.create(_who())
        if version is None:
            if (path / marker).is_file():
                raise _exists_error(path)
            return cls._take_over(path)
        if set(path.rglob("*")) - {there} or path.is_file():
            there.unlink()
            raise _exists_error(path)
        return cls(path, version)

    @classmethod
    def _take_over(cls, path: ObjectPath) -> _Lock:
        """The lock of a writer that is dead, and its output removed."""
        there, probe, version = path / LOCK, path / f"{LOCK}.{os.getpid()}", None
        with suppress(FileNotFoundError):  # its writer has just ended
            held = there.head()
            probe.write_bytes(b"")  # the time as the store sees it
            age = probe.head()["last_modified"] - held["last_modified"]
            probe.unlink()
            if age.total_seconds() >= DEAD_SECONDS:
                version = there.replace(_who(), held)
        if version is None:
            text = f"another process writes it, or died less than {DEAD_SECONDS:.0f} s ago; wait, or choose another output"
            raise UsageError(f"{path}: {text}")
        _clear(path, but=there)
        return cls(path, version)

    def beat(self, stopped: Event) -> None:
        while self.held and not stopped.wait(BEAT_SECONDS):
            self._renew()

    def _renew(self) -> None:
        with suppress(DfeasError):  # of a store that does not answer: the writes themselves will say so
            self._tag = (self._path / LOCK).replace(_who(), self._tag)
            self.held = self._tag is not None

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


def _clear(path: ObjectPath, but: ObjectPath | None = None) -> None:
    """Remove all objects below a folder, the lock last."""
    lock = path / LOCK
    for each in set(path.rglob("*")) - {lock}:
        each.unlink(missing_ok=True)
    if but is None:
        lock.unlink(missing_ok=True)
