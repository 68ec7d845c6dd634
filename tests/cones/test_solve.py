"""Solving cones: theorems, verdicts with evidence, files, both engines, and what is refused."""

import gzip
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import dfeas
from dfeas.cones.generate import ConeInstance
from dfeas.cones.sdpa import ingest_cones
from dfeas.cones.space import CONE_METHODS, ConeEngine
from dfeas.data.generate.points import generate
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine.distributed import DaskEngine
from dfeas.engine.local import LocalEngine
from dfeas.methods.protocol import Facts
from dfeas.passes.softmin import Softmin
from dfeas.records import replace
from dfeas.verify.core import check
from tests.cones.making import CONE, least
from tests.cones.plain import cones_of, element, matrix, problem, scaled, spectrum, unit

METHODS = [name for name in CONE_METHODS if name != "mirror-prox-euclidean"]


def margin_of(X: np.ndarray, cone: dict[str, Any], y: np.ndarray) -> float:
    """Plainly."""
    return least(scaled(X, cone) @ (y / np.linalg.norm(y)), cone)


def states(dataset: Any, name: str, passes: int) -> Any:
    """The evidence of a method after each pass, until it separates."""
    engine = ConeEngine(LocalEngine(dataset, 1))
    facts = Facts(dataset.m, dataset.rank, blocks=dataset.blocks)
    method = CONE_METHODS[name]
    state = method.init(facts)
    for _ in range(passes):
        state = method.tell(state, engine.run(method.ask(state)))
        yield method.evidence(state)


@pytest.mark.parametrize("name", METHODS)
def test_methods_prove_either_answer(name: str) -> None:
    rng = np.random.default_rng(1)
    X = problem(rng, CONE, 5, 0.5)
    result = dfeas.solve(dfeas.from_cone_rows(X, CONE), method=name)
    assert (result.verdict, result.proof, result.method) == ("feasible", "rigorous", name)
    assert 0 < result.margin_lower <= margin_of(X, CONE, result.separator) * (1 + 1e-12)
    assert result.margin_lower >= margin_of(X, CONE, result.separator) * (1 - 1e-9)
    assert "critical: " in result.message
    X = problem(rng, CONE, 4, None)
    result = dfeas.solve(dfeas.from_cone_rows(X, CONE), method=name, eps=2e-2)
    assert (result.verdict, result.proof) in (("eps-infeasible", "rigorous"), ("infeasible", "exact"))
    exact = result.proof == "exact"
    x = np.zeros(len(X))
    x[result.support] = result.weights
    trace = 0.0
    for kind, size, rows in cones_of(CONE):
        assert np.linalg.norm(x[rows]) == 0 or spectrum(kind, size, x[rows])[0].min() > -1e-12
        trace += float(x[rows] @ unit(kind, size))
    assert np.linalg.norm(scaled(X, CONE).T @ x) / trace <= 2e-2
    assert result.margin_upper == 0 if exact else np.linalg.norm(scaled(X, CONE).T @ x) / trace <= result.margin_upper <= 2e-2


def test_theorems_hold_with_the_rank_in_place_of_the_points() -> None:
    rng = np.random.default_rng(2)
    rank = dfeas.from_cone_rows(problem(rng, CONE, 4, None), CONE).rank
    assert rank == 3 + 2 * 4 + 2 + 4 + 4 + 3
    for margin in (None, 0.4):
        X = problem(rng, CONE, 4, margin)
        dataset = dfeas.from_cone_rows(X, CONE)
        best = dfeas.solve(dataset, margin_tolerance=1e-4, eps=1e-9)
        gaps = {}
        for name, passes in (("mirror-prox-fixed", 21), ("smooth-perceptron", 40)):
            for evidence in states(dataset, name, passes):
                assert evidence.bracket.lower <= max(0.0, best.margin_upper) + 1e-9
                assert evidence.bracket.upper >= max(0.0, best.margin_lower) - 1e-9
                t = evidence.iterations
                gaps[name] = evidence.bracket.upper - max(0.0, evidence.bracket.lower)
                if t and name == "mirror-prox-fixed":
                    assert gaps[name] <= sqrt(2 * log(rank)) / t + 1e-9
                if t and name == "smooth-perceptron" and margin is None:
                    assert evidence.bracket.upper <= 2 * sqrt(2 * log(rank)) / (t + 1) + 1e-9
        for name in ("perceptron", "von-neumann"):
            for t, evidence in enumerate(states(dataset, name, 40), 1):
                if evidence.bracket.lower <= 0:
                    assert evidence.bracket.upper <= 1 / sqrt(t) + 1e-9
                    assert margin is None or t <= 1 + 1 / best.margin_lower**2


