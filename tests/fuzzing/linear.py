"""Linear problems in hostile families: verdict, bracket and proof of every method."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dfeas
from tests.fuzzing.case import RIGHT, Case, Judgement, Word, rng_of, wrong
from tests.fuzzing.families import LINEAR
from tests.fuzzing.oracle import Truth

LOW, HIGH = 1e-130, 1e130
"""Norms of points that are taken."""
SLACK = 1e-12
"""Of ends of the bracket that a method computed in float64, and of the oracle's."""
SLACK_SINGLE = 1e-5
"""The same in float32."""

UNDERFLOW = 1e-300
"""Margins below may be proved to be at least zero only."""
BELOW_FLOATS = 1e-11
"""A bracket that ends below this, and above eps, leaves separators that float64 cannot hold."""


@dataclass(frozen=True)
class Linear:
    solve: Callable[..., Any] = dfeas.solve
    name: str = "linear"
    weight: float = 3.0
    seconds: float = 20.0

    def draw(self, seed: int) -> Case:
        rng = rng_of(self.name, seed)
        family = LINEAR[rng.integers(len(LINEAR))]
        X, labels = family(rng)
        methods = ["auto", *dfeas.METHODS]
        options: dict[str, Any] = {
            "method": "auto" if rng.random() < 0.5 else methods[seed % len(methods)],
            "intercept": bool(rng.random() < 0.3),
            "eps": float(rng.choice([1e-3, 1e-3, 1e-6, 1e-9, 1e-12, 0.3])),
        }
        if rng.random() < 0.2:
            options["margin_tolerance"] = float(rng.choice([0.5, 1e-2, 1e-4]))
        if options["method"] != "auto" or rng.random() < 0.1:
            slow = options["method"] == "winnow" or "perceptron" in options["method"]  # in Python, many corrections a pass
            options["max_passes"] = int(rng.integers(1, 5 if slow else 60))
        return Case(self.name, seed, family.__name__, {"X": X, "labels": labels}, options)

    def judge(self, case: Case) -> Judgement:
        X, labels = case.arrays["X"], case.arrays["labels"]
        truth = Truth(X, labels, case.options["intercept"])
        try:
            result = self.solve(X, labels, **case.options)
        except dfeas.DfeasError as error:
            return refused(truth, str(error))
        known = {"planted": True, "planted_twin": None if case.options["intercept"] else False}.get(case.family)
        found = of_verdict(result, truth, case.options, known) or of_bracket(result, truth) or of_words(result, X, labels)
        return found or ended(result, case.options)


def refused(truth: Truth, text: str) -> Judgement:
    """Only labels of one class, and norms that squares do not reach, are a reason."""
    wide = np.asarray(truth.X, np.float64)
    length = np.array([math.hypot(*row) for row in wide.tolist()])
    reason = ((length > HIGH / 8) | ((length < LOW * 8) & (length > 0))).any()
    if truth.labels is not None and len(set(truth.labels.tolist())) < 2:
        reason = True
    return Judgement(Word.REFUSED, text) if reason else wrong(f"refused without a reason: {text}")


def of_verdict(result: Any, truth: Truth, options: Any, known: bool | None = None) -> Judgement | None:
    """What is wrong with the verdict; None when nothing is. ``known`` is the truth by construction."""
    feasible = truth.feasible if known is None else known
    said = f"{result.verdict}/{result.proof} by {result.method}"
    if result.verdict == "feasible":
        if feasible is False:
            return wrong(f"{said}: no separator exists")
        least = truth.least(np.array(result.evidence.integers or result.separator.tolist(), object))
        positive = result.margin_lower > 0 or least < UNDERFLOW
        if not (positive and result.margin_lower <= least * (1 + 1e-15)):
            return wrong(f"{said}: margin_lower {result.margin_lower!r}, that of y is {least!r}")
        tolerance = options.get("margin_tolerance")
        if (
            tolerance
            and result.stopped == "verdict"
            and result.margin_lower < (1 - tolerance) * result.margin_upper * (1 - 1e-9)
        ):
            return wrong(f"{said}: {result.margin_lower!r} is not within {tolerance:g} of {result.margin_upper!r}")
    if result.verdict == "infeasible" and feasible:
        return wrong(f"{said}: a separator exists")
    if result.verdict == "infeasible" and result.margin_upper > 0:
        return wrong(f"{said}: margin_upper {result.margin_upper!r}")
    if result.verdict == "eps-infeasible" and not result.margin_upper <= result.eps:
        return wrong(f"{said}: margin_upper {result.margin_upper!r} is above eps {result.eps:g}")
    wanted = {"infeasible": ("exact",), "undecided": ("none",)}.get(result.verdict, ("exact", "rigorous"))
    if result.proof not in wanted:
        return Judgement(Word.UNPROVED, said)
    return None


def of_words(result: Any, X: np.ndarray, labels: np.ndarray) -> Judgement | None:
    """What is wrong with whom it names, and with what it predicts of its own points."""
    if result.conflicts and result.verdict != "infeasible":
        return wrong(f"{result.verdict}: accuses {len(result.conflicts)} points")
    if result.verdict == "feasible" and not (result.predict(X) == labels).all():
        return wrong("a proved separator puts a point of its own on the other side")
    return None


def of_bracket(result: Any, truth: Truth) -> Judgement | None:
    """What is wrong with it."""
    low, high = result.margin_lower, result.margin_upper
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        return wrong(f"{result.verdict}: bracket {low!r} .. {high!r}")
    single = truth.X.dtype.itemsize < 8 and truth.X.dtype != np.int32
    slack = SLACK_SINGLE if single and result.verdict in ("feasible", "undecided") else SLACK
    least, most = truth.margin
    conflicting = result.verdict == "infeasible" and least == 0  # the best margin is below zero, and the oracle says no more
    if not conflicting and high < least * (1 - slack) - slack:
        return wrong(f"{result.verdict} by {result.method}: margin_upper {high!r}, a margin of {least!r} exists")
    if low > most * (1 + slack) + slack:
        return wrong(f"{result.verdict} by {result.method}: margin_lower {low!r}, none above {most!r} exists")
    return None


def ended(result: Any, options: Any) -> Judgement:
    """Right, or open for a reason."""
    if result.stopped == "verdict":
        return RIGHT
    if (result.stopped == "pass_limit" and "max_passes" in options) or (
        result.stopped == "stalled" and result.verdict == "feasible"
    ):
        return Judgement(Word.OPEN, result.stopped)
    if result.stopped == "stalled" and result.margin_upper < BELOW_FLOATS:
        return Judgement(Word.OPEN, f"separated, if at all, by no y in float64: {result.message}")
    if options["method"] in ("auto", "working-set", "working-set-plain"):
        return Judgement(Word.UNDECIDED, f"{result.verdict}, {result.stopped}: {result.message}")
    return Judgement(Word.OPEN, f"{result.method} {result.stopped}")
