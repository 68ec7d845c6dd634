"""Methods over cones, and the engine that answers them: what they ask of points is asked of eigenvalues.

A point of a dataset has one column, a cone as many as its base has extreme points. So a column is known by the number of the
pass that named it, and what it is in the rows of its cone is kept; x on these columns is then an element of the cones.

The base of the cone is {(1, u), |u| <= 1}. With half of |u|^2 in place of the entropy the prox of s = A*y at the temperature mu
is u = -(s_1 / mu) projected onto the ball, with

    lse  = max over the ball of -(s_0 + s_1'u) / mu - |u|^2 / 2      mean = A (1, u)

in the place of what softmin answers: the Bregman distances that mirror prox computes of them are those of this choice. Its
size, 1/2, is below the log 2 of the entropy of one cone, so every guarantee holds. Of one semidefinite cone the paper's choice
is the matrix entropy, that is softmin itself.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from dfeas.errors import UsageError
from dfeas.geometry.cones.select import ConeWeights, SelectCones, SpectralRecover
from dfeas.geometry.cones.softmin import SpectralAnswer, SpectralPartial, SpectralSoftmin, combined, factors, fast_scores
from dfeas.linalg.points import Floats
from dfeas.methods.protocol import AnyMethod, Evidence, Facts, Mixture, Sparse, Wrapping
from dfeas.passes.block import Block
from dfeas.passes.protocol import Exclusive, Partial, Question, Together, together
from dfeas.passes.softmin import Softmin, SoftminPartial
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


@dataclass(frozen=True, slots=True)
class RecalledState:
    """Of the method, and what the columns are that it knows by number."""

    inner: Any
    named: tuple[tuple[int, Floats], ...]  # first row of the cone, extreme point (dimension,)


@dataclass(frozen=True, slots=True)
class Recalled(Wrapping):
    """A method that asks one question with mu = 0 a pass, and is told a number as the index of the column."""

    method: AnyMethod

    def init(self, facts: Facts) -> RecalledState:
        return RecalledState(self.method.init(facts), ())

    def ask(self, state: RecalledState) -> Question:
        return self.method.ask(state.inner)

    def tell(self, state: RecalledState, answer: SpectralAnswer) -> RecalledState:
        """The answer, with the number of the extreme point."""
        named = (*state.named, (int(answer.arg[0]), answer.extreme[0]))
        told = replace(answer, arg=np.array([len(state.named)]))
        return RecalledState(self.method.tell(state.inner, told), named)

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


def projected(s: Floats) -> tuple[Floats, float]:
    """(1, u) of the base (d,) for s = A*y / mu, and ``lse``."""
    length = float(np.linalg.norm(s[1:]))
    u = -s[1:] / max(1.0, length)
    return np.append(1.0, u), float(-s[0] - s[1:] @ u - u @ u / 2)


@dataclass(frozen=True)
class EuclideanSoftmin(SpectralSoftmin):
    """k questions to one second-order cone; those with mu = 0 are as ever."""

    def scan(self, block: Block) -> SpectralPartial:
        """Answer all questions for the block of the cone."""
        plain = SpectralSoftmin(self.Y, np.zeros(len(self.mu))).scan(block)
        factor = factors(block)
        rows = np.arange(block.size)
        for i in self._soft:
            (s,) = fast_scores(block, self.Y[:, i : i + 1], factor, False)
            x, lse = projected(np.asarray(s, np.float64) / self.mu[i])
            # a softmin partial is relative to its minimum: total = exp(lse + low / mu)
            plain.total[i] = np.exp(lse + plain.low[i] / self.mu[i])
            plain.moment[i] = combined(block, rows, x, factor) * plain.total[i]
        points = tuple(point if mu == 0 else np.empty(0) for point, mu in zip(plain.extreme, self.mu, strict=True))
        return SpectralPartial(plain.low, plain.arg, plain.total, plain.moment, points)

    def merge(self, first: SoftminPartial, second: SoftminPartial) -> SpectralPartial:
        """There is one cone, in one block."""
        assert (first.arg < 0).all() or (second.arg < 0).all(), "one cone"
        return super().merge(first, second)


@dataclass(frozen=True, slots=True)
class EuclideanRecover(SpectralRecover):
    """The element of a mixture of T such points."""

    def scan(self, block: Block) -> ConeWeights:
        scores = fast_scores(block, self.Y / self.mu, factors(block), False)
        x = self.share @ np.array([projected(np.asarray(s, np.float64))[0] for s in scores])
        return ConeWeights(((block.start + np.arange(block.size), x),), float(x[0]))


@dataclass(frozen=True, slots=True)
class EuclideanMixture(Mixture):
    """x = sum_t share_t (1, u_t)."""

    def question(self, floor: float) -> EuclideanRecover:
        """The pass that rebuilds x; nothing is left out."""
        return EuclideanRecover(self.Y, self.mu, self.lse, self.share, floor)


@dataclass(frozen=True, slots=True)
class OnBall(Wrapping):
    """Mirror prox with this choice: its questions are asked of the ball."""

    method: AnyMethod

    def ask(self, state: Any) -> EuclideanSoftmin:
        question: Any = self.method.ask(state)
        return EuclideanSoftmin(question.Y, question.mu)

    def evidence(self, state: Any) -> Evidence:
        """As mirror prox, with an x of the ball."""
        found = self.method.evidence(state)
        build = found.gordan
        if build is None:
            return found

        def gordan() -> EuclideanMixture:
            mixture = build()
            return EuclideanMixture(*(getattr(mixture, each.name) for each in fields(Mixture)))

        return replace(found, gordan=gordan)
