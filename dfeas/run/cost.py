"""What a run takes, before it is begun: memory of each process, bytes of a pass, and how many passes memory has room for.

What methods, geometries and datasets say of themselves is added up; only the speed of a pass is measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, structs

from dfeas.data.cache import HELD_BYTES
from dfeas.data.collections import collection_of
from dfeas.data.dataset import SIDES_WIDTH, Dataset
from dfeas.engine.memory import answer_bytes, cache_bytes, held_bytes, sides_bytes, thread_bytes, threads_that_fit
from dfeas.engine.protocol import Engine
from dfeas.errors import UsageError, enough, format_bytes, spell
from dfeas.geometry.protocol import Geometry, Load, LoadCost, facts_of
from dfeas.machine import threads_here
from dfeas.methods.registry import SOFT_MARGINS, base_name
from dfeas.passes.protocol import AnyPass, Partial
from dfeas.passes.softmin import Softmin
from dfeas.problem import OWN_METHODS
from dfeas.records import replace
from dfeas.run.spec import SoftMarginOptions

PROCESS_BYTES = 130_000_000
"""An idle process with its libraries, or an idle worker."""


class Projection(Struct, frozen=True):
    """Upper ends of what a run is expected to take."""

    memory_bytes: int  # of this process, at its peak
    worker_bytes: int  # of each worker process, at its peak; 0 without a cluster
    cache_bytes: int  # that each process which reads keeps of the blocks
    tile_bytes: int  # that each of them keeps of a kernel's values
    first_bytes: int  # read from storage by the first pass
    later_bytes: int  # by a later one: what the processes together do not keep
    kept_after: int  # passes before the one that keeps blocks
    seconds: float | None = None  # of the first pass, where it was measured

    def to_json(self) -> dict[str, Any]:
        return structs.asdict(self)

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


class Probe(Struct, frozen=True):
    """Measures the speed of a pass from some consecutive blocks."""

    bytes: int = 256 << 20  # that are read
    share: float = 0.02  # a solve measures when that takes no more than this of a pass; otherwise the first pass soon tells

    def blocks(self, dataset: Dataset, parallel: int) -> range:
        """Those that are read by so many threads."""
        count = max(1, min(dataset.blocks, max(2 * parallel, self.bytes // dataset.block_bytes)))
        first = (dataset.blocks - count) // 2
        return range(first, first + count)

    def worth(self, engine: Engine, dataset: Dataset) -> bool:
        """Whether it takes little beside a pass."""
        return len(self.blocks(dataset, engine.parallel)) <= self.share * dataset.blocks

    def seconds(self, engine: Engine, dataset: Dataset, question: AnyPass | None = None) -> float:
        """Of a pass with a question, or the central one."""
        central = Softmin(np.full((dataset.dimension, 1), dataset.dimension**-0.5), np.ones(1))
        blocks = self.blocks(dataset, engine.parallel)
        engine.run(Partial(central if question is None else question, blocks))
        return engine.cost.wall_seconds * dataset.n / engine.cost.points


PROBE: Probe = Probe()


HOLD_BYTES = 6 * (32 << 20)
"""What a worker reads ahead for a fold: held, on its way, and being folded."""


def choose_method(
    geometry: Geometry, method: str, load: Load, tolerance: float | None = None, shared: bool = False
) -> tuple[str, str]:
    """The method for a load, ``auto`` being one that fits, and why. A margin within this ``tolerance`` of the widest is wanted;
    reads may be ``shared`` with others of its name. Raises UsageError for a method that does not work here, or not within the
    memory, with what is needed.
    """
    name, why = geometry.check_method(method, ("auto",)), "asked for"
    if method == "auto":
        name, why = geometry.choose_automatic(load, tolerance)
    reason = geometry.refuse(name, load.dataset, shared)
    need = geometry.cost(name, load).least
    if need > load.memory and not reason:
        what, other, kept = f"what it keeps of {load.dataset.n} {geometry.rows}", "working-set", "some"
        if name == "working-set":
            what, other, kept = f"{geometry.scored} in memory", "mirror-prox-one-pass", "no"
        least = geometry.cost(other, load).least
        instead = f"give {spell('memory', enough(least))} to" if least > load.memory else "use"
        or_else = ", or ingest the data" * (collection_of(load.dataset) is not None)
        reason = (
            f"{name} needs {spell('memory', enough(need))} for {what}, and {enough(load.memory)} are for it; "
            f"{instead} {other}, which keeps {kept} {geometry.scored}{or_else}"
        )
    if reason:
        raise UsageError(reason)
    return name, why


def find_abreast(classes: int, memory: int, cost_of: Callable[[int], LoadCost], default: int = 1) -> int:
    """How many classes share the memory side by side, from what so many of them take: as many as have all that they want, or
    else as can work, or else the ``default``.
    """
    counts = dict.fromkeys(-(-classes // turns) for turns in range(1, classes + 1))
    fitting = {count: cost for count in counts if (cost := cost_of(count)).least <= memory}
    return next((count for count, cost in fitting.items() if cost.enough), next(iter(fitting), default))


def abreast(geometry: Geometry, method: str, classes: int, dataset: Dataset, memory: int) -> int:
    """How many classes share the memory; the same on any threads. What ``auto`` takes where none fits keeps little."""
    auto = geometry.check_method(method, ("auto",)) == "auto"
    # with more threads a method needs no more memory
    name, load = "working-set" if auto else method, Load(dataset, memory, 64)
    default = classes if auto else 1
    return find_abreast(classes, memory, lambda count: geometry.cost(name, replace(load, classes=count)), default)


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
    """Project a run of methods side by side with a budget for each process, until a margin, or |Ax|, of ``margin``. ``threads``
    are those of each process that reads; by default as many as fit in this one. ``workers`` are worker processes. Each method
    is made for some ``classes``, and ends after ``max_passes``. Raises UsageError when the budget is too small for a block.
    """
    threads = threads or threads_that_fit(dataset, memory, threads_here())
    most = math.inf if max_passes is None else max_passes
    load = Load(dataset, memory // len(methods), threads * max(1, workers), classes, margin, most)
    return add_up(dataset, [geometry.cost(name, load) for name in methods], memory, workers, threads)


def project_soft(
    dataset: Dataset, method: str, options: SoftMarginOptions, memory: int, *, workers: int = 0, threads: int | None = None
) -> Projection:
    """The same of a soft margin."""
    # at the peak a new answer comes while the last one is still there
    own = 1.5 * SOFT_MARGINS[base_name(method)].cost(facts_of(dataset, memory), options.problems).kept
    # a weight as it is used, and on its way here
    weights = 0 if options.weight is None else 16 * dataset.n
    cost = LoadCost(own=own + weights, asked=weights + memory // 4)
    return add_up(dataset, [cost], memory, workers, threads or threads_that_fit(dataset, memory, threads_here()))


def add_up(dataset: Dataset, costs: Sequence[LoadCost], memory: int, workers: int, threads: int) -> Projection:
    """What methods side by side take, with what reads for them."""
    kept = cache_bytes(dataset, memory, threads, worker=workers > 0)
    own, late = sum(cost.own for cost in costs), max(cost.late for cost in costs)
    asked, late_worker = min(own, sum(cost.asked for cost in costs)), late
    if any(cost.folds for cost in costs):  # what they keep is where the points are, and gets the memory of the cache
        asked, late_worker = min(HOLD_BYTES, kept // 2 or HOLD_BYTES), own
    sums = sum(cost.sums for cost in costs)
    if not workers:
        sums = min(sums, max(sums, answer_bytes(memory)) // threads)
    scanning = threads * (thread_bytes(dataset) + sums + max(cost.thread for cost in costs))
    left = memory - scanning - kept - (asked if workers else own)
    tiles = int(max(0, min(left, max(cost.tiles for cost in costs))))
    first, later = read_bytes(dataset, kept, workers)
    if later:
        later = int(max(cost.reads for cost in costs) * later)
        first = max(first, later)
    held = held_bytes(dataset)
    reading = PROCESS_BYTES + held + sides_bytes(dataset, kept) + scanning + tiles
    here, worker = reading + own + max(kept, late), 0.0
    if workers:
        # and what a client of a cluster takes, with the scheduler of a local one
        here = PROCESS_BYTES + 20_000_000 + held + own + late
        worker = reading + asked + max(kept, late_worker)
    return Projection(int(here), int(worker), kept, tiles, first, later, dataset.kept_after)


def read_bytes(dataset: Dataset, kept: int, workers: int) -> tuple[int, int]:
    """Bytes that the first and a later read of everything take from storage, when each process keeps so many."""
    whole = dataset.bytes + dataset.sides_bytes
    block = dataset.block_bytes + dataset.block_rows * SIDES_WIDTH + HELD_BYTES
    blocks = dataset.blocks if kept >= whole else max(1, workers) * (dataset.divide(kept)[0] // block)
    first = 0 if dataset.in_memory else dataset.stored_bytes
    return first, max(0, first - blocks * dataset.block_bytes * first // dataset.bytes)


PATIENCE = 100
"""Passes of a run without an eps, at least."""


def bound_passes(costs: Mapping[str, LoadCost], *, widest: bool) -> tuple[int, str]:
    """A limit of passes where no |Ax| is an answer, so that methods end which name no conflict, and what is to be said of it.
    They are as many as methods usually take until the margin of the load, or at most take until the ``widest``.
    """
    usual = max((widest and cost.most) or cost.passes for cost in costs.values())
    limit = max(PATIENCE, math.ceil(usual))
    return limit, "" if {*costs} <= {*OWN_METHODS} else f"; at most {limit} passes, as neither eps nor max_passes is given"


def limit_passes(costs: Mapping[str, LoadCost], memory: int, max_passes: int | None) -> tuple[int | None, str]:
    """A limit of passes where methods with these costs remember them: so many as half of the memory of a class holds; and what
    is to be said of it, where methods usually take more. Raises UsageError when more passes were asked for, and would usually
    be made.
    """
    limit, said = max_passes, ""
    for method, cost in costs.items():
        each, room = cost.per_pass, memory // 2
        if not each or min(limit or math.inf, cost.remembered) * each <= room:
            continue
        fit = max(1, room // each)
        if limit is not None:
            needed = min(cost.passes, limit)
            if needed > fit:
                raise UsageError(
                    f"{method} keeps {each} bytes of each pass, {format_bytes(needed * each)} of {needed:.2g}, and half of "
                    f"{spell('memory')} is for it: say {spell('max_passes', fit)}, a larger {spell('eps')}, or another method"
                )
            continue
        limit = fit
        said = f"; at most {fit} passes, {each} bytes of each are kept" if cost.passes > fit else ""
    return limit, said
