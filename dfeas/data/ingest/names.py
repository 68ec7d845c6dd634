"""Names of features that stand beside an array in its file: in HDF5, AnnData and .npz."""

from __future__ import annotations

import zipfile
from math import prod
from typing import Any

import h5py
import numpy as np
from numpy.lib import format as npy

from dfeas.data.ingest import hdf5
from dfeas.data.storage.features import MOST_BYTES
from dfeas.data.storage.files import DAMAGE
from dfeas.data.storage.places import Place, seekable
from dfeas.errors import DfeasError, format_bytes

ATTRIBUTES = ("feature_names", "features")
"""Of a dataset of HDF5, a list of text; and the array of an .npz file is called as the first."""

Found = tuple[list[str], str]
"""Names, none where there are none, and why such as are there are not read."""


def names_in(path: Place, points: str) -> Found:
    """Names of the features of the array ``points`` of a file; what cannot be read as names is none, and points are read."""
    try:
        if path.suffix == ".npz":
            return _of_npz(path), ""
        if path.suffix in hdf5.SUFFIXES:
            with hdf5.opened(path) as file:
                return _of_hdf5(file, path, points), ""
    except (DfeasError, *DAMAGE) as error:
        return [], f"names of features not read: {' '.join(str(error).split())[:200]}"
    return [], ""


def _of_npz(path: Place) -> list[str]:
    """Of its array ``feature_names``, which is text and no pickle."""
    with zipfile.ZipFile(seekable(path)) as archive:
        member = f"{ATTRIBUTES[0]}.npy"
        if member not in archive.namelist():
            return []
        _require_small(archive.getinfo(member).file_size // 4, path)  # NumPy has four bytes for a character
        with archive.open(member) as stream:
            return _text(npy.read_array(stream, allow_pickle=False))


def _of_hdf5(file: Any, path: Place, points: str) -> list[str]:
    """Of an attribute of the points, of the scale of their second axis, or of AnnData the index of var."""
    where = str(path)
    if path.suffix == ".h5ad":
        return _of_anndata(file, where, points.strip("/"))
    node = hdf5.node_of(file, points, where)
    for name in ATTRIBUTES:
        found = hdf5.attribute(node, name, where)
        if found is not None:
            return _text(found)
    if isinstance(node, h5py.Dataset) and node.ndim == 2:
        for scale in node.dims[1].values():
            if h5py.check_string_dtype(scale.dtype) is not None:
                # by its name: every way into a file is one that does not lead out of it
                return _column(hdf5.node_of(file, scale.name, where), path)
    return []


def _of_anndata(file: Any, where: str, points: str) -> list[str]:
    """The index of var, which is that of X and of layers; ``raw`` has a var of its own."""
    table = {"X": "var", "raw/X": "raw/var"}.get(points, "var" if points.startswith("layers/") else "")
    var = hdf5.node_of(file, table, where) if table else None
    if not isinstance(var, h5py.Group):
        return []
    index = hdf5.attribute(var, "_index", where)
    column = hdf5.node_of(var, str(index or "_index"), f"{where}:{table}")
    return _column(column, where) if isinstance(column, h5py.Dataset) else []


def _column(dataset: Any, where: object) -> list[str]:
    _require_small(prod(dataset.shape) * dataset.dtype.itemsize, where)
    return _text(dataset[:])


def _text(found: Any) -> list[str]:
    """A list of text. Raises TypeError for anything else."""
    names = np.atleast_1d(np.asarray(found))
    if names.ndim != 1 or not all(isinstance(name, str | bytes) for name in names.tolist()):
        raise TypeError(f"expected a list of text, got an array of {names.dtype} and shape {names.shape}")
    return [name.decode() if isinstance(name, bytes) else name for name in names.tolist()]


def _require_small(size: int, where: object) -> None:
    """Raise ValueError for more than names that are kept can be: lists of them are padded to the longest."""
    if size > 16 * MOST_BYTES:
        raise ValueError(f"{where}: {format_bytes(size)} of them")
