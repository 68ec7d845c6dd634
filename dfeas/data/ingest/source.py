"""Sources of points: blocks that follow each other, with the labels that come with them, as a dataset will have them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from threading import Event
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dfeas.data.ids import Ids
from dfeas.data.labels import Categories, LabelEncoder
from dfeas.data.storage.layout import default_block_rows
from dfeas.data.storage.patience import wait_until
from dfeas.errors import BadInputError
from dfeas.linalg.points import Points, is_dense, stack_points

MANY = 1 << 60
"""More points than there are: n of a source that has not ended."""
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive points with their labels."""

    points: Points  # (b, m) of the source's dtype, C order or CSR
    labels: Categories  # (b,)


class PointReader(Protocol):
    """Points with the labels that come with them, read in order."""

    where: str  # for messages

    def blocks(self, first: int, stop: int | None, rows: int) -> Iterator[tuple[Points, list[Categories]]]:
        """Points first .. stop-1, or all, in blocks of ``rows``, the last one shorter, with such labels as come with them.
        Raises BadInputError or CorruptDataError where they cannot be used.
        """


class PointSource(PointReader):
    """All points of a source, of which maybe any run can be read."""

    n: int | None = None  # points, where that is known before they are read
    m: int
    dtype: np.dtype[Any]
    sparse = False  # whether the points are CSR matrices
    features: tuple[str, ...] = ()  # names of the m features that are kept; empty where there are none
    run_rows = 1  # points that are read together at least
    table = False  # whether features are columns that may be left out
    whole = False  # whether the points of a piece come all at once, so that nobody makes large ones unasked
    notes: tuple[str, ...] = ()  # what is cast or dropped, for the user
    ids: Ids | None = None  # names of the points, which are read apart from them
    files: tuple[tuple[str, int], ...] = ()  # of a folder: each by its name there, and how many points it has

    def part(self, first: int, stop: int) -> PointReader:
        """What it takes to read points first .. stop-1: small enough to travel with every piece of work."""
        return self

    def describe(self, rows: int) -> None:
        """Add to the notes what depends on the rows of a block. Raises BadInputError for points that are too wide."""

    def usual_rows(self, dtype: np.dtype[Any]) -> int:
        """Rows of a block in this type, where none are asked for."""
        return default_block_rows(self.m, dtype.itemsize, MANY)

    def total(self, done: int) -> int:
        """Points in all, as far as the source tells after ``done`` of them."""
        return done if self.n is None else self.n


def in_order(work: Callable[[T], R], items: Iterable[T]) -> Generator[R, None, None]:
    """``work(item)`` of each item in order, by threads that are a few items ahead."""
    waiting: deque[Future[R]] = deque()
    ended = Event()
    threads = 2  # that parse; the rest of ingest takes about as much as one of them leaves free
    with ThreadPoolExecutor(threads, "dfeas-parse", wait_until, (ended,)) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            ended.set()
            pool.shutdown(cancel_futures=True)


def cut(batches: Generator[Batch, None, None], rows: int) -> Iterator[tuple[Points, list[Categories]]]:
    """The same points in blocks of ``rows``, the last one shorter, each with the labels of its pieces."""
    pieces: list[Batch] = []
    held = 0
    with closing(batches):
        for batch in batches:
            first, size = 0, batch.points.shape[0]
            while held + size - first >= rows:
                stop = first + rows - held
                yield _join([*pieces, Batch(batch.points[first:stop], batch.labels[first:stop])])
                pieces, held, first = [], 0, stop
            if first < size:
                pieces.append(Batch(batch.points[first:], batch.labels[first:]))
                held += size - first
    if pieces:
        yield _join(pieces)


def _join(pieces: list[Batch]) -> tuple[Points, list[Categories]]:
    points = pieces[0].points if len(pieces) == 1 else stack_points([piece.points for piece in pieces])
    return points, [piece.labels for piece in pieces]


def stack_columns(columns: Sequence[NDArray[Any]], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Points (b, m) from m columns (b,), cast to ``dtype``."""
    points = np.empty((len(columns[0]), len(columns)), dtype)
    # entries that are transposed at a time: they stay in cache, which takes half the time
    size = max(64, (1 << 15) // len(columns))
    for first in range(0, len(points), size):
        rows = slice(first, first + size)
        np.stack([column[rows] for column in columns], axis=1, out=points[rows])
    return points


def round_points(points: Points, dtype: np.dtype[Any], first: int, where: str) -> Points:
    """Points from ``first`` on in another type. Raises BadInputError for an entry that would be infinite."""
    if points.dtype == dtype:
        return points
    with np.errstate(over="ignore"):
        narrow = points.astype(dtype)
    large = np.argwhere(np.isinf(narrow if is_dense(narrow) else narrow.data))
    if len(large):
        values = points if is_dense(points) else points.data
        at = f"point {first + large[0][0]}" if is_dense(points) else f"from point {first} on"
        raise BadInputError(f"{where}: {at}: {values[tuple(large[0])]:g} is too large for {dtype}; store float64")
    return narrow


@dataclass(frozen=True)
class Partition:
    """Points of a source, from the beginning of a block on."""

    source: PointReader
    dtype: np.dtype[Any]  # of what is stored
    rows: int  # of a block
    label: NDArray[Any] | None  # of these points, as they are stored; None where labels come with them
    first: int = 0
    stop: int | None = None

    def blocks(self, encoder: LabelEncoder) -> Generator[tuple[Points, NDArray[Any]], None, None]:
        """Blocks as they are stored, or with codes. Raises BadInputError where there is not one label for each point."""
        at, where = self.first, self.source.where
        for points, labels in self.source.blocks(self.first, self.stop, self.rows):
            stop = at + points.shape[0]
            if self.label is not None and stop - self.first > len(self.label):
                raise other_length(where, len(self.label), f"{stop} or more")
            known = None if self.label is None else self.label[at - self.first : stop - self.first]
            yield round_points(points, self.dtype, at, where), encoder.encode_all(labels, at) if known is None else known
            at = stop
        if self.label is not None and len(self.label) > at - self.first:
            raise other_length(where, len(self.label), f"{at}")


def other_length(where: str, labels: int, points: str) -> BadInputError:
    """The error for labels beside points that are not one for each."""
    return BadInputError(f"labels of {where}: {labels} labels for {points} points; give one a point")
