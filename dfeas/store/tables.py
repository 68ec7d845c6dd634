"""Tables with typed columns: Parquet files, folders of them, and data frames in memory, in record batches."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Any

import pyarrow
import pyarrow.parquet

from dfeas.errors import BadInputError, CorruptDataError
from dfeas.store.columns import dtype_of, labels_of, place_of, points_of
from dfeas.store.json_file import parsed
from dfeas.store.limits import require_width
from dfeas.store.numbers import joint_dtype
from dfeas.store.places import Place, seekable
from dfeas.store.signs import Coded
from dfeas.store.streams import Batch, in_order

_KINDS = {"float64": "double", "float32": "float", "float16": "halffloat"}
"""Types as pyarrow calls them, where that is another name."""

BATCH_BYTES = 4 << 20
SUFFIXES = (".parquet", ".pq")


class Table:
    """The points of record batches that have the same columns; n is known. An index column of pandas is left out."""

    sparse = False

    def __init__(self, schemas: Sequence[Any], n: int, label_column: str | None, where: str, labelled: bool = True) -> None:
        self.where, self.n = where, n
        columns = list(schemas[0].names)
        if not columns:
            raise BadInputError(f"{where}: no columns")
        self._label = columns[place_of(label_column, columns, where)] if labelled else None
        if columns.count(self._label) > 1:
            raise BadInputError(f"{where}: {columns.count(self._label)} columns are called {self._label}; rename them")
        indices = _index_columns(schemas[0]) - {self._label}
        self.names: Sequence[str] = [name for name in columns if name != self._label and name not in indices]
        self.m = len(self.names)
        if not self.m or len(set(self.names)) < self.m:
            raise BadInputError(f"{where}: {'columns of the same name' if self.m else 'no column beside the label'}")
        kinds = {str(schema.field(name).type) for schema in schemas for name in self.names}
        self.dtype = joint_dtype([dtype_of(schema.field(name), where) for schema in schemas for name in self.names])
        cast = sorted(kinds - {_KINDS.get(self.dtype.name, self.dtype.name)})
        require_width(self.m, self.dtype.itemsize, where)
        self.notes = [f"{', '.join(cast)} cast to {self.dtype.name}"] if cast else []
        self.notes += [f"column {name} dropped: an index of pandas" for name in sorted(indices)]

    def total(self, done: int) -> int:
        """Points in all; see Stream."""
        return self.n

    def _batches(self, parts: Iterator[tuple[int, Any]]) -> Generator[Batch, None, None]:
        """From record batches, each with the number of its first row."""
        for batch in in_order(lambda part: self._batch(*part), parts):
            if batch.points.shape[0]:
                yield batch

    def _batch(self, first: int, part: Any) -> Batch:
        places = [part.schema.get_field_index(name) for name in self.names]
        labels = Coded.none(part.num_rows)
        if self._label is not None:
            labels = labels_of(part.column(part.schema.get_field_index(self._label)), first, self.where, self._label)
        return Batch(points_of(part, places, self.dtype, first, self.where), labels)

    @property
    def _wanted(self) -> list[str]:
        return [*self.names, *(() if self._label is None else (self._label,))]

    def _batch_rows(self) -> int:
        return max(1, BATCH_BYTES // (self.m * self.dtype.itemsize))


class Parquet(Table):
    """A Parquet file, or all of a folder in the order of their paths; read by row groups."""

    def __init__(self, path: Place, label_column: str | None, labelled: bool = True) -> None:
        self._paths = parquet_files(path) if path.is_dir() else [path]
        schemas, self._counts, self.group_rows = [], [], 1
        for each in self._paths:
            with _open(each) as file:
                about = file.metadata
                schemas.append(file.schema_arrow)
                self._counts.append(about.num_rows)
                groups = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
                self.group_rows = max(self.group_rows, *groups, 1)  # of the largest group, which is read as a whole
        for each, schema in zip(self._paths, schemas, strict=True):
            if sorted(schema.names) != sorted(schemas[0].names):
                odd = sorted(set(schema.names) ^ set(schemas[0].names)) or schema.names
                raise BadInputError(f"{each}: other columns than {self._paths[0].name} ({', '.join(odd[:5])})")
        super().__init__(schemas, sum(self._counts), label_column, str(path), labelled)

    def batches(self, first: int = 0, stop: int | None = None) -> Generator[Batch, None, None]:
        """All points, or first .. stop-1; see Stream."""
        return self._batches(self._parts(first, self.n if stop is None else stop, self._wanted))

    def labels(self) -> Iterator[Coded]:
        """Those of all points, without reading anything else."""
        assert self._label is not None, "there is a column of labels"
        for first, part in self._parts(0, self.n, [self._label]):
            yield labels_of(part.column(0), first, self.where, self._label)

    def _parts(self, first: int, stop: int, columns: list[str]) -> Iterator[tuple[int, Any]]:
        """Record batches of points first .. stop-1, each with the number of its first point."""
        begin = 0
        for path, count in zip(self._paths, self._counts, strict=True):
            if begin < stop and begin + count > first:
                try:
                    with _open(path) as file:
                        for at, part in self._of_file(file, first - begin, stop - begin, columns):
                            yield begin + at, part
                except (pyarrow.ArrowException, OSError) as error:
                    raise CorruptDataError(f"{path}: damaged from point {max(first, begin)}: {_line(error)}") from None
            begin += count

    def _of_file(self, file: Any, first: int, stop: int, columns: list[str]) -> Iterator[tuple[int, Any]]:
        """The same of one file; row groups without such points are not read."""
        groups: list[int] = []
        at = begin = 0
        for group in range(file.metadata.num_row_groups):
            count = file.metadata.row_group(group).num_rows
            if begin < stop and begin + count > first:
                at = at if groups else begin
                groups.append(group)
            begin += count
        for part in file.iter_batches(self._batch_rows(), row_groups=groups, columns=columns):
            low, high = max(first - at, 0), min(stop - at, part.num_rows)
            if low < high:
                yield at + low, part.slice(low, high - low)
            at += part.num_rows


class Frame(Table):
    """A data frame in memory that speaks Arrow: pyarrow tables, pandas 2.2, polars."""

    def __init__(self, frame: Any, label_column: str | None, labelled: bool = True) -> None:
        self._table = pyarrow.table(frame)
        super().__init__([self._table.schema], self._table.num_rows, label_column, "the data frame", labelled)

    def batches(self) -> Generator[Batch, None, None]:
        """All points; see Stream."""
        return self._batches(self._parts())

    def _parts(self) -> Iterator[tuple[int, Any]]:
        first = 0
        for part in self._table.to_batches(self._batch_rows()):
            yield first, part
            first += part.num_rows


class LazyFrame(Table):
    """A Dask data frame: one partition after the other is computed."""

    def __init__(self, frame: Any, label_column: str | None, labelled: bool = True) -> None:
        self._partitions = frame.partitions
        self._done = 0  # partitions
        schema = pyarrow.Schema.from_pandas(frame._meta, preserve_index=False)
        super().__init__([schema], 0, label_column, "the data frame", labelled)

    def total(self, done: int) -> int:
        """Points in all, as far as the partitions that were computed tell; see Stream."""
        return int(done * self._partitions.npartitions / max(1, self._done))

    def batches(self) -> Generator[Batch, None, None]:
        """All points; see Stream. Raises BadInputError for a partition with columns of other types."""
        return self._batches(self._parts())

    def _parts(self) -> Iterator[tuple[int, Any]]:
        first = 0
        for partition in self._partitions:
            table = pyarrow.Table.from_pandas(partition.compute(), preserve_index=False)
            self._done += 1
            for part in table.to_batches(self._batch_rows()):
                yield first, part
                first += part.num_rows


def parquet_files(folder: Place) -> Sequence[Place]:
    """The Parquet files below a folder, in the order of their paths."""
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())


def _open(path: Place) -> Any:
    try:
        return pyarrow.parquet.ParquetFile(seekable(path), pre_buffer=False, buffer_size=1 << 20)
    except (pyarrow.ArrowException, OSError) as error:
        raise CorruptDataError(f"{path}: not a readable Parquet file, truncated or damaged: {_line(error)}") from None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _index_columns(schema: Any) -> set[str]:
    """Columns that pandas wrote for the index of a frame."""
    try:
        about = parsed((schema.metadata or {}).get(b"pandas", b"{}"), {"index_columns?": [object]})
        return {name for name in about.get("index_columns", []) if isinstance(name, str)} & set(schema.names)
    except ValueError:
        return set()
