"""Runs of whole lines of a text file, plain or compressed, each with its place in the file."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

import numpy as np

from dfeas.errors import BadInputError, CorruptDataError
from dfeas.store.damage import DAMAGE
from dfeas.store.places import Place

RUN_BYTES = 2 << 20
"""Small enough that what parsing makes of it stays in cache."""
LONGEST_LINE = 1 << 26
"""Room for as many columns as are taken of text, of 60 characters each. A line is held whole, and its cells are."""
PEEK_BYTES = 1 << 16
"""In which the end of a line is looked for at a time."""

PACKED = (".gz", ".bz2")
"""Names of compressed text end so."""

_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Lines:
    """Whole lines; all but perhaps the last of a file end with a line feed."""

    first: int  # number of the first line, counted from 1
    text: bytes
    stop: int = 0  # bytes of the file, unpacked, up to their end


class TextFile:
    """A text file, plain, .gz or .bz2, read in runs; ``share`` of its bytes have been read, ``length`` bytes of text."""

    def __init__(self, path: Place) -> None:
        self.path, self.share, self.length = path, 0.0, 0

    def runs(self, first: int = 0, stop: int | None = None, number: int = 1) -> Iterator[Lines]:
        """All lines, or those in the bytes first .. stop-1, which are whole lines from ``number`` on, in runs of about
        ``RUN_BYTES``. Raises CorruptDataError for a damaged or truncated compressed file.
        """
        at, begun, held = first, list[bytes](), 0  # pieces of a line whose end has not come
        self.share, self.length = 0.0, 0
        size = max(1, self.path.stat().st_size)
        with self.path.open("rb") as raw, _text(raw, self.path.suffix) as stream:
            if first:
                stream.seek(first)
            while True:
                try:
                    content = stream.read(RUN_BYTES if stop is None else min(RUN_BYTES, stop - at))
                except DAMAGE as error:
                    raise CorruptDataError(f"{self.path}: damaged or truncated after line {number}: {error}") from None
                self.share = min(1.0, raw.tell() / size)
                self.length += len(content)
                begins, at = at == 0, at + len(content)
                if begins:
                    content = content.removeprefix(_MARK)
                cut = content.rfind(b"\n") + 1
                if content and not cut:
                    begun.append(content)
                    held += len(content)
                    self._refuse_long(f"line {number}", held)
                    continue
                text = b"".join((*begun, memoryview(content)[:cut]))
                begun, held = [content[cut:]], len(content) - cut
                if text:
                    yield Lines(number, text, at - held)
                    number += int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord("\n")))
                if not content:
                    return

    def line_from(self, at: int) -> int:
        """The first byte at ``at`` or behind it where a line begins, or else the end of a file that is not compressed."""
        if at == 0:
            return 0
        with self.path.open("rb") as file:
            place = file.seek(at - 1)
            while content := file.read(PEEK_BYTES):
                found = content.find(b"\n")
                if found >= 0:
                    return place + found + 1
                place += len(content)
                self._refuse_long(f"the line at byte {at}", place - at)
        return place

    def _refuse_long(self, line: str, length: int) -> None:
        if length > LONGEST_LINE:
            raise BadInputError(f"{self.path}: {line} has no end within {length >> 20} MiB; is this a text file?")


@contextmanager
def _text(raw: IO[bytes], suffix: str) -> Iterator[IO[bytes] | gzip.GzipFile | bz2.BZ2File]:
    """The text in an open file."""
    if suffix == ".gz":
        with gzip.GzipFile(fileobj=raw, mode="rb") as unpacked:
            yield unpacked
    elif suffix == ".bz2":
        with bz2.BZ2File(raw) as opened:
            yield opened
    else:
        yield raw
