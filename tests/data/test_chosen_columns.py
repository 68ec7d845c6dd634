"""Columns of a table that are features, said once: every kind of table and every verb, beside the same points as an array."""

import json
import warnings
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import dask.dataframe
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import dfeas
from dfeas.cli.main import commands
from dfeas.data.source import Choice
from dfeas.errors import BadInputError, DataWarning, UsageError
from dfeas.estimators import LinearSVC, Separator

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
    FRAME[:50].drop(columns="visit_last").to_parquet(path / "1.parquet")
    FRAME[50:].assign(visit_next="never").to_parquet(path / "2.parquet")  # files need what is chosen only
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


SOME = (".csv", "folder", "polars", "dask")
"""One of each way in."""


TURNS = [(verb, kind) for turn, verb in enumerate(VERBS) for kind in (TABLES if verb == "solve" else [SOME[turn % 4]])]
"""Each table once, and each verb with one of the ways in."""


@pytest.mark.parametrize(("verb", "kind"), TURNS)
def test_each_verb_takes_each_table(verb: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    label = None if verb == "in_hull" else "churned"
    without = [*LEFT_OUT, "churned"] if verb == "in_hull" else LEFT_OUT
    chosen = dfeas.table(TABLES[kind](tmp_path), label, without=without)
    plain = FRAME[list("abc") if label is None else [*"abc", "churned"]]
    assert chosen.features == ("a", "b", "c")
    assert VERBS[verb](chosen) == VERBS[verb](dfeas.table(plain, label))


@pytest.mark.parametrize("kind", SOME)
def test_a_run_keeps_what_was_chosen(kind: str, tmp_path: Path) -> None:
    chosen = dfeas.table(TABLES[kind](tmp_path), "churned", columns=["c", "a"])
    result = dfeas.solve(chosen, out=tmp_path / "run", method="mirror-prox", max_passes=3)
    assert result.features == ["c", "a"]
    if isinstance(chosen.X, str):
        assert dfeas.resume(tmp_path / "run", max_passes=6).features == ["c", "a"]
        done: Any = dfeas.solve(chosen, out=tmp_path / "done")
        assert dfeas.verify_run(tmp_path / "done").verdict == done.verdict == dfeas.load(tmp_path / "done").verify().verdict


@pytest.mark.parametrize("kind", SOME)
def test_predictions_take_features_by_name(kind: str, tmp_path: Path) -> None:
    fitted = dfeas.soft_margin(dfeas.table(FRAME, "churned", columns=["c", "a", "b"]))
    expected, whole = dfeas.predict(fitted, FRAME[["c", "a", "b"]]).score, TABLES[kind](tmp_path)
    assert np.array_equal(np.asarray(dfeas.predict(fitted, whole).score), expected)
    assert np.array_equal(np.asarray(fitted.decision_function(whole)), expected)
    right = np.where(np.asarray(expected) > 0, "yes", "no") == LABELS
    assert dfeas.predict(fitted, whole, "churned").accuracy == right.mean()
    with pytest.raises(BadInputError, match="feature"):
        dfeas.predict(fitted, FRAME[["a", "b"]])


@pytest.mark.parametrize(("kind", "named"), [(".csv", "customer"), ("polars", "name")])
def test_suspects_are_named_by_the_column_that_names_rows(named: str, kind: str, tmp_path: Path) -> None:
    others = [each for each in ("customer", "name") if each != named]
    chosen = dfeas.table(TABLES[kind](tmp_path), "churned", without=[*others, "visit_*"], id=named)
    assert chosen.features == ("a", "b", "c")
    found = dfeas.suspects(chosen, mask=None if kind == "dask" or isinstance(chosen.X, str) else np.arange(N) != 3)
    assert {each["name"] for each in found.points} == {FRAME[named][each["point"]] for each in found.points}
    assert any(each["needed"] for each in found.points)
    run = tmp_path / "run"
    for solved in (dfeas.solve(chosen, out=run), dfeas.load(run)):
        assert {each["name"] for each in solved.conflicts} == {FRAME[named][each["point"]] for each in solved.conflicts}
        assert f"point 5 ({FRAME[named][5]})  label" in str(solved)
    assert "names of conflicts" in dfeas.verify_run(run, chosen).not_checked
    assert f"5, {FRAME[named][5]}" in Path(str(dfeas.report(run))).read_text()


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_ids_are_as_they_are_written(suffix: str, tmp_path: Path) -> None:
    frame = FRAME[["a", "churned"]].copy()
    ids = {
        "long": [str(10**17 + place) for place in range(N)],
        "zeros": [f"{place:05d}" for place in range(N)],
        "decimal": [f"{place}.50" for place in range(N)],
        "mixed": [f"{place}" if place % 2 else f"k{place}" for place in range(N)],
        "date": [*FRAME["visit_first"]],
    }
    file = tmp_path / f"ids{suffix}"
    frame.assign(**ids).to_csv(file, index=False, sep="\t" if suffix == ".tsv" else ",")
    for name, values in ids.items():
        found = dfeas.solve(dfeas.table(file, "churned", columns="a", id=name)).conflicts
        assert found
        assert [str(each["name"]) for each in found] == [values[each["point"]] for each in found]
        assert all(isinstance(each["name"], int) for each in found) or name != "long"


@pytest.mark.parametrize("lazily", [False, True])
def test_an_index_may_be_said_to_name_rows(lazily: bool) -> None:
    indexed: Any = FRAME.set_index("name")
    frame = dask.dataframe.from_pandas(indexed, npartitions=3, sort=False) if lazily else indexed
    said, alone, column = (
        dfeas.suspects(dfeas.table(each, "churned", columns=list("abc"), id=name)).points
        for each, name in ((frame, "name"), (frame, None), (FRAME, "name"))
    )
    assert said == alone == column
    assert all(str(each["name"]).startswith("c") for each in said)


@pytest.mark.parametrize("kind", SOME)
def test_a_column_that_names_rows_may_stand_among_the_others(kind: str, tmp_path: Path) -> None:
    table = TABLES[kind](tmp_path)
    for columns in (["name", "b", "a"], ["b", "a", "n*"], "b, name, a"):
        assert dfeas.table(table, "churned", columns=columns, id="name").features == ("b", "a")
    assert dfeas.table(table, "churned", without=["name", "cust*", "visit_*"], id="name").features == ("a", "b", "c")


@pytest.mark.parametrize("kind", SOME)
def test_what_cannot_be_predicted_is_named(kind: str, tmp_path: Path) -> None:
    result = dfeas.soft_margin(dfeas.table(TABLES[kind](tmp_path), "churned", without=LEFT_OUT), max_passes=2)
    with pytest.raises(BadInputError, match=r"other features \(without b\) than the result"):
        dfeas.predict(result, FRAME.drop(columns="b"))
    for value in (np.nan, np.inf):
        holed = FRAME.assign(b=np.where(np.arange(N) == 7, value, FRAME.b))
        with pytest.raises(BadInputError, match=rf"point 7 has entries that are not finite \(feature b: {value}\)"):
            dfeas.predict(result, holed)


def test_an_index_names_rows_where_it_is_none_of_numbers() -> None:
    for index, name in ((FRAME["name"], "c5"), (pd.RangeIndex(7, N + 7), 12)):
        found = dfeas.solve(FRAME[["a", "b", "c", "churned"]].set_axis(index), "churned").conflicts
        assert {each["name"] for each in found if each["point"] == 5} == {name}
    assert all("name" not in each for each in dfeas.solve(FRAME[["a", "b", "c", "churned"]], "churned").conflicts)


ODD: dict[str, tuple[Any, Any]] = {  # names of all rows, and what a file has of one
    "NA": (pd.array([pd.NA] * N, dtype="Int64"), None),
    "NaN": ([np.nan] * N, None),
    "NaT": ([pd.NaT] * N, None),
    "dates": ([date(2020, 1, 1)] * N, "2020-01-01"),
    "tuples": ([(1, "a")] * N, "(1, 'a')"),
    "bytes": ([b"x"] * N, "x"),
    "gaps": ([7.0] * N, 7),
    "decimals": ([Decimal("12.00")] * N, 12),
    "uuids": ([UUID(int=5)] * N, "00000000-0000-0000-0000-000000000005"),
    "large": (np.full(N, 2**64 - 1, np.uint64), 2**64 - 1),
    "truth": ([True] * N, "True"),
}


@pytest.mark.parametrize(("odd", "how"), [(odd, ("index", "id")[turn % 2]) for turn, odd in enumerate(ODD)])
def test_names_of_any_kind_are_kept(odd: str, how: str, tmp_path: Path) -> None:
    (names, kept), frame = ODD[odd], FRAME[["a", "b", "c", "churned"]]
    given: tuple[Any, ...] = (frame.set_axis(pd.Index(names)), "churned")
    if how == "id":
        given = (dfeas.table(frame.assign(odd=names), "churned", id="odd"),)
    result = dfeas.solve(*given, out=tmp_path / "run")
    assert [each["name"] for each in dfeas.load(tmp_path / "run").conflicts] == [kept] * len(result.conflicts)
    assert dfeas.verify_run(tmp_path / "run", *given).verdict == "infeasible"


def warned(call: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in caught if issubclass(each.category, DataWarning)]


@pytest.mark.parametrize("kind", TABLES)
def test_columns_like_ids_are_warned_of(kind: str, tmp_path: Path) -> None:
    odd = dfeas.table(TABLES[kind](tmp_path), "churned", without=["name", "visit_*"])
    right = dfeas.table(odd.X, "churned", without="name,visit_*", id="customer")
    said = "column customer has another whole number in each row: if it is an id, leave it out with dfeas.table(X, y"
    for found in (warned(lambda: dfeas.solve(odd)), warned(lambda: dfeas.ingest(odd, tmp_path / "data"))):
        assert len(found) == 1
        assert said in found[0]
    assert warned(lambda: dfeas.solve(right)) + warned(lambda: dfeas.ingest(right, tmp_path / "other")) == []


rows = np.arange(60)
LIKE: dict[str, tuple[Any, str]] = {
    "counted": (rows, "an id"),
    "counted in float64": (rows + 5.0, "an id"),
    "long": (10**9 + (rows * 7919) % 10007, "an id"),
    "days": (20200101 + 100 * (rows % 12) + rows % 28, "a date"),
    "days in any order": (np.random.default_rng(0).permutation(19990101 + 10000 * (rows % 5) + rows % 25), "a date"),
    "one day": (np.full(60, 20200131), ""),
    "ages": (rows % 30, ""),
    "years": (1990 + rows % 30, ""),
    "prices": (20200100 + rows * 97 % 1000, ""),
    "numbers": (rows + 0.5, ""),
    "month 13": (20201301 + rows % 2, ""),
}


@pytest.mark.parametrize("kind", ["pandas", "csv", "dask", "parquet"])
@pytest.mark.parametrize("what", LIKE)
def test_what_looks_like_an_id_or_a_date(what: str, kind: str, tmp_path: Path) -> None:
    values, said = LIKE[what]
    X: Any = pd.DataFrame({"a": POINTS[:60, 0], "odd": values, "churned": LABELS[:60]})
    if kind == "csv":
        X.to_csv(tmp_path / "t.csv", index=False)
        X = tmp_path / "t.csv"
    elif kind == "parquet":
        X.to_parquet(tmp_path / "t.parquet")
        X = tmp_path / "t.parquet"
    elif kind == "dask":
        X = dask.dataframe.from_pandas(X, npartitions=2)
    of_ingest = warned(lambda: dfeas.ingest(X, tmp_path / "data", label_column="churned"))
    for found in (warned(lambda: dfeas.solve(X, "churned")), of_ingest):
        assert len(found) == bool(said)
        assert all("column odd has" in text and f"if it is {said}, leave it out" in text for text in found)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no such name": ({"without": "customers"}, "no column customers; did you mean customer?"),
    "no such pattern": ({"columns": "x_*"}, "no column x_*"),
    "nothing left": ({"columns": "a", "without": "a"}, "no column is left"),
    "no names": ({"columns": []}, "columns: none is named"),
    "no such id": ({"id": "customers"}, "no column customers; did you mean customer?"),
    "an id that is no name": ({"id": 3.5}, "id: expected names of columns"),
    "numbers": ({"without": [3.5]}, "without: expected names of columns"),
    "the label": ({"without": "churned"}, "column churned has the labels"),
}


