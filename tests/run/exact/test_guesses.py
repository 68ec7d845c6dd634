"""Facial reduction in float64, of small integers, which it has to get right: against exact partitions."""

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from dfeas.exact.integers import independent
from dfeas.run.exact import guesses
from dfeas.run.exact.guesses import Reduction, equilibrate, find_spare, nearest, weigh_nearest
from dfeas.run.exact.partition import FacePartition, partition
from dfeas.run.exact.search import settle_direction
from tests.run.exact.test_partition import integers


def drawn(seed: int) -> np.ndarray:
    """Signed points (s, d) of small integers without zero ones, at times with an intercept, on faces, or twice."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    points = rng.integers(-3, 4, (int(rng.integers(2, 30)), d)).astype(float)
    if seed % 2:
        points[:, 0] = np.abs(points[:, 0])
    if seed % 3 == 0:
        points = np.column_stack([points, rng.choice([-1.0, 1.0], len(points))])
    if seed % 5 == 0:
        points = np.column_stack([points, points.sum(axis=1)])
    return points[points.any(axis=1)] if points.any() else np.ones((2, d))


def exact(points: np.ndarray) -> FacePartition:
    return partition(integers(points))


@given(st.integers(0, 100_000))
def test_a_reduction_has_a_direction_or_points_that_span_what_conflicts(seed: int) -> None:
    points = drawn(seed)
    split, found = exact(points), Reduction.of(points)
    assert found is not None
    assert (found.y is None) == (not split.beyond.any())
    if found.y is not None:
        y = settle_direction(points, found.conflict, found.y)
        assert y is not None
        assert np.array_equal(np.sign(integers(points) @ y), split.beyond)
    inner = exact(points[found.support])
    assert np.array_equal(inner.beyond, split.beyond[found.support])
    conflict = integers(points[found.conflict])
    assert not len(conflict) or not exact(points[found.conflict]).beyond.any()
    assert len(independent(conflict)) == len(independent(integers(points[~split.beyond])))


@given(st.integers(0, 100_000))
def test_centring_and_scaling_change_no_sign(seed: int) -> None:
    points = drawn(seed) * 10.0 ** np.random.default_rng(seed).integers(-8, 9)
    even, rng = equilibrate(points), np.random.default_rng(seed)
    assert even is not None
    assert np.allclose(np.linalg.norm(even.points, axis=1), 1)
    z = rng.integers(-4, 5, points.shape[1]).astype(float)
    here, there = even.points @ z, points @ even.direction(z)
    sure = np.abs(here) > 1e-9
    assert np.array_equal(np.sign(here[sure]), np.sign(there[sure]))


def test_numbers_that_overflow_and_zero_points_have_no_reduction() -> None:
    assert Reduction.of(np.array([[5e-324, 1.0], [1e-323, 2.0]])) is None
    assert Reduction.of(np.array([[0.0, 0.0], [1.0, 1.0]])) is None
    assert Reduction.of(np.full((3, 2), np.inf)) is None
    assert nearest(np.zeros((0, 3))) is nearest(np.zeros((3, 0))) is None


def greedy(points: np.ndarray, beyond: np.ndarray, terms: list[np.ndarray]) -> list[int]:
    """Terms that are left when each is left out whose absence leaves the same points beyond, decided in integers."""
    kept, left = np.arange(points.shape[1]), list(range(len(terms)))
    for number, term in enumerate(terms):
        fewer = np.setdiff1d(kept, term)
        if len(left) > 1 and np.array_equal(exact(points[:, fewer]).beyond, beyond):
            kept = fewer
            left.remove(number)
    return left


@given(st.integers(0, 100_000))
@settings(max_examples=20)
def test_needed_terms_are_those_of_integers(seed: int) -> None:
    points = drawn(seed)
    beyond = exact(points).beyond
    intercept = bool(seed % 2) and points.shape[1] > 1
    if intercept:
        points = np.column_stack([points, np.random.default_rng(seed).choice([-1.0, 1.0], len(points))])
        beyond = exact(points).beyond
    features = points.shape[1] - int(intercept)
    terms = np.array_split(np.arange(features), max(1, features - 1))
    found = find_spare(points, beyond, terms, intercept, lambda: False)
    if beyond.any() and found is not None:
        assert [term for term in range(len(terms)) if term not in found] == greedy(points, beyond, terms)
    assert find_spare(points, beyond, terms, intercept, lambda: True) is None


def test_terms_that_are_spare_are_left_out_several_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of 40 columns separate: fewer questions than columns say so."""
    asked, plain = [], guesses._find_side
    monkeypatch.setattr(guesses, "_find_side", lambda *some: asked.append(some) or plain(*some))
    X = np.random.default_rng(0).standard_normal((400, 40))
    sign = np.where(X[:, [3, 20, 39]] @ [1.0, 1.0, -1.0] > 0, 1.0, -1.0)
    points = np.hstack([X, np.ones((400, 1))]) * sign[:, None]
    terms = [np.array([each]) for each in range(40)]
    found = find_spare(points, np.ones(400, np.bool_), terms, True, lambda: False)
    assert found == [each for each in range(40) if each not in (3, 20, 39)]
    assert len(asked) < 30


@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_point_of_a_cone_is_that_of_least_squares_of_all_points(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for s, d in ((1, 1), (3, 5), (40, 3), (400, 6), (2000, 20)):
        points = rng.standard_normal((s, d)) + (rng.standard_normal(d) if seed % 2 else 0)
        points = np.concatenate([points, points[:2]])  # some twice
        points /= np.linalg.norm(points, axis=1)[:, None]
        inside = points[: d + 1].T @ rng.random(len(points[: d + 1]))
        for wanted in (rng.standard_normal(d), inside, -points.sum(axis=0)):
            wanted = wanted / np.linalg.norm(wanted)
            x = weigh_nearest(points, wanted)
            _, apart = scipy.optimize.nnls(points.T, wanted)
            z = points.T @ x - wanted
            assert x.min() >= 0
            assert abs(np.linalg.norm(z) - apart) < 1e-9
            assert (points @ z).min() >= -1e-9
