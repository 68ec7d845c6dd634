"""Rows that miss a value: refused with their place, or dropped, and the answer is that of the others under their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from scipy import sparse

import dfeas
from dfeas.analysis.regression.files import of_formula, of_table
from dfeas.analysis.regression.outcome import Asked
from dfeas.cli.main import commands
from dfeas.errors import BadInputError
from dfeas.run.resources import Resources
from tests.analysis.making import FRAMES
from tests.typed import dfeas as typed

COUNT = 240
NOTE = "60 of 240 rows miss a value, and are dropped"


def patients() -> pd.DataFrame:
    """A quarter of the rows misses one of four values; in ward c only they survive."""
    rng = np.random.default_rng(3)
    ward, age = rng.choice(list("abc"), COUNT), rng.normal(50, 10, COUNT).round(1)
    died = (rng.random(COUNT) < 0.5) | (ward == "c")
    weight = np.where(np.arange(COUNT) % 10 == 0, 0.0, 1.0)
    frame = pd.DataFrame({"age": age, "ward": ward, "died": died.astype(float), "weight": weight})
    died[0] = ward[0] == "c"
    for row in range(0, COUNT, 4):
        frame.loc[row, "died"] = 0.0
        frame.loc[row, ["age", "ward", "died", "weight"][row // 4 % 4]] = None
    return frame


def same(found: Any, clean: Any) -> None:
    for key in ("kind", "points", "levels"):
        assert getattr(found, key) == getattr(clean, key), key
    assert list(found.direction.values()) == list(clean.direction.values())
    assert [each.estimate for each in found.estimates] == [each.estimate for each in clean.estimates]
    assert found.notes == [NOTE, *clean.notes]
    assert found.finite is False
    assert found.points


@pytest.mark.parametrize("kind", ["nullable", "polars", "arrow"])
def test_the_answer_is_that_of_the_complete_rows_of_a_frame(kind: str) -> None:
    frame = patients()
    clean = dfeas.check_separation(frame.dropna(), "died", weights="weight")
    given = FRAMES[kind](frame)
    with pytest.raises(dfeas.BadInputError, match="missing='drop'"):
        dfeas.check_separation(given, "died")
    same(dfeas.check_separation(given, "died", weights="weight", missing="drop"), clean)
    same(dfeas.check_separation("died ~ age + ward", given, weights="weight", missing="drop"), clean)


def test_rows_that_miss_a_value_beside_the_frame_are_dropped_and_those_of_other_columns_are_not() -> None:
    frame = patients()
    clean = dfeas.check_separation(frame.dropna(), "died", weights="weight")
    beside = {"weights": frame["weight"].to_numpy(), "missing": "drop"}
    for y in (frame["died"], frame["died"].tolist(), [None if value != value else value for value in frame["died"].tolist()]):
        same(dfeas.check_separation(frame[["age", "ward"]], y, **beside), clean)
    only = dfeas.check_separation("died ~ ward", frame, missing="drop")
    assert only.notes == ["30 of 240 rows miss a value, and are dropped"]
    named = frame.set_axis([f"p{row}" for row in range(COUNT)])
    found = dfeas.check_separation(named, "died", weights="weight", missing="drop")
    assert found.points == [f"p{row}" for row in clean.points]
    with pytest.raises(dfeas.BadInputError, match="align"):
        dfeas.check_separation(frame[["age", "ward"]], frame["died"][::-1], missing="drop")


def test_arrays_and_sparse_matrices_drop_rows_and_models_do_it_themselves() -> None:
    frame = patients()
    X = pd.get_dummies(frame, columns=["ward"], dtype=float).drop(columns=["died", "weight"])
    X.loc[frame["ward"].isna(), "ward_c"] = np.nan
    beside = {"weights": frame["weight"], "missing": "drop"}
    whole = frame.dropna().index
    clean = dfeas.check_separation(X.loc[whole].to_numpy(), frame["died"][whole].to_numpy(), weights=frame["weight"][whole])
    for given in (X.to_numpy(), X.to_numpy().tolist(), sparse.csr_array(X.to_numpy())):
        found = dfeas.check_separation(given, frame["died"].to_numpy(), **beside)
        assert (found.kind, found.notes) == (clean.kind, [NOTE, *clean.notes])
        assert found.points == whole[clean.points].tolist()


@pytest.mark.parametrize(("name", "memory"), [("t.csv", "2GB"), ("t.parquet", "19MB")])
def test_files_drop_rows_held_or_not(name: str, memory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DFEAS_SCRATCH", str(tmp_path))
    frame = pd.concat([patients()] * (250 if memory == "19MB" else 1), ignore_index=True)
    clean = dfeas.check_separation(frame.dropna(), "died", weights="weight")
    path = tmp_path / name
    frame.to_csv(path, index=False) if name == "t.csv" else frame.to_parquet(path)
    asked = Asked("died", weights="weight", missing="drop", resources=Resources(memory=memory))
    by_formula = Asked(weights="weight", missing="drop", resources=asked.resources)
    for found in (of_table(path, asked), of_formula(path, "died ~ age + ward", by_formula)):
        assert (found.kind, found.points[:1000], found.levels) == (clean.kind, clean.points[:1000], clean.levels)
        assert found.notes[0] == f"{len(frame) // 4} of {len(frame)} rows miss a value, and are dropped"
    with pytest.raises(dfeas.BadInputError, match="missing='drop'"):
        of_table(path, Asked("died"))


def test_the_command_says_drop(tmp_path: Path) -> None:
    patients().to_csv(tmp_path / "t.csv", index=False)
    words = ["check-separation", tmp_path / "t.csv", "--label-column", "died", "--weights-column", "weight"]
    refused = typed(*words)
    assert (refused.returncode, "--missing drop" in refused.stderr) == (4, True)
    done = typed(*words, "--missing", "drop")
    assert (done.returncode, f"note: {NOTE}" in done.stdout) == (0, True)


def test_all_problems_of_a_table_are_said_at_once(tmp_path: Path) -> None:
    text = """pid,age,dose,adm,crp,y
