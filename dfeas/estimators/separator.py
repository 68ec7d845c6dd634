"""Whether classes can be separated, by hyperplanes or in the space of a kernel, as estimators."""

from __future__ import annotations

import json
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dfeas import leaves
from dfeas.answers.prediction.signs import give_true_signs, near_zero, plane_of
from dfeas.answers.result import Result
from dfeas.answers.words import Verdict
from dfeas.api import soft_margin
from dfeas.estimators.classifier import Classifier, LinearClassifier, on_its_cluster, rows_of, value_errors
from dfeas.linalg.points import Floats, stack_points, take_rows
from dfeas.methods.soft_margin.band import SignedRows
from dfeas.methods.soft_margin.squared_hinge import newton
from dfeas.problem import Kernel

SOFT = 1000
"""Points of the soft margin."""


@dataclass(eq=False, repr=False, kw_only=True)
class Separator(LinearClassifier):
    """A hyperplane that separates the classes, or the proof that there is none.

    If there is none, it predicts by the soft margin with C = 1. More than two classes share the reads.

    Parameters
    ----------
    memory, max_passes, time_limit, verbose, callback : optional
        As in ``dfeas.solve``; ``verbose`` shows progress, and a callback may end the fit.
    client : dask.distributed Client or cluster, str, or bool, optional
        As in ``dfeas.solve``: Dask arrays and frames are fitted where they lie. It is not kept with what is fitted.
    fit_intercept : bool
        Any hyperplane, not only those through the origin.
    eps : float, optional
        A proof that no margin is above it also ends the fit; by default as in ``dfeas.solve``.
    method : str
        A name of ``dfeas.METHODS``, or ``auto``.
    margin_tolerance : float, optional
        Continue until the bracket of the margin is that narrow, as for ``dfeas.solve``; None ends with the first separator.

    Attributes
    ----------
    separable_ : bool
        Whether all classes are separated, each from the rest, or two from each other.
    verdicts_ : list of str
        One for each problem.
    margin_ : array (k,)
        Lower ends of the best margins.
    coef_ : array (k, m)
        Normals of the hyperplanes: one for two classes, otherwise one for each.
    intercept_ : array (k,)
        Their biases.
    classes_ : array (c,)
        The labels.
    n_iter_ : int
        Steps of the method, the most of all problems.
    results_ : list of Result
        Those of ``dfeas.solve``, with certificates in ``evidence`` and points in ``conflicts``. After ``partial_fit`` verdicts,
        margins and results are those of the classes that it has seen.

    Examples
    --------
    >>> from dfeas.estimators import Separator
    >>> separator = Separator().fit([[0.0], [1.0], [3.0], [4.0]], ["low", "low", "high", "high"])
    >>> separator.separable_, separator.predict([[-1.0], [9.0]]).tolist()
    (True, ['low', 'high'])
    """

    eps: float | None = None
    method: str = "auto"
    margin_tolerance: float | None = None

    @on_its_cluster
    def fit(self, X: Any, y: Any = None) -> Self:
        """Decide for points (n, m) of NumPy, pandas, SciPy sparse or Dask, and labels (n,), or a ``dfeas.table``."""
        points, index = self._read_labels(X, y)
        self._seen = None
        return self._separate(points, index)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Append points in memory to those of earlier calls; solve again only if one is on the wrong side of its hyperplane."""
        points, index, before = self._append(X, y, classes)
        known = before and self.results_ and self.separable_
        if not known or not (self._margins(points[before:], index[before:]) > 0).all():
            self._separate(points, index)
        self._seen = points, index
        return self

    def _separate(self, points: Any, index: NDArray[np.int64]) -> Self:
        """Where all points are of one class nothing is asked."""
        one = (index == index[0]).all()
        results = {} if one else self._solve_classes(points, index, intercept=self.fit_intercept)
        self._keep_results(list(results.values()))
        Y = [self._direction(results.get(k), points, index, k) for k in self._positive]
        return self._set(Y, True)

    def _scores(self, points: Any) -> Floats:
        """As X coef_' + intercept_, with the true signs of proved separators."""
        scores, proved = super()._scores(points), [result.evidence for result in self.results_]
        if self.separable_ and len(proved) == len(self.coef_):
            X, Y = rows_of(points, slice(None)), np.vstack([self.coef_.T, self.intercept_])
            give_true_signs(X, [plane_of(each, X.shape[1]) for each in proved], scores, near_zero(X, Y, scores))
        return scores

    def _direction(self, result: Result | None, points: Any, index: NDArray[np.int64], k: int) -> Floats:
        """The separator (m+1,) of class k, or a soft margin; where there is nothing to separate, what all points are."""
        if result is None:
            return self._make_plane(index, k)
        y = np.zeros(self.n_features_in_ + 1)
        width = self.n_features_in_ + bool(self.fit_intercept)
        if result.verdict == Verdict.FEASIBLE and result.separator is not None:
            y[:width] = result.separator
        else:
            labels = np.where(index == k, 1, -1)
            more = {name: getattr(self, name) for name in ("memory", "time_limit")} | self._cluster_of(points)
            y[:width] = soft_margin(points, labels, loss="squared_hinge", intercept=self.fit_intercept, **more).y
        return y


