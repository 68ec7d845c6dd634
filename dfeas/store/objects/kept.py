"""Chunks of object stores kept on a disk of this machine, for later passes and later runs, and for several processes."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import UsageError
from dfeas.passes.survey import checksum

FREE_SHARE = 0.05
"""Nothing more is kept when less of the disk is free."""

_TRAILER = 4


@dataclass(frozen=True)
class KeptBlocks:
    """A folder with one file a chunk: its bytes and their crc32c. A file is named by the URL and the ETag of its chunk.

    Files appear whole, so that any number of processes may share the folder. What cannot be kept is no error.
    """

    folder: Path

    @classmethod
    def at(cls, folder: str) -> KeptBlocks:
        """Make the folder. Raises UsageError when it cannot be written."""
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--cache-dir {folder}: cannot be written: {error.strerror}") from None
        return cls(Path(folder))

    def _path(self, url: str, tag: int) -> Path:
        name = sha256(f"{url} {tag}".encode()).hexdigest()
        return self.folder / name[:2] / name[2:]

    def read(self, url: str, tag: int, take: Callable[[int], NDArray[np.uint8]]) -> NDArray[np.uint8] | None:
        """The bytes of a chunk, in a buffer; None when they are not here. A damaged file is removed."""
        path = self._path(url, tag)
        try:
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                content = take(size)
                got = file.readinto(content.data)
        except OSError:
            return None
        body = content[: size - _TRAILER]
        if got == size > _TRAILER and checksum(body).to_bytes(_TRAILER, "little") == content[size - _TRAILER :].tobytes():
            return body
        path.unlink(missing_ok=True)
        return None

    def write(self, url: str, tag: int, content: NDArray[np.uint8]) -> None:
        """Keep the bytes of a chunk, where there is room."""
        path = self._path(url, tag)
        part = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.part")
        try:
            usage = shutil.disk_usage(self.folder)
            if usage.free < FREE_SHARE * usage.total + content.size:
                return
            path.parent.mkdir(exist_ok=True)
            with part.open("wb") as file:
                file.write(content.data)
                file.write(checksum(content).to_bytes(_TRAILER, "little"))
            part.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
