"""Columns of a table become rows of points: which column is the label, which types are accepted, where a value is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from dfeas.errors import BadInputError, UsageError
from dfeas.store.numbers import cast, stored_dtype
from dfeas.store.signs import Coded

TILE_ENTRIES = 1 << 15
"""Entries that are transposed at a time: they stay in cache, which takes half the time."""

LEAST_ROWS = 64


def place_of(label_column: str | None, columns: Sequence[str], where: str) -> int:
    """Index of the label column: a name, or else an index. Raises UsageError or BadInputError when there is no such column."""
    shown = ", ".join(columns[:8]) + (", ..." if len(columns) > 8 else "")
    if label_column is None:
        raise UsageError(f"{where}: say which column holds the labels with --label-column NAME; the columns are {shown}")
    if columns.count(label_column) > 1:
        raise BadInputError(f"{where}: {columns.count(label_column)} columns are called {label_column}; give its index")
    if label_column in columns:
        return columns.index(label_column)
    try:
        return range(len(columns))[int(label_column)]
    except (ValueError, IndexError):
        raise BadInputError(f"{where}: no column {label_column}; the columns are {shown}") from None


def rows_of(columns: Sequence[NDArray[Any]], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Points (b, m) from m columns (b,), cast to ``dtype``."""
    found = np.empty((len(columns[0]), len(columns)), dtype)
    size = max(LEAST_ROWS, TILE_ENTRIES // len(columns))
    for first in range(0, len(found), size):
        rows = slice(first, first + size)
        np.stack([column[rows] for column in columns], axis=1, out=found[rows])
    return found


def dtype_of(field: Any, where: str) -> np.dtype[Any]:
    """The type in which the column is stored. Raises BadInputError for a column of other things."""
    kind = field.type
    numeric = pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) or pyarrow.types.is_boolean(kind)
    if not numeric:
        raise BadInputError(
            f"{where}: column {field.name} has type {kind}, features are numbers; leave it out, or name it as --label-column"
        )
    return stored_dtype(np.dtype(kind.to_pandas_dtype()), f"{where}: column {field.name}")


def points_of(batch: Any, columns: Sequence[int], dtype: np.dtype[Any], first: int, where: str) -> NDArray[Any]:
    """Points (b, m) of a record batch. Raises BadInputError with the point and the column of a null."""
    taken = []
    for j in columns:
        column, name = batch.column(j), batch.schema.field(j).name
        if column.null_count:
            raise BadInputError(
                f"{where}: point {first + _first_null(column)}, column {name}: a value is missing; fill it in or remove the row"
            )
        taken.append(cast(column.to_numpy(zero_copy_only=False), f"{where}: column {name}"))
    return rows_of(taken, dtype)


def labels_of(column: Any, first: int, where: str, name: str) -> Coded:
    """Labels (b,) of a column of numbers, booleans or text. Raises BadInputError for nulls and other types."""
    kind = column.type.value_type if pyarrow.types.is_dictionary(column.type) else column.type
    if column.null_count:
        raise BadInputError(f"{where}: point {first + _first_null(column)}, column {name}: the label is missing; fill it in")
    text = pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind) or pyarrow.types.is_string_view(kind)
    number = pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) or pyarrow.types.is_boolean(kind)
    if not (text or number):
        raise BadInputError(f"{where}: labels of type {kind} in {name} cannot be used; give numbers, booleans or strings")
    if pyarrow.types.is_boolean(kind):
        return Coded.of(column.to_numpy(zero_copy_only=False))
    coded = column if pyarrow.types.is_dictionary(column.type) else column.dictionary_encode()
    return Coded(coded.indices.to_numpy(), coded.dictionary.to_pylist())


def _first_null(column: Any) -> int:
    return int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
