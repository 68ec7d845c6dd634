"""Coordinate ascent: the beginning of the way to the hard-margin separator of points in memory, often all of it.

    minimise  alpha'(G + delta I) alpha / 2 - sum(alpha)   over alpha >= 0

One entry changes at a time, the one that changes most, at the cost of a row of G. A factorisation of the points that count is
worth thousands of such steps, which are enough for a separator of nearly the widest margin.

Reference: Hsieh, Chang, Lin, Keerthi and Sundararajan, A dual coordinate descent method for large-scale linear SVM, ICML 2008,
with the greedy order of Frank-Wolfe methods (Gauss-Southwell).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ROUNDS = 8
"""At most so many steps for each point."""
HOPELESS = 2
"""Rounds without a separator after which others know better."""
LOOKS = 2
"""How often in a round it is looked how near to the optimum alpha is."""


@dataclass(frozen=True)
class Ascended:
    """Where it ended."""

    alpha: Floats  # (s,) >= 0, none of them more than sqrt(s) / delta
    near: bool  # the least score of alpha is within the tolerance of the widest margin


def ascended(gram: Floats, delta: float, tolerance: float, start: Floats | None) -> Ascended:
    """From nothing, or from alpha (s,) of fewer points, until the bracket of the margin is within the tolerance, or some steps
    have been taken.
    """
    count = len(gram)
    alpha = np.zeros(count) if start is None else np.maximum(start, 0)
    slope = np.full(count, -1.0) if start is None else gram @ alpha + delta * alpha - 1
    step = np.empty(count)
    limit = np.sqrt(count) / delta  # of alpha, wherever the objective is below 0
    look = -(-count // LOOKS)
    for taken in range(1, ROUNDS * count + 1):
        np.divide(slope, -(1 + delta), out=step)
        np.maximum(step, -alpha, out=step)
        best = int(np.abs(step).argmax())
        change = float(step[best])
        if not 0 < abs(change) < limit or not alpha[best] + change < limit:
            break  # the optimum, or G is no Gram matrix, and alpha would grow for ever
        alpha[best] += change
        slope += change * gram[best]
        slope[best] += delta * change
        if taken % look == 0:
            share = _share(alpha, slope + 1 - delta * alpha)
            if share >= 1 - tolerance:
                return Ascended(alpha, True)
            if share <= 0 and taken >= HOPELESS * count:
                break
    return Ascended(alpha, False)


def _share(alpha: Floats, scores: Floats) -> float:
    """Share that the least score, over |alpha|_G, has of |alpha|_G / sum(alpha), which no margin exceeds."""
    square = float(alpha @ scores)
    return float(scores.min()) * float(alpha.sum()) / square if square > 0 else 0.0
