"""Who reads a source of points or a table, where its labels are, and a small file of points as a dataset.

Such a file is opened as it is: each time it is read into memory, as an ingest reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfeas import leaves
from dfeas.data.arrays import accept_array, of_points
from dfeas.data.dataset import Dataset
from dfeas.data.frames import bring_here, is_lazy, require_aligned, values_of
from dfeas.data.ids import ROWS, Ids, Part, call_index, part_of
from dfeas.data.ingest import hdf5
from dfeas.data.ingest.array_files import ArraySource, array_labels, members_of, open_rows
from dfeas.data.ingest.options import TABLES, IngestOptions, format_of, is_array, parquet_files
from dfeas.data.ingest.source import MANY, Partition, PointSource
from dfeas.data.labels import LabelEncoder, encode_array
from dfeas.data.partitions import names_of
from dfeas.data.source import ALL, Choice, Source
from dfeas.data.storage.features import require_distinct
from dfeas.data.storage.numbers import array_of, is_dask_array
from dfeas.data.storage.places import Place, absolute, is_url, local, place
from dfeas.data.storage.zarr_arrays import open_labels
from dfeas.errors import BadInputError, UsageError, format_bytes, install, spell, spell_ingest
from dfeas.linalg.points import Points, nbytes, stack_points
from dfeas.records import replace

if TYPE_CHECKING:  # pyarrow may be absent
    from dfeas.data.ingest.csv_file import CsvColumns
    from dfeas.data.ingest.tables import ParquetColumns, StatisticsColumns


OWN = "y"
"""Labels beside the points in .npz and HDF5, and what those of svmlight are called."""
ANNOTATED = ".h5ad"
OF_INGEST = {"sep", "header", "points", "format", "features", "zero_based"}
"""Arguments that errors of readers name, and that are not those of who opens a file as it is."""


def open_points(stack: ExitStack, src: Any, kind: str, options: IngestOptions) -> PointSource:
    """Points of a format. Raises UsageError when what it needs is missing."""
    if kind == "arrays":
        where = src if is_array(src) else place(src)
        return ArraySource(where, options.points, stack.enter_context(open_rows(where, options.points)), options.sparse)
    if kind == "svmlight":
        from dfeas.data.ingest.svmlight import Svmlight

        return Svmlight(place(src), options)
    try:
        from dfeas.data.ingest.csv_file import CsvLines, CsvPoints
        from dfeas.data.ingest.tables import FramePoints, ParquetPoints
    except ImportError:
        raise _lack_of_pyarrow(f"{kind} is") from None
    if kind == "frame":
        return FramePoints(src, options)
    if kind == "parquet":
        return ParquetPoints(place(src), options)
    return CsvPoints(CsvLines(place(src), kind, options), options)


def _lack_of_pyarrow(what: str) -> UsageError:
    return UsageError(f"{what} read by pyarrow, which is not installed: {install('formats')}")


def open_columns(
    path: str | Path, options: IngestOptions, named: Sequence[str] = (), text: Sequence[str] = ()
) -> CsvColumns | ParquetColumns | StatisticsColumns:
    """A table by its path; columns of ``text`` are text, and an index of pandas is none of its columns unless it is ``named``.
    Raises UsageError for what is no table.
    """
    try:
        from dfeas.data.ingest.csv_file import CsvColumns
        from dfeas.data.ingest.tables import STATISTICS, ParquetColumns, StatisticsColumns
    except ImportError:
        raise _lack_of_pyarrow("tables are") from None
    kind, where = format_of(path, options.format), place(path)
    if where.suffix in STATISTICS:
        options.require_for(where.suffix)
        return StatisticsColumns(where, text)
    if kind not in TABLES:
        raise UsageError(f"{path}: expected .csv, .tsv (also .gz), {', '.join(STATISTICS)} or .parquet, or a folder of it")
    options.require_for(kind)
    table = ParquetColumns(where, named, text) if kind == "parquet" else CsvColumns(where, kind, options, text)
    require_distinct(table.columns, table.columns, str(path))
    return table


def ids_of(table: Any, name: str | None) -> Ids | None:
    """Ids of the rows of what ``open_columns`` returns: by a column, or by an index, if it has one."""
    name = getattr(table, "index", None) if name is None else name
    if name is None or name == getattr(getattr(table, "ids", None), "name", None):
        counted: Ids | None = getattr(table, "ids", None)
        return counted

    def parts() -> Iterator[Part]:
        return (part_of(batch.column(0)) for batch in table.batches([name], ROWS))

    return Ids(call_index(name), parts, getattr(table, "written", False))


def labels_beside(src: Any, kind: str, options: IngestOptions) -> Any:
    """An array of labels beside the points; None where they come with them."""
    if kind == "arrays":
        return array_labels(src if is_array(src) else place(src), options.labels, options.label_column)
    given = bring_here(options.labels)
    given = array_of(given, "labels") if is_dask_array(given) else given
    require_aligned(src, given, "labels", names_of(src) if is_lazy(src) and given is not None else None)
    if given is None:
        return None
    found = open_labels(place(given))[:] if isinstance(given, str | Path) else accept_array(values_of(given), "labels")
    return found if found.shape else found.reshape(1)


def encode_beside(
    beside: Any, source: PointSource, positive: str | None, known: tuple[str, ...] | None = None
) -> tuple[tuple[str, ...], NDArray[Any] | None]:
    """The classes, and labels (n,) beside points as they are stored; none where they come with the points. Those of a stream,
    whose end has not come, are compared with its points later. Raises BadInputError for labels that cannot be used.
    """
    if beside is None:
        return (), None
    array = isinstance(source, ArraySource) and not source.whole  # those of a collection may be a column
    n = source.n if array and source.n is not None else len(beside)
    return encode_array(beside, n, f"labels of {source.where}", positive, many=True, known=known, column=not array)


def columns_of_file(where: str | Path, label: str | None = None, choice: Choice = ALL) -> tuple[str, ...] | None:
    """Names of the columns of a table; none of one without names, None of what is no table. That a column is called as a label
    or is chosen tells that the first line has names, and that an index of pandas is a column.
    """
    path = place(where)
    kind = format_of(path)
    if kind not in TABLES:
        return None
    try:
        from dfeas.data.ingest.csv_file import CsvLines
        from dfeas.data.ingest.tables import ParquetColumns
    except ImportError:
        raise _lack_of_pyarrow("tables are") from None
    with _asked_of_ingest(path):
        if kind == "parquet":
            table = ParquetColumns(path, [*choice.names, *([] if label is None else [label])])
            counted = table.ids is not None and table.ids.name == choice.id  # an index that is a range, and no column
            return (*table.columns, *([choice.id] if counted and choice.id is not None else ()))
        options = IngestOptions(labels="" if label is None else None, label_column=label, choice=choice)
        lines = CsvLines(path, kind, options)
        return tuple(lines.features({label, *choice.names})) if lines.named else ()


def own_labels(where: str | Path) -> str | None:
    """The labels of a file that is no table, as a ``Source`` has them, if it has any."""
    path = place(where)
    if format_of(path) == "svmlight":
        return OWN
    return OWN if path.suffix == ".npz" and OWN in members_of(path) else None


def labels_in(where: str | Path, labels: str | Path | None, choice: Choice = ALL) -> str | None:
    """The labels of a file as a ``Source`` has them: the name of a column or of an array in it, or the absolute path of one.
    None are ``y`` of .npz and HDF5, and so are those that svmlight has beside its points. Raises UsageError and BadInputError
    where there are no such labels.
    """
    path = place(where)
    kind = format_of(path)
    if kind == "cones":  # which have none: whoever opens them says so
        return None if labels is None else str(labels)
    with _asked_of_ingest(path), ExitStack() as stack:
        if kind == "svmlight":
            IngestOptions(labels=None if labels == OWN else labels).require_for(kind)
            return OWN
        if labels is not None and kind == "arrays":
            return absolute(labels) if place(labels).exists() else str(labels)
        if kind == "arrays":
            if path.suffix == ".npz" or (path.suffix in hdf5.SUFFIXES and path.suffix != ANNOTATED):
                return OWN
            array_labels(path, None, None)  # which says what to do
        try:
            column = None if labels is None else str(labels)
            open_points(stack, path, kind, IngestOptions(label_column=column, choice=choice))
        except BadInputError:
            if labels is None or not place(labels).exists():
                raise
            return absolute(labels)
    if labels is None:
        raise UsageError(f"{where}: no labels come with its points; say where they are: {spell('labels')}")
    return str(labels)


def open_file(source: Source) -> Dataset:
    """All points of a file in memory, with labels as those of an array; a table without labels has features only. Raises what
    an ingest does, and UsageError for a file that is too large.
    """
    path, spec = place(source.spec.where), source.spec
    kind = format_of(path)
    _require_small(path, sum(each.stat().st_size for each in parquet_files(path)), source)
    if kind == "cones":
        opened: Dataset = leaves.open_sdpa(local(spec.where, "X"))
        return opened
    options = _options(path, kind, source)
    with ExitStack() as stack, _asked_of_ingest(path):
        points = open_points(stack, path, kind, options)
        beside = None if spec.beside is None or kind == "svmlight" else labels_beside(path, kind, options)
        positive, known = None if spec.one_vs_rest else spec.positive, source.known or None
        classes, label = encode_beside(beside, points, positive, known)
        if spec.beside is None and kind == "arrays":
            label = np.ones(points.n or 0, np.int8)
        encoder = LabelEncoder(f"labels of {points.where}", positive, known)
        held, codes = _read(path, points, label, encoder, source)
        if label is None:
            label = np.ones(len(codes), np.int8)
            if spec.beside is not None:
                classes, table = encoder.finish(len(codes))
                label = table[codes]
    return replace(of_points(str(path), held, classes, label, points.features), ids=points.ids, files=points.files)


def _read(
    path: Place, points: PointSource, label: NDArray[np.generic] | None, encoder: LabelEncoder, source: Source
) -> tuple[Points, NDArray[np.int16]]:
    rows = min(points.n or MANY, points.usual_rows(points.dtype))
    points.describe(rows)
    blocks, codes, size = list[Points](), [], 0
    for block, some in Partition(points, points.dtype, rows, label).blocks(encoder):
        size += nbytes(block)
        _require_small(path, size, source)
        blocks.append(block)
        codes.append(some)
    if not blocks:
        raise BadInputError(f"{points.where}: no points")
    return stack_points(blocks), np.concatenate(codes)


def _options(path: Place, kind: str, source: Source) -> IngestOptions:
    """What an ingest is told of labels as a ``Source`` has them, and of features that no line may have."""
    labels, choice = source.spec.beside, source.spec.choice
    named = labels is not None and not is_url(labels) and not Path(labels).is_absolute()
    if named and (kind in TABLES or path.suffix == ANNOTATED):
        return IngestOptions(label_column=labels, choice=choice)
    if kind == "svmlight":
        return IngestOptions(features=source.features)
    return IngestOptions(labels="" if labels is None else labels, choice=choice)


def _require_small(path: Place, size: int, source: Source) -> None:
    if size <= source.file_bytes:
        return
    data, labels = f"{path.name.partition('.')[0] or 'points'}.data", {}
    if source.spec.beside is not None:
        table = path.is_dir() or path.suffix not in (".npy", ".npz", *hdf5.SUFFIXES)
        labels = {"label_column" if table else "labels": source.spec.beside}
    raise UsageError(
        f"{path}: too large to open directly ({format_bytes(size)} or more; the limit is a quarter of {spell('memory')}, "
        f"{format_bytes(source.file_bytes)}). Convert it first: {spell_ingest(path, data, **labels)}, and then ask about {data}"
    )


@contextmanager
def _asked_of_ingest(path: Place) -> Iterator[None]:
    """What readers say of options that only an ingest has, and of labels in the word that all have for them."""
    try:
        yield
    except (BadInputError, UsageError) as error:
        text = error.about_labels()
        if error.arguments & OF_INGEST:
            out = f"{path.name.partition('.')[0]}.data"
            text += f": these are options of {spell_ingest(path, out)}"
        raise type(error)(text) from None
