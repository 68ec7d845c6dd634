"""Normalized kernel perceptron: the worst column, averaged.

Reference: Ramdas and Pena 2014, Algorithm 3 (NKP):

    j = argmin_j (G alpha)_j,   theta_k = 1 / (k + 1),   alpha <- (1 - theta_k) alpha + theta_k e_j

Products: one of a unit vector a step.
Guarantee, with rho > 0: while no separator was found |alpha_k|_G <= 1 / sqrt(k), so one is found within 1 / rho^2 steps; and it
goes on to the maximum margin: after k steps rho <= |alpha_k|_G <= rho + (1 + log k) / (2 rho k).
Evidence: both ends; alpha_k is a point of the simplex.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfeas.kernels.distances import Floats
from dfeas.kernels.gram import GramProduct
from dfeas.kernels.kernel import Kernel
from dfeas.kernels.methods.combination import Combination, unit
from dfeas.kernels.methods.ends import Ends
from dfeas.methods import Evidence, Facts


@dataclass(frozen=True, slots=True)
class KernelNormalizedPerceptronState:
    """After k steps."""

    k: int
    w: Combination  # alpha_k: the average of k columns
    ends: Ends


@dataclass(frozen=True, slots=True)
class KernelNormalizedPerceptron:
    """No parameters."""

    kernel: Kernel
    name: str = "normalized-perceptron"

    def init(self, facts: Facts) -> KernelNormalizedPerceptronState:
        """alpha = 0, for which every column is the worst."""
        return KernelNormalizedPerceptronState(0, Combination.zero(facts.n), Ends.open(facts))

    def ask(self, state: KernelNormalizedPerceptronState) -> GramProduct:
        """The worst column."""
        return GramProduct(self.kernel, unit(len(state.w.alpha), state.w.worst)[:, None])

    def tell(self, state: KernelNormalizedPerceptronState, answer: Floats) -> KernelNormalizedPerceptronState:
        """One step."""
        column = Combination(unit(len(answer), state.w.worst), np.ascontiguousarray(answer[:, 0]))
        w = state.w.towards(column, 1 / (state.k + 1))
        return KernelNormalizedPerceptronState(state.k + 1, w, state.ends.with_simplex(w))

    def bound(self, facts: Facts, margin: float) -> float:
        """Products: one for each of 1 / margin^2 steps."""
        return 1 / margin**2

    def evidence(self, state: KernelNormalizedPerceptronState) -> Evidence:
        """Both ends of the bracket."""
        return state.ends.evidence(state.k)
