"""What all classifiers share: points and labels as users have them, labels to classes, one class against the rest.

Dask arrays and data frames are known by what they offer: nothing of Dask is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass, field
from decimal import Decimal
from functools import wraps
from inspect import signature
from numbers import Real
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from dfeas.answers.result import Result
from dfeas.answers.words import Verdict
from dfeas.api import one_vs_rest, solve
from dfeas.data import frames
from dfeas.data.arrays import accept_array
from dfeas.data.collections import is_frame, map_rows
from dfeas.data.frames import bring_here, require_aligned, split
from dfeas.data.frames import is_frame as is_table
from dfeas.data.labels import plain_labels, refuse_missing, require_usable
from dfeas.data.partitions import computed_by, table_of
from dfeas.data.source import ChosenTable
from dfeas.data.storage.numbers import array_of, exact, is_dask_array, is_missing
from dfeas.data.storage.patience import one_call
from dfeas.engine.protocol import open_client
from dfeas.errors import DfeasError
from dfeas.linalg.points import Floats, Points
from dfeas.run.resources import attend_runs, choose_client
from dfeas.run.session import compute_by
from dfeas.settings import require_type

F = TypeVar("F")

INSTEAD = {
    "C": "its margin is hard; LinearSVC and LinearSVCCV have a price of losses",
    "class_weight": "no point weighs more than another; LinearSVC has it",
    "cv": "folds is their number",
    "dual": "both ends of the minimum are found together, and gap_ says how near they are",
    "max_iter": "max_passes limits the reads of the data, and time_limit the seconds",
    "multi_class": "each class is set against the rest",
    "n_jobs": "all processors of this process work, and client shares the work of a cluster",
    "penalty": "it is |w|^2/2",
    "random_state": "nothing is drawn",
    "sample_weight": "give it to fit",
    "tol": "margin_tolerance narrows the bracket of the margin; LinearSVC has a tol",
}
"""Parameters of estimators of scikit-learn, where one here has them not -> what it has."""


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


def split_table(X: Any, y: Any = None) -> tuple[Any, Any]:
    """Features and labels of a ``dfeas.table`` of a frame; anything else as it is given."""
    if not isinstance(X, ChosenTable):
        return X, y
    with value_errors():
        return X.in_memory(), X.labels_for(y)


def points_of(estimator: BaseEstimator, X: Any, reset: bool) -> Any:
    """X as something that ``dfeas.solve`` takes; the number of features is checked, or with ``reset`` remembered. Nothing of
    Dask is computed.
    """
    plain = is_plain(X)
    if not is_dask(X) and not (plain and reset):
        about: dict[str, Any] = {"estimator": estimator, "input_name": "X"}
        points = X if plain else check_array(_accept(X), accept_sparse="csr", dtype=[np.float64, np.float32], **about)
        validate_data(estimator, X if is_table(X) else points, reset=reset, skip_check_array=True)  # names, and how many
        return points
    if X.ndim != 2:
        raise ValueError(f"expected points (n, m), got a Dask array of shape {X.shape}")
    m = len(X.columns) if is_frame(X) else X.shape[1]
    if reset:
        estimator.n_features_in_ = int(m)
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        if is_frame(X):
            estimator.feature_names_in_ = np.array(list(X.columns), object)
        return X
    if is_frame(X):  # names are looked at, too
        validate_data(estimator, X._meta, reset=False, skip_check_array=True)
    if m == m and m != estimator.n_features_in_:
        raise ValueError(f"X has {m} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} features")
    return X


def is_plain(X: Any) -> bool:
    """Whether scikit-learn would return X as it is: an array (n, m) of finite numbers in float64 or float32."""
    if type(X) is not np.ndarray or X.dtype not in (np.float64, np.float32) or X.ndim != 2 or not X.size:
        return False
    with np.errstate(all="ignore"):  # a sum that overflows says nothing
        return bool(np.isfinite(X.sum()))


def _accept(X: Any) -> Any:
    """Points in memory, or a sparse matrix, with the numbers that ``dfeas.solve`` takes. What is neither numbers nor text is
    left to scikit-learn, which has an error of its own for it.
    """
    with value_errors():
        X = split(X, None).X if is_table(X) else X
        sparse: bool = issparse(X)
        if sparse:
            _take(X.tocsr().data)
            return X
        array = array_of(accept_array(X, "X")[...], "X")
        known = array.dtype != object or all(isinstance(each, str | Real | Decimal) or is_missing(each) for each in array.flat)
        return _take(array) if known else array


def _take(numbers: NDArray[Any]) -> NDArray[Any]:
    _require_real(numbers, "X")
    return numbers if numbers.dtype.kind == "f" and numbers.dtype.itemsize <= 8 else exact(numbers, np.float64, "X")


def _require_real(values: NDArray[Any], where: str) -> None:
    """Raise ValueError in the words of scikit-learn, which would show all numbers."""
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {where} has entries of type {values.dtype}")


def values_of(y: Any, where: str = "y") -> NDArray[Any]:
    """An n-vector of anything, in memory."""
    with value_errors():
        return array_of(accept_array(frames.values_of(y, where), where), where)


def are_few(labels: NDArray[Any]) -> bool:
    """Whether labels are integers or truth values (n,) of so few values that no check of scikit-learn has anything to say."""
    if labels.ndim != 1 or labels.dtype.kind not in "biu" or not len(labels):
        return False
    return 2 * (int(labels.max()) - int(labels.min()) + 1) <= len(labels)


def places_of(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The classes in order, and the place (n,) of each label there; of two integers in a third of the time of sorting."""
    if labels.dtype.kind in "biu" and len(labels):
        ends = np.array([labels.min(), labels.max()])
        last = labels == ends[1]
        if ends[0] != ends[1] and (last | (labels == ends[0])).all():
            return ends, last.astype(np.int64)
    return np.unique(labels, return_inverse=True)


