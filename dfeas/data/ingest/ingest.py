"""Ingest: any source of rows becomes a dataset, streaming, in memory that does not depend on n."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfeas.data.ingest.array_files import is_array, open_rows
from dfeas.data.ingest.array_points import ArrayPoints, LabelsBeside
from dfeas.data.ingest.formats import format_of, open_parquet, open_stream
from dfeas.data.ingest.index import Spread
from dfeas.data.ingest.parallel import Whole, require_split, whole_array, whole_table, whole_text
from dfeas.data.ingest.streams import Changed, Streaming
from dfeas.data.labels import KnownLabels
from dfeas.data.storage.layout import Header
from dfeas.data.storage.places import place
from dfeas.data.storage.zarr_arrays import open_labels
from dfeas.data.writers.dataset import Progress, fill, fill_in_order
from dfeas.data.writers.output import output
from dfeas.data.writers.sparse import SparseWriter
from dfeas.errors import UsageError

if TYPE_CHECKING:
    from dfeas.data.ingest.tables import Parquet

Note = Callable[[str], None]


def ingest(
    src: Any,
    out: str | Path,
    *,
    points: str = "X",
    labels: Any = None,
    label_column: str | None = None,
    positive: str | None = None,
    format: str | None = None,
    header: bool | None = None,
    features: int | None = None,
    zero_based: bool = False,
    sparse: bool | None = None,
    dtype: str | None = None,
    block_rows: int | None = None,
    classes: tuple[str, ...] | None = None,
    progress: Progress | None = None,
    note: Note | None = None,
    spread: Spread | None = None,
) -> Header:
    """Write the dataset OUT from a file, a folder or a data frame, and return its header.

    Arrays of ``points`` (n, m): .npy, .npz, HDF5, .h5ad and zarr arrays; ``labels`` is a path, or the name of an array in SRC
    (default ``y`` in .npz and HDF5), ``label_column`` a column of obs in .h5ad. Tables: CSV and TSV (also .gz), Parquet, and
    frames that speak Arrow (pyarrow, pandas 2.2, polars); ``label_column`` is a name or an index, all others are features;
    with ``labels`` all columns are; ``header`` says whether CSV has names. svmlight (also .gz, .bz2) has ``features``
    features, or as many as its indices say; they begin at 1, or at 0 with ``zero_based``. CSR and CSC matrices: ``X`` of
    .h5ad and of HDF5 in the same layout, and .npz files that SciPy wrote. Arrays of Python (NumPy, zarr, HDF5, Dask)
    come with ``labels`` that are an array or a path.

    ``sparse`` says how svmlight and arrays are stored; without it what is sparse in SRC, or svmlight, is stored sparse when
    less than ``SPARSE_BELOW`` of its entries are not zero. ``dtype`` (float32 or float64) rounds tables and svmlight to it.
    ``format`` (csv, tsv, parquet, svmlight) is for names that do not tell.

    Labels of two values become signs, of more codes; ``classes`` are those of a dataset to which the points will be appended.
    ``note`` is told what was cast or dropped. ``spread`` does the work elsewhere, of sources that can be split. Raises
    BadInputError or CorruptDataError for what cannot be used, UsageError when OUT exists or an option does not apply; nothing
    is left of OUT then.
    """
    if block_rows is not None and block_rows < 1:
        raise UsageError(f"block_rows {block_rows}: expected at least 1")
    if spread is not None:
        require_split(src, out, format, points)
    kind = format_of(src, format)
    _refuse_idle(kind, header=header, features=features, zero_based=zero_based or None, sparse=sparse, dtype=dtype)
    say = note or (lambda text: None)
    if kind == "arrays":
        beside = LabelsBeside(labels, label_column, positive, classes)
        return _from_arrays(src, out, points, beside, sparse, block_rows, progress, say, spread)
    _refuse_labels(kind, labels, label_column)
    opened = partial(open_stream, src, kind, label_column, header, features, zero_based, sparse, labels is None)
    others = None if labels is None else open_labels(place(labels))[:]
    if spread is not None:
        if kind == "parquet":
            whole = _table(open_parquet(src, label_column, labels is None), others, dtype, positive, block_rows, say)
        else:
            whole = whole_text(src, kind, opened, others, dtype, positive, block_rows, spread, say)
        return whole.write(out, spread, progress)
    with output(out) as make:
        stream = opened()
        if labels is not None or dtype is not None:
            stream = Changed(stream, others, dtype)
        for text in stream.notes:
            say(text)
        known = None if classes is None else KnownLabels(classes, f"labels of {stream.where}")
        made = partial(SparseWriter, place(out)) if stream.sparse else make
        return Streaming(stream, positive, known).write(made, block_rows, progress)


def _refuse_idle(kind: str, **options: Any) -> None:
    """Raise UsageError for an option that says nothing about this kind of source."""
    about = {
        "header": ("csv", "tsv"),
        "features": ("svmlight",),
        "zero_based": ("svmlight",),
        "sparse": ("svmlight", "arrays"),
        "dtype": ("csv", "tsv", "parquet", "frame", "svmlight"),
    }
    for name, value in options.items():
        if value is not None and kind not in about[name]:
            option = ("--sparse" if value else "--dense") if name == "sparse" else f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is for {' and '.join(about[name])}; this is {kind}")


def _refuse_labels(kind: str, labels: Any, label_column: str | None) -> None:
    """Raise UsageError for labels that a stream of this kind does not take."""
    if labels is not None and kind == "svmlight":
        raise UsageError(f"--labels {labels}: {kind} has its labels beside the points; leave it out")
    if labels is not None and label_column is not None:
        raise UsageError("--labels and --label-column: give one of them")
    if kind == "svmlight" and label_column is not None:
        raise UsageError("--label-column: the labels of svmlight are its first column always; leave it out")


def _from_arrays(
    src: Any,
    out: str | Path,
    points: str,
    labels: LabelsBeside,
    sparse: bool | None,
    block_rows: int | None,
    progress: Progress | None,
    note: Note,
    spread: Spread | None,
) -> Header:
    """From arrays whose shape is known, with labels that fit in memory."""
    path = src if is_array(src) else place(src)
    with open_rows(path, points) as rows:
        found = ArrayPoints.of(path, rows, labels, sparse, block_rows)
        for text in found.notes:
            note(text)
        if spread is not None:
            return whole_array(src, points, found).write(out, spread, progress)
        with output(out) as make:
            made = partial(SparseWriter, place(out)) if found.sparse else make
            target = made(found.n, found.m, found.dtype, found.block_rows, label=found.mapping.dtype)
            (fill if found.parallel else fill_in_order)(target, found, progress)
            return target.finish(found.mapping.classes, known=labels.classes is not None)


def _table(table: Parquet, labels: Any, dtype: str | None, positive: str | None, block_rows: int | None, note: Note) -> Whole:
    """Parquet files that workers read."""
    changed = Changed(table, labels, dtype)
    for text in changed.notes:
        note(text)
    return whole_table(table, changed.labels, changed.dtype, positive, block_rows)
