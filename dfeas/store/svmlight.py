"""svmlight / LIBSVM text, read dense: ``LABEL [qid:Q] INDEX:VALUE ...`` with ascending indices, ``#`` begins a comment.

``_parse_lines`` says what the format is. ``_parse_run`` reads a run at once, by columns of numbers, and gives up at any doubt:
it never accepts what ``_parse_lines`` refuses, nor reads another value.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import BadInputError, UsageError
from dfeas.store.lines import Lines, TextFile
from dfeas.store.numerals import NUMBER, numbers
from dfeas.store.places import Place
from dfeas.store.signs import Coded
from dfeas.store.streams import Batch, in_order

MOST_GROWTH = 100
"""Dense bytes for one byte of text that are taken without asking."""

SMALL_BYTES = 100 << 20
"""A dense size that is always taken."""

_INDEX = re.compile(rb"[0-9]{1,18}")
_QUERY = re.compile(rb"qid:[0-9]+")
_BLANKS = re.compile(rb"[ \t\r]+")
_COMMENT = re.compile(rb"[ \t]*#[^\n]*")
_BARE_PLUS = re.compile(rb"\+(?!\.?[0-9])")
_EMPTY_LINES = re.compile(rb"\n{2,}")
_SEPARATORS = bytes.maketrans(b" :", b"\n\n")

Floats = NDArray[np.float64]


class Svmlight:
    """The points of a svmlight file, float64; the number of features is found in a read of its own unless it is given."""

    names: Sequence[str] | None = None

    def __init__(self, path: Place, features: int | None = None, zero_based: bool = False) -> None:
        self.where, self.dtype = str(path), np.dtype(np.float64)
        self._base = 0 if zero_based else 1
        self._given = features is not None
        self._file = TextFile(path)
        self._points: int | None = None
        if features is None:
            self._points, features = self._look()
            self._refuse_growth(self._points, features)
        elif features < 1:
            raise UsageError(f"--features {features}: expected at least 1")
        self.m = features
        self.notes = ["sparse text stored dense, as float64"]

    def _look(self) -> tuple[int, int]:
        """(n, m) from the last index of each line; ``batches`` finds out whether the lines are in order."""
        count, most = 0, -1
        for run in self._file.runs():
            for line in run.text.split(b"\n"):
                body = line.partition(b"#")[0]
                if body and not body.isspace():
                    count += 1
                    index = body.rpartition(b":")[0].rsplit(None, 1)[-1:]
                    if index and _INDEX.fullmatch(index[0]):
                        most = max(most, int(index[0]))
        if most < self._base:
            raise BadInputError(f"{self.where}: no features in {count} points; is it svmlight (LABEL INDEX:VALUE ...)?")
        return count, most + 1 - self._base

    def _refuse_growth(self, n: int, m: int) -> None:
        dense = 8 * n * m
        if dense > max(SMALL_BYTES, MOST_GROWTH * self._file.length):
            raise BadInputError(
                f"{self.where}: {n} points of {m} features take {dense / 1e9:.3g} GB dense, {dense // self._file.length} times "
                f"their text; sparse data is not stored yet: keep fewer features (at most {MOST_GROWTH} times is taken)"
            )

    def batches(self) -> Generator[Batch, None, None]:
        """All points; see Stream."""
        done = 0
        for batch in in_order(self._parse, self._file.runs()):
            if len(batch.points):
                done += len(batch.points)
                if self._given:
                    self._refuse_growth(done, self.m)
                yield batch

    def total(self, done: int) -> int:
        """Points in all; see Stream."""
        return round(done / max(self._file.share, 1e-9)) if self._points is None else self._points

    def _parse(self, run: Lines) -> Batch:
        found = _parse_run(run.text, self.m, self._base)
        labels, points = self._parse_lines(run) if found is None else found
        return Batch(points, Coded.of(labels))

    def _parse_lines(self, run: Lines) -> tuple[Floats, Floats]:
        """Labels (b,) and points (b, m), line by line. Raises BadInputError with the number of the first bad line."""
        labels, rows = [], []
        for offset, line in enumerate(run.text.removesuffix(b"\n").split(b"\n")):
            words = [word for word in _BLANKS.split(line.partition(b"#")[0]) if word]
            if words:
                at = f"{self.where}: line {run.first + offset}"
                labels.append(_number(words[0], f"{at}: label"))
                rows.append(self._row(words[2:] if _QUERY.fullmatch(b"".join(words[1:2])) else words[1:], at))
        return np.array(labels, np.float64), np.array(rows, np.float64).reshape(-1, self.m)

    def _row(self, words: list[bytes], at: str) -> Floats:
        row, last = np.zeros(self.m), self._base - 1
        for word in words:
            index, colon, value = word.partition(b":")
            if not colon or not _INDEX.fullmatch(index):
                raise BadInputError(f"{at}: expected INDEX:VALUE, got {_shown(word)}")
            place = int(index)
            if place < self._base:
                raise BadInputError(f"{at}: index 0, expected 1 or more; if indices begin with 0 say --zero-based")
            if place <= last:
                raise BadInputError(f"{at}: index {place} after {last}; indices must ascend, sort them")
            if place >= self.m + self._base and not self._given:  # the last index of some line is the greatest
                raise BadInputError(f"{at}: index {place} is not the last, and greater; indices must ascend, sort them")
            if place >= self.m + self._base:
                raise BadInputError(f"{at}: index {place} is beyond the {self.m} features; give a larger --features")
            row[place - self._base] = _number(value, f"{at}: index {place}")
            last = place
        return row


def _number(word: bytes, at: str) -> float:
    if not NUMBER.fullmatch(word):
        raise BadInputError(f"{at}: expected a finite number, got {_shown(word)}")
    value = float(word)
    if not np.isfinite(value):
        raise BadInputError(f"{at}: {_shown(word)} is too large for float64")
    return value


def _shown(word: bytes) -> str:
    text = word.decode(errors="replace")
    return repr(text if len(text) <= 40 else text[:40] + "...")


def _parse_run(text: bytes, m: int, base: int) -> tuple[Floats, Floats] | None:
    """Labels (b,) and points (b, m) of whole lines; None where ``_parse_lines`` has to look."""
    text = _tidied(text)
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
    flat = places.astype(np.int64)
    flat -= base
    if len(flat) and (flat.min() < 0 or flat.max() >= m):
        return None
    flat += np.repeat(np.arange(len(starts)) * m, np.diff(starts, append=len(values)) // 2)
    if not (flat[1:] > flat[:-1]).all():
        return None
    points = np.zeros((len(starts), m))
    points.reshape(-1)[flat] = values[where + 1]
    return values[starts], points


def _tidied(text: bytes) -> bytes:
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
