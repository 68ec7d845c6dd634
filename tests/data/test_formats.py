"""Formats of tables and of svmlight: the same dataset from each; what cannot be read is named and leaves nothing."""

import bz2
import gzip
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask.array
import dask.dataframe
import h5py
import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dfeas
from dfeas import ingest
from dfeas.data.ingest import svmlight, tables
from dfeas.data.ingest import text as lines
from dfeas.data.ingest import text as numerals
from dfeas.data.ingest.csv_file import CsvLines, CsvPoints
from dfeas.data.ingest.options import IngestOptions
from dfeas.data.ingest.svmlight import Svmlight
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.readers import Cost
from dfeas.errors import BadInputError, CorruptDataError, DfeasError, UsageError
from dfeas.linalg.points import dense
from tests.typed import says

N, M = 700, 9


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray]:
    """Points of many scales, with zeros, and labels of which the greater comes first; sources are read in small runs."""
    monkeypatch.setattr(lines.TextFile, "run_bytes", 5000)
    monkeypatch.setattr(tables, "BATCH_BYTES", 5000)
    rng = np.random.default_rng(3)
    X = rng.standard_normal((N, M)) * 10.0 ** rng.integers(-12, 12, (N, M))
    X[rng.random((N, M)) < 0.3] = 0
    y = (rng.random(N) < 0.4).astype(int)
    y[0] = 1
    return X, y


def as_csv(X: np.ndarray, y: Any, delimiter: str = ",", header: bool = True, end: str = "\n", place: int = 4) -> bytes:
    names = [f"f{i}" for i in range(X.shape[1])]
    rows = [[repr(float(v)) for v in row] for row in X]
    for row, label in zip([names, *rows], ["class", *map(str, y)], strict=True):
        row.insert(place, label)
    return "".join(delimiter.join(row) + end for row in ([names] if header else []) + rows).encode()


def as_svmlight(X: np.ndarray, y: Any, base: int = 1) -> bytes:
    def line(row: np.ndarray, label: Any) -> str:
        return " ".join([f"{label}", *(f"{j + base}:{float(v)!r}" for j, v in enumerate(row) if v)])

    return "".join(line(row, label) + "\n" for row, label in zip(X, y, strict=True)).encode()


def as_table(X: np.ndarray, y: Any) -> pa.Table:
    columns = {f"f{i}": X[:, i] for i in range(X.shape[1])}
    return pa.table({**dict(list(columns.items())[:4]), "class": y, **dict(list(columns.items())[4:])})


def as_h5ad(path: Path, X: Any, y: np.ndarray) -> Path:
    with h5py.File(path, "w") as file:
        file["X"] = X
        file["X"].attrs["encoding-type"] = "array"
        obs = file.create_group("obs")
        obs["number"] = y
        obs["text"] = np.array(np.where(y, "yes", "no"), dtype=h5py.string_dtype())
        kind = obs.create_group("kind")
        kind.attrs["encoding-type"] = "categorical"
        kind["codes"], kind["categories"] = np.where(y, 0, 1).astype(np.int8), np.array([b"yes", b"no"], h5py.string_dtype())
        file["y"] = y
    return path


def stored(path: Path) -> np.ndarray:
    opened = open_source(Source(DataSpec(path)))
    return np.concatenate([dense(b.points).copy() for b in opened.read_blocks(range(opened.blocks), Cost())])


def written(tmp_path: Path, X: np.ndarray, y: np.ndarray) -> dict[str, tuple[Any, dict[str, Any]]]:
    """The same data in every format, with what ingest needs to know."""
    text = np.where(y, "yes", "no")
    named, last = {"label_column": "class"}, {"label_column": "-1"}
    contents = {
        "a.csv": as_csv(X, y),
        "text.csv": as_csv(X, text),
        "quoted.csv": as_csv(X, [f'"a ""b"", {v}"' for v in y]),
        "bom.csv": b"\xef\xbb\xbf" + as_csv(X, text, end="\r\n"),
        "bare.csv": as_csv(X, text, header=False, place=M).removesuffix(b"\n"),
        "blank.csv": b"\n" + as_csv(X, y).replace(b"\n", b"\n\n"),
        "a.tsv": as_csv(X, y, "\t"),
        "a.csv.gz": gzip.compress(as_csv(X, y)),
        "a.svm": as_svmlight(X, y),
        "plus.svm": as_svmlight(X, [f"{2 * v - 1:+d}" for v in y]).replace(b"\n", b" \n"),
        "zero.svm": as_svmlight(X, y, 0),
        "notes.svm": b"# made by hand\n\n" + as_svmlight(X, [f"{v}  qid:{v}" for v in y]).replace(b"\n", b" # p=1:2\r\n"),
        "tabs.svm": as_svmlight(X, y).replace(b" ", b"\t").removesuffix(b"\n"),
        "a.libsvm.gz": gzip.compress(as_svmlight(X, y)),
        "a.svmlight.bz2": bz2.compress(as_svmlight(X, y)),
        "plain": as_svmlight(X, y),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    options: dict[str, dict[str, Any]] = {name: named for name in contents if ".csv" in name or ".tsv" in name}
    options |= {name: {} for name in contents if name not in options}
    options |= {"bare.csv": last, "zero.svm": {"zero_based": True, "features": M}, "plain": {"format": "svmlight"}}
    found: dict[str, tuple[Any, dict[str, Any]]] = {name: (tmp_path / name, options[name]) for name in contents}
    table = as_table(X, text)
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=90)
    (tmp_path / "parts").mkdir()
    for i in range(3):
        part = table.slice(i * 250, 250)
        pq.write_table(part if i else part.select(part.column_names[::-1]), tmp_path / "parts" / f"part-{i}.parquet")
    coded = table.set_column(4, "class", table.column(4).dictionary_encode())
    zarr.create_array(tmp_path / "z2", data=X, chunks=(100, 4), zarr_format=2)
    zarr.create_array(tmp_path / "zl2", data=y, chunks=(70,), zarr_format=2, config={"write_empty_chunks": True})
    as_h5ad(tmp_path / "a.h5ad", X, y)
    order = ["f0", "f1", "f2", "f3", "class", "f4", "f5", "f6", "f7", "f8"]
    return found | {
        "parquet": (tmp_path / "a.parquet", named),
        "parquet-folder": (tmp_path / "parts", named),
        "frame": (coded.select(order), named),
        "zarr2": (tmp_path / "z2", {"y": str(tmp_path / "zl2")}),
        "h5ad-number": (tmp_path / "a.h5ad", {"label_column": "number"}),
        "h5ad-text": (tmp_path / "a.h5ad", {"label_column": "text"}),
        "h5ad-categorical": (tmp_path / "a.h5ad", {"label_column": "kind"}),
    }


