"""The sum of all signed unit points in memory: it separates easy data, and the checker proves that before any method begins.

Reference: own; the first step of a perceptron that has every point wrong at 0.

    y <- the sum of the first block; too many of the last one on its wrong side (``HARD``): the run begins with a survey
    y <- the sum of all blocks, unless a point is far on the wrong side of the first one (``FAR``): a wrong label
    few of the last block on the wrong side of the first sum (``EASY``), none on that of y: the checker looks at all with y
    it separates them: no method has to work; else a working set begins with the lowest by y, where that is less to solve

Two reads then take the place of norms in float64, a sample, a solver and a pass, and the fingerprint is that of the bytes that
the checker has read. No margin is larger than |Ax| of equal weights, the length of the sum over n.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.data.storage.readers import Buffers, Stop, unless_stopped
from dfeas.errors import CheckFailedError
from dfeas.linalg.points import Array, Floats, convert_entries, product, working_type
from dfeas.methods.protocol import Start
from dfeas.passes.block import in_precision
from dfeas.records import replace
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
FAR = 8.0
"""Cosine with the sum of b points, times the root of b, beyond which a point on the wrong side stays there when others join."""
TILE_BYTES = 1 << 19
"""Of points that stay in cache between their squares and their sum."""
SQUARES = 1e-20, 1e20
"""Of lengths that float32 measures."""


def ask_centroid(session: Session, method: str, band: int) -> tuple[Surveyed | None, Outcome | None]:
    """What the checker proves of the sum of points in memory, dense ones, in the place of a ``method``, and what takes that of
    a survey; of data that is not easy its reads, and the sum, if the method takes a ``band`` of columns by it. Nothing of other
    data, nor of a single block: few points have the same separator as an array, sparse or in a file.
    """
    dataset, last = session.dataset, session.dataset.blocks - 1
    apt = dataset.in_memory and dataset.header is None and dataset.surveyed is None and dataset.entries is None
    if not apt or last == 0:
        return None, None
    reads = 2 * dataset.block_rows / dataset.n
    ((start, _, _),) = _sum_range(dataset, 0, 1)
    wrong = _share_wrong(*_read(dataset, last), start) / math.sqrt(dataset.m / dataset.block_rows)
    easy = wrong <= EASY
    if not (easy or (band and wrong <= HARD)):
        return Surveyed(None, 1.0, reads), None
    reads += 1
    try:
        found = [sums for some in session.engine.map(_sum_range, start) for sums in some]
    except CheckFailedError:
        return Surveyed(None, 1.0, reads), None
    total = np.sum([y for y, _, _ in found], axis=0)
    length = float(np.linalg.norm(total))
    if not (length > 0 and all(measured for _, _, measured in found)):
        return Surveyed(None, 1.0, reads), None
    outcome, y = None, total / length
    certificate = replace(separator(y, ""), view=dataset.view)
    if easy and session.checking.look(certificate) is not None and not _share_wrong(*_read(dataset, last), y):
        outcome = _prove(session, method, certificate, min(1.0, length / dataset.n + _lost(dataset)))
        reads += outcome is None  # a check that is in vain
    positive = sum(each for _, each, _ in found)
    return Surveyed(None, 1.0, reads, positive, Start(y, band=band) if band else None), outcome


def _prove(session: Session, method: str, certificate: Certificate, upper: float) -> Outcome | None:
    """What the checker proves of a separator in one read; no margin is above ``upper``."""
    dataset, checking = session.dataset, session.checking
    shown = whole(checking.engine.map(look_at, Points(), [certificate], None))
    note_checksums(session, np.frombuffer(shown.checksums, "<u4").reshape(-1, 2))
    certificate = replace(certificate, fingerprint=dataset.fingerprint)
    check = checking.conclude(certificate, shown)
    if not isinstance(check, Check):
        return None
    outcome = without_a_pass(method, certificate, check, 1)
    return replace(outcome, record=replace(outcome.record, margin_upper=upper))


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


def _sum_range(
    dataset: Dataset, first: int, stop: int, known: Floats | None = None, stopped: Stop | None = None
) -> list[tuple[Floats, int, bool]]:
    """Of some blocks. Raises CheckFailedError where a point is so far on the wrong side of a ``known`` sum that the sum of all
    will have it there as well.
    """
    return [_sum(dataset, *_read(dataset, index), known) for index in unless_stopped(range(first, stop), stopped)]


def _sum(dataset: Dataset, points: Array, sign: NDArray[np.int8], known: Floats | None) -> tuple[Floats, int, bool]:
    """The sum (dimension,) of signed unit points (b, m), how many are positive, and whether all lengths were measured."""
    (count, m), square = points.shape, np.empty(len(points), points.dtype)
    y, rows = np.zeros(dataset.dimension), _tile_rows(m, points.itemsize)
    bar = 0.0 if known is None else -FAR * float(np.linalg.norm(known)) / math.sqrt(dataset.block_rows)
    with np.errstate(all="ignore"):  # what is not measured is not used
        for first in range(0, count, rows):
            part, here = points[first : first + rows], slice(first, first + rows)
            np.einsum("ij,ij->i", part, part, out=square[here])
            scale = sign[here] / np.sqrt(square[here] + dataset.intercept)
            y[:m] += in_precision(scale, points.dtype == np.float32) @ part
            if dataset.intercept:
                y[m] += scale.sum()
            if known is not None and (_scores(part, known) * scale).min() < bar:
                raise CheckFailedError("a point is far on the wrong side")
    measured = bool(square.min() > SQUARES[0] and square.max() < SQUARES[1])  # false of what is no number
    return y, int((sign > 0).sum()), measured


def _share_wrong(points: Array, sign: NDArray[np.int8], y: Floats) -> float:
    """Of points (b, m), those whose score by y is not positive in their precision."""
    return np.count_nonzero(_scores(points, y) * sign <= 0) / len(points)


def _scores(points: Array, y: Floats) -> Array:
    """Products (b,) of points (b, m), maybe with an intercept, and y (dimension,) in their precision."""
    direction, m = in_precision(y, points.dtype == np.float32), points.shape[1]
    score = product(points, direction[:m])
    if len(y) > m:
        score += direction[m]
    return score
