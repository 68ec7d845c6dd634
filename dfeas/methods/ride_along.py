"""Ride along: a second method asks its question on the reads of a first one, so that its theoretical rate is never lost.

The rider starts after ``after`` full passes of the first: a run that ends sooner does not pay for it. Its theorem holds for the
passes since then, and the bracket is the better one of both at either end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from dfeas.methods.protocol import AnyMethod, Bracket, Evidence, Facts, Method
from dfeas.passes import Alone, Question, Together

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class RideAlongState(Generic[S]):
    """States of both."""

    first: S
    rider: Any
    full: int  # passes over all data


@dataclass(frozen=True, slots=True)
class RideAlong(Generic[S]):
    """``first`` decides what is read; ``rider`` asks one pass a step."""

    first: Method[S]
    rider: AnyMethod
    name: str
    after: int = 2

    def init(self, facts: Facts) -> RideAlongState[S]:
        """Both at their start."""
        return RideAlongState(self.first.init(facts), self.rider.init(facts), 0)

    def ask(self, state: RideAlongState[S]) -> Question:
        """The question of the first, and the rider's, if all blocks are read."""
        question = self.first.ask(state.first)
        if isinstance(question, Alone) or state.full < self.after:
            return question
        rider = self.rider.ask(state.rider)
        assert not isinstance(rider, Alone), "a rider asks passes over all blocks"
        return Together((question, rider))

    def tell(self, state: RideAlongState[S], answer: Any) -> RideAlongState[S]:
        """Tell both."""
        question = self.ask(state)
        if isinstance(question, Alone):
            return replace(state, first=self.first.tell(state.first, answer))
        if state.full < self.after:
            return replace(state, first=self.first.tell(state.first, answer), full=state.full + 1)
        mine, others = answer
        rider = self.rider.tell(state.rider, others)
        return RideAlongState(self.first.tell(state.first, mine), rider, state.full + 1)

    def bound(self, facts: Facts, margin: float) -> float:
        """The smaller of both."""
        return min(self.first.bound(facts, margin), 1 + self.after + self.rider.bound(facts, margin))

    def evidence(self, state: RideAlongState[S]) -> Evidence:
        """The better of both."""
        mine, others = self.first.evidence(state.first), self.rider.evidence(state.rider)
        gordan = mine.gordan if mine.bracket.upper <= others.bracket.upper else others.gordan
        lower = mine.bracket if mine.bracket.lower >= others.bracket.lower else others.bracket
        bracket = Bracket(lower.lower, min(mine.bracket.upper, others.bracket.upper), lower.y)
        return replace(mine, bracket=bracket, gordan=gordan)
