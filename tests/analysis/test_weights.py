"""Rows that are not in the likelihood: of weight 0, or without trials. The answer is that of the table without these rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dfeas
from tests.analysis.making import FRAMES, require_alike

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import statsmodels.api as sm

Floats = np.ndarray
SMALL = "20MB"
"""Of which a design of all rows of a large table is more than the part that may be held."""


@st.composite
def weighted(draw: Any) -> tuple[Floats, Floats, Floats]:
    """Small tables of whole numbers, and weights, of which a third are zero."""
    n, m = draw(st.integers(4, 12)), draw(st.integers(1, 3))
    X = np.array(draw(st.lists(st.integers(-1, 2), min_size=n * m, max_size=n * m)), float).reshape(n, m)
    y = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    weights = np.array(draw(st.lists(st.sampled_from([0.0, 0.0, 1.0, 2.5, 1e-300, 1e9]), min_size=n, max_size=n)))
    return X, y, weights


def answer(ask: Callable[[], Any]) -> Any:
    """What was found, or the type of what was raised."""
    try:
        return ask()
    except dfeas.DfeasError as error:
        return type(error)


@pytest.mark.filterwarnings("ignore:invalid value")  # of statsmodels, for a share of no trials
@settings(max_examples=20, deadline=None)
@given(weighted(), st.sampled_from(["freq_weights", "var_weights", "n_trials"]), st.booleans())
def test_a_model_without_these_rows_has_the_same_answer(table: tuple[Floats, ...], name: str, poisson: bool) -> None:
    X, y, weights = table
    X, kept = np.column_stack([np.ones(len(X)), X]), np.flatnonzero(weights > 0)
    if name == "n_trials":  # pairs of counts, of which some rows have none
        trials = np.where(weights > 0, 3, 0)
        endog, more, poisson = np.column_stack([np.minimum(y, trials), trials - np.minimum(y, trials)]), {}, False
    else:
        endog, more = (y if poisson else y % 2), {name: weights}
    family = sm.families.Poisson() if poisson else sm.families.Binomial()

    def model(rows: Any) -> Any:
        return sm.GLM(endog[rows], X[rows], family=family, **{key: value[rows] for key, value in more.items()})

    if not len(kept):
        with pytest.raises(dfeas.BadInputError, match="has a weight above 0"):
            dfeas.check_separation(model(slice(None)))
        return
    found, by_hand = (answer(lambda rows=rows: dfeas.check_separation(model(rows))) for rows in (slice(None), kept))
    require_alike(found, by_hand, kept.tolist())


@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_contradicting_row_without_weight_leaves_the_separation_complete() -> None:
    x, y = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 8.5]), np.array([0, 0, 0, 0, 1, 1, 1, 1, 0])
    weights = np.r_[np.ones(8), 0.0]
    both = {"freq_weights": weights, "var_weights": np.r_[0.0, np.ones(8)]}
    for more in ({"freq_weights": weights}, {"var_weights": weights}, both):
        found = dfeas.check_separation(sm.GLM(y, sm.add_constant(x), family=sm.families.Binomial(), **more))
        assert (found.kind, found.points) == ("complete", list(range(len(more) - 1, 8)))
        assert found.notes == [f"{len(more)} of 9 rows ha{'s' if len(more) == 1 else 've'} no weight, "
                               f"and {'is' if len(more) == 1 else 'are'} not in the likelihood"]  # fmt: skip
        assert found.notes[0] in str(found)
    trials = np.array([[0, 5], [0, 4], [0, 0], [3, 0], [2, 0], [0, 0]])
    grouped = sm.GLM(trials, sm.add_constant(np.arange(1.0, 7)), family=sm.families.Binomial())
    assert dfeas.check_separation(grouped).points == [0, 1, 3, 4]
    lost = sm.Logit(np.r_[np.nan, y], sm.add_constant(np.r_[0, x]), missing="drop")
    assert not set(dfeas.check_separation(lost).points) & {0}, "the first of the rows that were given was dropped"


def people(n: int = 400, zero: int = 3) -> pd.DataFrame:
    """Of ward b nobody died who has a weight; ward z and code 7 have no weight at all."""
    rng = np.random.default_rng(0)
    ward, age, weight = rng.choice(list("abcz"), n), rng.integers(20, 90, n), rng.integers(0, zero, n) * 0.5
    weight[ward == "z"] = 0
    died = (rng.random(n) < age / 120) & ((ward != "b") | (weight == 0))
    frame = pd.DataFrame({"ward": ward, "age": age, "died": died.astype(int), "weight": weight})
    frame["falls"] = np.where((ward == "b") & (weight > 0), 0, rng.poisson(1, n))
    return frame.assign(grade=np.where(died, "worse", np.where(weight > 0, rng.choice(["mild", "severe"], n), "odd")))


REST = {"died": ["falls", "grade"], "falls": ["died", "grade"], "grade": ["died", "falls"]}


@pytest.mark.parametrize("outcome", REST)
def test_frames_formulas_and_files_leave_out_the_same_rows(outcome: str, tmp_path: Path) -> None:
    """Also held or not by memory; the weights are no regressor, and levels and classes without a weight are none."""
    frame = people().drop(columns=REST[outcome])
    asked = {"outcome": "poisson"} if outcome == "falls" else {}
    kept = np.flatnonzero(frame.weight > 0)
    bare = frame.drop(columns="weight")
    by_hand = dfeas.check_separation(bare.iloc[kept].reset_index(drop=True), outcome, **asked)
    assert (by_hand.finite, by_hand.levels) == (False, {"ward": ["b"]})
    assert "odd" not in by_hand.classes
    assert outcome == "grade" or dfeas.check_separation(bare, outcome, **asked).finite
    for make in FRAMES.values() if outcome == "died" else [FRAMES["polars"]]:
        require_alike(dfeas.check_separation(make(frame), outcome, weights="weight", **asked), by_hand, kept.tolist())
    for weights in (
        frame.weight,
        frame.weight.astype("Float64"),
        polars.Series(frame.weight),
        frame.weight.to_list(),
        frame.weight > 0,
    ):
        require_alike(dfeas.check_separation(bare, outcome, weights=weights, **asked), by_hand, kept.tolist())
    formula = f"{outcome} ~ ward + age"
    whole = dfeas.check_separation(formula, bare.iloc[kept].reset_index(drop=True), **asked)
    require_alike(dfeas.check_separation(formula, frame, weights="weight", **asked), whole, kept.tolist())
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    for path in (tmp_path / "t.csv", tmp_path / "t.parquet"):
        require_alike(dfeas.check_separation(path, outcome, weights="weight", **asked), by_hand, kept.tolist())
        require_alike(dfeas.check_separation(formula, path, weights="weight", **asked), whole, kept.tolist())


@pytest.mark.parametrize("memory", ["1GB", SMALL])
def test_a_file_of_which_no_row_has_a_weight_is_refused(memory: str, tmp_path: Path) -> None:
    n = 100 if memory == "1GB" else 60_000
    frame = pd.DataFrame(
        {"x": np.arange(n) % 7, "kind": np.array(list("abcde"))[np.arange(n) % 5], "y": np.arange(n) % 2, "w": 0}
    )
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    for X, y in ((tmp_path / "t.parquet", "y"), ("np.abs(y) ~ x + kind", tmp_path / "t.parquet")):
        with pytest.raises(dfeas.BadInputError, match=f"none of {n} rows has a weight above 0"):
            dfeas.check_separation(X, y, weights="w", memory=memory)
    frame["w"] = 1 - frame.y % 2
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    for X, y in ((tmp_path / "t.parquet", "y"), ("y ~ x + kind", tmp_path / "t.parquet")):
        with pytest.raises(dfeas.BadInputError, match="all rows are 0; two classes are needed"):
            dfeas.check_separation(X, y, weights="w", memory=memory)


@pytest.mark.filterwarnings("ignore")
def test_values_that_are_missing_are_refused_in_every_row_as_by_statsmodels() -> None:
    """Its fit raises an error, too, where a row of weight 0 has no value."""
    x, y, weights = np.arange(8.0), np.array([0.0, 1, 0, 1, 0, 1, 1, np.nan]), np.r_[np.ones(7), 0]
    model = sm.GLM(y, sm.add_constant(x), family=sm.families.Binomial(), freq_weights=weights)
    with pytest.raises(ValueError, match="nan"):
        model.fit()
    with pytest.raises(dfeas.BadInputError, match="first in row 7"):
        dfeas.check_separation(model)
    for X, outcome in ((x, y), (np.where(weights > 0, x, np.nan), np.nan_to_num(y))):
        with pytest.raises(dfeas.BadInputError, match="row 7"):
            dfeas.check_separation(X[:, None], outcome, weights=weights, intercept=True)
        with pytest.raises(dfeas.BadInputError, match="row 7"):
            dfeas.check_separation(pd.DataFrame({"x": X}), outcome, weights=weights, intercept=True)
