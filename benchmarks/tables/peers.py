"""What others say of separation, in floats: True separated, False not, None no answer."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from scipy.optimize import linprog

from benchmarks.tables.designs import Floats

TOLERANCE = 1e-7
"""Sum of scores above which HiGHS, whose own tolerance this is, says that there is a direction."""

Peer = Callable[[Floats, np.ndarray], bool | None]


def konis(X: Floats, y: np.ndarray) -> bool | None:
    """Largest sum of scores in the box, all of them zero or above (Konis 2007); columns divided by their largest entries."""
    columns = np.column_stack([X, np.ones(len(X))]).astype(float)
    points = columns / np.abs(columns).max(axis=0).clip(np.finfo(float).tiny) * np.where(y == y[0], 1, -1)[:, None]
    found = linprog(-points.sum(axis=0), A_ub=-points, b_ub=np.zeros(len(points)), bounds=(-1, 1))
    return None if found.status else bool(-found.fun > TOLERANCE)


def statsmodels(X: Floats, y: np.ndarray) -> bool | None:
    """Logit, Newton's method of 100 steps: separated where it warns of it, no answer where it fails or does not converge."""
    from statsmodels.api import Logit, add_constant
    from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fit = Logit(y, add_constant(X, has_constant="add")).fit(disp=0, maxiter=100)
        except (np.linalg.LinAlgError, ValueError):
            return None
    if any(issubclass(each.category, PerfectSeparationWarning) for each in caught):
        return True
    return False if fit.mle_retvals["converged"] and np.isfinite(fit.params).all() else None


def installed() -> dict[str, Peer]:
    peers: dict[str, Peer] = {"Konis": konis}
    if find_spec("statsmodels"):
        peers["statsmodels"] = statsmodels
    return peers
