"""dfeas.check_separation of frames as people have them: what it says of columns, levels and rows, and what it refuses."""

from __future__ import annotations

import copy
import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import dask
import dask.dataframe
import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from numpy.typing import NDArray
from scipy import sparse

import dfeas
from dfeas.analysis.check_separation import Separated
from tests.analysis.making import FRAMES

COUNT = 400
MADE: dict[str, Callable[[pd.DataFrame], Any]] = {
    **FRAMES,
    "objects": lambda frame: frame.astype({"ward": object, "smoker": object}),
    "arrow types": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "categories": lambda frame: frame.astype({"ward": "category", "died": "category"}),
    "polars categories": lambda frame: polars.from_pandas(frame).with_columns(polars.col("ward").cast(polars.Categorical)),
    "arrow dictionaries": lambda frame: pyarrow.Table.from_pandas(frame.astype({"ward": "category"})),
}


def patients(empty: str = "surgery") -> pd.DataFrame:
    """Ages, incomes, ids of ten digits, wards, smokers; nobody died in one of the wards."""
    rng = np.random.default_rng(0)
    ward = rng.choice(["heart", "lung", "surgery", "trauma"], COUNT)
    age = rng.integers(18, 95, COUNT)
    died = (rng.random(COUNT) < age / 150) & (ward != empty)
    columns = {"age": age, "income": np.round(rng.lognormal(10, 1, COUNT), 2), "ward": ward, "smoker": rng.random(COUNT) < 0.3}
    return pd.DataFrame({**columns, "died": np.where(died, "yes", "no")})


@pytest.mark.parametrize("kind", MADE)
def test_text_categories_and_booleans_of_every_library_are_coded(kind: str) -> None:
    frame = patients()
    found = dfeas.check_separation(MADE[kind](frame), "died")
    assert (found.kind, found.finite, found.proof, found.outcome) == ("quasi-complete", False, "exact", "binary")
    assert (found.columns, found.levels, found.classes) == (["ward[surgery]"], {"ward": ["surgery"]}, ("no", "yes"))
    assert found.points == list(np.flatnonzero(frame.ward == "surgery"))
    assert found.separated == len(found.points)
    assert found.direction == {"ward[surgery]": -1.0}
    assert "level surgery of ward separates" in str(found)
    assert "merge level surgery of ward (0 of " in found.advice[0].text
    assert found.advice[0].finite is True


def test_the_answer_is_that_of_the_design_as_it_is_coded_by_hand() -> None:
    """Treatment coding of pandas, in which the reference has no column: the level to blame is named all the same."""
    frame = patients("heart")
    dummies = pd.get_dummies(frame[["age", "income", "ward", "smoker"]], drop_first=True).astype(float)
    by_hand, found = dfeas.check_separation(dummies, frame.died), dfeas.check_separation(frame, "died")
    assert (found.kind, found.points) == (by_hand.kind, by_hand.points)
    assert (found.levels, len(found.columns)) == ({"ward": ["heart"]}, 3)
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


def test_ids_that_are_numbers_are_noted() -> None:
    frame = patients("nowhere")
    number = np.random.default_rng(3).choice(10**9, COUNT, replace=False) + 10**9
    found = dfeas.check_separation(frame.assign(id=number), "died")
    assert found.finite
    assert found.notes == ["column id has another whole number in each row: drop it if it is an id"]
    assert not dfeas.check_separation(frame, "died").notes


