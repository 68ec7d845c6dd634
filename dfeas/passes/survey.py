"""Survey: what must be known before a solve. Norms, non-finite entries, zero points, class counts, checksums."""

from __future__ import annotations

from dataclasses import dataclass

import crc32c
import numpy as np
from numpy.typing import NDArray

from dfeas.linalg.points import Points, any_entry, nonfinite, parts
from dfeas.passes.block import Block
from dfeas.passes.protocol import Plain

SHOWN = 5
"""How many positions of offending entries are kept."""

NORM_RANGE = (1e-130, 1e130)
"""Norms outside lose accuracy or overflow when they are squared, and the checker could prove nothing."""


def checksum(points: Points | NDArray[np.uint8]) -> int:
    """crc32c of the entries of an array in C order; of a CSR matrix indptr (as int64, from 0), indices and data follow."""
    found = 0
    for array in parts(points):
        found = int(crc32c.crc32c(np.ascontiguousarray(array).reshape(-1).view(np.uint8), found))
    return found


@dataclass(frozen=True, slots=True)
class Summary:
    """Facts about some points (partial and answer alike)."""

    points: int
    positive: int  # points with label +1
    nonfinite: int  # number of NaN and infinite entries
    first_nonfinite: tuple[tuple[int, int, float], ...]  # (point, feature, value), the first five
    zero: int  # number of zero points
    first_zero: tuple[int, ...]  # the first five
    extreme: int  # points whose norm is outside NORM_RANGE but which are not zero
    first_extreme: tuple[int, ...]  # the first five
    norm_min: float  # inf when there is no point
    norm_max: float
    checksums: tuple[tuple[int, int, int], ...]  # (start, crc32c of points, crc32c of int8 labels) of each block


EMPTY = Summary(0, 0, 0, (), 0, (), 0, (), np.inf, 0.0, ())


@dataclass(frozen=True, slots=True)
class Survey(Plain[Summary]):
    """Looks at every entry once."""

    def scan(self, block: Block) -> Summary:
        first_bad: tuple[tuple[int, int, float], ...] = ()
        norm, bad_entries = block.norm, 0
        if not np.isfinite(norm).all():
            point, feature, value = nonfinite(block.points)
            bad_entries = len(point)
            first_bad = tuple(
                (block.start + int(p), int(f), float(v))
                for p, f, v in zip(point[:SHOWN], feature[:SHOWN], value[:SHOWN], strict=True)
            )
        zero = np.flatnonzero(norm == 0)
        zero = zero[~any_entry(block.points[zero])]
        odd = norm > NORM_RANGE[1]
        if not block.intercept:  # with one no column is shorter than 1
            odd |= norm < NORM_RANGE[0]
        odd[zero] = False
        extreme = np.flatnonzero(odd) if not bad_entries else np.empty(0, np.int64)
        return Summary(
            block.size,
            int((block.label > 0).sum()),
            bad_entries,
            first_bad,
            len(zero),
            tuple(int(block.start + j) for j in zero[:SHOWN]),
            len(extreme),
            tuple(int(block.start + j) for j in extreme[:SHOWN]),
            float(norm.min(initial=np.inf)),
            float(norm.max(initial=0.0)),
            ((block.start, checksum(block.points), checksum(block.label)),),
        )

    def merge(self, first: Summary, second: Summary) -> Summary:
        return Summary(
            first.points + second.points,
            first.positive + second.positive,
            first.nonfinite + second.nonfinite,
            tuple(sorted(first.first_nonfinite + second.first_nonfinite, key=lambda e: e[:2])[:SHOWN]),
            first.zero + second.zero,
            tuple(sorted(first.first_zero + second.first_zero)[:SHOWN]),
            first.extreme + second.extreme,
            tuple(sorted(first.first_extreme + second.first_extreme)[:SHOWN]),
            min(first.norm_min, second.norm_min),
            max(first.norm_max, second.norm_max),
            tuple(sorted(first.checksums + second.checksums)),
        )
