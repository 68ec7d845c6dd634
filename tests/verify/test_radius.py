"""How infeasible points are at least: beside the facets of their hull, by its theorem, and in every verdict."""

import re
from pathlib import Path

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls
from scipy.spatial import ConvexHull

import dfeas
from dfeas.errors import CheckFailedError
from dfeas.verify.radius import bound_radius
from tests.verify.test_claims import edited


def nearest_facet(units: np.ndarray) -> float:
    """The radius of the largest ball about the origin in the hull of points (s, d); below 0 where the origin is outside."""
    if units.shape[1] == 1:
        return float(min(units.max(), -units.min()))
    return float(-ConvexHull(units).equations[:, -1].max())


def unit_points(seed: int, s: int, d: int) -> np.ndarray:
    """Around the origin, thin across the first feature, with some points twice, or all of them on one side."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((s, d)) + (3 if seed % 7 == 0 else 0)
    points[:, 0] *= 10.0 ** -rng.integers(0, 7)
    points[: s // 3] = points[rng.integers(0, s, s // 3)]
    return np.asarray(points / np.linalg.norm(points, axis=1)[:, None])


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 12), st.booleans())
def test_the_ball_is_in_the_hull_whatever_the_weights(seed: int, d: int, more: int, balanced: bool) -> None:
    units = unit_points(seed, d + more, d)
    rng = np.random.default_rng(seed)
    weights = 1e-3 + rng.random(d + more)
    if balanced:
        weights += 50 * nnls(np.vstack([units.T, np.ones(d + more)]), np.append(np.zeros(d), 1.0))[0]
    radius = bound_radius(units, weights, 0.0)
    assert 0 <= radius <= 1 / d
    if radius > 0:
        assert radius <= nearest_facet(units) + 1e-13


@given(st.integers(0, 10**6), st.integers(1, 4))
def test_of_one_point_more_than_features_it_is_the_nearest_facet(seed: int, d: int) -> None:
    units = unit_points(seed, d + 1, d)
    weights = nnls(np.vstack([units.T, np.ones(d + 1)]), np.append(np.zeros(d), 1.0))[0]
    if weights.min() > 1e-3 and np.abs(weights @ units).max() < 1e-12:
        assert bound_radius(units, weights, 0.0) == pytest.approx(nearest_facet(units), rel=1e-5)


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(2, 20))
def test_it_is_at_least_the_least_eigenvalue_of_the_second_moments(seed: int, d: int, more: int) -> None:
    half = unit_points(seed, d + more, d)
    weights = np.tile(0.1 + np.random.default_rng(seed).random(d + more), 2)
    units = np.vstack([half, -half])
    moments = (units.T * (weights / weights.sum())) @ units
    assert bound_radius(units, weights, 0.0) >= np.linalg.eigvalsh(moments)[0] * (1 - 1e-5) - 1e-12


def test_points_that_do_not_span_have_no_ball() -> None:
    flat = np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    assert bound_radius(flat, np.full(4, 0.25), 0.0) == 0
    assert bound_radius(flat[:, :1], np.full(4, 0.25), 0.0) == pytest.approx(1)
    assert bound_radius(flat[:2], np.full(2, 0.5), 0.0) == 0


@pytest.mark.parametrize("scale", [1.0, 1e-60, 1e60])
@pytest.mark.parametrize("kind", ["dense", "csr", "twice", "std", "idle feature"])
def test_the_upper_end_of_infeasible_points_is_below_zero_where_they_conflict_in_all_directions(
    kind: str, scale: float
) -> None:
    rng = np.random.default_rng(4)
    X, sign = rng.standard_normal((60, 3)), np.where(rng.random(60) < 0.5, 1, -1)
    if kind == "twice":
        X, sign = np.vstack([X, X]), np.append(sign, sign)
    if kind == "idle feature":
        X = np.hstack([X, np.zeros((len(X), 1))])
    stored = scipy.sparse.csr_array(X * scale) if kind == "csr" else X * scale
    result = dfeas.solve(stored, sign, intercept=False, transform="std" if kind == "std" else ())
    seen = X / X.std(axis=0) if kind == "std" else X
    assert result.verdict == "infeasible"
    units = seen * sign[:, None] / np.linalg.norm(seen, axis=1)[:, None]
    if kind == "idle feature":
        assert result.margin_upper == 0
        return
    assert result.margin_lower - 1e-12 <= -nearest_facet(units) <= result.margin_upper < 0
    (share,) = re.findall(r"perturbation of less than (\S+) % of each point's norm", " ".join(str(result).split()))
    assert 0.99 * -result.margin_upper <= float(share) / 100 <= -result.margin_upper


def test_a_larger_ball_than_is_proved_is_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    dfeas.ingest(rng.standard_normal((50, 2)), tmp_path / "data", y=rng.integers(0, 2, 50))
    found = dfeas.solve(tmp_path / "data", out=tmp_path / "run")
    assert dfeas.verify_run(tmp_path / "run").margin_upper == found.margin_upper < 0
    for factor in (1 + 1e-5, 0.5, 0.0):
        with pytest.raises(CheckFailedError, match="margin_upper is"):
            dfeas.verify_run(edited(tmp_path / "run", margin_upper=found.margin_upper * factor))
