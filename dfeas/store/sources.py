"""Arrays of rows in .npy, .npz, HDF5 and zarr files: sources of an ingest, read in order without loading them whole."""

from __future__ import annotations

import os
import struct
import threading
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

import h5py
import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dfeas.errors import BadInputError, CorruptDataError
from dfeas.store.csc import CscRows
from dfeas.store.nodes import open_array
from dfeas.store.places import Place, seekable
from dfeas.store.reading import Buffers
from dfeas.store.sparse_sources import PARTS, SparseRows, in_memory, kind_and_shape, of_scipy, require_rows
from dfeas.store.zarr2 import is_zarr2, open_zarr2

# what zipfile, zlib and NumPy raise on archives with damaged bytes
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    tokenize.TokenError,
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)

_HDF5 = (".h5", ".hdf5", ".he5", ".h5ad")


def _npy_header(stream: IO[bytes], where: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of the array in a .npy stream, which is in C order and has no Python objects."""
    try:
        version = npy.read_magic(stream)
        reader = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = reader(stream)
    except DAMAGE as error:
        raise CorruptDataError(f"{where}: not a readable .npy array: {error}") from None
    if dtype.hasobject:
        raise BadInputError(f"{where}: an array of Python objects is not accepted; save numbers")
    if fortran and len(shape) > 1:
        raise BadInputError(f"{where}: stored in Fortran order; save np.ascontiguousarray(array) instead")
    return tuple(shape), dtype


class NpyRows:
    """Rows of a .npy stream in C order, by consecutive slices; memory is one slice."""

    parallel = False

    def __init__(self, stream: IO[bytes], where: str) -> None:
        self._stream, self._where, self._next = stream, where, 0
        self.shape, self.dtype = _npy_header(stream, where)

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        first, stop, _ = rows.indices(self.shape[0])
        if first != self._next:
            raise ValueError(f"{self._where}: rows are read in order, expected {self._next}, asked for {first}")
        row = int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize
        wanted = (stop - first) * row
        try:
            content = self._stream.read(wanted)
        except DAMAGE as error:
            raise CorruptDataError(f"{self._where}: damaged from row {first}: {error}") from None
        if len(content) != wanted:
            raise CorruptDataError(f"{self._where}: ends at row {first + len(content) // max(1, row)} of {self.shape[0]}")
        self._next = stop
        return np.frombuffer(content, self.dtype).reshape(stop - first, *self.shape[1:])


class NpyFile:
    """Rows of a .npy file, any of them and by several threads: a slice is valid until its thread asks for the next one."""

    parallel = True

    def __init__(self, file: IO[bytes], where: str) -> None:
        self._file, self._where, self._held = file, where, threading.local()
        self.shape, self.dtype = _npy_header(file, where)
        self._begin = file.tell()

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        first, stop, _ = rows.indices(self.shape[0])
        row = int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize
        if not hasattr(self._held, "buffers"):
            self._held.buffers = Buffers()
        buffer, done = self._held.buffers.take("rows", (stop - first) * row), 0
        while done < buffer.size:
            got = os.preadv(self._file.fileno(), [buffer.data[done:]], self._begin + first * row + done)
            if got == 0:
                raise CorruptDataError(f"{self._where}: ends at row {first + done // row} of {self.shape[0]}")
            done += got
        return np.asarray(buffer.view(self.dtype).reshape(stop - first, *self.shape[1:]))


class _StoredRows:
    """Rows of an HDF5 or zarr array; damage becomes CorruptDataError."""

    parallel = False

    def __init__(self, dataset: Any, where: str) -> None:
        self._dataset, self._where = dataset, where
        self.shape, self.dtype = dataset.shape, dataset.dtype

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        try:
            if h5py.check_string_dtype(self.dtype):
                return np.asarray(self._dataset.asstr()[rows])
            return np.asarray(self._dataset[rows])
        except DAMAGE as error:
            raise CorruptDataError(f"{self._where}: damaged from row {rows.start}: {error}") from None


def is_array(source: Any) -> bool:
    """Whether a source is an array of Python, not a path or a data frame."""
    return hasattr(source, "shape") and hasattr(source, "dtype") and not hasattr(source, "__arrow_c_stream__")


@contextmanager
def open_rows(path: Any, name: str) -> Iterator[Any]:
    """The array ``name`` of a file as something with ``shape``, ``dtype`` and consecutive row slices.

    ``path`` is a place, or an array of Python; ``name`` a member of .npz, a dataset of HDF5, ignored for others.
    """
    if is_array(path):
        yield in_memory(path) if hasattr(path, "tocsr") else _StoredRows(path, "the array")
        return
    if not path.exists():
        raise BadInputError(f"{path}: no such file or folder")
    with ExitStack() as stack:
        if path.is_dir():
            array = open_zarr2(path) if is_zarr2(path) else open_array(path, name)
            yield _StoredRows(array, str(path))
        elif path.suffix == ".npy":
            file = stack.enter_context(path.open("rb"))
            yield NpyFile(file, str(path)) if isinstance(path, Path) else NpyRows(file, str(path))
        elif path.suffix == ".npz" and name not in (members := _members(path)) and of_scipy(members):
            yield _npz_sparse(stack, path)
        elif path.suffix == ".npz":
            yield NpyRows(stack.enter_context(_npz_member(path, name)), f"{path}:{name}")
        elif path.suffix in _HDF5:
            found = _hdf5_node(stack, path, name)
            where = f"{path}:{name}"
            yield found if isinstance(found, SparseRows | CscRows) else _StoredRows(found, where)
        else:
            raise BadInputError(
                f"{path}: unknown format; expected .npy, .npz, .h5, .h5ad, .csv, .tsv, .parquet, .svmlight or a zarr array "
                "(--format names csv, tsv, parquet or svmlight)"
            )


def _members(path: Place) -> list[str]:
    """Names of the arrays in an .npz file."""
    try:
        with zipfile.ZipFile(seekable(path)) as archive:
            return [entry.removesuffix(".npy") for entry in archive.namelist()]
    except DAMAGE as error:
        raise CorruptDataError(f"{path}: not a readable .npz file: {error}") from None


def _npz_sparse(stack: ExitStack, path: Place) -> SparseRows | CscRows:
    """A sparse matrix that SciPy saved."""
    try:
        with zipfile.ZipFile(seekable(path)) as archive:
            kind, shape = kind_and_shape(archive)
    except DAMAGE as error:
        raise CorruptDataError(f"{path}: not a readable sparse matrix: {error}") from None
    require_rows(kind, str(path))
    if kind == "csc":
        return CscRows(lambda: _npz_parts(path), shape, str(path))
    parts = stack.enter_context(_npz_parts(path))
    parts["indptr"] = parts["indptr"][0 : parts["indptr"].shape[0]]
    return SparseRows(parts, shape, str(path))


@contextmanager
def _npz_parts(path: Place) -> Iterator[dict[str, Any]]:
    """The arrays of a sparse matrix, each from its beginning on."""
    with ExitStack() as stack:
        yield {part: NpyRows(stack.enter_context(_npz_member(path, part)), f"{path}:{part}") for part in PARTS}


@contextmanager
def _npz_member(path: Place, name: str) -> Iterator[IO[bytes]]:
    try:
        archive = zipfile.ZipFile(seekable(path))
    except DAMAGE as error:
        raise CorruptDataError(f"{path}: not a readable .npz file: {error}") from None
    with archive:
        members = [entry.removesuffix(".npy") for entry in archive.namelist()]
        if name not in members:
            raise BadInputError(f"{path}: no array {name}; it has {', '.join(members)} (choose with --points, --labels)")
        try:
            stream = archive.open(f"{name}.npy")
        except DAMAGE as error:
            raise CorruptDataError(f"{path}:{name}: damaged: {error}") from None
        with stream:
            yield stream


def _hdf5_node(stack: ExitStack, path: Place, name: str) -> Any:
    try:
        file = stack.enter_context(h5py.File(seekable(path), "r"))
    except OSError as error:
        raise CorruptDataError(f"{path}: not a readable HDF5 file, truncated or damaged: {error}") from None
    found = file.get(name)
    kind = "" if found is None else str(found.attrs.get("encoding-type", ""))
    if kind in ("csr_matrix", "csc_matrix"):
        parts = {part: _StoredRows(found[part], f"{path}:{name}/{part}") for part in PARTS if part in found}
        if len(parts) < len(PARTS) or "shape" not in found.attrs:
            raise CorruptDataError(f"{path}:{name}: a part of the sparse matrix is missing")
        if kind == "csc_matrix":
            return CscRows(lambda: nullcontext(parts), found.attrs["shape"], f"{path}:{name}")
        return SparseRows(parts, found.attrs["shape"], f"{path}:{name}")
    if not isinstance(found, h5py.Dataset):
        names = [key for key in file if isinstance(file.get(key), h5py.Dataset)]
        raise BadInputError(f"{path}: no dataset {name}; it has {', '.join(names)} (choose with --points, --labels)")
    return found
