"""HDF5 files, and the labels of AnnData in them: what leads out of a file is refused, as it could name any of this machine.

External links, external storage and virtual datasets make the library open other files. Links inside of the file are followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from dfeas.data.storage.files import DAMAGE
from dfeas.data.storage.places import Place, require_chunks, require_column, seekable
from dfeas.errors import BadInputError, CorruptDataError, DfeasError, UsageError

SUFFIXES = (".h5", ".hdf5", ".he5", ".h5ad")
"""How names of such files end."""

MOST_LINKS = 16
"""Soft links on the way to one dataset; more of them are a loop."""


@contextmanager
def opened(path: Place) -> Iterator[Any]:
    """An HDF5 file. Raises CorruptDataError when it is none."""
    try:
        file = h5py.File(seekable(path), "r")
    except DfeasError:
        raise
    except DAMAGE as error:
        raise CorruptDataError(f"{path}: not a readable HDF5 file, truncated or damaged: {error}") from None
    with file:
        yield file


def node_of(group: Any, name: str, where: str) -> Any:
    """The group or dataset of a name or path below a group; None when there is none.

    Every way into a file goes through here. Raises BadInputError for what leads out of the file, CorruptDataError for damage.
    """
    try:
        target = _followed(group, name, where)
    except DfeasError:
        raise
    except DAMAGE as error:
        raise CorruptDataError(f"{where}: {name} cannot be read: {error}") from None
    if isinstance(target, h5py.Dataset):
        _require_inside(target, f"{where}:{name}")
    return target


def attribute(node: Any, name: str, where: str) -> Any:
    """An attribute of a group or dataset; None when there is none."""
    try:
        return node.attrs.get(name)
    except DAMAGE as error:
        raise CorruptDataError(f"{where}: its attribute {name} cannot be read: {error}") from None


def datasets(group: Any, where: str) -> list[str]:
    """Names of the datasets that lie in a group, for messages."""
    try:
        hard = [key for key in group if isinstance(group.get(key, getlink=True), h5py.HardLink)]
        return [key for key in hard if group.get(key, getclass=True) is h5py.Dataset]
    except DAMAGE as error:
        raise CorruptDataError(f"{where}: not a readable HDF5 file: {error}") from None


def _followed(group: Any, name: str, where: str) -> Any:
    """Link by link, as the library would follow them without asking."""
    waiting, links, node = _steps(name), 0, group.file["/"] if name.startswith("/") else group
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
        if links > MOST_LINKS:
            raise BadInputError(
                f"{where}: {name} is reached by more than {MOST_LINKS} soft links: a loop; name the dataset itself"
            )
        node = node.file["/"] if link.path.startswith("/") else node
        waiting += _steps(link.path)
    return node


def _steps(path: str) -> list[str]:
    """The steps of a path, the first one last."""
    return [step for step in reversed(path.split("/")) if step not in ("", ".")]


def _require_inside(dataset: Any, where: str) -> None:
    """Raise BadInputError for a dataset whose entries are in other files, CorruptDataError when some were never written."""
    try:
        outside = "external storage" if dataset.external else "a virtual dataset" if dataset.is_virtual else ""
        shape, chunks, size = dataset.shape, dataset.chunks, dataset.dtype.itemsize
        missing = 0
        if shape and prod(shape) and not outside:
            if chunks:
                expected = prod(-(-length // chunk) for length, chunk in zip(shape, chunks, strict=True))
                missing = expected - dataset.id.get_num_chunks()
            else:
                missing = int(dataset.id.get_storage_size() < prod(shape) * dataset.id.get_type().get_size())
    except DAMAGE as error:
        raise CorruptDataError(f"{where}: cannot be read: {error}") from None
    if outside:
        raise BadInputError(f"{where}: {outside}, whose entries are in other files; copy them into this one (h5repack)")
    if missing > 0:
        raise CorruptDataError(f"{where}: shape {shape}, and {missing} of its chunks were never written; write it whole")
    if chunks:
        require_chunks(chunks, size, where)


def obs_labels(path: Place, column: str) -> NDArray[Any]:
    """Labels (n,) from a column of obs. Raises BadInputError when there is none, or a label is missing in it."""
    if path.suffix != ".h5ad":
        raise UsageError(f"{path}: --label-column is for tables and .h5ad files; name the array of labels with --labels")
    try:
        with opened(path) as file:
            return _column(file, column, str(path))
    except DfeasError:
        raise
    except DAMAGE as error:
        raise CorruptDataError(f"{path}: obs cannot be read, truncated or damaged: {error}") from None


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
    """All of a column. Raises BadInputError when it does not fit in memory."""
    if not isinstance(dataset, h5py.Dataset):
        raise CorruptDataError(f"{where}: a part of the column of obs is missing")
    require_column(prod(dataset.shape) * dataset.dtype.itemsize, where)
    return np.asarray(dataset.asstr()[:] if h5py.check_string_dtype(dataset.dtype) else dataset[:])
