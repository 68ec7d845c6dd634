"""Arrays of rows in memory, .npy, .npz, HDF5 and zarr files, with labels beside them or of AnnData: sources of an ingest."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import h5py
import numpy as np
import scipy  # loads its parts when they are used
from numpy.typing import NDArray

from dfeas.data.arrays import accept_array, stored_dtype
from dfeas.data.collections import LazyRows, is_collection
from dfeas.data.frames import values_of
from dfeas.data.ingest import hdf5
from dfeas.data.ingest.options import is_array
from dfeas.data.ingest.source import PointReader, PointSource
from dfeas.data.ingest.sparse_files import PARTS, CscRows, SparseRows, kind_and_shape
from dfeas.data.labels import Categories
from dfeas.data.partitions import table_of
from dfeas.data.storage.features import keep_names
from dfeas.data.storage.files import damage_becomes
from dfeas.data.storage.layout import SPARSE_BELOW, default_block_rows, sparse_block_rows
from dfeas.data.storage.numbers import array_of, exact, require_unpacked
from dfeas.data.storage.places import Place, absolute, place, require_column, require_width, seekable
from dfeas.data.storage.sparse_readers import csr_chunks, has_sparse_chunks
from dfeas.data.storage.zarr_arrays import check_shape, open_array, open_labels, read_header
from dfeas.errors import BadInputError, CorruptDataError, UsageError, absent, spell
from dfeas.linalg.csr import canonicalise, with_data
from dfeas.linalg.points import Points

SLAB_BYTES = 32 << 20
"""Rows of an array in Fortran order that are read at once: pieces of its columns are then long enough for a disk."""


class NpyRows:
    """Rows of a .npy stream, by slices; memory is one slice, or ``SLAB_BYTES`` of an array in Fortran order."""

    def __init__(self, stream: IO[bytes], size: int, where: str) -> None:
        self._stream, self._where, self._next = stream, where, 0
        self.shape, self.dtype, self.fortran = read_header(stream, size, where)
        self._row, self._begin = prod(self.shape[1:]) * self.dtype.itemsize, stream.tell()  # bytes
        self._slab: NDArray[Any] = np.empty((0, 0), self.dtype)  # columns of rows from _next on, one a row

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        first, stop, _ = rows.indices(self.shape[0])
        if self.fortran:
            if first < stop and (first < self._next or stop > self._next + self._slab.shape[1]):
                self._read_slab(first, stop)
            some = self._slab[:, first - self._next : stop - self._next].T
            return some.reshape(stop - first, *self.shape[1:], order="F")
        wanted = (stop - first) * self._row
        with damage_becomes(self._where, f"damaged from row {first}"):
            if first != self._next:
                self._stream.seek(self._begin + first * self._row)
            content = self._stream.read(wanted)
        if len(content) < wanted:
            raise CorruptDataError(f"{self._where}: ends at row {first + len(content) // self._row} of {self.shape[0]}")
        self._next = stop
        return np.frombuffer(content, self.dtype).reshape(stop - first, *self.shape[1:])

    def _read_slab(self, first: int, stop: int) -> None:
        """Rows from ``first`` on up to ``stop``, or as many as a slab has."""
        n, size = self.shape[0], self.dtype.itemsize
        count = min(n - first, max(stop - first, SLAB_BYTES // max(1, self._row)))
        slab = np.empty((prod(self.shape[1:]), count), self.dtype)
        for number, column in enumerate(slab):
            with damage_becomes(self._where, f"damaged in column {number}"):
                self._stream.seek(self._begin + (number * n + first) * size)
                content = self._stream.read(count * size)
            if len(content) < count * size:
                raise CorruptDataError(f"{self._where}: ends in column {number} of {len(slab)}")
            column[:] = np.frombuffer(content, self.dtype)
        self._slab, self._next = slab, first


class StoredRows:
    """Rows of an array of a library, which reads them when they are asked for, or of CSR chunks with so many ``entries``."""

    def __init__(self, array: Any, where: str, entries: int | None = None) -> None:
        self._array, self._where = array, where
        self.shape, self.dtype, self.entries = array.shape, array.dtype, entries

    def __getitem__(self, rows: slice) -> Any:
        if self.entries is not None:
            return self._array[rows]
        with damage_becomes(self._where, f"damaged from row {rows.start}"):
            array = self._array.asstr() if h5py.check_string_dtype(self.dtype) else self._array
            return array_of(array[rows], self._where)


@contextmanager
def open_rows(path: Any, name: str) -> Iterator[Any]:
    """The array ``name`` of a file as something with ``shape``, ``dtype`` and consecutive row slices. ``path`` is a place, or
    an array of Python; ``name`` a member of .npz, a dataset of HDF5, ignored for others.
    """
    if is_array(path):
        if is_collection(path):
            rows = table_of(path, None).X
            sparse = csr_chunks(rows, rows.dtype, "X") if has_sparse_chunks(rows) else None
            count = None if sparse is None else int(array_of(sparse[1], "X").sum())
            yield StoredRows(LazyRows(rows if sparse is None else sparse[0]), "the array", count)
            return
        yield SparseRows.of(path) if hasattr(path, "tocsr") else StoredRows(accept_array(path, "X"), "the array")
        return
    if not path.exists():
        raise BadInputError(absent(path))
    with ExitStack() as stack:
        if path.is_dir():
            yield StoredRows(open_array(path, name), str(path))
        elif path.suffix == ".npy":
            yield NpyRows(stack.enter_context(path.open("rb")), path.stat().st_size, str(path))
        elif path.suffix == ".npz":
            yield _npz_rows(stack, path, name)
        elif path.suffix in hdf5.SUFFIXES:
            node, where = _hdf5_node(stack, path, name), f"{path}:{name}"
            yield node if isinstance(node, SparseRows | CscRows) else StoredRows(node, where)
        else:
            raise BadInputError(
                f"{path}: unknown format; expected .npy, .npz, .h5, .h5ad, .csv, .tsv, .parquet, .svmlight or a zarr array "
                f"({spell('format')} names csv, tsv, parquet or svmlight)"
            )


@contextmanager
def _open_archive(path: Place) -> Iterator[zipfile.ZipFile]:
    with damage_becomes(path, "not a readable .npz file"):
        archive = zipfile.ZipFile(seekable(path))
    with archive:
        yield archive


def members_of(path: Place) -> list[str]:
    """Names of the arrays in an .npz file. Raises CorruptDataError when it is none."""
    with _open_archive(path) as archive:
        return _members(archive)


def _members(archive: zipfile.ZipFile) -> list[str]:
    return [entry.removesuffix(".npy") for entry in archive.namelist()]


def _npz_rows(stack: ExitStack, path: Place, name: str) -> NpyRows | SparseRows | CscRows:
    archive = stack.enter_context(_open_archive(path))
    members = _members(archive)
    if name in members or not {"format", "shape"} <= set(members):  # not as SciPy writes a matrix
        return stack.enter_context(_npz_member(archive, path, name))
    with damage_becomes(path, "not a readable sparse matrix"):
        kind, shape = kind_and_shape(archive)
    if kind not in ("csr", "csc"):
        raise BadInputError(f"{path}: a sparse matrix of kind {kind}; CSR and CSC are read: save X.tocsr()")
    parts: dict[str, Any] = {part: stack.enter_context(_npz_member(archive, path, part)) for part in PARTS}
    if kind == "csc":
        return CscRows(parts, shape, str(path))
    indptr = parts["indptr"]
    require_column(prod(indptr.shape) * indptr.dtype.itemsize, f"{path}:indptr")
    return SparseRows({**parts, "indptr": indptr[0 : indptr.shape[0]]}, shape, str(path))


@contextmanager
def _npz_member(archive: zipfile.ZipFile, path: Place, name: str) -> Iterator[NpyRows]:
    members = _members(archive)
    if name not in members:
        raise BadInputError(
            f"{path}: no array {name}; it has {', '.join(members[:8])} (say {spell('points')} or {spell('labels')})"
        )
    with damage_becomes(f"{path}:{name}", "damaged"):
        info = archive.getinfo(f"{name}.npy")
        stream = archive.open(info)
    with stream:
        rows = NpyRows(stream, info.file_size, f"{path}:{name}")
        if rows.fortran and info.compress_type == zipfile.ZIP_STORED:  # whose checksum is not looked at where pieces are read
            with damage_becomes(f"{path}:{name}", "damaged"):
                while stream.read(SLAB_BYTES):
                    pass
        yield rows


def _hdf5_node(stack: ExitStack, path: Place, name: str) -> Any:
    file, where = stack.enter_context(hdf5.open_file(path)), str(path)
    node = hdf5.node_of(file, name, where)
    kind = "" if node is None else str(hdf5.attribute(node, "encoding-type", where))
    if kind in ("csr_matrix", "csc_matrix"):
        held = {part: hdf5.node_of(node, part, f"{where}:{name}") for part in PARTS}
        shape = hdf5.attribute(node, "shape", where)
        if shape is None or not all(isinstance(part, h5py.Dataset) for part in held.values()):
            raise CorruptDataError(f"{path}:{name}: a part of the sparse matrix is missing")
        parts = {part: StoredRows(array, f"{path}:{name}/{part}") for part, array in held.items()}
        return (CscRows if kind == "csc_matrix" else SparseRows)(parts, shape, f"{path}:{name}")
    if not isinstance(node, h5py.Dataset):
        names = ", ".join(hdf5.datasets(file, where)[:8])
        raise BadInputError(f"{path}: no dataset {name}; it has {names} (say {spell('points')} or {spell('labels')})")
    require_unpacked(node, f"{where}:{name}", f"h5py.File({where!r})[{name!r}][:]", call="the array {}")
    return node


def array_labels(path: Any, given: Any, column: str | None) -> Any:
    """The labels (n,) of the points at a place, in memory: at most some bytes a point, where points are hundreds. ``given`` is
    an array, or the name of a file, or of an array in the source; ``column`` is one of obs.
    """
    if column is not None:
        return hdf5.obs_labels(path, column)
    if given is not None and not isinstance(given, str | Path):
        return accept_array(values_of(given), "labels")
    if is_array(path) and given is None:
        raise UsageError("an array has no labels beside its points; give labels, an array or a path")
    if given is not None and (is_array(path) or place(given).exists() or path.suffix == ".npy" or path.is_dir()):
        return open_labels(place(given))
    if path.suffix == ".npy" or path.is_dir():
        raise UsageError(f"{path}: it has no labels beside the points; give {spell('labels', 'FILE')}")
    if path.suffix == ".h5ad" and given is None:
        raise UsageError(f"{path}: say which column of obs holds the labels with {spell('label_column', 'NAME')}")
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
            dtype = stored_dtype(array.dtype, self.where)
            yield from stored_blocks(array, first, array.shape[0] if stop is None else stop, rows, dtype, self.sparse)


class ArraySource(PointSource):
    """Points of an array ``rows`` with row slices, of this ``name`` in its file. Raises BadInputError for others."""

    def __init__(self, path: Any, name: str, rows: Any, sparse: bool | None, features: Sequence[str] = ()) -> None:
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
        found, unread = (features, "") if is_array(path) else hdf5.names_in(path, name)
        self.features, unkept = keep_names(found, self.m) if found else ((), unread)
        self._unkept = [unkept] if unkept else []

    def describe(self, rows: int) -> None:
        """Note what is cast, and how often all is read for blocks of so many rows. Raises BadInputError for too wide points."""
        if not self.sparse:
            require_width(self.m, self.dtype.itemsize, self.where)
        notes = [f"{self._rows.dtype} cast to {self.dtype}"] if self._rows.dtype != self.dtype else []
        if (self._entries is not None) != self.sparse:
            notes.append(f"stored {'sparse' if self.sparse else 'dense'}, as {self.dtype}")
        if isinstance(self._rows, NpyRows) and self._rows.fortran:
            notes.append("in Fortran order, read by pieces of columns; C order would be read faster")
        if isinstance(self._rows, CscRows):
            notes.append(f"CSC, entries by columns: read {self._rows.reads(rows)} times; CSR would be read once")
        self.notes = (*notes, *self._unkept)

    def usual_rows(self, dtype: np.dtype[Any]) -> int:
        if not self.sparse:
            return default_block_rows(self.m, dtype.itemsize, self.n)
        average = self.m if self._entries is None else max(1.0, self._entries / self.n)
        return sparse_block_rows(average, dtype.itemsize + 4, self.n)

    def part(self, first: int, stop: int) -> PointReader:
        return FileRows(absolute(self._path), self._name, self.sparse, self.where)

    def blocks(self, first: int, stop: int | None, rows: int) -> Iterator[tuple[Points, list[Categories]]]:
        return stored_blocks(self._rows, first, self.n if stop is None else stop, rows, self.dtype, self.sparse)


def stored_blocks(
    array: Any, first: int, stop: int, size: int, dtype: np.dtype[Any], sparse: bool
) -> Iterator[tuple[Points, list[Categories]]]:
    """Rows first .. stop-1 in blocks of ``size``, without labels."""
    for begin in range(first, stop, size):
        yield _store(array[begin : min(stop, begin + size)], dtype, sparse, f"points from {begin} on"), []


def _store(rows: Any, dtype: np.dtype[Any], sparse: bool, where: str) -> Points:
    """A block as it is stored: an array, or a CSR matrix without zeros and with ascending indices, each once."""
    if isinstance(rows, np.ndarray):
        stored = np.ascontiguousarray(exact(rows, dtype, where))
        return canonicalise(scipy.sparse.csr_array(stored)) if sparse else stored
    matrix = with_data(rows, exact(rows.data, dtype, where))
    return canonicalise(matrix) if sparse else np.asarray(matrix.toarray())
