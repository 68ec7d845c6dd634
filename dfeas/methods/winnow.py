"""Winnow: multiplicative weights over the features, for separators that need few of them.

Reference: Ramdas and Pena 2014, section 2.2; Littlestone 1991. Columns have maximum norm 1, â_j = a_j / |a_j|_inf. Weights are
positive; for separators of either sign each feature comes with its negative, so there are 2 m of them, and y = u+ - u-:

    z <- z + â_j   for any j with a_j'y <= 0;    (u+, u-) = softmax(step z, -step z)

Guarantee: with rho_1 = max over |y|_1 <= 1 of min_j â_j'y and step <= rho_1, at most 2 log(2 m) / step^2 corrections (entries
of â_j lie in [-1, 1], and Hoeffding's lemma bounds what each step loses). The margin is not known: the step is the guess, 1 at
first, and is halved, and z set to 0, when the round has made that many.
Evidence: separators; and a round that is given up has |z|_inf <= step k, k its corrections, so that the x that made z, in unit
columns, has |Ax| <= sqrt(m) step: it proves infeasibility, too, slowly.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from dfeas.linalg.points import Floats
from dfeas.methods.mirror_prox import CrossPolytope
from dfeas.methods.mistakes import CorrectionRule, Mistakes
from dfeas.methods.protocol import Facts, Traits
from dfeas.passes.block import Columns


@dataclass(frozen=True, slots=True)
class Multiplicative(CorrectionRule):
    """The step is the guess of rho_1."""

    def guess(self, facts: Facts) -> float:
        """The largest that rho_1 can be."""
        return 1.0

    def shares(self, columns: Columns) -> Floats:
        greatest = columns.largest()
        return np.asarray(np.divide(1.0, greatest, out=np.zeros_like(greatest), where=greatest > 0))

    def direction(self, total: Floats, guess: float) -> Floats:
        return np.asarray(CrossPolytope().y(guess * total))

    def limit(self, m: int, radius: float, guess: float) -> float:
        """2 log(2 m) / step^2."""
        return 2 * log(2 * m) / guess**2

    def bound(self, facts: Facts, margin: float) -> float:
        """The sum over the rounds down to a step of at most margin / sqrt(m), which rho_1 is not below."""
        least = margin / facts.m**0.5
        rounds = np.arange(1 + max(0, int(np.ceil(np.log2(1 / least)))))
        return float((1 + 2 * log(2 * facts.m) * 4.0**rounds).sum())


TRAITS = Traits("winnow", "multiplicative weights, for separators of few features; proves infeasibility slowly", points=2e-5)


def winnow(cap: int = 0, most: int = 0) -> Mistakes:
    """Multiplicative weights on features and their negatives."""
    return Mistakes(Multiplicative(), TRAITS, cap, most)
