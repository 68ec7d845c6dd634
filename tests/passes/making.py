"""What tests of passes share: points cut into blocks, and answers that are merged in an order."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dfeas.linalg.points import norms
from dfeas.passes.block import Block


def blocks_of(X: np.ndarray, labels: np.ndarray, cut: int | Iterable[int], intercept: bool = False) -> list[Block]:
    """Of so many points each, or cut at some places."""
    places = range(0, len(X), cut) if isinstance(cut, int) else sorted({0, *cut})
    parts = zip(places, [*places[1:], len(X)], strict=True)
    return [Block.of(a, np.ascontiguousarray(X[a:b]), labels[a:b], norms(X[a:b]), intercept) for a, b in parts if a < b]


def merged(pass_: Any, partials: Sequence[Any]) -> Any:
    """The answer, of the first two first."""
    partials = list(partials)
    while len(partials) > 1:
        partials[:2] = [pass_.merge(partials[0], partials[1])]
    return pass_.finish(partials[0])


def answer(pass_: Any, blocks: Sequence[Block]) -> Any:
    return merged(pass_, [pass_.scan(block) for block in blocks])
