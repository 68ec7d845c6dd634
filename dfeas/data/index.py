"""Ids of a data frame: a column of it, or its index. An index that only counts rows names none."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from dfeas.data.frames import columns_of, index_columns, index_range, is_frame, is_lazy, select_columns
from dfeas.data.ids import Ids, Part, call_index
from dfeas.data.partitions import Compute, compute_here, partitions_of


def ids_in_memory(X: Any, column: Any = None, compute: Compute | None = None) -> Ids | None:
    """Those of a data frame, which may be one of Dask: a frame of its own, of one ``column``, or the index of X. None of what
    is no frame, and of an index that counts rows. ``compute`` brings the partitions of Dask here.
    """
    if column is None and hasattr(X, "num_rows") and (counted := ids_of_ranges([X.schema], [X.num_rows])) is not None:
        return counted  # of Arrow
    if column is None and (column := _index_of(X)) is None:
        return None
    name = call_index(column.name if _is_index(column) else columns_of(column)[0])
    if not hasattr(column, "dask"):
        return Ids(name, lambda: [_part(column)])
    bring = compute or compute_here(column)
    return Ids(name, lambda: (_part(bring([part])[0]) for part in partitions_of(column)))


def ids_of_ranges(schemas: Sequence[Any], sizes: Sequence[int]) -> Ids | None:
    """Of tables that pandas wrote, of so many rows each, with indices that are ranges. None where these count rows, of each
    table anew or of all, or where one has no such index.
    """
    found = [index_range(schema, size) for schema, size in zip(schemas, sizes, strict=True)]
    ranges = [numbers for _, numbers in filter(None, found)]
    starts = [numbers.start for numbers in ranges]
    counted = starts in ([0] * len(sizes), np.cumsum([0, *sizes])[:-1].tolist())
    if not found or None in found or (counted and all(numbers.step == 1 for numbers in ranges)):
        return None
    return Ids(call_index(found[0][0] if found[0] else None), partial(_count, ranges))


def _count(ranges: Sequence[range]) -> list[Part]:
    return [(len(numbers), partial(_pick, numbers)) for numbers in ranges]


def _pick(numbers: range, rows: Sequence[int]) -> list[int]:
    return [numbers[row] for row in rows]


def _index_of(X: Any) -> Any:
    """The index of a frame of pandas or Dask, or the column of an Arrow table that was one of pandas."""
    if is_lazy(X):
        return None if type(X._meta.index).__name__ == "RangeIndex" else X.index
    if not is_frame(X):
        return None
    if hasattr(X, "iloc"):
        return None if np.array_equal(X.index.to_numpy(), np.arange(len(X))) else X.index
    names = index_columns(X)
    return select_columns(X, names) if len(names) == 1 else None


def _is_index(column: Any) -> bool:
    return getattr(column, "ndim", 2) == 1  # a frame has two dimensions, or none that it tells


def _part(column: Any) -> Part:
    """An index of pandas, or a frame of one column."""
    if _is_index(column):
        return len(column), lambda rows: column.take(rows).tolist()
    import narwhals.stable.v2 as nw

    series = nw.from_native(column, eager_only=True)
    return len(series), lambda rows: series[list(rows), 0].to_list()
