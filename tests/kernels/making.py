"""Small problems for kernels and their signed normalised Gram matrix, plainly: of dfeas there are only names of parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

import dfeas
from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.kernels.gram import GramProduct
from dfeas.kernels.kernel import NormalisedKernel, kernel_of
from dfeas.kernels.space import KERNEL_METHODS
from dfeas.methods.protocol import Facts
from tests.exact import conflicts
from tests.methods.making import best_margin

ON_ALL = tuple(name for name in KERNEL_METHODS if name != "working-set")
"""Methods that keep n-vectors."""


def plain(kernel: NormalisedKernel, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """K(x, z) (n, k), not normalised."""
    d = X[:, None, :] - Z[None, :, :]
    if kernel.name == "rbf":
        return np.asarray(np.exp(-kernel.gamma * (d**2).sum(axis=2)))
    if kernel.name == "exponential":
        return np.asarray(np.exp(-kernel.gamma * np.sqrt((d**2).sum(axis=2))))
    if kernel.name == "polynomial":
        return np.asarray((kernel.gamma * X @ Z.T + kernel.coef0) ** kernel.degree)
    return np.asarray(X @ Z.T)  # linear, and cosine once it is normalised


def dense(kernel: NormalisedKernel, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """G (n, n) of points without a zero point."""
    K = plain(kernel, X, X)
    scale = labels / np.sqrt(np.diagonal(K))
    return np.asarray(scale[:, None] * K * scale)


def in_blocks(X: np.ndarray, labels: np.ndarray, rows: int, **view: bool) -> Dataset:
    """A dataset in memory whose blocks have so many rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dfeas.data.storage.layout.BLOCK_BYTES", rows * X[0].nbytes)
        return open_source(Source(DataSpec(X, labels, **{"intercept": False, **view})))


def points(n: int, m: int, seed: int = 0, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, m)).astype(dtype), np.where(rng.random(n) < 0.5, -1, 1)


def ring(n: int, seed: int, m: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Points inside and outside a sphere, a little apart."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    size = np.linalg.norm(X, axis=1)
    labels = np.where(size > np.sqrt(m), 1, -1)
    return X * (1 + 0.05 * labels)[:, None], labels


@dataclass
class Dense:
    """Answers from a stored G, and counts products."""

    G: np.ndarray  # (n, n)
    labels: np.ndarray  # (n,)
    products: int = 0
    columns: list[int] = field(default_factory=list)  # of each product

    def run(self, question: GramProduct) -> np.ndarray:
        self.products += 1
        self.columns.append(question.V.shape[1])
        if question.signed:
            return np.asarray(self.G @ question.V)
        return np.asarray(self.labels[:, None] * (self.G @ (self.labels[:, None] * question.V)))


@dataclass(frozen=True)
class Problem:
    """Points in float64, and what is true of them."""

    kernel: NormalisedKernel
    X: np.ndarray
    labels: np.ndarray
    G: np.ndarray
    rho: float  # the best margin; 0 for none

    @property
    def facts(self) -> Facts:
        return Facts(self.X.shape[1], len(self.X))

    def engine(self) -> Dense:
        return Dense(self.G, self.labels)


def _problem(kernel: NormalisedKernel, X: np.ndarray, labels: np.ndarray, separable: bool) -> Problem:
    G = dense(kernel, X, labels)
    values, vectors = np.linalg.eigh(G)
    root = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T  # root'root = G
    return Problem(kernel, X, labels, G, best_margin(root) if separable else 0.0)


NAMES = ("ant", "bee", "cat")


def rings(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three classes around each other, a little apart."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, 3, n)
    X = rng.standard_normal((n, 3))
    X *= ((1 + 2 * place + 0.8 * rng.random(n)) / np.linalg.norm(X, axis=1))[:, None]
    return X.astype(np.float32), np.array(NAMES)[place]


LABELS = np.array([1, -1, 1, -1, 1, -1])


def six_points(offset: float) -> np.ndarray:
    """Six, two of them one unit in the last place apart, one far from all others."""
    X = np.random.default_rng(0).standard_normal((6, 2)) + offset
    X[1] = X[0]
    X[1, 0] = np.nextafter(X[0, 0], np.inf)
    X[5, 1] *= 1e3
    return X


def texts(n: int, m: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, m) in float32, a few entries each; labels that are no linear function."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, m)) * (rng.random((n, m)) < 0.15)).astype(np.float32)
    X[7] = np.eye(m)[3]
    size = np.linalg.norm(X, axis=1)
    return X, np.where(size > np.median(size), 1, -1)


FAMILIES = ("blobs", "random labels", "polynomial", "duplicates", "linear, no margin")


def problem(family: str, n: int = 60, seed: int = 0) -> Problem:
    """The first three are separable, the others not."""
    rng = np.random.default_rng(seed)
    X, labels = rng.standard_normal((n, 3)), np.where(rng.random(n) < 0.5, -1, 1)
    rbf = kernel_of("rbf", 0.7)[0]
    if family == "blobs":
        return _problem(rbf, X * 0.4 + labels[:, None], labels, True)
    if family == "random labels":
        return _problem(kernel_of("exponential", 1.0)[0], X, labels, True)
    if family == "polynomial":
        ring = np.where((X**2).sum(axis=1) > np.median((X**2).sum(axis=1)), 1, -1)
        return _problem(kernel_of("polynomial", 1.0, 2, 1.0)[0], X * np.where(ring > 0, 2, 0.5)[:, None], ring, True)
    if family == "duplicates":  # the first ten points come again with the other label
        X[-10:], labels[-10:] = X[:10], -labels[:10]
        return _problem(rbf, X, labels, False)
    return _problem(kernel_of("linear")[0], X, labels, False)


def states(method: Any, engine: Any, facts: Facts, products: int) -> Iterator[Any]:
    """The state after each product."""
    state = method.init(facts)
    for _ in range(products):
        state = method.tell(state, engine.run(method.ask(state)))
        yield state


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
