"""x of methods that weigh every point: an average of softmaxes, held by m-vectors only, however many steps there are.

x = sum_t c_t softmax(-A'y_t / mu_t) is told by (y_t, mu_t, c_t), the log of the sum of exp of each, and A softmax: 16 m bytes.
A x is a point of the hull of the latter, so that m + 1 of them have new weights with the same Ax and the same sum
(Caratheodory). Of the best x so far and of what came after it so many are kept, whenever as many new ones have come.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from dfeas.linalg.basic import basic
from dfeas.linalg.points import Floats
from dfeas.methods.vector import Combination, Vector, weights_of
from dfeas.passes.vectors import Recover
from dfeas.records import replace

FEW = 10
"""Softmaxes that are kept though fewer would do, as are three times as many before any are left out."""


class Mixture(Struct, frozen=True, eq=False):
    """x = sum_t share_t softmax(-A'y_t / mu_t), a point of the simplex held by m-vectors only."""

    Y: Floats  # (m, T)
    mu: Floats  # (T,)
    lse: Floats  # (T,)
    share: Floats  # (T,) on the simplex
    mean: Floats  # (m, T) A softmax(-A'y_t / mu_t), so that Ax = mean share

    def question(self, floor: float) -> Recover:
        """The pass that rebuilds x; weights of at most ``floor`` are left out."""
        return Recover(self.Y, self.mu, self.lse, self.share, floor)


class Softmax(Struct, frozen=True, eq=False):
    """One of them, and its weight in a sum."""

    y: Floats  # (m,)
    mu: float
    lse: float
    weight: float
    mean: Floats  # (m,) A softmax(-A'y / mu)


class Average(Struct, frozen=True, eq=False):
    """The best average of softmaxes and the last one: of the former it is what comes first."""

    softmaxes: tuple[Softmax, ...] = ()
    best: int = 0  # how many of them make the best x
    x: Floats | None = None  # that x, where vectors know it; then nothing else is kept

    def plus(self, softmax: Softmax, Ax: Vector, better: bool) -> Average:
        """With one more; whether Ax, the sum of all, is ``better`` than that of the best."""
        if isinstance(softmax.y, Combination):
            return replace(self, x=weights_of(Ax)) if better else self
        every = (*self.softmaxes, replace(softmax, mean=softmax.mean.copy()))  # of an answer about several y it is a view
        best = len(every) if better else self.best
        if len(every) < most_softmaxes(len(softmax.y)):
            return Average(every, best)
        first = shorten(every[:best])
        return Average(first + shorten(every[best:]), len(first))

    def mixture(self) -> Mixture:
        """The best x, of at most m + 1 softmaxes, so that the pass that rebuilds it asks few questions."""
        some = shorten(self.softmaxes[: self.best])
        weight = [each.weight for each in some]
        return Mixture(
            np.column_stack([each.y for each in some]),
            np.array([each.mu for each in some]),
            np.array([each.lse for each in some]),
            np.array(weight) / sum(weight),
            np.column_stack([each.mean for each in some]),
        )


def most_softmaxes(m: int) -> int:
    """Those of the best x, what came after it, and new ones."""
    return 3 * max(m + 1, FEW)


def shorten(softmaxes: tuple[Softmax, ...]) -> tuple[Softmax, ...]:
    """At most m + 1 of them, with weights that have the same sum and the same sum of A softmax."""
    if not softmaxes or len(softmaxes) <= len(softmaxes[0].mean) + 1:
        return softmaxes
    weight = np.array([each.weight for each in softmaxes])
    total = weight.sum()
    kept, share = basic(lambda some: np.array([softmaxes[i].mean for i in some]), len(softmaxes[0].mean), weight / total)
    share *= total / share.sum()
    return tuple(replace(softmaxes[i], weight=float(part)) for i, part in zip(kept, share, strict=True))