@pytest.mark.parametrize("seed", range(4))
def test_categories_of_parquet_are_in_the_order_of_the_frame(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    ward, grade = (
        pd.Categorical(rng.choice(list("abc"), 40), rng.permutation(list("abcd")), ordered) for ordered in (False, True)
    )
    frame = pd.DataFrame({"age": rng.normal(size=40), "ward": ward, "grade": grade, "died": rng.integers(0, 2, 40)})
    frame.to_parquet(tmp_path / "one.parquet", row_group_size=int(rng.integers(3, 40)))
    (tmp_path / "folder").mkdir()
    for place in range(2):
        frame[20 * place : 20 * (place + 1)].to_parquet(tmp_path / "folder" / f"{place}.parquet", index=False)
    for asked in (("died", None), ("grade", "ordinal"), ("died ~ ward + age", None), ("grade ~ ward + age", "ordinal")):
        formula = "~" in asked[0]
        sources = (frame, pyarrow.Table.from_pandas(frame), tmp_path / "one.parquet", tmp_path / "folder")
        answers = [
            dfeas.check_separation(*((asked[0], X) if formula else (X, asked[0])), outcome=asked[1])  # type: ignore[call-overload]
            for X in sources
        ]
        for found in answers[1:]:
            assert [each.name for each in found.estimates] == [each.name for each in answers[0].estimates]
            assert found.classes == answers[0].classes
            assert found.message == answers[0].message


def test_files_whose_categories_have_other_orders_are_refused(tmp_path: Path) -> None:
    for name, order in (("1", "abc"), ("2", "bac")):
        grade = pd.Categorical(list("abcabc"), list(order), ordered=True)
        pd.DataFrame({"age": range(6), "grade": grade}).to_parquet(tmp_path / f"{name}.parquet")
    for asked in ((tmp_path, "grade"), ("grade ~ age", tmp_path)):
        with pytest.raises(
            dfeas.BadInputError, match="grade: its categories are not the same, in the same order, in all files"
        ):
            dfeas.check_separation(*asked, outcome="ordinal")


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


@pytest.mark.parametrize("seed", range(6))
def test_a_small_table_is_decided_as_a_large_one(seed: int) -> None:
    """Without the solve that comes first in ``dfeas.separation``; what comes of it is proved by the same checker."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.standard_normal((60, 3)).round(1), rng.integers(1950, 2020, 60), rng.integers(0, 2, (60, 2))])
    y = [X[:, 0] + X[:, 1] > 0, (X[:, 4] > 0) | (rng.random(60) < 0.5), rng.random(60) < 0.5][seed % 3]
    small, large = dfeas.check_separation(X, y).found, dfeas.separation(X, y, intercept=True)
    assert (small.kind, small.on, small.rank) == (large.kind, large.on, large.rank)
    assert (small.proof, small.result.method) == ("exact", "exact")


@pytest.mark.parametrize("seed", range(3))
def test_the_result_beside_what_is_proved_is_made_when_it_is_asked_for(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the table as it was given, whatever has become of it; by who follows the run at once."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 3)).round(1)
    y = [X[:, 0] > 0, (X[:, 0] > 0) | (X[:, 0] == X[:, 0].min()), rng.random(60) < 0.5][seed].astype(int)
    monkeypatch.setenv("DFEAS_PROGRESS", "1")
    known = dfeas.check_separation(X, y).found
    monkeypatch.delenv("DFEAS_PROGRESS")
    later, again = dfeas.check_separation(X, y).found, dfeas.check_separation(X, y).found
    assert ("result" in vars(known), "result" in vars(later)) == (True, False)
    X[:], y[:] = 0.0, 0
    both = (pickle.loads(pickle.dumps(later)), again)
    for found in both:
        one, other = ({**each.to_json(), "seconds": 0.0} for each in (known, found))
        assert one == other
        assert (found.result.seconds > 0, found.fingerprint) == (True, known.fingerprint)
    assert not hasattr(later, "results")


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
    assert len(opened) == 1  # nobody asked for advice
    assert len(found.advice) == 2
    assert len(opened) == 2


def separated_table() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((60, 5))
    return X, (X[:, 1] + X[:, 3] > 0).astype(np.int64)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda found: pickle.loads(pickle.dumps(found)), replace])
def test_a_copy_of_an_answer_has_what_was_not_asked_for_yet(again: Callable[[Separated], Separated]) -> None:
    X, y = separated_table()
    found, asked = (dfeas.check_separation(X, y) for _ in range(2))
    other = again(found)
    assert (str(asked), asked.to_json()) == (str(other), other.to_json())
    assert [getattr(other, each.name) for each in fields(other) if each.name != "found"] == [
        getattr(asked, each.name) for each in fields(asked) if each.name != "found"
    ]
    assert vars(other).keys() == {each.name for each in fields(Separated)}


@pytest.mark.parametrize("order", [("estimates", "advice", "columns"), ("columns", "advice", "estimates")])
def test_an_answer_is_about_the_table_as_it_was(order: Sequence[str]) -> None:
    """In whatever order it is asked, and whatever becomes of the table meanwhile."""
    X, y = separated_table()
    expected = dfeas.check_separation(X, y).to_json()
    found = dfeas.check_separation(X, y)
    X[:] = 0
    for name in order:
        getattr(found, name)
    assert found.to_json() == expected


def test_time_between_questions_is_not_that_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = separated_table()
    expected = dfeas.check_separation(X, y).to_json()
    found, clock = dfeas.check_separation(X, y, time_limit=30), time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: clock() + 3600)
    assert found.to_json() == expected


def test_an_answer_has_no_other_names() -> None:
    found = dfeas.check_separation(*separated_table())
    with pytest.raises(AttributeError, match="'Separated' object has no attribute 'estimate'"):
        _ = found.estimate  # type: ignore[attr-defined]


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


def test_the_text_that_a_message_asks_for_is_one_name_and_known() -> None:
    frame = pd.DataFrame({"dose": ["5 mg", "7 mg"] * 10, "ab": np.arange(20.0) % 7, "died": [0, 1, 1, 0] * 5})
    with pytest.raises(dfeas.BadInputError, match="text='dose'"):
        dfeas.check_separation(frame, "died")
    assert dfeas.check_separation(frame, "died", text="dose").kind == "overlap"


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


def aged() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(50, 10, 60), "rare": np.arange(60) < 3, "died": rng.integers(0, 2, 60)})
    frame.loc[:2, "died"] = 1
    return frame


@pytest.mark.parametrize("names", [[0, 1, 2], [("a", 0), ("a", 1), ("b", 0)]])
def test_an_outcome_is_called_as_its_column_is(names: list[Any]) -> None:
    frame = aged()
    given = frame.set_axis(pd.MultiIndex.from_tuples(names) if isinstance(names[0], tuple) else names, axis=1)
    found, plain = dfeas.check_separation(given, names[2]), dfeas.check_separation(frame, "died")
    assert (found.kind, found.points, found.columns) == (plain.kind, plain.points, [f"{names[1]}[True]"])
    solved = dfeas.solve(given.astype(float), names[2], max_passes=2)
    assert solved.verdict == dfeas.solve(frame[["age", "rare"]].astype(float), frame["died"], max_passes=2).verdict


def test_a_dot_stands_for_all_other_columns(tmp_path: Path) -> None:
    frame = aged().assign(weight=1.0)
    frame.to_csv(tmp_path / "t.csv", index=False)
    named = dfeas.check_separation("died ~ age + rare", frame)
    for given in (frame, tmp_path / "t.csv"):
        found = dfeas.check_separation("died ~ .", given, weights="weight")
        assert [each.estimate for each in found.estimates] == [each.estimate for each in named.estimates]
        assert found.points == named.points
    assert [each.name for each in dfeas.check_separation("died ~ . - age - weight", frame).estimates][1:] == ["intercept"]


@pytest.mark.parametrize("kind", [float, Decimal])
def test_objects_that_are_numbers_are_numbers(kind: type) -> None:
    frame = aged()
    held = frame.assign(age=frame["age"].map(kind).astype(object))
    for X in ("died ~ age + rare", None) if kind is float else (None,):
        asked = [dfeas.check_separation(*((each, "died") if X is None else (X, each))) for each in (held, frame)]
        assert [each.estimate for each in asked[0].estimates] == [each.estimate for each in asked[1].estimates]
