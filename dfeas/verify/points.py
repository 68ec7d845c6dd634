"""The checker of points: proves a certificate from what is stored alone, rounding errors included.

With u = 2**-53 and float64 arithmetic, for any order of summation |fl(x'y) - x'y| <= m u / (1 - m u) |x|'|y|, and
underflow adds at most m 2**-1074 (Higham, Accuracy and Stability, section 3.1). Entries are exact in float64.

* Separator: every point's score must exceed its own bound; those that do not are decided by compensated products, and then in
  integers, so that every one is decided. For points that float32 holds exactly products in float32 come first, with bounds of
  their own. A positive norm does not change a sign, so signs are those of the stored points. The margin is rounded down.
* Gordan certificate: |Ax| of the signed unit columns, with the bounds of norms, products and sums added, rounded up, over a
  rounded-down sum of weights: no unit y has a larger margin. When that is next to nothing, it is proved where possible that
  weights near these, on the same points, make the sum exactly zero (``dfeas.verify.exact.balance``).

Points seen from another one, p, are differences x_j - p with one more rounding. What is decided exactly is decided from
x_j and p themselves: the score is [x_j, p]'[y, -y], and sum w_j (x_j - p) = 0 is sum w_j (x_j, 1) + (sum w_j) (-p, -1) = 0. For
features that are centred and scaled see ``dfeas.verify.transform``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them
from numpy.typing import NDArray

from dfeas.data.storage.readers import Stop
from dfeas.errors import CheckFailedError
from dfeas.verify.certificate import HYPERPLANE, Certificate
from dfeas.verify.evidence import WRONG, Answer, Check, Found, Looked, Node, attempt, nodes_of
from dfeas.verify.exact.balance import balance
from dfeas.verify.exact.dyadic import signs as exact_signs
from dfeas.verify.rounding import NORMS, TINY, TINY32, U32, UP, gamma
from dfeas.verify.stored import (
    PIECE_BYTES,
    Block,
    Data,
    Stored,
    Wide,
    blocks,
    code_of,
    point_of,
    require_signs,
    require_support,
    signs_of,
    without_zeros,
)
from dfeas.verify.transform import Numbers, Seen, transform_of

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

SQUARES = (1e-20, 1e30)
"""Squares of norms in float32 that underflow leaves alone, as it does the products of such points."""
EXACT32 = ("int8", "uint8", "int16", "uint16", "float16", "float32")
"""Types whose numbers are numbers of float32: integers below 2**24 are."""
SINGLE = 10_000
"""Features up to which products in float32 tell anything."""
PACKED_BYTES = 64 << 10
"""Of points in a product with several vectors: OpenBLAS copies larger ones first."""


LOST = 2.0**-500
"""More than a quotient weight / norm that underflows takes from a sum: TINY times the largest norm."""
SUPPORT_ENTRIES = 10_000_000
"""Largest support, in entries of its points, that is kept for a proof that it balances exactly."""
LEVEL = 1e-12
"""A share of all weights that may be rounding of zero."""
NEARLY = 1e-6
"""|Ax| up to which such a proof is tried."""


@dataclass
class FoundPoints(Found):
    """What some consecutive blocks showed of a certificate."""

    points: int = 0
    exact_points: int = 0
    zero: bool = False  # a point with a weight is zero
    support: list[tuple[Any, Floats]] = field(default_factory=list)  # signed points (r, d) as stored, weights over norms (r,)
    origin: Floats | None = None  # what weighs as much as all of the support, if it is seen from somewhere

    def add(self, other: FoundPoints) -> None:
        super().add(other)
        self.points += other.points
        self.exact_points += other.exact_points
        self.zero = self.zero or other.zero
        self.support += other.support
        self.origin = other.origin if self.origin is None else self.origin


@dataclass(frozen=True)
class Points:
    """Checks separators and weights of points."""

    def require(self, certificate: Certificate, data: Data) -> None:
        if certificate.kind == HYPERPLANE:
            raise CheckFailedError("it is the hyperplane of a soft margin, which proves nothing")
        y, weights, dimension = certificate.y, certificate.weights, data.m + int(data.intercept)
        if certificate.kind == "separator":
            if y.shape != (dimension,):
                raise CheckFailedError(f"the separator has {y.size} entries, the data {dimension} features")
            if not np.isfinite(y).all() or not y.any():
                raise CheckFailedError("the separator is zero or not finite")
            if not 1e-100 < np.abs(y).max() < 1e100:
                raise CheckFailedError("the entries of the separator are outside 1e-100 .. 1e100; scale it to length 1")
        else:
            require_support(certificate.support, data.n)
            if not (np.isfinite(weights).all() and (weights >= 0).all() and (weights <= 2).all()):
                raise CheckFailedError("the weights are not on the simplex: negative, not finite, or above 1")
            if abs(float(weights.sum()) - 1) > 1e-6:
                raise CheckFailedError(f"the weights are not on the simplex: their sum is {float(weights.sum())!r}")
        code_of(data, certificate)

    def look(
        self, data: Data, first: int, stop: int, certificates: Sequence[Certificate], stopped: Stop | None = None
    ) -> list[Node[Looked]]:
        known = [math.inf] * len(certificates)  # the least margins so far
        separators = [certificate.y for certificate in certificates if certificate.kind == "separator"]
        codes = [code_of(data, certificate) for certificate in certificates]
        transform, point = transform_of(data.view, data.m), point_of(data)
        seen, length = (None, None) if transform is None else (transform.seen, transform.length)

        def looked(block: Block) -> Looked:
            shown = Looked([block.checksums], [])
            if transform is not None and block.start < transform.points:
                shown.numbers = Numbers.of(block.points[: transform.points - block.start], seen, data.intercept)
            fast = iter(by_float32(block.points, separators if length is None else [], data.intercept, seen))
            origin = None if point is None else (block.plain, point)
            for place, (certificate, code) in enumerate(zip(certificates, codes, strict=True)):
                found, sign = FoundPoints(points=block.points.shape[0]), signs_of(block.label, code)
                shown.found.append(found)
                shown.signs = shown.signs and bool(sign.all())
                stored = Stored(data.where, block.start, block.points, sign, data.intercept, origin, seen, length)
                if certificate.kind == "separator":
                    look_at_scores(found, stored, certificate.y, next(fast, None), known[place])
                    known[place] = min(known[place], found.margin)
                else:
                    look_at_weights(found, stored, certificate)
            return shown

        base = (data.stored or data).points
        return nodes_of((block.index, looked(block)) for block in blocks(data, first, stop, stopped, base))

    def conclude(self, part: Looked, certificates: Sequence[Certificate], data: Data, read: Callable[..., Any]) -> list[Answer]:
        transform = transform_of(data.view, data.m)
        if transform is not None and part.numbers is not None:
            part.numbers.refuse(transform, data.where)
        require_signs(part.signs, data.where)
        pairs = zip(part.found, certificates, strict=True)
        return [attempt(separator if each.kind == "separator" else gordan, found, each) for found, each in pairs]


@dataclass(frozen=True)
class Fast:
    """Of one separator, in float32."""

    y: Floats  # (d,) entries below 1
    score: NDArray[np.float32]  # (b,) of the points as stored, without the intercept
    inverse: Floats  # (b,) 1 / norm, with the intercept
    measured: NDArray[np.bool_]  # (b,) where squares neither under- nor overflow


def by_float32(points: Any, separators: list[Floats], intercept: bool, seen: Seen | None = None) -> list[Fast]:
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


def not_by_float32(known: float, block: Stored, fast: Fast) -> Indices:
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


def look_at_scores(found: FoundPoints, block: Stored, y: Floats, fast: Fast | None, known: float) -> None:
    """Add what the points of a block show of a separator; ``known`` is a margin that is proved of other points."""
    rows = np.arange(block.size) if fast is None else not_by_float32(known, block, fast)
    size = block.piece(len(y))
    for piece in range(0, len(rows), size):
        _look_in_float64(found, block, rows[piece : piece + size], y)


def _look_in_float64(found: FoundPoints, block: Stored, rows: Indices, y: Floats) -> None:
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
        parts = [exact_signs(some, part) for some, part in points.narrow(left, y)]
        sign, magnitude = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    else:
        plain, origin = block.origin[0][rows[left]].astype(np.float64), np.broadcast_to(block.origin[1], (len(left), len(y)))
        sign, magnitude = exact_signs(np.hstack([plain, origin]), np.append(y, -y))
    positive = sign == signs[left]
    found.exact_points += len(left)
    found.wrong = (found.wrong + (block.start + rows[left[~positive]]).tolist())[:WRONG]
    if positive.any():
        proper = measured[left] & positive
        least = np.where(proper, magnitude / np.where(proper, unit[left], 1.0) / UP**2, 0.0)
        found.margin = min(found.margin, float(least[positive].min()))


def separator(found: FoundPoints, certificate: Certificate) -> Check:
    """What all points showed of a separator. Raises CheckFailedError when one is on the wrong side."""
    if found.wrong:
        raise CheckFailedError(f"not a separator: point {found.wrong[0]} is not on the positive side of the hyperplane")
    margin, exact = max(0.0, found.margin - TINY), found.exact_points  # a quotient that underflows is rounded, too
    how = f", {exact} of them beyond float64" if exact else ""
    text = f"all {found.points} points are on the positive side{how}; the margin is at least {margin:.6g}"
    return Check("feasible", "rigorous", margin, 1.0, found.points, exact, text)


def look_at_weights(found: FoundPoints, block: Stored, certificate: Certificate) -> None:
    """Add the weighted points of a block that are in the support."""
    low, high = np.searchsorted(certificate.support, [block.start, block.start + block.size])
    rows, weights = certificate.support[low:high] - block.start, certificate.weights[low:high]
    rows, weights = rows[weights > 0], weights[weights > 0]
    dimension = block.points.shape[1] + block.intercept
    total, spread = np.zeros(dimension), np.zeros(dimension)
    size = block.piece(dimension)
    for piece in range(0, len(rows), size):
        some = rows[piece : piece + size]
        chosen, factor = _weighed(found, block, some, weights[piece : piece + size])
        sums = chosen.sums(factor)
        total += sums[0]
        spread += sums[1]
        found.terms += len(some) + 1
        if len(certificate.support) * chosen.terms <= SUPPORT_ENTRIES:
            found.support.append((_as_stored(found, block, some, chosen).scaled(block.label[some]), np.abs(factor)))
    found.total, found.spread = total, spread


def _weighed(found: FoundPoints, block: Stored, rows: Indices, weights: Floats) -> tuple[Wide, Floats]:
    """Points, and their signed weights over their norms; 0 for a point that is zero."""
    chosen = block.wide(rows)
    with np.errstate(over="ignore", under="ignore"):
        norm = chosen.norm()
    zero = ~block.nonzero(rows)
    if (~zero & ((norm < NORMS[0]) | (norm > NORMS[1]))).any():
        raise CheckFailedError(f"a point of the support has a norm outside {NORMS[0]:g} .. {NORMS[1]:g}; nothing can be proved")
    found.zero = found.zero or bool(zero.any())
    size = norm if block.length is None else np.full(len(rows), block.length)
    return chosen, np.divide(weights, size, out=np.zeros(len(rows)), where=~zero) * block.label[rows].astype(np.float64)


def _as_stored(found: FoundPoints, block: Stored, rows: Indices, chosen: Wide) -> Wide:
    """Points whose exact sum is zero when that of the chosen ones is: (x_j, 1) of differences x_j - p, beside (p, 1)."""
    if block.origin is not None:
        plain, point = block.origin
    elif block.seen is None:
        return chosen
    elif block.seen.shift is None or block.intercept:  # with an intercept the shift makes no difference
        return block.plain(rows)
    else:
        plain, point = block.points, block.seen.shift
    found.origin = -np.append(point, 1.0)
    return Wide(np.hstack([plain[rows].astype(np.float64), np.ones((len(rows), 1))]))


def gordan(found: FoundPoints, certificate: Certificate) -> Check:
    """What the sum of all weighted points shows: that it is exactly zero, or how small it is at most."""
    total, spread = found.sums()
    terms = found.terms + len(total) + 12  # sums, and difference, products, norm, quotient of each
    rounding = gamma(terms) / (1 - 2 * gamma(terms)) * spread * UP + terms * LOST
    residual = np.abs(total) + rounding
    size = float(np.linalg.norm(residual)) * (1 + gamma(len(residual) + 4)) * UP
    weight = float(certificate.weights.sum()) * (1 - gamma(len(certificate.weights) + 1))
    upper = size / weight * UP
    exact = _exactly(found, upper)
    if exact is not None:
        return Check("infeasible", "exact", -1.0, 0.0, found.points, 0, exact)
    text = f"no unit vector has a margin above {upper:.6g} (weights on {len(certificate.support)} of {found.points} points)"
    share = float(np.linalg.norm(rounding)) / weight * UP
    return Check("eps-infeasible", "rigorous", -1.0, min(1.0, upper), found.points, 0, text, share)


def _exactly(found: FoundPoints, upper: float) -> str | None:
    """Why no hyperplane separates the points of the support, if that can be proved."""
    if found.zero:
        return "a point is zero, so no hyperplane has it on its positive side"
    if upper > NEARLY or not found.support:
        return None
    points = _together([points for points, _ in found.support], SUPPORT_ENTRIES)
    if points is None:
        return None
    factors = np.concatenate([factors for _, factors in found.support])
    more = 0
    if found.origin is not None:
        signed = float(factors @ points[:, -1])  # weights of points less those of opposite ones
        more = int(abs(signed) > LEVEL * float(factors.sum()))
    if more and found.origin is not None:
        points, factors = np.vstack([points, np.copysign(1.0, signed) * found.origin]), np.append(factors, abs(signed))
    proved = balance(points, factors)
    if proved is None:
        return None
    count = proved.support - more
    near = f" (those given are off by {proved.off:.1g})" if proved.off else ""
    return f"{count} points conflict: some weights on them make their sum exactly zero{near}, no hyperplane separates them"


def _together(parts: list[Any], most: int) -> Floats | None:
    """Points of several pieces in one array, sparse ones without the features that none has; None above ``most`` entries."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    points, used = without_zeros(scipy.sparse.vstack(parts, format="csr"))
    return None if points.shape[0] * len(used) > most else np.asarray(points.toarray())
