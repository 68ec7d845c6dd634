"""Designs of the kinds that regression tables hold: each is made from a family and a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Rng = np.random.Generator
Floats = np.ndarray
LEVELS = 12


@dataclass(frozen=True)
class Design:
    family: str
    seed: int
    labels: str  # how they were drawn
    X: Floats  # (n, m)
    y: np.ndarray  # (n,) 0 and 1, both of them


def dummies(rng: Rng, n: int, levels: int, full: bool) -> Floats:
    """One-hot groups, some of them rare at times; without a level unless ``full``."""
    share = rng.dirichlet(np.full(levels, rng.choice([0.5, 5.0, 100.0, 100.0])))
    hot = np.eye(levels)[rng.choice(levels, n, p=share)]
    return hot if full else hot[:, 1:]


def powers(rng: Rng, n: int, m: int) -> Floats:
    year = rng.integers(rng.choice([1900, 1970, 1990]), 2025, n).astype(float)
    return year[:, None] ** np.arange(1, min(m, 3) + 1)


def times(rng: Rng, n: int, m: int) -> Floats:
    seconds = rng.integers(1_400_000_000, 1_720_000_000, n)
    unit = rng.choice([1, 1000, 1_000_000_000])
    each = seconds * unit + rng.integers(0, unit, n)
    return np.column_stack([each, seconds // 86400 % 7 == 5, seconds // 3600 % 24])[:, :m].astype(float)


def incomes(rng: Rng, n: int, m: int) -> Floats:
    income = np.round(rng.lognormal(10.5, 0.8, n), -2)
    return np.column_stack([income, income**2, np.log(income + 1)])[:, :m]


def ids(rng: Rng, n: int, m: int) -> Floats:
    return rng.integers(10**9, 10**10, (n, min(m, 2))).astype(float)


def coordinates(rng: Rng, n: int, m: int) -> Floats:
    lat, lon = rng.normal(48.2, 0.3, n).round(6), rng.normal(16.4, 0.4, n).round(6)
    return np.column_stack([lat, lon, lat * lon, lat**2, lon**2])[:, :m]


def groups(rng: Rng, n: int, m: int) -> Floats:
    return dummies(rng, n, max(2, min(m, LEVELS)), full=False)


def full_groups(rng: Rng, n: int, m: int) -> Floats:
    """All levels, beside an intercept; and of many columns two factors."""
    first = dummies(rng, n, max(2, min(m, LEVELS)), full=True)
    return np.hstack([first, dummies(rng, n, m - LEVELS, full=True)]) if m > LEVELS + 1 else first


def interactions(rng: Rng, n: int, m: int) -> Floats:
    hot = dummies(rng, n, max(2, min(m, 6)), full=False)
    by = incomes(rng, n, 1) if rng.random() < 0.5 else powers(rng, n, 1)
    return np.hstack([by, hot, by * hot])


def p_values(rng: Rng, n: int, m: int) -> Floats:
    least = rng.choice([20, 100, 300])
    return 10.0 ** -rng.uniform(0, least, (n, min(m, 4)))


def counts(rng: Rng, n: int, m: int) -> Floats:
    return rng.negative_binomial(0.3, 0.1, (n, min(m, 6))).astype(float)


def ages(rng: Rng, n: int, m: int) -> Floats:
    age = rng.integers(18, 95, n).astype(float)
    return np.column_stack([age, age**2, age > 65, age**3])[:, :m].astype(float)


def missing(rng: Rng, n: int, m: int) -> Floats:
    """Values that are zero where they are missing, and indicators of it."""
    k = max(1, min(m, 8) // 2)
    value, gone = rng.normal(50, 10, (n, k)).round(2), rng.random((n, k)) < rng.choice([0.05, 0.3])
    return np.hstack([np.where(gone, 0.0, value), gone])


def dependent(rng: Rng, n: int, m: int) -> Floats:
    """Parts and their sum, a duplicate, and a shifted one."""
    parts = rng.integers(0, 1000, (n, max(1, min(m, 8) // 2))).astype(float)
    return np.column_stack([parts, parts.sum(axis=1), parts[:, 0], parts[:, -1] + 1900, 2 * parts[:, 0] - parts[:, -1]])


def single(rng: Rng, n: int, m: int) -> Floats:
    """float32."""
    return (rng.standard_normal((n, min(m, 8))) * 10.0 ** rng.integers(-3, 6, min(m, 8))).astype(np.float32)


PARTS: dict[str, Callable[[Rng, int, int], Floats]] = {
    made.__name__: made
    for made in (
        *(powers, times, incomes, ids, coordinates, groups, full_groups, interactions, p_values, counts, ages, missing),
        *(dependent, single),
    )
}
FAMILIES = (*PARTS, "table", "wide")


def table(rng: Rng, n: int, m: int) -> Floats:
    """m columns of several kinds, and a family's own column among them at times twice."""
    columns = np.empty((n, 0))
    while columns.shape[1] < m:
        part = PARTS[str(rng.choice(list(PARTS)))](rng, n, int(rng.integers(1, 7)))
        columns = np.hstack([columns, part])
    return columns[:, :m]


