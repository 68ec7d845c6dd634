"""Complete, quasi-complete, or overlap, proved in whole numbers: HiGHS finds, python-flint proves; nothing is of dfeas.

Signed points s_j, of which a_j are those that are not zero. Exactly one partition of the points in two sets has a pair (y, x):
y's_j > 0 on the first set and = 0 on the second, x > 0 on the second with sum x_j s_j = 0 (Goldman and Tucker 1956). All in the
first: complete; none: overlap; else quasi-complete. The linear programme max sum t, y's_j >= t_j, 0 <= t_j <= 1 guesses the
partition in floats, about columns that were made well-conditioned by exact operations; y and x are then solved for exactly and
looked at. Where that fails, the simplex method in whole numbers finds a conflict, which takes its span to the second set, and
the programme is asked about what is left, seen across that span.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter

import flint
import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.optimize import linprog

COMPLETE, QUASI, OVERLAP = "complete", "quasi-complete", "overlap"
PRIME = 2**61 - 1
BITS = 60
"""Of a float that becomes a whole number."""

WELL = 1e3
"""Condition number at which columns are left as they are."""

TURNS = 6
ATTEMPTS = (("highs-ds", 1e-10), ("highs-ds", 1e-7))
"""Methods and tolerances of HiGHS: at the finest it now and then ends with nothing. Its interior points went on for ever."""

PATIENCE = 3.0
"""Seconds of an attempt."""

TINY = 1e-300

Rows = list[list[int]]
Floats = np.ndarray


class OutOfTime(Exception):
    """The limit has passed."""


@dataclass(frozen=True)
class Answer:
    kind: str | None  # None: not in time
    how: str  # "programme" | "simplex" | "none"
    seconds: float
    separated: np.ndarray  # (n,) bool: y's_j > 0 for some y that is closed


def kind_of(X: Floats, y: np.ndarray, intercept: bool = True, seconds: float = 60.0) -> Answer:
    """Of points X (n, m) with y of two values, in floats of which every bit counts."""
    began = perf_counter()
    rows = signed(X, y, intercept)
    try:
        found, how = partition(rows, Clock(began + seconds))
    except OutOfTime:
        return Answer(None, "none", perf_counter() - began, np.zeros(len(rows), bool))
    kind = COMPLETE if found.all() else QUASI if found.any() else OVERLAP
    return Answer(kind, how, perf_counter() - began, found)


@dataclass(frozen=True)
class Clock:
    end: float

    def look(self) -> None:
        if perf_counter() > self.end:
            raise OutOfTime

    def left(self) -> float:
        return max(self.end - perf_counter(), 0.01)


def partition(rows: Rows, clock: Clock, guess: bool = True) -> tuple[np.ndarray, str]:
    """The points that are separated, and how that was found: a conflict among what is left takes the points of its span."""
    left = np.array([any(row) for row in rows])
    apart, how, points = np.zeros(len(rows), bool), "programme", rows
    while left.any():
        index = np.flatnonzero(left)
        rest = [points[j] for j in index]
        conditioned = well(rest, clock)
        found = guessed(rest, conditioned, clock) if guess else None
        if found is not None:
            apart[index] = found
            break
        how = "simplex"
        support = conflict(conditioned, clock)
        if support is None:
            apart[index] = True
            break
        basis, nullity = matrix([rest[j] for j in support]).nullspace()
        if not int(nullity):
            break
        short = matrix(transposed(numbers(basis))[: int(nullity)]).lll()
        points = numbers(matrix(points) * short.transpose())
        left &= [any(row) for row in points]
    return apart, how


def signed(X: Floats, y: np.ndarray, intercept: bool) -> Rows:
    """Signed points with each column times a power of two, as whole numbers."""
    first = y == y[0]
    columns = [whole(column) for column in np.asarray(X, np.float64).T]
    if intercept:
        columns.append([1] * len(first))
    return [[v if one else -v for v in row] for row, one in zip(zip(*columns, strict=True), first.tolist(), strict=True)]


def whole(values: Floats) -> list[int]:
    """A column times a power of two."""
    mantissas, exponents = np.frexp(values)
    digits = (mantissas * 2.0**53).astype(np.int64).tolist()
    least = min((e for d, e in zip(digits, exponents.tolist(), strict=True) if d), default=0)
    return [d << (e - least) if d else 0 for d, e in zip(digits, exponents.tolist(), strict=True)]


def matrix(rows: Rows) -> flint.fmpz_mat:
    return flint.fmpz_mat(len(rows), len(rows[0]), [v for row in rows for v in row])


def numbers(values: flint.fmpz_mat) -> Rows:
    return [[int(v) for v in row] for row in values.tolist()]


def product(rows: Rows, vector: list[int]) -> list[int]:
    return [int(v) for v in (matrix(rows) * flint.fmpz_mat(len(vector), 1, vector)).entries()]


def transposed(rows: Rows) -> Rows:
    return [list(column) for column in zip(*rows, strict=True)]


def pivots(rows: Rows) -> list[int]:
    """The first columns that span all others modulo a prime: they are independent for sure, and span all but for bad luck."""
    reduced, rank = flint.nmod_mat(len(rows), len(rows[0]), [v % PRIME for row in rows for v in row], PRIME).rref()
    return [next(j for j in range(len(rows[0])) if int(reduced[i, j])) for i in range(rank)]


def scaled(rows: Rows) -> tuple[Floats, Floats, list[int]]:
    """Points of length one in floats, their lengths before, and the powers of two that their columns were divided by."""
    shifts = [max(v.bit_length() for v in column) for column in transposed(rows)]
    points = np.array([[v / (1 << shift) for v, shift in zip(row, shifts, strict=True)] for row in rows])
    most = np.abs(points).max(axis=1, keepdims=True).clip(TINY)
    lengths = most * np.linalg.norm(points / most, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    return points / lengths, lengths[:, 0], shifts


def well(rows: Rows, clock: Clock) -> Rows:
    """The same points in other coordinates: columns that span times an invertible matrix, for floats to see."""
    kept = pivots(rows)
    rows = [[row[j] for j in kept] for row in rows]
    for _ in range(TURNS):
        clock.look()
        points, _, shifts = scaled(rows)
        if len(points) < len(kept):
            break
        triangle = np.linalg.qr(points, mode="r")
        triangle += np.diag(np.where(np.abs(np.diag(triangle)) < 1e-17, 1e-17, 0.0))
        if np.linalg.cond(triangle) < WELL:
            break
        inverse = np.triu(solve_triangular(triangle, np.eye(len(triangle))))
        inverse /= np.abs(inverse).max(axis=0)
        turn = [
            [int(v * 2.0**BITS) << (max(shifts) - shift) for v in row]
            for row, shift in zip(inverse.tolist(), shifts, strict=True)
        ]
        if not all(turn[i][i] for i in range(len(turn))):
            break
        turned = numbers(matrix(rows) * matrix(turn))
        divisor = math.gcd(*(v for row in turned for v in row))
        rows = [[v // divisor for v in row] for row in turned]
    return rows


def guessed(rows: Rows, conditioned: Rows, clock: Clock) -> np.ndarray | None:
    """The points that are separated, proved; None where the programme's partition does not hold."""
    points, lengths, shifts = scaled(conditioned)
    for method, tolerance in ATTEMPTS:
        found = programme(points, method, tolerance, clock)
        clock.look()
        if found is None:
            continue
        near, scores, weights = found
        separated = scores > 0.5
        y = [v << (max(shifts) - shift) for v, shift in zip(whole(near), shifts, strict=True)]
        if closed(conditioned, points, separated, y):
            clock.look()
            if balanced(rows, conditioned, points, ~separated, weights.clip(1e-9) / lengths):
                return separated
    return None


