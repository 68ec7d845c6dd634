"""A product of cones: a column for each extreme point of each cone, y an m-vector with A*y in the cones.

What methods ask of points is asked of eigenvalues. A point of a dataset has one column, a cone as many as its base has extreme
points. So a column is known by the number of the pass that named it, and what it is in the rows of its cone is kept; x on these
columns is then an element of the cones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from dfeas.cones.algebra import groups_of, least
from dfeas.cones.prediction import ConePrediction, CriticalCone
from dfeas.cones.projection import QUESTIONS, on_cones
from dfeas.cones.softmin import (
    EuclideanMixture,
    EuclideanSoftmin,
    SpectralAnswer,
    SpectralRecover,
    SpectralSoftmin,
    exact_scores,
    factors,
)
from dfeas.cones.working_set import ConeWorkingSet, RowLimit, SelectCones
from dfeas.data.dataset import Dataset
from dfeas.data.storage.layout import kind_of, rows_of
from dfeas.engine.protocol import Engine
from dfeas.errors import BadInputError, UsageError, enough
from dfeas.geometry.protocol import Geometry, Load, LoadCost, Rule, Seconds, Trained, least_seconds
from dfeas.linalg.blas import one_thread
from dfeas.linalg.points import Floats
from dfeas.methods.protocol import AnyMethod, Evidence, Facts, Sparse, Wrapping
from dfeas.methods.registry import FOR_CONES, Directory
from dfeas.passes.block import Block
from dfeas.passes.protocol import Exclusive, OnVectors, Partial, Question, Together, together
from dfeas.passes.softmin import Softmin
from dfeas.passes.survey import Survey
from dfeas.passes.vectors import POINT_BYTES, Recover
from dfeas.records import replace


def spectral(question: Question) -> Question:
    """The question to a dataset of cones. Raises UsageError for one that has no meaning there."""
    if isinstance(question, Partial):
        inner: Any = spectral(question.pass_)
        return Partial(inner, question.blocks)
    if isinstance(question, Together):
        inner = [spectral(each) for each in question.passes]
        return together(inner)
    if isinstance(question, SpectralSoftmin | SpectralRecover | SelectCones | Survey):
        return question
    if isinstance(question, OnVectors) and isinstance(question.pass_, QUESTIONS):
        return on_cones(question)
    if isinstance(question, Softmin):
        return SpectralSoftmin(question.Y, question.mu)
    if isinstance(question, Recover):
        return SpectralRecover(question.Y, question.mu, question.lse, question.share, question.floor)
    kind = type(question.pass_ if isinstance(question, Exclusive) and hasattr(question, "pass_") else question).__name__
    raise UsageError(f"this needs points, and the data is a product of cones ({kind})")


@dataclass(frozen=True)
class ConeEngine:
    """An engine that asks another one what ``spectral`` makes of a question, and is like it in all else."""

    engine: Any  # an Engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def run(self, question: Question) -> Any:
        return self.engine.run(spectral(question))


@dataclass(frozen=True, slots=True)
class RecalledState:
    """Of the method, and what the columns are that it knows by number."""

    inner: Any
    named: tuple[tuple[int, Floats], ...]  # first row of the cone, extreme point (dimension,)


@dataclass(frozen=True, slots=True)
class Recalled(Wrapping):
    """A method that asks one question with mu = 0 a pass, and is told a number as the index of the column."""

    method: AnyMethod

    def init(self, facts: Facts) -> RecalledState:
        return RecalledState(self.method.init(facts), ())

    def ask(self, state: RecalledState) -> Question:
        return self.method.ask(state.inner)

    def tell(self, state: RecalledState, answer: SpectralAnswer) -> RecalledState:
        """The answer, with the number of the extreme point."""
        named = (*state.named, (int(answer.arg[0]), answer.extreme[0]))
        numbered = replace(answer, arg=np.array([len(state.named)]))
        return RecalledState(self.method.tell(state.inner, numbered), named)

    def evidence(self, state: RecalledState) -> Evidence:
        """That of the method, with x in the rows of the cones."""
        evidence = self.method.evidence(state.inner)
        build = evidence.gordan
        if build is None:
            return evidence

        def gordan() -> Sparse:
            numbers = build()
            assert isinstance(numbers, Sparse), "columns by number"
            parts = [(state.named[i], weight) for i, weight in zip(numbers.index.tolist(), numbers.weight, strict=True)]
            rows = np.concatenate([start + np.arange(len(point)) for (start, point), _ in parts])
            entries = np.concatenate([weight * point for (_, point), weight in parts])
            index, place = np.unique(rows, return_inverse=True)
            return Sparse(np.asarray(index, np.int64), np.asarray(np.bincount(place, entries), np.float64))

        return replace(evidence, gordan=gordan)


@dataclass(frozen=True, slots=True)
class OnBall(Wrapping):
    """Mirror prox with this choice: its questions are asked of the ball."""

    method: AnyMethod

    def ask(self, state: Any) -> EuclideanSoftmin:
        question: Any = self.method.ask(state)
        return EuclideanSoftmin(question.Y, question.mu)

    def evidence(self, state: Any) -> Evidence:
        """As mirror prox, with an x of the ball."""
        evidence = self.method.evidence(state)
        build = evidence.gordan
        if build is None:
            return evidence

        def gordan() -> EuclideanMixture:
            mixture = build()
            return EuclideanMixture(*structs.astuple(mixture))

        return replace(evidence, gordan=gordan)


def _over_cones(method: AnyMethod) -> AnyMethod:
    return OnBall(method) if method.traits.ball else method if method.traits.weighs_all else Recalled(method)


CONE_METHODS = Directory({"working-set": ConeWorkingSet(), **{name: _over_cones(method) for name, method in FOR_CONES.items()}})
"""Methods that work on cones."""


@dataclass(frozen=True, slots=True)
class ConeSpace(Geometry):
    """A product of cones, as the dataset describes it; methods ask about eigenvalues."""

    place: ClassVar[str] = "on cones"
    labelled: ClassVar[bool] = False
    scored: ClassVar[str] = "cones"
    rows: ClassVar[str] = "rows"
    named: ClassVar[str] = "cone at stored row"
    names_points: ClassVar[bool] = False

    @property
    def methods(self) -> Sequence[str]:
        return tuple(CONE_METHODS)

    def refuse(self, method: str, dataset: Dataset, shared: bool) -> str:
        counts = () if dataset.cones is None else dataset.cones.counts
        if not CONE_METHODS[method].traits.ball or [(kind, many) for kind, _, many in counts] == [("q", 1)]:
            return ""
        return f"{method} is for one second-order cone, this is {dataset.cones}; use mirror-prox"

    def require(self, dataset: Dataset, **asked: object) -> None:
        wrong = [name for name, value in asked.items() if value]
        if wrong:
            raise UsageError(f"{dataset.where}: cones have no {' and no '.join(wrong)}; leave it out")

    def describe(self, dataset: Dataset) -> str:
        return f"{dataset.n} rows of cones ({dataset.cones})"

    def choose_automatic(self, load: Load, tolerance: float | None) -> tuple[str, str]:
        need = self.cost("working-set", load).least
        if need <= load.memory:
            return "working-set", "auto: whole cones fit in memory"
        return "mirror-prox-one-pass", f"auto: a working set of these cones would need {enough(need)} of memory"

    def maker(self, dataset: Dataset, memory: int, classes: int | None = None) -> Callable[[str], AnyMethod]:
        return CONE_METHODS.__getitem__

    def wrap(self, engine: Engine) -> Any:
        return ConeEngine(engine)

    def survey_counts(self, zero: int, positive: int) -> tuple[int, int]:
        """Cones were looked at when they were given; rows of zeros are none of the zero points."""
        return 0, 0

    def rule(self, trained: Trained, dataset: Dataset) -> Rule:
        (y,) = trained.directions
        if trained.view or trained.intercept:
            raise BadInputError(
                f"{trained.run}: a run of points, seen in a way of its own; {dataset.where} is a dataset of cones"
            )
        assert isinstance(y, np.ndarray), "cones have no kernel"
        return LeastEigenvalue(y / np.linalg.norm(y))

    def cost(self, method: str, load: Load) -> LoadCost:
        each, facts, cones = CONE_METHODS[method], load.facts, load.dataset.cones
        assert cones is not None, "cones"
        most = each.bound(facts, load.margin)
        if each.traits.columns:
            rows = RowLimit(facts.m, facts.memory, cones.largest, facts.entries)
            own, least = float(rows.usual_bytes), 4 * rows.least_memory
            # of a working set of cones, with its sample: 2 to 6 in trials of all kinds, the hard ones too
            return LoadCost(own=own, asked=facts.memory, passes=3.0, most=most, least=least)
        passes = each.passes(facts, load.margin, each.traits.cones or 1.0)
        made = min(load.max_passes, passes)
        of_point = 0.0 if each.traits.weighs_all else 8 * cones.rows / cones.many  # extreme points are remembered
        own = each.cost(facts).kept_after(made, facts.m) + of_point * made
        weights = POINT_BYTES * load.dataset.n if each.traits.weighs_all else 0
        return LoadCost(own=own, asked=facts.memory, passes=passes, most=most, late=weights, least=weights)

    def seconds(self, method: str, load: Load, values: tuple[float, float], tiles: int) -> Seconds:
        return Seconds(solver=_solver_seconds(load.dataset, load.facts) if CONE_METHODS[method].traits.columns else 0.0)


def _solver_seconds(dataset: Dataset, facts: Facts) -> float:
    """Seconds of the solver in memory, from the speed of a product."""
    assert dataset.cones is not None, "cones"
    tried_rows = 4096  # products are timed with so many rows
    trial = np.ones((tried_rows, min(facts.m, 1000)))
    with one_thread():
        best = least_seconds(lambda: trial.T @ trial)
    rows = RowLimit(facts.m, facts.memory, dataset.cones.largest, facts.entries).usual
    # Newton steps of the solver in memory that a run usually takes, each one two products of all its rows with themselves
    return 30 * 2 * best * min(rows, dataset.n) / tried_rows * (facts.m / trial.shape[1]) ** 2


@dataclass(frozen=True)
class LeastEigenvalue(Rule):
    """Where A*y lies in each cone: its least eigenvalue, over the norm of the cone."""

    y: Floats  # (m,) of unit length

    def score(self, block: Block) -> tuple[NDArray[Any], ...]:
        factor, value = factors(block), np.empty(block.size)
        for group in groups_of(block.label):
            at_once = max(1, (1 << 16) // group.dimension)
            for start in range(0, len(group.starts), at_once):
                rows = group.rows(slice(start, start + at_once))
                value[rows[:, 0]] = least(group.kind, group.size, exact_scores(block, rows, self.y, factor))
        starts = np.flatnonzero(block.label > 0)
        return value[starts], block.label[starts].astype(np.int32)

    def prediction(self, scored: Sequence[NDArray[Any]], dataset: Dataset) -> ConePrediction:
        value, codes = scored
        kinds = {int(each): kind_of(int(each)) for each in np.unique(codes)}
        sizes = np.zeros(len(codes), np.int64)
        for each, (kind, size) in kinds.items():
            sizes[codes == each] = rows_of(kind, size)
        first = np.cumsum(sizes) - sizes
        lowest = np.argsort(value, kind="stable")[:5]  # critical cones that are named
        critical = tuple(CriticalCone(float(value[i]), int(first[i]), *kinds[int(codes[i])]) for i in lowest)
        return ConePrediction(value, critical)
