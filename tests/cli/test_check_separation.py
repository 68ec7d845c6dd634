"""dfeas check-separation TABLE: files as people have them, of any size, from the installed command."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dfeas
from dfeas.analysis.regression.files import of_formula, of_table
from dfeas.analysis.regression.outcome import Asked
from dfeas.run.resources import Resources
from tests.run.making import run_until
from tests.typed import apart
from tests.typed import dfeas as typed

COUNT = 45_000
SMALL = "24MB"
"""Of which a table of ``COUNT`` rows is more than the part that may be held."""


@cache
def patients(n: int = COUNT) -> pd.DataFrame:
    """Ids, dates, incomes, wards, smokers; in the lung ward nobody died, nobody fell, and nobody is worse."""
    rng = np.random.default_rng(0)
    ward, age = rng.choice(["heart", "lung", "trauma"], n), rng.integers(18, 95, n)
    died = (rng.random(n) < age / 150) & (ward != "lung")
    grade = np.where(ward == "lung", rng.choice(["mild", "severe"], n), rng.choice(["mild", "severe", "worse"], n))
    columns: dict[str, Any] = {
        "id": [f"p{i:010d}" for i in range(n)],
        "born": pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 20_000, n), "D"),
        "age": age,
        "income": np.round(rng.lognormal(10, 1, n), 2),
        "ward": ward,
        "smoker": rng.random(n) < 0.3,
        "died": np.where(died, "yes", "no"),
        "falls": np.where(ward == "lung", 0, rng.poisson(1, n)),
        "grade": grade,
    }
    return pd.DataFrame(columns)


OUTCOMES = {"died": [], "falls": ["--outcome", "poisson"], "grade": []}


def without(*names: str) -> list[str]:
    return [word for name in names for word in ("--without", name)]


def rest(outcome: str) -> list[str]:
    """Columns that are no regressors of an outcome."""
    return ["id", "born", *(name for name in OUTCOMES if name != outcome)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same rows as CSV and Parquet, and the first of them."""
    made = tmp_path_factory.mktemp("tables")
    frame = patients()
    frame.to_csv(made / "t.csv", index=False)
    frame[:2000].to_csv(made / "few.csv", index=False)
    frame.to_parquet(made / "t.parquet")
    return made


