"""Whether classes can be separated by hyperplanes, as an estimator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d, validate_data

from dfeas.errors import DfeasError
from dfeas.estimators.classifier import LinearClassifier
from dfeas.estimators.collections import Floats
from dfeas.result import Result
from dfeas.soft_margin import soft_margin
from dfeas.solving import solve


class Separator(LinearClassifier):
    """A hyperplane that separates the classes, or the proof that there is none.

    Where there is none it predicts by the soft margin with C = 1.

    Parameters
    ----------
    eps, method, margin_tolerance, memory, max_passes, time_limit : as for ``dfeas.solve``.
    fit_intercept : any hyperplane, not only those through the origin.
    verbose : show progress on stderr.

    Attributes
    ----------
    separable_ : whether all classes are separated, each from the rest (two: from each other).
    verdicts_, margin_ (k,) lower ends of the best margins, coef_ (k, m), intercept_ (k,), classes_, n_iter_,
    results_ (k) of ``dfeas.solve``, with certificates in ``evidence`` and points in ``conflicts``.
    """

    def __init__(
        self,
        *,
        eps: float = 1e-3,
        method: str = "auto",
        margin_tolerance: float | None = None,
        fit_intercept: bool = True,
        memory: str | int = "2GB",
        max_passes: int | None = None,
        time_limit: float | None = None,
        verbose: bool = False,
    ) -> None:
        self.eps = eps
        self.method = method
        self.margin_tolerance = margin_tolerance
        self.fit_intercept = fit_intercept
        self.memory = memory
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Decide for points (n, m) of NumPy, pandas or Dask, and labels (n,)."""
        points, index = self._labelled(X, y)
        self._seen: tuple[NDArray[Any], NDArray[Any]] | None = None
        return self._decided(points, index)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Append points in memory to those of earlier calls; solve again only if one is on the wrong side of its hyperplane."""
        before = getattr(self, "_seen", None)
        first = before is None
        points = validate_data(self, X, dtype=np.float64, reset=first)
        labels = column_or_1d(y)
        if first:
            self.classes_ = np.unique(labels if classes is None else classes)
            if len(self.classes_) < 2:
                raise ValueError("partial_fit needs all classes in its first call: give classes")
        index = np.searchsorted(self.classes_, labels)
        if (index == len(self.classes_)).any() or (self.classes_[index] != labels).any():
            raise ValueError(f"y has classes that are not among {self.classes_}")
        if before is not None:
            points, index = np.vstack([before[0], points]), np.append(before[1], index)
        self._seen = points, index
        if len(np.unique(index)) < 2:
            return self._of_one_class(int(index[0]))
        if before is not None and self.results_ and self.separable_:
            scores = self._scores(points[len(before[0]) :])
            signs = np.stack([signed[-len(scores) :] for signed in self._problems(index)], axis=1)
            if (scores * signs > 0).all():
                return self
        return self._decided(points, index)

    def _of_one_class(self, only: int) -> Self:
        """Nothing is to be separated yet: everything is of the class with this index."""
        self.separable_, self.verdicts_, self.n_iter_ = True, list[str](), 1
        self.results_ = list[Result]()
        rows = []
        for k in [1] if len(self.classes_) == 2 else range(len(self.classes_)):
            y = np.zeros(self.n_features_in_ + 1)
            y[-1] = 1.0 if k == only else -1.0
            rows.append(y)
        self.margin_ = np.zeros(len(rows))
        return self._set(rows, True)

    def _decided(self, points: Any, index: NDArray[np.int64]) -> Self:
        problems = self._problems(index)
        self.results_ = [self._solved(points, labels) for labels in problems]
        self.verdicts_ = [found.verdict for found in self.results_]
        self.separable_ = all(verdict == "feasible" for verdict in self.verdicts_)
        self.margin_ = np.array([found.margin_lower for found in self.results_])
        self.n_iter_ = max(1, *(found.iterations for found in self.results_))
        both = zip(self.results_, problems, strict=True)
        return self._set([self._direction(found, points, labels) for found, labels in both], self.fit_intercept)

    def _solved(self, points: Any, labels: NDArray[Any]) -> Result:
        try:
            return solve(
                points,
                labels,
                method=self.method,
                eps=self.eps,
                margin_tolerance=self.margin_tolerance,
                intercept=self.fit_intercept,
                memory=self.memory,
                max_passes=self.max_passes,
                time_limit=self.time_limit,
                progress=self.verbose,
            )
        except DfeasError as error:
            raise ValueError(str(error)) from None

    def _direction(self, found: Result, points: Any, labels: NDArray[Any]) -> Floats:
        """The separator, or a soft margin."""
        if found.verdict == "feasible" and found.y is not None:
            return found.y
        return soft_margin(points, labels, loss="squared_hinge", intercept=self.fit_intercept, memory=self.memory).y
