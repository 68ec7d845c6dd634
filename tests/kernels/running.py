"""What tests of kernel methods share: small problems with their Gram matrix, engines that count, states after each product."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dfeas.kernels.gram import GramProduct
from dfeas.kernels.kernel import NormalisedKernel, kernel_of
from dfeas.kernels.space import KERNEL_METHODS
from dfeas.methods.protocol import Facts
from tests.kernels.dense import dense
from tests.methods.running import best_margin

ON_ALL = tuple(name for name in KERNEL_METHODS if name != "working-set")
"""Methods that keep n-vectors."""


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
