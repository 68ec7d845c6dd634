"""Whether a separator has all points on its positive side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import CheckFailedError
from dfeas.proof.signs import signs as signs_of
from dfeas.verify.found import WRONG, Check, Found
from dfeas.verify.rounding import NORMS, TINY, UP, gamma
from dfeas.verify.single import Fast, not_by_float32
from dfeas.verify.stored import Stored


def look_at_scores(found: Found, block: Stored, y: NDArray[np.float64], fast: Fast | None, known: float) -> None:
    """Add what the points of a block show of a separator; ``known`` is a margin that is proved of other points."""
    rows = np.arange(block.size) if fast is None else not_by_float32(known, block, fast)
    size = block.piece(len(y))
    for piece in range(0, len(rows), size):
        _look_in_float64(found, block, rows[piece : piece + size], y)


def _look_in_float64(found: Found, block: Stored, rows: NDArray[np.int64], y: NDArray[np.float64]) -> None:
    points, signs = block.wide(rows), block.label[rows].astype(np.float64)
    m = points.terms + block.roundings
    size_of_y = float(np.linalg.norm(y)) * (1 + gamma(len(y) + 5))
    lost = 4 * m * TINY * (1 if block.seen is None else 1 + float(np.abs(y).max()))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        score = points.score(y) * signs
        norm = points.norm()
        length = norm * (1 + gamma(m + 4)) * size_of_y
        unit = length if block.length is None else np.full(len(rows), block.length * size_of_y)
        measured = (norm > NORMS[0]) & (norm < NORMS[1])  # squares that underflow or overflow do not matter there
        # |x|'|y| <= |x| |y|; where that does not do, |x|'|y| itself
        rate = UP * gamma(m) / (1 - 2 * gamma(m))
        bound = rate * length * UP + lost
        near = np.flatnonzero(~(measured & (score > 2 * bound)))
        bound[near] = rate * points.magnitude(near, y) + lost
        least = (score - bound) / (unit * UP)
    proved = np.isfinite(score) & np.isfinite(bound) & (score > bound) & measured
    if proved.any():
        found.margin = min(found.margin, float(least[proved].min()) / UP)
    left = np.flatnonzero(~proved)
    if not left.size or len(found.wrong) >= WRONG:
        return
    if block.seen is not None:
        sign, magnitude = block.seen.signs(block.plain(rows[left]), y)
    elif block.origin is None:
        parts = [signs_of(some, part) for _, some, part in points.narrow(left, y)]
        sign, magnitude = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    else:
        plain, origin = block.origin[0][rows[left]].astype(np.float64), np.broadcast_to(block.origin[1], (len(left), len(y)))
        sign, magnitude = signs_of(np.hstack([plain, origin]), np.append(y, -y))
    positive = sign == signs[left]
    found.exact_points += len(left)
    found.wrong = (found.wrong + (block.start + rows[left[~positive]]).tolist())[:WRONG]
    if positive.any():
        proper = measured[left] & positive
        least = np.where(proper, magnitude / np.where(proper, unit[left], 1.0) / UP**2, 0.0)
        found.margin = min(found.margin, float(least[positive].min()))


def separator(found: Found) -> Check:
    """What all points showed of a separator. Raises CheckFailedError when one is on the wrong side."""
    if found.wrong:
        raise CheckFailedError(f"not a separator: point {found.wrong[0]} is not on the positive side of the hyperplane")
    margin, exact = max(0.0, found.margin - TINY), found.exact_points  # a quotient that underflows is rounded, too
    how = f", {exact} of them beyond float64" if exact else ""
    text = f"all {found.points} points are on the positive side{how}; the margin is at least {margin:.6g}"
    return Check("feasible", "rigorous", margin, 1.0, found.points, exact, text)