@dataclass(eq=False, repr=False)
class KernelSeparator(Classifier):
    """A function of a kernel's space that separates the classes, or the proof that there is none.

    If there is none, it predicts by a soft margin (squared hinge, C = 1) of at most ``SOFT`` points, drawn at random. More
    than two classes share the reads and the values of the kernel.

    Parameters
    ----------
    kernel : str or callable
        A name of ``dfeas.KERNELS``, or a function of rows A (a, m) and B (b, m) with values (a, b).
    memory, max_passes, time_limit, verbose, callback : optional
        As in ``dfeas.solve``; ``verbose`` shows progress, and a callback may end the fit.
    client : dask.distributed Client or cluster, str, or bool, optional
        Computes the chunks of Dask arrays and frames; the kernel is evaluated in this process. It is not kept after.
    gamma, degree, coef0 : optional
        Parameters of the kernel, as in ``dfeas.Kernel``.
    method : str
        A method that works with a kernel, or ``auto``.
    eps, margin_tolerance : optional
        As in ``Separator``.

    Attributes
    ----------
    separable_, verdicts_, margin_, classes_, n_iter_, results_
        As in ``Separator``.
    support_ : list of array
        Indices of the points of each function.
    dual_coef_ : list of array
        Their signed weights.
    support_vectors_ : list of array
        The points.

    Examples
    --------
    >>> from dfeas.estimators import KernelSeparator
    >>> ring = KernelSeparator(gamma=1.0).fit([[0.0], [-3.0], [3.0]], ["in", "out", "out"])
    >>> ring.separable_, ring.predict([[0.1], [-4.0]]).tolist()
    (True, ['in', 'out'])
    """

    kernel: Any = "rbf"
    _: KW_ONLY
    gamma: float | None = None
    degree: int | None = None
    coef0: float | None = None
    method: str = "auto"
    eps: float | None = None
    margin_tolerance: float | None = None

    def _cluster_of(self, points: Any) -> dict[str, Any]:
        return {"client": False}  # a kernel needs points by pairs of blocks, which meet in this process

    @on_its_cluster
    def fit(self, X: Any, y: Any = None) -> Self:
        """Decide for points (n, m) of NumPy, pandas, SciPy sparse or Dask, and labels (n,), or a ``dfeas.table``."""
        points, index = self._read_labels(X, y)
        with value_errors():
            kernel = Kernel(self.kernel, self.gamma, self.degree, self.coef0)
        self._keep_results(list(self._solve_classes(points, index, kernel=kernel).values()))
        function = self.kernel if callable(self.kernel) else None
        self._kernel = leaves.normalised_kernel(json.dumps(self.results_[0].kernel), function)
        self.support_, self.dual_coef_, self.support_vectors_ = [], [], []
        for result, labels in zip(self.results_, self._problems(index), strict=True):
            support, weights = result.support, result.weights
            if result.verdict != Verdict.FEASIBLE or support is None or weights is None:
                support, weights = self._soft(points, labels)
            self.support_.append(support)
            self.dual_coef_.append(weights * labels[support])
            self.support_vectors_.append(rows_of(points, support))
        return self

    def _soft(self, points: Any, labels: NDArray[Any]) -> tuple[NDArray[np.int64], Floats]:
        """Points and their weights in a soft margin: in coordinates of the span of a sample, by Cholesky."""
        n = len(labels)
        support = np.sort(np.random.default_rng(0).choice(n, min(n, SOFT), replace=False))
        gram = leaves.signed_gram(self._kernel, rows_of(points, support), labels[support].astype(np.float64))
        # beside K(x, x) = 1, so that Cholesky has a triangle
        gram[np.diag_indices_from(gram)] += 1e-9
        rows, cost = SignedRows(np.asarray(np.linalg.cholesky(gram), np.float64)), np.ones(len(support))
        w = newton(rows, cost, np.ones(len(support)), np.zeros(len(support))).w
        weights = 2 * np.maximum(0.0, 1 - rows.scores(w))
        return support[weights > 0], weights[weights > 0]

    def _scores(self, points: Any) -> Floats:
        scores: Floats = self._expansions.scores(rows_of(points, slice(None)))
        return scores

    @property
    def _expansions(self) -> Any:
        """Those of all classes, of which each point is taken once."""
        index, first = np.unique(np.concatenate(self.support_), return_index=True)
        amounts = np.zeros((len(index), len(self.support_)))
        for column, (support, amount) in enumerate(zip(self.support_, self.dual_coef_, strict=True)):
            amounts[np.searchsorted(index, support), column] = amount
        return leaves.kernel_directions(self._kernel, take_rows(stack_points(self.support_vectors_), first), amounts)
