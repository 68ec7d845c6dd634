"""Soft margins whose C times the square of the points' lengths is far beyond what float64 tells apart."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import dfeas


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
    assert (found.dual.value, found.dual.residual, found.gap) == pytest.approx((2000.0, 0.0, 0.0))


def test_a_dual_file_that_proves_less_is_the_bound_that_is_told(tmp_path: Path) -> None:
    # for several C scores are summed in another order than for one
    X, y = 1e30 * np.array([[2.0], [1.0], [2.0], [1.0]] * 2), np.array([1, -1, -1, -1, -1, 1, 1, 1])
    found = dfeas.soft_margin(X, y, intercept=False, C=[0.3, 1.0, 1e3], loss="squared_hinge", dual=tmp_path / "alpha.npy")
    assert found.lower == found.fits[-1].lower <= found.dual.value + 1e-9
    if found.stopped != "verdict":  # as it is where products of vectors and of matrices round in other ways
        assert (found.stopped, found.lower) == ("stalled", found.dual.value)
        assert "the dual variables prove a relative gap of" in found.message


@pytest.mark.parametrize("C", [1e6])
def test_many_features_that_can_be_separated_are_no_obstacle(C: float) -> None:
    rng = np.random.default_rng(1300)
    X = rng.normal(size=(1000, 300))
    found = dfeas.soft_margin(X, np.where(X @ rng.normal(size=300) > 0, 1, -1), C=C)
    assert found.success
    assert found.reads <= 5


def test_sparse_points_that_can_be_separated_have_their_hard_margin_in_few_reads() -> None:
    rng = np.random.default_rng(1)
    X = scipy.sparse.random_array((1500, 120), density=0.05, rng=rng, format="csr")
    found = dfeas.hard_margin(X, np.where(X @ rng.normal(size=120) + 0.1 > 0, 1, -1))
    assert found.result.stopped == "verdict"
    assert found.lower >= 0.999 * found.upper
    assert found.result.reads <= 16


@pytest.mark.parametrize(
    ("loss", "C", "scaling", "seed"),
    [("hinge", 1e8, 0.1, 0), ("squared_hinge", 1e6, None, 1), ("hinge", 1e6, None, 2), ("squared_hinge", 1e10, 1.0, 3)],
)
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
