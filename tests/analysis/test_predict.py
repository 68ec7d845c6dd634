"""Predictions: scores against NumPy, accuracy and confusion, errors in words."""

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import zarr

import dfeas
from dfeas.errors import BadInputError, UsageError
from tests.kernels.making import ring


@pytest.fixture
def planes(tmp_path: Path) -> Path:
    """Two classes by name, three features, float32, and a run with an intercept."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 3)).astype(np.float32)
    X = X[np.abs(X @ [1, 2, 3] - 0.5) > 0.1]
    np.savez(tmp_path / "data.npz", X=X, y=np.where(X @ [1, 2, 3] > 0.5, "yes", "no"))
    dfeas.ingest(tmp_path / "data.npz", tmp_path / "data", positive="yes")
    assert dfeas.solve(tmp_path / "data", intercept=True, out=tmp_path / "run").verdict == "feasible"
    return tmp_path


def test_scores_are_products_with_the_separator(planes: Path) -> None:
    found = dfeas.predict(planes / "run", planes / "data", out=planes / "scores.npy")
    with np.load(planes / "data.npz") as arrays, np.load(planes / "run" / "certificate.npz") as kept:
        expected = arrays["X"].astype(float) @ kept["y"][:3] + kept["y"][3]
        labels = arrays["y"]
    assert np.allclose(np.load(planes / "scores.npy"), expected, rtol=1e-12, atol=1e-14)
    assert (found.classes, found.accuracy) == (("no", "yes"), 1.0)
    assert found.confusion == [[int((labels == "no").sum()), 0], [0, int((labels == "yes").sum())]]
    json.dumps(found.to_json())


def columns_in(file: Path) -> tuple[Any, Any]:
    """Scores and classes of a file, with whatever reads its format."""
    if file.suffix == ".parquet":
        table = pd.read_parquet(file)
        return table["score"].to_numpy(), table["class"].to_numpy()
    if file.suffix == ".zarr":
        group = zarr.open_group(file, mode="r")
        return group["score"][:], np.array(group["class"].attrs["classes"])[group["class"][:]]
    scores = np.load(file)
    return scores, np.array(["no", "yes"])[(scores > 0).astype(int)]


@pytest.mark.parametrize("name", ["scores.npy", "scores.parquet", "scores.zarr"])
def test_a_file_of_any_format_has_all_scores_and_is_there_whole_or_not_at_all(planes: Path, name: str) -> None:
    n, out, seen = 60_000, planes / name, []
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 3)).astype(np.float32)
    dfeas.ingest(X, planes / "new", y=np.where(X @ [1, 2, 3] > 0.4, "yes", "no"), block_rows=1000)
    here = dfeas.predict(planes / "run", planes / "new")
    there = dfeas.predict(planes / "run", planes / "new", out=out, memory="18MB", progress=lambda *done: seen.append(done))
    scores, classes = columns_in(out)
    assert np.array_equal(scores, here.score)
    assert (classes == np.where(here.score > 0, "yes", "no")).all()
    assert there.to_json() == here.to_json()
    assert (there.score, there.predicted) == (None, None)
    assert len(seen) > 2
    assert seen == sorted(seen)
    assert seen[-1] == (n, n)
    X[-5] = np.nan
    np.save(planes / "bad.npy", X)
    with pytest.raises(BadInputError, match="point 59995 has entries that are not finite"):
        dfeas.predict(planes / "run", planes / "bad.npy", out=planes / f"bad-scores{out.suffix}", memory="18MB")
    assert not [path for path in planes.iterdir() if "bad" in path.name and path.name != "bad.npy"]
    if out.suffix == ".zarr":
        with pytest.raises(UsageError, match="exists already"):
            dfeas.predict(planes / "run", planes / "new", out=out)


def test_classes_of_many_are_values_in_parquet(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((500, 2))
    fits = dfeas.soft_margin_classes(X, np.digitize(X[:, 0], [-0.5, 0.5]) * 10)
    expected = fits.predict(X)
    dfeas.predict(fits, X, out=tmp_path / "classes.parquet")
    scores, classes = columns_in(tmp_path / "classes.parquet")
    assert np.array_equal(classes, expected)
    assert np.array_equal(scores, fits.decision_function(X).max(axis=1))


def test_cones_have_a_score_each_in_a_file(tmp_path: Path) -> None:
    cones = dfeas.from_cone_rows(np.array([[1.0, 1.0], [0.0, 2.0], [3.0, 1.0]]), {"l": 1, "q": [2]})
    result = dfeas.solve(cones)
    expected = dfeas.predict(result, cones)
    for name in ("least.npy", "least.parquet", "least.zarr"):
        found = dfeas.predict(result, cones, out=tmp_path / name)
        assert np.array_equal(found.least, expected.least)
    assert np.array_equal(pd.read_parquet(tmp_path / "least.parquet")["score"], expected.least)
    assert np.array_equal(zarr.open_group(tmp_path / "least.zarr", mode="r")["score"][:], expected.least)


def test_scores_that_memory_does_not_hold_go_to_a_file(tmp_path: Path) -> None:
    n, memory = 1_500_000, 32_000_000
    X = np.random.default_rng(0).standard_normal((n, 4)).astype(np.float32)
    dfeas.ingest(X, tmp_path / "data", y=X[:, 0] > 0)
    result = dfeas.solve(tmp_path / "data")
    del X
    tracemalloc.start()
    found = dfeas.predict(result, tmp_path / "data", out=tmp_path / "scores.npy", memory=memory)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.accuracy == 1.0
    assert peak <= memory < 8 * n + 2 * n + 16 * n  # scores, positions, and a copy of the parts of which they are made


def test_new_points_need_no_labels_and_others_are_counted(planes: Path) -> None:
    X = np.array([[9.0, 9, 9], [-9, -9, -9], [9, 9, 9.5]])
    assert dfeas.predict(planes / "run", X).accuracy is None
    wrong = dfeas.predict(planes / "run", X, np.array(["yes", "no", "no"]), positive="yes")
    assert wrong.accuracy == pytest.approx(2 / 3)
    assert wrong.confusion == [[1, 1], [0, 1]]


def test_a_kernel_reads_the_points_of_its_expansion_again(tmp_path: Path) -> None:
    X, labels = ring(2000, 0)
    np.savez(tmp_path / "data.npz", X=X, y=labels)
    dfeas.ingest(tmp_path / "data.npz", tmp_path / "data")
    dfeas.solve(tmp_path / "data", kernel=dfeas.Kernel("rbf", gamma=0.5), out=tmp_path / "run")
    new, truth = ring(500, 1)
    found = dfeas.predict(tmp_path / "run", new, truth)
    with np.load(tmp_path / "run" / "certificate.npz") as kept:
        squares = ((new[:, None] - X[kept["support"]][None]) ** 2).sum(2)
        expected = np.exp(-0.5 * squares) @ (kept["weights"] * labels[kept["support"]])
    assert np.allclose(found.score, expected, rtol=1e-9, atol=1e-12)
    assert found.accuracy > 0.97
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    with pytest.raises(BadInputError, match="no such file"):
        dfeas.predict(tmp_path / "run", new)


def test_what_a_killed_process_of_this_number_left_is_no_obstacle(tmp_path: Path) -> None:
    X = np.array([[1.0], [-1.0]])
    zarr.create_group(str(tmp_path / f".out.zarr.{os.getpid()}.part"))
    dfeas.predict(dfeas.solve(X, [1, 0]), X, out=tmp_path / "out.zarr")
    assert [each.name for each in tmp_path.iterdir()] == ["out.zarr"]
