"""Names of features: kept from any source that has them, and the same ones in another order refused, wherever points meet."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask.dataframe
import h5py
import numpy as np
import pandas
import polars
import pyarrow
import pytest
import scipy.sparse

import dfeas
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source, Transform
from dfeas.data.storage import features
from dfeas.data.storage.features import difference, keep_names
from dfeas.data.writers.dataset import DatasetWriter
from dfeas.errors import BadInputError, CheckFailedError, CorruptDataError
from dfeas.verify.certificate import load
from tests.typed import dfeas as typed

NAMES = ("age (years)", "Größe, cm", 'say "hi"', "ZIP")
N = 400


@pytest.fixture
def people() -> pandas.DataFrame:
    """As a registry has them, with an index of its own; separable by age and height."""
    rng = np.random.default_rng(0)
    age, height = rng.integers(18, 90, N).astype(float), rng.normal(170, 9, N)
    columns = [age, height, rng.normal(size=N), rng.integers(10_000, 99_999, N).astype(float)]
    frame = pandas.DataFrame(dict(zip(NAMES, columns, strict=True)))
    frame.insert(2, "kind", np.where(age + height > 220, "good", "bad"))
    return frame


@pytest.fixture
def moved(people: pandas.DataFrame) -> pandas.DataFrame:
    """The same features in another order."""
    return people[[NAMES[1], NAMES[0], *NAMES[2:], "kind"]]


def points(frame: pandas.DataFrame) -> np.ndarray:
    return np.ascontiguousarray(frame.drop(columns="kind").to_numpy())


def hdf5(frame: pandas.DataFrame, path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["X"], file["y"] = points(frame), (frame.kind == "good").to_numpy()
        file["X"].attrs["feature_names"] = list(NAMES)


def scaled(frame: pandas.DataFrame, path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["X"], file["y"], file["columns"] = points(frame), (frame.kind == "good").to_numpy(), list(NAMES)
        file["columns"].make_scale("columns")
        file["X"].dims[1].attach_scale(file["columns"])


def anndata(frame: pandas.DataFrame, path: Path, var: tuple[str, ...] = NAMES, sparse: bool = True) -> None:
    """As anndata 0.8 writes it."""
    matrix = scipy.sparse.csr_array(points(frame))
    with h5py.File(path, "w") as file:
        if sparse:
            X = file.create_group("X")
            X.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": matrix.shape})
            for part in ("data", "indices", "indptr"):
                X[part] = getattr(matrix, part)
        else:
            file["X"] = matrix.toarray()
        for table, index in (("obs", [f"cell-{i}" for i in range(N)]), ("var", list(var))):
            file.create_group(table).attrs.update({"encoding-type": "dataframe", "_index": "_index"})
            file[table]["_index"] = index
        file["obs"]["kind"] = list(frame.kind)


def archive(frame: pandas.DataFrame, path: Path) -> None:
    np.savez(path, X=points(frame), y=(frame.kind == "good").to_numpy(), feature_names=NAMES)


def parquet(frame: pandas.DataFrame, path: Path) -> None:
    frame.set_axis(pandas.Index(np.arange(N)[::-1] + 10**9, name="customer")).to_parquet(path)


FILES: dict[str, tuple[Callable[[pandas.DataFrame, Path], Any], dict[str, Any]]] = {
    "people.csv": (lambda frame, path: frame.to_csv(path, index=False), {"label_column": "kind"}),
    "excel.csv": (lambda frame, path: frame.to_csv(path, index=False, encoding="utf-8-sig"), {"label_column": "kind"}),
    "people.tsv": (lambda frame, path: frame.to_csv(path, index=False, sep="\t"), {"label_column": "2"}),
    "packed.csv.gz": (lambda frame, path: frame.to_csv(path, index=False), {"label_column": "kind"}),
    "people.parquet": (parquet, {"label_column": "kind"}),
    "attribute.h5": (hdf5, {}),
    "sparse.h5": (hdf5, {"sparse": True}),
    "scale.h5": (scaled, {}),
    "people.h5ad": (anndata, {"label_column": "kind"}),
    "sparse.h5ad": (anndata, {"label_column": "kind", "sparse": True}),
    "dense.h5ad": (lambda frame, path: anndata(frame, path, sparse=False), {"label_column": "kind"}),
    "people.npz": (archive, {}),
}


@pytest.mark.parametrize("name", FILES)
def test_files_keep_their_names(tmp_path: Path, people: pandas.DataFrame, name: str) -> None:
    write, options = FILES[name]
    write(people, tmp_path / name)
    header = dfeas.ingest(tmp_path / name, tmp_path / "data", **options)
    assert (header.features, header.format) == (NAMES, 2)
    assert open_source(Source(DataSpec(tmp_path / "data"))).features == NAMES


def test_blanks_behind_commas_are_no_part_of_names(tmp_path: Path) -> None:
    (tmp_path / "blanks.csv").write_text("age, dose, died\n31, 0.5, 0\n44, 0.25, 1\n")
    header = dfeas.ingest(tmp_path / "blanks.csv", tmp_path / "data", label_column="died")
    assert (header.features, header.classes) == (("age", "dose"), ("0", "1"))


@pytest.mark.parametrize("name", ["people.csv", "people.parquet", "attribute.h5", "sparse.h5", "sparse.h5ad"])
def test_workers_keep_the_same_names_in_the_same_bytes(
    tmp_path: Path, people: pandas.DataFrame, name: str, client: Any
) -> None:
    write, options = FILES[name]
    write(people, tmp_path / name)
    one = dfeas.ingest(tmp_path / name, tmp_path / "one", block_rows=100, **options)
    many = dfeas.ingest(tmp_path / name, tmp_path / "many", block_rows=100, client=client, **options)
    assert one == many
    assert one.features == NAMES


@pytest.mark.parametrize("kind", ["pandas", "arrow", "polars", "dask"])
def test_frames_keep_their_names(tmp_path: Path, people: pandas.DataFrame, kind: str) -> None:
    frames = {"pandas": people, "arrow": pyarrow.table(people), "polars": polars.from_pandas(people)}
    frame = dask.dataframe.from_pandas(people, npartitions=3) if kind == "dask" else frames[kind]
    assert dfeas.ingest(frame, tmp_path / "data", label_column="kind").features == NAMES


def test_without_names_a_dataset_is_what_it_was(tmp_path: Path, people: pandas.DataFrame) -> None:
    X, y = points(people), (people.kind == "good").to_numpy()
    np.savez(tmp_path / "plain.npz", X=X, y=y)
    people.to_csv(tmp_path / "bare.csv", index=False, header=False)
    (tmp_path / "a.svmlight").write_text("1 1:2 2:3\n-1 1:1 2:4\n")
    bare: dict[str, Any] = {"label_column": "2", "header": False}
    for name, options in (("plain.npz", {}), ("bare.csv", bare), ("a.svmlight", {})):
        header = dfeas.ingest(tmp_path / name, tmp_path / name.split(".")[0], **options)
        assert (header.features, header.format) == ((), 1)
        assert "features" not in header.to_json()
    dfeas.solve(tmp_path / "plain", intercept=True, out=tmp_path / "run")
    with np.load(tmp_path / "run" / "certificate.npz") as held:
        assert int(held["format"]) == 1
        assert "features" not in held


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("a", "b", "a", "c"), "2 are called a"),
        (("a", "b", "c"), "3 for 4 features"),
        (("a", "b", "c", "é" * features.MOST_BYTES), "8.00 MiB, at most 4.00 MiB are"),
    ],
)
def test_names_that_are_not_kept_are_told(tmp_path: Path, people: pandas.DataFrame, names: tuple[str, ...], why: str) -> None:
    anndata(people, tmp_path / "cells.h5ad", names)
    notes: list[str] = []
    header = dfeas.ingest(tmp_path / "cells.h5ad", tmp_path / "data", label_column="kind", note=notes.append)
    assert (header.features, header.format) == ((), 1)
    assert f"names of features not kept: {why}" in notes
    assert keep_names(names, 4) == ((), f"names of features not kept: {why}")


def test_a_csv_with_two_columns_of_a_name_is_read_without_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,x,kind\n1,2,p\n2,1,q\n")
    done = typed("ingest", "a.csv", "data", "--label-column", "kind", cwd=tmp_path)
    assert done.returncode == 0
    assert "names of features not kept: 2 are called x" in done.stdout + done.stderr


@pytest.mark.parametrize("value", [3, [1.0, 2.0, 3.0, 4.0], [["a", "b"], ["c", "d"]]])
def test_an_attribute_that_is_no_list_of_text_is_told_and_points_are_read(
    tmp_path: Path, people: pandas.DataFrame, value: Any
) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["X"], file["y"] = points(people), (people.kind == "good").to_numpy()
        file["X"].attrs["features"] = value
    notes: list[str] = []
    assert dfeas.ingest(tmp_path / "a.h5", tmp_path / "data", note=notes.append).features == ()
    assert any(note.startswith("names of features not read: expected a list of text") for note in notes)


def test_a_pickle_of_names_is_not_loaded(tmp_path: Path, people: pandas.DataFrame) -> None:
    X, y = points(people), (people.kind == "good").to_numpy()
    np.savez(tmp_path / "a.npz", X=X, y=y, feature_names=np.array(NAMES, object))
    notes: list[str] = []
    assert dfeas.ingest(tmp_path / "a.npz", tmp_path / "data", note=notes.append).features == ()
    assert any("names of features not read" in note for note in notes)


def test_names_that_lead_out_of_a_file_are_not_followed(tmp_path: Path, people: pandas.DataFrame) -> None:
    anndata(people, tmp_path / "other.h5ad")
    anndata(people, tmp_path / "a.h5ad")
    with h5py.File(tmp_path / "a.h5ad", "a") as file:
        del file["var"]["_index"]
        file["var"]["_index"] = h5py.ExternalLink("other.h5ad", "/var/_index")
    notes: list[str] = []
    assert dfeas.ingest(tmp_path / "a.h5ad", tmp_path / "data", label_column="kind", note=notes.append).features == ()
    assert any("external link" in note for note in notes)


@pytest.fixture
def room(tmp_path: Path, people: pandas.DataFrame, moved: pandas.DataFrame) -> Path:
    """data and a run of it; moved with another order, and without any names plain."""
    dfeas.ingest(people, tmp_path / "data", label_column="kind", block_rows=150)
    dfeas.ingest(moved, tmp_path / "moved", label_column="kind")
    np.save(tmp_path / "X.npy", points(people))
    np.save(tmp_path / "y.npy", people.kind.to_numpy(str))
    dfeas.ingest(tmp_path / "X.npy", tmp_path / "plain", y=tmp_path / "y.npy", block_rows=150)
    dfeas.solve(tmp_path / "data", intercept=True, transform=["std", "center"], out=tmp_path / "run")
    return tmp_path


ORDER = "the same features in another order"


def test_views_keep_names(room: Path) -> None:
    data, mask = str(room / "data"), np.arange(N) % 2 == 0
    np.save(room / "mask.npy", mask)
    transform = Transform("std", True, True, N, (0.0,) * 4, (1.0,) * 4)
    sources = [
        Source(DataSpec(data, intercept=True)),
        Source(DataSpec(data, positive="bad")),
        Source(DataSpec(data, mask=str(room / "mask.npy"))),
        Source(DataSpec(data, also=(str(room / "plain"),))),
        Source(DataSpec(room / "plain", also=(data,))),
        Source(DataSpec(data, transform=transform)),
        Source(DataSpec(data, point=(1.0, 2.0, 3.0, 4.0))),
    ]
    assert {open_source(source).features for source in sources} == {NAMES}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("solve", "data", "--also", "moved", "--out", "both"), 4),
        (("predict", "run", "moved", "scores.npy"), 4),
        (("verify", "moved", "run/certificate.npz", "--intercept"), 6),
    ],
)
def test_another_order_is_refused(room: Path, moved: pandas.DataFrame, words: tuple[str, ...], code: int) -> None:
    moved.to_csv(room / "moved.csv", index=False)
    before = (room / "data" / "zarr.json").read_bytes()
    done = typed(*words, cwd=room)
    (line,) = done.stderr.splitlines()[-1:]
    assert ORDER in line
    assert NAMES[0] in line
    assert done.returncode == code
    assert (room / "data" / "zarr.json").read_bytes() == before


def test_other_names_are_said(room: Path, people: pandas.DataFrame) -> None:
    other = people.rename(columns={"ZIP": "postcode"})
    with pytest.raises(BadInputError, match="without ZIP, with postcode"):
        dfeas.predict(room / "run", other, "kind")


def test_certificates_have_names_and_are_of_them(room: Path) -> None:
    certificate = load(room / "run" / "certificate.npz")
    assert certificate.features == NAMES
    with np.load(room / "run" / "certificate.npz", allow_pickle=False) as held:
        assert int(held["format"]) == 2
        assert tuple(json.loads(str(held["features"]))) == NAMES
    assert typed("verify", "run", cwd=room).returncode == 0
    replace(certificate, features=NAMES[::-1]).save(room / "other.npz")
    with pytest.raises(CheckFailedError, match=ORDER):
        dfeas.verify_certificate(room / "data", room / "other.npz", intercept=True)


def test_the_same_points_under_other_names_are_other_data_and_without_names_are_not(
    room: Path, people: pandas.DataFrame
) -> None:
    named = dfeas.ingest(people.rename(columns={"ZIP": "postcode"}), room / "new", label_column="kind", block_rows=150)
    dfeas.solve(room / "data", intercept=True, out=room / "own")
    certificate = room / "own" / "certificate.npz"
    assert named.fingerprint == load(certificate).fingerprint
    with pytest.raises(CheckFailedError, match="without ZIP, with postcode"):
        dfeas.verify_certificate(room / "new", certificate, intercept=True)
    assert dfeas.verify_certificate(room / "plain", certificate, intercept=True).verdict == "feasible"


def test_a_soft_margin_keeps_them(room: Path) -> None:
    dfeas.soft_margin(room / "data", C=1.0, out=room / "soft")
    assert load(room / "soft" / "certificate.npz").features == NAMES
    assert json.loads((room / "soft" / "result.json").read_text())["features"] == list(NAMES)


def test_info_shows_names(room: Path) -> None:
    assert "age (years), Größe, cm" in typed("info", "data", cwd=room).stdout
    described = json.loads(typed("info", "data", "--json", cwd=room).stdout)
    assert described["features"] == list(NAMES)
    found = dfeas.info(room / "data")
    assert found.to_json() == {**described, "path": str(room / "data")}
    assert str(found).splitlines()[1:] == typed("info", "data", cwd=room).stdout.splitlines()[1:]
    assert (found.n, found.features, found.classes) == (described["n"], NAMES, tuple(described["classes"]))
    assert "features" not in json.loads(typed("info", "plain", "--json", cwd=room).stdout)


def test_messages_say_the_name(tmp_path: Path, people: pandas.DataFrame) -> None:
    people.loc[11, "Größe, cm"] = np.inf
    for ask in (
        lambda: dfeas.ingest(people, tmp_path / "data", label_column="kind"),
        lambda: dfeas.solve(people, "kind"),
    ):
        with pytest.raises(BadInputError, match="point 11 feature Größe, cm: inf"):
            ask()


def test_names_are_sealed_and_one_for_each_feature(room: Path) -> None:
    meta = room / "data" / "zarr.json"
    values = json.loads(meta.read_text())
    for names in (NAMES[::-1], NAMES[:3], ("a", "a", "b", "c"), (1, 2, 3, 4)):
        values["attributes"]["dfeas"]["features"] = list(names)
        meta.write_text(json.dumps(values))
        with pytest.raises(CorruptDataError):
            open_source(Source(DataSpec(room / "data")))


def test_a_worker_has_them_for_messages(tmp_path: Path) -> None:
    target = DatasetWriter(tmp_path / "data", 2, 2, np.dtype("f4"), 2, features=("age", "income"))
    with pytest.raises(BadInputError, match="point 0 feature income: nan"):
        target.for_worker().write(0, np.array([[1, np.nan], [2, 3]], np.float32), np.array([1, -1], np.int8))


@pytest.mark.parametrize("text", ["[1, 2]", '{"a": 1}', "[", '[["a"]]'])
def test_a_certificate_whose_names_are_none_is_damaged(room: Path, text: str) -> None:
    path = room / "run" / "certificate.npz"
    with np.load(path) as held:
        arrays = {**held, "features": np.array(text)}
    np.savez(path, **arrays)
    with pytest.raises(CorruptDataError, match="not a readable certificate"):
        load(path)


def test_frames_whose_columns_share_a_name_are_refused(tmp_path: Path, people: pandas.DataFrame) -> None:
    twice = people.rename(columns={"ZIP": NAMES[0]})
    for frame in (twice, dask.dataframe.from_pandas(twice, npartitions=2)):
        with pytest.raises(BadInputError, match=r"uplicate column names|same name|two columns are called"):
            dfeas.ingest(frame, tmp_path / "data", label_column="kind")


def test_differences() -> None:
    assert difference(("a", "b"), ("a", "b")) == difference((), ("a",)) == difference(("a",), ()) == ""
    assert difference(("b", "a"), ("a", "b")) == f"{ORDER} (at 0 stands b, not a)"
    assert difference(("a",), ("a", "b")) == "other features (without b)"
    assert difference(("a", "b", "c"), ("a", "b")) == "other features (with c)"
    many = tuple("cdefgh")
    assert difference(("a", *many), ("a",)) == "other features (with c, d, e, f, g, ..)"
