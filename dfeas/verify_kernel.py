"""The checker of certificates with a kernel: everything is computed again from the stored points.

A separator y = sum_i w_i a_i over the support, a_i signed unit vectors of the kernel's space, has the scores
a_j'y = l_j sum_i w_i l_i K(x_j, x_i) / sqrt(K_jj K_ii); each must exceed the bound of its own error (``dfeas.kernels.bounds``),
and the least of them over an upper bound of |y| is the margin. Of a Gordan certificate |sum_i w_i a_i| is bounded in the same
way. That is rigorous in the model of these bounds; with a function of Python the values are believed, and the proof is in
floating point. Two equal points of the support with opposite labels need no arithmetic: no kernel separates them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.certificate import Certificate
from dfeas.errors import CheckFailedError
from dfeas.kernels.bounds import UP, bounded, gamma_
from dfeas.kernels.kernel import Function, Kernel, opposite
from dfeas.store import Dataset
from dfeas.store.reading import Buffers, Stop, unless_stopped
from dfeas.verify import WRONG, Check, Maps, check, compare, crc

Floats = NDArray[np.float64]

TILE_BYTES = 8 << 20
"""Kernel values at a time."""


@dataclass(frozen=True)
class _Expansion:
    """Points that a certificate weighs."""

    kernel: Kernel
    points: Floats  # (s, m)
    amount: Floats  # (s,) weights times labels


def check_any(engine: Maps, dataset: Dataset, certificate: Certificate, function: Function | None = None) -> Check:
    """Prove a certificate, with a kernel or without, on all of the data.

    Raises CheckFailedError when it does not prove what it claims, CorruptDataError when the data is not what it was made for,
    BadInputError when its kernel is a ``function`` that is not given.
    """
    if not certificate.kernel:
        return check(engine, dataset, certificate)
    kernel = Kernel.from_text(certificate.kernel, function)
    _check_shape(certificate, dataset)
    parts = [part for each in engine.map(gathered, certificate.support) for part in each]
    compare(dataset, [checksums for checksums, _, _ in parts], certificate.fingerprint, dataset.view)
    points, labels = np.concatenate([rows for _, rows, _ in parts]), np.concatenate([label for _, _, label in parts])
    if not np.isfinite(points).all():
        raise CheckFailedError(f"{dataset.where}: a point of the support is not finite; nothing can be proved")
    expansion = _Expansion(kernel, points, certificate.weights * labels)
    if certificate.kind == "gordan":
        return _gordan(dataset, certificate, expansion, labels)
    return _separator(engine, dataset, certificate, expansion)


def _check_shape(certificate: Certificate, dataset: Dataset) -> None:
    support, weights = certificate.support, certificate.weights
    if dataset.entries is not None:
        raise CheckFailedError("a certificate with a kernel is one of dense points, these are sparse")
    if dataset.intercept or certificate.y.size:
        raise CheckFailedError("a certificate with a kernel has neither an intercept nor y")
    if not len(support) or (support[1:] <= support[:-1]).any() or support[0] < 0 or support[-1] >= dataset.n:
        raise CheckFailedError(f"the support is not an ascending list of points below {dataset.n}")
    if not np.isfinite(weights).all() or not weights.any() or np.abs(weights).max() > 1e100:
        raise CheckFailedError("the weights are zero, not finite, or above 1e100")
    if certificate.kind == "gordan" and ((weights < 0).any() or abs(float(weights.sum()) - 1) > 1e-6):
        raise CheckFailedError("the weights are not on the simplex")


def gathered(
    dataset: Dataset, first: int, stop: int, support: NDArray[np.int64], stopped: Stop | None = None
) -> list[tuple[tuple[int, int], Floats, NDArray[np.int8]]]:
    """Of each block its checksums, and points and labels of the support in it."""
    found, buffers = [], Buffers()
    for index in unless_stopped(range(first, stop), stopped):
        stored: Any = dataset.points.read(index, buffers)
        label = dataset.labels.read(index, buffers)
        start = index * dataset.block_rows
        low, high = np.searchsorted(support, [start, start + len(stored)])
        rows = support[low:high] - start
        found.append(((crc(stored), crc(label)), stored[rows].astype(np.float64), dataset.signs(label[rows]).astype(np.int8)))
    return found


def _length(expansion: _Expansion) -> float:
    """An upper bound of |y|."""
    amount, total, error = expansion.amount, 0.0, 0.0
    size = max(1, TILE_BYTES // (8 * len(amount)))
    for first in range(0, len(amount), size):
        value, off = bounded(expansion.kernel, expansion.points[first : first + size], expansion.points)
        some = amount[first : first + size]
        total += float(some @ (value @ amount))
        error += float(np.abs(some) @ ((off + 2 * gamma_(2 * len(amount) + 4) * (np.abs(value) + off)) @ np.abs(amount)))
    return math.sqrt(max(0.0, total) * UP + error * UP**2) * UP


def _gordan(dataset: Dataset, certificate: Certificate, expansion: _Expansion, labels: NDArray[np.int8]) -> Check:
    n = dataset.n
    pair = opposite(expansion.points, labels)
    if pair is not None:
        i, j = (int(certificate.support[row]) for row in pair)
        text = f"points {i} and {j} are equal and have opposite labels: no function separates them"
        return Check("infeasible", "exact", -1.0, 0.0, n, 0, text)
    if (expansion.kernel.diagonal(expansion.points) == 0).any():
        return Check(
            "infeasible", "exact", -1.0, 0.0, n, 0, "K(x, x) = 0 for a point of the support: no score of it is positive"
        )
    weight = float(certificate.weights.sum()) * (1 - gamma_(len(certificate.weights) + 1))
    upper = _length(expansion) / weight * UP
    text = f"no unit vector of the kernel's space has a margin above {upper:.6g} (weights on {len(labels)} of {n} points)"
    return Check("eps-infeasible", _level(expansion.kernel), -1.0, min(1.0, upper), n, 0, text)


def _level(kernel: Kernel) -> str:
    return "floating_point" if kernel.name == "callable" else "rigorous"


def _separator(engine: Maps, dataset: Dataset, certificate: Certificate, expansion: _Expansion) -> Check:
    parts = engine.map(scored, expansion)
    checksums = [pair for _, _, part in parts for pair in part]
    compare(dataset, checksums, certificate.fingerprint, dataset.view)
    wrong = [point for _, points, _ in parts for point in points]
    if wrong:
        raise CheckFailedError(f"not a separator: the score of point {wrong[0]} is not above its rounding error")
    length = _length(expansion)
    margin = min(least for least, _, _ in parts) / length / UP if length > 0 else 0.0
    text = f"all {dataset.n} points are on the positive side; the margin is at least {margin:.6g} in the kernel's space"
    return Check("feasible", _level(expansion.kernel), margin, 1.0, dataset.n, 0, text)


def scored(
    dataset: Dataset, first: int, stop: int, expansion: _Expansion, stopped: Stop | None = None
) -> tuple[float, list[int], list[tuple[int, int]]]:
    """The least proved score, points whose score is not proved to be positive, and checksums, of some blocks."""
    least, buffers = math.inf, Buffers()
    wrong: list[int] = []
    checksums: list[tuple[int, int]] = []
    amount = expansion.amount
    size = max(1, TILE_BYTES // (8 * len(amount)))
    for index in unless_stopped(range(first, stop), stopped):
        stored: Any = dataset.points.read(index, buffers)
        label = dataset.labels.read(index, buffers)
        checksums.append((crc(stored), crc(label)))
        label = dataset.signs(label)
        for start in range(0, len(stored), size):
            value, error = bounded(expansion.kernel, stored[start : start + size].astype(np.float64), expansion.points)
            score = (value @ amount) * label[start : start + size]
            error += gamma_(len(amount) + 2) * (np.abs(value) + error)
            proved = score - (error @ np.abs(amount)) * UP
            here = np.flatnonzero(~(proved > 0))
            wrong = (wrong + (index * dataset.block_rows + start + here).tolist())[:WRONG]
            least = min(least, float(proved.min()))
    return least, wrong, checksums
