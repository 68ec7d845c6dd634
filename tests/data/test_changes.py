"""Data that changes under a run is noticed at the next pass; data that comes back as it was is not held against anybody."""

import os
from collections.abc import Callable
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
from dfeas.records import replace
from tests.data.making import flip, opened


def read_all(dataset: Dataset) -> Cost:
    cost = Cost()
    for _ in dataset.read_blocks(range(dataset.blocks), cost, keep=True):
        pass
    return cost


PLACES = {"X": ("c.3.0", 9), "label": ("c.0", 3 * (64 + 4) + 9), "norm": ("c.0", 3 * (64 * 8 + 4) + 9)}
"""Of a byte of block 3 of 64 points: its file, and where in it."""


@pytest.mark.parametrize(
    ("budget", "past_cache", "name"),
    [(0, False, "X"), (1 << 20, True, "X"), (0, True, "label"), (1 << 20, False, "label"), (1 << 20, True, "norm")],
)
def test_a_block_that_changes_between_passes_is_noticed(
    dataset: Callable[..., Any], budget: int, past_cache: bool, name: str
) -> None:
    path, _ = dataset("gaussian", 5, 300, block_rows=64)
    held = opened(path)
    held.points = replace(held.points, folder=replace(held.points.folder, past_cache=past_cache))
    held.kept = Kept(budget)
    whole = read_all(held).bytes_read
    named, place = PLACES[name]
    file = path / name / named
    intact = flip(file, place)
    for _ in range(2):
        with pytest.raises(CorruptDataError, match=r"(chunk|block) 3"):
            read_all(held)
    file.write_bytes(intact)
    os.utime(file, (0, 0))  # both writes may be of one tick of the clock
    cost = read_all(held)
    assert cost.points == 300
    # the block that came back is read again, with all that shared its file, and what had been kept of the others is used
    assert cost.bytes_read == (whole if budget == 0 or name != "X" else 64 * 5 * 4)


def test_a_kept_block_whose_file_is_gone_is_noticed(dataset: Callable[..., Any]) -> None:
    path, _ = dataset("gaussian", 5, 300, block_rows=64)
    held = opened(path)
    held.kept = Kept(1 << 20)
    read_all(held)
    (path / "X" / "c.2.0").unlink()
    with pytest.raises(CorruptDataError, match="chunk 2 of X is missing"):
        read_all(held)


def test_old_times_do_not_hide_a_change(dataset: Callable[..., Any]) -> None:
    path, _ = dataset("gaussian", 5, 300, block_rows=64)
    held = opened(path)
    read_all(held)
    file = path / "X" / "c.2.0"
    before = file.stat()
    flip(file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(CorruptDataError, match="chunk 2 of X"):
        read_all(held)


@pytest.mark.parametrize(("options", "lazy"), [({}, False), ({"compressors": None}, True), ({"chunks": (16, 2)}, False)])
def test_a_users_array_that_changes_between_passes_is_noticed(tmp_path: Path, options: dict[str, Any], lazy: bool) -> None:
    rng = np.random.default_rng(0)
    path, labels = tmp_path / "x", np.arange(5000) % 2
    array = zarr.create_array(path, data=rng.standard_normal((5000, 5)), **{"chunks": (500, 5), **options})
    np.save(tmp_path / "labels.npy", labels)
    source = Source(DataSpec(path, str(tmp_path / "labels.npy")))
    held = opened(array, labels) if lazy else open_source(source)
    held.kept = Kept(1 << 20)
    read_all(held)
    assert read_all(held).bytes_read == 0
    was = array[4321].copy()
    array[4321] = 0.5
    with pytest.raises(CorruptDataError, match=r"of X \(from point \d+\) has changed during the run"):
        read_all(held)
    array[4321] = was
    assert read_all(held).points == 5000


@pytest.mark.parametrize(
    ("kind", "verb", "before", "options"),
    [
        ("array", "soft_margin", 1, {}),
        ("array", "soft_margin", 1, {"loss": "squared_hinge"}),
        ("array", "soft_margin", 2, {"loss": "squared_hinge", "tol": 1e-12}),  # which is not the last one
        ("memory map", "soft_margin_classes", 2, {}),
    ],
)
def test_an_array_that_changes_before_the_last_read_is_noticed(
    tmp_path: Path, kind: str, verb: str, before: int, options: dict[str, Any]
) -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((8000, 6)).astype(np.float32)
    y = np.where(X @ rng.standard_normal(6) + 0.3 * rng.standard_normal(8000) > 0, 1, -1)
    if kind == "memory map":
        np.save(tmp_path / "X.npy", X)
        X = np.load(tmp_path / "X.npy", mmap_mode="r+")
    told: list[Any] = []

    def change(record: Any) -> None:
        told.append(record)
        if len(told) == before:
            X[100:200] *= -1

    with pytest.raises(CorruptDataError, match="has changed during the run"):
        getattr(dfeas, verb)(X, y, callback=change, **options)
