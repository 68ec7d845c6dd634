"""CSV and TSV text: one column of labels, all others are features, read as float64.

``_parse_lines`` says what a line is. ``_parse_run`` reads a run of lines at once with pyarrow, and gives up at any doubt.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

import numpy as np
import pyarrow
import pyarrow.csv
from numpy.typing import NDArray

from dfeas.data.ingest.options import IngestOptions
from dfeas.data.ingest.partitions import Batch
from dfeas.data.ingest.tables import place_of, rows_of
from dfeas.data.ingest.text import MARK, NUMBER, Counts, Lines, TextSource, values_of
from dfeas.data.labels import Categories
from dfeas.data.storage.features import keep_names
from dfeas.data.storage.places import Place, require_columns
from dfeas.data.writers.dataset import Pool
from dfeas.errors import BadInputError, UsageError

Floats = NDArray[np.float64]

WIDE = 50_000
"""Columns above which lines are parsed one by one: pyarrow takes about 4 kB for each column of a run, whatever is in it."""


class CsvFile(TextSource):
    """The points of a CSV or TSV file. The label column is a name in the header, or an index from 0 (or -1 from the end).

    Unless it is said, a look tells whether the first line holds names: names are no numbers. Raises UsageError where that
    leaves a doubt. With a ``pool`` lines are indexed.
    """

    def __init__(self, path: Place, delimiter: str, options: IngestOptions, pool: Pool | None = None) -> None:
        super().__init__(path)
        self._delimiter = delimiter
        self._quoted = re.compile(rb'(?<![^%b\r\n])"[^"\r\n]*"(?![^%b\r\n])' % ((delimiter.encode(),) * 2))
        number, cells, behind = self._first()
        head = _is_header(cells, options, self.where) if options.header is None else options.header
        if head and "" in cells:
            raise BadInputError(
                f"{path}: line {number}: column {cells.index('')} has no name; leave it out (in pandas: to_csv(index=False))"
            )
        self._body = (behind, number + 1) if head else (0, 1)
        columns = cells if head else [str(i) for i in range(len(cells))]
        self._label = place_of(options.label_column, columns, self.where) if options.labelled else None
        self._columns = columns
        self.names: Sequence[str] = [name for i, name in enumerate(columns) if i != self._label]
        self.m = len(self.names)
        self.features, unkept = keep_names(self.names, self.m) if head else ((), "no header")
        self.notes = ("text read as float64", *([unkept] if unkept else []))
        if not self.m:
            raise BadInputError(f"{path}: one column only; expected features and labels with {delimiter!r} between them")
        if pool is not None:
            self._look(counts_of, pool)

    def _first(self) -> tuple[int, list[str], int]:
        """Number and cells of the first line that is not empty, and the byte behind it."""
        for run in self._file.runs():
            at = run.stop - len(run.text)
            for offset, line in enumerate(run.text.splitlines(keepends=True)):
                at += len(line)
                content = line.rstrip(b"\r\n")
                if content:
                    cells = self._cells(content, f"{self.where}: line {run.first + offset}")
                    return run.first + offset, [cell.strip() for cell in cells], at  # blanks may follow commas
        raise BadInputError(f"{self.where}: no points, the file is empty")

    def _cells(self, line: bytes, at: str) -> list[str]:
        require_columns(line.count(self._delimiter.encode()) + 1, at)
        try:
            return next(csv.reader([line.decode()], delimiter=self._delimiter, strict=True))
        except UnicodeDecodeError as error:
            raise BadInputError(f"{at}: not UTF-8 text: {error.reason}; save the file as UTF-8") from None
        except csv.Error as error:
            raise BadInputError(f"{at}: {error}; quote cells as CSV does, each on one line") from None

    def parse(self, run: Lines) -> Batch:
        return self._parse_run(run.text) or self._parse_lines(run)

    def _parse_run(self, text: bytes) -> Batch | None:
        """The points of whole lines; None where ``_parse_lines`` has to look."""
        if len(self._columns) > WIDE or (b'"' in text and b'"' in self._quoted.sub(b"", text)):
            return None
        if text.startswith(MARK):  # that of the file is gone here; pyarrow would skip another one
            return None
        names = [str(i) for i in range(len(self._columns))]
        types = {name: pyarrow.string() if i == self._label else pyarrow.float64() for i, name in enumerate(names)}
        try:
            table = pyarrow.csv.read_csv(
                pyarrow.BufferReader(text),
                pyarrow.csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names),
                pyarrow.csv.ParseOptions(delimiter=self._delimiter),
                pyarrow.csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False),
            )
        except pyarrow.ArrowInvalid:
            return None
        columns = [values_of(column.chunk(0)) for i, column in enumerate(table.columns) if i != self._label]
        points = rows_of(columns, self.dtype)
        if not np.isfinite(points).all():
            return None
        if self._label is None:
            return Batch(points, Categories.none(len(points)))
        coded = table.column(self._label).combine_chunks().dictionary_encode()
        values = coded.dictionary.to_pylist()
        if any(not value.strip() or "\n" in value for value in values):
            return None
        return Batch(points, Categories(values_of(coded.indices), values))

    def _parse_lines(self, run: Lines) -> Batch:
        """Line by line. Raises BadInputError with the first bad line, its column and what it holds."""
        rows, labels, number = [], [], run.first
        for ended in run.text.splitlines(keepends=True):
            line, at = ended.rstrip(b"\r\n"), f"{self.where}: line {number}"
            number += ended.endswith(b"\n")  # no carriage return alone: a run may begin anywhere
            if line:
                cells = self._cells(line, at)
                if len(cells) != len(self._columns):
                    raise BadInputError(f"{at}: {len(cells)} cells, expected {len(self._columns)} as in the first line")
                if self._label is not None:
                    labels.append(_label(cells.pop(self._label), f"{at}, column {self._columns[self._label]}"))
                rows.append([_number(cell, f"{at}, column {name}") for cell, name in zip(cells, self.names, strict=True)])
        coded = Categories.none(len(rows)) if self._label is None else Categories.of_text(labels)
        return Batch(np.array(rows, np.float64).reshape(-1, self.m), coded)


def counts_of(text: bytes) -> Counts:
    """How many points whole lines hold: all but the empty ones."""
    content = np.frombuffer(text, np.uint8)
    begins = (content != ord("\n")) & (content != ord("\r"))
    begins[1:] &= ~begins[:-1]
    return Counts(int(np.count_nonzero(begins)), bytes=len(text))


def _is_header(cells: list[str], options: IngestOptions, where: str) -> bool:
    """Whether the first line holds names. Raises UsageError when it may be either."""
    label_column = options.label_column
    if label_column is None and options.labelled:
        place_of(None, cells, where)
    label = _index(label_column, len(cells))
    if label is None and label_column in cells:
        return True
    features = [cell.strip() for i, cell in enumerate(cells) if i != label]
    numbers = [_is_number(cell) for cell in features]
    if not any(numbers):
        return True
    counted = any(len(each) > 2 and each == [str(i) for i in range(len(each))] for each in (cells, features))
    if counted or (not all(numbers) and (label is not None or sum(numbers) < len(features) - 1)):
        raise UsageError(f"{where}: the first line may be names or a point; say --header or --no-header")
    return False


def _index(label_column: str | None, count: int) -> int | None:
    """The index that a label column is given by, if it is one."""
    try:
        return range(count)[int(label_column or "")]
    except (ValueError, IndexError):
        return None


def _is_number(cell: str) -> bool:
    """Whether a cell is meant as a number, be it one that is refused later."""
    try:
        float(cell)
    except ValueError:
        return not cell.strip()
    return True


def _number(cell: str, at: str) -> float:
    text = cell.strip(" \t")
    if not text:
        raise BadInputError(f"{at}: the cell is empty; fill in a number or remove the line")
    shown = repr(text if len(text) <= 40 else text[:40] + "...")
    if not NUMBER.fullmatch(text.encode(errors="replace")):
        try:
            finite = np.isfinite(float(text))
        except ValueError:
            finite = True
        raise BadInputError(f"{at}: expected a number, got {shown}" if finite else f"{at}: {shown} is not finite; remove it")
    value = float(text)
    if not np.isfinite(value):
        raise BadInputError(f"{at}: {shown} is too large for float64")
    return value


def _label(cell: str, at: str) -> str:
    if not cell.strip():
        raise BadInputError(f"{at}: the label is empty; fill it in or remove the line")
    return cell
