"""Which terms a separation needs: each is left out, in their order, that the others can do without. Guesses in float64.

A direction of fewer features separates the same points when it is positive on those beyond the hyperplane, and zero on the
others: among the directions across these, the point nearest to zero in the hull of those beyond is not zero. Few points decide
that, and mostly those that did so for the features before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfeas.linalg.points import Floats
from dfeas.run.exact.guesses import APART, equilibrate, nearest, span

Places = NDArray[np.int64]

SURE = 1e-7
"""A nearest point that is farther from zero shows a direction; one nearer than rounding shows a conflict."""
ROUNDING = 1e-13


class DoubtError(Exception):
    """Float64 cannot tell what a separation needs."""


@dataclass(frozen=True)
class Separable:
    """What is separated, with features scaled and points of length one."""

    beyond: Floats  # (s, d) points beyond the hyperplane
    on: Floats  # (r, d) a basis of what those on it span

    @classmethod
    def of(cls, points: Floats, beyond: NDArray[np.bool_], intercept: bool) -> Separable | None:
        """Of points (n, d) and which of them are beyond; None for numbers that are too large.

        With an ``intercept``, which is the last feature and no term, features are centred, too.
        """
        even = equilibrate(points, centred=intercept)
        if even is None:
            return None
        return cls(even.points[beyond], span(even.points[~beyond]))

    def by(self, places: Places, few: Places) -> tuple[bool, Places]:
        """Whether directions of these features do, and few of the points beyond that decide it; first tried are such ``few``.

        Raises DoubtError where float64 cannot tell.
        """
        across = _across(self.on[:, places])
        some = self.beyond[:, places] @ across
        length = np.linalg.norm(some, axis=1)
        if not across.shape[1] or (length < APART).any():
            return False, few
        return _parted(some / length[:, None], few)

    def needed(self, terms: Sequence[Places], stop: Callable[[], bool]) -> list[int] | None:
        """Which terms, by their places, are left when each is left out that need not be; None where float64 cannot tell, or
        ``stop`` said so.
        """
        kept, left = np.ones(self.on.shape[1], np.bool_), list(range(len(terms)))
        few = np.arange(0)
        try:
            for number, term in enumerate(terms):
                if stop():
                    return None
                if len(left) > 1:
                    fewer = kept.copy()
                    fewer[term] = False
                    spare, few = self.by(np.flatnonzero(fewer), few)
                    if spare:
                        kept = fewer
                        left.remove(number)
        except DoubtError:
            return None
        return left


def _parted(points: Floats, few: Places) -> tuple[bool, Places]:
    """Whether all points (s, d) of length one are on one side of a hyperplane, and few of them that decide it: of those that
    are looked at, the point nearest to zero in their hull is zero, or has all points on its side.

    The lowest of the others are looked at next, those first that a first guess has lowest. Raises DoubtError, also where more
    points come no nearer to zero, which only rounding does.
    """
    most, before = 2 * (points.shape[1] + 1), np.inf
    if not len(few):
        few = _lowest(points @ points.mean(axis=0), most)
    while True:
        x = nearest(points[few])
        if x is None:
            raise DoubtError
        near = points[few].T @ x / x.sum()
        apart = float(np.linalg.norm(near))
        if apart <= ROUNDING:
            return False, few
        score = points @ near / apart
        if score.min() >= SURE:
            return True, few
        beyond = score < apart * (1 - ROUNDING)
        beyond[few] = False
        others = np.flatnonzero(beyond)
        if apart < SURE or apart >= before or not len(others):
            raise DoubtError
        before = apart
        few = np.concatenate([few[x > 0], others[_lowest(score[others], most)]])


def _lowest(score: Floats, most: int) -> Places:
    return np.argpartition(score, most)[:most] if len(score) > most else np.arange(len(score))


def _across(rows: Floats) -> Floats:
    if not len(rows):
        return np.eye(rows.shape[1])
    _, size, basis = np.linalg.svd(rows)
    return np.asarray(basis[int((size > APART).sum()) :].T)
