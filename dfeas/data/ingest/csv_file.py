"""CSV and TSV text: columns of cells, and points, of one column of labels and others that are read as float64.

``CsvLines.rows`` says what a line is. ``CsvLines.table`` reads a run of lines at once with pyarrow, and gives up at any doubt.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute

from dfeas.data.ids import INDEX, Ids, Part, part_of
from dfeas.data.ingest.options import IngestOptions
from dfeas.data.ingest.source import Batch, stack_columns
from dfeas.data.ingest.text import (
    MARK,
    NUMBER,
    Lines,
    TextFile,
    TextSource,
    are_short,
    parse_number,
    parse_table,
    values_of,
)
from dfeas.data.labels import Categories
from dfeas.data.storage.features import NAMED, NO_FEATURES, keep_names
from dfeas.data.storage.places import Place, require_columns
from dfeas.errors import BadInputError, UsageError, describe_change, either, spell

MISSING = ("", ".", "NA", "N/A", "n/a", "#N/A", "nan", "NaN", "null", "NULL")
"""Cells that stand for what is not there."""
SEPARATORS = (";", "\t", "|")
"""Between cells where it is not what was expected, mostly."""

CODE_IT = f"; correct it, or code the column as numbers, as {either('dfeas.check_separation', 'dfeas check-separation')} does"
"""What to do with text where points have numbers."""
WHOLE = r"^-?[0-9]+$"
KINDS = (pyarrow.int64(), pyarrow.float64(), pyarrow.timestamp("us"), pyarrow.string())
"""What a column of text may hold, the narrowest first."""


class CsvLines:
    """A CSV or TSV file in UTF-8, and how its cells are called. Unless it is said, a look tells whether the first line holds
    names: names are no numbers. Raises UsageError where that leaves a doubt.
    """

    def __init__(self, path: Place, kind: str, options: IngestOptions) -> None:
        self.where, self.file = str(path), TextFile(path)
        self._delimiter = options.sep or ("\t" if kind == "tsv" else ",")
        self._swap = str.maketrans({options.decimal: ".", ".": options.decimal})
        self.decimal = options.decimal
        self._quoted = re.compile(rb'(?<![^%b\r\n])"[^"\r\n]*"(?![^%b\r\n])' % ((self._delimiter.encode(),) * 2))
        number, cells, behind = self._first()
        self.index = INDEX if cells[0] == "" and INDEX not in cells else None
        """What the first column is called that R and pandas write for names of rows, if there is one."""
        cells = [self.index or cells[0], *cells[1:]]
        plain = [self.plain(cell) for cell in cells]
        self.named = _is_header(plain, options, self.where) if options.header is None else options.header
        if self.named and "" in cells:
            raise BadInputError(
                f"{path}: line {number}: column {cells.index('')} has no name; leave it out (in pandas: to_csv(index=False))"
            )
        self.body = (behind, number + 1) if self.named else (0, 1)
        """Byte and number of the line where points begin."""
        if self.named and self.index is None and INDEX not in cells and self._count_cells() == len(cells) + 1:
            self.index, cells = INDEX, [INDEX, *cells]  # as R writes, whose first line does not call names of rows
        self.index = self.index if self.named else None
        self.columns = cells if self.named else [str(i) for i in range(len(cells))]

    def features(self, asked: Container[str | None]) -> list[str]:
        """Columns without names of rows that nobody has asked for."""
        return [name for place, name in enumerate(self.columns) if place or name != self.index or name in asked]

    def _count_cells(self) -> int:
        """Of the first line behind names."""
        run = next(self.file.runs(*self.body), None)
        _, line, _ = next(_lines(run), (0, b"", 0)) if run is not None else (0, b"", 0)
        return len(self._cells(line, f"{self.where}: line {self.body[1]}")) if line else 0

    def _first(self) -> tuple[int, list[str], int]:
        for run in self.file.runs():
            for number, line, end in _lines(run):
                at = f"{self.where}: line {number}"
                cells = self._cells(line, at)
                other = next((each for each in SEPARATORS if each.encode() in line), None)
                if len(cells) == 1 and other is not None:
                    known = {",": "commas", "\t": "tabs"}.get(self._delimiter, repr(self._delimiter))
                    text = f"expected {known} between cells, and this looks like another separator: say {spell('sep', other)}"
                    raise UsageError(f"{at}: {text}")
                return number, [cell.strip() for cell in cells], end  # blanks may follow commas
        raise BadInputError(f"{self.where}: no points, the file is empty")

    def _cells(self, line: bytes, at: str) -> list[str]:
        require_columns(line.count(self._delimiter.encode()) + 1, at)
        try:
            return next(csv.reader([line.decode()], delimiter=self._delimiter, strict=True))
        except UnicodeDecodeError as error:
            raise BadInputError(f"{at}: not UTF-8 text: {error.reason}; save the file as UTF-8") from None
        except csv.Error as error:
            raise BadInputError(f"{at}: {error}; quote cells as CSV does, each on one line") from None

    def rows(self, run: Lines) -> Iterator[tuple[str, list[str]]]:
        """Line by line where it is, and its cells. Raises BadInputError for the first bad line."""
        for number, line, _ in _lines(run):
            at = f"{self.where}: line {number}"
            cells = self._cells(line, at)
            if len(cells) != len(self.columns):
                raise BadInputError(f"{at}: {len(cells)} cells, expected {len(self.columns)} as in the first line")
            yield at, cells

    def table(self, text: bytes, kind: str, of: Sequence[int] | None = None, label: int | None = None) -> Any:
        """All columns in a type, or some of them, and behind them that of labels as text; None where each line has to be looked
        at.
        """
        # pyarrow takes about 4 kB for each column of a run, whatever is in it
        if len(self.columns) > 50_000 or (b'"' in text and b'"' in self._quoted.sub(b"", text)):
            return None
        if text.startswith(MARK):  # that of the file is gone here; pyarrow would skip another one
            return None
        types = {str(i): "string" if i == label else kind for i in range(len(self.columns))}
        wanted = None if of is None else [str(i) for i in (*of, *([] if label is None else [label]))]
        return parse_table(text, types, self._delimiter, '"', self.decimal, wanted=wanted)

    def text(self, run: Lines, of: Sequence[int] | None = None) -> list[Any]:
        """The cells of all columns, or of some, as text, null where they are missing."""
        table = self.table(run.text, "string", of)
        if table is None:
            rows = [cells if of is None else [cells[place] for place in of] for _, cells in self.rows(run)]
            columns = [pyarrow.array(column, pyarrow.string()) for column in zip(*rows, strict=True)]
        else:
            columns = [column.combine_chunks() for column in table.columns]
        none, gap = pyarrow.array(MISSING), pyarrow.scalar(None, pyarrow.string())
        blank = [pyarrow.compute.is_in(pyarrow.compute.utf8_trim_whitespace(column), none) for column in columns]
        return [pyarrow.compute.if_else(gaps, gap, column) for gaps, column in zip(blank, columns, strict=True)]

    def number(self, cell: str, at: str) -> float:
        given = cell.strip(" \t")
        if not given:
            raise BadInputError(f"{at}: the cell is empty; fill in a number or remove the line")
        return parse_number(self.plain(given), at, given, CODE_IT)

    def plain(self, cell: str) -> str:
        """With a point between the digits of a number."""
        return cell.translate(self._swap)


def _lines(run: Lines) -> Iterator[tuple[int, bytes, int]]:
    """The number of each line that is not empty, what it holds, and the byte behind it."""
    number, end = run.first, run.stop - len(run.text)
    for ended in run.text.splitlines(keepends=True):
        line, end = ended.rstrip(b"\r\n"), end + len(ended)
        if line:
            yield number, line, end
        number += ended.endswith(b"\n")  # no carriage return alone: a run may begin anywhere


class CsvPoints(TextSource):
    """The points of a CSV or TSV file. The label column is a name in the header, or an index from 0 (or -1 from the end)."""

    table = True

    def __init__(self, lines: CsvLines, options: IngestOptions) -> None:
        super().__init__(lines.file.path)
        self._lines, self._body = lines, lines.body
        known = lines.features({options.label_column, *options.choice.names})
        behind = len(lines.columns) - len(known)  # names of rows are the first column, which is not counted
        self._label = options.label_place(known, self.where)
        label = None if self._label is None else known[self._label]
        self._label = None if self._label is None else self._label + behind
        self._places = [i for i in range(behind, len(lines.columns)) if i != self._label]  # of features among the columns
        self.names: Sequence[str] = [lines.columns[i] for i in self._places]
        if options.choice:
            if len({*lines.columns}) < len(lines.columns):
                raise BadInputError(f"{self.where}: columns of the same name; rename them, or choose none by name")
            self.names = options.choice.features(known, label, self.where)
            self._places = [lines.columns.index(name) for name in self.names]
        name = options.choice.id or (lines.index if behind else None)
        if name is not None:
            self.ids = Ids(name, partial(self._read_ids, lines.columns.index(name)), written=True)
        self.m = len(self.names)
        self.features, unkept = keep_names(self.names, self.m) if lines.named else ((), "no header")
        left_out = options.choice.note(known, self.names, label)
        self.notes = ("text read as float64", *left_out, *([unkept] if unkept else []))
        if not self.m:
            raise BadInputError(f"{self.where}: one column only; expected features and labels with a separator between them")

    def _read_ids(self, place: int) -> Iterator[Part]:
        for run in self._lines.file.runs(*self._body):
            yield part_of(*self._lines.text(run, [place]))

    def parse(self, run: Lines) -> Batch:
        return self._parse_run(run.text) or self._parse_lines(run)

    def _parse_run(self, text: bytes) -> Batch | None:
        """The points of whole lines; None where ``_parse_lines`` has to look."""
        table = self._lines.table(text, "float64", self._places, self._label)
        if table is None:
            return None
        columns = [values_of(column.chunk(0)) for column in table.columns[: self.m]]
        points = stack_columns(columns, self.dtype)
        if not are_short(points):
            return None
        if self._label is None:
            return Batch(points, Categories.none(len(points)))
        coded = table.columns[-1].combine_chunks().dictionary_encode()
        values = coded.dictionary.to_pylist()
        if any(value.strip() in MISSING or "\n" in value for value in values):
            return None
        return Batch(points, Categories(values_of(coded.indices), values))

    def _parse_lines(self, run: Lines) -> Batch:
        points, labels, columns = list[list[float]](), [], self._lines.columns
        rows = self._lines.rows(run)
        for at, cells in rows:
            if self._label is not None:
                labels.append(_label(cells[self._label], f"{at}, column {columns[self._label]}"))
            try:
                points.append([self._lines.number(cells[place], f"{at}, column {columns[place]}") for place in self._places])
            except BadInputError:
                if run.first == self._body[1] and not points:
                    # a column of text has no number in so many rows
                    self._require_numbers(at, [cells, *_until_bad(islice(rows, 20))])
                raise
        coded = Categories.none(len(points)) if self._label is None else Categories.of_text(labels)
        return Batch(np.array(points, np.float64).reshape(-1, self.m), coded)

    def _require_numbers(self, at: str, rows: list[list[str]]) -> None:
        """Raise BadInputError that names the columns which hold text in each of some rows, of which the first is somewhere."""
        plain, names = self._lines.plain, self._lines.columns
        none = [place for place in self._places if not any(_is_number(plain(cells[place])) for cells in rows)]
        text = [place for place in none if not any(cells[place].strip() in MISSING for cells in rows)]
        if text and len(rows) > 1:
            shown = ", ".join(f"{names[place]} ({rows[0][place]!r:.20})" for place in text[:NAMED])
            more = f" and {len(text) - NAMED} more" if len(text) > NAMED else ""
            how = f"{NO_FEATURES}{CODE_IT.removeprefix('; correct it')}"
            raise BadInputError(f"{at}: features are numbers, and these columns hold text: {shown}{more}; {how}")


def _until_bad(rows: Iterator[tuple[str, list[str]]]) -> list[list[str]]:
    found = list[list[str]]()
    with suppress(BadInputError):
        found.extend(cells for _, cells in rows)
    return found


class CsvColumns:
    """Those of CSV or TSV: each is of the narrowest type that has all of its cells."""

    notes: tuple[str, ...] = ()
    written = True

    def __init__(self, path: Place, kind: str, options: IngestOptions, text: Sequence[str]) -> None:
        self._lines = CsvLines(path, kind, options)
        self.where, self.columns = self._lines.where, self._lines.features({options.label_column, *options.choice.names})
        self.index = None if self._lines.index in self.columns else self._lines.index
        left = {name: list(KINDS) for name in self.columns if name not in text}
        self._kinds = dict.fromkeys(self.columns, pyarrow.string())
        for run in self._runs() if left else ():
            cells = dict(zip(self._lines.columns, self._lines.text(run), strict=True))
            for name, kinds in left.items():
                while self._cast(name, cells[name], kinds[0]) is None:
                    kinds.pop(0)
        self._kinds |= {name: kinds[0] for name, kinds in left.items()}

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        for run in self._runs():
            cells = dict(
                zip(columns, self._lines.text(run, [self._lines.columns.index(name) for name in columns]), strict=True)
            )
            arrays = [self._cast(name, cells[name], self._kinds.get(name, pyarrow.string())) for name in columns]
            if any(array is None for array in arrays):
                raise describe_change(self.where)
            yield pyarrow.record_batch(arrays, names=list(columns))

    def line_of(self, row: int) -> int:
        """The number of the line of a row, counted from 1."""
        return next(islice((number for run in self._runs() for number, _, _ in _lines(run)), row, None))

    def _runs(self) -> Iterator[Lines]:
        begin, number = self._lines.body
        return self._lines.file.runs(begin, number=number)

    def _cast(self, name: str, column: Any, kind: Any) -> Any:
        """Cells in a type; None where they are not all of it. Blanks around numbers are no part of them."""
        if kind == pyarrow.string():
            return column
        bare = pyarrow.compute.utf8_trim_whitespace(column)
        if kind == KINDS[0] and not pyarrow.compute.all(pyarrow.compute.match_substring_regex(bare, WHOLE)).as_py():
            return None
        if self._lines.decimal != "." and kind == KINDS[1]:
            bare = pyarrow.array(
                [None if cell is None else self._lines.plain(cell) for cell in bare.to_pylist()], pyarrow.string()
            )
        try:
            return pyarrow.compute.cast(bare, kind)
        except pyarrow.ArrowInvalid:
            if kind == KINDS[0]:
                what = f"column {name}: an integer beyond 2**63 has no exact float64; rescale it, or drop an id"
                raise BadInputError(f"{self.where}: {what}") from None
            cells = [] if kind != KINDS[1] else bare.to_pylist()
        if not cells or not all(cell is None or NUMBER.fullmatch(cell.encode()) for cell in cells):
            return None
        return pyarrow.array([None if cell is None else float(cell) for cell in cells], kind)


def _is_header(cells: list[str], options: IngestOptions, where: str) -> bool:
    """Whether the first line holds names. Raises UsageError when it may be either."""
    label_column = options.label_column
    if label_column is None:
        options.label_place(cells, where)  # which says that it must be named
    if options.choice.names & {*cells}:
        return True
    try:
        label = range(len(cells))[int(label_column or "")]
    except (ValueError, IndexError):  # a name
        label = None
    if label is None and label_column in cells:
        return True
    features = [cell.strip() for i, cell in enumerate(cells) if i != label and cell != INDEX]
    numbers = [_is_number(cell) for cell in features]
    if not any(numbers):
        return True
    counted = any(len(each) > 2 and each == [str(i) for i in range(len(each))] for each in (cells, features))
    if counted or (not all(numbers) and (label is not None or sum(numbers) < len(features) - 1)):
        raise UsageError(f"{where}: the first line may be names or a point; say {spell('header')} or {spell('header', False)}")
    return False


def _is_number(cell: str) -> bool:
    """Whether a cell is meant as a number, be it one that is refused later."""
    try:
        float(cell)
    except ValueError:
        return not cell.strip()
    return True


def _label(cell: str, at: str) -> str:
    if cell.strip() in MISSING:
        what = f"missing, {cell.strip()!r}" if cell.strip() else "empty"
        raise BadInputError(f"{at}: the label is {what}; fill it in or remove the line")
    return cell
