"""``dfeas.table``: a table, and which of its columns are features and which one has the labels, said once for all verbs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dfeas.data.frames import columns_of, is_frame, is_lazy
from dfeas.data.ingest.readers import columns_of_file
from dfeas.data.source import Choice, ChosenTable
from dfeas.data.storage.places import absolute
from dfeas.errors import UsageError


def table(
    X: Any, y: Any = None, *, columns: str | Sequence[str] | None = None, without: str | Sequence[str] = ()
) -> ChosenTable:
    """Say which columns of a table are features, once for all verbs: each takes what this returns as X.

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
    choice = Choice.of(columns, without)
    label = y if isinstance(y, str) else None
    if isinstance(X, str | Path):
        found = columns_of_file(X)
        if found is None:
            raise UsageError(f"{X}: columns are those of a table, CSV, TSV or Parquet; this is none")
        if found == ():
            raise UsageError(f"{X}: its columns have no names")
        X, label = absolute(X), label if label in found else None
    elif is_lazy(X) or is_frame(X):
        found, label = columns_of(X), label if label in columns_of(X) else None
    else:
        raise UsageError(f"X: expected the path of a table or a data frame, got {type(X).__name__}")
    features = choice.features(found, label, X if isinstance(X, str) else "X")
    if not isinstance(X, str):
        X = _select(X, [*features, *([] if label is None else [label])])
    gone = tuple(name for name in found if name not in features and name != label)
    return ChosenTable(X, y, tuple(features), gone, choice)


def _select(frame: Any, names: list[str]) -> Any:
    """Columns of a frame, as its own library has them, in this order."""
    if is_lazy(frame):
        return frame[[each for name in names for each in frame.columns if str(each) == name]]
    import narwhals.stable.v2 as nw

    whole = nw.from_native(frame, eager_only=True)
    return whole.select([whole[:, [*map(str, whole.columns)].index(name)] for name in names]).to_native()
