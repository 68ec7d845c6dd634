"""Points as they are seen, and not as they are stored: from another point, or centred and scaled; formed when a block is read.

z = (x - shift) * factor in float64: an entry has one rounding of the difference and one of the product.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.data.storage.layout import seen_fingerprint
from dfeas.data.storage.readers import AnyArray, Buffers, Cost
from dfeas.data.storage.sparse_readers import Entries
from dfeas.data.transform import Transform, said, seen_as
from dfeas.errors import CorruptDataError
from dfeas.linalg import csr
from dfeas.linalg.points import Points, dense, is_dense


@dataclass(frozen=True)
class OfDataset:
    """Blocks are made of those of a dataset, and come and change as these do."""

    inner: Dataset  # which verifies what it reads

    @property
    def overlaps(self) -> bool:
        return self.inner.points.overlaps

    @property
    def distant(self) -> bool:
        return self.inner.points.distant

    def advise(self, index: int) -> None:
        self.inner.points.advise(index)

    def stamp(self, index: int) -> int | None:
        return self.inner.points.stamp(index)


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
        return self.differences(self.stored(index, buffers), buffers)


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Transformed(OfDataset):
    """A reader of z, in float64."""

    shift: Floats | None  # (m,)
    factor: Floats | None  # (m,)

    def read(self, index: int, buffers: Buffers) -> Points:
        """Transformed points of a block."""
        stored = self.inner.read(index, buffers, Cost()).points
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # the survey refuses what is not finite
            if not is_dense(stored):
                assert self.factor is not None, "sparse points are scaled, not centred"
                return csr.with_data(stored, stored.data * self.factor[stored.indices])
            seen = buffers.take("transformed", stored.size * 8).view(np.float64).reshape(stored.shape)
            if self.shift is not None:
                np.subtract(stored, self.shift, out=seen, dtype=np.float64)
                return seen if self.factor is None else np.multiply(seen, self.factor, out=seen)
            assert self.factor is not None, "something changes"
            return np.multiply(stored, self.factor, out=seen, dtype=np.float64)


def transformed(dataset: Dataset, transform: Transform) -> Dataset:
    """The same points seen so; its fingerprint is that of the stored points and of the numbers.

    Raises CorruptDataError when the numbers are for another number of features, or of points.
    """
    m = dataset.m
    if {len(transform.shift), len(transform.factor)} - {0, m} or not 0 < transform.points <= dataset.n:
        raise CorruptDataError(
            f"{dataset.where}: {dataset.n} points of {m} features, the transform is one of {transform.points} points of "
            f"{max(len(transform.shift), len(transform.factor))}"
        )
    positive = seen_as(dataset.view)[0]
    view, mark = said(positive, transform), dataset.mark or dataset.fingerprint
    known: dict[str, Any] = {"view": view, "mark": mark, "fingerprint": seen_fingerprint(mark, view) if mark else ""}
    known["transform"] = transform
    if not transform.features:
        return replace(dataset.apart(), **known)
    shift = np.array(transform.shift) if transform.shift else None
    factor = np.array(transform.factor) if transform.factor else None
    entries = dataset.entries
    if entries is not None:
        more = 8 - dataset.dtype.itemsize
        bytes_of_all = entries.bytes + int(entries.offsets[-1]) * more
        entries = Entries(entries.offsets, bytes_of_all, entries.block_bytes + int(np.diff(entries.offsets).max()) * more)
    inner = dataset.apart()
    return replace(
        inner.apart(),
        **known,
        dtype=np.dtype(np.float64),
        points=Transformed(inner, shift, factor),
        stored_norms=None,
        header=None,
        expected=None,
        entries=entries,
        stored=inner,
    )
