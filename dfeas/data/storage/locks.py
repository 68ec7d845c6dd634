"""Who writes an output: one process has its lock, and that it was killed gives it back.

A lock of a folder is one of the system. There are none in an object store that go with the process: there it is an object that
was created where there was none, and that its writer writes again now and then; one that is old belongs to nobody.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from dfeas.data.storage.files import LOCK, hold_file, try_lock
from dfeas.data.storage.patience import persist, wait_by
from dfeas.data.storage.places import Place, translate_errors_at
from dfeas.errors import BadInputError, DfeasError, UsageError

if TYPE_CHECKING:
    from obstore import ObjectMeta

    from dfeas.data.storage.object_path import ObjectPath

logger = logging.getLogger("dfeas")


def claim(path: Path, marker: str) -> int:
    """Create an output folder, or take over and empty one that has no ``marker`` and that nobody writes. Returns the descriptor
    that holds the lock. Raises UsageError when the folder exists otherwise, or is being written.
    """
    abandoned = require_free(path, marker)
    try:
        if not abandoned:
            path.mkdir()
    except FileExistsError:
        raise exists_error(path) from None
    except FileNotFoundError:
        raise UsageError(f"{path.parent}: no such folder to write to") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    lock = reclaim(path, "wait for it or choose another output")
    try:
        if (path / marker).exists():  # its writer has finished between the look above and the lock
            raise FileExistsError
        _empty(path)
    except OSError:
        os.close(lock)
        raise exists_error(path) from None
    return lock


def exists_error(path: Place) -> UsageError:
    """The error for an output that is there."""
    return UsageError(f"{path}: exists already; choose another output or remove it")


def busy_error(path: Place, then: str = "wait for it or choose another output") -> UsageError:
    """The error for an output that another process writes."""
    return UsageError(f"{path}: another process is writing it; {then}")


def require_free(path: Path, marker: str) -> bool:
    """Whether a folder without ``marker`` is there, to be taken over. Raises UsageError when the path exists otherwise."""
    abandoned = path.is_dir() and (path / LOCK).exists() and not (path / marker).exists()
    if os.path.lexists(path) and not abandoned:
        raise exists_error(path)
    return abandoned


def reclaim(path: Path, then: str = "wait for it") -> int:
    """Lock an output folder to go on with what is in it. Raises UsageError when another process writes there."""
    try:
        lock = hold_file(path / LOCK)
    except FileNotFoundError:  # it has just given up
        lock = None
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    if lock is None:
        raise busy_error(path, then)
    return lock


def being_written(path: Place) -> bool:
    """Whether some process holds the lock of an output folder."""
    if not isinstance(path, Path):
        try:
            held = (path / LOCK).head()
            return not _is_over(path / LOCK, held) and time.time() - held["last_modified"].timestamp() < DEAD_SECONDS
        except FileNotFoundError:
            return False
    try:
        lock = os.open(path / LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        return not try_lock(lock, shared=True)
    finally:
        os.close(lock)


def _empty(path: Path) -> None:
    for entry in path.iterdir():
        if entry.name == LOCK:
            continue
        if entry.is_dir() and not entry.is_symlink():
            import shutil

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


@contextmanager
def hold(path: Place, marker: str | None = None, look: Callable[[], None] | None = None) -> Iterator[Place]:
    """Have the lock of an output that is begun, or goes on where there is no ``marker``. When the body raises it stays there,
    and the next one takes the output over. Raises UsageError as ``claim`` and ``reclaim``, and what ``look`` raises.
    """
    if not isinstance(path, Path):
        with ObjectLock.claim(path, marker, look):
            yield path
        return
    lock = reclaim(path) if marker is None else claim(path, marker)
    try:
        yield path.absolute()
    except BaseException:
        os.close(lock)
        raise
    release(path, lock)


BEAT_SECONDS = 10.0
"""How often a writer says that it lives."""
FRESH_SECONDS = 2 * BEAT_SECONDS
"""A process that has not said so for longer was frozen, and asks before it writes more."""
DEAD_SECONDS = 60.0
"""A lock that was written so long ago is taken over."""
LOOK_SECONDS = 1.0
"""Between two looks whether a writer lives."""


@contextmanager
def output_lock(path: ObjectPath, marker: str) -> Iterator[None]:
    """Hold the lock of an output, and remove everything again when the body raises. What a dead writer left is removed first.
    Raises UsageError when there is something already, or another process writes there.
    """
    with ObjectLock.claim(path, marker) as lock:
        try:
            with translate_errors_at(path):
                yield
            lock.require()
        except BaseException:
            if lock.held:
                with wait_by(time.sleep, 0.0), suppress(DfeasError):  # the body's says what is wrong
                    lock.clear()
            raise


def require_held(folder: Place, within: float = 0.0) -> None:
    """Raise UsageError when another process has taken over what this one writes; a lock of the system cannot be taken over. One
    that was renewed ``within`` so many seconds is held.
    """
    if not isinstance(folder, Path) and folder in _LOCKS:
        _LOCKS[folder].require(within)


_LOCKS: dict[ObjectPath, ObjectLock] = {}
"""Of this process."""


class ObjectLock:
    """A lock of this process in an object store: an object that says who has it, empty where nobody has it any more. As a
    context it is written now and then by a thread, and given back, or left empty when the body raises.
    """

    def __init__(self, path: ObjectPath, me: str, version: Any, abandoned: bool = False) -> None:
        self._path, self._me, self._version, self._abandoned = path, me, version, abandoned
        self.held = True  # until another one took it
        self._renewed = time.monotonic()
        self._stopped, self._turn = Event(), Lock()
        self._beats = Thread(target=self._beat, name="dfeas-lock", daemon=True)

    @classmethod
    def claim(cls, path: ObjectPath, marker: str | None = None, look: Callable[[], None] | None = None) -> ObjectLock:
        """Of an output that is not there yet, or was begun by a process that is dead: that is removed when it is entered, or
        goes on where there is no ``marker``. Raises UsageError when there is something else, or another process writes there;
        ``look`` raises it for what must stay, and is asked while this process has the lock.
        """
        import socket

        there, me = path / LOCK, f"{socket.gethostname()} {_machine()} {os.getpid()} {uuid.uuid4().hex}"
        try:
            version = _put(there, me)
            if begun := version is None:
                if marker is not None and (path / marker).is_file():
                    raise exists_error(path)
                version = _inherit(path, me)
                try:
                    if marker is not None and (path / marker).is_file():  # its writer has finished meanwhile
                        raise exists_error(path)
                    if look is not None:
                        look()
                except UsageError:
                    there.unlink(missing_ok=True)
                    raise
            elif marker is not None and (set(path.rglob("*")) - {there} or path.is_file()):
                there.unlink()
                raise exists_error(path)
        except BadInputError as error:
            raise UsageError(str(error)) from None
        return cls(path, me, version, begun and marker is not None)

    def __enter__(self) -> ObjectLock:
        _LOCKS[self._path] = self
        self._beats.start()
        try:
            if self._abandoned:
                self.clear()  # which may take longer than the dead are waited for
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        self._stopped.set()
        self._beats.join()
        del _LOCKS[self._path]
        if self.held:
            with wait_by(time.sleep, 0.0), suppress(DfeasError):  # nobody writes it any more, and it will be dead
                if kind is None or not any(each.name != LOCK for each in self._path.iterdir()):
                    (self._path / LOCK).unlink(missing_ok=True)
                else:
                    (self._path / LOCK).replace(b"", self._version)

    def _beat(self) -> None:
        while self.held and not self._stopped.wait(BEAT_SECONDS):
            self._renew()

    def _renew(self) -> None:
        """What was lost is not taken again. A store that does not answer is not waited for: the writes themselves say so."""
        with self._turn, wait_by(time.sleep, 0.0), suppress(DfeasError):
            if self.held:
                self._version = _put(self._path / LOCK, self._me, self._version)
                self.held = self._version is not None
                self._renewed = time.monotonic()

    def clear(self) -> None:
        """Remove all other objects of the output. Raises UsageError when another process took the lock: some are its own."""
        for each in set(self._path.rglob("*")) - {self._path / LOCK}:
            if not self.held:
                self.require()
            each.unlink(missing_ok=True)

    def require(self, within: float = 0.0) -> None:
        """Raise UsageError when another process took the lock; otherwise say that this one lives, if it did not ``within`` so
        many seconds.
        """
        if time.monotonic() >= self._renewed + within:
            self._renew()
        if not self.held:
            raise UsageError(f"{self._path}: another process took it over, this one was silent too long; leave it to that one")


def _inherit(path: ObjectPath, me: str) -> Any:
    """Take the lock of a writer that has ended, or wait whether it is dead. Raises UsageError for one that lives."""
    there, began, silent, first = path / LOCK, time.monotonic(), 0.0, ""
    while True:
        held = None
        with suppress(FileNotFoundError):  # its writer has just ended
            held = there.head()
        if held is None or _is_over(there, held) or silent + time.monotonic() - began >= DEAD_SECONDS:
            version = _put(there, me, held)
            if version is not None:
                return version
        elif not first:
            first, silent = str(held["e_tag"]), _silence(path, held)
            text = "%s: another process said %.0f s ago that it writes here; it is dead if it is silent for %.0f s"
            logger.warning(text, path, silent, DEAD_SECONDS)
        elif held["e_tag"] != first:
            raise busy_error(path)
        else:
            time.sleep(min(LOOK_SECONDS, max(0.0, DEAD_SECONDS - silent)))


def _put(lock: ObjectPath, me: str, version: Any = None) -> Any:
    """Write a lock that is of a version, or not there; the next version. None where another process did."""
    text = f"{me} {uuid.uuid4().hex}\n".encode()
    written = persist(lambda: lock.create(text) if version is None else lock.replace(text, version))
    with suppress(FileNotFoundError):
        if written is None and lock.read_text().startswith(me):  # this process wrote it, and the answer was lost
            return lock.head()
    return written


def _silence(path: ObjectPath, held: ObjectMeta) -> float:
    """Seconds since a lock was written, by the clock of the store."""
    probe = path / f"{LOCK}.{uuid.uuid4().hex}"
    probe.write_bytes(b"")
    now = probe.head()["last_modified"]
    probe.unlink()
    return (now - held["last_modified"]).total_seconds()


def _is_over(lock: ObjectPath, held: ObjectMeta) -> bool:
    """Whether it says that nobody has it, or who had it was a process of this machine that is no more."""
    if not held["size"]:
        return True
    import psutil  # loading it takes as long as a small solve

    words = lock.read_text(errors="replace").split()
    return words[1:2] == [_machine()] and words[2].isdigit() and not psutil.pid_exists(int(words[2]))


@cache
def _machine() -> str:
    """By which it is known whose numbers of processes are meant; another one after a boot, and in each container."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() + os.readlink("/proc/self/ns/pid")
    except OSError:
        return uuid.uuid4().hex
