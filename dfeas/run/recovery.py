"""From what a method recorded to a certificate: one last pass rebuilds the n-vector of a mixture of softmaxes.

They conflict when Ax is zero up to rounding; a larger |Ax| tells of a thin margin at most, and accuses nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.data.storage.readers import Buffers
from dfeas.linalg.basic import basic
from dfeas.linalg.points import Floats
from dfeas.methods.protocol import Evidence, Mixture, Sparse, Stored
from dfeas.methods.vector import Expansion
from dfeas.passes.protocol import OnVectors, Question
from dfeas.passes.vectors import Positive, SparseWeights
from dfeas.run.termination import FEASIBLE
from dfeas.verify.certificate import Certificate


def recover(
    ask: Callable[[Question], Any], evidence: Evidence, verdict: str, slack: float, fingerprint: str, kernel: str = ""
) -> tuple[Certificate, int]:
    """The certificate for a verdict, and the number of reads that it takes (0 or 1), without those of the checker.

    ``ask`` reads the data for a question. Each weight that is not above ``slack`` may be left out.
    """
    if verdict == FEASIBLE:
        assert evidence.bracket.y is not None
        return separator(evidence.bracket.y, fingerprint, kernel), 0
    assert evidence.gordan is not None
    gordan = evidence.gordan()
    if isinstance(gordan, Stored):
        stored = OnVectors(Positive(floor=0.0), (gordan.name,), (), points=False, keeps=None)
        return _certificate(ask(stored), fingerprint), 0
    if isinstance(gordan, Sparse):
        return Certificate("gordan", fingerprint, support=gordan.index, weights=gordan.weight, kernel=kernel), 0
    return _certificate(ask(shorten(gordan).question(slack)), fingerprint), 1


def separator(y: Floats | Expansion, fingerprint: str, kernel: str = "") -> Certificate:
    """A direction as evidence, with a kernel the weights of its points."""
    if isinstance(y, Expansion):
        return Certificate("separator", fingerprint, support=y.index, weights=y.amount, kernel=kernel)
    return Certificate("separator", fingerprint, y=y)


def _certificate(answer: SparseWeights, fingerprint: str) -> Certificate:
    weight = answer.weight()
    weight /= answer.total()
    return Certificate("gordan", fingerprint, support=answer.index(), weights=weight)


def shorten(mixture: Mixture) -> Mixture:
    """The same Ax from at most m + 1 of the softmaxes (Caratheodory), so that the last pass asks fewer questions."""
    if len(mixture.share) <= mixture.mean.shape[0] + 1:
        return mixture
    kept, share = basic(lambda chosen: mixture.mean.T[chosen], len(mixture.mean), mixture.share)
    return replace(
        mixture,
        Y=mixture.Y[:, kept],
        mu=mixture.mu[kept],
        lse=mixture.lse[kept],
        share=share / share.sum(),
        mean=mixture.mean[:, kept],
    )


CONFLICTING = 1e-10
"""|Ax| up to this, as the checker bounds it, is rounding: points that carry x conflict. A larger one accuses nobody."""

MOST = 10_000
"""Points that are listed; the certificate has all."""


def conflicts(dataset: Dataset, certificate: Certificate, evidence: Evidence) -> list[dict[str, Any]]:
    """``point``, ``label`` (its class), ``weight`` and ``score`` of the points of a certificate, at most ``MOST``.

    ``score`` is a_j'y under the direction that most points agree with: a mislabelled point has the lowest, and comes first.
    Where the method knows no such direction it is None, and the heaviest points come first.
    """
    gordan = evidence.gordan() if evidence.gordan is not None else None
    score: NDArray[np.float64] | None = None
    if isinstance(gordan, Sparse) and np.array_equal(gordan.index, certificate.support):
        score = gordan.score
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
