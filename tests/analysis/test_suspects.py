"""Points that have to go: both numbers against all subsets of small problems, in rational arithmetic."""

import csv
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import dfeas
from dfeas.cli.main import commands
from tests.exact import conflicts, small_instance


def separable(A: np.ndarray) -> bool:
    """Of integers A (m, n), one signed point a column."""
    return A.shape[1] == 0 or not conflicts(A)


def fewest(A: np.ndarray) -> int:
    """Columns without which the others are separable, at least, by trying all."""
    n = A.shape[1]
    return next(k for k in range(n + 1) for some in combinations(range(n), k) if separable(np.delete(A, some, axis=1)))


def needed(found: dfeas.Suspects) -> list[int]:
    return [each["point"] for each in found.points if each["needed"]]


def require_proved(found: dfeas.Suspects, A: np.ndarray) -> None:
    """What is said of signed integer points A (m, n)."""
    assert found.at_least <= fewest(A) <= found.enough == len(needed(found))
    assert separable(np.delete(A, needed(found), axis=1))
    assert len(found.conflicts) == found.at_least
    together = [point for some in found.conflicts for point in some]
    assert len({*together}) == len(together), "without a common point"
    assert all(conflicts(A[:, some]) for some in found.conflicts)
    if all(each["flip"] for each in found.points if each["needed"]):
        flipped = A.copy()
        flipped[:, needed(found)] *= -1
        assert separable(flipped)


@given(st.integers(0, 100_000))
@settings(max_examples=30)
def test_both_numbers_are_bounds_of_the_fewest(seed: int) -> None:
    A = small_instance(seed)[:, :12]
    require_proved(dfeas.suspects(A.T.astype(float), "all-positive"), A)


@given(st.integers(0, 100_000), st.booleans(), st.sampled_from(["dense", "sparse", "dask"]))
@settings(max_examples=20)
def test_labels_and_intercepts(seed: int, intercept: bool, kind: str) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-2, 3, (rng.integers(2, 11), rng.integers(1, 4))), rng.integers(0, 2, 11)
    y = np.append(y[: len(X) - 1], 1 - y[0])
    made: Any = {"dense": np.array, "sparse": scipy.sparse.csr_array, "dask": lambda X: da.from_array(X, chunks=(3, -1))}[kind]
    found = dfeas.suspects(made(X.astype(float)), y, intercept=intercept)
    wide = np.hstack([X, np.ones((len(X), 1), int)]) if intercept else X
    require_proved(found, (wide * (2 * y - 1)[:, None]).T)


