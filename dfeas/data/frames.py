"""Data frames of the caller as points, labels and names of features: those that narwhals knows, and those of Dask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.stable.v2 import dependencies

from dfeas.errors import BadInputError

SHOWN = 5
"""Columns that a message names."""
EXACT = 2**53
"""Integers up to this are exact in float64."""


@dataclass(frozen=True)
class Table:
    """Points and labels as they are given, or as they come from a frame."""

    X: Any
    labels: Any
    features: tuple[str, ...] = ()  # names of the columns of X; none of an array


def is_lazy(frame: Any) -> bool:
    """Whether it is a Dask data frame: in partitions that are computed when they are asked for."""
    return hasattr(frame, "columns") and hasattr(frame, "partitions") and hasattr(frame, "to_dask_array")


def is_frame(X: Any) -> bool:
    """Whether it is a data frame in memory."""
    return bool(dependencies.is_into_dataframe(X))


def columns_of(X: Any) -> tuple[str, ...]:
    """Names of the columns of a data frame; none of anything else."""
    if is_lazy(X):
        return tuple(map(str, X.columns))
    return tuple(map(str, _opened(X).columns)) if is_frame(X) else ()


def split(X: Any, labels: Any) -> Table:
    """Points, labels and names of features; ``labels`` may name a column of a frame, and be a series.

    Of a Dask frame points become a Dask array, in whose chunks they are computed when they are read. Raises BadInputError for
    columns that are no numbers, missing values, and rows in another order than those of the labels.
    """
    if is_lazy(X):
        return _of_dask(X, labels)
    if not is_frame(X):
        return Table(X, values_of(labels))
    _require_aligned(X, labels)
    frame = _opened(X)
    if isinstance(labels, str) and labels in frame.columns:
        frame, labels = frame.drop(labels), frame[labels]
    elif isinstance(labels, str):
        _refuse_near(labels, frame.columns)
    return Table(_points(frame), values_of(labels), tuple(map(str, frame.columns)))


def values_of(labels: Any) -> Any:
    """A series as an array, with categories as text; anything else as it is. Raises BadInputError for a missing label."""
    if not isinstance(labels, nw.Series):
        if not dependencies.is_into_series(labels):
            return labels
        labels = nw.from_native(labels, series_only=True)
    missing = labels.is_null()
    if missing.any():
        point = int(missing.to_numpy().argmax())
        raise BadInputError(f"labels: the label of point {point} is missing; remove or correct it")
    if labels.dtype in (nw.Categorical, nw.Enum):
        labels = labels.cast(nw.String)
    return labels.to_numpy()


def _opened(X: Any) -> nw.DataFrame[Any]:
    try:
        return nw.from_native(X, eager_only=True)
    except ValueError as error:
        raise BadInputError(f"X: {error}") from None


def _of_dask(X: Any, labels: Any) -> Table:
    if isinstance(labels, str) and labels in list(X.columns):
        X, column = X.drop(columns=[labels]), X[labels]
        labels = column.compute()
    elif isinstance(labels, str):
        _refuse_near(labels, list(map(str, X.columns)))
    kinds = dict(zip(map(str, X.columns), X.dtypes, strict=True))
    _require_numbers({name: getattr(kind, "kind", "O") in "biuf" for name, kind in kinds.items()}, kinds)
    odd = {name: "float64" for name, kind in zip(X.columns, X.dtypes, strict=True) if not _plain(kind)}
    return Table((X.astype(odd) if odd else X).to_dask_array(lengths=True), values_of(labels), tuple(kinds))


def _plain(kind: Any) -> bool:
    """Whether a type of pandas is one of NumPy, whose values stand beside numbers as they are."""
    return isinstance(kind, np.dtype) and kind.kind != "b"


def _refuse_near(name: str, columns: Sequence[str]) -> None:
    """Raise BadInputError for a name that is nearly that of a column; others are paths."""
    near = get_close_matches(name, columns, 1)
    if near:
        raise BadInputError(f"X: no column {name}; did you mean {near[0]}?")


def _require_numbers(numeric: dict[str, bool], kinds: Any) -> None:
    other = [name for name, number in numeric.items() if not number]
    if other:
        which = ", ".join(f"{name} ({kinds[name]})" for name in other[:SHOWN])
        more = f" and {len(other) - SHOWN} more" if len(other) > SHOWN else ""
        raise BadInputError(f"X: no numbers in {which}{more}; code them by numbers, drop them, or name the one of labels")


def _require_aligned(X: Any, labels: Any) -> None:
    """Raise BadInputError for labels of pandas whose rows are in another order than those of X."""
    pandas = dependencies.is_pandas_like_dataframe(X) and dependencies.is_pandas_like_series(labels)
    if pandas and not X.index.equals(labels.index):
        raise BadInputError("X and labels have other rows, or the same in another order: align them, or give labels.to_numpy()")


def _points(frame: nw.DataFrame[Any]) -> Any:
    """Columns side by side: without a copy where all are of one type that NumPy has, of pandas' sparse columns a CSR matrix."""
    native = frame.to_native()
    if hasattr(native, "sparse") and all(str(kind).startswith("Sparse") for kind in native.dtypes):
        return native.sparse.to_coo().tocsr()
    columns, schema = frame.columns, frame.schema
    if not columns:
        raise BadInputError("X: a frame without a column")
    _require_numbers({name: kind.is_numeric() or kind == nw.Boolean for name, kind in schema.items()}, schema)
    numpy_like = dependencies.is_pandas_like_dataframe(native) and all(isinstance(kind, np.dtype) for kind in native.dtypes)
    if numpy_like and len(set(native.dtypes)) == 1:
        return native.to_numpy()
    if not numpy_like:
        _refuse_gaps(frame)
    arrays = [_column(frame[name], name) for name in columns]
    points = np.empty((len(frame), len(columns)), np.result_type(*(np.float64 if a.dtype.kind in "iu" else a for a in arrays)))
    for place, array in enumerate(arrays):
        points[:, place] = array
    return points


def _refuse_gaps(frame: nw.DataFrame[Any]) -> None:
    for name in frame.columns:
        missing = frame[name].is_null()
        if missing.any():
            count, row = int(missing.sum()), int(missing.to_numpy().argmax())
            raise BadInputError(f"X: column {name} has {count} missing values, the first in row {row}; fill or drop them")


def _column(series: nw.Series[Any], name: str) -> Any:
    """One column in NumPy. Raises BadInputError for an integer that float64 has not."""
    if series.dtype.is_decimal():
        series = series.cast(nw.Float64)
    values = series.to_numpy()
    if values.dtype == object:
        values = values.astype(np.float64)
    wide = values.dtype.kind in "iu" and values.dtype.itemsize == 8 and len(values) > 0
    if wide and (int(values.max()) > EXACT or int(values.min()) < -EXACT):
        raise BadInputError(f"X: column {name}: an integer beyond 2**53 has no exact float64; rescale it, or drop an id")
    return values
