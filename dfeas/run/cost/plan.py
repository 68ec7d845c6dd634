"""``dfeas.plan``: what a run would cost, from the seconds of a read and of work in memory in short trials."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import psutil

from dfeas.data.dataset import Dataset
from dfeas.data.writers.dataset import refuse_unusable
from dfeas.engine.local import LocalEngine
from dfeas.engine.memory import threads_that_fit
from dfeas.engine.protocol import Engine
from dfeas.errors import UsageError
from dfeas.geometry.points import solver_seconds
from dfeas.geometry.protocol import Geometry, Load, facts_of
from dfeas.geometry.registry import geometry_of, kernel_options, known_method
from dfeas.linalg.blas import processors
from dfeas.methods.registry import SOFT_MARGINS
from dfeas.passes.protocol import AnyPass, Exclusive, Partial
from dfeas.passes.survey import Survey
from dfeas.problem import LEAST_EPS, Kernel, Objective, Problem, Resources, View, takes
from dfeas.run.checkpoint.job import SoftMarginOptions
from dfeas.run.cost.projection import probe, probed, project, project_soft
from dfeas.run.session import classes_to_share, open_data
from dfeas.run.soft_margin.fit import margin_method, method_for, options_of, require
from dfeas.run.transform import as_planned


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run with one method would cost."""

    method: str
    auto: bool  # whether ``auto`` takes it
    memory_bytes: int  # of this process, at the peak
    passes: float  # usual; with a kernel a product with the Gram matrix is one
    most_passes: float | None  # by its theorem, for a margin, or |Ax|, of ``margin``; None: there is none
    seconds: float  # usual
    remark: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Estimates for a dataset."""

    n: int
    m: int
    bytes: int  # of one read of the data
    later_bytes: int  # that a later pass reads from storage: what this process does not keep
    threads: int
    first_seconds: float  # of a pass as the data is now, measured
    later_seconds: float  # of one after it
    margin: float | None  # None of a soft margin
    estimates: tuple[Estimate, ...]
    classes: int = 1  # that are set against the rest on the same reads
    kernel: str = ""  # with its parameters
    product_bytes: int = 0  # that a product with its Gram matrix reads from storage
    value_seconds: float = 0.0  # of one value of it, with all threads, measured
    cones: str = ""  # which ones; n counts their rows

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@takes(View, Kernel, Resources, without=("point", "cache_dir", "scratch", "checkpoint_every", "client"))
def plan(
    problem: Problem,
    *,
    method: str | None = None,
    margin: float = 1e-3,
    C: float | Sequence[float] | None = None,
    loss: str = "hinge",
    folds: int = 0,
    resources: Resources,
) -> Plan:
    """Estimate what ``dfeas.solve`` would cost in this process, for one method or for all. Reads some blocks.

    With ``C`` what ``dfeas.soft_margin`` would, with ``loss`` and ``folds`` as there; passes are those that a relative gap of
    1e-3 usually takes.

    ``margin`` is the margin, or the |Ax|, for which the theorems bound the passes. With a kernel a sample of the points is read
    that says what gamma is, if nobody does. Raises what ``dfeas.solve`` does.
    """
    view, budget = problem.view, resources.memory_bytes
    space = kernel_options(problem.kernel)
    if method is not None and space is None:
        known_method(method, None)
    if not LEAST_EPS <= margin < 1:
        raise UsageError(f"margin {margin}: expected a number from {LEAST_EPS:g} to below 1")
    if C is None and (folds or loss != "hinge"):
        raise UsageError("loss and folds are of a soft margin: give C, too")
    if C is not None and (view.one_vs_rest or method is not None or space is not None or view.transform):
        raise UsageError("C asks for a soft margin of the points as they are: leave out method, kernel, scale and the like")
    opened = open_data(problem.X, problem.labels, view, cones=True)[1]
    geometry = geometry_of(opened, space)
    geometry.require(opened, transform=view.transform, C=C is not None)
    if method is not None and view.one_vs_rest:
        geometry.require_shared(method)
    classes = len(classes_to_share(opened)) if view.one_vs_rest else 1
    dataset = as_planned(opened, view.transform)
    threads = threads_that_fit(dataset, budget, processors())
    if C is not None:
        soft = options_of(dataset, Objective(C=C, loss=loss, folds=folds))
        require(dataset, soft, budget)
        return soft_plan(dataset, soft, budget, threads)
    speed = read_seconds(dataset, threads)
    with closing(LocalEngine(dataset, threads)) as engine:
        geometry = geometry.resolve(geometry.wrap(engine), dataset)[0]
    return _plan(geometry, dataset, method, margin, Load(dataset, (), budget, threads=threads, classes=classes), speed)


def _plan(
    geometry: Geometry, dataset: Dataset, method: str | None, margin: float, load: Load, speed: tuple[float, float]
) -> Plan:
    """Estimates of one method or of all, for some classes on the same reads."""
    budget, threads = load.memory, load.threads
    share = budget // geometry.abreast("auto", load.classes, dataset, budget)
    auto = geometry.choose("auto", dataset, share, threads)[0]
    names = geometry.candidates(method, dataset, budget, threads, load.classes)
    found = geometry.forecasts(names, load, margin, speed)
    estimates = []
    for name, forecast in found.methods.items():
        memory = project(geometry, dataset, [name], budget, margin, threads=threads, classes=forecast.classes).memory_bytes
        seconds, remark = forecast.seconds, forecast.remark
        estimates.append(Estimate(name, name == auto, memory, forecast.passes, forecast.most, seconds, remark))
    later = project(geometry, dataset, [auto], budget, margin, threads=threads).later_bytes
    rows = dataset.n, dataset.m, dataset.stored_bytes
    return Plan(*rows, later, threads, *speed, margin, tuple(estimates), load.classes, **found.more)


def read_seconds(dataset: Dataset, threads: int, question: AnyPass | None = None) -> tuple[float, float]:
    """Seconds of a pass as the data is now, and of a later one, from some blocks that are read twice.

    It asks the ``question`` of a method, or the central one.

    A later one is as slow as the first when the data does not fit in the memory that is free.
    """
    engine: Engine = LocalEngine(dataset, threads)
    engine = geometry_of(dataset).wrap(engine)
    blocks = probed(dataset, engine.parallel)
    try:
        if dataset.header is None:
            # as a solve does it; what cannot be solved cannot be planned
            refuse_unusable(engine.run(Partial(Survey(), blocks)), dataset.where)
            first = engine.cost.wall_seconds * dataset.n / engine.cost.points
        else:
            first = probe(engine, dataset, blocks, question)
        later = probe(engine, dataset, blocks, question)
    finally:
        engine.close()
    return first, later if dataset.bytes < psutil.virtual_memory().available / 2 else max(first, later)


SOLVES = 4
"""The work in memory of one C beside that of a working set of as many points."""


def soft_plan(
    dataset: Dataset,
    options: SoftMarginOptions,
    budget: int,
    threads: int,
) -> Plan:
    """Estimate a soft margin on two classes, by each method that can."""
    facts, k = facts_of(dataset, budget), len(options.C) * (1 + options.folds)
    names = [method_for("auto", options)[0]]
    method = margin_method(names[0], options, (1.0, 1.0), 1e-3, np.full(dataset.dimension, dataset.dimension**-0.5))
    question = method.ask(method.init(facts))
    assert not isinstance(question, Exclusive), "with a start it asks about all points at once"
    first, later = read_seconds(dataset, threads, question)
    if options.loss == "hinge" and k == 1:
        names.append("sgd")
    estimates = []
    for name in names:
        soft = SOFT_MARGINS[name]
        reads, kept = soft.reads(facts, k), soft.kept_points(facts, k)
        seconds = first + (reads - 1) * later + (SOLVES * len(options.C) * solver_seconds(kept, facts) if kept else 0.0)
        memory_bytes = project_soft(dataset, name, options, budget, threads=threads).memory_bytes
        estimates.append(Estimate(name, name == names[0], memory_bytes, reads, None, seconds, soft.remark(facts, k)))
    later_bytes = project_soft(dataset, names[0], options, budget, threads=threads).later_bytes
    return Plan(dataset.n, dataset.m, dataset.stored_bytes, later_bytes, threads, first, later, None, tuple(estimates))
