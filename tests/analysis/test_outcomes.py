"""Counts and several classes: what they are taken for, and what is said of their rows, columns and levels."""

from __future__ import annotations

import numpy as np
import pandas as pd

import dfeas

LETTERS = np.array(list("abcd"))


def test_two_classes_are_the_same_question_as_binary_and_as_multinomial() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        X, y = rng.integers(-1, 3, (8, 2)).astype(float), rng.permutation([0, 0, 0, 1, 1, 1, 0, 1])
        both = [dfeas.check_separation(X, y, outcome=outcome) for outcome in ("binary", "multinomial")]
        assert (both[0].kind, both[0].points) == (both[1].kind, both[1].points) or both[0].finite


def test_what_separates_the_zeros_of_counts_is_not_what_separates_counts_above_zero() -> None:
    """By y > 0 the first is separated; its estimates are finite all the same."""
    x = np.arange(1.0, 6.0)[:, None]
    y = np.where(x[:, 0] >= 3, x[:, 0], 0.0)
    assert not dfeas.check_separation(x, y > 0).finite
    assert dfeas.check_separation(x, y, outcome="poisson").finite
    dummy = np.hstack([x, [[1], [0], [0], [0], [0]]])
    found = dfeas.check_separation(dummy, y, outcome="poisson")
    assert (found.finite, found.columns, found.points) == (False, [1], [0])
    assert "separation: column 1 separates 1 row where y is 0 (0)" in str(found)
    assert any("leave out the rows" in each.text for each in found.advice)
    amounts = dfeas.check_separation(dummy, y * 0.37, outcome="poisson")  # trade, not counts
    assert amounts.points == [0]


def test_counts_of_which_none_is_zero_exist_and_those_that_all_are_do_not() -> None:
    x = np.arange(5.0)[:, None]
    assert dfeas.check_separation(x, np.arange(1, 6), outcome="poisson").finite
    for intercept in (True, False):
        assert dfeas.check_separation(x, np.zeros(5), outcome="poisson", intercept=intercept).finite is False
    found = dfeas.check_separation(x, np.zeros(5), outcome="poisson")
    assert found.separated == 5
    assert not any("leave out the rows" in str(each) for each in found.advice)
    assert (found.columns, found.intercept, found.separated) == ([], -1.0, 5)
    assert "the intercept separates 5 rows where y is 0 (0, 1, 2, 3, 4); no finite estimate of the intercept" in str(found)
    signed = np.array([[-1.0], [1.0], [2.0]])
    assert dfeas.check_separation(signed, np.zeros(3), outcome="poisson", intercept=False).finite


def test_counts_are_never_taken_for_anything_without_being_told() -> None:
    X, y = np.arange(6.0)[:, None], np.array([0, 2, 1, 0, 3, 1])
    assert dfeas.check_separation(X, y, outcome="poisson").outcome == "poisson"
    assert dfeas.check_separation(X, y, outcome="multinomial").classes == ("0", "1", "2", "3")
    assert dfeas.check_separation(X, y.astype(str)).outcome == "multinomial"  # names are no counts
    assert dfeas.check_separation(X, y > 0).outcome == "binary"


def test_a_level_without_one_of_the_classes_is_named_with_what_it_has() -> None:
    rng = np.random.default_rng(4)
    ward, grade = rng.choice(list("abc"), 300), rng.choice(["mild", "severe", "worse"], 300)
    grade[(ward == "b") & (grade == "worse")] = "mild"
    found = dfeas.check_separation(pd.DataFrame({"ward": ward, "age": rng.normal(size=300)}), grade)
    assert (found.outcome, found.levels) == ("multinomial", {"ward": ["b"]})
    assert set(found.direction) == {"ward[b]"}
    assert found.direction["ward[b]"]["worse"] < min(0.0, found.direction["ward[b]"]["severe"]) + 1e-12
    assert "0 worse) with" in found.advice[0].text
    assert found.points == list(np.flatnonzero(ward == "b"))
    assert found.advice[0].finite


def test_depending_columns_of_several_classes_are_said_once() -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(0, 9, 60).astype(float)
    found = dfeas.check_separation(np.column_stack([x, 2 * x]), LETTERS[rng.integers(0, 3, 60)])
    assert (found.finite, found.depending) == (True, [(1, [0])])
