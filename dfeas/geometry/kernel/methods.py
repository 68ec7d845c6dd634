"""Methods of points in the space of a kernel: their questions become products with the Gram matrix.

y is a combination of points, kept by its coefficients with its scores: all that a method asks is known of it but columns, which
are one product. So the lower end of what will be asked next is known before it is asked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dfeas.geometry.kernel.gram import GramProduct
from dfeas.geometry.kernel.kernel import Kernel
from dfeas.geometry.kernel.nearest import Matrix
from dfeas.linalg.points import Floats
from dfeas.methods.protocol import AnyMethod, Evidence, Facts, Wrapping
from dfeas.methods.vector import FLOORS, Combination, Scored


@dataclass(frozen=True, slots=True)
class KernelFacts(Facts):
    """Facts of a problem in the space of a kernel."""

    nonnegative: bool = False  # K is never negative

    @classmethod
    def of(cls, facts: Facts, kernel: Kernel) -> KernelFacts:
        known = {name: getattr(facts, name) for name in Facts.__dataclass_fields__}
        return cls(**known, nonnegative=kernel.of_distance)

    @property
    def row_sums(self) -> bool:
        return self.nonnegative

    @property
    def zero(self) -> Combination:
        return Combination.zero(self.n, FLOORS[self.itemsize])


@dataclass(frozen=True, slots=True)
class InKernel(Wrapping):
    """A method that asks about combinations, with a kernel."""

    method: AnyMethod
    kernel: Kernel

    @classmethod
    def of(cls, method: AnyMethod, matrix: Matrix, cap: int) -> InKernel:
        """It keeps no points."""
        return cls(method, matrix.kernel)

    def init(self, facts: Facts) -> Any:
        return self.method.init(KernelFacts.of(facts, self.kernel))

    def ask(self, state: Any) -> GramProduct:
        question: Any = self.method.ask(state)
        return GramProduct(self.kernel, question.alpha, signed=question.signed)

    def tell(self, state: Any, answer: Floats) -> Any:
        question: Any = self.method.ask(state)
        return self.method.tell(state, question.answer(answer))

    def evidence(self, state: Any) -> Evidence:
        """That of the method, with what is known of its next question."""
        question: Any = self.method.ask(state)
        evidence = self.method.evidence(state)
        bracket = evidence.bracket
        if isinstance(question, Scored):
            for y in question.y:
                bracket = bracket.with_known(y)
        stalled, floor = evidence.stalled, question.floor
        if not stalled and evidence.gordan is not None and bracket.upper <= floor**0.5:
            more = "; points in float64 allow more" if floor == FLOORS[4] else ""
            stalled = f"|x|_G is as small as rounding lets it be{more}"
        return replace(evidence, bracket=bracket, stalled=stalled)
