"""Pieces of an answer that has something of some points. A million small blocks with one each would come as a million objects:
pieces of few points are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TypeVar

import numpy as np

from dfeas.linalg.points import Indices

T = TypeVar("T")

FEW_BYTES = 1 << 16
"""Bytes up to which pieces are joined: copying them takes less than keeping them apart."""


def in_order(
    pieces: Iterable[T],
    index: Callable[[T], Indices],
    size: Callable[[T], int],
    joined: Callable[[list[T]], T],
    take: Callable[[T, Indices], T],
) -> tuple[T, ...]:
    """Pieces in the order of the points, whose numbers ``index`` ascend in each; empty ones are left out.

    ``size`` is that of a piece in bytes, ``joined`` puts some behind each other, and ``take`` picks points by their places.
    """
    some = sorted((piece for piece in pieces if len(index(piece))), key=lambda piece: int(index(piece)[0]))
    apart = all(index(first)[-1] < index(second)[0] for first, second in pairwise(some))
    if len(some) < 2 or (apart and sum(map(size, some)) > FEW_BYTES):
        return tuple(some)
    whole = joined(some)
    return (whole if apart else take(whole, np.argsort(index(whole))),)