def run(*words: Any, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = typed("check-separation", *words)
    assert done.returncode == code, done.stderr
    return done


def test_the_command_says_columns_levels_rows_and_what_to_do(folder: Path) -> None:
    said = run(folder / "t.csv", "--label-column", "died", *without(*rest("died"))).stdout
    rows = np.flatnonzero(patients().ward == "lung")
    first = ", ".join(map(str, rows[:5]))
    assert said.startswith(f"quasi-complete separation: level lung of ward separates {len(rows)} points ({first} and ")
    assert "- merge level lung of ward (0 of " in said
    done = apart("check-separation", "t.csv", "--label-column", "died", *without(*rest("died")), "--json", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    values = json.loads(done.stdout)
    assert (values["finite"], values["proof"], values["levels"]) == (False, "exact", {"ward": ["lung"]})
    assert (values["separated"], values["points"]) == (len(rows), rows[:1000].tolist())
    assert (values["columns"], values["direction"]) == (["ward[lung]"], {"ward[lung]": -1.0})


@pytest.fixture(autouse=True)
def _scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Points that memory does not hold are written there, and what is looked at again has time on a busy machine, too."""
    monkeypatch.setenv("DFEAS_SCRATCH", str(tmp_path))
    monkeypatch.setattr("dfeas.analysis.regression.likelihood.SECONDS", 1e3)


@pytest.mark.parametrize(("name", "outcome"), [("t.csv", "died"), ("t.parquet", "falls")])
def test_a_file_is_the_same_regression_as_its_frame_held_or_not(folder: Path, name: str, outcome: str, tmp_path: Path) -> None:
    frame, asked = patients(), {"outcome": "poisson"} if outcome == "falls" else {}
    expected = dfeas.check_separation(frame.drop(columns=rest(outcome)), outcome, **asked)
    for memory in (SMALL, "2GB"):
        terms = Asked(outcome, without=rest(outcome), resources=Resources(memory=memory), **asked)
        found = of_table(folder / name, terms)
        for key in ("kind", "proof", "outcome", "classes", "columns", "levels", "separated", "intercept"):
            assert getattr(found, key) == getattr(expected, key), (memory, key)
        assert found.points[:1000] == expected.points[:1000]
        assert found.direction.keys() == expected.direction.keys()
        looked = [each.finite for each in found.advice]
        assert [each.text for each in found.advice] == [each.text for each in expected.advice]
        assert looked == ([None] * len(looked) if memory == SMALL else [each.finite for each in expected.advice])
        assert not list(tmp_path.iterdir())
    overlap = of_table(
        folder / name, Asked(outcome, without=[*rest(outcome), "ward"], resources=Resources(memory=SMALL), **asked)
    )
    assert (overlap.kind, overlap.proof, overlap.levels) == ("overlap", "exact", {})
    assert overlap.points == sorted(set(overlap.points))
    if outcome != "falls":  # zeros alone decide of counts, so a conflict may be one of counts above zero
        assert dfeas.check_separation(frame.iloc[overlap.points].drop(columns=[*rest(outcome), "ward"]), outcome).finite


def test_a_formula_on_the_command_line(folder: Path) -> None:
    said = run(folder / "few.csv", "--formula", "died ~ age + C(ward)").stdout
    assert "level lung of C(ward) separates" in said
    assert "overlap" in run(folder / "few.csv", "--formula", "died ~ age + income").stdout
    assert "no separation" in run(folder / "few.csv", "--formula", "falls ~ age", "--outcome", "poisson").stdout


def test_times_and_strata_on_the_command_line(tmp_path: Path) -> None:
    columns = {"x": [3, 2, 1, 2, 1, 3], "time": [1, 2, 3, 1, 2, 3], "died": [1, 1, 0, 1, 1, 1], "ward": list("aaabbb")}
    table = pd.DataFrame(columns)
    table.to_csv(tmp_path / "t.csv", index=False)
    words = [tmp_path / "t.csv", "--label-column", "died", "--without", "ward"]
    of_cox, in_wards = ["--outcome", "cox", "--time-column", "time"], ["--strata", "ward", "--json"]
    for question in (words, [tmp_path / "t.csv", "--formula", "died ~ x"]):
        assert "no separation" in run(*question, *of_cox).stdout
    expected = dfeas.check_separation(table, ["time", "died"], outcome="cox", strata="ward")
    assert json.loads(run(*words, *of_cox, *in_wards).stdout)["finite"] is expected.finite
    assert "--time-column NAME" in run(*words, "--outcome", "cox", code=2).stderr
    survival = ("--formula", "Surv(time, died) ~ age")
    assert "Cox regression: check its separation with --outcome cox" in run(words[0], *survival, code=2).stderr
    assert "--strata NAME" in run(*words, "--outcome", "conditional", code=2).stderr


@pytest.mark.parametrize(
    ("formula", "asked"),
    [
        ("died ~ 0 + ward * income", {}),
        ("falls ~ age + np.log(income) + ward", {"outcome": "poisson"}),
        ("grade ~ C(ward) + age", {}),
    ],
)
def test_a_formula_in_parts_is_the_same_as_of_all_rows(folder: Path, formula: str, asked: dict[str, Any]) -> None:
    whole = dfeas.check_separation(formula, patients(), **asked)
    parts = of_formula(folder / "t.parquet", formula, Asked(resources=Resources(memory=SMALL), **asked))
    for key in ("kind", "proof", "outcome", "classes", "columns", "levels", "separated"):
        assert getattr(parts, key) == getattr(whole, key), key
    assert parts.points[:1000] == whole.points[:1000]
    assert [each.text for each in parts.advice] == [each.text for each in whole.advice]


def test_a_formula_that_needs_all_rows_says_so_where_they_have_no_room(folder: Path) -> None:
    for formula, said in (
        ("died ~ center(age) + income", r"center\(age\) looks at all rows"),
        ("died ~ C(age) + income", r"the levels of C\(age\) are numbers"),
    ):
        with pytest.raises(dfeas.BadInputError, match=said):
            of_formula(folder / "t.parquet", formula, Asked(resources=Resources(memory="8MB")))
        assert dfeas.check_separation(formula, patients(2000)).proof == "exact"


WRONG: dict[str, tuple[Sequence[str], int, str]] = {
    "nothing": ([], 2, "give --label-column NAME, or --formula TEXT"),
    "both": (["--label-column", "died", "--formula", "died ~ age"], 2, "give --label-column NAME, or --formula TEXT"),
    "no column": (["--label-column", "dead"], 4, "no column dead; did you mean died?; the columns are id, born, age"),
    "no such regressor": (["--label-column", "died", "--without", "weight"], 4, "no column weight"),
    "id": (["--label-column", "died", "--without", "born"], 4, "column id has another text in each of 2000 rows"),
    "dates": (["--label-column", "died", "--without", "id"], 4, "column born holds dates or times"),
    "counts": (["--label-column", "falls", *without("id", "born")], 2, "counts (--outcome poisson)"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_answered_is_one_line_and_an_exit_code(folder: Path, case: str) -> None:
    words, code, said = WRONG[case]
    done = run(folder / "few.csv", *words, code=code)
    assert said in done.stderr
    assert done.stderr.count("\n") <= 1
    assert "Traceback" not in done.stderr


BAD = {
    "gap": ("age,died\n1,0\n,1\n3,0\nNA,1\n", r"missing values in age \(2, the first in row 1 \(line 3\)\)"),
    "no outcome": ("age,died\n1,0\n2,\n3,1\n", r"missing values in died \(1, the first in row 1 \(line 3\)\)"),
    "a dot": ("age,died\n1,0\n.,1\n3,0\n", r"missing values in age \(1, the first in row 1 \(line 3\)\)"),
    "ragged": ("age,died\n1,0\n2,1,3\n3,1\n", "line 3: 3 cells, expected 2 as in the first line"),
    "long ids": (f"id,died\n{2**60},0\n{2**60 + 1},1\n", "column id: an integer beyond"),
    "another alphabet": ("ward,died\n\udce9,0\nb,1\n", "line 2: not UTF-8 text"),
    "infinite": ("age,died\n1,0\ninf,1\n3,0\n", "column age is infinite in row 1"),
    "names only": ("age,died\n", "no rows"),
}


@pytest.mark.parametrize("case", BAD)
def test_tables_that_cannot_be_used_are_refused_by_column_and_row(case: str, tmp_path: Path) -> None:
    text, said = BAD[case]
    (tmp_path / "t.csv").write_text(text, errors="surrogateescape")
    with pytest.raises(dfeas.BadInputError, match=said):
        of_table(tmp_path / "t.csv", Asked("died"))


def test_text_that_is_a_number_late_in_a_file_is_still_one_column(tmp_path: Path) -> None:
    """Types are of all rows: whole numbers and then shares are numbers; a word among numbers is named, unless it is text."""
    n = 120_000
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"code": rng.integers(0, 4, n).astype(str), "dose": rng.integers(0, 9, n).astype(str)})
    frame.loc[n - 1, "code"], frame.loc[n - 1, "dose"] = "other", "2.5"
    frame["died"] = rng.integers(0, 2, n)
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(
        dfeas.BadInputError, match=f"column code: expected numbers, got 'other' in row {n - 1} .line {n + 1}.; .* text='code'"
    ):
        of_table(tmp_path / "t.csv", Asked("died"))
    found = of_table(tmp_path / "t.csv", Asked("died", text=["code"]))
    assert (found.levels, found.points) == ({"code": ["other"]}, [n - 1])


def test_categories_of_parquet_keep_their_order_where_rows_come_in_parts(tmp_path: Path) -> None:
    """The first rows have the last category only, and the reference is the first one."""
    ward = pd.Categorical(np.repeat(["c", "b", "a"], [70_000, 500, 500]), ["unused", "a", "b", "c"], ordered=True)
    frame = pd.DataFrame({"ward": ward, "died": (np.arange(71_000) % 2 == 0) & (ward != "b")})
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=10_000)
    found = of_table(tmp_path / "t.parquet", Asked("died"))
    assert found.direction == {"ward[b]": -1.0}
    assert "with a (" in found.advice[0].text


def test_an_interrupt_ends_a_read_and_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    """Asked in each read: of types, of levels, and while points are written."""
    for reads in (0, 1, 2):
        asked = iter([False] * reads)
        regression = Asked("died", without=rest("died"), resources=Resources(memory=SMALL))
        with pytest.raises(KeyboardInterrupt):
            run_until(lambda asked=asked: next(asked, True), of_table, folder / "t.csv", regression)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("outcome", ["leak", "zeros", "grade"])
def test_many_levels_held_or_not_are_the_same_regression(outcome: str, tmp_path: Path) -> None:
    """A sparse design; one that a column separates completely, and counts that are all zero."""
    frame = patients().copy()
    frame["firm"] = [f"f{j:02d}" for j in np.random.default_rng(5).integers(0, 60, len(frame))]
    frame["leak"], frame["zeros"] = frame.age > 50, 0
    others = [name for name in ("id", "born", "ward", "died", "leak", "falls", "zeros", "grade") if name != outcome]
    frame.loc[frame.firm == "f33", "grade"] = "mild"
    frame.to_parquet(tmp_path / "t.parquet")
    asked = {"outcome": "poisson"} if outcome == "zeros" else {}
    held, streamed = (
        of_table(tmp_path / "t.parquet", Asked(outcome, without=others, resources=Resources(memory=memory), **asked))
        for memory in ("2GB", SMALL)
    )
    assert held.finite is False
    for key in ("kind", "outcome", "classes", "separated", "levels"):
        assert getattr(held, key) == getattr(streamed, key), key
    assert held.points[:1000] == streamed.points[:1000]
    for one, other in zip(held.estimates, streamed.estimates, strict=True):
        assert (one.name, one.of) == (other.name, other.of)
        assert one.estimate == other.estimate or ("Inf" in one.estimate and "Inf" in other.estimate and not other.certain)
    assert (held.kind, held.columns, streamed.columns) == ("complete", ["age"], ["age"]) or outcome != "leak"
    assert held.levels == {"firm": ["f33"]} or outcome != "grade"
