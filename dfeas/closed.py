"""Points on one closed side of a hyperplane, y'a_j >= 0 for all j: proved from the stored points and labels, in one read.

y is given in integers, so that it can be exactly orthogonal to points. Scores that float64 cannot tell from zero are computed
in integers; equal points once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import CheckFailedError
from dfeas.proof.dyadic import Dyadic, Integers
from dfeas.store import Dataset
from dfeas.store.reading import Buffers, Stop, unless_stopped
from dfeas.verify import PIECE_BYTES, WRONG, Maps, U, compare, crc

LOST = 2.0**-1060
"""More than underflow takes from an entry of y, or from a product of it with an entry of a point above one."""


@dataclass
class Sides:
    """What some blocks showed."""

    on: int = 0  # points on the hyperplane
    beyond: int = 0  # points on its positive side
    wrong: list[int] = field(default_factory=list)  # others, the first few
    checksums: list[tuple[int, int]] = field(default_factory=list)


def check_closed(engine: Maps, dataset: Dataset, y: Integers, fingerprint: str) -> Sides:
    """How many points are on the hyperplane of y (d,), and how many on its positive side.

    Raises CheckFailedError when one is on neither, CorruptDataError when the data has another fingerprint.
    """
    found = Sides()
    for part in engine.map(closed_range, y):
        found.on, found.beyond, found.wrong = found.on + part.on, found.beyond + part.beyond, found.wrong + part.wrong
        found.checksums += part.checksums
    compare(dataset, found.checksums, fingerprint, dataset.view)
    if found.wrong:
        raise CheckFailedError(f"point {found.wrong[0]} is on the negative side of the hyperplane")
    return found


def closed_range(dataset: Dataset, first: int, stop: int, y: Integers, stopped: Stop | None = None) -> Sides:
    """Look at blocks first .. stop-1."""
    found, buffers = Sides(), Buffers()
    dimension = dataset.dimension
    near = Dyadic(y, -max(int(abs(v)).bit_length() for v in y)).floats()  # entries of at most 1
    rate = (dimension + 16) * U * (1 + 2.0**-20)
    rows = max(1, PIECE_BYTES // (8 * dimension))
    for index in unless_stopped(range(first, stop), stopped):
        stored = dataset.points.read(index, buffers)
        label = dataset.labels.read(index, buffers)
        found.checksums.append((crc(stored), crc(label)))
        label = dataset.signs(label)
        for piece in range(0, stored.shape[0], rows):
            points = np.ones((min(rows, stored.shape[0] - piece), dimension))
            some: Any = stored[piece : piece + rows]
            points[:, : dataset.m] = some if isinstance(some, np.ndarray) else some.toarray()
            points *= label[piece : piece + rows, None]
            with np.errstate(over="ignore", invalid="ignore"):
                score = points @ near
                bound = rate * (np.abs(points) @ np.abs(near)) + LOST * (dimension + np.abs(points).sum(axis=1))
                sure = np.abs(score) > bound
            sign = np.where(sure, np.sign(score), 0).astype(np.int8)
            sign[~sure] = _exact(points[~sure], y)
            found.on += int((sign == 0).sum())
            found.beyond += int((sign > 0).sum())
            start = index * dataset.block_rows + piece
            found.wrong = (found.wrong + (start + np.flatnonzero(sign < 0)).tolist())[:WRONG]
    return found


def _exact(points: NDArray[np.float64], y: Integers) -> NDArray[Any]:
    """Signs (k,) of scores, in integers."""
    if not len(points):
        return np.empty(0, np.int8)
    different, place = np.unique(points, axis=0, return_inverse=True)
    sign = [int(score > 0) - int(score < 0) for score in (Dyadic.of(point).digits @ y for point in different)]
    return np.array(sign, np.int8)[place.reshape(-1)]
