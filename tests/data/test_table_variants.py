"""A table as tools write it: ``solve``, ``ingest`` and ``check_separation`` read the same numbers, or refuse alike."""

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

import dfeas

AGE = [3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.0, 6.0]
ILL = [0, 1, 0, 1, 1, 1, 0, 0]
FRAME = pd.DataFrame({"age": AGE, "dose": np.arange(8.0), "ill": ILL})
NAMED = FRAME.set_index(pd.Index(range(11, 19), name="patient"))


def parts(folder: Path, *tables: pa.Table) -> Path:
    folder.mkdir()
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet")
    return folder


def whole() -> pa.Table:
    return pa.Table.from_pandas(FRAME, preserve_index=False)


def text(name: str, content: str | bytes) -> Callable[[Path], Path]:
    def make(room: Path) -> Path:
        path = room / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


def parquet(table: pa.Table | pd.DataFrame) -> Callable[[Path], Path]:
    def make(room: Path) -> Path:
        pq.write_table(table if isinstance(table, pa.Table) else pa.Table.from_pandas(table), room / "t.parquet")
        return room / "t.parquet"

    return make


def leftovers(*names: str) -> Callable[[Path], Path]:
    def make(room: Path) -> Path:
        folder = parts(room / "t", whole())
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(whole().slice(0, 3), folder / name)
        return folder

    return make


def decimals() -> pa.Table:
    return whole().set_column(0, "age", whole().column(0).cast(pa.decimal128(9, 3)))


READ = {
    "csv": text("t.csv", FRAME.to_csv(index=False)),
    "tsv": text("t.tsv", FRAME.to_csv(index=False, sep="\t")),
    "blanks": text("t.csv", FRAME.to_csv(index=False).replace(",", ", ")),
    "plus signs": text("t.csv", FRAME.to_csv(index=False).replace("\n", "\n+").removesuffix("+")),
    "byte order mark": text("t.csv", FRAME.to_csv(index=False).encode("utf-8-sig")),
    "parquet": parquet(whole()),
    "index of pandas": parquet(FRAME.set_index(np.arange(8) + 5)),
    "named index": parquet(NAMED),
    "index without a name": text("t.csv", FRAME.to_csv()),
    "index of R": text("t.csv", FRAME.to_csv().replace(",age", '"",age', 1)),
    "row names of R": text("t.csv", FRAME.set_axis([*"abcdefgh"]).to_csv().replace(",age", "age", 1)),
    "decimals": parquet(decimals()),
    "leftovers": leftovers(
        "_temporary/0/1.parquet", ".ipynb_checkpoints/1.parquet", ".1.parquet", "_1.parquet", "1.parquet.part"
    ),
    "integers and floats": lambda room: parts(
        room / "t", whole().slice(0, 2).set_column(1, "dose", pa.array([0, 1])), whole().slice(2)
    ),
}
NAMES = {"index of pandas": range(5, 13), "named index": range(11, 19), "row names of R": "abcdefgh"}
"""What rows are called where that is not their number."""
REFUSED = {
    "a column without a name": (text("t.csv", FRAME.to_csv(index=False).replace("dose", "", 1)), "column 1 has no name"),
    "rows of other lengths": (text("t.csv", FRAME.to_csv().replace(",age", "age", 1).replace("2,4.0", "4.0")), "expected"),
    "semicolons": (text("t.csv", FRAME.to_csv(index=False, sep=";")), "sep"),
    "bars": (text("t.csv", FRAME.to_csv(index=False, sep="|")), "sep"),
    "Latin-1": (text("t.csv", FRAME.to_csv(index=False).replace("dose", "größe").encode("latin-1")), "not UTF-8"),
    "less than": (text("t.csv", FRAME.to_csv(index=False).replace("1.5", "<2")), "'<2'"),
    "a dash": (text("t.csv", FRAME.to_csv(index=False).replace("1.5", "-")), "'-'"),
    "units": (text("t.csv", FRAME.to_csv(index=False).replace("1.5", "1.5 y")), "'1.5 y'"),
    "commas": (text("t.csv", FRAME.to_csv(index=False).replace("1.5", '"1,5"')), "'1,5'"),
    "a gap": (text("t.csv", FRAME.to_csv(index=False).replace("1.5", "")), "age"),
    "a column of later files": (lambda room: parts(room / "t", whole().select(["age", "ill"]), whole()), "other columns"),
    "other types": (
        lambda room: parts(room / "t", whole(), whole().set_column(0, "age", pa.array(list("abcdefgh")))),
        "age",
    ),
    "a number too long": (text("t.csv", FRAME.to_csv(index=False).replace("1.5", "1e999")), "age"),
}


def rows(path: Path) -> np.ndarray:
    return np.asarray(zarr.open_group(path, mode="r")["X"])


@pytest.mark.parametrize("variant", READ)
def test_a_table_is_read_alike_however_it_was_written(variant: str, tmp_path: Path) -> None:
    path = READ[variant](tmp_path)
    dfeas.ingest(path, tmp_path / "data", label_column="ill")
    assert np.array_equal(rows(tmp_path / "data"), FRAME[["age", "dose"]].to_numpy())
    result = dfeas.solve(path, "ill", intercept=True)
    assert (result.n, result.features) == (8, ["age", "dose"])
    right, found = dfeas.check_separation(FRAME, "ill"), dfeas.check_separation(path, "ill")
    names = NAMES.get(variant, range(8))
    assert (found.kind, found.direction) == (right.kind, right.direction)
    assert found.points == [names[point] for point in right.points]


