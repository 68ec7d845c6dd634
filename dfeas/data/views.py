"""Points as they are seen, and not as they are stored: from another point, centred and scaled, or some of several stores.

Blocks are made of those of other datasets when they are read, which verify themselves; nothing is written. Transformed points
are z = (x - shift) * factor in float64: an entry has one rounding of the difference and one of the product. Picked points,
those that a mask keeps or all of each store, in order, begin anywhere in a block of a store: one may be read for two of them.
Of cones a mask keeps whole ones, and rows of zeros fill chunks up, as on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.dataset import AHEAD, Dataset, array_reader
from dfeas.data.picks import Picks
from dfeas.data.product import Placing, booleans, cones_kept
from dfeas.data.source import DataSpec, Transform
from dfeas.data.storage.features import difference
from dfeas.data.storage.layout import PADDING, chunks_together
from dfeas.data.storage.numbers import exact
from dfeas.data.storage.readers import AnyArray, Buffers, Cost, Looks, RowReader
from dfeas.data.storage.sparse_readers import Entries, index_size
from dfeas.data.storage.zarr_arrays import load_npy
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.linalg import csr
from dfeas.linalg.points import Points, dense, is_dense, stack_points
from dfeas.linalg.points import take_rows as picked_rows

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MappedReader:
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


@dataclass(frozen=True)
class TranslatedReader(MappedReader):
    """A reader of x_j - p, in float64: each entry is the exact difference with a relative error of at most 2**-53."""

    point: Floats  # (m,)

    @classmethod
    def of(cls, inner: Dataset, point: Floats) -> TranslatedReader:
        """Of points seen from a point (m,)."""

        def differences(points: Points, buffers: Buffers) -> AnyArray:
            rows = points if is_dense(points) else dense(points)
            wide = buffers.take("seen", rows.size * 8).view(np.float64).reshape(rows.shape)
            return np.subtract(rows, point, out=wide, dtype=np.float64)

        return cls(inner, differences, point)

    def read_stored(self, index: int, buffers: Buffers) -> AnyArray:
        """Rows as they are stored."""
        points = self.inner.read(index, buffers, Cost()).points
        return points if is_dense(points) else dense(points)


def point_in_order(dataset: Dataset, spec: DataSpec) -> tuple[float, ...]:
    """The entries of a point in the order of the features. Raises BadInputError for others, where both have names."""
    assert spec.point is not None, "a point is asked about"
    names, features = spec.point_features, dataset.features
    if not names or not features:
        return spec.point
    if sorted(names) != sorted(features):
        raise BadInputError(f"the point: {difference(names, features)} than X; name all features, each once")
    place = {name: i for i, name in enumerate(names)}
    return tuple(spec.point[place[name]] for name in features)


def seen_from(dataset: Dataset, point: Sequence[float]) -> Dataset:
    """The points x_j as differences x_j - p, all with label +1. Raises BadInputError when p has another number of features."""
    p = exact(point, np.float64, "the point")
    if p.shape != (dataset.m,) or not np.isfinite(p).all():
        raise BadInputError(f"the point has {p.size} entries, expected {dataset.m} that are finite, as {dataset.where} has")
    return Dataset(
        where=dataset.where,
        n=dataset.n,
        m=dataset.m,
        dtype=np.dtype(np.float64),
        block_rows=dataset.block_rows,
        together=dataset.together,
        points=TranslatedReader.of(dataset, p),
        labels=array_reader("label", np.ones(dataset.n, np.int8), dataset.block_rows),
        features=dataset.features,
    )


def require_features(dataset: Dataset, names: Sequence[str], whose: str) -> None:
    """Raise BadInputError for points with other features, or the same in another order, where both have names."""
    require_names(dataset.features, names, dataset.where, whose)


def require_names(features: Sequence[str], names: Sequence[str], where: str, whose: str) -> None:
    """Raise BadInputError for features of points that are not those names in their order, where both have names."""
    what = difference(features, names)
    if what:
        raise BadInputError(f"{where}: {what} than {whose}; give them as there")


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
    inner = dataset.uncached()
    changes = {"dtype": np.dtype(np.float64), "points": MappedReader(inner, change), "entries": entries, "stored": inner}
    return dataset.seen_with(transform=transform, stored_norms=None, header=None, expected=None, **changes)


@dataclass(frozen=True)
class SubsetReader:
    """A reader of picked points."""

    parts: tuple[Dataset, ...]
    starts: NDArray[np.int64]  # (parts + 1,) numbers of the first point of each, all counted through
    rows: NDArray[np.int64] | Picks | None  # (n,) ascending numbers of points, counted through, -1 for zeros; None for all
    n: int
    block_rows: int

    overlaps = False  # a thread reads ahead

    @property
    def distant(self) -> bool:
        """Whether blocks of a store come over a network."""
        return any(part.points.distant for part in self.parts)

    def _wanted(self, index: int) -> NDArray[np.int64]:
        """The points (b,) of a block, by their numbers; -1 for zeros, which fill its chunks up."""
        first, stop = index * self.block_rows, min(self.n, (index + 1) * self.block_rows)
        return np.arange(first, stop) if self.rows is None else self.rows[first:stop]

    def _pieces(self, index: int) -> Iterator[tuple[Dataset, int, NDArray[np.int64]]]:
        """(store, block in it, rows of that block) of a block."""
        wanted = self._wanted(index)
        wanted = wanted[wanted >= 0]
        for part, start, end in zip(self.parts, self.starts[:-1], self.starts[1:], strict=True):
            here = wanted[np.searchsorted(wanted, start) : np.searchsorted(wanted, end)] - start
            for block in np.unique(here // part.block_rows):
                begin = int(block) * part.block_rows
                low, high = np.searchsorted(here, [begin, begin + part.block_rows])
                yield part, int(block), here[low:high] - begin

    def read(self, index: int, buffers: Buffers) -> Points:
        first, there = self.parts[0], self._wanted(index) >= 0
        if first.entries is not None:
            some = stack_points([picked_rows(points, chosen) for points, chosen in self._gathered(index, buffers)])
            return some if is_dense(some) else csr.spread(some, there)
        rows = len(there)
        out = buffers.take("picked", rows * first.m * first.dtype.itemsize).view(first.dtype).reshape(rows, first.m)
        places = None if there.all() else np.flatnonzero(there)
        done = 0
        for points, chosen in self._gathered(index, buffers):
            into = slice(done, done + len(chosen))
            out[into if places is None else places[into]] = picked_rows(points, chosen)
            done += len(chosen)
        if places is not None:
            out[~there] = 0
        return out

    def _gathered(self, index: int, buffers: Buffers) -> Iterator[tuple[Points, NDArray[np.int64]]]:
        """Blocks of the stores, and the rows that are wanted of each; a block is read over by the next one."""
        pieces = list(self._pieces(index))
        self._ask(pieces[:AHEAD])
        for place, (part, block, chosen) in enumerate(pieces):
            self._ask(pieces[place + AHEAD : place + AHEAD + 1])
            yield part.read(block, buffers, Cost()).points, chosen

    def entries(self) -> Entries | None:
        """How much sparse points store: what blocks of the stores do, in the share in which their rows are wanted."""
        if any(part.entries is None for part in self.parts):
            return None
        blocks = range(-(-self.n // self.block_rows))
        sizes = [sum(_average(part, block) * len(chosen) for part, block, chosen in self._pieces(index)) for index in blocks]
        offsets = np.cumsum([0, *map(ceil, sizes)])
        return Entries.of(self.n, offsets, self.block_rows, self.parts[0].dtype.itemsize, index_size(self.parts[0].m))

    def _ask(self, pieces: Sequence[tuple[Dataset, int, NDArray[np.int64]]]) -> None:
        if self.distant:
            for part, block, _ in pieces:
                part.advise(block)

    def advise(self, index: int) -> None:
        """Nothing to do: a thread reads ahead."""

    def stamp(self, index: int, looks: Looks | None = None) -> int | None:
        """Of all blocks that it is gathered from."""
        stamps = [part.points.stamp(block, looks) for part, block, _ in self._pieces(index)]
        return None if any(stamp is None for stamp in stamps) else hash(tuple(stamps))


def picked(parts: Sequence[Dataset], mask: Any = None) -> Dataset:
    """Several datasets as one, and of it the points for which ``mask`` (n,) is true.

    Raises BadInputError when features, their names, types, classes or the length of the mask differ, or nothing is kept.
    """
    first, named = parts[0], next((part for part in parts if part.features), parts[0])
    for part in parts[1:]:
        require_features(part, named.features, named.where)
        for name in ("m", "dtype", "classes", "positive"):
            was, now = getattr(first, name), getattr(part, name)
            if was != now:
                raise BadInputError(
                    f"{part.where}: its {_NAMES[name]} are {now}, those of {first.where} {was}; ingest them alike"
                )
        if (first.entries is None) != (part.entries is None):
            raise BadInputError(f"{part.where}: one of it and {first.where} is sparse, the other dense; ingest them alike")
    mask = None if mask is None else booleans(mask)
    starts = np.cumsum([0, *(part.n for part in parts)])
    total = int(starts[-1])
    where = " and ".join(part.where for part in parts)
    rows = None if mask is None else _kept(mask, total, where)
    n = total if rows is None else len(rows)
    labels = first.signs(np.concatenate([label for part in parts for label in _all_of(part, part.labels)]))
    labels = labels if rows is None else labels[mask]
    chunk_rows = min(n, first.chunk_rows)
    together = chunks_together(chunk_rows, first.block_rows, n)
    block_rows = together * chunk_rows
    points = SubsetReader(tuple(parts), starts, rows, n, block_rows)
    return Dataset(
        where=where,
        n=n,
        m=first.m,
        dtype=first.dtype,
        block_rows=block_rows,
        together=together,
        points=points,
        labels=array_reader("label", labels, block_rows),
        classes=first.classes,
        intercept=first.intercept,
        numbers=rows,
        features=named.features,
        entries=points.entries(),
    )


def masked(dataset: Dataset, mask: Any = None) -> Dataset:
    """The points, or the cones, of one dataset for which ``mask`` is true. Raises BadInputError as ``picked`` does."""
    return _cones_picked(dataset, mask) if dataset.cones is not None else picked([dataset], mask)


def _cones_picked(dataset: Dataset, mask: Any) -> Dataset:
    """The cones that a mask keeps, placed in chunks of the same rows, which other rows of zeros may fill up."""
    if dataset.program is not None:
        raise UsageError("a mask is for rows of cones: of A, b and cones give those that are to count")
    assert dataset.stored_norms is not None, "norms of cones come with them"
    stored = np.concatenate(list(_all_of(dataset, dataset.labels)))
    product, kept = cones_kept(mask, stored, dataset.where)
    placing = Placing(product, min(dataset.chunk_rows, product.table.rows))
    together = chunks_together(placing.block_rows, dataset.block_rows, placing.n)
    block_rows = together * placing.block_rows
    some = placing.source >= 0
    rows, numbers, norm = np.full(placing.n, -1, np.int64), np.full(placing.n, -1, np.int64), np.ones(placing.n)
    rows[some], numbers[some] = np.flatnonzero(stored != PADDING)[kept], kept
    norm[some] = np.concatenate(list(_all_of(dataset, dataset.stored_norms)))[rows[some]]
    points = SubsetReader((dataset,), np.array([0, dataset.n]), rows, placing.n, block_rows)
    return Dataset(
        where=dataset.where,
        n=placing.n,
        m=dataset.m,
        dtype=dataset.dtype,
        block_rows=block_rows,
        together=together,
        points=points,
        labels=array_reader("label", placing.label, block_rows),
        stored_norms=array_reader("norm", norm, block_rows),
        numbers=numbers,
        features=dataset.features,
        entries=points.entries(),
        cones=product.table,
    )


def _average(part: Dataset, block: int) -> float:
    assert part.entries is not None, "sparse points have entries"
    first, stop = part.entries.offsets[block : block + 2].tolist()
    return float(stop - first) / min(part.block_rows, part.n - block * part.block_rows)


def _all_of(part: Dataset, reader: RowReader) -> Iterator[NDArray[Any]]:
    for index in range(part.blocks):
        if index + AHEAD < part.blocks:
            reader.advise(index + AHEAD)
        yield reader.read(index, Buffers()).copy()


_NAMES = {"m": "features", "dtype": "entries", "classes": "classes", "positive": "labels"}


def open_mask(path: Path) -> NDArray[Any]:
    """A mask by path. Raises BadInputError when there is none, CorruptDataError when it is damaged."""
    if not path.is_file():
        raise BadInputError(f"{path}: no such file (mask)")
    return load_npy(path)


def _kept(values: NDArray[Any], n: int, where: str) -> Picks:
    if values.shape != (n,) or values.dtype != np.bool_:
        raise BadInputError(
            f"the mask has shape {values.shape} and type {values.dtype}, expected {n} booleans, one for each point of {where}"
        )
    if not values.any():
        raise BadInputError(f"the mask keeps none of the {n} points of {where}")
    return Picks.of(values)


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
