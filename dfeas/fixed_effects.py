"""Which points conflict and which a hyperplane has strictly beyond it, exactly, where most features are levels of one effect.

As ``dfeas.exact_search``, in the dimensions of the other features only: a working set of pairs of points within levels
(``dfeas.proof.levels``), its partition, and a look at all points, which tells the worst pair of each level that is not so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import DfeasError
from dfeas.exact_search import FIRST, LEAST, TAKEN, Face
from dfeas.kinds import COMPLETE, OVERLAP, QUASI
from dfeas.proof.dyadic import Integers
from dfeas.proof.levels import Gaps, Levels, Pairs, flat, lifted, outside
from dfeas.proof.linear import independent, nullspace, primitive
from dfeas.proof.partition import Partition, StoppedError, extended, partition

MOST = 1000
"""Features beside the levels that this is for."""


@dataclass(frozen=True)
class Found:
    """The kind of all points, with evidence."""

    face: Face
    conflict: tuple[NDArray[np.int64], Integers]  # few points and their weights, where there is a conflict


def decide(levels: Levels, stop: Callable[[], bool]) -> Found | None:
    """What is proved of all points; None when ``stop`` said so."""
    pairs = levels.spread(max(LEAST, FIRST * len(levels.columns)))
    reads, strict = 0, True
    while True:
        points = levels.integers(pairs)
        try:
            found = partition(points, stop, separable=strict)
        except StoppedError:
            return None
        support = points[np.flatnonzero(found.weights)]
        across = nullspace(support[independent(support)])
        strict = not found.weights.any()
        gaps, reads = Gaps.of(levels, found.y), reads + 1
        more = _missed(levels, gaps, across, strict)
        if not len(more):
            face = _face(levels, pairs, points, found, gaps, across, reads)
            return Found(face, _of_points(levels, pairs, found.weights))
        before, pairs = len(pairs), np.unique(np.vstack([pairs, more]), axis=0)
        if len(pairs) == before:
            raise DfeasError("the exact search took in no new pair: please report this")


def _missed(levels: Levels, gaps: Gaps, across: Integers, strict: bool) -> Pairs:
    """Pairs that are not as they should be: the worst, or some of those on the hyperplane that should not be there."""
    take = max(LEAST, TAKEN * len(levels.columns))
    wrong = np.flatnonzero(gaps.sign < 0)
    found: Pairs
    if len(wrong):
        found = gaps.least[wrong[np.argsort(gaps.share[wrong], kind="stable")[:take]]]
    elif strict:
        found = gaps.least[gaps.sign == 0]
    else:
        found = outside(levels, gaps, across)
    return found[np.unique(np.linspace(0, len(found) - 1, min(len(found), take)).astype(np.int64))]


def _face(levels: Levels, pairs: Pairs, points: Integers, found: Partition, gaps: Gaps, across: Integers, reads: int) -> Face:
    """What is proved, for all features."""
    on = int((gaps.on < len(levels.row)).sum())
    if found.y is None and not levels.one_sided.any():
        basis = _shortened(flat(levels, across))
        pairs, weights = _on_all_levels(levels, pairs, points, found.weights)
        return Face(OVERLAP, None, 0, *_of_points(levels, pairs, weights), levels.d - basis.shape[1], basis, reads)
    (y,) = _shortened(lifted(levels, found.y)[:, None]).T
    kept = found.weights > 0
    level = np.unique(levels.level[levels.side[pairs[kept, 0]]])
    rank = int((level >= 0).sum()) + len(levels.columns) - across.shape[1] if kept.any() else 0
    none = np.zeros((levels.d, 0), object)
    return Face(QUASI if on else COMPLETE, y, on, *_of_points(levels, pairs, found.weights), rank, none, reads)


def _shortened(vectors: Integers) -> Integers:
    """Vectors (d, k), each without what its entries have in common."""
    return np.array([primitive(column) for column in vectors.T.tolist()], object).reshape(-1, len(vectors)).T


def _on_all_levels(levels: Levels, pairs: Pairs, points: Integers, weights: Integers) -> tuple[Pairs, Integers]:
    """Pairs of a conflict and positive weights, with one of each level: their sum is in what the others span."""
    support = np.flatnonzero(weights)
    there = np.isin(levels.joint[:, 0], levels.side[pairs[support]]) | (levels.level[levels.joint[:, 0]] < 0)
    more = levels.first[levels.joint[~there]]
    total = levels.sum(more)
    times = 1
    if total.any():
        basis = support[independent(points[support])]
        last = np.append(np.zeros(len(points), object), 1)
        every = extended(np.vstack([points, total]), np.append(weights, 0), last, basis)
        weights, times = every[:-1], int(every[-1])
    return np.vstack([pairs, more]), np.append(weights, np.full(len(more), times, object))


def _of_points(levels: Levels, pairs: Pairs, weights: Integers) -> tuple[NDArray[np.int64], Integers]:
    """Points of the data, ascending, and their weights, from weights of pairs."""
    total = np.zeros(len(levels.row) + 1, object)
    for side in pairs.T:
        np.add.at(total, side, weights)
    kept = np.flatnonzero(total[:-1])
    order = np.argsort(levels.row[kept])
    return levels.row[kept][order], total[kept][order]
