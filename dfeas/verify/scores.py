"""Scores of points under a direction with bounds of their errors, and what else a run says of its points: how far they reach,
and how many are of each class.

Every block that is read here is compared with what it should be: where nothing else says that, with the fingerprint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfeas.data.storage.readers import Buffers, Stop, unless_stopped
from dfeas.errors import CheckFailedError, CorruptDataError
from dfeas.verify.arithmetic import TINY, UP, gamma
from dfeas.verify.blocks import Data, Maps, blocks, compare, crc, read, signs_of
from dfeas.verify.certificate import Certificate
from dfeas.verify.points import Sight
from dfeas.verify.view import SignedBlock

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


def scores(data: Data, certificate: Certificate) -> tuple[Floats, Floats]:
    """Scores (s,) of the unit columns of the support under the certificate's y, and bounds of their errors."""
    sight, support, buffers = Sight.of(data, [certificate]), np.asarray(certificate.support), Buffers()
    parts = []
    for index in np.unique(support // data.block_rows).tolist():
        block = read(data, index, buffers, (data.stored or data).points)
        here = support[support // data.block_rows == index] - block.start
        signed = sight.sign_block(block, sight.codes[0])
        score, error, norm = _score_rows(signed, here, certificate.y)
        size = norm if signed.length is None else np.full(len(here), signed.length)
        with np.errstate(divide="ignore", invalid="ignore"):
            parts.append((score / size, error / size * UP + 2 * gamma(len(certificate.y) + 8) * np.abs(score / size)))
    score, error = (np.concatenate(each) for each in zip(*parts, strict=True))
    return score, error


def _score_rows(block: SignedBlock, rows: Rows, y: Floats) -> tuple[Floats, Floats, Floats]:
    """l_j z_j'y (r,) of some points as they are seen, bounds of their errors, and lengths."""
    points = block.wide(rows)
    terms = points.terms + block.roundings + 1
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        error = gamma(terms) * (1 + 2 * gamma(terms)) * points.magnitude(np.arange(len(rows)), y) * UP
        error += 4 * terms * TINY * (1 + float(np.abs(y).max()))
        return points.score(y) * block.label[rows], error, points.norm()


@dataclass(frozen=True)
class Reach:
    """How near to a hyperplane and how far from the origin points are, as they are seen."""

    low: float  # the least l_j z_j'y is not below this,
    high: float  # and not above this
    longest: float  # length of a point, rounded


def reach(engine: Maps, data: Data, certificate: Certificate) -> Reach:
    """Of all points and a separator, in one read. Raises CorruptDataError when it was made for other data."""
    parts = engine.map(_reach_of_range, certificate)
    compare(data, b"".join(checksums for checksums, _ in parts), certificate.fingerprint, certificate.view)
    low, high, longest = np.array([each for _, some in parts for each in some]).T
    return Reach(float(low.min()), float(high.min()), float(longest.max()))


def _reach_of_range(
    data: Data, first: int, stop: int, certificate: Certificate, stopped: Stop | None = None
) -> tuple[bytes, list[tuple[float, float, float]]]:
    sight, checksums, found = Sight.of(data, [certificate]), b"", []
    for _, block in blocks(data, range(first, stop), stopped, (data.stored or data).points):
        checksums += block.checksums
        signed = sight.sign_block(block, sight.codes[0])
        for rows in _pieces(signed, len(certificate.y)):
            score, error, norm = _score_rows(signed, rows, certificate.y)
            low, high = score - error, score + error
            if not np.isfinite(high).all():
                raise CheckFailedError(f"{data.where}: a score is too large to be bounded")
            found.append((float(low.min()), float(high.min()), float(norm.max())))
    return checksums, found


def _pieces(block: SignedBlock, dimension: int) -> Iterator[Rows]:
    size = block.piece(dimension)
    return (np.arange(first, min(first + size, block.size)) for first in range(0, block.size, size))


def positives(engine: Maps, data: Data) -> int:
    """How many points have the label +1, by a read of all labels.

    Raises CorruptDataError where labels are not what their ingest wrote.
    """
    return sum(engine.map(_positives_of_range, data.positive))


def _positives_of_range(data: Data, first: int, stop: int, code: int | None, stopped: Stop | None = None) -> int:
    base, buffers, count = data.stored or data, Buffers(), 0
    expected = None if base.header is None else base.expected
    together = data.block_rows // data.chunk_rows
    for index in unless_stopped(range(first, stop), stopped):
        label = data.labels.read(index, buffers)
        for place in range(-(-len(label) // data.chunk_rows)):
            chunk, rows = index * together + place, slice(place * data.chunk_rows, (place + 1) * data.chunk_rows)
            if expected is not None and crc(label[rows]) != expected[chunk, 1]:
                raise CorruptDataError(f"{data.where}: chunk {chunk} of label is damaged; restore or ingest again")
        count += int((signs_of(label, code) > 0).sum())
    return count