p1,40,1,2020-01-01,1,0
p2,,2,2020-01-02,,1

p3,50,x,2020-01-05,3,0
p4,60,4,2020-02-01,4,1
p5,61,,2020-03-01,inf,0
p6,62,4,2020-04-01,4,1
"""
    (tmp_path / "t.csv").write_text(text)
    frame = pd.read_csv(tmp_path / "t.csv", parse_dates=["adm"])
    for X, line in ((dfeas.table(tmp_path / "t.csv", "y", id="pid"), True), (dfeas.table(frame, "y", without="pid"), False)):
        with pytest.raises(BadInputError) as refused:
            dfeas.check_separation(X)
        said = str(refused.value)
        for part in (
            "4 problems: (1) column adm holds dates",
            "column crp is infinite in row 4" + " (line 7)" * line,
            "column dose: expected numbers, got 'x' in row 2" + " (line 5)" * line,
            "(4) missing values in age (1, the first in row 1" + " (line 3)" * line,
        ):
            assert part in said
        assert "\n" not in said


def test_rows_are_called_by_their_ids(tmp_path: Path) -> None:
    age, ward, died = [31, 44, 52, 38, 61, 47, 55, 29], list("aabbccab"), [0, 1, 0, 1, 1, 1, 0, 0]
    frame = pd.DataFrame({"pid": [f"{place:03d}" for place in range(8)], "age": age, "ward": ward, "died": died})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    frame.set_index("pid").to_parquet(tmp_path / "index.parquet")
    right = dfeas.check_separation(frame.set_index("pid"), "died")
    assert right.points == ["004", "005"]
    named = [dfeas.table(X, "died", id="pid") for X in (tmp_path / "t.csv", tmp_path / "t.parquet", frame)]
    for found in [*map(dfeas.check_separation, named), dfeas.check_separation(tmp_path / "index.parquet", "died")]:
        assert (found.points, found.message) == (right.points, right.message)
        assert "pid" not in {each.name for each in found.estimates}
    of_polars = dfeas.check_separation(dfeas.table(pl.from_pandas(frame), "died", id="pid"))
    assert of_polars.points == right.points
    assert isinstance(of_polars.to_frame(), pl.DataFrame)
    for more in (["--label-column", "died"], ["--formula", "died ~ age + ward"]):
        ran = CliRunner().invoke(commands, ["check-separation", str(tmp_path / "t.csv"), *more, "--id-column", "pid"])
        assert "separates 2 points (004, 005) from the others" in ran.output
