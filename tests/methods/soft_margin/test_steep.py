"""Soft margins whose C times the square of the points' lengths is far beyond what float64 tells apart."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import dfeas


@pytest.mark.parametrize(("C", "length"), [(1e12, 1.0), (1.0, 1e8), (1.0, 1e30), (1e-6, 1e100)])
@pytest.mark.parametrize("seed", range(4))
def test_points_that_can_be_separated_have_their_hard_margin(C: float, length: float, seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 3))
    score = X @ rng.standard_normal(3)
    X, y = X[np.abs(score) > 0.1], np.sign(score[np.abs(score) > 0.1])
    plain = dfeas.soft_margin(X, y, intercept=False, C=1e6, tol=1e-5)
    found = dfeas.soft_margin(X * length, y, intercept=False, C=C, tol=1e-4, dual=tmp_path / "alpha.npy")
    assert found.stopped == plain.stopped == "verdict"
    assert found.objective * length**2 == pytest.approx(plain.objective, rel=2e-4)
    assert (y * (X @ (found.y * length))).min() >= 1
    assert found.dual is not None
    assert found.dual.value >= (1 - 2e-4) * found.objective


def test_points_that_come_to_the_margin_within_a_millionth_of_a_step_are_no_obstacle() -> None:
    X = np.array(
        [
            [-3, -1, -1, -3, 2, 2],
            [-1, -2, -3, 2, 0, -2],
            [-1, -1, 2, 3, -2, -2],
            [-6, 3, -1, 4, -3, -1],
            [2, -3, 0, 1, 0, 3],
            [-6, -3, -2, 4, -6, -4],
            [2, -5, -6, -2, 1, 0],
            [-3, 8, -1, 4, 5, 1],
            [3, 1, 5, 4, -3, -4],
            [2, 2, 0, -2, -5, 1],
            [4, 5, -2, -6, 2, 0],
            [-5, -3, -3, 0, 1, 5],
            [-4, 6, 4, -2, -1, -3],
            [2, 0, 1, 0, 2, 7],
            [2, -2, 2, -3, -2, 4],
            [0, -1, 3, -1, -5, 2],
            [-4, -4, -1, -3, -4, -4],
            [3, -1, 0, -7, -1, -1],
            [3, 0, 2, 4, -4, 3],
        ]
    )
    y = np.array([1, -1, -1, 1, -1, -1, -1, 1, -1, -1, 1, 1, 1, -1, -1, -1, 1, 1, -1])
    found = dfeas.soft_margin(X, y, intercept=False, C=3893988.2, loss="squared_hinge", tol=0.1)
    assert (found.stopped, found.passes) == ("verdict", 2)
    assert found.objective == pytest.approx(0.27784905, rel=1e-4)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_points_that_float64_tells_too_little_of_end_with_the_reason(loss: str) -> None:
    rng = np.random.default_rng(0)
    found = dfeas.soft_margin(1e30 * rng.standard_normal((30, 2)), np.sign(rng.standard_normal(30)), intercept=False, loss=loss)
    assert found.stopped == "stalled"
    assert found.lower < found.objective
    assert "C times the square of the points' lengths is large" in found.message


def test_sums_of_a_dual_file_cancel_as_those_of_the_method_do(tmp_path: Path) -> None:
    X, y = np.array([[1e100], [1e100]]), np.array([1, -1])
    found = dfeas.soft_margin(X, y, intercept=False, C=1e3, loss="squared_hinge", dual=tmp_path / "alpha.npy")
    assert found.dual is not None
    assert (found.dual.value, found.dual.residual, found.gap) == pytest.approx((2000.0, 0.0, 0.0))


def test_a_dual_file_that_proves_less_is_the_bound_that_is_told(tmp_path: Path) -> None:
    # for several C scores are summed in another order than for one
    X, y = 1e30 * np.array([[2.0], [1.0], [2.0], [1.0]] * 2), np.array([1, -1, -1, -1, -1, 1, 1, 1])
    found = dfeas.soft_margin(X, y, intercept=False, C=[0.3, 1.0, 1e3], loss="squared_hinge", dual=tmp_path / "alpha.npy")
    assert found.dual is not None
    assert found.lower == found.fits[-1].lower <= found.dual.value + 1e-9
    if found.stopped != "verdict":  # as it is where products of vectors and of matrices round in other ways
        assert (found.stopped, found.lower) == ("stalled", found.dual.value)
        assert "the dual variables prove a relative gap of" in found.message


@pytest.mark.parametrize("seed", [0, 7, 16])
def test_features_of_other_scales_are_no_obstacle(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((25, 6))
    score = X @ rng.standard_normal(6)
    X, y = X[np.abs(score) > 0.2], np.sign(score[np.abs(score) > 0.2])
    found = dfeas.soft_margin(X * 10.0 ** rng.uniform(-4, 4, 6), y, C=1e8, tol=1e-4)
    assert (found.stopped, found.error) == ("verdict", 0)


@pytest.mark.parametrize("length", [2, 40])
@pytest.mark.parametrize("seed", range(3))
def test_curvature_is_seen_from_among_the_points(length: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = np.round(rng.standard_normal((length, 5)), 2), np.resize([1, -1], length)
    X[:, 0] += y
    near = dfeas.soft_margin(X, y, C=1e4, loss="squared_hinge", tol=1e-9)
    far = dfeas.soft_margin(X + 1e6, y, C=1e4, loss="squared_hinge")
    assert near.stopped == far.stopped == "verdict"
    assert far.objective == pytest.approx(near.objective, rel=1e-4)


@pytest.mark.parametrize("C", [66.8, 1e6])
def test_many_features_that_can_be_separated_are_no_obstacle(C: float) -> None:
    rng = np.random.default_rng(1300)
    X = rng.normal(size=(1000, 300))
    found = dfeas.soft_margin(X, np.where(X @ rng.normal(size=300) > 0, 1, -1), C=C)
    assert found.success
    assert found.reads <= 5


def test_sparse_points_that_can_be_separated_have_their_hard_margin_in_few_reads() -> None:
    rng = np.random.default_rng(1)
    X = scipy.sparse.random_array((3000, 200), density=0.05, rng=rng, format="csr")
    found = dfeas.hard_margin(X, np.where(X @ rng.normal(size=200) + 0.1 > 0, 1, -1))
    assert found.result.stopped == "verdict"
    assert found.lower >= 0.999 * found.upper
    assert found.result.reads <= 16


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(("C", "scaling"), [(1e8, 0.1), (1e6, None), (1e10, 1.0)])
@pytest.mark.parametrize("seed", range(6))
def test_the_objective_is_that_of_the_hyperplane_that_is_returned(
    loss: str, C: float, scaling: float | None, seed: int
) -> None:
    """Of years as features: C times the rounding of a score is more than the gap that is asked for."""
    rng = np.random.default_rng(seed)
    X = rng.integers(1990, 2020, (8, 3)).astype(np.float64)
    y = np.where(X @ [1.0, -2.0, 1.0] + rng.normal(0, 3, 8) > 0, 1, -1)
    y[:2] = 1, -1
    found = dfeas.soft_margin(X, y, tol=1e-9, loss=loss, C=C, intercept=True, intercept_scaling=scaling)
    *w, b = [Fraction(float(v)) for v in found.y]
    true = sum(v * v for v in w) / 2 + (0 if scaling is None else b * b / (2 * Fraction(scaling) ** 2))
    for row, sign in zip(X.tolist(), y.tolist(), strict=True):
        short = max(Fraction(0), 1 - sign * (sum(Fraction(p) * q for p, q in zip(row, w, strict=True)) + b))
        true += Fraction(C) * (short if loss == "hinge" else short**2)
    assert float(true) == pytest.approx(found.objective, rel=1e-9)
    gap = (float(true) - found.lower) / float(true)
    assert gap <= found.gap * (1 + 1e-6) + 1e-9
    assert (found.stopped == "verdict") == (found.gap <= found.target)
