"""Points that are hard to decide: each family is a function of a generator to points (n, m) and labels (n,)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.fuzzing import thin

Drawn = tuple[np.ndarray, np.ndarray]
Family = Callable[[np.random.Generator], Drawn]


def _signs(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.where(rng.random(n) < 0.5, 1, -1)


def _halved(rng: np.random.Generator, X: np.ndarray, wrong: float = 0.5) -> np.ndarray:
    """Labels by a plane, half of the time with a few of them wrong."""
    plane = rng.standard_normal(X.shape[1])
    size = np.abs(X.astype(np.float64)).max(axis=0)
    labels = np.where(X / np.where(size > 0, size, 1) @ plane >= 0, 1, -1)
    if rng.random() < wrong:
        labels[rng.integers(len(X))] *= -1
    return np.asarray(labels)


def sizes(rng: np.random.Generator) -> tuple[int, int]:
    return int(rng.integers(1, 26)), int(rng.integers(1, 7))


def gaussian(rng: np.random.Generator) -> Drawn:
    X = rng.standard_normal(sizes(rng))
    return X, _halved(rng, X) if rng.random() < 0.5 else _signs(rng, len(X))


def twins(rng: np.random.Generator) -> Drawn:
    """Points beside themselves, the same or 1 ulp off, half of them with the other label."""
    X, labels = gaussian(rng)
    other = X.copy()
    if rng.random() < 0.7:
        k = rng.integers(X.shape[1])
        other[:, k] = np.nextafter(other[:, k], rng.choice([-np.inf, np.inf]))
    if rng.random() < 0.3:
        other = other * 2.0 ** rng.integers(-20, 20)
    return np.vstack([X, other]), np.concatenate([labels, labels * _signs(rng, len(X))])


def collinear(rng: np.random.Generator) -> Drawn:
    """Points that are multiples of one, but for some ulps: no y in float64 separates most that can be separated."""
    n, m = int(rng.integers(2, 8)), int(rng.integers(1, 6))
    X = (
        rng.standard_normal(m) * rng.uniform(0.5, 3, (n, 1))
        if rng.random() < 0.7
        else np.repeat(rng.standard_normal((1, m)), n, 0)
    )
    return X + rng.integers(-2, 3, (n, m)) * np.spacing(X), _signs(rng, n)


def feature_scales(rng: np.random.Generator) -> Drawn:
    X, labels = gaussian(rng)
    low, high = ((-300, 100), (-60, 60), (-12, 12))[rng.integers(3)]
    X = X * 10.0 ** rng.uniform(low, high, X.shape[1])
    return X, labels


def power_scales(rng: np.random.Generator) -> Drawn:
    X, labels = integers(rng)
    return X * 2.0 ** rng.integers(-30, 31, X.shape[1]), labels


def point_scales(rng: np.random.Generator) -> Drawn:
    X, labels = gaussian(rng)
    return X * 10.0 ** rng.uniform(-135, 135, (len(X), 1)), labels


def one_hot(rng: np.random.Generator) -> Drawn:
    n, levels = int(rng.integers(2, 30)), int(rng.integers(2, 6))
    some = [np.eye(levels)[rng.integers(levels, size=n)] for _ in range(rng.integers(1, 3))]
    X = np.hstack(some)
    return X, _signs(rng, n) if rng.random() < 0.5 else _halved(rng, X)


def low_rank(rng: np.random.Generator) -> Drawn:
    n, m = sizes(rng)
    r = int(rng.integers(1, m + 1))
    X = rng.integers(-3, 4, (n, r)) @ rng.integers(-3, 4, (r, m))
    return X.astype(np.float64), _signs(rng, n) if rng.random() < 0.5 else _halved(rng, X)


def integers(rng: np.random.Generator) -> Drawn:
    """Small ones: separable, touching or overlapping."""
    n, m = sizes(rng)
    size = int(rng.integers(1, 9))
    X = rng.integers(-size, size + 1, (n, m))
    labels = _signs(rng, n)
    if rng.random() < 0.6:
        score = X @ rng.integers(-3, 4, m)
        labels = np.where(score == 0, labels, np.sign(score))
    return X.astype(rng.choice([np.float64, np.float32, np.int8, np.int16, np.int64])), labels


def low_precision(rng: np.random.Generator) -> Drawn:
    """Points in float16 and float32 near a plane."""
    n, m = sizes(rng)
    X = rng.standard_normal((n, m + 1))
    X[:, -1] = X[:, :-1] @ rng.standard_normal(m) + rng.choice([0.0, 1e-7, 1e-3]) * rng.standard_normal(n)
    X = X.astype(rng.choice([np.float16, np.float32]))
    return X, _halved(rng, X) if rng.random() < 0.5 else _signs(rng, n)


def offsets(rng: np.random.Generator) -> Drawn:
    X, labels = gaussian(rng)
    return X + 10.0 ** rng.integers(0, 16) * _signs(rng, X.shape[1]), labels


def zero_points(rng: np.random.Generator) -> Drawn:
    X, labels = gaussian(rng) if rng.random() < 0.5 else one_hot(rng)
    X[rng.integers(len(X))] = 0
    return X, labels


def dates(rng: np.random.Generator) -> Drawn:
    """Years and times beside dummy variables, as tables have them."""
    n = int(rng.integers(4, 26))
    year = rng.integers(1990, 2025, n).astype(np.float64)
    base, step = ((1.6e9, 1.0), (1.6e12, 1e3), (1.6e18, 1e9))[rng.integers(3)]
    time = base + step * rng.integers(0, 10**8, n)
    X = np.column_stack([(year, time)[rng.integers(2)], rng.integers(0, 2, n), rng.integers(0, 4, n)])
    return X, _halved(rng, X - X.mean(axis=0)) if rng.random() < 0.5 else _signs(rng, n)


def ids(rng: np.random.Generator) -> Drawn:
    n = int(rng.integers(3, 26))
    X = np.column_stack([rng.integers(10**9, 10**10, n), rng.integers(0, 100, n), rng.integers(0, 2, n)]).astype(np.float64)
    return X, _halved(rng, X - X.mean(axis=0)) if rng.random() < 0.5 else _signs(rng, n)


def denormals(rng: np.random.Generator) -> Drawn:
    X, labels = integers(rng)
    wide = X.astype(np.float64)
    wide[rng.random(X.shape) < 0.3] *= 5e-324
    return wide, labels


def planted(rng: np.random.Generator) -> Drawn:
    """More points of a thin margin in integers, beyond what the simplex decides: its labels are right by construction."""
    n, m = int(rng.integers(100, 500)), int(rng.integers(3, 16))
    X, y = rng.integers(-50, 51, (n, m)), rng.integers(-9, 10, m)
    y[0] = 1
    score = X @ y
    X, score = X[score != 0], score[score != 0]
    return X.astype(rng.choice([np.float64, np.float32, np.int16])), np.sign(score)


def planted_twin(rng: np.random.Generator) -> Drawn:
    """The same, with one point twice and the other label: infeasible by construction."""
    X, labels = planted(rng)
    j = int(rng.integers(len(X)))
    return np.vstack([X, X[j : j + 1]]), np.append(labels, -labels[j])


def turned_scales(rng: np.random.Generator) -> Drawn:
    """No scale of features helps; one label may be wrong."""
    X, labels = thin.turn_scales(int(rng.integers(2, 60)), int(rng.integers(2, 7)), 10.0 ** rng.integers(3, 13), _seed(rng))
    if rng.random() < 0.3:
        labels[rng.integers(len(X))] *= -1
    return X, labels


def near_a_plane(rng: np.random.Generator) -> Drawn:
    """A hair from it, or with a margin planted there, which may be a negative one."""
    n, m, distance = int(rng.integers(4, 60)), int(rng.integers(2, 7)), 10.0 ** -rng.integers(3, 14)
    if rng.random() < 0.5:
        return thin.hair(n, m, distance, _seed(rng))
    return thin.planted(n, m, distance * rng.choice([1, 1, -1]), _seed(rng))


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(1 << 32))


LINEAR: tuple[Family, ...] = (
    gaussian, twins, collinear, feature_scales, power_scales, point_scales, one_hot, low_rank, integers, low_precision, offsets,
    zero_points, dates, ids, denormals, planted, planted_twin, turned_scales, near_a_plane,
)  # fmt: skip


def regression(rng: np.random.Generator) -> Drawn:
    """Columns of a table as a logistic regression is given them: years and powers, times, incomes, dummies, interactions."""
    n = int(rng.integers(4, 24))
    year = rng.integers(1980, 2025, n).astype(np.float64)
    base, step = ((1.6e9, 1.0), (1.6e12, 1e3), (1.6e18, 1e9))[rng.integers(3)]
    dummy, other = (rng.integers(0, 2, n).astype(np.float64) for _ in range(2))
    income = np.round(rng.lognormal(10, 1, n), int(rng.integers(0, 3)))
    columns = [
        (year,), (year, year**2), (year, year**2, year**3), (base + step * rng.integers(0, 10**8, n),), (income,),
        (income, income**2), (rng.integers(10**9, 10**10, n).astype(np.float64),),
        (rng.uniform(-90, 90, n), rng.uniform(-180, 180, n)), (rng.uniform(1e-9, 1e-3, n),), (income, income * dummy),
    ][rng.integers(10)]  # fmt: skip
    X = np.column_stack([*columns, dummy, other, *([dummy * other] if rng.random() < 0.3 else [])])
    labels = _signs(rng, n)
    chance = rng.random()
    if chance < 0.3:  # everybody of a group has the same outcome
        labels[dummy == 1] = 1
    elif chance < 0.6:
        labels = _halved(rng, X - X.mean(axis=0), wrong=0.3)
    return X, labels


def touching(rng: np.random.Generator) -> Drawn:
    """Small integers, some on the plane that separates the others: quasi-complete as a rule."""
    n, m = sizes(rng)
    X = rng.integers(-9, 10, (n, m))
    y = rng.integers(-2, 3, m)
    score = X @ y
    labels = np.where(score == 0, _signs(rng, n), np.sign(score))
    more = X[score == 0]
    return np.vstack([X, more]).astype(np.float64), np.concatenate([labels, -labels[score == 0]])


def shares(rng: np.random.Generator) -> Drawn:
    """A table of truth values, ages and shares with a decimal or two, by rows that some plane separates, or nearly."""
    n, m = sizes(rng)
    kinds = rng.integers(0, 3, m)
    X = np.stack([(rng.integers(0, 2, n), rng.integers(0, 100, n), rng.integers(0, 101, n) / 100)[kind] for kind in kinds], 1)
    score = np.rint(X * 100) @ rng.integers(-2, 3, m)
    score -= np.median(score)
    labels = np.where(score == 0, _signs(rng, n), np.sign(score))
    again = np.flatnonzero(score == 0)
    return np.vstack([X, X[again]]).astype(np.float64), np.concatenate([labels, -labels[again]])


def effects(rng: np.random.Generator) -> Drawn:
    """Levels of one to three effects, few of one class, without those of the reference, among empty features: sparse points."""
    n = int(rng.integers(4, 40))
    parts = [np.zeros((n, 256))]
    for _ in range(int(rng.integers(1, 4))):
        levels = int(rng.integers(2, 12))
        parts.append((rng.integers(0, levels, n)[:, None] == np.arange(1, levels)).astype(float))
    if rng.random() < 0.5:
        parts.append(rng.integers(-3, 4, (n, 1)) * 2.0 ** rng.integers(-3, 4))
    return np.hstack(parts), np.where(rng.random(n) < rng.choice([0.05, 0.2, 0.5]), 1, -1)


SEPARATION: tuple[Family, ...] = (
    regression, regression, regression, touching, touching, one_hot, low_rank, integers, power_scales, dates, twins, offsets,
    feature_scales, ids, effects, shares, shares,
)  # fmt: skip
