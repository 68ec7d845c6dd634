"""Whether classes can be separated in the space of a kernel, as an estimator."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dfeas.analysis.scoring import Expansions
from dfeas.estimators.classifier import Classifier, Floats, rows_of
from dfeas.geometry.kernel.kernel import Kernel
from dfeas.geometry.kernel.nearest import Matrix
from dfeas.linalg.points import picked, stacked
from dfeas.methods.soft_margin.rows import Rows
from dfeas.methods.soft_margin.squared_hinge import newton

SOFT = 1000
"""Points of the soft margin."""

RIDGE = 1e-9
"""Added to every K(x, x) = 1 there, so that Cholesky has a triangle."""


class KernelSeparator(Classifier):
    """A function of a kernel's space that separates the classes, or the proof that none has a margin above eps.

    Where there is none it predicts by a soft margin (squared hinge, C = 1) of at most ``SOFT`` points, drawn at random.

    Parameters
    ----------
    kernel, gamma, degree, coef0, method, eps, margin_tolerance, memory, max_passes, time_limit : as for ``dfeas.solve``.
    verbose : show progress on stderr.
    callback : called with the record of each read, as that of ``dfeas.solve``: it may end the fit.

    Attributes
    ----------
    separable_ : whether all classes are separated, each from the rest (two: from each other).
    verdicts_, margin_ (k,), classes_, n_iter_, results_ (k) of ``dfeas.solve``; support_ (k) indices of points, dual_coef_ (k)
    their signed weights, support_vectors_ (k) the points. More than two classes share the reads and the values of the kernel.
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: float | None = None,
        degree: int | None = None,
        coef0: float | None = None,
        method: str = "auto",
        eps: float = 1e-3,
        margin_tolerance: float | None = None,
        memory: str | int = "2GB",
        max_passes: int | None = None,
        time_limit: float | None = None,
        verbose: bool = False,
        callback: Callable[[Any], object] | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.method = method
        self.eps = eps
        self.margin_tolerance = margin_tolerance
        self.memory = memory
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any) -> Self:
        """Decide for points (n, m) of NumPy, pandas, SciPy sparse or Dask, and labels (n,)."""
        points, index = self._labelled(X, y)
        options = {name: value for name, value in self.get_params().items() if name != "verbose"}
        self._decided(list(self._solved(points, index, progress=self.verbose, **options).values()))
        function = self.kernel if callable(self.kernel) else None
        self._kernel = Kernel.from_text(json.dumps(self.results_[0].kernel), function)
        self.support_, self.dual_coef_, self.support_vectors_ = [], [], []
        for found, labels in zip(self.results_, self._problems(index), strict=True):
            support, weights = found.support, found.weights
            if found.verdict != "feasible" or support is None or weights is None:
                support, weights = self._soft(points, labels)
            self.support_.append(support)
            self.dual_coef_.append(weights * labels[support])
            self.support_vectors_.append(rows_of(points, support))
        return self

    def _soft(self, points: Any, labels: NDArray[Any]) -> tuple[NDArray[np.int64], Floats]:
        """Points and their weights in a soft margin: in coordinates of the span of a sample, by Cholesky."""
        n = len(labels)
        support = np.sort(np.random.default_rng(0).choice(n, min(n, SOFT), replace=False))
        gram = Matrix(self._kernel).signed(rows_of(points, support), labels[support].astype(np.float64))
        gram[np.diag_indices_from(gram)] += RIDGE
        rows, cost = Rows(np.asarray(np.linalg.cholesky(gram), np.float64)), np.ones(len(support))
        w = newton(rows, cost, np.zeros(len(support)))[0]
        weights = 2 * np.maximum(0.0, 1 - rows.scores(w))
        return support[weights > 0], weights[weights > 0]

    def _scores(self, points: Any) -> Floats:
        return self._expansions.scores(rows_of(points, slice(None)))

    @property
    def _expansions(self) -> Expansions:
        """Those of all classes, of which each point is taken once."""
        index, first = np.unique(np.concatenate(self.support_), return_index=True)
        amounts = np.zeros((len(index), len(self.support_)))
        for column, (support, amount) in enumerate(zip(self.support_, self.dual_coef_, strict=True)):
            amounts[np.searchsorted(index, support), column] = amount
        return Expansions(self._kernel, picked(stacked(self.support_vectors_), first), amounts)
