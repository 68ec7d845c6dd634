"""Ingest: any source of rows becomes a dataset, streaming, in memory that does not depend on n."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.arrays import opened
from dfeas.data.frames import require_aligned, values_of
from dfeas.data.ingest.array_files import ArraySource, array_labels, open_rows
from dfeas.data.ingest.formats import format_of, is_array
from dfeas.data.ingest.options import IngestOptions
from dfeas.data.ingest.partitions import MANY, Ingest, PointSource
from dfeas.data.ingest.sparse_files import CscRows
from dfeas.data.ingest.text import PACKED
from dfeas.data.labels import LabelEncoder, encode_array
from dfeas.data.storage.layout import MARKER, Header
from dfeas.data.storage.places import is_url, place
from dfeas.data.storage.scratch import require_free
from dfeas.data.storage.zarr_arrays import open_labels
from dfeas.data.writers.dataset import Pool, Progress, output_place
from dfeas.data.writers.shards import shard_bytes
from dfeas.errors import BadInputError, UsageError, install
from dfeas.linalg.blas import processors

if TYPE_CHECKING:  # pyarrow may be absent
    from dfeas.data.ingest.csv_file import CsvColumns
    from dfeas.data.ingest.tables import ParquetColumns

    pass

Note = Callable[[str], None]

_SPEEDS = {"csv": (200e6, 1.9), "tsv": (200e6, 1.9), "svmlight": (70e6, 1.5)}
"""Bytes of text a second that one process reads, and processors that its threads keep busy meanwhile."""

START_SECONDS = 4
"""That it takes longer with workers which start for one ingest and end behind it: each imports what it needs."""


def ingest(
    src: Any,
    out: str | Path,
    options: IngestOptions,
    *,
    progress: Progress | None = None,
    note: Note | None = None,
    pool: Pool | None = None,
) -> Header:
    """Write the dataset OUT from a file, a folder, an array or a data frame, and return its header; see ``dfeas.ingest``.

    A source that is open already has its labels among the options. ``pool`` does the work elsewhere, of sources that can be
    split.
    """
    kind = "arrays"
    if not isinstance(src, PointSource):
        kind = format_of(src, options.format)
        options.require_for(kind)
        if pool is not None:
            require_split(src, out, options)
    if kind == "cones":
        from dfeas.data.ingest.cones import ingest_cones  # with the reader of SDPA

        return ingest_cones(src, out, progress=progress, shard=options.shard)
    path = place(out) if pool is None else folder_of(out)
    with output_place(path), ExitStack() as stack:
        source = src if isinstance(src, PointSource) else open_points(stack, src, kind, options, pool)
        beside = options.labels if source is src else labels_beside(src, kind, options)
        about = f"labels of {source.where}"
        names, label = encoded_beside(beside, source, about, options.positive)
        stored = source.dtype if options.dtype is None else np.dtype(options.dtype)
        rows = min(source.n or MANY, options.block_rows or source.usual_rows(stored))
        source.describe(rows)
        for text in [*source.notes, *([] if stored == source.dtype else [f"rounded to {stored}, as asked"])]:
            if note is not None:
                note(text)
        encoder = LabelEncoder(about, options.positive)
        shard = shard_bytes(options.shard)
        work = Ingest(source, stored, rows, label, names, encoder, progress, shard)
        return work.in_order(path) if not isinstance(path, Path) or pool is None else work.spread(path, pool, str(out))


def labels_beside(src: Any, kind: str, options: IngestOptions) -> Any:
    """An array of labels beside the points; None where they come with them."""
    if kind == "arrays":
        return array_labels(src if is_array(src) else place(src), options.labels, options.label_column)
    given = options.labels
    require_aligned(src, given, "labels")
    if given is None:
        return None
    found = open_labels(place(given))[:] if isinstance(given, str | Path) else opened(values_of(given), "labels")
    return found if found.shape else found.reshape(1)


def encoded_beside(
    beside: Any, source: PointSource, where: str, positive: str | None, known: tuple[str, ...] | None = None
) -> tuple[tuple[str, ...], NDArray[Any] | None]:
    """The classes, and labels (n,) beside points as they are stored; none where they come with the points.

    Those of a stream, whose end has not come, are compared with its points later. Raises BadInputError for labels that cannot
    be used.
    """
    if beside is None:
        return (), None
    array = isinstance(source, ArraySource)
    n = source.n if array and source.n is not None else len(beside)
    return encode_array(beside, n, where, positive, many=True, known=known, column=not array)


def open_points(stack: ExitStack, src: Any, kind: str, options: IngestOptions, pool: Pool | None) -> PointSource:
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


def folder_of(out: str | Path) -> Path:
    """The output as workers see it. Raises UsageError for an object store."""
    if is_url(out):
        raise UsageError(f"{out}: workers write to a folder that all of them see; leave out the cluster to write to a store")
    return Path(out).absolute()


def worth_starting(src: str, options: IngestOptions, workers: int) -> bool:
    """Whether so many workers of this machine save more of an ingest than it takes to start them; asked of text only."""
    kind = format_of(src, options.format)
    if kind not in _SPEEDS:
        return True
    speed, busy = _SPEEDS[kind]
    return place(src).stat().st_size / speed * (1 - busy / min(workers, processors())) > START_SECONDS


def require_split(src: Any, out: Any, options: IngestOptions) -> None:
    """Raise UsageError for what workers cannot read or write: to be asked before they are started."""
    require_free(folder_of(out), MARKER)
    kind = format_of(src, options.format)
    if kind == "cones":
        raise UsageError(f"{src}: a cluster is for points, not for cones; leave it out")
    if not isinstance(src, str | Path):
        raise _unsplit("the data frame" if kind == "frame" else "the array", "in the memory of this process")
    path = place(src)
    if kind in ("csv", "tsv", "svmlight") and (path.suffix in PACKED or not path.is_file()):
        raise _unsplit(str(path), "compressed" if path.suffix in PACKED else "no file")
    if kind == "arrays" and path.suffix == ".npz":
        raise _unsplit(str(path), "an archive")
    if kind == "arrays" and path.suffix == ".npy" and is_url(str(src)):
        raise _unsplit(str(path), "in an object store")
    if kind == "arrays":
        with open_rows(path, options.points) as rows:
            if isinstance(rows, CscRows):
                raise _unsplit(str(path), "CSC")


def _unsplit(where: str, why: str) -> UsageError:
    return UsageError(
        f"{where}: {why}, so one process reads it in order; workers read .npy, zarr, HDF5, Parquet, and CSV, TSV and svmlight "
        "that are not compressed: leave out --local and --scheduler"
    )
