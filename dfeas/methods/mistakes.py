"""Methods that correct mistakes: columns on the wrong side of y, or too near, are added to a sum that y follows.

One pass gathers up to ``cap`` such columns, the worst first, and those that are nearly wrong: without them each round of
corrections would undo the last. Legal corrections are made among them in memory until none is wrong; then the data is read
again. A rule says what is added, which y the sum stands for, what counts as a mistake, and
after how many corrections its theorem refutes the guess of the margin that it works with: then the sum starts again with half
of it.

Evidence: the sum of a round is A x times the sum of its weights, so its length bounds every margin from above.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import inf, sqrt
from typing import Any, Protocol

import numpy as np

from dfeas.linalg.blas import beat
from dfeas.linalg.points import Floats, Indices, Tile, add_row, row_dot
from dfeas.methods.protocol import Bracket, Evidence, Facts, Method, MethodCost, Sparse, Traits
from dfeas.passes.block import Columns
from dfeas.passes.select import Select, Selection
from dfeas.records import replace


@dataclass(frozen=True, slots=True)
class Amounts:
    """Amounts on points; a new one for each change."""

    index: Indices  # (s,) ascending
    amount: Floats  # (s,) >= 0

    @classmethod
    def none(cls) -> Amounts:
        return cls(np.empty(0, np.int64), np.empty(0))

    def plus(self, index: Indices, amount: Floats) -> Amounts:
        """With more of some points; ``index`` (c,) is ascending, each point once."""
        place = np.searchsorted(self.index, index)
        known = np.zeros(len(index), bool)
        inside = place < len(self.index)
        known[inside] = self.index[place[inside]] == index[inside]
        total = self.amount.copy()
        total[place[known]] += amount[known]
        if known.all():
            return Amounts(self.index, total)
        new = ~known
        return Amounts(np.insert(self.index, place[new], index[new]), np.insert(total, place[new], amount[new]))

    def times(self, factor: float) -> Amounts:
        return Amounts(self.index, self.amount * factor)

    def sparse(self) -> Sparse:
        some = self.amount > 0
        return Sparse(self.index[some], self.amount[some] / self.amount.sum())


class CorrectionRule(Protocol):
    """What tells the methods apart. Pure functions; what is not said otherwise is that of unit columns and no guess."""

    @property
    def raw(self) -> bool:
        """Whether points count as stored, and not as unit columns."""
        return False

    @property
    def refines(self) -> bool:
        """Whether its theorem is about the last y rather than the first separator."""
        return False

    def guess(self, facts: Facts) -> float:
        """The first guess of the margin."""
        return 0.0

    def shares(self, columns: Columns) -> Floats:
        """Factors (c,) > 0 of unit columns: what a correction adds."""
        return np.ones(len(columns))

    def direction(self, total: Floats, guess: float) -> Floats:
        """y for the sum of corrections."""
        return total

    def bar(self, guess: float) -> float:
        """A column is a mistake if its product with y is at most this share of |y|."""
        return 0.0

    def limit(self, m: int, radius: float, guess: float) -> float:
        """Corrections that a round needs at most, if the best margin is at least the guess."""
        return inf

    def bound(self, facts: Facts, margin: float) -> float:
        """Corrections in all rounds, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MistakesState:
    """The sum of this round, and the y that it stands for."""

    guess: float  # of the margin
    total: Floats  # (m,) sum of the corrections of this round
    y: Floats  # (m,) the direction that is asked
    reach: float = 0.0  # how far beyond the bar columns are gathered, in shares of |y|
    made: int = 0  # corrections of this round
    corrections: int = 0  # of all rounds
    tally: Amounts = field(default_factory=Amounts.none)  # what each point has added in this round, in unit columns
    cap: int  # columns gathered per pass
    quota: int  # and of each block
    most: int  # corrections after a pass
    radius: float  # length of the longest point as stored
    bracket: Bracket = field(default_factory=Bracket)
    violated: int | None = None  # points on the wrong side of the y that was last asked
    done: bool = False  # no column is a mistake any more
    best_upper: Sparse | None = None  # x with |Ax| = bracket.upper


