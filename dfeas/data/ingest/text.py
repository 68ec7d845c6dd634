"""Text files, plain or compressed, in runs of whole lines, each with its place in the file, and the numbers in them."""

from __future__ import annotations

import bz2
import gzip
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dfeas.data.ingest.source import MANY, Batch, PointSource, cut, in_order
from dfeas.data.labels import Categories
from dfeas.data.storage.files import damage_becomes
from dfeas.data.storage.layout import sparse_block_rows
from dfeas.data.storage.places import Place
from dfeas.errors import BadInputError
from dfeas.linalg.points import Points, is_dense

try:
    import pyarrow
    import pyarrow.csv
except ImportError:
    pyarrow = None

NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A decimal number; nan, inf, hexadecimal and digits with underscores are none."""
_NONE = "\x01"


def values_of(column: Any) -> NDArray[Any]:
    """The numbers (k,) of an array of Arrow without nulls: ``to_numpy`` would import pandas, which takes 0.4 s."""
    return np.from_dlpack(column)


def parse_table(
    text: bytes,
    types: Mapping[str, str],
    delimiter: str,
    quote: str | bool = False,
    decimal: str = ".",
    block: int = 0,
    wanted: Sequence[str] | None = None,
) -> Any:
    """A table of Arrow with columns of these types, or those that are ``wanted`` in their order, parsed in blocks of so many
    bytes or at once; None where text does not fit. No cell is taken for a missing value. Without pyarrow there is none.
    """
    if pyarrow is None:
        return None
    try:
        return pyarrow.csv.read_csv(
            pyarrow.BufferReader(text),
            pyarrow.csv.ReadOptions(use_threads=False, block_size=block or len(text) + 1, column_names=list(types)),
            pyarrow.csv.ParseOptions(delimiter=delimiter, quote_char=quote, escape_char=False),
            pyarrow.csv.ConvertOptions(
                column_types=types,
                null_values=[],
                strings_can_be_null=False,
                decimal_point=decimal,
                include_columns=wanted,
            ),
        )
    except pyarrow.ArrowInvalid:
        return None


def numbers(text: bytes) -> NDArray[np.float64] | None:
    """The numbers (k,) of a text with one on each line, empty lines apart, each rounded to the nearest float64. None when one
    of them has to be looked at: not a number, not finite, or maybe a long integer.
    """
    table = parse_table(text, {"number": "float64"}, _NONE)
    if table is None:
        return None
    values: NDArray[np.float64] = values_of(table.column(0).chunk(0))
    return values if are_short(values) else None


def are_short(values: NDArray[np.float64]) -> bool:
    """Whether all are finite and so small that whole numbers are exact."""
    return bool(values.max(initial=0.0) < EXACT and values.min(initial=0.0) > -EXACT)


def parse_number(text: str, at: str, given: str | None = None, then: str = "") -> float:
    """The value of a decimal number, as it was ``given``. Raises BadInputError for none, with what to do ``then``, and for one
    that is no float64.
    """
    shown = text if given is None else given
    shown = repr(shown if len(shown) <= 40 else shown[:40] + "...")
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not NUMBER.fullmatch(text.encode(errors="replace")):
        what = f"expected a number, got {shown}{then}" if np.isfinite(value) else f"{shown} is not finite; remove it"
        raise BadInputError(f"{at}: {what}")
    if not np.isfinite(value):
        raise BadInputError(f"{at}: {shown} is too large for float64")
    if abs(value) >= EXACT and WHOLE.fullmatch(text) and int(text.lstrip("+-0")) != abs(value):
        raise BadInputError(f"{at}: an integer beyond 2**53 has no exact float64: {text[:40]}; rescale it, or drop an id")
    return value


EXACT = 2.0**53
WHOLE = re.compile(r"[+-]?\d+")


MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Lines:
    """Whole lines; all but perhaps the last of a file end with a line feed."""

    first: int  # number of the first line, counted from 1
    text: bytes
    stop: int = 0  # bytes of the file, unpacked, up to their end


class TextFile:
    """A text file, plain, .gz or .bz2, read in runs; ``share`` of its bytes have been read."""

    run_bytes: ClassVar[int] = 2 << 20
    """Small enough that what parsing makes of it stays in cache."""

    def __init__(self, path: Place) -> None:
        self.path, self.share = path, 0.0

    def runs(self, first: int = 0, number: int = 1) -> Iterator[Lines]:
        """All lines, or those from the byte ``first`` on, where line ``number`` begins, in runs of about ``run_bytes``. Raises
        CorruptDataError for a damaged or truncated compressed file.
        """
        at, rest = first, b""  # the beginning of a line whose end has not come
        size, self.share = max(1, self.path.stat().st_size), 0.0
        with self.path.open("rb") as raw, _unpack(raw, self.path.suffix) as stream:
            if first:
                stream.seek(first)
            while True:
                with damage_becomes(self.path, f"damaged or truncated after line {number}"):
                    content = stream.read(self.run_bytes)
                self.share = min(1.0, raw.tell() / size)
                text = rest + (content if at else content.removeprefix(MARK))
                end = text.rfind(b"\n") + 1 if content else len(text)
                at, rest, text = at + len(content), text[end:], text[:end]
                if text:
                    yield Lines(number, text, at - len(rest))
                    number += int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord("\n")))
                if not content:
                    return
                # room for as many columns as are taken of text, of 60 characters each: a line is held whole
                if len(rest) > 1 << 26:
                    what = f"line {number} has no end within {len(rest) >> 20} MiB; is this a text file?"
                    raise BadInputError(f"{self.path}: {what}")


def _unpack(raw: IO[bytes], suffix: str) -> AbstractContextManager[IO[bytes] | gzip.GzipFile | bz2.BZ2File]:
    if suffix == ".gz":
        return gzip.GzipFile(fileobj=raw, mode="rb")
    return bz2.BZ2File(raw) if suffix == ".bz2" else nullcontext(raw)


class TextSource(PointSource):
    """The points of a text file, float64, in order."""

    dtype = np.dtype(np.float64)

    def __init__(self, path: Place) -> None:
        self.where, self._file = str(path), TextFile(path)
        self._body = (0, 1)  # byte and number of the line where points begin

    def parse(self, run: Lines) -> Batch:
        raise NotImplementedError

    def blocks(self, first: int, stop: int | None, rows: int) -> Iterator[tuple[Points, list[Categories]]]:
        """See PointSource; one process reads text, from its beginning to its end."""
        begin, number = self._body
        return cut(in_order(self.parse, self._file.runs(begin, number)), rows)

    def usual_rows(self, dtype: np.dtype[Any]) -> int:
        """Of sparse points as many as suit the first of them."""
        for run in self._file.runs() if self.sparse else ():
            points = self.parse(run).points
            if points.shape[0] and not is_dense(points):
                return sparse_block_rows(points.nnz / points.shape[0], dtype.itemsize + 4, MANY)
        return super().usual_rows(dtype)

    def total(self, done: int) -> int:
        return round(done / max(self._file.share, 1e-9)) if self.n is None else self.n
