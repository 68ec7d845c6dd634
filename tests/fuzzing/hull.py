"""Is a point in a hull: on faces, at vertices, 1 ulp off them, of duplicates, at scales and offsets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import dfeas
from tests.exact import conflict
from tests.fuzzing.case import RIGHT, Case, Judgement, Word, rng_of, wrong
from tests.fuzzing.linear import SLACK, refused
from tests.fuzzing.oracle import Truth


@dataclass(frozen=True)
class HullKind:
    in_hull: Callable[..., Any] = dfeas.in_hull
    name: str = "hull"
    weight: float = 1.5
    seconds: float = 20.0

    def draw(self, seed: int) -> Case:
        rng = rng_of(self.name, seed)
        n, m = int(rng.integers(1, 20)), int(rng.integers(1, 6))
        X = rng.integers(-8, 9, (n, m)).astype(np.float64) if rng.random() < 0.6 else rng.standard_normal((n, m))
        family = ("vertex", "face", "combination", "outside", "duplicates", "far")[rng.integers(6)]
        if family == "duplicates":
            X = X[rng.integers(n, size=n)]
        if family == "far":
            X = X + 2.0 ** rng.integers(0, 34)
        weights = rng.dirichlet(np.ones(n)) if rng.random() < 0.5 else np.bincount(rng.integers(n, size=4), minlength=n) / 4
        if family == "face":  # of the points that are greatest in some direction
            score = X @ rng.integers(-2, 3, m)
            weights = np.where(score == score.max(), rng.integers(1, 5, n), 0) / 8
            weights /= weights.sum()
        p = X[rng.integers(n)].copy() if family in ("vertex", "duplicates") else weights @ X
        if family == "outside":
            p = 2 * X[int((X @ rng.standard_normal(m)).argmax())] - p
        if rng.random() < 0.4:
            k = rng.integers(m)
            p[k] = np.nextafter(p[k], rng.choice([-np.inf, np.inf]))
        if rng.random() < 0.3:
            scale = 2.0 ** rng.integers(-20, 21, m)
            X, p = X * scale, p * scale
        single = bool(rng.random() < 0.2)
        arrays = {"X": X.astype(np.float32) if single else X, "p": p.astype(np.float32).astype(float) if single else p}
        return Case(self.name, seed, family, arrays)

    def judge(self, case: Case) -> Judgement:
        X, p = case.arrays["X"], case.arrays["p"]
        rows = [[Fraction(a) - Fraction(b) for a, b in zip(row, p.tolist(), strict=True)] for row in X.tolist()]
        try:
            found = self.in_hull(p, X)
        except dfeas.DfeasError as error:
            return refused(Truth(np.array([[float(v) for v in row] for row in rows])), str(error))
        common = math.lcm(*(v.denominator for row in rows for v in row))
        points = [[int(v * common) for v in row] for row in rows]
        inside = conflict(points)[0] is not None
        if found.inside is None and case.options.get("eps", 0) > 1e-9 and found.result.verdict == "eps-infeasible":
            high = found.result.margin_upper
            if not Truth(np.array([[float(v) for v in row] for row in rows])).margin[0] <= high + SLACK:
                return wrong(f"margin_upper {high!r} is not above the margin")
            return Judgement(Word.OPEN, f"inside is {inside}, as good as on the surface")
        if found.inside is None:
            return Judgement(Word.UNDECIDED, f"inside is {inside}: {found.result.verdict}, {found.result.message}")
        if found.inside is not inside:
            return wrong(f"inside is {inside}, said {found.inside} with proof {found.proof}")
        if found.proof not in (("exact",) if inside else ("exact", "rigorous")):
            return Judgement(Word.UNPROVED, f"inside is {inside}, proof {found.proof}")
        return self._evidence(found, X, p, rows) or RIGHT

    def _evidence(self, found: Any, X: np.ndarray, p: np.ndarray, rows: list[list[Fraction]]) -> Judgement | None:
        if not found.inside:
            y = [
                Fraction(v)
                for v in (found.exactly.y[:-1] if found.coef is None else found.result.evidence.integers or found.coef.tolist())
            ]
            least = min(sum((a * b for a, b in zip(row, y, strict=True)), Fraction(0)) for row in rows)
            return None if least > 0 else wrong(f"the hyperplane has a score of {float(least):g}")
        if (found.weights < 0).any() or abs(found.weights.sum() - 1) > 1e-9:
            return wrong(f"the weights of the combination are {found.weights}")
        made = found.weights @ X[found.support].astype(np.float64)
        size = np.abs(X).max() + np.abs(p).max()  # features lose what the largest one rounds away
        return None if (np.abs(made - p) <= 1e-9 * size + 1e-300).all() else wrong(f"the combination makes {made}, not {p}")