def wide(rng: Rng, n: int) -> Floats:
    """Some ten columns, and two factors of up to 300 levels in all."""
    levels = int(np.exp(rng.uniform(np.log(4), np.log(150))))
    return np.hstack([table(rng, n, int(rng.integers(1, 10))), *(dummies(rng, n, levels, rng.random() < 0.3) for _ in "ab")])


def by_chance(rng: Rng, X: Floats) -> np.ndarray:
    return rng.random(len(X)) < rng.uniform(0.15, 0.85)


def score(rng: Rng, X: Floats) -> Floats:
    """Of one column, or of all in units of their spread."""
    if rng.random() < 0.5:
        return X[:, rng.integers(X.shape[1])].astype(float)
    spread = X.std(axis=0, dtype=float)
    return (X - X.mean(axis=0, dtype=float)) @ (rng.standard_normal(X.shape[1]) / np.where(spread > 0, spread, 1))


def logistic(rng: Rng, X: Floats) -> np.ndarray:
    t = score(rng, X)
    return rng.random(len(X)) < 1 / (1 + np.exp(-2 * (t - t.mean()) / (t.std() or 1)))


def one_sided(rng: Rng, X: Floats) -> np.ndarray:
    """By chance, but what is largest in a column, or in what is 0 or 1 all ones, has one outcome."""
    column, y = X[:, rng.integers(X.shape[1])], by_chance(rng, X)
    return np.where(column == column.max(), rng.random() < 0.5, y)


def tied(rng: Rng, X: Floats) -> np.ndarray:
    """Above a value of a column and below it there is one outcome each; at it, both."""
    several = [j for j in range(X.shape[1]) if len(np.unique(X[:, j])) < len(X)]
    column = X[:, rng.choice(several or X.shape[1])]
    at = rng.choice(column)
    return np.where(column == at, rng.random(len(X)) < 0.5, column > at)


def threshold(rng: Rng, X: Floats) -> np.ndarray:
    t = score(rng, X)
    return t > np.quantile(t, rng.uniform(0.1, 0.9))


def near_threshold(rng: Rng, X: Floats) -> np.ndarray:
    """One to three labels are the other ones, of points beside the threshold or anywhere."""
    t = score(rng, X)
    cut = np.quantile(t, rng.uniform(0.1, 0.9))
    y = t > cut
    beside = np.argsort(np.abs(t - cut))[:8] if rng.random() < 0.5 else np.arange(len(y))
    flipped = rng.choice(beside, min(len(beside), int(rng.integers(1, 4))), replace=False)
    y[flipped] = ~y[flipped]
    return y


LABELS = (by_chance, logistic, one_sided, one_sided, tied, threshold, near_threshold)


def design(family: str, seed: int, shape: tuple[int, int] | None = None) -> Design:
    """Of ``shape``, or of 10 to 500 points and 1 to 20 columns (wide: from 100 points, up to 300 columns)."""
    rng = np.random.default_rng([FAMILIES.index(family), seed])
    n = int(np.exp(rng.uniform(np.log(10), np.log(501))))
    m = int(rng.integers(1, 21))
    if shape is not None:
        n, m = shape
    if family == "wide":
        X = wide(rng, int(rng.integers(100, 501)))
    elif family == "table" or shape is not None:
        X = table(rng, n, m)
    else:
        X = PARTS[family](rng, n, m)
        if m > X.shape[1] and rng.random() < 0.5:
            X = np.hstack([X, PARTS[family](rng, n, m)])
        if family != "single" and rng.random() < 0.3:
            X = np.hstack([X, table(rng, n, int(rng.integers(1, 6)))])
        X = X[:, :20]
    drawn = LABELS[rng.integers(len(LABELS))]
    y = np.asarray(drawn(rng, X), bool).astype(int)
    if y.min() == y.max():
        y[rng.integers(len(y))] ^= 1
    return Design(family, seed, drawn.__name__, np.ascontiguousarray(X), y)
