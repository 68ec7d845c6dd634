"""States of methods in the space of a kernel and on cones as they were, read into the states that they are now.

Each function takes the fields of one and returns what goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
from dfeas.methods.vector import Combination, lse_of
from dfeas.methods.von_neumann import VonNeumannState
from dfeas.passes.block import Columns


@dataclass(frozen=True, slots=True)
class KernelEnds:
    """A bracket, the x of its upper end, and what squares of lengths are right up to."""

    bracket: Bracket
    best: Floats | None  # (n,)
    floor: float

    @property
    def x(self) -> Floats | None:
        """On the simplex."""
        return None if self.best is None else self.best / self.best.sum()

    @property
    def ends(self) -> Ends:
        return Ends(self.bracket, self.x)

    def vector(self, y: Combination) -> Combination:
        """With the floor, which stands on each vector now."""
        return replace(y, floor=self.floor)


def tally(amount: Floats) -> Tally:
    """Of all points (n,)."""
    index = np.flatnonzero(amount)
    return Tally(index, amount[index])


def mirror_prox(
    n: int,
    gamma: float,
    log_n: float,
    x: Combination | None,
    v: Combination,
    steps: int,
    weight: float,
    x_sum: Combination,
    y_sum: Combination,
    ends: KernelEnds,
) -> MirrorProxState:
    """v_x is x, and the sums are those of w."""
    g, Av = log_n * ends.vector(y_sum), None if x is None else ends.vector(x)
    averages, lse = (steps, weight, ends.vector(x_sum)), lse_of(-g.scores)
    return MirrorProxState(gamma, log_n, g, ends.vector(v), Av, lse, None, *averages, (), 0, ends.bracket, ends.x)


def smooth_perceptron(
    step: int, n: int, y: Combination | None, mu: float, p: Combination | None, soft: Combination | None, ends: KernelEnds
) -> SmoothPerceptronState:
    """x is told by p."""
    zero = Combination.zero(n, ends.floor)
    if y is None:
        return SmoothPerceptronState(-1, zero, 1.0, zero, zero, 0.0, (), 0, ends.bracket)
    Ax, mean = (zero if each is None else ends.vector(each) for each in (p, soft))
    return SmoothPerceptronState(
        max(0, step), ends.vector(y), mu, Ax, mean, 0.0, (), 0, ends.bracket, ends.x, 0 if p is None else step + 1
    )


def normalized_perceptron(k: int, w: Combination, ends: KernelEnds) -> NormalizedPerceptronState:
    """Counts are k times the average."""
    best = None if ends.best is None else tally(ends.best)
    return NormalizedPerceptronState(k, ends.vector(w), tally(k * w.alpha), ends.bracket, best)


def perceptron(corrections: int, total: Combination, cap: int, ends: KernelEnds) -> KernelPerceptronState:
    """As it was."""
    return KernelPerceptronState(corrections, ends.vector(total), cap, ends.ends)


def von_neumann(steps: int, x: Combination, ends: KernelEnds) -> VonNeumannState:
    """Weights are the coefficients."""
    return VonNeumannState(steps, ends.vector(x), tally(x.alpha), np.empty((0, 0)), 0, ends.bracket, False)


def snkpvn(n: int, lambda_: float, rounds: int, steps: int, loop: Loop | None, reached: float, ends: KernelEnds) -> SnkpvnState:
    """One loop, to the usual accuracy."""
    if loop is not None:
        loop = replace(loop, y=ends.vector(loop.y), p=None if loop.p is None else ends.vector(loop.p))
    zero = Combination.zero(n, ends.floor)
    return SnkpvnState(zero, lambda_, rounds, steps, loop, reached, Snkpvn().delta, ends.ends)


def ispvn(inner: SnkpvnState, delta: float) -> SnkpvnState:
    """Loops, each to its own accuracy."""
    return replace(inner, delta=delta)


def kernel_working_set(
    facts: Facts,
    cap: int,
    points: Columns | None,
    amount: Floats,
    margin: float,
    full: int,
    best: Sparse | None,
    bracket: Bracket,
    violated: int | None,
    steps: int,
    stalled: str,
) -> KernelWorkingSetState:
    """Points are columns."""
    state = KernelWorkingSetState(facts=facts, cap=cap, columns=points, amount=amount, margin=margin, full=full, best=best)
    return replace(state, bracket=bracket, violated=violated, steps=steps, stalled=stalled)


def cone_working_set(
    m: int,
    blocks: int,
    memory: int,
    share: float,
    sampled: bool,
    kept: Kept,
    y: Floats,
    low: float,
    hopeful: bool,
    bracket: Bracket,
    best: Sparse | None,
    violated: int | None,
    stalled: str,
    rounds: int,
) -> ConeWorkingSetState:
    """Facts are those that it goes on with; the passes over all data are as many as the solver's answers but the first."""
    facts = Facts(m, len(kept.index), memory, blocks, tolerance=None if share == SHARE else 2 * (1 - share))
    columns, full, cap = kept if sampled else None, max(0, rounds - 1), Rows(m, memory).most
    state = ConeWorkingSetState(facts=facts, cap=cap, columns=columns, full=full, best=best, y=y, low=low, separated=hopeful)
    return replace(state, bracket=bracket, violated=violated, steps=rounds, stalled=stalled)
