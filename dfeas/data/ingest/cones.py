"""Cones from files, programmes of SCS and SDPA sparse files (.dat-s), as a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy

from dfeas.data.ingest.formats import SDPA
from dfeas.data.ingest.sdpa import read_sdpa
from dfeas.data.product import Product
from dfeas.data.storage.files import damage_becomes
from dfeas.data.storage.layout import Header
from dfeas.data.storage.places import local, require_apart
from dfeas.data.storage.zarr_arrays import read_header
from dfeas.data.writers.cones import ingest_product
from dfeas.data.writers.dataset import Progress
from dfeas.errors import BadInputError


def ingest_cones(
    src: str | Path,
    out: str | Path,
    cones: str | None = None,
    name: str = "X",
    progress: Progress | None = None,
    shard: str | int | None = None,
) -> Header:
    """Write a dataset of cones from an SDPA sparse file, or from an array (N, m) and its ``cones``, as l:30,q:5x1000,s:6x200.

    ``name`` is that of the array in ``.npz``; a ``.npz`` of SciPy holds a sparse matrix. ``shard`` is in bytes, as of points.
    Raises BadInputError for other files.
    """
    require_apart(out, src)
    return ingest_product(*product_of(src, cones, name), out, progress, shard)


def product_of(src: str | Path, cones: str | None, name: str) -> tuple[Any, Product]:
    """Rows (N, m) and cones of a file; see ``ingest_cones``."""
    path = local(src, "SRC")
    if path.name.endswith(SDPA):
        if cones is not None:
            raise BadInputError(f"{path}: an SDPA file says what its cones are; leave out --cones")
        rows, table = read_sdpa(path)
        return rows, Product.from_scs(table)
    if cones is None:
        raise BadInputError(f"{path}: expected an SDPA sparse file (.dat-s), or an array with its cones")
    return _array(path, name), Product.from_text(cones)


def _array(path: Path, name: str) -> Any:
    if not path.is_file():
        raise BadInputError(f"{path}: no such file")
    if path.suffix not in (".npy", ".npz"):
        raise BadInputError(f"{path}: cones are read from .npy, .npz and SDPA sparse files (.dat-s)")
    with damage_becomes(f"{path}: not readable"):
        if path.suffix == ".npy":
            with path.open("rb") as file:
                read_header(file, path.stat().st_size, str(path))
            return np.load(path, mmap_mode="r", allow_pickle=False)
        with np.load(path, allow_pickle=False) as held:
            sparse = "indptr" in held
            if not sparse and name not in held:
                raise BadInputError(f"{path}: no array {name!r}; it has {', '.join(held)}; name one with --points")
            for member in held.zip.namelist() if sparse else [f"{name}.npy"]:
                with held.zip.open(member) as stream:
                    read_header(stream, held.zip.getinfo(member).file_size, f"{path}:{member}")
            return scipy.sparse.load_npz(path) if sparse else held[name]
