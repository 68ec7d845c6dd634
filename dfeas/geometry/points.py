"""Points as they are: a column for each, y an m-vector."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dfeas.data.collections import collection_of
from dfeas.data.dataset import Dataset
from dfeas.engine.memory import answer_bytes
from dfeas.errors import BadInputError, UsageError, enough, format_bytes
from dfeas.geometry.prediction import ClassPrediction, Prediction
from dfeas.geometry.protocol import (
    Forecast,
    Forecasts,
    Geometry,
    Load,
    Mend,
    Needs,
    Rule,
    Trained,
    facts_of,
    in_turns,
    least_seconds,
)
from dfeas.linalg.csr import csr
from dfeas.linalg.points import Floats, Points, row_slice
from dfeas.methods import work, working_set
from dfeas.methods.protocol import AnyMethod, Facts, weights_at_once
from dfeas.methods.registry import METHODS
from dfeas.passes.block import Block
from dfeas.passes.vectors import POINT_BYTES

HOLD_BYTES = 6 * (32 << 20)
"""What a worker reads ahead for a fold: held, on its way, and being folded."""

PROBED_FEATURES = 1000
"""Products are timed with at most so many features."""


@dataclass(frozen=True, slots=True)
class PointSpace(Geometry):
    """Points as they are stored, each with its label for a sign."""

    exact: ClassVar[bool] = True
    weighs_by_block: ClassVar[bool] = True

    def check_method(self, method: str, more: tuple[str, ...] = ()) -> str:
        if not isinstance(method, str) or method not in (*more, *METHODS):
            raise UsageError(f"unknown method {method}; expected {', '.join((*more, *METHODS))}")
        return method

    def require_shared(self, method: str) -> None:
        if method in METHODS and METHODS[method].traits.exclusive:
            raise UsageError(
                f"{method} reads the data in a way of its own, and classes share their reads; choose another method"
            )

    def choose(
        self, method: str, dataset: Dataset, memory: int, threads: int = 1, tolerance: float | None = None
    ) -> tuple[str, str]:
        name, why = choose(self.check_method(method, ("auto",)), facts_of(dataset, memory, tolerance))
        need = POINT_BYTES * dataset.n
        if METHODS[name].traits.weighs_all and collection_of(dataset) is not None and need > memory:
            raise UsageError(f"{name} needs {enough(need)} of memory for weights of all points, unless the data is ingested")
        return name, why

    def candidates(self, method: str | None, dataset: Dataset, memory: int, threads: int, classes: int) -> tuple[str, ...]:
        """The one that is asked for even if it does not fit: then the plan says what is needed."""
        if method is not None:
            return (self.check_method(method),)
        return tuple(name for name, each in METHODS.items() if not (classes > 1 and each.traits.exclusive))

    def abreast(self, method: str, classes: int, dataset: Dataset, memory: int) -> int:
        """All, or as many as leave each a working set that drops no columns: what keeps no columns keeps little. A working set
        that would not fit for one class is left to ``choose``.
        """
        if method != "auto" and not METHODS[method].traits.columns:
            return classes
        counts = list(dict.fromkeys(-(-classes // turns) for turns in range(1, classes + 1)))
        each = {count: facts_of(dataset, memory // count) for count in counts}
        fitting = [count for count, facts in each.items() if working_set.fits(facts)]
        return next((count for count in fitting if not working_set.drops(each[count])), (fitting or [classes])[0])

    def maker(self, dataset: Dataset, memory: int, classes: int | None = None) -> Callable[[str], AnyMethod]:
        return METHODS.__getitem__

    def rule(self, trained: Trained, dataset: Dataset) -> Rule:
        return rule_of(trained, dataset, Hyperplanes(trained.entries, trained.mend))

    def brief(self, facts: Facts) -> bool:
        return working_set.at_once(facts)

    def needs(self, load: Load, margin: float, kept: int) -> Needs:
        names, n = load.methods * load.classes, load.dataset.n
        methods, facts = [METHODS[name] for name in names], facts_of(load.dataset, load.memory // len(names))
        own = sum(each.cost(facts).kept_after(min(load.max_passes, _usual(each, facts, margin)), facts.m) for each in methods)
        many = n if collection_of(load.dataset) is not None else min(n, 2 * weights_at_once(facts))
        weights = POINT_BYTES * many if any(each.traits.weighs_all for each in methods) else 0
        thread = sum(facts.sums(each.cost(facts).asked) for each in methods)
        if not load.workers:
            thread = min(thread, max(thread, answer_bytes(load.memory)) // load.threads)
        if any(each.traits.ordered for each in methods):  # the carry is where the points are, and gets the memory of the cache
            return Needs(own, min(HOLD_BYTES, kept // 2 or HOLD_BYTES), weights, own, thread=thread)
        return Needs(own, min(load.memory // 4, own), weights, weights, thread=thread)

    def forecasts(self, methods: Sequence[str], load: Load, margin: float, pass_seconds: tuple[float, float]) -> Forecasts:
        first, later = pass_seconds
        forecasts = {}
        for name in methods:
            method, together = METHODS[name], self.abreast(name, load.classes, load.dataset, load.memory)
            rounds, facts = ceil(load.classes / together), facts_of(load.dataset, load.memory // together)
            passes = rounds * _usual(method, facts, margin)
            thinking = solver_seconds(working_set.held_columns(facts), facts) if method.traits.columns else 0.0
            seconds = first + (passes - 1) * later + load.classes * thinking
            remark = "; ".join(text for text in (in_turns(together, load.classes), method.cost(facts).remark) if text)
            forecasts[name] = Forecast(passes, rounds * method.bound(facts, margin), seconds, remark, together)
        return Forecasts(forecasts)


def _usual(method: AnyMethod, facts: Facts, margin: float) -> float:
    return method.passes(facts, margin, method.traits.points or 1.0)


def choose(method: str, facts: Facts) -> tuple[str, str]:
    """The method, and why. Raises UsageError when it cannot work within the memory."""
    columns = f"{enough(4 * working_set.least_bytes(facts))} of memory"
    if method == "auto":
        return _automatic(facts, columns)
    least = METHODS[method].cost(facts).least
    if least <= 4 * facts.memory:
        return method, "asked for"
    if METHODS[method].traits.columns:
        raise UsageError(f"{method} needs {columns} for this data, or use mirror-prox-one-pass, which keeps no columns")
    weights = f"{enough(least)} of memory for weights of all points"
    raise UsageError(f"{method} needs {weights}, or use working-set, which weighs a few")


def _automatic(facts: Facts, columns: str) -> tuple[str, str]:
    """The working set where it fits and mirror prox leads, or has no less work; points that it names are worth seconds."""
    own, other = work.working_set(facts), work.mirror_prox(facts)
    fits = working_set.fits(facts)
    compared = f"about {format_bytes(own)} to read there, {format_bytes(other)} for mirror prox"
    slow = facts.tolerance is not None and not facts.entries and not working_set.holds_basis(facts)
    ahead = working_set.passes_ahead(facts)
    if fits and ahead:
        return "working-set", f"chosen because its columns fit in memory; mirror prox leads for {ahead} passes, and keeps none"
    if fits and own <= other + work.NAMED and not slow:
        return "working-set", f"chosen because its columns fit in memory: {compared}"
    if fits and slow:
        return "mirror-prox-one-pass", "chosen because the widest margin of so many features is nearer in float32"
    if fits:
        return "mirror-prox-one-pass", f"chosen because a working set takes more work in memory: {compared}"
    return "mirror-prox-one-pass", f"chosen because a working set would need {columns}"


def solver_seconds(columns: int, facts: Facts) -> float:
    """Time of the solver in memory of points, from the speed of products of a part of the columns."""
    if facts.entries:
        probe_entries = 1_000_000
        indices = np.random.default_rng(0).integers(0, facts.m, probe_entries).astype(np.int32)
        many = csr(np.ones(probe_entries), indices, np.arange(0, probe_entries + 1, 100, dtype=np.int32), facts.m)
        once = least_seconds(lambda: many @ np.ones(facts.m), 1)
        return columns * facts.entries / probe_entries * 2 * work.products(facts) * once
    d = min(facts.m, PROBED_FEATURES)
    rows = max(16, min(columns, 1_000_000 // d))
    trial = np.ones((rows, d))
    product, wider = least_seconds(lambda: trial @ trial[0]), facts.m / d
    seconds = columns / rows * wider * work.products(facts) * product
    if work.solves_by_products(facts):
        return seconds
    square = least_seconds(lambda: trial.T @ trial)
    return seconds + columns / rows * wider * work.SQUARES * square * min(wider, columns / d)


SCORES_BYTES = 8 << 20
"""Scores, or points in float64, at a time."""


class Scorer(Protocol):
    """Some directions, which score points."""

    @property
    def width(self) -> int:
        """Numbers of a point that are held at a time."""

    @property
    def mend(self) -> Mend | None:
        """What gives small scores their true signs, if anything does."""

    def scores(self, points: Points) -> Floats:
        """Scores (b, k) of points (b, m)."""


@dataclass(frozen=True)
class Hyperplanes:
    """Directions that have an entry for each feature."""

    Y: Floats  # (m, k), or (m+1, k) with the intercept last
    mend: Mend | None = None

    @property
    def width(self) -> int:
        return int(max(self.Y.shape))

    def scores(self, points: Points) -> Floats:
        m = points.shape[1]
        with np.errstate(over="ignore", invalid="ignore"):  # who asks looks for scores that are not finite
            return np.asarray(points.astype(np.float64, copy=False) @ self.Y[:m] + self.Y[m:].sum(axis=0))


@dataclass(frozen=True)
class Sign(Rule):
    """Scores under one direction: above 0 is the positive class."""

    direction: Scorer
    classes: tuple[str, str]

    def score(self, block: Block) -> tuple[NDArray[Any], ...]:
        score = np.empty(block.size)
        for rows, scores in _in_pieces(self.direction, block):
            score[rows] = scores[:, 0]
        return score, block.label.copy()

    def prediction(self, scored: Sequence[NDArray[Any]], dataset: Dataset) -> Prediction:
        score, label = scored
        if not dataset.classes:
            return Prediction(score, self.classes, None, None)
        confusion = _confusion((score > 0).astype(np.int8), label, (-1, 1), 2)
        return Prediction(score, self.classes, (confusion[0][0] + confusion[1][1]) / len(score), confusion)


@dataclass(frozen=True)
class Scores(Rule):
    """Scores (b, k) under all directions."""

    directions: Scorer

    def score(self, block: Block) -> tuple[NDArray[Any], ...]:
        return np.concatenate([scores for _, scores in _in_pieces(self.directions, block)]), block.label.copy()

    def prediction(self, scored: Sequence[NDArray[Any]], dataset: Dataset) -> NDArray[Any]:
        return scored[0]


@dataclass(frozen=True)
class Largest(Rule):
    """The class whose direction gives the largest score, the first one of equal scores."""

    directions: Scorer
    classes: tuple[str, ...]

    def score(self, block: Block) -> tuple[NDArray[Any], ...]:
        best, most = np.empty(block.size, np.int16), np.empty(block.size)
        for rows, scores in _in_pieces(self.directions, block):
            best[rows] = place = scores.argmax(axis=1)
            most[rows] = np.take_along_axis(scores, place[:, None], axis=1)[:, 0]
        return best, most, block.label.copy()

    def prediction(self, scored: Sequence[NDArray[Any]], dataset: Dataset) -> ClassPrediction:
        (predicted, score, label), classes = scored, self.classes
        if not dataset.classes:
            return ClassPrediction(predicted, score, classes, (), None, None)
        confusion = _confusion(predicted, label, dataset.codes, len(classes))
        right = sum(row[classes.index(name)] for row, name in zip(confusion, dataset.classes, strict=True) if name in classes)
        return ClassPrediction(predicted, score, classes, dataset.classes, right / len(predicted), confusion)


def _in_pieces(directions: Scorer, block: Block) -> Iterator[tuple[slice, Floats]]:
    """Some rows at a time, and their scores (r, k)."""
    size = max(1, SCORES_BYTES // (8 * directions.width))
    for start in range(0, block.size, size):
        rows = slice(start, start + size)
        scores = directions.scores(row_slice(block.points, rows))
        if directions.mend is not None:
            directions.mend(block, rows, scores)
        yield rows, scores


def _confusion(predicted: NDArray[Any], label: NDArray[Any], codes: Sequence[int], classes: int) -> list[list[int]]:
    """Points of each label code, by the class that was predicted."""
    return [np.bincount(predicted[label == code], minlength=classes).tolist() for code in codes]


def rule_of(trained: Trained, dataset: Dataset, directions: Scorer) -> Sign | Largest:
    """How points are scored. Raises BadInputError for a run on cones or cones to score, and for a run on other classes."""
    if dataset.cones is not None:
        raise BadInputError(f"{trained.run}: a run of points; {dataset.where} is a dataset of cones")
    data = trained.data
    if data is not None and data.cones is not None:
        raise BadInputError(f"{trained.run}: a run on cones; its direction is for cones, not for points")
    if trained.classes is not None:
        return Largest(directions, trained.classes)
    names = trained.names or (() if data is None else data.classes)
    if names and dataset.classes and names != dataset.classes:
        here, there = (" and ".join(each) for each in (dataset.classes, names))
        raise BadInputError(f"{dataset.where}: its classes are {here}, those of the run {there}")
    negative, positive = names or ("-1", "+1")
    return Sign(directions, (negative, positive))
