"""Data frames of the caller as points, labels and names of features: those that narwhals knows, and those of Dask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfeas.data.storage.numbers import array_of, exact, missing_error, require_exact
from dfeas.data.storage.places import place
from dfeas.errors import BadInputError, UsageError, near

if TYPE_CHECKING:  # at run time it is imported where a frame may be: that takes 50 ms, and commands have paths
    import narwhals.stable.v2 as nw

SHOWN = 5
"""Columns that a message names."""


class Table(NamedTuple):
    """Points and labels as they are given, or as they come from a frame."""

    X: Any
    labels: Any
    features: tuple[str, ...] = ()  # names of the columns of X; none of an array


def is_lazy(frame: Any) -> bool:
    """Whether it is a Dask data frame: in partitions that are computed when they are asked for."""
    return hasattr(frame, "to_dask_array") and hasattr(frame, "partitions") and frame.ndim == 2


def is_frame(X: Any) -> bool:
    """Whether it is a data frame in memory. Raises BadInputError for a lazy one of polars."""
    if isinstance(X, np.ndarray | list | tuple):
        return False
    from narwhals.stable.v2 import dependencies

    if dependencies.is_polars_lazyframe(X):
        raise BadInputError("a lazy frame of polars: collect() it first")
    return bool(dependencies.is_into_dataframe(X))


def columns_of(X: Any) -> tuple[str, ...]:
    """Names of the columns of a data frame; none of anything else."""
    if is_lazy(X):
        return tuple(map(str, X.columns))
    return tuple(map(str, open_frame(X, "X").columns)) if is_frame(X) else ()


def split(X: Any, labels: Any) -> Table:
    """Points, labels and names of features; ``labels`` may name a column of a frame, and be a series. Of a Dask frame points
    become a Dask array, in whose chunks they are computed when they are read. Raises BadInputError for columns that are no
    numbers, missing values, and rows in another order than those of the labels.
    """
    labels = labels.compute() if hasattr(labels, "to_dask_array") else labels
    if not is_lazy(X) and not is_frame(X):
        return Table(X, values_of(labels))
    require_aligned(X, labels, "labels")
    if is_lazy(X):
        return _of_dask(X, labels)
    frame = open_frame(X, "X")
    if isinstance(labels, str | int | tuple) and str(labels) in frame.columns:
        frame, labels = frame.drop(str(labels)), frame[str(labels)]
    else:
        _require_file(labels, frame.columns)
    return Table(_points(frame), values_of(labels), tuple(frame.columns))


def make_frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = (), library: str | None = None) -> Any:
    """Some columns of rows, or all of the first one, as a frame of a library, or of pandas or polars, the first that is there.
    Raises UsageError without both.
    """
    import narwhals.stable.v2 as nw

    known: list[Any] = [library] if library else [name for name in ("pandas", "polars") if find_spec(name)]
    if not known:
        raise UsageError("a frame needs pandas or polars: pip install pandas")
    cells = {key: [row.get(key) for row in rows] for key in columns or (rows[0] if rows else ())}
    return nw.from_dict(cells, backend=known[0]).to_native()


def values_of(labels: Any, where: str = "labels") -> Any:
    """A series, or a frame of one column, as an array, with plain categories; else as it is. Raises BadInputError for gaps."""
    labels = labels.compute() if hasattr(labels, "to_dask_array") else labels
    series = _series(labels)
    if series is None:
        return labels
    gaps = series.is_null()
    if gaps.any():
        point = int(gaps.to_numpy().argmax())
        raise BadInputError(f"{where}: the {'label' if where == 'labels' else 'entry'} of point {point} is missing; correct it")
    return (_decode_categories(series) if is_categorical(series) else series).to_numpy()


def is_categorical(labels: Any) -> bool:
    """Whether it is a series of categories."""
    import narwhals.stable.v2 as nw

    series = _series(labels)
    return series is not None and series.dtype in (nw.Categorical, nw.Enum)


def point_of(point: Any) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """The entries (m,) of one point, and what they are called in a series or a frame of one row; rows by number have no names.
    Raises BadInputError for numbers that float64 has not, and for other shapes.
    """
    from narwhals.stable.v2 import dependencies

    frame = is_frame(point)
    index: Any = getattr(point, "columns" if frame else "index", None)
    named = frame or dependencies.is_pandas_like_series(point)
    names = map(str, columns_of(point) if frame else index) if named and type(index).__name__ != "RangeIndex" else ()
    values = array_of(split(point, None).X if frame else values_of(point, "the point"), "the point")
    values = values.astype(object) if values.dtype.kind in "iu" else values  # of few numbers each is compared
    values = exact(values, np.float64, "the point")
    if values.ndim > 2 or values.ndim == 0 or (values.ndim == 2 and len(values) != 1):
        raise BadInputError(f"the point: expected its entries (m,), got an array of shape {values.shape}")
    return values.reshape(-1), tuple(names)


def _series(labels: Any) -> nw.Series[Any] | None:
    """A series, or the only one of a frame; None for what is no such thing."""
    if labels is None or isinstance(labels, np.ndarray | list | tuple):
        return None
    import narwhals.stable.v2 as nw
    from narwhals.stable.v2 import dependencies

    if is_frame(labels) and len(labels.columns) == 1:
        frame = open_frame(labels, "labels")
        return frame[frame.columns[0]]
    if isinstance(labels, nw.Series):
        return labels
    return nw.from_native(labels, series_only=True) if dependencies.is_into_series(labels) else None


def _decode_categories(series: nw.Series[Any]) -> nw.Series[Any]:
    """Categories of pandas and of Arrow may be numbers, whose order is another one than that of their texts."""
    import narwhals.stable.v2 as nw
    from narwhals.stable.v2 import dependencies

    native = series.to_native()
    categories = getattr(getattr(native, "dtype", None), "categories", None)
    if categories is not None and dependencies.is_pandas_like_series(native):
        return nw.from_native(native.astype(categories.dtype), series_only=True)
    kind = getattr(getattr(native, "type", None), "value_type", None)
    return series.cast(nw.String) if kind is None else nw.from_native(native.cast(kind), series_only=True)


def open_frame(X: Any, where: str) -> nw.DataFrame[Any]:
    """A frame whose columns are called by text: in pandas they may be anything. Raises BadInputError for one that is none."""
    import narwhals.stable.v2 as nw
    from narwhals.stable.v2 import dependencies

    if dependencies.is_pandas_like_dataframe(X) and not all(isinstance(name, str) for name in X.columns):
        X = X.set_axis([str(name) for name in X.columns], axis=1)
    try:
        frame: nw.DataFrame[Any] = nw.from_native(X, eager_only=True)
    except (ValueError, nw.exceptions.NarwhalsError) as error:
        raise BadInputError(f"{where}: {' '.join(str(error).split())}") from None
    return frame


def fill_sparse(frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """With sparse columns of pandas as those of their numbers."""
    import narwhals.stable.v2 as nw

    kinds = {name: kind.subtype for name, kind in _sparse_kinds(frame).items()}
    return nw.from_native(frame.to_native().astype(kinds), eager_only=True) if kinds else frame


def _sparse_kinds(frame: nw.DataFrame[Any]) -> dict[str, Any]:
    """Types of the sparse columns of pandas, by name."""
    from narwhals.stable.v2 import dependencies

    native = frame.to_native()
    kinds = zip(frame.columns, native.dtypes, strict=True) if dependencies.is_pandas_like_dataframe(native) else ()
    return {name: kind for name, kind in kinds if hasattr(kind, "fill_value")}


def _of_dask(X: Any, labels: Any) -> Table:
    if isinstance(labels, str | int | tuple) and labels in list(X.columns):
        X, column = X.drop(columns=[labels]), X[labels]
        labels = column.compute()
    else:
        _require_file(labels, list(map(str, X.columns)))
    kinds = dict(zip(map(str, X.columns), X.dtypes, strict=True))
    if len(kinds) < len(X.columns):
        raise BadInputError("X: two columns are called alike; rename one")
    _require_numbers({name: getattr(kind, "kind", "O") in "biuf" for name, kind in kinds.items()}, kinds)
    stored = _side_by_side([_numpy_type(kind) for kind in X.dtypes])
    if any(kind != stored for kind in X.dtypes):
        X = X.map_partitions(_in_type, stored, meta=X._meta.astype(stored))
    return Table(X.to_dask_array(lengths=True), values_of(labels), tuple(kinds))


def _in_type(partition: Any, dtype: np.dtype[Any]) -> Any:
    """A partition in one type. Raises BadInputError for values that are missing, or that the type does not hold."""
    columns = {}
    for name in partition.columns:
        if partition[name].isna().any():
            raise missing_error(f"X: column {name}")
        columns[name] = exact(partition[name].to_numpy(), dtype, f"X: column {name}")
    return type(partition)(columns, index=partition.index)


def _numpy_type(kind: Any) -> np.dtype[Any]:
    """What NumPy has for a type of pandas; whole numbers and truth values that may be missing stand in float64."""
    if isinstance(kind, np.dtype):
        return kind
    return np.dtype(kind.numpy_dtype if kind.kind == "f" else np.float64)


def _side_by_side(kinds: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """The type of columns of these types: of several, whole numbers stand in float64."""
    return kinds[0] if len(set(kinds)) == 1 else np.result_type(*(np.float64 if kind.kind in "iu" else kind for kind in kinds))


def _require_file(labels: Any, columns: Sequence[str]) -> None:
    """Raise BadInputError for labels by a name that no column of X has, and no file."""
    if isinstance(labels, int) or (isinstance(labels, str) and not place(labels).exists()):
        raise no_column(str(labels), columns, "X")


def no_column(name: str, columns: Sequence[str], where: str) -> BadInputError:
    """The error for a column that a table has not."""
    shown = ", ".join(columns[:8]) + (", ..." if len(columns) > 8 else "")
    return BadInputError(f"{where}: no column {name}{near(name, columns)}; the columns are {shown}")


def _require_numbers(numeric: dict[str, bool], kinds: Any) -> None:
    other = [name for name, number in numeric.items() if not number]
    if other:
        which = ", ".join(f"{name} ({kinds[name]})" for name in other[:SHOWN])
        more = f" and {len(other) - SHOWN} more" if len(other) > SHOWN else ""
        raise BadInputError(f"X: no numbers in {which}{more}; code them by numbers, drop them, or name the one of labels")


def require_aligned(X: Any, labels: Any, what: str) -> None:
    """Raise BadInputError for labels of pandas whose rows are in another order than those of X, a frame of pandas or Dask."""
    from narwhals.stable.v2 import dependencies

    if not (dependencies.is_pandas_like_series(labels) or dependencies.is_pandas_like_dataframe(labels)):
        return
    index = X.index.compute() if is_lazy(X) else X.index if dependencies.is_pandas_like_dataframe(X) else labels.index
    if not index.equals(labels.index):
        raise BadInputError(
            f"X and {what} have other rows, or the same in another order: align them, or give {what}.to_numpy()"
        )


def _points(frame: nw.DataFrame[Any]) -> Any:
    """Columns side by side: without a copy where all are of one type that NumPy has, of pandas' sparse columns a CSR matrix."""
    import narwhals.stable.v2 as nw
    from narwhals.stable.v2 import dependencies

    if not frame.columns:
        raise BadInputError("X: a frame without a column")
    sparse = _sparse_kinds(frame)
    if len(sparse) == len(frame.columns) and all(kind.fill_value == 0 for kind in sparse.values()):
        return frame.to_native().sparse.to_coo().tocsr()
    frame = fill_sparse(frame)
    native, columns, schema = frame.to_native(), frame.columns, frame.schema
    _require_numbers({name: kind.is_numeric() or kind == nw.Boolean for name, kind in schema.items()}, schema)
    numpy_like = dependencies.is_pandas_like_dataframe(native) and all(isinstance(kind, np.dtype) for kind in native.dtypes)
    if numpy_like and len(set(native.dtypes)) == 1:
        return native.to_numpy()
    for name in () if numpy_like else columns:
        gaps = frame[name].is_null()
        if gaps.any():
            count, row = int(gaps.sum()), int(gaps.to_numpy().argmax())
            raise BadInputError(f"X: column {name} has {count} missing values, the first in row {row}; fill or drop them")
    arrays = [number(frame[name], "X") for name in columns]
    points = np.empty((len(frame), len(columns)), _side_by_side([array.dtype for array in arrays]))
    for column, array in enumerate(arrays):
        points[:, column] = array
    return points


def number(series: nw.Series[Any], where: str) -> NDArray[Any]:
    """A column of numbers in NumPy. Raises BadInputError for an integer that float64 has not."""
    import narwhals.stable.v2 as nw

    where, held = f"{where}: column {series.name}", plain(series)
    if held is not None and held.dtype.itemsize <= 8:
        require_exact(held, where)
        return held
    return exact((series.cast(nw.Float64) if series.dtype.is_decimal() else series).to_numpy(), np.float64, where)


def plain(series: nw.Series[Any]) -> NDArray[Any] | None:
    """Numbers and truth values that pandas has in NumPy, without a gap but NaN, and sooner than narwhals gives them."""
    native = series.to_native()
    kind = getattr(native, "dtype", None)
    return native.to_numpy() if isinstance(kind, np.dtype) and kind.kind in "biuf" else None