def test_hard_kinds_are_what_they_are_called(tmp_path: Path) -> None:
    """Averages do not separate, the margin is the known one, and a conflict has a corner in every part of the data."""
    margin = 1e-5
    sizes: dict[str, Any] = {"m": 8, "cones": "l:40,q:4x300,s:3x200", "margin": margin, "block_rows": 100}
    instance = ConeInstance("cones-boundary", **sizes)
    generate(instance, tmp_path / "data")
    dataset = open_source(Source(DataSpec(tmp_path / "data"), cones=True))
    engine = ConeEngine(LocalEngine(dataset, 1))
    at_zero = engine.run(Softmin(np.zeros((8, 1)), np.ones(1)))
    averaged, planted = (
        engine.run(Softmin(y / np.linalg.norm(y), np.zeros(1))).low[0]
        for y in (at_zero.mean, instance.planted_direction()[:, None])
    )
    assert averaged < -0.1
    assert planted == pytest.approx(margin, rel=1e-4)
    result = dfeas.solve(tmp_path / "data", margin_tolerance=1e-2)
    assert result.verdict == "feasible"
    assert 0.99 * margin <= result.margin_lower <= margin * (1 + 1e-4) <= result.margin_upper * (1 + 2e-4)
    instance = ConeInstance("cones-scattered", **sizes)
    header = generate(instance, tmp_path / "conflict")
    result = dfeas.solve(tmp_path / "conflict", eps=1e-3 * margin)
    assert result.verdict in ("infeasible", "eps-infeasible")
    x = np.zeros(header.n)
    x[result.support] = result.weights
    blocks = np.arange(header.n) // 100
    heavy = {int(blocks[row]) for row in np.flatnonzero(x > 1e-3)}
    assert len(heavy) >= 8
    np.testing.assert_allclose(instance.corners.sum(axis=0), -0.25 * margin * instance.planted_direction(), atol=1e-14)


@pytest.mark.parametrize("margin", [0.05, 1e-6])
def test_the_working_set_finds_the_known_margin_of_many_blocks(margin: float, tmp_path: Path) -> None:
    instance = ConeInstance("cones", 8, "l:40,q:4x300,s:3x200", margin, block_rows=100)
    header = generate(instance, tmp_path / "data")
    assert header.n > 40 + 4 * 300 + 6 * 200  # some blocks are filled up
    result = dfeas.solve(tmp_path / "data", margin_tolerance=1e-2, out=tmp_path / "run")
    assert result.verdict == "feasible"
    assert result.passes <= 6
    assert 0.99 * margin <= result.margin_lower <= margin * (1 + 1e-6) <= result.margin_upper * (1 + 2e-6)
    assert dfeas.verify_run(tmp_path / "run").margin_lower == result.margin_lower


def test_a_planted_x_is_found_and_a_cone_of_zeros_is_exact(tmp_path: Path) -> None:
    generate(ConeInstance("cones-infeasible", 6, "q:3x100,s:3x50", 0.02), tmp_path / "data")
    result = dfeas.solve(tmp_path / "data", eps=1e-9)
    assert (result.verdict, result.proof) == ("infeasible", "exact")
    X = problem(np.random.default_rng(0), CONE, 4, 0.5)
    X[3:5] = 0
    result = dfeas.solve(dfeas.from_cone_rows(X, CONE))
    assert (result.verdict, result.proof, result.margin_upper) == ("infeasible", "exact", 0.0)
    assert "row 3" in result.message


