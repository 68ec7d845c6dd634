"""On which side of a hyperplane all points are, and whether they stay in a subspace: proved from the stored data, in one read.

Hyperplanes and subspaces are given in integers, so that points can be on them exactly; every sign is decided exactly
(``dfeas.proof.products``). Points seen from another one, p, are (x_j, 1) here, and -(p, 1) is one point more, the last: a
conflict of these is p as a convex combination of the x_j.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.data.storage.readers import Buffers, Stop, unless_stopped
from dfeas.data.views import TranslatedReader
from dfeas.errors import CheckFailedError
from dfeas.verify.core import Maps
from dfeas.verify.exact.dyadic import Integers
from dfeas.verify.exact.products import Matrix, signs, vanishing
from dfeas.verify.stored import PIECE_BYTES, compare, crc

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass
class Sides:
    """What some blocks showed."""

    on: int = 0  # points on the hyperplane
    beyond: int = 0  # points on the positive side
    wrong: int = 0  # points on the negative side
    outside: int = 0  # points on the hyperplane that should not be there, or only in the subspace
    missed: list[tuple[float, int]] = field(default_factory=list)  # scores and numbers of points, the lowest first
    checksums: list[tuple[int, int]] = field(default_factory=list)

    def add(self, other: Sides, take: int) -> None:
        """What the next blocks showed."""
        self.on, self.beyond = self.on + other.on, self.beyond + other.beyond
        self.wrong, self.outside = self.wrong + other.wrong, self.outside + other.outside
        self.missed = sorted(self.missed + other.missed)[:take]
        self.checksums += other.checksums


def dimension_of(dataset: Dataset) -> int:
    """Of the points as they are looked at here."""
    return dataset.m + 1 if isinstance(dataset.points, TranslatedReader) else dataset.dimension


@dataclass(frozen=True)
class Wanted:
    """Where points should be."""

    y: Integers | None = None  # (d,) on the positive side of its hyperplane, or on it
    across: Integers | None = None  # (d, k) those on the hyperplane, or all without one, in the subspace orthogonal to these
    strict: bool = False  # none on the hyperplane


def look(engine: Maps, dataset: Dataset, fingerprint: str, wanted: Wanted, take: int = 1) -> Sides:
    """All points beside a hyperplane and a subspace; ``missed`` are at most ``take`` that are not where they should be.

    Raises CorruptDataError when the data has another fingerprint.
    """
    found = Sides()
    for part in engine.map(look_at_range, wanted, take):
        found.add(part, take)
    compare(dataset, found.checksums, fingerprint, dataset.view)
    reference = reference_of(dataset)
    if reference is not None:
        found.add(_sides(reference, wanted, dataset.n, take), take)
    return found


def require_closed(found: Sides) -> None:
    """Raise CheckFailedError when a point is on the negative side."""
    if found.wrong:
        raise CheckFailedError(f"point {found.missed[0][1]} is on the negative side of the hyperplane")


def look_at_range(dataset: Dataset, first: int, stop: int, wanted: Wanted, take: int, stopped: Stop | None = None) -> Sides:
    """Look at blocks first .. stop-1."""
    found, buffers = Sides(), Buffers()
    for index in unless_stopped(range(first, stop), stopped):
        points, checksums = _block(dataset, index, buffers)
        found.checksums.append(checksums)
        start = index * dataset.block_rows
        for piece, some in _pieces(dataset, points):
            found.add(_sides(some, wanted, start + piece, take), take)
    return found


def rows(dataset: Dataset, index: Indices) -> Matrix:
    """Signed points (s, d) as they are looked at here, by ascending numbers, sparse where these are; reads their blocks."""
    found, buffers = [], Buffers()
    block = index // dataset.block_rows
    for number in np.unique(block[index < dataset.n]).tolist():
        chosen = index[(block == number) & (index < dataset.n)] - number * dataset.block_rows
        block_of = _block(dataset, number, buffers)[0]
        found.append(_wide(dataset, _Signed(block_of.points[chosen], block_of.label[chosen])))
    reference = reference_of(dataset)
    if reference is not None and dataset.n in index:
        found.append(reference)
    if all(isinstance(some, np.ndarray) for some in found):
        return np.vstack([np.zeros((0, dimension_of(dataset))), *found])
    return scipy.sparse.vstack([scipy.sparse.csr_array(some) for some in found], format="csr")


def reference_of(dataset: Dataset) -> Floats | None:
    """The point that all others are seen from, as one of them (1, d)."""
    return -np.append(dataset.points.point, 1.0)[None, :] if isinstance(dataset.points, TranslatedReader) else None


@dataclass(frozen=True)
class _Signed:
    points: Any  # (b, m) as stored
    label: NDArray[Any]  # (b,) signs


def _block(dataset: Dataset, index: int, buffers: Buffers) -> tuple[_Signed, tuple[int, int]]:
    """Points and signs of a block, and the checksums of what was read."""
    seen = dataset.points if isinstance(dataset.points, TranslatedReader) else None
    points = dataset.points.read(index, buffers) if seen is None else seen.stored(index, buffers)
    stored = points if seen is None or not isinstance(points, np.ndarray) else seen.change(points, buffers)
    label = dataset.labels.read(index, buffers)
    return _Signed(points, dataset.signs(label)), (crc(stored), crc(label))


def _pieces(dataset: Dataset, block: _Signed) -> Iterator[tuple[int, Matrix]]:
    """Where pieces of a block begin, and their points; a sparse block is one."""
    dense = isinstance(block.points, np.ndarray)
    size = max(1, PIECE_BYTES // (8 * dimension_of(dataset))) if dense else max(1, block.points.shape[0])
    for piece in range(0, block.points.shape[0], size):
        yield piece, _wide(dataset, _Signed(block.points[piece : piece + size], block.label[piece : piece + size]))


def _wide(dataset: Dataset, block: _Signed) -> Matrix:
    """Points (r, d) with their signs and the feature of the intercept."""
    r, d = block.points.shape[0], dimension_of(dataset)
    if isinstance(block.points, np.ndarray):
        points = np.ones((r, d))
        points[:, : dataset.m] = block.points
        points *= block.label[:, None]
        return points
    sparse = block.points.astype(np.float64)
    if d > dataset.m:
        sparse = scipy.sparse.hstack([sparse, scipy.sparse.csr_array(np.ones((r, 1)))], format="csr")
    sparse.data *= np.repeat(block.label, np.diff(sparse.indptr))
    return sparse


def _sides(points: Matrix, wanted: Wanted, start: int, take: int) -> Sides:
    """Of points (r, d) from number ``start`` on."""
    sign, score = np.zeros(points.shape[0], np.int8), np.zeros(points.shape[0])
    if wanted.y is not None:
        sign, score = signs(points, wanted.y)
    on = np.flatnonzero(sign == 0)
    bad = sign < 0
    bad[on] = wanted.strict
    if wanted.across is not None and not wanted.strict:
        bad[on] = ~vanishing(points[on], wanted.across)
    missed = np.flatnonzero(bad)
    missed = missed[np.argsort(score[missed], kind="stable")[:take]]
    found = [(float(score[j]), start + int(j)) for j in missed]
    return Sides(len(on), int((sign > 0).sum()), int((sign < 0).sum()), int(bad[on].sum()), found)
