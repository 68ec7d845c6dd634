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
from typing import TYPE_CHECKING

from dfeas.data.storage.places import Place, remove

if TYPE_CHECKING:
    from dfeas.data.storage.object_path import ObjectPath


class FileJournal:
    """Nothing is kept open: a run may have a thousand classes. Raises OSError where storage takes nothing."""

    def __init__(self, path: Path, size: int) -> None:
        self._path = path.absolute()
        with path.open("ab") as file:
            if file.tell() > size:
                file.truncate(size)

    @property
    def size(self) -> int:
        return self._path.stat().st_size

    def append(self, text: bytes) -> None:
        """All of it or nothing."""
        with self._path.open("ab", buffering=0) as file:
            end = file.tell()
            if file.write(text) < len(text):
                file.truncate(end)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def save(self) -> None:
        """Others can read what was appended so far, as they can at once."""

    def close(self) -> None:
        """Nothing will be appended any more."""


class ObjectJournal:
    """Keeps the text in memory, too, and writes it twice in all, however often it is saved."""

    def __init__(self, path: ObjectPath, size: int | None = None) -> None:
        self._path, self._parts, self._text = path, path.with_suffix(""), bytearray()
        if size is not None:
            with suppress(FileNotFoundError):  # of one that never was saved
                self._text += read_journal(path)[:size]
                self.close()
        self._saved = self.size

    @property
    def size(self) -> int:
        return len(self._text)

    def append(self, text: bytes) -> None:
        self._text += text

    def save(self) -> None:
        if self.size > self._saved:
            (self._parts / f"{self._saved:012d}").write_bytes(bytes(self._text[self._saved :]))
            self._saved = self.size

    def close(self) -> None:
        self._path.write_bytes(bytes(self._text))
        remove(self._parts)


Journal = FileJournal | ObjectJournal


def open_journal(path: Place, size: int | None = None) -> Journal:
    """One that goes on after so many bytes, and what came after them is gone; without a size a new one."""
    return FileJournal(path, size or 0) if isinstance(path, Path) else ObjectJournal(path, size)


def read_ends(path: Place, size: int) -> tuple[bytes, bytes]:
    """So many of the first and of the last bytes so far. Raises FileNotFoundError when there is none."""
    if not isinstance(path, Path) or not path.is_file():
        text = read_journal(path)
        return text[:size], text[-size:]
    with path.open("rb") as file:
        first = file.read(size)
        file.seek(max(0, path.stat().st_size - size))
        return first, file.read()


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