def test_both_engines_and_a_resumed_run_give_the_same_bits(client: Any, tmp_path: Path) -> None:
    path = tmp_path / "data"
    generate(ConeInstance("cones", 6, "l:30,q:5x120,s:4x60", 0.01, block_rows=60), path)
    source = Source(DataSpec(path), cones=True)
    local, dask = LocalEngine(open_source(source), 3), DaskEngine(client, source, open_source(source))
    for name in ("mirror-prox", "working-set"):
        method, found = CONE_METHODS[name], []
        for engine in (ConeEngine(local), ConeEngine(dask)):
            state = method.init(Facts(6, local.dataset.rank, blocks=local.dataset.blocks))
            for _ in range(3):
                state = method.tell(state, engine.run(method.ask(state)))
            bracket = method.evidence(state).bracket
            found.append((bracket.lower, bracket.upper, None if bracket.y is None else bracket.y.tolist()))
        assert found[0] == found[1], name
    options: dict[str, Any] = {"method": "mirror-prox", "margin_tolerance": 0.3}
    whole = dfeas.solve(path, **options)
    dfeas.solve(path, out=tmp_path / "run", max_passes=7, **options)
    gone_on = dfeas.resume(tmp_path / "run", max_passes=100_000)
    assert gone_on.passes == whole.passes
    assert whole.passes > 7
    assert (gone_on.margin_lower, gone_on.margin_upper) == (whole.margin_lower, whole.margin_upper)
    np.testing.assert_array_equal(gone_on.separator, whole.separator)


def test_the_papers_choices_for_a_single_cone_agree() -> None:
    rng, passes = np.random.default_rng(10), {}
    for margin in (0.2, None):
        X = problem(rng, {"q": [12]}, 12 if margin is None else 4, margin)
        X = X if margin else X - np.outer(np.append(1, np.full(11, 0.2)), X[0] + 0.2 * X[1:].sum(axis=0)) / (1 + 11 * 0.04)
        best = dfeas.solve(dfeas.from_cone_rows(X, {"q": [12]}), margin_tolerance=1e-3, eps=1e-8)
        for name in ("mirror-prox-euclidean", "mirror-prox"):
            found = dfeas.solve(dfeas.from_cone_rows(X, {"q": [12]}), method=name, eps=1e-3)
            assert (found.verdict, found.proof) == (best.verdict, "rigorous")
            assert found.margin_lower <= max(best.margin_upper, 0)
            assert found.margin_upper >= best.margin_lower
            passes[name, margin] = found.passes
    assert max(passes.values()) <= 1 + 4 * 1.43 * sqrt(2 * log(2)) / 1e-3


@pytest.mark.parametrize("name", ["von-neumann", "von-neumann-away", "working-set"])
def test_an_extreme_point_whose_image_is_zero_ends_it(name: str) -> None:
    result = dfeas.solve(dfeas.from_cone_rows(np.ones((2, 1)), {"q": [2]}), method=name, eps=1e-3)
    assert (result.verdict, result.proof) == ("infeasible", "exact")


def test_predict_names_the_cones_that_are_critical(tmp_path: Path) -> None:
    generate(ConeInstance("cones", 6, "l:30,q:5x40,s:3x30", 0.02, block_rows=60), tmp_path / "data")
    result = dfeas.solve(tmp_path / "data", out=tmp_path / "run")
    found = dfeas.predict(tmp_path / "run", tmp_path / "data", out=tmp_path / "least.npy")
    assert found.least.min() == pytest.approx(result.margin_lower, rel=1e-9)
    assert f"critical: {found.critical[0].kind}" in result.message
    assert f"at row {found.critical[0].row})" in result.message
    np.testing.assert_array_equal(np.load(tmp_path / "least.npy"), found.least)
    X, cone = problem(np.random.default_rng(3), CONE, 6, None), CONE
    found = dfeas.predict(tmp_path / "run", dfeas.from_cone_rows(X, cone))
    A, y = scaled(X, cone), result.separator / np.linalg.norm(result.separator)
    plain = [(spectrum(kind, size, A[rows] @ y)[0].min(), rows.start) for kind, size, rows in cones_of(cone)]
    np.testing.assert_allclose(found.least, [value for value, _ in plain], atol=1e-12)
    assert found.outside == sum(value <= 0 for value, _ in plain)
    assert [each.row for each in found.critical] == [row for _, row in sorted(plain)[:5]]


def test_memory_is_kept_or_refused_with_the_number_needed() -> None:
    dataset = dfeas.from_cone_rows(np.random.default_rng(0).standard_normal((1600, 400)), {"q": [40] * 40})
    with pytest.raises(dfeas.UsageError, match=r"at least memory='.*MiB' is needed"):
        dfeas.solve(dataset, memory="10MB")
    with pytest.raises(dfeas.UsageError, match=r"working-set needs memory='.*' .* use mirror-prox-one-pass") as raised:
        dfeas.solve(dataset, memory="25MB", method="working-set", max_passes=1)
    assert "\n" not in str(raised.value)
    needed = str(raised.value).split("'")[1]
    result = dfeas.solve(dataset, memory="25MB", max_passes=2)
    assert (result.method, "would need" in result.why) == ("mirror-prox-one-pass", True)
    (enough,) = dfeas.plan(dataset, memory=needed, method="working-set").estimates
    assert (enough.auto, enough.remark) == (True, "")
    names = {each.method: each.remark for each in dfeas.plan(dataset, memory="25MB").estimates}
    assert set(names) == set(METHODS)
    assert names["working-set"] == f"does not fit: {needed} of memory are needed"


