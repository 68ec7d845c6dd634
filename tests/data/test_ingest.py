"""Ingest: columns, labels and types of a source, what is imported for it, and how much memory it takes."""

import inspect
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dfeas
from dfeas import ingest
from dfeas.data.ingest import array_files
from dfeas.data.ingest import text as numerals
from dfeas.data.ingest.options import IngestOptions
from dfeas.data.labels import encode_array, plain_labels
from dfeas.errors import BadInputError, UsageError
from tests.data.making import source, stored


@pytest.mark.parametrize("slab", [1, 5000, 1 << 20])
def test_rows_of_a_file_in_fortran_order_come_in_any_order(tmp_path: Path, slab: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_files, "SLAB_BYTES", slab)
    rng = np.random.default_rng(slab)
    X = rng.standard_normal((300, 7)).astype(">f4")
    np.save(tmp_path / "x.npy", np.asfortranarray(X))
    with array_files.open_rows(tmp_path / "x.npy", "X") as rows:
        assert rows.fortran
        for first, size in zip(rng.integers(0, 300, 50), rng.integers(0, 90, 50), strict=True):
            found = rows[first : first + size]
            assert found.dtype == X.dtype
            assert np.array_equal(found, X[first : first + size])


@given(st.sampled_from([(0, 1), (-1, 1), (False, True), ("a", "b"), (2.0, 7.5), (b"n", b"y"), (3, -4)]), st.data())
def test_two_values_of_any_kind_become_signs(pair: tuple[Any, Any], data: st.DataObject) -> None:
    values = np.array(data.draw(st.lists(st.sampled_from(pair), min_size=2, max_size=20)))
    if len(set(values.tolist())) < 2:
        with pytest.raises(BadInputError, match="two classes are needed"):
            encode_array(values, len(values), "here")
        return
    classes, signs = encode_array(values, len(values), "here")
    assert signs.tolist() == [1 if v == max(pair) else -1 for v in values.tolist()]
    assert encode_array(values, len(values), "here", classes[0])[1].tolist() == (-signs).tolist()


def test_every_option_is_in_help_and_in_types() -> None:
    whole = {"choice", "ids"}  # of columns, which are several arguments
    options = {each.name.replace("labels", "y"): each.default for each in fields(IngestOptions) if each.name not in whole}
    parameters = inspect.signature(dfeas.ingest).parameters
    assert {name: parameters[name].default for name in options} == options
    assert all(parameters[name].annotation for name in options)
    assert not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    described = inspect.getdoc(dfeas.ingest) or ""
    assert all(f"\n{name} : " in described for name in inspect.signature(dfeas.ingest).parameters)


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


@pytest.mark.parametrize(
    ("first", "options", "n"),
    [
        ("a,b,y", {"label_column": "y"}, 2),
        ("1,2,y", {"label_column": "y"}, 2),  # names that are numbers, but for the label's
        ("1,2,3", {"label_column": "3", "header": True}, 2),
        ("a,b,y", {"label_column": "2"}, 2),
        ("7,2,0", {"label_column": "2"}, 3),
    ],
)
def test_a_header_is_recognised(tmp_path: Path, first: str, options: dict[str, Any], n: int) -> None:
    (tmp_path / "a.csv").write_text(f"{first}\n5,6,0\n5,6,1\n")
    assert ingest(tmp_path / "a.csv", tmp_path / "out", **options).n == n


CODES = ["01", "1", "02", "1", "01", "02", "007", "-01"]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet", "frame", "beside"])
@pytest.mark.parametrize(
    ("labels", "positive", "classes", "counts"),
    [
        (CODES, None, ("-01", "007", "01", "02", "1"), (1, 1, 2, 2, 2)),
        (["c", "b", "1.0"] * 3, "b", ("rest", "b"), (6, 3)),
        (["c", "b", "1.0"] * 3, "1", ("rest", "1"), (6, 3)),
        (["1_0", "10"] * 3, None, ("10", "1_0"), (3, 3)),
    ],
    ids=["codes", "text", "a number", "as Python reads it"],
)
def test_labels_of_text_are_classes_wherever_they_stand(
    name: str, labels: list[str], positive: Any, classes: tuple[str, ...], counts: tuple[int, ...], tmp_path: Path
) -> None:
    """01 and 1 are two classes, 1_0 and 10, too; 1.0 in text is the number 1."""
    frame = pd.DataFrame({"a": np.arange(len(labels)) * 1.0, "y": labels})
    path = tmp_path / name
    if name == "a.parquet":
        frame.to_parquet(path)
    elif name.endswith("sv"):
        frame.to_csv(path, index=False, sep="\t" if name == "a.tsv" else ",")
    given: dict[str, Any] = {"label_column": "y"} if name != "beside" else {"y": frame["y"].to_numpy(str)}
    src = {"frame": frame, "beside": frame[["a"]]}.get(name, path)
    header = ingest(src, tmp_path / "out", positive=positive, block_rows=2, **given)
    assert header.classes == classes
    assert header.counts == counts if len(classes) > 2 else header.positive == counts[1]


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ([True, False, np.True_], "b"),
        ([1, 2, np.int8(3)], "i"),
        ([1, 0.5], "f"),
        ([2**53 + 1, 0.5], "O"),  # which float64 has not
        ([True, 2], "O"),
        (["a", "b"], "O"),
        ([1, None], "O"),
        ([float("nan"), 1.0], "O"),
    ],
)
def test_objects_of_one_plain_type_are_of_numpys_and_no_value_changes(labels: list[Any], kind: str) -> None:
    given = np.array(labels, object)
    found = plain_labels(given)
    assert found.dtype.kind == kind
    assert all(a is b or a == b for a, b in zip(found.tolist(), given.tolist(), strict=True))


