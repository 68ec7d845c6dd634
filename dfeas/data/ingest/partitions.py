"""All points of a source on their way into a dataset: partitions are read, their labels encoded, and blocks written.

This process does it in order, or a pool of processes does, piece by piece, of sources whose partitions can be read apart.
They write into a folder OUT/part-.. with a name of its own. When all is there its files move into OUT, the marker last: what a
killed ingest left behind on some worker never reaches the dataset that is written after it.
"""

from __future__ import annotations

import shutil
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dfeas.data.labels import CODE, Categories, LabelEncoder
from dfeas.data.storage.files import sync
from dfeas.data.storage.layout import MARKER, SPARSE_BLOCK_BYTES, Header, default_block_rows
from dfeas.data.storage.places import Place
from dfeas.data.writers.dataset import ASIDE, DatasetWriter, Labelled, Pool, Progress, write_blocks
from dfeas.data.writers.ledger import Ledger
from dfeas.data.writers.shards import chunks_of_shard
from dfeas.data.writers.sparse import SparsePieces, SparseWriter
from dfeas.errors import BadInputError
from dfeas.linalg.points import Points, is_dense, stack_points

THREADS = 2
"""That parse; the rest of ingest takes about as much as one of them leaves free."""

MANY = 1 << 60
"""More points than there are: n of a source that has not ended."""

GROWTH = 64
"""Blocks for which room is made at a time, at least; the arrays grow by a quarter."""

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
    parallel = False  # whether several threads may read blocks, in any order
    whole = False  # whether the points of a piece come all at once, so that nobody makes large ones unasked
    notes: tuple[str, ...] = ()  # what is cast or dropped, for the user

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


def cut(batches: Generator[Batch, None, None], rows: int) -> Iterator[tuple[Points, list[Categories]]]:
    """The same points in blocks of ``rows``, the last one shorter, each with the labels of its pieces."""
    pieces: list[Batch] = []
    held = 0
    with closing(batches):
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


def _joined(pieces: list[Batch]) -> tuple[Points, list[Categories]]:
    points = pieces[0].points if len(pieces) == 1 else stack_points([piece.points for piece in pieces])
    return points, [piece.labels for piece in pieces]


def rounded(points: Points, dtype: np.dtype[Any], first: int, where: str) -> Points:
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

    def blocks(self, encoder: LabelEncoder) -> Generator[Labelled, None, None]:
        """Blocks as they are stored, or with codes. Raises BadInputError where there is not one label for each point."""
        at, where = self.first, self.source.where
        for points, labels in self.source.blocks(self.first, self.stop, self.rows):
            stop = at + points.shape[0]
            if self.label is not None and stop - self.first > len(self.label):
                raise other_length(where, len(self.label), f"{stop} or more")
            known = None if self.label is None else self.label[at - self.first : stop - self.first]
            yield rounded(points, self.dtype, at, where), encoder.encode_all(labels, at) if known is None else known
            at = stop
        if self.label is not None and len(self.label) > at - self.first:
            raise other_length(where, len(self.label), f"{at}")


def other_length(where: str, labels: int, points: str) -> BadInputError:
    """The error for labels beside points that are not one for each."""
    return BadInputError(f"labels of {where}: {labels} labels for {points} points; give one a point")


@dataclass(frozen=True)
class Done:
    """What became of a piece."""

    block: int  # its first one
    points: int
    written: Ledger
    labels: list[Any]  # the label of each code that it wrote, where labels came with the points


@dataclass(frozen=True)
class Piece:
    """Blocks that are read and written in one go."""

    part: Partition
    target: DatasetWriter

    def write(self) -> Done:
        begin, points = self.part.first // self.part.rows, 0
        encoder = LabelEncoder(f"labels of {self.part.source.where}")
        for index, (block, label) in enumerate(self.part.blocks(encoder), begin):
            self.target.write(index, block, label)
            points += len(label)
        self.target.end_shards()
        return Done(begin, points, self.target.written, encoder.values)


