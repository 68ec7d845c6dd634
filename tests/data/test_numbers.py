"""What a caller has as an array is taken exactly, or refused: in memory, of Dask, of xarray, in zarr and HDF5."""

import ast
import re
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import pyarrow.dataset
import pyarrow.parquet
import pytest
import scipy.sparse
import zarr
from scipy.sparse import csr_array

import dfeas
from dfeas.data.storage.numbers import exact
from dfeas.errors import BadInputError, DfeasError, UsageError

BIG = 2**53
X = np.array([[1.0, 2], [2, 1], [3, 5], [4, 4], [-9, -9]])
Y = np.array([0, 0, 1, 1, 1])
LONG = np.longdouble(1) + np.finfo(np.longdouble).eps
wide = pytest.mark.skipif(np.finfo(np.longdouble).nmant <= 52, reason="longdouble is float64 here")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[BIG + 1, 0.5]], "beyond"),
        ([[0.5, np.int64(BIG + 1)]], "beyond"),
        (np.array([BIG + 1], np.uint64), "beyond"),
        (np.array([-BIG - 1, 1]), "beyond"),
        ([2**64 + 1], "no exact float64"),
        ([10**400], r"here: 1000+\.\. has no exact float64"),
        ([2**20_000], "thousands of digits has no exact float64"),
        (np.array([LONG]), "no such number"),
        ([Decimal("0.1")], "no exact float64"),
        ([Fraction(1, 3)], "no exact float64"),
        ([0.5 + 3j], "complex128"),
        (["1"], "<U1"),
        (np.array(["2020-01-01"], "M8[D]"), "datetime64"),
        ([None, 1], "missing"),
        ([Decimal("NaN")], "missing"),
        (np.array([{}], object), "got dict"),
        (np.ma.array([0.5], mask=[True]), "masked"),
        ([np.ma.array([0.5], mask=[True]), [1.0]], "masked"),
        ([[1.0], [0.5, 2.0]], "rectangular"),
        (object(), "object"),
        (csr_array(np.eye(2)), "got csr_array"),
    ],
)
def test_what_float64_has_not_is_refused(values: Any, words: str) -> None:
    if isinstance(values, np.ndarray) and values.dtype == np.longdouble and np.finfo(np.longdouble).nmant <= 52:
        pytest.skip("longdouble is float64 here")
    with pytest.raises(BadInputError, match=words):
        exact(values, np.float64, "here")


@pytest.mark.parametrize(
    "values",
    [
        [[BIG, 0.5], [-BIG, 1]],
        [[2**60, 0.5]],
        [2**70],
        [Decimal("0.5"), Fraction(1, 4), 3],
        np.array([np.longdouble(0.1)]).astype(np.float64).astype(np.longdouble),
        np.array([1, 2], ">i4"),
        np.array([True, False]),
        np.ma.array([0.5, 1.5], mask=[False, False]),
        np.array([0.1, 0.2], np.float16),
    ],
)
def test_what_float64_has_is_the_same_number(values: Any) -> None:
    found = exact(values, np.float64, "here")
    assert found.dtype == np.float64
    assert type(found) is np.ndarray
    flat = np.asarray(values, object).reshape(-1).tolist()
    assert [Fraction(v) for v in found.reshape(-1).tolist()] == [
        Fraction(*v.as_integer_ratio()) if isinstance(v, np.floating) else Fraction(v) for v in flat
    ]


@pytest.mark.parametrize(
    ("declared", "chunks"), [("int16", (2, 1)), ("bool", (5, 2)), ("float32", (3, 2)), ("float64", (1, 2))]
)
def test_a_dask_array_that_declares_another_type_never_changes_numbers(declared: str, chunks: Any) -> None:
    """0.2 .. 1 by steps, labels in halves: a threshold is between. Cut to whole numbers, or rounded, they are alike."""
    numbers = np.stack([1 + 1e-9 * np.arange(5), np.ones(5)], axis=1)
    lazy = da.from_array(numbers, chunks=chunks).map_blocks(lambda block: block, meta=np.empty((0, 0), declared))
    labels = [0, 0, 1, 1, 1]
    for ask in (
        lambda: dfeas.solve(lazy, labels, intercept=True).verdict == "feasible",
        lambda: dfeas.check_separation(lazy, labels, intercept=True).kind == "complete",
        lambda: dfeas.in_hull([1 + 2.5e-9, 1.0], lazy).inside,
    ):
        try:
            right = ask()
        except BadInputError as error:
            assert declared != "float64"
            assert "float64" in str(error)  # noqa: PT017
        else:
            assert right


