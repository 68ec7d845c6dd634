"""What a driver knows of a method: a state machine that asks a pass and is told its answer.

The rider starts after ``after`` full passes of the first: a run that ends sooner does not pay for it. Its theorem holds for the
passes since then, and the bracket is the better one of both at either end.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any, Generic, TypeVar

import numpy as np
from msgspec import Struct, field

from dfeas.errors import UsageError, format_bytes
from dfeas.linalg.points import Floats, Indices
from dfeas.methods.mixture import Average, Mixture, most_softmaxes
from dfeas.methods.vector import Combination, Expansion, Vector, direction, upper_end, weights_of
from dfeas.passes.block import Columns
from dfeas.passes.protocol import Exclusive, Question, Together, sums_bytes
from dfeas.passes.vectors import POINT_BYTES
from dfeas.records import replace


class Start(Struct, frozen=True, eq=False):
    """What an earlier run knew of points like these."""

    y: Floats  # (m,) its direction, of length 1; 0 where it left none
    blocks: tuple[int, ...] = ()  # that come first: of points that it did not have, or of its conflict
    rows: Indices = field(default_factory=lambda: np.empty(0, np.int64))  # (s,) points of its conflict, ascending
    nearest: Columns | None = None  # that it left of its own points


class Facts(Struct, frozen=True):
    """What a method may know of the problem before the first pass."""

    m: int  # length of a column
    n: int  # number of columns
    memory: int = 1 << 30  # bytes that an answer may take, and what is kept of it
    blocks: int = 1  # of the data
    itemsize: int = 8  # bytes of an entry as stored
    tolerance: float | None = None  # the bracket is to be closed to this share of its upper end
    radius: float = 1.0  # length of the longest point as stored, with its intercept
    entries: float = 0.0  # stored ones of a column, on average; 0 for dense points
    eps: float = 1e-3  # |Ax| that is a verdict; 0 where none is
    start: Start | None = None  # of an earlier run
    block_rows: int = 0  # columns of each block but the last; 0 where nobody says

    def block_of(self, index: Indices) -> Indices:
        """Numbers of the blocks that columns lie in."""
        return index // (self.block_rows or -(-self.n // self.blocks))

    @property
    def row_sums(self) -> bool:
        """Whether no eigenvalue of the Gram matrix is above the largest row sum of K~: K is never negative."""
        return False

    @property
    def zero(self) -> Vector:
        """The origin of the space of y."""
        return np.zeros(self.m)

    def sums(self, count: int) -> int:
        """Bytes that a thread holds of answers about ``count`` vectors y."""
        return sums_bytes(self.m, self.blocks, count)

    @property
    def column_bytes(self) -> float:
        """Bytes of a column in memory; of a sparse one with its indices, and a copy of its entries in float64."""
        return self.entries * (self.itemsize + 12) if self.entries else self.m * self.itemsize


class Sparse(Struct, frozen=True, eq=False):
    """x on the simplex with few entries."""

    index: Indices  # (s,) ascending
    weight: Floats  # (s,) on the simplex
    score: Floats | None = None  # (s,) a_j'y of the direction that most columns agree with, if the method knows one
    y: Floats | None = None  # (dimension,) that direction

    @classmethod
    def of(cls, x: Floats) -> Sparse:
        """Of weights on all points (n,)."""
        index = np.flatnonzero(x)
        return cls(index, x[index])


def x_of(average: Average) -> Callable[[], Mixture | Sparse] | None:
    """Its best x, once there is one."""
    if average.x is not None:
        return partial(Sparse.of, average.x)
    return average.mixture if average.best else None


class ScratchVector(Struct, frozen=True):
    """x on scratch storage, where it has an entry for every point."""

    name: str  # of an n-vector


class Bracket(Struct, frozen=True):
    """margin_lower <= rho+ <= margin_upper, and the unit vector that attains the lower end."""

    lower: float = -1.0  # |a_j| = 1, so no margin is lower
    upper: float = 1.0
    y: Floats | Expansion | None = None  # (m,) unit, min_j a_j'y = lower

    def with_separator(self, y: Vector, low: float) -> Bracket:
        """Raise the lower end if y, of any length, has the larger margin: low = min_j a_j'y."""
        better = direction(y, low, self.lower)
        return self if better is None else Bracket(better[0], self.upper, better[1])

    def with_known(self, y: Vector) -> Bracket:
        """The same, if y knows its scores."""
        return self.with_separator(y, float(y.scores.min())) if isinstance(y, Combination) else self

    def with_upper(self, upper: float) -> Bracket:
        """Lower the upper end to |Ax| of some x on the simplex."""
        return Bracket(self.lower, min(upper, self.upper), self.y)