@dataclass
class Ingest:
    """All points of a source, and what is made of them."""

    source: PointSource
    dtype: np.dtype[Any]  # of what is stored
    rows: int  # of a block
    label: NDArray[Any] | None  # (n,) as they are stored; None where labels come with the points
    classes: tuple[str, ...]  # of ``label``
    encoder: LabelEncoder  # of labels that come with the points
    progress: Progress | None
    shard: int | None = None  # bytes; None: as suits those of all points
    _n: int = 0  # points that came so far

    piece_bytes: ClassVar[int] = 64 << 20
    """Of points that are written in one piece of work."""

    def in_order(self, path: Place) -> Header:
        """Write the dataset, by threads of this process. Raises BadInputError for a source without points."""
        source, kind = self.source, SparseWriter if self.source.sparse else DatasetWriter
        if source.parallel:
            self._n = source.n or 0
            target = self._target(kind, path, self._n, self.rows)
            write_blocks(target, (partial(_only_block, part, self.encoder) for part in self._parts(self._n, 1)), self._tell)
        else:
            with closing(Partition(source, self.dtype, self.rows, self.label).blocks(self.encoder)) as blocks:
                first = next(blocks, None)
                if first is None:
                    raise BadInputError(f"{source.where}: no points")
                size = len(first[1])  # less than ``rows`` when it is the only block
                target = self._target(kind, path, source.n or size, size)
                write_blocks(target, self._grown(target, chain([first], blocks)), self._tell)
            if target.n != self._n:
                target.resize(self._n)
        if self.progress is not None:
            self.progress(self._n, self._n)
        return self._finished(target)

    def _grown(self, target: DatasetWriter, blocks: Iterable[Labelled]) -> Iterator[Callable[[], Labelled]]:
        for block in blocks:
            self._n += len(block[1])
            if self._n > target.n:
                target.resize(self._n + target.block_rows * max(GROWTH, target.blocks // 4))
            yield partial(_itself, block)

    def _tell(self, done: int) -> None:
        if self.progress is not None and done < self._n:
            self.progress(done, max(self._n + (self.source.n is None), self.source.total(self._n)))

    def spread(self, path: Path, pool: Pool, where: str) -> Header:
        """Write the dataset that messages call ``where``, by a pool of processes. Raises BadInputError as ``in_order``."""
        source, n = self.source, self.source.n
        if not n:
            raise BadInputError(f"{source.where}: no points")
        if self.label is not None and len(self.label) != n:
            raise other_length(source.where, len(self.label), f"{n}")
        target = self._target(SparsePieces if source.sparse else DatasetWriter, path / f"part-{uuid.uuid4().hex}", n, self.rows)
        target.where = where
        tables: dict[int, NDArray[Any]] = {}  # by the first block of a piece: what its codes are among those of all
        for piece in pool(Piece.write, self._pieces(target, n)):
            target.written.add(piece.written)
            if piece.labels:
                values = Categories(np.arange(len(piece.labels)), piece.labels)
                tables[piece.block] = self.encoder.encode(values, piece.block * self.rows)
            self._n += piece.points
            if self.progress is not None:
                self.progress(self._n, n)
        if isinstance(target, SparsePieces):
            target.join(pool)
        header = self._finished(target, tables)
        _move(target.path, path)
        return header

    def _target(self, kind: type[DatasetWriter], path: Place, n: int, rows: int) -> DatasetWriter:
        label, shard = CODE if self.label is None else self.label.dtype, self._shard(n, rows)
        return kind(path, n, self.source.m, self.dtype, rows, self.source.features, label, self.label is None, shard)

    def _shard(self, n: int, rows: int) -> int:
        """How many blocks a shard has, when it is known of n points that there are; 0 without shards."""
        if self.source.whole and self.shard is None:
            return 0
        block = SPARSE_BLOCK_BYTES if self.source.sparse else rows * self.source.m * self.dtype.itemsize
        return chunks_of_shard(self.shard, -(-self.source.total(n) // rows) * block, block)

    @property
    def _step(self) -> int:
        """How many blocks a piece has: a shard is written by one process."""
        shard = self._shard(self.source.n or 0, self.rows)
        if shard:
            return shard
        points = self.piece_bytes // (self.source.m * self.dtype.itemsize)
        blocks = (
            self.piece_bytes // SPARSE_BLOCK_BYTES if self.source.sparse else max(self.source.run_rows, points) // self.rows
        )
        return max(1, blocks)

    def _parts(self, n: int, step: int) -> Iterator[Partition]:
        for first in range(0, n, step * self.rows):
            stop = min(n, first + step * self.rows)
            label = None if self.label is None else self.label[first:stop]
            yield Partition(self.source, self.dtype, self.rows, label, first, stop)

    def _pieces(self, target: DatasetWriter, n: int) -> Iterator[Piece]:
        for part in self._parts(n, self._step):
            yield Piece(replace(part, source=self.source.part(part.first, part.stop or n)), target.for_worker())

    def _finished(self, target: DatasetWriter, tables: Mapping[int, NDArray[Any]] | None = None) -> Header:
        """Labels become what they are to be, now that all classes are known; codes of a piece by its table."""
        if self.label is not None:
            return target.finish(self.classes)
        classes, table = self.encoder.finish(self._n)
        target.relabel(lambda block: table if tables is None else table[tables[block - block % self._step]])
        return target.finish(classes)


def _only_block(part: Partition, encoder: LabelEncoder) -> Labelled:
    return next(part.blocks(encoder))


def _itself(block: Labelled) -> Labelled:
    return block


def _move(part: Place, path: Path) -> None:
    assert isinstance(part, Path), "the part of a folder is a folder"
    for each in sorted(part.iterdir()):
        if each.name not in (MARKER, ASIDE):
            each.rename(path / each.name)
    sync(path)
    (part / MARKER).rename(path / MARKER)
    shutil.rmtree(part, ignore_errors=True)  # somebody may just write a file aside
    sync(path)
