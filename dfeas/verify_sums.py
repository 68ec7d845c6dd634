"""Sums of unit vectors of a kernel's space over points of certificates, as the checker evaluates them: scores and lengths, with
bounds of their errors. Quick bounds come from products of matrices, sharper ones where these take a share of what they bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfeas.kernels.bounds import UP, Bounded, Same, bounded, by_products, gamma_
from dfeas.kernels.kernel import Kernel
from dfeas.passes.points import Points, picked, row_slice

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

TILE_BYTES = 8 << 20
"""Kernel values at a time."""
SHARP = 1e-4
"""Share of a score, and of the square of a length, that the quick bounds may take before the sharp ones are asked. They depend
on what else is checked in the same reads, and so by such a share do margins.
"""


@dataclass(frozen=True)
class Expansions:
    """Points that certificates weigh, and sums of them."""

    kernel: Kernel
    index: Indices  # (s,) of the points, ascending
    points: Points  # (s, m) in float64
    amounts: Floats  # (s, k) weights times labels
    codes: tuple[int | None, ...]  # (k,) of the class that is +1; None: labels are signs

    def of(self, column: int) -> Expansions:
        """One of the sums, and its points."""
        rows = np.flatnonzero(self.amounts[:, column])
        return Expansions(self.kernel, self.index[rows], self.points[rows], self.amounts[rows, column, None], self.codes[:1])


def lengths(expansions: Expansions, scores: Floats, errors: Floats, share: float) -> Floats:
    """Upper bounds (k,) of |y|, from the scores (s, k) of the points of the expansions, without signs, and the bounds of their
    errors; sharper for sums where these take a share of the square.
    """
    amounts = expansions.amounts
    rounding = 2 * gamma_(len(amounts) + 2)
    total = np.einsum("ik,ik->k", amounts, scores)
    error = np.einsum("ik,ik->k", np.abs(amounts), errors + rounding * np.abs(scores)) * (1 + rounding) * UP
    found = np.sqrt(np.maximum(0.0, total) * UP + error * UP**2) * UP
    for column in np.flatnonzero(~(error < share * total)):
        found[column] = np.fmin(found[column], _length(expansions.of(int(column))))
    return np.asarray(found)


def of_itself(expansions: Expansions) -> tuple[Floats, Floats]:
    """Scores (s, k) of the points of expansions under these, without signs, and bounds of their errors."""
    parts = []
    for some, same in _parts_of(len(expansions.amounts)):
        values = by_products(expansions.kernel, row_slice(expansions.points, some), expansions.points, same)
        parts.append((values.value @ expansions.amounts, values.errors(expansions.amounts)))
    return np.concatenate([score for score, _ in parts]), np.concatenate([error for _, error in parts])


def _parts_of(count: int) -> Iterator[tuple[slice, Same]]:
    """Rows of values of so many points with themselves, and where they are of one point."""
    size = max(1, TILE_BYTES // (8 * count))
    for first in range(0, count, size):
        here = np.arange(first, min(first + size, count))
        yield slice(first, first + size), (here - first, here)


def _length(expansion: Expansions) -> float:
    """A sharp upper bound of |y|, the first sum."""
    amount, total, error = expansion.amounts[:, 0], 0.0, 0.0
    count = len(amount)
    for some, same in _parts_of(count):
        value, off = bounded(expansion.kernel, row_slice(expansion.points, some), expansion.points, same)
        total += float(amount[some] @ (value @ amount))
        error += float(np.abs(amount[some]) @ ((off + 2 * gamma_(2 * count + 4) * (np.abs(value) + off)) @ np.abs(amount)))
    return math.sqrt(max(0.0, total) * UP + error * UP**2) * UP


def proved(expansions: Expansions, points: Points, signs: NDArray[np.int8], start: int) -> tuple[Floats, tuple[Floats, Floats]]:
    """Proved scores (b, k) of points from ``start`` on: by products, and sharper where these take a share of them. And what
    products say of the points of the support among them.
    """
    kernel, amounts = expansions.kernel, expansions.amounts
    here = np.flatnonzero((expansions.index >= start) & (expansions.index < start + points.shape[0]))
    rows = expansions.index[here] - start
    quick = by_products(kernel, points, expansions.points, (rows, here))
    plain, error = quick.value @ amounts, quick.errors(amounts)
    score = plain * signs
    shown = score - error
    if kernel.of_distance:
        again = np.flatnonzero(~(shown > (1 - SHARP) * score).all(axis=1))
        if len(again):
            value, off = bounded(kernel, picked(points, again), expansions.points)
            none = np.zeros((len(again), 1))
            rounding = Bounded(value, none, none).errors(amounts)
            shown[again] = (value @ amounts) * signs[again] - rounding - off @ np.abs(amounts) * UP
    return np.asarray(shown), (plain[rows], error[rows])
