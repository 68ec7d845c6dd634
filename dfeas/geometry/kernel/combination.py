"""An n-vector and its product with the Gram matrix, kept together: what is known of combinations without a product.

|y|^2 = alpha'G alpha is a sum with cancellation: of a short y it is all rounding. A length below the square root of ``floor``
times |alpha|_1 is none, so that neither end claims more than the products can tell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from dfeas.errors import BadInputError
from dfeas.geometry.kernel.distances import Floats
from dfeas.methods.protocol import Bracket, Evidence, Expansion, Facts, Sparse


@dataclass(frozen=True, slots=True)
class Combination:
    """y = sum_j alpha_j a_j, a_j the signed unit vectors of the points."""

    alpha: Floats  # (n,)
    scores: Floats  # (n,) G alpha = A'y

    @classmethod
    def zero(cls, n: int) -> Combination:
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


NEGATIVE = 1e-3
"""No rounding of products makes a square of |alpha|_1 = 1 that negative."""
FLOORS = {4: 2.0**-22, 8: 2.0**-50}
"""By the bytes of an entry as stored: points in float32 have tiles in float32, where these are safe."""


@dataclass(frozen=True, slots=True)
class Ends:
    """The bracket, and the x that attains its upper end."""

    bracket: Bracket
    best: Floats | None  # (n,) on the simplex, |x|_G = bracket.upper
    floor: float  # squares of lengths are right up to this times |alpha|_1^2

    @classmethod
    def open(cls, facts: Facts) -> Ends:
        return cls(Bracket(), None, FLOORS[facts.itemsize])

    def with_separator(self, y: Combination) -> Ends:
        """Raise the lower end if y has the larger margin, min_j (G alpha)_j / |y|.

        Raises BadInputError when |y|^2 is negative by far more than rounding.
        """
        square, size = y.dot(y), float(np.abs(y.alpha).sum())
        if square < -NEGATIVE * size**2:
            raise BadInputError(
                f"the kernel is not positive definite: a combination of points with coefficients that sum to {size:.3g} "
                f"has a squared length of {square:.3g}"
            )
        if square <= self.floor * size**2:
            return self
        lower = float(y.scores.min()) / sqrt(square)
        if not lower > self.bracket.lower:
            return self
        index = np.flatnonzero(y.alpha)
        expansion = Expansion(index, y.alpha[index] / sqrt(square))
        return replace(self, bracket=Bracket(lower, self.bracket.upper, expansion))

    def with_simplex(self, x: Combination) -> Ends:
        """Lower the upper end to |x|_G; at the optimum Ax is the widest separator, so that it is tried for the other end."""
        found = self.with_separator(x)
        upper = sqrt(max(x.square, self.floor))
        if not upper < self.bracket.upper:
            return found
        return replace(found, bracket=found.bracket.with_upper(upper), best=x.alpha)

    def evidence(self, iterations: int, violated: int | None = None, stalled: str = "") -> Evidence:
        """What is known; products that cannot tell a smaller |x|_G stall it."""
        lost = self.best is not None and self.bracket.upper <= sqrt(self.floor)
        more = "; points in float64 allow more" if self.floor == FLOORS[4] else ""
        stalled = stalled or (f"|x|_G is as small as rounding lets it be{more}" if lost else "")
        return Evidence(self.bracket, None if self.best is None else self.gordan, iterations, violated, stalled)

    def gordan(self) -> Sparse:
        assert self.best is not None, "the upper end is that of some x"
        index = np.flatnonzero(self.best)
        return Sparse(index, self.best[index] / self.best.sum())
