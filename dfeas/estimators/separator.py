"""Whether classes can be separated by hyperplanes, as an estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d, validate_data

from dfeas.api import soft_margin
from dfeas.estimators.classifier import Floats, LinearClassifier, below
from dfeas.run.results import Result


class Separator(LinearClassifier):
    """A hyperplane that separates the classes, or the proof that there is none.

    Where there is none it predicts by the soft margin with C = 1.

    Parameters
    ----------
    eps, method, margin_tolerance, memory, max_passes, time_limit : as for ``dfeas.solve``.
    fit_intercept : any hyperplane, not only those through the origin.
    verbose : show progress on stderr.
    callback : called with the record of each read, as that of ``dfeas.solve``: it may end the fit.

    Attributes
    ----------
    separable_ : whether all classes are separated, each from the rest (two: from each other).
    verdicts_, margin_ (k,) lower ends of the best margins, coef_ (k, m), intercept_ (k,), classes_, n_iter_,
    results_ (k) of ``dfeas.solve``, with certificates in ``evidence`` and points in ``conflicts``; after ``partial_fit``
    verdicts, margins and results are those of the classes that it has seen. More than two classes share the reads.
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
        callback: Callable[[Any], object] | None = None,
    ) -> None:
        self.eps = eps
        self.method = method
        self.margin_tolerance = margin_tolerance
        self.fit_intercept = fit_intercept
        self.memory = memory
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any) -> Self:
        """Decide for points (n, m) of NumPy, pandas, SciPy sparse or Dask, and labels (n,)."""
        points, index = self._labelled(X, y)
        self._seen: tuple[Any, NDArray[Any]] | None = None
        return self._separated(points, index)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Append points in memory to those of earlier calls; solve again only if one is on the wrong side of its hyperplane."""
        before = getattr(self, "_seen", None)
        first = before is None
        points = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=first)
        labels = column_or_1d(y)
        if first:
            self.classes_ = np.unique(labels if classes is None else classes)
            if len(self.classes_) < 2:
                raise ValueError("partial_fit needs all classes in its first call: give classes")
        index = np.searchsorted(self.classes_, labels)
        if (index == len(self.classes_)).any() or (self.classes_[index] != labels).any():
            raise ValueError(f"y has classes that are not among {self.classes_}")
        if before is not None:
            points, index = below(before[0], points), np.append(before[1], index)
        self._seen = points, index
        if before is not None and self.results_ and self.separable_:
            scores = self._scores(points[len(before[0]) :])
            signs = np.stack([signed[-len(scores) :] for signed in self._problems(index)], axis=1)
            if (scores * signs > 0).all():
                return self
        return self._separated(points, index)

    def _separated(self, points: Any, index: NDArray[np.int64]) -> Self:
        found = self._problems_solved(points, index)
        self._decided(list(found.values()))
        Y = [self._direction(found.get(k), points, index, k) for k in self._positive]
        return self._set(Y, True)

    def _problems_solved(self, points: Any, index: NDArray[np.int64]) -> dict[int, Result]:
        """None where all points are of one class."""
        if (index == index[0]).all():
            return {}
        options = {name: value for name, value in self.get_params().items() if name not in ("fit_intercept", "verbose")}
        return self._solved(points, index, intercept=self.fit_intercept, progress=self.verbose, **options)

    def _direction(self, found: Result | None, points: Any, index: NDArray[np.int64], k: int) -> Floats:
        """The separator (m+1,) of class k, or a soft margin; where there is nothing to separate, what all points are."""
        y = np.zeros(self.n_features_in_ + 1)
        width = self.n_features_in_ + bool(self.fit_intercept)
        if found is None:
            y[-1] = 1.0 if index[0] == k else -1.0 if len(self.classes_) == 2 else -np.inf  # of many it is not chosen yet
        elif found.verdict == "feasible" and found.y is not None:
            y[:width] = found.y
        else:
            labels = np.where(index == k, 1, -1)
            y[:width] = soft_margin(points, labels, loss="squared_hinge", intercept=self.fit_intercept, memory=self.memory).y
        return y
