"""Partitions of points in two, in integers: against their definition, and against linear programming in rational arithmetic."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dfeas
from dfeas.exact.dyadic import common, find_orthogonal, integer_signs, split_integers
from dfeas.exact.integers import PRIME, independent, nullspace, primitive, solve
from dfeas.linalg.blas import heard
from dfeas.run.exact import partition as module
from dfeas.run.exact.guesses import EvenPoints
from dfeas.run.exact.partition import FacePartition, partition
from dfeas.run.solver_thread import Abandoned
from tests.exact import conflicts, small_instance


def integers(values: Any) -> np.ndarray:
    return np.array([[int(v) for v in row] for row in values], object).reshape(np.shape(values))


def hostile(seed: int) -> np.ndarray:
    """Points (s, d) of small integers; of powers of ten in each feature; beside a plane by one part in 10**30."""
    rng = np.random.default_rng(seed)
    points = integers(small_instance(seed).T)
    if seed % 3 == 1:
        points = points * np.array([10 ** int(v) for v in rng.integers(0, 200, points.shape[1])], object)
    if seed % 3 == 2:
        points = points * 10**30 + integers(rng.integers(-2, 3, points.shape))
    return points


def require_partition(points: np.ndarray, split: FacePartition) -> None:
    score = np.zeros(len(points), object) if split.y is None else points @ split.y
    assert (score[split.beyond] > 0).all()
    assert not score[~split.beyond].any()
    assert (split.weights >= 0).all()
    assert not (split.weights @ points).any()
    assert not split.weights[split.beyond].any()
    # what has no weight of its own is on the hyperplane because it is in what the weighed points span
    assert len(independent(points[~split.beyond])) == len(independent(points[np.flatnonzero(split.weights)]))


@given(st.integers(0, 100_000))
def test_a_partition_is_what_goldman_and_tucker_say(seed: int) -> None:
    points = hostile(seed)
    split = partition(points)
    require_partition(points, split)
    assert split.weights.any() == conflicts(points.T)


@pytest.mark.parametrize("seed", range(6))
def test_a_partition_does_not_need_good_guesses(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    points = hostile(seed)
    expected = partition(points).beyond
    module = partition.__globals__
    monkeypatch.setitem(module, "heavy", lambda points: None)
    monkeypatch.setitem(module, "widest", lambda points: None)
    monkeypatch.setitem(module, "guess_basis", lambda tableau, u, cost, basis: basis)
    monkeypatch.setitem(module, "LONG", seed % 2)  # the least-index rule at once, too
    split = partition(points)
    require_partition(points, split)
    assert (split.beyond == expected).all()


def test_a_conflict_of_more_dimensions_than_128() -> None:
    rng = np.random.default_rng(0)
    points = rng.integers(0, 2, (200, 140))
    points[:, 0] = 1
    split = partition(integers(np.vstack([points, -points[:150]])))
    require_partition(integers(np.vstack([points, -points[:150]])), split)


@pytest.mark.parametrize("seed", range(2))
def test_a_direction_that_pivots_found_is_a_sum_of_a_few_floats(seed: int) -> None:
    rng = np.random.default_rng(seed)
    powers = np.sort(rng.random(150))[:, None] ** np.arange(19)
    roots = np.polynomial.polynomial.polyfromroots(np.arange(0.5, 18) / 18)
    signs = np.sign(np.polynomial.polynomial.polyval(powers[:, 1], roots))
    points, exponent = common(powers * signs[:, None])
    split = partition(points)
    require_partition(points, split)
    assert split.beyond.all()
    stored = split.y << (exponent.max() - exponent).astype(object)
    assert len(split_integers(np.array(primitive(stored.tolist()), object))) <= 4


def test_powers_that_no_float_separates_are_separated_in_six_reads() -> None:
    """A survey, a pass, a refused check, points for the search, what it found on all points, and its check."""
    rng = np.random.default_rng(2)
    powers = np.sort(rng.random(1500))[:, None] ** np.arange(21)
    roots = np.polynomial.polynomial.polyfromroots((np.arange(0.5, 20) + 0.3 * rng.uniform(-1, 1, 20)) / 21)
    labels = np.sign(np.polynomial.polynomial.polyval(powers[:, 1], roots))
    found = dfeas.solve(powers, labels, intercept=False)
    assert (found.verdict, found.proof) == ("feasible", "exact")
    assert found.reads <= 6


@given(st.integers(0, 100_000))
def test_a_shorter_direction_leaves_each_point_half_of_its_score(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points, (v, w) = integers(rng.integers(-9, 10, (int(rng.integers(1, 9)), 4))), integers(rng.integers(-9, 10, (2, 4)))
    y = v * 7**90 + w  # w decides where v has a product of zero
    points = points[points @ y > 0]
    short = module.shorten(points, y)
    assert (2 * (points @ short) >= points @ y).all()
    if (points @ v > 0).all():
        assert all(each.bit_length() - (each & -each).bit_length() < 54 for each in short.tolist())


def test_it_ends_where_who_hears_its_beats_says_so() -> None:
    def listen(text: str) -> None:
        raise Abandoned

    with heard(listen), pytest.raises(Abandoned):
        partition(hostile(0))


@given(st.integers(0, 10_000))
def test_linear_algebra_is_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    s, d, r = (int(v) for v in rng.integers(1, 8, 3))
    low, right = rng.integers(-3, 4, (s, r)), rng.integers(-3, 4, (r, d))
    matrix = integers(low @ right)
    rank = np.linalg.matrix_rank(matrix.astype(float))
    for times in (1, PRIME):  # all vanish modulo the prime
        rows = independent(times * matrix)
        assert len(rows) == rank
        if rank:
            assert np.linalg.matrix_rank(matrix[rows].astype(float)) == rank
            columns = independent(times * matrix[rows].T)
            square = matrix[np.ix_(rows, columns)]
            wanted = integers(rng.integers(-9, 10, (rank, 2)))
            x, denominator = solve(square, wanted)
            assert denominator > 0
            assert not (square @ x - denominator * wanted).any()
    across = nullspace(matrix)
    assert across.shape == (d, d - rank)
    assert not (matrix @ across).any()


@given(st.integers(0, 100_000))
def test_signs_under_long_integers_are_those_of_integers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    r, d = (int(v) for v in rng.integers(1, 8, 2))
    points = rng.integers(-4, 5, (r, d)) * 2.0 ** rng.integers(-300, 300, (r, d) if seed % 2 else d)
    y = np.array([int(v) * 10 ** int(p) for v, p in zip(rng.integers(-3, 4, d), rng.integers(0, 40, d), strict=True)], object)
    if seed % 3 == 0:
        y = integers(rng.integers(-2, 3, (1, d)))[0]
    if not y.any():
        y[0] = 1
    expected = [sum(Fraction(v) * w for v, w in zip(row, y.tolist(), strict=True)) for row in points.tolist()]
    sign = [(v > 0) - (v < 0) for v in expected]
    assert integer_signs(points, y)[0].tolist() == sign
    assert find_orthogonal(points, y[:, None]).tolist() == [v == 0 for v in sign]


@pytest.mark.parametrize("product", [1048573, 1048573 * 1048571])
def test_products_that_the_first_primes_divide_are_not_zero(product: int) -> None:
    """As many primes are asked as the bound of |product| needs, however small float64 says that it is."""
    far = 2.0**90
    points = np.array([[far, -far, float(product)], [far, -far, 0.0]])
    ones = np.ones((3, 1), object)
    assert find_orthogonal(points, ones).tolist() == [False, True]
    assert integer_signs(points, ones[:, 0])[0].tolist() == [1, 0]


def test_units_of_features_do_not_matter_to_guesses() -> None:
    rng = np.random.default_rng(0)
    points = integers(rng.integers(1, 9, (50, 3)) * (rng.random((50, 3)) < 0.7)) * np.array([1, 2**30, 2**60], object)
    even = EvenPoints.of(points[points.any(axis=1)])
    share = np.abs(even.points)
    assert share[share > 0].min() > 2.0**-8


def test_a_rank_of_wide_flat_matrices_takes_no_time() -> None:
    rng = np.random.default_rng(0)
    low = integers(rng.integers(-9, 10, (40, 3000)))
    assert len(independent(np.vstack([low, low[:1] + low[1:2]]))) == 40
