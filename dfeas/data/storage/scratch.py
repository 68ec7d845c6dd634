"""Folders on local disks: n-vectors of a run on scratch storage, and who writes an output."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import crc32c
import numpy as np
from numpy.typing import NDArray

from dfeas.data.storage.files import LOCK, try_lock
from dfeas.errors import CorruptDataError, UsageError, spell

WIDTH = 8
"""Bytes of an entry of a vector."""

CHUNK = 16 << 20
"""Bytes that are read at a time."""


@dataclass(frozen=True)
class Seal:
    """By which a vector is known again."""

    size: int  # bytes
    crc: int  # crc32c
    file: int  # inode: vectors are written once, so the same file has the same entries


@dataclass(frozen=True)
class Scratch:
    """A folder of n-vectors. Ranges of one vector may be written at the same time, by different processes.

    Raises CorruptDataError when storage fails.
    """

    folder: Path

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.f64"

    def write(self, name: str, first: int, values: NDArray[np.float64]) -> None:
        """Entries first, first + 1, .. of a vector."""
        try:
            self.folder.mkdir(exist_ok=True)
            descriptor = os.open(self._path(name), os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.lseek(descriptor, first * WIDTH, os.SEEK_SET)
                data, done = np.ascontiguousarray(values, np.float64).data.cast("B"), 0
                while done < len(data):
                    done += os.write(descriptor, data[done:])
            finally:
                os.close(descriptor)
        except OSError as error:
            raise CorruptDataError(
                f"{self._path(name)}: cannot be written: {error.strerror}; choose {spell('out')} where there is room"
            ) from None

    def read(self, name: str, rows: range) -> NDArray[np.float64]:
        """Some consecutive entries. Raises CorruptDataError when they were never written, or cannot be seen from here."""
        values = np.fromfile(self._path(name), np.float64, len(rows), offset=rows.start * WIDTH) if self.has(name) else ()
        if len(values) < len(rows):
            raise CorruptDataError(
                f"{self._path(name)}: entries {rows.start} .. {rows.stop - 1} are missing; "
                f"all workers must see this folder: choose {spell('out')} on storage that they share"
            )
        return np.asarray(values)

    def has(self, name: str) -> bool:
        """Whether there is such a vector."""
        return self._path(name).is_file()

    def keep(self, names: Collection[str]) -> None:
        for path in self.folder.glob("*.f64"):
            if path.name.removesuffix(".f64") not in names:
                path.unlink()

    @property
    def names(self) -> list[str]:
        return sorted(path.name.removesuffix(".f64") for path in self.folder.glob("*.f64"))

    def seal(self, name: str) -> Seal:
        """Of a whole vector. Raises CorruptDataError when it cannot be read."""
        path, crc = self._path(name), 0
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                while chunk := file.read(CHUNK):
                    crc = crc32c.crc32c(chunk, crc)
        except OSError as error:
            raise CorruptDataError(f"{path}: {error.strerror}") from None
        return Seal(status.st_size, crc, status.st_ino)

    def same(self, name: str, seal: Seal) -> bool:
        """Whether a vector is the file that was sealed, without reading it."""
        return self._path(name).stat().st_ino == seal.file

    def take(self, other: Scratch) -> None:
        """Give all vectors of another folder a second name here, or copy them where storage has no second names.

        They are on the disk afterwards, also when the power fails.
        """
        for path in sorted(other.folder.glob("*.f64")):
            self.folder.mkdir(exist_ok=True)
            try:
                with path.open("rb") as file:
                    os.fsync(file.fileno())
                try:
                    os.link(path, self.folder / path.name)
                except OSError:
                    shutil.copyfile(path, self.folder / path.name)
            except OSError as error:
                raise CorruptDataError(f"{path}: scratch storage cannot be kept: {error.strerror}") from None

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


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


def _exists_error(path: Path) -> UsageError:
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
