"""An n-vector and its product with the Gram matrix, kept together: what is known of combinations without a product."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from dfeas.kernels.distances import Floats


@dataclass(frozen=True, slots=True)
class Combination:
    """y = sum_j alpha_j a_j, a_j the signed unit vectors of the points."""

    alpha: Floats  # (n,)
    scores: Floats  # (n,) G alpha = A'y

    @classmethod
    def zero(cls, n: int) -> Combination:
        """y = 0."""
        return cls(np.zeros(n), np.zeros(n))

    def __add__(self, other: Combination) -> Combination:
        return Combination(self.alpha + other.alpha, self.scores + other.scores)

    def __rmul__(self, factor: float) -> Combination:
        return Combination(factor * self.alpha, factor * self.scores)

    def towards(self, other: Combination, share: float) -> Combination:
        """(1 - share) of this and share of the other."""
        return (1 - share) * self + share * other

    def dot(self, other: Combination) -> float:
        """The inner product of both in the kernel's space, alpha'G beta."""
        return float(self.alpha @ other.scores)

    @property
    def square(self) -> float:
        """|y|^2 = alpha'G alpha, up to rounding; never negative."""
        return max(0.0, self.dot(self))

    @property
    def length(self) -> float:
        """|y|."""
        return sqrt(self.square)

    @property
    def worst(self) -> int:
        """The point with the lowest score, the first of several."""
        return int(self.scores.argmin())


def uniform(n: int) -> Floats:
    """1/n for each point (n,)."""
    return np.full(n, 1 / n)


def unit(n: int, j: int) -> Floats:
    """e_j (n,)."""
    found = np.zeros(n)
    found[j] = 1
    return found
