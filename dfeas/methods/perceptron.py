"""Perceptron with corrections gathered per pass.

Reference: Ramdas and Pena 2014, Algorithm 1; Chevaleyre's notes, section 1.4; bound by Novikoff 1962.

    y <- y + a_j    for any j with a_j'y <= 0

Passes: one pass selects up to ``cap`` violated columns, the worst first; legal corrections are made among them in memory
until none of them is violated; then the data is read again. Every correction is a mistake in Novikoff's sense, so

    corrections <= 1 / rho^2     in total and in any order, when the margin rho is positive.

Evidence: y = sum of k corrections, so with x = counts / k on the simplex Ax = y / k and |Ax| <= 1 / sqrt(k) at every step:
the classical perceptron is a (slow) witness of infeasibility, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dfeas.methods.protocol import Bracket, Evidence, Facts, Sparse
from dfeas.passes import Select, Selection
from dfeas.passes.block import Floats, Indices


@dataclass(frozen=True, slots=True)
class PerceptronState:
    """y and the corrections that made it."""

    y: Floats  # (m,) sum of corrections
    corrections: int
    index: Indices  # (s,) points that were corrected, ascending
    count: Indices  # (s,) how often
    cap: int  # columns gathered per pass
    bracket: Bracket
    violated: int | None  # by the y that was last asked
    best_upper: Sparse | None  # x with |Ax| = bracket.upper


@dataclass(frozen=True, slots=True)
class Perceptron:
    """``cap`` columns are gathered per pass (0: 20 m, at least 1,000); at most ``most`` corrections follow a pass."""

    cap: int = 0
    most: int = 100_000
    name: str = "perceptron"

    def init(self, facts: Facts) -> PerceptronState:
        """y = 0."""
        # a column, its copy in a merge, and partials of both ends of a range
        fits = max(1, facts.memory // (64 * facts.m))
        cap = self.cap or max(1000, 20 * facts.m)
        none = np.empty(0, np.int64)
        return PerceptronState(np.zeros(facts.m), 0, none, none, min(cap, fits, facts.n), Bracket(), None, None)

    def ask(self, state: PerceptronState) -> Select:
        """Columns that y does not have on its positive side."""
        return Select(state.y, 0.0, state.cap, state.cap)

    def tell(self, state: PerceptronState, answer: Selection) -> PerceptronState:
        """Correct among the gathered columns."""
        bracket = state.bracket.with_separator(state.y, answer.low)
        state = replace(state, bracket=bracket, violated=answer.violated)
        if answer.violated == 0:
            return state
        y, count = correct(state.y, answer.columns.unit(), self.most)
        made = np.flatnonzero(count)
        index, position = np.unique(np.concatenate([state.index, answer.columns.index[made]]), return_inverse=True)
        total = np.zeros(len(index), np.int64)
        np.add.at(total, position, np.concatenate([state.count, count[made]]))
        corrections = state.corrections + int(count.sum())
        state = replace(state, y=y, corrections=corrections, index=index, count=total)
        upper = float(np.linalg.norm(y)) / corrections
        if upper < bracket.upper:
            state = replace(state, bracket=bracket.with_upper(upper), best_upper=Sparse(index, total / corrections))
        return state

    def bound(self, facts: Facts, margin: float) -> float:
        """One for each of 1 / margin^2 corrections, and one to see that none is left; far fewer as a rule."""
        return 1 + 1 / margin**2

    def evidence(self, state: PerceptronState) -> Evidence:
        """Both ends of the bracket."""
        best = state.best_upper
        stalled = "no point is violated, and nothing else is corrected" if state.violated == 0 else ""
        return Evidence(state.bracket, None if best is None else lambda: best, state.corrections, state.violated, stalled)


def correct(y: Floats, columns: Floats, most: int) -> tuple[Floats, Indices]:
    """Perceptron corrections among columns (c, m), one a row, until none is violated or ``most`` were made.

    Returns the new y (m,) and how often each column was added (c,).
    """
    y = y.copy()
    count = np.zeros(len(columns), np.int64)
    made = 0
    while made < most:
        violated = np.flatnonzero(columns @ y <= 0)
        if not violated.size:
            break
        for position, j in enumerate(violated):
            column = columns[j]
            # y has not changed since the first was found violated, by a product that may round differently
            if position == 0 or column @ y <= 0:
                y += column
                count[j] += 1
                made += 1
                if made == most:
                    break
    return y, count