class Evidence(Struct, frozen=True, eq=False):
    """The best that a method can show now."""

    bracket: Bracket
    gordan: Callable[[], Mixture | Sparse | ScratchVector] | None  # builds x with |Ax| = bracket.upper; None: none yet
    iterations: int  # steps of the method as its paper counts them
    violated: int | None = None  # points on the wrong side of the last y, if the pass counted them
    stalled: str = ""  # why no further pass can help, if so
    hopeful: bool = False  # a separator is expected, however small |Ax| is: eps-infeasible must wait
    refining: bool = False  # a wider separator is expected, as its theorem promises: feasible must wait
    nearest: Callable[[], Columns | None] | None = None  # columns near to the separator, for other runs to begin from


class Traits(Struct, frozen=True):
    """What a method is, before anything is asked. Where it works it has a share: the passes that a run takes, over the bound of
    its theorem; the largest of benchmarks/method_passes.py and benchmarks/paper_tables.py, rounded up.
    """

    name: str  # as users call it
    summary: str = ""  # what it costs and gives, for people
    points: float | None = None  # share on points; None: it does not work there
    kernel: float | None = None  # with a kernel: the largest on problems of 100 and 300 points, rounded up
    cones: float | None = None  # on cones: those of points
    weighs_all: bool = False  # its certificate of infeasibility may need every point
    columns: bool = False  # it keeps columns in memory, where a solver works on them
    ordered: bool = False  # it reads points in their order
    stored: bool = False  # it reads n-vectors on scratch storage beside the points
    ball: bool = False  # on a second-order cone its distance is that of the ball

    @property
    def exclusive(self) -> bool:
        """Whether no two such methods share a read."""
        return self.ordered or self.stored


class MethodCost(Struct, frozen=True):
    """What a method takes beside its passes, in bytes where nothing else is said."""

    kept: float = 0.0  # from the first pass on
    per_pass: int = 0  # kept of each pass until it ends; 0 for a state that has a size
    remembered: float = inf  # passes of which that is kept, at most
    columns: int = 0  # columns in float64 that are kept, one of each pass, at most
    least: int = 0  # of the whole budget, without which it cannot work
    asked: int = 2  # vectors y of which one read tells, at most
    products: int = 1  # columns of a product with a Gram matrix that answers a question, at most
    remark: str = ""  # what else it takes, for a plan

    def kept_after(self, passes: float, m: int) -> float:
        """Bytes that are kept after so many passes over columns of length m."""
        return self.kept + 8 * m * min(passes, self.columns) + self.per_pass * min(passes, self.remembered)


class Ends(Struct, frozen=True):
    """The bracket, and the x that attains its upper end, of points of the simplex that know their scores."""

    bracket: Bracket = Bracket()
    best: Floats | None = None  # (n,) on the simplex, |x|_G = bracket.upper

    def with_simplex(self, x: Combination) -> Ends:
        """Lower the upper end to |x|_G; at the optimum Ax is the widest separator, so that it is tried for the other end."""
        bracket, upper = self.bracket.with_known(x), upper_end(x)
        return Ends(bracket.with_upper(upper), weights_of(x)) if upper < bracket.upper else replace(self, bracket=bracket)

    def evidence(self, iterations: int, violated: int | None = None, stalled: str = "") -> Evidence:
        x = None if self.best is None else partial(Sparse.of, self.best)
        return Evidence(self.bracket, x, iterations, violated, stalled)


S = TypeVar("S")


