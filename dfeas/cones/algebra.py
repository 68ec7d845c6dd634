"""The cones of a block, grouped by kind and size, their eigenvalues and extreme points: LAPACK works on many at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.cones.narrow import Narrow, few_at_once
from dfeas.cones.singular import largest_singular, parts
from dfeas.data.storage.layout import codes_of, kind_of, rank_of, rows_of
from dfeas.data.storage.numbers import exact
from dfeas.errors import BadInputError
from dfeas.linalg import csr
from dfeas.linalg.csr import csr_array
from dfeas.linalg.points import Array, Floats, Indices, Points, is_dense, norms, take_rows
from dfeas.passes.block import Block

AT_ONCE = 1 << 21
"""Entries of cones that are looked at at a time."""


@cache
def triangle(k: int) -> tuple[Indices, Indices, Floats]:
    """Rows, columns and factors (k (k + 1) / 2,) of the entries of an element."""
    columns, rows = np.triu_indices(k)
    return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0))


@cache
def _square(k: int) -> tuple[Indices, Floats]:
    """For each entry of a matrix (k, k) its place in an element, and the factor of that."""
    rows, columns, factor = triangle(k)
    place, factors = np.empty((k, k), np.int64), np.empty((k, k))
    for i, j in ((rows, columns), (columns, rows)):
        place[i, j], factors[i, j] = np.arange(len(rows)), 1 / factor
    return place, factors


def matrices(elements: NDArray[np.float64] | NDArray[np.float32], k: int) -> Floats:
    """Symmetric matrices (..., k, k) in float64 of elements (..., k (k + 1) / 2)."""
    place, factor = _square(k)
    return np.asarray(np.asarray(elements, np.float64)[..., place] * factor)


def squares(rows: Array, k: int) -> Array:
    """Symmetric matrices (k, k, c) of c elements side by side, (k (k + 1) / 2, c), in their type."""
    place, factor = _square(k)
    entries: Array = rows[place]
    np.multiply(entries, factor[:, :, None], out=entries, casting="same_kind")
    return entries


def svec(S: Floats) -> Floats:
    """Elements of symmetric matrices, as SCS orders and scales them.

    Parameters
    ----------
    S : array (..., k, k)
        Symmetric matrices.

    Returns
    -------
    array (..., k (k + 1) / 2)
        Lower triangles, column by column, entries off the diagonal times sqrt 2: inner products are those of the matrices.

    Raises
    ------
    BadInputError
        They are not square, not symmetric up to rounding, or not finite.

    Examples
    --------
    >>> import dfeas
    >>> dfeas.svec([[1.0, 2.0], [2.0, 3.0]]).round(3).tolist()
    [1.0, 2.828, 3.0]
    """
    if hasattr(S, "attrs") and hasattr(S, "chunks") and not hasattr(S, "__dask_graph__"):  # of zarr, or HDF5
        raise BadInputError("the matrices: an array that lies in a file; read it first, as by S[:]")
    S = exact(S, np.float64, "the matrices")
    if S.ndim < 2 or S.shape[-1] != S.shape[-2] or S.shape[-1] == 0:
        raise BadInputError(f"expected square matrices (..., k, k), got shape {S.shape}")
    if not np.isfinite(S).all():
        raise BadInputError("a matrix has entries that are not finite; remove or correct them")
    off = np.abs(S - np.swapaxes(S, -1, -2))
    # difference of entries across the diagonal, relative to the largest, that is rounding
    if off.max(initial=0.0) > 1e-12 * np.abs(S).max(initial=0.0):
        at = np.unravel_index(int(off.argmax()), off.shape)
        raise BadInputError(
            f"not symmetric: entries {tuple(int(i) for i in at[-2:])} and {tuple(int(i) for i in at[:-3:-1])} differ by "
            f"{off[at]:g}; expected symmetric matrices"
        )
    return elements(S)


def elements(S: Floats) -> Floats:
    """Elements (..., k (k + 1) / 2) of symmetric matrices (..., k, k)."""
    rows, columns, factor = triangle(S.shape[-1])
    return np.asarray(S[..., rows, columns] * factor)


def unit(kind: str, size: int) -> Floats:
    """The element e (dimension,), whose eigenvalues are all 1."""
    return elements(np.eye(size)) if kind == "s" else np.eye(size)[0]


def length(u: Floats) -> Floats:
    """|u| (...,) along the last axis."""
    return np.asarray(np.sqrt((u * u).sum(axis=-1)))


def least(kind: str, size: int, s: Floats) -> Floats:
    """Least eigenvalues (...,) of elements (..., dimension)."""
    if kind == "s":
        return np.asarray(np.linalg.eigvalsh(matrices(s, size))[..., 0])
    return np.asarray(s[..., 0] - length(s[..., 1:]) if kind == "q" else s[..., 0])


@dataclass(frozen=True, slots=True)
class Spectrum:
    """Elements (c, dimension) of one kind of cone, decomposed.

    An element of a semidefinite cone is the lower triangle of its matrix, column by column, entries off the diagonal times sqrt
    2 (the order and scaling of SCS): products of two elements are traces of products of matrices. Of a second-order cone (t, u)
    the eigenvalues are t - |u| and t + |u|, those of extreme points (1, -u/|u|) and (1, u/|u|).
    """

    kind: str
    size: int
    elements: Floats  # (c, dimension)
    values: Floats  # (c, rank) eigenvalues, the least first
    vectors: Floats  # (c, order, order) of semidefinite cones, (c, dimension - 1) directions of second-order ones, else (c, 0)

    @classmethod
    def of(cls, kind: str, size: int, s: NDArray[Any]) -> Spectrum:
        wide = np.asarray(s, np.float64)
        if kind == "l":
            return cls(kind, size, wide, wide, wide[:, :0])
        if kind == "s":
            return cls(kind, size, wide, *np.linalg.eigh(matrices(wide, size)))
        t, u = wide[:, 0], wide[:, 1:]
        radius = length(u)
        return cls(kind, size, wide, np.stack([t - radius, t + radius], 1), u / np.where(radius > 0, radius, 1.0)[:, None])

    @property
    def least(self) -> Floats:
        return self.values[:, 0]

    def take(self, some: Indices) -> Spectrum:
        return Spectrum(self.kind, self.size, self.elements[some], self.values[some], self.vectors[some])

    def extreme(self) -> Floats:
        """An extreme point (c, dimension) of the base for each, whose product with it is the least eigenvalue."""
        if self.kind == "s":
            v = self.vectors[:, :, 0]
            return elements(v[:, :, None] * v[:, None, :])
        q = np.ones_like(self.elements)
        if self.kind == "q":
            q[:, 1:] = -self.vectors
            q[self.values[:, 0] == self.values[:, 1], 1] = -1.0
        return q

    def gibbs(self, low: float, mu: float) -> tuple[Floats, Floats]:
        """exp((low - element) / mu): sums (c,) over the eigenvalues, and elements (c, dimension)."""
        each = np.exp((low - self.values) / mu)
        return each[:, 0] if self.kind == "l" else each.sum(axis=1), self.combine(each)

    def combine(self, each: Floats) -> Floats:
        """Elements (c, dimension) with other weights (c, rank) on the same extreme points."""
        if self.kind == "l":
            return each
        if self.kind == "s":
            return elements((self.vectors * each[:, None, :]) @ np.swapaxes(self.vectors, 1, 2))
        weight = np.empty_like(self.elements)
        weight[:, 0] = each.sum(axis=1)
        np.multiply((each[:, 1] - each[:, 0])[:, None], self.vectors, out=weight[:, 1:])
        return weight


@dataclass(frozen=True, slots=True)
class Group:
    """Cones of one kind and size."""

    kind: str
    size: int
    starts: Indices  # (c,) first rows in the block, ascending

    @property
    def dimension(self) -> int:
        return rows_of(self.kind, self.size)

    @property
    def rank(self) -> int:
        return rank_of(self.kind, self.size)

    def take(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values (..., b) of rows as (..., c, dimension): a view where the cones follow each other."""
        d, count = self.dimension, len(self.starts)
        first = int(self.starts[0])
        if int(self.starts[-1]) - first == d * (count - 1):
            return values[..., first : first + d * count].reshape(*values.shape[:-1], count, d)
        return values[..., self.starts[:, None] + np.arange(d)]

    def put(self, target: NDArray[Any], some: Indices | None, values: NDArray[Any]) -> None:
        """Write values (dimension, c) of some of the cones, None: of all, into those (b,) of rows."""
        place = self.take(target) if some is None else None
        if place is not None and np.may_share_memory(place, target):
            place[:] = values.T
        else:
            target[self.rows(slice(None) if some is None else some)] = values.T

    def rows(self, some: Indices | slice = slice(None)) -> Indices:
        """Rows (c, dimension) of some of the cones."""
        return np.asarray(self.starts[some, None] + np.arange(self.dimension))


