"""A dataset that is written by many processes, each of which reads a part of the source.

They write into a folder OUT/part-.. with a name of its own. When all is there its files move into OUT, the marker last: what a
killed ingest left behind on some worker never reaches the dataset that is written after it.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.ingest.array_files import open_rows
from dfeas.data.ingest.array_points import ArrayPoints
from dfeas.data.ingest.formats import format_of
from dfeas.data.ingest.index import Done, Marks, Piece, Spread, marks_of
from dfeas.data.ingest.partitions import SparsePieces, SplitArray, SplitTable, SplitText, Splitting
from dfeas.data.ingest.sparse_files import CscRows
from dfeas.data.ingest.streams import Changed, Stream, usual_rows
from dfeas.data.ingest.text import PACKED
from dfeas.data.labels import CODE, Coded, Codes
from dfeas.data.storage.files import sync
from dfeas.data.storage.layout import MARKER, SPARSE_BLOCK_BYTES, Header, default_block_rows
from dfeas.data.storage.lock import require_free
from dfeas.data.storage.places import Place, absolute, is_url, place
from dfeas.data.writers.dataset import ASIDE, DatasetWriter, Progress
from dfeas.data.writers.output import output
from dfeas.errors import BadInputError, UsageError

if TYPE_CHECKING:
    from dfeas.data.ingest.tables import Parquet

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


LABELS = 1 << 20
"""Labels that are looked at in one go."""

TEXT = ("csv", "tsv", "svmlight")


def require_split(src: Any, out: Any, format: str | None = None, points: str = "X") -> None:
    """Raise UsageError for what workers cannot read or write: to be asked before they are started."""
    require_free(folder_of(out), MARKER)
    kind = format_of(src, format)
    if not isinstance(src, str | Path):
        raise _in_order("the data frame" if kind == "frame" else "the array", "in the memory of this process")
    path = place(src)
    if kind in TEXT and (path.suffix in PACKED or not path.is_file()):
        raise _in_order(str(path), "compressed" if path.suffix in PACKED else "no file")
    if kind == "arrays" and path.suffix == ".npz":
        raise _in_order(str(path), "an archive")
    if kind == "arrays" and path.suffix == ".npy" and is_url(str(src)):
        raise _in_order(str(path), "in an object store")
    if kind == "arrays":
        with open_rows(path, points) as rows:
            if isinstance(rows, CscRows):
                raise _in_order(str(path), "CSC")


def _in_order(where: str, why: str) -> UsageError:
    return UsageError(
        f"{where}: {why}, so one process reads it in order; workers read .npy, zarr, HDF5, Parquet, and CSV, TSV and svmlight "
        "that are not compressed: leave out --local and --scheduler"
    )


def whole_array(src: Any, name: str, found: ArrayPoints) -> Whole:
    """The array ``name`` in a file."""
    runs = (np.asarray(found.values[first : first + LABELS]).reshape(-1) for first in range(0, found.n, LABELS))
    label = np.concatenate([found.mapping(run) for run in runs])
    source = SplitArray(absolute(src), name, found.sparse)
    sizes = found.n, found.m, found.dtype, found.sparse, found.block_rows
    return Whole(source, str(src), *sizes, label, found.mapping.classes)


def whole_table(table: Parquet, labels: Any, dtype: np.dtype[Any], positive: str | None, block_rows: int | None) -> Whole:
    """Parquet files, with other labels (n,) where these are given. Raises BadInputError for labels that do not fit."""
    if not table.n:
        raise BadInputError(f"{table.where}: no points")
    parts = table.labels() if labels is None else _in_runs(labels)
    label, classes = _signed(parts, table.n, positive, f"labels of {table.where}")
    size = min(table.n, block_rows or default_block_rows(table.m, dtype.itemsize, table.n))
    source, sizes = SplitTable(table, dtype), (table.n, table.m, dtype, False, size)
    return Whole(source, table.where, *sizes, label, classes, names=table.names, least_rows=2 * table.group_rows)


def whole_text(
    src: str | Path,
    kind: str,
    opened: Callable[..., Stream],
    labels: Any,
    dtype: str | None,
    positive: str | None,
    block_rows: int | None,
    spread: Spread,
    note: Callable[[str], None],
) -> Whole:
    """A text file, which is looked through first; ``opened`` gives the stream that would read it in order."""
    stream, marks = _marked(src, kind, opened, spread)
    changed = Changed(stream, labels, dtype)
    for text in changed.notes:
        note(text)
    with closing(changed.batches()) as batches:
        begin = next(batches, None)
    if begin is None:
        raise BadInputError(f"{stream.where}: no points")
    n = int(marks.point[-1])
    label: NDArray[Any] | None = None
    classes: tuple[str, ...] = ()
    if changed.labels is not None:
        label, classes = _signed(_in_runs(changed.labels), n, positive, f"labels of {stream.where}")
    size = min(n, block_rows or usual_rows(begin.points, changed.dtype))
    source = SplitText(stream, absolute(src), changed.dtype, marks)
    sizes = n, stream.m, changed.dtype, stream.sparse, size
    return Whole(source, stream.where, *sizes, label, classes, positive, stream.names)


def _marked(src: str | Path, kind: str, opened: Callable[..., Stream], spread: Spread) -> tuple[Any, Marks]:
    """What parses the lines of a text file, and where they are."""
    path = place(src)
    if kind == "svmlight":
        from dfeas.data.ingest.svmlight import tally as of_svmlight

        marks, tally = marks_of(path, (0, 1), of_svmlight, spread)
        return opened(looked=tally), marks
    stream = opened()
    from dfeas.data.ingest.delimited import Delimited
    from dfeas.data.ingest.delimited import tally as of_lines

    assert isinstance(stream, Delimited), "the stream of CSV"
    return stream, marks_of(path, stream.body, of_lines, spread)[0]


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
