"""Terms of likelihoods, in whole numbers: the maximum exists unless some direction lets none fall, and one rise."""

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from tests.exact import Rows, solution

Ints = np.ndarray
Terms = Iterator[tuple[int, Ints]]
"""The row of the table, or its stratum, and the whole-numbered row that must not fall along a direction."""


def unit(k: int, q: int) -> Ints:
    return np.eye(q, dtype=int)[k]


def ordinal_terms(X: Ints, y: Ints, q: int) -> Terms:
    """P(y = k) = F(t_k - x'b) - F(t_(k-1) - x'b): the upper end must not fall, and the lower one not rise."""
    for i, k in enumerate(y):
        if k < q:
            yield i, np.append(-X[i], unit(k, q))
        if k > 0:
            yield i, np.append(X[i], -unit(k - 1, q))


def adjacent_terms(X: Ints, y: Ints, q: int) -> Terms:
    """P(y = k) is proportional to exp(k x'b + a_1 + .. + a_k): that of the own class must not fall beside others."""
    for i, k in product(range(len(y)), range(q + 1)):
        own, other = (np.append(c * X[i], [int(j < c) for j in range(q)]) for c in (y[i], k))
        if k != y[i]:
            yield i, own - other


def conditional_terms(X: Ints, y: Ints, strata: Ints) -> Terms:
    """Of all sets of as many rows of a stratum the cases must not fall beside any."""
    for stratum in np.unique(strata):
        rows = np.flatnonzero(strata == stratum)
        cases = [row for row in rows if y[row]]
        for others in combinations(rows, len(cases)):
            yield stratum, X[cases].sum(axis=0) - X[list(others)].sum(axis=0)


def poisson_terms(X: Ints, y: Ints, strata: Ints) -> Terms:
    """Shares of the sum of a stratum: exp(x'b) of a row above 0 must not fall beside any other of it."""
    for i, j in product(range(len(y)), repeat=2):
        if y[i] > 0 and strata[i] == strata[j]:
            yield j, X[i] - X[j]


def cox_terms(X: Ints, time: Ints, event: Ints, strata: Ints) -> Terms:
    """exp(x'b) of an event must not fall beside that of any other at risk then."""
    for i, j in product(range(len(X)), repeat=2):
        if event[i] and strata[i] == strata[j] and time[j] >= time[i]:
            yield j, X[i] - X[j]


def reaches(rows: Rows, wanted: Sequence[int]) -> bool:
    """Whether some d with a'd >= 0 for all rows a has wanted'd > 0: unless some x >= 0 has sum x_i a_i = -wanted (Farkas)."""
    columns = [[-v for v in column] if w > 0 else column for column, w in zip(zip(*rows, strict=True), wanted, strict=True)]
    return solution(columns, [abs(w) for w in wanted])[0] is None


def estimate_of(rows: Any, j: int) -> str:
    """What is true of the estimate of coefficient j, by terms (n, d)."""
    rows = [[int(v) for v in row] for row in rows]
    up, down = ([sign * (k == j) for k in range(len(rows[0]))] for sign in (1, -1))
    if reaches([*rows, *([-v for v in row] for row in rows)], up):
        return "not identified"
    plus, minus = reaches(rows, up), reaches(rows, down)
    return "+Inf or -Inf" if plus and minus else "+Inf" if plus else "-Inf" if minus else "finite"
