"""Cones with sparse rows in the solver in memory: the Hessian of their barrier by what is stored.

Of many small cones each is an array of the features that it has. Of a large semidefinite cone, with Z the inverse of the w of
its scaling and F_j its columns as matrices, the entries tr F_i Z F_j Z are found in one of two ways (Fujisawa, Kojima and
Nakata, Exploiting sparsity in primal-dual interior-point methods for semidefinite programming, 1997):

    pairs   sum over the entries of F_i and of F_j of products of two entries of Z, for columns of few entries; of cones that
            have few entries in all, of all these at once (``dfeas.cones.parts``)
    image   Z F_j Z by products with the rows of F_j that are not zero, of which every F_i takes the entries that it has
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy  # loads its parts when they are used

from dfeas.cones.algebra import Group, triangle, unit
from dfeas.cones.narrow import Narrow, few_at_once
from dfeas.cones.parts import PAIR_BYTES, ConePart, DensePart, Pairs, pairs_of
from dfeas.cones.scaling import Linear, NesterovTodd, SecondOrder, Semidefinite
from dfeas.linalg import csr
from dfeas.linalg.csr import csc_array, csr_array
from dfeas.linalg.points import Floats, Indices, Tile

DENSE_BYTES = 8 << 20
"""Of an array that is made of sparse rows where that is less work."""
SMALL = 1 << 16
"""Entries of a cone, as an array of its features, up to which it is one of many."""
PAIRS = 1 << 18
"""Pairs of entries that are looked at at a time."""
SCATTERED = 5.0
"""Nanoseconds of adding one entry of a small matrix to its place in a large one."""
MOST_PAIRED = 5 << 23
"""Bytes of the pairs of entries of all cones, at most."""
PAIRED, ALONE = 15.0, 500_000.0
"""Nanoseconds of such a pair, and of the calls for a cone that is looked at alone."""
FLOP, DOT, STORED, GATHER, CALLED = 0.15, 1.0, 1.0, 10.0, 60_000.0
"""Nanoseconds of a multiplication in a product of arrays, in one of two rows, in one with stored entries; of a pair of entries,
and of the calls for one image.
"""


def part_of(group: Group, rows: csr_array) -> ConePart:
    """Cones with rows (c d, m), as an array or as they are, whichever is less work."""
    (size, m), d, k = rows.shape, group.dimension, group.size
    e = np.tile(unit(group.kind, k), len(group.starts))
    whole = csr.with_columns(rows, -e[:, None])
    whole.eliminate_zeros()
    sparse = SparsePart(group, whole)
    if 8 * size * (m + 1) > DENSE_BYTES:
        return sparse
    if group.kind == "s":
        dense = len(group.starts) * (2 * k**3 * (m + 1) + (m + 1) ** 2 * k**2) * FLOP
        if dense > (sparse.work if d * (m + 1) > SMALL else sparse.pair_work):
            return sparse
    return DensePart.of(group, rows.toarray().reshape(-1, d, m))


@dataclass(frozen=True)
class SparsePart(ConePart):
    """With rows (c d, m + 1)."""

    D: csr_array

    @cached_property
    def _across(self) -> csr_array:
        return self.D.T.tocsr()

    @cached_property
    def columns(self) -> list[ConeColumns]:
        d, k = self.group.dimension, self.group.size
        return [ConeColumns.of(csr.rows_of(self.D, slice(first, first + d)), k) for first in range(0, self.D.shape[0], d)]

    @cached_property
    def pair_work(self) -> float:
        """Nanoseconds of the pairs of entries of all semidefinite cones, about; inf where they take too much room."""
        pairs = pairs_of(np.diff(self.D.indptr[:: self.group.dimension]).astype(np.int64))
        return pairs * PAIRED if self.group.kind == "s" and pairs * PAIR_BYTES <= MOST_PAIRED else np.inf

    @cached_property
    def work(self) -> float:
        """Nanoseconds of the Hessian, about, where semidefinite cones are not looked at as arrays."""
        return min(self.pair_work, sum(each.work + SCATTERED * len(each.feature) ** 2 + ALONE for each in self.columns))

    @cached_property
    def _pairs(self) -> Pairs | None:
        if self.pair_work == np.inf:
            return None
        if self._large:
            return Pairs.of(self.D, self.group.size) if self.pair_work == self.work else None
        d, width, count = self.group.dimension, self.D.shape[1], len(self.group.starts)
        features = np.unique(csr.row_numbers(self.D) // d * width + self.D.indices) // width
        small = float((np.bincount(features, minlength=count) ** 2).sum()) * (self.group.size**2 * FLOP + SCATTERED)
        return Pairs.of(self.D, self.group.size) if self.pair_work < small else None

    @cached_property
    def _large(self) -> bool:
        """Whether each cone is looked at alone."""
        d, stored = self.group.dimension, np.diff(self.D.indptr[:: self.group.dimension])
        return bool(d * min(self.D.shape[1], 2 * int(stored.max())) > SMALL)

    def element(self, z: Floats) -> Floats:
        return np.asarray(self.D @ z).reshape(-1, self.group.dimension)

    def pull_back(self, x: Floats) -> Floats:
        return np.asarray(self._across @ x.reshape(-1))

    def curvature(self, scaling: NesterovTodd) -> Floats:
        if isinstance(scaling, Linear):
            half = csr.scale_rows(self.D, np.sqrt(scaling.diagonal))
            return np.asarray((half.T @ half).toarray())
        if isinstance(scaling, Semidefinite) and self._pairs is not None:
            return self._pairs.gram(scaling.squares, self.D.shape[1])
        if not self._large:
            return self._of_small(scaling)
        if isinstance(scaling, SecondOrder):
            return self._of_long(scaling)
        assert isinstance(scaling, Semidefinite), "one of three kinds"
        width = self.D.shape[1]
        total = np.zeros((width, width))
        for columns, Z in zip(self.columns, scaling.squares, strict=True):
            columns.add(total, columns.curvature(Z))
        return total

    def _of_small(self, scaling: NesterovTodd) -> Floats:
        """Of many cones, each an array of its own features, or of all where that is less work."""
        width, d, count = self.D.shape[1], self.group.dimension, len(self.group.starts)
        terms = self.group.size**2 if self.group.kind == "s" else d
        total, wide = np.zeros(width * width), np.zeros((width, width))
        at_once = 1 << 19  # entries of small cones
        for run, rows in few_at_once(self.D, np.arange(count * d).reshape(-1, d), at_once):
            narrow = Narrow.of(rows, d)
            for room in np.unique(narrow.widths).tolist():
                alike = np.flatnonzero(narrow.widths == room)
                here = run.start + alike
                if room**2 * (terms * FLOP + SCATTERED) > width**2 * terms * FLOP:
                    some = csr.take_rows(rows, (alike[:, None] * d + np.arange(d)).reshape(-1)).toarray().reshape(-1, d, width)
                    wide += scaling.gram(some, here)
                    continue
                found, feature = scaling.grams(narrow.dense(alike, room), here), narrow.features(alike, room)
                total += np.bincount((feature[:, :, None] * width + feature[:, None, :]).ravel(), found.ravel(), len(total))
        return total.reshape(width, width) + wide

    def _of_long(self, scaling: SecondOrder) -> Floats:
        """Of second-order cones of many rows, one at a time: all of their Hessian but one direction is diagonal."""
        d, width = self.group.dimension, self.D.shape[1]
        total = np.zeros((width, width))
        for i, (diagonal, own) in enumerate(zip(scaling.diagonal, scaling.direction, strict=True)):
            rows = csr.rows_of(self.D, slice(i * d, (i + 1) * d))
            direction = np.asarray(rows.T @ own)
            total += (rows.T @ csr.scale_rows(rows, diagonal)).toarray() + np.outer(direction, direction)
        return total


@dataclass(frozen=True)
class ConeColumns:
    """The columns of one semidefinite cone as matrices F_j of order k; those of few entries first."""

    k: int
    feature: Indices  # (u,) of the columns that are not zero
    F: csc_array  # (d, u)
    few: int  # so many columns are looked at in pairs of entries
    work: float  # nanoseconds, about
    _held: dict[str, Indices] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: csr_array, k: int) -> ConeColumns:
        by_column = rows.tocsc()
        stored = np.diff(by_column.indptr)
        feature = np.argsort(stored, kind="stable")
        feature = feature[stored[feature] > 0]
        F = by_column[:, feature]
        F.sort_indices()
        few, work = _divide_columns(F, k)
        return cls(k, feature, F, few, work)

    def curvature(self, Z: Floats) -> Floats:
        """tr F_i Z F_j Z (u, u)."""
        u = len(self.feature)
        total = np.empty((u, u))
        total[: self.few, : self.few] = self._pairs(Z)
        for j in range(self.few, u):
            total[j] = self._image(j, Z)
            total[: self.few, j] = total[j, : self.few]
        rest = total[self.few :, self.few :]
        rest[:] = (rest + rest.T) / 2
        return total

    def add(self, total: Floats, found: Floats) -> None:
        """Add entries (u, u) to those of the features in a matrix of all, the places of few of them being remembered."""
        if found.size > 1 << 16:  # more places of entries of a small matrix in a large one are not kept
            total[np.ix_(self.feature, self.feature)] += found
            return
        if "flat" not in self._held:
            self._held["flat"] = self.feature[:, None] * len(total) + self.feature
        total.reshape(-1)[self._held["flat"]] += found

    @cached_property
    def _places(self) -> tuple[Indices, Indices, Floats]:
        """Rows and columns of the entries of an element, and factors that make entries of matrices of them."""
        rows, columns, factor = triangle(self.k)
        return rows, columns, 1 / factor

    @cached_property
    def _entries(self) -> tuple[Indices, Indices, csr_array]:
        """Of the columns of few entries: places (t,), and the values (few, t) of E_ab + E_ba."""
        rows, columns, factor = self._places
        some = self.F[:, : self.few]
        value = some.data * factor[some.indices]
        a, b = rows[some.indices], columns[some.indices]
        value[a == b] /= 2
        t = len(value)
        place = np.arange(t, dtype=some.indptr.dtype)
        return a, b, scipy.sparse.csr_array((value, place, some.indptr), shape=(self.few, t))

    def _pairs(self, Z: Floats) -> Floats:
        a, b, values = self._entries
        t, total = len(a), np.zeros((self.few, self.few))
        step = max(int(np.diff(values.indptr).max(initial=1)), PAIRS // max(1, t))
        held = np.empty((3, step * t))  # fresh memory for each piece would take longer than the products
        first = 0
        while first < self.few:
            begin = int(values.indptr[first])
            stop = max(first + 1, int(np.searchsorted(values.indptr, begin + step, side="right")) - 1)
            end = int(values.indptr[stop])
            # columns before are known by symmetry; rows are gathered several times faster than columns
            Za, Zb = np.ascontiguousarray(Z[a[begin:end]].T), np.ascontiguousarray(Z[b[begin:end]].T)
            K, one, other = (each[: (t - begin) * (end - begin)].reshape(t - begin, end - begin) for each in held)
            _product(Za, Zb, a[begin:], b[begin:], K, other)
            _product(Za, Zb, b[begin:], a[begin:], one, other)
            K += one
            mine = csr.csr(
                values.data[begin:end], values.indices[begin:end] - begin, values.indptr[first : stop + 1] - begin, end - begin
            )
            rest = csr.csr(values.data[begin:], values.indices[begin:] - begin, values.indptr[first:] - begin, t - begin)
            some = 2 * (mine @ np.ascontiguousarray((rest @ K).T))
            total[first:stop, first:] = some
            total[first:, first:stop] = some.T
            first = stop
        return total

    @cached_property
    def _used_places(self) -> tuple[Indices, Indices, Floats, csr_array]:
        """Places (n,) of the entries that some column has, times two off the diagonal, and the columns (u, n) there."""
        rows, columns, factor = self._places
        by_row = self.F.tocsr()
        used = np.flatnonzero(np.diff(by_row.indptr) > 0)
        weights = 1 / factor[used]
        return rows[used], columns[used], weights, by_row[used].T.tocsr()

    @cached_property
    def _images(self) -> list[tuple[Indices, Tile]]:
        """Of each column of many entries: the rows of the matrix that are not zero, and these rows (r, k)."""
        rows, columns, factor = self._places
        found: list[tuple[Indices, Tile]] = []
        for j in range(self.few, len(self.feature)):
            own = slice(self.F.indptr[j], self.F.indptr[j + 1])
            place = self.F.indices[own]
            a, b, value = rows[place], columns[place], self.F.data[own] * factor[place]
            off = a != b
            a, b, value = np.append(a, b[off]), np.append(b, a[off]), np.append(value, value[off])
            here, at = np.unique(a, return_inverse=True)
            matrix = scipy.sparse.csr_array((value, (at.reshape(-1), b)), shape=(len(here), self.k))
            found.append((here, matrix.toarray() if matrix.nnz * STORED > len(here) * self.k * FLOP else matrix))
        return found

    def _image(self, j: int, Z: Floats) -> Floats:
        """tr F_i Z F_j Z (u,) for all i."""
        a, b, weights, across = self._used_places
        here, rows = self._images[j - self.few]
        whole, some = len(here) == self.k, len(a) * DOT < self.k**2 * FLOP
        half = np.asarray(rows @ Z)
        if not some:
            V = (Z if whole else Z[:, here]) @ half
            return np.asarray(across @ (V[a, b] * weights))
        left, right = Z if whole else np.ascontiguousarray(Z[:, here]), np.ascontiguousarray(half.T)
        entries, step = np.empty(len(a)), max(1, PAIRS // len(here))
        for first in range(0, len(a), step):
            own = slice(first, first + step)
            np.einsum("ij,ij->i", left[a[own]], right[b[own]], out=entries[own])
        return np.asarray(across @ (entries * weights))


def _product(Za: Floats, Zb: Floats, a: Indices, b: Indices, target: Floats, other: Floats) -> None:
    """Rows a of one array times rows b of another one, entry by entry."""
    np.take(Za, a, axis=0, out=target, mode="clip")
    np.take(Zb, b, axis=0, out=other, mode="clip")
    np.multiply(target, other, out=target)


def _divide_columns(F: csc_array, k: int) -> tuple[int, float]:
    """How many columns are looked at in pairs, and the nanoseconds that all then take, about."""
    stored = np.diff(F.indptr).astype(float)
    reached = np.minimum(2 * stored, k)
    used = len(np.unique(F.indices))
    sampled = np.minimum(k * k * FLOP, used * DOT) * reached
    image = sampled + k * np.minimum(2 * stored * STORED, k * reached * FLOP) + 3 * F.nnz + CALLED
    pairs = GATHER / 2 * np.append(0.0, np.cumsum(stored)) ** 2
    work = pairs + image.sum() - np.append(0.0, np.cumsum(image))
    # pairs of one column with all that have fewer entries; above that it is looked at as an image
    work[1:][stored * np.cumsum(stored) > 1 << 21] = np.inf  # columns are looked at whole
    few = int(work.argmin())
    return few, float(work[few])
