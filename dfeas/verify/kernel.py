"""Sums of unit vectors of a kernel's space over points of certificates, as the checker evaluates them: scores and lengths, with
bounds of their errors. Quick bounds come from products of matrices, sharper ones where these take a share of what they bound.

A separator y = sum_i w_i a_i over the support, a_i signed unit vectors of the kernel's space, has the scores
a_j'y = l_j sum_i w_i l_i K(x_j, x_i) / sqrt(K_jj K_ii); each must exceed the bound of its own error (``dfeas.kernels.bounds``),
and the least of them over an upper bound of |y| is the margin. Of a Gordan certificate |sum_i w_i a_i| is bounded in the same
way. That is rigorous in the model of these bounds; with a function of Python the values are believed, and the proof is in
floating point. Two equal points of the support with opposite labels need no arithmetic: no kernel separates them.

Several certificates with one kernel, as those of classes, are checked in two reads: one gathers the points of all of them, one
evaluates the kernel for all points with these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.data.storage.readers import Buffers, Stop, unless_stopped
from dfeas.errors import CheckFailedError
from dfeas.geometry.kernel.kernel import Function, Kernel, opposite
from dfeas.linalg.points import Points, any_entry, in_type, nonfinite, picked, row_slice, stacked
from dfeas.verify.certificate import Certificate
from dfeas.verify.core import Maps, code_of, require_signs, signs_of
from dfeas.verify.evidence import WRONG, Check
from dfeas.verify.kernel_bounds import UP, Bounded, Same, bounded, by_products, gamma_
from dfeas.verify.stored import compare, crc

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


ENTRIES = 40_000_000
"""Entries of the points of all certificates that are checked in one read."""
SHARP_GORDAN = 1e-6
"""The same for the length of a sum that is to be small, which depends on nothing else."""


@dataclass
class _Scored:
    """What some blocks showed of each sum."""

    least: Floats  # (k,) least proved score
    wrong: list[list[int]]  # (k) points whose score is not proved to be positive
    checksums: list[tuple[int, int]]
    support: list[tuple[Floats, Floats]]  # of points of the support, in order: scores (r, k) without signs, bounds of errors


def check_kernels(
    engine: Maps, dataset: Dataset, certificates: Sequence[Certificate], function: Function | None = None
) -> list[Check | CheckFailedError]:
    """Prove several certificates with kernels: what is proved of each, or why it proves nothing.

    Raises CorruptDataError when the data is not what one was made for, BadInputError when its kernel is a ``function`` that is
    not given.
    """
    several = len(certificates) > 1
    if several and (
        len({certificate.kernel for certificate in certificates}) > 1
        or sum(len(certificate.support) for certificate in certificates) * _width(dataset) > ENTRIES
    ):
        return _one_by_one(engine, dataset, certificates, function)
    kernel = Kernel.from_text(certificates[0].kernel, function)
    try:
        codes = []
        for certificate in certificates:
            _check_shape(certificate, dataset)
            codes.append(code_of(dataset, certificate))
        return _checked(engine, dataset, certificates, kernel, tuple(codes))
    except CheckFailedError as error:
        # which one it is shows when each is looked at alone
        return _one_by_one(engine, dataset, certificates, function) if several else [error]


def _one_by_one(
    engine: Maps, dataset: Dataset, certificates: Sequence[Certificate], function: Function | None
) -> list[Check | CheckFailedError]:
    return [found for each in certificates for found in check_kernels(engine, dataset, [each], function)]


def _width(dataset: Dataset) -> float:
    return dataset.m if dataset.entries is None else dataset.entries.count / dataset.n + 1


def _check_shape(certificate: Certificate, dataset: Dataset) -> None:
    support, weights = certificate.support, certificate.weights
    if dataset.intercept or certificate.y.size:
        raise CheckFailedError("a certificate with a kernel has neither an intercept nor y")
    if not len(support) or (support[1:] <= support[:-1]).any() or support[0] < 0 or support[-1] >= dataset.n:
        raise CheckFailedError(f"the support is not an ascending list of points below {dataset.n}")
    if not np.isfinite(weights).all() or not 1e-100 < np.abs(weights).max() < 1e100:  # squares of others are lost
        raise CheckFailedError("the weights are zero, not finite, or outside 1e-100 .. 1e100")
    if certificate.kind == "gordan" and ((weights < 0).any() or abs(float(weights.sum()) - 1) > 1e-6):
        raise CheckFailedError("the weights are not on the simplex")


def _checked(
    engine: Maps, dataset: Dataset, certificates: Sequence[Certificate], kernel: Kernel, codes: tuple[int | None, ...]
) -> list[Check | CheckFailedError]:
    """Two reads, or one where none is a separator."""
    index = np.unique(np.concatenate([certificate.support for certificate in certificates]))
    parts = [part for each in engine.map(gathered, index) for part in each]
    for certificate in certificates:
        compare(dataset, [checksums for checksums, _, _ in parts], certificate.fingerprint, certificate.view)
    points, labels = stacked([rows for _, rows, _ in parts]), np.concatenate([label for _, _, label in parts])
    if len(nonfinite(points)[0]):
        raise CheckFailedError(f"{dataset.where}: a point of the support is not finite; nothing can be proved")
    amounts = np.zeros((len(index), len(certificates)))
    for column, (certificate, code) in enumerate(zip(certificates, codes, strict=True)):
        rows = np.searchsorted(index, certificate.support)
        signs = signs_of(labels[rows], code)
        require_signs(bool(signs.all()), dataset.where)
        amounts[rows, column] = certificate.weights * signs
    all_of_them = Expansions(kernel, index, points, amounts, codes)
    columns = [column for column, certificate in enumerate(certificates) if certificate.kind != "gordan"]
    answers = dict(zip(columns, _separators(engine, dataset, certificates, all_of_them, columns), strict=True))
    for column, certificate in enumerate(certificates):
        if column not in answers:
            answers[column] = _gordan(dataset, certificate, all_of_them, column)
    return [answers[column] for column in range(len(certificates))]


def gathered(
    dataset: Dataset, first: int, stop: int, support: Indices, stopped: Stop | None = None
) -> list[tuple[tuple[int, int], Points, NDArray[Any]]]:
    """Of each block its checksums, and points and stored labels of the support in it."""
    found, buffers = [], Buffers()
    for number in unless_stopped(range(first, stop), stopped):
        stored: Points = dataset.points.read(number, buffers)
        label = dataset.labels.read(number, buffers)
        start = number * dataset.block_rows
        low, high = np.searchsorted(support, [start, start + stored.shape[0]])
        rows = support[low:high] - start
        chosen = in_type(stored[rows], np.float64)
        found.append(((crc(stored), crc(label)), chosen, label[rows]))
    return found


def _gordan(dataset: Dataset, certificate: Certificate, all_of_them: Expansions, column: int) -> Check | CheckFailedError:
    n, expansion = dataset.n, all_of_them.of(column)
    pair = opposite(expansion.points, expansion.amounts[:, 0])
    if pair is not None:
        i, j = (int(expansion.index[row]) for row in pair)
        text = f"points {i} and {j} are equal and have opposite labels: no function separates them"
        return Check("infeasible", "exact", -1.0, 0.0, n, 0, text)
    if expansion.kernel.zero_at_zero and not any_entry(expansion.points).all():
        text = "K(x, x) = 0 for a point of the support: no score of it is positive"
        return Check("infeasible", "exact", -1.0, 0.0, n, 0, text)
    weight = float(certificate.weights.sum()) * (1 - gamma_(len(certificate.weights) + 1))
    try:
        upper = float(lengths(expansion, *of_itself(expansion), SHARP_GORDAN)[0]) / weight * UP
    except CheckFailedError as error:
        return error
    count = len(certificate.support)
    text = f"no unit vector of the kernel's space has a margin above {upper:.6g} (weights on {count} of {n} points)"
    return Check("eps-infeasible", _level(expansion.kernel), -1.0, min(1.0, upper), n, 0, text)


def _level(kernel: Kernel) -> str:
    return "floating_point" if kernel.name == "callable" else "rigorous"


def _separators(
    engine: Maps, dataset: Dataset, certificates: Sequence[Certificate], all_of_them: Expansions, columns: list[int]
) -> list[Check | CheckFailedError]:
    """Of the sums in these columns."""
    if not columns:
        return []
    rows = np.flatnonzero(all_of_them.amounts[:, columns].any(axis=1))
    expansions = replace(
        all_of_them,
        index=all_of_them.index[rows],
        points=all_of_them.points[rows],
        amounts=all_of_them.amounts[rows][:, columns],
        codes=tuple(all_of_them.codes[column] for column in columns),
    )
    parts: list[_Scored] = engine.map(scored, expansions)
    checksums = [pair for part in parts for pair in part.checksums]
    scores, errors = (np.concatenate([some[i] for part in parts for some in part.support]) for i in (0, 1))
    longest = lengths(expansions, scores, errors, SHARP)
    answers: list[Check | CheckFailedError] = []
    for place, column in enumerate(columns):
        certificate = certificates[column]
        compare(dataset, checksums, certificate.fingerprint, certificate.view)
        wrong = [point for part in parts for point in part.wrong[place]]
        if wrong:
            text = f"not a separator: the score of point {wrong[0]} is not above its rounding error"
            answers.append(CheckFailedError(text))
            continue
        margin = min(float(part.least[place]) for part in parts) / float(longest[place]) / UP
        text = f"all {dataset.n} points are on the positive side; the margin is at least {margin:.6g} in the kernel's space"
        answers.append(Check("feasible", _level(expansions.kernel), margin, 1.0, dataset.n, 0, text))
    return answers


def scored(dataset: Dataset, first: int, stop: int, expansions: Expansions, stopped: Stop | None = None) -> _Scored:
    """What some blocks show: the kernel is evaluated once for all sums."""
    columns = expansions.amounts.shape[1]
    found = _Scored(np.full(columns, math.inf), [[] for _ in range(columns)], [], [])
    buffers = Buffers()
    size = max(1, TILE_BYTES // (8 * len(expansions.amounts)))
    for number in unless_stopped(range(first, stop), stopped):
        stored: Points = dataset.points.read(number, buffers)
        label = dataset.labels.read(number, buffers)
        found.checksums.append((crc(stored), crc(label)))
        plain = dataset.signs(label) if None in expansions.codes else label
        signs = np.column_stack([signs_of(plain if code is None else label, code) for code in expansions.codes])
        for begin in range(0, stored.shape[0], size):
            rows = slice(begin, begin + size)
            start = number * dataset.block_rows + begin
            shown, support = proved(expansions, in_type(row_slice(stored, rows), np.float64), signs[rows], start)
            found.support.append(support)
            np.minimum(found.least, shown.min(axis=0), out=found.least)
            for row, column in np.argwhere(~(shown > 0)):
                if len(found.wrong[column]) < WRONG:
                    found.wrong[column].append(start + int(row))
    return found
