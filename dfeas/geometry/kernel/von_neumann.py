"""Kernel von Neumann: Ax is moved as near to the origin as the worst column allows.

Reference: Ramdas and Pena 2014, Algorithm 5 in a kernel's space, KVN of Yu et al. 2014; Dantzig 1992; Epelman and Freund 2000.
The papers begin at 1/n, this at one column, as the linear twin does: x stays sparse, and no product is of more than a unit
vector.

    j = argmin_j (G x)_j,   theta = argmin over [0, 1] of |(1 - theta) x + theta e_j|_G,   x <- (1 - theta) x + theta e_j

Products: one of a unit vector a step.
Guarantee: as long as no separator is found |x_t|_G <= 1 / sqrt(t) after the t-th column; with rho > 0 therefore a separator
within 1 / rho^2 steps.
Evidence: both ends.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dfeas.geometry.kernel.combination import Combination, Ends, unit
from dfeas.geometry.kernel.distances import Floats
from dfeas.geometry.kernel.gram import GramProduct
from dfeas.geometry.kernel.kernel import Kernel
from dfeas.methods.protocol import Evidence, Facts, Method, Traits


@dataclass(frozen=True, slots=True)
class KernelVonNeumannState:
    """After some columns."""

    steps: int  # columns
    x: Combination  # on the simplex; 0 before the first column
    ends: Ends

    @property
    def gain(self) -> float:
        """|x|^2 - (G x)_j: what the worst column promises."""
        return self.x.square - float(self.x.scores.min())

    @property
    def settled(self) -> bool:
        """No column brings Ax nearer to the origin: its promise is rounding."""
        return self.steps > 0 and self.gain <= self.ends.floor


@dataclass(frozen=True, slots=True)
class KernelVonNeumann(Method[KernelVonNeumannState]):
    """No parameters."""

    kernel: Kernel
    traits: Traits = Traits("von-neumann", kernel=0.4)

    def init(self, facts: Facts) -> KernelVonNeumannState:
        return KernelVonNeumannState(0, Combination.zero(facts.n), Ends.open(facts))

    def ask(self, state: KernelVonNeumannState) -> GramProduct:
        return GramProduct(self.kernel, unit(len(state.x.alpha), state.x.worst)[:, None])

    def tell(self, state: KernelVonNeumannState, answer: Floats) -> KernelVonNeumannState:
        """One step, by exact line search."""
        if state.settled:
            return state
        j = state.x.worst
        column = Combination(unit(len(answer), j), np.ascontiguousarray(answer[:, 0]))
        share = 1.0
        if state.steps:
            distance = state.x.square - 2 * float(state.x.scores[j]) + float(column.scores[j])
            share = min(1.0, state.gain / distance) if distance > 0 else 0.0
        x = state.x.towards(column, share)
        return replace(state, steps=state.steps + 1, x=x, ends=state.ends.with_simplex(x))

    def bound(self, facts: Facts, margin: float) -> float:
        """Products: one for each of 1 / margin^2 steps."""
        return 1 / margin**2

    def evidence(self, state: KernelVonNeumannState) -> Evidence:
        """Both ends of the bracket."""
        stalled = "no column brings Ax nearer to the origin" if state.settled else ""
        return state.ends.evidence(state.steps, stalled=stalled)
