"""The tile cache: what questions to pairs of runs compute from the points and can use again, in memory and on a local disk.

A file gets its name when it is whole. The folder has a name that no other run has; a process holds a lock in it as long as it
lives, and the first one that finds a folder whose lock nobody holds, because its process was killed, removes it.

As with blocks all pairs come in a cycle: the first ones are kept, and nothing is dropped for the sake of another.
"""

from __future__ import annotations

import os
import shutil
import uuid
import weakref
from collections.abc import Hashable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.storage.files import hold_file, try_lock
from dfeas.errors import CorruptDataError, UsageError

PREFIX = "dfeas-tiles-"
LOCK = "lock"


class Spill:
    """A folder below ``parent``; threads may write different names at once. Raises UsageError when it cannot be made."""

    def __init__(self, parent: Path) -> None:
        try:
            parent.mkdir(parents=True, exist_ok=True)
            _remove_left_behind(parent)
            self.folder, self._lock = _locked_folder(parent)
        except OSError as error:
            raise UsageError(f"{parent}: no scratch folder can be made there: {error.strerror}; choose another") from None
        self._full = False
        self._close = weakref.finalize(self, _close, self.folder, self._lock, os.getpid())  # at the end of the process, too

    def write(self, name: str, arrays: Iterable[NDArray[Any]], size: int) -> bool:
        """Keep arrays one behind the other, ``size`` bytes in all; whether there is room for them."""
        path = self.folder / name
        part = path.with_suffix(".part")
        try:
            disk = shutil.disk_usage(self.folder)
            if self._full or disk.free - size < disk.total // 20:  # one part of so many of the disk stays free
                self._full = True
                return False
            with part.open("wb") as file:
                for array in arrays:
                    file.write(np.ascontiguousarray(array).data)
            part.replace(path)
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
        self._close()


def _locked_folder(parent: Path) -> tuple[Path, int]:
    """A new folder, and its lock. Another process may take it for left behind before it is locked: then one more is made."""
    while True:
        folder = parent / f"{PREFIX}{uuid.uuid4().hex}"
        folder.mkdir(mode=0o700)
        with suppress(FileNotFoundError):
            if (lock := hold_file(folder / LOCK)) is not None:
                return folder, lock


def _close(folder: Path, lock: int, owner: int) -> None:
    """A process that forked from its owner leaves a folder alone."""
    if os.getpid() == owner:
        _remove_folder(folder, lock)


def _remove_folder(folder: Path, lock: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


def _remove_left_behind(parent: Path) -> None:
    """Folders of processes that were killed."""
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):  # not ours
            lock = os.open(folder / LOCK, os.O_WRONLY)
            if try_lock(lock):
                _remove_folder(folder, lock)
            else:
                os.close(lock)  # its process lives


class TileCache:
    """Values of one process by key. Safe to use from several threads that work on different keys."""

    def __init__(self, budget: int, scratch: Path | None = None) -> None:
        self.budget = budget  # bytes in memory
        self.spill = None if scratch is None else Spill(scratch)  # for what it does not hold
        self.bytes = 0  # that were taken of the budget
        self._values: dict[Hashable, Any] = {}
        self._lock = Lock()

    def get(self, key: Hashable) -> Any:
        return self._values.get(key)

    def take(self, size: int) -> bool:
        """Whether there is room for so many bytes more; they are taken then."""
        with self._lock:
            if self.bytes + size > self.budget:
                return False
            self.bytes += size
            return True

    def put(self, key: Hashable, value: Any) -> None:
        """Keep a value whose bytes were taken, or that is in ``spill``."""
        self._values[key] = value

    def close(self) -> None:
        if self.spill is not None:
            self.spill.close()
