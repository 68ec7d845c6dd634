"""Labels of AnnData files: columns of obs in .h5ad, categorical or plain."""

from __future__ import annotations

from math import prod
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.store import hdf5
from dfeas.store.damage import DAMAGE
from dfeas.store.limits import require_column
from dfeas.store.places import Place


def obs_labels(path: Place, column: str) -> NDArray[Any]:
    """Labels (n,) from a column of obs. Raises BadInputError when there is none, or a label is missing in it."""
    if path.suffix != ".h5ad":
        raise UsageError(f"{path}: --label-column is for tables and .h5ad files; name the array of labels with --labels")
    try:
        with hdf5.opened(path) as file:
            return _column(file, column, str(path))
    except DAMAGE as error:
        raise CorruptDataError(f"{path}: obs cannot be read, truncated or damaged: {error}") from None


def _column(file: Any, column: str, where: str) -> NDArray[Any]:
    obs = hdf5.node(file, "obs", where)
    if not isinstance(obs, h5py.Group):
        raise BadInputError(f"{where}: no obs group; write it again with anndata 0.8 or newer")
    found = hdf5.node(obs, column, f"{where}:obs")
    if found is None:
        names = [name for name in obs if name not in ("_index", "__categories")]
        raise BadInputError(f"{where}: no column {column} in obs; it has {', '.join(names[:8])}")
    if isinstance(found, h5py.Dataset):
        if "categories" in found.attrs:
            raise BadInputError(f"{where}: column {column} is stored as by anndata before 0.8; write it again with a newer one")
        return _values(found, where)
    kind = found.attrs.get("encoding-type")
    if kind != "categorical":
        raise BadInputError(f"{where}: column {column} of obs is stored as {kind}; make it categorical, text or numbers")
    codes, categories = (_values(hdf5.node(found, part, f"{where}:obs/{column}"), where) for part in ("codes", "categories"))
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
