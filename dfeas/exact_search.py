"""Which points conflict and which a hyperplane has strictly beyond it, exactly, for data of any length.

A working set holds some points in integers. Their partition (``dfeas.proof.partition``) gives weights of a conflict, which is one
of all points, and a hyperplane; one read says, exactly, which points are not as it says; the worst of them are taken in, until
there are none. Columns are never dropped, so it ends; the read that finds nothing is the proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfeas.closed import Sides, dimension_of, look, rows
from dfeas.errors import DfeasError
from dfeas.proof.dyadic import Integers, common
from dfeas.proof.linear import independent, nullspace, primitive
from dfeas.proof.partition import Partition, StoppedError, partition
from dfeas.setting import Checking

COMPLETE, QUASI, OVERLAP = "complete", "quasi-complete", "overlap"

FIRST = 6
"""Points of the first working set for each dimension."""
TAKEN = 4
"""Points for each dimension that a read takes in."""
LEAST = 64
"""Points that are worth a read."""

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Face:
    """What is proved of all points."""

    kind: str
    y: Integers | None  # (d,) y'a_j >= 0 for all points, > 0 for some
    on: int  # points on its hyperplane
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
    extra = np.arange(n, n + int(d != data.dimension))
    if not len(start):
        start = _spread(n, d)
    chosen, reads = np.union1d(start, extra), 0
    while True:
        points, exponent = common(rows(data, chosen))
        try:
            found = partition(points, stop)
        except StoppedError:
            return "it was asked to stop, or time was up, between exact steps"
        vectors, strict = _asked(points, found), not found.weights.any()
        if vectors is None:
            return _face(OVERLAP, chosen, points, exponent, found, None, reads)
        if reads >= most_reads:
            return "the limit of passes was reached"
        vectors = _unscaled(vectors, exponent)
        sides = look(checking.engine, data, data.fingerprint, vectors, strict=strict, take=max(LEAST, TAKEN * d))
        reads += 1
        if not sides.missed:
            kind = COMPLETE if strict else OVERLAP if found.y is None else QUASI
            return _face(kind, chosen, points, exponent, found, sides, reads)
        more = [np.array([point for _, point in sides.missed])]
        if reads == 1:
            more.append(_spread(n, d))
        before, chosen = len(chosen), np.union1d(chosen, np.concatenate(more))
        if len(chosen) == before:
            raise DfeasError("the exact search took in no new point: please report this")


def _asked(points: Integers, found: Partition) -> Integers | None:
    """The hyperplane that all points are held against, or, where these overlap, a basis (d, k) of what they do not span; None
    when they span everything.
    """
    if found.y is not None:
        return found.y
    support = points[np.flatnonzero(found.weights)]
    flat = nullspace(support[independent(support)])
    return flat if flat.shape[1] else None


def _unscaled(vectors: Integers, exponent: NDArray[np.int64]) -> Integers:
    """In the stored features, which are the integer ones times 2**exponent, each column times the same power of two."""
    shift = (exponent.max() - exponent).astype(object)
    if vectors.ndim == 1:
        return np.array(primitive((vectors << shift).tolist()), object)
    return np.array([primitive((column << shift).tolist()) for column in vectors.T], object).T


def _face(
    kind: str, chosen: Indices, points: Integers, exponent: NDArray[np.int64], found: Partition, sides: Sides | None, reads: int
) -> Face:
    place = np.flatnonzero(found.weights)
    y = None if found.y is None else _unscaled(found.y, exponent)
    support = points[place]
    basis = support[independent(support)] if len(place) else support
    flat = np.zeros((points.shape[1], 0), object)
    if kind == OVERLAP and len(basis) < points.shape[1]:
        flat = _unscaled(nullspace(basis), exponent)
    on = sides.on if kind == QUASI and sides is not None else 0
    return Face(kind, y, on, chosen[place], found.weights[place], len(basis), flat, reads)


def _spread(n: int, d: int) -> Indices:
    """Points at equal distances: all of few."""
    count = min(n, max(LEAST, FIRST * d))
    return np.unique(np.linspace(0, n - 1, count).astype(np.int64))
