"""Runs of whole lines of a text file, plain or compressed, each with its place in the file, and the numbers in them."""

from __future__ import annotations

import bz2
import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

import numpy as np
from numpy.typing import NDArray

from dfeas.data.storage.files import DAMAGE
from dfeas.data.storage.places import Place
from dfeas.errors import BadInputError, CorruptDataError

try:
    import pyarrow
    import pyarrow.csv
except ImportError:
    pyarrow = None

NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A decimal number; nan, inf, hexadecimal and digits with underscores are none."""

_NONE = b"\x01"


def numbers(text: bytes) -> NDArray[np.float64] | None:
    """The numbers (k,) of a text with one on each line, empty lines apart, each rounded to the nearest float64.

    None when one of them is not finite or not a number, and without pyarrow.
    """
    if pyarrow is None:
        return None
    try:
        table = pyarrow.csv.read_csv(
            pyarrow.BufferReader(text),
            pyarrow.csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=["number"]),
            pyarrow.csv.ParseOptions(delimiter=_NONE.decode(), quote_char=False, escape_char=False),
            pyarrow.csv.ConvertOptions(column_types={"number": pyarrow.float64()}, null_values=[]),
        )
    except pyarrow.ArrowInvalid:
        return None
    values: NDArray[np.float64] = table.column(0).to_numpy()
    return values if np.isfinite(values).all() else None


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
