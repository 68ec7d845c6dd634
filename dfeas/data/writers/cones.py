"""A product of cones, as SCS writes it, as a dataset on disk or in memory: blocks of rows that no cone reaches out of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.arrays import cast, stored_dtype
from dfeas.data.cones import cone_norms
from dfeas.data.dataset import Dataset, array_reader
from dfeas.data.storage.layout import CODE, MOST_ORDER, PADDING, ConeTable, Header, code, default_block_rows, rows_of
from dfeas.data.storage.zarr_arrays import check_shape
from dfeas.data.writers.dataset import DatasetWriter, Progress, fill, output_place, refuse_unusable
from dfeas.errors import BadInputError
from dfeas.linalg.points import Floats, Points, is_dense, norms
from dfeas.passes.block import Block
from dfeas.passes.survey import Summary, Survey

LEAST_WIDTH = 32
"""Blocks are no longer than those of so many features: a scan has elements and matrices of all rows beside the points."""

Run = tuple[str, int, int]
"""Kind, size, and how many cones of it follow each other."""


@dataclass(frozen=True)
class Product:
    """Cones in the order of SCS: all of ``l``, then of ``q``, then of ``s``."""

    runs: tuple[Run, ...]

    @classmethod
    def from_scs(cls, cone: Mapping[str, Any]) -> Product:
        """From ``{'l': 3, 'q': [5, 5], 's': [6]}``. A second-order cone of one row, or a matrix of order 1, is one of ``l``.

        Raises BadInputError for other kinds, and for sizes that are no positive whole numbers.
        """
        if not isinstance(cone, Mapping):
            raise BadInputError(
                f"cone: expected a dictionary such as {{'l': 3, 'q': [5], 's': [6]}}, got {type(cone).__name__}"
            )
        other = [str(kind) for kind in cone if kind not in ("l", "q", "s")]
        if other:
            raise BadInputError(f"cone: kind {other[0]!r} is not known; expected 'l', 'q' and 's', as SCS has them")
        runs: list[Run] = []
        linear = _whole(cone.get("l", 0), "l", 0)
        if linear:
            runs.append(("l", 1, linear))
        for kind in ("q", "s"):
            sizes = cone.get(kind, ())
            if not isinstance(sizes, Sequence | np.ndarray) or isinstance(sizes, str | bytes):
                sizes = (sizes,)
            for size in sizes:
                number = _whole(size, kind, 1)
                each: Run = ("l", 1, 1) if number == 1 else (kind, number, 1)
                if each[:2] == (runs[-1][:2] if runs else None):
                    runs[-1] = (*each[:2], runs[-1][2] + 1)
                else:
                    runs.append(each)
        if not runs:
            raise BadInputError("cone: no cones; expected a dictionary such as {'l': 3, 'q': [5, 5], 's': [6]}")
        return cls(tuple(runs))

    @classmethod
    def from_text(cls, text: str) -> Product:
        """From ``l:30,q:5x1000,s:6x200``: kind, size, and how many. Raises BadInputError for other text."""
        cone: dict[str, Any] = {}
        for part in text.split(","):
            kind, colon, rest = part.strip().partition(":")
            size, _, many = rest.partition("x")
            if not (colon and size.isdecimal() and (many or "1").isdecimal()):
                raise BadInputError(f"cones {text}: expected kinds, sizes and counts such as l:30,q:5x1000,s:6x200")
            if kind == "l":
                cone["l"] = cone.get("l", 0) + int(size) * int(many or 1)
            else:
                cone.setdefault(kind, []).extend([int(size)] * int(many or 1))
        return cls.from_scs(cone)

    @property
    def table(self) -> ConeTable:
        """How many there are of each."""
        counts: dict[tuple[str, int], int] = {}
        for kind, size, many in self.runs:
            counts[kind, size] = counts.get((kind, size), 0) + many
        return ConeTable(tuple((kind, size, many) for (kind, size), many in counts.items()))

    def block_rows(self, m: int, itemsize: int) -> int:
        """Rows of a block: about the usual, and whole cones of the size that most rows are of."""
        table = self.table
        kind, size, _ = max(table.counts, key=lambda entry: rows_of(*entry[:2]) * entry[2])
        usual, of_most = default_block_rows(max(m, LEAST_WIDTH), itemsize, table.rows), rows_of(kind, size)
        return table.rows if usual == table.rows else max(table.largest, usual // of_most * of_most)


def _whole(value: Any, kind: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        empty = " (an empty cone)" if isinstance(value, int | np.integer) and value == 0 else ""
        raise BadInputError(f"cone: {value!r}{empty} in {kind!r}; expected whole numbers of at least {max(1, least)}")
    if kind == "s" and value > MOST_ORDER:
        raise BadInputError(f"cone: a semidefinite cone of order {value}; at most {MOST_ORDER} is supported")
    return int(value)


@dataclass(frozen=True)
class Placing:
    """Where the rows of a product lie in blocks of ``block_rows``, behind rows that are there already."""

    product: Product
    block_rows: int
    first: int = 0  # rows of the first block that are taken

    @cached_property
    def starts(self) -> list[NDArray[np.int64]]:
        """First rows (many,) of the cones of each run."""
        runs, at, block = [], self.first, self.block_rows
        for kind, size, many in self.product.runs:
            rows = rows_of(kind, size)
            here = min(many, (-at % block) // rows)
            starts = at + rows * np.arange(many, dtype=np.int64)
            if many > here:
                base = at if at % block == 0 else at + -at % block
                turn, place = np.divmod(np.arange(many - here, dtype=np.int64), block // rows)
                starts[here:] = base + turn * block + place * rows
            runs.append(starts)
            at = int(starts[-1]) + rows
        return runs

    @property
    def n(self) -> int:
        kind, size, _ = self.product.runs[-1]
        return int(self.starts[-1][-1]) + rows_of(kind, size)

    @cached_property
    def label(self) -> NDArray[np.int32]:
        """Codes (n,) of all rows."""
        label = np.full(self.n, PADDING, CODE)
        for (kind, size, _), starts in zip(self.product.runs, self.starts, strict=True):
            rows = rows_of(kind, size)
            label[(starts[:, None] + np.arange(rows)).reshape(-1)] = 0
            label[starts] = code(kind, size)
        return label

    @cached_property
    def source(self) -> NDArray[np.int64]:
        """Rows (n,) of the product that are stored there; -1 for padding."""
        some = self.label != PADDING
        source = np.full(self.n, -1, np.int64)
        source[some] = np.arange(some.sum())
        return source


Rows = Callable[[int, int], NDArray[Any]]
"""Rows first .. stop-1 of a product (b, m), dense."""


class ConeWriter(DatasetWriter):
    """Takes the blocks of a dataset of cones: labels are codes, and norms are those of cones."""

    def __init__(self, path: Any, placing: Placing, m: int, dtype: np.dtype[Any]) -> None:
        super().__init__(path, placing.n, m, dtype, placing.block_rows, label=CODE)
        self._table = placing.product.table

    def _survey(self, start: int, points: Points, label: NDArray[Any]) -> tuple[Floats, Summary]:
        return surveyed(start, points, label)

    def _finish_points(self) -> dict[str, Any]:
        return {"cones": self._table}


def surveyed(start: int, points: Points, label: NDArray[Any]) -> tuple[Floats, Summary]:
    """Norms (b,) of the cones of a block, and what is wrong with it. A cone of zeros is none of the zero points."""
    assert is_dense(points), "cones are stored dense"
    finite = points.dtype.kind != "f" or bool(np.isfinite(points).all())
    norm = cone_norms(points, label) if finite else norms(points)
    summary = Survey().scan(Block.of(start, points, label, norm))
    return norm, replace(summary, zero=0, first_zero=(), positive=0)


def ingest_scs(X: Any, cone: Mapping[str, Any], out: str | Path, progress: Progress | None = None) -> Header:
    """Write a product of cones as a dataset, for ``dfeas.solve(out)``.

    The question is whether some y has X y in the interior of the cones.

    Parameters
    ----------
    X : array (N, m), or SciPy sparse matrix
        Its rows are the coordinates of the cones in the order of SCS.
    cone : dict
        Kinds and sizes, as SCS has them, ``{'l': 3, 'q': [5, 5], 's': [6]}``: entries of the orthant, second-order cones (t, u)
        with t >= |u|, and semidefinite matrices of that order as lower triangles, column by column, entries off the diagonal
        times sqrt 2 (``dfeas.svec`` makes them).
    out : path
        The dataset, which must not exist.
    progress : callable, optional
        Called with the rows done, and those in all.

    Returns
    -------
    Header
        What was written.

    Raises
    ------
    BadInputError
        The numbers do not add up, or entries are not finite.
    UsageError
        OUT exists.

    Examples
    --------
    >>> import dfeas
    >>> import numpy as np
    >>> dfeas.ingest_scs(np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), {"l": 1, "q": [2]}, "cones")
    <Header 3 rows of cones (1 of l, 1 of q 2) of 2 features, float64>
    >>> print(dfeas.solve("cones").verdict)
    feasible
    """
    return ingest_product(X, Product.from_scs(cone), out, progress)


def ingest_product(X: Any, product: Product, out: str | Path, progress: Progress | None = None) -> Header:
    """The same, of cones that are known."""
    rows, m, dtype = read_product(X, product)
    placing = Placing(product, product.block_rows(m, dtype.itemsize))
    with output_place(out) as path:
        target = ConeWriter(path, placing, m, dtype)
        fill(target, lambda index: block_of(placing, index, rows, m, dtype), progress)
        return target.finish(())


def block_of(placing: Placing, index: int, rows: Rows, m: int, dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Rows (b, m) of a block, padding included, and their codes (b,)."""
    here = slice(index * placing.block_rows, min((index + 1) * placing.block_rows, placing.n))
    source = placing.source[here]
    some = source >= 0
    points = np.zeros((len(source), m), dtype)
    if some.any():
        points[some] = rows(int(source[some][0]), int(source[some][-1]) + 1)
    return points, placing.label[here]


