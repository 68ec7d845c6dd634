"""Appending points to a dataset: the old one is whole until the new one is.

New points are ingested and cut into blocks in DATA/append.part, where nobody looks. Then one rename makes it DATA/append.ready:
from there on the append is only finished, never undone. Its files, whose paths are those in DATA, are moved into their places,
the marker last. Blocks of old points stay as they are, but for a last one that was not full.

A killed append leaves the old dataset (before the rename), or one without a marker that the next append finishes.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dfeas.errors import BadInputError, UsageError
from dfeas.passes.points import any_entry
from dfeas.store.claiming import reclaim, release
from dfeas.store.dataset import Dataset
from dfeas.store.filling import Labelled, Progress
from dfeas.store.formats import format_of
from dfeas.store.ingest import Note, ingest
from dfeas.store.layout import APPENDED, MARKER, Header, fingerprint, looks_like_dataset
from dfeas.store.new_points import blocks_of, tail_of
from dfeas.store.opening import open_source
from dfeas.store.places import is_url
from dfeas.store.placing import naming, sync
from dfeas.store.source import Source
from dfeas.store.sparse_writing import Before, SparseWriter
from dfeas.store.stage import Stage
from dfeas.store.writing import DatasetWriter

PART = "append.part"


def append(
    data: str | Path, src: Any = None, *, progress: Progress | None = None, note: Note | None = None, **options: Any
) -> Header:
    """Append the points of a source to a dataset, and return its new header.

    ``src`` and ``options`` are those of ``dfeas.ingest``; None only finishes an append that was cut off at its end. Labels are
    those of the dataset, and points must fit its type exactly.

    Raises BadInputError for points or labels that do not fit, UsageError when another process writes there; the dataset stays
    what it was then.
    """
    if is_url(data):
        raise UsageError(f"{data}: points are appended on this machine only; copy the dataset, or ingest all points again")
    path = Path(data)
    if not looks_like_dataset(path):
        raise BadInputError(f"{path}: not a dfeas dataset; points are appended to what dfeas ingest wrote")
    with locked(path):
        finish(path)
        opened = open_source(Source(str(path), direct=False, cones=True))
        assert opened.header is not None, "a dataset has a header"
        if src is None:
            return opened.header
        if opened.cones is not None:
            raise UsageError(f"{path}: a dataset of cones; say with --cones what the rows of SRC are, as l:3,q:5x10,s:6")
        with growing(path) as part:
            stored = _stored_as(src, options, opened.entries is not None)
            more: dict[str, Any] = {"classes": opened.header.classes, "block_rows": opened.block_rows, "sparse": stored}
            new = ingest(src, part / "new", progress=progress, note=note, **more, **options)
            if new.m != opened.m:
                raise BadInputError(f"new points of {new.m} features, {path} has {opened.m}")
            header = _staged(path, opened, opened.header, open_source(Source(str(part / "new"))))
    return header


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Nobody else writes to a dataset. Raises UsageError when another process does."""
    lock = reclaim(path)
    try:
        yield
    finally:
        release(path, lock)


@contextmanager
def growing(path: Path) -> Iterator[Path]:
    """DATA/append.part, in which the body lays out ``stage``: that is moved into its place then. Where it raises all goes."""
    part = path / PART
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    try:
        with naming(path):
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


def _stored_as(src: Any, options: dict[str, Any], sparse: bool) -> bool | None:
    """How new points are stored, as those of the dataset; tables are dense always."""
    return sparse if format_of(src, options.get("format")) in ("svmlight", "arrays") else None


def move(file: Path, place: Path) -> None:
    """Rename, over what is there."""
    file.replace(place)


def _staged(path: Path, old: Dataset, header: Header, new: Dataset) -> Header:
    """Write DATA/append.part/stage, and return the header of the dataset that it makes."""
    assert old.expected is not None, "a dataset has checksums"
    rows, n = old.block_rows, old.n + new.n
    kept = old.n // rows  # blocks that stay as they are
    first = kept * rows  # the first point that is written again
    tail = tail_of(old, kept)
    kind = DatasetWriter if header.entries is None else SparseWriter
    out = kind(path / PART / "out", n - first, old.m, old.dtype, rows, label=tail[1].dtype)
    if isinstance(out, SparseWriter):
        out.follow(Before.of(old, kept))
    for index, (points, label) in enumerate(blocks_of(tail, new, rows, old.dtype)):
        out.write(index, points, label)
    part = out.finish(header.classes, known=True)
    checksums = np.concatenate([old.expected[:kept], out.checksums()])
    made = _joined(header, part, tail, first, fingerprint(n, old.m, old.dtype.name, rows, checksums))
    stage = Stage(path, path / PART / "out", path / PART / "stage", made, kept)
    if isinstance(out, SparseWriter):
        assert old.entries is not None, "a sparse dataset has entries"
        offsets = np.concatenate([old.entries.offsets[:kept], out.offsets])
        stage = replace(stage, header=replace(made, block_entries=int(np.diff(offsets).max())), offsets=offsets)
    stage.lay_out(checksums)
    return stage.header


def _joined(header: Header, part: Header, tail: Labelled, first: int, mark: str) -> Header:
    """Of the points before ``first``, which ``header`` counts with the tail, and of the part behind them."""
    zeros = [*(j for j in header.first_zero if j < first), *(first + j for j in part.first_zero)]
    coded = len(header.counts)
    tail_counts = np.bincount(tail[1], minlength=coded) if coded else np.zeros(0, np.int64)
    return replace(
        header,
        n=first + part.n,
        positive=header.positive + part.positive - (0 if coded else int((tail[1] > 0).sum())),
        zero=header.zero + part.zero - int((~any_entry(tail[0])).sum()),
        first_zero=tuple(zeros[:5]),
        norm_min=min(header.norm_min, part.norm_min),
        norm_max=max(header.norm_max, part.norm_max),
        fingerprint=mark,
        generator=None,
        entries=part.entries,
        counts=tuple((np.array(header.counts, np.int64) + part.counts - tail_counts).tolist()) if coded else (),
    )
