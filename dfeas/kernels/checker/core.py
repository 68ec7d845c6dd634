"""Sums of unit vectors of a kernel's space over points of certificates, as the checker evaluates them: scores and lengths, with
bounds of their errors. Quick bounds come from products of matrices, sharper ones where these take a share of what they bound.

A separator y = sum_i w_i a_i over the support, a_i signed unit vectors of the kernel's space, has the scores
a_j'y = l_j sum_i w_i l_i K(x_j, x_i) / sqrt(K_jj K_ii); each must exceed the bound of its own error (``kernel_bounds``),
and the least of them over an upper bound of |y| is the margin. Of a Gordan certificate |sum_i w_i a_i| is bounded in the same
way, and of polynomials it is proved to be zero in the integers that monomials of the points are. That is rigorous in the model
of these bounds; with a function of Python the values are believed, and the proof is in floating point. Two equal points of the
support with opposite labels need no arithmetic: no kernel separates them. Where the space is that of the points (``plain``),
a separator may weigh them, as they are stored, by whole numbers: their sum is a separator of points, and proved as one.

Points with a transform are z = (x - c) s: what is summed in float64 allows for its roundings, and equal points, points that
are 0 and sums of monomials are looked for among the x. All monomials up to a degree are combinations of those of z and of x
alike; those of one degree only where nothing is subtracted.

Several certificates with one kernel, as those of classes, are checked in two reads: one gathers the points of all of them, one
evaluates the kernel for all points with these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, ClassVar

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them
from msgspec import Struct, field
from numpy.typing import NDArray

from dfeas.errors import CheckFailedError
from dfeas.exact.arithmetic import UP_SUMS as UP
from dfeas.exact.arithmetic import Floats, Indices, Wide, gamma
from dfeas.exact.dyadic import common, scale_integers, split_integers
from dfeas.kernels.checker.bounds import BoundedValues, Kernel, Same, bound_quickly, bound_values
from dfeas.records import replace
from dfeas.verify.blocks import Block, Data, blocks_of, code_of, point_of, require_signs, require_support, signs_of
from dfeas.verify.certificate import Answer, Certificate, Check, attempt
from dfeas.verify.points import NEARLY, Points
from dfeas.verify.tallies import WRONG, Checker, Looker, add_numbers, look_at
from dfeas.verify.view import FeatureMoments, FeatureScaling, transform_of

TILE_BYTES = 8 << 20
"""Kernel values at a time."""
LEAST = 2.0**-900
"""Largest entry of a transformed point that is not 0: products of smaller ones lose digits."""
SHARP = 1e-4
"""Share of a score, and of the square of a length, that the quick bounds may take before the sharp ones are asked. They depend
on what else is checked in the same reads, and so by such a share do margins.
"""


@dataclass(frozen=True)
class KernelSums(Looker):
    """Points that certificates weigh, and sums of them."""

    as_stored: ClassVar = True

    kernel: Kernel
    index: Indices  # (s,) of the points, ascending
    stored: Any  # (s, m) in float64, an array or a CSR matrix
    points: Any  # the same, as they are seen
    amounts: Floats  # (s, k) weights times labels
    codes: tuple[int | None, ...]  # (k,) of the class that is +1; None: labels are signs

    def some(self, columns: list[int]) -> KernelSums:
        """Some of the sums, and their points."""
        rows = np.flatnonzero(self.amounts[:, columns].any(axis=1))
        codes = tuple(self.codes[column] for column in columns)
        both, amounts = (self.stored[rows], self.points[rows]), self.amounts[rows][:, columns]
        return KernelSums(self.kernel, self.index[rows], *both, amounts, codes)

    def combine(self, column: int, certificate: Certificate) -> Certificate:
        """The separator of points that a sum in whole numbers is. Raises CheckFailedError where its weights are others."""
        rows = np.searchsorted(self.index, certificate.support)
        points, numbers = self.points[rows], np.array(certificate.integers, object)
        near = scale_integers(numbers[:, None])[0][:, 0] * Wide(points).norm()
        weights = certificate.weights / np.abs(certificate.weights).max()
        # share of the greatest weight that rounding takes, at most
        if not np.abs(near / np.abs(near).max() - weights).max() < 1e-9:
            raise CheckFailedError("the weights in whole numbers are others than those in floats")
        digits, exponent = common(points if isinstance(points, np.ndarray) else points.toarray())
        sign = np.where((self.amounts[rows, column] < 0) == (weights < 0), 1, -1).astype(object)
        y = ((numbers * sign) @ digits) << (exponent - exponent.min()).astype(object)
        y //= max(1, math.gcd(*y.tolist()))
        try:
            near_y = split_integers(y)[0]
        except OverflowError as error:
            raise CheckFailedError(f"the separator in {error}") from None
        none = certificate.support[:0], certificate.weights[:0]
        return replace(certificate, kernel="", y=near_y, support=none[0], weights=none[1], integers=tuple(y.tolist()))

    def look(self, data: Data, certificates: Sequence[Certificate]) -> Callable[[Block], ScoreTally]:
        """Scores all points: the kernel is evaluated once for all sums."""
        columns, scaling = self.amounts.shape[1], _scaling_of(data)
        size = max(1, TILE_BYTES // (8 * len(self.amounts)))

        def score_block(block: Block) -> ScoreTally:
            part = ScoreTally(block.checksums, np.full(columns, math.inf), [[] for _ in range(columns)])
            signs = np.column_stack([signs_of(block.label, code) for code in self.codes])
            for begin in range(0, block.points.shape[0], size):
                rows, start = slice(begin, begin + size), block.start + begin
                shown, support = prove_scores(self, _see(block.points[rows], scaling, data.where), signs[rows], start)
                part.support.append(support)
                np.minimum(part.least, shown.min(axis=0), out=part.least)
                for row, column in np.argwhere(~(shown > 0)):
                    if len(part.wrong[column]) < WRONG:
                        part.wrong[column].append(start + int(row))
            return part

        return score_block


def lengths(expansions: KernelSums, scores: Floats, errors: Floats, share: float) -> Floats:
    """Upper bounds (k,) of |y|, from the scores (s, k) of the points of the expansions, without signs, and the bounds of their
    errors; sharper for sums where these take a share of the square.
    """
    amounts = expansions.amounts
    rounding = 2 * gamma(len(amounts) + 2)
    total = np.einsum("ik,ik->k", amounts, scores)
    error = np.einsum("ik,ik->k", np.abs(amounts), errors + rounding * np.abs(scores)) * (1 + rounding) * UP
    upper = np.sqrt(np.maximum(0.0, total) * UP + error * UP**2) * UP
    for column in np.flatnonzero(~(error < share * total)):
        upper[column] = np.fmin(upper[column], _length(expansions.some([int(column)])))
    return np.asarray(upper)


def of_itself(expansions: KernelSums) -> tuple[Floats, Floats]:
    """Scores (s, k) of the points of expansions under these, without signs, and bounds of their errors."""
    parts = []
    for some, same in _parts_of(len(expansions.amounts)):
        values = bound_quickly(expansions.kernel, expansions.points[some], expansions.points, same)
        parts.append((values.value @ expansions.amounts, values.errors(expansions.amounts)))
    return np.concatenate([score for score, _ in parts]), np.concatenate([error for _, error in parts])


def _parts_of(count: int) -> Iterator[tuple[slice, Same]]:
    """Rows of values of so many points with themselves, and where they are of one point."""
    size = max(1, TILE_BYTES // (8 * count))
    for first in range(0, count, size):
        here = np.arange(first, min(first + size, count))
        yield slice(first, first + size), (here - first, here)


def _length(expansion: KernelSums) -> float:
    """A sharp upper bound of |y|, the first sum."""
    amount, total, error = expansion.amounts[:, 0], 0.0, 0.0
    count = len(amount)
    for some, same in _parts_of(count):
        value, off = bound_values(expansion.kernel, expansion.points[some], expansion.points, same)
        total += float(amount[some] @ (value @ amount))
        error += float(np.abs(amount[some]) @ ((off + 2 * gamma(2 * count + 4) * (np.abs(value) + off)) @ np.abs(amount)))
    return math.sqrt(max(0.0, total) * UP + error * UP**2) * UP


def prove_scores(
    expansions: KernelSums, points: Any, signs: NDArray[np.int8], start: int
) -> tuple[Floats, tuple[Floats, Floats]]:
    """Proved scores (b, k) of points from ``start`` on: by products, and sharper where these take a share of them. And what
    products say of the points of the support among them.
    """
    kernel, amounts = expansions.kernel, expansions.amounts
    here = np.flatnonzero((expansions.index >= start) & (expansions.index < start + points.shape[0]))
    rows = expansions.index[here] - start
    quick = bound_quickly(kernel, points, expansions.points, (rows, here))
    plain, error = quick.value @ amounts, quick.errors(amounts)
    score = plain * signs
    shown = score - error
    if kernel.of_distance:
        again = np.flatnonzero(~(shown > (1 - SHARP) * score).all(axis=1))
        if len(again):
            once_more = np.flatnonzero(np.isin(rows, again))
            same = np.searchsorted(again, rows[once_more]), here[once_more]
            value, off = bound_values(kernel, points[again], expansions.points, same)
            none = np.zeros((len(again), 1))
            rounding = BoundedValues(value, none, none).errors(amounts)
            shown[again] = (value @ amounts) * signs[again] - rounding - off @ np.abs(amounts) * UP
    return np.asarray(shown), (plain[rows], error[rows])


class SupportTally(Struct):
    """Of some blocks, points and stored labels of a support."""

    checksums: bytes
    points: list[Any]  # (s, m) each
    labels: list[NDArray[Any]]  # (s,) each
    numbers: FeatureMoments | None = None  # that a transform is made of

    def add(self, other: SupportTally) -> None:
        self.checksums += other.checksums
        self.points += other.points
        self.labels += other.labels
        self.numbers = add_numbers(self.numbers, other.numbers)


class ScoreTally(Struct):
    """What some blocks showed of each sum."""

    checksums: bytes
    least: Floats  # (k,) least proved score
    wrong: list[list[int]]  # (k) points whose score is not proved to be positive
    support: list[tuple[Floats, Floats]] = field(
        default_factory=list
    )  # of its points, in order: scores, bounds of errors (r, k)

    def add(self, other: ScoreTally) -> None:
        self.checksums += other.checksums
        self.least = np.minimum(self.least, other.least)
        self.wrong = [(mine + others)[:WRONG] for mine, others in zip(self.wrong, other.wrong, strict=True)]
        self.support += other.support


@dataclass(frozen=True)
class Kernels(Checker):
    """Checks separators and weights in a kernel's space."""

    as_stored: ClassVar = True

    kernel: Kernel

    def require(self, certificate: Certificate, data: Data) -> None:
        weights = certificate.weights
        if data.intercept or certificate.y.size:
            raise CheckFailedError("a certificate with a kernel has neither an intercept nor y")
        require_support(certificate.support, data.n)
        if not np.isfinite(weights).all() or not 1e-100 < np.abs(weights).max() < 1e100:  # squares of others are lost
            raise CheckFailedError("the weights are zero, not finite, or outside 1e-100 .. 1e100")
        if certificate.kind == "gordan" and ((weights < 0).any() or abs(float(weights.sum()) - 1) > 1e-6):
            raise CheckFailedError("the weights are not on the simplex")
        seen = data.base is not data or point_of(data) is not None
        sound = self.kernel.plain and certificate.kind == "separator" and weights.all() and not seen
        if certificate.integers and not (sound and len(certificate.integers) == len(weights)):
            raise CheckFailedError("whole numbers are no weights of these points with this kernel")
        transform = transform_of(data.view, data.m)
        if transform is not None and transform.length is not None:
            raise CheckFailedError("points of a kernel's space have a length of their own, and no other")
        code_of(data, certificate)

    def choose_blocks(self, certificates: Sequence[Certificate], data: Data) -> tuple[int, ...] | None:
        """Those of points that are weighed, unless a transform is about all points."""
        if transform_of(data.view, data.m) is not None:
            return None
        return blocks_of(data, (certificate.support for certificate in certificates))

    def more(self, certificates: Sequence[Certificate]) -> int:
        """All points are scored by separators when those that are weighed are gathered; by those in whole numbers alone."""
        return len({bool(certificate.integers) for certificate in certificates if certificate.kind != "gordan"})

    def look(self, data: Data, certificates: Sequence[Certificate]) -> Callable[[Block], SupportTally]:
        width = data.m if data.entries is None else data.entries.count / data.n + 1
        # entries of the points of all certificates that are checked in one read
        if len(certificates) > 1 and sum(len(each.support) for each in certificates) * width > 40_000_000:
            raise CheckFailedError("more points than are looked at together")
        support, transform = _union(certificates), transform_of(data.view, data.m)

        def gather_block(block: Block) -> SupportTally:
            low, high = np.searchsorted(support, [block.start, block.start + block.points.shape[0]])
            rows = support[low:high] - block.start
            part = SupportTally(block.checksums, [block.points[rows].astype(np.float64, copy=False)], [block.label[rows]])
            if transform is not None and block.start < transform.points:
                first = block.points[: transform.points - block.start]
                part.numbers = FeatureMoments.of(first, transform.scaling, False)
            return part

        return gather_block

    def conclude(
        self, part: SupportTally, certificates: Sequence[Certificate], data: Data, read: Callable[..., Any]
    ) -> list[Answer]:
        transform = transform_of(data.view, data.m)
        if transform is not None and part.numbers is not None:
            part.numbers.refuse(transform, data.where)
        sums = self._sums(part, certificates, data)
        answers: dict[int, Answer] = {}
        planes = {place: attempt(sums.combine, place, each) for place, each in enumerate(certificates) if each.integers}
        sound = {place: plane for place, plane in planes.items() if isinstance(plane, Certificate)}
        if sound:
            shown = read(look_at, Points(), list(sound.values()), None)
            answers |= zip(sound, Points().conclude(shown, list(sound.values()), data, read), strict=True)
        answers |= {place: refused for place, refused in planes.items() if isinstance(refused, CheckFailedError)}
        separators = [column for column, each in enumerate(certificates) if each.kind != "gordan" and not each.integers]
        if separators:
            some = sums.some(separators)
            scored = read(look_at, some, certificates, None)
            scores, errors = (np.concatenate([each[i] for each in scored.support]) for i in (0, 1))
            sizes = lengths(some, scores, errors, SHARP)
            answers = {
                each: attempt(_conclude_separator, self.kernel, scored, i, sizes[i], data.n)
                for i, each in enumerate(separators)
            }
        for column, certificate in enumerate(certificates):
            if column not in answers:
                answers[column] = attempt(_conclude_weights, sums.some([column]), certificate, data)
        return [answers[column] for column in range(len(certificates))]

    def _sums(self, part: SupportTally, certificates: Sequence[Certificate], data: Data) -> KernelSums:
        index, labels = _union(certificates), np.concatenate(part.labels)
        dense = isinstance(part.points[0], np.ndarray)
        points = np.concatenate(part.points) if dense else scipy.sparse.vstack(part.points, format="csr")
        if not np.isfinite(points if dense else points.data).all():
            raise CheckFailedError(f"{data.where}: a point of the support is not finite; nothing can be proved")
        amounts, codes = np.zeros((len(index), len(certificates))), [code_of(data, each) for each in certificates]
        for column, (certificate, code) in enumerate(zip(certificates, codes, strict=True)):
            rows = np.searchsorted(index, certificate.support)
            signs = signs_of(labels[rows], code)
            require_signs(bool(signs.all()), data.where)
            amounts[rows, column] = certificate.weights * signs
        scaling = _scaling_of(data)
        kernel = replace(self.kernel, rounded=scaling is not None)
        return KernelSums(kernel, index, points, _see(points, scaling, data.where), amounts, tuple(codes))


