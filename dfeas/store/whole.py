"""A dataset that is written by many processes, each of which reads a part of the source.

They write into a folder OUT/part-.. with a name of its own. When all is there its files move into OUT, the marker last: what a
killed ingest left behind on some worker never reaches the dataset that is written after it.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import UsageError
from dfeas.store.filling import Progress
from dfeas.store.labels import CODE
from dfeas.store.layout import MARKER, SPARSE_BLOCK_BYTES, Header
from dfeas.store.output import output
from dfeas.store.places import Place, is_url
from dfeas.store.placing import sync
from dfeas.store.signs import Coded, Codes
from dfeas.store.sparse_pieces import SparsePieces
from dfeas.store.splitting import Splitting
from dfeas.store.spread import Done, Piece, Spread
from dfeas.store.writing import ASIDE, DatasetWriter

PIECE_BYTES = 64 << 20
"""Of points that are written in one piece of work."""


@dataclass(frozen=True)
class Whole:
    """All points of a source that can be split."""

    source: Splitting
    where: str  # the source, for messages
    n: int
    m: int
    dtype: np.dtype[Any]
    sparse: bool  # how points are stored
    block_rows: int
    label: NDArray[Any] | None  # (n,); None where labels come with the points
    classes: tuple[str, ...] = ()  # of ``label``
    positive: str | None = None  # of labels that come with the points
    names: Sequence[str] | None = None  # of features
    least_rows: int = 1  # that are read together

    def write(self, out: str | Path, spread: Spread, progress: Progress | None) -> Header:
        """Write the dataset OUT. Raises UsageError for an output that is not in a folder."""
        path = folder_of(out)
        with output(path):
            target = self._target(path / f"part-{uuid.uuid4().hex}")
            target.where = str(out)
            labels = _Labels(Codes(self.positive, f"labels of {self.where}"), {})
            done = 0
            for piece in spread(Piece.write, self._pieces(target)):
                target.adopt(piece.written)
                labels.add(piece, target.block_rows)
                done += piece.points
                if progress is not None:
                    progress(done, self.n)
            if isinstance(target, SparsePieces):
                target.join(spread)
            classes = self.classes if self.label is not None else labels.settle(target, self._step)
            header = target.finish(classes)
            _moved(target.path, path)
        return header

    def _target(self, path: Place) -> DatasetWriter:
        kind = SparsePieces if self.sparse else DatasetWriter
        sizes = self.n, self.m, self.dtype, self.block_rows, self.names
        if self.label is None:
            return kind(path, *sizes, CODE, provisional=True)
        return kind(path, *sizes, self.label.dtype)

    @property
    def _step(self) -> int:
        """Blocks of a piece."""
        if self.sparse:
            return max(1, PIECE_BYTES // SPARSE_BLOCK_BYTES)
        return max(1, max(self.least_rows, PIECE_BYTES // (self.m * self.dtype.itemsize)) // self.block_rows)

    def _pieces(self, target: DatasetWriter) -> Iterator[Piece]:
        for block in range(0, target.blocks, self._step):
            blocks = range(block, min(target.blocks, block + self._step))
            first, stop = block * self.block_rows, min(self.n, blocks.stop * self.block_rows)
            label = None if self.label is None else self.label[first:stop]
            yield Piece(self.source.part(first, stop), target.apart(), blocks, label, self.where)


@dataclass(frozen=True)
class _Labels:
    """Labels that pieces found in the source."""

    codes: Codes
    tables: dict[int, NDArray[Any]]  # by the first block of a piece: what its codes are among those of all

    def add(self, piece: Done, rows: int) -> None:
        """Those of one piece. Raises BadInputError when there are too many."""
        if piece.labels:
            seen = Coded(np.arange(len(piece.labels)), piece.labels)
            self.tables[piece.block] = self.codes(seen, piece.block * rows)

    def settle(self, target: DatasetWriter, step: int) -> tuple[str, ...]:
        """Write what the codes of all pieces, each of ``step`` blocks, have come to mean, and return the classes."""
        classes, table = self.codes.settle(target.n)

        def of(block: int) -> NDArray[Any]:
            found = self.tables[block - block % step]
            return found if table is None else np.asarray(table[found])

        target.relabel(of)
        return classes.classes


def folder_of(out: str | Path) -> Path:
    """The output as workers see it. Raises UsageError for an object store."""
    if is_url(out):
        raise UsageError(f"{out}: workers write to a folder that all of them see; leave out the cluster to write to a store")
    return Path(out).absolute()


def _moved(part: Place, path: Path) -> None:
    """All that is in a finished part, the marker last."""
    assert isinstance(part, Path), "the part of a folder is a folder"
    for each in sorted(part.iterdir()):
        if each.name not in (MARKER, ASIDE):
            each.rename(path / each.name)
    sync(path)
    (part / MARKER).rename(path / MARKER)
    shutil.rmtree(part, ignore_errors=True)  # somebody may just write a file aside
    sync(path)
