"""``dfeas plan``: what a run would cost, before it is run. Memory, passes and time of each method."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from dfeas.blas import processors
from dfeas.coned import CONE_METHODS, require_plain
from dfeas.cones.engine import ConeEngine
from dfeas.csr import csr
from dfeas.engine import Engine, LocalEngine
from dfeas.errors import UsageError
from dfeas.estimate import Estimate, Plan, in_turns
from dfeas.kernelled import AskedKernel, asked_kernel, kernelled
from dfeas.kernels.kernel import Function
from dfeas.memory import DEFAULT_MEMORY, WEIGHING, parse_bytes, threads_that_fit
from dfeas.methods import METHODS, Facts, working_set_size
from dfeas.passes import AnyPass, Partial, Survey
from dfeas.planning_cones import cone_plan
from dfeas.planning_kernel import kernel_plan
from dfeas.planning_soft import soft_plan
from dfeas.projection import columns, drops, probe, probed, project, usual_passes
from dfeas.request import ALONE, LEAST_EPS, abreast, choose, classes_to_share, facts_of, known
from dfeas.setting import open_data
from dfeas.soft_margin_options import options_of, require
from dfeas.store import Dataset
from dfeas.store.writing import refuse_unusable
from dfeas.transforming import as_planned, asked_transform

PROBED_FEATURES = 1000
"""Products are timed with at most so many features."""

SQUARES, PRODUCTS = 8, 60
"""Gram matrices and products of the whole working set that its solver usually computes."""

SPARSE_PRODUCTS = 1000
"""Products of all sparse columns that conjugate gradients usually take: text 47,000 x 700,000."""


def plan(
    X: Any,
    labels: Any = None,
    *,
    method: str | None = None,
    positive: str | None = None,
    one_vs_rest: bool = False,
    also: Sequence[str | Path] = (),
    mask: Any = None,
    scale: str | None = None,
    center: bool = False,
    normalize: bool = True,
    margin: float = 1e-3,
    intercept: bool = False,
    kernel: str | Function | None = None,
    gamma: float | None = None,
    degree: int | None = None,
    coef0: float | None = None,
    C: float | Sequence[float] | None = None,
    loss: str = "hinge",
    folds: int = 0,
    memory: str | int = DEFAULT_MEMORY,
) -> Plan:
    """Estimate what ``dfeas.solve`` would cost in this process, for one method or for all. Reads some blocks.

    With ``C`` what ``dfeas.soft_margin`` would, with ``loss`` and ``folds`` as there; passes are those that a relative gap of
    1e-3 usually takes.

    ``margin`` is the margin, or the |Ax|, for which the theorems bound the passes. With a kernel a sample of the points is read
    that says what gamma is, if nobody does. Raises what ``dfeas.solve`` does.
    """
    asked_kernel(kernel, gamma, degree, coef0)
    if one_vs_rest and positive is not None:
        raise UsageError("one_vs_rest asks about every class: leave out positive")
    if method is not None and kernel is None:
        known(method, tuple(CONE_METHODS))
    if not LEAST_EPS <= margin < 1:
        raise UsageError(f"margin {margin}: expected a number from {LEAST_EPS:g} to below 1")
    if C is None and (folds or loss != "hinge"):
        raise UsageError("loss and folds are of a soft margin: give C, too")
    if C is not None and (
        one_vs_rest or method is not None or kernel is not None or scale is not None or center or not normalize
    ):
        raise UsageError("C asks for a soft margin of the points as they are: leave out method, kernel, scale and the like")
    budget = parse_bytes(memory)
    seen_as = asked_transform(scale, center, normalize)
    if seen_as and kernel is not None:
        raise UsageError("scale, center and normalize are for the points themselves: leave them out with a kernel")
    opened = open_data(X, labels, positive, intercept, many=one_vs_rest, also=also, mask=mask, cones=True)[1]
    require_plain(opened, kernel=kernel, transform=seen_as)
    if opened.cones is not None:
        threads = threads_that_fit(opened, budget, processors())
        return cone_plan(opened, method, margin, budget, threads, read_seconds(opened, threads))
    if method is not None and kernel is None:
        known(method)
    classes = len(classes_to_share(opened, method, kernel is None)) if one_vs_rest else 1
    dataset = as_planned(opened, seen_as)
    threads = threads_that_fit(dataset, budget, processors())
    if C is not None:
        soft = options_of(dataset, C=C, loss=loss, folds=folds)
        require(dataset, soft, budget)
        return soft_plan(dataset, soft, budget, threads, read_seconds, _solver_seconds)
    speed = read_seconds(dataset, threads)
    if kernel is not None:
        with closing(LocalEngine(dataset, threads)) as engine:
            found = kernelled(engine, dataset, AskedKernel(kernel, gamma, degree, coef0)).kernel
        return kernel_plan(dataset, found, method, margin, budget, threads, speed, classes)
    auto = choose("auto", facts_of(dataset, budget // abreast("auto", classes, dataset, budget)))[0]
    names = [name for name in METHODS if not (one_vs_rest and name in ALONE)] if method is None else [method]
    estimates = tuple(_estimate(dataset, name, name == auto, margin, budget, speed, classes) for name in names)
    later = project(dataset, [auto] * abreast(auto, classes, dataset, budget), budget, margin).later_bytes
    return Plan(dataset.n, dataset.m, dataset.stored_bytes, later, threads, *speed, margin, estimates, classes)


def _estimate(
    dataset: Dataset, name: str, auto: bool, margin: float, budget: int, pass_seconds: tuple[float, float], classes: int
) -> Estimate:
    together = abreast(name, classes, dataset, budget)
    rounds = ceil(classes / together)
    facts = facts_of(dataset, budget // together)
    most = METHODS[name]().bound(facts, margin)
    passes, thinking = usual_passes(name, facts, margin), 0.0
    if name.startswith("working-set"):
        thinking = _solver_seconds(int(columns(facts)), facts)
    first, later = pass_seconds
    seconds = first + (rounds * passes - 1) * later + classes * thinking
    memory = project(dataset, [name] * together, budget, margin).memory_bytes
    remark = "; ".join(text for text in (in_turns(together, classes), _remark(name, facts)) if text)
    return Estimate(name, auto, memory, rounds * passes, rounds * most, seconds, remark)


def _remark(name: str, facts: Facts) -> str:
    """What else a method takes."""
    weights = f"{16 * facts.n / 1e6:.0f} MB for weights"
    if name.startswith("working-set"):
        if not working_set_size.fits(facts):
            return f"does not fit: --memory {4 * working_set_size.least_memory(facts) / 1e6:.0f}MB is needed"
        return "fewer passes with more memory: columns will be dropped" if drops(facts) else ""
    if name == "online-perceptron":
        return f"one core; at most {weights}"
    if name == "ispvn":
        return f"and {40 * facts.n / 1e9:.2g} GB of scratch storage; {weights}, if there is no separator"
    return f"and {weights}, if there is no separator" if name in WEIGHING else ""


def read_seconds(dataset: Dataset, threads: int, question: AnyPass | None = None) -> tuple[float, float]:
    """Seconds of a pass as the data is now, and of a later one, from some blocks that are read twice.

    It asks the ``question`` of a method, or the central one.

    A later one is as slow as the first when the data does not fit in the memory that is free.
    """
    engine: Engine = LocalEngine(dataset, threads)
    engine = engine if dataset.cones is None else ConeEngine(engine)
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


def _solver_seconds(columns: int, facts: Facts) -> float:
    """Time of the solver in memory, from the speed of products of a part of the columns: the best of three."""
    if facts.entries:
        probe_entries = 1_000_000
        indices = np.random.default_rng(0).integers(0, facts.m, probe_entries).astype(np.int32)
        many = csr(np.ones(probe_entries), indices, np.arange(0, probe_entries + 1, 100, dtype=np.int32), facts.m)
        return columns * facts.entries / probe_entries * SPARSE_PRODUCTS * _seconds(lambda: many @ np.ones(facts.m))
    d = min(facts.m, PROBED_FEATURES)
    rows = max(16, min(columns, 1_000_000 // d))
    trial = np.ones((rows, d))
    square = min(_seconds(lambda: trial.T @ trial) for _ in range(3))
    product = min(_seconds(lambda: trial @ trial[0]) for _ in range(3))
    wider = facts.m / d
    return columns / rows * wider * (SQUARES * square * min(wider, columns / d) + PRODUCTS * product)


def _seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
