"""A product of cones as a dataset: on disk, or in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.arrays import cast, stored_dtype
from dfeas.data.cones.groups import cone_norms
from dfeas.data.cones.product import Placing, Product
from dfeas.data.dataset import Dataset
from dfeas.data.storage.layout import CODE, Header
from dfeas.data.storage.readers import SliceReader
from dfeas.data.storage.zarr_arrays import check_shape
from dfeas.data.writers.dataset import DatasetWriter, Progress, fill, refuse_unusable
from dfeas.data.writers.output import output_place
from dfeas.errors import BadInputError
from dfeas.linalg.points import Floats, Points, is_dense, norms
from dfeas.passes.block import Block
from dfeas.passes.survey import Summary, Survey

Rows = Callable[[int, int], NDArray[Any]]
"""Rows first .. stop-1 of a product (b, m), dense."""


class ConeWriter(DatasetWriter):
    """Takes the blocks of a dataset of cones: labels are codes, and norms are those of cones."""

    def __init__(self, path: Any, placing: Placing, m: int, dtype: np.dtype[Any]) -> None:
        super().__init__(path, placing.n, m, dtype, placing.block_rows, label=CODE)
        self._table = placing.product.table

    def write(self, index: int, points: Points, label: NDArray[Any]) -> None:
        """Survey and store one whole block."""
        norm, summary = surveyed(index * self.block_rows, points, label)
        refuse_unusable(summary, str(self.path))
        self._keep(index, summary, points, label, norm)

    def _finish_points(self) -> dict[str, Any]:
        return {"cones": self._table}


def surveyed(start: int, points: Points, label: NDArray[Any]) -> tuple[Floats, Summary]:
    """Norms (b,) of the cones of a block, and what is wrong with it. A cone of zeros is none of the zero points."""
    assert is_dense(points), "cones are stored dense"
    finite = points.dtype.kind != "f" or bool(np.isfinite(points).all())
    norm = cone_norms(points, label) if finite else norms(points)
    found = Survey().scan(Block.of(start, points, label, norm))
    return norm, replace(found, zero=0, first_zero=(), positive=0)


def ingest_scs(X: Any, cone: Mapping[str, Any], out: str | Path, progress: Progress | None = None) -> Header:
    """Write a product of cones as a dataset, for ``dfeas.solve(out)``.

    ``X`` (N, m) is a NumPy array or a SciPy sparse matrix: its rows are the coordinates of K in the order of SCS; the question
    is whether some y has X y in the interior of K. ``cone`` is SCS's dictionary of kinds and sizes, as ``{'l': 3, 'q': [5, 5],
    's': [6]}``: entries of the orthant, second-order cones (t, u) with t >= |u|, and semidefinite matrices of that order as
    lower triangles, column by column, entries off the diagonal times sqrt 2 (``dfeas.svec`` makes them).

    Raises BadInputError when the numbers do not add up or entries are not finite, UsageError when OUT exists.
    """
    return ingest_product(X, Product.from_scs(cone), out, progress)


def ingest_product(X: Any, product: Product, out: str | Path, progress: Progress | None = None) -> Header:
    """The same, of cones that are known."""
    rows, m, dtype = read_product(X, product)
    placing = Placing(product, product.block_rows(m, dtype.itemsize))
    return write(placing, lambda index: block_of(placing, index, rows, m, dtype), m, dtype, out, progress=progress)


def write(
    placing: Placing,
    block: Callable[[int], NDArray[Any]],
    m: int,
    dtype: np.dtype[Any],
    out: str | Path,
    about: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> Header:
    """Write a product, block by block: rows (b, m) with padding, made in the writing threads."""
    with output_place(out) as path:
        target = ConeWriter(path, placing, m, dtype)
        size = placing.block_rows
        fill(target, lambda index: (block(index), placing.label[index * size : (index + 1) * size]), progress)
        return target.finish((), about)


def block_of(placing: Placing, index: int, rows: Rows, m: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Rows (b, m) of a block, padding included."""
    here = slice(index * placing.block_rows, min((index + 1) * placing.block_rows, placing.n))
    source = placing.source[here]
    some = source >= 0
    points = np.zeros((len(source), m), dtype)
    if some.any():
        points[some] = rows(int(source[some][0]), int(source[some][-1]) + 1)
    return points


def from_scs(X: Any, cone: Mapping[str, Any]) -> Dataset:
    """A product of cones in memory, for ``dfeas.solve``; the arguments and errors are those of ``ingest_scs``.

    An array that needs no padding is not copied.
    """
    product = Product.from_scs(cone)
    rows, m, dtype = read_product(X, product)
    placing = Placing(product, product.block_rows(m, dtype.itemsize))
    n, block_rows = placing.n, placing.block_rows
    blocks = range(-(-n // block_rows))
    if isinstance(X, np.ndarray) and n == len(X) and X.dtype == dtype and X.flags.c_contiguous:
        points: NDArray[Any] = X
    else:
        points = np.concatenate([block_of(placing, index, rows, m, dtype) for index in blocks])
    norm = np.empty(n)
    for index in blocks:
        here = slice(index * block_rows, min((index + 1) * block_rows, n))
        norm[here], summary = surveyed(here.start, points[here], placing.label[here])
        refuse_unusable(summary, "X")
    return Dataset(
        where="X",
        n=n,
        m=m,
        dtype=dtype,
        block_rows=block_rows,
        points=SliceReader("X", points, n, block_rows, dtype, overlaps=True),
        labels=SliceReader("label", placing.label, n, block_rows, CODE, overlaps=True),
        stored_norms=SliceReader("norm", norm, n, block_rows, norm.dtype, overlaps=True),
        cones=product.table,
    )


def read_product(X: Any, product: Product) -> tuple[Rows, int, np.dtype[Any]]:
    """Rows of a product, their width and type. Raises BadInputError when the numbers do not add up."""
    source: Any = X.tocsr() if hasattr(X, "tocsr") else X
    if not hasattr(source, "dtype"):
        source = np.asarray(source)
    if np.ma.isMaskedArray(source):
        raise BadInputError("X: a masked array; fill or drop the masked entries first")
    n, m = check_shape(source.shape, "X")
    if n != product.table.rows:
        raise BadInputError(
            f"X has {n} rows, the cones {product.table} have {product.table.rows}: a semidefinite cone of order k has "
            "k (k + 1) / 2 rows, its lower triangle; cone and X must agree"
        )
    dtype = stored_dtype(np.dtype(source.dtype), "X")

    def rows(first: int, stop: int) -> NDArray[Any]:
        some = source[first:stop]
        return cast(np.asarray(some.toarray() if hasattr(some, "toarray") else some)).astype(dtype, copy=False)

    return rows, m, dtype
