"""Ingest: every source gives the same dataset; bad input leaves nothing behind."""

import inspect
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

import dfeas
from dfeas import ingest
from dfeas.data.ingest import array_files
from dfeas.data.ingest.options import IngestOptions
from dfeas.data.labels import encode_array
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.readers import Cost
from dfeas.errors import BadInputError, CorruptDataError, DfeasError, UsageError
from tests.typed import says


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.standard_normal((700, 9)).astype(np.float32), np.where(rng.random(700) < 0.4, "no", "yes")


def sources(tmp_path: Path, X: np.ndarray, y: np.ndarray) -> dict[str, tuple[Path, dict[str, Any]]]:
    """The same data in every format."""
    numeric = (y == "yes").astype(int)
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", y)
    np.savez(tmp_path / "a.npz", X=X, y=y)
    np.savez_compressed(tmp_path / "b.npz", points=X, labels=numeric)
    np.save(tmp_path / "f.npy", np.asfortranarray(X))
    np.savez_compressed(tmp_path / "f.npz", X=np.asfortranarray(X), y=y)
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file["X"], file["y"] = X, numeric
        file.create_dataset("chunked", data=X, chunks=(50, 4), compression="gzip")
        file["text"] = np.array(y, dtype=h5py.string_dtype())
    zarr.create_array(tmp_path / "z", data=X, chunks=(100, 9))
    zarr.create_array(tmp_path / "zl", data=numeric, chunks=(70,))
    return {
        "npy": (tmp_path / "x.npy", {"y": str(tmp_path / "y.npy")}),
        "npz": (tmp_path / "a.npz", {}),
        "npz-compressed": (tmp_path / "b.npz", {"points": "points", "y": "labels"}),
        "npy-fortran": (tmp_path / "f.npy", {"y": str(tmp_path / "y.npy")}),
        "npz-fortran": (tmp_path / "f.npz", {}),
        "hdf5": (tmp_path / "c.h5", {}),
        "hdf5-chunked": (tmp_path / "c.h5", {"points": "chunked", "y": "text"}),
        "zarr": (tmp_path / "z", {"y": str(tmp_path / "zl")}),
    }


