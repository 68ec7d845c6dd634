"""A product of cones: a column for each extreme point of each cone, y an m-vector with A*y in the cones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source
from dfeas.data.source import Source
from dfeas.data.storage.layout import looks_like_dataset
from dfeas.data.storage.places import place
from dfeas.engine.protocol import Engine
from dfeas.errors import UsageError, enough, near
from dfeas.geometry.cones.methods import ConeEngine, OnBall, Recalled
from dfeas.geometry.cones.working_set import ConeWorkingSet, Rows
from dfeas.geometry.protocol import Forecast, Forecasts, Geometry, Load, Needs, facts_of
from dfeas.geometry.timing import least_seconds
from dfeas.linalg.blas import one_thread
from dfeas.methods.protocol import AnyMethod, Facts
from dfeas.methods.registry import ALL
from dfeas.passes.vectors import POINT_BYTES

FULL_PASSES = 3.0
"""Of a working set of cones, with its sample: 2 to 6 in trials of all kinds, the hard ones too."""

STEPS = 150
"""Newton steps of the solver in memory that a run usually takes, each one two products of all its rows with themselves."""

TRIED_ROWS = 4096
"""Products are timed with so many rows."""


def _over_cones(method: AnyMethod) -> AnyMethod:
    """A method that names columns by number remembers what they are."""
    if method.traits.ball:
        return OnBall(method)
    return method if method.traits.weighs_all else Recalled(method)


CONE_METHODS: dict[str, AnyMethod] = {
    "working-set": ConeWorkingSet(),
    **{method.name: _over_cones(method) for method in ALL if method.traits.cones is not None},
}
"""Methods that work on cones."""


@dataclass(frozen=True, slots=True)
class Cones(Geometry):
    """No parameters."""

    names_points: ClassVar[bool] = False

    def known(self, method: str, more: tuple[str, ...] = ()) -> str:
        if method not in (*more, *CONE_METHODS):
            text = f"method {method} does not work on cones{near(method, CONE_METHODS)}; expected {', '.join(CONE_METHODS)}"
            raise UsageError(text)
        return method

    def require(self, dataset: Dataset, **asked: object) -> None:
        wrong = [name for name, value in asked.items() if value]
        if wrong:
            raise UsageError(f"{dataset.where}: cones have no {' and no '.join(wrong)}; leave it out")

    def describe(self, dataset: Dataset) -> str:
        return f"{dataset.n} rows of cones ({dataset.cones})"

    def choose(self, method: str, dataset: Dataset, memory: int, threads: int = 1) -> tuple[str, str]:
        self.known(method, ("auto",))
        if method == "auto":
            need = missing_for_cones("working-set", dataset, memory)
            if not need:
                return "working-set", "chosen for cones: whole cones in memory, a few reads"
            other = missing_for_cones("mirror-prox-one-pass", dataset, memory)
            if other:
                raise UsageError(
                    f"these cones need --memory {_mb(need)} for a working set, or {_mb(other)} for an x of all rows"
                )
            return "mirror-prox-one-pass", f"chosen because a working set of these cones would need {_mb(need)} of memory"
        if not usable_on_cones(method, dataset):
            raise UsageError(f"{method} is for one second-order cone, this is {dataset.cones}; use mirror-prox")
        need = missing_for_cones(method, dataset, memory)
        if need:
            other_method = (
                "mirror-prox-one-pass, which keeps no cones" if CONE_METHODS[method].traits.columns else "working-set"
            )
            raise UsageError(f"{method} needs --memory {_mb(need)} for these cones; or use {other_method}")
        return method, "asked for"

    def candidates(self, method: str | None, dataset: Dataset, memory: int, threads: int, classes: int) -> tuple[str, ...]:
        if method is not None:
            return (self.choose(method, dataset, memory)[0],)
        return tuple(name for name in CONE_METHODS if usable_on_cones(name, dataset))

    def maker(self, dataset: Dataset, memory: int, classes: int | None = None) -> Callable[[str], AnyMethod]:
        return CONE_METHODS.__getitem__

    def wrap(self, engine: Engine) -> Any:
        return ConeEngine(engine)

    def survey_counts(self, zero: int, positive: int) -> tuple[int, int]:
        """Cones were looked at when they were given; rows of zeros are none of the zero points."""
        return 0, 0

    def needs(self, load: Load, margin: float, kept: int) -> Needs:
        methods, facts = [CONE_METHODS[name] for name in load.methods], facts_of(load.dataset, load.memory // len(load.methods))
        own = sum(_kept_bytes(each, load, facts, margin) for each in methods)
        weights = POINT_BYTES * load.dataset.n if any(each.traits.weighs_all for each in methods) else 0
        return Needs(own, min(load.memory // 4, own), weights, weights)

    def forecasts(self, methods: Sequence[str], load: Load, margin: float, pass_seconds: tuple[float, float]) -> Forecasts:
        (first, later), facts, found = pass_seconds, facts_of(load.dataset, load.memory), {}
        for name in methods:
            passes = _usual(CONE_METHODS[name], facts, margin)
            thinking = _solver_seconds(load.dataset, facts) if CONE_METHODS[name].traits.columns else 0.0
            need = missing_for_cones(name, load.dataset, load.memory)
            remark = f"does not fit: {_mb(need)} of memory are needed" if need else ""
            most = CONE_METHODS[name].bound(facts, margin)
            found[name] = Forecast(passes, most, first + (passes - 1) * later + thinking, remark)
        return Forecasts(found, {"cones": str(load.dataset.cones)})


def _usual(method: AnyMethod, facts: Facts, margin: float) -> float:
    return FULL_PASSES if method.traits.columns else method.passes(facts, margin, method.traits.cones or 1.0)


def _kept_bytes(method: AnyMethod, load: Load, facts: Facts, margin: float) -> float:
    """Bytes that a method keeps until it ends."""
    cones = load.dataset.cones
    assert cones is not None, "cones"
    if method.traits.columns:
        return float(Rows(facts.m, facts.memory, cones.largest).usual_bytes)
    passes = min(load.max_passes, _usual(method, facts, margin))
    of_point = 0.0 if method.traits.weighs_all else 8 * cones.rows / cones.many  # extreme points are remembered
    return method.kept_bytes(facts, passes) + of_point * passes


def _solver_seconds(dataset: Dataset, facts: Facts) -> float:
    """Seconds of the solver in memory, from the speed of a product."""
    assert dataset.cones is not None, "cones"
    trial = np.ones((TRIED_ROWS, min(facts.m, 1000)))
    with one_thread():
        best = least_seconds(lambda: trial.T @ trial)
    rows = Rows(facts.m, facts.memory, dataset.cones.largest).usual
    return STEPS * 2 * best * min(rows, dataset.n) / TRIED_ROWS * (facts.m / trial.shape[1]) ** 2


def usable_on_cones(method: str, dataset: Dataset) -> bool:
    """Whether a method is one for these cones."""
    counts = () if dataset.cones is None else dataset.cones.counts
    return not CONE_METHODS[method].traits.ball or [(kind, many) for kind, _, many in counts] == [("q", 1)]


def missing_for_cones(method: str, dataset: Dataset, memory: int) -> int:
    """Bytes of memory that a method needs, where they are more than there are; otherwise 0."""
    assert dataset.cones is not None, "cones"
    if CONE_METHODS[method].traits.columns:
        rows = Rows(dataset.m, memory // 4, dataset.cones.largest)
        return 0 if rows.fits else 4 * rows.least_memory
    need = POINT_BYTES * dataset.n if CONE_METHODS[method].traits.weighs_all else 0
    return need if need > memory else 0


def _mb(size: int) -> str:
    return enough(size)


def require_points(X: object, what: str) -> None:
    """Raise UsageError when X is cones, in memory or by the path of a dataset."""
    if isinstance(X, Dataset):
        raise UsageError(f"{what} asks about points, this is a product of cones: use solve")
    if isinstance(X, str | Path) and looks_like_dataset(place(X)):
        dataset = open_source(Source(str(X), cones=True))
        if dataset.cones is not None:
            raise UsageError(f"{X}: a dataset of cones; {what} asks about points: use solve")
