"""An oracle in integers, which shares nothing with dfeas."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

Rows = Sequence[Sequence[int]]


def solution(A: Rows, b: Sequence[int]) -> tuple[list[Fraction] | None, list[int]]:
    """x >= 0 with Ax = b and nothing, or None and y with A'y <= 0 < b'y, for integers A (r, n) and b >= 0 (r,).

    Phase one of the simplex method without divisions (Bareiss 1968), Bland's rule; answers are checked before they are given.
    """
    r, n = len(A), len(A[0])
    table = [[*map(int, A[i]), *(int(i == k) for k in range(r)), int(b[i])] for i in range(r)]
    cost = [-sum(row[j] for row in table) for j in range(n)] + [0] * r + [-sum(row[-1] for row in table)]
    basis, last = list(range(n, n + r)), 1
    while True:
        enter = next((j for j in range(n) if cost[j] < 0), None)
        if enter is None:
            break
        out = -1
        for i in range(r):
            if table[i][enter] > 0:
                order = 0 if out < 0 else table[i][-1] * table[out][enter] - table[out][-1] * table[i][enter]
                if out < 0 or order < 0 or (order == 0 and basis[i] < basis[out]):
                    out = i
        pivots = table[out]
        pivot = pivots[enter]
        table = [row if i == out else _reduced(row, row[enter], pivots, pivot, last) for i, row in enumerate(table)]
        cost = _reduced(cost, cost[enter], pivots, pivot, last)
        basis[out], last = enter, pivot
    if cost[-1]:
        y = [last - value for value in cost[n : n + r]]
        assert all(sum(A[i][j] * y[i] for i in range(r)) <= 0 for j in range(n)), "the oracle's y is none"
        assert sum(p * q for p, q in zip(b, y, strict=True)) > 0, "the oracle's y is none"
        return None, y
    x = [Fraction(0)] * n
    for row, column in zip(table, basis, strict=True):
        if column < n:
            x[column] = Fraction(row[-1], last)
    assert min(x) >= 0, "the oracle's x is none"
    assert all(sum(a * v for a, v in zip(row, x, strict=True) if v) == c for row, c in zip(A, b, strict=True)), "the same"
    return x, []


def _reduced(row: Sequence[int], factor: int, pivots: Sequence[int], pivot: int, last: int) -> list[int]:
    return [(pivot * v - factor * p) // last for v, p in zip(row, pivots, strict=True)]


def conflict(points: Rows) -> tuple[list[Fraction] | None, list[int]]:
    """x >= 0, sum x = 1 with sum x_j a_j = 0 of signed integer points a_j (n, m), or None and y with y'a_j > 0 for all."""
    rows = [*map(list, zip(*points, strict=True)), [1] * len(points)]
    x, y = solution(rows, [0] * (len(rows) - 1) + [1])
    return x, [-v for v in y[:-1]]


def conflicts(A: np.ndarray) -> bool:
    """Whether x >= 0, sum x = 1, Ax = 0 has a solution for integers A (m, n)."""
    return conflict(A.T.tolist())[0] is not None


def kind_of(points: Rows) -> str:
    """Complete, quasi-complete or overlap of signed integer points (n, m).

    They overlap exactly when some x > 0 has sum x_j a_j = 0 (Stiemke): x = 1 + z with z >= 0 and sum z_j a_j = - sum a_j.
    """
    if conflict(points)[0] is None:
        return "complete"
    rows, wanted = [], []
    for row in zip(*points, strict=True):
        total = -sum(row)
        rows.append([-v for v in row] if total < 0 else list(row))
        wanted.append(abs(total))
    return "quasi-complete" if solution(rows, wanted)[0] is None else "overlap"


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
