"""Cox, conditional logistic and ordinal regressions beside their terms: kind, rows that are separated, and every estimate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse

import dfeas
from tests.fuzzing.case import RIGHT, Case, Judgement, Word, rng_of, wrong
from tests.fuzzing.inequalities import draw_numbers
from tests.fuzzing.oracle import as_stored
from tests.terms import Terms, adjacent_terms, cox_terms, estimate_of, ordinal_terms, reaches

Arrays = dict[str, np.ndarray]
FAMILIES = ("integers", "decimals", "shares", "scales", "normal")
NOISE = 0.3
"""Of tables that a direction separates one row gets another outcome."""
ROUNDING = 1e-14
"""Of a sum of few products with coefficients of a direction that are rounded."""


def draw_table(rng: np.random.Generator, family: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows, some of them twice, columns that may depend on each other, and the scores of a direction, in ranks."""
    n, m = int(rng.integers(4, 17)), int(rng.integers(1, 5))
    X = draw_numbers(rng, family, (n, m)).astype(np.float64)
    X = X[rng.integers(0, n, n)] if rng.random() < 0.6 else X
    if rng.random() < 0.25:
        X[:, -1] = X[:, 0] * rng.choice([0.0, 1.0, -2.0])
    return X, np.unique(X @ rng.integers(-2, 3, m), return_inverse=True)[1].ravel()


def draw_ordinal(rng: np.random.Generator, score: np.ndarray) -> Arrays:
    """Classes between cuts; on a cut there are rows of both sides."""
    cuts = np.sort(rng.choice(score, int(rng.integers(1, 4))))
    y = np.digitize(score, cuts) - np.isin(score, cuts) * rng.integers(0, 2, len(score))
    if rng.random() < NOISE:
        y[rng.integers(len(y))] = rng.integers(0, len(cuts) + 1)
    return {"y": 3 * y - 1}


def draw_conditional(rng: np.random.Generator, score: np.ndarray) -> Arrays:
    """Cases above, and some of those at, a score of their stratum."""
    strata = rng.integers(0, rng.integers(1, 4), len(score))
    cut = rng.choice(score, 3)[strata]
    y = (score > cut) | ((score == cut) & (rng.random(len(score)) < 0.5))
    y ^= rng.random(len(score)) < rng.choice([0.0, 0.1, 0.3])
    return {"y": y.astype(int), "strata": strata}


def draw_cox(rng: np.random.Generator, score: np.ndarray) -> Arrays:
    """Events in the order of the scores, tied with others and with who is censored."""
    time = score.max() - score // rng.integers(1, 4)
    strata = rng.integers(0, rng.integers(1, 4), len(score))
    early = rng.random(len(score)) < 0.2
    time = np.where(early, rng.integers(0, time.max() + 1, len(score)), time)
    event = (rng.random(len(score)) < 0.6) & (~early | (rng.random() < NOISE))
    return {"y": event.astype(int), "time": 0.1 * (1 + time), "strata": strata}


def swapped_terms(X: np.ndarray, y: np.ndarray, strata: np.ndarray) -> Terms:
    """A case must not fall below a control of its stratum: each set of as many rows is a sum of such swaps."""
    for i, j in np.argwhere((y[:, None] > y) & (strata[:, None] == strata)):
        yield i, X[i] - X[j]
        yield j, X[i] - X[j]


DRAWN: dict[str, Callable[[np.random.Generator, np.ndarray], Arrays]] = {
    "cox": draw_cox,
    "conditional": draw_conditional,
    "ordinal": draw_ordinal,
    "adjacent": draw_ordinal,
}


@dataclass(frozen=True)
class Truth:
    """What the terms of a likelihood say, in whole numbers: ``scale`` times the columns, beside thresholds of classes."""

    kind: str
    rows: list[int]  # that are separated
    estimates: list[str]  # of thresholds, and of columns
    terms: list[list[int]]
    cuts: int  # thresholds, behind the columns of the terms
    scale: int

    @classmethod
    def of(cls, outcome: str, arrays: Arrays) -> Truth | None:
        """None without a term, of which nothing can be said."""
        wide, y, q = np.array(as_stored(arrays["X"], intercept=True), object), arrays["y"], 0
        X, m = wide[:, :-1], wide.shape[1] - 1
        if outcome in ("ordinal", "adjacent"):
            classes, y = np.unique(y, return_inverse=True)
            q = len(classes) - 1
            found = (ordinal_terms if outcome == "ordinal" else adjacent_terms)(X, y, q)
        elif outcome == "conditional":
            found = swapped_terms(X, y, arrays["strata"])
        else:
            found = cox_terms(X, arrays["time"], y, arrays["strata"])
        numbers, terms = [], []
        for number, term in found:
            numbers.append(int(number))
            terms.append([int(v) for v in term])
        if not terms:
            return None
        distinct = [list(term) for term in {tuple(term) for term in terms}]
        rises = {tuple(term): reaches(distinct, term) for term in distinct}
        rising = [rises[tuple(term)] for term in terms]
        kind = "complete" if all(rising) and outcome != "cox" else "quasi-complete" if any(rising) else "overlap"
        # a case at the largest score of the controls is on the threshold of its stratum
        put: Callable[..., bool] = all if outcome == "conditional" else any
        rows = [i for i in sorted({*numbers}) if put(up for number, up in zip(numbers, rising, strict=True) if number == i)]
        estimates = [estimate_of(distinct, j) for j in (*range(m, m + q), *range(m))]
        return cls(kind, rows, estimates, terms, q, int(wide[0, -1]))


