"""Data frames of the caller as points, labels and names of features: those that narwhals knows, and partitions of Dask's."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.data.storage.features import NO_FEATURES, no_column
from dfeas.data.storage.files import parse_json
from dfeas.data.storage.numbers import array_of, exact, is_delayed, is_lazy_table, missing_error, require_exact
from dfeas.data.storage.places import place
from dfeas.errors import BadInputError, UsageError

if TYPE_CHECKING:  # at run time it is imported where a frame may be: that takes 50 ms, and commands have paths
    import narwhals.stable.v2 as nw

SHOWN = 5
"""Columns that a message names."""


class Table(Struct, frozen=True, eq=False):
    """Points and labels as they are given, or as they come from a frame."""

    X: Any
    labels: Any
    features: tuple[str, ...] = ()  # names of the columns of X; none of an array
    reads: int = 0  # of a Dask collection, to see what it has
    names: Any = None  # of its rows, where they have an index
    counts: Sequence[dict[Any, int]] | None = None  # points of each label, of each of its partitions


def is_lazy(frame: Any) -> bool:
    """Whether it is a Dask data frame: in partitions that are computed when they are asked for."""
    return is_lazy_table(frame) and hasattr(frame, "partitions") and frame.ndim == 2


def is_frame(X: Any) -> bool:
    """Whether it is a data frame in memory. Raises BadInputError for a lazy one of polars."""
    if isinstance(X, np.ndarray | list | tuple):
        return False
    from narwhals.stable.v2 import dependencies

    if dependencies.is_polars_lazyframe(X):
        raise BadInputError("a lazy frame of polars: collect() it first")
    if hasattr(X, "__arrow_c_array__") and hasattr(X, "num_columns"):
        raise BadInputError(f"a {type(X).__name__} of Arrow: give a table of it, as by pyarrow.Table.from_batches([X])")
    return bool(dependencies.is_into_dataframe(X))


def columns_of(X: Any) -> tuple[str, ...]:
    """Names of the columns of a data frame; none of anything else."""
    if is_lazy(X):
        return tuple(map(str, X.columns))
    return tuple(map(str, open_frame(X, "X").columns)) if is_frame(X) else ()


def select_columns(frame: Any, names: Sequence[str]) -> Any:
    """Columns of a frame by their names as text, as its own library has them, in this order."""
    if is_lazy(frame):
        known = {str(each): each for each in frame.columns}
        return frame[[known[name] for name in names]]
    if hasattr(frame, "iloc"):  # names of pandas may be anything
        places = {str(each): place for place, each in enumerate(frame.columns)}
        return frame.iloc[:, [places[name] for name in names]]
    return open_frame(frame, "X").select(list(names)).to_native()


def index_columns(X: Any) -> list[str]:
    """Columns that pandas wrote for the index of a frame, of an Arrow table or schema."""
    schema = getattr(X, "schema", X)
    return [name for name in _of_pandas(schema, "index_columns") if isinstance(name, str) and name in schema.names]


def index_range(schema: Any, rows: int) -> tuple[str | None, range] | None:
    """The name of an index of pandas that is kept as a range, and its numbers, where they are those of so many rows."""
    for each in _of_pandas(schema, "index_columns"):
        if isinstance(each, dict) and each.get("kind") == "range":
            numbers = range(*(each[key] for key in ("start", "stop", "step")))
            return (each.get("name"), numbers) if len(numbers) == rows else None
    return None


def categories_of_pandas(X: Any) -> list[str]:
    """Columns of an Arrow table or schema that were categories of pandas, whose order is theirs."""
    about = [each for each in _of_pandas(getattr(X, "schema", X), "columns") if isinstance(each, dict)]
    names = [each.get("field_name") for each in about if each.get("pandas_type") == "categorical"]
    return [name for name in names if isinstance(name, str)]


def _of_pandas(schema: Any, part: str) -> list[Any]:
    try:
        about = parse_json((getattr(schema, "metadata", None) or {}).get(b"pandas", b"{}"), {f"{part}?": [object]})
        return list(about.get(part, []))
    except ValueError:
        return []


def split(X: Any, labels: Any) -> Table:
    """Points, labels and names of features; ``labels`` may name a column of a frame, and be a series. Raises BadInputError for
    columns that are no numbers, missing values, and rows in another order than those of the labels.
    """
    labels = bring_here(labels)
    require_aligned(X, labels, "labels")
    if not is_frame(X):
        return Table(X, values_of(labels))
    frame = open_frame(X, "X")
    if isinstance(labels, str | int | tuple) and str(labels) in frame.columns:
        frame, labels = frame.drop(str(labels)), frame[str(labels)]
    else:
        require_file(labels, frame.columns)
    frame = frame.drop(index_columns(X), strict=False)
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
    labels = bring_here(labels)
    series = _series(labels)
    if series is None:
        return labels
    gaps = series.is_null()
    if gaps.any():
        point = int(gaps.to_numpy().argmax())
        raise BadInputError(f"{where}: the {'label' if where == 'labels' else 'entry'} of point {point} is missing; correct it")
    return _to_numpy(_decode_categories(series) if is_categorical(series) else series, where)


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


def kinds_of(columns: Sequence[tuple[Any, Any]]) -> np.dtype[Any]:
    """The type that points of columns of these names and types of pandas have. Raises BadInputError for what are no numbers."""
    kinds = {str(name): kind for name, kind in columns}
    _require_numbers({name: getattr(kind, "kind", "O") in "biuf" for name, kind in kinds.items()}, kinds)
    return _side_by_side([_numpy_type(kind) for kind in kinds.values()])


def make_numbers(part: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A frame of pandas in one type. Raises BadInputError for values that are missing, or that the type does not hold."""
    if all(kind == dtype for kind in part.dtypes):
        return np.asarray(part.to_numpy())
    points = np.empty(part.shape, dtype)
    for j, name in enumerate(part.columns):
        column = part.iloc[:, j]
        if column.isna().any():
            raise missing_error(f"X: column {name}")
        points[:, j] = exact(column.to_numpy(), dtype, f"X: column {name}")
    return points


