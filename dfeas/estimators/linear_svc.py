"""Linear support vector machines, out of core, also with C chosen by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if

from dfeas.answers.prediction.scores import probabilities
from dfeas.answers.soft_margin import SoftMarginResult
from dfeas.api import soft_margin, soft_margin_classes
from dfeas.estimators.classifier import LinearClassifier, on_its_cluster, value_errors, weights_of
from dfeas.linalg.points import Floats
from dfeas.run.resources import attend_runs


@dataclass(eq=False, repr=False, kw_only=True)
class SoftMarginClassifier(LinearClassifier):
    """What ``LinearSVC`` and ``LinearSVCCV`` share."""

    loss: str = "squared_hinge"
    tol: float = 1e-4
    class_weight: Any = None
    intercept_scaling: float | None = None
    probability: bool = False
    folds: int = 5
    random_state: int = 0

    def _fit_margins(self, X: Any, index: NDArray[np.int64], starts: Any = None, **options: Any) -> dict[int, SoftMarginResult]:
        """All problems of two classes, on the same reads, by their class, begun from ``starts`` (problems, m). Raises
        ValueError for what dfeas cannot take; warns when a gap is not reached.
        """
        options |= {"loss": self.loss, "tol": self.tol, "intercept": self.fit_intercept, **self._options, **self._cluster_of(X)}
        options["intercept_scaling"] = self.intercept_scaling if self.fit_intercept else None
        options |= {"probability": self.probability, "random_state": self.random_state}
        with value_errors(), attend_runs(progress=self.verbose):
            if len(self.classes_) == 2:
                start = None if starts is None else starts[0]
                results = {1: soft_margin(X, self._problems(index)[0], start=start, **options)}
            else:
                found = soft_margin_classes(X, index, start=starts, **options).results
                results = {int(name): result for name, result in found.items()}
        short = [result for result in results.values() if not result.success]
        if short:
            warnings.warn(f"{type(self).__name__}: {short[0].message}", ConvergenceWarning, stacklevel=4)
        return results

    def _keep_fits(self, found: dict[int, SoftMarginResult], index: NDArray[np.int64], fit: int = 0) -> Self:
        """Take the results of the problems that there are, and of each the fit at this place."""
        self.results_ = results = list(found.values())
        self.n_iter_ = max([1, *(result.iterations for result in results)])
        self.gap_ = np.array([result.fits[fit].gap for result in results])
        self.objective_ = np.array([result.fits[fit].objective for result in results])
        if len(found) == len(self._positive):
            return self._set([result.path[fit] for result in results], self.fit_intercept)
        Y = [self._make_plane(index, k) for k in self._positive]
        for k, result in found.items():
            Y[self._positive.index(k)][: len(result.y)] = result.path[fit]
            Y[self._positive.index(k)][len(result.y) :] = 0.0
        return self._set(Y, True)

    def _calibrated(self) -> bool:
        """Raise AttributeError, which says how, where there are no probabilities."""
        if not self.probability:
            raise AttributeError(f"no probabilities: give {type(self).__name__} probability=True, and fit again")
        return True

    @available_if(_calibrated)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Estimates (n, classes) of the probability of each class, from scores that folds left out; near 1/2 ``predict``, which
        goes by the scores, may choose another one than the largest. Dask for Dask.
        """
        return self._of_each(self._probabilities, X, lambda: np.zeros((1, len(self.classes_))))

    def _probabilities(self, points: Any) -> Floats:
        found = [result.calibration for result in self.results_ if result.calibration is not None]
        if not found:
            raise ValueError("no probabilities: it was fitted without probability=True, or to points of one class")
        return probabilities(self._flat(points), found)

    def _point_weights(self, X: Any, index: NDArray[np.int64], sample_weight: Any) -> Floats | None:
        """(n,) of class times point; None when all are 1."""
        if sample_weight is None and self.class_weight is None:
            return None
        weight = np.ones(len(index)) if sample_weight is None else weights_of(sample_weight, X, len(index))
        if self.class_weight is not None:
            weight = weight * compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[index])[index]
        return np.asarray(weight)