class Method(Generic[S]):
    """An algorithm. States are frozen, picklable and O(m k); every method is a pure function of its arguments."""

    @property
    @abstractmethod
    def traits(self) -> Traits:
        """What it is, before anything is asked."""

    @property
    def name(self) -> str:
        return self.traits.name

    def with_options(self, name: str) -> Method[S]:
        """The same with the options that stand after its ``name``. Raises UsageError for those that it has not."""
        if name != self.name:
            raise UsageError(f"method {name}: {self.name} has no options; leave out what is after its name")
        return self

    @abstractmethod
    def init(self, facts: Facts) -> S:
        """State before the first pass."""

    @abstractmethod
    def ask(self, state: S) -> Question:
        """The question of the next pass."""

    @abstractmethod
    def tell(self, state: S, answer: Any) -> S:
        """The state after the answer to what it has asked, which may be taken apart: it is told once."""

    @abstractmethod
    def evidence(self, state: S) -> Evidence:
        """What is known in this state."""

    @abstractmethod
    def bound(self, facts: Facts, margin: float) -> float:
        """Passes within which its theorem has a separator, if the best margin is at least this, or |Ax| at most this."""

    def to_values(self, state: S) -> Any:
        """What a checkpoint keeps of a state: numbers, text, None, arrays, tuples, lists, dicts with text for keys, and what
        states of dfeas are made of. These themselves are kept as they are.
        """
        return state

    def from_values(self, values: Any) -> S:
        """The state that these are of, with the same bits."""
        state: S = values
        return state

    def passes(self, facts: Facts, margin: float, share: float) -> float:
        """Passes that a run takes until a margin, or |Ax|, of ``margin``; ``share`` is that of its traits."""
        most = self.bound(facts, margin)
        return min(most, max(2.0, share * most))

    def cost(self, facts: Facts) -> MethodCost:
        if not self.traits.weighs_all:
            return MethodCost()
        remark = f"and {weights_text(facts)}, if there is no separator"
        return MethodCost(per_pass=32 * facts.m, remembered=most_softmaxes(facts.m), remark=remark)


