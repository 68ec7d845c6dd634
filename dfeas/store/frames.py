"""Data frames of pandas and Dask: a column of labels, and the others as an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from dfeas.errors import BadInputError


def is_lazy(frame: Any) -> bool:
    """Whether it is a Dask data frame: in partitions that are computed when they are asked for."""
    return hasattr(frame, "columns") and hasattr(frame, "partitions") and hasattr(frame, "to_dask_array")


def without_labels(X: Any, labels: Any) -> tuple[Any, Any]:
    """Points and labels, of a frame of which ``labels`` may name a column; of a Dask frame a Dask array, in whose chunks
    points are computed when they are read.

    Raises BadInputError for columns that are no numbers.
    """
    if not hasattr(X, "columns") or not hasattr(X, "drop"):
        return X, labels
    if isinstance(labels, str) and labels in list(X.columns):
        column = X[labels]
        X, labels = X.drop(columns=[labels]), np.asarray(column.compute() if is_lazy(column) or is_lazy(X) else column)
    other = [str(name) for name, kind in zip(X.columns, X.dtypes, strict=True) if getattr(kind, "kind", "O") not in "biuf"]
    if other:
        raise BadInputError(f"columns {', '.join(other[:5])} are no numbers; drop them, or name the one of labels")
    return (X.to_dask_array(lengths=True) if is_lazy(X) else X), labels
