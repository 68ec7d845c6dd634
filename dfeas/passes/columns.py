"""Columns taken out of blocks: stored entries, exactly, with the factors that make signed unit columns of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.passes.block import Array, Block, Floats, Indices
from dfeas.passes.points import Tile, combined, dense, in_type, is_dense, largest, stacked, times_rows, with_ones


@dataclass(frozen=True, slots=True)
class Columns:
    """Some columns a_j = scale_j times the stored point. Nothing is rounded: factors are float64."""

    index: Indices  # (c,) indices of the points
    points: Tile  # (c, dimension) one a row, C order or CSR; the intercept, if any, is a feature like the others
    scale: Floats  # (c,) l_j / |x_j|, 0 for a zero point

    @classmethod
    def none(cls, dimension: int, dtype: np.dtype[Any] | type = np.float64) -> Columns:
        """No column."""
        points: Array = np.empty((0, dimension), dtype)
        return cls(np.empty(0, np.int64), points, np.empty(0))

    @classmethod
    def of(cls, block: Block, rows: Indices, unit: bool = True) -> Columns:
        """Copies of some rows of a block; float64 where float32 products could overflow or underflow.

        With ``unit`` false factors are labels only: what a kernel takes are the points as stored.
        """
        points = in_type(block.points[rows], np.float32 if block.single else np.float64)
        if block.intercept:
            points = with_ones(points)
        return cls(block.start + rows, points, block.sides.scale(rows) if unit else block.label[rows].astype(np.float64))

    @classmethod
    def joined(cls, parts: Sequence[Columns]) -> Columns:
        """All of some columns, in the order given; at least one part."""
        if not all(is_dense(part.points) for part in parts):
            parts = [part for part in parts if not is_dense(part.points)]  # a dense one among them is ``none``
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.index for part in parts]),
            stacked([part.points for part in parts]),
            np.concatenate([part.scale for part in parts]),
        )

    def take(self, rows: Indices | NDArray[np.bool_]) -> Columns:
        """Some of them."""
        return Columns(self.index[rows], self.points[rows], self.scale[rows])

    def unit(self) -> Floats:
        """Signed unit columns (c, dimension) in float64, one a row."""
        if not is_dense(self.points):
            return np.asarray(dense(self.points) * self.scale[:, None])
        return np.asarray(self.points * self.scale[:, None], np.float64)

    def scaled(self, factors: Floats) -> Tile:
        """Signed unit columns times factors (c,) in float64, one a row, sparse if they are stored so."""
        if not is_dense(self.points):
            return times_rows(self.points, self.scale * factors)
        return np.asarray(self.unit() * factors[:, None])

    def largest(self) -> Floats:
        """The greatest magnitude (c,) in each signed unit column."""
        return largest(self.scaled(np.ones(len(self))))

    def combined(self, weights: Floats) -> Floats:
        """sum_j weights_j a_j (dimension,), in float64."""
        if not is_dense(self.points):
            return combined(weights * self.scale, self.points)
        return np.asarray(weights @ self.unit())

    def __len__(self) -> int:
        return len(self.index)