def programme(points: Floats, method: str, tolerance: float, clock: Clock) -> tuple[Floats, Floats, Floats] | None:
    """y, t and x."""
    n, m = points.shape
    found = linprog(
        np.r_[np.zeros(m), -np.ones(n)],
        A_ub=np.hstack([-points, np.eye(n)]),
        b_ub=np.zeros(n),
        bounds=[(None, None)] * m + [(0, 1)] * n,
        method=method,
        options={
            "primal_feasibility_tolerance": tolerance,
            "dual_feasibility_tolerance": tolerance,
            "time_limit": min(PATIENCE, clock.left()),
        },
    )
    return None if found.status else (found.x[:m], found.x[m:], -found.ineqlin.marginals)


def closed(rows: Rows, points: Floats, separated: np.ndarray, y: list[int]) -> bool:
    """Whether y, moved to be orthogonal to the other points, is above zero on the separated ones."""
    if not separated.any():
        return True
    on = np.flatnonzero(~separated & points.any(axis=1))
    if len(on):
        y = orthogonal([rows[j] for j in on], y, points[on])
    return all((v > 0) if apart else v == 0 for v, apart in zip(product(rows, y), separated.tolist(), strict=True))


def balanced(rows: Rows, conditioned: Rows, points: Floats, on: np.ndarray, weights: Floats) -> bool:
    """Whether ``weights`` of the points ``on``, moved to make their sum zero, are all above zero."""
    used = np.flatnonzero(on & points.any(axis=1))
    if not len(used):
        return True
    x = orthogonal(transposed([conditioned[j] for j in used]), whole(weights[used]), points[used].T)
    return all(v > 0 for v in x) and not any(product(transposed([rows[j] for j in used]), x))


