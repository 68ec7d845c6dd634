"""Who reads a source of points or a table, and where its labels are."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from dfeas.data.arrays import accept_array
from dfeas.data.frames import require_aligned, values_of
from dfeas.data.ingest.array_files import ArraySource, array_labels, open_rows
from dfeas.data.ingest.formats import format_of, is_array
from dfeas.data.ingest.options import IngestOptions
from dfeas.data.ingest.source import PointSource
from dfeas.data.labels import encode_array
from dfeas.data.storage.places import place
from dfeas.data.storage.zarr_arrays import open_labels
from dfeas.errors import BadInputError, UsageError, install

if TYPE_CHECKING:  # pyarrow may be absent
    from dfeas.data.ingest.csv_file import CsvColumns
    from dfeas.data.ingest.tables import ParquetColumns
    from dfeas.data.writers.dataset import Pool


def open_points(stack: ExitStack, src: Any, kind: str, options: IngestOptions, pool: Pool | None = None) -> PointSource:
    """The points of a format; with a ``pool`` text is looked through first.

    Raises UsageError when what the format needs is not installed.
    """
    if kind == "arrays":
        where = src if is_array(src) else place(src)
        return ArraySource(where, options.points, stack.enter_context(open_rows(where, options.points)), options.sparse)
    if kind == "cones":
        raise UsageError(f"{src}: cones of SDPA; dfeas ingest {quote(str(src))} cones.data, and then ask about cones.data")
    if kind == "svmlight":
        from dfeas.data.ingest.svmlight import Svmlight

        return Svmlight(place(src), options, pool)
    try:
        from dfeas.data.ingest.csv_file import CsvLines, CsvPoints
        from dfeas.data.ingest.tables import FramePoints, ParquetPoints
    except ImportError:
        raise UsageError(f"{kind} is read by pyarrow, which is not installed: {install('formats')}") from None
    if kind == "frame":
        return FramePoints(src, options)
    if kind == "parquet":
        return ParquetPoints(place(src), options)
    return CsvPoints(CsvLines(place(src), kind, options), options, pool)


def open_columns(
    path: str | Path, options: IngestOptions, named: Sequence[str], text: Sequence[str]
) -> CsvColumns | ParquetColumns:
    """A table by its path; columns of ``text`` are text, and an index of pandas is none of its columns unless it is ``named``.

    Raises UsageError for what is no table.
    """
    try:
        from dfeas.data.ingest.csv_file import CsvColumns
        from dfeas.data.ingest.tables import ParquetColumns
    except ImportError:
        raise UsageError(f"tables are read by pyarrow, which is not installed: {install('formats')}") from None
    kind = format_of(path, options.format)
    if kind not in ("csv", "tsv", "parquet"):
        raise UsageError(f"{path}: expected .csv, .tsv (also .gz) or .parquet, or a folder of it")
    options.require_for(kind)
    where = place(path)
    table = ParquetColumns(where, named, text) if kind == "parquet" else CsvColumns(where, kind, options, text)
    twice = next((name for name in table.columns if table.columns.count(name) > 1), None)
    if twice is not None:
        raise BadInputError(f"{path}: two columns are called {twice}; rename one")
    return table


def labels_beside(src: Any, kind: str, options: IngestOptions) -> Any:
    """An array of labels beside the points; None where they come with them."""
    if kind == "arrays":
        return array_labels(src if is_array(src) else place(src), options.labels, options.label_column)
    given = options.labels
    require_aligned(src, given, "labels")
    if given is None:
        return None
    found = open_labels(place(given))[:] if isinstance(given, str | Path) else accept_array(values_of(given), "labels")
    return found if found.shape else found.reshape(1)


def encode_beside(
    beside: Any, source: PointSource, positive: str | None, known: tuple[str, ...] | None = None
) -> tuple[tuple[str, ...], NDArray[Any] | None]:
    """The classes, and labels (n,) beside points as they are stored; none where they come with the points.

    Those of a stream, whose end has not come, are compared with its points later. Raises BadInputError for labels that cannot
    be used.
    """
    if beside is None:
        return (), None
    array = isinstance(source, ArraySource) and not source.whole  # those of a collection may be a column
    n = source.n if array and source.n is not None else len(beside)
    return encode_array(beside, n, f"labels of {source.where}", positive, many=True, known=known, column=not array)
