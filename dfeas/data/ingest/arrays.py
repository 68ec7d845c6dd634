"""Points of an array whose shape is known, with labels that fit in memory, as the blocks of a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used

from dfeas.data.arrays import cast, stored_dtype
from dfeas.data.ingest.array_files import is_array, obs_labels, open_rows
from dfeas.data.ingest.partitions import PointSource
from dfeas.data.ingest.sparse_files import CscRows
from dfeas.data.labels import Categories
from dfeas.data.storage.layout import SPARSE_BELOW, default_block_rows, sparse_block_rows
from dfeas.data.storage.limits import require_column, require_width
from dfeas.data.storage.places import absolute, place
from dfeas.data.storage.zarr_arrays import check_shape, open_labels
from dfeas.errors import BadInputError, UsageError
from dfeas.linalg.csr import tidied, with_data
from dfeas.linalg.points import Points


def labels_beside(path: Any, given: Any, column: str | None) -> Any:
    """The labels (n,) of the points at a place, in memory: at most some bytes a point, where points are hundreds.

    ``given`` is an array, or the name of a file, or of an array in the source; ``column`` is one of obs.
    """
    if column is not None:
        return obs_labels(path, column)
    if given is not None and not isinstance(given, str | Path):
        return np.asarray(given)
    if is_array(path) and given is None:
        raise UsageError("an array has no labels beside its points; give labels, an array or a path")
    if given is not None and (is_array(path) or place(given).exists() or path.suffix == ".npy" or path.is_dir()):
        return open_labels(place(given))
    if path.suffix == ".npy" or path.is_dir():
        raise UsageError(f"{path}: it has no labels beside the points; give --labels FILE")
    if path.suffix == ".h5ad" and given is None:
        raise UsageError(f"{path}: say which column of obs holds the labels with --label-column NAME")
    with open_rows(path, "y" if given is None else str(given)) as rows:
        if not rows.shape:
            raise BadInputError(f"{path}: the labels {given or 'y'} are not an array (n,)")
        require_column(prod(rows.shape) * rows.dtype.itemsize, f"labels of {path}")
        return rows[0 : rows.shape[0]]


@dataclass
class FileRows:
    """An array of a file whose rows can be read anywhere."""

    path: str
    name: str  # of the array in the file
    sparse: bool  # how points are stored
    where: str

    def blocks(self, first: int, stop: int | None, rows: int) -> Iterator[tuple[Points, list[Categories]]]:
        with open_rows(place(self.path), self.name) as array:
            yield from stored_blocks(array, first, array.shape[0] if stop is None else stop, rows, self.sparse)


class ArraySource(PointSource):
    """Points of an open array. Raises BadInputError for what is no array of points.

    ``rows`` has row slices, and says whether any thread may ask for any of them; ``name`` is that of the array in its file.
    """

    def __init__(self, path: Any, name: str, rows: Any, sparse: bool | None) -> None:
        self.where = "the array" if is_array(path) else str(path)
        self._path, self._name, self._rows = path, name, rows
        n, self.m = check_shape(rows.shape, self.where)
        self.n: int = n
        self.dtype = stored_dtype(rows.dtype, self.where)
        self._entries: int | None = getattr(rows, "entries", None)  # stored ones of a sparse source
        if self._entries is not None:
            require_width(self.m, self.dtype.itemsize, self.where, sparse=True)
        if sparse is None:
            sparse = self._entries is not None and self._entries < SPARSE_BELOW * self.n * self.m
        self.sparse = sparse
        self.parallel = bool(rows.parallel) and not sparse

    def describe(self, rows: int) -> None:
        """Note what is cast, and how often all is read for blocks of so many rows. Raises BadInputError for too wide points."""
        if not self.sparse:
            require_width(self.m, self.dtype.itemsize, self.where)
        notes = [f"{self._rows.dtype} cast to {self.dtype}"] if self._rows.dtype != self.dtype else []
        if (self._entries is not None) != self.sparse:
            notes.append(f"stored {'sparse' if self.sparse else 'dense'}, as {self.dtype}")
        if isinstance(self._rows, CscRows):
            notes.append(f"CSC, entries by columns: read {self._rows.reads(rows)} times; CSR would be read once")
        self.notes = tuple(notes)

    def usual_rows(self, dtype: np.dtype[Any]) -> int:
        if not self.sparse:
            return default_block_rows(self.m, dtype.itemsize, self.n)
        average = self.m if self._entries is None else max(1.0, self._entries / self.n)
        return sparse_block_rows(average, dtype.itemsize + 4, self.n)

    def part(self, first: int, stop: int) -> FileRows:
        return FileRows(absolute(self._path), self._name, self.sparse, self.where)

    def blocks(self, first: int, stop: int | None, rows: int) -> Iterator[tuple[Points, list[Categories]]]:
        return stored_blocks(self._rows, first, self.n if stop is None else stop, rows, self.sparse)


def stored_blocks(array: Any, first: int, stop: int, size: int, sparse: bool) -> Iterator[tuple[Points, list[Categories]]]:
    """Rows first .. stop-1 in blocks of ``size``, without labels."""
    for begin in range(first, stop, size):
        yield stored_points(array[begin : min(stop, begin + size)], sparse), []


def stored_points(rows: Any, sparse: bool) -> Points:
    """A block as it is stored: an array, or a CSR matrix without zeros and with ascending indices, each once."""
    if isinstance(rows, np.ndarray):
        found = cast(np.ascontiguousarray(rows))
        return tidied(scipy.sparse.csr_array(found)) if sparse else found
    matrix = with_data(rows, cast(rows.data))
    return tidied(matrix) if sparse else np.asarray(matrix.toarray())