@dataclass(frozen=True)
class Likelihood:
    """One of them, asked as arrays, sparse ones, a frame or a formula, among rows of weight 0 that say anything."""

    name: str
    check: Callable[..., Any] = dfeas.check_separation
    weight: float = 0.5
    seconds: float = 20.0

    def draw(self, seed: int) -> Case:
        rng = rng_of(self.name, seed)
        family = FAMILIES[rng.integers(len(FAMILIES))]
        X, score = draw_table(rng, family)
        arrays = {"X": X, **DRAWN[self.name](rng, score)}
        extra = rng.integers(0, len(X), rng.integers(0, 4) if rng.random() < 0.3 else 0)
        arrays = {name: np.concatenate([each, rng.permutation(each)[extra]]) for name, each in arrays.items()}
        arrays["weights"] = np.r_[rng.choice([0.5, 1.0, 7.0], len(X)), np.zeros(len(extra))]
        order = rng.permutation(len(X) + len(extra))
        options = {"outcome": self.name, "way": str(rng.choice(["array", "sparse", "frame", "formula"]))}
        if self.name == "ordinal" and rng.random() < 0.4:
            options["outcome"] = "adjacent"
        return Case(self.name, seed, family, {name: each[order] for name, each in arrays.items()}, options)

    def judge(self, case: Case) -> Judgement:
        kept = np.flatnonzero(case.arrays["weights"])
        truth = Truth.of(case.options["outcome"], {name: each[kept] for name, each in case.arrays.items()})
        try:
            found = self._ask(case)
        except dfeas.BadInputError as error:
            return Judgement(Word.REFUSED, str(error)) if truth is None else wrong(f"refused: {error}")
        if truth is None:
            return wrong(f"the likelihood has no term, and is said to be {found.kind}")
        estimates = [each.estimate for each in found.estimates]
        said = f"{found.kind}/{found.proof}, {estimates}"
        if found.kind is None or "not decided" in estimates or not all(each.certain for each in found.estimates):
            return Judgement(Word.UNDECIDED, f"{truth.kind} is said to be {said}: {found.message}")
        if (found.kind, estimates) != (truth.kind, truth.estimates):
            return wrong(f"{said} is right {truth.kind}, {truth.estimates}")
        if found.proof not in (("exact", "rigorous") if found.kind == "complete" else ("exact",)):
            return Judgement(Word.UNPROVED, said)
        return RIGHT if found.kind == "overlap" else self._of_direction(found, truth, kept)

    def _ask(self, case: Case) -> Any:
        X, y, weights = (case.arrays[name] for name in ("X", "y", "weights"))
        beside = {name: case.arrays[name] for name in ("time", "strata") if name in case.arrays}
        asked: dict[str, Any] = {"outcome": case.options["outcome"]}
        if case.options["way"] in ("array", "sparse"):
            given = scipy.sparse.csr_array(X) if case.options["way"] == "sparse" else X
            asked |= {"strata": beside["strata"]} if "strata" in beside else {}
            return self.check(given, (beside["time"], y) if "time" in beside else y, weights=weights, **asked)
        names = [f"x{j}" for j in range(X.shape[1])]
        frame = pd.DataFrame(X, columns=names).assign(y=y, weights=weights, **beside)
        asked |= {"strata": "strata"} if "strata" in beside else {}
        if case.options["way"] == "frame":
            return self.check(frame, ["time", "y"] if "time" in beside else "y", weights="weights", **asked)
        left = "Surv(time, y)" if "time" in beside else "y"
        return self.check(f"{left} ~ {' + '.join(names)}", frame, weights="weights", **asked)

    def _of_direction(self, found: Any, truth: Truth, kept: np.ndarray) -> Judgement:
        """What is wrong with the rows and columns that are named, and with the direction."""
        rows = kept[truth.rows].tolist()
        if (found.points, found.separated) != (rows, len(rows)):
            return wrong(f"{found.kind}: rows {found.points}, {found.separated} of them, are named, right are {rows}")
        along, q = [Fraction(each.direction) for each in found.estimates], truth.cuts
        along = [*along[q:], *(truth.scale * cut for cut in along[:q])]
        for term in truth.terms:
            change = [a * v for a, v in zip(term, along, strict=True)]
            if sum(change) < -ROUNDING * sum(map(abs, change)):
                return wrong(f"{found.kind}: along {found.direction} the term {term} falls")
        runs = {each.name for each in found.estimates[q:] if each.estimate != "finite"}
        if not found.columns or not {*found.columns} <= runs:
            return wrong(f"{found.kind}: columns {found.columns} are blamed, of {runs} that have no finite estimate")
        return RIGHT
