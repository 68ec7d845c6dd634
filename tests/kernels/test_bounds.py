"""Kernel values and their bounds against arithmetic in 100 digits."""

from decimal import Decimal
from itertools import product

import numpy as np
import pytest
import scipy

from dfeas.kernels.checker.bounds import bound_quickly, bound_values
from dfeas.kernels.kernel import NormalisedKernel, kernel_of
from tests.decimals import kernel_value


@pytest.mark.parametrize("scale", [1e-8, 1.0, 30.0])
@pytest.mark.parametrize(
    "kernel",
    [
        kernel_of("rbf", 0.7)[0],
        kernel_of("exponential", 0.7)[0],
        kernel_of("linear")[0],
        kernel_of("cosine")[0],
        kernel_of("polynomial", 0.3, 3, 1.5)[0],
        kernel_of("polynomial", 2.0, 7, 0.0)[0],
    ],
    ids=str,
)
def test_values_are_within_their_bounds_and_the_bounds_are_small(kernel: NormalisedKernel, scale: float) -> None:
    rng = np.random.default_rng(0)
    points = scale * rng.standard_normal((8, 5))
    points[3] = points[4] * (1 + 2.0**-50)
    points[5] = -points[4]
    same = (np.arange(8), np.arange(8))
    quick = bound_quickly(kernel, points, points, same)
    found = [bound_values(kernel, points, points), (quick.value, quick.error)]
    sparse = scipy.sparse.csr_array(points)
    quick = bound_quickly(kernel, sparse, sparse, same)
    found.append((quick.value, quick.error))
    for i, x in enumerate(points):
        for j, z in enumerate(points):
            true = kernel_value(kernel, x, z)
            for value, error in found:
                assert abs(Decimal(float(value[i, j])) - true) <= Decimal(float(error[i, j]))
    assert found[0][1].max() < 1e-12
    # the points 3 and 4 are nearly the same: products cannot tell how far the root of their distance is from 0
    for _, error in found[1:]:
        assert error.max() < (1e-5 if kernel.name == "exponential" else 1e-10)


def test_bounds_of_sums_hold() -> None:
    kernel, rng = kernel_of("rbf", 0.7)[0], np.random.default_rng(1)
    points, amounts = rng.standard_normal((6, 3)), rng.standard_normal((6, 2))
    values = bound_quickly(kernel, points, points)
    true = np.array([[kernel_value(kernel, x, z) for z in points] for x in points])
    exact_amounts = np.array([[Decimal(float(a)) for a in row] for row in amounts])
    off = np.abs(np.vectorize(Decimal)(values.value @ amounts) - true @ exact_amounts)
    assert (off <= np.vectorize(Decimal)(values.errors(amounts))).all()


def test_far_points_have_a_kernel_of_zero() -> None:
    value, error = bound_values(kernel_of("rbf", 1e30)[0], np.zeros((1, 2)), np.ones((1, 2)))
    assert value.item() == 0
    assert 0 < error.item() < 1e-300
    far, near = (scipy.sparse.csr_array([[1e17, shift]]) for shift in (0.0, 1000.0))
    value, error = bound_values(kernel_of("exponential", 1.0)[0], far, near)
    assert abs(value.item() - np.exp(-1000)) <= error.item()


SIZES = (5e-324, 1e-310, 1e-200, 1e-160, 1e-5, 1.0, 1e150, 1e300)


@pytest.mark.parametrize("degree", [1, 2, 3, 1000])
@pytest.mark.parametrize("sparse", [False, True])
def test_no_parameter_or_length_is_lost(degree: int, sparse: bool) -> None:
    """Of the whole range of float64: a quotient of gamma and coef0, or a square, need not be a number of it."""
    points = np.array([[0.0, 0.0], [1.0, 0.0], [1e-300, 3e-300], [-2.0, 1e100], [0.0, -5e-324]])
    for gamma, coef0 in product(SIZES, [0.0, *SIZES]):
        kernel = NormalisedKernel("polynomial", gamma, degree, coef0)
        some = scipy.sparse.csr_array(points) if sparse else points
        value, error = bound_values(kernel, some, some)
        assert error.max() < 1e-9
        for i, x in enumerate(points):
            for j, z in enumerate(points):
                assert abs(Decimal(float(value[i, j])) - kernel_value(kernel, x, z)) <= Decimal(float(error[i, j]))


def test_a_function_of_tiny_values_is_normalised() -> None:
    points = np.array([[1.0, 0.0], [1.0, 1.0]])
    for scale in (1e-320, 1e-200, 1e150):
        value = bound_values(
            NormalisedKernel("callable", function=lambda a, b, scale=scale: scale * (a @ b.T)), points, points
        )[0]
        assert value[0, 1] == pytest.approx(0.5**0.5, rel=1e-3)
