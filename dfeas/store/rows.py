"""A few rows of a dataset by their numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dfeas.store.dataset import Dataset
from dfeas.store.reading import Buffers


def signed_rows(dataset: Dataset, points: NDArray[np.int64]) -> NDArray[np.float64]:
    """l_j x_j (s, d) of some points, as stored, with the intercept; reads their blocks."""
    found = np.ones((len(points), dataset.dimension))
    buffers = Buffers()
    block = points // dataset.block_rows
    for index in np.unique(block):
        here = block == index
        rows = points[here] - index * dataset.block_rows
        found[here, : dataset.m] = dataset.points.read(int(index), buffers)[rows]
        found[here] *= dataset.labels.read(int(index), buffers)[rows, None]
    return found
