"""Classes: one class against the rest, for many classes on one read of points whose labels are codes.

A class only changes signs. So the products of all selections on one read are one product of matrices, and only what is chosen
from the scores is done class by class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dfeas.linalg.points import UNPACKED, Array, Floats, is_dense
from dfeas.passes.block import Block, in_precision
from dfeas.passes.protocol import AnyPass, Batchable, Exclusive, Partial, Question, Together
from dfeas.passes.select import Select


@dataclass(frozen=True, slots=True)
class OfClass:
    """A pass as it is asked of one class, whose label is ``code``, against the rest."""

    pass_: AnyPass
    code: int

    def scan(self, block: Block) -> Any:
        """Scan the block with the signs of the class."""
        return self.pass_.scan(block.against(self.code))

    def merge(self, first: Any, second: Any) -> Any:
        return self.pass_.merge(first, second)

    def finish(self, partial: Any) -> Any:
        return self.pass_.finish(partial)


@dataclass(frozen=True, slots=True)
class OfClasses(Together):
    """Answers the passes of several classes from one read; the answer is a tuple in their order."""

    passes: tuple[OfClass, ...]

    def scan(self, block: Block) -> tuple[Any, ...]:
        """The scores of all selections by one product, the rest class by class."""
        selects = [select for each in self.passes for select in _selects(each.pass_)]
        if len(selects) < 2 or not block.size:
            return tuple(each.scan(block) for each in self.passes)
        scores = iter(_scores(block, [select.y for select in selects]))
        found = []
        for each in self.passes:
            signed = block.against(each.code)
            parts = tuple(
                part.scan_scored(signed, _signed(next(scores), signed)) if isinstance(part, Select) else part.scan(signed)
                for part in _parts(each.pass_)
            )
            found.append(parts if isinstance(each.pass_, Together) else parts[0])
        return tuple(found)


def of_class(question: Question, code: int) -> Question:
    """A question as it is asked of one class. Raises TypeError for one that reads points in order, or n-vectors."""
    if isinstance(question, Partial):
        return Partial(OfClass(question.pass_, code), question.blocks)
    if isinstance(question, Batchable):
        found: Question = question.of_class(code)
        return found
    if isinstance(question, Exclusive):
        raise TypeError("one class against the rest asks passes over blocks")
    return OfClass(question, code)


def together(passes: Sequence[AnyPass]) -> AnyPass:
    """At least two passes on one read."""
    of_classes = tuple(each for each in passes if isinstance(each, OfClass))
    return OfClasses(of_classes) if len(of_classes) == len(passes) else Together(tuple(passes))


def _parts(pass_: AnyPass) -> tuple[AnyPass, ...]:
    return pass_.passes if isinstance(pass_, Together) else (pass_,)


def _selects(pass_: AnyPass) -> Iterator[Select]:
    return (part for part in _parts(pass_) if isinstance(part, Select))


def _scores(block: Block, ys: list[Floats]) -> Array:
    """Fast scores (k, b) of unit points, all signs +1, in the precision that ``Select`` takes."""
    single = block.single
    Y: Array = in_precision(np.column_stack(ys), single)
    m, k = block.points.shape[1], len(ys)
    lengths = block.sides.lengths()
    factor: Array = in_precision(np.divide(1.0, lengths, out=np.zeros(block.size), where=lengths > 0), single)
    scores: Array = np.empty((k, block.size), Y.dtype)
    step = max(16, UNPACKED // (m * k)) if is_dense(block.points) else block.size
    with np.errstate(invalid="ignore"):  # OpenBLAS computes on lanes that it then throws away
        for first in range(0, block.size, step):
            rows = slice(first, min(block.size, first + step))
            scores[:, rows] = (block.tile(rows, single) @ Y[:m]).T
    if block.intercept:
        scores += Y[m][:, None]
    scores *= factor
    return scores


def _signed(score: Array, block: Block) -> Array:
    """The scores of a class; overwrites them."""
    score *= block.label
    return score
