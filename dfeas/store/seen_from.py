"""Points seen from another point: differences, formed when a block is read. Nothing is written anew."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfeas.passes.points import dense, is_dense
from dfeas.store.reading import AnyArray, Buffers, Cost
from dfeas.store.view import OfDataset


@dataclass(frozen=True)
class SeenFrom(OfDataset):
    """A reader of x_j - p, in float64: each entry is the exact difference with a relative error of at most 2**-53."""

    point: NDArray[np.float64]  # (m,)

    def stored(self, index: int, buffers: Buffers) -> AnyArray:
        """Rows as they are stored."""
        points = self.inner.read(index, buffers, Cost()).points
        return points if is_dense(points) else dense(points)

    def differences(self, rows: AnyArray, buffers: Buffers) -> AnyArray:
        """Of rows as they are stored."""
        wide = buffers.take("seen", rows.size * 8).view(np.float64).reshape(rows.shape)
        return np.subtract(rows, self.point, out=wide, dtype=np.float64)

    def read(self, index: int, buffers: Buffers) -> AnyArray:
        """Differences of a block."""
        return self.differences(self.stored(index, buffers), buffers)