def test_every_format_gives_the_same_dataset(tmp_path: Path, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    np.savez(tmp_path / "a.npz", X=X, y=y)
    expected = ingest(tmp_path / "a.npz", tmp_path / "expected", block_rows=64)
    for name, (src, options) in written(tmp_path, X, y).items():
        out = tmp_path / f"out-{name}"
        columns = [8, 7, 6, 5, 4, 3, 2, 1, 0] if name == "parquet-folder" else slice(None)
        header = ingest(src, out, block_rows=64, **options)
        assert np.array_equal(stored(out), X[:, columns]), name
        if name != "parquet-folder":
            assert (header.fingerprint == expected.fingerprint) == (header.classes == expected.classes), name
        assert (header.n, header.m, header.positive, header.dtype) == (N, M, int(y.sum()), "float64"), name
        assert header.classes in (("0", "1"), ("-1", "1"), ("no", "yes"), ('a "b", 0', 'a "b", 1')), name


def test_one_block_and_many_are_written_as_from_an_array(tmp_path: Path, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    (tmp_path / "a.csv").write_bytes(as_csv(X, y))
    np.savez(tmp_path / "a.npz", X=X, y=y)
    for rows in (None, 7, 699, 700, 701):
        marks = [
            ingest(tmp_path / name, tmp_path / f"{name}-{rows}", block_rows=rows, **options).fingerprint
            for name, options in (("a.csv", {"label_column": "class"}), ("a.npz", {}))
        ]
        assert marks[0] == marks[1]
        assert sorted(p.name for p in (tmp_path / f"a.csv-{rows}").rglob("c.*")) == sorted(
            p.name for p in (tmp_path / f"a.npz-{rows}").rglob("c.*")
        )


@pytest.mark.parametrize(
    ("kinds", "dtype"),
    [
        ({"a": pa.int8(), "b": pa.uint16(), "c": pa.bool_()}, "float32"),
        ({"a": pa.float16(), "b": pa.float32(), "c": pa.int16()}, "float32"),
        ({"a": pa.float32(), "b": pa.int32(), "c": pa.int8()}, "float64"),
        ({"a": pa.int64(), "b": pa.uint64(), "c": pa.float64()}, "float64"),
    ],
)
def test_typed_columns_are_cast_exactly(tmp_path: Path, kinds: dict[str, Any], dtype: str) -> None:
    values = {name: [0, 1, 1, 0] if kind == pa.bool_() else [7, 1, 100, 3] for name, kind in kinds.items()}
    columns = {name: pa.array(values[name]).cast(pa.int8()).cast(kind) for name, kind in kinds.items()}
    columns["y"] = pa.array([True, False, True, True])
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    notes: list[str] = []
    header = ingest(tmp_path / "a.parquet", tmp_path / "out", label_column="y", note=notes.append)
    assert (header.dtype, header.classes, header.positive) == (dtype, ("False", "True"), 3)
    assert np.array_equal(stored(tmp_path / "out"), np.array(list(values.values())).T)
    assert len(notes) == 1
    assert notes[0].endswith(f"cast to {dtype}")


def test_an_index_of_pandas_is_left_out(tmp_path: Path) -> None:
    about = {b"pandas": b'{"index_columns": ["__index_level_0__"]}'}
    table = pa.table({"a": [1.0, 2.0], "y": ["u", "v"], "__index_level_0__": ["p", "q"]}).replace_schema_metadata(about)
    notes: list[str] = []
    assert dfeas.ingest(table, tmp_path / "out", label_column="y", note=notes.append).m == 1
    assert notes == ["column __index_level_0__ dropped: an index of pandas"]


@pytest.mark.parametrize(
    ("first", "options", "words"),
    [
        ("a,b,y", {"label_column": "y"}, None),
        ("1,2,y", {"label_column": "y"}, None),  # names that are numbers, but for the label's
        ("1,2,3", {"label_column": "3", "header": True}, None),
        ("a,b,y", {"label_column": "2"}, None),
        ("7,2,0", {"label_column": "2"}, 3),
        ("0,1,2,3", {"label_column": "3"}, "say header or header=False"),
        ("a,2,3,1", {"label_column": "3"}, "say header or header=False"),
        (",a,y", {"label_column": "y"}, "column 0 has no name"),
    ],
)
def test_a_header_is_recognised(tmp_path: Path, first: str, options: dict[str, Any], words: Any) -> None:
    rows = ["5", "6", "7", "8"][: first.count(",")]
    (tmp_path / "a.csv").write_text(f"{first}\n{','.join(rows)},0\n{','.join(rows)},1\n")
    if isinstance(words, str):
        with pytest.raises(DfeasError, check=says(words)):
            ingest(tmp_path / "a.csv", tmp_path / "out", **options)
        assert not (tmp_path / "out").exists()
    else:
        assert ingest(tmp_path / "a.csv", tmp_path / "out", **options).n == (words or 2)


def _csv(change: Callable[[list[str]], Any]) -> Callable[[Path], Path]:
    """A CSV file of 40 points, with some of its lines changed."""

    def make(tmp_path: Path) -> Path:
        text = ["a,b,y", *(f"{i},{i / 8},{i % 2}" for i in range(40))]
        change(text)
        (tmp_path / "a.csv").write_bytes("\n".join(text).encode("latin-1"))
        return tmp_path / "a.csv"

    return make


def _line(number: int, text: str) -> Callable[[Path], Path]:
    return _csv(lambda lines: lines.__setitem__(number - 1, text))


@pytest.mark.parametrize(
    ("make", "words", "code"),
    [
        (_line(17, "1,abc,0"), r"a.csv: line 17, column b: expected a number, got 'abc'", 4),
        (_line(17, "1,,0"), "line 17, column b: the cell is empty", 4),
        (_line(17, "1,2"), "line 17: 2 cells, expected 3", 4),
        (_line(17, "1,2,0,0"), "line 17: 4 cells, expected 3", 4),
        (_line(17, "nan,2,0"), "line 17, column a: 'nan' is not finite", 4),
        (_line(17, "1,-inf,0"), "line 17, column b: '-inf' is not finite", 4),
        (_line(17, "1,1e400,0"), "line 17, column b: '1e400' is too large for float64", 4),
        (_line(17, "0x10,2,0"), "line 17, column a: expected a number", 4),
        (_line(17, "1_0,2,0"), "line 17, column a: expected a number", 4),
        (_line(17, "1,2,"), "line 17, column y: the label is empty", 4),
        (_line(17, "1,2,nan"), "line 17, column y: the label is missing, 'nan'", 4),
        (_line(17, '1,2,"0'), "line 17: .*quote", 4),
        (_line(17, '"1"5,2,0'), "line 17: .*quote", 4),
        (_line(17, "1,2,\xe9"), "line 17: not UTF-8", 4),
        (_line(17, "1e200,2,0"), "norms outside", 4),
        (_csv(lambda lines: lines.__delitem__(slice(1, None))), "no points", 4),
        (_csv(lambda lines: lines.clear()), "the file is empty", 4),
        (_csv(lambda lines: lines.__delitem__(slice(2, None))), "all 1 labels are 0", 4),
        (_csv(lambda lines: lines.__setitem__(slice(None), ["y", "0", "1"])), "one column only", 4),
        (_line(1, "y,b,y"), "2 columns are called y", 4),
        (_line(1, "a,b,z"), "no column y; the columns are a, b, z", 4),
    ],
)
def test_bad_csv_is_refused_with_its_place(tmp_path: Path, make: Callable[[Path], Path], words: str, code: int) -> None:
    src = make(tmp_path)
    with pytest.raises(DfeasError, check=says(words)) as caught:
        ingest(src, tmp_path / "out", label_column="y")
    assert caught.value.exit_code == code
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"1 3:abc", r"a.svm: line 17: index 3: expected a number, got 'abc'"),
        (b"1 3:nan", "line 17: index 3: 'nan' is not finite"),
        (b"1 3:-inf", "line 17: index 3: '-inf' is not finite"),
        (b"1 3:1e400", "line 17: index 3: '1e400' is too large"),
        (b"1 3:0x10", "line 17: index 3: expected a number"),
        (b"1 3:", "line 17: index 3: expected a number, got ''"),
        (b"1 3", "line 17: expected INDEX:VALUE, got '3'"),
        (b"1 1.0:3", "line 17: expected INDEX:VALUE, got '1.0:3'"),
        (b"1 1e0:3", "line 17: expected INDEX:VALUE"),
        (b"1 -1:3", "line 17: expected INDEX:VALUE"),
        (b"1 :3", "line 17: expected INDEX:VALUE"),
        (b"1 1:2:3", "line 17: index 1: expected a number, got '2:3'"),
        (b"1 2:3 1:3", "line 17: index 1 after 2; indices must ascend"),
        (b"1 2:3 2:3", "line 17: index 2 after 2"),
        (b"1 0:3", "line 17: index 0, expected 1 or more; .*zero_based"),
        (b"1 10:1", "line 17: index 10 is beyond the 9 features"),
        (b"1,2 3:1", "line 17: label: expected a number, got '1,2'"),
        (b"nan 3:1", "line 17: label: 'nan' is not finite"),
        (b"+-1 3:1", "line 17: label: expected a number"),
        (b"+e1 3:1", "line 17: label: expected a number"),
        (b"3:1 4:1", "line 17: label: expected a number"),
        (b"1 3:1\x004:1", "line 17: index 3: expected a number"),
    ],
)
def test_bad_svmlight_is_refused_with_its_line(tmp_path: Path, line: bytes, words: str) -> None:
    good = [b"%d 1:%d 9:0.5" % (i % 2, i + 1) for i in range(40)]
    good[16] = line
    (tmp_path / "a.svm").write_bytes(b"\n".join(good) + b"\n")
    with pytest.raises(BadInputError, check=says(words)) as caught:
        ingest(tmp_path / "a.svm", tmp_path / "out", features=9)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_svmlight_that_would_be_too_large_is_refused_with_the_size(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("".join(f"{i % 2} 1:1 30000000:1\n" for i in range(10)))
    for options in ({}, {"features": 30_000_000}):
        with pytest.raises(BadInputError, match=r"10 points of 30000000 features take 2.24 GiB dense, .* times"):
            ingest(tmp_path / "a.svm", tmp_path / "out", sparse=False, **options)
    (tmp_path / "b.svm").write_text("1\n0\n")
    with pytest.raises(BadInputError, match="no features in 2 points"):
        ingest(tmp_path / "b.svm", tmp_path / "out")
    assert ingest(tmp_path / "b.svm", tmp_path / "out", features=3).zero == 2


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([1.0, 2.0, None, 4.0]), "point 2, column b: a value is missing"),
        (pa.array([1.0, 2.0, float("nan"), 4.0]), "point 2 feature b: nan"),
        (pa.array([1.0, float("inf"), 1.0, 4.0]), "point 1 feature b: inf"),
        (pa.array(["1", "2", "3", "4"]), r"these columns hold none: b \(string\)"),
        (pa.array([1, 2, 2**53 + 1, 4]), r"column b: an integer beyond 2\*\*53"),
        (pa.array([[1.0]] * 4), r"these columns hold none: b \(list"),
    ],
)
def test_bad_columns_are_refused_with_their_name(tmp_path: Path, column: Any, words: str) -> None:
    table = pa.table({"a": [1.0, 2.0, 3.0, 4.0], "b": column, "y": [0, 1, 0, 1]})
    pq.write_table(table, tmp_path / "a.parquet")
    for src in (tmp_path / "a.parquet", table):
        with pytest.raises(BadInputError, check=says(words)):
            ingest(src, tmp_path / "out", label_column="y")
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("label", "words"),
    [
        (pa.array([0, 1, None, 1]), "point 2, column y: the label is missing"),
        (pa.array([0.0, 1.0, float("nan"), 1.0]), "label of point 2 is missing or not finite"),
        (pa.array(["u", "v", None, "v"]).dictionary_encode(), "point 2, column y: the label is missing"),
        (pa.array([b"u", b"v", b"u", b"v"]), "labels of type binary"),
        (pa.array([1, 1, 1, 1]), "all 4 labels are 1"),
    ],
)
def test_bad_label_columns_are_refused(tmp_path: Path, label: Any, words: str) -> None:
    with pytest.raises(BadInputError, check=says(words)):
        ingest(pa.table({"a": [1.0, 2.0, 3.0, 4.0], "y": label}), tmp_path / "out", label_column="y")
    assert not (tmp_path / "out").exists()