@dataclass(frozen=True, slots=True)
class Mistakes(Method[MistakesState]):
    """``cap`` columns are gathered per pass (0: 20 m, at least 1,000); at most ``most`` corrections follow a pass (0: n / 4,
    within 1,000 and 100,000, so that they take no longer than a pass or two).
    """

    rule: CorrectionRule
    traits: Traits
    cap: int = 0
    most: int = 0

    def init(self, facts: Facts) -> MistakesState:
        return MistakesState(**self.begin(facts))

    def begin(self, facts: Facts) -> dict[str, Any]:
        """What a state is before the first pass: nothing is corrected, and y = 0, which every column is a mistake of."""
        # a column, its copy in a merge, and partials of both ends of a range
        fits = max(1, int(facts.memory // (64 * (2 * facts.entries or facts.m))))
        cap = min(self.cap or max(1000, 20 * facts.m), fits, facts.n)
        # 16: a block may give so many columns, and four times its share: data in random order loses nothing by it
        quota = min(cap, max(16, -(-4 * cap // facts.blocks)))
        most = self.most or min(max(1000, facts.n // 4), 100_000)
        zero, guess = np.zeros(facts.m), self.rule.guess(facts)
        return {"guess": guess, "total": zero, "y": zero, "cap": cap, "quota": quota, "most": most, "radius": facts.radius}

    def ask(self, state: MistakesState) -> Select:
        y, _ = _unit(state.y)
        return Select(y, self.rule.bar(state.guess) + state.reach, state.cap, state.quota, self.rule.raw)

    def tell(self, state: MistakesState, answer: Selection) -> MistakesState:
        y, length = _unit(state.y)
        bracket = state.bracket.with_separator(y, answer.low)
        # y = 0 has no direction, and every column is a mistake of it
        beyond = (self.rule.bar(state.guess) if length > 0 else 0.0) - answer.score
        state = replace(state, bracket=bracket, violated=answer.violated, done=not (beyond >= 0).any())
        if state.done:
            return state
        if length > 0:
            state = replace(state, reach=_reach(state, float(beyond.max()), len(beyond)))
        return self._correct(state, answer.columns, int(beyond.argmax()))

    def _correct(self, state: MistakesState, columns: Columns, worst: int) -> MistakesState:
        """Corrections among these columns, of which the one at ``worst`` is wrong."""
        shares = self.rule.shares(columns)
        vectors, left = columns.multiply_by(shares), state.most
        while left > 0:
            guess, more = state.guess, min(left, self._left(state))
            direction = partial(self.rule.direction, guess=guess)
            total, count = correct(state.total, vectors, more, direction, self.rule.bar(guess), worst)
            state = self._add_corrections(state, total, columns, shares, count)
            left -= int(count.sum())
            if self._left(state) > 0:
                break
            zero, worst = np.zeros_like(total), -1
            state = replace(state, guess=guess / 2, total=zero, y=zero, made=0, tally=Amounts.none())
        return state

    def _left(self, state: MistakesState) -> int:
        """Corrections until the guess is refuted."""
        limit = self.rule.limit(len(state.y), state.radius, state.guess)
        return int(min(limit, 2.0**62)) + 1 - state.made

    def _add_corrections(
        self, state: MistakesState, total: Floats, columns: Columns, shares: Floats, count: Indices
    ) -> MistakesState:
        some = np.flatnonzero(count)
        tally = state.tally.plus(columns.index[some], count[some] * shares[some])
        corrections = int(count.sum())
        y, made = self.rule.direction(total, state.guess), state.made + corrections
        state = replace(state, total=total, y=y, made=made, corrections=state.corrections + corrections, tally=tally)
        upper = float(np.linalg.norm(total)) / tally.amount.sum()
        if upper < state.bracket.upper:
            state = replace(state, bracket=state.bracket.with_upper(upper), best_upper=tally.sparse())
        return state

    def bound(self, facts: Facts, margin: float) -> float:
        """One for each correction, and one to see that none is left; far fewer as a rule."""
        return 1 + self.rule.bound(facts, margin)

    def cost(self, facts: Facts) -> MethodCost:
        return MethodCost(kept=min(facts.memory, 64 * facts.m * max(1000, 20 * facts.m)))

    def evidence(self, state: MistakesState) -> Evidence:
        best, refining = state.best_upper, self.rule.refines and not state.done
        gordan = None if best is None else lambda: best
        stalled = "no point is a mistake any more, and nothing else is corrected" if state.done else ""
        return Evidence(state.bracket, gordan, state.corrections, state.violated, stalled, refining=refining)


def _unit(y: Floats) -> tuple[Floats, float]:
    """y of length 1, or 0, which products in float32 can take, and its length."""
    length = sqrt(y @ y)
    return (y / length if length > 0 else y), length


def _reach(state: MistakesState, worst: float, gathered: int) -> float:
    """How far to gather next: as far as the worst was wrong, farther while there is room, nearer when there is none."""
    if gathered >= state.cap:
        return max(worst, state.reach / 2)
    return max(worst, state.reach) * (2 if gathered < state.cap // 4 else 1)


def correct(
    total: Floats,
    columns: Tile,
    most: int,
    direction: Callable[[Floats], Floats] = lambda total: total,
    bar: float = 0.0,
    worst: int = -1,
) -> tuple[Floats, Indices]:
    """Add columns (c, m), one a row, to the sum while a'y <= bar |y|, y = direction(sum), until none is left or ``most``.
    ``worst`` is known to be wrong at first, by a product that rounds differently; -1 for none. Returns the new sum (m,) and how
    often each column was added (c,).
    """
    total = total.copy()
    count = np.zeros(columns.shape[0], np.int64)
    corrections = 0
    while corrections < most:
        beat()
        y = direction(total)
        wrong = np.flatnonzero(columns @ y <= _height(bar, y))
        if corrections == 0 and not wrong.size and worst >= 0:
            wrong = np.array([worst])
        if not wrong.size:
            break
        for position, j in enumerate(wrong):
            # y has not changed since the first was found wrong, by a product that may round differently
            if position == 0 or row_dot(columns, j, y) <= _height(bar, y):
                add_row(total, columns, j)
                y = direction(total)
                count[j] += 1
                corrections += 1
                if corrections == most:
                    break
    return total, count


def _height(bar: float, y: Floats) -> float:
    return bar * sqrt(y @ y) if bar else 0.0