def weights_at_once(facts: Facts) -> int:
    """Weights of points, at least of a block, in memory at a time: others are on storage, and its writer has pieces, too."""
    return max(facts.memory // (2 * POINT_BYTES), -(-facts.n // facts.blocks))


def weights_text(facts: Facts) -> str:
    """What weights of all points take, for people. Storage has them twice before the certificate is whole."""
    fit = facts.n <= weights_at_once(facts)
    return f"{format_bytes(16 * facts.n)} for weights" if fit else f"{format_bytes(32 * facts.n)} of storage for weights"


AnyMethod = Method[Any]
WRITTEN = ("init", "ask", "tell", "evidence", "bound")
"""Functions that each method has of its own."""


def missing_functions(method: AnyMethod) -> list[str]:
    """What is called of a method and it has not; a function that ``Method`` only describes returns None."""
    known = [name for name in vars(Method) if not name.startswith("_") and name != "traits"]
    empty = [name for name in WRITTEN if getattr(type(method), name, None) is vars(Method)[name]]
    return [name for name in known if name in empty or not hasattr(method, name)]


class Wrapping(Method[Any]):
    """A method that adds something to another one, and is like it in all that it does not say."""

    method: AnyMethod

    @property
    def traits(self) -> Traits:
        return self.method.traits

    def init(self, facts: Facts) -> Any:
        return self.method.init(facts)

    def ask(self, state: Any) -> Any:
        return self.method.ask(state)

    def tell(self, state: Any, answer: Any) -> Any:
        return self.method.tell(state, answer)

    def bound(self, facts: Facts, margin: float) -> float:
        return self.method.bound(facts, margin)

    def evidence(self, state: Any) -> Evidence:
        return self.method.evidence(state)

    def to_values(self, state: Any) -> Any:
        return self.method.to_values(state)

    def from_values(self, values: Any) -> Any:
        return self.method.from_values(values)

    def passes(self, facts: Facts, margin: float, share: float) -> float:
        return self.method.passes(facts, margin, share)

    def cost(self, facts: Facts) -> MethodCost:
        return self.method.cost(facts)


class LedState(Struct, frozen=True, eq=False):
    """States of the one that leads, which stays as it was left, and of the one that follows."""

    leader: Any
    left: int  # passes for which it leads, unless it has a separator
    first: Any


class Led(Wrapping, Struct, frozen=True, eq=False):
    """``leader`` comes first for ``lead`` passes, in the hope of a separator; then all is as with ``method``."""

    method: AnyMethod
    leader: AnyMethod
    lead: Callable[[Facts], int]

    def init(self, facts: Facts) -> Any:
        first, passes = self.method.init(facts), self.lead(facts)
        return LedState(self.leader.init(facts), passes, first) if passes else first

    def ask(self, state: Any) -> Question:
        if not isinstance(state, LedState):
            return self.method.ask(state)
        return self.leader.ask(state.leader) if self.leads(state) else self.method.ask(state.first)

    def leads(self, state: LedState) -> bool:
        return state.left > 0 or self.leader.evidence(state.leader).bracket.lower > 0

    def tell(self, state: Any, answer: Any) -> Any:
        if not isinstance(state, LedState):
            return self.method.tell(state, answer)
        if self.leads(state):
            return replace(state, leader=self.leader.tell(state.leader, answer), left=state.left - 1)
        return replace(state, first=self.method.tell(state.first, answer))

    def bound(self, facts: Facts, margin: float) -> float:
        return self.lead(facts) + self.method.bound(facts, margin)

    def passes(self, facts: Facts, margin: float, share: float) -> float:
        """As many as if the leader has led in vain."""
        return self.lead(facts) + self.method.passes(facts, margin, share)

    def cost(self, facts: Facts) -> MethodCost:
        own = self.method.cost(facts)
        return replace(own, asked=self.leader.cost(facts).asked) if self.lead(facts) else own

    def evidence(self, state: Any) -> Evidence:
        if not isinstance(state, LedState):
            return self.method.evidence(state)
        others = self.leader.evidence(state.leader)
        if self.leads(state):
            return replace(others, hopeful=True)  # the method may name a conflict, and prove it exactly
        return with_bracket_of(self.method.evidence(state.first), others)


def with_bracket_of(mine: Evidence, others: Evidence) -> Evidence:
    """Evidence of one method with the better ends of two."""
    gordan = mine.gordan if mine.bracket.upper <= others.bracket.upper else others.gordan
    lower = mine.bracket if mine.bracket.lower >= others.bracket.lower else others.bracket
    bracket = Bracket(lower.lower, min(mine.bracket.upper, others.bracket.upper), lower.y)
    return replace(mine, bracket=bracket, gordan=gordan)


class RideAlongState(Struct, frozen=True, eq=False):
    """States of both methods, and where the rider begins."""

    first: Any
    rider: Any
    full: int  # passes over all data


class RideAlong(Wrapping, Struct, frozen=True, eq=False):
    """``method`` comes first and decides what is read; ``rider`` asks one pass a step."""

    method: AnyMethod
    rider: AnyMethod
    traits: Traits
    after: int = 2

    def init(self, facts: Facts) -> RideAlongState:
        return RideAlongState(self.method.init(facts), self.rider.init(facts), 0)

    def ask(self, state: RideAlongState) -> Question:
        """The question of the first, and the rider's, if all blocks are read."""
        question = self.method.ask(state.first)
        if isinstance(question, Exclusive) or state.full < self.after:
            return question
        rider = self.rider.ask(state.rider)
        assert not isinstance(rider, Exclusive), "a rider asks passes over all blocks"
        return Together((question, rider))

    def tell(self, state: RideAlongState, answer: Any) -> RideAlongState:
        question = self.ask(state)
        if isinstance(question, Exclusive):
            return replace(state, first=self.method.tell(state.first, answer))
        if state.full < self.after:
            return replace(state, first=self.method.tell(state.first, answer), full=state.full + 1)
        mine, others = answer
        rider = self.rider.tell(state.rider, others)
        return RideAlongState(self.method.tell(state.first, mine), rider, state.full + 1)

    def bound(self, facts: Facts, margin: float) -> float:
        return min(self.method.bound(facts, margin), 1 + self.after + self.rider.bound(facts, margin))

    def evidence(self, state: RideAlongState) -> Evidence:
        return with_bracket_of(self.method.evidence(state.first), self.rider.evidence(state.rider))
