"""Perceptron with corrections gathered per pass.

Reference: Ramdas and Pena 2014, Algorithm 1; Chevaleyre's notes, section 1.4; bound by Novikoff 1962.

    y <- y + a_j    for any j with a_j'y <= 0

Passes: one for as many corrections as the gathered columns allow. Every correction is a mistake in Novikoff's sense, so

    corrections <= 1 / rho^2     in total and in any order, when the margin rho is positive.

Evidence: y = sum of k corrections, so with x = counts / k on the simplex Ax = y / k and |Ax| <= 1 / sqrt(k) at every step:
the classical perceptron is a (slow) witness of infeasibility, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from dfeas.methods.mistakes import Mistakes, Rule
from dfeas.methods.protocol import Facts, Traits


@dataclass(frozen=True, slots=True)
class Novikoff(Rule):
    """Unit columns on the wrong side are added as they are; there is nothing to guess."""

    def bound(self, facts: Facts, margin: float) -> float:
        """Novikoff's; also |Ax| <= margin then, if there is no separator."""
        return 1 / margin**2


TRAITS = Traits("perceptron", "one read for many corrections; proves infeasibility slowly", points=0.04)


def perceptron(cap: int = 0, most: int = 0) -> Mistakes:
    """``cap`` = 1 and ``most`` = 1: one correction a pass, of the worst column."""
    return Mistakes(Novikoff(), TRAITS, cap, most)
