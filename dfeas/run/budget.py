"""What a run takes, before it is begun: memory of each process, bytes of a pass, and how many passes memory has room for.

Pure: what methods, geometries and datasets say of themselves is added up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dfeas.data.cache import HELD_BYTES
from dfeas.data.dataset import SIDES_WIDTH, Dataset
from dfeas.engine.memory import cache_bytes, held_bytes, sides_bytes, thread_bytes, threads_that_fit
from dfeas.errors import UsageError, format_bytes
from dfeas.geometry.protocol import Geometry, Load, Needs, facts_of
from dfeas.linalg.blas import processors
from dfeas.methods.protocol import Facts
from dfeas.methods.registry import METHODS, SOFT_MARGINS
from dfeas.run.spec import SoftMarginOptions

PROCESS_BYTES = 130_000_000
"""An idle process with its libraries, or an idle worker."""

CLIENT_BYTES = 20_000_000
"""What a client of a cluster, with the scheduler of a local one, takes beside that."""


@dataclass(frozen=True, slots=True)
class Projection:
    """Upper ends of what a run is expected to take."""

    memory_bytes: int  # of this process, at its peak
    worker_bytes: int  # of each worker process, at its peak; 0 without a cluster
    cache_bytes: int  # that each process which reads keeps of the blocks
    first_bytes: int  # read from storage by the first pass
    later_bytes: int  # by a later one: what the processes together do not keep
    kept_after: int  # passes before the one that keeps blocks
    seconds: float | None = None  # of the first pass, where it was measured

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        memory = f"at most {format_bytes(self.memory_bytes)} of memory"
        if self.worker_bytes:
            memory += f" here and {format_bytes(self.worker_bytes)} in each worker"
        later = format_bytes(self.later_bytes) if self.later_bytes else "nothing"
        seconds = "" if self.seconds is None else f" in about {self.seconds:.2g} s"
        late = self.kept_after and self.later_bytes < self.first_bytes
        after = f"from pass {self.kept_after + 2} on" if late else "a later one"
        reads = f"a pass reads {format_bytes(self.first_bytes)}{seconds}, {after} {later}"
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
    held = held_bytes(dataset)
    reading = PROCESS_BYTES + held + sides_bytes(dataset, kept) + threads * (thread_bytes(dataset) + needs.thread) + needs.tiles
    # weights come when the cache is gone
    if not workers:
        return Projection(int(reading + needs.own + max(kept, needs.late)), 0, kept, first, later, dataset.kept_after)
    worker = reading + needs.worker + max(kept, needs.late_worker)
    here = PROCESS_BYTES + CLIENT_BYTES + held + needs.own + needs.late
    return Projection(int(here), int(worker), kept, first, later, dataset.kept_after)


def read_bytes(dataset: Dataset, kept: int, workers: int) -> tuple[int, int]:
    """Bytes that the first and a later read of everything take from storage, when each process keeps so many."""
    whole = dataset.bytes + dataset.sides_bytes
    block = dataset.block_bytes + dataset.block_rows * SIDES_WIDTH + HELD_BYTES
    blocks = dataset.blocks if kept >= whole else max(1, workers) * (dataset.divide(kept)[0] // block)
    first = 0 if dataset.in_memory else dataset.stored_bytes
    return first, max(0, first - blocks * dataset.block_bytes * first // dataset.bytes)


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
    workers: int = 0,
    threads: int | None = None,
) -> Projection:
    """Project a soft margin with a budget for each process.

    ``threads`` are those of each process that reads; by default as many as fit in this one. ``workers`` are worker processes.
    Raises UsageError when the budget is too small for a block.
    """
    facts, k = facts_of(dataset, memory), len(options.C) * (1 + options.folds)
    own = SOFT_COPIES * SOFT_MARGINS[method].cost(facts, k).kept
    weights = 0 if options.weight is None else WEIGHT_BYTES * dataset.n
    threads = threads or threads_that_fit(dataset, memory, processors())
    load = Load(dataset, (method,), memory, workers, threads)
    return _projection(load, lambda kept: Needs(own + weights, weights + min(memory // 4, own)))


def limit_passes(
    geometry: Geometry, methods: Sequence[str], facts: Facts, eps: float, max_passes: int | None
) -> tuple[int | None, str]:
    """A limit of passes where methods remember them: so many as half of the memory holds; and what is to be said of it,
    where methods usually take more until eps.

    Raises UsageError when more passes were asked for, and would usually be made.
    """
    limit, said = max_passes, ""
    if not geometry.weighs_by_block:
        return limit, said
    for method in methods:
        each = METHODS[method].cost(facts).per_pass
        if not each or (limit or math.inf) * each <= 2 * facts.memory:
            continue
        fit, passes = max(1, 2 * facts.memory // each), METHODS[method].passes(facts, eps, METHODS[method].traits.points or 1.0)
        if limit is not None:
            needed = min(passes, limit)
            if needed > fit:
                raise UsageError(
                    f"{method} keeps {each} bytes of each pass, {format_bytes(needed * each)} of {needed:.2g}, and half of "
                    f"--memory is for that: choose --max-passes {fit}, a larger --eps, or another method"
                )
            continue
        limit = fit
        said = f"; at most {fit} passes, {each} bytes of each are kept" if passes > fit else ""
    return limit, said
