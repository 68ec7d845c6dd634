"""Sources that many processes read: what can be split, and what has to be known of all points before they begin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import BadInputError, UsageError
from dfeas.store.array_points import ArrayPoints
from dfeas.store.changed import Changed
from dfeas.store.claiming import require_free
from dfeas.store.csc import CscRows
from dfeas.store.formats import format_of
from dfeas.store.layout import MARKER, default_block_rows
from dfeas.store.lines import PACKED
from dfeas.store.marks import Marks, marks_of
from dfeas.store.places import absolute, is_url, place
from dfeas.store.signs import Coded, Codes
from dfeas.store.sources import open_rows
from dfeas.store.splitting import SplitArray, SplitTable, SplitText
from dfeas.store.spread import Spread
from dfeas.store.streaming import usual_rows
from dfeas.store.streams import Stream
from dfeas.store.whole import Whole, folder_of

if TYPE_CHECKING:
    from dfeas.store.tables import Parquet

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
        from dfeas.store.svmlight import tally as of_svmlight

        marks, tally = marks_of(path, (0, 1), of_svmlight, spread)
        return opened(looked=tally), marks
    stream = opened()
    from dfeas.store.delimited import Delimited
    from dfeas.store.delimited import tally as of_lines

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
