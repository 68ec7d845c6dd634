"""Ingest: any source of rows becomes a dataset, streaming, in memory that does not depend on n.

This process does it in order, or a pool of processes does, piece by piece, of sources whose partitions can be read apart.
They write into a folder OUT/part-.. with a name of its own. When all is there its files move into OUT, the marker last: what a
killed ingest left behind on some worker never reaches the dataset that is written after it.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas import leaves
from dfeas.data.index import ids_in_memory
from dfeas.data.ingest.array_files import ArraySource, open_rows, stored_blocks
from dfeas.data.ingest.options import IngestOptions, format_of
from dfeas.data.ingest.readers import encode_beside, labels_beside, open_points
from dfeas.data.ingest.source import MANY, Partition, PointSource, other_length
from dfeas.data.ingest.sparse_files import CscRows
from dfeas.data.labels import CODE, Categories, LabelEncoder
from dfeas.data.partitions import WHERE, Compute, table_of
from dfeas.data.storage.features import no_column, warn_of_others
from dfeas.data.storage.files import MARKER, sync
from dfeas.data.storage.layout import SPARSE_BLOCK_BYTES, Header
from dfeas.data.storage.numbers import array_of
from dfeas.data.storage.places import Place, is_url, place
from dfeas.data.storage.zarr_arrays import open_labels
from dfeas.data.writers.chunks import Ledger, chunks_of_piece, chunks_of_shard, chunks_of_sides, shard_bytes
from dfeas.data.writers.dataset import ASIDE, DatasetWriter, Labelled, Pool, Progress, output_place, write_blocks
from dfeas.data.writers.sparse import SparsePieces, SparseWriter
from dfeas.errors import BadInputError, UsageError, spell
from dfeas.linalg.points import Points, is_dense
from dfeas.records import replace

Note = Callable[[str], None]


def ingest(
    src: Any,
    out: str | Path,
    options: IngestOptions,
    *,
    progress: Progress | None = None,
    note: Note | None = None,
    pool: Pool | None = None,
) -> Header:
    """Write the dataset OUT from a file, a folder, an array or a data frame, and return its header; see ``dfeas.ingest``.

    A source that is open already has its labels among the options. ``pool`` does the work elsewhere, of sources that can be
    shared.
    """
    kind = "arrays"
    if not isinstance(src, PointSource):
        kind = format_of(src, options.format)
        options.require_for(kind)
    if kind == "cones":
        written: Header = leaves.ingest_cones(src, out, progress=progress, shard=options.shard)
        return written
    path = place(out) if pool is None else folder_of(out)
    with output_place(path), ExitStack() as stack:
        source = src if isinstance(src, PointSource) else open_points(stack, src, kind, options)
        beside = options.labels if source is src else labels_beside(src, kind, options)
        names, label = encode_beside(beside, source, options.positive)
        stored = source.dtype if options.dtype is None else np.dtype(options.dtype)
        rows = min(source.n or MANY, options.block_rows or source.usual_rows(stored))
        source.describe(rows)
        for text in [*source.notes, *([] if stored == source.dtype else [f"rounded to {stored}, as asked"])]:
            if note is not None:
                note(text)
        encoder = LabelEncoder(f"labels of {source.where}", options.positive)
        work = Ingest(source, stored, rows, label, names, encoder, progress, shard_bytes(options.shard))
        return work.in_order(path) if pool is None else work.spread(folder_of(out), pool, str(out))


def folder_of(out: str | Path) -> Path:
    """The output as workers see it. Raises UsageError for an object store."""
    if is_url(out):
        raise UsageError(f"{out}: workers write to a folder that all of them see; leave out the cluster to write to a store")
    return Path(out).absolute()


def why_alone(src: Any, options: IngestOptions) -> str:
    """Why this process reads a source in order, whatever workers there are; empty where they can share it."""
    kind = format_of(src, options.format)
    if not isinstance(src, str | Path):
        where, why = "the data frame" if kind == "frame" else "the array", "in the memory of this process"
    else:
        path = place(src)
        where, why = str(path), {"cones": "cones", "csv": "text", "tsv": "text", "svmlight": "text"}.get(kind, "")
        if kind == "arrays" and path.suffix == ".npz":
            why = "an archive"
        elif kind == "arrays" and path.suffix == ".npy" and is_url(str(src)):
            why = "in an object store"
        elif kind == "arrays":
            with open_rows(path, options.points) as rows:
                why = "CSC" if isinstance(rows, CscRows) else ""
    return why and f"{where}: {why}, so this process read it in order; workers share .npy, zarr, HDF5 and Parquet"


MOST_LOOKED_AT = 1 << 12
"""Points, the first ones, that tell whether a column looks like an id or a date."""

Done = tuple[int, int, Ledger, list[Any]]
"""Of a piece: its first block, points, what was written, and the label of each code, where labels came with the points."""


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
        return begin, points, self.target.written, encoder.values


class CollectionSource(ArraySource):
    """Points in the partitions of a Dask array or frame, whose lengths are counted. Its labels come to this process."""

    whole = True

    def __init__(self, collection: Any, options: IngestOptions, compute: Compute) -> None:
        table = table_of(collection, _labels_of_collection(collection, options), compute, keep=True)
        super().__init__(table.X, "X", table.X, sparse=False, features=table.features)
        self.where, self.X, self.labels = WHERE, table.X, table.labels
        self.ids = ids_in_memory(collection, options.ids, compute)
        self.run_rows = max(table.X.chunks[0])

    def part(self, first: int, stop: int) -> HeldRows:
        return HeldRows(first, self.dtype)


def _labels_of_collection(collection: Any, options: IngestOptions) -> Any:
    """As they are given, or the column of a frame that has them. Raises UsageError where nobody said it."""
    kind = format_of(collection)
    options.require_for(kind)
    if options.sparse:
        raise UsageError(f"{spell('sparse')}: workers write the partitions of a Dask collection dense; leave it out")
    given = options.labels
    if given is not None:
        return open_labels(place(given))[:] if isinstance(given, str | Path) else given
    if kind == "arrays" or options.label_column is None:
        raise UsageError("a Dask array or frame: give labels, an array (n,) or its path, or of a frame label_column")
    columns = list(map(str, collection.columns))
    if options.label_column not in columns:
        raise no_column(options.label_column, columns, WHERE)
    return options.label_column


@dataclass
class HeldRows:
    """Points of a collection from ``first`` on. It travels without their array, which comes to where it goes."""

    first: int
    dtype: np.dtype[Any]
    array: NDArray[Any] | None = None
    where: str = WHERE

    def blocks(self, first: int, stop: int | None, rows: int) -> Iterator[tuple[Points, list[Categories]]]:
        assert self.array is not None, "it has come where they are written"
        end = len(self.array) if stop is None else stop - self.first
        return stored_blocks(self.array, first - self.first, end, rows, self.dtype, sparse=False)


def write_piece(piece: Piece, array: Any) -> Done:
    """Write blocks of a collection, whose points came from elsewhere."""
    source = piece.part.source
    assert isinstance(source, HeldRows), "a piece of a collection"
    return replace(piece, part=replace(piece.part, source=replace(source, array=array_of(array, WHERE)))).write()


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

    def in_order(self, path: Place) -> Header:
        """Write the dataset, by threads of this process. Raises BadInputError for a source without points."""
        source = self.source
        with closing(Partition(source, self.dtype, self.rows, self.label).blocks(self.encoder)) as blocks:
            first = next(blocks, None)
            if first is None:
                raise BadInputError(f"{source.where}: no points")
            self._warn(first[0])
            size = len(first[1])  # less than ``rows`` when it is the only block
            target = self._target(SparseWriter if source.sparse else DatasetWriter, path, source.n or size, size)
            write_blocks(target, self._grow(target, chain([first], blocks)), self._tell)
        target.n = self._n
        if self.progress is not None:
            self.progress(self._n, self._n)
        return self._finish(target)

    def _warn(self, points: Points) -> None:
        """Of columns that are no features, by the first points."""
        if self.source.table and self.source.features and is_dense(points):
            warn_of_others(points[:MOST_LOOKED_AT], self.source.features, self.source.where)

    def _grow(self, target: DatasetWriter, blocks: Iterable[Labelled]) -> Iterator[Callable[[], Labelled]]:
        for block in blocks:
            self._n += len(block[1])
            target.n = max(target.n, self._n)
            yield partial(_same, block)

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
        if source.table:
            self._warn(next(iter(source.blocks(0, min(n, MOST_LOOKED_AT), MOST_LOOKED_AT)))[0])
        target = self._target(SparsePieces if source.sparse else DatasetWriter, path / f"part-{uuid.uuid4().hex}", n, self.rows)
        target.where = where
        tables: dict[int, NDArray[Any]] = {}  # by the first block of a piece: what its codes are among those of all
        for block, points, written, labels in pool(Piece.write, self._pieces(target, n)):
            target.written.add(written)
            if labels:
                tables[block] = self.encoder.encode(Categories(np.arange(len(labels)), labels), block * self.rows)
            self._n += points
            if self.progress is not None:
                self.progress(self._n, n)
        if isinstance(target, SparsePieces):
            target.join(pool)
        header = self._finish(target, tables)
        _move(target.path, path)
        return header

    def _target(self, kind: type[DatasetWriter], path: Place, n: int, rows: int) -> DatasetWriter:
        label, shard = CODE if self.label is None else self.label.dtype, self._shard(n, rows)
        return kind(path, n, self.source.m, self.dtype, rows, self.source.features, label, self.label is None, shard)

    def _shard(self, n: int, rows: int) -> int:
        """How many blocks a shard has, when it is known of n points that there are; 0 without shards."""
        if self.source.whole and self.shard is None:
            return 0
        block = self._block_bytes(rows)
        return chunks_of_shard(self.shard, -(-self.source.total(n) // rows) * block, block)

    def _block_bytes(self, rows: int) -> int:
        return SPARSE_BLOCK_BYTES if self.source.sparse else rows * self.source.m * self.dtype.itemsize

    @property
    def _step(self) -> int:
        """How many blocks a piece has: a shard is written by one process."""
        shard = self._shard(self.source.n or 0, self.rows)
        if shard:
            return shard
        block = self._block_bytes(self.rows)
        sides, blocks = chunks_of_sides(block), chunks_of_piece(block)
        if not self.source.sparse:
            blocks = max(blocks, self.source.run_rows // self.rows)
        return -(-blocks // sides) * sides

    def _pieces(self, target: DatasetWriter, n: int) -> Iterator[Piece]:
        size = self._step * self.rows
        for first in range(0, n, size):
            stop = min(n, first + size)
            label = None if self.label is None else self.label[first:stop]
            part = Partition(self.source.part(first, stop), self.dtype, self.rows, label, first, stop)
            yield Piece(part, target.for_worker())

    def _finish(self, target: DatasetWriter, tables: Mapping[int, NDArray[Any]] | None = None) -> Header:
        """Labels become what they are to be, now that all classes are known; codes of a piece by its table."""
        if self.label is not None:
            return target.finish(self.classes, ids=self.source.ids)
        classes, table = self.encoder.finish(self._n)
        target.relabel(lambda block: table if tables is None else table[tables[block - block % self._step]])
        return target.finish(classes, ids=self.source.ids)


def _same(block: Labelled) -> Labelled:
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
