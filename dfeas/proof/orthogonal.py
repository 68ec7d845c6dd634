"""Exactly orthogonal to given points, and near a given vector: integers."""

from __future__ import annotations

import numpy as np

from dfeas.proof.dyadic import Dyadic, Floats, Integers
from dfeas.proof.elimination import independent, null_vector

MOST = 128
"""Points that span the subspace, at most."""


def orthogonal(points: Floats, y: Floats) -> Integers | None:
    """Integers (d,) exactly orthogonal to points (s, d), none of them zero, in proportion to y (d,) as near as rounding allows.

    None when the points span too much for integers, or nothing but zero is orthogonal to them.
    """
    rows = independent(points)
    if len(rows) > MOST:
        return None
    digits = np.array([Dyadic.of(point).digits for point in points], object)  # each in its own scale
    # entries that follow from the others come first, and are those that can be solved for best
    solved = independent(points[rows].T)
    order = [*solved, *sorted(set(range(len(y))) - set(solved))]
    found = null_vector(digits[np.ix_(rows, order)].tolist(), Dyadic.of(y[order]).digits.tolist())
    if found is None:
        return None
    exact = np.empty(len(y), object)
    exact[order] = found
    return None if not any(found) or (digits @ exact).any() else exact
