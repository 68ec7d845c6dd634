"""Points as they are: a column for each, y an m-vector."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from dfeas.data.collections import collection_of
from dfeas.data.dataset import Dataset
from dfeas.errors import BadInputError, enough
from dfeas.geometry.protocol import Geometry, Load, LoadCost, Mend, Rule, Seconds, Trained, least_seconds
from dfeas.linalg.csr import csr
from dfeas.linalg.points import Floats, Points, row_slice
from dfeas.methods.protocol import AnyMethod, Facts, weights_at_once
from dfeas.methods.registry import METHODS
from dfeas.methods.working_set import batches
from dfeas.passes.block import Block
from dfeas.passes.vectors import POINT_BYTES
from dfeas.records import replace

if TYPE_CHECKING:
    from dfeas.geometry.prediction import Prediction

PRODUCTS, MOST = 7.5, 3.75
"""Products by which conjugate gradients separate W, over sqrt(n / m) where that is no larger, on halfspaces."""


class PointSpace(Geometry, Struct, frozen=True, eq=False):
    """Points as they are stored, each with its label for a sign."""

    weighs_by_block: ClassVar[bool] = True

    own: Mapping[str, AnyMethod] = field(default_factory=dict)  # methods of the caller

    def with_methods(self, own: Mapping[str, AnyMethod]) -> PointSpace:
        return replace(self, own=own)

    def method(self, name: str) -> AnyMethod:
        """Of dfeas, or of the caller."""
        return self.own[name] if name in self.own else METHODS[name]

    @property
    def exact(self) -> bool:
        return True

    @property
    def methods(self) -> Sequence[str]:
        return (*METHODS, *self.own)

    def refuse(self, method: str, dataset: Dataset, shared: bool) -> str:
        alone = shared and self.method(method).traits.exclusive
        reason = f"{method} reads the data in a way of its own, and classes share their reads; choose another method"
        return reason if alone else ""

    def choose_automatic(self, load: Load, tolerance: float | None) -> tuple[str, str]:
        return prefer_method(replace(load.facts, tolerance=tolerance))

    def maker(self, dataset: Dataset, memory: int, classes: int | None = None) -> Callable[[str], AnyMethod]:
        return self.method

    def rule(self, trained: Trained, dataset: Dataset) -> Rule:
        return rule_of(trained, dataset, Hyperplanes(trained.entries, trained.mend))

    def brief(self, facts: Facts) -> bool:
        return batches.at_once(facts)

    def cost(self, method: str, load: Load) -> LoadCost:
        each, facts, n = self.method(method), load.facts, load.dataset.n
        own, passes = each.cost(facts), each.passes(facts, load.margin, each.traits.points or 1.0)
        collected = collection_of(load.dataset) is not None  # its weights go to no file
        weights = POINT_BYTES * (n if collected else min(n, 2 * weights_at_once(facts))) if each.traits.weighs_all else 0
        return LoadCost(
            own=load.classes * own.kept_after(min(load.max_passes, passes), facts.m),
            asked=load.classes * facts.memory,
            passes=passes,
            most=each.bound(facts, load.margin),
            late=weights,
            folds=each.traits.ordered,
            sums=load.classes * facts.sums(own.asked),
            per_pass=own.per_pass,
            remembered=own.remembered,
            least=max(load.classes * own.least, weights if collected else 0),
            enough=not (each.traits.columns and batches.drops(facts)),
            remark=own.remark,
        )

    def seconds(self, method: str, load: Load, values: tuple[float, float], tiles: int) -> Seconds:
        columns = batches.held_columns(load.facts) if self.method(method).traits.columns else 0
        return Seconds(solver=solver_seconds(columns, load.facts) if columns else 0.0)


def prefer_method(facts: Facts) -> tuple[str, str]:
    """The method for a verdict, and why: a working set, whose conflicts are worth seconds, where its least columns fit."""
    wide = not facts.entries and not batches.holds_basis(facts)
    ahead = batches.passes_ahead(facts)
    if not batches.fits(facts):
        columns = f"{enough(4 * batches.least_bytes(facts))} of memory"
        return "mirror-prox-one-pass", f"auto: a working set would need {columns}"
    if wide and facts.tolerance is not None:
        return "mirror-prox-one-pass", "auto: the widest margin of so many features is nearer in float32"
    leads = f"; mirror prox leads for {ahead} passes, and keeps none" if ahead else ""
    return "working-set", f"auto: its columns fit in memory{leads}"


def solver_seconds(columns: int, facts: Facts) -> float:
    """Time of the solver in memory of points, from the speed of products of a part of the columns."""
    products = PRODUCTS * min(MOST, math.sqrt(max(1.0, facts.n / facts.m)))
    if facts.entries:
        probe_entries = 1_000_000
        indices = np.random.default_rng(0).integers(0, facts.m, probe_entries).astype(np.int32)
        many = csr(np.ones(probe_entries), indices, np.arange(0, probe_entries + 1, 100, dtype=np.int32), facts.m)
        once = least_seconds(lambda: many @ np.ones(facts.m), 1)
        return columns * facts.entries / probe_entries * 2 * products * once
    # 1000: products are timed with at most so many features
    d = min(facts.m, 1000)
    rows = max(16, min(columns, 1_000_000 // d))
    trial = np.ones((rows, d))
    return columns / rows * facts.m / d * products * least_seconds(lambda: trial @ trial[0])


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


class Hyperplanes(Struct, frozen=True, eq=False):
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


class Sign(Rule, Struct, frozen=True, eq=False):
    """Scores under one direction: above 0 is the positive class."""

    direction: Scorer
    classes: tuple[str, str]

    def score(self, block: Block) -> tuple[NDArray[Any], ...]:
        return np.concatenate([scores[:, 0] for _, scores in _in_pieces(self.direction, block)]), block.label.copy()

    def prediction(self, scored: Sequence[NDArray[Any]], dataset: Dataset) -> Prediction:
        score, label = scored
        names = self.classes if dataset.classes else ()
        return compare_labels(score, (score > 0).astype(np.int16), self.classes, label, names, (-1, 1))


class Scores(Rule, Struct, frozen=True, eq=False):
    """Scores (b, k) under all directions."""

    directions: Scorer

    def score(self, block: Block) -> tuple[NDArray[Any], ...]:
        return np.concatenate([scores for _, scores in _in_pieces(self.directions, block)]), block.label.copy()

    def prediction(self, scored: Sequence[NDArray[Any]], dataset: Dataset) -> NDArray[Any]:
        return scored[0]


class Largest(Rule, Struct, frozen=True, eq=False):
    """The class whose direction gives the largest score, the first one of equal scores."""

    directions: Scorer
    classes: tuple[str, ...]

    def score(self, block: Block) -> tuple[NDArray[Any], ...]:
        best, most = np.empty(block.size, np.int16), np.empty(block.size)
        for rows, scores in _in_pieces(self.directions, block):
            best[rows] = place = scores.argmax(axis=1)
            most[rows] = np.take_along_axis(scores, place[:, None], axis=1)[:, 0]
        return best, most, block.label.copy()

    def prediction(self, scored: Sequence[NDArray[Any]], dataset: Dataset) -> Prediction:
        predicted, score, label = scored
        return compare_labels(score, predicted, self.classes, label, dataset.classes, dataset.codes)


def compare_labels(
    score: Floats,
    predicted: NDArray[np.int16],
    classes: tuple[str, ...],
    label: NDArray[Any],
    names: Sequence[str],
    codes: Sequence[int],
) -> Prediction:
    """Predictions beside labels, whose codes have these names; beside nothing where there are none."""
    from dfeas.geometry.prediction import Prediction

    counts = np.bincount(predicted, minlength=len(classes)).tolist()
    confusion = [np.bincount(predicted[label == code], minlength=len(classes)).tolist() for code in codes] if names else None
    return Prediction(score, predicted, classes, tuple(names), confusion, dict(zip(classes, counts, strict=True)))


def _in_pieces(directions: Scorer, block: Block) -> Iterator[tuple[slice, Floats]]:
    """Some rows at a time, and their scores (r, k)."""
    # 8 << 20: scores, or points in float64, at a time
    size = max(1, (8 << 20) // (8 * directions.width))
    for start in range(0, block.size, size):
        rows = slice(start, start + size)
        scores = directions.scores(row_slice(block.points, rows))
        if directions.mend is not None:
            directions.mend(block, rows, scores)
        yield rows, scores


def of_cones(run: str) -> BadInputError:
    """A run on cones was asked about points."""
    return BadInputError(f"{run}: a run on cones; its direction is for cones, not for points")


def rule_of(trained: Trained, dataset: Dataset, directions: Scorer) -> Sign | Largest:
    """How points are scored. Raises BadInputError for a run on cones or cones to score, and for a run on other classes."""
    if not dataset.rows.take_labels:
        raise BadInputError(f"{trained.run}: a run of points; {dataset.where} is a dataset of cones")
    data = trained.data
    if data is not None and not data.rows.take_labels:
        raise of_cones(trained.run)
    if trained.classes is not None:
        return Largest(directions, trained.classes)
    names = trained.names or (() if data is None else data.classes)
    if names and dataset.classes and names != dataset.classes:
        here, there = (" and ".join(each) for each in (dataset.classes, names))
        raise BadInputError(f"{dataset.where}: its classes are {here}, those of the run {there}")
    negative, positive = names or ("-1", "+1")
    return Sign(directions, (negative, positive))
