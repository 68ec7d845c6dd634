"""What is proved exactly is true: against rational arithmetic, and on points that miss a conflict by next to nothing."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from dfeas.exact.dyadic import Dyadic, ExactSums, common, multiply_compensated, multiply_exactly, signs
from dfeas.verify.balance import Balance, balance, most_bits
from tests.exact import conflicts, small_instance

ANY = st.floats(-1e100, 1e100).filter(lambda v: v == 0 or abs(v) > 1e-100) | st.integers(-9, 9).map(float)


def nearly(A: np.ndarray) -> np.ndarray:
    """Weights x >= 0 that make |Ax| about as small as it gets."""
    return nnls(np.vstack([A, np.ones(A.shape[1])]), np.append(np.zeros(len(A)), 1.0))[0]


def random_simplex(d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """d + 1 points (d + 1, d) of float32 entries around the origin, and weights that nearly balance them."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((d, d)).astype(np.float32)
    points = np.vstack([points, -(0.1 + rng.random(d)) @ points]).astype(np.float32).astype(np.float64)
    weights = np.linalg.solve(np.vstack([points.T, np.ones(d + 1)]), np.append(np.zeros(d), 1.0))
    assert weights.min() > 0
    return points, weights


@given(st.lists(ANY, min_size=1, max_size=6), st.lists(ANY, min_size=6, max_size=6))
def test_integers_hold_floats_exactly(first: list[float], second: list[float]) -> None:
    one, two = Dyadic.of(np.array(first)), Dyadic.of(np.array(second))
    assert one.floats().tolist() == first
    for digits, value in zip(one.digits.tolist(), first, strict=True):
        assert Fraction(digits) * Fraction(2) ** one.exponent == Fraction(value)
    width = len(first)
    product = Dyadic.of(np.array([second[:width]])) @ one
    exact = sum(Fraction(a) * Fraction(b) for a, b in zip(first, second, strict=False))
    assert Fraction(int(product.digits[0])) * Fraction(2) ** product.exponent == exact
    total = Dyadic(two.digits[:width], two.exponent) + one
    for digits, a, b in zip(total.digits.tolist(), first, second, strict=False):
        assert Fraction(digits) * Fraction(2) ** total.exponent == Fraction(a) + Fraction(b)


