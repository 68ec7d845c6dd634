"""States of methods in the space of a kernel and on cones as they were, read into the states that they are now.

Each class has the fields that one had; ``now`` returns what goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from dfeas.geometry.cones.barrier import Kept
from dfeas.geometry.cones.working_set import SHARE, ConeWorkingSetState, Rows
from dfeas.geometry.kernel.working_set import KernelWorkingSetState
from dfeas.linalg.points import Floats
from dfeas.methods.mirror_prox import MirrorProxState
from dfeas.methods.mistakes import Tally
from dfeas.methods.normalized_perceptron import NormalizedPerceptronState
from dfeas.methods.perceptron import KernelPerceptronState
from dfeas.methods.protocol import Bracket, Ends, Facts, Sparse
from dfeas.methods.smooth_perceptron import SmoothPerceptronState
from dfeas.methods.snkpvn import Loop, Snkpvn, SnkpvnState
from dfeas.methods.vector import Combination, Vector, lse_of
from dfeas.methods.von_neumann import VonNeumannState
from dfeas.passes.block import Columns


@dataclass(frozen=True, slots=True)
class KernelEnds:
    """A bracket, the x of its upper end, and what squares of lengths are right up to."""

    bracket: Bracket
    best: Floats | None  # (n,)
    floor: float

    def now(self) -> KernelEnds:
        """The other states are told what they need of it."""
        return self

    @property
    def x(self) -> Floats | None:
        """The x of the upper end, on the simplex."""
        return None if self.best is None else self.best / self.best.sum()

    @property
    def ends(self) -> Ends:
        return Ends(self.bracket, self.x)

    def vector(self, y: Combination) -> Combination:
        """With the floor, which stands on each vector now."""
        return replace(y, floor=self.floor)


def tally(amount: Floats) -> Tally:
    """Counts of all points (n,), as those of a few."""
    index = np.flatnonzero(amount)
    return Tally(index, amount[index])


@dataclass(frozen=True, slots=True)
class MirrorProx:
    """v_x was x, and the sums were those of w."""

    n: int
    gamma: float
    log_n: float
    x: Combination | None
    v: Combination
    steps: int
    weight: float
    x_sum: Combination
    y_sum: Combination
    ends: KernelEnds

    def now(self) -> MirrorProxState:
        vector, bracket = self.ends.vector, self.ends.bracket
        g, Av = self.log_n * vector(self.y_sum), None if self.x is None else vector(self.x)
        averages, lse = (self.steps, self.weight, vector(self.x_sum)), lse_of(-g.scores)
        return MirrorProxState(self.gamma, self.log_n, g, vector(self.v), Av, lse, *averages, (), 0, bracket, self.ends.x)


@dataclass(frozen=True, slots=True)
class HalfMirrorProx:
    """Each point of a step had a read of its own; a step that was half done is begun again."""

    gamma: float
    log_n: float
    g: Vector
    v: Vector
    Av: Vector | None
    lse: float
    half: tuple[Floats, Floats] | None
    steps: int
    weight: float
    Ax_sum: Vector
    asked: tuple[tuple[Floats, float, float, Floats], ...]
    best: int
    bracket: Bracket
    x: Floats | None = None

    def now(self) -> MirrorProxState:
        return MirrorProxState(**{each.name: getattr(self, each.name) for each in fields(self) if each.name != "half"})


@dataclass(frozen=True, slots=True)
class SmoothPerceptron:
    """x was told by p."""

    step: int
    n: int
    y: Combination | None
    mu: float
    p: Combination | None
    soft: Combination | None
    ends: KernelEnds

    def now(self) -> SmoothPerceptronState:
        ends, zero = self.ends, Combination.zero(self.n, self.ends.floor)
        if self.y is None:
            return SmoothPerceptronState(-1, zero, 1.0, zero, zero, 0.0, (), 0, ends.bracket)
        Ax, mean = (zero if each is None else ends.vector(each) for each in (self.p, self.soft))
        count = 0 if self.p is None else self.step + 1
        y = ends.vector(self.y)
        return SmoothPerceptronState(max(0, self.step), y, self.mu, Ax, mean, 0.0, (), 0, ends.bracket, ends.x, count)


@dataclass(frozen=True, slots=True)
class NormalizedPerceptron:
    """Counts were k times the average."""

    k: int
    w: Combination
    ends: KernelEnds

    def now(self) -> NormalizedPerceptronState:
        best = None if self.ends.best is None else tally(self.ends.best)
        counts = tally(self.k * self.w.alpha)
        return NormalizedPerceptronState(self.k, self.ends.vector(self.w), counts, self.ends.bracket, best)


@dataclass(frozen=True, slots=True)
class Perceptron:
    """The same, but for the ends."""

    corrections: int
    total: Combination
    cap: int
    ends: KernelEnds

    def now(self) -> KernelPerceptronState:
        return KernelPerceptronState(self.corrections, self.ends.vector(self.total), self.cap, self.ends.ends)


@dataclass(frozen=True, slots=True)
class VonNeumann:
    """Weights were the coefficients of x."""

    steps: int
    x: Combination
    ends: KernelEnds

    def now(self) -> VonNeumannState:
        x, ends = self.x, self.ends
        return VonNeumannState(self.steps, ends.vector(x), tally(x.alpha), np.empty((0, 0)), 0, ends.bracket, False)


@dataclass(frozen=True, slots=True)
class SnkpvnLoop:
    """One loop, to the usual accuracy."""

    n: int
    lambda_: float
    rounds: int
    steps: int
    loop: Loop | None
    reached: float
    ends: KernelEnds

    def now(self) -> SnkpvnState:
        ends, loop, zero = self.ends, self.loop, Combination.zero(self.n, self.ends.floor)
        if loop is not None:
            loop = replace(loop, y=ends.vector(loop.y), p=None if loop.p is None else ends.vector(loop.p))
        return SnkpvnState(zero, self.lambda_, self.rounds, self.steps, loop, self.reached, Snkpvn().delta, ends.ends)


@dataclass(frozen=True, slots=True)
class Ispvn:
    """Loops, each to its own accuracy."""

    inner: SnkpvnState
    delta: float

    def now(self) -> SnkpvnState:
        return replace(self.inner, delta=self.delta)


@dataclass(frozen=True, slots=True)
class KernelWorkingSet:
    """Points were what columns are."""

    facts: Facts
    cap: int
    points: Columns | None
    amount: Floats
    margin: float
    full: int
    best: Sparse | None
    bracket: Bracket
    violated: int | None
    steps: int
    stalled: str

    def now(self) -> KernelWorkingSetState:
        state = KernelWorkingSetState(
            facts=self.facts, cap=self.cap, columns=self.points, amount=self.amount, margin=self.margin
        )
        state = replace(state, full=self.full, best=self.best, bracket=self.bracket)
        return replace(state, violated=self.violated, steps=self.steps, stalled=self.stalled)


@dataclass(frozen=True, slots=True)
class ConeWorkingSet:
    """Facts were fields, and passes over all data were counted by the solver's answers."""

    m: int
    blocks: int
    memory: int
    share: float
    sampled: bool
    kept: Kept
    y: Floats
    low: float
    hopeful: bool
    bracket: Bracket
    best: Sparse | None
    violated: int | None
    stalled: str
    rounds: int

    def now(self) -> ConeWorkingSetState:
        """Passes over all data are as many as the solver's answers but the first."""
        tolerance = None if self.share == SHARE else 2 * (1 - self.share)
        facts = Facts(self.m, len(self.kept.index), self.memory, self.blocks, tolerance=tolerance)
        state = ConeWorkingSetState(
            facts=facts,
            cap=Rows(self.m, self.memory).most,
            columns=self.kept if self.sampled else None,
            full=max(0, self.rounds - 1),
            best=self.best,
            y=self.y,
            low=self.low,
            separated=self.hopeful,
        )
        return replace(state, bracket=self.bracket, violated=self.violated, steps=self.rounds, stalled=self.stalled)
