"""A product of cones, as SCS writes it, as a dataset on disk or in memory: blocks of rows that no cone reaches out of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used
from numpy.typing import NDArray

from dfeas.cones.algebra import cone_norms, triangle
from dfeas.cones.product import EQUALITIES, Placing, Product, Program, Row, RowsOfCones, solutions, times, whole
from dfeas.data.arrays import accept_array, stored_dtype
from dfeas.data.dataset import Dataset, array_reader, refuse_unusable
from dfeas.data.storage.layout import CODE, SPARSE_BELOW, SPARSE_BLOCK_BYTES, Header, index_size, rows_of
from dfeas.data.storage.numbers import exact
from dfeas.data.storage.readers import Buffers
from dfeas.data.storage.sparse_readers import CsrRows, Entries, block_of
from dfeas.data.storage.zarr_arrays import check_shape
from dfeas.data.writers.chunks import chunks_of_shard, shard_bytes
from dfeas.data.writers.dataset import DatasetWriter, Progress, fill, output_place
from dfeas.data.writers.sparse import SparseWriter
from dfeas.errors import BadInputError, UsageError
from dfeas.exact.dyadic import undo_factor
from dfeas.linalg import csr
from dfeas.linalg.csr import csr_array, spread
from dfeas.linalg.points import Floats, Points, is_dense, norms, row_slice, stack_points
from dfeas.passes.block import Block
from dfeas.passes.survey import Summary, Survey
from dfeas.records import replace


@dataclass(frozen=True)
class ProductRows:
    """The rows of a product as they will be stored."""

    read: Callable[[int, int], Points]  # rows first .. stop-1 (b, m)
    m: int
    dtype: np.dtype[Any]
    entries: float | None = None  # stored ones of a row on average, where they are sparse

    def place(self, product: Product) -> Placing:
        """Where they lie in blocks of their own."""
        return Placing(product, product.block_rows(self.m, self.dtype.itemsize, self.entries))

    def block(self, placing: Placing, index: int) -> tuple[Points, NDArray[np.int32]]:
        """Rows (b, m) of a block, padding included, and their codes (b,)."""
        here = slice(index * placing.block_rows, min((index + 1) * placing.block_rows, placing.n))
        source = placing.source[here]
        some = source >= 0
        first, stop = (int(source[some][0]), int(source[some][-1]) + 1) if some.any() else (0, 0)
        stored = self.read(first, stop)
        if not is_dense(stored):
            return spread(stored, some), placing.label[here]
        points = np.zeros((len(source), self.m), self.dtype)
        points[some] = stored
        return points, placing.label[here]


def survey_cones(start: int, points: Points, label: NDArray[Any]) -> tuple[Floats, Summary]:
    """The same of the cones of a block. A cone of zeros is none of the zero points."""
    stored = points if is_dense(points) else points.data
    finite = stored.dtype.kind != "f" or bool(np.isfinite(stored).all())
    norm = cone_norms(points, label) if finite else norms(points)
    summary = Survey().scan(Block.of(start, points, label, norm))
    return norm, replace(summary, zero=0, first_zero=(), positive=0)


def writer_of(
    path: Any, placing: Placing, m: int, dtype: np.dtype[Any], entries: float | None = None, shard: int | None = 0
) -> DatasetWriter:
    """The writer of dense rows, or of some with so many entries, with shards of so many bytes; None: as suits them all."""
    n, block_rows, row = placing.n, placing.block_rows, m * dtype.itemsize
    if entries is None:
        kind, chunks = DatasetWriter, chunks_of_shard(shard, n * row, block_rows * row)
    else:
        size = int(n * (entries * (dtype.itemsize + index_size(m)) + 8))
        kind, chunks = SparseWriter, chunks_of_shard(shard, size, SPARSE_BLOCK_BYTES)
    return kind(path, n, m, dtype, block_rows, label=CODE, shard=chunks, cones=placing.product.table, look=survey_cones)


def ingest_product(
    X: Any, product: Product, out: str | Path, progress: Progress | None = None, shard: str | int | None = None
) -> Header:
    """Write rows (N, m) of cones as a dataset, without all of them in memory."""
    size = shard_bytes(shard)
    rows = read_product(X, product)
    placing = rows.place(product)
    with output_place(out) as path:
        target = writer_of(path, placing, rows.m, rows.dtype, rows.entries, size)
        fill(target, lambda index: rows.block(placing, index), progress)
        return target.finish(())


def ingest_dataset(cones: Dataset, out: str | Path, progress: Progress | None = None, shard: str | int | None = None) -> Header:
    """The same of cones in memory. Raises UsageError for those of a programme, whose x a dataset would not know."""
    if cones.program is not None or cones.cones is None:
        raise UsageError("expected rows of dfeas.from_cone_rows; a problem with a right side is solved as it is")
    codes = np.concatenate([cones.labels.read(index, Buffers()).copy() for index in range(cones.blocks)])
    placing = Placing(Product.from_codes(codes[codes > 0]), cones.block_rows)
    entries = None if cones.entries is None else cones.entries.count / cones.cones.rows
    with output_place(out) as path:
        target = writer_of(path, placing, cones.m, cones.dtype, entries, shard_bytes(shard))
        rows = cones.block_rows
        fill(target, lambda i: (cones.points.read(i, Buffers()), placing.label[i * rows : (i + 1) * rows]), progress)
        return target.finish(())


def from_cone_rows(X: Any, cones: Mapping[str, Any]) -> Dataset:
    """A product of cones in memory, for ``dfeas.solve`` or ``dfeas.ingest``; an array that needs no padding is not copied.

    The question is whether some y has X y in the interior of the cones. ``dfeas.from_scs`` takes SCS's, with a right side.

    Parameters
    ----------
    X : array (N, m), or SciPy sparse matrix
        Its rows are the coordinates of the cones in the order of SCS.
    cones : dict
        Kinds and sizes, as SCS has them, ``{'l': 3, 'q': [5, 5], 's': [6]}``: entries of the orthant, second-order cones (t, u)
        with t >= |u|, and semidefinite matrices of that order as lower triangles, column by column, entries off the diagonal
        times sqrt 2 (``dfeas.svec`` makes them).

    Returns
    -------
    Dataset
        What ``dfeas.solve`` takes, and ``dfeas.ingest`` writes.

    Raises
    ------
    BadInputError
        The numbers do not add up, or entries are not finite.

    Examples
    --------
    >>> import dfeas
    >>> import numpy as np
    >>> cones = dfeas.from_cone_rows(np.array([[1.0, 1.0], [0.0, 2.0]]), {"q": [2]})
    >>> print(dfeas.solve(cones).verdict)
    feasible
    """
    return cones_in_memory(X, Product.from_scs(cones))


def from_scs(A: Any, b: Any, cones: Mapping[str, Any]) -> Dataset:
    """The problem of SCS in memory, for ``dfeas.solve``: is there an x with A x + s = b and s in the interior of the cones?

    The problem is made homogeneous; ``result.x`` is the x, in the variables of A, or ``result.dual`` the z of a no.
    ``infeasible`` means that no x has b - A x in the interior. The status of SCS means that no x has it in the cones at all:
    what SCS solves on their boundary is not feasible here.

    Parameters
    ----------
    A : array (N, m), or SciPy sparse matrix
        Its rows are the coordinates of the cones in the order of SCS.
    b : array (N,)
        The right side.
    cones : dict
        Kinds and sizes, as SCS has them, ``{'z': 1, 'l': 3, 'q': [5, 5], 's': [6]}``, ``z`` with the first rows: equalities,
        which are solved in fractions, and hold exactly in the proof.

    Returns
    -------
    Dataset
        What ``dfeas.solve`` takes.

    Raises
    ------
    BadInputError
        The numbers do not add up, entries are not finite, another kind of cone, or equalities that take too long to solve.

    Examples
    --------
    >>> import dfeas
    >>> import numpy as np
    >>> A, b = np.array([[-1.0], [1.0]]), np.array([-1.0, 2.0])
    >>> result = dfeas.solve(dfeas.from_scs(A, b, {"l": 2}))
    >>> print(result.verdict, 1 < result.x[0] < 2)
    feasible True
    >>> print(dfeas.solve(dfeas.from_scs(A, [-1.0, 0.5], {"l": 2})).verdict)
    infeasible
    """
    equal, product = _cones_of(cones)
    rows = _homogeneous(A, b)
    n = rows.shape[0] - 1
    if n != equal + product.table.rows - 1:
        text = f"{equal} equalities and " if equal else ""
        raise BadInputError(f"A has {n} rows, the cones have {text}{product.table.rows - 1}; cones and A must agree")
    program, rounded = Program(rows), False
    if equal:
        basis, k = solutions(rows[:equal])
        program = Program(rows, equal, basis)
        rows, rounded = _substitute(rows[equal:], product, basis, k)
    return replace(cones_in_memory(rows, product, "A", equal), program=program, rounded=rounded)


def _substitute(rows: Any, product: Product, basis: Sequence[Row], k: int) -> tuple[Any, bool]:
    """Rows ``times`` a basis: off the diagonal of matrices without the sqrt 2, which would round sums of integers."""
    each = [(triangle(size)[2] if kind == "s" else np.ones(rows_of(kind, size)), many) for kind, size, many in product.runs]
    held, factor = scipy.sparse.csr_array(rows), np.concatenate([np.tile(factor, many) for factor, many in each])
    off = np.repeat(factor != 1, np.diff(held.indptr))
    plain = undo_factor(held.data[off], np.sqrt(2.0))
    if plain is None:
        return times(rows, basis, k)
    held.data[off] = plain
    found, rounded = times(held, basis, k)
    found = csr.scale_rows(found, factor)
    return (found if hasattr(rows, "tocsr") else found.toarray()), rounded


def _cones_of(cones: Mapping[str, Any]) -> tuple[int, Product]:
    """How many equalities, and the other cones with that of t. Raises BadInputError for kinds that are not supported."""
    if not isinstance(cones, Mapping):
        Product.from_scs(cones)  # which says what is expected
    some = {kind: size for kind, size in cones.items() if np.size(size) and not (np.ndim(size) == 0 and size == 0)}
    other = [kind for kind in some if kind not in (*EQUALITIES, "l", "q", "s")]
    if other:
        raise BadInputError(f"cones: {other[0]!r} of SCS is not supported; expected 'z', 'l', 'q' and 's' only")
    equal = sum(whole(some.pop(kind, 0), kind, 0) for kind in EQUALITIES)
    runs = () if equal and not some else Product.from_scs(some).runs
    return equal, Product((*runs, ("l", 1, 1)))


def _homogeneous(A: Any, b: Any) -> Any:
    """Rows (N + 1, m + 1) of [-A b] and t in float64, sparse where A is. Raises BadInputError for other numbers."""
    sparse = hasattr(A, "tocsr")
    given: Any = _canonicalise(scipy.sparse.csr_array(A), np.dtype(np.float64), "A") if sparse else _numbers(A, "A")
    n, m = check_shape(given.shape, "A")
    right = _numbers(b, "b")
    if right.shape != (n,):
        raise BadInputError(f"b: expected shape ({n},), as A has {n} rows, got {right.shape}")
    if sparse:
        left: Any = csr.with_data(given, -_numbers(given.data, "A"))
        last = scipy.sparse.csr_array(([1.0], ([0], [m])), shape=(1, m + 1))
        return scipy.sparse.vstack([scipy.sparse.hstack([left, scipy.sparse.csr_array(right[:, None])]), last], "csr")
    rows = np.zeros((n + 1, m + 1))
    np.negative(given, out=rows[:n, :m])
    rows[:n, m], rows[n, m] = right, 1.0
    return rows


def _numbers(values: Any, where: str) -> Floats:
    """Finite float64. Raises BadInputError for what is none."""
    numbers = exact(accept_array(values, where), np.float64, where)
    if not np.isfinite(numbers).all():
        raise BadInputError(f"{where}: entries that are not finite; remove or correct them")
    return numbers


def cones_in_memory(X: Any, product: Product, where: str = "X", first: int = 0) -> Dataset:
    """The same, of cones that are known; messages count the rows from ``first`` on."""
    rows = read_product(X, product)
    placing = rows.place(product)
    n, block_rows = placing.n, placing.block_rows
    blocks = range(-(-n // block_rows))
    if isinstance(X, np.ndarray) and n == len(X) and X.dtype == rows.dtype and X.flags.c_contiguous:
        points: Points = X
    else:
        points = stack_points([rows.block(placing, index)[0] for index in blocks])
    norm = np.empty(n)
    for index in blocks:
        here = slice(index * block_rows, min((index + 1) * block_rows, n))
        norm[here], summary = survey_cones(here.start, row_slice(points, here), placing.label[here])
        refuse_unusable(summary, where)
    if is_dense(points):
        held: dict[str, Any] = {"points": array_reader("X", points, block_rows)}
    else:
        ends = np.append(points.indptr[:-1:block_rows], points.indptr[-1]).astype(np.int64)
        entries = Entries.of(n, ends, block_rows, rows.dtype.itemsize, index_size(rows.m))
        held = {"points": CsrRows(points, block_rows, rows.dtype), "entries": entries}
    return Dataset(
        where=where,
        n=n,
        m=rows.m,
        dtype=rows.dtype,
        block_rows=block_rows,
        labels=array_reader("label", placing.label, block_rows),
        stored_norms=array_reader("norm", norm, block_rows),
        rows=RowsOfCones(product.table),
        numbers=np.where(placing.source < 0, -1, placing.source + first) if first else None,
        **held,
    )


def read_product(X: Any, product: Product) -> ProductRows:
    """Rows of a product; a matrix that is sparse enough stays one. Raises BadInputError when the numbers do not add up."""
    sparse = hasattr(X, "tocsr")
    source: Any = scipy.sparse.csr_array(X) if sparse else accept_array(X, "X")
    if source.dtype == object:
        source = exact(source, np.float64, "X")
    n, m = check_shape(source.shape, "X")
    if n != product.table.rows:
        raise BadInputError(
            f"X has {n} rows, the cones {product.table} have {product.table.rows}: a semidefinite cone of order k has "
            "k (k + 1) / 2 rows, its lower triangle; cone and X must agree"
        )
    dtype = stored_dtype(np.dtype(source.dtype), "X")
    if sparse:
        source = _canonicalise(source, dtype)
        if source.nnz < SPARSE_BELOW * n * m:
            return ProductRows(partial(_sparse_rows, source), m, dtype, source.nnz / n)

    def rows(first: int, stop: int) -> NDArray[Any]:
        some = source[first:stop]
        return exact(some.toarray() if sparse else some, dtype, f"X: rows from {first} on")

    return ProductRows(rows, m, dtype)


def _sparse_rows(X: csr_array, first: int, stop: int) -> csr_array:
    """Some rows, with indices of the type that is stored."""
    some = csr.rows_of(X, slice(first, stop))
    return block_of(some.data, some.indices, some.indptr.astype(np.int64), X.shape[1])


def _canonicalise(X: csr_array, dtype: np.dtype[Any], where: str = "X") -> csr_array:
    """In the type that is stored, without zeros. Raises BadInputError for no CSR matrix."""
    try:
        X.check_format(full_check=True)
    except ValueError as error:
        raise BadInputError(f"{where}: not a CSR matrix: {error}") from None
    tidy = csr.canonicalise(X)
    return csr.with_data(tidy, exact(tidy.data, dtype, where))
