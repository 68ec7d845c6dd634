"""Arrays and groups of zarr by path, their metadata checked before any chunk is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import zarr

from dfeas.errors import BadInputError, CorruptDataError
from dfeas.store.chunks import check_codecs
from dfeas.store.damage import DAMAGE
from dfeas.store.json_file import COUNT, read_json
from dfeas.store.links import refuse_links
from dfeas.store.npy import load_npy
from dfeas.store.places import Place, zarr_store
from dfeas.store.zarr2 import is_zarr2, open_zarr2

METADATA = {
    "zarr_format": COUNT,
    "node_type": str,
    "shape?": [COUNT],
    "chunk_grid?": {"configuration": {"chunk_shape": [COUNT]}},
}
"""What ``zarr.json`` says of a group or an array, as far as sizes follow from it."""


def open_node(path: Place) -> Any:
    """The zarr array or group at a path, its metadata checked before any chunk is read."""
    if not path.is_dir() or not any((path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup")):
        raise BadInputError(f"{path}: neither a dfeas dataset nor a zarr array; see dfeas ingest --help for other formats")
    if not (path / "zarr.json").exists():
        raise BadInputError(f"{path}: zarr format 2; only format 3 is read, convert it with zarr or use dfeas ingest")
    if isinstance(path, Path):
        refuse_links(path)
    read_json(path / "zarr.json", METADATA)
    try:
        return zarr.open(zarr_store(path, read_only=True), mode="r")
    except DAMAGE as error:
        raise CorruptDataError(f"{path}: its zarr metadata cannot be read: {type(error).__name__}: {error}") from None


def open_array(path: Place, name: str) -> Any:
    """The zarr array at a path; ``name`` says in errors what it should be."""
    array = open_node(path)
    if not isinstance(array, zarr.Array):
        raise BadInputError(f"{path}: a zarr group, expected the {name} array; give the path of the array in it")
    check_codecs(array, path)
    return array


def open_labels(path: Place) -> Any:
    """A label array by path: zarr, or .npy."""
    if not path.exists():
        raise BadInputError(f"{path}: no such file or folder (labels)")
    if path.suffix == ".npy":
        return load_npy(path)
    return open_zarr2(path) if is_zarr2(path) else open_array(path, "label")


def check_shape(shape: tuple[int, ...] | None, where: str) -> tuple[int, int]:
    """(n, m) of an array of points; raises BadInputError when it is not two-dimensional or is empty."""
    if shape is None or not all(isinstance(s, int | np.integer) for s in shape):
        raise BadInputError(f"{where}: its shape is not known; for a Dask array call compute_chunk_sizes() first")
    if len(shape) != 2:
        raise BadInputError(f"{where}: expected points as an array (n, m), got shape {tuple(shape)}")
    n, m = int(shape[0]), int(shape[1])
    if n == 0 or m == 0:
        raise BadInputError(f"{where}: no {'points' if n == 0 else 'features'}, shape {tuple(shape)}")
    return n, m
