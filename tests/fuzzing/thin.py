"""Points whose margin is at the end of float64 in their own coordinates, and separable all the same."""

from __future__ import annotations

import numpy as np

from dfeas.linalg.points import Floats

Labelled = tuple[Floats, Floats]
"""Points (n, m) and labels (n,)."""


def turn_scales(n: int, m: int, condition: float, seed: int) -> Labelled:
    """Features from 1 down to 1 / condition, turned so that no scale of features helps."""
    rng = np.random.default_rng(seed)
    size = np.logspace(0, -np.log10(condition), m)
    points = rng.standard_normal((n, m)) * size
    label = np.where(points @ (rng.standard_normal(m) / size) > 0, 1.0, -1.0)
    return points @ _rotation(m, rng), label


def hair(n: int, m: int, distance: float, seed: int) -> Labelled:
    """All points at a distance from a plane, and one on its other side."""
    rng = np.random.default_rng(seed)
    height = np.full(n, distance)
    height[n // 3] = -2 * distance
    return _place(height, _directions(n, m - 1, rng), rng)


def planted(n: int, m: int, margin: float, seed: int) -> Labelled:
    """A margin on pairs of points against each other, and more points beyond; a negative one is none."""
    rng = np.random.default_rng(seed)
    beside, tight = _directions(n, m - 1, rng), min(n, 4 * m) // 2 * 2
    beside[1:tight:2] = -beside[0:tight:2]
    height = margin + (1 - margin) * rng.random(n) ** 2
    height[:tight] = margin
    points, label = _place(height, beside, rng)
    order = rng.permutation(n)
    return points[order], label[order]


def _directions(n: int, m: int, rng: np.random.Generator) -> Floats:
    directions = rng.standard_normal((n, m))
    return np.asarray(directions / np.linalg.norm(directions, axis=1, keepdims=True))


def _rotation(m: int, rng: np.random.Generator) -> Floats:
    return np.asarray(np.linalg.qr(rng.standard_normal((m, m)))[0])


def _place(height: Floats, beside: Floats, rng: np.random.Generator) -> Labelled:
    """Unit points of given heights above a plane, turned, with labels of chance that turn them to its one side."""
    points = np.hstack([height[:, None], np.sqrt(1 - height[:, None] ** 2) * beside]) @ _rotation(beside.shape[1] + 1, rng)
    label = rng.choice([-1.0, 1.0], len(points))
    return points * label[:, None], label


def dummies(n: int, factors: int, levels: int, seed: int) -> Labelled:
    """A level of each factor, one-hot, and labels of chance: of n far above the features some conflict."""
    rng = np.random.default_rng(seed)
    points = np.zeros((n, factors * levels))
    points[np.arange(n)[:, None], rng.integers(levels, size=(n, factors)) + levels * np.arange(factors)] = 1
    return points, rng.choice([-1.0, 1.0], n)