def test_blocks_of_several_types_are_put_together_exactly() -> None:
    parts = [np.array([[1, 2]], np.int16), np.array([[0.5, 2.5]]), np.array([[7.0, 8]], np.float32)]
    lazy = da.concatenate([da.from_array(part) for part in parts]).astype("f8")
    assert exact(lazy, np.float64, "X").tolist() == [[1, 2], [0.5, 2.5], [7, 8]]
    lying = lazy.map_blocks(lambda block, block_id: parts[block_id[0]], meta=np.empty((0, 0), "i2"))
    assert exact(lying, np.float64, "X").tolist() == [[1, 2], [0.5, 2.5], [7, 8]]
    with pytest.raises(BadInputError, match="int16"):
        exact(lying, np.int16, "X")
    with pytest.raises(BadInputError, match="is declared"):
        exact(lazy.map_blocks(lambda block: block[:, :1], meta=np.empty((0, 0))), np.float64, "X")


@pytest.mark.parametrize("kind", ["int16", "Int64", "boolean", "float32"])
def test_a_null_in_a_later_partition_is_missing(kind: str) -> None:
    first = pd.DataFrame({"a": pd.array([1, 0, 1], kind), "b": pd.array([1, 2, 3], "int16")})
    second = first.astype({"a": "object"}).assign(a=[1.0, np.nan, 0.0]).astype({"a": "float64"})
    for columns in (["a"], ["a", "b"]):
        parts = [first[columns], second[columns]]
        frame = dd.from_map(lambda i, parts=parts: parts[i], [0, 1], meta=first[columns][:0], enforce_metadata=False)
        words = "missing|not finite|finite"
        with pytest.raises(BadInputError, match=words):
            dfeas.solve(frame, [0, 0, 0, 1, 1, 1], intercept=True)
    names = [pd.Series(each["a"], name="y") for each in (first, second)]
    labels = dd.from_map(lambda i: names[i], [0, 1], meta=names[0][:0], enforce_metadata=False)
    with pytest.raises(BadInputError, match="missing"):
        dfeas.solve(np.arange(6.0)[:, None], labels, intercept=True)


def test_what_is_masked_in_a_chunk_is_refused() -> None:
    mask = np.arange(5) == 4
    points, labels = (
        da.from_array(np.ma.masked_array(each, np.broadcast_to(mask, each.T.shape).T), chunks=2, asarray=False)
        for each in (X, Y)
    )
    for some, others in ((points, Y), (X, labels)):
        with pytest.raises(BadInputError, match="masked"):
            dfeas.solve(some, others, intercept=True)
    whole = np.ma.masked_array(X, mask=False), np.ma.masked_array(Y, mask=False)
    assert dfeas.solve(*whole, intercept=True).verdict == dfeas.solve(X, Y, intercept=True).verdict


def test_rows_of_chunks_of_unknown_lengths_are_counted() -> None:
    lazy = da.from_array(X, chunks=2)
    for some in (lazy[:, 0] >= -99, lazy[:, 0] < 0):
        rows = some.compute()
        found = dfeas.solve(lazy[some], np.where(np.arange(rows.sum()) > 0, 1, -1) if rows.sum() > 1 else "all-positive")
        assert found.n == rows.sum()


def test_a_mask_is_of_truth_values_or_of_zeros_and_ones() -> None:
    right = dfeas.solve(X, Y, intercept=True, mask=Y < 2).n
    for mask in ([True] * 5, [1] * 5, np.ones(5, np.uint8), pd.Series([True] * 5), pd.array([True] * 5)):
        assert dfeas.solve(X, Y, intercept=True, mask=mask).n == right
    gap = np.ma.masked_array(np.ones(5, bool), mask=[1, 0, 0, 0, 0])
    for mask in (gap, [1, 1, 1, 1, 2], [1.0] * 5, ["1"] * 5, pd.Series([True] * 4 + [None])):
        with pytest.raises(BadInputError, match="mask"):
            dfeas.solve(X, Y, intercept=True, mask=mask)


