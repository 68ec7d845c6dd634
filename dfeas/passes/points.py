"""Points of a block, one a row, as they are stored: a dense array or a CSR matrix. What passes ask of either is here.

Entries are stored in their own type and worked on in float32 where that holds each of them exactly, otherwise in float64.
"""

from __future__ import annotations

from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Array = NDArray[np.float32] | NDArray[np.float64]
Points = NDArray[Any]
Indices = NDArray[np.int64]

LOW = ("int8", "uint8", "int16", "uint16", "float16")
"""Types of entries that take fewer bytes than float32, which holds them exactly."""

UNPACKED = 990_000
"""Multiplications in a product that OpenBLAS does in place (its limit is 100**3)."""

CONVERTED = 1 << 20
"""Entries that are converted at a time, at most."""

_converted = local()  # a buffer for each thread: fresh memory for each tile would cost as much as the product


def working(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float32 or float64: the narrowest type in which products see the entries exactly."""
    return np.dtype(np.float32 if dtype.name in (*LOW, "float32") else np.float64)


def norms(points: Points) -> Floats:
    """Euclidean norms (b,) in float64 of points (b, m); overflow gives inf and underflow 0, without a warning."""
    rows = max(1, CONVERTED // points.shape[1]) if points.dtype.itemsize < 4 else max(1, len(points))
    found = np.empty(len(points))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for first in range(0, len(points), rows):
            wide = points[first : first + rows].astype(np.float64, copy=False)
            found[first : first + rows] = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    return found


def tile(points: Points, rows: slice, single: bool) -> Array:
    """Some rows in float32 or float64; in a buffer that this thread uses again for the next tile, if they are in neither."""
    stored = points[rows]
    dtype = np.dtype(np.float32 if single else np.float64)
    if stored.dtype == dtype:
        return stored
    size = stored.size * dtype.itemsize
    held = getattr(_converted, "buffer", None)
    if held is None or held.size < size:
        held = _converted.buffer = np.empty(size, np.uint8)
    found: Array = held[:size].view(dtype).reshape(stored.shape)
    np.copyto(found, stored)
    return found


def times(points: Array, questions: Array) -> Array:
    """Products (k, t) of a tile with questions (m, k), in their precision."""
    k = questions.shape[1]
    if k == 1:
        with np.errstate(invalid="ignore"):  # OpenBLAS computes on lanes that it then throws away
            return (points @ questions[:, 0])[None, :]
    found: Array = np.empty((k, len(points)), points.dtype)
    for rows in _product_rows(points, k):
        found[:, rows] = (points[rows] @ questions).T
    return found


def add_combinations(total: Floats, weights: Array, points: Array) -> None:
    """Add weights (k, t) times a tile to sums (k, m)."""
    for rows in _product_rows(points, len(weights)):
        total += weights[:, rows] @ points[rows]


def _product_rows(points: Array, k: int) -> list[slice]:
    """Runs of rows for products with k vectors. OpenBLAS multiplies narrow matrices 3 to 8 times faster below a size at
    which it copies them into its own order first; one vector has no such limit.
    """
    t, m = points.shape
    rows = t if k == 1 else max(16, UNPACKED // (m * k))
    return [slice(first, first + rows) for first in range(0, t, rows)]
