"""Kernels: verdict, proof and bracket against 80 digits; extreme parameters, offsets, and points 1 ulp apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import localcontext
from typing import Any

import numpy as np

import dfeas
from dfeas.kernels.space import KERNEL_METHODS
from tests.fuzzing import gram
from tests.fuzzing.case import RIGHT, Case, Judgement, Word, rng_of, wrong
from tests.fuzzing.oracle import Truth, as_stored

SLACK = 1e-6
"""Relative, of an end that the method computed; ends that are proved have none."""
ROUNDING = 1e-8
"""Absolute, of a length that the method computed from values of the kernel in float64."""


def points(rng: np.random.Generator) -> tuple[str, np.ndarray, np.ndarray]:
    """Some points, few enough for 80 digits."""
    n, m = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    X = rng.integers(-4, 5, (n, m)).astype(np.float64) if rng.random() < 0.4 else rng.standard_normal((n, m))
    labels = np.where(rng.random(n) < 0.5, 1, -1)
    labels[0], labels[-1] = 1, -1
    family = ("plain", "offset", "twins", "scaled", "near")[rng.integers(5)]
    if family == "offset":
        X = X + 10.0 ** rng.integers(1, 9)
    if family == "scaled":
        X = X * 10.0 ** rng.uniform(-30, 30)
    if family in ("twins", "near"):
        other = X.copy()
        other[:, 0] = np.nextafter(other[:, 0], np.inf) if rng.random() < 0.5 else other[:, 0] + (family == "near") * 1e-5
        X, labels = np.vstack([X, other]), np.concatenate([labels, labels * np.where(rng.random(n) < 0.5, 1, -1)])
    return family, X, labels


def options_of(rng: np.random.Generator, X: np.ndarray) -> dict[str, Any]:
    """A kernel, its parameters mild or extreme, and a method."""
    name = str(rng.choice(dfeas.KERNELS))
    spread = float(np.ptp(X, axis=0).max()) or 1.0
    chance = rng.random()
    gamma = 10.0 ** (rng.uniform(-1, 1) if chance < 0.5 else rng.uniform(-12, 12) if chance < 0.85 else rng.uniform(-300, 300))
    options: dict[str, Any] = {"kernel": name}
    if name in ("rbf", "exponential"):
        options["gamma"] = float(np.clip(gamma / max(spread**2 if name == "rbf" else spread, 1e-300), 1e-300, 1e300))
    if name == "polynomial":
        options["gamma"] = float(gamma)
        options["degree"] = int(rng.choice([1, 2, 2, 3, 5, 20, 200]))
        options["coef0"] = float(rng.choice([0.0, 0.0, 1.0, 1e-9, 1e9, 0.3]))
    if rng.random() < 0.4:
        options["method"] = str(rng.choice(list(KERNEL_METHODS)))
        options["max_passes"] = int(rng.integers(1, 60))
    options["eps"] = float(rng.choice([1e-3, 1e-3, 1e-6, 1e-9]))
    return options


@dataclass(frozen=True)
class KernelKind:
    solve: Callable[..., Any] = dfeas.solve
    name: str = "kernel"
    weight: float = 2.5
    seconds: float = 30.0

    def draw(self, seed: int) -> Case:
        rng = rng_of(self.name, seed)
        family, X, labels = points(rng)
        return Case(self.name, seed, family, {"X": X, "labels": labels}, options_of(rng, X))

    def judge(self, case: Case) -> Judgement:
        X, labels, options = case.arrays["X"], case.arrays["labels"], dict(case.options)
        try:
            result = self.solve(X, labels, **gram.arguments(options))
        except dfeas.DfeasError as error:
            return refused(X, labels, options, str(error))
        said = f"{result.verdict}/{result.proof} by {result.method}"
        truth = gram.separable(X, labels, options)
        if truth is not None and result.verdict in ("feasible", "infeasible") and truth != (result.verdict == "feasible"):
            return wrong(f"{said}: a separator {'exists' if truth else 'does not exist'}")
        low, high = result.margin_lower, result.margin_upper
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            return wrong(f"{said}: bracket {low!r} .. {high!r}")
        return (
            of_ends(result, said, X, labels, options)
            or of_proof(result, said)
            or (RIGHT if result.stopped == "verdict" else Judgement(Word.OPEN, f"{said}: {result.stopped}"))
        )


def refused(X: np.ndarray, labels: np.ndarray, options: dict[str, Any], text: str) -> Judgement:
    """Norms that squares do not reach, and parameters under which they leave float64, are a reason."""
    length = np.array([math.hypot(*row) for row in X.tolist()])
    size = max(float(length.max()), 1e-300)
    power = math.log10(size) * 2 + math.log10(options.get("gamma", 1.0))
    reason = ((length > 1e129) | ((length < 1e-129) & (length > 0))).any() or len(set(labels.tolist())) < 2
    reason = reason or abs(power) * max(1, options.get("degree", 1)) > 280 or abs(math.log10(options.get("gamma", 1.0))) > 120
    return Judgement(Word.REFUSED, text) if reason else wrong(f"refused without a reason: {text}")


def of_proof(result: Any, said: str) -> Judgement | None:
    wanted = {"infeasible": ("exact",), "undecided": ("none",)}.get(result.verdict, ("exact", "rigorous"))
    return None if result.proof in wanted else Judgement(Word.UNPROVED, said)


def of_ends(result: Any, said: str, X: np.ndarray, labels: np.ndarray, options: dict[str, Any]) -> Judgement | None:
    """What is wrong with the bracket, beside the best margin, and with the evidence."""
    least, most = gram.bracket(X, labels, options)
    low, high = result.margin_lower, result.margin_upper
    slack = 0.0 if result.verdict == "eps-infeasible" else SLACK * least + ROUNDING
    conflicting = result.verdict == "infeasible" and least == 0  # the best margin is below zero, and the oracle says no more
    if not conflicting and high < least - slack:
        return wrong(f"{said}: margin_upper {high!r}, a margin of {least!r} exists")
    slack = 0.0 if result.verdict == "feasible" else SLACK * most + ROUNDING
    if low > most + slack:
        return wrong(f"{said}: margin_lower {low!r}, none above {most!r} exists")
    if result.verdict == "eps-infeasible" and high > result.eps:
        return wrong(f"{said}: margin_upper {high!r} is above eps {result.eps:g}")
    if result.verdict == "feasible":
        if result.evidence.integers:
            chosen = as_stored(X, labels)
            pairs = [(number, chosen[j]) for number, j in zip(result.evidence.integers, result.support.tolist(), strict=True)]
            y = [sum(number * point[k] for number, point in pairs) for k in range(X.shape[1])]
            least = Truth(X, labels).least(np.array(y, object))
        else:
            with localcontext(gram.DIGITS):
                least = gram.least_score(gram.values(X, labels, options), result.support.tolist(), result.weights.tolist())
        if low > least * (1 + 1e-15):
            return wrong(f"{said}: margin_lower {low!r}, the separator has {least!r}")
    return None