def plain_column(column: Any) -> NDArray[Any]:
    """A column of pandas, with what NumPy has no type for as objects, and categories as what they stand for."""
    categories = getattr(column.dtype, "categories", None)
    column = column if categories is None else column.astype(categories.dtype if not column.isna().any() else object)
    if isinstance(column.dtype, np.dtype):
        return np.asarray(column.to_numpy())
    kind = None if column.isna().any() else getattr(column.dtype, "numpy_dtype", None)
    return np.asarray(column.to_numpy(object if kind is None else kind))


def bring_here(labels: Any) -> Any:
    """What of Dask comes to this process, but its arrays: series, frames of one column and what is delayed."""
    if not (is_lazy_table(labels) or is_delayed(labels)):
        return labels
    return compute_in_order(labels)


def compute_in_order(values: Any) -> Any:
    """What is lazy, in memory, a shuffled frame in the order of all who ask; else as it is."""
    if not hasattr(values, "compute"):
        return values
    require_partitions(values)
    with rows_in_order():
        return values.compute()


def require_partitions(frame: Any) -> None:
    """Raise BadInputError for what Dask persisted in fewer partitions than it counts, so that nothing of it can be computed."""
    expression = getattr(frame, "expr", None)  # dask/dask#12488
    for node in expression.walk() if expression is not None else ():
        if type(node).__name__ == "FromGraph" and len(node.operand("keys")) < node.npartitions:
            raise BadInputError(
                f"a persisted Dask frame that cannot be computed: Dask counts {node.npartitions} partitions and has "
                f"{len(node.operand('keys'))}, as of chosen columns of read_parquet; persist all columns, and choose "
                "afterwards: frame.persist()[columns]; or persist frame[columns].repartition(npartitions=frame.npartitions)"
            )


def rows_in_order() -> Any:
    """Frames of Dask that are asked meanwhile give their rows in one order: other shuffles give another one each time."""
    dask = sys.modules.get("dask")
    return nullcontext() if dask is None else dask.config.set({"dataframe.shuffle.method": "tasks"})


