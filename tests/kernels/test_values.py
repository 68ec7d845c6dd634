"""Values of kernels, and what is proved of them, beside definitions and 100 digits, far from 0 and at the ends of float64."""

import json
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy

import dfeas
from dfeas.errors import BadInputError, CheckFailedError
from dfeas.kernels.checker.bounds import Kernel, bound_quickly, bound_values
from dfeas.kernels.kernel import NormalisedKernel, kernel_of, usual_gamma
from dfeas.kernels.nearest import gram
from dfeas.verify.certificate import Certificate
from tests.decimals import kernel_value
from tests.exact import conflicts, small_instance
from tests.kernels.making import six_points


def checked(kernel: NormalisedKernel) -> Kernel:
    """As the checker has it."""
    return Kernel.from_text(kernel.to_text(), kernel.function)


def test_bounds_of_sums_hold() -> None:
    kernel, rng = kernel_of("rbf", 0.7)[0], np.random.default_rng(1)
    points, amounts = rng.standard_normal((6, 3)), rng.standard_normal((6, 2))
    values = bound_quickly(checked(kernel), points, points)
    true = np.array([[kernel_value(kernel, x, z) for z in points] for x in points])
    exact_amounts = np.array([[Decimal(float(a)) for a in row] for row in amounts])
    off = np.abs(np.vectorize(Decimal)(values.value @ amounts) - true @ exact_amounts)
    assert (off <= np.vectorize(Decimal)(values.errors(amounts))).all()


def test_far_points_have_a_kernel_of_zero() -> None:
    value, error = bound_values(checked(kernel_of("rbf", 1e30)[0]), np.zeros((1, 2)), np.ones((1, 2)))
    assert value.item() == 0
    assert 0 < error.item() < 1e-300
    far, near = (scipy.sparse.csr_array([[1e17, shift]]) for shift in (0.0, 1000.0))
    value, error = bound_values(checked(kernel_of("exponential", 1.0)[0]), far, near)
    assert abs(value.item() - np.exp(-1000)) <= error.item()


SIZES = (5e-324, 1e-310, 1e-160, 1.0, 1e300)


@pytest.mark.parametrize(("degree", "sparse"), [(1, False), (2, True), (3, False), (1000, True)])
def test_no_parameter_or_length_is_lost(degree: int, sparse: bool) -> None:
    """Of the whole range of float64: a quotient of gamma and coef0, or a square, need not be a number of it."""
    points = np.array([[0.0, 0.0], [1.0, 0.0], [1e-300, 3e-300], [-2.0, 1e100], [0.0, -5e-324]])
    for gamma, coef0 in product(SIZES, [0.0, *SIZES]):
        kernel = NormalisedKernel("polynomial", gamma, degree, coef0)
        some = scipy.sparse.csr_array(points) if sparse else points
        value, error = bound_values(checked(kernel), some, some)
        assert error.max() < 1e-9
        for i, x in enumerate(points):
            for j, z in enumerate(points):
                assert abs(Decimal(float(value[i, j])) - kernel_value(kernel, x, z)) <= Decimal(float(error[i, j]))


def test_a_function_of_tiny_values_is_normalised() -> None:
    points = np.array([[1.0, 0.0], [1.0, 1.0]])
    for scale in (1e-320, 1e-200, 1e150):
        kernel = NormalisedKernel("callable", function=lambda a, b, scale=scale: scale * (a @ b.T))
        value = bound_values(checked(kernel), points, points)[0]
        assert value[0, 1] == pytest.approx(0.5**0.5, rel=1e-3)


def test_zero_points_have_no_direction() -> None:
    kernel, _ = kernel_of("linear")
    X = np.array([[0.0, 0], [3, 4]])
    assert kernel.nonzero(X).tolist() == [False, True]
    assert kernel.tile(*kernel.prepare(X, False)).tolist() == [[0, 0], [0, 1]]


