"""Ingest: any source of rows becomes a dataset, streaming, in memory that does not depend on n."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.arrays import is_lazy
from dfeas.data.ingest.array_files import ArraySource, is_array, labels_beside, open_rows
from dfeas.data.ingest.partitions import MANY, Ingest, PointSource
from dfeas.data.ingest.sparse_files import CscRows
from dfeas.data.ingest.text import PACKED
from dfeas.data.labels import LabelEncoder, encode_array, require_usable
from dfeas.data.storage.layout import MARKER, Header
from dfeas.data.storage.places import Place, is_url, place
from dfeas.data.storage.scratch import require_free
from dfeas.data.storage.zarr_arrays import open_labels
from dfeas.data.writers.dataset import Pool, Progress, output_place
from dfeas.errors import BadInputError, UsageError, absent, none_of

Note = Callable[[str], None]

FORMATS = ("csv", "tsv", "parquet", "svmlight")
_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".svmlight": "svmlight",
    ".svm": "svmlight",
    ".libsvm": "svmlight",
}
_DELIMITERS = {"csv": ",", "tsv": "\t"}


def format_of(src: Any, named: str | None = None) -> str:
    """One of FORMATS, ``frame`` for a data frame, ``arrays`` for all that has an array of points.

    Raises UsageError for a format that does not exist, BadInputError when there is nothing at the path.
    """
    if not isinstance(src, str | Path):
        if hasattr(src, "__arrow_c_stream__") or is_lazy(src):
            return "frame"
        if is_array(src):
            return "arrays"
        raise UsageError(f"a source of type {type(src).__name__}: give a path, an array, or a data frame that speaks Arrow")
    path = place(src)
    if named is not None and named not in FORMATS:
        raise UsageError(f"--format {none_of(named, FORMATS)}")
    if not path.exists():
        raise BadInputError(absent(path))
    if path.is_dir():
        zarr = any((path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup"))
        tables = named == "parquet" or (not zarr and _holds(path, "*.parquet"))
        return "parquet" if tables else "arrays"
    if not path.is_file():
        raise BadInputError(f"{path}: a pipe or a device, and data is read more than once; write it to a file first")
    name = path.with_suffix("") if path.suffix in (".gz", ".bz2") else path
    return named or _SUFFIXES.get(name.suffix, "arrays")


def _holds(folder: Place, pattern: str) -> bool:
    """Whether there is such a file in a folder. Raises BadInputError for one whose folders come and go."""
    try:
        return any(folder.rglob(pattern))
    except OSError as error:
        raise BadInputError(
            f"{folder}: expected a dataset, a zarr array or a folder of .parquet; it cannot be looked through, "
            f"{error.filename}: {error.strerror}"
        ) from None


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
    pool: Pool | None = None,
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
    ``note`` is told what was cast or dropped. ``pool`` does the work elsewhere, of sources that can be split. Raises
    BadInputError or CorruptDataError for what cannot be used, UsageError when OUT exists or an option does not apply; nothing
    is left of OUT then.
    """
    if block_rows is not None and block_rows < 1:
        raise UsageError(f"block_rows {block_rows}: expected at least 1")
    if pool is not None:
        require_split(src, out, format, points)
    kind = format_of(src, format)
    _refuse_idle(kind, header=header, features=features, zero_based=zero_based or None, sparse=sparse, dtype=dtype)
    _refuse_labels(kind, labels, label_column)
    say = note or (lambda text: None)
    path = place(out) if pool is None else folder_of(out)
    source: PointSource
    label: NDArray[Any] | None = None
    names: tuple[str, ...] = ()
    with output_place(path), ExitStack() as stack:
        if kind == "arrays":
            where = src if is_array(src) else place(src)
            source = ArraySource(where, points, stack.enter_context(open_rows(where, points)), sparse)
            about, beside = f"labels of {source.where}", labels_beside(where, labels, label_column)
            names, label = encode_array(beside, source.n, about, positive, many=True, known=classes)
            stored = source.dtype
        else:
            beside = None if labels is None else np.asarray(open_labels(place(labels))[:])
            source = _open_source(src, kind, label_column, header, features, zero_based, sparse, labels is None, pool)
            stored, about = source.dtype if dtype is None else np.dtype(dtype), f"labels of {source.where}"
            if beside is not None:
                names, label = _encode_beside(beside, about, positive, classes)
        rows = min(source.n or MANY, block_rows or source.usual_rows(stored))
        if isinstance(source, ArraySource):
            source.describe(rows)
        for text in [*source.notes, *([] if stored == source.dtype else [f"rounded to {stored}, as asked"])]:
            say(text)
        encoder = LabelEncoder(about, positive, classes)
        work = Ingest(source, stored, rows, label, names, encoder, classes is not None, progress)
        return work.in_order(path) if not isinstance(path, Path) or pool is None else work.spread(path, pool, str(out))


