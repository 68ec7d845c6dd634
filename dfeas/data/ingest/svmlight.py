"""svmlight / LIBSVM text: ``LABEL [qid:Q] INDEX:VALUE ...`` with ascending indices, ``#`` begins a comment.

``_parse_lines`` says what the format is. ``_parse_run`` reads a run at once, by columns of numbers, and gives up at any doubt:
it never accepts what ``_parse_lines`` refuses, nor reads another value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dfeas.data.ingest.options import IngestOptions
from dfeas.data.ingest.source import Batch
from dfeas.data.ingest.text import Lines, TextSource, numbers, parse_number
from dfeas.data.labels import Categories
from dfeas.data.storage.layout import SPARSE_BELOW
from dfeas.data.storage.places import Place, require_width
from dfeas.data.storage.sparse_readers import block_of
from dfeas.errors import BadInputError, format_bytes, spell
from dfeas.linalg.csr import Floats, canonicalise, rows_ascend

_DIGITS = 18
_INDEX = re.compile(rb"[0-9]{1,%d}" % _DIGITS)
_QUERY = re.compile(rb"qid:[0-9]+")
_BLANKS = re.compile(rb"[ \t\r]+")
_COMMENT = re.compile(rb"[ \t]*#[^\n]*")
_BARE_PLUS = re.compile(rb"\+(?!\.?[0-9])")
_EMPTY_LINES = re.compile(rb"\n{2,}")
_SEPARATORS = bytes.maketrans(b" :", b"\n\n")


ParsedLines = tuple[Floats, Floats, NDArray[np.int64], NDArray[np.int64]]
"""Of the points of some lines their labels (b,), entries (e,), their features (e,), ascending in each row, and where rows begin
and end (b + 1,).
"""


class Svmlight(TextSource):
    """The points of a svmlight file, float64; the number of features is found in a read of its own unless it is given. Unless
    it is said how, they come sparse when few enough of their entries are not zero.
    """

    def __init__(self, path: Place, options: IngestOptions) -> None:
        super().__init__(path)
        self._base = 0 if options.zero_based else 1
        features = options.features
        self._given = features is not None
        if features is None:
            counts = np.array([counts_of(run.text) for run in self._file.runs()], np.int64).reshape(-1, 4)
            some, entries, size = counts[:, :3].sum(axis=0).tolist()
            self.n, last = some, int(counts[:, 3].max(initial=-1))
            if last < self._base:
                what = f"no features in {self.n} points; is it svmlight (LABEL INDEX:VALUE ...)?"
                raise BadInputError(f"{self.where}: {what}")
            # ``parse`` finds out whether the indices of each line ascend
            features = last + 1 - self._base
        else:
            first = next(self._file.runs(), Lines(1, b"")).text
            some, entries = max(1, first.count(b"\n")), first.count(b":")
        require_width(features, 8, self.where, sparse=True)
        self.m = features
        self.sparse = entries < SPARSE_BELOW * some * features if options.sparse is None else options.sparse
        if not self._given and not self.sparse:
            self._refuse_growth(some, size)
        self.notes = (f"text stored {'sparse' if self.sparse else 'dense'}, as float64",)

    def _refuse_growth(self, n: int, length: int) -> None:
        dense = 8 * n * self.m
        most_growth = 100  # dense bytes for one byte of text that are taken without asking
        if dense > max(100 << 20, most_growth * length):  # a dense size that is always taken
            raise BadInputError(
                f"{self.where}: {n} points of {self.m} features take {format_bytes(dense)} dense, {dense // length} times "
                f"their text (at most {most_growth} times is taken); store them sparse: leave out {spell('sparse', False)}"
            )

    def parse(self, run: Lines) -> Batch:
        labels, values, places, ends = _parse_run(run.text, self.m, self._base) or self._parse_lines(run)
        if self.sparse:
            return Batch(canonicalise(block_of(values, places, ends, self.m)), Categories.of(labels))
        if self._given:
            self._refuse_growth(len(labels), len(run.text))
        points = np.zeros((len(labels), self.m))
        points[np.repeat(np.arange(len(points)), np.diff(ends)), places] = values
        return Batch(points, Categories.of(labels))

    def _parse_lines(self, run: Lines) -> ParsedLines:
        labels, values, places, ends = list[float](), list[float](), list[int](), [0]
        for offset, line in enumerate(run.text.removesuffix(b"\n").split(b"\n")):
            words = [word for word in _BLANKS.split(line.partition(b"#")[0]) if word]
            if words:
                at = f"{self.where}: line {run.first + offset}"
                labels.append(parse_number(_text(words[0]), f"{at}: label"))
                for place, value in self._row(words[2:] if _QUERY.fullmatch(b"".join(words[1:2])) else words[1:], at):
                    places.append(place)
                    values.append(value)
                ends.append(len(places))
        return np.array(labels, np.float64), np.array(values, np.float64), np.array(places, np.int64), np.array(ends, np.int64)

    def _row(self, words: list[bytes], at: str) -> Iterator[tuple[int, float]]:
        last = self._base - 1
        for word in words:
            index, colon, value = word.partition(b":")
            if not colon or not _INDEX.fullmatch(index):
                raise BadInputError(f"{at}: expected INDEX:VALUE, got {_text(word)[:40]!r}")
            place = int(index)
            if place < self._base:
                raise BadInputError(f"{at}: index 0, expected 1 or more; if indices begin with 0 say {spell('zero_based')}")
            if place <= last:
                raise BadInputError(f"{at}: index {place} after {last}; indices must ascend, sort them")
            if place >= self.m + self._base and not self._given:  # the last index of some line is the greatest
                raise BadInputError(f"{at}: index {place} is not the last, and greater; indices must ascend, sort them")
            if place >= self.m + self._base:
                raise BadInputError(f"{at}: index {place} is beyond the {self.m} features; give a larger {spell('features')}")
            yield place - self._base, parse_number(_text(value), f"{at}: index {place}")
            last = place


def counts_of(text: bytes) -> tuple[int, int, int, int]:
    """Points, entries and bytes of whole lines, and the greatest of their last indices."""
    body = _COMMENT.sub(b"", text) if b"#" in text else text
    content = np.frombuffer(body, np.uint8)
    ends = np.append(np.flatnonzero(content == ord("\n")), len(content))
    begins = np.append(0, ends[:-1] + 1)
    colons = np.flatnonzero(content == ord(":"))
    before = np.searchsorted(colons, ends)
    last_colon = np.append(-1, colons)[before]
    index = np.full(len(ends), -1)
    here = last_colon >= begins
    index[here] = _indices(content, begins[here], last_colon[here])
    points, last = int(np.count_nonzero(index >= 0)), int(index.max())
    for row in np.flatnonzero(index < 0):
        line = body[begins[row] : ends[row]]
        if line and not line.isspace():
            points += 1
            word = line[: max(0, line.rfind(b":"))].rsplit(None, 1)[-1:]
            if word and _INDEX.fullmatch(word[0]):
                last = max(last, int(word[0]))
    return points, len(colons), len(text), last


def _indices(content: NDArray[np.uint8], begins: NDArray[np.int64], colons: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers (l,) between a blank and a colon of lines with such a one; -1 where it is not plain that one is there."""
    value, at = np.zeros(len(colons), np.int64), colons - 1
    rest = np.flatnonzero(at >= begins)  # lines whose number goes on
    for power in range(_DIGITS):
        digit = content[at[rest]] - np.uint8(ord("0"))
        rest, digit = rest[digit < 10], digit[digit < 10]
        value[rest] += digit.astype(np.int64) * 10**power
        at[rest] -= 1
        rest = rest[at[rest] >= begins[rest]]
        if not len(rest):
            break
    plain = (at < colons - 1) & (at >= begins) & (content[at] == ord(" "))
    return np.where(plain, value, -1)


