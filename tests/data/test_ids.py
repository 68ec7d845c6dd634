"""Ids: whatever names rows of a table is kept by a dataset beside the labels, and names points in every answer."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import dask.dataframe
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import dfeas
from dfeas.cli.main import commands
from dfeas.data.ids import ROWS, Ids, join_ids, read_ids, write_ids
from dfeas.data.storage.places import place
from dfeas.errors import BadInputError, CorruptDataError
from dfeas.records import replace

N = 90
rng = np.random.default_rng(5)
POINTS = rng.standard_normal((N, 2))
LABELS = np.where(POINTS @ [1.0, 2.0] > 0, "yes", "no")
LABELS[[4, 61]] = np.where(LABELS[[4, 61]] == "yes", "no", "yes")
FRAME = pd.DataFrame({**dict(zip("ab", POINTS.T, strict=True)), "y": LABELS})

KINDS: dict[str, list[Any]] = {
    "integers": [10**17 + place for place in range(N)],
    "counted": [*range(7, N + 7)],
    "text": [f"ward {place} é" for place in range(N)],
    "zeros": [f"{place:05d}" for place in range(N)],
    "dates": [*pd.date_range("2020-01-01 10:30", periods=N)],
    "uuids": [UUID(int=place) for place in range(N)],
    "the same twice": [place // 2 for place in range(N)],
    "gaps": [None if place % 3 == 1 else f"k{place}" for place in range(N)],
    "gaps in numbers": pd.array([None if place % 3 == 1 else place + 500 for place in range(N)], "Int64").tolist(),
}


def as_id(value: Any) -> int | str | None:
    """What an answer calls it: whole numbers and text are what they are, else the text that Python shows."""
    if value is None or value is pd.NA:
        return None
    return value if isinstance(value, int | str) else str(value)


def with_ids(kind: str) -> pd.DataFrame:
    values = [str(each) if isinstance(each, UUID) else each for each in KINDS[kind]]
    return FRAME.assign(id=pd.array(values, "Int64") if kind == "gaps in numbers" else values)


def in_folder(frame: pd.DataFrame, path: Path) -> Path:
    path.mkdir()
    frame[:40].to_parquet(path / "1.parquet", index=False)
    frame[40:].to_parquet(path / "2.parquet", index=False)
    return path


def written(suffix: str) -> Callable[[pd.DataFrame, Path], Any]:
    def write(frame: pd.DataFrame, room: Path) -> Any:
        path = room / f"table{suffix}"
        if suffix == ".parquet":
            frame.to_parquet(path, index=False)
        else:
            frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
        return path

    return write


TABLES: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    **{suffix: written(suffix) for suffix in (".csv", ".csv.gz", ".tsv", ".parquet")},
    "folder": lambda frame, room: in_folder(frame, room / "folder"),
    "pandas": lambda frame, room: frame,
    "polars": lambda frame, room: pl.from_pandas(frame),
    "arrow": lambda frame, room: pa.Table.from_pandas(frame, preserve_index=False),
    "dask": lambda frame, room: dask.dataframe.from_pandas(frame, npartitions=3),
}
TURNS = [(table, kind) for turn, table in enumerate(TABLES) for kind in [*KINDS][turn % 2 :: 2]]
"""Each table with every second kind of ids."""


def names_of(answer: Any) -> dict[int, Any]:
    rows = getattr(answer, "points", None) or answer.conflicts
    return {each["point"]: each.get("name", each["point"]) for each in rows}


def expected(kind: str, points: Any) -> dict[int, Any]:
    return {point: as_id(KINDS[kind][point]) for point in points}


@pytest.mark.parametrize(("table", "kind"), TURNS)
def test_a_table_and_its_dataset_name_points_by_the_same_ids(table: str, kind: str, tmp_path: Path) -> None:
    source = dfeas.table(TABLES[table](with_ids(kind), tmp_path), "y", id="id")
    header = dfeas.ingest(source, tmp_path / "data")
    assert (header.format, header.features, header.m) == (4, ("a", "b"), 2)
    for asked in (source, tmp_path / "data"):
        found = dfeas.suspects(asked)
        assert {4, 61} <= {each["point"] for each in found.points if each["needed"]}
        assert names_of(found) == expected(kind, names_of(found))
        solved = dfeas.solve(asked)
        assert names_of(solved) == expected(kind, names_of(solved))
    kept = zarr.open_group(tmp_path / "data", mode="r")["id"][:].tolist()
    assert kept == ["" if each is None else str(each) for each in expected(kind, range(N)).values()]
    assert header.ids == {
        "name": "id",
        "type": "integer" if all(type(as_id(e)) in (int, type(None)) for e in KINDS[kind]) else "text",
    }


@pytest.mark.parametrize("how", ["pandas", "dask", "arrow", "parquet", "csv", "R"])
@pytest.mark.parametrize("kind", ["counted", "text"])
def test_an_index_is_kept_without_being_asked_for(how: str, kind: str, tmp_path: Path) -> None:
    frame, file = FRAME.set_axis(pd.Index(KINDS[kind])), tmp_path / ("t.parquet" if how == "parquet" else "t.csv")
    sources = {"pandas": frame, "arrow": pa.Table.from_pandas(frame)}
    if how == "dask":
        sources["dask"] = dask.dataframe.from_pandas(frame, npartitions=4, sort=False)
    if how == "parquet":
        frame.to_parquet(file)
    elif how == "csv":
        frame.to_csv(file)
    elif how == "R":
        file.write_text(frame.to_csv().removeprefix(","))
    source = sources.get(how, file)
    header = dfeas.ingest(source, tmp_path / "data", label_column="y")
    assert header.ids == {"name": "index", "type": "integer" if kind == "counted" else "text"}
    for asked, y in ((source, "y"), (tmp_path / "data", None)):
        solved = dfeas.solve(asked, y)
        assert solved.features == ["a", "b"]
        assert names_of(solved) == expected(kind, names_of(solved))


@pytest.mark.parametrize("table", ["pandas", "polars", "arrow", "dask", ".csv", "folder"])
@pytest.mark.parametrize("name", ["name", "index", "columns", "ndim", "rows", "a b", "7"])
def test_a_column_of_ids_may_have_any_name(name: str, table: str, tmp_path: Path) -> None:
    frame = with_ids("text").rename(columns={"id": name})
    source = dfeas.table(TABLES[table](frame, tmp_path), "y", id=name)
    assert dfeas.ingest(source, tmp_path / "data").ids == {"name": name, "type": "text"}
    solved = dfeas.solve(source)
    assert names_of(solved) == expected("text", names_of(solved))


def test_an_index_that_counts_rows_names_none(tmp_path: Path) -> None:
    whole = pa.Table.from_pandas(FRAME)
    folder = in_folder(FRAME, tmp_path / "folder")
    for number, source in enumerate((FRAME, whole, pa.Table.from_pandas(FRAME[5:]).slice(3), folder, folder / "2.parquet")):
        plain = dfeas.ingest(source, tmp_path / f"data{number}", label_column="y")
        assert plain.ids is None
        assert not (tmp_path / f"data{number}" / "id").exists()
    named = [dfeas.ingest(pa.Table.from_pandas(FRAME[5:]), tmp_path / "named", label_column="y").ids]
    assert named == [{"name": "index", "type": "integer"}]


def test_ids_are_no_part_of_the_dataset_otherwise(tmp_path: Path) -> None:
    """Without them files are byte for byte what they are without a column of ids."""
    plain = dfeas.ingest(FRAME, tmp_path / "plain", label_column="y")
    named = dfeas.ingest(with_ids("text"), tmp_path / "named", label_column="y", id="id")
    assert replace(named, ids=None, format=2) == plain
    for file in (tmp_path / "plain").rglob("*"):
        if file.is_file() and file != tmp_path / "plain" / "zarr.json":
            assert file.read_bytes() == (tmp_path / "named" / file.relative_to(tmp_path / "plain")).read_bytes()
    root = json.loads((tmp_path / "plain" / "zarr.json").read_text())
    assert set(root["consolidated_metadata"]["metadata"]) == {"X", "label", "norm", "checksum"}
    assert "ids" not in root["attributes"]["dfeas"]


@pytest.mark.parametrize("part", ["also", "mask", "other labels", "positive", "transform"])
def test_ids_name_points_however_the_dataset_is_seen(part: str, tmp_path: Path) -> None:
    frame = with_ids("text")
    dfeas.ingest(frame[:40], tmp_path / "one", label_column="y", id="id")
    dfeas.ingest(frame[40:], tmp_path / "two", label_column="y", id="id")
    dfeas.ingest(frame, tmp_path / "both", label_column="y", id="id")
    if part == "also":
        solved = dfeas.solve([tmp_path / "one", tmp_path / "two"])
        dfeas.ingest(FRAME[40:].reset_index(drop=True), tmp_path / "plain", label_column="y")
        mixed = names_of(dfeas.solve([tmp_path / "one", tmp_path / "plain"]))
        assert mixed == {point: KINDS["text"][point] if point < 40 else point for point in mixed}
    elif part == "mask":
        np.save(tmp_path / "mask.npy", np.arange(N) % 7 != 3)
        solved = dfeas.solve(tmp_path / "both", mask=tmp_path / "mask.npy")
    elif part == "other labels":
        np.save(tmp_path / "labels.npy", LABELS == "yes")
        solved = dfeas.solve(tmp_path / "both", tmp_path / "labels.npy")
    elif part == "positive":
        solved = dfeas.solve(tmp_path / "both", positive="no")
    else:
        solved = dfeas.solve(tmp_path / "both", transform="std", out=tmp_path / "run", method="working-set")
    assert names_of(solved) == expected("text", names_of(solved))
    assert solved.conflicts or part == "transform"


def test_damaged_ids_are_noticed(tmp_path: Path) -> None:
    dfeas.ingest(with_ids("text"), tmp_path / "data", label_column="y", id="id")
    chunk = tmp_path / "data" / "id" / "c.0"
    content = chunk.read_bytes()
    chunk.write_bytes(content[:9] + b"!" + content[10:])
    with pytest.raises(CorruptDataError, match=r"c\.0: the chunk of ids is damaged; restore it or ingest again"):
        dfeas.solve(tmp_path / "data")
    chunk.unlink()
    with pytest.raises(CorruptDataError, match=r"c\.0: the chunk of ids is missing"):
        dfeas.solve(tmp_path / "data")


def test_an_id_of_a_page_is_refused(tmp_path: Path) -> None:
    frame = FRAME.assign(note="x" * 2000)
    with pytest.raises(BadInputError, match=r"an id of 2000 characters in note, 'xxxx.*at most 1000 are kept; name another"):
        dfeas.ingest(frame, tmp_path / "data", label_column="y", id="note")
    assert not (tmp_path / "data").exists()


values = st.none() | st.integers(-(2**70), 2**70) | st.text(max_size=5) | st.uuids() | st.dates()


@given(parts=st.lists(st.lists(values, max_size=6), min_size=1, max_size=5), data=st.data())
@settings(max_examples=60)
def test_what_is_written_is_read_however_it_is_cut(
    parts: list[list[Any]], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    flat = [each for part in parts for each in part]
    if not flat:
        return
    ids = Ids("id", lambda: [(len(part), lambda rows, part=part: [part[row] for row in rows]) for part in parts])
    room = tmp_path_factory.mktemp("ids")
    _, about = write_ids(room, ids, len(flat), lambda: None)
    rows = data.draw(st.lists(st.integers(0, len(flat) - 1), unique=True))
    kept, asked = read_ids(room, about, len(flat)), ids.take(rows)
    assert {row: str(each) for row, each in kept.take(rows).items()} == {row: str(each) for row, each in asked.items()}
    assert [*ids.every()] == [*ids.take(range(len(flat))).values()]
    both = join_ids([ids, None, kept], [len(flat), 2, len(flat)]).take(range(2 * len(flat) + 2))
    assert [both[len(flat)], both[len(flat) + 1]] == [len(flat), len(flat) + 1]
    assert [str(both[row]) for row in rows] == [str(both[row + len(flat) + 2]) for row in rows]


def test_many_ids_lie_in_several_chunks(tmp_path: Path) -> None:
    n = 2 * ROWS + 5
    frame = pd.DataFrame({"a": np.arange(n) - n // 2 + 0.5, "y": np.arange(n) > n // 2, "id": np.arange(n) * 3})
    frame.loc[[9, n - 9], "y"] = [True, False]
    dfeas.ingest(frame, tmp_path / "data", label_column="y", id="id")
    assert [each.name for each in sorted((tmp_path / "data" / "id").glob("c.*"))] == ["c.0", "c.1", "c.2"]
    assert np.array_equal(zarr.open_group(tmp_path / "data", mode="r")["id"][:].astype(np.int64), frame["id"])
    found = dfeas.suspects(tmp_path / "data")
    assert {each["point"]: each["name"] for each in found.points if each["needed"]} == {9: 27, n - 9: 3 * (n - 9)}


def places_of(found: Any) -> list[Any]:
    return [(each["file"], each["row"]) for each in found.points]


def test_suspects_of_several_files_say_where_each_lies(tmp_path: Path) -> None:
    frame = with_ids("text")
    folder = in_folder(frame, tmp_path / "folder")
    found = dfeas.suspects(dfeas.table(folder, "y", id="id"), out=tmp_path / "run")
    assert {(each["point"], *place) for each, place in zip(found.points, places_of(found), strict=True)} == {
        (point, "1.parquet" if point < 40 else "2.parquet", point % 40 if point < 80 else point - 40)
        for point in names_of(found)
    }
    assert places_of(dfeas.load(tmp_path / "run")) == places_of(found)
    assert {"file", "row"} <= {*found.verify().not_checked}
    for name, part in (("one", frame[:40]), ("two", frame[40:])):
        dfeas.ingest(part, tmp_path / name, label_column="y", id="id")
    both = dfeas.suspects([tmp_path / "one", tmp_path / "two"])
    assert {Path(file).name for file, _ in places_of(both)} == {"one", "two"}
    assert names_of(both) == names_of(found)
    assert "file" not in dfeas.suspects(frame[["a", "b", "y"]], "y").points[0]


@pytest.mark.parametrize("table", TABLES)
def test_the_columns_of_the_source_stand_beside_suspects(table: str, tmp_path: Path) -> None:
    frame = with_ids("text").assign(label=[f"l{place}" for place in range(N)], day=pd.date_range("2020-01-01", periods=N))
    source = TABLES[table](frame, tmp_path)
    found = dfeas.suspects(dfeas.table(source, "y", columns=["a", "b"], id="id"))
    joined = found.to_frame(source)
    assert len(joined) == len(found.points) >= 2
    for row in joined.to_dict("records"):
        assert (row["id"], row["source_label"]) == (row["name"], f"l{row['point']}")
        assert (row["a"], str(row["day"])[:10]) == (FRAME["a"][row["point"]], str(frame["day"][row["point"]])[:10])
        assert row["label"] == row["y"]
    found.to_csv(tmp_path / "joined.csv", source)
    again = pd.read_csv(tmp_path / "joined.csv")
    assert [*again] == [*joined]
    assert again["id"].tolist() == joined["id"].tolist()


def test_another_table_is_not_joined(tmp_path: Path) -> None:
    frame = with_ids("text")
    found = dfeas.suspects(dfeas.table(frame, "y", id="id"))
    with pytest.raises(BadInputError, match=r"the frame: 20 rows, and row \d+ is asked for"):
        found.to_frame(frame[:20])
    file = written(".csv")(frame, tmp_path)
    of_file = dfeas.suspects(dfeas.table(file, "y", id="id"))
    with pytest.raises(BadInputError, match="source has 180 rows, the data had 90 points"):
        of_file.to_frame(pd.concat([frame, frame]))
    with pytest.raises(BadInputError, match=r"source has other rows than the data: row .* is ward .* in id, and the"):
        of_file.to_frame(frame[::-1])
    with pytest.raises(dfeas.UsageError, match="expected the path of a table or a data frame, got ndarray"):
        found.to_frame(POINTS)
    ran = CliRunner().invoke(commands, ["suspects", str(file), "--join", str(file), "--label-column", "y", "--without", "id"])
    assert ran.exit_code == 2
    assert "--join adds columns to the table of --out NAME.csv" in ran.output


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_shown_of_suspects_names_each_and_relabels_none_that_may_stay(kind: str) -> None:
    frame = with_ids(kind)
    found = dfeas.suspects(dfeas.table(frame, "y", id="id"))
    seen = str(found).splitlines()
    called = [str(each["point"] if each["name"] is None else each["name"]) for each in found.points if each["needed"]]
    assert f"without {', '.join(called[:-1])} and {called[-1]} a hyperplane" in seen[0]
    score = f"{found.points[0]['score']:+.4f}"
    may_stay = replace(found, points=[*found.points, {**found.points[0], "point": N, "name": "other", "needed": False}])
    assert [line.split()[-2:] for line in str(may_stay).splitlines() if " other " in line] == [[score, "no"]]
    conflict = dfeas.solve(dfeas.table(frame, "y", id="id"))
    assert "None" not in str(found) + str(conflict)


JOINED: dict[str, Callable[[pd.DataFrame], Any]] = {
    "a frame with an id": lambda frame: dfeas.suspects(dfeas.table(frame, "y", id="id")),
    "a frame with an index": lambda frame: dfeas.suspects(frame.set_index("id"), "y"),
    "an Arrow table": lambda frame: dfeas.suspects(dfeas.table(pa.Table.from_pandas(frame), "y", id="id")),
    "a frame that counts": lambda frame: dfeas.suspects(frame[["a", "b", "y"]], "y"),
    "arrays and a column": lambda frame: dfeas.suspects(frame[["a", "b"]].to_numpy(), frame["y"]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("run", JOINED)
def test_rows_are_joined_only_if_ids_labels_and_their_number_agree(run: str, kind: str, tmp_path: Path) -> None:
    frame = with_ids(kind)
    found = JOINED[run](frame)
    for same in (frame, dfeas.table(frame, "y", id="id"), *(TABLES[table](frame, tmp_path) for table in TABLES)):
        assert found.to_frame(same)["a"].tolist() == FRAME["a"][[*(each["point"] for each in found.points)]].tolist()
    moved, relabelled = frame.iloc[np.roll(range(N), 1)], frame.assign(y=np.where(frame["y"] == "yes", "no", "yes"))
    if "arrays" not in run:
        with pytest.raises(BadInputError, match=r"source has other (rows|labels) than the data: row"):
            found.to_frame(moved)
    if "frame with" in run:
        assert len(found.to_frame(frame.set_index("id"))) == len(found.points)
        with pytest.raises(BadInputError, match=r"source has other rows than the data: row .* in id, and the point was"):
            found.to_frame(moved.set_index("id"))
    with pytest.raises(BadInputError, match="source has other labels than the data: row"):
        found.to_frame(relabelled)
    with pytest.raises(BadInputError, match="source has 180 rows, the data had 90 points"):
        found.to_frame(pd.concat([frame, frame]))


@pytest.mark.parametrize("kind", ["text", "zeros", "counted"])
def test_a_dataset_with_ids_is_joined_with_its_own_rows(kind: str, tmp_path: Path) -> None:
    frame = with_ids(kind)
    dfeas.ingest(dfeas.table(frame, "y", id="id"), tmp_path / "data")
    file = written(".csv")(frame, tmp_path)
    command = ["suspects", str(tmp_path / "data"), "--out", str(tmp_path / "found.csv"), "--join"]
    frame[::-1].to_csv(tmp_path / "moved.csv", index=False)
    refused = CliRunner().invoke(commands, [*command, str(tmp_path / "moved.csv")])
    assert refused.exit_code == 4
    assert "source has other rows than the data" in refused.output
    assert CliRunner().invoke(commands, [*command, str(file)]).exit_code == 0


@pytest.mark.usefixtures("door")
def test_ids_lie_in_object_stores_too(tmp_path: Path) -> None:
    header = dfeas.ingest(with_ids("text"), "s3://bucket/ids", label_column="y", id="id")
    dfeas.ingest(with_ids("text"), tmp_path / "data", label_column="y", id="id")
    assert header.ids == {"name": "id", "type": "text"}
    far, near = dfeas.solve("s3://bucket/ids"), dfeas.solve(tmp_path / "data")
    assert (far.conflicts, far.fingerprint) == (near.conflicts, near.fingerprint)
    assert names_of(far) == expected("text", names_of(far))
    place("s3://bucket/ids/id/c.0").unlink()
    with pytest.raises(CorruptDataError, match=r"c\.0: the chunk of ids is missing"):
        dfeas.solve("s3://bucket/ids")


PREDICTED = (".csv", ".parquet", ".zarr", ".npy")


@pytest.mark.parametrize("suffix", PREDICTED)
@pytest.mark.parametrize("kind", ["integers", "zeros", "gaps in numbers"])
def test_predictions_have_the_ids_of_their_points(suffix: str, kind: str, tmp_path: Path) -> None:
    fitted = dfeas.soft_margin(FRAME, "y")
    frame = with_ids(kind)
    dfeas.ingest(frame, tmp_path / "data", label_column="y", id="id")
    turn = [*KINDS].index(kind)
    for asked in (tmp_path / "data", dfeas.table([*TABLES.values()][3 * turn % len(TABLES)](frame, tmp_path), id="id")):
        assert dfeas.predict(fitted, asked).ids == [*expected(kind, range(N)).values()]
        out = tmp_path / f"scores{suffix}"
        dfeas.predict(fitted, asked, out=out, force=True)
        right = ["" if each is None else str(each) for each in expected(kind, range(N)).values()]
        if suffix == ".csv":
            table = pd.read_csv(out, dtype={"id": str}, keep_default_na=False)
            assert [*table] == ["id", "score", "class"]
            assert table["id"].tolist() == right
        elif suffix == ".parquet":
            table = pq.read_table(out)
            assert table.column_names == ["id", "score", "class"]
            assert table.schema.field("id").type == (pa.string() if kind == "zeros" else pa.int64())
            assert ["" if each is None else str(each) for each in table["id"].to_pylist()] == right
        elif suffix == ".zarr":
            assert zarr.open_group(out, mode="r")["id"][:].tolist() == right
        else:
            assert np.load(out).shape == (N,)


@pytest.mark.parametrize("kind", ["counted", "text", "zeros"])
@pytest.mark.parametrize("run", ["a file", "a dataset"])
def test_predictions_have_the_ids_of_the_column_that_named_rows_in_the_run(run: str, kind: str, tmp_path: Path) -> None:
    frame = with_ids(kind).assign(note="x")
    file = written(".csv")(frame, tmp_path)
    given = dfeas.table(file, "y", without="note", id="id")
    if run == "a dataset":
        dfeas.ingest(given, tmp_path / "data")
    dfeas.soft_margin(str(tmp_path / "data") if run == "a dataset" else given, out=tmp_path / "run")
    for some in (frame, frame.drop(columns="y"), frame[["y", "id", "b", "a"]]):
        assert dfeas.predict(tmp_path / "run", some).ids == frame["id"].tolist()
    assert dfeas.predict(tmp_path / "run", frame.drop(columns="id")).ids is None
    assert dfeas.predict(tmp_path / "run", dfeas.table(frame, "y", without=["id", "note"])).ids is None
    assert dfeas.predict(tmp_path / "run", dfeas.table(frame, "y", id="note")).ids == ["x"] * N
    done = CliRunner().invoke(commands, ["predict", str(tmp_path / "run"), str(file), str(tmp_path / "scores.csv")])
    assert done.exit_code == 0, done.output
    assert pd.read_csv(tmp_path / "scores.csv", dtype=str)["id"].tolist() == [*map(str, frame["id"])]


def test_predictions_without_ids_are_what_they_were(tmp_path: Path) -> None:
    fitted = dfeas.soft_margin(FRAME, "y")
    assert dfeas.predict(fitted, FRAME).ids is None
    dfeas.predict(fitted, FRAME, out=tmp_path / "s.csv")
    table = pd.read_csv(tmp_path / "s.csv")
    assert [*table] == ["score", "class"]
    assert np.array_equal(table["score"], dfeas.predict(fitted, FRAME).score)


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with_ids("zeros").assign(note="x").to_csv("t.csv", index=False)

    def say(*words: str) -> str:
        done = CliRunner().invoke(commands, [*words])
        assert done.exit_code == 0, done.output
        return done.output

    columns = ["--label-column", "y", "--without", "note", "--id-column", "id"]
    assert "ids          id (text)" in say("ingest", "t.csv", "data", *columns)
    assert "ids          id (text)" in say("info", "data")
    shown = say("solve", "data", "--out", "run")
    most = dfeas.load("run").conflicts[0]
    assert f"point {most['point']} ({most['point']:05d})  label" in shown
    assert "00061" in say("suspects", "data", "--out", "found.csv", "--join", "t.csv")
    assert "point,name,label,score,needed,flip,a,b,y,id,note\n" in Path("found.csv").read_text()
    assert f"{most['point']:05d}" in Path(say("report", "run").strip()).read_text()
    say("svm", "data", "--out", "fit")
    say("predict", "fit", "t.csv", "s.csv", "--id-column", "id")
    assert Path("s.csv").read_text().startswith("id,score,class\n00000,")
    first = say("predict", "fit", "data", "s2.csv")
    assert Path("s2.csv").read_text() == Path("s.csv").read_text()
    assert "accuracy" in first
    say("ingest", "t.csv", "data", *columns[:-2], "--without", "id", "--force")
    assert "ids" not in say("info", "data")


def test_a_pattern_stands_for_the_parquet_files_that_match_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for name in ("2025-1", "2026-1", "2026-2"):
        points = pd.DataFrame(rng.standard_normal((40, 3)), columns=["a", "b", "c"])
        points["y"] = (points.sum(axis=1) > 0).astype(int)
        points["id"] = [f"{name}/{row}" for row in range(40)]
        points.to_parquet(tmp_path / f"{name}.parquet")
    points.assign(y=1 - points.y).to_parquet(tmp_path / "2026-3.parquet")
    table = dfeas.table(str(tmp_path / "2026-[13]*.parquet"), "y", id="id")
    found = dfeas.suspects(table).to_frame()
    assert {*found["file"]} <= {"2026-1.parquet", "2026-3.parquet"}
    assert all(name.endswith(f"/{row}") for name, row in zip(found["name"], found["row"], strict=True))
    held = dfeas.solve(dfeas.table(str(tmp_path / "*-[12].parquet"), "y", without="id"), out=tmp_path / "run")
    assert (held.n, held.verdict) == (120, "feasible")
    assert dfeas.verify_run(tmp_path / "run").verdict == "feasible"
    assert dfeas.ingest(str(tmp_path / "2026*"), tmp_path / "data", label_column="y", id="id").n == 120
    with pytest.raises(BadInputError, match=r"no \.parquet file matches"):
        dfeas.solve(str(tmp_path / "2027*.parquet"), "y")


def test_ids_that_differ_in_their_case_are_other_ids() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "y": [0, 1, 0, 1], "id": ["A1", "a1", "B1", "b1"]})
    found = dfeas.suspects(dfeas.table(frame, "y", id="id"))
    assert len(found.to_frame(frame)) == len(found.points) > 0
    with pytest.raises(BadInputError, match="source has other rows than the data"):
        found.to_frame(frame.assign(id=frame["id"].str.swapcase()))