def _encode_beside(
    labels: NDArray[Any], where: str, positive: str | None, known: tuple[str, ...] | None
) -> tuple[tuple[str, ...], NDArray[Any]]:
    """The classes, and labels (n,) beside a stream as they are stored. Raises BadInputError for labels that cannot be used."""
    require_usable(labels, where)
    n = len(labels)
    if labels.shape not in ((n,), (n, 1)):
        raise BadInputError(f"{where}: expected an array (n,), got shape {labels.shape}")
    return encode_array(labels, n, where, positive, many=True, known=known, column=True)


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
    if labels is not None and label_column is not None and kind == "arrays":
        raise UsageError("--labels and --label-column: give one of them")
    if kind == "arrays":
        return
    if labels is not None and kind == "svmlight":
        raise UsageError(f"--labels {labels}: {kind} has its labels beside the points; leave it out")
    if labels is not None and label_column is not None:
        raise UsageError("--labels and --label-column: give one of them")
    if kind == "svmlight" and label_column is not None:
        raise UsageError("--label-column: the labels of svmlight are its first column always; leave it out")


def _open_source(
    src: Any,
    kind: str,
    label_column: str | None,
    header: bool | None,
    features: int | None,
    zero_based: bool,
    sparse: bool | None,
    labelled: bool,
    pool: Pool | None,
) -> PointSource:
    """The points of a format. Raises UsageError when what it needs is not installed.

    ``labelled`` says whether a table has a column of labels. With a ``pool`` text is looked through first.
    """
    if kind == "svmlight":
        from dfeas.data.ingest.svmlight import Svmlight

        return Svmlight(place(src), features, zero_based, sparse, pool)
    try:
        from dfeas.data.ingest.delimited import Delimited
        from dfeas.data.ingest.tables import Frame, LazyFrame, Parquet
    except ImportError:
        raise UsageError(f'{kind} is read by pyarrow, which is not installed: pip install "dfeas[formats]"') from None
    if kind == "frame":
        return (LazyFrame if is_lazy(src) else Frame)(src, label_column, labelled)
    if kind == "parquet":
        return Parquet(place(src), label_column, labelled)
    return Delimited(place(src), _DELIMITERS[kind], label_column, header, labelled, pool)


def folder_of(out: str | Path) -> Path:
    """The output as workers see it. Raises UsageError for an object store."""
    if is_url(out):
        raise UsageError(f"{out}: workers write to a folder that all of them see; leave out the cluster to write to a store")
    return Path(out).absolute()


def require_split(src: Any, out: Any, format: str | None = None, points: str = "X") -> None:
    """Raise UsageError for what workers cannot read or write: to be asked before they are started."""
    require_free(folder_of(out), MARKER)
    kind = format_of(src, format)
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
        with open_rows(path, points) as rows:
            if isinstance(rows, CscRows):
                raise _unsplit(str(path), "CSC")


def _unsplit(where: str, why: str) -> UsageError:
    return UsageError(
        f"{where}: {why}, so one process reads it in order; workers read .npy, zarr, HDF5, Parquet, and CSV, TSV and svmlight "
        "that are not compressed: leave out --local and --scheduler"
    )
