"""What the run of a soft margin will take, before it begins."""

from __future__ import annotations

from dfeas.blas import processors
from dfeas.memory import cache_bytes, thread_bytes, threads_that_fit
from dfeas.methods import Facts
from dfeas.projection.points import CLIENT_BYTES, PROCESS_BYTES, Projection, read_bytes
from dfeas.request import SoftMarginOptions, facts_of
from dfeas.store import Dataset
from dfeas.svm import kept_bytes, kept_points, least_memory, matrix_bytes, wanted
from dfeas.svm.band import DIRECT

COPIES = 1.5
"""Of what a method keeps, at the peak, where a new answer comes while the last one is still there."""

WEIGHT_BYTES = 16
"""Of each weight of a point, in a process that has them all: as it is used, and on its way there."""


def project_soft(
    dataset: Dataset,
    method: str,
    options: SoftMarginOptions,
    memory: int,
    *,
    lanes: int = 1,
    workers: int = 0,
    threads: int | None = None,
) -> Projection:
    """Project a soft margin with a budget for each process; ``lanes`` share it side by side.

    ``threads`` are those of each process that reads; by default as many as fit in this one. ``workers`` are worker processes.
    Raises UsageError when the budget is too small for a block.
    """
    threads = threads or threads_that_fit(dataset, memory, processors())
    kept = cache_bytes(dataset, memory, threads, worker=workers > 0)
    facts, k = facts_of(dataset, memory // lanes), len(options.C) * (1 + options.folds)
    own = COPIES * lanes * own_bytes(method, facts, k)
    weights = 0 if options.weight is None else WEIGHT_BYTES * dataset.n
    reading = PROCESS_BYTES + threads * thread_bytes(dataset) + weights
    first, later = read_bytes(dataset, kept, workers)
    if not workers:
        return Projection(int(reading + own + kept), 0, kept, first, later)
    return Projection(
        int(PROCESS_BYTES + CLIENT_BYTES + own + weights), int(reading + min(memory // 4, own) + kept), kept, first, later
    )


def own_bytes(method: str, facts: Facts, k: int) -> float:
    """Bytes that a method keeps for k problems, with the answers of its passes."""
    if method == "sgd":
        return 64 * facts.m
    return kept_bytes(facts, k, method) + (matrix_bytes(facts, k) if method == "squared-hinge" else 0)


def usual_reads(method: str, facts: Facts, k: int) -> float:
    """Reads that a relative gap of 1e-3 usually takes: benchmarks/soft_margin.py."""
    if method == "sgd":
        return 100.0
    if method == "squared-hinge":
        return 5.0
    return 4.0 if holds_enough(facts, k, method) else 12.0


def holds_enough(facts: Facts, k: int, method: str) -> bool:
    """Whether memory holds as many points as the hinge wants, or the curvatures of the squared hinge."""
    if method == "hinge":
        return kept_points(facts, k, method) >= min(facts.n, wanted(facts))
    return facts.m > DIRECT or matrix_bytes(facts, k) > 0


def fits(facts: Facts, k: int, method: str) -> bool:
    """Whether a method can work in this memory."""
    return least_memory(facts, k) <= facts.memory
