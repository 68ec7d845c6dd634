"""What a caller hands over passes one gate in every verb and estimator: taken as it is, or refused in one line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dfeas
from dfeas.estimators import Separator

X = np.random.default_rng(3).standard_normal((40, 3))
Y = np.arange(40) % 2


MADE_UP: list[tuple[Callable[[Any, tuple[int, ...]], None], str]] = [
    (lambda file, shape: file.create_dataset("X", shape, "f8", chunks=shape), "chunks were never written"),
    (lambda file, shape: file.create_virtual_dataset("X", h5py.VirtualLayout(shape, "f8")), "a virtual dataset"),
]
ASKED: dict[str, tuple[tuple[int, ...], Callable[[Any], Any]]] = {
    "X": ((40, 3), lambda given: dfeas.solve(given, Y)),
    "y": ((40,), lambda given: dfeas.solve(X, given)),
    "mask": ((40,), lambda given: dfeas.solve(X, Y, mask=given)),
    "weights": ((40,), lambda given: dfeas.soft_margin(X, Y, weights=given)),
    "start": ((4,), lambda given: dfeas.soft_margin(X, Y, start=given)),
    "point": ((3,), lambda given: dfeas.in_hull(given, X)),
    "A": ((40, 3), lambda given: dfeas.feasible(given, np.ones(40))),
    "b": ((40,), lambda given: dfeas.feasible(X, given)),
    "E": ((40, 3), lambda given: dfeas.feasible(X, np.ones(40), equal=(given, np.ones(40)))),
    "bounds": ((3, 2), lambda given: dfeas.feasible(X, np.ones(40), bounds=given)),
    "separation": ((40, 3), lambda given: dfeas.separation(given, Y)),
    "regression": ((40, 3), lambda given: dfeas.check_separation(given, Y)),
    "outcome": ((40,), lambda given: dfeas.check_separation(X, given)),
}


@pytest.mark.parametrize(("make", "text"), MADE_UP, ids=["unwritten", "virtual"])
@pytest.mark.parametrize("name", ASKED)
def test_datasets_of_an_open_file_are_refused_as_by_path(tmp_path: Path, make: Any, text: str, name: str) -> None:
    shape, ask = ASKED[name]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        make(file, shape)
        with pytest.raises(dfeas.DfeasError, match=text):
            ask(file["X"])


@pytest.mark.parametrize("name", [*ASKED, "ingest"])
def test_datasets_of_a_closed_file_are_refused_in_one_line(tmp_path: Path, name: str) -> None:
    shape, ask = ASKED.get(name, ((40, 3), lambda given: dfeas.ingest(given, tmp_path / "out")))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        given = file.create_dataset("X", data=np.ones(shape))
    with pytest.raises(dfeas.BadInputError, match="a dataset of an HDF5 file that is closed"):
        ask(given)


def test_text_of_an_open_file_is_text(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["y"] = ["yes" if label else "no" for label in Y]
        assert dfeas.solve(X, file["y"]).classes == ("no", "yes")
        assert dfeas.check_separation(X, file["y"]).finite
        assert Separator().fit(X, file["y"]).classes_.tolist() == ["no", "yes"]


def texts(missing: Any) -> Any:
    return np.array(["b", missing, *["a", "b"] * 19], np.dtypes.StringDType(na_object=missing))


GAPS = {
    "StringDType of None": texts(None),
    "StringDType of nan": texts(np.nan),
    "StringDType of NA": texts(pd.NA),
    "boolean": pd.array([True, None, *(Y[2:] > 0)], dtype="boolean"),
    "string": pd.array(["b", None, *["a", "b"] * 19], dtype="string"),
    "list": [1, pd.NA, *Y[2:].tolist()],
    "object": np.array([1, pd.NA, *Y[2:].tolist()], object),
}


@pytest.mark.parametrize("y", GAPS.values(), ids=GAPS)
def test_labels_that_are_missing_beside_a_frame_are_named(y: Any) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    chunks = da.from_array(X, chunks=(20, 3))
    for call in (dfeas.solve, dfeas.suspects, dfeas.check_separation):
        for points in (frame, X) if call is not dfeas.solve else (frame, X, chunks):
            with pytest.raises(dfeas.BadInputError, match=r"label of point 1 is missing|the first in row 1"):
                call(points, y)
    assert dfeas.check_separation(frame, y, missing="drop").finite


def test_points_that_miss_a_value_are_dropped_where_asked() -> None:
    points = X.astype(object)
    points[1, 2] = pd.NA
    for given in (points, points.tolist()):
        with pytest.raises(dfeas.BadInputError, match="a value is missing"):
            dfeas.solve(given, Y)
        assert dfeas.check_separation(given, Y, missing="drop").finite


def test_integers_of_128_bits_are_taken_or_refused() -> None:
    whole = pl.Series("a", [1, 2, -1, -2], dtype=pl.Int128)
    frame, y = pl.DataFrame({"a": whole}), pl.Series([1, 1, 0, 0], dtype=pl.Int128)
    assert dfeas.solve(frame, y).verdict == "feasible"
    assert not dfeas.check_separation(frame, y).finite
    with pytest.raises(dfeas.BadInputError, match="column a: 9007199254740993 has no exact float64"):
        dfeas.solve(frame + (2**53), y)


def test_a_record_batch_is_called_so() -> None:
    batch = pa.record_batch({"a": [1.0, 2, 3, 4], "y": ["p", "p", "q", "q"]})
    for call in (dfeas.solve, dfeas.check_separation, dfeas.hard_margin):
        with pytest.raises(dfeas.BadInputError, match="a RecordBatch of Arrow: give a table"):
            call(batch, "y")
