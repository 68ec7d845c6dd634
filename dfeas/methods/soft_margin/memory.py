"""What a soft margin keeps in memory: vectors of all problems, systems of equations, and points."""

from __future__ import annotations

import math

from dfeas.methods.protocol import Facts
from dfeas.methods.soft_margin.band import DIRECT, DIRECT_SPARSE

VECTORS = 11
"""m-vectors of each problem: in the state, in what a pass asks, and in the partials of its answer."""

LEAST = 1000
"""Points with which a soft margin can work, where m + 2 are more."""

FEW = 20_000
"""Up to so many points the hinge keeps all."""

SAMPLE = 20_000
"""Points of the sample of the squared hinge, at most."""

MATRICES = 8
"""Copies of the curvature: in partials of an answer, and where it is solved with."""


def capacity(facts: Facts, k: int) -> int:
    """Points that memory holds beside k problems; at least 1."""
    return max(1, round((facts.memory - _fixed(facts, k)) / _point_bytes(facts, k)))


def least_memory(facts: Facts, k: int) -> int:
    """Bytes of ``facts.memory`` without which k problems cannot work."""
    return round(_fixed(facts, k) + min(facts.n, facts.m + 2, LEAST) * _point_bytes(facts, k))


def wanted(facts: Facts) -> int:
    """About 2 (n^2 m)^(1/3) points: the w of a sample of half as many is so near that those on the wrong side are kept."""
    return max(FEW, round(2 * math.cbrt(facts.n**2 * facts.m)))


def kept_points(facts: Facts, k: int, method: str) -> int:
    """Points that the hinge keeps, or those of the sample of the ``squared-hinge``."""
    return min(facts.n, capacity(facts, k), wanted(facts) if method == "hinge" else SAMPLE)


def kept_bytes(facts: Facts, k: int, method: str) -> float:
    """Bytes of vectors, systems and points."""
    return _fixed(facts, k) + kept_points(facts, k, method) * _point_bytes(facts, k)


def matrix_bytes(facts: Facts, k: int) -> int:
    """Bytes of the curvatures of k problems, where they are matrices; 0 where conjugate gradients are used."""
    need = 8 * MATRICES * facts.m**2 * k
    return need if facts.m <= DIRECT and need <= facts.memory else 0


def _fixed(facts: Facts, k: int) -> int:
    return 8 * (5 * min(facts.m, DIRECT_SPARSE if facts.entries else DIRECT) ** 2 + VECTORS * k * facts.m)


def _point_bytes(facts: Facts, k: int) -> float:
    """Of one point: up to three copies as it is stored, in float64 with some of them twice, and what problems know of it."""
    wide = facts.entries * (3 * facts.itemsize + 44) if facts.entries else facts.m * (3 * facts.itemsize + 12)
    return wide + 8 * (12 + 6 * k)
