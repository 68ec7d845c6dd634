"""Small problems for the polynomial kernel of degree 2, and exactly whether anything separates them, by explicit features."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np

import dfeas
from tests.exact import conflicts

KERNEL = dfeas.Kernel("polynomial", degree=2, gamma=1.0, coef0=1.0)
"""(x'z + 1)^2."""


def features(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Signed features (k, n) whose products are the kernel, but for factors that separation does not see: integers."""
    wide = np.hstack([X, np.ones((len(X), 1))]).astype(int)
    pairs = list(combinations_with_replacement(range(wide.shape[1]), 2))
    return np.array([[int(row[i] * row[j]) for i, j in pairs] for row in wide], object).T * labels


def instance(seed: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """Points (n, m) with small integer entries, labels (n,) of both classes, and whether they conflict."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(3, 14)), int(rng.integers(1, 4))
    X = rng.integers(-2, 3, (n, m)).astype(float)
    labels = rng.choice([-1, 1], n)
    if abs(labels.sum()) == n:
        labels[0] *= -1
    return X, labels, conflicts(features(X, labels))
