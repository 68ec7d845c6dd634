"""Appending points to a dataset: the old one is whole until the new one is.

New points are ingested and cut into blocks in DATA/append.part, where nobody looks. Then one rename makes it DATA/append.ready:
from there on the append is only finished, never undone. Its files, whose paths are those in DATA, are moved into their places,
the marker last. Blocks of old points stay as they are, but for a last one that was not full.

A killed append leaves the old dataset (before the rename), or one without a marker that the next append finishes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import scipy  # loads its parts when they are used
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.data.ingest.ingest import Note, format_of, ingest
from dfeas.data.ingest.options import IngestOptions, SourceKeywords, spells_out
from dfeas.data.ingest.sdpa import SDPA
from dfeas.data.open import open_source
from dfeas.data.product import Product
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.features import feature_name
from dfeas.data.storage.files import name_in_errors, sync
from dfeas.data.storage.layout import APPENDED, ATTRIBUTE, MARKER, Header, fingerprint, looks_like_dataset, seal
from dfeas.data.storage.metadata import member, put_group, put_whole_array
from dfeas.data.storage.places import is_url
from dfeas.data.storage.readers import Buffers, Cost
from dfeas.data.storage.scratch import reclaim, release
from dfeas.data.storage.shards import ShardReader
from dfeas.data.storage.sparse_readers import CsrChunks
from dfeas.data.storage.zarr_arrays import direct_reader
from dfeas.data.writers.dataset import DatasetWriter, Labelled, Progress
from dfeas.data.writers.shards import ShardWriter
from dfeas.data.writers.sparse import Before, SparseWriter
from dfeas.errors import BadInputError, UsageError
from dfeas.linalg import csr
from dfeas.linalg.points import Points, any_entry, is_dense, stacked, take_rows


@dataclass(frozen=True)
class Stage:
    """Chunks that were written as those of a dataset of their own, behind ``kept`` blocks of another one."""

    path: Path  # the dataset that grows
    out: Path  # the new chunks
    folder: Path  # where they will lie
    header: Header  # of all points
    kept: int
    offsets: NDArray[np.int64] | None = None  # (chunks + 1,) of sparse entries, of all points

    def lay_out(self, checksums: NDArray[np.uint32]) -> None:
        """Move chunks to their new numbers; write metadata with the new sizes, and the marker."""
        self.folder.mkdir()
        n, sparse = self.header.n, self.offsets is not None
        for name in ("label", "norm", *(() if sparse else ("X",))):
            self._renumbered(name, n, -(-n // self.header.block_rows))
        put_group(self.folder, {ATTRIBUTE: self.header.to_json()})
        if self.offsets is not None:
            self._entries()
            self._renumbered("X/indptr", n + 1, n // self.header.block_rows + 1)
            put_whole_array(self.folder, "offset", self.offsets)
        put_whole_array(self.folder, "checksum", checksums)
        (self.folder / MARKER).write_text(f"{seal(self.header)}\n")
        for file in self.folder.rglob("*"):
            sync(file)

    def _renumbered(self, name: str, size: int, chunks: int) -> None:
        """An array with a chunk for each block, up to number ``chunks``."""
        (self.folder / name).mkdir(parents=True)
        array = member(self.path, name)
        if array.shards:
            self._sharded(name, array, size, range(self.kept, chunks), self.kept)
            return
        self._changed(f"{name}/zarr.json", lambda meta: meta["shape"].__setitem__(0, size))
        for index in range(self.kept, chunks):
            rest = (0,) * (array.ndim - 1)
            was, now = (array.metadata.encode_chunk_key((i, *rest)) for i in (index - self.kept, index))
            (self.out / name / was).rename(self.folder / name / now)

    def _sharded(self, name: str, array: Any, size: int, new: range, numbered: int) -> None:
        """Of an array in shards the last one that was not full is copied, and ``new`` chunks go behind its own: the first has a
        file with the number ``new.start - numbered``.
        """
        old = direct_reader(name, self.path / name, array, array.chunks[0])
        assert isinstance(old, ShardReader), "dfeas wrote it"
        first, count, buffers = new.start // old.form.chunks, old.form.chunks, Buffers()
        writer = ShardWriter(self.folder / name, array.ndim, count, old.size)
        for index in range(first * count, new.stop):
            if index < new.start:
                writer.put(index, old.stored(index, buffers).data)
                continue
            file = self.out / name / array.metadata.encode_chunk_key((index - numbered, *(0,) * (array.ndim - 1)))
            writer.put(index, file.read_bytes())
            file.unlink()
        writer.finish()
        self._changed(f"{name}/zarr.json", lambda meta: meta["shape"].__setitem__(0, size), self.path)

    def _entries(self) -> None:
        """Arrays of entries have their numbers already, and their sizes."""
        (self.folder / "X").mkdir()
        self._changed("X/zarr.json", lambda meta: meta["attributes"].__setitem__("shape", [self.header.n, self.header.m]))
        assert self.offsets is not None, "a sparse dataset has entries"
        for name in ("X/data", "X/indices"):
            array = member(self.path, name)
            if not array.shards:
                (self.out / name).rename(self.folder / name)
                continue
            (self.folder / name).mkdir()
            first, entries = int(self.offsets[self.kept]), int(self.offsets[-1])
            new = range(first // array.chunks[0], -(-entries // array.chunks[0]))
            self._sharded(name, array, entries, new, 0)

    def _changed(self, name: str, change: Callable[[dict[str, Any]], None], of: Path | None = None) -> None:
        """Metadata of the new chunks, or of another dataset, with other sizes."""
        meta = json.loads(((of or self.out) / name).read_text())
        change(meta)
        (self.folder / name).write_text(json.dumps(meta, indent=2))


def tail_of(old: Dataset) -> Labelled:
    """Points and labels of a last chunk that is not full, verified, or none."""
    block = old.read(old.blocks - 1, Buffers(), Cost())
    rows = np.arange(old.n - old.n % old.chunk_rows - block.start, block.size)
    return take_rows(block.points, rows), block.label[rows]


def blocks_of(tail: Labelled, new: Dataset, rows: int, dtype: np.dtype[Any]) -> Iterator[Labelled]:
    """The tail and the new points in blocks of ``rows``, the last one shorter.

    Raises BadInputError for an entry that ``dtype`` does not hold exactly.
    """
    points, label = tail
    for block in new.read_blocks(range(new.blocks), Cost()):
        alike = block.points if is_dense(points) or not is_dense(block.points) else _sparse(block.points)
        points = stacked([points, exact(alike, dtype, block.start, new.features)])
        label = np.concatenate([label, block.label.astype(label.dtype)])
        while len(label) >= rows:
            yield _rows(points, slice(0, rows)), label[:rows]
            points, label = _rows(points, slice(rows, len(label))), label[rows:]
    if len(label):
        yield points, label


def _rows(points: Points, rows: slice) -> Points:
    return np.ascontiguousarray(points[rows]) if is_dense(points) else csr.rows_of(points, rows)


def _sparse(points: NDArray[Any]) -> Points:
    return csr.tidied(scipy.sparse.csr_array(points))


def exact(points: Points, dtype: np.dtype[Any], start: int, features: Sequence[str] = ()) -> Points:
    """In another type. Raises BadInputError with the first entry that it does not hold, in points from ``start`` on."""
    stored = points if is_dense(points) else points.data
    with np.errstate(over="ignore"):
        cast = stored.astype(dtype)
    if not np.array_equal(cast, stored):
        at = tuple(int(place[0]) for place in np.nonzero(cast != stored))
        row, feature = at if is_dense(points) else (int(csr.row_numbers(points)[at[0]]), int(points.indices[at[0]]))
        raise BadInputError(
            f"point {start + row} feature {feature_name(features, feature)} of the new points: {stored[at]!r} is not exact "
            f"in {dtype.name}, the type of the dataset; round it first, or ingest all again"
        )
    return cast if is_dense(points) else csr.with_data(points, cast)


PART = "append.part"


@spells_out(SourceKeywords)
def append(
    data: str | Path,
    src: Any = None,
    *,
    progress: Progress | None = None,
    note: Note | None = None,
    **options: Unpack[SourceKeywords],
) -> Header:
    """Append points to a dataset of dfeas: until the new ones are all written it stays as it was.

    Labels are of its classes, and points must fit its type exactly. Where both have names of features they must be the same, in
    the same order.

    Parameters
    ----------
    data : path
        The dataset, on a disk of this machine.
    src : array (n, m), data frame, or path, optional
        What ``dfeas.ingest`` takes. None finishes an append that was cut off at its end.
    progress : callable, optional
        Called with the points done, and those in all, as far as is known.
    note : callable, optional
        Told what was cast or dropped.

    Returns
    -------
    Header
        Of all points.

    Raises
    ------
    BadInputError, CorruptDataError
        Points or labels that do not fit, or cannot be read; the dataset stays what it was.
    UsageError
        Another process writes there, or an option does not apply.

    Examples
    --------
    >>> import dfeas
    >>> import numpy as np
    >>> dfeas.ingest(np.array([[1.0, 2.0], [-1.0, -1.0]]), "mail.data", labels=["ham", "spam"])
    <Header 2 points of 2 features, float64>
    >>> dfeas.append("mail.data", np.array([[3.0, 3.0]]), labels=["ham"])
    <Header 3 points of 2 features, float64>
    """
    if isinstance(src, str | Path) and str(src).endswith(SDPA):
        from dfeas.data.ingest.cones import append_cones  # which appends as here

        IngestOptions(**options).require_for("cones")
        return append_cones(data, src, progress=progress)
    with open_to_append(data, "points") as old:
        assert old.header is not None, "a dataset has a header"
        path = Path(old.where)
        if src is None:
            return old.header
        if old.cones is not None:
            raise UsageError(f"{path}: a dataset of cones; say with --cones what the rows of SRC are, as l:3,q:5x10,s:6")
        with growing(path) as part:
            kind = format_of(src, options.get("format"))
            sparse = old.entries is not None if kind in ("svmlight", "arrays") else None  # tables are dense always
            given = IngestOptions(**options, sparse=sparse, block_rows=old.chunk_rows)
            if kind == "svmlight" and given.features is None:  # its lines leave out zeros
                given = replace(given, features=old.m)
            ingest(src, part / "new", given, old=old, progress=progress, note=note)
            return _stage_points(part, old, open_source(Source(DataSpec(part / "new"))))


@contextmanager
def open_to_append(data: str | Path, what: str) -> Iterator[Dataset]:
    """A dataset, to which nobody else writes, and to which ``what`` will be appended; an append that was cut off is finished.

    Raises UsageError when another process writes there, BadInputError where there is no dataset.
    """
    if is_url(data):
        raise UsageError(f"{data}: {what} are appended on this machine only; copy the dataset, or ingest all {what} again")
    path = Path(data)
    if not looks_like_dataset(path):
        raise BadInputError(f"{path}: not a dfeas dataset; {what} are appended to what dfeas ingest wrote")
    lock = reclaim(path)
    try:
        finish(path)
        yield open_source(Source(DataSpec(path), direct=False, cones=True))
    finally:
        release(path, lock)


@contextmanager
def growing(path: Path) -> Iterator[Path]:
    """DATA/append.part, in which the body lays out ``stage``: that is moved into its place then. Where it raises all goes."""
    part = path / PART
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir()
        with name_in_errors(path):
            yield part
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    move(part / "stage", path / APPENDED)
    sync(path)
    finish(path)


def finish(path: Path) -> None:
    """Move what is ready into its place; nothing where nothing is. Can be done again when it was cut off."""
    ready = path / APPENDED
    if not ready.is_dir():
        return
    if (ready / MARKER).exists():
        if (path / MARKER).exists():
            move(path / MARKER, path / PART / MARKER)
        sync(path)
        files = sorted(file for file in ready.rglob("*") if file.is_file() and file.name != MARKER)
        for file in files:
            move(file, path / file.relative_to(ready))
        for folder in sorted(each for each in path.rglob("*") if each.is_dir() and ready not in (each, *each.parents)):
            sync(folder)
        move(ready / MARKER, path / MARKER)
        sync(path)
    shutil.rmtree(ready, ignore_errors=True)
    shutil.rmtree(path / PART, ignore_errors=True)


def move(file: Path, place: Path) -> None:
    """Rename, over what is there."""
    file.replace(place)


def _stage_points(part: Path, old: Dataset, new: Dataset) -> Header:
    """Write DATA/append.part/stage, and return the header of the dataset that it makes."""
    rows = old.chunk_rows
    tail = tail_of(old)
    kind = DatasetWriter if old.entries is None else SparseWriter
    out = kind(part / "out", len(tail[1]) + new.n, old.m, old.dtype, rows, label=tail[1].dtype)
    if isinstance(out, SparseWriter):
        out.follow(Before.of(old, old.n // rows))
    for index, (points, label) in enumerate(blocks_of(tail, new, rows, old.dtype)):
        out.write(index, points, label)
    return stage(old, out, tail)


def stage(old: Dataset, out: DatasetWriter, tail: Labelled) -> Header:
    """Lay out DATA/append.part/stage from what was written behind full blocks of a dataset: the ``tail`` again and new points.

    Returns the header of the dataset that it makes.
    """
    assert old.header is not None, "a dataset has a header"
    assert old.expected is not None, "a dataset has checksums"
    path, kept = Path(old.where), old.n // old.chunk_rows
    part = out.finish(old.header.classes, known=True)
    checksums = np.concatenate([old.expected[:kept], out.checksums()])
    header = _joined(old.header, part, tail, checksums)
    offsets = None
    if isinstance(out, SparseWriter):
        assert isinstance(old.points, CsrChunks), "a sparse dataset on this machine"
        offsets = np.concatenate([old.points.offsets[:kept], out.offsets])
        header = replace(header, block_entries=int(np.diff(offsets).max()))
    Stage(path, path / PART / "out", path / PART / "stage", header, kept, offsets).lay_out(checksums)
    return header


def _joined(header: Header, part: Header, tail: Labelled, checksums: NDArray[np.uint32]) -> Header:
    """Of the points that ``header`` counts with the tail, and of the part that has the tail again."""
    first = header.n - len(tail[1])
    coded, n = len(header.counts), first + part.n
    plain = header.cones is None  # rows of cones are neither zero points nor of a class
    tail_counts = np.bincount(tail[1], minlength=coded) if coded else np.zeros(0, np.int64)
    return replace(
        header,
        n=n,
        positive=header.positive + part.positive - (int((tail[1] > 0).sum()) if plain and not coded else 0),
        zero=header.zero + part.zero - (int((~any_entry(tail[0])).sum()) if plain else 0),
        first_zero=(*(j for j in header.first_zero if j < first), *(first + j for j in part.first_zero))[:5],
        norm_min=min(header.norm_min, part.norm_min),
        norm_max=max(header.norm_max, part.norm_max),
        fingerprint=fingerprint(n, header.m, header.dtype, header.block_rows, checksums, header.classes),
        generator=None,
        entries=part.entries,
        counts=tuple((np.array(header.counts, np.int64) + part.counts - tail_counts).tolist()) if coded else (),
        cones=None if header.cones is None or part.cones is None else Product(header.cones.counts + part.cones.counts).table,
    )
