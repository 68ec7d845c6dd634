"""An oracle in rational arithmetic, which shares nothing with dfeas."""

from fractions import Fraction

import numpy as np


def conflicts(A: np.ndarray) -> bool:
    """Whether x >= 0, sum x = 1, Ax = 0 has a solution for integers A (m, n): phase one of the simplex method, Bland's rule."""
    m, n = A.shape
    rows = [[Fraction(int(v)) for v in row] for row in A] + [[Fraction(1)] * n]
    for i, row in enumerate(rows):
        row += [Fraction(int(i == k)) for k in range(m + 1)] + [Fraction(int(i == m))]
    basis = list(range(n, n + m + 1))
    cost = [-sum((row[j] for row in rows), Fraction(0)) if j < n or j == n + m + 1 else Fraction(0) for j in range(n + m + 2)]
    while True:
        enter = next((j for j in range(n) if cost[j] < 0), None)
        if enter is None:
            return cost[-1] == 0
        out = min((row[-1] / row[enter], basis[i], i) for i, row in enumerate(rows) if row[enter] > 0)[2]
        pivot = rows[out][enter]
        rows[out] = [v / pivot for v in rows[out]]
        for i, row in enumerate(rows):
            if i != out and row[enter]:
                factor = row[enter]
                rows[i] = [v - factor * p for v, p in zip(row, rows[out], strict=True)]
        factor = cost[enter]
        cost = [v - factor * p for v, p in zip(cost, rows[out], strict=True)]
        basis[out] = enter


def small_instance(seed: int) -> np.ndarray:
    """Signed integer points (m, n), none of them zero: separable, touching or overlapping, with duplicates, of low rank."""
    rng = np.random.default_rng(seed)
    m, n, size = int(rng.integers(1, 6)), int(rng.integers(1, 14)), int(rng.integers(1, 6))
    A = rng.integers(-size, size + 1, (m, n))
    kind = seed % 5
    if kind == 1:
        A[:, n // 2 :] = A[:, : n - n // 2]
    if kind == 2:
        A[-1] = A[0]
    if kind in (3, 4):
        y = rng.integers(-3, 4, m)
        A *= np.where(y @ A < 0, -1, 1)
        if kind == 4:
            A = A[:, y @ A > 0]
    A = A[:, A.any(axis=0)]
    return A if A.shape[1] else np.ones((m, 1), int)
