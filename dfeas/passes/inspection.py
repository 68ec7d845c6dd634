"""A selection on whose read somebody else looks at the same blocks: the checker, at the separator that is asked about.

Where the selection has found a point on the wrong side there is nothing to look at, and so nothing is shown of all points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct, field
from numpy.typing import NDArray

from dfeas.linalg.points import Array, Floats, Points
from dfeas.passes.block import Block
from dfeas.passes.protocol import Question, ScoringPass, Together
from dfeas.passes.select import Select, Selection, SelectPartial
from dfeas.records import replace


class Shown(Protocol):
    """What some blocks showed to who looked at them."""

    def beside(self, other: Any) -> Any:
        """Both, of which the other blocks follow these; neither is changed."""


class Look(Protocol):
    """Looks at blocks. Picklable, small."""

    def __call__(self, start: int, points: Points, label: NDArray[Any]) -> Shown | None:
        """What points (b, m) from number ``start`` on, and their labels (b,), both as stored, show; None where they cannot be
        looked at. Keeps no views of them.
        """


class Inspection(Struct, frozen=True, eq=False):
    """A selection, and what all blocks showed; None where some were not looked at."""

    y: Floats  # (dimension,) what was asked about
    answer: Selection
    shown: Shown | None


Inspections = tuple[SelectPartial, Shown | None]


class Inspected(ScoringPass, Struct, frozen=True, eq=False):
    """A selection by a ``y`` that is looked at on the same read."""

    pass_: Select
    look: Look
    wrong: list[int] = field(default_factory=list)  # blocks with a point on the wrong side: nothing is looked at after one

    def scored_by(self) -> Floats:
        return self.pass_.y

    def scan(self, block: Block) -> Inspections:
        """Select first: a look at points that are not separated is wasted."""
        return self._look_at(block, self.pass_.scan(block))

    def scan_scored(self, block: Block, fast: Array) -> Inspections:
        return self._look_at(block, self.pass_.scan_scored(block, fast))

    def _look_at(self, block: Block, partial: SelectPartial) -> Inspections:
        sides = block.sides
        if partial.low <= 0:
            self.wrong.append(block.start)
        if self.wrong or not block.size:
            return partial, None
        return partial, self.look(block.start, block.points, sides.label if sides.codes is None else sides.codes)

    def merge(self, first: Inspections, second: Inspections) -> Inspections:
        shown = None if first[1] is None or second[1] is None else first[1].beside(second[1])
        return self.pass_.merge(first[0], second[0]), shown

    def finish(self, partial: Inspections) -> Inspection:
        return Inspection(self.pass_.y, self.pass_.finish(partial[0]), partial[1])


def add_look(question: Question, find_look: Callable[[Floats], Look | None]) -> Question:
    """The question with a look at the separator of its selection, where one can be had; others may ride beside that."""
    first = question.passes[0] if isinstance(question, Together) else question
    if not isinstance(first, Select) or (look := find_look(first.y)) is None:
        return question
    seen = Inspected(first, look)
    return replace(question, passes=(seen, *question.passes[1:])) if isinstance(question, Together) else seen


def take_look(answer: Any) -> tuple[Any, Inspection | None]:
    """The answer to the question without a look, and what the look showed."""
    if isinstance(answer, tuple) and answer and isinstance(answer[0], Inspection):
        return (answer[0].answer, *answer[1:]), answer[0]
    return (answer.answer, answer) if isinstance(answer, Inspection) else (answer, None)
