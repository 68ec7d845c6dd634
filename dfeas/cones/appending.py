"""Appending cones to a dataset of cones: in the last block while there is room, and then in blocks of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.cones.files import product_of
from dfeas.cones.product import Placing, Product
from dfeas.cones.writing import ConeWriter, block_of, read_product
from dfeas.errors import BadInputError, UsageError
from dfeas.passes.points import is_dense
from dfeas.store.append import finish, growing, locked
from dfeas.store.cone_table import ConeTable
from dfeas.store.dataset import Dataset
from dfeas.store.filling import Progress, fill
from dfeas.store.layout import Header, fingerprint, looks_like_dataset
from dfeas.store.new_points import exact, tail_of
from dfeas.store.opening import open_source
from dfeas.store.places import is_url
from dfeas.store.source import Source
from dfeas.store.stage import Stage


def append_cones(
    data: str | Path, src: str | Path, cones: str | None = None, name: str = "X", progress: Progress | None = None
) -> Header:
    """Append the cones of a file to a dataset of cones, and return its new header; the arguments are those of ``ingest_cones``.

    Raises BadInputError for cones that do not fit, UsageError when another process writes there; the dataset stays what it was.
    """
    if is_url(data):
        raise UsageError(f"{data}: cones are appended on this machine only; copy the dataset, or ingest all cones again")
    path = Path(data)
    if not looks_like_dataset(path):
        raise BadInputError(f"{path}: not a dfeas dataset; cones are appended to what dfeas ingest wrote")
    X, product = product_of(src, cones, name)
    with locked(path):
        finish(path)
        opened = open_source(Source(str(path), direct=False, cones=True))
        if opened.cones is None:
            raise BadInputError(f"{path}: a dataset of points; cones are appended to cones")
        with growing(path) as part:
            return _staged(path, part, opened, X, product, progress)


def _staged(path: Path, part: Path, old: Dataset, X: Any, product: Product, progress: Progress | None) -> Header:
    """Write append.part/stage, and return the header of the dataset that it makes."""
    rows, m, _ = read_product(X, product)
    if m != old.m:
        raise BadInputError(f"new cones of {m} features, {path} has {old.m}")
    if product.table.largest > old.block_rows:
        raise BadInputError(
            f"a new cone of {product.table.largest} rows does not lie in a block of {path}, which has {old.block_rows}; ingest "
            "all cones again"
        )
    assert old.header is not None, "a dataset has a header"
    assert old.expected is not None, "a dataset has checksums"
    assert old.cones is not None, "of cones"
    size, kept = old.block_rows, old.n // old.block_rows
    points, label = tail_of(old, kept)
    assert is_dense(points), "cones are stored dense"
    placing = Placing(product, size, len(label))

    def fitting(first: int, stop: int) -> NDArray[Any]:
        some = rows(first, stop)
        if not np.isfinite(some).all():
            return some.astype(old.dtype)  # the writer refuses them
        found = exact(some, old.dtype, first)
        assert is_dense(found), "cones are stored dense"
        return found

    def block(index: int) -> tuple[NDArray[Any], NDArray[Any]]:
        made = block_of(placing, index, fitting, m, old.dtype)
        codes = placing.label[index * size : (index + 1) * size]
        if index == 0:
            codes = codes.copy()
            made[: len(label)], codes[: len(label)] = points, label
        return made, codes

    out = ConeWriter(part / "out", placing, m, old.dtype)
    fill(out, block, progress)
    new = out.finish(())
    checksums, n = np.concatenate([old.expected[:kept], out.checksums()]), kept * size + placing.n
    header = replace(
        old.header,
        n=n,
        norm_min=min(old.header.norm_min, new.norm_min),
        norm_max=max(old.header.norm_max, new.norm_max),
        fingerprint=fingerprint(n, m, old.dtype.name, size, checksums),
        generator=None,
        cones=_joined(old.cones, product.table),
    )
    Stage(path, part / "out", part / "stage", header, kept).lay_out(checksums)
    return header


def _joined(first: ConeTable, second: ConeTable) -> ConeTable:
    """Cones of both."""
    counts = {(kind, size): many for kind, size, many in first.counts}
    for kind, size, many in second.counts:
        counts[kind, size] = counts.get((kind, size), 0) + many
    return ConeTable(tuple((kind, size, many) for (kind, size), many in counts.items()))
