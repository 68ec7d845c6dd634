"""States of kernel methods as they were before methods were written over vectors: read into the states that they are now.

Each function takes the fields of one and returns what goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dfeas.linalg.points import Floats
from dfeas.methods.kernel_perceptron import KernelPerceptronState
from dfeas.methods.mirror_prox import MirrorProxState
from dfeas.methods.normalized_perceptron import NormalizedPerceptronState
from dfeas.methods.protocol import Bracket, Ends, Tally
from dfeas.methods.smooth_perceptron import SmoothPerceptronState
from dfeas.methods.snkpvn import Loop, Snkpvn, SnkpvnState
from dfeas.methods.vector import Combination, lse_of
from dfeas.methods.von_neumann import VonNeumannState


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
