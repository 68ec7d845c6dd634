"""The points of a Gordan certificate by name, with their labels, the most suspect first.

They conflict when Ax is zero up to rounding; a larger |Ax| tells of a thin margin at most, and accuses nobody.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.certificate import Certificate
from dfeas.methods import Evidence, Sparse
from dfeas.store import Dataset
from dfeas.store.reading import Buffers

CONFLICTING = 1e-10
"""|Ax| up to this, as the checker bounds it, is rounding: points that carry x conflict. A larger one accuses nobody."""

MOST = 10_000
"""Points that are listed; the certificate has all."""


def conflicts(dataset: Dataset, certificate: Certificate, evidence: Evidence) -> list[dict[str, Any]]:
    """``point``, ``label`` (its class), ``weight`` and ``score`` of the points of a certificate, at most ``MOST``.

    ``score`` is a_j'y under the direction that most points agree with: a mislabelled point has the lowest, and comes first.
    Where the method knows no such direction it is None, and the heaviest points come first.
    """
    found = evidence.gordan() if evidence.gordan is not None else None
    score: NDArray[np.float64] | None = None
    if isinstance(found, Sparse) and np.array_equal(found.index, certificate.support):
        score = found.score
    order = np.argsort(-certificate.weights if score is None else score, kind="stable")[:MOST]
    label = labels_of(dataset, certificate.support[order])
    return [
        {
            "point": int(certificate.support[j] if dataset.numbers is None else dataset.numbers[certificate.support[j]]),
            "label": name,
            "weight": float(certificate.weights[j]),
            "score": None if score is None else float(score[j]),
        }
        for j, name in zip(order, label, strict=True)
    ]


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
