"""Routines that SciPy compiled, without the packages around them: ``scipy.linalg`` and ``scipy.optimize`` take 0.3 s to load.

A compiled module is loaded under its own name, so that who imports its package later finds it there. These names are private
to SciPy: where this SciPy has none of them, its public function is called, which calls the same routine.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.linalg.points import Floats, Indices

NNLS = ("optimize", "_slsqplib", "nnls")
QR = ("linalg", "_flapack", "dgeqp3")
POSITIVE = ("linalg", "_flapack", "dposv")


@cache
def load_compiled(package: str, module: str, name: str) -> Any:
    """A routine of a compiled module of SciPy; None where this SciPy has none of the name."""
    place = f"scipy.{package}.{module}"
    if f"scipy.{package}" not in sys.modules and place not in sys.modules:
        whole = PathFinder.find_spec("scipy")
        folders = [] if whole is None else whole.submodule_search_locations
        spec = PathFinder.find_spec(place, [f"{folder}/{package}" for folder in folders or ()])
        if spec is None or spec.loader is None:
            return None
        found = module_from_spec(spec)
        spec.loader.exec_module(found)
        sys.modules[place] = found
    return getattr(sys.modules.get(place), name, None)


def nnls(A: NDArray[Any], b: NDArray[Any]) -> Floats:
    """x (n,) >= 0 of the least |Ax - b|, for A (m, n) and b (m,). Raises ValueError for entries that are not finite, and
    RuntimeError where it does not end.
    """
    routine = load_compiled(*NNLS)
    if routine is None or not A.shape[1]:
        import scipy

        return np.asarray(scipy.optimize.nnls(A, b)[0], np.float64)
    A, b = np.asarray_chkfinite(A, np.float64, order="C"), np.asarray_chkfinite(b, np.float64)
    x, _, info = routine(A, b, 3 * A.shape[1])
    if info == 3:
        raise RuntimeError("nonnegative least squares do not end")
    return np.asarray(x)


def pivots(matrix: Floats) -> Indices:
    """The order (c,) in which a QR takes the columns of a matrix: each is the farthest from the span of those before it."""
    routine = load_compiled(*QR)
    if routine is None or not matrix.size:
        import scipy

        return np.asarray(scipy.linalg.qr(matrix, mode="r", pivoting=True, check_finite=False)[1], np.int64)
    room = int(routine(matrix, lwork=-1)[-2][0])
    return np.asarray(routine(matrix, lwork=room)[1] - 1, np.int64)


def solve_positive(matrix: Floats, right: Floats) -> Floats:
    """x (d,) with matrix (d, d) x = right, for a symmetric matrix. Raises ``LinAlgError`` where it is not positive definite."""
    routine = load_compiled(*POSITIVE)
    if routine is None or not right.size:
        import scipy

        return np.asarray(scipy.linalg.cho_solve(scipy.linalg.cho_factor(matrix, lower=True), right))
    _, solution, info = routine(np.asarray_chkfinite(matrix).T, np.asarray_chkfinite(right))
    if info:
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    return np.asarray(solution)