@pytest.mark.parametrize(("wrong", "kind"), [(wrong, (".csv", "pandas")[turn % 2]) for turn, wrong in enumerate(WRONG)])
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


@pytest.mark.parametrize("kind", [".csv", ".parquet", "polars", "dask"])
def test_one_message_names_all_columns_of_text(kind: str, tmp_path: Path) -> None:
    with pytest.raises(BadInputError) as refused:
        dfeas.solve(TABLES[kind](tmp_path), "churned")
    text = str(refused.value)
    assert all(name in text for name in ("name", "visit_first", "visit_last"))
    assert "leave them out with dfeas.table(X, y, without=[..]), or name rows by one with id=NAME there" in text


def test_a_cell_that_is_no_number_is_said_alone(tmp_path: Path) -> None:
    rows = [f"{place},{place * 2},{'ab'[place % 2]}" for place in range(30)]
    rows[7] = "7,oops,b"
    (tmp_path / "t.csv").write_text("\n".join(["u,v,y", *rows]) + "\n")
    with pytest.raises(BadInputError, match="line 9, column v: expected a number, got 'oops'"):
        dfeas.solve(tmp_path / "t.csv", "y")
    assert dfeas.solve(dfeas.table(tmp_path / "t.csv", "y", without="v")).m == 1