def labels_of(y: Any, X: Any) -> NDArray[Any]:
    """Labels (n,) of X. Raises ValueError for what cannot be used, or stands in other rows."""
    with value_errors():
        require_aligned(X, y, "y")
        labels = plain_labels(values_of(y))
        if are_few(labels):
            return labels
        _require_real(labels, "y")
        labels = column_or_1d(labels, warn=True)
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise ValueError("Input y contains NaN or infinity.")
        refuse_missing(labels, "y", 0)
        try:
            check_classification_targets(labels)
        except TypeError as error:  # bytes
            raise ValueError(" ".join(str(error).split())) from None
        require_usable(labels, "y", 0)
    return np.asarray(labels)


def weights_of(weights: Any, X: Any, n: int) -> Floats:
    """Weights (n,) >= 0 of points."""
    with value_errors():
        require_aligned(X, weights, "sample_weight")
        values = [weights] * n if isinstance(weights, Real) else values_of(weights, "sample_weight")
        given = exact(values, np.float64, "sample_weight")
    return np.asarray(_check_sample_weight(given, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True))


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
    def fit_there(estimator: Classifier, X: Any, y: Any = None, *args: Any, **options: Any) -> F:
        with ExitStack() as stack:
            stack.enter_context(value_errors())
            X, y = split_table(X, y)
            limit = getattr(estimator, "time_limit", None)
            require_type("time_limit", limit, "float | None")
            stack.enter_context(one_call(limit))
            stack.enter_context(computed_by(stack.enter_context(open_client(estimator.client))))
            return fit(estimator, X, y, *args, **options)

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
    client: Any = None
    results_: Sequence[Any] = field(init=False)  # what dfeas says of each problem

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Raise TypeError, which says what is here instead, for a parameter that scikit-learn has elsewhere."""
        for name in options:
            if name in INSTEAD and name not in signature(cls.__init__).parameters:
                raise TypeError(f"{cls.__name__} has no parameter {name}: {INSTEAD[name]}")
        made: Self = super().__new__(cls)
        return made

    def __getstate__(self) -> dict[str, Any]:
        """What is fitted goes elsewhere; a client stays with the process that has it."""
        state: dict[str, Any] = super().__getstate__()
        return state if isinstance(self.client, str | bool) else {**state, "client": None}

    def __sklearn_clone__(self) -> Self:
        cloned: Self = BaseEstimator.__sklearn_clone__(copy(self))
        cloned.client = self.client
        return cloned

    @property
    def _options(self) -> dict[str, Any]:
        """Those that every run takes."""
        return {name: getattr(self, name) for name in ("memory", "max_passes", "time_limit", "callback")}

    def _cluster_of(self, points: Any) -> dict[str, Any]:
        """The option that says on which cluster a fit reads these points; none for this process."""
        return {"client": self.client is not False} if self.client is not None and is_dask(points) else {}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _read_labels(self, X: Any, y: Any) -> tuple[Any, NDArray[np.int64]]:
        """Points, and the class (n,) of each as an index of ``classes_``. Raises ValueError for what is no classification."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        points, y = points_of(self, X, reset=True), y if is_dask(X) else bring_here(y)
        if is_dask(X):
            with value_errors(), open_client(choose_client(False if self.client is False else None, X)) as client:
                table = table_of(X, y, compute_by(client, X, y), keep=True)
                points, y = table.X, table.labels
        labels = labels_of(y, X)
        if len(labels) != points.shape[0]:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[points.shape[0], len(labels)]}")
        self.classes_, index = places_of(labels)
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
        return self._of_each(self._flat, X, lambda: np.zeros((1,) if len(self.classes_) == 2 else (1, len(self.classes_))))

    def predict(self, X: Any) -> Any:
        """The class (n,) of each point. Dask for Dask."""
        return self._of_each(self._choose_classes, X, lambda: self.classes_[:1])

    def _of_each(self, function: Callable[[Any], NDArray[Any]], X: Any, example: Callable[[], NDArray[Any]]) -> Any:
        """What a function says of points, or of chunks of Dask when they are computed; an ``example`` has its answer of one."""
        check_is_fitted(self)
        X, _ = split_table(X)
        points = points_of(self, X, reset=False)
        return map_rows(function, X, self.n_features_in_, example()) if is_dask(X) else function(points)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of points (by weight) whose class is right; y may be that of a ``dfeas.table``."""
        X, y = split_table(X, y)
        found, labels = values_of(self.predict(X)), labels_of(bring_here(y), X)
        check_consistent_length(found, labels)
        weights = None if sample_weight is None else weights_of(sample_weight, X, len(labels))
        return float(np.average(found == labels, weights=weights))


@dataclass(eq=False, repr=False, kw_only=True)
class LinearClassifier(Classifier):
    """One whose scores are X coef_' + intercept_."""

    fit_intercept: bool = True
    _seen: tuple[Any, NDArray[Any]] | None = field(init=False, default=None)  # points of batches, and the class of each

    def _append(self, X: Any, y: Any, classes: Any) -> tuple[Any, NDArray[Any], int]:
        """All points in memory that ``partial_fit`` has seen with the class (n,) of each, and how many there were before; who
        calls keeps them in ``_seen`` once they are fitted. Raises ValueError for classes that the first call did not have.
        """
        before = self._seen
        X, y = split_table(X, y)
        y = bring_here(y)
        with value_errors():
            X = array_of(X, "X") if is_dask_array(X) else bring_here(X)
        points, labels = points_of(self, X, reset=before is None).astype(np.float64, copy=False), labels_of(y, X)
        check_consistent_length(points, labels)
        if before is None:
            self.classes_ = np.unique(labels if classes is None else labels_of(classes, None))
            if len(self.classes_) < 2:
                raise ValueError("partial_fit needs all classes in its first call: give classes")
        index = np.searchsorted(self.classes_, labels)
        if (index == len(self.classes_)).any() or (self.classes_[index] != labels).any():
            raise ValueError(f"y has classes that are not among {self.classes_}")
        first = 0 if before is None else len(before[1])
        if before is not None:
            points, index = below(before[0], points), np.append(before[1], index)
        return points, index, first

    def _margins(self, points: Any, index: NDArray[Any]) -> Floats:
        """Signed scores (r, problems) of points of these classes."""
        return self._scores(points) * np.stack(self._problems(index), axis=1)

    def _make_plane(self, index: NDArray[Any], k: int) -> Floats:
        """The hyperplane (m+1,) of class k where nothing is to be separated; of many classes one not there is not chosen."""
        y = np.zeros(self.n_features_in_ + 1)
        y[-1] = 1.0 if index[0] == k else -1.0 if len(self.classes_) == 2 else -np.inf
        return y

    def _set(self, Y: list[Floats], intercept: bool) -> Self:
        """Take hyperplanes, with the intercept last where there is one."""
        W = np.stack(Y)
        m = self.n_features_in_
        self.coef_, self.intercept_ = W[:, :m].copy(), W[:, m].copy() if intercept else np.zeros(len(W))
        return self

    def _scores(self, points: Any) -> Floats:
        return np.asarray(points @ self.coef_.T + self.intercept_)
