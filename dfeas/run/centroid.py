"""The sum of all signed unit points in memory: it separates easy data, and the checker proves that before any method begins.

Reference: own; the first step of a perceptron that has every point wrong at 0.

    y <- the sum of the first block; too many of the last one on its wrong side (``HARD``): the run begins with a survey
    y <- the sum of all blocks
    few of the last block on the wrong side of the first sum (``EASY``), none on that of y: the checker looks at all with y
    else all points are solved as columns in memory, from where y stands: a separator, or a conflict      run/columns.py
    what the checker proves of one of these ends the run; else the run begins with a survey

These reads take the place of norms in float64, a sample, a solver and passes, and the fingerprint is that of the bytes that the
checker has read. No margin is larger than |Ax| of equal weights, the length of the sum over n.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.answers.words import EPS_INFEASIBLE
from dfeas.data.dataset import Dataset
from dfeas.data.storage.readers import Buffers, Stop, unless_stopped
from dfeas.linalg.points import Array, Floats, convert_entries, working_type
from dfeas.methods.protocol import Bracket, Evidence
from dfeas.records import replace
from dfeas.run.columns import ColumnSolver, scores
from dfeas.run.recovery import separator
from dfeas.run.session import Session, Surveyed, note_checksums
from dfeas.run.task import Outcome, without_a_pass
from dfeas.verify.certificate import Certificate, Check
from dfeas.verify.points import Points
from dfeas.verify.tallies import look_at, whole

EASY, HARD = 0.15, 0.6
"""Share of the last block, times the root of m over the points of the first, by which a sum of so many is off: 0.07 to 0.11
with a margin of 0.01 of 200,000 x 100 points, which the sum of all separates, 0.23 to 0.31 with one of 0.003, which it does
not, and 0.30 to 0.41 of half-spaces of 30 to 1000 features; 1.3 where a tenth of the labels is wrong."""
TILE_BYTES = 1 << 19
"""Of points that stay in cache between their squares and their sum."""
SQUARES = 1e-20, 1e20
"""Of lengths that float32 measures."""


class Sums(Struct, frozen=True, eq=False):
    """Of some points."""

    total: Floats  # (dimension,) of signed unit points
    positive: int  # points with label +1
    measured: bool  # whether all lengths are in the range of ``SQUARES``
    scale: Array  # (b,) signs over lengths, in the precision of products

    @classmethod
    def join(cls, parts: list[Sums]) -> Sums:
        total, positive = np.sum([each.total for each in parts], axis=0), sum(each.positive for each in parts)
        measured = all(each.measured for each in parts)
        return cls(total, positive, measured, np.concatenate([each.scale for each in parts]))


def ask_centroid(session: Session, method: str, columns: ColumnSolver | None) -> tuple[Surveyed, Outcome | None]:
    """What the checker proves of the sum of points in memory, dense ones, in the place of a ``method``, or of what they show as
    ``columns`` from there, and what takes the place of a survey; of data where neither tells its reads. There are several
    blocks: few points have the same separator as an array, sparse or in a file.
    """
    dataset, last = session.dataset, session.dataset.blocks - 1
    sums, reads = _sum(dataset, 0), 2 * dataset.block_rows / dataset.n
    wrong = _share_wrong(*_read(dataset, last), sums.total) / math.sqrt(dataset.m / dataset.block_rows)
    easy = wrong <= EASY
    if not (easy or (columns is not None and (columns.narrow or wrong <= HARD))):
        return Surveyed(None, 1.0, reads), None
    reads += 1
    sums = Sums.join([sums, *(each for some in session.engine.map(_sum_range) for each in some)])
    length = float(np.linalg.norm(sums.total))
    y = sums.total / max(length, np.finfo(np.float64).tiny)
    certificate, outcome = replace(separator(y, ""), view=dataset.view), None
    if length > 0 and sums.measured and session.checking.look(certificate) is not None:
        if easy and not _share_wrong(*_read(dataset, last), y):
            outcome = _prove(session, method, certificate, Evidence(Bracket(upper=length / dataset.n), None, 0))
            reads += outcome is None  # a check that is in vain
        if outcome is None and columns is not None:
            reads += 1
            found = columns.solve(dataset, y, sums.scale)
            if found is not None:
                outcome = _prove(session, method, replace(found.certificate, view=dataset.view), found.evidence)
                reads += outcome is None
    return Surveyed(None, 1.0, reads, sums.positive), outcome


def _prove(session: Session, method: str, certificate: Certificate, evidence: Evidence) -> Outcome | None:
    """What the checker proves of a certificate in one read; both ends of the bracket may be wrong by what sums lose."""
    dataset, checking = session.dataset, session.checking
    shown = whole(checking.engine.map(look_at, Points(), [certificate], None))
    note_checksums(session, np.frombuffer(shown.checksums, "<u4").reshape(-1, 2))
    certificate = replace(certificate, fingerprint=dataset.fingerprint)
    check = checking.conclude(certificate, shown)
    if not isinstance(check, Check) or check.verdict == EPS_INFEASIBLE:
        return None
    outcome, lost = without_a_pass(method, certificate, check, 1), _lost(dataset)
    lower, upper = max(-1.0, evidence.bracket.lower - lost), min(1.0, evidence.bracket.upper + lost)
    record = replace(outcome.record, margin_lower=lower, margin_upper=upper, iterations=evidence.iterations)
    return replace(outcome, record=record, evidence=evidence)


def _lost(dataset: Dataset) -> float:
    """How far the mean of signed unit points may be from what was summed, by the precision of products and of sums of tiles."""
    rows = _tile_rows(dataset.m, working_type(dataset.dtype).itemsize)
    single = working_type(dataset.dtype) == np.float32
    roundings = (dataset.m + rows + 8) * 2.0 ** (-24 if single else -53) + (dataset.n / rows + dataset.blocks + 8) * 2.0**-53
    return roundings / (1 - roundings)


def _tile_rows(m: int, itemsize: int) -> int:
    # 4096: a sum of more rows would lose more
    return max(1, min(TILE_BYTES // (itemsize * m), 4096))


def _read(dataset: Dataset, index: int) -> tuple[Array, NDArray[np.int8]]:
    """A block of points as products take them, before this thread reads another, and their signs."""
    points, label = dataset.points.read(index, Buffers()), dataset.labels.read(index, Buffers())
    return convert_entries(np.asarray(points), working_type(points.dtype)), dataset.signs(label)


def _sum_range(dataset: Dataset, first: int, stop: int, stopped: Stop | None = None) -> list[Sums]:
    """Of some blocks, without the first one of all, whose sum is known."""
    return [_sum(dataset, index) for index in unless_stopped(range(max(1, first), stop), stopped)]


def _sum(dataset: Dataset, index: int) -> Sums:
    """Of a block."""
    points, sign = _read(dataset, index)
    (count, m), square, scale = points.shape, np.empty(len(points), points.dtype), np.empty(len(points), points.dtype)
    y, rows = np.zeros(dataset.dimension), _tile_rows(m, points.itemsize)
    with np.errstate(all="ignore"):  # what is not measured is not used
        for first in range(0, count, rows):
            part, here = points[first : first + rows], slice(first, first + rows)
            np.einsum("ij,ij->i", part, part, out=square[here])
            np.divide(sign[here], np.sqrt(square[here] + points.dtype.type(dataset.intercept)), out=scale[here])
            y[:m] += scale[here] @ part
            if dataset.intercept:
                y[m] += scale[here].sum()
    measured = bool(square.min() > SQUARES[0] and square.max() < SQUARES[1])  # false of what is no number
    return Sums(y, int((sign > 0).sum()), measured, scale)


def _share_wrong(points: Array, sign: NDArray[np.int8], y: Floats) -> float:
    """Of points (b, m), those whose score by y is not positive in their precision."""
    return np.count_nonzero(scores(points, y) * sign <= 0) / len(points)
