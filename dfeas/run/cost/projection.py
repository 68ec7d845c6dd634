"""What a run on points, or on cones, will take: memory of each process, bytes and seconds of a pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from dfeas.data.dataset import SIDES_WIDTH, Dataset
from dfeas.engine.memory import POINT_BYTES, WEIGHING, cache_bytes, thread_bytes, threads_that_fit
from dfeas.engine.protocol import Engine
from dfeas.errors import UsageError
from dfeas.geometry.cones.choice import CONE_METHODS
from dfeas.geometry.cones.working_set import Rows
from dfeas.linalg.blas import processors
from dfeas.methods import ispvn, working_set
from dfeas.methods.protocol import Facts
from dfeas.methods.registry import METHODS
from dfeas.methods.soft_margin.band import DIRECT
from dfeas.methods.soft_margin.memory import kept_bytes, kept_points, least_memory, matrix_bytes, wanted
from dfeas.passes.protocol import AnyPass, Partial
from dfeas.passes.softmin import Softmin
from dfeas.problem import Request, SoftMarginOptions, facts_of

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

PROCESS_BYTES = 130_000_000
"""An idle process with its libraries, or an idle worker."""

CLIENT_BYTES = 20_000_000
"""What a client of a cluster, with the scheduler of a local one, takes beside that."""

DROPPING_PASSES = 10
"""More of them when memory holds less than half of the columns it wants: halfspace 1000 x 500,000 with 256 MB."""

HOLD_BYTES = 6 * (32 << 20)
"""What a worker reads ahead for a fold: held, on its way, and being folded."""


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
    dataset: Dataset,
    methods: Sequence[str],
    memory: int,
    margin: float,
    *,
    workers: int = 0,
    threads: int | None = None,
    max_passes: int | None = None,
) -> Projection:
    """Project a run of methods side by side with a budget for each process, until a margin, or |Ax|, of ``margin``.

    ``threads`` are those of each process that reads; by default as many as fit in this one. ``workers`` are worker processes.
    It ends after ``max_passes``.
    Raises UsageError when the budget is too small for a block.
    """
    threads = threads or threads_that_fit(dataset, memory, processors())
    facts = facts_of(dataset, memory // len(methods))
    kept = cache_bytes(dataset, memory, threads, worker=workers > 0)
    own = sum(_kept_bytes(method, dataset, facts, margin, max_passes) for method in methods)
    # weights come when the cache is gone
    weights = POINT_BYTES * dataset.n if set(methods) & set(WEIGHING) else 0
    reading = PROCESS_BYTES + threads * thread_bytes(dataset)
    first, later = read_bytes(dataset, kept, workers)
    if not workers:
        return Projection(int(reading + own + max(kept, weights)), 0, kept, first, later)
    if "online-perceptron" in methods:  # the carry is where the points are, and gets the memory of the cache
        worker = reading + min(HOLD_BYTES, kept // 2 or HOLD_BYTES) + max(kept, own)
    else:
        worker = reading + min(memory // 4, own) + max(kept, weights)
    return Projection(int(PROCESS_BYTES + CLIENT_BYTES + own + weights), int(worker), kept, first, later)


def _kept_bytes(method: str, dataset: Dataset, facts: Facts, margin: float, max_passes: int | None) -> float:
    """Bytes that a method keeps until a margin, or |Ax|, of ``margin``, or until a limit."""
    most = math.inf if max_passes is None else max_passes
    if dataset.cones is not None:
        return own_cone_bytes(method, dataset, facts, min(most, usual_cone_passes(method, facts, margin)))
    return own_bytes(method, facts, min(most, usual_passes(method, facts, margin)))


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


def usual_passes(method: str, facts: Facts, margin: float) -> float:
    """Passes until a margin, or |Ax|, of ``margin``, as they are measured."""
    if not method.startswith("working-set"):
        most = METHODS[method]().bound(facts, margin)
        return min(most, max(2.0, USUAL.get(method, 1.0) * most))
    share = working_set.sample_share(facts)
    passes = 2.0 if share == 1 else FULL_PASSES + share
    return passes + DROPPING_PASSES if working_set.fits(facts) and drops(facts) else passes


def columns(facts: Facts) -> int:
    """Columns that a working set usually gets."""
    return min(working_set.capacity(facts), working_set.usual_columns(facts))


def drops(facts: Facts) -> bool:
    """Whether a working set holds so few of the columns it wants that it drops some."""
    return 2 * columns(facts) < working_set.usual_columns(facts)


def pass_bytes(method: str, facts: Facts) -> int:
    """Bytes that a method keeps of each pass until it ends; 0 for one whose state has a size."""
    if method in WEIGHING and method != "ispvn":
        return 32 * facts.m
    return 16 if method == "normalized-perceptron" or method.startswith("von-neumann") else 0


def within_memory(asked: Request, methods: Sequence[str], facts: Facts) -> tuple[Request, str]:
    """What was asked, with a limit of passes where methods remember them: so many as half of the memory holds. And what is to
    be said of it, where methods usually take more until eps.

    Raises UsageError when more passes were asked for, and would usually be made.
    """
    said = ""
    for method in methods:
        each = pass_bytes(method, facts)
        if not each or (asked.max_passes or math.inf) * each <= 2 * facts.memory:
            continue
        fit, passes = max(1, 2 * facts.memory // each), usual_passes(method, facts, asked.eps)
        if asked.max_passes is not None:
            needed = min(passes, asked.max_passes)
            if needed > fit:
                raise UsageError(
                    f"{method} keeps {each} bytes of each pass, {needed * each / 1e9:.2g} GB of {needed:.2g}, and half of "
                    f"--memory is for that: choose --max-passes {fit}, a larger --eps, or another method"
                )
            continue
        asked = replace(asked, max_passes=fit)
        said = f"; at most {fit} passes, {each} bytes of each are kept" if passes > fit else ""
    return asked, said


def own_bytes(method: str, facts: Facts, passes: float) -> float:
    """Bytes that a method keeps."""
    if method.startswith("working-set"):
        return COPIES * columns(facts) * working_set.column_bytes(facts) + working_set.solver_bytes(facts)
    if method == "online-perceptron":
        return POINT_BYTES * facts.n
    if method == "ispvn":
        return 8 * facts.m * min(facts.m, ispvn.GRAM_FEATURES) * 4
    if method in WEIGHING:
        return pass_bytes(method, facts) * passes
    if method == "normalized-perceptron" or method.startswith("von-neumann"):
        return 8 * facts.m * min(passes, 4 * facts.m) + pass_bytes(method, facts) * passes
    return min(facts.memory, 64 * facts.m * max(1000, 20 * facts.m))


USUAL_OF_CONES = {
    "mirror-prox": 0.03,
    "mirror-prox-one-pass": 0.025,
    "mirror-prox-euclidean": 0.03,
    "mirror-prox-fixed": 0.2,
    "smooth-perceptron": 0.25,
    "perceptron": 0.4,
    "normalized-perceptron": 0.4,
    "von-neumann": 0.25,
    "von-neumann-away": 0.12,
}
"""Passes that a run takes, as a share of the bound of its theorem: those of points."""

FULL_PASSES_OF_CONES = 3.0
"""Of a working set of cones, with its sample: 2 to 6 in trials of all kinds, the hard ones too."""


def usual_cone_passes(method: str, facts: Facts, margin: float) -> float:
    """Passes until a margin, or |Ax|, of ``margin``."""
    if method == "working-set":
        return FULL_PASSES_OF_CONES
    most = CONE_METHODS[method]().bound(facts, margin)
    return min(most, max(2.0, USUAL_OF_CONES[method] * most))


def own_cone_bytes(method: str, dataset: Dataset, facts: Facts, passes: float) -> float:
    """Bytes that a method keeps."""
    assert dataset.cones is not None, "cones"
    if method == "working-set":
        return float(Rows(facts.m, facts.memory, dataset.cones.largest).usual_bytes)
    if method.replace("-euclidean", "") in WEIGHING:
        return 32 * facts.m * passes
    of_point = 8 * dataset.cones.rows / dataset.cones.many  # extreme points are remembered
    return 8 * facts.m * min(passes, 4 * facts.m) + (16 + of_point) * passes


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
    threads = threads or threads_that_fit(dataset, memory, processors())
    kept = cache_bytes(dataset, memory, threads, worker=workers > 0)
    facts, k = facts_of(dataset, memory // lanes), len(options.C) * (1 + options.folds)
    own = SOFT_COPIES * lanes * soft_own_bytes(method, facts, k)
    weights = 0 if options.weight is None else WEIGHT_BYTES * dataset.n
    reading = PROCESS_BYTES + threads * thread_bytes(dataset) + weights
    first, later = read_bytes(dataset, kept, workers)
    if not workers:
        return Projection(int(reading + own + kept), 0, kept, first, later)
    return Projection(
        int(PROCESS_BYTES + CLIENT_BYTES + own + weights), int(reading + min(memory // 4, own) + kept), kept, first, later
    )


def soft_own_bytes(method: str, facts: Facts, k: int) -> float:
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