def _scaling_of(data: Data) -> FeatureScaling | None:
    transform = transform_of(data.view, data.m)
    return None if transform is None else transform.scaling


def _see(points: Any, scaling: FeatureScaling | None, where: str) -> Any:
    """Stored points (r, m) in float64, with their transform. Raises CheckFailedError where that loses digits."""
    if scaling is None:
        return points.astype(np.float64, copy=False)
    seen = scaling(points)
    largest = Wide(seen).largest()
    if ((largest < LEAST) & scaling.nonzero(points)).any() or not np.isfinite(largest).all():
        raise CheckFailedError(f"{where}: a transformed point is too near to 0, or too far from it; nothing can be proved")
    return seen


def _union(certificates: Sequence[Certificate]) -> Indices:
    return np.unique(np.concatenate([certificate.support for certificate in certificates]))


def _conclude_separator(kernel: Kernel, scored: ScoreTally, place: int, length: float, n: int) -> Check:
    if scored.wrong[place]:
        raise CheckFailedError(f"not a separator: the score of point {scored.wrong[place][0]} is not above its rounding error")
    margin = float(scored.least[place]) / float(length) / UP
    text = f"all {n} points are on the positive side; the margin is at least {margin:.6g} in the kernel's space"
    return Check("feasible", _level(kernel), margin, 1.0, n, 0, text)


