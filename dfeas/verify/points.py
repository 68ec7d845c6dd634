"""The checker of points: proves a certificate from what is stored alone, rounding errors included.

With u = 2**-53 and float64 arithmetic, for any order of summation |fl(x'y) - x'y| <= m u / (1 - m u) |x|'|y|, and
underflow adds at most m 2**-1074 (Higham, Accuracy and Stability, section 3.1). Entries are exact in float64.

Points seen from another one, p, are differences x_j - p with one more rounding. What is decided exactly is decided from
x_j and p themselves: the score is [x_j, p]'[y, -y], and sum w_j (x_j - p) = 0 is sum w_j (x_j, 1) + (sum w_j) (-p, -1) = 0. For
features that are centred and scaled see ``dfeas.verify.view``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from dfeas.data.storage.scratch import pieces, total
from dfeas.errors import CheckFailedError, spell
from dfeas.exact.arithmetic import NORMS, TINY, UP, Fast, Floats, Indices, Wide, gamma, without_zeros
from dfeas.records import replace
from dfeas.verify.blocks import (
    Block,
    Data,
    blocks_of,
    checksums_of,
    code_of,
    point_of,
    require_signs,
    require_support,
    signs_of,
)
from dfeas.verify.certificate import BALL, HYPERPLANE, Answer, Certificate, Check, attempt
from dfeas.verify.tallies import WRONG, BlockTally, Checker, Tallies
from dfeas.verify.view import FeatureMoments, FeatureScaling, SignedBlock, ViewTransform, transform_of

LOST = 2.0**-500
"""More than a quotient weight / norm that underflows takes from a sum: TINY times the largest norm."""
SUPPORT_ENTRIES = 10_000_000
"""Largest support, in entries of its points, that is kept for a proof that it balances exactly."""
RADIUS_ENTRIES = 1 << 20
"""The same for a proof that the hull has a ball."""
NEARLY = 1e-6
"""|Ax| up to which such a proof is tried."""


class PointTally(BlockTally, eq=False):
    """What some consecutive blocks showed of a certificate."""

    points: int = 0
    exact_points: int = 0
    zero: bool = False  # a point with a weight is zero
    support: list[tuple[Any, Floats]] = field(default_factory=list)  # signed points (r, d) as stored, weights over norms (r,)
    units: list[tuple[Any, Floats]] = field(default_factory=list)  # the same points as unit vectors, weights (r,)
    origin: Floats | None = None  # what weighs as much as all of the support, if it is seen from somewhere

    def add(self, other: PointTally) -> None:
        super().add(other)
        self.points += other.points
        self.exact_points += other.exact_points
        self.zero = self.zero or other.zero
        self.support = self.support + other.support
        self.units = self.units + other.units
        self.origin = other.origin if self.origin is None else self.origin


class Sight(Struct, frozen=True, eq=False):
    """How blocks are looked at for some certificates."""

    where: str
    block_rows: int
    chunk_rows: int
    intercept: bool
    certificates: Sequence[Certificate]
    codes: Sequence[int | None]  # the label that counts as +1, of each
    transform: ViewTransform | None
    point: Floats | None  # that all are seen from
    known: list[float]  # least margins that were proved of points of each, which fall as blocks are looked at
    sign: int = 1  # of labels as somebody else has read them, whose product with it are those that are stored
    most: int = WRONG

    @classmethod
    def of(cls, data: Data, certificates: Sequence[Certificate]) -> Sight:
        """Raises CheckFailedError when a certificate does not say which label counts."""
        codes = [code_of(data, certificate) for certificate in certificates]
        transform = transform_of(data.view, data.m)
        sign, rows = -1 if data.positive == -1 else 1, (data.block_rows, data.chunk_rows)
        known = [math.inf] * len(certificates)
        return cls(data.where, *rows, data.intercept, certificates, codes, transform, point_of(data), known, sign)

    def __call__(self, start: int, points: Any, label: NDArray[Any]) -> Tallies | None:
        """What points (b, m) from ``start`` on, and labels as others have read them, show; None where they show nothing."""
        label = label if self.sign == 1 else -label
        block = Block(start // self.block_rows, start, points, points, label, checksums_of(points, label, self.chunk_rows))
        shown = attempt(self.look, block)
        return None if isinstance(shown, CheckFailedError) else shown

    @property
    def _view(self) -> tuple[FeatureScaling | None, float | None]:
        """What is applied to points, and the length that all are divided by."""
        return (None, None) if self.transform is None else (self.transform.scaling, self.transform.length)

    def sign_block(self, block: Block, code: int | None) -> SignedBlock:
        origin = None if self.point is None else (block.plain, self.point)
        sign = signs_of(block.label, code)
        return SignedBlock(self.where, block.start, block.points, sign, self.intercept, origin, *self._view)

    def look(self, block: Block) -> Tallies:
        """What a block shows: its least margin only where that may be less than what others have shown."""
        transform, intercept = self.transform, self.intercept
        scaling, length = self._view
        separators = [each.y for each in self.certificates if each.kind == "separator" and not each.integers]
        shown = Tallies(block.checksums, [])
        if transform is not None and block.start < transform.points:
            shown.numbers = FeatureMoments.of(block.points[: transform.points - block.start], scaling, intercept)
        fast = iter(Fast.of(block.points, separators if length is None else [], intercept, scaling))
        for place, (certificate, code) in enumerate(zip(self.certificates, self.codes, strict=True)):
            tally, stored = PointTally(points=block.points.shape[0], most=self.most), self.sign_block(block, code)
            shown.tallies.append(tally)
            shown.signs = shown.signs and bool(stored.label.all())
            if certificate.kind == "separator":
                quick = None if certificate.integers else next(fast, None)
                look_at_scores(tally, stored, parts_of(certificate), quick, self.known[place])
                self.known[place] = min(self.known[place], tally.margin)
            else:
                look_at_weights(tally, stored, certificate)
        return shown


class Points(Checker, Struct, frozen=True):
    """Checks separators and weights of points."""

    as_stored: ClassVar = True
    most: int = WRONG  # points on the wrong side that are enough

    def require(self, certificate: Certificate, data: Data) -> None:
        if certificate.kind == HYPERPLANE:
            raise CheckFailedError("it is the hyperplane of a soft margin, which proves nothing")
        y, weights, dimension = certificate.y, certificate.weights, data.m + int(data.intercept)
        if certificate.kind == "separator":
            if len(certificate.support) or len(weights):
                raise CheckFailedError("a separator of points has no weights")
            if y.shape != (dimension,):
                asked = _name_option(y, data)
                raise CheckFailedError(f"the separator has {y.size} entries, the data {dimension} features{asked}")
            if not np.isfinite(y).all() or not y.any():
                raise CheckFailedError("the separator is zero or not finite")
            if certificate.integers and transform_of(data.view, data.m) is not None:
                raise CheckFailedError("a separator in integers is one of points as they are stored")
            if not np.array_equal(parts_of(certificate)[0], y):
                raise CheckFailedError("the separator in integers is another one than that in floats")
            if not 1e-100 < np.abs(y).max() < 1e100:
                raise CheckFailedError("the entries of the separator are outside 1e-100 .. 1e100; scale it to length 1")
        else:
            if (y.size or certificate.kind == BALL) and not (
                y.shape == (dimension,) and np.isfinite(y).all() and np.abs(y).max() < 1e100
            ):
                raise CheckFailedError(f"the direction of a conflict has not {dimension} finite entries{_name_option(y, data)}")
            require_support(certificate.support, data.n)
            if not all(((piece >= 0) & (piece <= 2)).all() for (piece,) in pieces(weights)):
                raise CheckFailedError("the weights are not on the simplex: negative, not finite, or above 1")
            if abs(total(weights) - 1) > 1e-6:
                raise CheckFailedError(f"the weights are not on the simplex: their sum is {total(weights)!r}")
        code_of(data, certificate)

    def choose_blocks(self, certificates: Sequence[Certificate], data: Data) -> tuple[int, ...] | None:
        """Those of points that are weighed, unless a separator, or a transform, is about all points."""
        if transform_of(data.view, data.m) is not None or any(each.kind == "separator" for each in certificates):
            return None
        return blocks_of(data, (certificate.support for certificate in certificates))

    def look(self, data: Data, certificates: Sequence[Certificate]) -> Callable[[Block], Tallies]:
        return replace(Sight.of(data, certificates), most=self.most).look

    def conclude(
        self, part: Tallies, certificates: Sequence[Certificate], data: Data, read: Callable[..., Any]
    ) -> list[Answer]:
        transform = transform_of(data.view, data.m)
        if transform is not None and part.numbers is not None:
            part.numbers.refuse(transform, data.where)
        require_signs(part.signs, data.where)
        pairs = zip(part.tallies, certificates, strict=True)
        return [
            attempt(conclude_separator, tally, each)
            if each.kind == "separator"
            else attempt(conclude_weights, tally, each, data)
            for tally, each in pairs
        ]


def _name_option(y: Floats, data: Data) -> str:
    """Which option a direction (m,) or (m+1,) was found with, where that is not the one of the data."""
    word = {data.m: spell("intercept", False), data.m + 1: spell("intercept", True)}.get(y.size)
    return "" if word is None or y.size == data.m + int(data.intercept) else f": it was found with {word}"


def parts_of(certificate: Certificate) -> Floats:
    """Vectors (k, d) whose sum is the separator, exactly: y, and what it lacks of the integers that it is the rounding of.
    Raises CheckFailedError for integers that float64 does not hold.
    """
    if not certificate.integers:
        return certificate.y[None]
    from dfeas.exact.dyadic import split_integers

    try:
        return split_integers(np.array(certificate.integers, object))
    except OverflowError as error:
        raise CheckFailedError(f"the separator in {error}") from None


def look_at_scores(tally: PointTally, block: SignedBlock, parts: Floats, fast: Fast | None, known: float) -> None:
    """Add what the points of a block show of a separator in parts (k, d); ``known`` is a margin that is proved of others.

    Every point's score must exceed its own bound; those that do not are decided by compensated products, and then in integers,
    so that every one is decided. For points that float32 holds exactly products in float32 come first, with bounds of their
    own. A positive norm does not change a sign, so signs are those of the stored points. The margin is rounded down.
    """
    rows = np.arange(block.size) if fast is None else fast.find_unproved(block.label, known)
    for piece in block.cut(rows, parts.shape[1]):
        _look_in_float64(tally, block, rows[piece], parts)


def _run(rows: Indices) -> Indices | slice:
    """Rows (r,), ascending, r > 0; those that follow each other as a slice, which copies nothing."""
    return slice(int(rows[0]), int(rows[-1]) + 1) if rows[-1] - rows[0] == len(rows) - 1 else rows


def _look_in_float64(tally: PointTally, block: SignedBlock, rows: Indices, parts: Floats) -> None:
    here, y = _run(rows), parts[0]
    points, signs = block.wide(here), block.label[here].astype(np.float64)
    m = points.terms + block.roundings + len(parts) - 1  # the first of several parts is rounded, too
    size_of_y = float(np.linalg.norm(y)) * (1 + gamma(len(y) + 5))
    lost = 4 * m * TINY * (1 if block.scaling is None else 1 + float(np.abs(y).max()))
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
        tally.margin = min(tally.margin, float(least[proved].min()) / UP)
    left = np.flatnonzero(~proved)
    if not left.size or len(tally.wrong) >= tally.most:
        return
    from dfeas.exact.dyadic import signs as exact_signs  # which float64 decides of nearly all data

    if block.scaling is not None:
        sign, magnitude = block.scaling.signs(block.plain(rows[left]), y)
    elif block.origin is None:
        found = [exact_signs(np.tile(some, len(parts)), Y.T.ravel()) for some, Y in points.narrow(left, parts.T)]
        sign, magnitude = np.concatenate([each[0] for each in found]), np.concatenate([each[1] for each in found])
    else:
        plain, origin = block.origin[0][rows[left]].astype(np.float64), np.broadcast_to(block.origin[1], (len(left), len(y)))
        sign, magnitude = exact_signs(np.tile(np.hstack([plain, origin]), len(parts)), np.hstack([parts, -parts]).ravel())
    positive = sign == signs[left]
    tally.exact_points += len(left)
    tally.wrong = (tally.wrong + (block.start + rows[left[~positive]]).tolist())[: tally.most]
    tally.flat = (tally.flat + (block.start + rows[left[sign == 0]]).tolist())[: tally.most]
    if positive.any():
        proper = measured[left] & positive
        least = np.where(proper, magnitude / np.where(proper, unit[left], 1.0) / UP**2, 0.0)
        tally.margin = min(tally.margin, float(least[positive].min()))


def conclude_separator(tally: PointTally, certificate: Certificate) -> Check:
    """What all points showed of a separator. Raises CheckFailedError when one is on the wrong side."""
    if tally.wrong:
        raise CheckFailedError(f"not a separator: point {tally.wrong[0]} is not on the positive side of the hyperplane")
    margin, exact = max(0.0, tally.margin - TINY), tally.exact_points  # a quotient that underflows is rounded, too
    how = f", {exact} of them beyond float64" if exact else ""
    text = f"all {tally.points} points are on the positive side{how}; the margin is at least {margin:.6g}"
    proof = "exact" if certificate.integers else "rigorous"
    return Check("feasible", proof, margin, 1.0, tally.points, exact, text)


def look_at_weights(tally: PointTally, block: SignedBlock, certificate: Certificate) -> None:
    """Add the weighted points of a block that are in the support."""
    low, high = np.searchsorted(certificate.support, [block.start, block.start + block.size])
    rows, weights = certificate.support[low:high] - block.start, certificate.weights[low:high]
    rows, weights = rows[weights > 0], weights[weights > 0]
    dimension = block.points.shape[1] + block.intercept
    summed, spread = np.zeros(dimension), np.zeros(dimension)
    for piece in block.cut(rows, dimension):
        some = rows[piece]
        chosen, factor, size = _take_weighted(tally, block, some, weights[piece])
        sums = chosen.sums(factor)
        summed += sums[0]
        spread += sums[1]
        tally.terms += len(some) + 1
        if certificate.many * chosen.terms <= SUPPORT_ENTRIES:
            tally.support.append((_as_stored(tally, block, some, chosen).scale_rows(block.label[some]), np.abs(factor)))
        # 64 points for each feature: weights of all points, as a smooth method has them, show none
        few = certificate.many <= min(64 * dimension, RADIUS_ENTRIES // dimension)
        if few and not tally.zero:
            tally.units.append((chosen.scale_rows(block.label[some] / size), weights[piece]))
    tally.total, tally.spread = summed, spread


def _take_weighted(tally: PointTally, block: SignedBlock, rows: Indices, weights: Floats) -> tuple[Wide, Floats, Floats]:
    """Points, their signed weights over their norms, 0 for a point that is zero, and these norms."""
    chosen = block.wide(rows)
    with np.errstate(over="ignore", under="ignore"):
        norm = chosen.norm()
    zero = ~block.nonzero(rows)
    if (~zero & ((norm < NORMS[0]) | (norm > NORMS[1]))).any():
        raise CheckFailedError(f"a point of the support has a norm outside {NORMS[0]:g} .. {NORMS[1]:g}; nothing can be proved")
    tally.zero = tally.zero or bool(zero.any())
    size = norm if block.length is None else np.full(len(rows), block.length)
    return chosen, np.divide(weights, size, out=np.zeros(len(rows)), where=~zero) * block.label[rows].astype(np.float64), size


def _as_stored(tally: PointTally, block: SignedBlock, rows: Indices, chosen: Wide) -> Wide:
    """Points whose exact sum is zero when that of the chosen ones is: (x_j, 1) of differences x_j - p, beside (p, 1)."""
    if block.origin is not None:
        plain, point = block.origin
    elif block.scaling is None:
        return chosen
    elif block.scaling.shift is None or block.intercept:  # with an intercept the shift makes no difference
        return block.plain(rows)
    else:
        plain, point = block.points, block.scaling.shift
    tally.origin = -np.append(point, 1.0)
    return Wide(np.hstack([plain[rows].astype(np.float64), np.ones((len(rows), 1))]))


def conclude_weights(tally: PointTally, certificate: Certificate, data: Data) -> Check:
    """What the sum of all weighted points shows: that it is exactly zero, or how small it is at most.

    |Ax| of the signed unit columns, with the bounds of norms, products and sums added, rounded up, over a rounded-down sum of
    weights: no unit y has a larger margin. When that is next to nothing, it is proved where possible that weights near these,
    on the same points, make the sum exactly zero (``dfeas.verify.balance``).
    """
    from dfeas.verify.radius import DIGITS

    n = data.n
    summed, spread = tally.sums()
    terms = tally.terms + len(summed) + 12  # sums, and difference, products, norm, quotient of each
    rounding = gamma(terms) / (1 - 2 * gamma(terms)) * spread * UP + terms * LOST
    residual = np.abs(summed) + rounding
    size = float(np.linalg.norm(residual)) * (1 + gamma(len(residual) + 4)) * UP
    weight = total(certificate.weights) * (1 - gamma(len(certificate.weights) + 1))
    upper = size / weight * UP
    if certificate.kind == BALL:
        radius = _measure_ball(tally, len(summed), certificate.y)
        if not radius:
            raise CheckFailedError("no ball is proved in the hull of its points")
        text = f"the hull of {certificate.many} points has a ball of radius {radius:.6g} about the origin"
        return Check("infeasible", "exact", -1.0, -radius, n, 0, text, radius * 2.0 ** (1 - DIGITS))
    exact = _prove_balance(tally, upper, name_hyperplanes(data))
    if exact is not None:
        radius = _measure_ball(tally, len(summed), None)
        return Check("infeasible", "exact", -1.0, 0.0 - radius, n, 0, exact, radius * 2.0 ** (1 - DIGITS))
    text = f"no unit vector has a margin above {upper:.6g} (weights on {certificate.many} of {n} points)"
    share = float(np.linalg.norm(rounding)) / weight * UP
    return Check("eps-infeasible", "rigorous", -1.0, min(1.0, upper), n, 0, text, share)


def name_hyperplanes(data: Data) -> str:
    """Which hyperplanes a question is about, in words."""
    if data.intercept:
        return ""
    transform = transform_of(data.view, data.m)
    centred = transform is not None and transform.scaling is not None and transform.scaling.shift is not None
    return f" through the {'point' if point_of(data) is not None else 'mean of the points' if centred else 'origin'}"


def _prove_balance(tally: PointTally, upper: float, where: str) -> str | None:
    """Why no hyperplane ``where`` separates the points of the support, if that can be proved."""
    if tally.zero:
        return f"a point is zero, so no hyperplane{where} has it on its positive side"
    if upper > NEARLY or not tally.support:
        return None
    points = stack_points([points for points, _ in tally.support], SUPPORT_ENTRIES)
    if points is None:
        return None
    factors = np.concatenate([factors for _, factors in tally.support])
    more = 0
    if tally.origin is not None:
        signed = float(factors @ points[:, -1])  # weights of points less those of opposite ones
        more = int(abs(signed) > 1e-12 * float(factors.sum()))  # a share of all weights that may be rounding of zero
    if more and tally.origin is not None:
        points, factors = np.vstack([points, np.copysign(1.0, signed) * tally.origin]), np.append(factors, abs(signed))
    from dfeas.verify.balance import balance  # which loads FLINT

    proved = balance(points, factors)
    if proved is None:
        return None
    count = proved.support - more
    near = f" (those given are off by {proved.off:.1g})" if proved.off else ""
    said = f"a positive combination of them is exactly zero{near}, no hyperplane{where} separates them"
    return f"{count} points conflict: {said}"


def _measure_ball(tally: PointTally, d: int, y: Floats | None) -> float:
    """A lower bound of the radius of the ball about 0 in the hull of the unit points, by their weights or along y (d,)."""
    from dfeas.verify.radius import bound_across, bound_radius

    points = stack_points([points for points, _ in tally.units], RADIUS_ENTRIES) if tally.units else None
    if points is None or points.shape[1] < d:
        return 0.0
    # each entry is rounded in a view, in a length and in a quotient; a length of sums of d squares is
    off = 4 * gamma(d + 24) + LOST
    if y is not None:
        return bound_across(points, y, off) if len(points) > d else 0.0
    return bound_radius(points, np.concatenate([weights for _, weights in tally.units]), off)


def stack_points(parts: list[Any], most: int) -> Floats | None:
    """Points of several pieces in one array, sparse ones without the features that none has; None above ``most`` entries."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import scipy

    points, used = without_zeros(scipy.sparse.vstack(parts, format="csr"))
    return None if points.shape[0] * len(used) > most else np.asarray(points.toarray())
