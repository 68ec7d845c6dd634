"""Tables in files, in batches of typed columns: text that is a number in all rows is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from dfeas.analysis.regression.design import Places, inside
from dfeas.analysis.regression.outcome import counted
from dfeas.data.ingest.ingest import format_of
from dfeas.data.ingest.tables import parquet_files
from dfeas.errors import BadInputError, CorruptDataError, UsageError

BATCH_BYTES = 16 << 20
LEAST_ROWS, MOST_ROWS = 256, 1 << 16
TEXT_BYTES = 4 << 20
"""Of a run of a CSV file."""
MISSING = ["", ".", "NA", "N/A", "n/a", "#N/A", "nan", "NaN", "null", "NULL"]
WHOLE = r"^\s*[+-]?[0-9]+\s*$"
KINDS = (pyarrow.int64(), pyarrow.float64(), pyarrow.timestamp("us"), pyarrow.string())
"""What a column of text may hold, the narrowest first."""


@dataclass(frozen=True)
class Rows:
    """Some rows of a table that follow on each other."""

    frame: nw.DataFrame[Any]  # all of them
    first: int  # number of the first
    counted: Places | None  # places of those in the likelihood; None: all

    @property
    def inside(self) -> nw.DataFrame[Any]:
        """Those in the likelihood."""
        return inside(self.frame, self.counted)  # type: ignore[no-any-return]

    @property
    def numbers(self) -> Places:
        """Of those in the likelihood."""
        return np.asarray(inside(self.first + np.arange(len(self.frame)), self.counted))


def opened(path: str | Path, without: Sequence[str], weights: str | None, stop: Callable[[], bool]) -> Table:
    """A table by its path, without some of its columns; ``stop`` ends a read. Raises UsageError for what is no table."""
    kind = format_of(path)
    if kind not in ("csv", "tsv", "parquet"):
        raise UsageError(f"{path}: expected .csv, .tsv (also .gz) or .parquet, or a folder of it")
    place = Path(path)
    table: Table = Parquet(place) if kind == "parquet" else Text(place, "," if kind == "csv" else "\t")
    for name in (*without, *([] if weights is None else [weights])):
        if name not in table.columns:
            raise table.no_column(name)
    table.columns = [name for name in table.columns if name not in without or name == weights]
    table.weights = weights
    if len(set(table.columns)) < len(table.columns):
        twice = next(name for name in table.columns if table.columns.count(name) > 1)
        raise BadInputError(f"{path}: two columns are called {twice}; rename one")
    table.stop = stop
    table.look()
    return table


class Table:
    """Batches of all rows, as often as they are asked for."""

    where: str
    columns: list[str]
    weights: str | None  # the column that says which rows are in the likelihood
    stop: Callable[[], bool]

    def batches(self, width: int, columns: Sequence[str]) -> Iterator[Rows]:
        """All rows in order, so many that ``width`` numbers for each take few megabytes; of some columns.

        Raises BadInputError for weights that are none, and KeyboardInterrupt when it is to stop.
        """
        rows = max(LEAST_ROWS, min(MOST_ROWS, BATCH_BYTES // (8 * max(1, width))))
        number, read = 0, [*columns, *(name for name in [self.weights] if name is not None and name not in columns)]
        for batch in self._run(read, rows):
            for first in range(0, batch.num_rows, rows):
                frame = nw.from_native(pyarrow.Table.from_batches([batch.slice(first, rows)]), eager_only=True)
                weights = None if self.weights is None else frame[self.weights]
                where, numbers = f"{self.where}: column {self.weights}", range(number, number + len(frame))
                yield Rows(frame.select(*columns), number, counted(weights, len(frame), where, numbers))
                number += len(frame)

    def _run(self, columns: list[str], rows: int) -> Iterator[Any]:
        try:
            for batch in self._read(columns, rows):
                if self.stop():
                    raise KeyboardInterrupt
                yield batch
        except pyarrow.ArrowInvalid as error:
            raise BadInputError(f"{self.where}: {_line(error)}") from None
        except (pyarrow.ArrowException, OSError) as error:
            raise CorruptDataError(f"{self.where}: damaged: {_line(error)}") from None

    def look(self) -> None:
        """Find types where the file has none."""

    def no_column(self, name: str) -> BadInputError:
        """The error for a column that is not there."""
        shown = ", ".join(self.columns[:8]) + (", ..." if len(self.columns) > 8 else "")
        return BadInputError(f"{self.where}: no column {name}; the columns are {shown}")

    def _read(self, columns: list[str], rows: int) -> Iterator[Any]:
        raise NotImplementedError


class Parquet(Table):
    """A file, or all of a folder in the order of their paths."""

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        self._paths = [Path(str(each)) for each in (parquet_files(path) if path.is_dir() else [path])]
        try:
            schemas = [pyarrow.parquet.read_schema(each) for each in self._paths]
        except (pyarrow.ArrowException, OSError) as error:
            raise CorruptDataError(f"{path}: not a readable Parquet file, truncated or damaged: {_line(error)}") from None
        index = {name for name in schemas[0].names if name.startswith("__index_level_")}
        self.columns = [name for name in schemas[0].names if name not in index]
        for each, schema in zip(self._paths, schemas, strict=True):
            if not set(self.columns) <= set(schema.names):
                odd = ", ".join(sorted(set(self.columns) - set(schema.names))[:5])
                raise BadInputError(f"{each}: no column {odd}, which {self._paths[0].name} has")

    def _read(self, columns: list[str], rows: int) -> Iterator[Any]:
        for path in self._paths:
            with pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
                for batch in file.iter_batches(rows, columns=columns, use_threads=False):
                    yield batch.select(columns)


class Text(Table):
    """CSV or TSV whose first line has the names."""

    def __init__(self, path: Path, delimiter: str) -> None:
        self.where, self._path, self._delimiter = str(path), path, delimiter
        self._types: dict[str, Any] = {}
        try:
            with self._stream({}, None) as stream:
                self._given = {name.strip(): name for name in stream.schema.names}  # blanks may follow commas
                self.columns = [name.strip() for name in stream.schema.names]
        except pyarrow.ArrowException as error:
            raise BadInputError(f"{path}: {_line(error)}") from None

    def look(self) -> None:
        """One read, all as text: each column is of the narrowest type that has all of its values."""
        left = {name: list(KINDS) for name in self.columns}
        self._types = dict.fromkeys(self.columns, pyarrow.string())
        for batch in self._run(self.columns, MOST_ROWS):
            for name, kinds in left.items():
                column = batch.column(name)
                while len(kinds) > 1 and not _is(column, kinds[0]):
                    if kinds.pop(0) == KINDS[0] and _is_whole(column):
                        text = f"column {name}: an integer beyond 2**63 has no exact float64; rescale it, or drop an id"
                        raise BadInputError(f"{self.where}: {text}")
        self._types = {name: kinds[0] for name, kinds in left.items()}

    def _stream(self, types: dict[str, Any], columns: list[str] | None) -> Any:
        return pyarrow.csv.open_csv(
            self._path,
            pyarrow.csv.ReadOptions(use_threads=False, block_size=TEXT_BYTES),
            pyarrow.csv.ParseOptions(delimiter=self._delimiter),
            pyarrow.csv.ConvertOptions(
                column_types=types, null_values=MISSING, strings_can_be_null=True, include_columns=columns
            ),
        )

    def _read(self, columns: list[str], rows: int) -> Iterator[Any]:
        given = [self._given[name] for name in columns]
        with self._stream({self._given[name]: self._types[name] for name in columns}, given) as stream:
            yield from (batch.rename_columns(columns) for batch in stream)


def _is(column: Any, kind: Any) -> bool:
    """Whether a reader takes text as such; it takes numbers with blanks around them, as they stand behind commas."""
    try:
        pyarrow.compute.cast(column if kind == pyarrow.string() else pyarrow.compute.utf8_trim_whitespace(column), kind)
    except pyarrow.ArrowInvalid:
        return False
    return True


def _is_whole(column: Any) -> bool:
    """Whether all text is that of whole numbers."""
    return bool(pyarrow.compute.all(pyarrow.compute.match_substring_regex(column, WHOLE)).as_py())


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
