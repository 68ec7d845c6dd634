"""Iterated smooth kernel perceptron - von Neumann, which ends either way.

Reference: Ramdas and Pena 2014, Algorithm 7 (ISNKPVN): loops of ``snkpvn``, the first one around q = 1/n, each to the accuracy
delta = |q|_G / gamma; then q <- p_k and again.

Products: as for ``snkpvn``, one a step.
Guarantee (Theorem 4): with rho > 0 a loop ends within 2 sqrt(2 lambda) / rho steps, and log(1 / rho) / log(gamma) loops do.
Evidence: both ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, sqrt

from dfeas.kernels.distances import Floats
from dfeas.kernels.gram import GramProduct
from dfeas.kernels.kernel import Kernel
from dfeas.kernels.methods.snkpvn import SnkpvnState, after, begun, first_state, question
from dfeas.methods import Evidence, Facts
from dfeas.methods.ispvn import GAMMA


@dataclass(frozen=True, slots=True)
class KernelIspvnState:
    """A loop, and the accuracy that it is to reach."""

    inner: SnkpvnState
    delta: float  # |q|_G / gamma; 0 before q is known

    @property
    def lost(self) -> bool:
        """|q|_G is all rounding."""
        return self.delta > 0 and (GAMMA * self.delta) ** 2 <= self.inner.ends.floor


@dataclass(frozen=True, slots=True)
class KernelIspvn:
    """No parameters."""

    kernel: Kernel
    name: str = "ispvn"

    def init(self, facts: Facts) -> KernelIspvnState:
        """Nothing is known."""
        return KernelIspvnState(first_state(self.kernel, facts), 0.0)

    def ask(self, state: KernelIspvnState) -> GramProduct:
        """The next projection."""
        return question(self.kernel, state.inner)

    def tell(self, state: KernelIspvnState, answer: Floats) -> KernelIspvnState:
        """One step; a new loop when this one is done."""
        if state.lost:
            return state
        inner, loop = after(state.inner, answer), state.inner.loop
        if inner.loop is None:
            return KernelIspvnState(inner, 0.0)
        if loop is None:
            return KernelIspvnState(inner, inner.reached / GAMMA)
        if inner.reached >= state.delta:
            return KernelIspvnState(inner, state.delta)
        assert inner.loop.p is not None
        return KernelIspvnState(begun(inner, inner.loop.p), inner.reached / GAMMA)

    def bound(self, facts: Facts, margin: float) -> float:
        """Products: two, and one for each of 2 sqrt(2 n) / margin steps of each of log(1 / margin) loops."""
        loops = max(1, ceil(log(1 / margin) / log(GAMMA)))
        return 2 + loops * (1 + 2 * sqrt(2 * facts.n) / margin)

    def evidence(self, state: KernelIspvnState) -> Evidence:
        """Both ends of the bracket."""
        stalled = "|x|_G is as small as rounding lets it be" if state.lost else ""
        return state.inner.ends.evidence(state.inner.steps, stalled=stalled)
