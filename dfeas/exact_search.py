"""Which points conflict and which a hyperplane has strictly beyond it, exactly, for data of any length.

A working set holds some points in integers. Their partition (``dfeas.proof.partition``) gives weights of a conflict, which is
one of all points, and a hyperplane; one read says, exactly, which points are not as it says; the worst of them are taken in,
until there are none. Points are never dropped, so it ends; the read that finds nothing is the proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfeas.closed import Wanted, dimension_of, look, rows
from dfeas.errors import DfeasError
from dfeas.kinds import COMPLETE, OVERLAP, QUASI
from dfeas.proof.dyadic import Integers, common
from dfeas.proof.linear import independent, nullspace, primitive
from dfeas.proof.partition import Partition, StoppedError, partition
from dfeas.setting import Checking

FIRST = 6
"""Points of the first working set for each dimension."""
TAKEN = 4
"""Points for each dimension that a read takes in."""
MOST = 1500
"""Features: of more the first working set, dense and in integers, takes gigabytes."""
LEAST = 64
"""Points that are worth a read."""

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Face:
    """What is proved of all points."""

    kind: str
    y: Integers | None  # (d,) y'a_j >= 0 for all points, > 0 for as many as any y has beyond its hyperplane
    on: int  # points on its hyperplane, which conflict
    support: Indices  # (s,) points that conflict, ascending
    weights: Integers  # (s,) positive, with a zero sum
    rank: int  # of the support; of all points where they overlap
    flat: Integers  # (d, k) a basis of what is orthogonal to all points, where they overlap: features that depend on each other
    reads: int


def search(checking: Checking, start: Indices, stop: Callable[[], bool], most_reads: float) -> Face | str:
    """The kind of all points, with evidence; or why it was not decided.

    ``start`` are points that are thought to conflict; ``stop`` is asked between steps.
    """
    data = checking.dataset
    n, d = data.n, dimension_of(data)
    if d > MOST:
        return f"{d} features are more than the {MOST} that the exact search is for"
    extra = np.arange(n, n + int(d != data.dimension))
    if not len(start):
        start = _spread(n, d)
    chosen, reads = np.union1d(start, extra), 0
    while True:
        some = rows(data, chosen)
        points, exponent = common(some if isinstance(some, np.ndarray) else some.toarray())
        try:
            found = partition(points, stop)
        except StoppedError:
            return "it was asked to stop, or time was up, between exact steps"
        wanted = _wanted(points, exponent, found)
        if found.y is None and wanted.across is None:
            return _face(OVERLAP, chosen, points, found, wanted, 0, reads)
        if reads >= most_reads:
            return "the limit of passes was reached"
        sides = look(checking.engine, data, data.fingerprint, wanted, take=max(LEAST, TAKEN * d))
        reads += 1
        if not sides.missed:
            kind = COMPLETE if wanted.strict else OVERLAP if found.y is None else QUASI
            return _face(kind, chosen, points, found, wanted, sides.on, reads)
        more = [np.array([point for _, point in sides.missed])]
        if reads == 1:
            more.append(_spread(n, d))
        before, chosen = len(chosen), np.union1d(chosen, np.concatenate(more))
        if len(chosen) == before:
            raise DfeasError("the exact search took in no new point: please report this")


def _wanted(points: Integers, exponent: NDArray[np.int64], found: Partition) -> Wanted:
    """Where all points should be if they are as these: on the hyperplane and in what the conflict spans, or beyond it."""
    y = None if found.y is None else _unscaled(found.y[:, None], exponent)[:, 0]
    if not found.weights.any():
        return Wanted(y, strict=True)
    support = points[np.flatnonzero(found.weights)]
    across = nullspace(support[independent(support)])
    return Wanted(y, _unscaled(across, exponent) if across.shape[1] else None)


def _unscaled(vectors: Integers, exponent: NDArray[np.int64]) -> Integers:
    """Vectors (d, k) for the stored features, the integer ones times 2**exponent; each as short as integers can be."""
    shift = (exponent.max() - exponent).astype(object)
    return np.array([primitive((column << shift).tolist()) for column in vectors.T], object).T


def _face(kind: str, chosen: Indices, points: Integers, found: Partition, wanted: Wanted, on: int, reads: int) -> Face:
    place = np.flatnonzero(found.weights)
    d = points.shape[1]
    none = np.zeros((d, 0), object)
    flat = none if wanted.across is None else wanted.across
    rank = 0 if wanted.strict else d - flat.shape[1]
    return Face(
        kind=kind,
        y=wanted.y,
        on=on if kind == QUASI else 0,
        support=chosen[place],
        weights=found.weights[place],
        rank=rank,
        flat=flat if kind == OVERLAP else none,
        reads=reads,
    )


def _spread(n: int, d: int) -> Indices:
    """Points at equal distances: all of few."""
    count = min(n, max(LEAST, FIRST * d))
    return np.unique(np.linspace(0, n - 1, count).astype(np.int64))
