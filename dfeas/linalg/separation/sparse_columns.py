"""Sparse columns in memory: the products of ``columns`` without a dense copy of what is not needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.linalg import csr
from dfeas.linalg.blas import cut_evenly, side_by_side
from dfeas.linalg.csr import csr_array
from dfeas.linalg.points import Floats, Indices, Points, is_dense
from dfeas.linalg.separation import AT
from dfeas.linalg.separation.columns import ColumnMatrix
from dfeas.records import replace


class SparseMatrix(ColumnMatrix, frozen=True, eq=False, dict=True):
    """c columns of dimension d, one a row of a CSR matrix."""

    points: csr_array  # (c, d)
    direct: int = AT.direct_sparse

    @property
    def wide(self) -> bool:
        return self.shape[1] > AT.direct_sparse or super().wide

    @property
    def large(self) -> bool:
        return super().large and not self.wide

    @cached_property
    def _wide_rows(self) -> csr_array:
        return csr.astype(self.points, np.float64)

    def _entries(self, rows: csr_array, scale: Floats) -> csr_array:
        """Columns D a_j (r, d) of some rows with their factors, in float64."""
        data = rows.data * np.repeat(scale, np.diff(rows.indptr))
        return csr.with_data(rows, data * self.feature[rows.indices])

    def squares(self) -> Floats:
        entries = self._entries(self.points, self.scale)
        return np.asarray(np.bincount(entries.indices, entries.data**2, self.shape[1]), np.float64)

    def _are_alike(self) -> bool:
        return False  # sums in float64 take no longer

    def some(self, rows: Indices) -> ColumnMatrix:
        return replace(self, points=self.points[rows], scale=self.scale[rows])

    def take_columns(self, rows: Indices) -> Any:
        return self._entries(self.points[rows], self.scale[rows])

    def gather(self, rows: Indices | slice) -> Floats:
        """Columns D a_j (r, d) of some rows in float64, dense: for few of them."""
        return np.asarray(self._entries(self.points[rows], self.scale[rows]).toarray())

    def has_room(self, rows: Indices) -> bool:
        return 8 * len(rows) * len(np.unique(self.points[rows].indices)) <= self.room

    def within(self, rows: Indices) -> ColumnMatrix:
        """Some columns without the features that none of them has, dense, with their own factors."""
        some = self.points[rows]
        used, place = np.unique(some.indices, return_inverse=True)
        narrow = csr.csr(some.data, place.reshape(-1).astype(some.indptr.dtype), some.indptr, max(1, len(used)))
        feature = self.feature[used] if len(used) else np.ones(1)
        return ColumnMatrix(narrow.toarray(), self.scale[rows], feature, exact=True)

    def _multiply_rows(self, rows: csr_array, vector: NDArray[Any]) -> Floats:
        product = np.empty(rows.shape[0])
        groups = _groups(rows)

        def multiply(g: int) -> None:
            here = groups[g]
            product[here] = csr.rows_of(rows, here) @ vector

        side_by_side(multiply, len(groups))
        return product

    def _sum_rows(self, rows: csr_array, weights: NDArray[Any]) -> Floats:
        groups = _groups(rows)

        def add(g: int) -> Floats:
            here = groups[g]
            return np.asarray(csr.transpose(csr.rows_of(rows, here)) @ weights[here], np.float64)

        return np.asarray(np.sum(side_by_side(add, len(groups)), axis=0))

    def _narrow(self, v: NDArray[np.float32]) -> Floats:
        return self._multiply_rows(self.points, v) * self.scale

    def scores_of(self, rows: Indices, v: Floats) -> Floats:
        return np.asarray(self.take_columns(rows) @ v)

    def _wide(self, v: Floats) -> Floats:
        return self._multiply_rows(self._wide_rows, self.feature * v) * self.scale

    def _add_columns(self, x: Floats, *, single: bool = False) -> Floats:
        rows = np.flatnonzero(x)
        if 4 * len(rows) < len(x):
            return np.asarray(csr.transpose(self.take_columns(rows)) @ x[rows])
        mass = x * self.scale
        return self.feature * (
            self._sum_rows(self.points, mass.astype(np.float32)) if single else self._sum_rows(self._wide_rows, mass)
        )

    def lengths(self, rows: Indices) -> Floats:
        taken = self.take_columns(rows)
        return np.sqrt(csr.row_sums(taken, taken.data**2))

    def gather_active(self, active: NDArray[np.bool_]) -> tuple[ColumnMatrix, Indices | slice]:
        return self, slice(None)  # ``normal`` gathers them

    def normal(self, active: NDArray[np.bool_]) -> Callable[[Floats], Floats]:
        """sum over active columns of D a_j (D a_j)'v (d,); in the precision of the rows unless ``exact``."""
        taken = csr.astype(self.take_columns(np.flatnonzero(active)), self.points.dtype if self.single else np.float64)

        def product(v: Floats) -> Floats:
            return self._sum_rows(taken, self._multiply_rows(taken, v.astype(taken.dtype)).astype(taken.dtype))

        return product

    def gram(self, rows: Indices) -> tuple[Floats, Floats]:
        taken = self.take_columns(rows)
        total = np.asarray(csr.transpose(taken) @ np.ones(len(rows)))
        return np.asarray((csr.transpose(taken) @ taken).toarray()), total


def _groups(rows: csr_array) -> list[slice]:
    return cut_evenly(rows.shape[0], AT.groups if len(rows.data) >= AT.worth else 1)


def column_matrix(points: Points, scale: Floats, room: int = AT.basis_bytes) -> ColumnMatrix:
    """Columns scale_j x_j of points (c, d), dense or CSR, without feature factors; a basis may take ``room`` bytes."""
    feature = np.ones(points.shape[1])
    if is_dense(points):
        return ColumnMatrix(np.ascontiguousarray(points), scale, feature, room=room)
    return SparseMatrix(points, scale, feature, room=room)
