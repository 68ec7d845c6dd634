"""Columns in other coordinates, in which they reach as far in all directions.

Feasibility does not change under a_j -> T'a_j / |T'a_j|, for any invertible T; the margin does. Where columns lie near to a
subspace, or turned features differ in size by 1e10, T = R^-1 of a QR of them makes a margin of 1e-14 one of 1e-4. Where that is
not enough, T is taken of the columns that are inside of a soft margin, again and again (Dunagan and Vempala 2008 in one
direction at a time, Pena and Soheili 2016; here a whole ellipsoid, that of the last Newton step): with B these columns,
T T' = (I/C + B B')^-1 lengthens no direction more than sqrt(C), and leaves those where B is long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.linalg.basic import solve_triangular
from dfeas.linalg.blas import one_thread
from dfeas.linalg.points import Floats, Indices
from dfeas.linalg.separation import AT
from dfeas.linalg.separation.columns import ColumnMatrix, FewColumns

RESOLVED = 2e-14  # of the largest in R: below is rounding. Dummies of ten factors have 1e-15 where they are dependent


class RescaledColumns(FewColumns, frozen=True, kw_only=True):
    """c columns b_j = T'D a_j / |T'D a_j|, one a row: ``points`` (c, r)."""

    inner: ColumnMatrix  # D a_j
    forth: Floats  # T (d, r)
    back: Floats  # (r, d) with (D a_j)'T back = (D a_j)'
    length: Floats  # (c,) |T'D a_j|

    @staticmethod
    def most(matrix: ColumnMatrix) -> int:
        """How many columns may be rescaled at once."""
        # they take four copies while they are made: twice the room of a basis, of which there may be eight
        return 0 if matrix.wide else min(AT.rescaled_bytes, 2 * matrix.room) // (8 * matrix.shape[1])

    @classmethod
    def rescale(cls, matrix: ColumnMatrix) -> RescaledColumns | None:
        """By a QR of all columns; None where they are too many, or one is zero."""
        if matrix.shape[0] > cls.most(matrix):
            return None
        columns, (c, d) = matrix.gather(slice(None)), matrix.shape
        basis = np.eye(d) if c >= d else np.linalg.qr(columns.T)[0]
        return cls._turn(matrix, columns, columns @ basis if c < d else columns, basis, basis.T)

    def turn(self, rows: NDArray[np.bool_], C: float) -> RescaledColumns | None:
        """By a QR of some of them, as far as C."""
        damped = np.vstack([self.points[rows], np.eye(self.shape[1]) / np.sqrt(C)])
        return self._turn(self.inner, self.inner.gather(slice(None)), damped, self.forth, self.back)

    @classmethod
    def _turn(cls, inner: ColumnMatrix, columns: Floats, some: Floats, forth: Floats, back: Floats) -> RescaledColumns | None:
        factor: Floats = np.asarray(np.linalg.qr(some, mode="r"), np.float64)
        order: NDArray[Any] = np.arange(some.shape[1])
        size = np.abs(factor.diagonal())
        if len(factor) < len(order) or not size.min() > RESOLVED * size.max():
            import scipy

            with one_thread(of_scipy=True):
                pivoted, order = scipy.linalg.qr(factor, mode="r", pivoting=True, check_finite=False)
            factor = np.asarray(pivoted, np.float64)
            size = np.abs(factor.diagonal())
        r = int((size > RESOLVED * size[0]).sum())
        forth = forth[:, order[:r]] @ solve_triangular(factor[:r, :r], np.eye(r))
        most = np.abs(forth).max(initial=0.0)
        points = columns @ (forth / most)
        length = np.sqrt(np.einsum("ij,ij->i", points, points))
        if not r or not length.all():
            return None
        c = len(points)
        points /= length[:, None]
        back = most * factor[:r] @ back[order]
        alike = np.ones(c), np.ones(r), True, inner.direct
        return cls(points, *alike, inner=inner, forth=forth / most, back=back, length=length)

    def lengths_of(self, matrix: ColumnMatrix) -> Floats:
        """|T'D a_j| of other columns, at least where they reach into directions of these."""
        length = np.empty(matrix.shape[0])
        for here, part in matrix._tiles(range(len(length))):
            length[here] = np.linalg.norm(part @ self.forth, axis=1)
        return np.maximum(length, np.finfo(np.float64).tiny)

    def some(self, rows: Indices) -> ColumnMatrix:
        return FewColumns(self.points[rows], np.ones(len(rows)), self.feature, True, self.direct)

    def vector(self, v: Floats) -> Floats:
        return self.inner.vector(self.forth @ v)

    def coordinates(self, w: Floats) -> Floats:
        return np.asarray(self.back @ self.inner.coordinates(w))

    def weights(self, x: Floats, rows: Indices | slice = slice(None)) -> Floats:
        return x / self.length[rows]

    def lowest(self, score: Floats) -> float:
        return float((score * self.length).min())
