"""Arrays and sparse matrices of the caller as a dataset, without a copy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import zarr
import zarr.codecs
import zarr.errors
import zarr.storage

from dfeas.errors import BadInputError
from dfeas.store.assembling import assemble
from dfeas.store.chunks import check_codecs, files_of, rows_of_whole_chunks
from dfeas.store.dataset import Dataset
from dfeas.store.frames import without_labels
from dfeas.store.layout import (
    default_block_rows,
    sparse_block_rows,
)
from dfeas.store.nodes import check_shape, open_labels
from dfeas.store.numbers import cast, stored_dtype
from dfeas.store.places import place
from dfeas.store.reading import SliceReader
from dfeas.store.source import Source
from dfeas.store.sparse import CsrRows, Entries, index_size


def from_arrays(
    X: Any, labels: Any = None, *, positive: str | None = None, intercept: bool = False, many: bool = False
) -> Dataset:
    """A dataset from an array (n, m) that has shape, dtype and row slices (NumPy, zarr, HDF5, Dask), or a SciPy
    sparse matrix, and labels (n,).

    Points are not copied. Labels of ``many`` classes become codes. Raises BadInputError for a wrong shape, type or labels.
    """
    X, labels = without_labels(X, labels)
    if hasattr(X, "tocsr"):
        if labels is not None:
            labels = open_labels(place(labels)) if isinstance(labels, str | Path) else _as_array(labels, "labels")
        return _from_sparse(X, labels, Source("", None, positive, intercept, many))
    X = _as_array(X, "X")
    n, m = check_shape(X.shape, "X")
    dtype = stored_dtype(np.dtype(X.dtype), "X")
    if labels is not None:
        labels = open_labels(place(labels)) if isinstance(labels, str | Path) else _as_array(labels, "labels")
    in_memory = isinstance(X, np.ndarray)
    chunks = getattr(X, "chunks", None)
    regular = chunks is not None and all(isinstance(c, int) for c in chunks)
    block_rows = rows_of_whole_chunks(X, dtype.itemsize) if regular else default_block_rows(m, dtype.itemsize, n)
    files = files_of(X, block_rows)
    points = SliceReader("X", X, n, block_rows, dtype, convert=cast, overlaps=in_memory, files=files)
    return assemble("X", points, n, m, dtype, block_rows, labels, Source("", None, positive, intercept, many))


def _from_sparse(X: Any, labels: Any, source: Source) -> Dataset:
    """A dataset from a SciPy sparse matrix (n, m), which is not copied if it is CSR with ascending indices."""
    n, m = check_shape(X.shape, "X")
    dtype = stored_dtype(np.dtype(X.dtype), "X")
    matrix = X.tocsr()
    try:
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise BadInputError(f"X: not a CSR matrix: {error}") from None
    if not matrix.has_canonical_format:
        matrix = matrix.copy() if matrix is X else matrix
        matrix.sum_duplicates()
    rows = sparse_block_rows(matrix.nnz / n, dtype.itemsize + index_size(m), n)
    ends = np.append(matrix.indptr[:-1:rows], matrix.indptr[-1])
    entries = Entries.of(n, ends.astype(np.int64), rows, dtype.itemsize, index_size(m))
    points = CsrRows(matrix, rows, dtype, cast)
    return replace(assemble("X", points, n, m, dtype, rows, labels, source), entries=entries)


def _as_array(values: Any, where: str) -> Any:
    """Something with shape, dtype and row slices; raises BadInputError when there is no such thing in it."""
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if not hasattr(values, "dtype"):
        try:
            values = np.asarray(values)
        except ValueError:
            raise BadInputError(f"{where}: rows of different lengths; give a rectangular array") from None
    if np.ma.isMaskedArray(values):
        raise BadInputError(f"{where}: a masked array; fill or drop the masked entries first")
    if isinstance(values, zarr.Array):
        check_codecs(values, where)
    return values
