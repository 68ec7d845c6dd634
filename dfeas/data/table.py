"""``dfeas.table``: a table, and which of its columns are features and which one has the labels, said once for all verbs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dfeas.data.frames import columns_of, is_frame, is_lazy, open_frame
from dfeas.data.ids import ROWS
from dfeas.data.ingest.options import IngestOptions
from dfeas.data.ingest.readers import columns_of_file, open_columns
from dfeas.data.partitions import compute_here, partitions_of
from dfeas.data.source import ALL_POSITIVE, Choice, ChosenTable, drop_names
from dfeas.data.storage.features import no_column, require_distinct
from dfeas.data.storage.places import absolute, names_in, place
from dfeas.errors import BadInputError, UsageError
from dfeas.records import replace


def table(
    X: Any,
    y: Any = None,
    *,
    columns: str | Sequence[str] | None = None,
    without: str | Sequence[str] = (),
    id: str | None = None,
) -> ChosenTable:
    """Choose the columns of a table that are features, once for all verbs: each takes what this returns as X.

    Parameters
    ----------
    X : path, or data frame
        Of CSV or TSV (also .gz), of Parquet, a folder or a pattern of it; or a frame of pandas, polars, Arrow or Dask.
    y : str, or array (n,), optional
        The column of labels, or labels beside the table.
    columns : str or sequence of str, optional
        Features by name, in this order. Patterns such as ``"visit_*"`` stand for all columns that they match. None: all.
    without : str or sequence of str
        Columns that are no features, by name or pattern: ids, dates, text.
    id : str, optional
        A column, or the index of a frame, that names the rows and is no feature: ``ingest`` keeps it, and conflicts, suspects,
        reports and predictions call points by it. Integers or text; other values become the text that Python shows. This column
        of a file is read once more for that, which is not among the ``reads`` of a result.

    Returns
    -------
    ChosenTable
        It shows its columns.

    Raises
    ------
    UsageError
        X is no table, or names are none.
    BadInputError
        There is no such column, or none is left.

    Examples
    --------
    >>> import dfeas
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"id": [7, 8, 9], "size": [1.0, 2.0, 4.0], "good": [0, 0, 1]})
    >>> print(dfeas.solve(dfeas.table(frame, "good", without="id")).verdict)
    feasible
    """
    choice = Choice.of(columns, without, id)
    index = getattr(getattr(X, "index", None), "name", None)
    if choice.id is not None and index is not None and str(index) == choice.id and choice.id not in columns_of(X):
        choice = replace(choice, id=None)  # the index of a frame names its rows already
    if isinstance(X, str | Path):
        said = columns_of_file(X, y if isinstance(y, str) and not place(y).exists() else None, choice)
        if said is None:
            texts = any(name.endswith(".csv") for name in names_in(place(X)) if "/" not in name)
            hint = f"; of a folder of CSV give dask.dataframe.read_csv({str(place(X) / '*.csv')!r})" if texts else ""
            raise UsageError(f"{X}: columns are those of a table, CSV, TSV or Parquet; this is none{hint}")
        if said == ():
            raise UsageError(f"{X}: its columns have no names")
        X, found = absolute(X), said
    elif is_lazy(X) or is_frame(X):
        found = columns_of(X)
    else:
        raise UsageError(f"X: expected the path of a table or a data frame, got {type(X).__name__}")
    where = X if isinstance(X, str) else "X"
    require_distinct(found, found, where)
    label = _label_among(found, y, where)
    features = choice.features(found, label, where)
    return ChosenTable(X, y, label, tuple(features), tuple(drop_names(found, {*features, label})), choice)


def _label_among(columns: Sequence[str], y: Any, where: str) -> str | None:
    """The column that a name means, of a file also a number; None where labels are beside the table. Raises BadInputError."""
    if not isinstance(y, str | int | tuple) or isinstance(y, bool):
        return None
    if str(y) in columns:
        return str(y)
    if isinstance(y, str) and where != "X":
        try:
            return columns[range(len(columns))[int(y)]]
        except (ValueError, IndexError):
            pass
    if isinstance(y, str) and (y == ALL_POSITIVE or place(y).exists()):
        return None
    raise no_column(str(y), columns, where)


def take_rows(source: Any, rows: Sequence[int]) -> tuple[dict[str, list[Any]], int]:
    """Some rows of a table by their numbers, as columns, and how many rows it has; of a folder of files also in which ``file``
    and in which of its rows each lies. Raises UsageError for what is no table, BadInputError for one with too few rows.
    """
    import narwhals.stable.v2 as nw

    X, files = source.X if isinstance(source, ChosenTable) else source, tuple[tuple[str, int], ...]()
    where = X if isinstance(X, str | Path) else "the frame"
    if isinstance(X, str | Path):
        table, arrow = open_columns(X, IngestOptions(labels="")), sys.modules["pyarrow"]
        files = getattr(table, "files", files)
        parts: Iterator[Any] = (arrow.Table.from_batches([batch]) for batch in table.batches(table.columns, ROWS))
    elif is_lazy(X):
        compute = compute_here(X)
        parts = (compute([part])[0] for part in partitions_of(X))
    elif is_frame(X):
        parts = iter([X])
    else:
        raise UsageError(f"expected the path of a table or a data frame, got {type(X).__name__}")
    wanted, first, found = np.unique(np.asarray(rows, np.int64)), 0, dict[int, dict[str, Any]]()
    for part in parts:
        frame: nw.DataFrame[Any] = open_frame(part, str(where))
        here = wanted[slice(*np.searchsorted(wanted, (first, first + len(frame))))]
        if len(here):
            found |= zip(here.tolist(), frame[(here - first).tolist()].rows(named=True), strict=True)
        first += len(frame)
    if len(found) < len(wanted):
        raise BadInputError(
            f"{where}: {first} rows, and row {wanted[-1]} is asked for; give the table that the points are from"
        )
    columns = {name: [found[row][name] for row in rows] for name in (next(iter(found.values())) if found else ())}
    return columns | name_files(files, rows), first


def name_files(files: Sequence[tuple[str, int]], rows: Sequence[int]) -> dict[str, list[Any]]:
    """In which of several files of so many rows each row lies, and in which of its rows; nothing of a single one."""
    if len(files) < 2:
        return {}
    starts = np.cumsum([0, *(size for _, size in files)])
    places = (np.searchsorted(starts, rows, "right") - 1).tolist()
    return {
        "file": [files[place][0] for place in places],
        "row": [row - int(starts[place]) for row, place in zip(rows, places, strict=True)],
    }
