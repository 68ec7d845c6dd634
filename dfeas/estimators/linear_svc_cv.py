"""Linear support vector machines whose C is chosen by cross-validation, all values and folds on the same reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from dfeas.estimators.linear_svc import SoftMarginClassifier


class LinearSVCCV(SoftMarginClassifier):
    """``LinearSVC`` with the C of least error on points that were left out.

    Parameters
    ----------
    Cs : values of C.
    folds : of cross-validation; each point is in one, by its index and ``seed``.
    Others are those of ``LinearSVC``.

    Attributes
    ----------
    C_ the chosen one, errors_ (len(Cs),) mean over folds, with several classes over their problems, too; and those of
    ``LinearSVC``.
    """

    def __init__(
        self,
        Cs: Sequence[float] = (0.01, 0.1, 1.0, 10.0),
        *,
        folds: int = 5,
        loss: str = "squared_hinge",
        tol: float = 1e-4,
        fit_intercept: bool = True,
        class_weight: Any = None,
        seed: int = 0,
        memory: str | int = "2GB",
        max_passes: int | None = None,
        time_limit: float | None = None,
        verbose: bool = False,
        callback: Callable[[Any], object] | None = None,
    ) -> None:
        self.Cs = Cs
        self.folds = folds
        self.loss = loss
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.seed = seed
        self.memory = memory
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose C, and fit with it to points (n, m) of NumPy, pandas, SciPy sparse or Dask, and labels (n,)."""
        points, index = self._labelled(X, y)
        weight, folds = self._point_weights(index, sample_weight), min(self.folds, len(index))
        results = self._fitted(points, index, C=list(self.Cs), folds=folds, weights=weight, seed=self.seed)
        self.errors_ = np.mean([[entry.error for entry in found.validation] for found in results], axis=0)
        chosen = int(np.argmin(self.errors_))
        self.C_ = results[0].validation[chosen].C
        return self._taken(results, chosen * (1 + folds))
