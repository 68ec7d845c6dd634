"""Vectors of the space in which y lives: m numbers, or a combination of the columns whose scores are known.

In the space of a kernel y has no entries, only coefficients. What an m-vector is to a method there is an n-vector with its
product with the Gram matrix, as in the papers: a sum of combinations whose products are known is known, and so are the answers
to all questions about it but one, A softmax(-A'y / mu), which is a product.

|y|^2 = alpha'G alpha is a sum with cancellation: of a short y it is all rounding. A length below the square root of ``floor``
times |alpha|_1 is none, so that neither end of a bracket claims more than the products can tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from msgspec import Struct

from dfeas.errors import BadInputError
from dfeas.linalg.points import Floats, Indices
from dfeas.passes.softmin import Softmin, SoftminAnswer

FLOORS = {4: 2.0**-22, 8: 2.0**-50}
"""By the bytes of an entry as stored: points in float32 have tiles in float32, where these are safe."""


class Combination(Struct, frozen=True, eq=False):
    """y = sum_j alpha_j a_j, a_j the signed unit vectors of the points."""

    alpha: Floats  # (n,)
    scores: Floats  # (n,) G alpha = A'y
    floor: float = FLOORS[8]  # squares of lengths are right up to this times |alpha|_1^2

    @classmethod
    def zero(cls, n: int, floor: float = FLOORS[8]) -> Combination:
        return cls(np.zeros(n), np.zeros(n), floor)

    def __add__(self, other: Combination) -> Combination:
        return Combination(self.alpha + other.alpha, self.scores + other.scores, self.floor)

    def __sub__(self, other: Combination) -> Combination:
        return Combination(self.alpha - other.alpha, self.scores - other.scores, self.floor)

    def __rmul__(self, factor: float) -> Combination:
        return Combination(factor * self.alpha, factor * self.scores, self.floor)

    def __truediv__(self, factor: float) -> Combination:
        return Combination(self.alpha / factor, self.scores / factor, self.floor)

    def __matmul__(self, other: Combination) -> float:
        """The inner product of both in the kernel's space, alpha'G beta."""
        return float(self.alpha @ other.scores)

    @property
    def is_resolved(self) -> bool:
        """Whether its length is more than rounding. Raises BadInputError when the square is negative by far more."""
        square, size = self @ self, float(np.abs(self.alpha).sum())
        # 1e-3: no rounding of products makes a square of |alpha|_1 = 1 that negative
        if square < -1e-3 * size**2:
            raise BadInputError(
                f"the kernel is not positive definite: a combination of points with coefficients that sum to {size:.3g} "
                f"has a squared length of {square:.3g}"
            )
        return square > self.floor * size**2


class Expansion(Struct, frozen=True, eq=False):
    """y = sum_j amount_j a_j over some columns, where y has no entries of its own: in the space of a kernel."""

    index: Indices  # (s,) ascending
    amount: Floats  # (s,) of any sign; |y| = 1


if TYPE_CHECKING:

    class Vector(Protocol):
        """All of one kind in a run."""

        def __add__(self, other: Any, /) -> Any: ...
        def __sub__(self, other: Any, /) -> Any: ...
        def __rmul__(self, factor: Any, /) -> Any: ...
        def __truediv__(self, factor: Any, /) -> Any: ...
        def __matmul__(self, other: Any, /) -> Any: ...

else:
    Vector = Floats | Combination  # what checkpoints hold


def length(y: Vector) -> float:
    """|y|, in the space of the kernel for a combination."""
    return sqrt(max(0.0, y @ y)) if isinstance(y, Combination) else float(np.linalg.norm(np.asarray(y)))


def upper_end(Ax: Vector, weight: float = 1.0) -> float:
    """|Ax| for x of a sum of ``weight``, as far as rounding tells it."""
    return sqrt(max((Ax @ Ax) / weight**2, Ax.floor)) if isinstance(Ax, Combination) else length(Ax) / weight


def direction(y: Vector, low: float, above: float) -> tuple[float, Floats | Expansion] | None:
    """low / |y| and y / |y|, if that is above a bar; None also of a y that is rounding."""
    if isinstance(y, Combination) and not y.is_resolved:
        return None
    size = length(y)
    if size == 0 or not low / size > above:
        return None
    if not isinstance(y, Combination):
        return low / size, y / size
    index = np.flatnonzero(y.alpha)
    return low / size, Expansion(index, y.alpha[index] / size)


def resolution(Ax: Vector) -> float:
    """A gain of |Ax|^2 below this is rounding."""
    # 1e-15: a step that promises less than this share of |y| is rounding
    return Ax.floor if isinstance(Ax, Combination) else 1e-15 * length(Ax)


def weights_of(Ax: Vector) -> Floats | None:
    """x (n,) on the simplex, where Ax knows it."""
    return Ax.alpha / Ax.alpha.sum() if isinstance(Ax, Combination) else None


def softmin(soft: Sequence[Any], hard: Sequence[Any] = (), mu: Sequence[float] = ()) -> Any:
    """low, lse and A softmax(-A'y / mu) of some y, mu = 1 if nothing else is said; of others low, and the column that has it.
    Of combinations hard questions have a column only where there are no soft ones: what else is asked of them is known.
    """
    temperatures = np.array([*(mu or [1.0] * len(soft)), *[0.0] * len(hard)])
    every = [*soft, *hard]
    if isinstance(every[0], Combination):
        return CombinationSoftmin(tuple(every), temperatures)
    return Softmin(np.column_stack(every), temperatures)


class Products(Struct, frozen=True, eq=False):
    """Products with the Gram matrix; with unsigned, of K~_ij = G_ij l_i l_j."""

    alpha: Floats  # (n, k)
    floor: float  # of the combinations that are made of them
    signed: bool = True

    def answer(self, products: Floats) -> Floats:
        return products


class ScoredAnswer(Struct, frozen=True):
    """As a ``SoftminAnswer``, of combinations."""

    low: Floats  # (k,)
    arg: Indices  # (k,)
    lse: Floats  # (k,) not finite for mu = 0
    columns: tuple[Combination, ...]  # of the first questions


class CombinationSoftmin(Struct, frozen=True, eq=False):
    """k questions about combinations; all but the columns is known before they are asked."""

    y: tuple[Combination, ...]
    mu: Floats  # (k,) soft ones first

    signed = True

    @property
    def floor(self) -> float:
        return self.y[0].floor

    @property
    def alpha(self) -> Floats:
        if self.mu[0] == 0:
            return np.column_stack([unit(len(y.alpha), int(y.scores.argmin())) for y in self.y])
        return np.column_stack([softmax(-y.scores / mu) for y, mu in zip(self.y, self.mu, strict=True) if mu > 0])

    def answer(self, products: Floats) -> ScoredAnswer:
        low = np.array([y.scores.min() for y in self.y])
        arg = np.array([y.scores.argmin() for y in self.y])
        lse = np.array([lse_of(-y.scores / mu) if mu > 0 else np.inf for y, mu in zip(self.y, self.mu, strict=True)])
        columns = (Combination(*each, self.y[0].floor) for each in zip(self.alpha.T.copy(), products.T.copy(), strict=True))
        return ScoredAnswer(low, arg, lse, tuple(columns))


def column(answer: SoftminAnswer | ScoredAnswer, i: int) -> Any:
    """A softmax(-A'y / mu) of question i; the column ``arg`` for mu = 0."""
    return answer.columns[i] if isinstance(answer, ScoredAnswer) else answer.mean[:, i]


def uniform(n: int) -> Floats:
    """1/n for each point (n,)."""
    return np.full(n, 1 / n)


def unit(n: int, j: int) -> Floats:
    """e_j (n,), all weight on one point."""
    vector = np.zeros(n)
    vector[j] = 1
    return vector


def softmax(exponents: Floats) -> Floats:
    """exp (n,), over its sum."""
    weight = np.exp(exponents - exponents.max())
    return np.asarray(weight / weight.sum())


def lse_of(exponents: Floats) -> float:
    """log of the sum of exp."""
    top = float(exponents.max())
    return top + log(float(np.exp(exponents - top).sum()))