def _conclude_weights(expansion: KernelSums, certificate: Certificate, data: Data) -> Check:
    scaling, n = _scaling_of(data), data.n
    pair = opposite(expansion.stored, expansion.amounts[:, 0])
    if pair is not None:
        i, j = (int(expansion.index[row]) for row in pair)
        text = f"points {i} and {j} are equal and have opposite labels: no function separates them"
        return Check("infeasible", "exact", -1.0, 0.0, n, 0, text)
    nonzero = Wide(expansion.stored).nonzero() if scaling is None else scaling.nonzero(expansion.stored)
    if expansion.kernel.zero_at_zero and not nonzero.all():
        text = "K(x, x) = 0 for a point of the support: no score of it is positive"
        return Check("infeasible", "exact", -1.0, 0.0, n, 0, text)
    weight = float(certificate.weights.sum()) * (1 - gamma(len(certificate.weights) + 1))
    # the length of a sum that is to be small depends on nothing else: sharper than SHARP
    upper = float(lengths(expansion, *of_itself(expansion), 1e-6)[0]) / weight * UP
    count = len(certificate.support)
    if upper <= NEARLY and balances(expansion, scaling):
        text = f"some weights on {count} points make their sum in the kernel's space exactly zero: no function separates them"
        return Check("infeasible", "exact", -1.0, 0.0, n, 0, text)
    text = f"no unit vector of the kernel's space has a margin above {upper:.6g} (weights on {count} of {n} points)"
    return Check("eps-infeasible", _level(expansion.kernel), -1.0, min(1.0, upper), n, 0, text)


