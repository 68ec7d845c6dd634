"""Sources that cannot be read: one line with the place of what is wrong, and no output; and what is left out is said."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array
import dask.dataframe
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

import dfeas
from dfeas.data.storage.features import MOST_BYTES
from dfeas.errors import BadInputError, CorruptDataError, DfeasError, UsageError
from tests.data.making import NAMES, TEXT, as_h5ad, as_hdf5, frame_of, points_of
from tests.typed import says

Make = Callable[[Path], Any]
"""Makes a source in a folder."""
Row = tuple[Make, dict[str, Any], type[DfeasError], str]
NAMED = {"label_column": "y"}


def csv(change: Callable[[list[str]], Any]) -> Make:
    """A CSV file of 40 points, with some of its lines changed."""

    def make(folder: Path) -> Path:
        text = ["a,b,y", *(f"{i},{i / 8},{i % 2}" for i in range(40))]
        change(text)
        (folder / "a.csv").write_bytes("\n".join(text).encode("latin-1"))
        return folder / "a.csv"

    return make


def cells(text: str, line: int = 17) -> Make:
    return csv(lambda lines: lines.__setitem__(line - 1, text))


def svmlight(line: bytes) -> Make:
    """40 points of 9 features, of which line 17 is another one."""

    def make(folder: Path) -> Path:
        good = [b"%d 1:%d 9:0.5" % (i % 2, i + 1) for i in range(40)]
        good[16] = line
        (folder / "a.svm").write_bytes(b"\n".join(good) + b"\n")
        return folder / "a.svm"

    return make


def text(name: str, content: str) -> Make:
    def make(folder: Path) -> Path:
        (folder / name).write_text(content)
        return folder / name

    return make


def table(**columns: Any) -> Make:
    return lambda folder: pa.table({"a": [1.0, 2.0, 3.0, 4.0], "y": [0, 1, 0, 1], **columns})


def parquet(**columns: Any) -> Make:
    def make(folder: Path) -> Path:
        pq.write_table(table(**columns)(folder), folder / "a.parquet")
        return folder / "a.parquet"

    return make


def folder_of(*tables: pa.Table) -> Make:
    def make(folder: Path) -> Path:
        (folder / "parts").mkdir()
        for place, each in enumerate(tables):
            pq.write_table(each, folder / "parts" / f"{place}.parquet")
        return folder / "parts"

    return make


X, Y = np.random.default_rng(3).standard_normal((700, 9)).astype(np.float32), np.where(np.arange(700) % 3, "no", "yes")


def npz(change: Callable[[Any, Any], Any] = lambda X, y: (X, y)) -> Make:
    def make(folder: Path) -> Path:
        points, labels = change(X, Y)
        np.savez(folder / "a.npz", X=points, y=labels)
        return folder / "a.npz"

    return make


def h5ad(change: Callable[[Any], Any] = lambda file: None) -> Make:
    def make(folder: Path) -> Path:
        path = as_h5ad(frame_of(TEXT), folder / "a.h5ad")
        with h5py.File(path, "a") as file:
            change(file)
        return path

    return make


def without_parts(file: Any) -> None:
    del file["X"]
    file.create_group("X").attrs["encoding-type"] = "csr_matrix"


def zarr2(codecs: str) -> Make:
    def make(folder: Path) -> Path:
        (folder / "z").mkdir()
        about = f'"zarr_format": 2, "shape": [2, 2], "chunks": [2, 2], "order": "C", "fill_value": 0, {codecs}'
        (folder / "z" / ".zarray").write_text(f"{{{about}}}")
        return folder / "z"

    return make


def short_chunk(kind: int, name: str) -> Make:
    def make(folder: Path) -> Path:
        zarr.create_array(folder / "z", data=X, chunks=(64, 9), zarr_format=kind)
        chunk = folder / "z" / name
        chunk.write_bytes(chunk.read_bytes()[:-20])
        return folder / "z"

    return make


def lazy(folder: Path) -> Any:
    made = dask.array.from_array(np.arange(100.0).reshape(50, 2), chunks=(20, 2))
    return made[made[:, 0] > 8]


def gap(folder: Path) -> Any:
    frame = pd.DataFrame({"a": np.arange(300.0), "b": np.where(np.arange(300) == 250, np.nan, 1.0), "y": np.arange(300) % 2})
    return dask.dataframe.from_pandas(frame, npartitions=4)


SVM9, WIDE = {"features": 9}, text("a.svm", "".join(f"{i % 2} 1:1 30000000:1\n" for i in range(10)))
CSV: list[Row] = [
    (cells(line), NAMED, BadInputError, words)
    for line, words in (
        ("1,abc,0", r"a.csv: line 17, column b: expected a number, got 'abc'"),
        ("1,,0", "line 17, column b: the cell is empty"),
        ("1,2", "line 17: 2 cells, expected 3"),
        ("1,2,0,0", "line 17: 4 cells, expected 3"),
        ("nan,2,0", "line 17, column a: 'nan' is not finite"),
        ("1,-inf,0", "line 17, column b: '-inf' is not finite"),
        ("1,1e400,0", "line 17, column b: '1e400' is too large for float64"),
        ("0x10,2,0", "line 17, column a: expected a number"),
        ("1_0,2,0", "line 17, column a: expected a number"),
        (f"{2**53 + 1},2,0", rf"line 17.*: an integer beyond 2\*\*53 has no exact float64: {2**53 + 1}"),
        (f"{-(2**53) - 1},2,0", r"line 17.*: an integer beyond 2\*\*53"),
        ("1,2,", "line 17, column y: the label is empty"),
        ("1,2,nan", "line 17, column y: the label is missing, 'nan'"),
        ('1,2,"0', "line 17: .*quote"),
        ('"1"5,2,0', "line 17: .*quote"),
        ("1,2,\xe9", "line 17: not UTF-8"),
        ("1e200,2,0", "norms outside"),
    )
]
CSV += [
    (csv(lambda lines: lines.__delitem__(slice(1, None))), NAMED, BadInputError, "no points"),
    (csv(lambda lines: lines.clear()), NAMED, BadInputError, "the file is empty"),
    (csv(lambda lines: lines.__delitem__(slice(2, None))), NAMED, BadInputError, "all 1 labels are 0"),
    (csv(lambda lines: lines.__setitem__(slice(None), ["y", "0", "1"])), NAMED, BadInputError, "one column only"),
    (cells("y,b,y", 1), NAMED, BadInputError, "2 columns are called y"),
    (cells("a,b,z", 1), NAMED, BadInputError, "no column y; the columns are a, b, z"),
    (text("a.csv", "0,1,2,3\n5,6,7,0\n5,6,7,1\n"), {"label_column": "3"}, DfeasError, "say header or header=False"),
    (text("a.csv", "a,2,3,1\n5,6,7,0\n5,6,7,1\n"), {"label_column": "3"}, DfeasError, "say header or header=False"),
    (text("a.csv", "a,,y\n5,6,0\n5,6,1\n"), NAMED, BadInputError, "column 1 has no name"),
    (text("a.csv", "a,y\n1,1\n2,10\n"), {**NAMED, "positive": "1_0"}, BadInputError, "no point has the label 1_0"),
    (
        csv(lambda lines: lines),
        {},
        UsageError,
        "say which column holds the labels with --label-column NAME; the columns are a",
    ),
    (csv(lambda lines: lines), {**NAMED, "y": "y"}, UsageError, "--labels and --label-column: give one of them"),
    (csv(lambda lines: lines), {**NAMED, "features": 3}, UsageError, "--features is for svmlight; this is csv"),
    (csv(lambda lines: lines), {**NAMED, "format": "json"}, UsageError, "format json; expected csv"),
    (csv(lambda lines: lines), {**NAMED, "sparse": True}, UsageError, "sparse is for svmlight and arrays; this is csv"),
]
SVMLIGHT: list[Row] = [
    (svmlight(line), SVM9, BadInputError, words)
    for line, words in (
        (b"1 3:abc", r"a.svm: line 17: index 3: expected a number, got 'abc'"),
        (b"1 3:nan", "line 17: index 3: 'nan' is not finite"),
        (b"1 3:-inf", "line 17: index 3: '-inf' is not finite"),
        (b"1 3:1e400", "line 17: index 3: '1e400' is too large"),
        (b"1 3:0x10", "line 17: index 3: expected a number"),
        (b"1 3:%d" % (2**63 + 1), rf"line 17.*: an integer beyond 2\*\*53 has no exact float64: {2**63 + 1}"),
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
    )
]
SVMLIGHT += [
    (WIDE, {"sparse": False}, BadInputError, r"10 points of 30000000 features take 2.24 GiB dense, .* times"),
    (WIDE, {"sparse": False, "features": 30_000_000}, BadInputError, r"10 points of 30000000 features take 2.24 GiB dense"),
    (text("b.svm", "1\n0\n"), {}, BadInputError, "no features in 2 points"),
    (text("a.svm", "1 1:1e300\n2 1:2\n"), {"dtype": "float32"}, BadInputError, r"point 0: 1e\+300 is too large for float32"),
    (svmlight(b"1"), {"y": "y"}, UsageError, "--labels y: svmlight has its labels beside the points"),
    (svmlight(b"1"), {"header": True}, UsageError, "--header is for csv and tsv"),
    (svmlight(b"1"), {"label_column": "0"}, UsageError, "--label-column"),
    (svmlight(b"1"), {"features": 0}, UsageError, "--features 0: expected at least 1"),
]
TABLES: list[Row] = [
    (make(**column), NAMED, error, words)
    for make in (table, parquet)
    for column, error, words in (
        ({"b": pa.array([1.0, 2.0, None, 4.0])}, BadInputError, "point 2, column b: a value is missing"),
        ({"b": pa.array([1.0, 2.0, float("nan"), 4.0])}, BadInputError, "point 2 feature b: nan"),
        ({"b": pa.array([1.0, float("inf"), 1.0, 4.0])}, BadInputError, "point 1 feature b: inf"),
        ({"b": pa.array(["1", "2", "3", "4"])}, BadInputError, r"these columns hold none: b \(string\)"),
        ({"b": pa.array([1, 2, 2**53 + 1, 4])}, BadInputError, r"column b: an integer beyond 2\*\*53"),
        ({"b": pa.array([[1.0]] * 4)}, BadInputError, r"these columns hold none: b \(list"),
        ({"y": pa.array([0, 1, None, 1])}, BadInputError, "point 2, column y: the label is missing"),
        ({"y": pa.array([0.0, 1.0, float("nan"), 1.0])}, BadInputError, "label of point 2 is missing or not finite"),
        ({"y": pa.array(["u", "v", None, "v"]).dictionary_encode()}, BadInputError, "point 2, column y: the label is missing"),
        ({"y": pa.array([b"u", b"v", b"u", b"v"])}, BadInputError, "labels of type binary"),
        ({"y": pa.array([1, 1, 1, 1])}, BadInputError, "all 4 labels are 1"),
    )
]
TABLES += [
    (table(y=["c", "b", "1.0", "b"]), {**NAMED, "positive": "d"}, BadInputError, "no point has the label d"),
    (table(), {**NAMED, "dtype": "int8"}, UsageError, "dtype int8: expected float32 or float64"),
    (table(), {**NAMED, "block_rows": 0}, UsageError, "block_rows=0: expected at least 1"),
    (table(), {**NAMED, "sparse": True}, UsageError, "--sparse is for svmlight and arrays; this is frame"),
    (table(), {**NAMED, "sparse": False}, UsageError, "--dense is for svmlight and arrays; this is frame"),
    (table(), {"y": [0, 1]}, BadInputError, "2 labels for 4 or more points; give one a point"),
    (table(), {"label_column": "x"}, BadInputError, "no column x; the columns are a, y"),
    (gap, NAMED, BadInputError, "point 250, column b: a value is missing"),
    (
        folder_of(pa.table({"a": [1.0], "y": [0]}), pa.table({"b": [1.0], "y": [1]})), NAMED, BadInputError,
        r"1.parquet: other columns than 0.parquet \(a, b\)",
    ),
]  # fmt: skip
ARRAYS: list[Row] = [
    (npz(lambda X, y: (X, y[:-1])), {}, BadInputError, "expected 700 labels"),
    (npz(lambda X, y: (X, np.full(700, 5))), {}, BadInputError, "all 700 labels are 5"),
    (npz(lambda X, y: (X, np.where(np.arange(700) == 9, np.nan, 1.0))), {}, BadInputError, "label of point 9 is not a finite"),
    (npz(lambda X, y: (X[:, 0], y)), {}, BadInputError, "expected points as an array"),
    (npz(lambda X, y: (X[:0], y[:0])), {}, BadInputError, "no points"),
    (npz(lambda X, y: (X[:, :0], y)), {}, BadInputError, "features"),
    (npz(lambda X, y: (X.astype(complex), y)), {}, BadInputError, "cannot be used"),
    (npz(lambda X, y: (np.where(np.arange(9) == 4, np.nan, X), y)), {}, BadInputError, "point 0 feature 4: nan"),
    (npz(lambda X, y: (np.where(np.arange(700)[:, None] == 650, np.inf, X), y)), {}, BadInputError, "point 650 feature 0: inf"),
    (npz(lambda X, y: (X.astype(float) * 1e-170, y)), {}, BadInputError, "norms outside 1e-130"),
    (npz(), {"positive": "5"}, BadInputError, "no point has the label 5"),
    (npz(), {"dtype": "float32"}, UsageError, "--dtype is for csv and tsv and parquet and frame and svmlight; this is arrays"),
    (npz(), {"zero_based": True}, UsageError, "--zero-based is for svmlight; this is arrays"),
    (npz(), NAMED, UsageError, "--label-column is for tables"),
    (npz(), {"block_rows": -1}, UsageError, "block_rows"),
    (lambda folder: [[1.0]], {}, UsageError, "a source of type list"),
    (lambda folder: X, {}, UsageError, "give labels, an array or a path"),
    (lazy, {"y": np.arange(50) % 2}, BadInputError, "expected 45 labels"),
    (text("a.txt", "1 1:1\n"), {}, BadInputError, "a.txt: unknown format"),
    (h5ad(), {"label_column": "none"}, DfeasError, "no column none in obs; it has class, kind, number"),
    (h5ad(), {}, DfeasError, "label_column"),
    (h5ad(lambda file: file["obs/kind/codes"].__setitem__(7, -1)), {"label_column": "kind"}, BadInputError,
     "label of point 7 is missing"),
    (h5ad(without_parts), {"label_column": "kind"}, CorruptDataError, "a part of the sparse matrix is missing"),
    *((zarr2(codecs), {"y": np.arange(2)}, DfeasError, words) for codecs, words in (
        ('"dtype": "|O", "compressor": null, "filters": [{"id": "pickle"}]', "run code"),
        ('"dtype": "<f8", "compressor": {"id": "pickle"}, "filters": null', "run code"),
        ('"dtype": "<f8", "compressor": null, "filters": [{"id": "of tomorrow"}]', "metadata cannot be read"),
        ('"dtype": "<f8"', "not a readable JSON file: compressor is missing"),
        ('"dtype": "<f8", "compressor": null, "filters": null', "1 of 1 chunks are missing"),
    )),
    (short_chunk(2, "3.0"), {"y": Y, "block_rows": 50}, CorruptDataError, "damaged from row"),
    (short_chunk(3, "c/2/0"), {"y": Y, "block_rows": 64}, CorruptDataError, "damaged from row"),
]  # fmt: skip
REFUSED = [*CSV, *SVMLIGHT, *TABLES, *ARRAYS]


@pytest.mark.parametrize(("make", "options", "error", "words"), REFUSED, ids=[words[-40:] for *_, words in REFUSED])
def test_what_cannot_be_read_is_one_line_and_leaves_nothing(
    make: Make, options: dict[str, Any], error: type[DfeasError], words: str, tmp_path: Path
) -> None:
    given = make(tmp_path)
    with pytest.raises(error, check=says(words)) as caught:
        dfeas.ingest(given, tmp_path / "data", **options)
    assert caught.value.exit_code == {UsageError: 2, BadInputError: 4, CorruptDataError: 5}.get(error, caught.value.exit_code)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "data").exists()


def attribute(value: Any) -> Make:
    def make(folder: Path) -> Path:
        path = as_hdf5(frame_of((0, 1)), folder / "a.h5")
        with h5py.File(path, "a") as file:
            del file["X"].attrs["feature_names"]
            file["X"].attrs["features"] = value
        return path

    return make


def pickled(folder: Path) -> Path:
    frame = frame_of((0, 1))
    np.savez(folder / "a.npz", X=points_of(frame), y=frame["class"], feature_names=np.array(NAMES, object))
    return folder / "a.npz"


def linked(folder: Path) -> Path:
    """Names in another file."""
    path = h5ad(lambda file: file["var"].__delitem__("_index"))(folder)
    shutil.copy(path, folder / "other.h5ad")
    with h5py.File(path, "a") as file:
        file["var"]["_index"] = h5py.ExternalLink("other.h5ad", "/var/_index")
    return path


def keyed(folder: Path) -> Path:
    for year in (2020, 2021):
        (folder / "sales" / f"year={year}" / "month=1").mkdir(parents=True)
        pq.write_table(table()(folder), folder / "sales" / f"year={year}" / "month=1" / "part=0.parquet")
    return folder / "sales"


INDEX = {b"pandas": json.dumps({"index_columns": ["year", "ward"]}).encode()}
CELLS, UNREAD = {"label_column": "class"}, "names of features not read: expected a list of text"
SAID: dict[str, tuple[Make, dict[str, Any], str, int]] = {
    "an index of pandas": (
        lambda folder: table(year=list("pqrs"), ward=list("pqrs"))(folder).replace_schema_metadata(INDEX), NAMED,
        "column year dropped: an index of pandas", 1,
    ),
    "keys of folders": (keyed, NAMED, "not read, as they stand in names of folders only: year, month", 1),
    "a name twice": (
        lambda folder: as_h5ad(frame_of(TEXT), folder / "a.h5ad", var=("a", "b", "a", "c")), CELLS,
        "names of features not kept: 2 are called a", 0,
    ),
    "a name twice in text": (
        text("a.csv", "x,x,y\n1,2,p\n2,1,q\n"), NAMED, "names of features not kept: 2 are called x", 0,
    ),
    "too few names": (
        lambda folder: as_h5ad(frame_of(TEXT), folder / "a.h5ad", var=("a", "b", "c")), CELLS,
        "names of features not kept: 3 for 4 features", 0,
    ),
    "long names": (
        lambda folder: as_h5ad(frame_of(TEXT), folder / "a.h5ad", var=("a", "b", "c", "é" * MOST_BYTES)), CELLS,
        "names of features not kept: 8.00 MiB, at most 4.00 MiB are", 0,
    ),
    "a number for names": (attribute(3), {}, UNREAD, 0),
    "numbers for names": (attribute([1.0, 2.0, 3.0, 4.0]), {}, UNREAD, 0),
    "a table of names": (attribute([["a", "b"], ["c", "d"]]), {}, UNREAD, 0),
    "a pickle of names": (pickled, {}, "names of features not read", 0),
    "names in another file": (linked, CELLS, "external link", 0),
}  # fmt: skip
"""What is not read or kept, what is said of it, and how many names of features there are then."""


@pytest.mark.parametrize("what", SAID)
def test_what_is_left_out_is_said(what: str, tmp_path: Path) -> None:
    make, options, words, names = SAID[what]
    notes: list[str] = []
    header = dfeas.ingest(make(tmp_path), tmp_path / "data", note=notes.append, **options)
    assert (len(header.features), header.format) == (names, 2 if names else 1)
    assert any(words in note for note in notes), notes


@pytest.mark.parametrize(("column", "value"), [("a", None), ("a", float("nan")), ("y", None)])
def test_a_bad_row_of_a_folder_is_named_with_its_file(value: float | None, column: str, tmp_path: Path) -> None:
    for name in ("0", "1", "2"):
        held: dict[str, list[float | None]] = {"a": [1.0, -1.0, 2.0, 3.0], "y": [1.0, 0.0, 1.0, 0.0]}
        held[column][2] = value if name == "1" else held[column][2]
        pq.write_table(pa.table(held), tmp_path / f"{name}.parquet")
    for ask in (dfeas.solve, dfeas.plan):
        with pytest.raises(BadInputError, match=r"point 6 \(1.parquet, row 2\)"):
            ask(tmp_path, "y")
