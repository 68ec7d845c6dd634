"""How infeasible points are, from both ends: beside the facets of their hull, and as ``verify`` proves it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

import dfeas
from dfeas.errors import CheckFailedError
from dfeas.verify.radius import bound_across
from tests.verify.test_radius import nearest_facet, unit_points


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 20), st.booleans())
@settings(max_examples=20)
def test_what_is_proved_along_axes_is_in_the_hull(seed: int, d: int, more: int, thin: bool) -> None:
    units = unit_points(seed, d + more, d)
    y = np.eye(d)[0] if thin else np.random.default_rng(seed).standard_normal(d)
    radius = bound_across(units, y, 0.0)
    assert radius >= 0
    if radius > 0:
        assert radius <= nearest_facet(units) + 1e-13


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 20))
@settings(max_examples=200)
def test_amounts_of_a_program_that_is_wrong_prove_nothing(seed: int, d: int, more: int) -> None:
    rng = np.random.default_rng(seed)
    units = unit_points(seed, d + more, d)

    def guess(c: np.ndarray, **of: Any) -> Any:
        return scipy.optimize.OptimizeResult(x=rng.random(len(c)) * (rng.random(len(c)) < d / len(c)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scipy.optimize.linprog", guess)
        radius = bound_across(units, np.eye(d)[0], 0.0)
    assert radius >= 0
    if radius > 0:
        assert radius <= nearest_facet(units) + 1e-13


def one_flip(n: int, m: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points and labels, of which one is wrong, and their signed unit vectors with an intercept."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    sign = np.where(X @ rng.standard_normal(m) > 0, 1, -1)
    sign[rng.integers(n)] *= -1
    return X, sign, unit(X, sign)


def unit(X: np.ndarray, sign: np.ndarray) -> np.ndarray:
    seen = np.hstack([X, np.ones((len(X), 1))]) * sign[:, None]
    return np.asarray(seen / np.linalg.norm(seen, axis=1)[:, None])


@pytest.mark.parametrize(("kind", "seed"), [("dense", 1), ("csr", 2), ("std", 1), ("twice", 2)])
def test_both_ends_are_near_the_nearest_facet_of_one_wrong_label(kind: str, seed: int) -> None:
    X, sign, _ = one_flip(400, 3, seed)
    if kind == "twice":
        X, sign = np.vstack([X, X]), np.append(sign, sign)
    options: dict[str, Any] = {"transform": "std"} if kind == "std" else {}
    found = dfeas.hard_margin(scipy.sparse.csr_array(X) if kind == "csr" else X, sign, **options)
    r = nearest_facet(unit(X / X.std(axis=0) if kind == "std" else X, sign))
    assert found.result.verdict == "infeasible"
    assert found.result.margin_lower - 1e-9 <= -r <= found.result.margin_upper <= -0.6 * r
    assert found.result.margin_lower >= -1.5 * r


@pytest.mark.parametrize("d", [3, 7, 20])
def test_the_ball_of_points_on_the_axes_is_found_whatever_their_conflict_spans(d: int) -> None:
    found = dfeas.hard_margin(np.vstack([np.eye(d), -np.eye(d)]), "all-positive").result
    assert -found.margin_lower == pytest.approx(d**-0.5, rel=1e-12)
    assert -found.margin_upper == pytest.approx(d**-0.5, rel=1e-6)


@pytest.mark.parametrize("kind", ["two opposite", "shifted", "thin"])
def test_the_search_takes_five_reads_at_most(kind: str) -> None:
    X = np.random.default_rng(4).standard_normal((4000, 8))
    points = {"two opposite": np.vstack([X, -X]), "shifted": X + 0.3, "thin": X * np.append(np.ones(7), 0.05)}[kind]
    plain, found = dfeas.solve(points, "all-positive"), dfeas.hard_margin(points, "all-positive").result
    assert found.reads - plain.reads <= 5
    assert plain.margin_lower <= found.margin_lower <= found.margin_upper < min(plain.margin_upper, found.margin_lower / 8)


def test_the_ball_of_a_run_is_proved_again(tmp_path: Path) -> None:
    X, sign, units = one_flip(300, 3, 5)
    dfeas.ingest(X, tmp_path / "data", y=sign)
    plain, found = dfeas.solve(tmp_path / "data"), dfeas.hard_margin(tmp_path / "data", out=tmp_path / "run")
    assert -nearest_facet(units) <= found.result.margin_upper < plain.margin_upper
    assert (units @ found.w).min() == pytest.approx(found.result.margin_lower)
    proved = dfeas.verify_run(tmp_path / "run")
    assert proved.margin_upper == found.result.margin_upper
    assert f"a ball of radius {-proved.margin_upper:.6g}" in proved.message
    assert dfeas.load(tmp_path / "run").support.tolist() == found.support.tolist()
    where = tmp_path / "run" / "margin.json"
    values = json.loads(where.read_text())
    half = len(found.support) // 2
    fewer = {"support": values["support"][:half], "weights": [1 / half] * half}
    for change in (fewer, {"w": values["w"][1:]}, {"support": None, "weights": None}, {"upper": 0.5}):
        where.write_text(json.dumps(values | change))
        with pytest.raises(CheckFailedError, match=r"margin|ball|direction"):
            dfeas.verify_run(tmp_path / "run")


def test_points_that_do_not_span_keep_the_bracket_of_their_conflict() -> None:
    X, sign, _ = one_flip(200, 2, 3)
    found = dfeas.hard_margin(np.hstack([X, np.zeros((200, 1))]), sign)
    assert (found.result.margin_upper, found.w, found.support) == (0.0, None, None)


def test_a_conflict_whose_direction_scores_nothing_is_no_obstacle() -> None:
    found = dfeas.hard_margin([[1.0], [2.0]], [1, -1], intercept=False)
    assert not found.result.evidence.y.any()
    assert (found.result.margin_lower, found.result.margin_upper) == (-1.0, pytest.approx(-1.0))


def test_limits_of_reads_and_of_time_hold() -> None:
    X, sign, units = one_flip(50, 3, 0)
    for passes in (2, 3):
        found = dfeas.hard_margin(X, sign, max_passes=passes).result
        assert found.passes <= passes
        assert found.margin_lower - 1e-9 <= -nearest_facet(units) <= found.margin_upper
    X, sign, _ = one_flip(500, 40, 0)
    found = dfeas.hard_margin(X, sign, time_limit=5).result  # less than linear programs may take
    assert (found.verdict, found.margin_upper) == ("infeasible", dfeas.solve(X, sign).margin_upper)
