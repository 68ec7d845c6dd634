"""Masks, and several stores as one: the answers of the same points in one array."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfeas
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
    plain = dfeas.solve(X[mask], y[mask], method="working-set-plain")
    assert (found.verdict, found.n) == (plain.verdict, plain.n) == ("feasible", 997)
    assert dfeas.solve(X, y, mask=mask, method="working-set-plain").margin_lower == plain.margin_lower
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
    dfeas.ingest(X, tmp_path / "e", y=y, sparse=True)
    with pytest.raises(BadInputError, match=r"one of it and .* is sparse, the other dense"):
        dfeas.solve([tmp_path / "a", tmp_path / "e"])
    with pytest.raises(BadInputError, match=r"/a: no point has the label 7; the classes are"):
        dfeas.solve([tmp_path / "a", tmp_path / "nothing"], positive="7")
    with pytest.raises(UsageError, match="X: expected a path or several, got int"):
        dfeas.solve([tmp_path / "a", 5])
