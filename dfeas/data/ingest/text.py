"""Text files, plain or compressed, in runs of whole lines, each with its place in the file, and the numbers in them.

Where the points of a plain file are is found by a read of its own, in ranges that other processes can look at.
"""

from __future__ import annotations

import bz2
import gzip
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dfeas.data.ingest.source import MANY, Batch, PointSource, cut, in_order
from dfeas.data.labels import Categories
from dfeas.data.storage.files import damage_becomes
from dfeas.data.storage.layout import sparse_block_rows
from dfeas.data.storage.places import Place, absolute, place
from dfeas.errors import BadInputError, describe_change
from dfeas.linalg.points import Points, is_dense

if TYPE_CHECKING:
    from dfeas.data.writers.dataset import Pool

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
    text: bytes, types: Mapping[str, str], delimiter: str, quote: str | bool = False, decimal: str = ".", block: int = 0
) -> Any:
    """A table of Arrow with columns of these types, parsed in blocks of so many bytes or at once; None where text does not fit.
    No cell is taken for a missing value. Without pyarrow there is none.
    """
    if pyarrow is None:
        return None
    try:
        return pyarrow.csv.read_csv(
            pyarrow.BufferReader(text),
            pyarrow.csv.ReadOptions(use_threads=False, block_size=block or len(text) + 1, column_names=list(types)),
            pyarrow.csv.ParseOptions(delimiter=delimiter, quote_char=quote, escape_char=False),
            pyarrow.csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False, decimal_point=decimal),
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


LONGEST_LINE = 1 << 26
"""Room for as many columns as are taken of text, of 60 characters each. A line is held whole, and its cells are."""
PEEK_BYTES = 1 << 16
"""In which the end of a line is looked for at a time."""
PACKED = (".gz", ".bz2")
"""Names of compressed text end so."""
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
    range_bytes: ClassVar[int] = 64 << 20
    """Of text that is looked at in one piece of work."""

    def __init__(self, path: Place) -> None:
        self.path, self.share = path, 0.0

    def runs(self, first: int = 0, stop: int | None = None, number: int = 1) -> Iterator[Lines]:
        """All lines, or those in the bytes first .. stop-1, which are whole lines from ``number`` on, in runs of about
        ``run_bytes``. Raises CorruptDataError for a damaged or truncated compressed file.
        """
        at, rest = first, b""  # the beginning of a line whose end has not come
        size, self.share = max(1, self.path.stat().st_size), 0.0
        with self.path.open("rb") as raw, _unpack(raw, self.path.suffix) as stream:
            if first:
                stream.seek(first)
            while True:
                with damage_becomes(f"{self.path}: damaged or truncated after line {number}"):
                    content = stream.read(self.run_bytes if stop is None else min(self.run_bytes, stop - at))
                self.share = min(1.0, raw.tell() / size)
                text = rest + (content if at else content.removeprefix(MARK))
                end = text.rfind(b"\n") + 1 if content else len(text)
                at, rest, text = at + len(content), text[end:], text[:end]
                if text:
                    yield Lines(number, text, at - len(rest))
                    number += int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord("\n")))
                if not content:
                    return
                self._refuse_long(f"line {number}", len(rest))

    def line_from(self, at: int) -> int:
        """The first byte at ``at`` or behind it where a line begins, or else the end of a file that is not compressed."""
        if at == 0:
            return 0
        with self.path.open("rb") as file:
            place = file.seek(at - 1)
            while content := file.read(PEEK_BYTES):
                end = content.find(b"\n")
                if end >= 0:
                    return place + end + 1
                place += len(content)
                self._refuse_long(f"the line at byte {at}", place - at)
        return place

    def _refuse_long(self, line: str, length: int) -> None:
        if length > LONGEST_LINE:
            raise BadInputError(f"{self.path}: {line} has no end within {length >> 20} MiB; is this a text file?")


def _unpack(raw: IO[bytes], suffix: str) -> AbstractContextManager[IO[bytes] | gzip.GzipFile | bz2.BZ2File]:
    if suffix == ".gz":
        return gzip.GzipFile(fileobj=raw, mode="rb")
    return bz2.BZ2File(raw) if suffix == ".bz2" else nullcontext(raw)


@dataclass(frozen=True, slots=True)
class Counts:
    """How much some lines hold."""

    points: int = 0
    entries: int = 0  # of sparse text
    last: int = -1  # greatest of the last indices of its lines
    bytes: int = 0

    def __add__(self, other: Counts) -> Counts:
        sums = self.points + other.points, self.entries + other.entries
        return Counts(*sums, max(self.last, other.last), self.bytes + other.bytes)


