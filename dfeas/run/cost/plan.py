"""``dfeas.plan``: what is asked, and who estimates it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from dfeas.data.dataset import Dataset
from dfeas.engine.local import LocalEngine
from dfeas.engine.memory import DEFAULT_MEMORY, WEIGHING, parse_bytes, threads_that_fit
from dfeas.errors import UsageError
from dfeas.geometry.cones.choice import CONE_METHODS, choose_cone_method, missing_for_cones, require_plain, usable_on_cones
from dfeas.geometry.cones.working_set import Rows
from dfeas.geometry.kernel.kernel import Function
from dfeas.linalg.blas import one_thread, processors
from dfeas.methods import working_set
from dfeas.methods.protocol import Facts
from dfeas.methods.registry import METHODS
from dfeas.methods.soft_margin.memory import kept_points
from dfeas.passes.protocol import Exclusive
from dfeas.problem import ALONE, LEAST_EPS, SoftMarginOptions, abreast, choose, classes_to_share, facts_of, known
from dfeas.run.cost.estimate import Estimate, Plan, in_turns, read_seconds, solver_seconds
from dfeas.run.cost.plan_kernel import kernel_plan
from dfeas.run.cost.projection import (
    columns,
    drops,
    holds_enough,
    project,
    project_soft,
    usual_cone_passes,
    usual_passes,
    usual_reads,
)
from dfeas.run.kernel_choice import AskedKernel, asked_kernel, kernelled
from dfeas.run.session import open_data
from dfeas.run.soft_margin.fit import margin_method
from dfeas.run.soft_margin.options import method_for, options_of, require
from dfeas.run.transform import as_planned, asked_transform


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
    require_plain(opened, kernel=kernel, transform=seen_as, C=C is not None)
    if opened.cones is not None:
        threads = threads_that_fit(opened, budget, processors())
        return cone_plan(opened, method, margin, budget, threads, read_seconds(opened, threads))
    if method is not None and kernel is None:
        known(method)
    classes = len(classes_to_share(opened, method if kernel is None else None)) if one_vs_rest else 1
    dataset = as_planned(opened, seen_as)
    threads = threads_that_fit(dataset, budget, processors())
    if C is not None:
        soft = options_of(dataset, C=C, loss=loss, folds=folds)
        require(dataset, soft, budget)
        return soft_plan(dataset, soft, budget, threads)
    speed = read_seconds(dataset, threads)
    if kernel is not None:
        with closing(LocalEngine(dataset, threads)) as engine:
            found = kernelled(engine, dataset, AskedKernel(kernel, gamma, degree, coef0)).kernel
        return kernel_plan(dataset, found, method, margin, budget, threads, speed, classes)
    return point_plan(dataset, method, margin, budget, threads, speed, classes)


def point_plan(
    dataset: Dataset, method: str | None, margin: float, budget: int, threads: int, speed: tuple[float, float], classes: int = 1
) -> Plan:
    """Estimates of one method or of all, for some classes on the same reads."""
    auto = choose("auto", facts_of(dataset, budget // abreast("auto", classes, dataset, budget)))[0]
    names = [name for name in METHODS if not (classes > 1 and name in ALONE)] if method is None else [method]
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
        thinking = solver_seconds(int(columns(facts)), facts)
    first, later = pass_seconds
    seconds = first + (rounds * passes - 1) * later + classes * thinking
    memory = project(dataset, [name] * together, budget, margin).memory_bytes
    remark = "; ".join(text for text in (in_turns(together, classes), _remark(name, facts)) if text)
    return Estimate(name, auto, memory, rounds * passes, rounds * most, seconds, remark)


def _remark(name: str, facts: Facts) -> str:
    """What else a method takes."""
    weights = f"{16 * facts.n / 1e6:.0f} MB for weights"
    if name.startswith("working-set"):
        if not working_set.fits(facts):
            return f"does not fit: --memory {4 * working_set.least_memory(facts) / 1e6:.0f}MB is needed"
        return "fewer passes with more memory: columns will be dropped" if drops(facts) else ""
    if name == "online-perceptron":
        return f"one core; at most {weights}"
    if name == "ispvn":
        return f"and {40 * facts.n / 1e9:.2g} GB of scratch storage; {weights}, if there is no separator"
    return f"and {weights}, if there is no separator" if name in WEIGHING else ""


STEPS = 150
"""Newton steps of the solver in memory that a run usually takes, each one two products of all its rows with themselves."""
TRIED_ROWS = 4096
"""Products are timed with so many rows."""


def cone_plan(
    dataset: Dataset, method: str | None, margin: float, budget: int, threads: int, pass_seconds: tuple[float, float]
) -> Plan:
    """Estimates of one method or of all. Raises UsageError when the one asked for is none for these cones, or does not fit."""
    assert dataset.cones is not None, "cones"
    facts = facts_of(dataset, budget)
    auto = choose_cone_method("auto", dataset, budget)[0]
    if method is not None:
        method = choose_cone_method(method, dataset, budget)[0]
    names = [name for name in CONE_METHODS if usable_on_cones(name, dataset)] if method is None else [method]
    first, later = pass_seconds
    estimates = []
    for name in names:
        passes = usual_cone_passes(name, facts, margin)
        thinking = _solver_seconds(dataset, facts) if name == "working-set" else 0.0
        need = missing_for_cones(name, dataset, budget)
        estimates.append(
            Estimate(
                name,
                name == auto,
                project(dataset, [name], budget, margin).memory_bytes,
                passes,
                CONE_METHODS[name]().bound(facts, margin),
                first + (passes - 1) * later + thinking,
                f"does not fit: --memory {ceil(need / 1e6)}MB is needed" if need else "",
            )
        )
    later_bytes, rows = project(dataset, [auto], budget, margin).later_bytes, (dataset.n, dataset.m, dataset.bytes)
    return Plan(*rows, later_bytes, threads, first, later, margin, tuple(estimates), cones=str(dataset.cones))


def _solver_seconds(dataset: Dataset, facts: Facts) -> float:
    """Seconds of the solver in memory, from the speed of a product."""
    assert dataset.cones is not None, "cones"
    trial, best = np.ones((TRIED_ROWS, min(facts.m, 1000))), np.inf
    with one_thread():
        for _ in range(3):
            began = time.perf_counter()
            trial.T @ trial
            best = min(best, time.perf_counter() - began)
    rows = Rows(facts.m, facts.memory, dataset.cones.largest).usual
    return STEPS * 2 * best * min(rows, dataset.n) / TRIED_ROWS * (facts.m / trial.shape[1]) ** 2


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
        reads = usual_reads(name, facts, k)
        kept = 0 if name == "sgd" else kept_points(facts, k, name)
        seconds = first + (reads - 1) * later + (SOLVES * len(options.C) * solver_seconds(kept, facts) if kept else 0.0)
        remark = "one core, in the order of the points" if name == "sgd" else ""
        if name == "hinge" and not holds_enough(facts, k, name):
            remark = "fewer reads with more memory"
        memory_bytes = project_soft(dataset, name, options, budget, threads=threads).memory_bytes
        estimates.append(Estimate(name, name == names[0], memory_bytes, reads, None, seconds, remark))
    later_bytes = project_soft(dataset, names[0], options, budget, threads=threads).later_bytes
    return Plan(dataset.n, dataset.m, dataset.stored_bytes, later_bytes, threads, first, later, None, tuple(estimates))
