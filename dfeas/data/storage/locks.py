"""Locks of files: held through an open file, and given back when it is closed or its process ends, however it ends.

``flock`` on Linux and macOS, on Windows the first byte of the file. filelock and portalocker do the same, but one empties,
makes and removes its files by itself, and a file here is the mark of an output that nobody has finished; the other needs
pywin32.
"""

from __future__ import annotations

import contextlib
import errno
import os
from importlib import import_module
from pathlib import Path
from typing import Any

_unix: Any
_windows: Any
try:
    _unix, _windows = import_module("fcntl"), None
except ImportError:
    _unix, _windows = None, import_module("msvcrt")

_TAKEN = (errno.EACCES, errno.EDEADLK)
"""What Windows says of a byte that another one holds."""


LOCK = "dfeas.lock"
"""The file that whoever writes a folder holds."""


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file, unless another open file holds its lock; whether that was done. Windows has no ``shared`` locks, so
    that one is like the others there.
    """
    try:
        if _unix is not None:
            _unix.flock(descriptor, (_unix.LOCK_SH if shared else _unix.LOCK_EX) | _unix.LOCK_NB)
        else:
            os.lseek(descriptor, 0, os.SEEK_SET)
            _windows.locking(descriptor, _windows.LK_NBLCK, 1)
    except BlockingIOError:
        return False
    except OSError as error:
        if _windows is None or error.errno not in _TAKEN:
            raise
        return False
    return True


def close(descriptor: int) -> None:
    """Close a file, and with it give its lock back, if it holds one: Windows would do so some time later."""
    if _windows is not None:
        with contextlib.suppress(OSError):
            os.lseek(descriptor, 0, os.SEEK_SET)
            _windows.locking(descriptor, _windows.LK_UNLCK, 1)
    os.close(descriptor)


def remove(path: Path, descriptor: int) -> None:
    """Remove a locked file and give the lock back. Raises OSError when it cannot be removed; the lock is given back then, too.

    First the name goes, so that nobody locks what is about to go. Windows keeps the names of open files: there it is closed
    first, and stays where somebody else has opened it meanwhile.
    """
    try:
        if _windows is None:
            path.unlink(missing_ok=True)
    finally:
        close(descriptor)
    if _windows is not None:
        path.unlink(missing_ok=True)
