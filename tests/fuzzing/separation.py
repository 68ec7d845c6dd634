"""Complete, quasi-complete or overlap: the kind, and that it is proved; and rows without weight, that nothing comes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import flint
import numpy as np
import pandas as pd
import scipy.sparse

import dfeas
from tests.fuzzing.case import RIGHT, Case, Judgement, Word, rng_of, wrong
from tests.fuzzing.families import SEPARATION, effects
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
        given = scipy.sparse.csr_array(X) if case.family == effects.__name__ else X
        try:
            if case.options["check"]:
                told = self.check(given, labels, intercept=intercept)
                found = told.found
                if (told.kind, told.proof) != (found.kind, found.proof):
                    return wrong(f"check_separation says {told.kind}/{told.proof}, separation {found.kind}/{found.proof}")
            else:
                found = self.separation(given, labels, intercept=intercept)
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
        on = [points[j] for j, score in enumerate(here) if not score]
        if flint.fmpz_mat(on).rank() != flint.fmpz_mat([points[j] for j in found.support.tolist()]).rank():
            return wrong(f"{found.on} points are on the plane, and some of them not in what the conflict spans")
        beyond = [j for j, score in enumerate(here) if score]
        if told is not None and told.points != beyond:
            return wrong(f"check_separation names {told.points} as separated, y separates {beyond}")
        return None


@dataclass(frozen=True)
class Weightless:
    """Rows of weight 0, most of which contradict another: the answer is that of the table without them."""

    check: Callable[..., Any] = dfeas.check_separation
    name: str = "weightless"
    weight: float = 1.0
    seconds: float = 20.0

    def draw(self, seed: int) -> Case:
        rng = rng_of(self.name, seed)
        family = SEPARATION[rng.integers(len(SEPARATION))]
        X, labels = family(rng)
        outcome = ("binary", "poisson", "multinomial")[rng.integers(3)]
        extra = rng.integers(0, len(X), rng.integers(1, len(X) + 1))
        y = np.where(labels > 0, rng.integers(1, 3, len(X)), 0) if outcome != "binary" else (labels > 0).astype(int)
        y = np.r_[y, rng.permutation(y)[extra]]
        weights = np.r_[rng.choice([1e-300, 0.5, 1.0, 7.0], len(X)), np.zeros(len(extra))]
        level = np.r_[rng.integers(0, 3, len(X)), rng.integers(0, 5, len(extra))]
        order = rng.permutation(len(y))
        arrays = {"X": np.concatenate([X, X[extra]])[order], "y": y[order], "weights": weights[order], "level": level[order]}
        way = ("array", "frame", "formula")[rng.integers(3)]
        options = {"intercept": bool(rng.random() < 0.75), "outcome": outcome, "way": way}
        return Case(self.name, seed, family.__name__, arrays, options)

    def judge(self, case: Case) -> Judgement:
        kept = np.flatnonzero(case.arrays["weights"] > 0)
        said, by_hand = self._said(self.check, case, None), self._said(dfeas.check_separation, case, kept)
        if isinstance(said, str) or isinstance(by_hand, str):
            return Judgement(Word.REFUSED, str(by_hand)) if type(said) is type(by_hand) else wrong(f"{said}, without {by_hand}")
        for name in ("kind", "proof", "columns", "levels", "classes", "depending", "separated"):
            if getattr(said, name) != getattr(by_hand, name):
                return wrong(f"{name} is {getattr(said, name)}, without these rows {getattr(by_hand, name)}")
        if said.points != kept[by_hand.points].tolist():
            return wrong(f"the points are {said.points}, without these rows {kept[by_hand.points].tolist()}")
        return RIGHT

    def _said(self, check: Callable[..., Any], case: Case, kept: Any) -> Any:
        """The answer about all rows, or about those that are kept, without weights; or the error that came of it."""
        rows = slice(None) if kept is None else kept
        X, y, level = (case.arrays[name][rows] for name in ("X", "y", "level"))
        more = {} if kept is not None else {"weights": case.arrays["weights"]}
        asked = {"outcome": case.options["outcome"], **more}
        try:
            if case.options["way"] == "array":
                return check(X, y, intercept=case.options["intercept"], **asked)
            frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]).assign(kind=[f"l{j}" for j in level])
            if case.options["way"] == "frame":
                return check(frame, y, intercept=case.options["intercept"], **asked)
            start = "" if case.options["intercept"] else "0 + "
            return check(f"y ~ {start}{' + '.join(frame.columns)}", frame.assign(y=y), **asked)
        except dfeas.DfeasError as error:
            return str(error)
