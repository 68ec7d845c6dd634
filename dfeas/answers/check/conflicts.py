"""Points of a certificate that users know by number and label."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.data.storage.readers import Buffers
from dfeas.data.storage.scratch import pieces
from dfeas.linalg.points import Floats
from dfeas.methods.protocol import Evidence, Sparse
from dfeas.verify.certificate import Certificate

MOST = 10_000
"""Points that are listed; the certificate has all."""


def conflicts(
    dataset: Dataset, certificate: Certificate, evidence: Evidence
) -> tuple[list[dict[str, Any]], NDArray[np.float64] | None]:
    """``point``, ``label`` (its class), ``weight`` and ``score`` of the points of a certificate, at most ``MOST``, and y.
    ``score`` is a_j'y under the direction that most points agree with: a mislabelled point has the lowest, and comes first.
    Where the method knows no such direction it is None, and the heaviest points come first.
    """
    gordan = evidence.gordan() if evidence.gordan is not None else None
    score = y = None
    if isinstance(gordan, Sparse) and np.array_equal(gordan.index, certificate.support):
        score, y = gordan.score, gordan.y
    if score is None:
        support, weights = heaviest(certificate)
    else:
        order = np.argsort(score, kind="stable")[:MOST]
        support, weights, score = certificate.support[order], certificate.weights[order], score[order]
    known = [None] * len(support) if score is None else score.tolist()
    rows = zip(numbers_of(dataset, support).tolist(), labels_of(dataset, support), weights.tolist(), known, strict=True)
    return [dict(zip(("point", "label", "weight", "score"), row, strict=True)) for row in rows], y


def numbers_of(dataset: Dataset, points: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers that users know, of some points."""
    return points if dataset.numbers is None else np.asarray(dataset.numbers[points], np.int64)


def heaviest(certificate: Certificate) -> tuple[NDArray[np.int64], Floats]:
    """Points of a certificate that weigh most, at most ``MOST``, and their weights; of equal ones the first."""
    support, weights = np.empty(0, np.int64), np.empty(0)
    for points, more in pieces(certificate.support, certificate.weights):
        support, weights = np.concatenate([support, points]), np.concatenate([weights, more])
        order = np.argsort(-weights, kind="stable")[:MOST]
        support, weights = support[order], weights[order]
    return support, weights


def carriers(dataset: Dataset, certificate: Certificate, points: Collection[int]) -> dict[int, tuple[str, float]]:
    """Label and weight of those of some points, by the numbers that users know, that carry the certificate."""
    true: dict[int, tuple[str, float]] = {}
    for support, weights in pieces(certificate.support, certificate.weights):
        numbers = numbers_of(dataset, support)
        here = np.flatnonzero(np.isin(numbers, [point for point in points if numbers[0] <= point <= numbers[-1]]))
        labels = labels_of(dataset, support[here])
        true.update(zip(numbers[here].tolist(), zip(labels, weights[here].tolist(), strict=True), strict=True))
    return true


def labels_of(dataset: Dataset, points: NDArray[np.int64]) -> list[str]:
    """The class of each point, as the user called it, or its sign."""
    negative, positive = dataset.classes or ("-1", "+1")
    sign = np.empty(len(points), np.int8)
    buffers = Buffers()
    block = points // dataset.block_rows
    for index in np.unique(block):
        here = block == index
        stored = dataset.labels.read(int(index), buffers)[points[here] - index * dataset.block_rows]
        sign[here] = dataset.signs(stored)
    return [positive if s > 0 else negative for s in sign]
