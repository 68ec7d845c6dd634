"""What a soft margin keeps in memory: vectors of all problems, systems of equations, and points."""

from __future__ import annotations

from dfeas.methods.protocol import Facts
from dfeas.methods.soft_margin.band import DIRECT, DIRECT_SPARSE

VECTORS = 11
"""m-vectors of each problem: in the state, in what a pass asks, and in the partials of its answer."""

LEAST = 1000
"""Points with which a soft margin can work, where m + 2 are more."""


def capacity(facts: Facts, k: int) -> int:
    """Points that memory holds beside k problems; at least 1."""
    return max(1, round((facts.memory - _fixed(facts, k)) / _point_bytes(facts, k)))


def least_memory(facts: Facts, k: int) -> int:
    """Bytes of ``facts.memory`` without which k problems cannot work."""
    return round(_fixed(facts, k) + min(facts.n, facts.m + 2, LEAST) * _point_bytes(facts, k))


def fits(facts: Facts, k: int) -> bool:
    """Whether k problems can work in this memory."""
    return least_memory(facts, k) <= facts.memory


def kept_bytes(facts: Facts, k: int, points: int) -> float:
    """Bytes of vectors and systems, and of some points."""
    return _fixed(facts, k) + points * _point_bytes(facts, k)


def _fixed(facts: Facts, k: int) -> int:
    return 8 * (5 * min(facts.m, DIRECT_SPARSE if facts.entries else DIRECT) ** 2 + VECTORS * k * facts.m)


def _point_bytes(facts: Facts, k: int) -> float:
    """Of one point: up to three copies as it is stored, in float64 with some of them twice, and what problems know of it."""
    wide = facts.entries * (3 * facts.itemsize + 44) if facts.entries else facts.m * (3 * facts.itemsize + 12)
    return wide + 8 * (12 + 6 * k)
