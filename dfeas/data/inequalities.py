"""Linear inequalities, equalities and bounds as points: x = y / t has A x <= b where b_j t - a_j'y >= 0 for all j, and t > 0.

Point j is (-a_j, b_j). Behind those of A come (-e, f) and (e, -f) of each equality e'x = f, those of upper and of lower bounds,
and (0, 1), which is t; these are in memory. A block of the others is made of one of A when it is read: nothing is written.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used
from numpy.typing import NDArray

from dfeas.data.arrays import open_given
from dfeas.data.collections import is_collection, table_of
from dfeas.data.dataset import Dataset, array_reader
from dfeas.data.open import open_source
from dfeas.data.source import ALL_POSITIVE, DataSpec, Source
from dfeas.data.storage.layout import default_block_rows, index_size
from dfeas.data.storage.numbers import exact
from dfeas.data.storage.readers import Buffers, Cost, Looks
from dfeas.data.storage.sparse_readers import Entries, block_of
from dfeas.data.views import stored_rows
from dfeas.errors import BadInputError, spell
from dfeas.linalg.points import Floats, Points


@dataclass(frozen=True, eq=False, repr=False)
class HomogeneousReader:
    """Blocks of (-A, b), and of the rows behind them."""

    inner: Dataset  # A (n, m), which verifies what it reads
    right: Floats  # (n,)
    more: Any  # (k, m + 1) CSR
    block_rows: int  # those of A, where that has several blocks

    overlaps = False  # a thread reads ahead

    @property
    def distant(self) -> bool:
        return self.inner.points.distant

    def read(self, index: int, buffers: Buffers) -> Points:
        n, m, first = self.inner.n, self.inner.m, index * self.block_rows
        right = self.right[first : first + self.block_rows]
        more = self.more[max(0, first - n) : max(0, first + self.block_rows - n)]
        points: Any = self.inner.read(index, buffers, Cost()).points if len(right) else self.more[:0, :m]
        if self.inner.entries is None:
            wide = buffers.take("homogeneous", (len(right) + more.shape[0]) * (m + 1) * 8).view(np.float64).reshape(-1, m + 1)
            if len(right):
                np.negative(points, out=wide[: len(right), :m], dtype=np.float64)
            wide[: len(right), m], wide[len(right) :] = right, more.toarray()
            return wide
        rows = scipy.sparse.vstack([_beside(-points.astype(np.float64), right), more], "csr")
        return block_of(rows.data, rows.indices, rows.indptr, m + 1)

    def advise(self, index: int) -> None:
        if index < self.inner.blocks:
            self.inner.points.advise(index)

    def stamp(self, index: int, looks: Looks | None = None) -> int | None:
        return self.inner.points.stamp(index, looks) if index < self.inner.blocks else None


@dataclass(frozen=True, eq=False, repr=False)
class Inequalities:
    """What is asked, as points, and which of them say what."""

    X: Any  # a Dataset of the points, or a Dask array
    given: int  # rows of A; without A one that says nothing
    equal: int  # equalities
    m: int
    upper: NDArray[np.int64]  # variables with an upper bound, ascending
    lower: NDArray[np.int64]

    @classmethod
    def of(cls, A: Any, b: Any, equal: Any, bounds: Any, memory: int) -> Inequalities:
        """Raises BadInputError for shapes that do not fit, and for numbers that cannot be used."""
        E, parts, f = None, list[tuple[Any, Floats]](), np.zeros(0)
        if equal is not None:
            if not isinstance(equal, list | tuple) or len(equal) != 2:
                raise BadInputError(f"{spell('equal')}: expected E and f, a pair, of equalities E x = f")
            equal = None if A is not None and _has_no_rows(*equal) else equal
        if equal is not None:
            E = _open(equal[0], memory)
            left: Any = stored_rows(E, np.arange(E.n))[0]
            left, f = scipy.sparse.csr_array(left.astype(np.float64)), _column(equal[1], E.n, "f", "E")
            parts = [(-left, f), (left, -f)]
        if A is None and E is None:
            raise BadInputError("expected A and b, of A x <= b, or E and f of equalities, or both")
        if A is None or _has_no_rows(A, b):
            A, b = np.zeros((1, E.m if A is None and E is not None else A.shape[1])), [1.0]  # 0 <= 1
        A = table_of(A, None).X if is_collection(A) else _open(A, memory)
        n, m = (A.n, A.m) if isinstance(A, Dataset) else map(int, A.shape)
        if E is not None and E.m != m:
            raise BadInputError(f"E has {E.m} columns, A has {m}; give each a column for each variable")
        low, high = _limits(bounds, m).T
        upper, lower = np.flatnonzero(high < np.inf), np.flatnonzero(low > -np.inf)
        eye = scipy.sparse.eye_array(m, format="csr")
        parts += [(-eye[upper], high[upper]), (eye[lower], -low[lower]), (0 * eye[:1], np.ones(1))]
        more = scipy.sparse.vstack([_beside(*part) for part in parts], "csr")
        more.eliminate_zeros()
        X = (_homogenise if isinstance(A, Dataset) else _homogenise_lazily)(A, _column(b, n, "b", "A"), more)
        return cls(X, n, len(f), m, upper, lower)

    @property
    def n(self) -> int:
        """Points, of which the last one is t."""
        return self.given + 2 * self.equal + len(self.upper) + len(self.lower) + 1

    def divide(self, support: NDArray[np.int64], weights: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Weights of the points of a support: those of A, of equalities (p,), of upper and of lower bounds (m,)."""
        of_A = support < self.given
        behind, upper, lower = (np.zeros(size, object) for size in (self.n - self.given, self.m, self.m))
        behind[support[~of_A] - self.given] = weights[~of_A]
        sizes = self.equal, self.equal, len(self.upper), len(self.lower)
        plus, minus, upper[self.upper], lower[self.lower], _ = np.split(behind, np.cumsum(sizes))
        return weights[of_A], plus - minus, upper, lower


