"""Kernels of points far from the origin, nearly equal, or with parameters at the ends of float64, beside 100 digits."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy

import dfeas
from dfeas.engine.local import LocalEngine
from dfeas.errors import CheckFailedError, UsageError
from dfeas.kernels.checker.bounds import bound_quickly, bound_values
from dfeas.kernels.gram import GramProduct
from dfeas.kernels.kernel import NormalisedKernel, kernel_of
from dfeas.kernels.nearest import gram
from dfeas.verify.certificate import Certificate
from tests.decimals import kernel_value, widest_margin
from tests.exact import conflicts, small_instance
from tests.kernels.dense import in_blocks

DISTANCES = ("rbf", "exponential")
LABELS = np.array([1, -1, 1, -1, 1, -1])


def points(offset: float) -> np.ndarray:
    """Six, two of them one unit in the last place apart, one far from all others."""
    X = np.random.default_rng(0).standard_normal((6, 2)) + offset
    X[1] = X[0]
    X[1, 0] = np.nextafter(X[0, 0], np.inf)
    X[5, 1] *= 1e3
    return X


CASES = [
    *((kernel_of(name, gamma)[0], offset) for name in DISTANCES for gamma in (0.7, 1e10, 1e200) for offset in (0.0, 1e8)),
    (kernel_of("polynomial", 1e-300, 2, 0.0)[0], 0.0),
    (kernel_of("polynomial", 1e-3, 200, 0.0)[0], 0.0),
    (kernel_of("polynomial", 1e300, 3, 1.0)[0], 0.0),
    (kernel_of("polynomial", 1e-300, 5, 1e300)[0], 0.0),
    (kernel_of("polynomial", 1e-300, 2, 1e-300)[0], 1e3),
    (kernel_of("linear")[0], 1e8),
]


@pytest.mark.parametrize(("kernel", "offset"), CASES, ids=str)
def test_values_are_right_and_bounds_hold(kernel: NormalisedKernel, offset: float) -> None:
    X = points(offset)
    exact = np.array([[kernel_value(kernel, x, z) for z in X] for x in X])

    def off(values: np.ndarray) -> Any:
        return np.abs(np.vectorize(Decimal)(values) - exact)

    diagonal = np.arange(6), np.arange(6)
    for some in (X, scipy.sparse.csr_array(X)):
        assert off(gram(kernel, some)).max() < 3e-12
        assert (np.diagonal(gram(kernel, some)) == 1).all()
        quick = bound_quickly(kernel, some, some, diagonal)
        for value, error in ((quick.value, quick.error), bound_values(kernel, some, some)):
            assert (off(value) <= np.vectorize(Decimal)(error)).all()
        assert bound_values(kernel, some, some)[1].max() < 1e-10


@pytest.mark.parametrize("name", DISTANCES)
def test_tiles_of_different_runs_are_seen_from_one_place(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dfeas.engine.scan.LEAST_ROWS", 2)
    kernel, X = kernel_of(name, 1e3)[0], points(1e7)
    exact = np.array([[float(kernel_value(kernel, x, z)) for z in X] for x in X]) * np.outer(LABELS, LABELS)
    engine = LocalEngine(in_blocks(X, LABELS, 2), 1)
    for V in (np.eye(6), np.eye(6)[:, :1]):  # of all points, and of few
        assert np.abs(engine.run(GramProduct(kernel, V)) - exact @ V).max() < 1e-11
    engine.close()


@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.parametrize(("gamma", "offset"), [(10.0, 1e7), (1e3, 1e6), (0.3, 1e5), (1e20, 1.0), (1e200, 1.0)])
@pytest.mark.parametrize("sparse", [False, True])
def test_where_the_origin_is_makes_no_difference(name: str, gamma: float, offset: float, sparse: bool) -> None:
    X = np.random.default_rng(1).standard_normal((6, 2)) + offset
    margin, _ = widest_margin(kernel_of(name, gamma)[0], X, LABELS)
    data = scipy.sparse.csr_array(X) if sparse else X
    found = dfeas.solve(data, LABELS, kernel=dfeas.Kernel(name, gamma=gamma), margin_tolerance=1e-3, eps=1e-6)
    assert (found.verdict, found.proof) == ("feasible", "rigorous")
    assert Decimal(found.margin_lower) <= margin <= Decimal(found.margin_upper * (1 + 1e-9))
    assert found.margin_lower >= (1 - 1e-3) * found.margin_upper


def test_gamma_and_a_power_that_underflow_decide_nothing() -> None:
    X, labels = np.array([[1.0, 0], [1, 1e-4]]), np.array([1, -1])
    for gamma in (1e-300, 1.0, 1e300):
        found = dfeas.solve(X, labels, kernel=dfeas.Kernel("polynomial", gamma=gamma, degree=2, coef0=0.0))
        assert (found.verdict, found.proof) == ("feasible", "rigorous")
        assert found.margin_lower == pytest.approx(1e-4 / np.sqrt(2), rel=1e-4)
    zero = dfeas.solve(np.vstack([X, [[0, 0]]]), [1, -1, 1], kernel=dfeas.Kernel("polynomial", degree=2, coef0=0.0))
    assert (zero.verdict, zero.proof) == ("infeasible", "exact")


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize(
    ("gamma", "coef0"), [(1e200, 1e-200), (1e160, 1e-200), (1e300, 5e-324), (5e-324, 5e-324), (1.7e308, 1)]
)
def test_a_quotient_of_parameters_that_underflows_decides_nothing(gamma: float, coef0: float, degree: int) -> None:
    """K(0, 0) is coef0 ** degree, above zero: the unit vectors of both points are there, and next to orthogonal or equal."""
    X, labels = np.array([[0.0], [1.0]]), np.array([1, -1])
    kernel = kernel_of("polynomial", gamma, degree, coef0)[0]
    found = dfeas.solve(X, labels, kernel=dfeas.Kernel("polynomial", gamma=gamma, degree=degree, coef0=coef0), intercept=False)
    assert (found.verdict, found.proof) == ("feasible", "rigorous")
    margin = ((1 - kernel_value(kernel, X[0], X[1])) / 2).sqrt()
    assert margin * Decimal("0.9") <= Decimal(found.margin_lower) <= margin


def test_weights_of_which_nothing_follows_are_refused(tmp_path: Path) -> None:
    """Of one point the sum is one long, as no sum is longer: that says nothing of the points, whatever the kernel."""
    dfeas.ingest(np.array([[0.0], [1.0]]), tmp_path / "data", y=[1, -1])
    mark = dfeas.info(tmp_path / "data").fingerprint
    kernel = {"name": "polynomial", "gamma": 1e200, "degree": 2, "coef0": 1e-200}
    one = Certificate("gordan", mark, support=np.array([0]), weights=np.ones(1), kernel=json.dumps(kernel))
    one.save(tmp_path / "one.npz")
    with pytest.raises(CheckFailedError, match="it proves nothing"):
        dfeas.verify_certificate(tmp_path / "data", tmp_path / "one.npz")


@pytest.mark.parametrize("name", DISTANCES)
def test_exponents_beyond_float64_leave_nothing_of_a_kernel(name: str) -> None:
    X = np.array([[1e5, 0.0], [1e10, 0.0], [1e10, 1.0]])
    found = dfeas.solve(X, [1, -1, 1], kernel=dfeas.Kernel(name, gamma=1e300), intercept=False)
    assert (found.verdict, found.proof) == ("feasible", "rigorous")
    assert found.margin_lower == pytest.approx(3**-0.5, rel=1e-3)  # of three unit vectors that are orthogonal


def test_a_function_that_underflows_proves_nothing_exactly() -> None:
    found = dfeas.solve(np.array([[1.0, 0], [0, 1]]), [1, -1], kernel=lambda a, b: (1e-200 * (a @ b.T)) ** 2)
    assert (found.verdict, found.proof) == ("eps-infeasible", "floating_point")


@pytest.mark.parametrize("degree", [10**6 + 1, 10**400, 2.5, float("inf"), float("nan")])
def test_degrees_that_float64_does_not_take_are_refused(degree: Any) -> None:
    with pytest.raises(UsageError, match=r"degree .*: expected a (whole number|number of float64)"):
        kernel_of("polynomial", 1.0, degree)


@pytest.mark.parametrize("kernel", ["linear", "cosine", dfeas.Kernel("polynomial", degree=1, coef0=0.0, gamma=1e-200)])
def test_conflicts_of_the_points_themselves_are_exact(kernel: str | dfeas.Kernel) -> None:
    for seed in range(40):
        A, labels = small_instance(seed), np.random.default_rng(seed).choice([-1, 1], 40)
        labels = labels[: A.shape[1]]
        if len(set(labels.tolist())) < 2:
            continue
        found = dfeas.solve((A * labels).T.astype(float), labels, kernel=kernel)
        expected = ("infeasible", "exact") if conflicts(A) else ("feasible", "rigorous")
        assert (found.verdict, found.proof) == expected
