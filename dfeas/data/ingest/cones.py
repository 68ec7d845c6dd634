"""Cones from files, programmes of SCS and SDPA sparse files (.dat-s), as a dataset or appended to one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.data.ingest.sdpa import SDPA, read_sdpa
from dfeas.data.product import Placing, Product
from dfeas.data.storage.files import DAMAGE
from dfeas.data.storage.layout import Header
from dfeas.data.storage.places import local, require_apart
from dfeas.data.storage.zarr_arrays import read_header
from dfeas.data.writers.append import exact, growing, open_to_append, stage, tail_of
from dfeas.data.writers.cones import Rows, ingest_product, read_product, writer_of
from dfeas.data.writers.dataset import Progress, fill
from dfeas.data.writers.sparse import Before, SparseWriter
from dfeas.errors import BadInputError, CorruptDataError, DfeasError
from dfeas.linalg.csr import tidied
from dfeas.linalg.points import Points, dense, in_type, is_dense, row_slice, stacked


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
    try:
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
    except DfeasError:
        raise
    except DAMAGE as error:
        raise CorruptDataError(f"{path}: not readable: {error}") from None


def append_cones(
    data: str | Path, src: str | Path, cones: str | None = None, name: str = "X", progress: Progress | None = None
) -> Header:
    """Append the cones of a file to a dataset of cones, and return its new header; the arguments are those of ``ingest_cones``.

    Raises BadInputError for cones that do not fit, UsageError when another process writes there; the dataset stays what it was.
    """
    with open_to_append(data, "cones") as old:
        X, product = product_of(src, cones, name)
        if old.cones is None:
            raise BadInputError(f"{old.where}: a dataset of points; cones are appended to cones")
        with growing(Path(old.where)) as part:
            return _stage_cones(part, old, X, product, progress)


def _stage_cones(part: Path, old: Dataset, X: Any, product: Product, progress: Progress | None) -> Header:
    """Write append.part/stage, and return the header of the dataset that it makes."""
    new = read_product(X, product)
    m, sparse = new.m, old.entries is not None
    if m != old.m:
        raise BadInputError(f"new cones of {m} features, {old.where} has {old.m}")
    if product.table.largest > old.chunk_rows:
        raise BadInputError(
            f"a new cone of {product.table.largest} rows does not lie in a block of {old.where}, which has {old.chunk_rows}; "
            "ingest all cones again"
        )
    points, label = tail = tail_of(old)
    placing = Placing(product, old.chunk_rows, len(label))

    def fitting(first: int, stop: int) -> Points:
        some = new.read(first, stop)
        alike = dense(some) if not sparse else tidied(scipy.sparse.csr_array(some)) if is_dense(some) else some
        if not np.isfinite(alike if is_dense(alike) else alike.data).all():
            return in_type(alike, old.dtype.type)  # the writer refuses them
        return exact(alike, old.dtype, first)

    rows = Rows(fitting, m, old.dtype, 0.0 if sparse else None)

    def block(index: int) -> tuple[Points, NDArray[Any]]:
        entries, codes = rows.block(placing, index)
        if index == 0:
            own = slice(len(label), len(codes))
            entries, codes = stacked([points, row_slice(entries, own)]), np.concatenate([label, codes[own]])
        return entries, codes

    out = writer_of(part / "out", placing, rows)
    if isinstance(out, SparseWriter):
        out.follow(Before.of(old, old.n // old.chunk_rows))
    fill(out, block, progress)
    return stage(old, out, tail)
