"""What solvers are set beside each other on: points, a question, and what is true.

Points are those of ``tables/regimes.py``, whose answer is proved in whole numbers; tables of 500 x 20 are those of
``small_problems.py``, proved by ``tables/oracle.py``. Distinct points are apart in the space of an rbf kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.small_problems import tables
from benchmarks.solvers.answer import NO, YES
from benchmarks.tables import regimes
from benchmarks.tables.oracle import COMPLETE, kind_of
from benchmarks.tables.regimes import Points, Rng
from benchmarks.tables.truth import signs

PLANE, TABLE, KERNEL, MARGIN, INEQUALITIES = "plane", "table", "kernel", "margin", "inequalities"


@dataclass(frozen=True)
class Instance:
    """Points (n, m) by name, and what is asked of them."""

    name: str
    n: int
    m: int
    question: str
    make: Callable[[Rng, int, int], Points]

    def title(self, scale: float) -> str:
        return f"{self.name}, {self.m} x {self.scaled(scale)}"

    def scaled(self, scale: float) -> int:
        """Points of a share; tables have all of theirs."""
        return self.n if self.question == TABLE else max(self.m + 10, int(self.n * scale))

    def points(self, scale: float) -> tuple[Points, str]:
        """These, and what is true: YES or NO, or nothing of a soft margin."""
        points = self.make(np.random.default_rng(0), self.scaled(scale), self.m)
        if self.question == TABLE:
            return points, YES if kind_of(points.X, points.y, intercept=False).kind == COMPLETE else NO
        if self.question == KERNEL:
            assert len(np.unique(points.X, axis=0)) == len(points.X)
            return points, YES
        if self.question == MARGIN:
            return points, ""
        if self.question == INEQUALITIES:
            return points, NO if self.make is contradicting else YES
        return points, YES if points.truth() == regimes.FEASIBLE else NO


def thin(rng: Rng, n: int, m: int) -> Points:
    """Float32 points on both sides of a plane."""
    return regimes.halfspace(rng, n, m)


def apart(rng: Rng, n: int, m: int) -> Points:
    """The same with a margin of 0.01, in multiples of 2^-20, so that the sum of two is a float32."""
    X, w = regimes.units(rng, n, m), rng.standard_normal(m)
    w /= np.linalg.norm(w)
    X = np.round((X + 0.01 * np.outer(np.sign(X @ w), w)) * 2**20) / 2**20
    return regimes.labelled(X.astype(np.float32), w)


def flipped(rng: Rng, n: int, m: int) -> Points:
    """The same with one point more, on the wrong side: the sum of two others."""
    return regimes.opposed(rng, apart(rng, n, m))


def overlapping(rng: Rng, n: int, m: int) -> Points:
    return regimes.overlap(rng, n, m, 0.1)


def tight(rng: Rng, n: int, m: int) -> Points:
    """Pairs of float32 points opposite to each other, 0.003 from a plane: its neighbours separate them, and no others."""
    return single(regimes.planted(rng, n, m, 3e-3))


def text(rng: Rng, n: int, m: int) -> Points:
    return single(regimes.text(rng, n, m))


def dummies(rng: Rng, n: int, m: int) -> Points:
    return single(regimes.dummies(rng, n, m, "by chance", factors=20))


def single(made: Points) -> Points:
    """In float32, labels as before: a point whose side changed is left out."""
    X = made.X.astype(np.float32)
    if made.w is None:
        return Points(X, made.y, against=made.against)
    same = signs(X, made.w) == made.y
    return Points(X[same], made.y[same], made.w)


def table(kind: str) -> Callable[[Rng, int, int], Points]:
    """Coded, with a last feature equal to 1; columns are divided by powers of two, which changes no answer."""

    def make(rng: Rng, n: int, m: int) -> Points:
        frame, outcome = tables(n)[kind]
        X = pd.get_dummies(frame, drop_first=True).to_numpy(np.float64)
        X = X / 2.0 ** np.ceil(np.log2(np.abs(X).max(axis=0)))
        return Points(np.column_stack([X, np.ones(n)]), np.where(outcome, 1, -1).astype(np.int8))

    return make


def sphere(rng: Rng, n: int, m: int) -> Points:
    """Inside and outside of a sphere, without a gap."""
    X = rng.standard_normal((n, m))
    return Points(X, np.where(np.linalg.norm(X, axis=1) > np.sqrt(m), 1, -1).astype(np.int8))


def noisy(rng: Rng, n: int, m: int) -> Points:
    """5 % of the labels are wrong."""
    X = rng.standard_normal((n, m)).astype(np.float32)
    y = np.where(X @ rng.standard_normal(m) > 0, 1, -1)
    return Points(X, np.where(rng.random(n) < 0.05, -y, y).astype(np.int8))


def roomy(rng: Rng, n: int, m: int) -> Points:
    """A x <= b, with A as X and b as y, in multiples of 2^-18 that float64 adds exactly: some x has all rows, with room."""
    A, x = np.round(rng.standard_normal((n, m)) * 2**10) / 2**10, np.round(rng.standard_normal(m) * 2**8) / 2**8
    return Points(A, A @ x + np.round(rng.random(n) * 2**10) / 2**10 + 2.0**-10, x)


def flat(rng: Rng, n: int, m: int) -> Points:
    """The same with three rows that hold with equality, as three others are their negatives."""
    made = roomy(rng, n, m)
    made.X[3:6] = -made.X[:3]
    made.y[:6] = made.X[:6] @ made.w
    return made


def contradicting(rng: Rng, n: int, m: int) -> Points:
    """The same with a last row that no x has: the negative of the sum of m + 1 others, with a right side too small by 2^-10."""
    made = roomy(rng, n, m)
    made.X[-1] = -made.X[: m + 1].sum(axis=0)
    made.y[-1] = -made.y[: m + 1].sum() - 2.0**-10
    return made


INSTANCES = [
    Instance("half-space", 200_000, 100, PLANE, thin),
    Instance("margin 0.01", 200_000, 100, PLANE, apart),
    Instance("one flip", 200_000, 100, PLANE, flipped),
    Instance("overlap 10 %", 200_000, 100, PLANE, overlapping),
    Instance("half-space", 20_000, 100, PLANE, thin),
    Instance("one flip", 20_000, 100, PLANE, flipped),
    Instance("wide", 4_000, 2_000, PLANE, tight),
    Instance("text", 100_000, 50_000, PLANE, text),
    Instance("dummies", 100_000, 1_000, PLANE, dummies),
    Instance("table, complete", 500, 20, TABLE, table("complete")),
    Instance("table, quasi-complete", 500, 20, TABLE, table("quasi-complete")),
    Instance("table, overlap", 500, 20, TABLE, table("overlap")),
    Instance("rbf", 2_500, 5, KERNEL, sphere),
    Instance("rbf", 10_000, 5, KERNEL, sphere),
    Instance("rbf", 20_000, 5, KERNEL, sphere),
    Instance("inequalities, interior", 100_000, 100, INEQUALITIES, roomy),
    Instance("inequalities, one row", 100_000, 100, INEQUALITIES, contradicting),
    Instance("inequalities, thin", 100_000, 100, INEQUALITIES, flat),
    Instance("soft margin", 20_000, 50, MARGIN, noisy),
    Instance("soft margin", 200_000, 100, MARGIN, noisy),
]
