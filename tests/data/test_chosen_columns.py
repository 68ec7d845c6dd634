"""Columns of a table that are features, said once: every kind of table and every verb, beside the same points as an array."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import dfeas
from dfeas.cli.main import commands
from dfeas.data.source import Choice
from dfeas.errors import BadInputError, UsageError

N = 120
rng = np.random.default_rng(3)
POINTS = rng.standard_normal((N, 3))
LABELS = np.where(POINTS @ [1.0, 2.0, -1.0] > 0, "yes", "no")
LABELS[5] = "no" if LABELS[5] == "yes" else "yes"
FRAME = pd.DataFrame(
    {
        "customer": np.arange(N) + 100_000,
        "name": [f"c{place}" for place in range(N)],
        "visit_first": pd.date_range("2020-01-01", periods=N).astype(str),
        "visit_last": pd.date_range("2021-01-01", periods=N).astype(str),
        **dict(zip("abc", POINTS.T, strict=True)),
        "churned": LABELS,
    }
)
LEFT_OUT = ["customer", "name", "visit_*"]


def folder_of_parquet(path: Path) -> str:
    path.mkdir()
    FRAME[:50].to_parquet(path / "1.parquet")
    FRAME[50:].to_parquet(path / "2.parquet")
    return str(path)


def written(path: Path, suffix: str) -> str:
    file = path / f"table{suffix}"
    if suffix == ".parquet":
        FRAME.to_parquet(file)
    else:
        FRAME.to_csv(file, index=False, sep="\t" if suffix == ".tsv" else ",")
    return str(file)


TABLES: dict[str, Callable[[Path], Any]] = {
    **{suffix: lambda path, suffix=suffix: written(path, suffix) for suffix in (".csv", ".tsv", ".csv.gz", ".parquet")},
    "folder": lambda path: folder_of_parquet(path / "folder"),
    "pandas": lambda path: FRAME,
    "polars": lambda path: pl.from_pandas(FRAME),
    "arrow": lambda path: pa.Table.from_pandas(FRAME),
    "dask": lambda path: dask.dataframe.from_pandas(FRAME, npartitions=3),
}


def ingested(table: Any) -> Any:
    header = dfeas.ingest(table, "chosen.data", force=True)
    return header.m, header.n, dfeas.solve("chosen.data").margin_upper


VERBS: dict[str, Callable[[Any], Any]] = {
    "solve": lambda X: dfeas.solve(X).margin_upper,
    "one_vs_rest": lambda X: dfeas.one_vs_rest(X).results["yes"].margin_upper,
    "race": lambda X: dfeas.race(X, methods=["working-set"]).results["working-set"].margin_upper,
    "soft_margin": lambda X: dfeas.soft_margin(X).objective,
    "hard_margin": lambda X: dfeas.hard_margin(X).lower,
    "separation": lambda X: dfeas.separation(X).kind,
    "suspects": lambda X: [each["point"] for each in dfeas.suspects(X).points],
    "in_hull": lambda X: dfeas.in_hull([0.0, 0.0, 0.0], X).inside,
    "check_separation": lambda X: {each.name: each.estimate for each in dfeas.check_separation(X).estimates},
    "ingest": ingested,
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_takes_each_table(verb: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    label = None if verb == "in_hull" else "churned"
    without = [*LEFT_OUT, "churned"] if verb == "in_hull" else LEFT_OUT
    chosen = dfeas.table(TABLES[kind](tmp_path), label, without=without)
    plain = FRAME[list("abc") if label is None else [*"abc", "churned"]]
    assert chosen.features == ("a", "b", "c")
    assert VERBS[verb](chosen) == VERBS[verb](dfeas.table(plain, label))


@pytest.mark.parametrize("kind", TABLES)
def test_a_run_keeps_what_was_chosen(kind: str, tmp_path: Path) -> None:
    chosen = dfeas.table(TABLES[kind](tmp_path), "churned", columns=["c", "a"])
    result = dfeas.solve(chosen, out=tmp_path / "run", method="mirror-prox", max_passes=3)
    assert result.features == ["c", "a"]
    if isinstance(chosen.X, str):
        assert dfeas.resume(tmp_path / "run", max_passes=6).features == ["c", "a"]
        done: Any = dfeas.solve(chosen, out=tmp_path / "done")
        assert dfeas.verify_run(tmp_path / "done").verdict == done.verdict == dfeas.load(tmp_path / "done").verify().verdict


@pytest.mark.parametrize("kind", TABLES)
def test_predictions_take_features_by_name(kind: str, tmp_path: Path) -> None:
    fitted = dfeas.soft_margin(dfeas.table(FRAME, "churned", columns=["c", "a", "b"]))
    expected, whole = dfeas.predict(fitted, FRAME[["c", "a", "b"]]).score, TABLES[kind](tmp_path)
    assert np.array_equal(np.asarray(dfeas.predict(fitted, whole).score), expected)
    assert np.array_equal(np.asarray(fitted.decision_function(whole)), expected)
    right = np.where(np.asarray(expected) > 0, "yes", "no") == LABELS
    assert dfeas.predict(fitted, whole, "churned").accuracy == right.mean()
    with pytest.raises(BadInputError, match="feature"):
        dfeas.predict(fitted, FRAME[["a", "b"]])


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no such name": ({"without": "customers"}, "no column customers; did you mean customer?"),
    "no such pattern": ({"columns": "x_*"}, "no column x_*"),
    "nothing left": ({"columns": "a", "without": "a"}, "no column is left"),
    "no names": ({"columns": []}, "columns: none is named"),
    "numbers": ({"without": [3]}, "without: expected names of columns"),
    "the label": ({"without": "churned"}, "column churned has the labels"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("kind", [".csv", "folder", "pandas", "dask"])
def test_what_is_wrong_is_said_at_once(wrong: str, kind: str, tmp_path: Path) -> None:
    options, said = WRONG[wrong]
    with pytest.raises((BadInputError, UsageError)) as refused:
        dfeas.table(TABLES[kind](tmp_path), "churned", **options)
    assert said in str(refused.value)


def test_columns_are_those_of_a_table(tmp_path: Path) -> None:
    dfeas.ingest(POINTS, tmp_path / "data", y=LABELS)
    np.save(tmp_path / "X.npy", POINTS)
    for other in (tmp_path / "data", tmp_path / "X.npy"):
        with pytest.raises(UsageError, match="columns are those of a table"):
            dfeas.table(other, without="a")
    with pytest.raises(UsageError, match="expected the path of a table or a data frame, got ndarray"):
        dfeas.table(POINTS, LABELS)
    with pytest.raises(UsageError, match="the table says itself what its labels are"):
        dfeas.solve(dfeas.table(FRAME, "churned", columns="a"), LABELS)


@pytest.mark.parametrize("kind", [".csv", ".parquet", "folder", "pandas", "polars", "dask"])
def test_one_message_names_all_columns_of_text(kind: str, tmp_path: Path) -> None:
    with pytest.raises(BadInputError) as refused:
        dfeas.solve(TABLES[kind](tmp_path), "churned")
    text = str(refused.value)
    assert all(name in text for name in ("name", "visit_first", "visit_last"))
    assert "leave them out with dfeas.table(X, y, without=[..])" in text


def test_a_cell_that_is_no_number_is_said_alone(tmp_path: Path) -> None:
    rows = [f"{place},{place * 2},{'ab'[place % 2]}" for place in range(30)]
    rows[7] = "7,oops,b"
    (tmp_path / "t.csv").write_text("\n".join(["u,v,y", *rows]) + "\n")
    with pytest.raises(BadInputError, match="line 9, column v: expected a number, got 'oops'"):
        dfeas.solve(tmp_path / "t.csv", "y")
    assert dfeas.solve(dfeas.table(tmp_path / "t.csv", "y", without="v")).m == 1


names = st.lists(st.text("abx_1", min_size=1, max_size=4), min_size=1, max_size=8, unique=True)


@given(names, st.data())
@settings(max_examples=200)
def test_a_choice_is_what_its_names_say(columns: list[str], data: st.DataObject) -> None:
    chosen = data.draw(st.none() | st.lists(st.sampled_from(columns), min_size=1, unique=True))
    without = data.draw(st.lists(st.sampled_from(columns), unique=True))
    kept = [name for name in (columns if chosen is None else chosen) if name not in without]
    choice = Choice.of(chosen, without)
    if not kept:
        with pytest.raises(BadInputError, match="no column is left"):
            choice.features(columns, None, "X")
        return
    assert choice.features(columns, None, "X") == kept
    assert Choice.of(**choice.to_json()) == choice


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    where = written(tmp_path, ".csv")
    chosen = ["--without", "customer", "--without", "name", "--without", "visit_*"]
    labels = ["--label-column", "churned"]

    def say(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(commands, words)
        return done.exit_code, done.output

    for words in (
        ["solve", where, *labels, "--out", "solved"],
        ["svm", where, *labels, "--out", "fitted"],
        ["race", where, *labels, "--methods", "working-set", "--out", "raced"],
        ["suspects", where, *labels],
        ["plan", where, *labels],
        ["in-hull", "0,0,0", where, "--without", "churned", "--out", "hull"],
        ["ingest", where, "data", *labels],
    ):
        code, out = say(*words, *chosen)
        assert code == 0, out
    assert "left out: customer, name, visit_first, visit_last" in out
    assert say("verify", "solved")[0] == 0
    assert say("predict", "fitted", where, "scores.npy")[0] == 0
    code, out = say("solve", where, *labels, "--also", where, "--columns", "a", "--out", "no")
    assert (code, "--columns and --without are for one table" in out) == (2, True)
    code, out = say("solve", where, *labels, "--out", "no")
    assert (code, "leave them out with --without NAME" in out) == (4, True)