@given(
    st.integers(1, 40),
    st.integers(1, 3),
    st.integers(0, 10_000),
    st.sampled_from((0, 7, 60, 400)),
    st.sampled_from((0, -700, 450)),
)
def test_integers_and_sums_of_features_are_exact(n: int, m: int, seed: int, spread: int, power: int) -> None:
    rng = np.random.default_rng(seed)
    points = np.ldexp(rng.standard_normal((n, m)), power + rng.integers(-spread, spread + 1, (n, m))) * (
        rng.random((n, m)) < 0.9
    )
    digits, exponent = common(points)
    for j in range(m):
        unit = Fraction(2) ** int(exponent[j])
        assert [v * unit for v in digits[:, j].tolist()] == [Fraction(v) for v in points[:, j].tolist()]
    sums = ExactSums.of(points[: n // 2])
    sums.add(ExactSums.of(points[n // 2 :]))
    total = sums.exact(m)
    exact = [sum(map(Fraction, column)) for column in points.T.tolist()]
    assert [v * Fraction(2) ** total.exponent for v in total.digits.tolist()] == exact


@given(
    st.integers(1, 1100),
    st.integers(0, 10_000),
    st.sampled_from((0, 30, 100, 1000)),
    st.booleans(),
    st.sampled_from((0, -1060, 1000)),
)
def test_products_by_digits_are_those_of_integers(d: int, seed: int, spread: int, narrow: bool, power: int) -> None:
    rng = np.random.default_rng(seed)
    points = np.ldexp(rng.standard_normal((3, d)), rng.integers(-spread, 1, (3, d))) * (rng.random((3, d)) < 0.8)
    points = np.ldexp(points.astype(np.float32).astype(np.float64) if narrow else points, power)
    x = Dyadic.of(rng.standard_normal(d) * (rng.random(d) < 0.9))
    for _ in range(seed % 3):
        x = x + Dyadic.of(np.ldexp(rng.standard_normal(d), -60))
    found, expected = multiply_exactly(points, x), Dyadic.of(points) @ x
    least = min(found.exponent, expected.exponent)
    assert found.at(least).tolist() == expected.at(least).tolist()


@given(st.integers(1, 8), st.integers(0, 10_000), st.integers(0, 40), st.sampled_from([1.0, 2.0**-525]))
def test_signs_of_scores_are_those_of_rational_arithmetic(m: int, seed: int, spread: int, scale: float) -> None:
    """With the other scale, products and what they lose underflow."""
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(m) * 10.0 ** rng.integers(-spread, spread + 1, m)
    points = rng.standard_normal((12, m)) * 10.0 ** rng.integers(-spread, spread + 1, (12, m))
    points[::2] -= np.outer(points[::2] @ y, y) / (y @ y)  # as orthogonal as floats get
    points[3], points[5] = 0.0, np.round(points[5])
    points, y = points * scale, y * scale
    score, bound = multiply_compensated(points, y)
    sign, least = signs(points, y)
    for j, row in enumerate(points.tolist()):
        exact = sum(Fraction(a) * Fraction(b) for a, b in zip(row, y.tolist(), strict=True))
        assert sign[j] == (exact > 0) - (exact < 0)
        assert Fraction(least[j]) <= abs(exact)
        assert float(abs(exact)) <= least[j] * (1 + 2.0**-40) + (bound[j] if np.isfinite(bound[j]) else 0.0) * 3
        if np.isfinite(bound[j]):
            assert abs(Fraction(score[j]) - exact) <= Fraction(bound[j])


@given(st.integers(0, 100_000))
def test_a_balance_is_found_exactly_where_there_is_one(seed: int) -> None:
    A = small_instance(seed).astype(np.float64)
    rng = np.random.default_rng(seed)
    if conflicts(A.astype(int)):
        assert balance(A.T, nearly(A)) is not None
    else:
        assert balance(A.T, nearly(A)) is None
        assert balance(A.T, rng.random(A.shape[1])) is None


@given(st.integers(2, 12), st.integers(0, 10_000))
def test_the_inverse_proves_what_rational_arithmetic_says(d: int, seed: int) -> None:
    points, weights = random_simplex(d, seed)
    found = balance(points, weights)
    assert found == Balance(d + 1, pytest.approx(0, abs=1e-6))
    assert conflicts(Dyadic.of(points.T).digits)
    # one entry is moved until the origin is outside
    moved = points.copy()
    moved[:, 0] = np.abs(moved[:, 0])
    assert balance(moved, weights) is None
    assert not conflicts(Dyadic.of(moved.T).digits)


@pytest.mark.parametrize("d", [30, 200])
def test_rounding_as_large_as_a_millionth_is_corrected(d: int) -> None:
    points, weights = random_simplex(d, d)
    rng = np.random.default_rng(0)
    assert balance(points, weights * (1 + 1e-6 * rng.standard_normal(d + 1))) is not None


@given(st.integers(2, 10), st.integers(0, 10_000), st.integers(20, 52))
def test_points_that_miss_a_conflict_by_one_bit_are_none(s: int, seed: int, bit: int) -> None:
    rng = np.random.default_rng(seed)
    d = s + int(rng.integers(0, 3))
    points = rng.integers(-9, 10, (s - 1, d)).astype(np.float64)
    points[:, 0] += 20
    points = np.vstack([points, -points.sum(axis=0)])
    weights = np.full(s, 1 / s)
    assert balance(points, weights) is not None
    points[0, 0] *= 1 + 2.0**-bit
    found = balance(points, weights)
    assert (found is not None) == conflicts(Dyadic.of(points.T).digits)


def test_more_points_than_needed_and_weights_that_are_rounding() -> None:
    points, weights = random_simplex(20, 1)
    rng = np.random.default_rng(0)
    more = np.vstack([points, rng.standard_normal((30, 20))])
    assert balance(more, np.append(weights, np.zeros(30))) == balance(points, weights)
    # weights that should be zero, on the boundary of the hull
    flat = np.array([[1.0, 2.0, 0.0], [-1.0, -2.0, 0.0], [3.0, 1.0, 1.0]])
    found = balance(flat, np.array([0.5, 0.5, 1e-15]))
    assert found is not None
    assert found.support == 2


@pytest.mark.parametrize("scale", [1e-130, 1.0, 1e120])
def test_scales_do_not_matter(scale: float) -> None:
    points, weights = random_simplex(6, 3)
    ladder, features = 2.0 ** np.arange(-20, -13), 10.0 ** np.arange(-9, 9, 3)
    assert balance(points * ladder[:, None] * features * scale, weights / ladder) is not None


def test_features_that_depend_on_each_other_are_left_to_elimination() -> None:
    points, weights = random_simplex(20, 2)
    doubled = np.hstack([points, points[:, :5], np.zeros((21, 2)), points[:, [0]] + points[:, [1]]])
    doubled[:, -1] = doubled[:, 0] * 2
    assert balance(doubled, weights) is not None


def test_entries_too_far_apart_to_be_scaled_exactly() -> None:
    corner = np.array([[1e140, 1e-160], [1e-160, 1e140]])
    found = balance(np.vstack([corner, -corner]), np.array([0.25, 0.5, 0.25, 0.5]))
    assert found is not None
    assert found.support == 4
    assert balance(np.vstack([corner, -corner[0] * [1, 0.5]]), np.array([0.5, 1e-300, 0.5])) is None


@pytest.mark.parametrize("more", [1, 20])
def test_a_balance_of_more_points_than_integers_are_eliminated_of_is_found_by_the_inverse(more: int) -> None:
    """Weights are off by as much as takes several corrections, and some entries are zero."""
    rng = np.random.default_rng(0)
    d = 300
    points = rng.standard_normal((d + more - 1, d)) * (rng.random((d + more - 1, d)) < 0.9)
    x = 0.1 + rng.random(d + more - 1)
    points = np.vstack([points, -x @ points])
    x = np.append(x, 1.0)
    assert most_bits(points.size) < 64
    assert balance(points, x * (1 + 0.03 * rng.standard_normal(d + more))) is not None


def test_integers_decide_where_floats_are_near_them_only() -> None:
    """Rounded to float64 the three points have the origin between them, as they have not in integers."""
    large = 2**60
    integers = np.array([[large - 63, large + 127], [-large, -large - 129], [0, large]], object)
    floats = integers.astype(np.float64)
    assert conflicts(Dyadic.of(floats.T).digits)
    assert not conflicts(integers.T)
    assert balance(floats, np.array([1.0, 1.0, 2.0**-52])) is not None
    assert balance(floats, np.array([1.0, 1.0, 2.0**-52]), integers) is None


def test_weights_that_must_be_zero_are_left_out() -> None:
    points = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    found = balance(points, np.array([0.5, 0.5, 1e-5, 1e-5]))
    assert found is not None
    assert found.support == 2
