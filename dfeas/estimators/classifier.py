"""What all classifiers share: labels to classes, one class against the rest, scores to labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from dfeas.errors import DfeasError
from dfeas.estimators.collections import Floats, applied, is_dask, points_of, values_of
from dfeas.one_vs_rest import OneVsRest
from dfeas.result import Result
from dfeas.solving import solve


@contextmanager
def value_errors() -> Iterator[None]:
    """What dfeas cannot take is a ValueError, as scikit-learn has it."""
    try:
        yield
    except DfeasError as error:
        raise ValueError(str(error)) from None


class Classifier(ClassifierMixin, BaseEstimator):
    """A classifier of dfeas, by problems of two classes; where there are more, each is set against the rest."""

    results_: Sequence[Any]  # what dfeas says of each problem

    def __sklearn_tags__(self) -> Any:
        """It takes sparse points."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _labelled(self, X: Any, y: Any) -> tuple[Any, NDArray[np.int64]]:
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
            raise ValueError(f"{type(self).__name__} needs two classes, the data has one class: {self.classes_[0]!r}")
        return points, index

    @property
    def _positive(self) -> Sequence[int]:
        """The class that is set against the rest in each problem, as an index of ``classes_``."""
        return range(len(self.classes_)) if len(self.classes_) > 2 else [1]

    def _problems(self, index: NDArray[np.int64]) -> list[NDArray[np.int8]]:
        """Labels (n,), -1 and +1, of each problem of two classes."""
        return [np.where(index == k, 1, -1).astype(np.int8) for k in self._positive]

    def _solved(self, points: Any, index: NDArray[np.int64], **options: Any) -> dict[int, Result]:
        """The results of all classes that there are, on the same reads; of two that of the positive one."""
        with value_errors():
            if len(self.classes_) == 2:
                return {1: solve(points, self._problems(index)[0], **options)}
            found = solve(points, index, one_vs_rest=True, **options)
        assert isinstance(found, OneVsRest), "what one_vs_rest returns"
        return {int(name): result for name, result in found.results.items()}

    def _decided(self, results: Sequence[Result]) -> None:
        """Take the results of all problems."""
        self.results_ = results
        self.verdicts_ = [found.verdict for found in results]
        self.separable_ = all(verdict == "feasible" for verdict in self.verdicts_)
        self.margin_ = np.array([found.margin_lower for found in results])
        self.n_iter_ = max([1, *(found.iterations for found in results)])

    def _scores(self, points: Any) -> Floats:
        """Scores (b, problems) of points (b, m)."""
        raise NotImplementedError

    def _flat(self, points: Any) -> Floats:
        scores = self._scores(points)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def _chosen(self, points: Any) -> NDArray[Any]:
        scores = self._flat(points)
        index = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[index])

    def decision_function(self, X: Any) -> Any:
        """Scores (n,), above 0 for ``classes_[1]``, or (n, classes). Dask for Dask."""
        check_is_fitted(self)
        if is_dask(X):
            points_of(self, X, reset=False)
            wide = (1,) if len(self.classes_) == 2 else (1, len(self.classes_))
            return applied(self._flat, X, self.n_features_in_, np.zeros(wide))
        return self._flat(points_of(self, X, reset=False))

    def predict(self, X: Any) -> Any:
        """The class (n,) of each point. Dask for Dask."""
        check_is_fitted(self)
        if is_dask(X):
            points_of(self, X, reset=False)
            return applied(self._chosen, X, self.n_features_in_, self.classes_[:1])
        return self._chosen(points_of(self, X, reset=False))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of points (by weight) whose class is right."""
        right = values_of(self.predict(X)) == values_of(y)
        return float(np.average(right, weights=None if sample_weight is None else values_of(sample_weight)))


class LinearClassifier(Classifier):
    """One whose scores are X coef_' + intercept_."""

    def _set(self, Y: list[Floats], intercept: bool) -> Self:
        """Take hyperplanes, with the intercept last where there is one."""
        W = np.stack(Y)
        m = self.n_features_in_
        self.coef_, self.intercept_ = W[:, :m].copy(), W[:, m].copy() if intercept else np.zeros(len(W))
        return self

    def _scores(self, points: Any) -> Floats:
        return np.asarray(points @ self.coef_.T + self.intercept_)