@dataclass(frozen=True, slots=True)
class LineIndex:
    """Where runs of whole lines begin, and last of all where they end."""

    edges: NDArray[np.int64]  # (r + 1, 3) bytes, numbers of lines from 1 and of points from 0
    counts: Counts  # of all lines of the file

    def part(self, first: int, stop: int) -> LineIndex:
        points = self.edges[:, 2]
        low, high = np.searchsorted(points, first, "right") - 1, np.searchsorted(points, stop, "left") + 1
        return LineIndex(self.edges[low:high], self.counts)


@dataclass(frozen=True)
class ByteRange:
    """Lines that begin in the bytes begin .. stop-1 of a text file that is not compressed; small enough to travel."""

    path: str
    begin: int
    stop: int
    exact: bool  # whether a line begins at ``begin``
    count: Callable[[bytes], Counts]

    def look(self) -> LineIndex:
        """Read them; lines and points are numbered from 0. Raises BadInputError for a line that does not end."""
        file = TextFile(place(self.path))
        begin = self.begin if self.exact else file.line_from(self.begin)
        stop = file.line_from(self.stop)
        edges, total = [(begin, 0, 0)], Counts()
        for run in file.runs(begin, stop) if begin < stop else ():
            total += self.count(run.text)
            edges.append((run.stop, edges[-1][1] + run.text.count(b"\n"), total.points))
        return LineIndex(np.array(edges, np.int64), total)


def index_of(path: Place, body: tuple[int, int], count: Callable[[bytes], Counts], pool: Pool) -> LineIndex:
    """Bytes where lines from ``body`` on begin, and their numbers. Raises CorruptDataError when the file changes meanwhile."""
    begin, line = body
    size, step = path.stat().st_size, TextFile.range_bytes
    firsts = [begin, *range((begin // step + 1) * step, size, step)]
    ranges = [ByteRange(absolute(path), *each, each[0] == begin, count) for each in pairwise([*firsts, size])]
    parts = sorted(pool(ByteRange.look, ranges), key=lambda part: (part.edges[0, 0], part.edges[-1, 0]))
    joints = [begin, *(byte for part in parts for byte in part.edges[[0, -1], 0]), size]
    if joints[::2] != joints[1::2]:
        raise describe_change(str(path))
    steps = [np.diff(part.edges, axis=0) for part in parts]
    edges = np.cumsum(np.concatenate([[(begin, line, 0)], *steps]), axis=0)
    return LineIndex(edges, sum((part.counts for part in parts), Counts()))


class TextSource(PointSource):
    """The points of a text file, float64, in order; with an index of its lines any run of them."""

    dtype = np.dtype(np.float64)

    def __init__(self, path: Place) -> None:
        self.where, self._file = str(path), TextFile(path)
        self._body = (0, 1)  # byte and number of the line where points begin
        self._index: LineIndex | None = None

    def parse(self, run: Lines) -> Batch:
        raise NotImplementedError

    def _look(self, count: Callable[[bytes], Counts], pool: Pool) -> Counts:
        self._index = index_of(self._file.path, self._body, count, pool)
        self.n = int(self._index.edges[-1, 2])
        return self._index.counts

    def part(self, first: int, stop: int) -> TextSource:
        assert self._index is not None, "its lines are indexed"
        part = copy(self)
        part._index = self._index.part(first, stop)
        return part

    def blocks(self, first: int, stop: int | None, rows: int) -> Iterator[tuple[Points, list[Categories]]]:
        """See PointSource. Raises CorruptDataError when there are other points than at the first look."""
        if self._index is None or stop is None:
            begin, number = self._body
            batches = in_order(self.parse, self._file.runs(begin, number=number))
        else:
            batches = self._indexed(self._index, first, stop)
        return cut(batches, rows)

    def _indexed(self, index: LineIndex, first: int, stop: int) -> Generator[Batch, None, None]:
        (byte, line, at), (end, _, points) = index.edges[[0, -1]].tolist()
        for run in self._file.runs(byte, end, line):
            batch = self.parse(run)
            count = batch.points.shape[0]
            here = slice(max(first - at, 0), min(stop - at, count))
            if here == slice(0, count):
                yield batch
            elif here.start < here.stop:
                yield Batch(batch.points[here], batch.labels[here])
            at += count
        if at != points:
            raise describe_change(self.where)

    def usual_rows(self, dtype: np.dtype[Any]) -> int:
        """Of sparse points as many as suit the first of them."""
        for run in self._file.runs() if self.sparse else ():
            points = self.parse(run).points
            if points.shape[0] and not is_dense(points):
                return sparse_block_rows(points.nnz / points.shape[0], dtype.itemsize + 4, MANY)
        return super().usual_rows(dtype)

    def total(self, done: int) -> int:
        return round(done / max(self._file.share, 1e-9)) if self.n is None else self.n
