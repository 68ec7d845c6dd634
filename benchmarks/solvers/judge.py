"""What an answer is worth: directions and weights are looked at in whole numbers, whatever the solver said of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.solvers.answer import NO, YES
from benchmarks.solvers.linear import lengths
from benchmarks.tables.regimes import Points
from benchmarks.tables.truth import conflict, dense, signs

ZERO = 1e-9
"""|Ax| of weights on unit points that sum to one, up to which they are taken for a conflict in floats."""

MOST = 400
"""Points whose conflict is looked for in whole numbers."""

CLOSE = 1e-3
"""Of an objective, relative to the least."""


@dataclass(frozen=True)
class Judgement:
    right: str  # "yes", "no", or "WRONG": the opposite of what is true was said
    evidence: str


def judge(points: Points, truth: str, said: str, w: Any, x: Any, wrong: int | None, proof: str) -> Judgement:
    """Right is a direction of which all points are on their sides, weights that cancel, or what a solver proved; not what is
    only said.
    """
    seen = ""
    if w is not None and np.any(w):
        wrong = int((signs(points.X, w) != points.y).sum())
    if wrong is not None:
        seen = f"{wrong} on the wrong side" if wrong else "all on their sides"
    cancels = False
    if x is not None:
        cancels, seen = weigh(points, x)
    word = said.split(",")[0]
    if word in (YES, NO) and word != truth:
        return Judgement("WRONG", seen)
    shown = wrong == 0 if truth == YES else cancels
    return Judgement("yes" if shown or (word == truth and proof in ("exact", "rigorous")) else "no", seen)


def judge_inequalities(points: Points, truth: str, said: str, x: Any, u: Any, wrong: int | None, proof: str) -> Judgement:
    """The same of A x <= b: right is an x that violates no row by more than ZERO of its terms, or u >= 0 with A'u as near to
    zero and b'u < 0; what is violated at all is counted in float64.
    """
    A, b, word = points.X, points.y, said.split(",")[0]
    if word in (YES, NO) and word != truth:
        return Judgement("WRONG", "")
    shown, seen = False, ""
    if word == YES and x is not None:
        over = A @ x - b
        shown, seen = bool((over <= ZERO * (np.abs(A) @ np.abs(x) + np.abs(b))).all()), f"{int((over > 0).sum())} rows violated"
        seen += f", by {over.max():.0e}" if (over > 0).any() else ""
    if word == NO and u is not None:
        shown = bool((np.abs(u @ A) <= ZERO * (u @ np.abs(A))).all() and u @ b < 0)
        seen = f"multipliers of {np.count_nonzero(u)} rows"
    return Judgement("yes" if shown or (word == truth and proof == "exact") else "no", seen)


def weigh(points: Points, x: np.ndarray) -> tuple[bool, str]:
    """Whether weights on signed points cancel, and how that was found."""
    support = np.flatnonzero(x > 1e-9 * x.max())
    if len(support) <= MOST:
        signed = dense(points.X[support]).astype(np.float64) * points.y[support][:, None]
        if conflict(signed):
            return True, f"{len(support)} points cancel exactly"
    shares = x * lengths(points.X)
    total = points.X.astype(np.float64).T @ (x * points.y) / shares.sum()
    size = float(np.linalg.norm(total))
    return size <= ZERO, f"\\|Ax\\| {size:.0e} of {len(support)} points"


def objective(points: Points, w: np.ndarray, C: float) -> float:
    """|w|^2/2 + C times the sum of hinge losses, in float64."""
    scores = (points.X.astype(np.float64) @ w) * points.y
    return float(w @ w / 2 + C * np.maximum(0, 1 - scores).sum())