names = st.lists(st.text("abx_1", min_size=1, max_size=4), min_size=1, max_size=8, unique=True)


@given(names, st.data())
@settings(max_examples=50)
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


@pytest.mark.parametrize(("estimator", "kind"), [(LinearSVC, "pandas"), (Separator, "polars"), (LinearSVC, "dask")])
def test_estimators_take_the_table_of_a_frame(estimator: Any, kind: str, tmp_path: Path) -> None:
    chosen = dfeas.table(TABLES[kind](tmp_path), "churned", without=["name", "visit_*"], id="customer")
    fitted, expected = estimator().fit(chosen), estimator().fit(FRAME[["a", "b", "c"]], LABELS)
    assert np.array_equal(fitted.coef_, expected.coef_)
    assert np.array_equal(np.asarray(fitted.predict(chosen)), expected.predict(FRAME[["a", "b", "c"]]))
    assert fitted.score(chosen) == expected.score(FRAME[["a", "b", "c"]], LABELS)
    batch = estimator().partial_fit(chosen)
    assert np.array_equal(batch.coef_, estimator().partial_fit(FRAME[["a", "b", "c"]], LABELS).coef_)
    with pytest.raises(ValueError, match="leave out y"):
        estimator().fit(chosen, LABELS)
    with pytest.raises(ValueError, match=r"table.csv: an estimator takes the table of a frame"):
        estimator().fit(dfeas.table(written(tmp_path, ".csv"), "churned", columns="a"))


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
        ["suspects", where, *labels, "--id-column", "customer"],
        ["plan", where, *labels],
        ["in-hull", "0,0,0", where, "--without", "churned", "--out", "hull"],
        ["ingest", where, "data", *labels],
    ):
        code, out = say(*words, *(chosen[2:] if "--id-column" in words else chosen))
        assert code == 0, out
        assert ("100005" in out) == ("--id-column" in words)
    assert "left out: customer, name, visit_first, visit_last" in out
    code, out = say("solve", where, *labels, "--without", "name, visit_*", "--out", "warned")
    assert (code, "dfeas: warning: " in out, "is an id, leave it out with --without NAME" in out) == (0, True, True)
    assert say("verify", "solved")[0] == 0
    assert say("predict", "fitted", where, "scores.npy")[0] == 0
    code, out = say("solve", where, *labels, "--also", where, "--columns", "a", "--out", "no")
    assert (code, "--columns, --without and --id-column are for one table" in out) == (2, True)
    code, out = say("solve", where, *labels, "--out", "no")
    assert (code, "leave them out with --without NAME, or name rows by one with --id-column NAME" in out) == (4, True)


