"""Whether a separator has all points on its positive side: products in float32 first, then float64, then exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import CheckFailedError
from dfeas.verify.evidence import WRONG, Check, Found
from dfeas.verify.exact.dyadic import signs as signs_of
from dfeas.verify.rounding import NORMS, TINY, U32, UP, gamma
from dfeas.verify.stored import PIECE_BYTES, Stored
from dfeas.verify.transform import Seen

TINY32 = 2.0**-149
SQUARES = (1e-20, 1e30)
"""Squares of norms in float32 that underflow leaves alone, as it does the products of such points."""
EXACT32 = ("int8", "uint8", "int16", "uint16", "float16", "float32")
"""Types whose numbers are numbers of float32: integers below 2**24 are."""
SINGLE = 10_000
"""Features up to which products in float32 tell anything."""
PACKED_BYTES = 64 << 10
"""Of points in a product with several vectors: OpenBLAS copies larger ones first."""


@dataclass(frozen=True)
class Fast:
    """Of one separator, in float32."""

    y: NDArray[np.float64]  # (d,) entries below 1
    score: NDArray[np.float32]  # (b,) of the points as stored, without the intercept
    inverse: NDArray[np.float64]  # (b,) 1 / norm, with the intercept
    measured: NDArray[np.bool_]  # (b,) where squares neither under- nor overflow


def by_float32(points: Any, separators: list[NDArray[np.float64]], intercept: bool, seen: Seen | None = None) -> list[Fast]:
    """Products with all separators, where products in float32 tell something.

    Points that are ``seen`` transformed are rounded to float32, which the bounds below have room for.
    """
    b, m = points.shape
    exact = isinstance(points, np.ndarray) and (points.dtype.name in EXACT32 or seen is not None)
    if not separators or not exact or m + intercept >= SINGLE:
        return []
    scaled = [np.ldexp(y, -int(np.frexp(np.abs(y).max())[1])) for y in separators]
    single = np.column_stack(scaled)[:m].astype(np.float32)
    score, square = np.empty((b, len(scaled)), np.float32), np.empty(b, np.float32)
    size = max(1, (PIECE_BYTES if len(scaled) == 1 else PACKED_BYTES) // (4 * m))
    with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
        for piece in range(0, b, size):  # each in cache for both
            part = points[piece : piece + size]
            part = (part if seen is None else seen(part)).astype(np.float32, copy=False)
            np.dot(part, single, out=score[piece : piece + size])
            np.einsum("ij,ij->i", part, part, out=square[piece : piece + size])
        wide = square.astype(np.float64)
        measured = (wide > SQUARES[0]) & (wide < SQUARES[1])
        inverse = 1 / np.sqrt(wide + intercept)
    columns = np.ascontiguousarray(score.T)
    return [Fast(y, column, inverse, measured) for y, column in zip(scaled, columns, strict=True)]


def not_by_float32(known: float, block: Stored, fast: Fast) -> NDArray[np.int64]:
    """Points that products in float32 do not prove to be on the positive side with a margin above the least of all.

    ``known`` is one that is proved of other points.

    The bounds are those of float64 with another unit: with x and y rounded, |fl(x'y) - x'y| <= (gamma_m + 3 u) |x| |y|, and so
    for the squares of the norm; 2 gamma_(m+5) covers each. What under- or overflows is left to float64.
    """
    m, y = block.points.shape[1], fast.y
    with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
        if block.intercept:
            cosine = fast.score + np.float64(y[m])
            cosine *= fast.inverse
        else:
            cosine = fast.score * fast.inverse  # but for the length of y
        cosine *= block.label
    terms = (m + 5) * U32
    rate = 2 * terms / (1 - terms) * UP
    size_of_y = float(np.linalg.norm(y)) * UP
    error = (rate * (1 + rate) * size_of_y + 4 * m * TINY32 * (1 + SQUARES[0] ** -0.5)) * UP
    proved = fast.measured & (cosine > error)
    # a point that is certainly beyond another one, or beyond what was found, is not where the margin is
    least = float(cosine[proved].min(initial=np.inf))
    bar = min(known, (least + error) / ((1 - rate) * size_of_y) * UP**2)
    return np.flatnonzero(~(proved & (cosine > (bar * (1 + rate) * size_of_y + error) * UP**2)))


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
