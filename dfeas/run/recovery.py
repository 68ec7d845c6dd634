"""From what a method recorded to a certificate: one last pass rebuilds the n-vector of a mixture of softmaxes.

Where memory does not hold the weights of all points that pass reads some blocks after the others, and weights go to a file.

They conflict when the checker has proved that weights on them make Ax exactly zero; any other |Ax| accuses nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from dfeas.answers.words import FEASIBLE
from dfeas.data.dataset import Dataset
from dfeas.data.storage.scratch import Scratch, pieces, spool, total
from dfeas.engine.protocol import Engine
from dfeas.linalg.points import Floats
from dfeas.methods.protocol import Evidence, ScratchVector, Sparse
from dfeas.methods.vector import Expansion
from dfeas.passes.protocol import OnVectors, Partial, Question
from dfeas.passes.vectors import Positive
from dfeas.problem import Function
from dfeas.records import replace
from dfeas.verify.certificate import Answer, Certificate, Checked
from dfeas.verify.core import check_each, conclude_separator, reads, sight
from dfeas.verify.points import Sight


class Checking(Struct, frozen=True, eq=False):
    """The checker's own way to the data."""

    engine: Engine
    dataset: Dataset
    function: Function | None = None  # of Python, that is the kernel
    shared: bool = False  # what passes read is what the checker would, so that it may look at the same bytes
    quick: bool = False  # of conflicts the blocks that they are in are read

    def __call__(self, certificates: Sequence[Certificate]) -> Checked:
        """Check certificates: one read for all of them, two with a kernel; of conflicts what they are in."""
        return check_each(self.engine, self.dataset, certificates, self.function, quick=self.quick)

    def reads(self, certificates: Sequence[Certificate]) -> float:
        """Reads that checking them takes, as a rule."""
        return reads(self.dataset, certificates, self.function, quick=self.quick)

    def look(self, certificate: Certificate) -> Sight | None:
        """How a separator is looked at on the read of a pass; None where it needs a read of its own."""
        return sight(self.dataset, certificate) if self.shared else None

    def conclude(self, certificate: Certificate, shown: Any) -> Answer:
        """What such a look at all blocks proves."""
        return conclude_separator(self.dataset, certificate, shown)


class Portions(Struct, frozen=True):
    """Blocks whose weights fit in memory at a time, and a folder for those of all."""

    blocks: tuple[tuple[int, ...], ...] = ()  # none: those of all fit
    folder: Path = Path()  # where there are some

    @classmethod
    def of(cls, dataset: Dataset, weights: int, scratch: Scratch) -> Portions:
        """As many blocks as have no more than so many points, but at least one, and the folder around a scratch."""
        if weights >= dataset.n:
            return cls()
        size = max(1, weights // dataset.block_rows)
        firsts = range(0, dataset.blocks, size)
        return cls(tuple(tuple(range(first, min(first + size, dataset.blocks))) for first in firsts), scratch.folder.parent)


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
