"""Soft margins: objective, bound, gap and dual variables, beside coordinate descent on the dual; scales and C's extremes."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dfeas
from tests.fuzzing.case import RIGHT, Case, Judgement, Word, rng_of, wrong

EPS = 2.0**-52
SAME = 1e-9
"""Relative difference of sums in other orders."""
SWEEPS = 100
HARD = 1e9
"""C |x|^2 above this, or its inverse: no gap is promised there, only that what is said is true."""


def points(rng: np.random.Generator) -> tuple[str, np.ndarray, np.ndarray]:
    n, m = int(rng.integers(2, 40)), int(rng.integers(1, 7))
    X = rng.standard_normal((n, m))
    labels = np.where(X @ rng.standard_normal(m) + 0.5 * rng.standard_normal(n) > 0, 1, -1)
    family = ("plain", "scaled", "duplicates", "integers", "features", "offset", "balanced")[rng.integers(7)]
    if family == "scaled":
        X = X * 10.0 ** rng.uniform(-60, 60)
    if family == "duplicates":
        X, labels = X[rng.integers(n, size=n)], np.where(rng.random(n) < 0.5, 1, -1)
    if family == "integers":
        X = np.round(3 * X)
    if family == "features":
        X = X * 10.0 ** rng.uniform(-4, 4, m)
    if family == "offset":
        X = X + 10.0 ** rng.integers(0, 5)
    if family == "balanced":
        X = rng.standard_normal((3 * n, m))
        labels = np.where(np.arange(3 * n) < 3 * n // 2, 1, -1)
    labels[0], labels[-1] = 1, -1
    return family, X, labels


@dataclass(frozen=True)
class Problem:
    """|w|^2/2 + sum_j c_j loss(1 - a_j'w), without the last w_i in |w| where that is a free bias; with a price it is b/s."""

    A: np.ndarray  # (n, d) signed points as stored, with the intercept: 1, or s of a bias that has a price
    c: np.ndarray  # (n,)
    squared: bool
    free: bool  # the bias
    scale: float = 1.0  # s

    @property
    def longest(self) -> float:
        """The length of the longest point, with an intercept of 1."""
        return float(np.linalg.norm(self.A / np.append(np.ones(self.A.shape[1] - 1), self.scale), axis=1).max())

    @property
    def paid(self) -> np.ndarray:
        """(d,) whether an entry of w is in |w|."""
        return np.arange(self.A.shape[1]) < self.A.shape[1] - self.free

    def of(self, y: np.ndarray) -> np.ndarray:
        """w of a result's y, whose last is the bias."""
        return np.append(y[:-1], y[-1] / self.scale)

    @property
    def hardness(self) -> float:
        """C |x|^2 of the longest point."""
        return float(self.c.max() * self.longest**2)

    def objective(self, w: np.ndarray) -> float:
        slack = np.maximum(0, 1 - self.A @ w)
        return float(w[self.paid] @ w[self.paid] / 2 + self.c @ (slack**2 if self.squared else slack))

    def rounding(self, w: np.ndarray) -> float:
        """What rounding of the scores may do to the objective."""
        off = EPS * (2 + len(w)) * (1 + np.abs(self.A) @ np.abs(w))
        slack = np.maximum(0, 1 - self.A @ w)
        return float(self.c @ ((2 * slack + off) * off if self.squared else off))

    def bound(self, alpha: np.ndarray, objective: float = 0.0, length: float = np.inf) -> float:
        """The dual's value: below the minimum for 0 <= alpha, of the hinge <= c; a known objective bounds a cheap bias, and so
        does a length of w there.
        """
        pull = np.array([math.fsum(column) for column in (alpha * self.A.T).tolist()])
        reach = (1 + self.longest * min((2 * objective) ** 0.5, length)) / self.scale
        last = abs(float(pull[-1]))
        loose = reach * last if self.free else min(last**2 / 2, reach * last) if self.scale > 1 and objective else last**2 / 2
        more = np.divide(alpha**2, 4 * self.c, out=np.zeros(len(alpha)), where=self.c > 0).sum() if self.squared else 0.0
        return float(alpha.sum() - pull[:-1] @ pull[:-1] / 2 - more - loose)

    def descended(self) -> tuple[float, float]:
        """A lower and an upper bound of the minimum, by coordinate descent (Hsieh et al. 2008)."""
        alpha, w = np.zeros(len(self.c)), np.zeros(self.A.shape[1])
        square = (self.A**2).sum(axis=1)
        for _ in range(SWEEPS):
            moved = 0.0
            for j, row in enumerate(self.A):
                if not self.c[j]:
                    continue
                extra = 1 / (2 * self.c[j]) if self.squared else 0.0
                curve = square[j] + extra
                if not curve:
                    alpha[j] = self.c[j]
                    continue
                step = (1 - row @ w - extra * alpha[j]) / curve
                there = min(max(alpha[j] + step, 0.0), np.inf if self.squared else self.c[j])
                moved = max(moved, abs(there - alpha[j]) * square[j] ** 0.5)
                w, alpha[j] = w + (there - alpha[j]) * row, there
            if moved <= 1e-12 * np.linalg.norm(w):
                break
        high = min(self.objective(alpha @ self.A), self.objective(np.zeros(len(w))))
        return -np.inf if self.free else self.bound(alpha), high


@dataclass(frozen=True)
class Soft:
    soft_margin: Callable[..., Any] = dfeas.soft_margin
    name: str = "soft"
    weight: float = 1.0
    seconds: float = 20.0

    def draw(self, seed: int) -> Case:
        rng = rng_of(self.name, seed)
        family, X, labels = points(rng)
        options = {
            "C": float(10.0 ** (rng.uniform(-12, 12) if rng.random() < 0.4 else rng.uniform(-2, 2))),
            "loss": str(rng.choice(["hinge", "squared_hinge"])),
            "tol": float(rng.choice([1e-3, 1e-3, 1e-6, 0.1])),
            "intercept": bool(rng.random() < 0.6),
            "dual": bool(rng.random() < 0.3),
            "max_passes": 100,
        }
        if family == "balanced":  # the bias alone tells them apart, or nothing does
            options |= {"C": float(10.0 ** rng.uniform(-8, 0)), "intercept": True}
        if options["intercept"] and rng.random() < 0.5:
            options["intercept_scaling"] = float(rng.choice([1.0, 10.0 ** rng.uniform(-3, 6)]))
        arrays = {"X": X, "labels": labels}
        if rng.random() < 0.3:
            arrays["weights"] = np.where(rng.random(len(X)) < 0.2, 0.0, rng.uniform(0, 3, len(X)))
        return Case(self.name, seed, family, arrays, options)

    def judge(self, case: Case) -> Judgement:
        X, labels, options = case.arrays["X"], case.arrays["labels"], dict(case.options)
        weights, dual = case.arrays.get("weights"), options.pop("dual")
        scale = options.get("intercept_scaling", 1.0)
        A = (np.hstack([X, np.full((len(X), 1), scale)]) if options["intercept"] else X) * labels[:, None]
        c = options["C"] * (np.ones(len(X)) if weights is None else weights)
        free = options["intercept"] and "intercept_scaling" not in options
        problem = Problem(A, c, options["loss"] == "squared_hinge", free, scale if options["intercept"] else 1.0)
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "alpha.npy" if dual else None
            try:
                found = self.soft_margin(X, labels, weights=weights, dual=place, **options)
            except dfeas.DfeasError as error:
                return wrong(f"refused without a reason: {error}")
            alpha = np.load(place) if place is not None and place.exists() else None
        bad = of_result(found, problem)
        if bad is None and found.dual is not None and alpha is not None:
            bad = of_dual(found, problem, alpha)
        if bad is None and not found.success:
            open_ = found.stopped == "pass_limit" or not 1 / HARD < problem.hardness < HARD
            return Judgement(Word.OPEN if open_ else Word.UNDECIDED, f"{found.stopped}, gap {found.gap:g}: {found.message}")
        return bad or RIGHT


def of_result(found: Any, problem: Problem) -> Judgement | None:
    """What is wrong with the ends and with the gap."""
    w = problem.of(found.y)
    here = problem.objective(w)
    if not abs(here - found.objective) <= SAME * here + problem.rounding(w):
        return wrong(f"objective {found.objective!r}, y has {here!r}")
    low, high = problem.descended()
    high = min(high, here)
    if not found.lower <= high * (1 + SAME):
        return wrong(f"lower {found.lower!r}, the minimum is at most {high!r}")
    if not found.objective >= low * (1 - SAME):
        return wrong(f"objective {found.objective!r}, the minimum is at least {low!r}")
    gap = (found.objective - found.lower) / found.objective if found.objective else 0.0
    if not abs(gap - found.gap) <= SAME or (found.success and gap > found.target * (1 + SAME)):
        return wrong(f"gap {found.gap!r} of {found.target:g}, the ends are {gap!r} apart, success is {found.success}")
    return None


def of_dual(found: Any, problem: Problem, alpha: np.ndarray) -> Judgement | None:
    """What is wrong with the dual variables in the file, and with what is said of them."""
    most = np.inf if problem.squared else problem.c * (1 + 1e-15)
    if not np.isfinite(alpha).all() or (alpha < 0).any() or (alpha > most).any():
        return wrong("the dual variables are not in their box")
    value, size, paid = problem.bound(alpha, found.objective), alpha.sum() + np.abs(problem.objective(found.y)), problem.paid
    for _ in range(8):  # with what is known of the minimum so far
        length = np.linalg.norm(problem.of(found.y)[paid]) + (2 * max(0.0, found.objective - value)) ** 0.5
        value = max(value, problem.bound(alpha, found.objective, length))
    off = EPS * len(alpha) * (alpha @ np.abs(problem.A))
    rounding = float((np.abs(alpha @ problem.A) + off) @ off)
    if not abs(value - found.dual.value) <= 1e-7 * size + rounding:
        return wrong(f"dual.value {found.dual.value!r}, alpha has {value!r}")
    if problem.hardness < HARD and not found.dual.value >= found.lower - 1e-6 * abs(found.objective):
        return wrong(f"the dual variables prove {found.dual.value!r}, lower is {found.lower!r}")
    w = problem.of(found.y)
    residual = float(np.linalg.norm((w - alpha @ problem.A)[problem.paid]))
    bound = np.sqrt(2 * (max(0.0, found.objective - found.lower) + SAME * found.objective)) + 1e-6 * np.linalg.norm(w)
    bound += float(np.linalg.norm(off))
    if not (residual <= bound and found.dual.residual <= bound):
        return wrong(f"the residual is {residual!r}, said {found.dual.residual!r}, at most {bound!r}")
    return None
