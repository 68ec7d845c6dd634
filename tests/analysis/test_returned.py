"""What is proved is of the numbers that are returned: claims of small drawn problems of all scales, in fractions."""

import re
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dfeas

Floats = NDArray[np.float64]
SOFT = Fraction(1, 10**12)
"""Share of an objective by which ends of a soft margin, in float64, may be off."""


def fractions(values: Any) -> list[Fraction]:
    return [Fraction(value) for value in np.asarray(values, np.float64).tolist()]


def dot(one: list[Fraction], other: list[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(one, other, strict=True)), Fraction(0))


def scores(X: Floats, labels: Floats, w: Floats, bias: float) -> list[Fraction]:
    plane = [*fractions(w), Fraction(bias)]
    return [int(label) * dot([*fractions(row), Fraction(1)], plane) for row, label in zip(X, labels, strict=True)]


def draw(seed: int) -> tuple[np.random.Generator, Floats, Floats]:
    """Decimals of all scales, some far from the origin, and labels that a plane gives."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(4, 14)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, m)).round(int(rng.integers(1, 4))) * 10.0 ** rng.integers(-8, 9, m)
    X = X + 10.0 ** rng.integers(-2, 6) if seed % 3 == 0 else X
    away = (X - X.mean(axis=0)) @ (rng.normal(size=m) / np.maximum(np.abs(X).max(axis=0), 1e-300))
    labels = np.where(away > np.median(away), 1.0, -1.0)
    assert len({*labels}) == 2
    return rng, X, labels


def near(numbers: list[int], seed: int) -> tuple[Floats, Floats]:
    """Points a few units in the last place apart."""
    rng = np.random.default_rng(seed)
    base = 2.0 ** rng.integers(20, 48, numbers[1])
    step = np.spacing(base) * 2.0 ** rng.integers(0, 6, numbers[1])
    X = base + rng.integers(-5, 6, numbers) * step
    away = (X - base) @ (rng.integers(-3, 4, numbers[1]) / step)
    return X, np.where(away > np.median(away), 1.0, -1.0)


@pytest.mark.parametrize("seed", range(24))
def test_ends_of_margins_are_those_of_the_separator_that_is_returned(seed: int) -> None:
    _, X, labels = draw(seed)
    found = dfeas.hard_margin(X, labels)
    result = found.result
    if result.verdict == "infeasible":
        assert found.lower is None
        return
    m = X.shape[1]
    assert np.array_equal(np.append(result.coef, result.bias), result.separator)
    least, (*w, bias) = min(scores(X, labels, result.coef, result.bias)), fractions(result.separator)
    if found.lower is not None:
        assert 0 < Fraction(found.lower) ** 2 * dot(w, w) <= least**2
    for row, score in zip(X, scores(X, labels, result.coef, result.bias), strict=True):
        length = dot(fractions(row), fractions(row)) + 1
        assert score > 0
        assert Fraction(result.margin_lower) ** 2 * (dot(w, w) + bias**2) * length <= score**2
    if found.upper is not None:
        ends = []
        for label in (1.0, -1.0):
            own = labels[found.support] == label
            weights, points = fractions(found.weights[own]), X[found.support[own]]
            ends.append([dot(weights, fractions(points[:, j])) / sum(weights) for j in range(m)])
        apart = [one - other for one, other in zip(*ends, strict=True)]
        assert dot(apart, apart) <= 4 * Fraction(found.upper) ** 2
    if found.w is not None:  # as the page of verdicts has it: up to rounding
        reach = dot([abs(each) for each in fractions(found.w)], [max(fractions(np.abs(column))) for column in X.T]) + 1
        assert abs(min(scores(X, labels, found.w, found.bias)) - 1) <= reach / 2**48


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("transform", [(), "center"])
def test_a_plane_that_is_a_rounding_is_right_up_to_that_and_classes_are_right(seed: int, transform: Any) -> None:
    X, labels = near([6, 1 + seed % 3], seed)
    if len({*labels}) < 2:
        return
    result = dfeas.solve(X, labels, transform=transform)
    if result.verdict != "feasible":
        return
    assert np.array_equal(result.predict(X), labels)
    reach = dot([abs(each) for each in fractions(result.coef)], [max(fractions(np.abs(column))) for column in X.T])
    least = min(scores(X, labels, result.coef, result.bias))
    assert least > (-(reach + abs(Fraction(result.bias))) / 2**48 if transform or result.evidence.integers else 0)


@pytest.mark.parametrize("seed", range(24))
def test_ends_of_soft_margins_are_those_of_what_is_returned_up_to_rounding(seed: int) -> None:
    rng, X, labels = draw(seed)
    labels[int(rng.integers(len(X)))] *= -1
    loss, C = ("hinge", "squared_hinge")[seed % 2], float(10.0 ** rng.integers(-6, 7))
    if len({*labels}) < 2:
        return
    fit = dfeas.soft_margin(X, labels, C=C, loss=loss, max_passes=60)
    assert np.array_equal(np.append(fit.coef, fit.bias), fit.y)
    short = [max(Fraction(0), 1 - score) for score in scores(X, labels, fit.coef, fit.bias)]
    w = fractions(fit.coef)
    objective = dot(w, w) / 2 + Fraction(C) * sum(each if loss == "hinge" else each**2 for each in short)
    assert abs(Fraction(fit.objective) - objective) <= SOFT * objective
    assert Fraction(fit.lower) <= objective * (1 + SOFT)


@pytest.mark.parametrize("seed", range(40))
def test_inequalities_hold_for_the_x_that_is_returned_or_are_counted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    A = rng.integers(-30, 31, (n, m)) * 10.0 ** rng.integers(-8, 9, m) * 0.1
    x = rng.integers(-9, 10, m) / 10 / np.maximum(np.abs(A).max(axis=0), 1.0)
    b = A @ x + rng.integers(0, 2, n) * (seed % 2)
    found = dfeas.feasible(A, b, equal=(A[:1], b[:1]) if seed % 4 == 0 else None)
    rows = [(fractions(row), Fraction(side)) for row, side in zip(A, b.tolist(), strict=True)]
    rows += [([-each for each in row], -side) for row, side in [*rows[:1]] if seed % 4 == 0]
    if found.verdict == "infeasible":
        total = [sum((u * rows[j][0][i] for u, j in zip(found.u, found.rows, strict=True)), Fraction(0)) for i in range(m)]
        v = [*found.v, *([0] if not found.v else [])][0]
        assert [each + v * value for each, value in zip(total, rows[0][0], strict=True)] == [0] * m
        assert sum(u * rows[j][1] for u, j in zip(found.u, found.rows, strict=True)) + v * rows[0][1] < 0
        return
    assert found.verdict == "feasible"
    over = [dot(row, fractions(found.x)) - side for row, side in rows]
    more = [max(Fraction(0), over[0])] if seed % 4 == 0 else []  # an equality is two inequalities beside those of A
    assert sum(each > 0 for each in [*over, *more]) == found.violated
    assert all(dot(row, found.exact) <= side for row, side in rows)
    said = re.search(r"by at most (\S+)$", found.message)
    assert (said is not None) == bool(found.violated)
    assert said is None or max(over) <= Fraction(said[1])


@pytest.mark.parametrize("seed", range(16))
def test_a_point_outside_is_on_the_other_side_of_the_coef_that_is_returned(seed: int) -> None:
    rng, X, _ = draw(seed)
    point = X.min(axis=0) - rng.integers(0, 2) * np.spacing(np.abs(X).max(axis=0))
    found = dfeas.in_hull(point, X)
    if found.inside or found.coef is None or found.result.evidence.integers:
        assert found.inside is not None
        return
    coef, here = fractions(found.coef), fractions(point)
    assert all(dot(coef, [a - b for a, b in zip(fractions(row), here, strict=True)]) > 0 for row in X)


def test_units_in_the_last_place_are_what_near_points_differ_by() -> None:
    X, _ = near([6, 2], 1)
    assert all(b - a <= 1000 * np.spacing(a) for column in X.T for a, b in pairwise(sorted(column)))
