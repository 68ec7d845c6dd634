"""What a run on cones would cost: memory, passes and time of each method."""

from __future__ import annotations

import time
from math import ceil

import numpy as np

from dfeas.blas import one_thread
from dfeas.coned import CONE_METHODS, choose_cone_method, missing_for_cones, usable_on_cones
from dfeas.cones.working_set_size import Rows
from dfeas.estimate import Estimate, Plan
from dfeas.methods import Facts
from dfeas.projection.cones import usual_cone_passes
from dfeas.projection.points import project
from dfeas.request import facts_of
from dfeas.store import Dataset

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
