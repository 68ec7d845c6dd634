"""What scores points and cones, in one read: hyperplanes, expansions of kernels, least eigenvalues."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them
from numpy.lib import format as npy
from numpy.typing import NDArray

from dfeas.data.cones import groups_of, least
from dfeas.data.dataset import Dataset, stored_rows
from dfeas.data.storage.files import placed
from dfeas.data.storage.readers import Cost, Stop, unless_stopped
from dfeas.engine.local import LocalEngine
from dfeas.engine.memory import threads_that_fit
from dfeas.errors import BadInputError
from dfeas.geometry.cones.softmin import exact_scores, factors
from dfeas.geometry.kernel.kernel import Function, Kernel, floating, scores
from dfeas.linalg.blas import processors
from dfeas.linalg.points import Floats, Points, dense, in_type, is_dense, row_slice
from dfeas.passes.block import Block, against
from dfeas.problem import parse_bytes
from dfeas.verify.certificate import Certificate

SCORES_BYTES = 8 << 20
"""Scores of all classes at a time."""
AT_ONCE = 1 << 16
"""Rows of cones whose scores are found at a time."""


@dataclass(frozen=True)
class Expansions:
    """Separators y = sum_i amount_i a_i of one kernel."""

    kernel: Kernel
    points: Points  # (s, m) of all of them
    amounts: Floats  # (s, k) of unit vectors without signs

    @classmethod
    def of(
        cls,
        trained: Dataset,
        certificates: Sequence[Certificate],
        codes: Sequence[int | None],
        function: Function | None = None,
    ) -> Expansions:
        """Those of certificates on data, each about the class of a code; None: labels are as the data is seen."""
        index = np.unique(np.concatenate([certificate.support for certificate in certificates]))
        points, labels = stored_rows(trained, index)
        amounts = np.zeros((len(index), len(certificates)))
        for column, (certificate, code) in enumerate(zip(certificates, codes, strict=True)):
            rows = np.searchsorted(index, certificate.support)
            signs = trained.signs(labels) if code is None else against(labels, code)
            amounts[rows, column] = certificate.weights * signs[rows]
        return cls(Kernel.from_text(certificates[0].kernel, function), floating(points), amounts)

    def scores(self, points: Points) -> Floats:
        """Scores (b, k) of points (b, m), which may be sparse or not, whatever those of the expansion are."""
        others = floating(points)
        if is_dense(others) != is_dense(self.points):
            others = scipy.sparse.csr_array(others) if is_dense(others) else dense(others)
        return scores(self.kernel, in_type(self.points, np.float64), self.amounts, others, False)


class Rule(Protocol):
    """How blocks are scored, and what follows from their scores."""

    def score(self, block: Block) -> tuple[NDArray[Any], ...]:
        """Of its points, or cones, in order: what a file gets, then scores, unless they are that, then labels, or codes."""


@dataclass(frozen=True)
class Sign:
    """Scores under one direction: above 0 is the positive class."""

    direction: Floats | Expansions  # (m,), or (m+1,) with the intercept last

    def score(self, block: Block) -> tuple[NDArray[Any], ...]:
        if isinstance(self.direction, Expansions):
            return self.direction.scores(block.points)[:, 0], block.label.copy()
        y, m, score = self.direction, block.points.shape[1], np.empty(block.size)
        for rows in block.tiles():
            score[rows] = block.tile(rows, False) @ y[:m]
        return score + float(y[m:].sum()), block.label.copy()


@dataclass(frozen=True)
class Largest:
    """The class whose direction gives the largest score, the first one of equal scores."""

    directions: Floats | Expansions  # (m, k), or (m+1, k)

    def score(self, block: Block) -> tuple[NDArray[Any], ...]:
        Y, m = self.directions, block.points.shape[1]
        at_once = max(1, SCORES_BYTES // (8 * max(Y.amounts.shape if isinstance(Y, Expansions) else Y.shape)))
        best, most = np.empty(block.size, np.int16), np.empty(block.size)
        for start in range(0, block.size, at_once):
            rows = slice(start, start + at_once)
            points = row_slice(block.points, rows)
            score = Y.scores(points) if isinstance(Y, Expansions) else points.astype(np.float64) @ Y[:m] + Y[m:].sum(axis=0)
            best[rows] = place = score.argmax(axis=1)
            most[rows] = np.take_along_axis(score, place[:, None], axis=1)[:, 0]
        return best, most, block.label.copy()


@dataclass(frozen=True)
class LeastEigenvalue:
    """Where A*y lies in each cone: its least eigenvalue, over the norm of the cone."""

    y: Floats  # (m,) of unit length

    def score(self, block: Block) -> tuple[NDArray[Any], ...]:
        factor, value = factors(block), np.empty(block.size)
        for group in groups_of(block.label):
            at_once = max(1, AT_ONCE // group.dimension)
            for start in range(0, len(group.starts), at_once):
                rows = group.rows(slice(start, start + at_once))
                value[rows[:, 0]] = least(group.kind, group.size, exact_scores(block, rows, self.y, factor))
        starts = np.flatnonzero(block.label > 0)
        return value[starts], block.label[starts].astype(np.int32)


def read_once(dataset: Dataset, rule: Rule, memory: str | int, out: str | Path | None) -> list[NDArray[Any]]:
    """What a rule gives of all blocks, in the order of the points; the first array is written to ``out``, a .npy file.

    Raises BadInputError when a score is not finite.
    """
    with closing(LocalEngine(dataset, threads_that_fit(dataset, parse_bytes(memory), processors()))) as engine:
        parts = engine.map(_score_range, rule)
    arrays = [np.concatenate(each) for each in zip(*parts, strict=True)]
    wrong = ~np.isfinite(arrays[-2])
    if wrong.any():
        raise BadInputError(f"{dataset.where}: point {int(wrong.argmax())} has entries that are not finite")
    if out is not None:
        with placed(Path(out)) as file:
            npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(arrays[0]))
            file.write(arrays[0].data)  # np.save does not say why it could not
    return arrays


def _score_range(dataset: Dataset, first: int, stop: int, rule: Rule, stopped: Stop | None = None) -> tuple[NDArray[Any], ...]:
    blocks = unless_stopped(dataset.read_blocks(range(first, stop), Cost()), stopped)
    return tuple(np.concatenate(each) for each in zip(*(rule.score(block) for block in blocks), strict=True))
