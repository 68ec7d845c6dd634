"""Dual variables of a soft margin: n of them, which follow from little.

    hinge           max  sum_j alpha_j - |sum_j alpha_j b_j|^2 / 2                            over 0 <= alpha_j <= c_j
    squared hinge   max  sum_j (alpha_j - alpha_j^2 / (4 c_j)) - |sum_j alpha_j b_j|^2 / 2    over 0 <= alpha_j

with b_j = l_j x_j. Any alpha there bounds the minimum of f from below, and the lower end that a method tells is the value of
one. With w the sum of alpha_j b_j, |v - w|^2 / 2 <= f(v) - value for any v: the loss of a point is nowhere below the line that
alpha_j makes of it (Fenchel and Young), and what is left are two squares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfeas.passes.block import Floats, Indices
from dfeas.passes.counted import Counted
from dfeas.passes.multipliers import Multipliers


@dataclass(frozen=True, slots=True)
class Dual:
    """Those of one problem whose value is its lower end."""

    squared: bool  # of the squared hinge
    at: Floats | None  # (m,) the w whose scores tell those of all points but ``index``; None: all are 0
    index: Indices  # (r,) ascending
    multiplier: Floats  # (r,)

    @classmethod
    def nothing(cls, squared: bool) -> Dual:
        """All are 0, and so is their value."""
        return cls(squared, None, np.empty(0, np.int64), np.empty(0))

    @classmethod
    def of_scores(cls, w: Floats) -> Dual:
        """Of the squared hinge, at w."""
        return cls(True, w.copy(), np.empty(0, np.int64), np.empty(0))

    @classmethod
    def of_model(cls, w: Floats, index: Indices, multiplier: Floats) -> Dual:
        """Of the hinge, from a model made at w that kept some points."""
        return cls(False, w.copy(), index, multiplier)

    def question(self, counted: Counted) -> Multipliers:
        """The pass that tells all of them; ``counted`` is of this problem alone."""
        return Multipliers(self.at, counted, self.squared, self.index, self.multiplier)