def _has_no_rows(table: Any, values: Any) -> bool:
    """Whether a table in memory, and what is beside it, are empty, as of a problem without such rows."""
    return getattr(table, "shape", ())[:1] == (0,) and len(table.shape) == 2 and np.shape(values)[:1] == (0,)


def _open(X: Any, memory: int) -> Dataset:
    return open_source(Source(DataSpec(X, ALL_POSITIVE)).within(memory))


def _column(values: Any, n: int, name: str, beside: str) -> Floats:
    if values is None:
        raise BadInputError(f"{name} is missing; give a number for each row of {beside}")
    given: Floats = exact(open_given(values)[:], np.float64, name)
    if given.shape not in ((n,), (n, 1)) or not np.isfinite(given).all():
        raise BadInputError(f"{name} has shape {given.shape}, expected {n} finite numbers, one for each row of {beside}")
    return given.reshape(-1)


def _limits(bounds: Any, m: int) -> Floats:
    """Lower and upper bounds (m, 2), infinite where there are none."""
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):  # of SciPy
        bounds = np.stack(np.broadcast_arrays(bounds.lb, bounds.ub), axis=-1)
    elif isinstance(bounds, str | Path):
        bounds = open_given(bounds)[:]
    try:
        table = np.array((None, None) if bounds is None else bounds, object)
        pairs = np.broadcast_to(table if table.shape[-1:] == (2,) else (), (m, 2)).tolist()
    except ValueError:
        raise BadInputError(f"bounds: expected a pair (low, high), or {m} pairs, one for each variable") from None
    given = [(-np.inf if low is None else low, np.inf if high is None else high) for low, high in pairs]
    found: Floats = exact(given, np.float64, "bounds")
    if not ((found[:, 0] < np.inf) & (found[:, 1] > -np.inf)).all():
        raise BadInputError("bounds: a pair that no number is within; None is no bound")
    return found


def _beside(left: Any, values: Floats) -> Any:
    return scipy.sparse.hstack([left, scipy.sparse.csr_array(values[:, None])], "csr")


def _homogenise(A: Dataset, right: Floats, more: Any) -> Dataset:
    n = A.n + more.shape[0]
    block_rows, entries = A.block_rows if A.blocks > 1 else max(A.n, default_block_rows(A.m + 1, 8, n)), None
    if A.entries is not None:
        behind = more.indptr[np.clip(block_rows * np.arange(-(-n // block_rows) + 1) - A.n, 0, more.shape[0])]
        of_A = np.append(A.entries.offsets, np.full(len(behind) - A.blocks - 1, A.entries.offsets[-1]))
        of_b = np.minimum(block_rows * np.arange(len(behind)), A.n)
        entries = Entries.of(n, (of_A + of_b + behind).astype(np.int64), block_rows, 8, index_size(A.m + 1))
    return Dataset(
        where="A" if A.where == "X" else A.where,
        n=n,
        m=A.m + 1,
        dtype=np.dtype(np.float64),
        block_rows=block_rows,
        points=HomogeneousReader(A, right, more, block_rows),
        labels=array_reader("label", np.ones(n, np.int8), block_rows),
        entries=entries,
    )


def _homogenise_lazily(A: Any, right: Floats, more: Any) -> Any:
    da = sys.modules["dask.array"]
    beside = da.from_array(right[:, None], chunks=(A.chunks[0], 1))
    rows = da.concatenate([-A.astype(np.float64), beside], axis=1).rechunk({1: -1})
    return da.concatenate([rows, da.from_array(more.toarray(), chunks=-1)])
