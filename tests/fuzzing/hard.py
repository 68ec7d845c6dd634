"""Hard margins with a free bias: ends of the largest distance by their definitions, and verdicts and conflicts of a solve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import dfeas
from tests.fuzzing.case import RIGHT, Case, Judgement, Word, rng_of, wrong
from tests.fuzzing.soft import points

SAME = 1e-9
NARROW = 1e-10
"""Distances below this share of the longest point may be left as far as float64 tells them."""


def exact_scores(X: np.ndarray, y: np.ndarray, w: np.ndarray, bias: float) -> list[Fraction]:
    """l_j (x_j'w + b) of all points, without rounding."""
    plane = [*map(Fraction, w.tolist()), Fraction(bias)]
    rows = [[*map(Fraction, row), Fraction(1)] for row in X.tolist()]
    return [int(sign) * sum(map(Fraction.__mul__, row, plane)) for row, sign in zip(rows, y.tolist(), strict=True)]


def hull_distance(X: np.ndarray, y: np.ndarray, support: np.ndarray, weights: np.ndarray) -> float:
    """Half of the distance of the two points of the hulls that weights make, rounded once."""
    ends = []
    for sign in (1, -1):
        some = [(Fraction(w), X[j]) for j, w in zip(support.tolist(), weights.tolist(), strict=True) if y[j] == sign]
        total = sum(w for w, _ in some)
        ends.append([sum(w * Fraction(float(row[i])) for w, row in some) / total for i in range(X.shape[1])])
    return float(np.linalg.norm([float(u - v) for u, v in zip(*ends, strict=True)])) / 2


@dataclass(frozen=True)
class Hard:
    hard_margin: Callable[..., Any] = dfeas.hard_margin
    name: str = "hard"
    weight: float = 1.0
    seconds: float = 20.0

    def draw(self, seed: int) -> Case:
        """Points as of a soft margin, most of them with labels that a plane gives."""
        rng = rng_of(self.name, seed)
        family, X, labels = points(rng)
        if rng.random() < 0.9:
            w = rng.standard_normal(X.shape[1]) / np.maximum(np.abs(X).max(axis=0), 1e-300)
            score = X @ w
            order = np.sort(score)
            cut = int(rng.integers(1, len(X)))
            labels = np.where(score >= order[cut], 1, -1)
            if labels.min() == 1 or labels.max() == -1:
                labels[0] = -labels[0]
        options = {"margin_tolerance": float(rng.choice([1e-3, 1e-3, 1e-6, 0.3]))}
        return Case(self.name, seed, family, {"X": X, "labels": labels}, options)

    def judge(self, case: Case) -> Judgement:
        X, y, options = case.arrays["X"], case.arrays["labels"], dict(case.options)
        plain, found = dfeas.solve(X, y), self.hard_margin(X, y, **options)
        if (found.result.verdict, found.result.conflicts) != (plain.verdict, plain.conflicts):
            return wrong(f"{found.result.verdict} with {found.result.conflicts}, a solve has {plain.verdict} {plain.conflicts}")
        if found.lower is None:
            return RIGHT if plain.verdict == "infeasible" else Judgement(Word.OPEN, found.result.message)
        least = min(exact_scores(X, y, found.result.coef, found.result.bias))
        here = float(least / Fraction(float(np.linalg.norm(found.result.coef))))
        if not 0 < found.lower <= here * (1 + SAME):
            return wrong(f"lower {found.lower!r}, the hyperplane is {here!r} from its nearest point")
        if found.upper is None:
            return Judgement(Word.OPEN, found.result.message)
        half = hull_distance(X, y, found.support, found.weights)
        if not found.lower <= found.upper or not half <= found.upper * (1 + SAME):
            return wrong(f"lower {found.lower!r}, upper {found.upper!r}, and the points of the hulls have {half!r}")
        if found.result.success and found.lower < (1 - options["margin_tolerance"] - SAME) * found.upper:
            return wrong(f"{found.lower!r} and {found.upper!r} are not as near as {options['margin_tolerance']:g}")
        narrow = found.upper < NARROW * float(np.linalg.norm(X, axis=1).max())
        return RIGHT if found.result.success else Judgement(Word.OPEN if narrow else Word.UNDECIDED, found.result.message)
