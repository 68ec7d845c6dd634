"""Tables with typed columns, some rows at a time: Parquet files, folders of them, data frames in memory, and, by pyreadstat,
files of Stata, SPSS and SAS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from numpy.typing import NDArray

from dfeas.data.arrays import joint_dtype, stored_dtype
from dfeas.data.dataset import call_point
from dfeas.data.frames import categories_of_pandas, index_columns, is_lazy
from dfeas.data.ids import ROWS, Ids, Part, call_index, part_of
from dfeas.data.index import ids_in_memory, ids_of_ranges
from dfeas.data.ingest.options import IngestOptions, names_below, parquet_files, split_pattern
from dfeas.data.ingest.source import Batch, PointSource, cut, in_order, stack_columns
from dfeas.data.ingest.text import values_of
from dfeas.data.labels import Categories
from dfeas.data.partitions import compute_here, partitions_of
from dfeas.data.storage.features import NAMED, NO_FEATURES, keep_names
from dfeas.data.storage.files import damage_becomes
from dfeas.data.storage.numbers import exact
from dfeas.data.storage.places import Place, require_width, seekable
from dfeas.errors import BadInputError, UsageError, install
from dfeas.linalg.points import Points
from dfeas.records import replace


def dtype_of(field: Any, where: str) -> np.dtype[Any]:
    """The type in which a column of numbers is stored."""
    kind = field.type
    if pyarrow.types.is_decimal(kind):
        return np.dtype(np.float64)
    return stored_dtype(np.dtype(kind.to_pandas_dtype()), f"{where}: column {field.name}")


def require_numeric(schemas: Sequence[Any], names: Sequence[str], where: str) -> None:
    """Raise BadInputError that names all columns that hold no numbers."""
    kinds = {name: schema.field(name).type for schema in schemas for name in names}
    is_number = (pyarrow.types.is_integer, pyarrow.types.is_floating, pyarrow.types.is_boolean, pyarrow.types.is_decimal)
    other = [f"{name} ({kind})" for name, kind in kinds.items() if not any(is_kind(kind) for is_kind in is_number)]
    if other:
        shown = ", ".join(other[:NAMED]) + (f" and {len(other) - NAMED} more" if len(other) > NAMED else "")
        raise BadInputError(f"{where}: features are numbers, and these columns hold none: {shown}; {NO_FEATURES}")


def points_of(
    batch: Any, names: Sequence[str], dtype: np.dtype[Any], first: int, where: str, files: Sequence[tuple[str, int]]
) -> NDArray[Any]:
    """Points (b, m) of a record batch of ``files``. Raises BadInputError with the point and the column of a null."""
    taken = []
    for name in names:
        column = batch.column(name)
        if column.null_count:
            point = call_point(first + _first_null(column), files)
            raise BadInputError(f"{where}: {point}, column {name}: a value is missing; fill it in or remove the row")
        if pyarrow.types.is_decimal(column.type):
            column = column.cast(pyarrow.float64())
        packed = pyarrow.types.is_boolean(column.type)
        values = column.to_numpy(zero_copy_only=False) if packed else values_of(column)
        kind = stored_dtype(values.dtype, f"{where}: column {name}")
        taken.append(exact(values, kind if np.can_cast(kind, dtype) else dtype, f"{where}: column {name}"))
    return stack_columns(taken, dtype)


def labels_of(column: Any, first: int, where: str, name: str, files: Sequence[tuple[str, int]]) -> Categories:
    """Labels (b,) of a column of numbers, booleans or text. Raises BadInputError for nulls and other types."""
    kind = column.type.value_type if pyarrow.types.is_dictionary(column.type) else column.type
    if column.null_count:
        point = call_point(first + _first_null(column), files)
        raise BadInputError(f"{where}: {point}, column {name}: the label is missing; fill it in")
    text = pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind) or pyarrow.types.is_string_view(kind)
    number = pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) or pyarrow.types.is_boolean(kind)
    if not (text or number):
        raise BadInputError(f"{where}: labels of type {kind} in {name} cannot be used; give numbers, booleans or strings")
    if pyarrow.types.is_boolean(kind):
        return Categories.of(column.to_numpy(zero_copy_only=False))
    coded = column if pyarrow.types.is_dictionary(column.type) else column.dictionary_encode()
    return Categories(values_of(coded.indices), coded.dictionary.to_pylist())


def _first_null(column: Any) -> int:
    return int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])


_KINDS = {"float64": "double", "float32": "float", "float16": "halffloat"}
"""Types as pyarrow calls them, where that is another name."""
BATCH_BYTES = 4 << 20


def joint_columns(schemas: Sequence[Any]) -> list[str]:
    """Those of the first, and then what others have beside them."""
    first = list(schemas[0].names)
    return first + [name for name in dict.fromkeys(name for each in schemas[1:] for name in each.names) if name not in first]


class TypedPoints(PointSource):
    """The points of record batches that have the same columns; n is known. An index column of pandas is left out."""

    table = True

    def __init__(self, schemas: Sequence[Any], n: int | None, options: IngestOptions, where: str) -> None:
        self.n, self.where = n, where
        columns = joint_columns(schemas)
        if not columns:
            raise BadInputError(f"{where}: no columns")
        indices = {*index_columns(schemas[0])} - {options.label_column, *options.choice.names}
        known = [name for name in columns if name not in indices]
        place = options.label_place(known, where)
        self._label = None if place is None else known[place]
        if self._label is not None and columns.count(self._label) > 1:
            raise BadInputError(f"{where}: {columns.count(self._label)} columns are called {self._label}; rename them")
        self.names: Sequence[str] = options.choice.features(known, self._label, where)
        self.m = len(self.names)
        if not self.m:
            raise BadInputError(f"{where}: no column beside the label")
        self._id = options.choice.id or (min(indices) if len(indices) == 1 else None)
        self._require_everywhere([name for name in (*self.names, self._label, self._id) if name is not None])
        require_numeric(schemas, self.names, where)
        kinds = {str(schema.field(name).type) for schema in schemas for name in self.names}
        self.dtype = joint_dtype([dtype_of(schema.field(name), where) for schema in schemas for name in self.names])
        cast = sorted(kinds - {_KINDS.get(self.dtype.name, self.dtype.name)})
        require_width(self.m, self.dtype.itemsize, where)
        self.features, unkept = keep_names(self.names, self.m)
        notes = [f"{', '.join(cast)} cast to {self.dtype.name}"] if cast else []
        notes += options.choice.note(known, self.names, self._label)
        self.notes = (*notes, *_notes_of(indices - {self._id}), *([unkept] if unkept else []))

    def blocks(self, first: int, stop: int | None, rows: int) -> Iterator[tuple[Points, list[Categories]]]:
        return cut(in_order(lambda part: self._batch(*part), self._parts(first, stop)), rows)

    def _require_everywhere(self, names: Sequence[str]) -> None:
        """Raise BadInputError where a file has not all of these columns."""

    def _parts(self, first: int, stop: int | None) -> Iterator[tuple[int, Any]]:
        """Record batches of points first .. stop-1, or of all, each with the number of its first point."""
        raise NotImplementedError

    def _batch(self, first: int, part: Any) -> Batch:
        labels = Categories.none(part.num_rows)
        if self._label is not None:
            labels = labels_of(part.column(self._label), first, self.where, self._label, self.files)
        return Batch(points_of(part, self.names, self.dtype, first, self.where, self.files), labels)

    def _batch_rows(self) -> int:
        return max(1, BATCH_BYTES // (self.m * self.dtype.itemsize))


@dataclass(frozen=True)
class ParquetFiles:
    """A Parquet file, or all of a folder in the order of their paths; read by row groups."""

    paths: Sequence[Place]
    schemas: Sequence[Any]
    groups: Sequence[Sequence[int]]  # rows of the row groups of each
    notes: tuple[str, ...]
    files: tuple[tuple[str, int], ...]  # names below the folder, and rows

    @classmethod
    def of(cls, path: Place) -> ParquetFiles:
        """Those of a path."""
        paths, schemas, groups = parquet_files(path), list[Any](), []
        path = (split_pattern(path) or (path,))[0]
        for each in paths:
            with _open(each) as file:
                about, schema = file.metadata, file.schema_arrow
            schemas.append(schema)
            groups.append([about.row_group(i).num_rows for i in range(about.num_row_groups)])
        folders = [name.partition("=") for each in paths for name in names_below(path, each)[:-1]]
        keys = dict.fromkeys(key for key, sign, _ in folders if key and sign)  # as in year=2020
        notes = (f"not read, as they stand in names of folders only: {', '.join(keys)}",) if keys else ()
        files = [("/".join(names_below(path, each)), sum(rows)) for each, rows in zip(paths, groups, strict=True)]
        return cls(paths, schemas, groups, notes, tuple(files))

    def require_everywhere(self, names: Sequence[str]) -> None:
        """Raise BadInputError where a file has other ones of these columns than the first."""
        first = [name for name in self.schemas[0].names if name in names]
        for path, schema in zip(self.paths, self.schemas, strict=True):
            here = [name for name in schema.names if name in names]
            if sorted(here) != sorted(first):
                odd = ", ".join((sorted(set(here) ^ set(first)) or here)[:5])
                other = f"other columns than {self.paths[0].name} ({odd})"
                raise BadInputError(f"{path}: {other}; choose columns that all files have")

    @property
    def n(self) -> int:
        return sum(map(sum, self.groups))

    @property
    def ids(self) -> Ids | None:
        """Of an index that is a range, and no column."""
        return ids_of_ranges(self.schemas, [*map(sum, self.groups)])

    def batches(self, columns: Sequence[str], rows: int, first: int = 0, stop: int | None = None) -> Iterator[tuple[int, Any]]:
        """Record batches of so many rows first .. stop-1, or of all, each with the number of its first row."""
        begin, stop = 0, self.n if stop is None else stop
        for path, groups in zip(self.paths, self.groups, strict=True):
            ends = list(accumulate(groups, initial=begin))
            some = [group for group, (low, high) in enumerate(pairwise(ends)) if low < stop and high > first]
            if some:
                at = ends[some[0]]
                with damage_becomes(path, f"damaged from point {max(first, begin)}"), _open(path) as file:
                    for part in file.iter_batches(rows, row_groups=some, columns=columns):
                        low, high = max(first - at, 0), min(stop - at, part.num_rows)
                        if low < high:
                            yield at + low, part.slice(low, high - low)
                        at += part.num_rows
            begin = ends[-1]

    def type_of(self, name: str) -> Any:
        """That of a column in all files. Raises BadInputError where one has numbers, and another one has not."""
        fields = [schema.field(name).remove_metadata().with_nullable(True) for schema in self.schemas]
        try:
            parts = [pyarrow.schema([each]) for each in dict.fromkeys(fields)]
            return pyarrow.unify_schemas(parts, promote_options="permissive").field(0).type
        except pyarrow.ArrowException:
            other = next(place for place, each in enumerate(fields) if each.type != fields[0].type)
            what = f"column {name} is {fields[other].type}, and {fields[0].type} in {self.paths[0].name}"
            raise BadInputError(f"{self.paths[other]}: {what}: make one type of it") from None


class ParquetPoints(TypedPoints):
    """Those of Parquet files."""

    def __init__(self, path: Place, options: IngestOptions) -> None:
        self._files = ParquetFiles.of(path)
        counted = self._files.ids
        if counted is not None and options.choice.id == counted.name:
            options = replace(options, choice=replace(options.choice, id=None))
        super().__init__(self._files.schemas, self._files.n, options, str(path))
        largest = max((max(groups, default=1) for groups in self._files.groups), default=1)
        self.files = self._files.files
        self.run_rows = 2 * largest  # a group is read as a whole
        self.notes = (*self.notes, *self._files.notes)
        self.ids = counted if self._id is None else Ids(call_index(self._id), partial(self._read_ids, self._id))

    def _require_everywhere(self, names: Sequence[str]) -> None:
        self._files.require_everywhere(names)

    def _read_ids(self, name: str) -> Iterator[Part]:
        return (part_of(batch.column(0)) for _, batch in self._files.batches([name], ROWS))

    def _parts(self, first: int, stop: int | None) -> Iterator[tuple[int, Any]]:
        columns = [*self.names, *(() if self._label is None else (self._label,))]
        return self._files.batches(columns, self._batch_rows(), first, stop)


class ParquetColumns:
    """The columns of Parquet files."""

    def __init__(self, path: Place, named: Sequence[str] = (), text: Sequence[str] = ()) -> None:
        self._files = ParquetFiles.of(path)
        indices = {*index_columns(self._files.schemas[0])} - set(named)
        self.where, self.columns = str(path), [name for name in joint_columns(self._files.schemas) if name not in indices]
        self.ids, self.files = self._files.ids, self._files.files
        self.index = min(indices) if len(indices) == 1 else None
        self.notes: Sequence[str] = (*_notes_of(indices), *self._files.notes)
        self._text, self.categories = set(text), categories_of_pandas(self._files.schemas[0])

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        self._files.require_everywhere(columns)
        types = {name: pyarrow.string() if name in self._text else self._files.type_of(name) for name in columns}
        schema = pyarrow.schema([*types.items()])
        for _, batch in self._files.batches(list(columns), rows):
            try:
                yield batch.select(list(columns)).cast(schema)
            except pyarrow.ArrowInvalid as error:
                raise BadInputError(f"{self.where}: {str(error)[:200]}") from None


class FramePoints(TypedPoints):
    """A data frame in memory that speaks Arrow, or one of Dask, of which one partition after the other is computed."""

    def __init__(self, frame: Any, options: IngestOptions) -> None:
        self._done, self._lazy = 0, is_lazy(frame)
        try:
            self._frame = frame if self._lazy else pyarrow.table(frame)
            schema = pyarrow.Schema.from_pandas(frame._meta, preserve_index=False) if self._lazy else self._frame.schema
        except (pyarrow.ArrowException, TypeError, ValueError) as error:
            raise BadInputError(f"the data frame: {str(error)[:200]}") from None
        n = None if self._lazy else self._frame.num_rows
        super().__init__([schema], n, options, "the data frame")
        self.ids = ids_in_memory(frame, options.ids)

    def total(self, done: int) -> int:
        return int(done * self._frame.npartitions / max(1, self._done)) if self._lazy else super().total(done)

    def _parts(self, first: int, stop: int | None) -> Iterator[tuple[int, Any]]:
        for table in self._partitions() if self._lazy else [self._frame]:
            for part in table.to_batches(self._batch_rows()):
                yield first, part
                first += part.num_rows

    def _partitions(self) -> Iterator[Any]:
        compute = compute_here(self._frame)
        for partition in partitions_of(self._frame):
            self._done += 1
            yield pyarrow.Table.from_pandas(compute([partition])[0], preserve_index=False)


def _open(path: Place) -> Any:
    with damage_becomes(path, "not a readable Parquet file, truncated or damaged"):
        return pyarrow.parquet.ParquetFile(seekable(path), pre_buffer=False, buffer_size=1 << 20)


def _notes_of(indices: Iterable[str]) -> list[str]:
    return [f"column {name} dropped: an index of pandas" for name in sorted(indices)]


STATISTICS = {".dta": "read_dta", ".sav": "read_sav", ".zsav": "read_sav", ".sas7bdat": "read_sas7bdat"}


class StatisticsColumns:
    """The columns of such a file: numbers as they are stored, also where values have labels; ``text`` is these labels."""

    def __init__(self, path: Place, text: Sequence[str] = ()) -> None:
        try:
            import pyreadstat
        except ImportError:
            raise UsageError(f"{path.suffix} is read by pyreadstat, which is not installed: {install('statistics')}") from None
        self.where, self._text, self._errors = str(path), text, (pyreadstat.ReadstatError, pyreadstat.PyreadstatError)
        self._call = getattr(pyreadstat, STATISTICS[path.suffix])
        _, about = self._read(metadataonly=True)
        self.columns, kinds = list(about.column_names), about.readstat_variable_types
        self._strings = {name for name, kind in kinds.items() if kind == "string"}
        self._labels: dict[str, dict[Any, str]] = about.variable_value_labels
        named = [name for name in self.columns if name in self._labels and name not in text]
        self.notes: Sequence[str] = [f"{', '.join(named)}: numbers as stored, though values have labels"] if named else []

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        first, wanted = 0, list(dict.fromkeys(columns))
        while True:
            values, _ = self._read(usecols=wanted, row_offset=first, row_limit=rows, output_format="dict")
            count = len(next(iter(values.values()), ()))
            if count:
                yield pyarrow.RecordBatch.from_pydict({name: self._column(name, values[name]) for name in wanted})
            if count < rows:
                return
            first += count

    def _read(self, **how: Any) -> Any:
        try:
            return self._call(self.where, **how)
        except (*self._errors, UnicodeDecodeError) as error:
            raise BadInputError(f"{self.where}: pyreadstat cannot read it: {error}") from None

    def _column(self, name: str, values: Any) -> Any:
        """Empty text is missing."""
        if name in self._text:
            known = self._labels.get(name, {})
            values = [None if each is None or each != each else known.get(each, str(each)) for each in values]
        if name in self._text or name in self._strings:
            return pyarrow.array([each or None for each in values], pyarrow.string())
        found = pyarrow.array(values, from_pandas=True)  # dates, which are refused by name, stay what they are
        return found if pyarrow.types.is_temporal(found.type) else found.cast(pyarrow.float64())
