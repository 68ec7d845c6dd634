"""Ingest: any source of rows becomes a dataset, streaming, in memory that does not depend on n."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used
from numpy.typing import NDArray

from dfeas.csr import tidied, with_data
from dfeas.errors import BadInputError, UsageError
from dfeas.passes.points import Points, is_dense
from dfeas.store.annotated import obs_labels
from dfeas.store.changed import Changed
from dfeas.store.formats import format_of, open_stream
from dfeas.store.labels import KnownLabels, map_labels
from dfeas.store.layout import SPARSE_BELOW, Header, default_block_rows, sparse_block_rows
from dfeas.store.numbers import cast, stored_dtype
from dfeas.store.opening import check_shape, open_labels
from dfeas.store.places import is_url, place
from dfeas.store.signs import Codes
from dfeas.store.sources import is_array, open_rows
from dfeas.store.sparse_writing import SparseWriter
from dfeas.store.streams import Stream, blocks
from dfeas.store.writing import DatasetWriter, output

WRITERS = 2
IN_FLIGHT = 4
"""Blocks that may wait to be written."""

DISTANT_WRITERS = 12
"""Threads that write to an object store: each waits for its requests most of the time."""

MANY = 1 << 60
"""More points than there are: n of a stream that has not ended."""

Progress = Callable[[int, int], None]  # (points done, points in all, as far as is known; the same at the end only)
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
) -> Header:
    """Write the dataset OUT from a file, a folder or a data frame, and return its header.

    Arrays of ``points`` (n, m): .npy, .npz, HDF5, .h5ad and zarr arrays; ``labels`` is a path, or the name of an array in SRC
    (default ``y`` in .npz and HDF5), ``label_column`` a column of obs in .h5ad. Tables: CSV and TSV (also .gz), Parquet, and
    frames that speak Arrow (pyarrow, pandas 2.2, polars); ``label_column`` is a name or an index, all others are features;
    with ``labels`` all columns are; ``header`` says whether CSV has names. svmlight (also .gz, .bz2) has ``features``
    features, or as many as its indices say; they begin at 1, or at 0 with ``zero_based``. CSR matrices: ``X`` of .h5ad and of
    HDF5 in the same layout, and .npz files that SciPy wrote. Arrays of Python (NumPy, zarr, HDF5, Dask) come with ``labels``
    that are an array or a path.

    ``sparse`` says how svmlight and arrays are stored; without it what is sparse in SRC, or svmlight, is stored sparse when
    less than ``SPARSE_BELOW`` of its entries are not zero. ``dtype`` (float32 or float64) rounds tables and svmlight to it.
    ``format`` (csv, tsv, parquet, svmlight) is for names that do not tell.

    Labels of two values become signs, of more codes; ``classes`` are those of a dataset to which the points will be appended.
    ``note`` is told what was cast or dropped. Raises BadInputError or CorruptDataError for what cannot be used, UsageError when
    OUT exists or an option does not apply; nothing is left of OUT then.
    """
    if block_rows is not None and block_rows < 1:
        raise UsageError(f"block_rows {block_rows}: expected at least 1")
    kind = format_of(src, format)
    _refuse_idle(kind, header=header, features=features, zero_based=zero_based or None, sparse=sparse, dtype=dtype)
    say = note or (lambda text: None)
    if kind == "arrays":
        found, wanted = src if is_array(src) else place(src), _Labels(labels, label_column, positive, classes)
        return _from_arrays(found, out, points, wanted, sparse, block_rows, progress, say)
    if labels is not None and kind == "svmlight":
        raise UsageError(f"--labels {labels}: {kind} has its labels beside the points; leave it out")
    if labels is not None and label_column is not None:
        raise UsageError("--labels and --label-column: give one of them")
    if kind == "svmlight" and label_column is not None:
        raise UsageError("--label-column: the labels of svmlight are its first column always; leave it out")
    with output(out) as make:
        stream = open_stream(src, kind, label_column, header, features, zero_based, sparse, labels is None)
        if labels is not None or dtype is not None:
            stream = Changed(stream, None if labels is None else open_labels(place(labels))[:], dtype)
        for text in stream.notes:
            say(text)
        if stream.sparse:
            make = sparse_writer(out)
        known = None if classes is None else KnownLabels(classes, f"labels of {stream.where}")
        return _from_stream(stream, make, positive, known, block_rows, progress)


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


def _from_arrays(
    path: Any,
    out: str | Path,
    points: str,
    labels: _Labels,
    sparse: bool | None,
    block_rows: int | None,
    progress: Progress | None,
    note: Note,
) -> Header:
    """From arrays whose shape is known, with labels that fit in memory."""
    with open_rows(path, points) as rows:
        where = "the array" if is_array(path) else str(path)
        n, m = check_shape(rows.shape, where)
        dtype = stored_dtype(rows.dtype, where)
        if rows.dtype != dtype:
            note(f"{rows.dtype} cast to {dtype}")
        values = _labels(path, labels.given, labels.column, n)
        where = f"labels of {where}"
        known = None if labels.classes is None else KnownLabels(labels.classes, where)
        if known is not None and tuple(values.shape or ()) not in ((n,), (n, 1)):
            raise BadInputError(f"{where}: expected {n} labels, one a point, got an array of shape {tuple(values.shape or ())}")
        mapping = known or map_labels(values, n, labels.positive, where, many=True)
        entries = getattr(rows, "entries", None)  # stored ones of a sparse source
        if sparse is None:
            sparse = entries is not None and entries < SPARSE_BELOW * n * m
        average = m if entries is None else max(1.0, entries / n)
        usual = sparse_block_rows(average, dtype.itemsize + 4, n) if sparse else default_block_rows(m, dtype.itemsize, n)
        size = min(n, block_rows or usual)
        if (entries is not None) != sparse:
            note(f"stored {'sparse' if sparse else 'dense'}, as {dtype}")

        def block(index: int) -> tuple[Points, NDArray[Any]]:
            run = slice(index * size, min(n, (index + 1) * size))
            return stored_points(rows[run], sparse), mapping(np.asarray(values[run]).reshape(-1))

        with output(out) as make:
            target = (sparse_writer(out) if sparse else make)(n, m, dtype, size, label=mapping.dtype)
            if rows.parallel and not sparse:
                fill(target, block, progress)
            else:
                _write_in_order(target, map(block, range(target.blocks)), _telling(progress, n))
            return target.finish(mapping.classes, known=known is not None)


@dataclass(frozen=True)
class _Labels:
    """Labels beside an array, and what they mean."""

    given: Any  # an array, or the name of a file, or of an array in the source
    column: str | None  # of obs
    positive: str | None
    classes: tuple[str, ...] | None  # of a dataset that has some already


def sparse_writer(out: str | Path) -> Callable[..., DatasetWriter]:
    """SparseWriter without its first argument. Raises UsageError for a URL."""
    if is_url(out):
        raise UsageError(f"{out}: sparse points are not written to object stores; store them dense, or in a folder")
    return partial(SparseWriter, Path(out))


def stored_points(rows: Any, sparse: bool) -> Points:
    """A block as it is stored: an array, or a CSR matrix without zeros and with ascending indices, each once."""
    if isinstance(rows, np.ndarray):
        found = cast(np.ascontiguousarray(rows))
        return tidied(scipy.sparse.csr_array(found)) if sparse else found
    matrix = with_data(rows, cast(rows.data))
    return tidied(matrix) if sparse else np.asarray(matrix.toarray())


def _labels(path: Any, labels: Any, label_column: str | None, n: int) -> Any:
    """The label array, in memory: at most some bytes a point, where points are hundreds."""
    if label_column is not None:
        if labels is not None:
            raise UsageError("--labels and --label-column: give one of them")
        return obs_labels(path, label_column)
    if labels is not None and not isinstance(labels, str | Path):
        return np.asarray(labels)
    if is_array(path):
        if labels is None:
            raise UsageError("an array has no labels beside its points; give labels, an array or a path")
        return open_labels(place(labels))
    if labels is not None and place(labels).exists():
        return open_labels(place(labels))
    if path.suffix == ".npy" or path.is_dir():
        if labels is None:
            raise UsageError(f"{path}: it has no labels beside the points; give --labels FILE")
        return open_labels(place(labels))
    if path.suffix == ".h5ad" and labels is None:
        raise UsageError(f"{path}: say which column of obs holds the labels with --label-column NAME")
    with open_rows(path, "y" if labels is None else str(labels)) as rows:
        if not rows.shape:
            raise BadInputError(f"{path}: the labels {labels or 'y'} are not an array (n,)")
        return rows[0 : rows.shape[0]]


def _from_stream(
    stream: Stream,
    make: Callable[..., DatasetWriter],
    positive: str | None,
    known: KnownLabels | None,
    block_rows: int | None,
    progress: Progress | None,
) -> Header:
    """From batches in order; how many points there are is known at the end."""
    codes = Codes(positive, f"labels of {stream.where}", known)
    provisional = positive is None and known is None
    n = 0
    with closing(stream.batches()) as batches:
        begin = next(batches, None)
        if begin is None:
            raise BadInputError(f"{stream.where}: no points")
        pieces = blocks(chain([begin], batches), block_rows or _usual_rows(begin.points, stream))
        first = next(pieces)
        size = first[0].shape[0]  # less than ``rows`` when it is the only block
        target = make(size, stream.m, stream.dtype, size, stream.names, codes.dtype, provisional=provisional)

        def made() -> Iterator[tuple[Points, NDArray[Any]]]:
            nonlocal n
            for points, labels in chain([first], pieces):
                parts = []
                for part in labels:
                    parts.append(codes(part, n))
                    n += len(part.codes)
                if n > target.n:
                    target.resize(n + size * max(64, target.blocks // 4))
                yield points, np.concatenate(parts)

        def told(done: int) -> None:
            if progress is not None and done < n:
                progress(done, max(n + 1, stream.total(n)))

        _write_in_order(target, made(), told)
    target.resize(n)
    if progress is not None:
        progress(n, n)
    if known is not None:
        return target.finish(known.classes, known=True)
    classes, table = codes.settle(n)
    if table is not None:
        target.relabel(table)
    return target.finish(classes.classes)


def _usual_rows(points: Points, stream: Stream) -> int:
    """Rows of a block; of sparse points as many as suit the first of them."""
    if is_dense(points):
        return default_block_rows(stream.m, stream.dtype.itemsize, MANY)
    return sparse_block_rows(points.nnz / points.shape[0], stream.dtype.itemsize + 4, MANY)


def _telling(progress: Progress | None, n: int) -> Callable[[int], None]:
    """Tells the progress towards n points."""
    return (lambda done: None) if progress is None else (lambda done: progress(done, n))


def fill(target: DatasetWriter, block: Callable[[int], tuple[Points, NDArray[Any]]], progress: Progress | None = None) -> None:
    """Write all blocks, each made in the writing threads."""
    with _writing(target, _telling(progress, target.n)) as submit:
        for index in range(target.blocks):
            submit(lambda i: target.write(i, *block(i)), index)


def _write_in_order(target: DatasetWriter, made: Iterable[tuple[Points, NDArray[Any]]], told: Callable[[int], None]) -> None:
    """Write blocks that are made in this thread, one after the other."""
    with _writing(target, told) as submit:
        for index, (points, label) in enumerate(made):
            submit(target.write, index, points, label)


@contextmanager
def _writing(target: DatasetWriter, told: Callable[[int], None]) -> Iterator[Callable[..., None]]:
    """Threads that write what is submitted; ``told`` hears how many points are written. All of it is, at the end."""
    threads, most = (WRITERS, IN_FLIGHT) if isinstance(target.path, Path) else (DISTANT_WRITERS, 2 * DISTANT_WRITERS)
    with ThreadPoolExecutor(threads, "dfeas-write") as pool:
        waiting: deque[Future[None]] = deque()
        given = 0

        def settle(most: int) -> None:
            while len(waiting) > most:
                waiting.popleft().result()
                told(min(target.n, (given - len(waiting)) * target.block_rows))

        def submit(work: Callable[..., None], *words: Any) -> None:
            nonlocal given
            waiting.append(pool.submit(work, *words))
            given += 1
            settle(most)

        try:
            yield submit
            settle(0)
        except BaseException:
            for future in waiting:
                future.cancel()
            raise