def groups_of(label: NDArray[Any]) -> list[Group]:
    """The cones in the codes (b,) of a block, in the order in which kinds and sizes first appear."""
    alike = _alike(label)
    if alike is not None:
        return [alike]
    starts = codes_of(label)
    if not len(starts):
        return []
    codes = label[starts]
    different, first = np.unique(codes, return_index=True)
    return [Group(*kind_of(int(each)), starts[codes == each]) for each in different[np.argsort(first)]]


def _alike(label: NDArray[Any]) -> Group | None:
    """The cones of a block that is full of cones of one kind and size, as most are; None for others."""
    if len(label) and label[0] > 0:
        kind, size = kind_of(int(label[0]))
        rows = rows_of(kind, size)
        firsts = label[::rows]
        if len(label) % rows == 0 and np.count_nonzero(label) == len(firsts) and (firsts == label[0]).all():
            return Group(kind, size, np.arange(0, len(label), rows))
    return None


def pieces(block: Block, groups: list[Group]) -> Iterator[tuple[slice, list[Group]]]:
    """Runs of rows of whole cones, about as long as tiles, and their cones with rows counted from there."""
    cuts = [rows.start for rows in block.tiles()]
    if len(cuts) == 1:
        yield slice(0, block.size), groups
        return
    starts = np.sort(np.concatenate([group.starts for group in groups]))
    ends = np.append(starts, block.size)[np.searchsorted(starts, cuts[1:])]
    for first, stop in pairwise([0, *np.unique([*ends, block.size]).tolist()]):
        some = []
        for group in groups:
            here = group.starts[slice(*np.searchsorted(group.starts, (first, stop)))]
            if len(here):
                some.append(Group(group.kind, group.size, here - first))
        yield slice(first, stop), some


