"""Points as they are seen, and not as they are stored: from another point, or centred and scaled.

Blocks are made of those of another dataset when they are read, which verifies itself; nothing is written. Transformed points
are z = (x - shift) * factor in float64: an entry has one rounding of the difference and one of the product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset, array_reader
from dfeas.data.source import DataSpec, Transform
from dfeas.data.storage.features import difference, order_by
from dfeas.data.storage.numbers import exact
from dfeas.data.storage.readers import AnyArray, Buffers, Cost, Looks
from dfeas.data.storage.sparse_readers import Entries
from dfeas.errors import BadInputError, CorruptDataError
from dfeas.linalg import csr
from dfeas.linalg.points import Floats, Points, dense, is_dense, stack_points


class MappedReader(Struct, frozen=True, eq=False):
    """Blocks are those of a dataset, changed by a function, and come and change as these do."""

    inner: Dataset  # which verifies what it reads
    change: Callable[[Points, Buffers], Points]  # of the points of a block; maybe in a buffer

    @property
    def overlaps(self) -> bool:
        return self.inner.points.overlaps

    @property
    def distant(self) -> bool:
        return self.inner.points.distant

    def read(self, index: int, buffers: Buffers) -> Points:
        return self.change(self.inner.read(index, buffers, Cost()).points, buffers)

    def advise(self, index: int) -> None:
        self.inner.points.advise(index)

    def stamp(self, index: int, looks: Looks | None = None) -> int | None:
        return self.inner.points.stamp(index, looks)


class TranslatedReader(MappedReader, frozen=True, eq=False):
    """A reader of x_j - p, in float64: each entry is the exact difference with a relative error of at most 2**-53."""

    point: Floats  # (m,)

    def read_stored(self, index: int, buffers: Buffers) -> AnyArray:
        points = self.inner.read(index, buffers, Cost()).points
        return points if is_dense(points) else dense(points)


def order_point(dataset: Dataset, spec: DataSpec) -> tuple[float, ...]:
    """The entries of a point in the order of the features. Raises BadInputError for others, where both have names."""
    assert spec.point is not None, "a point is asked about"
    order = order_by(spec.point_features, dataset.features, "the point", "X")
    return spec.point if order is None else tuple(spec.point[place] for place in order)


def translate(dataset: Dataset, point: Sequence[float]) -> Dataset:
    """The points x_j as differences x_j - p, all with label +1. Raises BadInputError when p has another number of features."""
    p: Floats = exact(point, np.float64, "the point")
    if p.shape != (dataset.m,) or not np.isfinite(p).all():
        raise BadInputError(f"the point has {p.size} entries, expected {dataset.m} that are finite, as {dataset.where} has")

    def subtract(points: Points, buffers: Buffers) -> AnyArray:
        rows = points if is_dense(points) else dense(points)
        wide = buffers.take("seen", rows.size * 8).view(np.float64).reshape(rows.shape)
        return np.subtract(rows, p, out=wide, dtype=np.float64)

    return Dataset(
        where=dataset.where,
        n=dataset.n,
        m=dataset.m,
        dtype=np.dtype(np.float64),
        block_rows=dataset.block_rows,
        together=dataset.together,
        points=TranslatedReader(dataset, subtract, p),
        labels=array_reader("label", np.ones(dataset.n, np.int8), dataset.block_rows),
        features=dataset.features,
        ids=dataset.ids,
    )


def require_names(features: Sequence[str], names: Sequence[str], where: str, whose: str) -> None:
    """Raise BadInputError for features of points that are not those names in their order, where both have names."""
    what = difference(features, names)
    if what:
        raise BadInputError(f"{where}: {what} than {whose}; give them as there")


def transform_features(dataset: Dataset, transform: Transform) -> Dataset:
    """The same points seen so; its fingerprint is that of the stored points and of the numbers. Raises CorruptDataError when
    the numbers are for another number of features, or of points.
    """
    m = dataset.m
    if {len(transform.shift), len(transform.factor)} - {0, m} or not 0 < transform.points <= dataset.n:
        raise CorruptDataError(
            f"{dataset.where}: {dataset.n} points of {m} features, the transform is one of {transform.points} points of "
            f"{max(len(transform.shift), len(transform.factor))}"
        )
    if not transform.features:
        return dataset.seen_with(transform=transform)
    shift = np.array(transform.shift) if transform.shift else None
    factor = np.array(transform.factor) if transform.factor else None

    def change(points: Points, buffers: Buffers) -> Points:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # the survey refuses what is not finite
            if not is_dense(points):
                assert factor is not None, "sparse points are scaled, not centred"
                return csr.with_data(points, points.data * factor[points.indices])
            wide = buffers.take("transformed", points.size * 8).view(np.float64).reshape(points.shape)
            if shift is not None:
                np.subtract(points, shift, out=wide, dtype=np.float64)
                return wide if factor is None else np.multiply(wide, factor, out=wide)
            assert factor is not None, "something changes"
            np.multiply(points, factor, out=wide, dtype=np.float64)
            return wide

    entries = dataset.entries
    if entries is not None:
        more = 8 - dataset.dtype.itemsize
        bytes_of_all = entries.bytes + int(entries.offsets[-1]) * more
        entries = Entries(entries.offsets, bytes_of_all, entries.block_bytes + int(np.diff(entries.offsets).max()) * more)
    inner = dataset.without_cache()
    changes = {"dtype": np.dtype(np.float64), "points": MappedReader(inner, change), "entries": entries, "stored": inner}
    return dataset.seen_with(transform=transform, stored_norms=None, header=None, expected=None, **changes)


def stored_rows(dataset: Dataset, points: NDArray[np.int64]) -> tuple[Points, NDArray[np.generic]]:
    """Some points (s, m), ascending, and their labels (s,), as stored; reads their blocks."""
    rows: list[Points] = []
    labels = []
    buffers = Buffers()
    block = points // dataset.block_rows
    for index in np.unique(block):
        here = points[block == index] - index * dataset.block_rows
        rows.append(dataset.points.read(int(index), buffers)[here])
        labels.append(dataset.labels.read(int(index), buffers)[here])
    return stack_points(rows), np.concatenate(labels)


def signed_rows(dataset: Dataset, points: NDArray[np.int64]) -> NDArray[np.float64]:
    """l_j x_j (s, d) of some points, as stored, with the intercept; reads their blocks."""
    order = np.argsort(points)
    stored, labels = stored_rows(dataset, points[order])
    rows = np.ones((len(points), dataset.dimension))
    rows[order, : dataset.m] = dense(stored)
    rows[order] *= dataset.signs(labels)[:, None]
    return rows