def test_scales_of_cones_do_not_matter() -> None:
    X = problem(np.random.default_rng(9), {"q": [4, 4], "s": [3]}, 4, 0.5)
    found = []
    for first, second in ((1.0, 1.0), (2.0**330, 2.0**-330)):
        Y = X.copy()
        Y[:4] *= first
        Y[8:] *= second
        found.append(dfeas.solve(dfeas.from_cone_rows(Y, {"q": [4, 4], "s": [3]}), method="smooth-perceptron"))
    np.testing.assert_allclose(found[0].separator, found[1].separator, rtol=1e-9)
    assert found[0].verdict == found[1].verdict == "feasible"


def test_the_checker_refuses_what_proves_nothing(tmp_path: Path) -> None:
    X = problem(np.random.default_rng(5), CONE, 4, 0.5)
    dataset = dfeas.from_cone_rows(X, CONE)
    result = dfeas.solve(dataset)
    engine, good = LocalEngine(dataset, 1), result.evidence
    assert check(engine, dataset, good).verdict == "feasible"
    for y in (good.y[:3], np.array([1.0, 0, 0, 0])):
        with pytest.raises(dfeas.CheckFailedError):
            check(engine, dataset, replace(good, y=y))
    for code in (0, 4 * 3, 2 + 4 * 100, -1):  # codes that make no cones
        label = dataset.labels.array.copy()
        label[3] = code
        damaged = replace(dataset, labels=replace(dataset.labels, array=label))
        with pytest.raises(dfeas.CorruptDataError, match="damaged"):
            check(LocalEngine(damaged, 1), damaged, good)
    # an x whose image is zero, outside of the cones by more or less: what is moved into them has an image again
    free = np.linalg.svd(scaled(X, CONE).T)[2][4:]
    e = np.concatenate([unit(kind, size) for kind, size, _ in cones_of(CONE)])
    outside = replace(good, kind="gordan", y=np.empty(0), support=np.arange(len(X)))
    with pytest.raises(dfeas.CheckFailedError):
        check(engine, dataset, replace(outside, weights=-e))
    for row in free:
        for part in (0.3, 1.0, 10.0):
            proved = check(engine, dataset, replace(outside, weights=row + part * e))
            assert proved.verdict == "eps-infeasible"
            assert proved.margin_upper >= result.margin_lower


@pytest.mark.parametrize("kind", ["q", "s"])
def test_a_boundary_of_rounding_is_never_called_inside(kind: str) -> None:
    """Elements on the boundary, or a hair outside of it, whose eigenvalue rounds to either sign."""
    rng = np.random.default_rng(6)
    for _ in range(12):
        v = rng.standard_normal(4)
        s = element(np.outer(v, v)) if kind == "s" else np.append(np.linalg.norm(v), v)
        s = s - rng.choice([0.0, 1e-16]) * unit(kind, 4 if kind == "s" else 5) * np.abs(s).max()
        dataset = dfeas.from_cone_rows(np.outer(s, [1.0, 0.0]) + 0.0, {kind: [4 if kind == "s" else 5]})
        assert dfeas.solve(dataset, max_passes=20).verdict != "feasible"


def test_matrices_become_elements_and_back() -> None:
    S = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(dfeas.svec(S), [2, np.sqrt(2), 3])
    np.testing.assert_allclose(matrix(dfeas.svec(S), 2), S)


SDPA = """"two blocks
 2 = m
 2 = blocks
 (2, -1)
 1.0, 2.0
0 1 1 1 {0}
1 1 1 1 1.0
1 1 1 2 0.5
2 1 2 2 1.0
2 2 1 1 1.0
"""


