"""Masks, and several stores as one: the answers of the same points in one array."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfeas
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.readers import Buffers, Cost
from dfeas.data.subsets import join_datasets
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from tests.run.test_resume import run_until


@pytest.fixture
def stores(tmp_path: Path) -> tuple[np.ndarray, np.ndarray]:
    """1000 points of two classes, in one.npz, and in the datasets a (block of 64) and b (blocks of 50); one conflict."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1000, 4)).astype(np.float32), rng.integers(0, 2, 1000)
    X[:, 0] = np.where(y, 1, -1) * (np.abs(X[:, 0]) + 0.1)
    X[400], X[401], y[400], y[401] = X[3], X[3], 0, 1
    for name, rows, size in (("a", slice(0, 700), 64), ("b", slice(700, 1000), 50)):
        np.savez(tmp_path / f"{name}.npz", X=X[rows], y=y[rows])
        dfeas.ingest(tmp_path / f"{name}.npz", tmp_path / name, block_rows=size)
    return X, y


@pytest.mark.parametrize("share", [None, 0.03, 0.5, 1.0])
def test_picked_points_are_the_rows_of_one_array(stores: tuple[np.ndarray, np.ndarray], share: float | None) -> None:
    X, y = stores
    parts = [open_source(Source(DataSpec(X[rows], y[rows]))) for rows in (slice(0, 137), slice(137, 140), slice(140, 1000))]
    for part, size in zip(parts, (10, 3, 64), strict=True):
        part.block_rows = size
        for reader in (part.points, part.labels):
            object.__setattr__(reader, "block_rows", size)
    mask = None if share is None else np.random.default_rng(1).random(1000) < share
    found = join_datasets(parts, mask)
    kept = slice(None) if mask is None else mask
    blocks = [found.read(i, Buffers(), Cost()) for i in range(found.blocks)]
    assert np.array_equal(np.concatenate([block.points for block in blocks]), X[kept])
    assert np.array_equal(np.concatenate([block.label for block in blocks]) > 0, y[kept] == 1)


def test_a_masked_run_is_that_of_the_kept_points_and_is_verified(stores: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    X, y = stores
    data, also = tmp_path / "a", [tmp_path / "b"]
    whole = dfeas.solve([data, *also], out=tmp_path / "whole")
    assert (whole.verdict, whole.n) == ("infeasible", 1000)
    assert dfeas.verify_run(tmp_path / "whole").proof == "exact"
    mask = np.ones(1000, bool)
    mask[[3, 400, 401]] = False
    np.save(tmp_path / "mask.npy", mask)
    found = dfeas.solve([data, *also], mask=tmp_path / "mask.npy", out=tmp_path / "run")
    plain = dfeas.solve(X[mask], y[mask])
    assert (found.verdict, found.n) == (plain.verdict, plain.n) == ("feasible", 997)
    assert dfeas.solve(X, y, mask=mask).margin_lower == plain.margin_lower
    assert dfeas.verify_run(tmp_path / "run").margin_lower == found.margin_lower
    # points are called as they are in the stores
    mask[:] = True
    mask[:300] = False
    np.save(tmp_path / "late.npy", mask)
    named = dfeas.solve([data, *also], mask=tmp_path / "late.npy")
    points = [entry["point"] for entry in named.conflicts]
    assert 400 in points
    assert min(points) >= 300
    # another mask is other data
    mask[500] = False
    np.save(tmp_path / "mask.npy", mask)
    with pytest.raises((CorruptDataError, dfeas.CheckFailedError)):
        dfeas.verify_run(tmp_path / "run")


def test_classes_of_picked_points(stores: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    X, _ = stores
    label = np.arange(1000) % 3
    for name, rows in (("c", slice(0, 700)), ("d", slice(700, 1000))):
        np.savez(tmp_path / f"{name}.npz", X=X[rows] + 9 * np.eye(3, 4)[label[rows]], y=label[rows])
        dfeas.ingest(tmp_path / f"{name}.npz", tmp_path / name, block_rows=100)
    np.save(tmp_path / "mask.npy", np.arange(1000) % 2 == 0)
    more: dict[str, Any] = {"mask": tmp_path / "mask.npy", "intercept": True}
    found = dfeas.one_vs_rest([tmp_path / "c", tmp_path / "d"], out=tmp_path / "run", **more)
    checks = dfeas.verify_run(tmp_path / "run").classes
    assert [check and check.verdict for check in checks.values()] == [result.verdict for result in found.results.values()]
    assert dfeas.verify_run(tmp_path / "run" / "class-1").verdict == found.results["1"].verdict
    one = dfeas.solve([tmp_path / "c", tmp_path / "d"], positive="1", out=tmp_path / "one", **more)
    assert dfeas.verify_run(tmp_path / "one").verdict == one.verdict == found.results["1"].verdict


def test_workers_gather_the_same_points(client: Any, stores: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "mask.npy", np.arange(1000) % 5 > 0)
    more: dict[str, Any] = {"mask": tmp_path / "mask.npy", "method": "mirror-prox", "max_passes": 4}
    both = [tmp_path / "a", tmp_path / "b"]
    here, there = dfeas.solve(both, **more), dfeas.solve(both, client=client, **more)
    assert (here.margin_lower, here.margin_upper, here.fingerprint) == (
        there.margin_lower,
        there.margin_upper,
        there.fingerprint,
    )


def test_an_interrupted_run_on_picked_points_goes_on(stores: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "mask.npy", np.arange(1000) % 5 != 1)
    more: dict[str, Any] = {"mask": tmp_path / "mask.npy", "method": "von-neumann", "max_passes": 6}
    both = [tmp_path / "a", tmp_path / "b"]
    whole = dfeas.solve(both, **more)
    left = iter(range(3))
    begun = run_until(lambda: next(left, None) is None, dfeas.solve, both, out=tmp_path / "run", **more)
    assert begun.stopped == "interrupted"
    found = dfeas.resume(tmp_path / "run")
    assert (found.margin_lower, found.margin_upper) == (whole.margin_lower, whole.margin_upper)


def test_what_cannot_be_picked_is_said(stores: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    X, y = stores
    for mask, words in (
        (np.ones(999, bool), "expected 1000 booleans"),
        (np.ones(1000), "expected 1000 booleans"),
        (np.zeros(1000, bool), "keeps none of the 1000 points"),
    ):
        with pytest.raises(BadInputError, match=words):
            dfeas.solve(X, y, mask=mask)
    with pytest.raises(BadInputError, match=r"no such file .mask."):
        dfeas.solve(tmp_path / "a", mask=tmp_path / "none.npy")
    np.savez(tmp_path / "c.npz", X=X[:, :3], y=y)
    dfeas.ingest(tmp_path / "c.npz", tmp_path / "c")
    with pytest.raises(BadInputError, match=r"its features are 3, those of .*a 4"):
        dfeas.solve([tmp_path / "a", tmp_path / "c"])
    np.savez(tmp_path / "d.npz", X=X, y=y + 1)
    dfeas.ingest(tmp_path / "d.npz", tmp_path / "d")
    with pytest.raises(BadInputError, match=r"its classes are .'1', '2'., those of"):
        dfeas.solve([tmp_path / "a", tmp_path / "d"])
    with pytest.raises(UsageError, match="X: expected a path or several, got int"):
        dfeas.solve([tmp_path / "a", 5])
