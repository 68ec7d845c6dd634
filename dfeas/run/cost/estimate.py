"""What a run would cost, as ``dfeas plan`` says it, from the seconds of a read and of work in memory in short trials."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import psutil

from dfeas.data.dataset import Dataset
from dfeas.data.writers.dataset import refuse_unusable
from dfeas.engine.local import LocalEngine
from dfeas.engine.protocol import Engine
from dfeas.geometry.cones.engine import ConeEngine
from dfeas.linalg.csr import csr
from dfeas.methods.protocol import Facts
from dfeas.passes.protocol import AnyPass, Partial
from dfeas.passes.survey import Survey
from dfeas.run.cost.projection import probe, probed


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


def in_turns(together: int, classes: int) -> str:
    """How classes share the memory, where they cannot all at once."""
    return f"{together} of {classes} classes at a time" if together < classes else ""


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


PROBED_FEATURES = 1000
"""Products are timed with at most so many features."""

SQUARES, PRODUCTS = 8, 60
"""Gram matrices and products of the whole working set that its solver usually computes."""

SPARSE_PRODUCTS = 1000
"""Products of all sparse columns that conjugate gradients usually take: text 47,000 x 700,000."""


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


def solver_seconds(columns: int, facts: Facts) -> float:
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
