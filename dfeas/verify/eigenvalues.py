"""Proved bounds of eigenvalues and singular values, for many cones of one size at once.

A symmetric matrix whose Cholesky factorisation runs to completion in float64 has a least eigenvalue above
-gamma(k + 1) / (1 - gamma(k + 1)) trace (Rump, Verification of positive definiteness, 2006; Higham, Theorem 10.3). Eigenvalues
of LAPACK say where to try, and are not believed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dfeas.verify.rounding import TINY, UP, U, gamma

Floats = NDArray[np.float64]


def floor_of(S: Floats) -> Floats:
    """Lower bounds (c,) of the least eigenvalues of symmetric matrices (c, k, k), of which the lower triangles are read."""
    k = S.shape[1]
    S = np.tril(S) + np.swapaxes(np.tril(S, -1), 1, 2)
    size = np.sqrt(np.einsum("cij,cij->c", S, S))
    bar = np.linalg.eigvalsh(S)[:, 0] - (8 * k * (k + 2) * U * size + 64 * k * TINY)
    shifted = S - bar[:, None, None] * np.eye(k)
    diagonal = np.diagonal(shifted, axis1=1, axis2=2)
    trace = np.abs(diagonal).sum(axis=1) * UP
    rate = gamma(k + 1) / (1 - 2 * gamma(k + 1))
    lost = (rate + 2 * U) * trace * UP + 4 * k * (2 * (k + 1) + trace) * TINY + 2 * U * np.abs(bar)
    found = np.asarray((bar - lost) - U * (np.abs(bar) + lost))
    found[~_factorised(shifted)] = -np.inf
    return found


def _factorised(S: Floats) -> NDArray[np.bool_]:
    """For which matrices (c, k, k) Cholesky's factorisation runs to completion."""
    try:
        return np.asarray(np.isfinite(np.linalg.cholesky(S)).all(axis=(1, 2)))
    except np.linalg.LinAlgError:
        if len(S) == 1:
            return np.zeros(1, bool)
        half = len(S) // 2
        return np.concatenate([_factorised(S[:half]), _factorised(S[half:])])


def triangle(k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns (k (k + 1) / 2,) of the entries of an element: the lower triangle, column by column."""
    places = [(i, j) for j in range(k) for i in range(j, k)]
    return np.array([i for i, _ in places]), np.array([j for _, j in places])


def unit(kind: str, size: int, d: int) -> Floats:
    """The element e (d,), whose product with another one is the sum of its traces."""
    found = np.zeros(d)
    if kind == "s":
        rows, columns = triangle(size)
        found[rows == columns] = 1.0
    else:
        found[0] = 1.0
    return found


def least_proved(kind: str, size: int, s: Floats, off: Floats) -> Floats:
    """Lower bounds (c,) of the least eigenvalues of elements (c, d) that are off by at most ``off`` (c, d) in each entry."""
    if kind == "l":
        found = s[:, 0] - off[:, 0] * UP
        return np.asarray(found - 2 * U * np.abs(found))
    if kind == "q":
        first, radius = s[:, 0] - off[:, 0] * UP, longest(np.abs(s[:, 1:]) + off[:, 1:] * UP)
        return np.asarray((first - radius) - 4 * U * (np.abs(first) + radius))
    rows, columns = triangle(size)
    S = np.zeros((len(s), size, size))
    S[:, rows, columns] = s * np.where(rows == columns, 1.0, 1 / np.sqrt(2.0))
    # entries off the diagonal count twice, by half of their squares: |off| is the Frobenius norm; sqrt 2 is rounded, too
    wrong = longest(off + 4 * U * np.abs(s))
    floor = floor_of(S)
    return np.asarray((floor - wrong) - 2 * U * (np.abs(floor) + wrong))


def longest(entries: Floats) -> Floats:
    """Upper bounds (...,) of Euclidean lengths along the last axis."""
    size = np.abs(entries).max(axis=-1, initial=0.0)
    scale = np.where(size > 0, size, 1.0)
    squares = (entries / scale[..., None]) ** 2
    return np.asarray(np.sqrt(squares.sum(axis=-1)) * scale * (1 + gamma(entries.shape[-1] + 8)) * UP)


def shortest(entries: Floats) -> Floats:
    """Lower bounds (...,) of Euclidean lengths along the last axis."""
    return np.asarray(longest(entries) * (1 - 3 * gamma(entries.shape[-1] + 8)))


def largest_singular(X: Floats) -> tuple[Floats, Floats]:
    """Bounds (c,) from below and above of the largest singular values of matrices (c, d, m)."""
    # by powers of two, so that squares neither overflow nor underflow
    power = np.frexp(np.abs(X).max(axis=(1, 2), initial=0.0))[1]
    X = np.ldexp(X, -power[:, None, None])
    across = np.swapaxes(X, 1, 2)
    tall = X.shape[1] > X.shape[2]
    gram = across @ X if tall else X @ across
    terms = X.shape[1] if tall else X.shape[2]
    frobenius = longest(longest(X))
    above = -floor_of(-gram) + 2 * gamma(terms) * frobenius**2 * UP
    vector = np.linalg.eigh(gram)[1][:, :, -1]
    left = (X @ vector[:, :, None])[:, :, 0] if tall else (across @ vector[:, :, None])[:, :, 0]
    wrong = gamma(len(vector[0])) * frobenius * longest(vector) * UP
    below = np.maximum(0.0, (shortest(left) - wrong) / longest(vector)) * (1 - 4 * U)
    above = np.minimum(np.sqrt(np.maximum(above, 0.0)) * UP, frobenius)
    above = np.where(np.isfinite(above), above, frobenius)
    return np.ldexp(below, power), np.ldexp(above, power)


def norms_proved(kind: str, X: Floats) -> tuple[Floats, Floats]:
    """Bounds (c,) from below and above of the norms of cones with rows (c, d, m), see ``dfeas.data.cones.groups``."""
    if kind == "s":
        return largest_singular(X)
    below, above = shortest(X[:, 0]), longest(X[:, 0])
    if kind == "q":
        low, high = largest_singular(X[:, 1:])
        below, above = (below + low) * (1 - 2 * U), (above + high) * UP
    return below, above
