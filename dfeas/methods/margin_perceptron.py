"""Margin perceptron with a halving guess: a margin of more than a quarter of the best, not just any separator.

Reference: the lecture notes on approximate SVM ("Margin Perceptron", "A Progressive Strategy"). With R = max |p_j| over signed
points p_j and a guess g of the best margin, first g = R:

    w <- w + p_j    for any j with p_j'w <= (g / 2) |w|
    a round ends when there is none, or after 1 + 12 R^2 / g^2 corrections: then g is above the best margin, and g <- g / 2

Guarantee: if g is at most the best margin a round needs at most 12 R^2 / g^2 corrections; so the last g is above half of the
best margin, and the last w has a margin above g / 2, that is a quarter of the best. O(R^2 / margin^2) corrections in all.
Evidence: w is a sum of k corrections, and |w| <= 2 R^2 / g + R + (3/4) g k at all times (Claims 3 and 4 hold for any g). So a
round that is given up has |w| / k <= g, for unit columns an x with |Ax| <= g: it refutes its guess by a certificate.

Points count as stored (margins are distances), or with ``unit`` as unit columns. A run goes on past its first separator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfeas.linalg.points import Floats
from dfeas.methods.mistakes import CorrectionRule, Mistakes
from dfeas.methods.protocol import Facts, Traits
from dfeas.passes.block import Columns


@dataclass(frozen=True, slots=True)
class Progressive(CorrectionRule):
    """The rule of the notes, for points as stored or for unit columns."""

    raw: bool = True
    refines: bool = True

    def _radius(self, radius: float) -> float:
        return radius if self.raw else 1.0

    def guess(self, facts: Facts) -> float:
        return self._radius(facts.radius)

    def shares(self, columns: Columns) -> Floats:
        """Lengths of the points as stored, 0 for a zero point; or 1."""
        if not self.raw:
            return np.ones(len(columns))
        factor = np.abs(columns.scale)
        return np.divide(1.0, factor, out=np.zeros_like(factor), where=factor > 0)

    def bar(self, guess: float) -> float:
        return guess / 2

    def limit(self, m: int, radius: float, guess: float) -> float:
        return 12 * (self._radius(radius) / guess) ** 2

    def bound(self, facts: Facts, margin: float) -> float:
        """The sum over the rounds down to a guess of at most ``margin`` R. For unit columns it also bounds when |Ax| <= margin;
        points as stored have no such bound, as short ones weigh little.
        """
        rounds = np.arange(1 + max(0, int(np.ceil(np.log2(1 / margin)))))
        return float((1 + 12 * 4.0**rounds).sum())


STORED = Traits(
    "margin-perceptron", "a quarter of the best margin, points as stored; infeasibility slowly, without a bound", points=0.001
)
UNIT = Traits("margin-perceptron-unit", "the same for unit points; proves infeasibility slowly", points=0.001)


def margin_perceptron(unit: bool = False, cap: int = 0, most: int = 0) -> Mistakes:
    """Points as stored, as the notes have it, or unit columns."""
    return Mistakes(Progressive(raw=not unit), UNIT if unit else STORED, cap, most)


OF_UNIT_POINTS = margin_perceptron(unit=True)