@pytest.mark.parametrize("variant", REFUSED)
def test_a_table_is_refused_alike_with_what_is_wrong(variant: str, tmp_path: Path) -> None:
    make, said = REFUSED[variant]
    path = make(tmp_path)
    for ask in (
        lambda: dfeas.ingest(path, tmp_path / "data", label_column="ill"),
        lambda: dfeas.solve(path, "ill", intercept=True),
        lambda: dfeas.check_separation(path, "ill"),
    ):
        with pytest.raises(dfeas.DfeasError, match=said) as caught:
            ask()
        assert caught.value.exit_code in (2, 4)


@pytest.mark.parametrize(("sep", "decimal"), [(";", ","), (";", "."), ("|", "."), ("\t", ",")])
def test_separators_and_decimal_commas_are_said(sep: str, decimal: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    FRAME.to_csv(path, index=False, sep=sep, decimal=decimal)
    dfeas.ingest(path, tmp_path / "data", label_column="ill", sep=sep, decimal=decimal)
    assert np.array_equal(rows(tmp_path / "data"), FRAME[["age", "dose"]].to_numpy())
    right, found = dfeas.check_separation(FRAME, "ill"), dfeas.check_separation(path, "ill", sep=sep, decimal=decimal)
    assert (found.kind, found.points) == (right.kind, right.points)
    words = ["check-separation", str(path), "--label-column", "ill", "--sep", sep, "--decimal", decimal]
    ran = subprocess.run([sys.executable, "-m", "dfeas", *words], capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == f"{right}\n"


def test_a_file_without_names_has_all_of_its_rows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("0,1.5\n1,2.5\n0,3.5\n1,0.5\n")
    assert dfeas.check_separation(tmp_path / "t.csv", "0").kind == "overlap"
    assert dfeas.solve(tmp_path / "t.csv", "0", intercept=True).n == 4


@pytest.mark.parametrize("cell", ["<5", "5 mg", "1.500,00", "10%", "0x10", "1d5", "12:30", "(5)"])
def test_what_is_meant_as_a_number_is_no_level_unless_it_is_said(cell: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"dose": [cell, "a", "b", "a"] * 3, "age": np.arange(12.0), "ill": [0, 1] * 6})
    frame.to_csv(tmp_path / "t.csv", index=False)
    for X in (frame, tmp_path / "t.csv"):
        with pytest.raises(dfeas.BadInputError, match=r"column dose: expected numbers, got .* in row 0"):
            dfeas.check_separation(X, "ill")
        assert dfeas.check_separation(X, "ill", text=["dose"]).finite is not None
    assert dfeas.check_separation(frame.astype({"dose": "category"}), "ill").finite is not None


@pytest.mark.parametrize("levels", [["a", "b"], ["1st", "2nd"], ["18-25", "26+"], ["ward 3", "ward 4"], ["-", "yes"]])
def test_names_are_levels(levels: list[str], tmp_path: Path) -> None:
    frame = pd.DataFrame({"kind": levels * 6, "age": np.arange(12.0), "ill": [0, 0, 1, 1] * 3})
    frame.to_csv(tmp_path / "t.csv", index=False)
    for X in (frame, tmp_path / "t.csv"):
        assert dfeas.check_separation(X, "ill").kind == "overlap"


def test_whole_numbers_are_levels_where_they_are_said_to_be_text(tmp_path: Path) -> None:
    frame = pd.DataFrame({"ward": [1, 2, 3] * 4, "age": np.arange(12.0), "ill": [0, 1, 1, 1, 0, 1] * 2})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    asked = [dfeas.check_separation(X, "ill", text=["ward"]) for X in (frame, tmp_path / "t.csv", tmp_path / "t.parquet")]
    assert [each.levels for each in asked] == [asked[0].levels] * 3
    assert asked[0].levels == {"ward": ["3"]}


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_pattern_of_text_is_refused_with_a_call_that_works(tmp_path: Path, ending: str) -> None:
    """The frame that the message makes has the rows of all files."""
    dask_frames = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame({"a": [1.0, 2.0, -1.0, -2.0], "y": ["p", "p", "q", "q"]})
    for place, part in enumerate((frame[:2], frame[2:])):
        part.to_csv(tmp_path / f"{place}.{ending}", index=False, sep="," if ending == "csv" else "\t")
    with pytest.raises(
        dfeas.BadInputError, match="patterns are expanded for these only; give one file, or the frame "
    ) as refused:
        dfeas.solve(dfeas.table(str(tmp_path / f"*.{ending}"), "y"))
    if ending == "csv":
        with pytest.raises(dfeas.UsageError, match=r"of a folder of CSV give dask.dataframe.read_csv\(.*\*.csv'\)"):
            dfeas.solve(dfeas.table(tmp_path, "y"))
    call = ast.parse(str(refused.value).partition("the frame ")[2], mode="eval").body
    assert isinstance(call, ast.Call)
    assert ast.unparse(call.func) == "dask.dataframe.read_csv"
    (pattern,), options = map(ast.literal_eval, call.args), {each.arg: ast.literal_eval(each.value) for each in call.keywords}
    found = dfeas.solve(dfeas.table(dask_frames.read_csv(pattern, **options), "y"))
    assert (found.verdict, found.n) == ("feasible", 4)
