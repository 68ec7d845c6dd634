"""Proves that some element x of the cones has Ax = 0, from one that nearly has, and is well inside of them.

Of cones it proves that an element x with Ax = 0 is near weights that are well inside of them. Let x be weights with |Ax| <= r,
and B the scaled rows of some cones in the interior of which x is: no least eigenvalue is below t. If sigma is the least
singular value of B, there is a d on these rows with B'd = -Ax and |d| <= r / sigma, which changes no eigenvalue by more than
sqrt 2 |d|. So where sqrt 2 r < sigma t some x + d is in the cones and A (x + d) = 0 (as in Jansson, Chaykin and Keil, Rigorous
error bounds for the optimal value in semidefinite programming, 2007, and Peyrl and Parrilo, Computing sum of squares
decompositions with rational coefficients, 2008). Rounding of sums is added to r, and taken from sigma and t; rows are scaled by
powers of two, exactly. Features that no cone with a weight has are in no sum.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dfeas.cones.checker.rows import ConeRows, DenseConeRows, bound_least
from dfeas.exact.arithmetic import UP, Floats, floor_of, gamma
from dfeas.verify.tallies import BlockTally

WIDEST = 500
"""Features up to which B'B is looked at."""


DEEP = 1e-4
"""Share of the largest of the least eigenvalues of x that a cone has, about, whose x is changed."""


class InteriorTally(BlockTally):
    """What some consecutive blocks showed of the cones that x is well inside of."""

    gram: Floats | None = None  # B'B (m, m), where there is a cone with weights
    used: NDArray[np.bool_] | None = None  # (m,) features that some cone with weights has
    room: float = np.inf  # t

    def add(self, other: InteriorTally) -> None:
        super().add(other)
        if self.gram is None or self.used is None:
            self.gram, self.used = other.gram, other.used
        elif other.gram is not None and other.used is not None:
            self.gram, self.used = self.gram + other.gram, self.used | other.used
        self.room = min(self.room, other.room)


def look_inside(cones: ConeRows, x: Floats, level: float) -> InteriorTally:
    """What some cones show that have x (c, d); those with a least eigenvalue above a level are changed."""
    norm = cones.norms(np.arange(len(x)))[1]
    weights = x / np.where(norm > 0, norm, 1.0)[:, None]  # these are what is summed up
    least = bound_least(cones.kind, cones.size, weights, np.zeros_like(weights))
    power = np.frexp(np.where(norm > 0, norm, 1.0))[1]
    room = np.ldexp(least, power)
    deep = room >= level
    factor = np.repeat(np.where(deep, np.ldexp(1.0, -power), 0.0), cones.dimension)
    gram, used = _multiply_rows(cones, factor)
    return InteriorTally(gram=gram, used=used, room=float(room[deep].min(initial=np.inf)), terms=len(factor))


def _multiply_rows(cones: ConeRows, factor: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Products of the features of all rows, each times 0 or a power of two, and which features there are."""
    if isinstance(cones, DenseConeRows):
        flat = cones.rows.reshape(len(factor), -1)
        scaled = flat * factor[:, None]
        return scaled.T @ scaled, flat.any(axis=0)
    rows = cones.rows.copy()
    rows.data = rows.data * np.repeat(factor, np.diff(rows.indptr))
    return np.asarray((rows.T @ rows).toarray()), np.bincount(rows.indices, minlength=rows.shape[1]) > 0


def is_balanced(tally: InteriorTally, residual: float) -> bool:
    """Whether there is an x in the cones with Ax = 0, where |Ax| of the one that was looked at is at most a residual."""
    if tally.gram is None or tally.used is None or not np.isfinite(tally.room):
        return False
    used = np.flatnonzero(tally.used)
    gram = tally.gram[np.ix_(used, used)]
    terms = tally.terms + len(used) + 6  # rows may be rounded, twice
    # |B|'|B| has no eigenvalue above the trace of B'B
    wrong = gamma(terms) * float(np.trace(gram)) * (1 + gamma(terms)) * UP + terms * 2.0**-900
    least = (float(floor_of(gram[None])[0]) - wrong) * (1 - 2.0**-50)
    return least > 0 and np.sqrt(2.0) * residual * UP < np.sqrt(least) * tally.room * (1 - 2.0**-50)
