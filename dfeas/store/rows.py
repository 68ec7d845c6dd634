"""A few rows of a dataset by their numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dfeas.passes.points import Points, dense, stacked
from dfeas.store.dataset import Dataset
from dfeas.store.reading import Buffers


def rows_of(dataset: Dataset, points: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """x_j (s, d) of some points, as stored, with the intercept, and their labels (s,); reads their blocks."""
    found, labels = np.ones((len(points), dataset.dimension)), np.empty(len(points))
    buffers = Buffers()
    block = points // dataset.block_rows
    for index in np.unique(block):
        here = block == index
        rows = points[here] - index * dataset.block_rows
        found[here, : dataset.m] = dense(dataset.points.read(int(index), buffers)[rows])
        labels[here] = dataset.signs(dataset.labels.read(int(index), buffers)[rows])
    return found, labels


def stored_rows(dataset: Dataset, points: NDArray[np.int64]) -> tuple[Points, NDArray[np.generic]]:
    """Some points (s, m), ascending, and their labels (s,), as stored; reads their blocks."""
    found: list[Points] = []
    labels = []
    buffers = Buffers()
    block = points // dataset.block_rows
    for index in np.unique(block):
        rows = points[block == index] - index * dataset.block_rows
        found.append(dataset.points.read(int(index), buffers)[rows])
        labels.append(dataset.labels.read(int(index), buffers)[rows])
    return stacked(found), np.concatenate(labels)


def signed_rows(dataset: Dataset, points: NDArray[np.int64]) -> NDArray[np.float64]:
    """l_j x_j (s, d) of some points; as ``rows_of``."""
    found, labels = rows_of(dataset, points)
    found *= labels[:, None]
    return found
