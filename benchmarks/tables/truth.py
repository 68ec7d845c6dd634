"""What is true of points in floats, found in whole numbers: signs of scores, and points that conflict. Nothing is of dfeas."""

from __future__ import annotations

from typing import Any

import flint
import numpy as np
import scipy.sparse

from benchmarks.tables.oracle import whole

Floats = np.ndarray
ROWS = 50_000
"""Of dense points that are looked at together."""

TINY = 1e-290
"""Below it products of floats are not relative to their rounding any more."""


def signs(X: Any, w: Floats) -> np.ndarray:
    """Signs (n,) of X w for points X (n, m), dense or CSR, exactly.

    A float64 score is off by at most (m + 2) 2^-53 |X| |w| (Higham 2002, 3.5); what is not above that is added up in whole
    numbers.
    """
    w = np.asarray(w, np.float64)
    found = np.empty(X.shape[0], np.int8)
    for first in range(0, X.shape[0], ROWS):
        part = X[first : first + ROWS].astype(np.float64)
        score, most = part @ w, abs(part) @ abs(w)
        near = np.flatnonzero(np.abs(score) <= (X.shape[1] + 2) * 2.0**-53 * most + TINY)
        sign = np.sign(score).astype(np.int8)
        sign[near] = [exact_sign(row, w) for row in dense(part[near])]
        found[first : first + ROWS] = sign
    return found


def exact_sign(row: Floats, w: Floats) -> int:
    """The sign of one score, in whole numbers."""
    used = np.flatnonzero((row != 0) & (w != 0))
    score = sum(a * b for a, b in zip(whole(row[used]), whole(w[used]), strict=True))
    return (score > 0) - (score < 0)


def conflict(rows: Any) -> bool:
    """Whether signed points (k, m) have one linear dependence, all of whose weights are above zero: no hyperplane has all of
    them on its positive side then, and every one of them is needed for that (Gordan 1873).
    """
    points = dense(rows).astype(np.float64)
    points = points[:, points.any(axis=0)]
    if not points.size:
        return False
    columns = [whole(column) for column in points.T]  # each times a power of two, which changes no dependence
    basis, nullity = flint.fmpz_mat(len(columns), len(points), [v for column in columns for v in column]).nullspace()
    weights = [int(basis[i, 0]) for i in range(len(points))]
    return int(nullity) == 1 and (all(v > 0 for v in weights) or all(v < 0 for v in weights))


def dense(X: Any) -> Floats:
    return X.toarray() if scipy.sparse.issparse(X) else np.asarray(X)
