"""dfeas.check_separation of frames as people have them: what it says of columns, levels and rows, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import dask
import dask.dataframe
import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from scipy import sparse

import dfeas
from dfeas.analysis.separation import separate
from dfeas.answers.separation import Separation
from dfeas.problem import Problem
from dfeas.run.resources import Limits, Output, Resources, never

COUNT = 400
FRAMES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "objects": lambda frame: frame.astype({"ward": object, "smoker": object}),
    "nullable": lambda frame: frame.convert_dtypes(),
    "arrow types": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "categories": lambda frame: frame.astype({"ward": "category", "died": "category"}),
    "polars": polars.from_pandas,
    "polars categories": lambda frame: polars.from_pandas(frame).with_columns(polars.col("ward").cast(polars.Categorical)),
    "arrow": pyarrow.Table.from_pandas,
    "arrow dictionaries": lambda frame: pyarrow.Table.from_pandas(frame.astype({"ward": "category"})),
    "dask": lambda frame: dask.dataframe.from_pandas(frame, npartitions=3),
}


def patients(empty: str = "surgery") -> pd.DataFrame:
    """Ages, incomes, ids of ten digits, wards, smokers; nobody died in one of the wards."""
    rng = np.random.default_rng(0)
    ward = rng.choice(["heart", "lung", "surgery", "trauma"], COUNT)
    age = rng.integers(18, 95, COUNT)
    died = (rng.random(COUNT) < age / 150) & (ward != empty)
    columns = {"age": age, "income": np.round(rng.lognormal(10, 1, COUNT), 2), "ward": ward, "smoker": rng.random(COUNT) < 0.3}
    return pd.DataFrame({**columns, "died": np.where(died, "yes", "no")})


@pytest.mark.parametrize("kind", FRAMES)
def test_text_categories_and_booleans_of_every_library_are_coded(kind: str) -> None:
    frame = patients()
    found = dfeas.check_separation(FRAMES[kind](frame), "died")
    assert (found.kind, found.finite, found.proof, found.outcome) == ("quasi-complete", False, "exact", "binary")
    assert (found.columns, found.levels, found.classes) == (["ward[surgery]"], {"ward": ["surgery"]}, ("no", "yes"))
    assert found.points == list(np.flatnonzero(frame.ward == "surgery"))
    assert found.separated == len(found.points)
    assert found.direction == {"ward[surgery]": -1.0}
    assert "level surgery of ward separates" in str(found)
    assert "merge level surgery of ward (0 of " in found.advice[0].text
    assert found.advice[0].finite is True


@pytest.mark.parametrize("empty", ["heart", "trauma"])
def test_the_answer_is_that_of_the_design_as_it_is_coded_by_hand(empty: str) -> None:
    """Treatment coding of pandas, in which the reference has no column: the level to blame is named all the same."""
    frame = patients(empty)
    dummies = pd.get_dummies(frame[["age", "income", "ward", "smoker"]], drop_first=True).astype(float)
    by_hand, found = dfeas.check_separation(dummies, frame.died), dfeas.check_separation(frame, "died")
    assert (found.kind, found.points) == (by_hand.kind, by_hand.points)
    assert found.levels == {"ward": [empty]}
    assert len(found.columns) == (3 if empty == "heart" else 1)
    score = dummies.to_numpy() @ [found.direction.get(name.replace("_", "[") + "]", 0.0) for name in dummies] + found.intercept
    assert (score[found.points] < 0).all()
    assert (np.delete(score, found.points) == 0).all()


def test_the_level_with_which_to_merge_is_the_next_one_in_order() -> None:
    grade = pd.Categorical(np.repeat(["low", "mid", "high", "top"], 20), ["low", "mid", "high", "top"], ordered=True)
    y = np.tile([0, 1], 40)
    y[60:], y[:20] = 1, np.arange(20) < 19  # of shares of 1 that of low is nearest to that of top, and high is next to it
    found = dfeas.check_separation(pd.DataFrame({"grade": grade}), y)
    assert found.levels == {"grade": ["top"]}
    assert "merge level top of grade (20 of 20 rows are 1) with high (10 of 20 rows are 1)" in found.advice[0].text
    plain = dfeas.check_separation(pd.DataFrame({"grade": grade.astype(str)}), y)
    assert "with low (19 of 20 rows are 1)" in plain.advice[0].text


def test_categories_are_in_their_order_and_those_without_a_row_have_no_column() -> None:
    kind = pd.Categorical(["b", "a", "c", "b", "a", "c"], ["c", "b", "unused", "a"])
    found = dfeas.check_separation(pd.DataFrame({"kind": kind}), [1, 0, 0, 1, 1, 1])
    assert found.columns == ["kind[b]"]
    without = dfeas.check_separation(pd.DataFrame({"kind": kind}), [1, 0, 0, 1, 1, 1], intercept=False)
    assert without.levels == {"kind": ["b"]}


def test_numbers_are_as_they_are_and_complete_separation_names_the_column() -> None:
    rng = np.random.default_rng(0)
    index = [f"p{i}" for i in range(100)]
    frame = pd.DataFrame({"age": rng.normal(50, 10, 100), "rare": 0.0}, index=index)
    y = pd.Series(frame["age"] + 20 * rng.standard_normal(100) > 50, index=index)
    overlap = dfeas.check_separation(frame[["age"]], y)
    assert (overlap.kind, overlap.finite, overlap.columns) == ("overlap", True, [])
    conflict = frame.loc[overlap.points, "age"]
    assert conflict[y].min() <= conflict[~y].max()
    ill = y[y].index[:4]
    frame.loc[ill, "rare"] = 1
    quasi = dfeas.check_separation(frame, y)
    assert (quasi.kind, quasi.finite, quasi.columns, quasi.points) == ("quasi-complete", False, ["rare"], list(ill))
    assert str(quasi).startswith("quasi-complete separation: column rare separates 4 points (p")
    frame["leak"] = y * 1.0 + rng.random(100) / 2
    complete = dfeas.check_separation(frame, y)
    assert (complete.kind, complete.columns, len(complete.points)) == ("complete", ["leak"], 100)
    score = frame.to_numpy() @ [complete.direction.get(name, 0.0) for name in frame] + complete.intercept
    assert ((score > 0) == y).all()
    with pytest.raises(dfeas.BadInputError, match="align"):
        dfeas.check_separation(frame, y[::-1])


def test_columns_that_separate_only_together_are_both_named_and_no_other() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 6))
    found = dfeas.check_separation(X, X[:, 1] - X[:, 4] > 0.1)
    assert (found.kind, found.columns) == ("complete", [1, 4])
    alone = [dfeas.check_separation(X[:, [j]], X[:, 1] - X[:, 4] > 0.1).finite for j in (1, 4)]
    assert alone == [True, True]


def test_powers_of_a_year_are_answered_although_float64_hardly_tells_them_apart() -> None:
    year = np.array(
        [1981, 2001, 2024, 2004, 2006, 2021, 2015, 1992, 2011, 1994, 2005, 2020, 2020, 1989, 2005, 2019, 2020], np.float64
    )
    old, large, sold = (np.array([*map(int, bits)]) for bits in ("10100110000110000", "11011001111111010", "10100110100110000"))
    frame = pd.DataFrame({"year": year, "square": year**2, "cube": year**3, "old": old, "large": large})
    found = dfeas.check_separation(frame, sold, intercept=False)
    assert found.kind == "complete"
    assert "cube" in found.columns


def test_powers_of_which_float64_guesses_a_singular_basis_are_answered() -> None:
    rng = np.random.default_rng(1067)
    n, m = int(rng.integers(20, 120)), int(rng.integers(2, 14))
    x = rng.standard_normal((n, m))[:, 0]
    X = np.column_stack([x**power for power in range(1, m + 1)]) * 10.0 ** rng.integers(-20, 20)
    dummy = rng.integers(0, 3, n) == 2
    X[:, -1] = dummy * float(10.0 ** rng.integers(-9, 9))
    found = dfeas.check_separation(X, dummy | (rng.random(n) < 0.5))
    assert (found.kind, found.proof) == ("complete", "exact")
    assert m - 1 in found.columns


def test_columns_of_tiny_numbers_only_are_no_advice_that_was_tried() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"large": np.repeat([-1.0, 1.0], 6), "tiny": 1e-200 * rng.standard_normal(12)})
    found = dfeas.check_separation(frame, np.repeat([0, 1], 6), intercept=False)
    assert (found.kind, found.columns) == ("complete", ["large"])
    assert found.advice[0].text == "leave out column large"
    assert found.advice[0].finite is None


def test_columns_that_depend_on_each_other_are_said() -> None:
    frame = patients("nowhere")
    frame["months"] = 12.0 * frame.age
    found = dfeas.check_separation(frame, "died")
    assert found.finite
    assert found.depending == [("months", ["age"])]
    assert "not a unique one: months depends on age" in str(found)


def test_advice_holds() -> None:
    """What is said to make estimates finite does, looked at anew."""
    frame = patients()
    found = dfeas.check_separation(frame, "died")
    assert [each.finite for each in found.advice] == [True, True, None]
    other = found.advice[0].text.split("with ")[1].split()[0]
    assert dfeas.check_separation(frame.replace({"ward": {"surgery": other}}), "died").finite
    assert dfeas.check_separation(frame.drop(columns="ward"), "died").finite
    frame["leak"] = np.where(frame.died == "yes", 1.0, 0.0)
    leave = dfeas.check_separation(frame, "died").advice[0]
    assert (leave.text, leave.finite) == ("leave out column leak", False)  # the ward separates, too


def test_many_levels_are_a_sparse_design() -> None:
    rng = np.random.default_rng(2)
    firm = np.array([f"f{i:04d}" for i in rng.integers(0, 300, 6000)])
    y = rng.random(6000) < 0.5
    y[firm == "f0007"] = True
    found = dfeas.check_separation(pd.DataFrame({"firm": firm, "size": rng.normal(size=6000)}), y)
    assert found.levels == {"firm": ["f0007"]}
    assert found.points == list(np.flatnonzero(firm == "f0007"))
    matrix = sparse.csr_array(pd.get_dummies(firm, drop_first=True).to_numpy(np.float64))
    assert dfeas.check_separation(matrix, y).points == found.points


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "missing": ({"income": [np.nan, 1.0, np.nan, 2.0]}, r"missing values in income \(2, the first in row 0\)"),
    "missing text": ({"ward": ["a", None, "b", None]}, r"missing values in ward \(2, the first in row 1\)"),
    "infinite": ({"income": [1.0, np.inf, 2.0, 3.0]}, "column income is infinite in row 1"),
    "dates": ({"born": pd.date_range("1990-01-01", periods=4)}, "column born holds dates or times"),
    "mixed": ({"age": [1, "two", 3.0, 4]}, "column age holds float and int and str"),
    "long ids": ({"id": [2**60 + i for i in range(4)]}, "column id: an integer beyond 2"),
    "nothing": ({"ward": ["a"] * 4}, "no column beside the intercept"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_columns_that_cannot_be_used_are_refused_by_name(case: str) -> None:
    columns, said = REFUSED[case]
    with pytest.raises(dfeas.BadInputError, match=said):
        dfeas.check_separation(pd.DataFrame(columns), [0, 1, 0, 1])


def test_rows_with_labels_are_named_by_them_and_missing_values_of_polars_too() -> None:
    frame = pd.DataFrame({"age": [1.0, np.nan, 3.0]}, index=["p1", "p2", "p3"])
    with pytest.raises(dfeas.BadInputError, match=r"age \(1, the first in row 1 \(p2\)\)"):
        dfeas.check_separation(frame, [0, 1, 0])
    for value in (None, float("nan")):
        with pytest.raises(dfeas.BadInputError, match=r"age \(1, the first in row 2\)"):
            dfeas.check_separation(polars.DataFrame({"age": [1.0, 2.0, value]}), [0, 1, 0])


def test_ids_are_refused_as_text_and_noted_as_numbers() -> None:
    frame = patients("nowhere")
    number = np.random.default_rng(3).choice(10**9, COUNT, replace=False) + 10**9
    with pytest.raises(dfeas.BadInputError, match=f"column id has another text in each of {COUNT} rows"):
        dfeas.check_separation(frame.assign(id=number.astype(str)), "died")
    found = dfeas.check_separation(frame.assign(id=number), "died")
    assert found.finite
    assert found.notes == ["column id has another whole number in each row: drop it if it is an id"]
    assert not dfeas.check_separation(frame, "died").notes


def test_outcomes_that_cannot_be_used_are_refused() -> None:
    frame = patients()
    for y, said in (
        ("dead", "no column dead; did you mean died"),
        (["yes"] * COUNT, "all rows are yes; two classes are needed"),
        (np.zeros(COUNT - 1), f"X has {COUNT} rows, and y {COUNT - 1}"),
        (np.r_[np.nan, np.ones(COUNT - 1)], "1 values are missing or infinite, the first in row 0"),
        (np.array([None, *["a", "b"] * (COUNT // 2)])[:COUNT], "1 values are missing or infinite, the first in row 0"),
        (pd.date_range("2000-01-01", periods=COUNT).to_numpy(), "holds datetime64"),
    ):
        with pytest.raises(dfeas.BadInputError, match=said):
            dfeas.check_separation(frame, y)
    with pytest.raises(dfeas.UsageError, match="y is missing"):
        dfeas.check_separation(frame)
    with pytest.raises(dfeas.UsageError, match="expected one of binary, multinomial, poisson"):
        dfeas.check_separation(frame, "died", outcome="logit")


def test_outcomes_in_another_order_are_refused_also_in_a_frame_of_their_own() -> None:
    frame = patients()
    assert dfeas.check_separation(frame[["ward"]], frame[["died"]]).levels == {"ward": ["surgery"]}
    with pytest.raises(dfeas.BadInputError, match="another order"):
        dfeas.check_separation(frame[["ward"]], frame[["died"]].iloc[::-1])


def test_categories_that_are_numbers_are_classes_in_their_order() -> None:
    frame = patients()
    dose = pd.Series(pd.Categorical(np.where(frame.died == "yes", 10, 9)))
    assert dfeas.check_separation(frame[["ward"]], dose).direction == {"ward[surgery]": -1.0}
    step = pd.Series(pd.Categorical(np.arange(COUNT) % 3 + 9))
    found = dfeas.check_separation(frame[["age"]], step)
    assert (found.outcome, found.classes) == ("multinomial", ("9", "10", "11"))


def test_positive_names_one_class_against_all_others() -> None:
    frame = patients()
    dead = dfeas.check_separation(frame, "died", positive="no")
    assert (dead.classes, dead.direction) == (("yes", "no"), {"ward[surgery]": 1.0})
    ward = dfeas.check_separation(frame, "ward", positive="lung")
    assert (ward.outcome, ward.classes) == ("binary", ("rest", "lung"))
    number = dfeas.check_separation(frame[["ward"]], np.where(frame.died == "yes", 1, 0), positive="1.0")
    assert number.direction == {"ward[surgery]": -1.0}
    with pytest.raises(dfeas.BadInputError, match="label lungs; did you mean lung"):
        dfeas.check_separation(frame, "ward", positive="lungs")


def test_a_dask_frame_that_memory_does_not_hold_is_sent_to_a_file() -> None:
    frame = dask.dataframe.from_pandas(patients(), npartitions=2)
    with pytest.raises(dfeas.BadInputError, match="write it as Parquet"):
        dfeas.check_separation(frame, "died", memory="10kB")


def of_table(X: np.ndarray, y: np.ndarray, limits: Limits | None = None, stop: Callable[[], bool] = never) -> Separation:
    problem = Problem.of(X, y, intercept=True)
    return separate(problem, "auto", limits or Limits(), Resources(), Output(stop=stop), small=True)


@pytest.mark.parametrize("seed", range(12))
def test_a_small_table_is_decided_as_a_large_one(seed: int) -> None:
    """Without the solve that comes first in ``dfeas.separation``; what comes of it is proved by the same checker."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.standard_normal((60, 3)).round(1), rng.integers(1950, 2020, 60), rng.integers(0, 2, (60, 2))])
    y = [X[:, 0] + X[:, 1] > 0, (X[:, 4] > 0) | (rng.random(60) < 0.5), rng.random(60) < 0.5][seed % 3]
    small, large = of_table(X, y), dfeas.separation(X, y, intercept=True)
    assert (small.kind, small.on, small.rank) == (large.kind, large.on, large.rank)
    assert (small.proof, small.result.method) == ("exact", "exact")
    found = dfeas.check_separation(X, y)
    assert (found.kind, found.proof) == (small.kind, "exact")


