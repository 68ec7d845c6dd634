"""Streams: sources whose points come in batches with their labels, in order, and that are read once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from dfeas.passes.points import Points, stacked
from dfeas.store.signs import Coded

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