@pytest.mark.parametrize(
    ("suffix", "chosen"),
    [
        (".csv", ["--columns", "a, b,c"]),
        (".parquet", ["--columns", "[a-c]", "--id-column", "customer"]),
        (".csv", ["--without", "name,visit_*", "--id-column", "customer"]),
        (".parquet", ["--without", "name", "--without", "visit_first", "--without", "visit_last", "--without", "customer"]),
    ],
)
def test_regressors_are_chosen_as_features_are(chosen: list[str], suffix: str, tmp_path: Path) -> None:
    FRAME.assign(w=np.arange(N) % 3).to_csv(tmp_path / "t.csv", index=False)
    FRAME.assign(w=np.arange(N) % 3).to_parquet(tmp_path / "t.parquet")
    words = ["check-separation", str(tmp_path / f"t{suffix}"), "--label-column", "churned", "--weights-column", "w", *chosen]
    done = CliRunner().invoke(commands, [*words, "--json"])
    assert done.exit_code == 0, done.output
    found, expected = (
        json.loads(done.stdout),
        dfeas.check_separation(FRAME[[*"abc"]], FRAME["churned"], weights=np.arange(N) % 3),
    )
    assert [each["name"] for each in found["estimates"]] == [each.name for each in expected.estimates]
    assert found["kind"] == expected.kind