@pytest.mark.parametrize("kind", ["complete", "quasi-complete"])
def test_a_small_table_is_opened_once_for_the_answer_and_once_for_each_advice(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns that the separation can do without are left out of its direction where the table lies, in whole numbers."""
    rng, opened = np.random.default_rng(3), []
    X = rng.standard_normal((60, 5))
    y = X[:, 1] + X[:, 3] > 0
    if kind == "quasi-complete":
        X[:, 0] = y & (rng.random(60) < 0.3)
        y |= rng.random(60) < 0.3
    original = dfeas.analysis.separation.open_session
    monkeypatch.setattr("dfeas.analysis.separation.open_session", lambda *a, **k: (opened.append(a), original(*a, **k))[1])
    found = dfeas.check_separation(X, y)
    assert found.kind == kind
    assert found.columns == ([1, 3] if kind == "complete" else [0])
    direction = np.array([found.direction.get(i, 0.0) for i in range(5)])
    score = (X @ direction + found.intercept) * np.where(y, 1, -1)
    assert (score > 0).sum() == found.separated
    assert len(opened) == 2


def test_limits_hold_for_a_small_table() -> None:
    X = np.arange(12.0)[:, None]
    y = np.arange(12) > 5
    assert of_table(X, y, Limits(max_passes=1)).kind is None
    assert of_table(X, y, stop=lambda: True).kind is None


def test_a_dask_frame_is_computed_once() -> None:
    whole, computed = patients(), list[int]()

    def part(rows: int) -> pd.DataFrame:
        computed.append(rows)
        return whole[rows::3]

    frame = dask.dataframe.from_map(part, range(3), meta=whole[:0])
    computed.clear()
    with dask.config.set(scheduler="synchronous"):  # in this process, whatever cluster is left of another test
        found = dfeas.check_separation(frame, "died")
    assert sorted(computed) == [0, 1, 2]
    assert (found.kind, found.columns) == ("quasi-complete", dfeas.check_separation(whole, "died").columns)


def test_json_and_html_have_what_the_text_says() -> None:
    found = dfeas.check_separation(patients(), "died")
    values = json.loads(json.dumps(found.to_json()))
    assert values["levels"] == {"ward": ["surgery"]}
    assert values["separated"] == len(values["points"]) == found.separated
    assert [each["text"] for each in values["advice"]] == [each.text for each in found.advice]
    assert str(found).startswith(values["message"])
    marked = dfeas.check_separation(pd.DataFrame({"<b>": ["x", "x", "y", "y"]}), [0, 1, 1, 1])
    assert "&lt;b&gt;" in marked._repr_html_()
    assert "<b>" not in marked._repr_html_()
    assert repr(found).startswith("<Separated quasi-complete separation: level surgery of ward separate")


def test_whole_numbers_of_an_array_that_float64_has_not_are_refused() -> None:
    """As float64 they would all be one number, a column that depends on the intercept."""
    for X in (np.arange(8)[:, None] + 2**60, sparse.csr_array(np.arange(8)[:, None] + 2**60)):
        with pytest.raises(dfeas.BadInputError, match="an integer beyond"):
            dfeas.check_separation(X, [0, 1] * 4)


def test_a_limit_leaves_it_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dfeas.run.solver_thread.GRACE", 0.0)
    monkeypatch.setattr("dfeas.run.solver_thread.LOOK_SECONDS", 0.0)
    found = dfeas.check_separation(patients(), "died", time_limit=1e-9)
    assert (found.kind, found.finite, found.columns) == (None, None, [])
    assert "not decided" in str(found)


def test_frames_of_pandas_with_columns_of_any_name_and_sparse_ones() -> None:
    X = np.column_stack([np.arange(12.0), np.arange(12) == 3])
    y = np.tile([0, 1], 6)
    assert dfeas.check_separation(pd.DataFrame(X), y).direction == {1: 1.0}
    levels = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])
    assert dfeas.check_separation(pd.DataFrame(X, columns=levels), y).columns == [("b", 2)]
    thin = pd.DataFrame({name: pd.arrays.SparseArray(column) for name, column in zip("ab", X.T, strict=True)})
    assert dfeas.check_separation(thin, y).columns == ["b"]
    cut = pd.DataFrame({"age": pd.cut(np.r_[X[:, 0], 99.0], [-1, 5, 50, 100])})
    assert dfeas.check_separation(cut, np.r_[y, 1]).levels == {"age": ["(50, 100]"]}
    with pytest.raises(dfeas.BadInputError, match="column month holds period"):
        dfeas.check_separation(pd.DataFrame({"month": pd.period_range("2000-01", periods=12, freq="M")}), y)
    with pytest.raises(dfeas.BadInputError, match="unique column names"):
        dfeas.check_separation(pd.DataFrame(X, columns=["a", "a"]), y)


def test_the_text_that_a_message_asks_for_is_one_name_and_known() -> None:
    frame = pd.DataFrame({"dose": ["5 mg", "7 mg"] * 10, "ab": np.arange(20.0) % 7, "died": [0, 1, 1, 0] * 5})
    with pytest.raises(dfeas.BadInputError, match="text='dose'"):
        dfeas.check_separation(frame, "died")
    assert dfeas.check_separation(frame, "died", text="dose").kind == "overlap"
    with pytest.raises(dfeas.BadInputError, match="no column doses"):
        dfeas.check_separation(frame, "died", text=["doses"])


def test_levels_with_zeros_only_are_named_where_they_are_most() -> None:
    rng = np.random.default_rng(0)
    f, g, y = rng.integers(0, 300, 3_000), rng.integers(0, 200, 3_000), rng.poisson(0.03, 3_000)
    frame = pd.DataFrame({"f": [f"f{k}" for k in f], "g": [f"g{k}" for k in g]})
    found = dfeas.check_separation(frame, y, outcome="poisson")
    assert (found.finite, found.proof, found.found.result.method) == (False, "exact", "fixed-effects")
    zeros = {f"f{k}" for k in np.unique(f) if not y[f == k].any()}
    assert len(zeros) > 150
    assert zeros <= set(found.levels["f"])
    assert len(found.advice) <= 13  # five levels of each, to leave out columns or rows, or a penalty
    formula = dfeas.check_separation("y ~ 1 | f + g", frame.assign(y=y), outcome="poisson")
    assert (formula.finite, formula.separated) == (False, found.separated)


def test_effects_behind_a_bar_are_eliminated_as_columns_of_text_are() -> None:
    rng = np.random.default_rng(7)
    f, g = (np.char.add(name, rng.integers(0, 300, 3000).astype(str)) for name in "fg")
    frame = pd.DataFrame({"f": f, "g": g, "y": (rng.random(3000) < 0.1) * 1.0})
    by_bar = dfeas.check_separation("y ~ 1 | f + g", frame, outcome="poisson")
    by_columns = dfeas.check_separation(frame[["f", "g"]], frame["y"], outcome="poisson")
    assert by_bar.found.result.method == by_columns.found.result.method == "fixed-effects"
    assert (by_bar.kind, by_bar.proof, by_bar.separated) == (by_columns.kind, "exact", by_columns.separated)
