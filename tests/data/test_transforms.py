"""Features centred and scaled, points not normalised: the questions of the same arrays transformed by NumPy."""

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import zarr
from click.testing import CliRunner

import dfeas
from dfeas.cli.main import commands
from dfeas.data.source import DataSpec, Transform, parse_view, view_text
from dfeas.data.storage.layout import seen_fingerprint
from dfeas.errors import BadInputError, CheckFailedError, CorruptDataError, UsageError
from dfeas.exact.arithmetic import Wide
from dfeas.linalg.points import norms
from dfeas.passes.block import Block
from dfeas.passes.survey import Moments
from dfeas.records import replace
from dfeas.verify.certificate import Certificate, load
from dfeas.verify.view import FeatureScaling

WAYS: tuple[dict[str, Any], ...] = (
    {"transform": ["std", "center"]},
    {"transform": ["maxabs", "lengths"]},
    {"transform": ["maxabs", "center"]},
    {"transform": ["center", "lengths"]},
)


def points(dtype: str = "float64", flipped: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """600 points of 5 features, the fourth the same everywhere, separable through their mean but for some flipped labels."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 5)) * [10, 40, 5, 0, 20] + [120, 100, 90, 7, 110]
    X = np.clip(np.round(X), 0, 250).astype(dtype)
    Z = X - X.mean(axis=0, dtype=np.float64)
    score = Z @ [2.0, -1.0, 3.0, 0.0, 1.0]
    kept = np.abs(score) > 8
    X, label = X[kept], np.where(score[kept] > 0, 1, -1)
    label[:flipped] *= -1
    return X, label


def by_numpy(X: np.ndarray, way: dict[str, Any], intercept: bool) -> tuple[np.ndarray, np.ndarray]:
    """(Z, lengths) of what is asked, in float64."""
    Z = X.astype(np.float64)
    if "center" in way["transform"]:
        Z = Z - Z.mean(axis=0)
    if {"std", "maxabs"} & set(way["transform"]):
        std = "std" in way["transform"]
        size = Z.std(axis=0) if std else np.abs(Z).max(axis=0)
        Z = Z / np.where(Z.std(axis=0) < 1e-9, 1.0 if std or "center" in way["transform"] else size, size)
    if intercept:
        Z = np.hstack([Z, np.ones((len(Z), 1))])
    length = np.linalg.norm(Z, axis=1)
    return Z, length if "lengths" not in way["transform"] else np.full(len(Z), length.max())


@pytest.fixture
def stored(tmp_path: Path) -> Callable[..., Path]:
    """A dataset of small blocks."""

    def make(X: Any, label: np.ndarray, name: str = "data") -> Path:
        if sp.issparse(X):
            sp.save_npz(tmp_path / f"{name}.npz", sp.csr_matrix(X))
            np.save(tmp_path / f"{name}.npy", label)
            dfeas.ingest(tmp_path / f"{name}.npz", tmp_path / name, y=tmp_path / f"{name}.npy", block_rows=64)
        else:
            np.savez(tmp_path / f"{name}.npz", X=X, y=label)
            dfeas.ingest(tmp_path / f"{name}.npz", tmp_path / name, block_rows=64)
        return tmp_path / name

    return make


@pytest.mark.parametrize(("dtype", "way"), list(zip(("uint8", "float16", "float32", "float64"), WAYS, strict=True)))
@pytest.mark.parametrize(("flipped", "intercept"), [(0, True), (40, False)])
def test_bounds_are_those_of_the_array_transformed_by_numpy(
    stored: Callable[..., Path], tmp_path: Path, dtype: str, way: dict[str, Any], flipped: int, intercept: bool
) -> None:
    X, label = points(dtype, flipped)
    data = stored(X, label)
    found = dfeas.solve(data, out=tmp_path / "run", intercept=intercept, **way)
    Z, length = by_numpy(X, way, intercept)
    columns = Z * (label / length)[:, None]
    if found.separator is not None:
        margin = (columns @ found.separator).min() / np.linalg.norm(found.separator)
        assert found.verdict == "feasible"
        assert found.margin_lower == pytest.approx(margin, rel=1e-6)
    else:
        assert found.support is not None
        assert found.weights is not None
        assert found.verdict == "infeasible"
        assert np.linalg.norm(found.weights @ columns[found.support]) < 1e-12
    assert (found.verdict == "feasible") == (flipped == 0)  # a feature that is the same everywhere is as good as an intercept
    proved = found.margin_lower if found.verdict == "feasible" else -1.0  # what scores a conflict is nobody's proof
    assert dfeas.verify_run(tmp_path / "run").margin_lower == proved
    alone = dfeas.verify_certificate(data, tmp_path / "run" / "certificate.npz", intercept=intercept, **way)
    assert alone.proof == found.proof
    assert found.bytes_read == round(found.reads * X.nbytes)
    if found.separator is not None:
        scored = dfeas.predict(tmp_path / "run", data)
        assert scored.accuracy == 1
        assert np.allclose(scored.score, Z @ found.separator)


def test_widest_margin_of_points_that_are_not_normalised_is_a_distance() -> None:
    rng = np.random.default_rng(0)
    side = np.where(rng.random(200) < 0.5, -1, 1)
    X = np.column_stack([side * (3 + rng.random(200)), 9 * rng.standard_normal((200, 2))])
    X[:6, :] = [[3, 9, 0], [3, -9, 0], [3, 0, 9], [3, 0, -9], [-3, 0, 0], [-3, 0, 9]]
    side[:6] = [1, 1, 1, 1, -1, -1]
    found = dfeas.hard_margin(X, side, intercept=False, transform="lengths")
    assert found.margin == pytest.approx(3, rel=2e-3)
    assert found.result.margin_lower * np.linalg.norm(X, axis=1).max() == pytest.approx(found.margin)
    both, sides = np.vstack([X, -X]) + 1000, np.concatenate([side, -side])
    shifted = dfeas.hard_margin(both, sides, intercept=False, transform=["std", "center", "lengths"])
    assert shifted.w is not None
    assert shifted.bias is not None
    assert (sides * (both @ shifted.w + shifted.bias)).min() == pytest.approx(1)


def test_a_zero_point_after_centring_and_equal_features() -> None:
    X = np.array([[1.0, 5, 7], [3, 1, 7], [2, 3, 7], [0, 0, 7], [4, 6, 7]])
    found = dfeas.solve(X, [1, 1, 1, -1, 1], intercept=False, transform=["std", "center"])
    assert (found.verdict, found.proof, found.support.tolist()) == ("infeasible", "exact", [2])  # it is the mean of all
    transform = parse_view(found.evidence.view)[1]
    assert transform is not None
    assert (transform.shift[2], transform.factor[2]) == (7.0, 1.0)
    assert dfeas.solve(X, [1, 1, 1, -1, 1], intercept=False, transform="std").verdict == "feasible"
    same = dfeas.solve(np.full((4, 2), 0.1), [1, -1, 1, -1], intercept=False, transform=["maxabs", "center"])
    assert (same.verdict, same.proof) == ("infeasible", "exact")


def test_entries_at_the_ends_of_floats() -> None:
    X, label = points()
    for factor in (1e-310, 1e-170, 1e120):
        scaled = X * np.array([1, factor, 1, 1, 1])
        for way in WAYS:
            found = dfeas.solve(scaled, label, intercept=True, **way)
            assert found.verdict in ("feasible", "infeasible") or (found.stopped == "stalled" and found.margin_upper < 1e-12)
    X[3, 1] = 1e200
    with pytest.raises(BadInputError, match="point 3"):
        dfeas.solve(X, label, transform="std")


def test_signs_of_transformed_scores_are_those_of_rationals() -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        m = int(rng.integers(1, 5))
        shift, factor, y = rng.standard_normal(m) * 1e3, 10 ** rng.uniform(-9, 9, m), rng.standard_normal(m + 1)
        x = shift + rng.standard_normal((6, m)) * 10 ** rng.uniform(-12, 0)
        # the last feature brings the score next to zero, which float64 cannot tell
        rest = ((x[:, :-1] - shift[:-1]) * factor[:-1]) @ y[: m - 1] + y[m]
        x[:, -1] = shift[-1] - rest / (factor[-1] * y[m - 1])
        exact = [Fraction(y[m]) for _ in x]
        for i, j in np.ndindex(x.shape):
            exact[i] += (Fraction(x[i, j]) - Fraction(shift[j])) * Fraction(factor[j]) * Fraction(y[j])
        sign, least = FeatureScaling(shift, factor).signs(Wide(np.hstack([x, np.ones((6, 1))])), y)
        assert sign.tolist() == [(score > 0) - (score < 0) for score in exact]
        assert all(Fraction(low) <= abs(score) for low, score in zip(least, exact, strict=True))


@pytest.mark.parametrize("flipped", [0, 40])
def test_forged_numbers_are_noticed(stored: Callable[..., Path], tmp_path: Path, flipped: int) -> None:
    X, label = points("float32", flipped)
    data, file = stored(X, label), tmp_path / "forged.npz"
    dfeas.solve(data, out=tmp_path / "run", transform=["std", "center", "lengths"])
    certificate = load(tmp_path / "run" / "certificate.npz")
    _, true = parse_view(certificate.view)
    assert true is not None
    mark = zarr.open_group(data, mode="r").attrs["dfeas"]["fingerprint"]

    def verify(transform: Transform) -> str:
        view = view_text(None, transform)
        forged: Certificate = replace(certificate, view=view, fingerprint=seen_fingerprint(mark, view))
        forged.save(file)
        return dfeas.verify_certificate(data, file).verdict

    assert verify(true) == ("infeasible" if flipped else "feasible")
    for changed, words in (
        (replace(true, factor=(1e-30, *true.factor[1:])), "feature 0 is said to be scaled"),
        (replace(true, shift=(*true.shift[:-1], true.shift[-1] + 0.01)), "feature 4 is said to be centred"),
        (replace(true, length=2 * (true.length or 0)), "longest point"),
        (replace(true, scale="maxabs"), "maxabs"),
        (replace(true, points=3), "said to be"),
        (replace(true, points=10**6), "1000000 points"),
        (replace(true, shift=true.shift[1:]), "features"),
        (replace(true, factor=(float("inf"), *true.factor[1:])), "not a readable transform"),
        (replace(true, length=0.0), "not a readable transform"),
    ):
        with pytest.raises((CheckFailedError, CorruptDataError), match=words):
            verify(changed)
    result = tmp_path / "run" / "result.json"
    values = json.loads(result.read_text())
    values["data"]["transform"]["factor"][0] *= 2
    result.write_text(json.dumps(values))
    with pytest.raises(CheckFailedError, match="it is seen with"):
        dfeas.verify_run(tmp_path / "run")


def test_a_run_goes_on_with_its_numbers(tmp_path: Path) -> None:
    X, label = points("float32")
    zarr.create_array(tmp_path / "X.zarr", data=X, chunks=(64, 5))
    np.save(tmp_path / "y.npy", label)
    data = tmp_path / "X.zarr", tmp_path / "y.npy"
    options: dict[str, Any] = {"method": "mirror-prox", "margin_tolerance": 0.1, **WAYS[3]}
    cut = dfeas.solve(*data, out=tmp_path / "run", max_passes=6, **options)
    assert cut.stopped == "pass_limit"
    resumed = dfeas.resume(tmp_path / "run", max_passes=40)
    whole = dfeas.solve(*data, max_passes=40, **options)
    assert (resumed.separator == whole.separator).all()
    assert (resumed.passes, resumed.fingerprint) == (whole.passes, whole.fingerprint)
    assert dfeas.verify_run(tmp_path / "run").margin_lower == whole.margin_lower


def test_sparse_points_are_scaled_as_dense_ones(stored: Callable[..., Path], tmp_path: Path) -> None:
    X = sp.random(400, 60, 0.1, random_state=0, format="csr", dtype=np.float32)
    label = np.where(X @ np.random.default_rng(0).standard_normal(60) > 0, 1, -1)
    kept = np.flatnonzero(np.diff(X.indptr))
    X, label = X[kept], label[kept]
    data = stored(X, label)
    for way in (["std"], ["maxabs", "lengths"]):
        run = tmp_path / way[0]
        found, dense = dfeas.solve(data, out=run, transform=way), dfeas.solve(X.toarray(), label, transform=way)
        assert found.verdict == dense.verdict == dfeas.verify_run(run).verdict
        assert found.margin_lower == pytest.approx(dense.margin_lower, rel=1e-6)
        assert dfeas.predict(run, data).accuracy == 1
    with pytest.raises(UsageError, match="sparse points would fill up"):
        dfeas.solve(data, transform="center")


def test_moments_are_those_of_numpy_in_any_cut() -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 4)) < 0.4, rng.standard_normal((300, 4)) + 1e6, 0.0)
    label, moments = np.ones(300), Moments()
    for form in (np.asarray, sp.csr_array):
        whole = None
        for rows in np.split(np.arange(300), np.sort(rng.integers(0, 300, 5))):
            some = form(X[rows])
            part = moments.scan(Block.of(0, some, label[rows], norms(some)))
            whole = part if whole is None else moments.merge(whole, part)
        assert whole is not None
        assert np.array_equal(whole.least, X.min(axis=0))
        assert np.array_equal(whole.greatest, X.max(axis=0))
        assert np.allclose(whole.mean, X.mean(axis=0), rtol=1e-12)
        assert np.allclose(whole.std, X.std(axis=0), rtol=1e-9)


def test_classes_are_seen_with_one_set_of_numbers(stored: Callable[..., Path], tmp_path: Path) -> None:
    X, _ = points("float32")
    data = stored(X, np.digitize(X[:, 1], [80, 120]))
    found = dfeas.one_vs_rest(data, out=tmp_path / "run", intercept=True, **WAYS[0])
    assert [found.results[name].verdict for name in "012"] == ["feasible", "infeasible", "feasible"]
    assert found.results["2"].margin_lower == pytest.approx(
        dfeas.solve(data, positive="2", intercept=True, **WAYS[0]).margin_lower
    )
    checks = dfeas.verify_run(tmp_path / "run").classes
    assert {name: check and check.verdict for name, check in checks.items()} == {
        name: result.verdict for name, result in found.results.items()
    }


def test_the_command_line_picks_and_transforms(stored: Callable[..., Path], tmp_path: Path) -> None:
    X, label = points("float32")
    data, mask = stored(X, label), tmp_path / "mask.npy"
    np.save(mask, np.arange(len(X)) % 3 > 0)
    picked = ["--mask", str(mask), "--scale", "std", "--center", "--no-normalize"]
    runner = CliRunner()

    def run(*words: Any) -> Any:
        return runner.invoke(commands, [str(word) for word in words])

    methods = "working-set,von-neumann"
    raced = run("race", data, "--out", tmp_path / "race", "--methods", methods, "--intercept", *picked)
    assert raced.exit_code == 0
    for what in ("means and spreads of features", "lengths of points"):
        assert re.search(rf"one read for {what}\n{what}: [0-9.]+ [kMG]?i?B/s  [0-9.]+ s\n", raced.output), raced.output
    race = tmp_path / "race" / "working-set"
    assert dfeas.verify_run(race).points == (np.arange(len(X)) % 3 > 0).sum()
    assert "working-set" in run("plan", data, *picked, "--method", "working-set").output
    certificate = race / "certificate.npz"
    assert "feasible" in run("verify", data, certificate, "--intercept", *picked).output
    assert run("verify", data, certificate, "--intercept", "--mask", mask, "--scale", "maxabs").exit_code == 6
    assert run("verify", data, certificate, "--intercept").exit_code == 5  # the mask is left out
    assert run("svm", data, "--out", tmp_path / "svm", "--intercept", "--mask", mask).exit_code == 0
    assert run("solve", data, "--out", tmp_path / "x", "--scale", "foo").exit_code == 2


def test_what_makes_no_sense_is_refused() -> None:
    X, label = points()
    with pytest.raises(UsageError, match="expected maxabs, std"):
        dfeas.solve(X, label, transform="foo")
    with pytest.raises(UsageError, match="leave it out where a point asks for their hull"):
        DataSpec(X, point=[0.0] * X.shape[1], transform=Transform("std"))