@dataclass(eq=False, repr=False)
class LinearSVC(SoftMarginClassifier):
    """Soft-margin hyperplane of points that need not fit in memory, with its gap to a lower bound of the minimum.

    It minimises |w|^2/2 + C sum of losses, with a free bias, as ``sklearn.svm.SVC`` does; ``sklearn.svm.LinearSVC`` has
    ``intercept_scaling=1``.

    Parameters
    ----------
    C : float
        Regularisation parameter, the weight of losses, > 0.
    memory, max_passes, time_limit, verbose, callback : optional
        As in ``dfeas.solve``; ``verbose`` shows progress, and a callback may end the fit.
    client : dask.distributed Client or cluster, str, or bool, optional
        As in ``dfeas.solve``: Dask arrays and frames are fitted where they lie. It is not kept with what is fitted.
    fit_intercept : bool
        Any hyperplane, not only those through the origin.
    loss : {"squared_hinge", "hinge"}
        Loss of a point on the wrong side of its margin.
    tol : float
        Relative gap between objective and lower bound at which the fit ends.
    class_weight : dict or "balanced", optional
        Weights of classes, which multiply those of points.
    intercept_scaling : float s, optional
        The bias b adds b^2/(2 s^2) to what is minimised; by default it is free.
    probability : bool
        ``predict_proba`` estimates probabilities, from scores of points that ``folds`` leave out, in one read more.
    folds : int
        Number of folds for these; each point is in one, by its index and ``random_state``.
    random_state : int
        Seed of the folds.
    warm_start : bool
        Begin from the last ``coef_``.

    Attributes
    ----------
    coef_ : array (k, m)
        Normals of the hyperplanes: one for two classes, otherwise one for each.
    intercept_ : array (k,)
        Their biases.
    classes_ : array (c,)
        The labels.
    n_iter_ : int
        Steps of the method, the most of all problems.
    gap_ : array (k,)
        Relative gaps between the objectives and their lower bounds, up to rounding.
    objective_ : array (k,)
        What was minimised.
    results_ : list of SoftMarginResult
        Results of ``dfeas.soft_margin``; after ``partial_fit`` those of the last points that moved a hyperplane.

    Examples
    --------
    >>> from dfeas.estimators import LinearSVC
    >>> fitted = LinearSVC(C=10.0).fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> fitted.predict([[-1.0], [9.0]]).tolist(), bool(fitted.gap_[0] <= 1e-4)
    ([0, 1], True)
    """

    C: float = 1.0
    _: KW_ONLY
    warm_start: bool = False
    _weights: Floats = field(init=False)  # of the points of batches
    _asked: dict[str, Any] = field(init=False)  # parameters of the last batch

    @on_its_cluster
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to points (n, m) of NumPy, pandas, SciPy sparse or Dask, and labels (n,), or to a ``dfeas.table``; weights (n,)
        multiply losses.
        """
        starts = self._starts() if self.warm_start else None
        points, index = self._read_labels(X, y)
        self._seen = None
        return self._minimise(points, index, self._point_weights(X, index, sample_weight), starts)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Append points in memory to those of earlier calls, which are kept, and continue from the last hyperplane; where all
        new ones are beyond their margins it stays, as the same bound proves it. Points of ``fit`` are not kept.
        """
        if self.class_weight == "balanced":
            raise ValueError("partial_fit: the weights of balanced classes change with each batch: give class_weight as a dict")
        points, index, before = self._append(X, y, classes)
        weight = self._point_weights(X, index[before:], sample_weight)
        weight = np.ones(len(index) - before) if weight is None else weight
        weights = np.append(self._weights, weight) if before else weight
        known = before and self.results_ and not self.probability and self.get_params() == self._asked
        if not known or not (self._margins(points[before:], index[before:]) >= 1).all():
            one = (index == index[0]).all()
            self._keep_fits({}, index) if one else self._minimise(points, index, weights, self._starts())
        self._seen, self._weights, self._asked = (points, index), weights, self.get_params()
        return self

    def _minimise(self, points: Any, index: NDArray[Any], weight: Floats | None, starts: Floats | None) -> Self:
        """Fit all problems, from ``starts`` where these are of the same."""
        shape = len(self._positive), self.n_features_in_ + bool(self.fit_intercept)
        if starts is not None and (
            starts.shape != shape or len(np.unique(index)) < len(self.classes_) or np.isinf(starts).any()
        ):
            starts = None
        folds = min(self.folds, len(index)) if self.probability else 0
        return self._keep_fits(self._fit_margins(points, index, starts, C=self.C, weights=weight, folds=folds), index)

    def _starts(self) -> Floats | None:
        """The hyperplanes of the last fit, if there is one."""
        if not hasattr(self, "coef_"):
            return None
        return np.hstack([self.coef_, self.intercept_[:, None]]) if self.fit_intercept else np.asarray(self.coef_)


@dataclass(eq=False, repr=False)
class LinearSVCCV(SoftMarginClassifier):
    """``LinearSVC`` with the C of least error on points that were left out.

    Parameters
    ----------
    Cs : sequence of float
        Values of C to choose from.
    memory, max_passes, time_limit, verbose, callback, client, fit_intercept : optional
        As in ``LinearSVC``.
    loss, tol, class_weight, intercept_scaling, probability : optional
        As in ``LinearSVC``.
    folds : int
        Number of folds of cross-validation; each point is in one, by its index and ``random_state``.
    random_state : int
        Seed of the folds.

    Attributes
    ----------
    C_ : float
        The chosen C.
    errors_ : array (len(Cs),)
        Mean over folds, with several classes over their problems, too.
    coef_, intercept_, classes_, n_iter_, gap_, objective_, results_
        As in ``LinearSVC``.

    Examples
    --------
    >>> from dfeas.estimators import LinearSVCCV
    >>> fitted = LinearSVCCV(Cs=(1.0, 10.0), folds=2).fit([[0.0], [1.0], [3.0], [4.0]] * 5, [0, 0, 1, 1] * 5)
    >>> fitted.C_, fitted.errors_.tolist()
    (1.0, [0.0, 0.0])
    """

    Cs: Sequence[float] = (0.01, 0.1, 1.0, 10.0)

    @on_its_cluster
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose C, and fit with it, to what ``LinearSVC`` takes."""
        points, index = self._read_labels(X, y)
        weight, folds = self._point_weights(X, index, sample_weight), min(self.folds, len(index))
        results = self._fit_margins(points, index, C=list(self.Cs), folds=folds, weights=weight)
        validations = [result.validation for result in results.values()]
        self.errors_ = np.mean([[entry.error for entry in each] for each in validations], axis=0)
        chosen = int(np.argmin(self.errors_))
        self.C_ = validations[0][chosen].C
        return self._keep_fits(results, index, chosen * (1 + folds))
