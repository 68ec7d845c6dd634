"""Streams: sources whose points come in batches with their labels, in order, and that are read once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, TypeVar

import numpy as np

from dfeas.data.labels import Coded, Codes, KnownLabels, coded, require_usable
from dfeas.data.storage.layout import Header, default_block_rows, sparse_block_rows
from dfeas.data.writers.dataset import DatasetWriter, Labelled, Progress, write_in_order
from dfeas.errors import BadInputError
from dfeas.linalg.points import Points, is_dense, stacked

THREADS = 2
"""That parse; the rest of ingest takes about as much as one of them leaves free."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive points with their labels."""

    points: Points  # (b, m) of the stream's dtype, C order or CSR
    labels: Coded  # (b,)


class Stream(Protocol):
    """A source that is read once, in order."""

    where: str  # for messages
    m: int
    dtype: np.dtype[Any]  # of what is stored
    notes: list[str]  # what was cast or dropped, for the user
    sparse: bool  # whether the points are CSR matrices

    @property
    def names(self) -> Sequence[str] | None:
        """Of the m features, where they have any."""

    def batches(self) -> Generator[Batch, None, None]:
        """All points. Raises BadInputError or CorruptDataError where they cannot be used."""

    def total(self, done: int) -> int:
        """Points in all, as far as the source tells after ``done`` of them."""


def in_order(work: Callable[[T], R], items: Iterable[T]) -> Generator[R, None, None]:
    """``work(item)`` of each item in order, by threads that are a few items ahead."""
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(THREADS, "dfeas-parse") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > THREADS:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def blocks(batches: Iterable[Batch], rows: int) -> Iterator[tuple[Points, list[Coded]]]:
    """The same points in blocks of ``rows``, the last one shorter, each with the labels of its pieces."""
    pieces: list[Batch] = []
    held = 0
    for batch in batches:
        first, size = 0, batch.points.shape[0]
        while held + size - first >= rows:
            stop = first + rows - held
            yield _joined([*pieces, Batch(batch.points[first:stop], batch.labels[first:stop])])
            pieces, held, first = [], 0, stop
        if first < size:
            pieces.append(Batch(batch.points[first:], batch.labels[first:]))
            held += size - first
    if pieces:
        yield _joined(pieces)


def _joined(pieces: list[Batch]) -> tuple[Points, list[Coded]]:
    points = pieces[0].points if len(pieces) == 1 else stacked([piece.points for piece in pieces])
    return points, [piece.labels for piece in pieces]


class Changed:
    """The points of a stream with labels (n,) of another source, where they are given, as ``dtype``, where that is."""

    def __init__(self, stream: Stream, labels: Any = None, dtype: str | None = None) -> None:
        self._stream, self.where, self.m = stream, stream.where, stream.m
        self._labels = None if labels is None else np.asarray(labels)
        if self._labels is not None:
            require_usable(self._labels, f"labels of {self.where}")
            if self._labels.shape not in ((len(self._labels),), (len(self._labels), 1)):
                raise BadInputError(f"labels of {self.where}: expected an array (n,), got shape {self._labels.shape}")
        self.sparse = stream.sparse
        self.dtype = stream.dtype if dtype is None else np.dtype(dtype)
        self.notes = stream.notes + ([] if self.dtype == stream.dtype else [f"rounded to {self.dtype}, as asked"])

    @property
    def labels(self) -> Any:
        """Those of the other source (n,) or (n, 1), which can be used; None without one."""
        return self._labels

    @property
    def names(self) -> Sequence[str] | None:
        """Of the features; see Stream."""
        return self._stream.names

    def total(self, done: int) -> int:
        """Points in all; see Stream."""
        return self._stream.total(done)

    def batches(self) -> Generator[Batch, None, None]:
        """All points; see Stream. Raises BadInputError where there is not one label for each."""
        done = 0
        with closing(self._stream.batches()) as batches:
            for batch in batches:
                stop = done + batch.points.shape[0]
                yield Batch(rounded(batch.points, self.dtype, done, self.where), self._labels_of(done, stop) or batch.labels)
                done = stop
        if self._labels is not None and len(self._labels) != done:
            raise self._other_length(f"{done}")

    def _labels_of(self, first: int, stop: int) -> Coded | None:
        if self._labels is None:
            return None
        if stop > len(self._labels):
            raise self._other_length(f"{stop} or more")
        return Coded.of(self._labels[first:stop].reshape(-1))

    def _other_length(self, points: str) -> BadInputError:
        assert self._labels is not None
        return BadInputError(f"labels of {self.where}: {len(self._labels)} labels for {points} points; give one a point")