def balances(expansion: KernelSums, scaling: FeatureScaling | None) -> bool:
    """Whether the first sum is proved to be zero with other weights of the same signs, of a polynomial kernel: monomials of a
    point are its coordinates there, but for positive factors, and integers where its entries are.
    """
    kernel, amounts, points = expansion.kernel, expansion.amounts[:, 0], expansion.stored
    degree, ones = kernel.degree, int(kernel.coef0 > 0)
    if scaling is not None and scaling.shift is not None and not ones:
        return False
    count = len(amounts) * math.comb(points.shape[1] + ones + degree - 1, degree)
    if kernel.name != "polynomial" or count > 100_000:  # monomials of all points of a support
        return False
    from dfeas.verify.balance import balance, most_bits  # which loads FLINT

    points, seen = (each if isinstance(each, np.ndarray) else each.toarray() for each in (points, expansion.points))
    features = np.hstack([common(points)[0], np.ones((len(points), ones), object)]).T
    if degree * int(np.abs(features).max()).bit_length() > most_bits(count):
        return False
    whole = np.array([math.prod(factors) for factors in combinations_with_replacement(features, degree)], object).T
    with np.errstate(all="ignore"):
        weights = np.abs(amounts) / (kernel.gamma * np.einsum("ij,ij->i", seen, seen) + kernel.coef0) ** (degree / 2)
    signed = np.where(amounts < 0, -1, 1).astype(object)[:, None] * whole
    return bool(np.isfinite(weights).all()) and balance(scale_integers(signed)[0], weights, signed) is not None


def _level(kernel: Kernel) -> str:
    return "floating_point" if kernel.name == "callable" else "rigorous"


def opposite(points: Any, amounts: Floats) -> tuple[int, int] | None:
    """Rows of two equal points (s, m), the first one with a positive amount (s,), the other with a negative one: the pair with
    the lowest numbers. None where there is none. Zeros of either sign, and those that are stored, are equal.
    """
    if not isinstance(points, np.ndarray):
        points = points.copy()
        points.sum_duplicates()
        points.eliminate_zeros()
    first: dict[tuple[bool, bytes, bytes], int] = {}
    for row, amount in enumerate(amounts.tolist()):
        if isinstance(points, np.ndarray):
            entries, places = points[row] + 0.0, b""
        else:
            here = slice(points.indptr[row], points.indptr[row + 1])
            entries, places = points.data[here], points.indices[here].tobytes()
        first.setdefault((amount > 0, places, entries.tobytes()), row)
    pairs = [(row, first.get((False, places, data))) for (positive, places, data), row in first.items() if positive]
    return min(((i, j) for i, j in pairs if j is not None), key=sorted, default=None)
