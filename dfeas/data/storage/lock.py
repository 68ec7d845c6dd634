"""Output folders: who writes there, and what an interrupted writer left. The lock needs ``flock``."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

from dfeas.data.storage.layout import APPENDED, LOCK
from dfeas.errors import UsageError


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
        raise _taken(path) from None
    except FileNotFoundError:
        raise UsageError(f"{path.parent}: no such folder to write to") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # its writer may have finished, or given up, between the look above and the lock
        if (path / marker).exists() or not os.path.samestat(os.fstat(lock), (path / LOCK).stat()):
            raise FileExistsError
        _empty(path)
    except BlockingIOError:
        os.close(lock)
        raise UsageError(f"{path}: another process is writing it; wait for it or choose another output") from None
    except OSError:
        os.close(lock)
        raise _taken(path) from None
    return lock


def _taken(path: Path) -> UsageError:
    return UsageError(f"{path}: exists already; choose another output or remove it")


def require_free(path: Path, marker: str) -> bool:
    """Whether a folder without ``marker`` is there, to be taken over. Raises UsageError when the path exists otherwise."""
    abandoned = path.is_dir() and (path / LOCK).exists() and not any((path / name).exists() for name in (marker, APPENDED))
    if os.path.lexists(path) and not abandoned:
        raise _taken(path)
    return abandoned


def reclaim(path: Path) -> int:
    """Lock an output folder to go on with what is in it. Raises UsageError when another process writes there."""
    try:
        lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(lock), (path / LOCK).stat()):
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
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _empty(path: Path) -> None:
    """Remove all but the lock."""
    for entry in path.iterdir():
        if entry.name == LOCK:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def discard(path: Path) -> None:
    """Remove the folder, the lock last: what a thread of zarr may still be writing leaves a folder that can be taken over."""
    for _ in range(20):
        _empty(path)
        if [entry.name for entry in path.iterdir()] == [LOCK]:
            break
    try:
        (path / LOCK).unlink()
        path.rmdir()
    except OSError:
        (path / LOCK).touch()


def release(path: Path, lock: int) -> None:
    """Give the lock of a finished output back."""
    (path / LOCK).unlink(missing_ok=True)
    os.close(lock)
