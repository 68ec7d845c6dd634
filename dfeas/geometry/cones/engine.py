"""An engine over a dataset of cones: what methods ask of points is asked of eigenvalues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

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
    """An engine that asks another one what ``spectral`` makes of a question, and is like it in all else."""

    engine: Any  # an Engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def run(self, question: Question) -> Any:
        """One read of the data, or of what the question asks."""
        return self.engine.run(spectral(question))