def halves(n: int, m: int, wrong: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points on both sides of a plane, and not near it; labels, some of them wrong; and which."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((2 * n, m))
    X = X[np.abs(X[:, 0]) > 0.3][:n]
    y, some = X[:, 0] > 0, rng.choice(n, wrong, replace=False)
    y[some] = ~y[some]
    return X, y, some


def test_wrong_labels_are_found_and_are_right_when_flipped() -> None:
    X, y, wrong = halves(2000, 3, 40)
    found = dfeas.suspects(X, y)
    assert {each["point"] for each in found.points} == {*wrong.tolist()}
    assert 1 < found.at_least == found.enough <= 40
    assert all(each["flip"] for each in found.points)
    assert (y[needed(found)] != ((X[needed(found)] @ found.y[:3] + found.y[3]) > 0)).all()
    assert dfeas.solve(np.delete(X, wrong, axis=0), np.delete(y, wrong)).verdict == "feasible"
    y[wrong] = ~y[wrong]
    assert dfeas.suspects(X, y).points == []


@pytest.mark.parametrize("power", [0, 60])
def test_few_columns_in_memory_are_enough(power: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes bring what a sample misses, in whatever powers of two the features are."""
    X, y, wrong = halves(20_000, 4, 5)
    X *= 2.0 ** np.array([0, power, 0, -power])
    whole = dfeas.suspects(X, y)
    monkeypatch.setattr("dfeas.analysis.suspects.WHOLE", 0)
    found = dfeas.suspects(X, y)
    assert whole.passes == 1 < found.passes < 8
    assert {*needed(found)} == {*needed(whole)} == {*wrong.tolist()}
    assert found.at_least == 5
    assert found.is_decided
    limited = dfeas.suspects(X, y, max_passes=1)
    assert limited.stopped == "pass_limit"
    assert limited.at_least <= 5 <= limited.enough


@pytest.mark.parametrize("power", [0, 12, 30, 60])
@pytest.mark.parametrize("kind", [np.array, scipy.sparse.csr_array])
def test_units_of_features_and_storage_make_no_difference(power: int, kind: Any) -> None:
    """Each wrong label is in a conflict of its own, in whatever powers of two the features are."""
    X, y, wrong = halves(3000, 6, 12)
    units = 2.0 ** np.array([0, power, 0, -power, 0, 0])
    found = dfeas.suspects(kind(X * units), y)
    assert {*needed(found)} == {*wrong.tolist()}
    assert found.at_least == found.enough == len(wrong)
    assert all(len(some) <= 8 for some in found.conflicts)


def test_names_of_rows_and_numbers_of_points_behind_a_mask() -> None:
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4, 5, 6], "b": 0.0}, index=list("uvwxyz"))
    labels = pd.Series([0, 0, 1, 0, 1, 1], index=frame.index)
    assert [dfeas.suspects(frame, labels).points[0][name] for name in ("needed", "flip")] == [True, True]
    found = dfeas.suspects(frame, labels, mask=[True, True, True, False, True, True])
    assert found.enough == 0
    found = dfeas.suspects(frame, labels, mask=[False, True, True, True, True, True])
    assert all(each["name"] == frame.index[each["point"]] for each in found.points)
    assert found.to_frame().query("needed")["name"].isin(["w", "x"]).all()


def test_one_class_of_several_is_asked_by_name() -> None:
    X, y = np.array([[0.0], [1], [2], [10], [11], [20]]), ["a", "a", "b", "b", "a", "c"]
    assert dfeas.suspects(X, y, positive="a").enough == 1


def test_a_result_on_data_by_path_says_what_it_was_about(tmp_path: Path) -> None:
    X, y, wrong = halves(500, 3, 3)
    dfeas.ingest(X, tmp_path / "data", y=y)
    found = dfeas.suspects(dfeas.solve(tmp_path / "data", transform="std"))
    assert {each["point"] for each in found.points} == {*wrong.tolist()}


def test_classes_that_overlap_everywhere_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, _ = halves(3000, 3, 300)
    monkeypatch.setattr("dfeas.analysis.suspects.WHOLE", 0)
    monkeypatch.setattr("dfeas.analysis.suspects.MOST", 100)
    with pytest.raises(dfeas.BadInputError, match="soft margin"):
        dfeas.suspects(X, y)


@pytest.mark.parametrize(("more", "code"), [([], 0), (["--time-limit", "1e-9"], 3)])
def test_the_command_writes_a_table(tmp_path: Path, more: list[str], code: int) -> None:
    X, y, wrong = halves(500, 3, 3)
    dfeas.ingest(X, tmp_path / "data", y=np.where(y, "ham", "spam"))
    out = tmp_path / "suspects.csv"
    ran = CliRunner().invoke(commands, ["suspects", str(tmp_path / "data"), "--out", str(out), "--json", *more])
    assert ran.exit_code == code
    found = json.loads(ran.stdout)
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["point"]) for row in rows] == [each["point"] for each in found["points"]]
    assert {row["label"] for row in rows} <= {"ham", "spam"}
    assert found["at_least"] <= 3 <= found["enough"]
    again = CliRunner().invoke(commands, ["suspects", str(tmp_path / "data"), "--out", str(out)])
    assert again.exit_code == 2
    if not more:
        assert {int(row["point"]) for row in rows} == {*wrong.tolist()}


def test_a_limit_of_time_ends_the_search_in_memory_and_the_list_is_enough() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(4000, 60))
    y = np.where(X @ random.normal(size=60) > 0, 1, -1)
    y[:80] *= -1
    found = dfeas.suspects(X, y, time_limit=0.01)
    assert found.stopped == "time_limit"
    stays = np.ones(len(X), bool)
    stays[[each["point"] for each in found.points]] = False
    assert dfeas.solve(X, y, mask=stays).verdict == "feasible"
