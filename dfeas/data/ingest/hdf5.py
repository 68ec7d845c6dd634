"""HDF5 files, labels of AnnData in them, names beside an array in these and in .npz: what leads out of a file is refused, as it
could name any of this machine.

External links, external storage and virtual datasets make the library open other files. Links inside of the file are followed.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import h5py
import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dfeas.data.storage.features import MOST_BYTES
from dfeas.data.storage.files import damage, damage_becomes
from dfeas.data.storage.places import Place, require_chunks, require_column, seekable
from dfeas.errors import BadInputError, CorruptDataError, DfeasError, UsageError, format_bytes, spell

SUFFIXES = (".h5", ".hdf5", ".he5", ".h5ad")
"""How names of such files end."""


@contextmanager
def open_file(path: Place) -> Iterator[Any]:
    """An HDF5 file. Raises CorruptDataError when it is none."""
    with damage_becomes(path, "not a readable HDF5 file, truncated or damaged"):
        file = h5py.File(seekable(path), "r")
    with file:
        yield file


def node_of(group: Any, name: str, where: str) -> Any:
    """The group or dataset of a name or path below a group; None when there is none. Every way into a file goes through here.
    Raises BadInputError for what leads out of the file, CorruptDataError for damage.
    """
    with damage_becomes(where, f"{name} cannot be read"):
        target = _follow(group, name, where)
    if isinstance(target, h5py.Dataset):
        require_inside(target, f"{where}:{name}")
    return target


def attribute(node: Any, name: str, where: str) -> Any:
    """An attribute of a group or dataset; None when there is none."""
    with damage_becomes(where, f"its attribute {name} cannot be read"):
        return node.attrs.get(name)


def datasets(group: Any, where: str) -> list[str]:
    """Names of the datasets that lie in a group, for messages."""
    with damage_becomes(where, "not a readable HDF5 file"):
        hard = [key for key in group if isinstance(group.get(key, getlink=True), h5py.HardLink)]
        return [key for key in hard if group.get(key, getclass=True) is h5py.Dataset]


def _follow(group: Any, name: str, where: str) -> Any:
    waiting, links, node = _steps(name), 0, group.file["/"] if name.startswith("/") else group
    most_links = 16  # soft links on the way to one dataset; more of them are a loop
    while waiting:
        step = waiting.pop()
        link = node.get(step, getlink=True) if isinstance(node, h5py.Group) else None
        if link is None:
            return None
        if isinstance(link, h5py.HardLink):
            node = node[step]
            continue
        if not isinstance(link, h5py.SoftLink):
            to = f" to {link.filename}" if isinstance(link, h5py.ExternalLink) else ""
            raise BadInputError(f"{where}: {step} is an external link{to}; copy the data into the file (h5repack, h5copy)")
        links += 1
        if links > most_links:
            raise BadInputError(
                f"{where}: {name} is reached by more than {most_links} soft links: a loop; name the dataset itself"
            )
        node = node.file["/"] if link.path.startswith("/") else node
        waiting += _steps(link.path)
    return node


def _steps(path: str) -> list[str]:
    return [step for step in reversed(path.split("/")) if step not in ("", ".")]


def require_inside(dataset: Any, where: str) -> None:
    """Raise BadInputError for a dataset whose entries are in other files, CorruptDataError when some were never written."""
    with damage_becomes(where, "cannot be read"):
        outside = "external storage" if dataset.external else "a virtual dataset" if dataset.is_virtual else ""
        shape, chunks, size = dataset.shape, dataset.chunks, dataset.dtype.itemsize
        missing = 0
        if shape and prod(shape) and not outside:
            if chunks:
                expected = prod(-(-length // chunk) for length, chunk in zip(shape, chunks, strict=True))
                missing = expected - dataset.id.get_num_chunks()
            else:
                missing = int(dataset.id.get_storage_size() < prod(shape) * dataset.id.get_type().get_size())
    if outside:
        raise BadInputError(f"{where}: {outside}, whose entries are in other files; copy them into this one (h5repack)")
    if missing > 0:
        raise CorruptDataError(f"{where}: shape {shape}, and {missing} of its chunks were never written; write it whole")
    if chunks:
        require_chunks(chunks, size, where)


def accept_dataset(dataset: Any, where: str) -> Any:
    """A dataset that somebody has opened, as it is read by path: text as such. Raises as ``require_inside``."""
    require_inside(dataset, where)
    return dataset if h5py.check_string_dtype(dataset.dtype) is None else _values(dataset, where)


def obs_labels(path: Place, column: str) -> NDArray[Any]:
    """Labels (n,) from a column of obs. Raises BadInputError when there is none, or a label is missing in it."""
    if path.suffix != ".h5ad":
        raise UsageError(
            f"{path}: {spell('label_column')} is for tables and .h5ad; name the array of labels with {spell('labels')}"
        )
    with damage_becomes(path, "obs cannot be read, truncated or damaged"), open_file(path) as file:
        return _column(file, column, str(path))


def _column(file: Any, column: str, where: str) -> NDArray[Any]:
    obs = node_of(file, "obs", where)
    if not isinstance(obs, h5py.Group):
        raise BadInputError(f"{where}: no obs group; write it again with anndata 0.8 or newer")
    node = node_of(obs, column, f"{where}:obs")
    if node is None:
        names = [name for name in obs if name not in ("_index", "__categories")]
        raise BadInputError(f"{where}: no column {column} in obs; it has {', '.join(names[:8])}")
    if isinstance(node, h5py.Dataset):
        if "categories" in node.attrs:
            raise BadInputError(f"{where}: column {column} is stored as by anndata before 0.8; write it again with a newer one")
        return _values(node, where)
    kind = node.attrs.get("encoding-type")
    if kind != "categorical":
        raise BadInputError(f"{where}: column {column} of obs is stored as {kind}; make it categorical, text or numbers")
    codes, categories = (_values(node_of(node, part, f"{where}:obs/{column}"), where) for part in ("codes", "categories"))
    missing = np.flatnonzero((codes < 0) | (codes >= len(categories)))
    if len(missing):
        raise BadInputError(f"{where}: column {column} of obs: the label of point {missing[0]} is missing; fill it in")
    return np.asarray(categories[codes])


def _values(dataset: Any, where: str) -> NDArray[Any]:
    if not isinstance(dataset, h5py.Dataset):
        raise CorruptDataError(f"{where}: a part of the column of obs is missing")
    require_column(prod(dataset.shape) * dataset.dtype.itemsize, where)
    return np.asarray(dataset.asstr()[:] if h5py.check_string_dtype(dataset.dtype) else dataset[:])


ATTRIBUTES = ("feature_names", "features")
"""Of a dataset of HDF5, a list of text; and the array of an .npz file is called as the first."""


def names_in(path: Place, points: str) -> tuple[list[str], str]:
    """Names of the features of the array ``points`` of a file, if it has any, and why such as are there are not read."""
    try:
        if path.suffix == ".npz":
            return _of_npz(path), ""
        if path.suffix in SUFFIXES:
            with open_file(path) as file:
                return _of_hdf5(file, str(path), points), ""
    except damage(DfeasError) as error:
        return [], f"names of features not read: {' '.join(str(error).split())[:200]}"
    return [], ""


def _of_npz(path: Place) -> list[str]:
    with zipfile.ZipFile(seekable(path)) as archive:
        member = f"{ATTRIBUTES[0]}.npy"
        if member not in archive.namelist():
            return []
        _require_few(archive.getinfo(member).file_size // 4, path)  # NumPy has four bytes for a character
        with archive.open(member) as stream:
            return _names_of(npy.read_array(stream, allow_pickle=False))


def _of_hdf5(file: Any, where: str, points: str) -> list[str]:
    """Of an attribute of the points, of the scale of their second axis, or of AnnData the index of var."""
    if where.endswith(".h5ad"):
        node = _index_of_var(file, where, points.strip("/"))
    else:
        node = node_of(file, points, where)
        for name in ATTRIBUTES:
            found = attribute(node, name, where)
            if found is not None:
                return _names_of(found)
        scales = node.dims[1].values() if isinstance(node, h5py.Dataset) and node.ndim == 2 else ()
        scale = next((each.name for each in scales if h5py.check_string_dtype(each.dtype) is not None), None)
        # by its name: every way into a file is one that does not lead out of it
        node = None if scale is None else node_of(file, scale, where)
    if not isinstance(node, h5py.Dataset):
        return []
    _require_few(prod(node.shape) * node.dtype.itemsize, where)
    return _names_of(node[:])


def _index_of_var(file: Any, where: str, points: str) -> Any:
    """That of X and of layers; ``raw`` has a var of its own."""
    table = {"X": "var", "raw/X": "raw/var"}.get(points, "var" if points.startswith("layers/") else "")
    var = node_of(file, table, where) if table else None
    if not isinstance(var, h5py.Group):
        return None
    return node_of(var, str(attribute(var, "_index", where) or "_index"), f"{where}:{table}")


def _names_of(found: Any) -> list[str]:
    names = np.atleast_1d(np.asarray(found))
    if names.ndim != 1 or not all(isinstance(name, str | bytes) for name in names.tolist()):
        raise TypeError(f"expected a list of text, got an array of {names.dtype} and shape {names.shape}")
    return [name.decode() if isinstance(name, bytes) else name for name in names.tolist()]


def _require_few(size: int, where: object) -> None:
    """Raise ValueError for more than names that are kept can be: lists of them are padded to the longest."""
    if size > 16 * MOST_BYTES:
        raise ValueError(f"{where}: {format_bytes(size)} of them")