def test_one_class_of_a_stream_against_the_rest(tmp_path: Path) -> None:
    table = pa.table({"a": np.arange(1.0, 10), "y": ["c", "b", "1.0"] * 3})
    for i, (positive, classes) in enumerate((("b", ("rest", "b")), ("c", ("rest", "c")), ("1", ("rest", "1")))):
        header = dfeas.ingest(table, tmp_path / f"{i}", label_column="y", positive=positive, block_rows=2)
        assert (header.classes, header.positive) == (classes, 3)
    with pytest.raises(BadInputError, match="no point has the label d"):
        dfeas.ingest(table, tmp_path / "out", label_column="y", positive="d")


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet", "frame", "beside"])
def test_a_label_with_zeros_before_its_number_is_a_code(name: str, tmp_path: Path) -> None:
    """01 and 1 are two classes wherever they stand; 1.0 in text is the number 1."""
    frame = pandas.DataFrame({"a": np.arange(8.0), "y": ["01", "1", "02", "1", "01", "02", "007", "-01"]})
    path = tmp_path / name
    if name == "a.parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if name == "a.tsv" else ",")
    header = (
        dfeas.ingest(frame[["a"]], tmp_path / "out", y=frame["y"].to_numpy(str))
        if name == "beside"
        else dfeas.ingest(frame if name == "frame" else path, tmp_path / "out", label_column="y")
    )
    assert header.classes == ("-01", "007", "01", "02", "1")
    assert header.counts == (1, 1, 2, 2, 2)


