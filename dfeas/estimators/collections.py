"""Points and labels as users have them: NumPy, pandas and SciPy sparse through scikit-learn's own checks, Dask as it is.

Dask arrays and data frames are known by what they offer: nothing of Dask is imported here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from dfeas.passes.points import Points

Floats = NDArray[np.float64]


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array, data frame or series."""
    return hasattr(X, "__dask_graph__")


def below(first: Any, second: Any) -> Any:
    """Points with others below them; sparse if either is."""
    if issparse(first) or issparse(second):
        return vstack([csr_array(first), csr_array(second)], format="csr")
    return np.vstack([first, second])


def rows_of(points: Any, rows: Any) -> Points:
    """Some points in float64, sparse if they are."""
    some = points[rows]
    return csr_array(some, dtype=np.float64) if hasattr(some, "indptr") else np.ascontiguousarray(some, np.float64)


def is_frame(X: Any) -> bool:
    """Whether X, of Dask, has partitions of pandas."""
    return hasattr(X, "map_partitions")


def points_of(estimator: BaseEstimator, X: Any, reset: bool) -> Any:
    """X as something that ``dfeas.solve`` takes; the number of features is checked, or remembered with ``reset``."""
    if not is_dask(X):
        return validate_data(estimator, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset)
    columns = list(X.columns) if is_frame(X) else None
    array = X.to_dask_array(lengths=True) if is_frame(X) else X
    if array.ndim != 2:
        raise ValueError(f"expected points (n, m), got a Dask array of shape {array.shape}")
    if any(size != size for size in array.shape):  # unknown sizes are nan
        array = array.compute_chunk_sizes()
    m = int(array.shape[1])
    if reset:
        estimator.n_features_in_ = m
        if columns is not None:
            estimator.feature_names_in_ = np.array(columns, object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    elif m != estimator.n_features_in_:
        raise ValueError(f"X has {m} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} features")
    return array.rechunk({1: -1})


def values_of(y: Any) -> NDArray[Any]:
    """An n-vector in memory."""
    return np.asarray(y.compute() if is_dask(y) else y)


def applied(function: Callable[[NDArray[Any]], NDArray[Any]], X: Any, m: int, example: NDArray[Any]) -> Any:
    """``function`` of points (b, m), which returns (b,) or (b, k): of each chunk of a Dask array, each partition of a frame.

    ``example`` has its type and the shape of its answer for one point.
    """
    if not is_frame(X):
        chunked = X.rechunk({1: -1})
        more = {"drop_axis": 1} if example.ndim == 1 else {"chunks": (chunked.chunks[0], (example.shape[1],))}
        return chunked.map_blocks(function, dtype=example.dtype, meta=example[:0], **more)

    def of_partition(part: Any) -> Any:
        found = function(np.asarray(part, np.float64).reshape(len(part), m)) if len(part) else example[:0]
        made = part.iloc[:, 0].astype(example.dtype) if example.ndim == 1 else None
        return made.__class__(found, index=part.index) if made is not None else type(part)(found, index=part.index)

    return X.map_partitions(of_partition, meta=of_partition(X._meta))
