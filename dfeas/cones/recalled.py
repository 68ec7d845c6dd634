"""Methods whose x is a few columns, over cones: the columns are the extreme points that the pass has named.

A point of a dataset has one column, a cone as many as its base has extreme points. So a column is known by the number of the
pass that named it, and what it is in the rows of its cone is kept; x on these columns is then an element of the cones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dfeas.cones.softmin import SpectralAnswer
from dfeas.methods.protocol import AnyMethod, Evidence, Facts, Sparse
from dfeas.passes import Question
from dfeas.passes.block import Floats


@dataclass(frozen=True, slots=True)
class RecalledState:
    """Of the method, and what the columns are that it knows by number."""

    inner: Any
    named: tuple[tuple[int, Floats], ...]  # first row of the cone, extreme point (dimension,)


@dataclass(frozen=True, slots=True)
class Recalled:
    """A method that asks one question with mu = 0 a pass, and is told a number as the index of the column."""

    method: AnyMethod

    @property
    def name(self) -> str:
        """That of the method."""
        return self.method.name

    def init(self, facts: Facts) -> RecalledState:
        """Nothing is named yet."""
        return RecalledState(self.method.init(facts), ())

    def ask(self, state: RecalledState) -> Question:
        """What the method asks."""
        return self.method.ask(state.inner)

    def tell(self, state: RecalledState, answer: SpectralAnswer) -> RecalledState:
        """The answer, with the number of the extreme point."""
        named = (*state.named, (int(answer.arg[0]), answer.extreme[0]))
        told = replace(answer, arg=np.array([len(state.named)]))
        return RecalledState(self.method.tell(state.inner, told), named)

    def bound(self, facts: Facts, margin: float) -> float:
        """That of the method."""
        return self.method.bound(facts, margin)

    def evidence(self, state: RecalledState) -> Evidence:
        """That of the method, with x in the rows of the cones."""
        found = self.method.evidence(state.inner)
        build = found.gordan
        if build is None:
            return found

        def gordan() -> Sparse:
            numbers = build()
            assert isinstance(numbers, Sparse), "columns by number"
            parts = [(state.named[i], weight) for i, weight in zip(numbers.index.tolist(), numbers.weight, strict=True)]
            rows = np.concatenate([start + np.arange(len(point)) for (start, point), _ in parts])
            entries = np.concatenate([weight * point for (_, point), weight in parts])
            index, place = np.unique(rows, return_inverse=True)
            return Sparse(np.asarray(index, np.int64), np.asarray(np.bincount(place, entries), np.float64))

        return replace(found, gordan=gordan)