def _numpy_type(kind: Any) -> np.dtype[Any]:
    """What NumPy has for a type of pandas; whole numbers and truth values that may be missing stand in float64."""
    if isinstance(kind, np.dtype):
        return kind
    found: np.dtype[Any] = np.dtype(getattr(kind, "subtype", None) or (kind.numpy_dtype if kind.kind == "f" else np.float64))
    return found  # of sparse columns that of their entries


def _side_by_side(kinds: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """The type of columns of these types: of several, whole numbers stand in float64."""
    if len(set(kinds)) == 1:
        return kinds[0]
    return np.dtype(np.result_type(*(np.float64 if kind.kind in "iu" else kind for kind in kinds)))


def require_file(labels: Any, columns: Sequence[str]) -> None:
    """Raise BadInputError for labels by a name that no column of X has, and no file."""
    if isinstance(labels, int) or (isinstance(labels, str) and not place(labels).exists()):
        if not columns:
            raise BadInputError(f"{labels}: no such file or folder (labels), and X has no names of columns")
        raise no_column(str(labels), columns, "X")


def _require_numbers(numeric: dict[str, bool], kinds: Any) -> None:
    other = [name for name, number in numeric.items() if not number]
    if other:
        which = ", ".join(f"{name} ({kinds[name]})" for name in other[:SHOWN])
        more = f" and {len(other) - SHOWN} more" if len(other) > SHOWN else ""
        how = f"{NO_FEATURES}, code them by numbers, or name the one of labels"
        raise BadInputError(f"X: no numbers in {which}{more}; {how}")


def require_aligned(X: Any, labels: Any, what: str, names: Any = None, beside: str = "X") -> None:
    """Raise BadInputError for labels of pandas whose rows are in another order than those of X, a frame of pandas, or of Dask
    whose ``names`` of rows are known; and for labels of xarray that have other coordinates of their dimension than X.
    """
    if labels is None or isinstance(labels, np.ndarray | list | tuple | str):  # without what takes long to load
        return
    from narwhals.stable.v2 import dependencies

    if has_other_coordinates(X, labels, slice(1)):
        raise other_rows(what, beside)
    if not (dependencies.is_pandas_like_series(labels) or dependencies.is_pandas_like_dataframe(labels)):
        return
    if names is not None:
        names.require(type(names).of(labels.index), what, beside)
    elif dependencies.is_pandas_like_dataframe(X) and not X.index.equals(labels.index):
        raise other_rows(what, beside)


def has_other_coordinates(X: Any, other: Any, axes: slice) -> bool:
    """Whether dimensions of an array of xarray have other coordinates in a second one, which has them at these axes."""
    if not (hasattr(X, "indexes") and hasattr(other, "indexes")):
        return False
    shared = [dim for dim in other.dims[axes] if dim in X.indexes and dim in other.indexes]
    return any(not X.indexes[dim].equals(other.indexes[dim]) for dim in shared)


def other_rows(what: str, beside: str = "X") -> BadInputError:
    """The error for labels, or other values of rows, whose index is not that of the points."""
    where = f"{beside} and {what} have other rows, or the same in another order"
    return BadInputError(f"{where}: align them, or give {what}.to_numpy(), or .to_dask_array() of Dask")


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
    return exact(_to_numpy(series.cast(nw.Float64) if series.dtype.is_decimal() else series, where), np.float64, where)


def _to_numpy(series: nw.Series[Any], where: str) -> NDArray[Any]:
    """Values of a series; those of 128 bits, which NumPy does not have, in float64."""
    wide = str(series.dtype) in ("Int128", "UInt128")
    return exact(np.array(series.to_list(), object), np.float64, where) if wide else series.to_numpy()


def plain(series: nw.Series[Any]) -> NDArray[Any] | None:
    """Numbers and truth values that pandas has in NumPy, without a gap but NaN, and sooner than narwhals gives them."""
    native = series.to_native()
    kind = getattr(native, "dtype", None)
    return native.to_numpy() if isinstance(kind, np.dtype) and kind.kind in "biuf" else None