def test_labels_may_lie_elsewhere_and_numbers_be_rounded(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((3000, 3)), np.where(rng.random(3000) < 0.5, "in", "out")
    np.save(tmp_path / "y.npy", y)
    table = pa.table([*X.T], names=["a", "b", "c"])
    pq.write_table(table, tmp_path / "a.parquet")
    pa.csv.write_csv(table, tmp_path / "a.csv")
    narrow = ingest(X.astype(np.float32), tmp_path / "expected", y=y)
    for index, src in enumerate((tmp_path / "a.csv", tmp_path / "a.parquet", table)):
        notes: list[str] = []
        found = ingest(src, tmp_path / f"{index}", y=str(tmp_path / "y.npy"), dtype="float32", note=notes.append)
        assert (found.fingerprint, found.classes) == (narrow.fingerprint, ("in", "out"))
        assert "rounded to float32, as asked" in notes
    for count in (2999, 3001):
        np.save(tmp_path / "y.npy", np.resize(y, count))
        with pytest.raises(BadInputError, match=f"a.csv: {count} labels for 3000( or more)? points; give one a point"):
            ingest(tmp_path / "a.csv", tmp_path / "out", y=str(tmp_path / "y.npy"))
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("name", "lines"), [("a.csv", "x,z,y\n1,2,0\n{},2,1\n"), ("a.svm", "0 1:1 2:2\n1 1:{} 2:2\n")])
def test_text_of_numbers_that_float64_has_is_these_numbers(name: str, lines: str, tmp_path: Path) -> None:
    for fine in ("9007199254740992", "1180591620717411303424", "9007199254740993.0", "1e100"):
        (tmp_path / name).write_text(lines.format(fine))
        ingest(tmp_path / name, tmp_path / fine, **({"label_column": "y"} if name == "a.csv" else {}))
        assert float(fine) in stored(tmp_path / fine)


def test_points_without_an_entry_are_points(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1\n0\n")
    header = ingest(tmp_path / "a.svm", tmp_path / "out", features=300)
    assert (header.n, header.m, header.zero, header.entries) == (2, 300, 2, 0)


def test_without_pyarrow_svmlight_is_read_and_tables_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = {name: source(name, tmp_path)[0] for name in ("plain.svm", "plain.csv", "plain.parquet")}
    expected = ingest(sources["plain.svm"], tmp_path / "fast").fingerprint
    for module in ("dfeas.data.ingest.csv_file", "dfeas.data.ingest.tables"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    for module in ("pyarrow", "pyarrow.csv", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(numerals, "pyarrow", None)
    assert ingest(sources["plain.svm"], tmp_path / "slow").fingerprint == expected
    for name in ("plain.csv", "plain.parquet"):
        with pytest.raises(UsageError, match=r'pip install "pyarrow>=18"'):
            ingest(sources[name], tmp_path / "out", label_column="class")
    assert not (tmp_path / "out").exists()


def test_the_program_does_without_pyarrow_and_tables_without_pandas(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,y\n1,2,0\n-1,0.5,1\n")
    (tmp_path / "a.svm").write_text("0 1:1 2:2\n1 1:-1 2:0.5\n")
    pq.write_table(pa.table({"a": [1.0, -1.0], "b": [2.0, 0.5], "y": [0, 1]}), tmp_path / "a.parquet")
    code = """
import sys, dfeas, dfeas.cli.main
assert "pyarrow" not in sys.modules
for name, options in ("a.csv", {"label_column": "y"}), ("a.svm", {}), ("a.parquet", {"label_column": "y"}):
    dfeas.ingest(name, f"{name}.data", **options)
sys.exit("pandas" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    code = (
        "import sys, dfeas\n"
        "dfeas.ingest(sys.argv[1], sys.argv[1] + '.data', **eval(sys.argv[2]))\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))\n"
    )
    values = np.random.default_rng(0).standard_normal((2000, 50)).astype(np.float32)
    rows = b"".join(b",".join(b"%.6g" % v for v in x) + b",%d\n" % (i % 2) for i, x in enumerate(values))
    head = ",".join([*(f"f{i}" for i in range(50)), "y"]).encode() + b"\n"
    part = pa.table({**{f"f{i}": values[:, i] for i in range(50)}, "y": np.arange(2000) % 2})
    peaks: dict[str, list[int]] = {"csv": [], "parquet": [], "npy": []}
    for size in (1, 4):
        (tmp_path / f"{size}.csv").write_bytes(head + rows * 20 * size)
        with pq.ParquetWriter(tmp_path / f"{size}.parquet", part.schema) as target:
            for _ in range(6 * size):
                target.write_table(pa.concat_tables([part] * 20))
        X = np.lib.format.open_memmap(tmp_path / f"{size}.npy", mode="w+", dtype=np.float32, shape=(50_000 * size, 200))
        X[:, 0] = 1
        np.save(tmp_path / f"{size}-y.npy", np.arange(len(X), dtype=np.int8) % 2)
        for kind, found in peaks.items():
            options = {"y": f"{tmp_path}/{size}-y.npy"} if kind == "npy" else {"label_column": "y"}
            run = [sys.executable, "-c", code, f"{tmp_path}/{size}.{kind}", repr(options)]
            found.append(int(subprocess.run(run, check=True, capture_output=True, text=True).stdout))
    # kB; the larger ones have 55 MB more of text, 144 MB in float32, 120 MB
    for kind, most in (("csv", 40_000), ("parquet", 80_000), ("npy", 60_000)):
        few, many = peaks[kind]
        assert many - few < most, kind
