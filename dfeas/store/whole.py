"""A dataset that is written by many processes, each of which reads a part of the source.

They write into a folder OUT/part-.. with a name of its own. When all is there its files move into OUT, the marker last: what a
killed ingest left behind on some worker never reaches the dataset that is written after it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import BadInputError, UsageError
from dfeas.store.array_points import ArrayPoints
from dfeas.store.filling import Progress
from dfeas.store.layout import MARKER, Header, default_block_rows
from dfeas.store.places import Place, absolute, is_url
from dfeas.store.placing import sync
from dfeas.store.signs import Coded, Codes
from dfeas.store.sources import NpyRows, is_array
from dfeas.store.splitting import SplitArray, SplitTable, Splitting
from dfeas.store.spread import Piece, Spread
from dfeas.store.writing import DatasetWriter, output

if TYPE_CHECKING:
    from dfeas.store.tables import Parquet

PIECE_BYTES = 64 << 20
"""Of points that are written in one piece of work."""

LABELS = 1 << 20
"""Labels that are looked at in one go."""


@dataclass(frozen=True)
class Whole:
    """All points of a source that can be split."""

    source: Splitting
    n: int
    m: int
    dtype: np.dtype[Any]
    block_rows: int
    piece_rows: int  # that are read together, at least
    label: NDArray[Any]  # (n,)
    classes: tuple[str, ...]
    names: Sequence[str] | None = None  # of features

    @classmethod
    def of_array(cls, src: Any, name: str, found: ArrayPoints) -> Whole:
        """Of the array ``name`` in a file. Raises UsageError for one that is read in order only."""
        if is_array(src) or found.sparse or hasattr(found.rows, "entries") or isinstance(found.rows, NpyRows):
            raise in_order_only("the array" if is_array(src) else str(src))
        runs = (np.asarray(found.values[first : first + LABELS]).reshape(-1) for first in range(0, found.n, LABELS))
        label = np.concatenate([found.mapping(run) for run in runs])
        source, size = SplitArray(absolute(src), name), found.block_rows
        return cls(source, found.n, found.m, found.dtype, size, size, label, found.mapping.classes)

    @classmethod
    def of_table(cls, table: Parquet, labels: Any, dtype: np.dtype[Any], positive: str | None, block_rows: int | None) -> Whole:
        """Of Parquet files, with other labels (n,) where these are given. Raises BadInputError for labels that do not fit."""
        where = f"labels of {table.where}"
        if not table.n:
            raise BadInputError(f"{table.where}: no points")
        label, classes = _signed(table.labels() if labels is None else _in_runs(labels), table.n, positive, where)
        size = min(table.n, block_rows or default_block_rows(table.m, dtype.itemsize, table.n))
        source = SplitTable(table, dtype)
        return cls(source, table.n, table.m, dtype, size, 2 * table.group_rows, label, classes, table.names)

    def write(self, out: str | Path, spread: Spread, progress: Progress | None) -> Header:
        """Write the dataset OUT. Raises UsageError for an output that is not in a folder."""
        path = folder_of(out)
        with output(path):
            target = DatasetWriter(
                path / f"part-{uuid.uuid4().hex}", self.n, self.m, self.dtype, self.block_rows, self.names, self.label.dtype
            )
            target.where = str(out)
            done = 0
            for points, written in spread(Piece.write, self._pieces(target)):
                target.adopt(written)
                done += points
                if progress is not None:
                    progress(done, self.n)
            header = target.finish(self.classes)
            _moved(target.path, path)
        return header

    def _pieces(self, target: DatasetWriter) -> Iterator[Piece]:
        rows = max(self.piece_rows, PIECE_BYTES // (self.m * self.dtype.itemsize))
        step = max(1, rows // self.block_rows)
        for first in range(0, target.blocks, step):
            blocks = range(first, min(target.blocks, first + step))
            label = self.label[blocks.start * self.block_rows : blocks.stop * self.block_rows]
            yield Piece(self.source, target.apart(), blocks, label)


def folder_of(out: str | Path) -> Path:
    """The output as workers see it. Raises UsageError for an object store."""
    if is_url(out):
        raise UsageError(f"{out}: workers write to a folder that all of them see; leave out the cluster to write to a store")
    return Path(out).absolute()


def _moved(part: Place, path: Path) -> None:
    """All that is in a finished part, the marker last."""
    assert isinstance(part, Path), "the part of a folder is a folder"
    for each in sorted(part.iterdir()):
        if each.name != MARKER:
            each.rename(path / each.name)
    sync(path)
    (part / MARKER).rename(path / MARKER)
    part.rmdir()
    sync(path)


def in_order_only(where: str) -> UsageError:
    """The error for a source that only one process can read."""
    return UsageError(
        f"{where}: read in order by one process; .npy, zarr, dense HDF5 and Parquet are read by workers, of other "
        "sources leave out --local and --scheduler"
    )


def _in_runs(labels: NDArray[Any]) -> Iterator[Coded]:
    flat = labels.reshape(-1)
    for first in range(0, len(flat), LABELS):
        yield Coded.of(flat[first : first + LABELS])


def _signed(parts: Iterable[Coded], n: int, positive: str | None, where: str) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Labels (n,) as they are stored, and the classes. Raises BadInputError where there is not one for each point."""
    codes, done, found = Codes(positive, where), 0, []
    for part in parts:
        found.append(codes(part, done))
        done += len(part.codes)
    if done != n:
        raise BadInputError(f"{where}: {done} labels for {n} points; give one a point")
    classes, table = codes.settle(n)
    label = np.concatenate(found)
    return (label if table is None else table[label]), classes.classes
