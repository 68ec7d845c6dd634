"""``dfeas plan``: what a run would cost, before it is run. Memory, passes and time of each method."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dfeas.engine import LocalEngine
from dfeas.engine.local import processors
from dfeas.memory import thread_bytes, threads_that_fit
from dfeas.methods import METHODS, Facts, working_set
from dfeas.passes import Partial, Softmin
from dfeas.store import Dataset

PROBE_BYTES = 256 << 20
"""How much is read to measure the speed."""

USUAL = {"mirror-prox": 0.05, "mirror-prox-fixed": 0.2, "smooth-perceptron": 0.25, "perceptron": 0.01}
"""Passes that a run takes, as a share of the bound of its theorem: the largest of benchmarks/method_passes.py, rounded up."""

FULL_PASSES = 2
"""Passes over all data that a working set usually takes: benchmarks/working_set.py."""

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
    bytes_per_second: float  # measured now
    margin: float
    estimates: tuple[Estimate, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def plan(dataset: Dataset, facts: Facts, memory: int, margin: float, chosen: str, names: list[str]) -> Plan:
    """Estimate the named methods; ``chosen`` is the one that ``auto`` takes. Reads some blocks to measure the speed."""
    threads = threads_that_fit(dataset, memory, processors())
    speed = read_speed(dataset, threads)
    base = threads * thread_bytes(dataset)
    estimates = []
    for name in names:
        most = METHODS[name]().bound(facts, margin)
        if name.startswith("working-set"):
            columns = min(working_set.capacity(facts), working_set.usual_columns(facts))
            passes = FULL_PASSES + min(1.0, working_set.sample_share(facts))
            own = 3 * columns * working_set.column_bytes(facts)
            thinking = _solver_seconds(columns, facts)
            remark = (
                "" if working_set.fits(facts) else f"does not fit: {4 * working_set.least_memory(facts) / 1e6:.0f} MB needed"
            )
        else:
            passes, thinking = max(2.0, USUAL[name] * most), 0.0
            own = (
                min(facts.memory, 64 * facts.m * max(1000, 20 * facts.m))
                if name == "perceptron"
                else 32 * facts.m * int(passes)
            )
            remark = "" if name == "perceptron" else f"and {16 * facts.n / 1e6:.0f} MB for weights, if there is no separator"
        seconds = passes * dataset.bytes / speed + thinking
        estimates.append(Estimate(name, name == chosen, int(base + own), passes, most, seconds, remark))
    return Plan(dataset.n, dataset.m, dataset.bytes, threads, speed, margin, tuple(estimates))


def read_speed(dataset: Dataset, threads: int) -> float:
    """Bytes a second of a pass, now: blocks all over the data, read, checked and multiplied once."""
    count = max(1, min(dataset.blocks, PROBE_BYTES // dataset.block_bytes))
    blocks = tuple(int(i) for i in np.linspace(0, dataset.blocks - 1, count).astype(int))
    engine = LocalEngine(dataset, threads)
    try:
        question = Softmin(np.full((dataset.dimension, 1), dataset.dimension**-0.5), np.ones(1))
        engine.run(Partial(question, blocks))
        return engine.cost.bytes_read / engine.cost.wall_seconds
    finally:
        engine.close()


def _solver_seconds(columns: int, facts: Facts) -> float:
    """Time of the solver in memory, from the speed of one matrix product and one read of memory."""
    d = facts.m
    rows = max(16, min(columns, 2_000_000 // d))
    trial = np.ones((rows, d))
    trial.T @ trial
    began = time.perf_counter()
    trial.T @ trial
    square = time.perf_counter() - began
    began = time.perf_counter()
    trial @ trial[0]
    product = time.perf_counter() - began
    return columns / rows * (SQUARES * square + PRODUCTS * product)