@pytest.mark.parametrize(("labels", "classes"), [(["1_0", "10"], ("10", "1_0")), (["01", "2"], ("01", "2"))])
def test_text_that_only_python_reads_as_a_number_is_a_class_of_its_own(
    labels: list[str], classes: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("a,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate(3 * labels)))
    assert dfeas.ingest(tmp_path / "a.csv", tmp_path / "out", label_column="y").classes == classes
    (tmp_path / "b.csv").write_text("a,y\n1,1\n2,10\n")
    with pytest.raises(BadInputError, match=f"no point has the label {labels[0]}"):
        dfeas.ingest(tmp_path / "b.csv", tmp_path / "other", label_column="y", positive=labels[0])


def test_keys_in_names_of_folders_are_said_not_to_be_read(tmp_path: Path) -> None:
    for year in (2020, 2021):
        (tmp_path / "sales" / f"year={year}" / "month=1").mkdir(parents=True)
        table = pa.table({"a": [1.0, 2.0], "y": [0, 1]})
        pq.write_table(table, tmp_path / "sales" / f"year={year}" / "month=1" / "part=0.parquet")
    notes: list[str] = []
    header = ingest(tmp_path / "sales", tmp_path / "out", label_column="y", note=notes.append)
    assert (header.n, header.features) == (4, ("a",))
    assert notes == ["not read, as they stand in names of folders only: year, month"]


def test_parquet_files_of_a_folder_have_the_same_columns(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    pq.write_table(pa.table({"a": [1.0], "y": [0]}), tmp_path / "parts" / "0.parquet")
    pq.write_table(pa.table({"b": [1.0], "y": [1]}), tmp_path / "parts" / "1.parquet")
    with pytest.raises(BadInputError, match=r"1.parquet: other columns than 0.parquet \(a, b\)"):
        ingest(tmp_path / "parts", tmp_path / "out", label_column="y")


def test_truncated_files_are_corrupt_and_leave_nothing(tmp_path: Path, data: tuple[np.ndarray, np.ndarray]) -> None:
    for name, (path, options) in written(tmp_path, *data).items():
        if isinstance(path, Path) and path.suffix in (".gz", ".bz2", ".parquet", ".h5ad"):
            short = tmp_path / f"short-{path.name}"
            for share in (0.1, 0.6, 0.97):
                short.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
                with pytest.raises(CorruptDataError, match=r"truncated|damaged"):
                    ingest(short, tmp_path / "out", block_rows=64, **options)
                assert not (tmp_path / "out").exists(), name


def test_h5ad_that_cannot_be_used_is_refused(tmp_path: Path, data: tuple[np.ndarray, np.ndarray]) -> None:
    path = as_h5ad(tmp_path / "a.h5ad", *data)
    for options, words in (
        ({"label_column": "none"}, "no column none in obs; it has kind, number, text"),
        ({}, "label_column"),
    ):
        with pytest.raises(DfeasError, check=says(words)):
            ingest(path, tmp_path / "out", **options)
    with h5py.File(path, "a") as file:
        file["obs/kind/codes"][7] = -1
        del file["X"]
        file.create_group("X").attrs["encoding-type"] = "csr_matrix"
        file.create_dataset("dense", data=data[0])
    with pytest.raises(BadInputError, match="label of point 7 is missing"):
        ingest(path, tmp_path / "out", points="dense", label_column="kind")
    with pytest.raises(CorruptDataError, match="a part of the sparse matrix is missing"):
        ingest(path, tmp_path / "out", label_column="kind")
    assert not (tmp_path / "out").exists()


def test_zarr2_that_could_run_code_or_lost_chunks_is_refused(tmp_path: Path, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    np.save(tmp_path / "y.npy", y)
    about = '"zarr_format": 2, "shape": [2, 2], "chunks": [2, 2], "order": "C", "fill_value": 0'
    bad = {
        '"dtype": "|O", "compressor": null, "filters": [{"id": "pickle"}]': "run code",
        '"dtype": "<f8", "compressor": {"id": "pickle"}, "filters": null': "run code",
        '"dtype": "<f8", "compressor": null, "filters": [{"id": "of tomorrow"}]': "metadata cannot be read",
        '"dtype": "<f8"': "not a readable JSON file: compressor is missing",
        '"dtype": "<f8", "compressor": null, "filters": null': "1 of 1 chunks are missing",
    }
    for i, (more, words) in enumerate(bad.items()):
        (tmp_path / f"{i}").mkdir()
        (tmp_path / f"{i}" / ".zarray").write_text(f"{{{about}, {more}}}")
        with pytest.raises(DfeasError, check=says(words)):
            ingest(tmp_path / f"{i}", tmp_path / "out", y=str(tmp_path / "y.npy"))
    zarr.create_array(tmp_path / "z", data=X, chunks=(100, M), zarr_format=2)
    chunk = tmp_path / "z" / "3.0"
    chunk.write_bytes(chunk.read_bytes()[:-20])
    with pytest.raises(CorruptDataError, match="damaged from row"):
        ingest(tmp_path / "z", tmp_path / "out", y=str(tmp_path / "y.npy"), block_rows=50)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("a.csv", {}, r"say which column holds the labels with --label-column NAME; the columns are f0, f1"),
        ("a.csv", {"label_column": "class", "y": "y"}, "--labels and --label-column: give one of them"),
        ("a.svm", {"y": "y"}, "--labels y: svmlight has its labels beside the points"),
        ("a.npz", {"dtype": "float32"}, "--dtype is for csv and tsv and parquet and frame and svmlight; this is arrays"),
        ("a.csv", {"label_column": "class", "features": 3}, "--features is for svmlight; this is csv"),
        ("a.csv", {"label_column": "class", "format": "json"}, "format json; expected csv"),
        ("a.svm", {"header": True}, "--header is for csv and tsv"),
        ("a.svm", {"label_column": "0"}, "--label-column"),
        ("a.svm", {"features": 0}, "--features 0: expected at least 1"),
        ("a.npz", {"zero_based": True}, "--zero-based is for svmlight; this is arrays"),
        ("a.npz", {"label_column": "y"}, "--label-column is for tables"),
    ],
)
def test_options_that_do_not_apply_are_refused(
    tmp_path: Path, data: tuple[np.ndarray, np.ndarray], name: str, options: dict[str, Any], words: str
) -> None:
    (tmp_path / "a.csv").write_bytes(as_csv(*data))
    (tmp_path / "a.svm").write_bytes(as_svmlight(*data))
    np.savez(tmp_path / "a.npz", X=data[0], y=data[1])
    with pytest.raises(UsageError, check=says(words)):
        ingest(tmp_path / name, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_labels_may_lie_elsewhere_and_numbers_be_rounded(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((3000, 3)), np.where(rng.random(3000) < 0.5, "in", "out")
    np.save(tmp_path / "y.npy", y)
    table = pa.table([*X.T], names=["a", "b", "c"])
    pq.write_table(table, tmp_path / "a.parquet")
    pa.csv.write_csv(table, tmp_path / "a.csv")
    (tmp_path / "bare.csv").write_bytes((tmp_path / "a.csv").read_bytes().partition(b"\n")[2])
    narrow = ingest(X.astype(np.float32), tmp_path / "expected", y=y)
    for index, name in enumerate(("a.csv", "bare.csv", "a.parquet", table)):
        src = tmp_path / name if isinstance(name, str) else name
        notes: list[str] = []
        found = ingest(src, tmp_path / f"{index}", y=str(tmp_path / "y.npy"), dtype="float32", note=notes.append)
        assert found.fingerprint == narrow.fingerprint
        assert found.classes == ("in", "out")
        assert "rounded to float32, as asked" in notes
    for count in (2999, 3001):
        np.save(tmp_path / "y.npy", np.resize(y, count))
        with pytest.raises(BadInputError, match=f"a.csv: {count} labels for 3000( or more)? points; give one a point"):
            ingest(tmp_path / "a.csv", tmp_path / "out", y=str(tmp_path / "y.npy"))
        assert not (tmp_path / "out").exists()
    (tmp_path / "a.svm").write_text("1 1:1e300\n2 1:2\n")
    with pytest.raises(BadInputError, match=r"point 0: 1e\+300 is too large for float32; store float64"):
        ingest(tmp_path / "a.svm", tmp_path / "out", dtype="float32")


def test_arrays_of_python_are_ingested_as_files_are(tmp_path: Path, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    np.savez(tmp_path / "a.npz", X=X, y=y)
    expected = ingest(tmp_path / "a.npz", tmp_path / "expected", block_rows=64).fingerprint
    lazy = dask.array.from_array(X, chunks=(50, 2))
    for index, (points, labels) in enumerate(
        [(X, y), (X[:, ::-1][:, ::-1], y.tolist()), (lazy, dask.array.from_array(y, chunks=77))]
    ):
        assert ingest(points, tmp_path / f"{index}", y=labels, block_rows=64).fingerprint == expected
    with pytest.raises(BadInputError, match="expected 231 labels"):
        ingest(lazy[lazy[:, 0] > 0], tmp_path / "out", y=y)
    with pytest.raises(UsageError, match="give labels, an array or a path"):
        ingest(X, tmp_path / "out")


def test_data_frames_of_dask_are_read_by_partitions(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 3)).astype(np.float32), np.where(np.arange(300) % 3, "in", "out")
    X[:, 0] = np.where(y == "out", 1, -1)
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": y, "c": X[:, 2]})
    lazy = dask.dataframe.from_pandas(frame, npartitions=4)
    plain = ingest(X, tmp_path / "expected", y=y, block_rows=64)
    expected = replace(plain, format=2, features=("a", "b", "c"))
    for index, each in enumerate((frame, lazy[lazy["b"] > -99])):
        assert ingest(each, tmp_path / f"{index}", label_column="kind", block_rows=64) == expected
        solved = dfeas.solve(each, "kind")
        assert (solved.verdict, solved.n) == ("feasible", 300)
        assert solved.margin_lower == dfeas.solve(X, y).margin_lower
        with pytest.raises(BadInputError, match=r"no numbers in kind .*; leave them out with .*, code them by numbers"):
            dfeas.solve(each, y)
        with pytest.raises(BadInputError, match="no column x; the columns are a, b, kind, c"):
            ingest(each, tmp_path / "out", label_column="x")
    frame.loc[250, "b"] = np.nan
    with pytest.raises(BadInputError, match="point 250, column b: a value is missing"):
        ingest(dask.dataframe.from_pandas(frame, npartitions=4), tmp_path / "out", label_column="kind")
    assert not (tmp_path / "out").exists()


def test_a_damaged_chunk_of_zarr_3_is_corrupt_and_leaves_nothing(tmp_path: Path, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    np.save(tmp_path / "y.npy", y)
    for name, options in {"zstd": {}, "crc": {"compressors": zarr.codecs.Crc32cCodec()}}.items():
        zarr.create_array(tmp_path / name, data=X, chunks=(64, X.shape[1]), **options)
        chunk = tmp_path / name / "c" / "2" / "0"
        whole = chunk.read_bytes()
        for content in (whole[: len(whole) // 2], whole[:9] + bytes([whole[9] ^ 16]) + whole[10:], b"", None):
            chunk.unlink(missing_ok=True)
            if content is not None:
                chunk.write_bytes(content)
            with pytest.raises(CorruptDataError, match=r"damaged from row|chunks are missing"):
                ingest(tmp_path / name, tmp_path / "out", y=str(tmp_path / "y.npy"), block_rows=64)
            assert not (tmp_path / "out").exists()


def test_other_objects_and_unknown_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a source of type list"):
        ingest([[1.0]], tmp_path / "out")
    (tmp_path / "a.txt").write_text("1 1:1\n")
    with pytest.raises(BadInputError, match=r"a.txt: unknown format"):
        ingest(tmp_path / "a.txt", tmp_path / "out")


def test_without_pyarrow_svmlight_is_read_and_tables_say_what_to_install(
    tmp_path: Path, data: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = written(tmp_path, *data)
    expected = ingest(*sources["a.svm"][:1], tmp_path / "fast").fingerprint
    for module in ("dfeas.data.ingest.csv_file", "dfeas.data.ingest.tables"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    for module in ("pyarrow", "pyarrow.csv", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(numerals, "pyarrow", None)
    assert ingest(tmp_path / "a.svm", tmp_path / "slow").fingerprint == expected
    for name in ("a.csv", "parquet"):
        src, options = sources[name]
        with pytest.raises(UsageError, match=r'pip install "pyarrow>=18"'):
            ingest(src, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_the_command_line_does_not_import_pyarrow() -> None:
    code = "import sys, dfeas, dfeas.cli.main; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


SVMLIGHT = b"+1 1:0.5 3:-2e-3\n-1 2:1.25 # note\n+1 qid:3 1:7 2:8 3:9\r\n-1 3:1e2 \n"
CSV = b'a,b,y\n0.5,-2e-3,u\n1.25,7,"v"\r\n8,9,u\n'
TOKENS = [
    b"nan",
    b"inf",
    b"1e400",
    b"1e-400",
    b"0x1",
    b"1_0",
    b"\0",
    b"\r",
    b"\n",
    b" ",
    b"\t",
    b":",
    b",",
    b'"',
    b"#",
    b"+",
    b"-",
]
TOKENS += [
    b"e",
    b".",
    b"0",
    b"9",
    b"\xff",
    b"1:",
    b":1",
    b"\n\n",
    b"qid:",
    b"00",
    b"e2",
    b"\x0b",
    b"\x01",
    b"1e308",
    b"\xc2\xb2",
]


def mutated(content: bytes) -> st.SearchStrategy[bytes]:
    """Some pieces of a text are cut out or replaced by tokens that mean something."""
    edit = st.tuples(st.integers(0, len(content)), st.integers(0, 3), st.sampled_from(TOKENS) | st.binary(max_size=3))

    def apply(edits: list[tuple[int, int, bytes]]) -> bytes:
        text = content
        for place, size, token in sorted(edits, reverse=True):
            text = text[:place] + token + text[place + size :]
        return text

    return st.lists(edit, min_size=1, max_size=4).map(apply)


def outcome(action: Callable[[], Any]) -> tuple[Any, DfeasError | None]:
    """What an action returned, or how it was refused."""
    try:
        return action(), None
    except DfeasError as error:
        return None, error


@settings(max_examples=800)
@given(mutated(SVMLIGHT), st.booleans())
@example(b"1 1e2:3\n", False)
@example(b"1 1.5e4:3\n", False)
@example(b"1 -0:3\n", True)
@example(b"+-1 1:3\n", False)
@example(b"+e1 1:3\n", False)
@example(b"+ 1:3\n", False)
@example(b"+. 1:3\n", False)
def test_svmlight_at_once_and_line_by_line_are_the_same(text: bytes, zero_based: bool) -> None:
    found = svmlight._parse_run(text, 200, 0 if zero_based else 1)
    reader = Svmlight.__new__(Svmlight)
    reader.where, reader.m, reader._base, reader._given = "here", 200, 0 if zero_based else 1, True
    expected, error = outcome(lambda: reader._parse_lines(lines.Lines(1, text)))
    if error is not None:
        assert found is None, text
        assert str(error).startswith("here: line ")
        return
    assert np.isfinite(expected.values).all()
    assert np.isfinite(expected.labels).all()
    assert np.array_equal(expected.sparse(200).toarray(), expected.dense(200))
    if found is not None:
        assert found.labels.tolist() == expected.labels.tolist()
        assert np.array_equal(found.dense(200), expected.dense(200))


@settings(max_examples=800)
@given(mutated(CSV.partition(b"\n")[2]))
@example(b'1,2,"u\n3,4,v"\n')
@example(b'"1"5,2,u\n')
@example(b"1,2,\n")
@example(b"1,2,\0\n")
@example(b"\xef\xbb\xbf0.5,-2e-3,u\n")
def test_csv_at_once_and_line_by_line_are_the_same(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.csv"
    path.write_bytes(CSV)
    options = IngestOptions(label_column="y")
    reader = CsvPoints(CsvLines(path, "csv", options), options)
    found = reader._parse_run(text)
    expected, error = outcome(lambda: reader._parse_lines(lines.Lines(1, text)))
    if error is not None:
        assert found is None, text
        assert "fuzzed.csv: line " in str(error)
        return
    assert np.isfinite(expected.points).all()
    if found is not None:
        assert np.array_equal(found.points, expected.points)
        labels = [[batch.labels.values[code] for code in batch.labels.codes] for batch in (found, expected)]
        assert labels[0] == labels[1]


FUZZED = [
    ("a.svm", SVMLIGHT, {}),
    ("a.svm", SVMLIGHT, {"features": 4}),
    ("a.svm", SVMLIGHT, {"zero_based": True}),
    ("a.csv", CSV, {"label_column": "y"}),
    ("a.csv", CSV, {"label_column": "0", "header": False}),
    ("a.tsv", CSV.replace(b",", b"\t"), {"label_column": "y", "positive": "u"}),
]


@settings(max_examples=140)
@given(st.data())
def test_mutated_files_are_ingested_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    name, content, options = data.draw(st.sampled_from(FUZZED))
    packed = data.draw(st.sampled_from(["", "", ".gz", ".bz2"] if name == "a.svm" else ["", "", ".gz"]))
    pack = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}[packed]
    damaged = packed and data.draw(st.booleans())  # after it was packed
    content = data.draw(mutated(pack(content))) if damaged else pack(data.draw(mutated(content)))
    (folder / f"{name}{packed}").write_bytes(content)
    _, error = outcome(lambda: ingest(folder / f"{name}{packed}", folder / "out", **options))
    if error is None:
        assert np.isfinite(stored(folder / "out")).all()
    else:
        assert error.exit_code in ((2, 4, 5) if damaged else (2, 4))
        assert "\n" not in str(error)
        assert not (folder / "out").exists()


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from dfeas import ingest\n"
        "ingest(sys.argv[1], sys.argv[2], label_column='y')\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))\n"
    )
    rng = np.random.default_rng(0)
    values = rng.standard_normal((2000, 50)).astype(np.float32)
    row = b"".join(b",".join(b"%.6g" % v for v in x) + b",%d\n" % (i % 2) for i, x in enumerate(values))
    head = ",".join([*(f"f{i}" for i in range(50)), "y"]).encode() + b"\n"
    part = pa.table({**{f"f{i}": values[:, i] for i in range(50)}, "y": np.arange(2000) % 2})
    peaks: dict[str, list[int]] = {"csv": [], "parquet": []}
    for size in (1, 4):
        (tmp_path / f"{size}.csv").write_bytes(head + row * 20 * size)
        with pq.ParquetWriter(tmp_path / f"{size}.parquet", part.schema) as target:
            for _ in range(6 * size):
                target.write_table(pa.concat_tables([part] * 20))
        for kind, found in peaks.items():
            run = [sys.executable, "-c", code, str(tmp_path / f"{size}.{kind}"), str(tmp_path / f"out-{size}-{kind}")]
            found.append(int(subprocess.run(run, check=True, capture_output=True, text=True).stdout))
    for kind, most in (("csv", 40_000), ("parquet", 80_000)):  # kB; the larger ones have 55 MB more of text, 144 MB in float32
        few, many = peaks[kind]
        assert many - few < most, kind


@pytest.mark.parametrize("name", ["a.csv", "a.svm", "a.parquet"])
def test_tables_are_read_without_pandas(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,y\n1,2,0\n-1,0.5,1\n")
    (tmp_path / "a.svm").write_text("0 1:1 2:2\n1 1:-1 2:0.5\n")
    pq.write_table(pa.table({"a": [1.0, -1.0], "b": [2.0, 0.5], "y": [0, 1]}), tmp_path / "a.parquet")
    given = {} if name == "a.svm" else {"label_column": "y"}
    code = f"""
import sys, dfeas
dfeas.ingest({str(tmp_path / name)!r}, {str(tmp_path / "out")!r}, **{given!r})
sys.exit("pandas" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("whole", [2**53 + 1, -(2**53) - 1, 10**17 + 1, 2**63 + 1])
@pytest.mark.parametrize("name", ["a.csv", "a.svm"])
def test_an_integer_that_float64_does_not_have_is_refused_in_text(tmp_path: Path, name: str, whole: int) -> None:
    lines = {"a.csv": "x,y,class\n1,2,0\n{},2,1\n", "a.svm": "0 1:1 2:2\n1 1:{} 2:2\n"}[name]
    options = {"label_column": "class"} if name == "a.csv" else {}
    (tmp_path / name).write_text(lines.format(whole))
    with pytest.raises(BadInputError, match=rf"line \d.*: an integer beyond 2\*\*53 has no exact float64: {whole}"):
        ingest(tmp_path / name, tmp_path / "data", **options)
    assert not (tmp_path / "data").exists()
    for fine in (2**53, 2**70, f"{float(whole)!r}", "1e100"):
        (tmp_path / name).write_text(lines.format(fine))
        ingest(tmp_path / name, tmp_path / f"fine-{fine}", **options)
        assert float(fine) in stored(tmp_path / f"fine-{fine}")
