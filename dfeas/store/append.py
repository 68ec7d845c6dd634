"""Appending points to a dataset: the old one is whole until the new one is.

New points are ingested and cut into blocks in DATA/append.part, where nobody looks. Then one rename makes it DATA/append.ready:
from there on the append is only finished, never undone. Its files, whose paths are those in DATA, are moved into their places,
the marker last. Blocks of old points stay as they are, but for a last one that was not full.

A killed append leaves the old dataset (before the rename), or one without a marker that the next append finishes.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import zarr
import zarr.storage
from numpy.typing import NDArray

from dfeas.errors import BadInputError, UsageError
from dfeas.store.dataset import Dataset
from dfeas.store.filling import Progress
from dfeas.store.formats import format_of
from dfeas.store.ingest import Note, ingest
from dfeas.store.layout import APPENDED, ATTRIBUTE, MARKER, Header, fingerprint, looks_like_dataset, seal
from dfeas.store.opening import Source, open_source
from dfeas.store.places import is_url
from dfeas.store.placing import sync
from dfeas.store.reading import Buffers, Cost
from dfeas.store.writing import DatasetWriter, create_checksums, reclaim, release

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
    with _locked(path):
        finish(path)
        opened = open_source(Source(str(path), direct=False))
        assert opened.header is not None, "a dataset has a header"
        if src is None:
            return opened.header
        if opened.header.entries is not None:
            raise BadInputError(f"{path}: a sparse dataset, to which nothing is appended; ingest all points again")
        shutil.rmtree(path / PART, ignore_errors=True)
        (path / PART).mkdir()
        try:
            more: dict[str, Any] = {"classes": opened.header.classes, "block_rows": opened.block_rows}
            new = ingest(src, path / PART / "new", sparse=_dense(src, options), progress=progress, note=note, **more, **options)
            if new.m != opened.m:
                raise BadInputError(f"new points of {new.m} features, {path} has {opened.m}")
            header = _staged(path, opened, opened.header, open_source(Source(str(path / PART / "new"))))
        except BaseException:
            shutil.rmtree(path / PART, ignore_errors=True)
            raise
        move(path / PART / "stage", path / APPENDED)
        sync(path)
        finish(path)
    return header


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = reclaim(path)
    try:
        yield
    finally:
        release(path, lock)


def finish(path: Path) -> None:
    """Move what is ready into its place; nothing where nothing is. Can be done again when it was cut off."""
    ready = path / APPENDED
    if not ready.is_dir():
        return
    if (ready / MARKER).exists():
        if (path / MARKER).exists():
            move(path / MARKER, path / PART / MARKER)
        sync(path)
        for file in sorted(ready.rglob("*")):
            if file.is_file() and file.name != MARKER:
                move(file, path / file.relative_to(ready))
        for name in ("X", "label", "norm", "checksum"):
            sync(path / name)
        move(ready / MARKER, path / MARKER)
        sync(path)
    shutil.rmtree(ready, ignore_errors=True)
    shutil.rmtree(path / PART, ignore_errors=True)


def _dense(src: Any, options: dict[str, Any]) -> bool | None:
    """Points are stored dense, whatever the source; tables are never anything else."""
    return False if format_of(src, options.get("format")) in ("svmlight", "arrays") else None


def move(file: Path, place: Path) -> None:
    """Rename, over what is there."""
    file.replace(place)


def _staged(path: Path, old: Dataset, header: Header, new: Dataset) -> Header:
    """Write DATA/append.part/stage, and return the header of the dataset that it makes."""
    assert old.expected is not None, "a dataset has checksums"
    rows, n = old.block_rows, old.n + new.n
    kept = old.n // rows  # blocks that stay as they are
    first = kept * rows  # the first point that is written again
    tail = _tail(old, kept)
    out = DatasetWriter(path / PART / "out", n - first, old.m, old.dtype, rows, label=tail[1].dtype)
    for index, (points, label) in enumerate(_blocks(tail, new, rows, old.dtype)):
        out.write(index, points, label)
    part = out.finish(header.classes, known=True)
    mine = out.checksums()
    checksums = np.concatenate([old.expected[:kept], mine])
    zeros = [*(j for j in header.first_zero if j < first), *(first + j for j in part.first_zero)]
    tail_zero = int((~tail[0].any(axis=1)).sum())
    tail_counts = np.bincount(tail[1], minlength=len(header.classes)) if header.counts else np.zeros(0, np.int64)
    made = replace(
        header,
        n=n,
        positive=header.positive + part.positive - (0 if header.counts else int((tail[1] > 0).sum())),
        zero=header.zero + part.zero - tail_zero,
        first_zero=tuple(zeros[:5]),
        norm_min=min(header.norm_min, part.norm_min),
        norm_max=max(header.norm_max, part.norm_max),
        fingerprint=fingerprint(n, old.m, old.dtype.name, rows, checksums),
        generator=None,
        counts=tuple((np.array(header.counts, np.int64) + part.counts - tail_counts).tolist()) if header.counts else (),
    )
    _lay_out(path, made, kept, checksums)
    return made


def _tail(old: Dataset, kept: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Points and labels of a last block that is not full, verified."""
    if kept == old.blocks:
        return np.empty((0, old.m), old.dtype), old.labels.read(0, Buffers())[:0].copy()
    block = old.read(kept, Buffers(), Cost())
    return np.array(block.points), np.array(block.label)


def _blocks(
    tail: tuple[NDArray[Any], NDArray[Any]], new: Dataset, rows: int, dtype: np.dtype[Any]
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """The tail and the new points in blocks of ``rows``, the last one shorter."""
    points, label = tail
    for block in new.read_blocks(range(new.blocks), Cost()):
        with np.errstate(over="ignore"):
            stored = np.asarray(block.points)
            cast = stored.astype(dtype)
        if not np.array_equal(cast, stored):
            row, feature = (int(place[0]) for place in np.nonzero(cast != stored))
            raise BadInputError(
                f"point {block.start + row} feature {feature} of the new points: {stored[row, feature]!r} is not exact "
                f"in {dtype.name}, the type of the dataset; round it first, or ingest all again"
            )
        points, label = np.concatenate([points, cast]), np.concatenate([label, block.label.astype(label.dtype)])
        while len(points) >= rows:
            yield np.ascontiguousarray(points[:rows]), label[:rows]
            points, label = points[rows:], label[rows:]
    if len(points):
        yield np.ascontiguousarray(points), label


def _lay_out(path: Path, header: Header, kept: int, checksums: NDArray[np.uint32]) -> None:
    """Files as they will lie in DATA: chunks under their new numbers, metadata with the new sizes, the marker."""
    out, stage = path / PART / "out", path / PART / "stage"
    stage.mkdir()
    rows = header.block_rows
    for name in ("X", "label", "norm"):
        (stage / name).mkdir()
        meta = json.loads((path / name / "zarr.json").read_text())
        meta["shape"][0] = header.n
        (stage / name / "zarr.json").write_text(json.dumps(meta, indent=2))
        array = zarr.open_array(zarr.storage.LocalStore(path / name, read_only=True), mode="r")
        for index in range(kept, -(-header.n // rows)):
            rest = (0,) * (array.ndim - 1)
            was, now = (array.metadata.encode_chunk_key((i, *rest)) for i in (index - kept, index))
            (out / name / was).rename(stage / name / now)
    group = zarr.create_group(zarr.storage.LocalStore(stage), zarr_format=3, attributes={ATTRIBUTE: header.to_json()})
    create_checksums(group, checksums)
    (stage / MARKER).write_text(f"{seal(header)}\n")
    for file in stage.rglob("*"):
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