def from_scs(X: Any, cone: Mapping[str, Any]) -> Dataset:
    """A product of cones in memory, for ``dfeas.solve``; an array that needs no padding is not copied.

    Parameters
    ----------
    X : array (N, m), or SciPy sparse matrix
        As ``dfeas.ingest_scs`` takes it.
    cone : dict
        Kinds and sizes, as there.

    Returns
    -------
    Dataset
        What ``dfeas.solve`` takes.

    Raises
    ------
    BadInputError
        The numbers do not add up, or entries are not finite.

    Examples
    --------
    >>> import dfeas
    >>> import numpy as np
    >>> cones = dfeas.from_scs(np.array([[1.0, 1.0], [0.0, 2.0]]), {"q": [2]})
    >>> print(dfeas.solve(cones).verdict)
    feasible
    """
    product = Product.from_scs(cone)
    rows, m, dtype = read_product(X, product)
    placing = Placing(product, product.block_rows(m, dtype.itemsize))
    n, block_rows = placing.n, placing.block_rows
    blocks = range(-(-n // block_rows))
    if isinstance(X, np.ndarray) and n == len(X) and X.dtype == dtype and X.flags.c_contiguous:
        points: NDArray[Any] = X
    else:
        points = np.concatenate([block_of(placing, index, rows, m, dtype)[0] for index in blocks])
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
        points=array_reader("X", points, block_rows),
        labels=array_reader("label", placing.label, block_rows),
        stored_norms=array_reader("norm", norm, block_rows),
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
