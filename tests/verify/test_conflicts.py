"""Conflicts that are proved many at once are some: against rational arithmetic, and beside what is none by next to nothing."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from dfeas.data.dataset import Dataset
from dfeas.engine.local import LocalEngine
from dfeas.errors import CorruptDataError
from dfeas.verify import conflicts as checked
from dfeas.verify.certificate import Certificate, Check
from dfeas.verify.core import check_conflicts
from tests.exact import conflicts, small_instance
from tests.verify.test_balance import nearly, random_simplex
from tests.verify.test_conformance import Claim, TestPoints
from tests.verify.test_verify import marked


def proved(data: Dataset, claims: list[tuple[np.ndarray, np.ndarray]], threads: int = 1) -> list[bool]:
    """Of which points (s,), with weights (s,) of their unit vectors, it is proved that they conflict."""
    claimed = [
        Certificate("gordan", data.fingerprint, support=some, weights=weights / weights.sum()) for some, weights in claims
    ]
    answers = check_conflicts(LocalEngine(data, threads), data, claimed).answers
    assert all(each.verdict == "infeasible" and each.proof == "exact" for each in answers if isinstance(each, Check))
    return [isinstance(each, Check) for each in answers]


def signed(X: np.ndarray) -> Dataset:
    """Points whose columns, with their labels, are those of X (n, m)."""
    labels = np.resize([1, -1], len(X))
    return marked(X * labels[:, None], labels)


@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=8), st.booleans(), st.sampled_from([1, 3]))
def test_what_is_proved_at_once_conflicts_in_rational_arithmetic(seeds: list[int], sparse: bool, threads: int) -> None:
    """Weights are those of a conflict where there is one, and otherwise of the nearest thing to it."""
    rng = np.random.default_rng(seeds)
    sets = [A[:, : len(A) + 1] for A in map(small_instance, seeds) if A.shape[1] > len(A) == 3]
    sets += [rng.integers(-3, 4, (3, 4)) for _ in range(4)]
    X, labels = np.hstack(sets).T, rng.choice([-1, 1], 4 * len(sets))
    stored = (X * labels[:, None]).astype(np.float64)
    data = marked(scipy.sparse.csr_array(stored) if sparse else stored, labels)
    claims = []
    for place, A in enumerate(sets):
        length = np.linalg.norm(A, axis=0)
        weights = nearly(A / np.where(length > 0, length, 1.0))
        claims.append((np.arange(4 * place, 4 * place + 4), np.where(length > 0, weights, 1.0)))
    found = proved(data, claims, threads)
    for (some, weights), sure in zip(claims, found, strict=True):
        weighed = X[some[weights > 0]].T
        assert not sure or conflicts(weighed)
        assert sure or not conflicts(weighed) or 0 < weights[weights > 0].min() < 1e-9, "weights that are not rounding tell"


@pytest.mark.parametrize("d", [1, 2, 20, 101])
@pytest.mark.parametrize("units", [0, 30, 300])
def test_simplices_around_the_origin_are_proved_in_any_units(d: int, units: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without help of the proof of one conflict, whatever the units of features and the lengths of points are."""
    monkeypatch.setattr(checked, "_is_balanced", lambda *args: pytest.fail("it was left open"))
    rng, sets = np.random.default_rng(d), [random_simplex(d, seed) for seed in range(5)]
    feature, length = (np.ldexp(1.0, rng.integers(-units, units + 1, size)) for size in (d, 5 * (d + 1)))
    X = np.vstack([points for points, _ in sets]) * feature
    weights = np.concatenate([each for _, each in sets]) * np.linalg.norm(X, axis=1)
    data = signed(X * length[:, None])
    claims = [(np.arange(first, first + d + 1), weights[first : first + d + 1]) for first in range(0, len(X), d + 1)]
    assert proved(data, claims) == [True] * 5


@pytest.mark.parametrize("d", [2, 20])
def test_what_misses_a_conflict_by_next_to_nothing_is_not_proved(d: int) -> None:
    """The origin is moved to the facet of all points but one, or by a rounding to either side of it."""
    points, _ = random_simplex(d, 3)
    normal = np.linalg.svd(points[2:] - points[1])[2][-1]
    away = float(points[1] @ normal)
    sets = [points, *(points - share * away * normal for share in (0.9, 1 - 1e-15, 1.0, 1 + 1e-15, 1.1))]
    found = proved(
        signed(np.vstack(sets)),
        [
            (np.arange(d + 1) + k * (d + 1), np.maximum(nearly(each.T), 1e-17) * np.linalg.norm(each, axis=1))
            for k, each in enumerate(sets)
        ],
    )
    assert found[0]
    assert not found[-1]
    assert all(not sure or conflicts_exactly(each) for each, sure in zip(sets, found, strict=True))


def conflicts_exactly(points: np.ndarray) -> bool:
    """Whether points (s, d) of float64 have nonnegative weights, not all zero, with an exactly zero sum."""
    exact = [[Fraction(value) for value in row] for row in points.tolist()]
    whole = max(value.denominator for row in exact for value in row)
    return bool(conflicts(np.array([[int(value * whole) for value in row] for row in exact], object).T))


def test_one_that_proves_nothing_does_not_spoil_the_others() -> None:
    sets = [random_simplex(3, seed) for seed in range(4)]
    X, weights = np.vstack([points for points, _ in sets]), [each for _, each in sets]
    X[4:8] = X[4]  # of rank one, on one side
    data = signed(X)
    claims = [(np.arange(4 * k, 4 * k + 4), weights[k] * np.linalg.norm(X[4 * k : 4 * k + 4], axis=1)) for k in range(4)]
    assert proved(data, claims) == [True, False, True, True]
    assert proved(data, []) == []
    claims[2] = np.array([8, 9, 10, 16]), claims[2][1]  # a point that there is not
    claims[3] = claims[3][0], claims[3][1] * [1, 1, 1, -0.5]
    assert proved(data, claims) == [True, False, False, False]


def test_a_point_that_is_zero_conflicts() -> None:
    X: Any = np.array([[1.0, 0], [0, 1], [0, 0], [-1, -1]])
    for points in (X, scipy.sparse.csr_array(X)):
        data = marked(points, np.array([1, 1, 1, -1]))
        assert proved(data, [(np.array([0, 1, 2]), np.ones(3)), (np.array([0, 1]), np.ones(2))]) == [True, False]


def test_other_data_and_other_kinds_are_refused() -> None:
    points, weights = random_simplex(2, 0)
    data = signed(points)
    engine, blank = LocalEngine(data, 1), Certificate("gordan", "0" * 64, support=np.arange(3), weights=weights / weights.sum())
    with pytest.raises(CorruptDataError):
        check_conflicts(engine, data, [blank])
    (answer,) = check_conflicts(engine, data, [Certificate("separator", data.fingerprint, y=np.ones(2))]).answers
    assert not isinstance(answer, Check)


class TestConflicts(TestPoints):
    """The laws of a checker, for one conflict."""

    names = ("a conflict",)

    def check(self, claim: Claim, threads: int = 1) -> Check:
        (answer,) = check_conflicts(LocalEngine(claim.dataset, threads), claim.dataset, [claim.certificate]).answers
        if not isinstance(answer, Check):
            raise answer
        return answer
