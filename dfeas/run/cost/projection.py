"""What a run will take: memory of each process, bytes and seconds of a pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dfeas.data.dataset import SIDES_WIDTH, Dataset
from dfeas.engine.memory import cache_bytes, thread_bytes, threads_that_fit
from dfeas.engine.protocol import Engine
from dfeas.geometry.protocol import Geometry, Load, Needs, facts_of
from dfeas.linalg.blas import processors
from dfeas.methods.registry import SOFT_MARGINS
from dfeas.passes.protocol import AnyPass, Partial
from dfeas.passes.softmin import Softmin
from dfeas.run.checkpoint.job import SoftMarginOptions

PROCESS_BYTES = 130_000_000
"""An idle process with its libraries, or an idle worker."""

CLIENT_BYTES = 20_000_000
"""What a client of a cluster, with the scheduler of a local one, takes beside that."""

PROBE_BYTES = 256 << 20
"""How much is read to measure the speed."""

PROBED_SHARE = 0.02
"""A solve measures the speed when that takes no more than this of a pass; otherwise the first pass soon tells."""


@dataclass(frozen=True, slots=True)
class Projection:
    """Upper ends of what a run is expected to take."""

    memory_bytes: int  # of this process, at its peak
    worker_bytes: int  # of each worker process, at its peak; 0 without a cluster
    cache_bytes: int  # that each process which reads keeps of the blocks
    first_bytes: int  # read from storage by the first pass
    later_bytes: int  # by a later one: what the processes together do not keep
    seconds: float | None = None  # of the first pass, where it was measured

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        memory = f"at most {self.memory_bytes / 1e9:.2g} GB of memory"
        if self.worker_bytes:
            memory += f" here and {self.worker_bytes / 1e9:.2g} GB in each worker"
        later = f"{self.later_bytes / 1e9:.3g} GB" if self.later_bytes else "nothing"
        seconds = "" if self.seconds is None else f" in about {self.seconds:.2g} s"
        reads = f"a pass reads {self.first_bytes / 1e9:.3g} GB{seconds}, a later one {later}"
        return f"projected: {memory}; {reads if self.first_bytes else 'the points are in memory'}"


def project(
    geometry: Geometry,
    dataset: Dataset,
    methods: Sequence[str],
    memory: int,
    margin: float,
    *,
    workers: int = 0,
    threads: int | None = None,
    classes: int = 1,
    max_passes: int | None = None,
) -> Projection:
    """Project a run of methods side by side with a budget for each process, until a margin, or |Ax|, of ``margin``.

    ``threads`` are those of each process that reads; by default as many as fit in this one. ``workers`` are worker processes.
    Each method is made for some ``classes``, and ends after ``max_passes``.
    Raises UsageError when the budget is too small for a block.
    """
    threads = threads or threads_that_fit(dataset, memory, processors())
    most = math.inf if max_passes is None else max_passes
    load = Load(dataset, tuple(methods), memory, workers, threads, classes, most)
    return _projection(load, lambda kept: geometry.needs(load, margin, kept))


def _projection(load: Load, needs_of: Callable[[int], Needs]) -> Projection:
    """From what the methods need where so many bytes of blocks are kept."""
    dataset, workers, threads = load.dataset, load.workers, load.threads
    kept = cache_bytes(dataset, load.memory, threads, worker=workers > 0)
    needs = needs_of(kept)
    first, later = read_bytes(dataset, kept, workers)
    if later:
        later = int(needs.reads * later)
        first = max(first, later)
    reading = PROCESS_BYTES + threads * (thread_bytes(dataset) + needs.thread) + needs.tiles
    # weights come when the cache is gone
    if not workers:
        return Projection(int(reading + needs.own + max(kept, needs.late)), 0, kept, first, later)
    worker = reading + needs.worker + max(kept, needs.late_worker)
    return Projection(int(PROCESS_BYTES + CLIENT_BYTES + needs.own + needs.late), int(worker), kept, first, later)


def read_bytes(dataset: Dataset, kept: int, workers: int) -> tuple[int, int]:
    """Bytes that the first and a later read of everything take from storage, when each process keeps so many."""
    whole, block = dataset.bytes + dataset.n * SIDES_WIDTH, dataset.block_bytes + dataset.block_rows * SIDES_WIDTH
    blocks = dataset.blocks if kept >= whole else max(1, workers) * (dataset.divide(kept)[0] // block)
    first = 0 if dataset.in_memory else dataset.stored_bytes
    return first, max(0, first - blocks * dataset.block_bytes * first // dataset.bytes)


def probed(dataset: Dataset, parallel: int) -> tuple[int, ...]:
    """The blocks from which the speed is measured: some consecutive ones."""
    count = max(1, min(dataset.blocks, max(2 * parallel, PROBE_BYTES // dataset.block_bytes)))
    first = (dataset.blocks - count) // 2
    return tuple(range(first, first + count))


def probe(engine: Engine, dataset: Dataset, blocks: tuple[int, ...], question: AnyPass | None = None) -> float:
    """Seconds of a pass with a question, or the central one, from some blocks."""
    central = Softmin(np.full((dataset.dimension, 1), dataset.dimension**-0.5), np.ones(1))
    engine.run(Partial(central if question is None else question, blocks))
    return engine.cost.wall_seconds * dataset.n / engine.cost.points


SOFT_COPIES = 1.5
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
    facts, k = facts_of(dataset, memory // lanes), len(options.C) * (1 + options.folds)
    own = SOFT_COPIES * lanes * SOFT_MARGINS[method].own_bytes(facts, k)
    weights = 0 if options.weight is None else WEIGHT_BYTES * dataset.n
    threads = threads or threads_that_fit(dataset, memory, processors())
    load = Load(dataset, (method,), memory, workers, threads)
    return _projection(load, lambda kept: Needs(own + weights, weights + min(memory // 4, own)))
