"""From what a method recorded to a certificate: one last pass rebuilds the n-vector of a mixture of softmaxes.

They conflict when Ax is zero up to rounding; a larger |Ax| tells of a thin margin at most, and accuses nobody.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

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
from dfeas.run.termination import FEASIBLE, SLACK
from dfeas.verify.certificate import Certificate


class Runs(Protocol):
    """What recovery needs of an engine."""

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n) of A."""

    def run(self, question: Question) -> Any:
        """One read of the data."""


def recover(
    engine: Runs, evidence: Evidence, verdict: str, eps: float, fingerprint: str, kernel: str = ""
) -> tuple[Certificate, int]:
    """The certificate for a verdict, and the number of reads that it takes beside one of the checker (0 or 1)."""
    if verdict == FEASIBLE:
        assert evidence.bracket.y is not None
        found = separator(evidence.bracket.y, fingerprint, kernel)
        return found, found.checking_reads - 1
    assert evidence.gordan is not None
    gordan = evidence.gordan()
    n = engine.shape[1]
    if isinstance(gordan, Stored):
        stored = OnVectors(Positive(floor=0.0), (gordan.name,), (), points=False, keeps=None)
        return _certificate(engine.run(stored), fingerprint), 0
    if isinstance(gordan, Sparse):
        return Certificate("gordan", fingerprint, support=gordan.index, weights=gordan.weight, kernel=kernel), 0
    short = shorten(gordan)
    # what is left out weighs at most SLACK eps / 2 in all, so |Ax| grows by no more than that
    weights = engine.run(short.question(SLACK * eps / 2 / n))
    return _certificate(weights, fingerprint), 1


def separator(y: Floats | Expansion, fingerprint: str, kernel: str = "") -> Certificate:
    """A direction as evidence."""
    if isinstance(y, Expansion):
        return Certificate("separator", fingerprint, support=y.index, weights=y.amount, kernel=kernel)
    return Certificate("separator", fingerprint, y=y)


def _certificate(found: SparseWeights, fingerprint: str) -> Certificate:
    weight = found.weight()
    weight /= found.total()
    return Certificate("gordan", fingerprint, support=found.index(), weights=weight)


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
