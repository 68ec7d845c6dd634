"""Columns taken out of blocks: stored entries, exactly, with the factors that make signed unit columns of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.passes.block import Array, Block, Floats, Indices


@dataclass(frozen=True, slots=True)
class Columns:
    """Some columns a_j = scale_j times the stored point. Nothing is rounded: factors are float64."""

    index: Indices  # (c,) indices of the points
    points: (
        Array  # (c, dimension) float32 or float64, C order, one a row; the intercept, if any, is a feature
    )
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
        stored = block.points[rows]
        points: Array = stored.astype(np.float32, copy=False) if block.single else stored.astype(np.float64, copy=False)
        if block.intercept:
            points = np.hstack([points, np.ones((len(rows), 1), points.dtype)])
        return cls(block.start + rows, points, block.sides.scale(rows) if unit else block.label[rows].astype(np.float64))

    @classmethod
    def joined(cls, parts: Sequence[Columns]) -> Columns:
        """All of some columns, in the order given; at least one part."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.index for part in parts]),
            np.concatenate([part.points for part in parts]),
            np.concatenate([part.scale for part in parts]),
        )

    def take(self, rows: Indices | NDArray[np.bool_]) -> Columns:
        """Some of them."""
        return Columns(self.index[rows], self.points[rows], self.scale[rows])

    def unit(self) -> Floats:
        """Signed unit columns (c, dimension) in float64, one a row."""
        return np.asarray(self.points * self.scale[:, None], np.float64)

    def __len__(self) -> int:
        return len(self.index)