def orthogonal(rows: Rows, vector: list[int], near: Floats) -> list[int]:
    """A multiple of ``vector``, moved in a few entries, that is orthogonal to ``rows``; ``near`` are these in floats."""
    order = qr(near, mode="r", pivoting=True)[-1].tolist()
    columns = [order[i] for i in pivots([[row[j] for j in order] for row in rows])]
    cut = [[row[j] for j in columns] for row in rows]
    chosen = pivots(transposed(cut))
    rest = [0 if j in set(columns) else v for j, v in enumerate(vector)]
    right = product([rows[i] for i in chosen], rest)
    moved, whole_by = matrix([cut[i] for i in chosen]).solve(flint.fmpz_mat(len(right), 1, right)).numer_denom()
    by = int(whole_by)
    out = [v * by for v in rest]
    for j, value in zip(columns, moved.entries(), strict=True):
        out[j] = -int(value)
    return out


def conflict(rows: Rows, clock: Clock) -> list[int] | None:
    """Points with x > 0 and sum x_j s_j = 0, or None: y's_j > 0 for all. Phase one of the revised simplex method, exact.

    Columns are (s_j, size), the right side is (p, size) with an infinitesimal p > 0 drawn at random, against cycles.
    """
    bits = [max(v.bit_length() for v in row) for row in rows]
    size = 1 << max(bits)
    # a positive multiple of a point is as good, and prices can be compared
    columns = [[v << (max(bits) - short) for v in row] + [size] for row, short in zip(rows, bits, strict=True)]
    n, m = len(columns), len(columns[0])
    by_point = matrix(columns)
    rng = np.random.default_rng(0)
    right = flint.fmpz_mat(m, 2, [v for p in rng.integers(1, 2**20, m - 1).tolist() for v in (0, p)] + [size, 0])
    basis = [n + i for i in range(m)]

    def column(j: int) -> list[int]:
        return columns[j] if j < n else [int(i == j - n) for i in range(m)]

    while True:
        clock.look()
        based = matrix(transposed([column(j) for j in basis]))
        values = based.solve(right).tolist()
        artificial = [i for i, j in enumerate(basis) if j >= n]
        if not any(values[i][0] for i in artificial):
            used = [i for i in range(m) if values[i][0]]
            support = [basis[i] for i in used]
            weights, _ = flint.fmpq_mat(1, len(used), [values[i][0] for i in used]).numer_denom()
            sums = weights * matrix([columns[j][:-1] for j in support])
            assert all(v > 0 for v in weights.entries())
            assert not any(sums.entries())
            return support
        costs = flint.fmpz_mat(m, 1, [int(j >= n) for j in basis])
        price = [int(v) for v in based.transpose().solve(costs).numer_denom()[0].entries()]
        gains = [int(v) for v in (by_point * flint.fmpz_mat(m, 1, price)).entries()]
        enter = max(range(n), key=gains.__getitem__)
        if gains[enter] <= 0:
            y = [-v for v in price[:-1]]
            assert all(v > 0 for v in product(rows, y))
            return None
        steps = based.solve(flint.fmpz_mat(m, 1, columns[enter])).entries()
        ratios = [((values[i][0] / steps[i], values[i][1] / steps[i]), i) for i in range(m) if steps[i] > 0]
        basis[min(ratios)[1]] = enter
