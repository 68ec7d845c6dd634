"""Counts and several classes: existence of the maximum as the theorems define it, by linear programmes and by what fits do."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import dfeas

LETTERS = np.array(list("abcd"))
Floats = np.ndarray


def separates(on: Floats, beside: Floats) -> bool:
    """Whether some z has 0 on all rows of the first, >= 0 on those of the second, and not 0 on all of these."""
    if not len(beside):
        return False
    equal = {} if not len(on) else {"A_eq": on, "b_eq": np.zeros(len(on))}
    d = beside.shape[1]
    found = linprog(-beside.sum(axis=0), A_ub=-beside, b_ub=np.zeros(len(beside)), bounds=[(-1, 1)] * d, **equal)
    assert found.status == 0
    return bool(found.fun < -1e-7)


def designed(X: Floats, intercept: bool) -> Floats:
    return np.hstack([X, np.ones((len(X), 1))]) if intercept else X


@st.composite
def tables(draw: Any, most: int) -> tuple[Floats, Floats, bool]:
    """Small tables of whole numbers, ties and zeros among them; outcomes 0 .. most."""
    n, m = draw(st.integers(3, 12)), draw(st.integers(1, 3))
    X = np.array(draw(st.lists(st.integers(-1, 2), min_size=n * m, max_size=n * m)), float).reshape(n, m)
    y = np.array(draw(st.lists(st.integers(0, most), min_size=n, max_size=n)))
    return X, y, draw(st.booleans())


@settings(max_examples=60, deadline=None)
@given(tables(3))
def test_a_poisson_regression_exists_as_correia_guimaraes_and_zylkin_define_it(table: tuple[Floats, Floats, bool]) -> None:
    X, y, intercept = table
    W = designed(X, intercept)
    found = dfeas.check_separation(X, y, outcome="poisson", intercept=intercept)
    assert found.finite is not separates(W[y > 0], -W[y == 0])
    if not found.finite:
        z = np.array([found.direction.get(j, 0.0) for j in range(X.shape[1])] + [found.intercept] * intercept)
        assert np.allclose(W[y > 0] @ z, 0)
        assert (W[y == 0] @ z <= 1e-12).all()
        assert found.points == list(np.flatnonzero(W @ z < -1e-12))
        assert set(found.columns) <= set(found.direction)


@settings(max_examples=60, deadline=None)
@given(tables(3))
def test_a_multinomial_regression_exists_as_albert_and_anderson_define_it(table: tuple[Floats, Floats, bool]) -> None:
    X, y, intercept = table
    W, classes = designed(X, intercept), np.unique(y)
    if len(classes) < 2:
        with pytest.raises(dfeas.BadInputError, match="two classes are needed"):
            dfeas.check_separation(X, LETTERS[y], outcome="multinomial", intercept=intercept)
        return
    code, K = np.searchsorted(classes, y), len(classes)
    rows = []
    for i, k in product(range(len(y)), range(K)):
        if k != code[i]:
            row = np.zeros((K, W.shape[1]))
            row[code[i]] += W[i]
            row[k] -= W[i]
            rows.append(row[1:].ravel())
    found = dfeas.check_separation(X, LETTERS[y], outcome="multinomial", intercept=intercept)
    assert found.finite is not separates(np.zeros((0, 1)), np.array(rows))
    if not found.finite:
        z = np.zeros((K, W.shape[1]))
        for k, name in enumerate(found.classes[1:], 1):
            z[k, : X.shape[1]] = [found.direction.get(j, {}).get(name, 0.0) for j in range(X.shape[1])]
            if intercept:
                z[k, -1] = found.intercept[name]
        score = W @ z.T
        gap = score[np.arange(len(y)), code][:, None] - score
        assert (gap >= -1e-9).all()
        assert found.points == list(np.flatnonzero((gap > 1e-9).any(axis=1)))


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
    with pytest.raises(dfeas.UsageError, match=r"4 different numbers: .*counts \(outcome='poisson'\)"):
        dfeas.check_separation(X, y)
    assert dfeas.check_separation(X, y, outcome="poisson").outcome == "poisson"
    assert dfeas.check_separation(X, y, outcome="multinomial").classes == ("0", "1", "2", "3")
    assert dfeas.check_separation(X, y.astype(str)).outcome == "multinomial"  # names are no counts
    assert dfeas.check_separation(X, y > 0).outcome == "binary"
    with pytest.raises(dfeas.BadInputError, match="4 classes"):
        dfeas.check_separation(X, y, outcome="binary")
    with pytest.raises(dfeas.BadInputError, match="-1 is below 0"):
        dfeas.check_separation(X, y - 1, outcome="poisson")
    with pytest.raises(dfeas.BadInputError, match="it holds text"):
        dfeas.check_separation(X, y.astype(str), outcome="poisson")


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
