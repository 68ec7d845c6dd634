"""Rows that are not in the likelihood: of weight 0, or without trials. The answer is that of the table without these rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask.dataframe
import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import dfeas
from dfeas.analysis.regression.files import of_formula, of_table
from dfeas.analysis.regression.outcome import Asked
from dfeas.run.resources import Resources

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import statsmodels.api as sm
    import statsmodels.formula.api as smf

Floats = np.ndarray
SMALL = "20MB"
"""Of which a design of all rows of a large table is more than the part that may be held."""
LETTERS = np.array(list("abcd"))
OUTCOMES: dict[str, Callable[[Floats], tuple[Floats, dict[str, Any]]]] = {
    "binary": lambda y: (y % 2, {}),
    "poisson": lambda y: (y, {"outcome": "poisson"}),
    "multinomial": lambda y: (LETTERS[y], {"outcome": "multinomial"}),
}


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


def require_alike(found: Any, by_hand: Any, rows: Any) -> None:
    """Both have found the same, or refused; points are among ``rows``."""
    if isinstance(by_hand, type):
        assert found is by_hand
        return
    for name in (
        "kind",
        "proof",
        "outcome",
        "classes",
        "columns",
        "direction",
        "intercept",
        "levels",
        "depending",
        "separated",
    ):
        assert getattr(found, name) == getattr(by_hand, name), name
    assert found.points == [rows[place] for place in by_hand.points]
    assert [(each.text, each.finite) for each in found.advice] == [(each.text, each.finite) for each in by_hand.advice]


@settings(max_examples=120, deadline=None)
@given(weighted(), st.sampled_from(list(OUTCOMES)), st.booleans())
def test_rows_of_weight_zero_are_as_if_they_were_not_there(table: tuple[Floats, ...], kind: str, intercept: bool) -> None:
    X, y, weights = table
    outcomes, asked = OUTCOMES[kind](y)
    kept = np.flatnonzero(weights > 0)
    asked = {**asked, "intercept": intercept}
    by_hand = answer(lambda: dfeas.check_separation(X[kept], outcomes[kept], **asked))
    for given_X in (X, sparse.csr_array(X)):
        found = answer(lambda given_X=given_X: dfeas.check_separation(given_X, outcomes, weights=weights, **asked))
        require_alike(found, by_hand, kept.tolist())


@pytest.mark.filterwarnings("ignore:invalid value")  # of statsmodels, for a share of no trials
@settings(max_examples=60, deadline=None)
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
    for make in (
        pd.DataFrame,
        polars.from_pandas,
        pyarrow.Table.from_pandas,
        lambda f: dask.dataframe.from_pandas(f, npartitions=3),
    ):
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


@pytest.mark.parametrize("outcome", REST)
def test_what_memory_does_not_hold_leaves_out_the_same_rows(outcome: str, tmp_path: Path) -> None:
    frame = people(110_000, 9)
    frame.drop(columns=REST[outcome]).to_parquet(tmp_path / "t.parquet", index=False)
    more: dict[str, Any] = {"outcome": "poisson"} if outcome == "falls" else {}
    kept = np.flatnonzero(frame.weight > 0)
    asked = Asked(outcome, resources=Resources(memory=SMALL), weights="weight", **more)
    for ask in (
        lambda: of_table(tmp_path / "t.parquet", asked),
        lambda: of_formula(tmp_path / "t.parquet", f"{outcome} ~ ward + age", asked),
    ):
        found = ask()
        assert (found.kind, found.levels) == ("quasi-complete", {"ward": ["b"]})
        assert found.points == kept[frame.ward[kept] == "b"][:1000].tolist()
        assert {each.finite for each in found.advice} == {None}, "it was held by memory"
        assert found.separated == ((frame.ward == "b") & (frame.weight > 0)).sum()
        assert found.notes == [f"{len(frame) - len(kept)} of 110000 rows have no weight, and are not in the likelihood"]
    overlap = of_table(tmp_path / "t.parquet", replace(asked, without=["ward"]))
    assert overlap.finite
    assert set(overlap.points) <= set(kept.tolist())
    if outcome != "falls":
        among = frame.iloc[overlap.points]
        assert dfeas.check_separation(among[["age"]].to_numpy(), among[outcome], intercept=True).finite


WRONG: dict[str, tuple[Any, str]] = {
    "below 0": ([1, 1, -2, 0], "the weight of row 2 is -2, expected a number >= 0"),
    "missing": ([1, np.nan, 1, 0], "the weight of row 1 is missing"),
    "null": (polars.Series([1, 0, 1, None]), "the weight of row 3 is missing"),
    "masked": (np.ma.masked_array([1, 1, 1, 1], mask=[0, 0, 1, 0]), "a masked array"),
    "infinite": ([np.inf, 1, 1, 1], "the weight of row 0 is inf"),
    "text": (list("1111"), "expected weights that are numbers"),
    "too few": ([1, 1], r"expected one number for each of 4 rows, got shape \(2,\)"),
    "none": ([0, 0, 0, 0], "none of 4 rows has a weight above 0"),
    "one class": ([1, 0, 1, 0], "all rows are 0; two classes are needed"),
}


@pytest.mark.parametrize("case", WRONG)
def test_weights_that_are_none_are_refused_with_their_row(case: str) -> None:
    weights, said = WRONG[case]
    X, y = np.arange(4.0)[:, None], np.array([0, 1, 0, 1])
    frame = pd.DataFrame({"x": X[:, 0], "kind": list("abcb")})
    for table in (X, frame):
        with pytest.raises(dfeas.BadInputError, match=said):
            dfeas.check_separation(table, y, weights=weights, intercept=True)
    with pytest.raises(dfeas.BadInputError, match=said):
        dfeas.check_separation("np.abs(y) ~ x + kind" if case == "none" else "y ~ x + kind", frame.assign(y=y), weights=weights)


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


def test_where_weights_come_from_is_said_and_their_rows_are_called_as_the_user_calls_them(tmp_path: Path) -> None:
    n = 70_000
    frame = pd.DataFrame({"x": np.arange(n) % 7, "y": np.arange(n) % 2, "w": 1.0})
    frame.loc[n - 3, "w"] = -1
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(dfeas.BadInputError, match=f"column w: the weight of row {n - 3} is -1"):
        dfeas.check_separation(tmp_path / "t.csv", "y", weights="w", intercept=True)
    named = frame[-5:].set_axis(list("abcde"))
    with pytest.raises(dfeas.BadInputError, match="the frame: column w: the weight of row c is -1"):
        dfeas.check_separation(named, "y", weights="w", intercept=True)
    with pytest.raises(dfeas.BadInputError, match="freq_weights of the model: the weight of row c is -1"):
        dfeas.check_separation(smf.glm("y ~ x", named, family=sm.families.Binomial(), freq_weights=named.w))
    for weights, y, said in (
        ("y", "y", "in columns of their own"),
        ("v", "y", "no column v"),
        (named.w[::-1], "y", "another order"),
    ):
        with pytest.raises(dfeas.DfeasError, match=said):
            dfeas.check_separation(named[["x", "y"]], y, weights=weights, intercept=True)
    for weights, said in ((frame.w, "expected a name, got Series"), ("v", "no column v"), ("y", "in columns of their own")):
        with pytest.raises(dfeas.DfeasError, match=said):
            dfeas.check_separation(tmp_path / "t.csv", "y", weights=weights, intercept=True)
    with pytest.raises(dfeas.UsageError, match="an array has no columns of that name"):
        dfeas.check_separation(np.ones((3, 1)), [0, 1, 0], weights="w", intercept=True)
    with pytest.raises(dfeas.UsageError, match="leave out y, positive, weights"):
        dfeas.check_separation(sm.Logit(frame.y, frame[["x"]]), weights=frame.w)


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


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_row_is_called_by_its_number_behind_rows_without_weight() -> None:
    frame = pd.DataFrame({"x": [1.0, 2, 0, 3, 0], "y": [0, 1, 0, 1, 1], "w": [1, 0, 0, 1, 1]})
    with pytest.raises(dfeas.BadInputError, match=r"column np\.log\(x\): 1 values are missing or infinite, the first in row 4"):
        dfeas.check_separation("y ~ np.log(x)", frame, weights="w")


def test_ids_and_texts_are_those_of_rows_with_weight() -> None:
    """30 texts of which 25 that differ have a weight are as an id."""
    frame = pd.DataFrame({"id": [f"p{min(j, 25)}" for j in range(30)], "y": [0, 1] * 15, "w": np.arange(30) < 25})
    with pytest.raises(dfeas.BadInputError, match="column id has another text in each of 25 rows"):
        dfeas.check_separation(frame, "y", weights="w", intercept=True)
