"""``dfeas plan``: what a run would cost, before it is run. Memory, passes and time of each method."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import psutil

from dfeas.blas import processors
from dfeas.engine import LocalEngine
from dfeas.errors import UsageError
from dfeas.memory import DEFAULT_MEMORY, parse_bytes, thread_bytes, threads_that_fit
from dfeas.methods import METHODS, Facts, ispvn, working_set_size
from dfeas.passes import Partial, Softmin, Survey
from dfeas.request import LEAST_EPS, choose, facts_of, known
from dfeas.setting import open_data
from dfeas.store import Dataset
from dfeas.store.writing import refuse_unusable

PROBE_BYTES = 256 << 20
"""How much is read to measure the speed."""

USUAL = {
    "mirror-prox": 0.03,
    "mirror-prox-one-pass": 0.025,
    "mirror-prox-fixed": 0.2,
    "smooth-perceptron": 0.25,
    "perceptron": 0.04,
    "normalized-perceptron": 0.4,
    "online-perceptron": 0.025,
    "margin-perceptron": 0.001,
    "margin-perceptron-unit": 0.001,
    "winnow": 2e-5,
    "von-neumann": 0.25,
    "von-neumann-away": 0.12,
    "ispvn": 4e-4,
}
"""Passes that a run takes, as a share of the bound of its theorem: the largest of benchmarks/method_passes.py and of
benchmarks/paper_tables.py, rounded up."""

FULL_PASSES = 2
"""Passes over all data that a working set usually takes: benchmarks/working_set.py."""

COPIES = 2.2
"""Copies of the working set in memory while it grows."""

PROCESS_BYTES = 120_000_000
"""An idle process with its libraries."""

PROBED_FEATURES = 1000
"""Products are timed with at most so many features."""

DROPPING_PASSES = 10
"""More of them when memory holds less than half of the columns it wants: halfspace 1000 x 500,000 with 256 MB."""

SQUARES, PRODUCTS = 8, 60
"""Gram matrices and products of the whole working set that its solver usually computes."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run with one method would cost."""

    method: str
    auto: bool  # whether ``auto`` takes it
    memory_bytes: int  # of this process, at the peak
    passes: float  # usual
    most_passes: float  # by its theorem, for a margin, or |Ax|, of ``margin``
    seconds: float  # usual
    remark: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Estimates for a dataset."""

    n: int
    m: int
    bytes: int  # of one read of the data
    threads: int
    first_seconds: float  # of a pass as the data is now, measured
    later_seconds: float  # of one after it
    margin: float
    estimates: tuple[Estimate, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def plan(
    X: Any,
    labels: Any = None,
    *,
    method: str | None = None,
    positive: str | None = None,
    margin: float = 1e-3,
    intercept: bool = False,
    memory: str | int = DEFAULT_MEMORY,
) -> Plan:
    """Estimate what ``dfeas.solve`` would cost in this process, for one method or for all. Reads some blocks.

    ``margin`` is the margin, or the |Ax|, for which the theorems bound the passes. Raises what ``dfeas.solve`` does.
    """
    if method is not None:
        known(method)
    if not LEAST_EPS <= margin < 1:
        raise UsageError(f"margin {margin}: expected a number from {LEAST_EPS:g} to below 1")
    budget = parse_bytes(memory)
    dataset = open_data(X, labels, positive, intercept)[1]
    threads = threads_that_fit(dataset, budget, processors())
    first, later = read_seconds(dataset, threads)
    facts = facts_of(dataset, budget)
    auto = choose("auto", facts)[0]
    names = list(METHODS) if method is None else [method]
    base = PROCESS_BYTES + threads * thread_bytes(dataset)
    estimates = tuple(_estimate(name, name == auto, facts, margin, base, (first, later)) for name in names)
    return Plan(dataset.n, dataset.m, dataset.bytes, threads, first, later, margin, estimates)


def _estimate(
    name: str, auto: bool, facts: Facts, margin: float, base_bytes: int, pass_seconds: tuple[float, float]
) -> Estimate:
    most = METHODS[name]().bound(facts, margin)
    remark, thinking = "", 0.0
    if name.startswith("working-set"):
        columns = min(working_set_size.capacity(facts), working_set_size.usual_columns(facts))
        share = working_set_size.sample_share(facts)
        passes = 2.0 if share == 1 else FULL_PASSES + share
        own = COPIES * columns * working_set_size.column_bytes(facts) + working_set_size.solver_bytes(facts)
        thinking = _solver_seconds(columns, facts)
        if not working_set_size.fits(facts):
            remark = f"does not fit: --memory {4 * working_set_size.least_memory(facts) / 1e6:.0f}MB is needed"
        elif 2 * columns < working_set_size.usual_columns(facts):
            passes += DROPPING_PASSES
            remark = "fewer passes with more memory: columns will be dropped"
    else:
        passes = min(most, max(2.0, USUAL[name] * most))
        own, remark = _kept(name, facts, passes)
    first, later = pass_seconds
    seconds = first + (passes - 1) * later + thinking
    return Estimate(name, auto, int(base_bytes + own), passes, most, seconds, remark)


def _kept(name: str, facts: Facts, passes: float) -> tuple[float, str]:
    """Bytes that a method keeps, and what else it takes."""
    weights = f"{16 * facts.n / 1e6:.0f} MB for weights"
    if name.startswith("mirror-prox") or name == "smooth-perceptron":
        return 32 * facts.m * passes, f"and {weights}, if there is no separator"
    if name == "online-perceptron":
        return 16 * facts.n / 2, f"one core; at most {weights}"
    if name == "ispvn":
        disk = f"{40 * facts.n / 1e9:.2g} GB of scratch storage"
        return 8 * facts.m * min(facts.m, ispvn.GRAM_FEATURES) * 4, f"and {disk}; {weights}, if there is no separator"
    if name == "normalized-perceptron" or name.startswith("von-neumann"):
        return 8 * facts.m * min(passes, 4 * facts.m) + 16 * passes, ""
    return min(facts.memory, 64 * facts.m * max(1000, 20 * facts.m)), ""


def read_seconds(dataset: Dataset, threads: int) -> tuple[float, float]:
    """Seconds of a pass as the data is now, and of a later one, from some consecutive blocks that are read twice.

    A later one is as slow as the first when the data does not fit in the memory that is free.
    """
    count = max(1, min(dataset.blocks, PROBE_BYTES // dataset.block_bytes))
    middle = (dataset.blocks - count) // 2
    engine = LocalEngine(dataset, threads)
    blocks = tuple(range(middle, middle + count))
    question = Softmin(np.full((dataset.dimension, 1), dataset.dimension**-0.5), np.ones(1))
    taken = []
    try:
        if dataset.header is None:
            # as a solve does it; what cannot be solved cannot be planned
            refuse_unusable(engine.run(Partial(Survey(), blocks)), dataset.where)
            taken.append(engine.cost.wall_seconds * dataset.n / engine.cost.points)
        while len(taken) < 2:
            engine.run(Partial(question, blocks))
            taken.append(engine.cost.wall_seconds * dataset.n / engine.cost.points)
    finally:
        engine.close()
    first, later = taken
    return first, later if dataset.bytes < psutil.virtual_memory().available / 2 else max(first, later)


def _solver_seconds(columns: int, facts: Facts) -> float:
    """Time of the solver in memory, from the speed of products of a part of the columns: the best of three."""
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
