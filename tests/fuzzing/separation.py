"""Complete, quasi-complete or overlap: the kind, and that it is proved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import dfeas
from tests.fuzzing.case import RIGHT, Case, Judgement, Word, rng_of, wrong
from tests.fuzzing.families import SEPARATION
from tests.fuzzing.linear import refused
from tests.fuzzing.oracle import Truth, as_stored, scores


@dataclass(frozen=True)
class Separation:
    separation: Callable[..., Any] = dfeas.separation
    check: Callable[..., Any] = dfeas.check_separation
    name: str = "separation"
    weight: float = 3.0
    seconds: float = 20.0

    def draw(self, seed: int) -> Case:
        rng = rng_of(self.name, seed)
        family = SEPARATION[rng.integers(len(SEPARATION))]
        X, labels = family(rng)
        options = {"intercept": bool(rng.random() < 0.75), "check": bool(rng.random() < 0.5)}
        return Case(self.name, seed, family.__name__, {"X": X, "labels": labels}, options)

    def judge(self, case: Case) -> Judgement:
        X, labels, intercept = case.arrays["X"], case.arrays["labels"], bool(case.options["intercept"])
        truth = Truth(X, labels, intercept)
        try:
            if case.options["check"]:
                told = self.check(X, labels, intercept=intercept)
                found = told.found
                if (told.kind, told.proof) != (found.kind, found.proof):
                    return wrong(f"check_separation says {told.kind}/{told.proof}, separation {found.kind}/{found.proof}")
            else:
                found = self.separation(X, labels, intercept=intercept)
        except dfeas.DfeasError as error:
            return refused(truth, str(error))
        true, said = truth.kind, f"{found.kind}/{found.proof}: {found.message}"
        if true is None:
            return Judgement(Word.OPEN, f"the oracle takes too long; {said}")
        if found.kind is None:
            return Judgement(Word.UNDECIDED, f"{true} is said to be {said}")
        if found.kind != true:
            return wrong(f"{true} is said to be {said}")
        if found.proof not in (("exact", "rigorous") if true == "complete" else ("exact",)):
            return Judgement(Word.UNPROVED, said)
        return self._evidence(found, told if case.options["check"] else None, X, labels, intercept) or RIGHT

    def _evidence(self, found: Any, told: Any, X: np.ndarray, labels: np.ndarray, intercept: bool) -> Judgement | None:
        """What is wrong with the y and the weights, and with the points that are named."""
        points = as_stored(X, labels, intercept=intercept)
        if found.weights is not None:
            chosen = [points[j] for j in found.support.tolist()]
            sums = scores([list(column) for column in zip(*chosen, strict=True)], found.weights)
            if min(found.weights) <= 0 or any(sums):
                return wrong("the weights of the conflict are not positive, or do not sum the points to zero")
        if found.kind == "complete" and found.y is not None and min(scores(points, found.y)) <= 0:
            return wrong("y does not separate all points")
        if found.kind != "quasi-complete":
            return None
        here = scores(points, found.y)
        if min(here) < 0 or not any(here) or here.count(0) != found.on:
            return wrong(f"y has {here.count(0)} points on its plane and {sum(v < 0 for v in here)} behind it, said {found.on}")
        beyond = [j for j, score in enumerate(here) if score]
        if told is not None and told.points != beyond:
            return wrong(f"check_separation names {told.points} as separated, y separates {beyond}")
        return None