def test_sdpa_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "lmi.dat-s.gz"
    path.write_bytes(gzip.compress(SDPA.format("3.0").encode()))
    ingest_cones(path, tmp_path / "data")
    y = dfeas.solve(tmp_path / "data").separator
    x = y[:2] / y[2]
    assert y[2] > 0
    assert np.linalg.eigvalsh(np.array([[x[0] - 3, x[0] / 2], [x[0] / 2, x[1]]])).min() > 0
    assert x[1] > 0
    plain = dfeas.solve(path, out=tmp_path / "run")  # as it is
    np.testing.assert_array_equal(plain.separator, y)
    assert dfeas.verify_run(tmp_path / "run").verdict == "feasible"
    assert dfeas.plan(path).cones == "2 of l, 1 of s 2"
    wrong = tmp_path / "wrong.dat-s"
    wrong.write_text(SDPA.format("3.0") + "2 1 3 3 1")
    with pytest.raises(dfeas.BadInputError, match=r"line 11.*outside"):
        ingest_cones(wrong, tmp_path / "other")


def across_to_inner(rng: np.random.Generator, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (N, m) with X'x = 0, up to rounding, for an x in the interior of the cones, and this x."""
    x = np.concatenate([unit(kind, size) for kind, size, _ in cones_of(CONE)])
    for kind, size, rows in cones_of(CONE):
        if kind == "s":
            G = rng.standard_normal((size, size))
            x[rows] = element(G @ G.T / size + 0.1 * np.eye(size))
    X = rng.standard_normal((len(x), m))
    return X - np.outer(x, x @ X) / (x @ x), x


def test_an_x_inside_proves_exactly_that_there_is_no_y() -> None:
    for seed in range(5):
        X, _ = across_to_inner(np.random.default_rng(seed), 6)
        X[:, 4] = 0  # what no cone has is in no equation
        for given in (X, sp.csr_array(np.hstack([X, np.zeros((len(X), 30))]))):
            result = dfeas.solve(dfeas.from_cone_rows(given, CONE))
            assert (result.verdict, result.proof, result.margin_upper) == ("infeasible", "exact", 0.0)
            assert "X'z = 0" in result.message


@pytest.mark.parametrize("margin", [1e-2, 1e-6, 1e-10])
def test_nothing_exact_is_said_of_what_has_a_separator(margin: float) -> None:
    """X'x = margin v for the x inside of the cones, so that v is a separator, whose margin is small."""
    rng = np.random.default_rng(3)
    X, x = across_to_inner(rng, 6)
    v = np.eye(6)[0]
    X[:, 0] = margin * np.concatenate([unit(kind, size) for kind, size, _ in cones_of(CONE)])
    dataset = dfeas.from_cone_rows(X, CONE)
    norms = np.linalg.norm(scaled(X, CONE), axis=1) / np.linalg.norm(X, axis=1)
    mark = dfeas.solve(dataset, method="perceptron", max_passes=1).fingerprint
    gordan = dfeas.Certificate("gordan", mark, support=np.arange(len(x)), weights=x / norms / len(x))
    proved = check(LocalEngine(dataset, 1), dataset, gordan)
    assert proved.verdict == "eps-infeasible"
    assert margin_of(X, CONE, v) > 0
    assert proved.margin_upper >= margin_of(X, CONE, v)


T = np.array([[0.8, 0.7], [-0.3, 0.9]])
WEAK = np.vstack([[0.0, 1.0], dfeas.svec(np.array([T.T @ np.diag([1.0, 0]) @ T, T.T @ [[0.0, 1], [1, 0]] @ T])).T])
"""Rows of y_1 > 0 and of T'(y_0, y_1; y_1, 0)T: x comes as near to Ax = 0 as one likes, and products are rounded."""


@pytest.mark.parametrize("eps", [1e-6, 1e-10, 1e-12])
def test_a_smaller_eps_is_tried_as_far_as_float64_goes(eps: float, monkeypatch: pytest.MonkeyPatch) -> None:
    cones = dfeas.from_cone_rows(WEAK, {"l": 1, "s": [2]})
    result = dfeas.solve(cones, eps=eps)
    assert (result.verdict, result.proof) == ("eps-infeasible", "rigorous")
    assert result.margin_upper <= eps
    monkeypatch.setattr("dfeas.cones.barrier.STEPS", 3)
    result = dfeas.solve(cones, eps=eps)
    assert (result.verdict, result.stopped) == ("undecided", "stalled")
    assert result.message.endswith("which float64 brings no lower; ask for a larger eps (--eps)")
    assert "larger" not in dfeas.solve(cones).message
