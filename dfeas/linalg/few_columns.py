"""Few columns in memory, multiplied out: where a product takes microseconds, what it takes to call one is what costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dfeas.linalg.columns import WORTH, ColumnMatrix
from dfeas.linalg.points import Floats, Indices


@dataclass(frozen=True)
class FewColumns(ColumnMatrix):
    """c columns of dimension d, one a row: ``points`` (c, d) are D a_j in float64, and ``scale`` is 1."""

    @classmethod
    def of(cls, matrix: ColumnMatrix) -> FewColumns:
        """All columns of a matrix."""
        return cls(matrix.gather(slice(None)), np.ones(matrix.shape[0]), matrix.feature, True, matrix.direct)

    def _with(self, factor: Floats) -> ColumnMatrix:
        return replace(self, points=self.points * factor, feature=self.feature * factor)

    def gather(self, rows: Indices | slice) -> Floats:
        chosen: Floats = self.points[rows]
        return chosen

    def _tiles(self, rows: Indices | range, least: int = 1) -> Iterator[tuple[slice, Floats]]:
        for here, chosen in self._cut(rows, least):
            yield here, self.points[chosen]

    def scores_of(self, rows: Indices, v: Floats) -> Floats:
        score: Floats = self.points[rows] @ v
        return score

    def scores(self, v: Floats, level: float = 1.0, within: float = 0.0) -> Floats:
        score: Floats = self.points @ v
        return score

    def _add_columns(self, x: Floats, *, single: bool = False) -> Floats:
        some = x.nonzero()[0]
        total: Floats = x[some] @ self.points[some] if 4 * len(some) < len(x) else x @ self.points
        return total

    def normal(self, active: NDArray[np.bool_]) -> Callable[[Floats], Floats]:
        part: Floats = self.points[active]
        return lambda v: (part @ v) @ part

    def gram(self, rows: Indices) -> tuple[Floats, Floats]:
        part: Floats = self.points[rows]
        return part.T @ part, part.sum(axis=0)


def multiplied_out(matrix: ColumnMatrix) -> ColumnMatrix:
    """The same columns, multiplied out where they are few."""
    few = matrix.shape[0] * matrix.shape[1] < WORTH
    return FewColumns.of(matrix) if few and not isinstance(matrix, FewColumns) else matrix