def cone_norms(points: Points, label: NDArray[Any]) -> Floats:
    """Norms (b,) of the cones that the rows (b, m) of a block belong to; 1 for padding. Entries must be finite.

    It bounds |A q| over the extreme points q of the base of the cone. Of an entry of the orthant it is the length of its row:
    the orthant is a dataset of unit points. Of a second-order cone with rows a_0 and A_1 it is |a_0| + sigma(A_1), the largest
    singular value, and of a semidefinite one sigma of its rows: extreme points (1, u) and vv' have |u| = |vv'| = 1. It depends
    on the rows of the cone alone. Sparse rows are looked at in parts that have no feature in common, small ones as arrays of
    their features, a large one as it is.
    """
    norm = np.ones(len(label))
    for group in groups_of(label):
        rows = group.rows()
        if group.kind == "l":  # as a dataset of points has them
            norm[rows[:, 0]] = norms(take_rows(points, rows[:, 0]))
        elif is_dense(points):
            at_once = max(1, AT_ONCE // (group.dimension * points.shape[1]))
            for first in range(0, len(rows), at_once):
                some = rows[first : first + at_once]
                norm[some] = norms_of(group.kind, points[some].astype(np.float64))[:, None]
        else:
            norm[rows] = _of_sparse(points, group)[:, None]
    return norm


def norms_of(kind: str, X: Floats) -> Floats:
    """Norms (c,) of cones of one kind with rows (c, d, m)."""
    if kind == "s":
        return _sigma(X)
    first = norms(X[:, 0])
    return first if kind == "l" else first + _sigma(X[:, 1:])


def _sigma(X: Floats) -> Floats:
    """Largest singular values (c,) of matrices (c, d, m)."""
    size = np.abs(X).max(axis=(1, 2), initial=0.0)
    with np.errstate(over="ignore"):
        usable = (size > 0) & np.isfinite(1 / np.where(size > 0, size, 1.0))
    scale = np.where(usable, size, 1.0)[:, None, None]
    X = X / scale  # squares neither overflow nor underflow
    if min(X.shape[1:]) == 1:
        return np.asarray(length(X.reshape(len(X), -1)) * scale[:, 0, 0])
    across = np.swapaxes(X, 1, 2)
    gram = X @ across if X.shape[1] <= X.shape[2] else across @ X
    largest = np.linalg.eigvalsh(gram)[:, -1]
    return np.asarray(np.sqrt(np.maximum(largest, 0.0)) * scale[:, 0, 0])


def _of_sparse(points: csr_array, group: Group) -> Floats:
    rows = group.rows()
    if group.kind == "s":
        return _sigma_of_sparse(csr.take_rows(points, rows.reshape(-1)), group.dimension)
    first, others = csr.take_rows(points, rows[:, 0]), csr.take_rows(points, rows[:, 1:].reshape(-1))
    return norms(first) + _sigma_of_sparse(others, group.dimension - 1)


def _sigma_of_sparse(rows: csr_array, d: int) -> Floats:
    """Largest singular values (c,) of matrices (d, m) below each other: those of their parts."""
    sigma = np.zeros(rows.shape[0] // d)
    for owner, some in parts(rows, d):
        size = some.shape[0] // len(owner)
        for run, here in few_at_once(some, np.arange(some.shape[0]).reshape(-1, size), AT_ONCE):
            one = here.shape[0] == size
            if one and size * np.count_nonzero(np.bincount(here.indices)) > AT_ONCE:
                found = np.array([_of_large(here)])
            else:
                narrow, found = Narrow.of(here, size), np.empty(here.shape[0] // size)
                for width in np.unique(narrow.widths).tolist():
                    alike = np.flatnonzero(narrow.widths == width)
                    found[alike] = _sigma(narrow.dense(alike, width))
            np.maximum.at(sigma, owner[run], found)
    return sigma


def _of_large(rows: csr_array) -> float:
    scale = float(np.abs(rows.data).max(initial=0.0))
    if scale == 0 or not np.isfinite(1 / scale):
        scale = 1.0
    filled = csr.take_rows(rows, np.flatnonzero(np.diff(rows.indptr) > 0))
    return largest_singular(csr.with_data(filled, filled.data.astype(np.float64) / scale)) * scale
