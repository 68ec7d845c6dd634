"""What a driver knows of a method: a state machine that asks a pass and is told its answer. No I/O, no clock, no Dask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from dfeas.passes import Question, Recover
from dfeas.passes.block import Floats, Indices


@dataclass(frozen=True, slots=True)
class Facts:
    """What a method may know of the problem before the first pass."""

    m: int  # length of a column
    n: int  # number of columns
    memory: int = 1 << 30  # bytes that an answer may take, and what is kept of it
    blocks: int = 1  # of the data
    itemsize: int = 8  # bytes of an entry as stored
    tolerance: float | None = None  # the bracket is to be closed to this share of its upper end
    radius: float = 1.0  # length of the longest point as stored, with its intercept
    entries: float = 0.0  # stored ones of a column, on average; 0 for dense points

    @property
    def column_bytes(self) -> float:
        """Bytes of a column in memory; of a sparse one with its indices, and a copy of its entries in float64."""
        return self.entries * (self.itemsize + 12) if self.entries else self.m * self.itemsize


@dataclass(frozen=True, slots=True)
class Mixture:
    """x = sum_t share_t softmax(-A'y_t / mu_t), a point of the simplex held by m-vectors only."""

    Y: Floats  # (m, T)
    mu: Floats  # (T,)
    lse: Floats  # (T,)
    share: Floats  # (T,) on the simplex
    mean: Floats  # (m, T) A softmax(-A'y_t / mu_t), so that Ax = mean share

    def question(self, floor: float) -> Recover:
        """The pass that rebuilds x; weights of at most ``floor`` are left out."""
        return Recover(self.Y, self.mu, self.lse, self.share, floor)


@dataclass(frozen=True, slots=True)
class Sparse:
    """x with few entries."""

    index: Indices  # (s,) ascending
    weight: Floats  # (s,) on the simplex
    score: Floats | None = None  # (s,) a_j'y of the direction that most columns agree with, if the method knows one


@dataclass(frozen=True, slots=True)
class Expansion:
    """y = sum_j amount_j a_j over some columns, where y has no entries of its own: in the space of a kernel."""

    index: Indices  # (s,) ascending
    amount: Floats  # (s,) of any sign; |y| = 1


@dataclass(frozen=True, slots=True)
class Stored:
    """x on scratch storage."""

    name: str  # of an n-vector


@dataclass(frozen=True, slots=True)
class Bracket:
    """margin_lower <= rho+ <= margin_upper, and the unit vector that attains the lower end."""

    lower: float = -1.0  # |a_j| = 1, so no margin is lower
    upper: float = 1.0
    y: Floats | Expansion | None = None  # (m,) unit, min_j a_j'y = lower

    def with_separator(self, y: Floats, low: float) -> Bracket:
        """Raise the lower end if y, of any length, has the larger margin: low = min_j a_j'y."""
        length = float(np.linalg.norm(y))
        if length == 0 or not low / length > self.lower:
            return self
        return Bracket(low / length, self.upper, y / length)

    def with_upper(self, upper: float) -> Bracket:
        """Lower the upper end to |Ax| of some x on the simplex."""
        return Bracket(self.lower, min(upper, self.upper), self.y)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The best that a method can show now."""

    bracket: Bracket
    gordan: Callable[[], Mixture | Sparse | Stored] | None  # builds x with |Ax| = bracket.upper; None while there is none
    iterations: int  # steps of the method as its paper counts them
    violated: int | None = None  # points on the wrong side of the last y, if the pass counted them
    stalled: str = ""  # why no further pass can help, if so
    hopeful: bool = False  # a separator is expected, however small |Ax| is: eps-infeasible must wait
    refining: bool = False  # a wider separator is expected, as its theorem promises: feasible must wait


S = TypeVar("S")


class Method(Protocol[S]):
    """An algorithm. States are frozen, picklable and O(m k); every method is a pure function of its arguments."""

    @property
    def name(self) -> str:
        """As users call it."""

    def init(self, facts: Facts) -> S:
        """State before the first pass."""

    def ask(self, state: S) -> Question:
        """The question of the next pass."""

    def tell(self, state: S, answer: Any) -> S:
        """State after the answer."""

    def evidence(self, state: S) -> Evidence:
        """What is known."""

    def bound(self, facts: Facts, margin: float) -> float:
        """Passes within which its theorem has a separator, if the best margin is at least this, or |Ax| at most this."""


AnyMethod = Method[Any]