def test_labels_by_place_are_those_that_solve_takes(tmp_path: Path) -> None:
    indexed = FRAME.drop(columns=["customer", "name", "visit_first", "visit_last"])
    indexed.index = pd.Index(np.arange(N) % 2, name="group")
    indexed.to_parquet(tmp_path / "indexed.parquet")
    for place, named in (("-1", "churned"), ("3", "churned"), ("group", "group")):
        chosen = dfeas.table(tmp_path / "indexed.parquet", place, columns=["b", "a"])
        assert (chosen.label, dfeas.solve(chosen).features) == (named, ["b", "a"])
    both = dfeas.table(tmp_path / "indexed.parquet", "churned", columns=["group", "a"])
    assert dfeas.solve(both).features == ["group", "a"]
    written(tmp_path, ".csv")
    assert dfeas.table(tmp_path / "table.csv", "-1", without=LEFT_OUT).label == "churned"


@pytest.mark.parametrize(
    "choice",
    [{}, {"columns": ["a", "visit_next"]}, {"without": ["name", "visit_first"]}, {"id": "visit_last", "columns": "a"}],
)
def test_files_that_lack_a_column_that_counts_are_named(choice: dict[str, Any], tmp_path: Path) -> None:
    table = dfeas.table(folder_of_parquet(tmp_path / "folder"), y="churned", **choice)
    with pytest.raises(BadInputError, match=r"2\.parquet: other columns than 1\.parquet \(.*visit_.*choose columns"):
        dfeas.solve(table)


def test_a_run_is_verified_with_the_columns_that_are_given(tmp_path: Path) -> None:
    where = written(tmp_path, ".csv")
    dfeas.solve(dfeas.table(where, "churned", columns=["c", "a"]), out=tmp_path / "run")
    assert dfeas.verify_run(tmp_path / "run", where, "churned").verdict
    assert dfeas.verify_run(tmp_path / "run", dfeas.table(FRAME, "churned", columns=["c", "a"])).verdict
    with pytest.raises(dfeas.CheckFailedError, match="other features"):
        dfeas.verify_run(tmp_path / "run", dfeas.table(where, "churned", columns=["b"]))


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    twice = pa.Table.from_arrays([pa.array(POINTS[:, 0])] * 2 + [pa.array(LABELS)], names=["q", "q", "churned"])
    pa.parquet.write_table(twice, tmp_path / "twice.parquet")
    for each in (twice, tmp_path / "twice.parquet"):
        with pytest.raises(BadInputError, match=r"two columns are called|unique"):
            dfeas.table(each, "churned", columns="q")


