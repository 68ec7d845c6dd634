"""``dfeas.table``: a table, and which of its columns are features and which one has the labels, said once for all verbs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dfeas.data.frames import bring_here, columns_of, is_frame, is_lazy
from dfeas.data.ingest.options import IngestOptions, format_of
from dfeas.data.ingest.readers import columns_of_file, open_columns
from dfeas.data.source import ALL_POSITIVE, Choice, ChosenTable, DataSpec, drop_names
from dfeas.data.storage.features import no_column, require_distinct
from dfeas.data.storage.numbers import is_missing
from dfeas.data.storage.places import absolute, place
from dfeas.errors import UsageError

ROWS = 1 << 16
"""Of a column that are read at a time."""
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
"""Numbers that are written as Python writes them: 007 is none."""


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
        Of CSV or TSV (also .gz), of Parquet or a folder of it; or a frame of pandas, polars, Arrow or Dask.
    y : str, or array (n,), optional
        The column of labels, or labels beside the table.
    columns : str or sequence of str, optional
        Features by name, in this order. Patterns such as ``"visit_*"`` stand for all columns that they match. None: all.
    without : str or sequence of str
        Columns that are no features, by name or pattern: ids, dates, text.
    id : str, optional
        A column that names the rows and is no feature. Suspects and the points of a conflict are named by it: this column of a
        file is read once more for that, which is not among the ``reads`` of a result.

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
    if isinstance(X, str | Path):
        said = columns_of_file(X, y if isinstance(y, str) and not place(y).exists() else None, choice)
        if said is None:
            raise UsageError(f"{X}: columns are those of a table, CSV, TSV or Parquet; this is none")
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


def row_names(spec: DataSpec, rows: Sequence[int]) -> dict[int, Any]:
    """What some rows are called: by the column of a table that names them, by the index of a frame of pandas, or by number. A
    name that is missing is None.
    """
    return {row: _plain(name) for row, name in _find_names(spec, rows).items()}


def _plain(name: Any) -> Any:
    if is_missing(name):
        return None
    if isinstance(name, str):
        return name.encode(errors="replace").decode()
    return name.item() if isinstance(name, np.number | np.bool_) else name


def _find_names(spec: DataSpec, rows: Sequence[int]) -> dict[int, Any]:
    if spec.choice.id is not None:
        return _names_in_file(spec.where, spec.choice.id, rows)
    if spec.ids is not None:
        import narwhals.stable.v2 as nw

        column = nw.from_native(bring_here(spec.ids), eager_only=True)
        return dict(zip(rows, column[list(rows), 0].to_list(), strict=True))
    if spec.names_rows and is_frame(spec.where):
        return {row: spec.where.index[row] for row in rows}
    return {row: row for row in rows}


def _names_in_file(path: str, name: str, rows: Sequence[int]) -> dict[int, Any]:
    """By a read of that column; in text files as it is written there, but for whole numbers."""
    columns = columns_of_file(path, name) or ()
    options = IngestOptions(label_column=name)  # so that the first line has names
    written = format_of(path, None) != "parquet"
    text = [each for each in columns if written or each != name]
    table, first, found = open_columns(path, options, [name], text), 0, dict[int, Any]()
    wanted = np.unique(np.asarray(rows, np.int64))
    for batch in table.batches([name], ROWS):
        here = wanted[slice(*np.searchsorted(wanted, (first, first + batch.num_rows)))].tolist()
        found |= {row: batch.column(0)[row - first].as_py() for row in here}
        first += batch.num_rows
    if written and all(WHOLE.fullmatch(text) for text in found.values() if text is not None):
        return {row: None if text is None else int(text) for row, text in found.items()}
    return found
