"""Arrays, sparse matrices and data frames of the caller as a dataset, without a copy."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset, array_reader
from dfeas.data.frames import Table, require_file, split
from dfeas.data.labels import encode_array
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.layout import default_block_rows
from dfeas.data.storage.numbers import array_of, exact, require_array, require_unpacked, unwrap_array
from dfeas.data.storage.places import place
from dfeas.data.storage.readers import SliceReader
from dfeas.data.storage.sparse_readers import CsrRows, csr_rows, cut_entries
from dfeas.data.storage.zarr_arrays import (
    check_shape,
    decoded_by_xarray,
    files_of,
    is_zarr,
    open_labels,
    require_all_chunks,
    rows_of_whole_chunks,
)
from dfeas.errors import BadInputError
from dfeas.linalg.points import LOW, Points, working_type
from dfeas.records import replace

_EXACT = {"b1": "uint8", **dict.fromkeys(("i4", "u4", "i8", "u8", "f8"), "float64"), "f4": "float32"}
_EXACT |= dict.fromkeys(("f12", "f16"), "float64")  # each number is compared
_EXACT |= {f"{np.dtype(name).kind}{np.dtype(name).itemsize}": name for name in LOW}
"""Kind and size of a type -> the type that it is stored in."""


def stored_dtype(dtype: np.dtype[Any], where: str) -> np.dtype[Any]:
    """The same for what float32 holds exactly, otherwise float64; raises BadInputError for other kinds of numbers."""
    name = _EXACT.get(f"{dtype.kind}{dtype.itemsize}")
    if name is None:
        raise BadInputError(f"{where}: entries of type {dtype} cannot be used; give real numbers")
    return np.dtype(name)


def joint_dtype(dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """The narrowest type that holds the entries of several stored types."""
    joint = np.result_type(*dtypes)
    if joint.name in (*LOW, "float32"):
        return joint
    return np.dtype(np.float64 if any(working_type(dtype) == np.float64 for dtype in dtypes) else np.float32)


def open_arrays(source: Source) -> Dataset:
    """A dataset from an array (n, m) that has shape, dtype and row slices (NumPy, zarr, HDF5), a SciPy sparse matrix, or
    a data frame, and labels (n,), of which a frame may have them in a column. Points are not copied where NumPy has them.
    Raises BadInputError for a wrong shape, type or labels.
    """
    require_array(source.spec.where, "X")
    return _from_table(split(source.spec.where, source.spec.beside), source)


def _from_table(table: Table, source: Source) -> Dataset:
    labels, sparse = table.labels, hasattr(table.X, "tocsr")
    X = table.X if sparse else accept_array(table.X, "X")
    if X.dtype == object and not sparse:
        X = exact(X, np.float64, "X")
    if isinstance(labels, str):
        require_file(labels, table.features)
    if labels is not None:
        labels = open_given(labels)
    if sparse:
        return _from_sparse(table, labels, source)
    n, m = check_shape(X.shape, "X")
    dtype = stored_dtype(np.dtype(X.dtype), "X")
    chunks = getattr(X, "chunks", None)
    regular = chunks is not None and all(isinstance(c, int) for c in chunks)
    block_rows = rows_of_whole_chunks(X, dtype.itemsize) if regular else default_block_rows(m, dtype.itemsize, n)
    points = SliceReader("X", X, n, block_rows, dtype, isinstance(X, np.ndarray), files_of(X, block_rows))
    return assemble("X", points, (n, m), labels, source, features=table.features)


def _from_sparse(table: Table, labels: Any, source: Source) -> Dataset:
    """A dataset from a SciPy sparse matrix (n, m), which is not copied if it is CSR with ascending indices."""
    n, m = check_shape(table.X.shape, "X")
    dtype = stored_dtype(np.dtype(table.X.dtype), "X")
    matrix = csr_rows(table.X, None, "X")
    rows, entries = cut_entries(matrix.indptr, dtype.itemsize, m)
    return assemble("X", CsrRows(matrix, rows, dtype), (n, m), labels, source, entries=entries, features=table.features)


def of_points(where: str, X: Points, classes: tuple[str, ...], label: NDArray[Any], features: tuple[str, ...]) -> Dataset:
    """A dataset from points (n, m) that were read from a file, dense or CSR, and labels (n,), all as they are stored."""
    plain = _from_table(Table(X, None, features), Source(DataSpec(X)))
    assert isinstance(plain.points, SliceReader | CsrRows), "they are in memory"
    points = replace(plain.points, files=lambda index: ())  # so that what several processes read is compared
    return replace(plain, where=where, points=points, labels=array_reader("label", label, plain.block_rows), classes=classes)


def open_given(labels: Any, where: str = "labels") -> Any:
    """Labels, or other numbers of rows, by path, or of the caller."""
    return open_labels(place(labels), where) if isinstance(labels, str | Path) else accept_array(labels, where)


def accept_array(values: Any, where: str) -> Any:
    """Something with shape, dtype and row slices. Raises BadInputError for what is no array, or is masked, and as
    ``accept_stored``.
    """
    require_array(values, where)
    values = accept_stored(values, where)
    try:
        lazy = len(values.shape) > 0 and np.dtype(values.dtype).hasobject is False
    except (AttributeError, TypeError):  # of another library, or a list
        lazy = False
    lazy = lazy and not isinstance(values, np.ndarray) and not hasattr(values, "__dlpack__")
    return unwrap_array(values) if lazy else array_of(values, where)


def accept_stored(values: Any, where: str) -> Any:
    """An array of zarr, HDF5 or xarray as it is by path, with text of HDF5 as such; anything else as it is. Raises
    BadInputError for numbers that stand for others, or are in other files, CorruptDataError where some were never written.
    """
    h5py = sys.modules.get("h5py")
    if h5py is not None and isinstance(values, h5py.Dataset):
        from dfeas.data.ingest.hdf5 import accept_dataset

        require_array(values, where)
        values = accept_dataset(values, where)
    if isinstance(values, np.ndarray) or hasattr(values, "iloc") or not hasattr(values, "attrs"):
        return values
    stored = f"{where}.values" if hasattr(values, "encoding") else f"{where}[:]"
    call = "dfeas.solve({}, ...)" if where == "X" else "dfeas.solve(X, {})"
    require_unpacked(values, where, stored, decoded_by_xarray(values) if is_zarr(values) else "", call)
    if is_zarr(values):
        require_all_chunks(values, where)
    return values


def encode(labels: Any, n: int, source: Source, where: str) -> tuple[tuple[str, ...], NDArray[Any]]:
    """The classes, and labels (n,) in memory as they are stored."""
    many, positive = source.spec.one_vs_rest, source.spec.positive
    return encode_array(labels, n, f"labels of {where}", None if many else positive, many, source.known or None)


def assemble(
    where: str, points: SliceReader | CsrRows, shape: tuple[int, int], labels: Any, source: Source, **more: Any
) -> Dataset:
    """A dataset from a reader of points and any label array; without labels every label is +1."""
    n, m = shape
    classes, signs = ((), np.ones(n, np.int8)) if labels is None else encode(labels, n, source, where)
    return Dataset(
        where=where,
        n=n,
        m=m,
        dtype=points.dtype,
        block_rows=points.block_rows,
        points=points,
        labels=array_reader("label", signs, points.block_rows),
        classes=classes,
        **more,
    )
