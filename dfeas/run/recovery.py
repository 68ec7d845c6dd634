"""From what a method recorded to a certificate: one last pass rebuilds the n-vector of a mixture of softmaxes.

Where memory does not hold the weights of all points that pass reads some blocks after the others, and weights go to a file.

They conflict when the checker has proved that weights on them make Ax exactly zero; any other |Ax| accuses nobody.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.data.storage.readers import Buffers
from dfeas.data.storage.scratch import pieces, spool, total
from dfeas.linalg.points import Floats
from dfeas.methods.protocol import Evidence, ScratchVector, Sparse
from dfeas.methods.vector import Expansion
from dfeas.passes.protocol import OnVectors, Partial, Question
from dfeas.passes.vectors import Positive
from dfeas.run.termination import FEASIBLE
from dfeas.verify.certificate import Certificate


@dataclass(frozen=True)
class Portions:
    """Blocks whose weights fit in memory at a time, and a folder for those of all."""

    blocks: tuple[tuple[int, ...], ...] = ()  # none: those of all fit
    folder: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))

    @classmethod
    def of(cls, dataset: Dataset, weights: int, folder: Path) -> Portions:
        """As many blocks as have no more than so many points, but at least one."""
        if weights >= dataset.n:
            return cls()
        size = max(1, weights // dataset.block_rows)
        firsts = range(0, dataset.blocks, size)
        return cls(tuple(tuple(range(first, min(first + size, dataset.blocks))) for first in firsts), folder)


def recover(
    ask: Callable[[Question], Any],
    evidence: Evidence,
    verdict: str,
    slack: float,
    fingerprint: str,
    kernel: str = "",
    portions: Portions | None = None,
) -> tuple[Certificate, int]:
    """The certificate for a verdict, and the number of reads that it takes (0 or 1), without those of the checker. ``ask``
    reads the data for a question, all at once or in ``portions``. Each weight that is not above ``slack`` may be left out.
    Raises CorruptDataError when weights do not fit on storage.
    """
    if verdict == FEASIBLE:
        assert evidence.bracket.y is not None
        return separator(evidence.bracket.y, fingerprint, kernel), 0
    assert evidence.gordan is not None
    gordan = evidence.gordan()
    if isinstance(gordan, ScratchVector):
        stored = OnVectors(Positive(floor=0.0), (gordan.name,), (), points=False, keeps=None)
        return _weigh_points(ask, stored, lambda some: replace(stored, blocks=some), portions, fingerprint), 0
    if isinstance(gordan, Sparse):
        return Certificate("gordan", fingerprint, support=gordan.index, weights=gordan.weight, kernel=kernel), 0
    question = gordan.question(slack)
    return _weigh_points(ask, question, lambda some: Partial(question, some), portions, fingerprint), 1


def separator(y: Floats | Expansion, fingerprint: str, kernel: str = "") -> Certificate:
    """A direction as evidence, with a kernel the weights of its points."""
    if isinstance(y, Expansion):
        return Certificate("separator", fingerprint, support=y.index, weights=y.amount, kernel=kernel)
    return Certificate("separator", fingerprint, y=y)


def _weigh_points(
    ask: Callable[[Question], Any],
    question: Question,
    on_blocks: Callable[[tuple[int, ...]], Question],
    portions: Portions | None,
    fingerprint: str,
) -> Certificate:
    """Weights of points on the simplex, as a question about all blocks or about some answers them."""
    if portions is None or not portions.blocks:
        answer = ask(question)
        support, weights = answer.index(), answer.weight()
        whole = answer.total()
        weights /= total(weights) if whole is None else whole
        return Certificate("gordan", fingerprint, support=support, weights=weights)
    answers = (ask(on_blocks(some)) for some in portions.blocks)
    support, weights = spool(((some.index(), some.weight()) for some in answers), (np.int64, np.float64), portions.folder)
    whole = total(weights)
    (weights,) = spool(((piece / whole,) for (piece,) in pieces(weights)), (np.float64,), portions.folder)
    return Certificate("gordan", fingerprint, support=support, weights=weights)


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
