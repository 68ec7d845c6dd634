"""Scratch: n-vectors of float64 beside a run, a plain file each. For the length of a run, on a path that all workers see."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import crc32c
import numpy as np
from numpy.typing import NDArray

from dfeas.errors import CorruptDataError

WIDTH = 8
"""Bytes of an entry."""

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
                data, done = np.ascontiguousarray(values, np.float64).data.cast("B"), 0
                while done < len(data):
                    done += os.pwrite(descriptor, data[done:], first * WIDTH + done)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise CorruptDataError(
                f"{self._path(name)}: scratch storage cannot be written: {error.strerror}; choose --out where there is room"
            ) from None

    def read(self, name: str, rows: range) -> NDArray[np.float64]:
        """Some consecutive entries. Raises CorruptDataError when they were never written, or cannot be seen from here."""
        values = np.fromfile(self._path(name), np.float64, len(rows), offset=rows.start * WIDTH) if self.has(name) else ()
        if len(values) < len(rows):
            raise CorruptDataError(
                f"{self._path(name)}: entries {rows.start} .. {rows.stop - 1} are missing; "
                "all workers must see this folder: choose --out on storage that they share"
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
