"""Working set: columns in memory answer the question, passes only look for what they miss.

Reference: own; the soft margin of Mangasarian 2002 in memory, cutting planes over the data; von Neumann's bound below.

    W <- the points of an earlier conflict, or what an earlier y has wrong, if a run is given      start.py: WarmStart
    W <- a random sample of about sqrt(m n) columns, or 8 m and then batches of blocks             batches.py: schedule
    repeat
      separate W: a separator w, or a conflict among W                                             method.py: solve_columns
        a conflict of columns in many blocks: look for one in few, which are read again        method.py: _find_near_conflict
        |Ax| of the weights x is less than before: x is the best; a conflict: stop, it is one      method.py: _note_solution
      while batches are left: the lowest columns of the next one join W, separate again            method.py: _batch
      one pass with w: low and violations of all points, and columns for W                         method.py: ask
        the first time the lowest, five times the sample, violated or not; later those below       method.py: _threshold
        half of the least score on W, or among its 5 m lowest
      none violated: w separates                                                                   __init__.py: tell
      refused by the checker: w has to be nearer to the widest margin of W                         method.py: grow
      W <- W + taken                                                                               method.py: _solve_with
        memory is full: the lowest of both stay, half of them new at most                          method.py: _drop_columns
        and no separator has clearly fewer points wrong: the next y is z = Ax                      method.py: _approach
    from the third full pass on a smooth perceptron answers the same reads                         protocol.py: RideAlong
    where W has all columns, too wide for a basis, mirror prox leads for some passes               batches.py: passes_ahead

How W is separated is told in ``linalg.separation``. Taking far more than what is violated on the first pass is what makes nine
passes two: a sample of s columns leaves about m n / s violated, and their neighbours decide the next round.

Guarantee, while memory holds W: every pass adds a column, and none is dropped, but once, for a conflict of few; so it ends.
When W reaches ``cap`` columns passes ask one of two y:

    the separator of W, as long as each has at most ``fewer`` (0.9) times as many points wrong as any before;
    else, once, y = z = Ax of the best weights x until then.

If in a pass with z some column has a_j'z <= 0, the lowest has, and the segment from z to it has a point z' with

    1 / |z'|^2 >= 1 / |z|^2 + 1.

The next x is at least as good, and no other pass makes it worse. So |Ax| <= 1 / sqrt(t) after t passes with z (von Neumann's
bound; Ramdas and Pena 2014, Algorithm 5), and of those since W is full at most t + 1 and log n / -log fewer are others: a run
ends within 2 / rho^2 and these when the margin rho is positive, and within 2 / eps^2 when |Ax| <= eps is asked. x has at most
``cap`` weights and one for each pass with z, and W needs none of its columns. With 4 (m + 1) columns or more, without batches,
no run took over 11 passes, of m = 50 .. 1000, separable or not, dense or sparse; z was asked for 12 times in 630 of them.

Where memory has no room for systems of m x m beside W, it is separated by conjugate gradients; or the columns that
weigh then are brought to a basis, once: its proof takes more memory than that.

Evidence: both ends of the bracket over all data: low of every pass, and |Ax| of the weights on W, which are sparse. ``hopeful``
while W has a separator, and for ``patience`` passes once columns are dropped: a small |Ax| is then no reason to stop, for a
separator of all may be near.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from msgspec import Struct, field

from dfeas.methods.protocol import Bracket, Evidence, Facts, Method, S, Sparse
from dfeas.records import replace


class WorkingSetThresholds(Struct, frozen=True):
    """How many columns W takes, from how much of the data, and when it stops; each with what set it."""

    # of the first columns
    sample_least: int = 20  # columns of a sample without batches for each feature, at least
    fill: int = 5  # times the sample the first full pass takes: nine passes become two
    from_each: int = 16  # blocks of the sample, at least, where there are many: neighbours are often alike
    small_bytes: int = 4 << 20  # of all columns, when these are so few that W begins with all

    # of batches
    sample: int = 8  # columns for each feature of a sample before them,
    taken: int = 4  # of each batch: of further columns as many as were met at most m are wrong (leave one out),
    band: int = 30  # and of the first full pass after them: 18 were too few for 3 runs of 12
    met: float = 0.25  # share of the columns that are met before all are
    spread: float = 4.0  # times the root of what a block of a batch has on average, that one gives more at most
    growth: float = 5.0  # times those before are met after a batch, at most
    cramped_sample: int = 3  # that part of what memory holds is a sample before batches then: it separates planted points 200 x
    # 500,000, which took 2.2 reads, not 1.2, with one of ``sample``
    cramped_met: float = 0.1  # share that is met then: halfspaces with room for 2.6 to 5.5 samples take 2.1 to 2.3 reads on 38
    # of 38 runs, 2.4 with a quarter; without batches 2.1 or, where some of 24 million points were missed, 3.0
    full_met: float = 0.5  # share where the first full pass would find more wrong than memory holds: halfspaces 400 x 50,000 in
    # 24 MiB and 1000 x 30,000 in 64 MiB take 5.6 reads with each of three seeds; 5.4 to 6.4 with a quarter, 6.1 to 8.2 without
    worth: int = 45  # columns that are read in a pass in the time in which two are brought into memory and solved
    heavy_bytes: int = 128 << 20  # of W, below which a share of a pass is worth more: 400 x 100,000 takes 0.9 s of processor
    # time without batches, 1.1 with

    # of later columns
    nearest: int = 5  # lowest of W for each feature, below the last of which all are wanted: 3 passes of all data for each of
    # 16 seeds of 20,000 points at 1e-10 from a plane, of 40 or 60 features; 3 to 5 with 3, and 4 to 10 of six seeds with none
    wrong: int = 8  # outside of the sample, with which a conflict is looked for: wrong labels score far below what it misses
    like: float = 0.5  # share of the median score of a sample that a wrong label is beyond the hyperplane, at least
    opposed: float = 3.0  # columns of a sample for each feature that are in conflict with a wrong one, times how far that is
    # below 0: 100 to 1000 features took 1.75 to 2.5 of random columns, and of less than half of that none had a conflict
    fewer: float = 0.9  # share of the fewest wrong points until then that a separator may have wrong, else z is asked next
    closest: float = 1e-6  # nearest to the widest margin that is tried when the checker refuses separators
    capped_tolerance: float = 0.5  # the same at most, when columns have been dropped and a wide margin is wanted
    slack: float = 0.01  # |Ax| is brought so far below eps that rounding leaves it there
    patience: int = 100  # passes with dropped columns after which a separator is expected no more

    # of passes that are expected, and of what is left
    full_passes: int = 2  # over all data, usually: benchmarks/working_set.py
    dropping_passes: int = 3  # more, where memory holds less than half of the columns it wants: 400 x 50,000 with 24 MiB
    lead: int = 8  # of a leader before points of many features come into memory: about what reading them there costs
    left: int = 3  # columns for each feature, nearest to the separator, that a run leaves: 33 runs of 50 to 300 features that
    # began with 0.2 to 10 % more points took as many reads as with 20; with 2 one took another
    left_bytes: int = 16 << 20  # of these, at most

    # of memory
    row_overhead: int = 100  # bytes of a column beside its entries: index, factor, score and what the solver keeps of it
    least_room: int = 1 << 20  # bytes of a basis that always has room, of 362 features: where a block fits, its systems do
    copies: float = 2.5  # of W in memory while it grows
    solved_copies: float = 2.0  # and while it is solved,
    systems: int = 8  # beside so many of a basis in float64 that the solver makes


AT = WorkingSetThresholds()


class WorkingSetState(Struct, frozen=True, kw_only=True):
    """W, and what passes with its y have told."""

    facts: Facts
    cap: int  # columns that W may hold
    columns: Any = None  # W; None before the sample
    full: int = 0  # passes over all data
    best: Sparse | None = None  # x with |Ax| = bracket.upper
    bracket: Bracket = field(default_factory=Bracket)
    violated: int | None = None  # by the y that was last asked
    steps: int = 0  # of the solver in memory
    stalled: str = ""


class WorkingSet(Method[S]):
    """A solver in memory separates W, and a pass with its y says what W misses."""

    def take_sample(self, state: S, answer: Any) -> Any:
        return answer

    @abstractmethod
    def solve_columns(self, state: S) -> S:
        """With the y of W that is asked next, and with its x where |Ax| is less than before."""

    @abstractmethod
    def update_bracket(self, state: S, answer: Any) -> tuple[Bracket, int]:
        """The bracket after a pass with y, and the points on its wrong side."""

    @abstractmethod
    def grow(self, state: S, answer: Any, before: Bracket) -> S:
        """With what W missed, and solved; or stalled. ``before`` is the bracket before this pass."""

    @abstractmethod
    def hopeful(self, state: S) -> bool:
        """Whether a separator is expected, however small |Ax| is."""

    def tell(self, state: Any, answer: Any) -> Any:
        if state.columns is None:
            return self.solve_columns(replace(state, columns=self.take_sample(state, answer)))
        bracket, violated = self.update_bracket(state, answer)
        after = replace(state, full=state.full + 1, bracket=bracket, violated=violated)
        return self.grow(after, answer, state.bracket)

    def evidence(self, state: Any) -> Evidence:
        best = None if state.best is None else lambda: state.best
        return Evidence(state.bracket, best, state.steps, state.violated, state.stalled, hopeful=self.hopeful(state))
