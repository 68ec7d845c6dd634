"""Easy data: the sum of all signed unit points separates it, and the checker proves that before any method begins.

Reference: own; the first step of a perceptron that has every point wrong at 0.

    y <- the sum of the first block; more than ``WRONG`` of the last block on its wrong side: this data is not easy
    y <- the sum of all blocks; a point of the last block on its wrong side: it does not separate them
    the checker looks at all points with y: they are separated, or the run begins as it would have

Two reads of an array in memory then take the place of norms in float64, a sample, a solver and a pass, and the fingerprint is
that of the bytes that the checker has read. No margin is larger than |Ax| of equal weights, the length of the sum over n.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.data.storage.readers import Buffers, Stop, unless_stopped
from dfeas.linalg.points import Array, Floats, convert_entries, product, working_type
from dfeas.passes.block import in_precision
from dfeas.records import replace
from dfeas.run.recovery import separator
from dfeas.run.session import Session, Surveyed, note_checksums
from dfeas.run.task import Outcome, without_a_pass
from dfeas.verify.certificate import Check
from dfeas.verify.points import Points
from dfeas.verify.tallies import look_at, whole

WRONG = 0.015
"""Share of the last block: 0.007 to 0.010 with a margin of 0.01 of 200,000 x 100 points, which the sum of all separates, and
0.024 to 0.030 with one of 0.003, which it does not."""
TILE_BYTES = 1 << 19
"""Of points that stay in cache between their squares and their sum."""
SQUARES = 1e-20, 1e20
"""Of lengths that float32 measures."""


def prove_centroid(session: Session, method: str) -> tuple[Surveyed, Outcome] | None:
    """What the checker proves of the sum of points in memory, dense ones, in the place of a ``method``, and what takes that of
    a survey; None where it does not separate them, or is not worth being asked.
    """
    dataset, checking, last = session.dataset, session.checking, session.dataset.blocks - 1
    if dataset.header is not None or dataset.surveyed is not None or dataset.entries is not None or not dataset.in_memory:
        return None
    found, reads = _sum_range(dataset, 0, 1), 1.0
    if last:
        reads += 2 * dataset.block_rows / dataset.n
        if _share_wrong(*_read(dataset, last), found[0][0]) > WRONG:
            return None
        found = [sums for some in session.engine.map(_sum_range) for sums in some]
    total = np.sum([y for y, _, _ in found], axis=0)
    length = float(np.linalg.norm(total))
    if not (length > 0 and all(measured for _, _, measured in found)) or _share_wrong(*_read(dataset, last), total):
        return None
    certificate = replace(separator(total / length, ""), view=dataset.view)
    if checking.look(certificate) is None:
        return None
    shown = whole(checking.engine.map(look_at, Points(), [certificate], None))
    note_checksums(session, np.frombuffer(shown.checksums, "<u4").reshape(-1, 2))
    certificate = replace(certificate, fingerprint=dataset.fingerprint)
    check = checking.conclude(certificate, shown)
    if not isinstance(check, Check):
        return None
    outcome = without_a_pass(method, certificate, check, 1)
    outcome = replace(outcome, record=replace(outcome.record, margin_upper=length / dataset.n))
    return Surveyed(None, 1.0, reads, sum(positive for _, positive, _ in found)), outcome


def _read(dataset: Dataset, index: int) -> tuple[Array, NDArray[np.int8]]:
    """A block of points as products take them, before this thread reads another, and their signs."""
    points, label = dataset.points.read(index, Buffers()), dataset.labels.read(index, Buffers())
    return convert_entries(points, working_type(points.dtype)), dataset.signs(label)


def _sum_range(dataset: Dataset, first: int, stop: int, stopped: Stop | None = None) -> list[tuple[Floats, int, bool]]:
    return [_sum(dataset, *_read(dataset, index)) for index in unless_stopped(range(first, stop), stopped)]


def _sum(dataset: Dataset, points: Array, sign: NDArray[np.int8]) -> tuple[Floats, int, bool]:
    """The sum (dimension,) of signed unit points (b, m), how many are positive, and whether all lengths were measured."""
    (count, m), square = points.shape, np.empty(len(points), points.dtype)
    y, rows = np.zeros(dataset.dimension), max(1, TILE_BYTES // (points.itemsize * m))
    with np.errstate(all="ignore"):  # what is not measured is not used
        for first in range(0, count, rows):
            part, here = points[first : first + rows], slice(first, first + rows)
            np.einsum("ij,ij->i", part, part, out=square[here])
            scale = sign[here] / np.sqrt(square[here] + dataset.intercept)
            y[:m] += in_precision(scale, points.dtype == np.float32) @ part
            if dataset.intercept:
                y[m] += scale.sum()
    measured = bool(square.min() > SQUARES[0] and square.max() < SQUARES[1])  # false of what is no number
    return y, int((sign > 0).sum()), measured


def _share_wrong(points: Array, sign: NDArray[np.int8], y: Floats) -> float:
    """Of points (b, m), those whose score by y (dimension,) is not positive in their precision."""
    m = points.shape[1]
    direction = in_precision(y, points.dtype == np.float32)
    score = product(points, direction[:m])
    if len(y) > m:
        score += direction[m]
    return np.count_nonzero(score * sign <= 0) / len(score)