def _text(word: bytes) -> str:
    return word.decode(errors="replace")


def _parse_run(text: bytes, m: int, base: int) -> ParsedLines | None:
    """Whole lines at once; None where ``_parse_lines`` has to look."""
    text = _tidy(text)
    values = numbers(text.translate(_SEPARATORS))
    if values is None:
        return None
    content = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero((content <= ord(" ")) | (content == ord(":")))
    if len(ends) != len(values) or not len(values):
        return None
    after = content[ends]  # what follows each number: a colon an index, and a blank comes before each index
    is_index = after == ord(":")
    is_blank, is_end = after == ord(" "), after == ord("\n")
    if not (is_index | is_blank | is_end).all() or is_index[0] or not np.array_equal(is_index[1:], is_blank[:-1]):
        return None
    if _has_exponent(text, content, ends, is_index):
        return None
    where = np.flatnonzero(is_index)
    starts = np.concatenate([[0], np.flatnonzero(is_end)[:-1] + 1])
    places = values[where]
    if not _whole(places, ends[where] - ends[where - 1] - 1):
        return None
    features = places.astype(np.int64)
    features -= base
    if len(features) and (features.min() < 0 or features.max() >= m):
        return None
    ends = np.append(0, np.cumsum(np.diff(starts, append=len(values)) // 2))
    if not rows_ascend(features, ends):
        return None
    return values[starts], values[where + 1], features, ends


def _tidy(text: bytes) -> bytes:
    """Without comments, blanks at line ends and plus signs of labels, where they are as usual."""
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n")
    if b"\t" in text:
        text = text.replace(b"\t", b" ")
    if b"#" in text:
        text = _EMPTY_LINES.sub(b"\n", _COMMENT.sub(b"", text)).lstrip(b"\n")
    if not text.endswith(b"\n"):
        text += b"\n"
    text = text.replace(b" \n", b"\n")
    if b"+" in text and not _BARE_PLUS.search(text):
        text = b"0" + text[1:] if text.startswith(b"+") else text
        text = text.replace(b"\n+", b"\n0")
    return text


def _has_exponent(text: bytes, content: NDArray[np.uint8], ends: NDArray[np.int64], is_index: NDArray[np.bool_]) -> bool:
    """Whether an index is written with an exponent: 1e2 is a number of three characters, as 100 is."""
    if b"e" not in text and b"E" not in text:
        return False
    letters = np.flatnonzero((content | 32) == ord("e"))
    return bool(is_index[np.searchsorted(ends, letters)].any())


def _whole(places: Floats, lengths: NDArray[np.int64]) -> bool:
    """Whether numbers without exponents are written with as many characters as the whole part has digits."""
    most = float(places.max(initial=0))
    if places.min(initial=0) < 0 or most >= 1e15:
        return False
    digits = np.ones(len(places), np.int64)
    power = 10.0
    while power <= most:
        digits += places >= power
        power *= 10
    return np.array_equal(digits, lengths)