def test_a_scoring_file_with_an_id_is_predicted() -> None:
    fitted = dfeas.soft_margin(dfeas.table(FRAME, "churned", columns=["a", "b", "c"]))
    assert np.array_equal(fitted.predict(FRAME[["name", "a", "b", "c"]]), fitted.predict(FRAME[["a", "b", "c"]]))


@pytest.mark.parametrize("name", ["churned", "a"])
def test_a_file_that_is_called_as_a_column_is_not_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save(name, np.zeros(N))
    chosen = dfeas.table(written(tmp_path, ".csv"), "churned", columns=["a", "b"])
    dfeas.ingest(chosen, "data")
    assert dfeas.solve("data").margin_upper == dfeas.solve(chosen).margin_upper
    assert dfeas.solve("data").features == ["a", "b"]


def test_a_column_beside_features_is_no_label_where_the_run_knows_its_name(tmp_path: Path) -> None:
    """A flag of two values is not what the run calls its labels; of labels beside the points nobody knows the name."""
    numbered = FRAME.assign(churned=(LABELS == "yes") * 1, flag=np.arange(N) % 2)
    numbered.to_csv(tmp_path / "t.csv", index=False)
    known = dfeas.soft_margin(dfeas.table(tmp_path / "t.csv", "churned", columns=["a", "b", "c"]))
    assert dfeas.predict(known, numbered[["a", "b", "c", "flag"]]).accuracy is None
    assert dfeas.predict(known, numbered).accuracy is not None
    beside = dfeas.soft_margin(numbered[["a", "b", "c"]], numbered["churned"])
    assert dfeas.predict(beside, numbered[["c", "b", "a", "churned"]]).accuracy == dfeas.predict(known, numbered).accuracy


@pytest.mark.parametrize(
    "bad", ["1,x,2,a,3,9", "1,x,2,a", '1,"q\nq",2,a,3', "1,x,2,,3", "1,x,2,a,", '1,"q""q",2,a,3', "1,,zz,a,3"]
)
def test_rows_are_neither_lost_nor_mended_where_columns_are_left_out(bad: str, tmp_path: Path) -> None:
    rows = [f"{place},t{place},{place * 2},{'ab'[place % 2]},{place * 3}" for place in range(400)]
    rows[200] = bad
    (tmp_path / "t.csv").write_text("\n".join(["u,txt,v,y,w", *rows]) + "\n")
    chosen = dfeas.table(tmp_path / "t.csv", "y", columns=["w", "u"])
    if bad in ('1,"q""q",2,a,3', "1,,zz,a,3"):
        assert dfeas.solve(chosen).n == 400
        return
    with pytest.raises(BadInputError, match="line 202"):
        dfeas.solve(chosen)


def test_readers_take_their_options_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("s.csv", index=False, sep=";")
    FRAME.to_csv("bare.csv", index=False, header=False)
    for words in (
        ["s.csv", "one", "--sep", ";", "--label-column", "churned", "--columns", "[abc]"],
        ["bare.csv", "two", "--no-header", "--label-column", "-1", *(f"--without={place}" for place in range(4))],
    ):
        done = CliRunner().invoke(commands, ["ingest", *words])
        assert (done.exit_code, "3 features" in done.output) == (0, True), done.output
    assert dfeas.ingest("s.csv", "three", sep=";", label_column="churned", columns=["c"]).features == ("c",)
    with pytest.raises(UsageError, match="the table says itself which columns"):
        dfeas.ingest(dfeas.table(FRAME, "churned", columns="a"), "four", columns="b")
