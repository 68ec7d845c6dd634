"""The exact minimum along a ray of |w|^2/2 + C/2 sum_j max(0, 1 - a_j'w)^2, a convex piecewise quadratic."""

from __future__ import annotations

import numpy as np

from dfeas.workingset.matrix import Floats


def line_search(score: Floats, slope: Floats, along: float, square: float, C: float) -> float:
    """The step t >= 0 that minimises f(w + t d).

    ``score`` (c,) are a_j'w, ``slope`` (c,) a_j'd, ``along`` is w'd and ``square`` d'd. The derivative is piecewise linear and
    rises; breakpoints are where a_j'(w + t d) = 1. They are sorted, the piece with the zero is found by running sums, and the
    zero is computed from the columns of that piece alone, so that running sums cost no accuracy.
    """
    rest = 1 - score
    active = (rest > 0) | ((rest == 0) & (slope < 0))
    start = along - C * float(slope[active] @ rest[active])
    if start >= 0:
        return 0.0
    rise = square + C * float(slope[active] @ slope[active])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        breaks = rest / slope
    crossing = np.flatnonzero((breaks > 0) & (breaks < 1e150))
    crossing = crossing[np.argsort(breaks[crossing], kind="stable")]
    at = breaks[crossing]
    change = np.where(slope[crossing] > 0, -C, C)  # columns leave where the score rises, and enter where it falls
    starts = start - np.concatenate([[0.0], np.cumsum(change * slope[crossing] * rest[crossing])])
    rises = rise + np.concatenate([[0.0], np.cumsum(change * slope[crossing] ** 2)])
    piece = int(np.argmax(np.append(starts[:-1] + rises[:-1] * at >= 0, True)))
    low = at[piece - 1] if piece else 0.0
    high = at[piece] if piece < len(at) else np.inf
    middle = (low + high) / 2 if np.isfinite(high) else 2 * low + 1
    active = rest - middle * slope > 0
    bottom = square + C * float(slope[active] @ slope[active])
    if not bottom > 0:
        return float(low)
    step = (C * float(slope[active] @ rest[active]) - along) / bottom
    return float(min(max(step, low), high))
