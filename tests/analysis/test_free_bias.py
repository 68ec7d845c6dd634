"""The hard margin with a free bias: beside an independent solver, moved, scaled, limited, and proved by points of two hulls."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.svm import SVC

import dfeas
from dfeas.answers import base
from dfeas.answers.hard_margin import HardMargin
from dfeas.data.storage.files import write_json

Arrays = tuple[np.ndarray[Any, np.dtype[np.float64]], np.ndarray[Any, np.dtype[np.float64]]]
KINDS = ("plain", "shifted", "scaled", "twice", "one point of a class", "two points", "whole", "of any size", "flat")


def problem(kind: str, seed: int) -> Arrays:
    """Points on both sides of a plane, at least half of a drawn gap away from it."""
    rng = np.random.default_rng((KINDS.index(kind), seed))
    m, n = int(rng.integers(1, 9)), int(rng.integers(4, 60))
    w, b, gap = rng.standard_normal(m), 0.3 * rng.standard_normal(), 10 ** rng.uniform(-3, 0)
    w /= np.linalg.norm(w)
    X = rng.standard_normal((n, m))
    y = np.where(X @ w + b > 0, 1.0, -1.0)
    y[:2] = 1, -1
    X += (y * np.maximum(0, gap / 2 - y * (X @ w + b)))[:, None] * w
    if kind == "shifted":
        X += 10 ** rng.uniform(1, 6) * rng.standard_normal(m)
    elif kind == "scaled":
        X *= 10 ** rng.uniform(-4, 4, m)
    elif kind == "twice":
        X, y = np.vstack([X, X[n // 2 :]]), np.append(y, y[n // 2 :])
    elif kind == "one point of a class":
        X, y = np.vstack([X[y > 0], X[1]]), np.append(y[y > 0], -1)
    elif kind == "two points":
        X, y = X[:2], y[:2]
    elif kind == "whole":
        X = np.round(4 * X)
    elif kind == "of any size":
        X *= 10 ** rng.uniform(-8, 8)
    elif kind == "flat":
        X = np.hstack([X, np.zeros((n, 20))]) @ np.linalg.qr(rng.standard_normal((m + 20, m + 20)))[0]
    return X, y


def distance(X: Any, y: Any, w: Any) -> float:
    """Of the hyperplane along w with the best bias, from its nearest point."""
    score = X @ w
    return float((score[y > 0].min() - score[y < 0].max()) / 2 / np.linalg.norm(w))


def require_widest(X: Any, y: Any, found: HardMargin, tolerance: float) -> None:
    """Both ends are what they say, by their definitions, as near as was asked."""
    rounding = 1e-9 + 1e-14 * np.abs(X).max() / found.upper
    assert found.result.stopped == "verdict"
    assert found.lower >= (1 - tolerance) * found.upper
    assert (y * (X @ found.w + found.bias)).min() / np.linalg.norm(found.w) == pytest.approx(found.lower, rel=rounding)
    weight, points, signs = found.weights, X[found.support], y[found.support]
    assert [weight[signs == sign].sum() for sign in (1, -1)] == pytest.approx([0.5, 0.5])
    assert np.linalg.norm((weight * signs) @ points) == pytest.approx(found.upper, rel=rounding)


def compare(kind: str, seed: int) -> None:
    (X, y), tolerance = problem(kind, seed), (1e-3, 1e-5)[seed % 2]
    plain, found = dfeas.solve(X, y), dfeas.hard_margin(X, y, margin_tolerance=tolerance)
    assert found.result.verdict == plain.verdict
    if plain.verdict != "feasible":
        assert kind == "whole"
        assert (found.result.conflicts, found.result.proof, found.w) == (plain.conflicts, plain.proof, None)
        return
    require_widest(X, y, found, tolerance)
    if kind not in ("shifted", "scaled", "of any size"):  # where it gives up
        other = distance(X, y, SVC(kernel="linear", C=1e10, max_iter=100_000).fit(X, y).coef_[0])
        assert other <= found.upper * (1 + 1e-9)


@pytest.mark.filterwarnings("ignore:Solver terminated early")
@pytest.mark.parametrize("kind", KINDS)
def test_no_hyperplane_is_farther(kind: str) -> None:
    compare(kind, KINDS.index(kind) % 2)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Solver terminated early")
@pytest.mark.parametrize("kind", KINDS)
def test_no_hyperplane_is_farther_of_seventy(kind: str) -> None:
    for seed in range(2, 10):
        compare(kind, seed)


def test_moving_and_turning_all_points_changes_nothing_and_the_bias_is_not_in_the_length(arrays: Callable[..., Any]) -> None:
    X, y = arrays("planted", 3, 300, margin=0.1, dtype="float64")
    ends = [dfeas.hard_margin(X + shift, y) for shift in (0.0, 3.0, 1000.0)]
    assert [end.lower for end in ends] == pytest.approx([ends[0].lower] * 3, rel=1e-3)
    inside = dfeas.hard_margin(X + 3.0, y, intercept=False, transform="lengths")
    assert inside.lower is None
    assert inside.margin is None or inside.margin < ends[0].lower
    assert ends[0].dimension == 1 + min(3, int((ends[0].radius / ends[0].lower) ** 2))


@pytest.mark.parametrize("unit", [1e-20, 1e20])
def test_units_decide_nothing_where_features_are_more_than_points(unit: float) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(8, 150))
    y = np.array([1, -1] * 4)
    require_widest(X * unit, y, dfeas.hard_margin(X * unit, y), 1e-3)


def test_points_that_are_few_need_no_memory_for_systems_of_their_features() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 4000)), np.array([1, -1] * 15)
    require_widest(X, y, dfeas.hard_margin(X, y, memory="64MB"), 1e-3)


def test_points_of_one_class_have_a_hyperplane_at_any_distance(arrays: Callable[..., Any]) -> None:
    X, y = arrays("planted", 3, 100, margin=0.1, dtype="float64")
    found = dfeas.hard_margin(X, y, mask=y > 0)
    assert (found.result.verdict, found.result.stopped, found.upper) == ("feasible", "stalled", None)
    assert "are of one class" in found.result.message
    alone = dfeas.hard_margin([[1.0, 0.0], [-1.0, 0.0]], "all-positive", intercept=True)  # the bias alone separates them
    assert (alone.result.verdict, alone.result.stopped, alone.upper) == ("feasible", "stalled", None)
    assert "are of one class" in alone.result.message


def test_scaled_points_have_the_distance_of_scaled_points() -> None:
    X, y = problem("plain", 5)
    found = dfeas.hard_margin(X, y, transform="std")
    scaled = dfeas.hard_margin(X / X.std(axis=0), y)
    assert found.lower == pytest.approx(scaled.lower, rel=2e-3)
    assert found.margin == pytest.approx(distance(X, y, found.w), rel=1e-2)
    assert "as points are scaled this one is" in str(found)


def test_stored_sparse_and_on_a_cluster_it_is_the_same(client: Any, arrays: Callable[..., Any], tmp_path: Path) -> None:
    X, y = arrays("planted", 6, 3000, margin=0.05, dtype="float64")
    dfeas.ingest(X, tmp_path / "data", y=y, block_rows=256)
    here, there = dfeas.hard_margin(tmp_path / "data"), dfeas.hard_margin(tmp_path / "data", client=client)
    assert (here.lower, here.upper, here.w.tobytes()) == (there.lower, there.upper, there.w.tobytes())
    require_widest(X, y, here, 1e-3)
    assert here.result.reads < 10
    sparse = dfeas.hard_margin(scipy.sparse.csr_array(X), y)
    require_widest(X, y, sparse, 1e-3)


def test_a_limit_leaves_a_separator_and_the_run_goes_on_to_the_same_bits(arrays: Callable[..., Any], tmp_path: Path) -> None:
    X, y = arrays("planted", 6, 3000, margin=0.01, dtype="float64")
    whole = dfeas.hard_margin(X, y, out=tmp_path / "whole")
    early = dfeas.hard_margin(X, y, max_passes=2, out=tmp_path / "run")
    assert (early.result.verdict, early.result.stopped) == ("feasible", "pass_limit")
    assert 0 < early.lower <= whole.upper
    later = dfeas.resume(tmp_path / "run", X, y, max_passes=100)
    assert (later.result.stopped, later.lower, later.upper) == ("verdict", whole.lower, whole.upper)
    assert (tmp_path / "run" / "margin.json").read_bytes() == (tmp_path / "whole" / "margin.json").read_bytes()


def test_a_run_is_verified_and_predicts_by_the_widest(tmp_path: Path) -> None:
    X, y = problem("plain", 3)
    dfeas.ingest(X, tmp_path / "data", y=y)
    found = dfeas.hard_margin(tmp_path / "data", out=tmp_path / "run")
    coef = dfeas.load(tmp_path / "run").result.coef
    assert coef / np.linalg.norm(coef) == pytest.approx(found.w / np.linalg.norm(found.w))
    assert "it is the widest up to" in dfeas.verify_run(tmp_path / "run").message
    score = dfeas.predict(tmp_path / "run", X).score
    assert np.abs(score[y > 0].min() / score[y < 0].max()) == pytest.approx(1, rel=5e-3)


def test_too_little_memory_leaves_the_separator_and_says_how_much_is_needed(arrays: Callable[..., Any], tmp_path: Path) -> None:
    X, y = arrays("planted", 40, 20_000, margin=0.02, dtype="float32")
    dfeas.ingest(X, tmp_path / "data", y=y, block_rows=10_000)
    found = dfeas.hard_margin(tmp_path / "data", memory="24MB")
    assert (found.result.verdict, found.result.stopped, found.upper) == ("feasible", "stalled", None)
    assert found.lower > 0
    assert "is needed" in found.result.message


@pytest.mark.parametrize("raises", [False, True])
def test_an_interruption_after_the_solve_goes_on_to_the_same_bits(
    arrays: Callable[..., Any], tmp_path: Path, raises: bool
) -> None:
    X, y = arrays("planted", 6, 3000, margin=0.01, dtype="float64")
    methods: list[str] = []

    def ends(record: Any) -> bool:
        methods.append(record.method)
        if raises and record.method == "hinge":
            raise KeyboardInterrupt
        return record.method == "hinge"

    whole = dfeas.hard_margin(X, y, out=tmp_path / "whole")
    if raises:
        with pytest.raises(KeyboardInterrupt):
            dfeas.hard_margin(X, y, out=tmp_path / "run", callback=ends)
    else:
        assert dfeas.hard_margin(X, y, out=tmp_path / "run", callback=ends).result.stopped == "interrupted"
    assert methods[-1] == "hinge"
    later = dfeas.resume(tmp_path / "run", X, y)
    assert (later.result.stopped, later.result.passes) == ("verdict", whole.result.passes)
    assert (tmp_path / "run" / "margin.json").read_bytes() == (tmp_path / "whole" / "margin.json").read_bytes()
    assert not (tmp_path / "run" / "checkpoint").exists()


@pytest.mark.parametrize(("limited", "left"), [(False, 1), (True, 0)], ids=["at once", "after a limit"])
def test_killed_between_its_files_a_run_is_not_finished(
    limited: bool, left: int, arrays: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = arrays("planted", 4, 500, margin=0.01, dtype="float64")
    dfeas.ingest(X, tmp_path / "data", y=y)
    whole, run = dfeas.hard_margin(tmp_path / "data", out=tmp_path / "whole"), tmp_path / "run"
    if limited:
        assert dfeas.hard_margin(tmp_path / "data", max_passes=2, out=run).result.stopped == "pass_limit"
    written: list[Path] = []

    def kill(path: Path, *more: Any) -> None:
        if len(written) == left:
            raise SystemExit
        written.append(path)
        write_json(path, *more)

    with monkeypatch.context() as patch:
        patch.setattr(base, "write_json", kill)
        with pytest.raises(SystemExit):
            dfeas.resume(run, max_passes=100) if limited else dfeas.hard_margin(tmp_path / "data", out=run)
    assert [path.name for path in written] == ["margin.json"][:left]
    with pytest.raises(dfeas.BadInputError, match="no finished run"):
        dfeas.verify_run(run)
    assert dfeas.resume(run, max_passes=100).upper == whole.upper
    assert dfeas.verify_run(run).verdict == "feasible"
    assert (run / "margin.json").read_bytes() == (tmp_path / "whole" / "margin.json").read_bytes()
