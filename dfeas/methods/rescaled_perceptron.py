"""The perceptron in coordinates that are rescaled, again and again, until their margin is wide.

Reference: Pena and Soheili 2016 for one column; Hoberg and Rothvoss 2017, Dadush, Vegh and Zambelli 2020 for all of them
(Dunagan and Vempala 2008 were the first, in random directions). Columns are seen as b_j = T'a_j / |T'a_j|, with T = I at first,
so that z of F = {z: b_j'z > 0 for all j} stands for y = T z. A phase is the perceptron of the b_j, from z = 0:

    z <- z + b_j    for any j with b_j'z <= 0;        x = counts / k, with |Bx| = |z| / k <= 1 / sqrt(k)

It ends when x tells where F is narrow: for a unit z of F no b_j'z is negative, so x_j b_j'z <= |Bx|, and their sum is, too.

    one column:   M = I + 3 b_j b_j' for the largest x_j,  z'Mz <= 1 + 3 delta^2,  when delta = |Bx| / x_j <= 1 / sqrt(6 m)
    all of them:  M = I + c sum_j x_j b_j b_j',            z'Mz <= 1 + c |Bx|,     when |Bx| <= 1 / (5 m);  c = 1 / (m |Bx|) - 1

    T <- T M^-1/2,   which is T (I - b_j b_j' / 2) for one column

Guarantee: M^1/2 takes F to the next F and lengthens none of its unit z by more than the root above, so the share of the unit
ball that F fills grows by (det M / (1 + 3 delta^2)^m)^1/2 >= 2 exp(-1/4) > 1.55, or by (det M / (1 + c |Bx|)^m)^1/2 >=
(5 exp(-4/5))^1/2 > 1.49, as det M >= 1 + c. With a margin rho the first F has a ball of radius rho / (1 + rho) in the unit
ball, and none has more than half of it: after a growth of e^g in all, rho <= 1 / ((2 e^g)^(1/m) - 1), and there are at most
m log(1 + 1 / rho) / log(1.49) rescalings. A phase has at most 6 m (m + 1)^2 corrections, as x is kept on m + 1 columns by
Caratheodory, or 25 m^2 (and max(100, m^2) until it is looked): O(m^4 log(1 / rho)), or O(m^3 log(1 / rho)), in all.

Passes: one for as many corrections, in as many phases, as the gathered columns allow.
Evidence: both ends; x_j / |T'a_j| are the weights of the columns as they are. No theorem says when they prove infeasibility:
once the growth refutes every margin above rounding, T = I, and it goes on as the perceptron, whose |Ax| <= 1 / sqrt(k).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, log, log1p, sqrt

import numpy as np

from dfeas.linalg.basic import basic
from dfeas.linalg.blas import beat
from dfeas.linalg.points import Floats, Indices
from dfeas.methods.mistakes import Amounts, Mistakes, MistakesState, correct
from dfeas.methods.perceptron import Novikoff
from dfeas.methods.protocol import Evidence, Facts, MethodCost, Traits
from dfeas.passes.block import Columns
from dfeas.records import replace

FEWEST = 10_000
"""Corrections that follow a pass, at most, where it has few points."""
LEAST = 1e-15
"""A margin below this is rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RescaledPerceptronState(MistakesState):
    """In a phase: ``total`` is its z, ``tally`` the counts on columns b_j, k = ``made``."""

    T: Floats  # (m, m)
    columns: Floats  # (s, m) a_j of the tally, one a row
    rescalings: int = 0
    growth: float = 0.0  # g

    @property
    def most_margin(self) -> float:
        """No margin is larger."""
        return 1 / expm1((log(2) + self.growth) / len(self.T)) if self.growth > 0 else 1.0