def rounded(points: Points, dtype: np.dtype[Any], first: int, where: str) -> Points:
    """Points from ``first`` on in another type. Raises BadInputError for an entry that would be infinite."""
    if points.dtype == dtype:
        return points
    with np.errstate(over="ignore"):
        found = points.astype(dtype)
    large = np.argwhere(np.isinf(found if is_dense(found) else found.data))
    if len(large):
        values = points if is_dense(points) else points.data
        at = f"point {first + large[0][0]}" if is_dense(points) else f"from point {first} on"
        raise BadInputError(f"{where}: {at}: {values[tuple(large[0])]:g} is too large for {dtype}; store float64")
    return found


MANY = 1 << 60
"""More points than there are: n of a stream that has not ended."""

GROWTH = 64
"""Blocks for which room is made at a time, at least; the arrays grow by a quarter."""


class Streaming:
    """Batches in order become blocks, and their labels codes, or signs where ``positive`` or ``known`` tell them."""

    def __init__(self, stream: Stream, positive: str | None, known: KnownLabels | None) -> None:
        self._stream, self._known = stream, known
        self._codes = Codes(positive, f"labels of {stream.where}", known)
        self._provisional = positive is None and known is None
        self._n = 0  # points that came so far

    def write(self, make: Callable[..., DatasetWriter], block_rows: int | None, progress: Progress | None) -> Header:
        """Make the dataset with ``make``, fill and finish it. Raises BadInputError for a stream without points."""
        stream = self._stream
        with closing(stream.batches()) as batches:
            begin = next(batches, None)
            if begin is None:
                raise BadInputError(f"{stream.where}: no points")
            pieces = blocks(chain([begin], batches), block_rows or usual_rows(begin.points, stream.dtype))
            first = next(pieces)
            size = first[0].shape[0]  # less than ``rows`` when it is the only block
            target = make(size, stream.m, stream.dtype, size, stream.names, self._codes.dtype, provisional=self._provisional)
            write_in_order(target, self._labelled(target, chain([first], pieces)), self._telling(progress))
        target.resize(self._n)
        if progress is not None:
            progress(self._n, self._n)
        return self._finished(target)

    def _labelled(self, target: DatasetWriter, pieces: Iterable[tuple[Points, list[Coded]]]) -> Iterator[Labelled]:
        """Blocks with their codes; the dataset grows before they are written."""
        for points, labels in pieces:
            codes = coded(self._codes, labels, self._n)
            self._n += len(codes)
            if self._n > target.n:
                target.resize(self._n + target.block_rows * max(GROWTH, target.blocks // 4))
            yield points, codes

    def _finished(self, target: DatasetWriter) -> Header:
        """Labels become what they are to be, now that all classes are known."""
        if self._known is not None:
            return target.finish(self._known.classes, known=True)
        classes, table = self._codes.settle(self._n)
        if table is not None:
            target.relabel(lambda index: table)
        return target.finish(classes.classes)

    def _telling(self, progress: Progress | None) -> Callable[[int], None]:
        """Tells the progress, never that all is done."""

        def told(done: int) -> None:
            if progress is not None and done < self._n:
                progress(done, max(self._n + 1, self._stream.total(self._n)))

        return told


def usual_rows(points: Points, dtype: np.dtype[Any]) -> int:
    """Rows of a block in this type; of sparse points as many as suit the first of them."""
    if is_dense(points):
        return default_block_rows(points.shape[1], dtype.itemsize, MANY)
    return sparse_block_rows(points.nnz / points.shape[0], dtype.itemsize + 4, MANY)
