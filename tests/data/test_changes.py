"""Data that changes under a run is noticed at the next pass; data that comes back as it was is not held against anybody."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import dfeas
from dfeas.data.cache import Kept
from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.readers import Cost
from dfeas.errors import CorruptDataError
from dfeas.passes.survey import Survey


def read_all(dataset: Dataset) -> Cost:
    cost = Cost()
    for _ in dataset.read_blocks(range(dataset.blocks), cost, keep=True):
        pass
    return cost


PLACES = {"X": ("c.3.0", 9), "label": ("c.0", 3 * (64 + 4) + 9), "norm": ("c.0", 3 * (64 * 8 + 4) + 9)}
"""Of a byte of block 3 of 64 points: its file, and where in it."""


def flip(file: Path, place: int = 9) -> bytes:
    """Change a bit of a file; returns what was there."""
    intact = file.read_bytes()
    file.write_bytes(intact[:place] + bytes([intact[place] ^ 1]) + intact[place + 1 :])
    return intact


@pytest.mark.parametrize("budget", [0, 1 << 20])
@pytest.mark.parametrize("past_cache", [False, True])
@pytest.mark.parametrize("name", ["X", "label", "norm"])
def test_a_block_that_changes_between_passes_is_noticed(
    dataset: Callable[..., Any], budget: int, past_cache: bool, name: str
) -> None:
    path, _ = dataset("gaussian", 5, 300, block_rows=64)
    opened = open_source(Source(DataSpec(path)))
    opened.points = replace(opened.points, folder=replace(opened.points.folder, past_cache=past_cache))
    opened.kept = Kept(budget)
    whole = read_all(opened).bytes_read
    named, place = PLACES[name]
    file = path / name / named
    intact = flip(file, place)
    for _ in range(2):
        with pytest.raises(CorruptDataError, match=r"(chunk|block) 3"):
            read_all(opened)
    file.write_bytes(intact)
    os.utime(file, (0, 0))  # both writes may be of one tick of the clock
    cost = read_all(opened)
    assert cost.points == 300
    # the block that came back is read again, with all that shared its file, and what had been kept of the others is used
    assert cost.bytes_read == (whole if budget == 0 or name != "X" else 64 * 5 * 4)


def test_a_kept_block_whose_file_is_gone_is_noticed(dataset: Callable[..., Any]) -> None:
    path, _ = dataset("gaussian", 5, 300, block_rows=64)
    opened = open_source(Source(DataSpec(path)))
    opened.kept = Kept(1 << 20)
    read_all(opened)
    (path / "X" / "c.2.0").unlink()
    with pytest.raises(CorruptDataError, match="chunk 2 of X is missing"):
        read_all(opened)


def test_old_times_do_not_hide_a_change(dataset: Callable[..., Any]) -> None:
    path, _ = dataset("gaussian", 5, 300, block_rows=64)
    opened = open_source(Source(DataSpec(path)))
    read_all(opened)
    file = path / "X" / "c.2.0"
    before = file.stat()
    flip(file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(CorruptDataError, match="chunk 2 of X"):
        read_all(opened)


@pytest.mark.parametrize(
    "options", [{}, {"compressors": None}, {"chunks": (16, 2)}], ids=["compressed", "plain", "many chunks a block"]
)
@pytest.mark.parametrize("lazy", [False, True])
def test_a_users_array_that_changes_between_passes_is_noticed(tmp_path: Path, options: dict[str, Any], lazy: bool) -> None:
    rng = np.random.default_rng(0)
    path, labels = tmp_path / "x", np.arange(5000) % 2
    array = zarr.create_array(path, data=rng.standard_normal((5000, 5)), **{"chunks": (500, 5), **options})
    np.save(tmp_path / "labels.npy", labels)
    source = Source(DataSpec(path, str(tmp_path / "labels.npy")))
    opened = open_source(Source(DataSpec(array, labels))) if lazy else open_source(source)
    opened.kept = Kept(1 << 20)
    read_all(opened)
    assert read_all(opened).bytes_read == 0
    was = array[4321].copy()
    array[4321] = 0.5
    with pytest.raises(CorruptDataError, match=r"of X \(from point \d+\) has changed during the run"):
        read_all(opened)
    array[4321] = was
    assert read_all(opened).points == 5000


def test_what_was_surveyed_is_what_another_process_must_see(tmp_path: Path) -> None:
    X, labels = np.random.default_rng(0).standard_normal((500, 5)), np.arange(500) % 2
    zarr.create_array(tmp_path / "x", data=X, chunks=(50, 5))
    np.save(tmp_path / "labels.npy", labels)
    source = Source(DataSpec(tmp_path / "x", str(tmp_path / "labels.npy")))
    opened = open_source(source)
    pass_ = Survey()
    partials = [pass_.scan(block) for block in opened.read_blocks(range(opened.blocks), Cost())]
    summary = partials[0]
    for partial in partials[1:]:
        summary = pass_.merge(summary, partial)
    here = replace(open_source(source), expected=summary.checksums)
    same = read_all(open_source(source)).digest
    assert here.read_digest(None) == same == read_all(opened).digest
    chosen = range(0, opened.blocks, 2)
    cost = Cost()
    assert len(list(open_source(source).read_blocks(chosen, cost))) == len(chosen)
    assert here.read_digest(chosen) == cost.digest
    np.save(tmp_path / "labels.npy", 1 - labels)
    assert read_all(open_source(source)).digest != same
    np.save(tmp_path / "labels.npy", labels)
    zarr.open_array(tmp_path / "x")[77, 2] += 1
    assert read_all(open_source(source)).digest != same
    with pytest.raises(CorruptDataError, match="has changed"):
        read_all(here)


@pytest.mark.parametrize("kind", ["array", "memory map"])
@pytest.mark.parametrize("verb", ["soft_margin", "soft_margin_classes"])
def test_an_array_that_changes_while_a_verb_reads_it_is_noticed(tmp_path: Path, kind: str, verb: str) -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((8000, 6)).astype(np.float32)
    y = np.where(X @ rng.standard_normal(6) + 0.3 * rng.standard_normal(8000) > 0, 1, -1)
    if kind == "memory map":
        np.save(tmp_path / "X.npy", X)
        X = np.load(tmp_path / "X.npy", mmap_mode="r+")
    told: list[Any] = []

    def change(record: Any) -> None:
        told.append(record)
        if len(told) == 2:
            X[100:200] *= -1

    with pytest.raises(CorruptDataError, match="has changed during the run"):
        getattr(dfeas, verb)(X, y, callback=change)