@wide
def test_labels_that_differ_beyond_float64_are_no_class() -> None:
    for labels in ([np.longdouble(1), LONG], [BIG + 1, 0.5], [b"\xff", b"\xfe"]):
        with pytest.raises(BadInputError):
            dfeas.solve([[1.0], [-2.0]], labels, intercept=False)
    assert dfeas.solve([[1.0], [-2.0]], [BIG + 1, BIG], intercept=False).classes == (str(BIG), str(BIG + 1))
    assert dfeas.solve([[1.0], [-2.0]], [b"ham", b"sp\xc3\xa4m"], intercept=False).classes == ("ham", "späm")


# a point of a hull


@pytest.mark.parametrize(
    "point", [[0.5], [[0.5]], [Decimal("0.5")], [Fraction(1, 2)], np.array([0.5], ">f4"), pd.Series([0.5])]
)
def test_an_exact_point_is_inside(point: Any) -> None:
    assert dfeas.in_hull(point, [[0.0], [1.0]]).inside is True
    assert dfeas.in_hull([2**60], [[0.0], [float(2**60)]]).inside is True


def test_a_point_is_what_its_names_say(tmp_path: Path) -> None:
    """(a, b) = (0.1, 0.9) is in the rectangle 0.2 x 1, (0.9, 0.1) is not."""
    frame = pd.DataFrame({"a": [0, 0.2, 0, 0.2], "b": [0.0, 0, 1, 1]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    dfeas.ingest(frame.assign(y=[0, 1, 0, 1]), tmp_path / "d", label_column="y")
    points = (frame, dd.from_pandas(frame, npartitions=2), tmp_path / "t.csv", tmp_path / "d")
    turned = pd.Series({"b": 0.9, "a": 0.1})
    for each in points:
        for point in (turned, turned.to_frame().T, pd.Series([0.1, 0.9]), [0.1, 0.9]):
            assert dfeas.in_hull(point, each).inside is True
        for names in (["a", "c"], ["a", "a"], ["b", "a"]):
            point = pd.Series([0.1, 0.9], index=names)
            if names == ["b", "a"]:
                assert dfeas.in_hull(point, each).inside is False
                continue
            with pytest.raises(BadInputError, match="point"):
                dfeas.in_hull(point, each)
    assert dfeas.in_hull(turned, frame[["b", "a"]].to_numpy()).inside is True  # no names there: by place


# packed numbers


def test_what_xarray_packs_is_refused_with_the_call_that_works(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    numbers = np.array([[1.0, 2], [2, 1], [3, 3], [5, 5], [6, 4]])
    np.save(tmp_path / "y.npy", Y)
    for number, (kind, packing) in enumerate((
        (3, {"dtype": "int16", "scale_factor": 0.01, "add_offset": 10.0, "_FillValue": -32768}),
        (2, {"dtype": "int16", "scale_factor": 0.5}),
        (2, {"dtype": "int8", "add_offset": 3}),
        (3, {"dtype": "float32", "_FillValue": -9999.0}),
    )):  # fmt: skip
        store = str(tmp_path / f"s{number}")
        arrays = {"X": (("n", "m"), numbers), "y": (("n",), Y.astype(float))}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of consolidated metadata, which zarr 3 has not agreed on
            xarray.Dataset(arrays).to_zarr(store, encoding={"X": packing, "y": packing}, zarr_format=kind)
            held = zarr.open_group(store, mode="r")
        asked = [
            lambda held=held: dfeas.solve(held["X"], Y, intercept=True),
            lambda store=store: dfeas.ingest(f"{store}/X", tmp_path / "d", y=tmp_path / "y.npy"),
        ]
        if kind == 3:
            asked.append(lambda store=store: dfeas.solve(f"{store}/X", tmp_path / "y.npy", intercept=True))
        for ask in asked:
            with pytest.raises(BadInputError, match="packed") as caught:
                ask()
            assert advised(str(caught.value), xarray=xarray, labels=Y).verdict == "feasible"
        with pytest.raises(BadInputError, match="packed") as caught:
            dfeas.solve(numbers, f"{store}/y", intercept=True)
        assert advised(str(caught.value), xarray=xarray, X=numbers, labels=Y).verdict == "feasible"


def advised(text: str, **names: Any) -> Any:
    """What the call does that an error advises."""
    call = re.search(r"dfeas\.\w+\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)", text)
    assert call is not None, text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        words = call[0].replace("...)", "labels)").replace("y=y", "y=labels")
        words = f"{words[:-1]}, intercept=True)" if words.startswith("dfeas.solve") else words
        return eval(words, {"dfeas": dfeas, "zarr": zarr, "h5py": h5py, "numpy": np, **names})


def test_floats_whose_fill_value_is_nan_are_numbers_as_they_are(tmp_path: Path) -> None:
    """xarray writes it beside all floats; where it is there, it is refused as any NaN."""
    xarray = pytest.importorskip("xarray")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xarray.Dataset({"X": (("n", "m"), X)}).to_zarr(str(tmp_path / "s"), zarr_format=3)
    np.save(tmp_path / "y.npy", Y)
    dfeas.ingest(str(tmp_path / "s" / "X"), tmp_path / "d", y=tmp_path / "y.npy")
    assert dfeas.solve(tmp_path / "d", intercept=True).verdict == dfeas.solve(X, Y, intercept=True).verdict
    assert dfeas.solve(tmp_path / "s" / "X", tmp_path / "y.npy", intercept=True).n == 5
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["X"], file["y"] = X, Y
        file["X"].attrs.update({"_FillValue": np.nan, "missing_value": [np.nan], "scale_factor": 1.0, "add_offset": [0]})
    assert dfeas.solve(tmp_path / "a.h5", intercept=True).n == 5


@pytest.mark.parametrize(
    ("which", "attributes"),
    [
        ("X", {"_FillValue": -9999.0}),
        ("y", {"missing_value": [1e20, 1e21]}),
        ("X", {"scale_factor": 0.5, "add_offset": -1.0}),
        ("y", {"valid_range": [0.0, 10.0]}),
        ("X", {"valid_min": 0.0}),
    ],
)
def test_packed_numbers_of_hdf5_are_refused(attributes: dict[str, Any], which: str, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["X"], file["y"] = X, Y
        file[which].attrs.update(attributes)
    with h5py.File(path) as file:
        given = {"X": file["X"] if which == "X" else X, "y": file["y"] if which == "y" else Y}
        for ask in (
            lambda: dfeas.ingest(path, tmp_path / "d"),
            lambda: dfeas.solve(path, intercept=True),
            lambda: dfeas.solve(**given, intercept=True),
            lambda: dfeas.check_separation(given["X"], given["y"], intercept=True),
        ):
            with pytest.raises(BadInputError, match=f"packed.*{next(iter(attributes))}"):
                ask()


def test_signs_that_are_said_to_be_others_are_refused(tmp_path: Path) -> None:
    array = zarr.create_array(str(tmp_path / "a"), data=np.array([[-1], [1]], np.int8), attributes={"_Unsigned": "true"})
    with pytest.raises(BadInputError, match="view") as caught:
        dfeas.solve(array, [0, 1], intercept=True)
    assert advised(str(caught.value), X=array, labels=[0, 1]).verdict == "feasible"


# what holds arrays


@pytest.mark.parametrize("kind", [2, 3])
def test_a_group_of_zarr_is_refused_with_the_call_that_works(kind: int, tmp_path: Path) -> None:
    group = zarr.open_group(str(tmp_path / "g"), mode="w", zarr_format=kind)
    group.create_array("X", data=X, config={"write_empty_chunks": True})
    group.create_array("y", data=Y, config={"write_empty_chunks": True})
    np.save(tmp_path / "y.npy", Y)
    with pytest.raises(BadInputError, match="group") as caught:
        dfeas.solve(group, Y, intercept=True)
    assert "X['X']" in str(caught.value)
    for ask in (
        lambda: dfeas.ingest(tmp_path / "g", tmp_path / "d", y=tmp_path / "y.npy"),
        lambda: dfeas.solve(tmp_path / "g", tmp_path / "y.npy", intercept=True),
        lambda: dfeas.ingest(group, tmp_path / "d", y=Y),
    ):
        with pytest.raises(BadInputError, match="group") as caught:
            ask()
        assert "ingest" not in str(caught.value)
    path = re.search(r"give the path of an array, as (\S+)", str(_error(lambda: dfeas.ingest(tmp_path / "g", tmp_path / "d"))))
    assert path is not None
    dfeas.ingest(path[1], tmp_path / "d", y=tmp_path / "y.npy")


def _error(ask: Callable[[], Any]) -> DfeasError:
    with pytest.raises(DfeasError) as caught:
        ask()
    return caught.value


def test_groups_of_hdf5_and_mappings_are_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["g/X"], file["g/y"] = X, Y
        for group in (file["g"], {"X": X, "y": Y}):
            for ask in (dfeas.solve, dfeas.check_separation):
                with pytest.raises(BadInputError, match=r"X\['X'\]"):
                    ask(group, Y, intercept=True)
            with pytest.raises(BadInputError, match=r"labels\['X'\]"):
                dfeas.solve(X, group, intercept=True)


def test_a_dataset_of_xarray_is_refused_and_its_arrays_are_taken(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    held = xarray.Dataset({"X": (("n", "m"), X[:4]), "y": (("n",), Y[:4])})
    for ask in (
        lambda: dfeas.solve(held, Y, intercept=True),
        lambda: dfeas.check_separation(held, Y, intercept=True),
        lambda: dfeas.ingest(held, tmp_path / "d", y=Y),
        lambda: dfeas.in_hull([0.0, 0.0], held),
    ):
        with pytest.raises(BadInputError, match=r"X\['X'\]"):
            ask()
    for arrays in (held, held.chunk({"n": 3})):
        assert dfeas.solve(arrays["X"], arrays["y"], intercept=True).verdict == "feasible"
        dfeas.ingest(arrays["X"], tmp_path / f"d{len(arrays.chunks)}", y=arrays["y"])
        assert dfeas.solve(tmp_path / f"d{len(arrays.chunks)}", intercept=True).n == 4


FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "k": Y})
TABLES: dict[str, Callable[[Path], Any]] = {
    "dataset of Arrow": lambda path: pyarrow.dataset.dataset(path),
    "scanner of Arrow": lambda path: pyarrow.dataset.dataset(path).scanner(),
    "file of Parquet": lambda path: pyarrow.parquet.ParquetFile(path),
    "reader of batches": lambda path: pyarrow.Table.from_pandas(FRAME).to_reader(),
    "columns": lambda path: FRAME.to_dict("list"),
    "rows": lambda path: FRAME.to_dict("records"),
    "records": lambda path: FRAME.to_records(index=False),
    "an array of records": lambda path: np.asarray(FRAME.to_records(index=False)),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_another_form_is_refused_with_the_call_that_makes_a_frame_of_it(name: str, tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "x.parquet")
    for ask in (dfeas.solve, dfeas.soft_margin, dfeas.suspects):
        text = str(_error(lambda ask=ask: ask(TABLES[name](tmp_path / "x.parquet"), "k")))
        call = re.search(r"give ((?:pandas\.DataFrame\(X\))|X\.\w+\(\))", text)
        assert call is not None, text
        frame = eval(call[1], {"pandas": pd, "X": TABLES[name](tmp_path / "x.parquet")})
        assert ask(frame, "k").fingerprint == ask(FRAME, "k").fingerprint
    text = str(_error(lambda: dfeas.feasible(TABLES[name](tmp_path / "x.parquet"), np.ones(5))))
    assert text.startswith("A: ")
    assert "(X)" not in text
    assert "X." not in text


@pytest.mark.parametrize(
    "thing", [FRAME.groupby("k"), (row for row in X), object(), FRAME.rolling(2)], ids=lambda thing: type(thing).__name__
)
def test_what_is_no_table_at_all_is_named(thing: Any) -> None:
    for ask in (dfeas.solve, dfeas.check_separation, dfeas.suspects):
        assert f"X: expected numbers, got {type(thing).__name__}" in str(_error(lambda ask=ask: ask(thing, Y)))


def test_a_name_of_a_column_beside_an_array_is_no_file() -> None:
    for points in (X, csr_array(X), X.tolist()):
        text = str(_error(lambda points=points: dfeas.solve(points, "k")))
        assert text == "k: no such file or folder (labels), and X has no names of columns"


def test_anndata_is_refused_with_the_call_that_works(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anndata = pytest.importorskip("anndata")
        kind = pd.Categorical(["B", "B", "T", "T", "T"])
        data = anndata.AnnData(X=csr_array(X), obs=pd.DataFrame({"k": kind}, index=[f"c{i}" for i in range(5)]))
        data.write_h5ad(tmp_path / "a.h5ad")
        backed = anndata.read_h5ad(tmp_path / "a.h5ad", backed="r")
        for given in (data, backed):
            assert advised(str(_error(lambda given=given: dfeas.solve(given, "k", intercept=True))), X=given).n == 5
        text = str(_error(lambda: dfeas.solve(backed.X, data.obs["k"], intercept=True)))
        assert "X.to_memory()" in text
        assert dfeas.solve(backed.X.to_memory(), data.obs["k"], intercept=True).n == 5


def test_chunks_that_zarr_leaves_out_are_written_as_the_error_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    zeros = np.vstack([np.zeros((20, 3)), np.eye(3), np.ones((17, 3))])
    array = zarr.create_array("a", data=zeros, chunks=(20, 3))
    np.save("y.npy", np.arange(40) % 2)
    for ask in (
        lambda: dfeas.solve("a", "y.npy", intercept=True),
        lambda: dfeas.solve(array, np.arange(40) % 2, intercept=True),
        lambda: dfeas.ingest(array, "d", y=np.arange(40) % 2),
    ):
        call = re.search(r"zarr\.create_array\(.*\}\)", str(_error(ask)))
        assert call is not None
    eval(call[0].replace("data=X", "data=X, chunks=(20, 3)"), {"zarr": zarr, "X": zeros})
    assert dfeas.solve("X", "y.npy", intercept=True).n == 40


# SDPA


def test_sdpa_is_read_in_python_as_by_the_command(tmp_path: Path) -> None:
    path = tmp_path / "p.dat-s"
    path.write_text("1\n1\n2\n1\n1 1 1 1 1\n1 1 2 2 1\n")
    assert dfeas.ingest(path, tmp_path / "d").cones is not None
    assert dfeas.solve(tmp_path / "d").verdict == "feasible"  # y = 1 makes the unit matrix
    with pytest.raises(UsageError, match="not for cones"):
        dfeas.ingest(path, tmp_path / "f", y=[1])
    assert dfeas.solve(path).verdict == "feasible"


# one gate

PACKAGE = Path(dfeas.__file__).parent
WITHIN = (
    "engine",
    "geometry",
    "linalg",
    "methods",
    "passes",
    "report",
    "exact",
    "run/exact",
    "run/soft_margin",
    "verify",
    "data/generate",
    "kernels",
    *(f"cones/{name}" for name in ("barrier", "checker", "generate", "softmin", "space", "working_set")),
)
"""Rooms that see blocks of datasets, and results, but nothing as a caller has it."""
OWN = {
    "cones/algebra.py": "elements and spectra of blocks",
    "data/ingest/csv_file.py": "text that was parsed",
    "cones/sdpa.py": "text that was parsed",
    "data/ingest/svmlight.py": "text that was parsed",
    "data/storage/numbers.py": "the gate",
    "data/storage/scratch.py": "vectors of methods",
    "analysis/firth.py": "a table that was read",
    "answers/hard_margin.py": "a file of a run, whose numbers were looked at",
    "analysis/regression/blame.py": "certificates",
    "answers/result.py": "a file of a run",
    "figures.py": "what runs knew, and counts",
    "estimators/separator.py": "a Gram matrix",
}


def test_nothing_of_a_caller_becomes_float64_beside_the_gate() -> None:
    beside = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(WITHIN) or name in OWN:
            continue
        calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        beside += [f"{name}:{call.lineno}: {ast.unparse(call)}" for call in calls if _makes_floats(call)]
    assert not beside


def _makes_floats(call: ast.Call) -> bool:
    """Whether it is np.asarray(x, np.float64), in one of its ways."""
    function = call.func
    if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "np"):
        return False
    kinds = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "dtype")]
    makers = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "fromiter")
    return function.attr in makers and any("float" in ast.unparse(kind) for kind in kinds)


@pytest.mark.parametrize("name", ["csr", "csc", "coo", "lil", "bsr", "dia", "dok"])
def test_sparse_matrices_of_every_layout_are_points(name: str) -> None:
    X = getattr(scipy.sparse, f"{name}_array")(np.array([[1.0, 2], [2, 1], [-1, -1]]))
    result = dfeas.solve(X, [1, 1, -1])
    assert result.verdict == "feasible"
    assert result.predict(X).tolist() == [1, 1, -1]
