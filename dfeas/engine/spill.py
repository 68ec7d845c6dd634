"""Spill: arrays in a folder of the local disk, for the length of a run.

A file gets its name when it is whole. The folder has a name that no other run has; a process holds a lock on it as long as it
lives, and the first one that finds a folder without one, whose process was killed, removes it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import CorruptDataError, UsageError

PREFIX = "dfeas-tiles-"
LOCK = "lock"
FREE_SHARE = 20
"""One part of so many of the disk stays free."""


class Spill:
    """A folder below ``parent``. Safe to use from several threads that write different names. Raises UsageError when it cannot
    be made.
    """

    def __init__(self, parent: Path) -> None:
        self.folder = parent / f"{PREFIX}{uuid.uuid4().hex}"
        try:
            parent.mkdir(parents=True, exist_ok=True)
            _remove_left_behind(parent)
            made = parent / f".{self.folder.name}"
            made.mkdir(mode=0o700)
            self._lock = os.open(made / LOCK, os.O_WRONLY | os.O_CREAT, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            made.rename(self.folder)  # locked, when others see it
        except OSError as error:
            raise UsageError(f"{parent}: no scratch folder can be made there: {error.strerror}; choose another") from None
        self._full = False
        self._close = weakref.finalize(self, _removed, self.folder, self._lock)  # at the end of the process, too

    def write(self, name: str, arrays: Iterable[NDArray[Any]], size: int) -> bool:
        """Keep arrays one behind the other, ``size`` bytes in all; whether there is room for them."""
        path = self.folder / name
        part = path.with_suffix(".part")
        try:
            disk = shutil.disk_usage(self.folder)
            if self._full or disk.free - size < disk.total // FREE_SHARE:
                self._full = True
                return False
            with part.open("wb") as file:
                for array in arrays:
                    file.write(np.ascontiguousarray(array).data)
            part.rename(path)
        except OSError:  # the disk is full, or gone: what is not kept is computed again
            self._full = True
            part.unlink(missing_ok=True)
            return False
        return True

    def read(self, name: str, offset: int, shape: tuple[int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
        """One of the arrays, from a byte on. Raises CorruptDataError when it is gone."""
        path, count = self.folder / name, shape[0] * shape[1]
        try:
            found = np.fromfile(path, dtype, count, offset=offset)
        except OSError:
            found = np.empty(0)
        if len(found) < count:
            raise CorruptDataError(f"{path}: gone from the scratch folder during the run; leave it alone, and resume")
        return found.reshape(shape)

    def close(self) -> None:
        """Remove the folder."""
        self._close()


def _removed(folder: Path, lock: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


def _remove_left_behind(parent: Path) -> None:
    """Folders of processes that were killed."""
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            lock = os.open(folder / LOCK, os.O_WRONLY)
        except OSError:
            continue  # not ours
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            continue  # its process lives
        finally:
            os.close(lock)