def test_every_format_gives_the_same_dataset(tmp_path: Path, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    marks = {}
    for name, (path, options) in sources(tmp_path, X, y).items():
        header = ingest(path, tmp_path / f"out-{name}", block_rows=64, **options)
        marks[name] = header.fingerprint, header.classes
        opened = open_source(Source(DataSpec(tmp_path / f"out-{name}")))
        points = np.concatenate([b.points.copy() for b in opened.read_blocks(range(0, opened.blocks), Cost())])
        assert np.array_equal(points, X), name
        assert header.positive == int((y == "yes").sum())
    names = {classes for _, classes in marks.values()}
    assert len(set(marks.values())) == len(names), marks  # which are all that may differ


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


@pytest.mark.parametrize(
    ("change", "words", "code"),
    [
        (lambda X, y: (X, y[:-1]), "expected 700 labels", 4),
        (lambda X, y: (X, np.full(700, 5)), "all 700 labels are 5", 4),
        (lambda X, y: (X, np.where(np.arange(700) == 9, np.nan, 1.0)), "label of point 9 is not a finite", 4),
        (lambda X, y: (X[:, 0], y), "expected points as an array", 4),
        (lambda X, y: (X[:0], y[:0]), "no points", 4),
        (lambda X, y: (X.astype(complex), y), "cannot be used", 4),
        (lambda X, y: (np.where(np.arange(9) == 4, np.nan, X), y), "point 0 feature 4: nan", 4),
        (lambda X, y: (np.where(np.arange(700)[:, None] == 650, np.inf, X), y), "point 650 feature 0: inf", 4),
        (lambda X, y: (X.astype(float) * 1e-170, y), "norms outside 1e-130", 4),
    ],
)
def test_what_cannot_be_used_is_refused_and_leaves_nothing(
    tmp_path: Path, data: tuple[np.ndarray, np.ndarray], change: Any, words: str, code: int
) -> None:
    X, y = change(*data)
    np.savez(tmp_path / "a.npz", X=X, y=y)
    with pytest.raises(DfeasError, check=says(words)) as caught:
        ingest(tmp_path / "a.npz", tmp_path / "out", block_rows=64)
    assert caught.value.exit_code == code
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_damaged_archive_is_found_in_either_order(
    tmp_path: Path, data: tuple[np.ndarray, np.ndarray], save: Any, order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_files, "SLAB_BYTES", 3000)
    save(tmp_path / "a.npz", X=np.asarray(data[0], order=order), y=data[1])
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[9000] ^= 1
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(CorruptDataError, match="damaged"):
        ingest(tmp_path / "a.npz", tmp_path / "out", block_rows=64)
    assert not (tmp_path / "out").exists()


def test_truncated_files_are_corrupt_and_leave_nothing(tmp_path: Path, data: tuple[np.ndarray, np.ndarray]) -> None:
    for name, (path, options) in sources(tmp_path, *data).items():
        if path.is_dir():
            continue
        short = tmp_path / f"short-{path.name}"
        for share in (0.1, 0.6, 0.97):
            short.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
            with pytest.raises((CorruptDataError, BadInputError)):
                ingest(short, tmp_path / "out", block_rows=64, **options)
            assert not (tmp_path / "out").exists(), name


def test_one_class_against_the_rest(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=np.ones((9, 2)), y=np.arange(9) % 3)
    header = ingest(tmp_path / "a.npz", tmp_path / "out", positive="2")
    assert (header.positive, header.classes) == (3, ("rest", "2"))
    with pytest.raises(BadInputError, match="no point has the label 5"):
        ingest(tmp_path / "a.npz", tmp_path / "out2", positive="5")


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


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from dfeas import ingest\n"
        "ingest(sys.argv[1], sys.argv[2], y=sys.argv[3])\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))\n"
    )
    peaks = []
    for n in (50_000, 600_000):
        X = np.lib.format.open_memmap(tmp_path / f"{n}.npy", mode="w+", dtype=np.float32, shape=(n, 200))
        X[:, 0] = 1
        np.save(tmp_path / f"{n}-y.npy", np.arange(n, dtype=np.int8) % 2)
        del X
        run = [sys.executable, "-c", code, str(tmp_path / f"{n}.npy"), str(tmp_path / f"out{n}"), str(tmp_path / f"{n}-y.npy")]
        peaks.append(int(subprocess.run(run, check=True, capture_output=True, text=True).stdout))
    assert peaks[1] - peaks[0] < 60_000  # kB; the larger file has 440 MB more


def test_every_option_is_in_help_and_in_types() -> None:
    options = {each.name.replace("labels", "y"): each.default for each in fields(IngestOptions) if each.name != "choice"}
    parameters = inspect.signature(dfeas.ingest).parameters
    assert {name: parameters[name].default for name in options} == options
    assert all(parameters[name].annotation for name in options)
    assert not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    described = inspect.getdoc(dfeas.ingest) or ""
    assert all(f"\n{name} : " in described for name in inspect.signature(dfeas.ingest).parameters)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dtype": "int8"}, "dtype int8: expected float32 or float64"),
        ({"dtype": "number"}, "dtype number: expected float32 or float64"),
        ({"block_rows": 0}, "block_rows 0: expected at least 1"),
        ({"sparse": True, "label_column": "y"}, "--sparse is for svmlight and arrays; this is frame"),
        ({"sparse": False, "label_column": "y"}, "--dense is for svmlight and arrays; this is frame"),
    ],
)
def test_options_without_a_sense_are_refused(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    frame = pa.table({"age": [41.0, 29.0, 63.0], "income": [31_000.0, 48_500.0, 27_250.0], "y": [0, 1, 0]})
    with pytest.raises(UsageError, check=says(words)):
        ingest(frame, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_labels_in_memory_go_with_a_frame(tmp_path: Path) -> None:
    frame = pa.table({"age": [41.0, 29.0, 63.0], "income": [31_000.0, 48_500.0, 27_250.0]})
    beside = ingest(frame, tmp_path / "beside", y=["ill", "well", "ill"])
    within = ingest(frame.append_column("kind", [["ill", "well", "ill"]]), tmp_path / "within", label_column="kind")
    assert beside == within
    with pytest.raises(BadInputError, match="2 labels for 3 or more points"):
        ingest(frame, tmp_path / "out", y=[0, 1])
