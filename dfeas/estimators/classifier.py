"""What all classifiers share: points and labels as users have them, labels to classes, one class against the rest.

Dask arrays and data frames are known by what they offer: nothing of Dask is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from dfeas.api import one_vs_rest, solve
from dfeas.data.storage.numbers import array_of, exact
from dfeas.engine.protocol import open_client
from dfeas.errors import DfeasError
from dfeas.linalg.points import Floats, Points
from dfeas.run.resources import attend_runs
from dfeas.run.results import Result
from dfeas.run.termination import Verdict

F = TypeVar("F")


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
    return csr_array(some, dtype=np.float64) if hasattr(some, "indptr") else np.ascontiguousarray(exact(some, np.float64, "X"))


def is_frame(X: Any) -> bool:
    """Whether X, of Dask, has partitions of pandas."""
    return hasattr(X, "map_partitions")


def points_of(estimator: BaseEstimator, X: Any, reset: bool) -> Any:
    """X as something that ``dfeas.solve`` takes; the number of features is checked, or remembered with ``reset``."""
    if not is_dask(X):
        with value_errors():
            _require_exact(X)
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


def _require_exact(X: Any) -> None:
    """Raise BadInputError for what scikit-learn would make other numbers of, or take though it is masked."""
    columns = [X[name] for name in X.columns] if hasattr(X, "columns") and hasattr(X, "dtypes") else None
    if columns is None:
        sparse: bool = issparse(X)
        columns = [X.tocsr().data if sparse else array_of(X, "X")]
    for column in columns:
        kind, size = getattr(column.dtype, "kind", "O"), getattr(column.dtype, "itemsize", 0)
        if kind in "iuf" and (size > 8 or (kind != "f" and size == 8)):
            exact(np.asarray(column), np.float64, "X")


def values_of(y: Any) -> NDArray[Any]:
    """An n-vector of anything, in memory."""
    return array_of(y.compute() if is_frame(y) else y, "y")


def map_rows(function: Callable[[NDArray[Any]], NDArray[Any]], X: Any, m: int, example: NDArray[Any]) -> Any:
    """``function`` of points (b, m), which returns (b,) or (b, k): of each chunk of a Dask array, each partition of a frame.
    ``example`` has its type and the shape of its answer for one point.
    """
    if not is_frame(X):
        chunked = X.rechunk({1: -1})
        more = {"drop_axis": 1} if example.ndim == 1 else {"chunks": (chunked.chunks[0], (example.shape[1],))}
        return chunked.map_blocks(function, dtype=example.dtype, meta=example[:0], **more)

    def of_partition(part: Any) -> Any:
        answer = function(exact(part, np.float64, "X").reshape(len(part), m)) if len(part) else example[:0]
        kind = type(part.iloc[:, 0]) if example.ndim == 1 else type(part)
        return kind(answer, index=part.index)

    return X.map_partitions(of_partition, meta=of_partition(X._meta))


@contextmanager
def value_errors() -> Iterator[None]:
    """What dfeas cannot take is a ValueError, as scikit-learn has it."""
    try:
        yield
    except DfeasError as error:
        raise ValueError(str(error)) from None


def on_its_cluster(fit: Callable[..., F]) -> Callable[..., F]:
    """A ``fit`` in which the cluster of the estimator, if it has one, computes what is of Dask."""

    @wraps(fit)
    def fit_there(estimator: LinearClassifier, *args: Any, **options: Any) -> F:
        with value_errors(), open_client(estimator.client) as client, nullcontext() if client is None else client.as_current():
            return fit(estimator, *args, **options)

    return fit_there


@dataclass(eq=False, repr=False, kw_only=True)
class Classifier(ClassifierMixin, BaseEstimator):
    """A classifier of dfeas, by problems of two classes; where there are more, each is set against the rest. Parameters are the
    fields of dataclasses: scikit-learn finds them in the signature of ``__init__``.
    """

    memory: str | int | None = None
    max_passes: int | None = None
    time_limit: float | None = None
    verbose: bool = False
    callback: Callable[[Any], object] | None = None
    results_: Sequence[Any] = field(init=False)  # what dfeas says of each problem

    @property
    def _options(self) -> dict[str, Any]:
        """Those that every run takes."""
        return {name: getattr(self, name) for name in ("memory", "max_passes", "time_limit", "callback")}

    def _cluster_of(self, points: Any) -> dict[str, Any]:
        """The option that says on which cluster a fit reads these points; none for this process."""
        client = getattr(self, "client", None)
        return {"client": client is not False} if client is not None and is_dask(points) else {}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _read_labels(self, X: Any, y: Any) -> tuple[Any, NDArray[np.int64]]:
        """Points, and the class (n,) of each as an index of ``classes_``. Raises ValueError for what is no classification."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        points = points_of(self, X, reset=True)
        labels = column_or_1d(values_of(y), warn=True)
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise ValueError("Input y contains NaN or infinity.")
        check_classification_targets(labels)
        if len(labels) != points.shape[0]:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[points.shape[0], len(labels)]}")
        self.classes_, index = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"{type(self).__name__} needs two classes, the data has one class: {self.classes_[0]}")
        return points, index

    @property
    def _positive(self) -> Sequence[int]:
        """The class that is set against the rest in each problem, as an index of ``classes_``."""
        return range(len(self.classes_)) if len(self.classes_) > 2 else [1]

    def _problems(self, index: NDArray[np.int64]) -> list[NDArray[np.int8]]:
        """Labels (n,), -1 and +1, of each problem of two classes."""
        return [np.where(index == k, 1, -1).astype(np.int8) for k in self._positive]

    def _solve_classes(self, points: Any, index: NDArray[np.int64], **options: Any) -> dict[int, Result]:
        """The results of all classes that there are, on the same reads; of two that of the positive one."""
        asked = {name: getattr(self, name) for name in ("method", "eps", "margin_tolerance")}
        options |= {**asked, **self._options, **self._cluster_of(points)}
        with value_errors(), attend_runs(progress=self.verbose):
            if len(self.classes_) == 2:
                return {1: solve(points, self._problems(index)[0], **options)}
            answer = one_vs_rest(points, index, **options)
        return {int(name): result for name, result in answer.results.items()}

    def _keep_results(self, results: Sequence[Result]) -> None:
        self.results_ = results
        self.verdicts_ = [result.verdict for result in results]
        self.separable_ = all(verdict == Verdict.FEASIBLE for verdict in self.verdicts_)
        self.margin_ = np.array([result.margin_lower for result in results])
        self.n_iter_ = max([1, *(result.iterations for result in results)])

    def _scores(self, points: Any) -> Floats:
        """Scores (b, problems) of points (b, m)."""
        raise NotImplementedError

    def _flat(self, points: Any) -> Floats:
        scores = self._scores(points)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def _choose_classes(self, points: Any) -> NDArray[Any]:
        scores = self._flat(points)
        index = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[index])

    def decision_function(self, X: Any) -> Any:
        """Scores (n,), above 0 for ``classes_[1]``, or (n, classes). Dask for Dask."""
        check_is_fitted(self)
        if is_dask(X):
            points_of(self, X, reset=False)
            wide = (1,) if len(self.classes_) == 2 else (1, len(self.classes_))
            return map_rows(self._flat, X, self.n_features_in_, np.zeros(wide))
        return self._flat(points_of(self, X, reset=False))

    def predict(self, X: Any) -> Any:
        """The class (n,) of each point. Dask for Dask."""
        check_is_fitted(self)
        if is_dask(X):
            points_of(self, X, reset=False)
            return map_rows(self._choose_classes, X, self.n_features_in_, self.classes_[:1])
        return self._choose_classes(points_of(self, X, reset=False))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of points (by weight) whose class is right."""
        right = values_of(self.predict(X)) == values_of(y)
        return float(np.average(right, weights=None if sample_weight is None else values_of(sample_weight)))


@dataclass(eq=False, repr=False, kw_only=True)
class LinearClassifier(Classifier):
    """One whose scores are X coef_' + intercept_; with a ``client`` points of Dask are fitted where they lie."""

    fit_intercept: bool = True
    client: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """What is fitted goes elsewhere; a client stays with the process that has it."""
        state: dict[str, Any] = super().__getstate__()
        return state if isinstance(self.client, str | bool) else {**state, "client": None}

    def __sklearn_clone__(self) -> Self:
        cloned: Self = BaseEstimator.__sklearn_clone__(copy(self))
        cloned.client = self.client
        return cloned

    def _set(self, Y: list[Floats], intercept: bool) -> Self:
        """Take hyperplanes, with the intercept last where there is one."""
        W = np.stack(Y)
        m = self.n_features_in_
        self.coef_, self.intercept_ = W[:, :m].copy(), W[:, m].copy() if intercept else np.zeros(len(W))
        return self

    def _scores(self, points: Any) -> Floats:
        return np.asarray(points @ self.coef_.T + self.intercept_)
