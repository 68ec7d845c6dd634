"""Data frames as people have them: of every library one answer, with names, and refusals that name the column."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe
import numpy as np
import pandas
import polars
import pyarrow
import pytest

import dfeas
from dfeas.data.storage.readers import Buffers
from tests.data.making import OBJECTS, opened

COUNT = 200


def people() -> pandas.DataFrame:
    """Ages, incomes, ids of ten digits, a dummy, and a label of text."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, COUNT)
    columns = {
        "age": age,
        "income": rng.lognormal(10, 1, COUNT),
        "id": rng.integers(10**9, 10**10, COUNT),
        "owner": rng.random(COUNT) < 0.5,
    }
    return pandas.DataFrame({**columns, "kind": np.where(age + rng.normal(size=COUNT) > 50, "good", "bad")})


@pytest.mark.parametrize("kind", [kind for kind in OBJECTS if kind not in ("numpy", "chunks")])
def test_a_frame_of_every_library_is_the_same_data(kind: str, tmp_path: Path) -> None:
    frame = people().rename(columns={"kind": "class"})
    given = OBJECTS[kind][1](frame, tmp_path)
    expected = np.column_stack([frame[name].to_numpy(np.float64) for name in ("age", "income", "id", "owner")])
    result = dfeas.solve(given, "class", intercept=True)
    assert result.fingerprint == dfeas.solve(expected, frame["class"].to_numpy(str), intercept=True).fingerprint
    assert opened(given, "class").features == ("age", "income", "id", "owner")


def test_frames_without_labels_are_refused_unless_that_is_asked_by_name() -> None:
    frame = people().drop(columns="kind")
    for verb in (dfeas.solve, dfeas.soft_margin, dfeas.plan, dfeas.separation, dfeas.hard_margin):
        with pytest.raises(dfeas.UsageError, match="no labels; give y"):
            verb(frame)
    with pytest.raises(dfeas.UsageError, match="no labels"):
        dfeas.race(frame, methods=["perceptron", "working-set"])
    assert dfeas.solve(frame, "all-positive").verdict == "feasible"  # ages are positive


@pytest.mark.parametrize(
    ("change", "labels", "message"),
    [
        (lambda f: f, "knd", "no column knd; did you mean kind"),
        (lambda f: f, "verdict", "X: no column verdict; the columns are age, income, id, owner, kind"),
        (lambda f: f.assign(when=pandas.Timestamp("2020-01-01")), "kind", r"no numbers in when \(Datetime"),
        (lambda f: f.assign(ward="north"), "kind", r"no numbers in ward \("),
        (lambda f: f.convert_dtypes().assign(age=lambda g: g.age.mask(g.age > 80)), "kind", "column age has .* missing values"),
        (lambda f: polars.from_pandas(f.assign(age=f.age.where(f.age < 80))), "kind", "column age has .* missing values"),
        (lambda f: f.assign(id=f.id + 2**60), "kind", "column id: an integer beyond 2\\*\\*53"),
        (lambda f: f.assign(kind=f.kind.where(f.age < 80)), "kind", "label of point [0-9]+ is missing"),
        (lambda f: f.drop(columns="kind"), people().kind.sample(frac=1.0, random_state=1), "another order"),
        (lambda f: f.drop(columns="kind"), people()[["kind"]].sample(frac=1.0, random_state=1), "another order"),
        (lambda f: pandas.concat([f, f[["age"]]], axis=1), "kind", "unique column names"),
        (lambda f: f[["kind"]], "kind", "a frame without a column"),
        (lambda f: polars.from_pandas(f).lazy(), "kind", "collect"),
    ],
)
def test_what_cannot_be_used_is_named(change: Callable[[pandas.DataFrame], Any], labels: Any, message: str) -> None:
    with pytest.raises(dfeas.BadInputError, match=message):
        dfeas.solve(change(people()), labels)


def test_dummies_in_sparse_columns_stay_sparse() -> None:
    dummies = pandas.get_dummies(people().age, sparse=True)
    dataset = opened(dummies, people().kind)
    assert dataset.entries is not None
    assert dataset.entries.count == COUNT


@pytest.mark.parametrize("kind", ["pandas", "dask"])
def test_a_column_that_is_called_by_a_number_has_the_labels(kind: str) -> None:
    frame = pandas.DataFrame({2: [1.0, 2.0, -1.0], 0: [2.0, 1.0, -1.0], 1: ["a", "a", "b"]})
    X = frame if kind == "pandas" else dask.dataframe.from_pandas(frame, npartitions=2)
    assert dfeas.solve(X, 1).features == ["2", "0"]
    with pytest.raises(dfeas.BadInputError, match=r"no column -1; did you mean .*; the columns are 2, 0, 1"):
        dfeas.solve(X, -1)


def test_columns_of_any_name_are_found_by_it_where_types_are_mixed() -> None:
    frame = people().drop(columns="kind")
    for names in ([3, 2, 1, 0], pandas.MultiIndex.from_product([["a", "b"], [1, 2]])):
        dataset = opened(frame.set_axis(names, axis=1), people().kind)
        assert dataset.features == tuple(map(str, names))
        np.testing.assert_array_equal(dataset.points.read(0, Buffers()), frame.to_numpy(np.float64))


@pytest.mark.parametrize("kind", ["pandas", "arrow", "dask"])
def test_categories_that_are_numbers_are_these_numbers(kind: str) -> None:
    """9 comes before 10, though not as text; a frame of one column is a series."""
    label = pandas.Series(pandas.Categorical(np.where(people().kind == "good", 10, 9)), name="label")
    given = {
        "pandas": label.to_frame(),
        "arrow": pyarrow.array(label),
        "dask": dask.dataframe.from_pandas(label, npartitions=2),
    }
    assert opened(people()[["age", "income"]], given[kind]).classes == ("9", "10")


def test_sparse_columns_beside_others_and_those_of_ones_are_filled() -> None:
    frame = people()[["age", "owner"]].astype({"owner": float})
    sparse = frame.astype({"owner": pandas.SparseDtype(float, 0.0)})
    ones = frame.astype(pandas.SparseDtype(float, 1.0))
    for each in (sparse, ones):
        np.testing.assert_array_equal(opened(each, people().kind).points.read(0, Buffers()), frame.to_numpy())


@pytest.mark.parametrize("what", ["y", "mask", "weights"])
def test_rows_in_another_order_are_refused_wherever_they_stand_beside_points(what: str, tmp_path: Path) -> None:
    points = people().drop(columns="kind")
    called = "labels" if what == "y" else what
    turned = pandas.Series({"y": people().kind, "mask": people().owner, "weights": people().income}[what])[::-1]
    with pytest.raises(dfeas.BadInputError, match=f"X and {called} have other rows"):
        dfeas.soft_margin(points, **{"y": people().kind, what: turned})
    if what == "y":
        with pytest.raises(dfeas.BadInputError, match="X and labels have other rows"):
            dfeas.ingest(points, tmp_path / "data", y=turned)


def test_truth_values_that_are_objects_are_labels() -> None:
    frame = people().drop(columns="kind")
    assert opened(frame, frame.owner.astype(object)).classes == ("False", "True")
    with pytest.raises(dfeas.BadInputError, match="label of point 3 is missing"):
        opened(frame, np.where(np.arange(COUNT) == 3, None, frame.owner))
