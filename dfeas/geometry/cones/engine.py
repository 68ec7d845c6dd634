"""An engine over a dataset of cones: what methods ask of points is asked of eigenvalues."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dfeas.data.storage.readers import Cost
from dfeas.errors import UsageError
from dfeas.geometry.cones.select import SelectCones, SpectralRecover
from dfeas.geometry.cones.softmin import SpectralSoftmin
from dfeas.passes.classes import together
from dfeas.passes.protocol import Exclusive, Partial, Question, Together
from dfeas.passes.softmin import Softmin
from dfeas.passes.survey import Survey
from dfeas.passes.vectors import Recover

R = TypeVar("R")


def spectral(question: Question) -> Question:
    """The question to a dataset of cones. Raises UsageError for one that has no meaning there."""
    if isinstance(question, Partial):
        inner: Any = spectral(question.pass_)
        return Partial(inner, question.blocks)
    if isinstance(question, Together):
        inner = [spectral(each) for each in question.passes]
        return together(inner)
    if isinstance(question, SpectralSoftmin | SpectralRecover | SelectCones | Survey):
        return question
    if isinstance(question, Softmin):
        return SpectralSoftmin(question.Y, question.mu)
    if isinstance(question, Recover):
        return SpectralRecover(question.Y, question.mu, question.lse, question.share, question.floor)
    kind = type(question.pass_ if isinstance(question, Exclusive) and hasattr(question, "pass_") else question).__name__
    raise UsageError(f"this needs points, and the data is a product of cones ({kind})")


@dataclass(frozen=True)
class ConeEngine:
    """Asks ``engine`` what ``spectral`` makes of a question."""

    engine: Any  # an Engine

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n): dimension of y and number of stored rows."""
        m, n = self.engine.shape
        return m, n

    @property
    def cost(self) -> Cost:
        """What the most recent pass took."""
        found: Cost = self.engine.cost
        return found

    @property
    def parallel(self) -> int:
        """Threads that scan at the same time."""
        return int(self.engine.parallel)

    def run(self, question: Question) -> Any:
        """One read of the data, or of what the question asks."""
        return self.engine.run(spectral(question))

    def map(self, function: Callable[..., R], *args: Any, count: int | None = None) -> list[R]:
        """``function(dataset, first, stop, *args)`` over ranges of blocks, in order, as the engine does it."""
        found: list[R] = self.engine.map(function, *args, count=count)
        return found

    def keep_pairs(self, budget: int, scratch: Path | None = None) -> None:
        """Nothing is asked of pairs."""

    def close(self) -> None:
        self.engine.close()
