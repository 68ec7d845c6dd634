"""Text that grows by lines while others read it: a file that is appended to, or, in an object store, where nothing is appended
to, an object and parts that go on with it.

RUN/trace.jsonl         the text as it was when the journal was opened, and the whole of it once it is closed
RUN/trace/000000004096  what came after so many bytes of it, an object for each time that it was saved
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dfeas.data.storage.places import Place, remove

if TYPE_CHECKING:
    from dfeas.data.storage.object_store import ObjectPath


class Journal(Protocol):
    """Is written by one process. Raises OSError, or what an object store does, where storage takes nothing."""

    @property
    def size(self) -> int:
        """Bytes that were appended."""

    def append(self, text: bytes) -> None:
        """All of it or nothing."""

    def save(self) -> None:
        """Others can read what was appended so far."""

    def close(self) -> None:
        """Nothing will be appended any more."""


class FileJournal:
    """Nothing is kept open: a run may have a thousand classes."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path.absolute()
        with path.open("ab") as file:
            if file.tell() > size:
                file.truncate(size)

    @property
    def size(self) -> int:
        return self._path.stat().st_size

    def append(self, text: bytes) -> None:
        with self._path.open("ab", buffering=0) as file:
            end = file.tell()
            if file.write(text) < len(text):
                file.truncate(end)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def save(self) -> None:
        """Do nothing: it is seen at once."""

    def close(self) -> None:
        """Do nothing."""


class ObjectJournal:
    """Keeps in memory what was not saved. All that is written is twice the text, however often it is saved."""

    def __init__(self, path: ObjectPath, size: int | None = None) -> None:
        self._path, self._parts = path, path.with_suffix("")
        self._waiting: list[bytes] = []
        self._saved = 0  # bytes
        self._whole = True  # whether all that was saved is in one object
        if size is not None:
            with suppress(FileNotFoundError):  # of one that never was saved
                text = read_journal(path)[:size]
                path.write_bytes(text)
                remove(self._parts)
                self._saved = len(text)

    @property
    def size(self) -> int:
        return self._saved + sum(map(len, self._waiting))

    def append(self, text: bytes) -> None:
        self._waiting.append(text)

    def save(self) -> None:
        if self._waiting:
            text = b"".join(self._waiting)
            (self._parts / f"{self._saved:012d}").write_bytes(text)
            self._saved, self._waiting, self._whole = self._saved + len(text), [], False

    def close(self) -> None:
        if self._waiting or not self._whole:
            text = read_journal(self._path) if self._saved else b""
            self._path.write_bytes(text + b"".join(self._waiting))
            self._saved, self._waiting = self.size, []
            if not self._whole:
                remove(self._parts)
                self._whole = True


def open_journal(path: Place, size: int | None = None) -> Journal:
    """One that goes on after so many bytes, and what came after them is gone; without a size a new one."""
    return FileJournal(path, size or 0) if isinstance(path, Path) else ObjectJournal(path, size)


def read_journal(path: Place) -> bytes:
    """The text so far. Raises FileNotFoundError when there is none."""
    if isinstance(path, Path):
        if not path.is_file():  # a pipe would be waited for
            raise FileNotFoundError(path)
        return path.read_bytes()
    parts = sorted(path.with_suffix("").rglob("*"))
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        if not parts:
            raise
        text = b""
    try:
        for part in parts:
            if int(part.name) == len(text):  # of one that is closed, or goes on after fewer bytes, parts may be there still
                text += part.read_bytes()
    except FileNotFoundError:  # it was closed at this moment
        return path.read_bytes()
    return text