def test_the_usual_gamma_is_one_over_the_median() -> None:
    X = np.array([[0.0], [2.0], [2.0], [5.0]])  # distances 2, 2, 5, 3, 3, and one 0 that does not count
    assert usual_gamma(kernel_of("rbf")[0], X) == 1 / 9
    assert usual_gamma(kernel_of("exponential")[0], X) == 1 / 3
    assert usual_gamma(kernel_of("exponential")[0], np.ones((3, 2))) == 1.0


def test_text_and_back() -> None:
    kernel, _ = kernel_of("polynomial", 0.1, 2, 3.0)
    assert NormalisedKernel.from_text(kernel.to_text()) == kernel
    assert str(kernel) == "polynomial(gamma=0.1, degree=2, coef0=3)"
    for text in ("", "{}", "[]", '{"name": "rbf", "gamma": "x", "degree": 0, "coef0": 0}'):
        with pytest.raises(BadInputError, match="cannot be read"):
            NormalisedKernel.from_text(text)
    with pytest.raises(BadInputError, match="kernel=function"):
        NormalisedKernel.from_text(kernel_of(lambda a, b: a @ b.T)[0].to_text())


DISTANCES = ("rbf", "exponential")


CASES = [
    *((kernel_of(name, gamma)[0], offset) for name in DISTANCES for gamma in (0.7, 1e10, 1e200) for offset in (0.0, 1e8)),
    (kernel_of("polynomial", 1e-300, 2, 0.0)[0], 0.0),
    (kernel_of("polynomial", 1e-3, 200, 0.0)[0], 0.0),
    (kernel_of("polynomial", 1e300, 3, 1.0)[0], 0.0),
    (kernel_of("polynomial", 1e-300, 5, 1e300)[0], 0.0),
    (kernel_of("polynomial", 1e-300, 2, 1e-300)[0], 1e3),
    (kernel_of("polynomial", 2.0, 7, 0.0)[0], 0.0),
    (kernel_of("polynomial", 0.3, 3, 1.5)[0], 30.0),
    (kernel_of("linear")[0], 1e8),
    (kernel_of("cosine")[0], 0.0),
]


@pytest.mark.parametrize(("kernel", "offset"), CASES, ids=str)
def test_values_are_right_and_bounds_hold(kernel: NormalisedKernel, offset: float) -> None:
    X = six_points(offset)
    exact = np.array([[kernel_value(kernel, x, z) for z in X] for x in X])

    def off(values: np.ndarray) -> Any:
        return np.abs(np.vectorize(Decimal)(values) - exact)

    diagonal = np.arange(6), np.arange(6)
    for some in (X, scipy.sparse.csr_array(X)):
        assert off(gram(kernel, some)).max() < 3e-12
        assert (np.diagonal(gram(kernel, some)) == 1).all()
        quick = bound_quickly(checked(kernel), some, some, diagonal)
        for value, error in ((quick.value, quick.error), bound_values(checked(kernel), some, some)):
            assert (off(value) <= np.vectorize(Decimal)(error)).all()
        assert bound_values(checked(kernel), some, some)[1].max() < 1e-10


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


def test_a_function_that_underflows_proves_nothing_exactly() -> None:
    found = dfeas.solve(np.array([[1.0, 0], [0, 1]]), [1, -1], kernel=lambda a, b: (1e-200 * (a @ b.T)) ** 2)
    assert (found.verdict, found.proof) == ("eps-infeasible", "floating_point")


@pytest.mark.parametrize("kernel", ["linear", "cosine", dfeas.Kernel("polynomial", degree=1, coef0=0.0, gamma=1e-200)])
def test_conflicts_of_the_points_themselves_are_exact(kernel: str | dfeas.Kernel) -> None:
    for seed in range(16):
        A, labels = small_instance(seed), np.random.default_rng(seed).choice([-1, 1], 40)
        labels = labels[: A.shape[1]]
        if len(set(labels.tolist())) < 2:
            continue
        found = dfeas.solve((A * labels).T.astype(float), labels, kernel=kernel)
        expected = ("infeasible", "exact") if conflicts(A) else ("feasible", "rigorous")
        assert (found.verdict, found.proof) == expected