@dataclass(frozen=True, slots=True)
class RescaledPerceptron(Mistakes):
    """By one column, or with ``whole`` by all that were corrected."""

    whole: bool = False

    def init(self, facts: Facts) -> RescaledPerceptronState:
        """Many phases follow a pass, even of few points."""
        start, m = self.begin(facts), facts.m
        start["most"] = self.most or max(FEWEST, start["most"])
        start["cap"] = min(start["cap"], max(1, facts.memory // (64 * m)))  # sparse ones, too, are dense in other coordinates
        return RescaledPerceptronState(T=np.eye(m), columns=np.empty((0, m)), **start)

    def _correct(self, state: MistakesState, columns: Columns, worst: int) -> MistakesState:
        """Phases among these columns and those of the tally, until none is wrong."""
        assert isinstance(state, RescaledPerceptronState)
        m = len(state.T)
        index, first = np.unique(np.concatenate([state.tally.index, columns.index]), return_index=True)
        points = np.concatenate([state.columns, columns.unit()])[first]
        count = np.concatenate([state.tally.amount, np.zeros(len(columns))])[first]
        seen, length = _unit_rows(points @ state.T)
        place, left = int(np.searchsorted(index, columns.index[worst])), state.most
        while left > 0:
            beat(f"{state.rescalings} rescalings, {state.corrections} corrections")
            asked = min(left, max(100, m * m))
            total, added = correct(state.total, seen, asked, worst=place)
            made, place, count = int(added.sum()), -1, count + added
            left -= made
            state = replace(state, total=total, made=state.made + made, corrections=state.corrections + made)
            if made < asked:
                break
            if not self.whole:
                count = _basic_counts(seen, count)
            if (narrow := self._find_narrow(state, seen, count)) is not None:
                state = _rescale(_with_upper(state, index, points, count / length), *narrow)
                (seen, length), count = _unit_rows(points @ state.T), np.zeros(len(count))
        count = _basic_counts(seen, count)
        some, state = np.flatnonzero(count), _with_upper(state, index, points, count / length)
        y, tally = state.T @ state.total, Amounts(index[some], count[some])
        return replace(state, y=y, tally=tally, columns=points[some])

    def _find_narrow(self, state: RescaledPerceptronState, seen: Floats, count: Floats) -> tuple[Floats, float] | None:
        """Rows b (r, m) with M = I + b'b, and a bound of |b z|^2 for unit z of F; None as long as x does not tell enough."""
        if state.most_margin < LEAST:
            return None
        m, size = len(state.T), float(np.linalg.norm(state.total))
        if not self.whole:
            j = int(count.argmax())
            delta = size / count[j]
            return (sqrt(3) * seen[j : j + 1], 3 * delta**2) if delta <= 1 / sqrt(6 * m) else None
        short = size / state.made
        if short > 1 / (5 * m):
            return None
        c = 1 / max(m * short, 1e-3) - 1  # |Bx| may be 0
        some = np.flatnonzero(count)
        return np.sqrt(c * count[some, None] / state.made) * seen[some], c * short

    def bound(self, facts: Facts, margin: float) -> float:
        """One for each correction of a separator, and one to see that none is left; no ``margin`` of |Ax| is bounded."""
        m = facts.m
        phase = 25 * m**2 if self.whole else 6 * m * (m + 1) ** 2
        return 1 + (1 + m * log1p(1 / margin) / log(1.49)) * (phase + max(100, m**2))

    def passes(self, facts: Facts, margin: float, share: float) -> float:
        """``share`` is that of the corrections, and many follow a pass."""
        most, after = self.bound(facts, margin), int(self.begin(facts)["most"])
        return min(most, 8 + share * most / max(FEWEST, after))

    def cost(self, facts: Facts) -> MethodCost:
        """T, M and its eigenvectors, and three copies of the columns that are gathered in other coordinates."""
        own, square = Mistakes.cost(self, facts), 8 * facts.m**2
        return replace(own, kept=own.kept + 6 * square, least=12 * square)

    def evidence(self, state: MistakesState) -> Evidence:
        """A separator is expected, however small |Ax| is, until all margins are refuted."""
        assert isinstance(state, RescaledPerceptronState)
        return replace(Mistakes.evidence(self, state), hopeful=state.most_margin >= LEAST)


def _unit_rows(rows: Floats) -> tuple[Floats, Floats]:
    """Rows of length 1, zeros of a zero row, and the lengths."""
    length = np.linalg.norm(rows, axis=1)
    length[length == 0] = 1.0
    return rows / length[:, None], length


def _basic_counts(seen: Floats, count: Floats) -> Floats:
    """The same sums from m + 1 columns at most."""
    if np.count_nonzero(count) <= seen.shape[1] + 1:
        return count
    kept, amount = basic(lambda some: seen[some], seen.shape[1], count)
    few = np.zeros(len(count))
    few[kept] = amount
    return few


def _rescale(state: RescaledPerceptronState, rows: Floats, stretch: float) -> RescaledPerceptronState:
    """The next phase, in coordinates of T M^-1/2; only the directions of T count, so it is made as large as I."""
    value, vector = np.linalg.eigh(rows.T @ rows)
    more = np.log1p(np.maximum(value, 0.0))
    T = state.T @ (vector * np.exp(-more / 2)) @ vector.T
    T /= np.abs(T).max()
    growth = state.growth + (float(more.sum()) - len(T) * log1p(stretch)) / 2
    zero = np.zeros(len(T))
    state = replace(state, T=T, growth=growth, rescalings=state.rescalings + 1, total=zero, made=0)
    return state if state.most_margin >= LEAST else replace(state, T=np.eye(len(T)))


def _with_upper(state: RescaledPerceptronState, index: Indices, points: Floats, x: Floats) -> RescaledPerceptronState:
    """Lower the upper end to |Ax|, for x of any sum."""
    if not x.any() or (upper := float(np.linalg.norm(x @ points)) / x.sum()) >= state.bracket.upper:
        return state
    return replace(state, bracket=state.bracket.with_upper(upper), best_upper=Amounts(index, x).sparse())


BY_ONE = RescaledPerceptron(Novikoff(), Traits("rescaled-perceptron", "as the perceptron, for tiny margins", points=0.03))
BY_ALL = RescaledPerceptron(Novikoff(), Traits("rescaled-perceptron-ellipsoid", "the same, faster", points=0.03), whole=True)
