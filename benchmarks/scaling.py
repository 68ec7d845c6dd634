"""What a pass costs on a cluster: processor time of each process, measured here, and what it says of 1, 10 and 100 TB.

    python benchmarks/scaling.py --workers 1,2,4,8,16,32

A pass is ranges of blocks, which workers read and scan. Each leaves some nodes of the fixed tree: answers to k questions about
m features, 8 m k bytes. Where they would come to 4 MB at the driver, workers merge them first, eight at a time.

Measured is processor time, user and system, of the workers together, the scheduler and the driver, in processes of their own:
clock time would say how busy this machine is, and how few its cores. What they spend idle in the same time is taken off; Dask's
profiles are off, and ticks of its loops rare, as 32 idle workers would keep a core busy. Other load makes all costs larger, and
so do workers that share memory and its caches: a share of reading more for each doubling of the workers, which is not there in
what is said of a cluster.

The model is linear in its costs, none below zero. Each is fitted where little else happens: reading and scanning in the thread
of one worker; tasks, bytes and merges in passes over blocks of a few points; what reading takes longer in a pass in whole ones.
Those over other data, with other m, k and blocks, are held out, and all passes on the largest number of workers. On a cluster,
which is extrapolated:

    pass    = max(disk, scan) + network + scheduler + driver
    disk    = the bytes of a machine's workers, from its own disk, or over its link
    scan    = what a worker spends, one thread each: reading from the page cache, scanning, tasks, merges
    network = a question above 64 kB to each worker, from the one that got it; the merges, level by level; the answer

The parts are added up, as if scheduler and driver waited for the last worker. Not in it: latency, tens of milliseconds a pass;
workers of a machine that slow each other down; storage that is slower when all ask; workers that fail.
"""

from __future__ import annotations

import os
import sys
import tempfile
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import resources
from itertools import product
from math import log2
from pathlib import Path
from time import clock_gettime, perf_counter, process_time, sleep, thread_time
from unittest.mock import patch

import numpy as np
from distributed import Client
from distributed.deploy.subprocess import SubprocessCluster
from numpy.typing import NDArray
from scipy.optimize import nnls

from dfeas.data.generate.points import Instance, generate
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.layout import chunks_together, default_block_rows, scanned_rows
from dfeas.data.storage.readers import Buffers, Cost
from dfeas.engine.anchors import RANGES_PER_THREAD
from dfeas.engine.clusters import load_configuration
from dfeas.engine.distributed import FAN_IN, INLINE_BYTES, DaskEngine
from dfeas.engine.scan import cut, pieces, scan_range
from dfeas.passes.softmin import Softmin

PROCESSES = ("workers", "scheduler", "driver")
CLOSE = 0.25
SHARED = "second of reading, each doubling of workers here"
WIDTH = 4  # bytes of a float32
ROWS = 4  # of blocks that take nothing to read
REST = 2.0  # seconds that a cluster is watched idle
MANY = 4  # ranges that are measured at once, at least
PART = 16  # of chunks as ingest makes them
QUIET = {"DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False", "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s"}
SHAPES = tuple(product((20, 100, 1000, 10_000), (1, 10)))  # features and questions that are fitted
HOPS = 2  # of what is gathered: to the scheduler, and from it
HELD_OUT = ((30, 20), (300, 3), (3000, 5))


@dataclass(frozen=True)
class Pass:
    """One softmin pass over float32 points, and how often it meets each cost."""

    m: int
    k: int
    rows: int  # of a stored chunk
    chunks: int
    workers: int = 1
    asked: int = 0  # ranges a worker; 0: as many as the engine takes

    @property
    def points(self) -> int:
        return self.chunks * self.rows

    @property
    def bytes(self) -> int:
        return self.points * self.m * WIDTH

    @cached_property
    def blocks(self) -> int:
        """What is read and scanned at once: a chunk, or several small ones."""
        return -(-self.chunks // chunks_together(self.rows, scanned_rows(self.m, WIDTH, self.points), self.points))

    @cached_property
    def edges(self) -> NDArray[np.int64]:
        """First blocks of the ranges, and the end."""
        ranges = self.asked * self.workers or pieces(self.bytes, self.workers, RANGES_PER_THREAD)
        return np.array([first for first, _ in cut(self.blocks, ranges)] + [self.blocks])

    @property
    def ranges(self) -> int:
        return len(self.edges) - 1

    @property
    def question_bytes(self) -> int:
        return 8 * (self.m + 1) * self.k

    @property
    def node_bytes(self) -> int:
        return (8 * self.m + 24) * self.k

    @property
    def scattered(self) -> bool:
        return self.question_bytes > INLINE_BYTES

    @cached_property
    def levels(self) -> list[NDArray[np.int64]]:
        """Edges of what is merged at each level, until one has all blocks; none where there is a single range."""
        found, edges = [], self.edges
        while len(edges) > 2:
            found.append(edges)
            edges = np.append(edges[:-1:FAN_IN], self.blocks)
        return found

    @property
    def merges(self) -> int:
        return sum(-(-(len(edges) - 1) // FAN_IN) for edges in self.levels)

    @cached_property
    def gathered(self) -> int:
        """Nodes that the driver gets."""
        return nodes(np.array([0, self.blocks]) if self.levels else self.edges)

    def counts(self, part: str) -> dict[str, float]:
        mk, points, tasks = self.m * self.k, self.points, self.ranges + self.merges
        busy = min(self.workers, self.ranges)
        inline, once = (0, self.question_bytes) if self.scattered else (tasks * self.question_bytes, 0)
        merged = sum(nodes(edges) for edges in self.levels)  # nodes that workers send each other
        central = {
            "pass": 1,
            "pass with a large question": self.scattered,
            "task": tasks,
            "byte of questions": inline + once,
            "byte of answers": self.gathered * self.node_bytes,
        }
        found: dict[str, dict[str, float]] = {
            "reading": {"byte": self.bytes, "point": points, "chunk": self.chunks, "block": self.blocks},
            "scanning": {
                "byte": self.bytes,
                "byte, each question": self.bytes * self.k,
                "point": points,
                "point, each question": points * self.k,
                "block": self.blocks,
                "block, each question": self.blocks * self.k,
                "number of a block's answer": self.blocks * mk,
            },
            "workers": {
                "worker that has a task": busy,
                "worker that has a task, with a large question": busy * self.scattered,
                "task": tasks,
                "byte of questions": inline + self.workers * once,
                "byte of answers": (self.gathered + 2 * merged) * self.node_bytes,
                "number of answers merged": merged * mk,
            },
            "scheduler": {**central, "worker that has a task": busy},
            "driver": {**central, "node": self.gathered},
        }
        return found[part]


Measured = tuple[Pass, NDArray[np.float64], bool]
"""A pass, the processor seconds of workers, scheduler and driver, and whether it is held out."""


def nodes(edges: NDArray[np.int64]) -> int:
    """Nodes of the fixed tree that ranges of blocks leave."""
    first, stop, found = edges[:-1], edges[1:], 0
    while (first < stop).any():
        left, right = (first < stop) & (first % 2 == 1), (first < stop) & (stop % 2 == 1)
        found += int(left.sum() + (right & (first + left < stop)).sum())
        first, stop = (first + left) // 2, (stop - right) // 2
    return found


@dataclass
class Model:
    """Seconds of each cost of each part."""

    costs: dict[str, dict[str, float]] = field(default_factory=dict)

    def counts(self, part: str, one: Pass) -> dict[str, float]:
        """Of workers also what reading takes longer in a pass than alone, and the more of them share memory and its caches."""
        if part != "workers":
            return one.counts(part)
        reading = self.seconds("reading", one)
        return one.counts(part) | {"second of reading": reading, SHARED: reading * log2(one.workers)}

    def fit(self, part: str, passes: Sequence[Pass], seconds: Sequence[float]) -> None:
        """Least squares of relative errors; of workers what reading and scanning leave."""
        rest = 1 - np.array([self.work(one) if part == "workers" else 0.0 for one in passes]) / seconds
        rows = np.array([list(self.counts(part, one).values()) for one in passes]) / np.array(seconds)[:, None]
        size = np.maximum(rows.max(axis=0), 1e-300)  # some costs are never met
        self.costs[part] = dict(zip(self.counts(part, passes[0]), nnls(rows / size, rest)[0] / size, strict=True))

    def seconds(self, part: str, one: Pass, *, here: bool = True) -> float:
        """Of one part; reading and scanning are apart from what else workers do. ``here`` all share one machine."""
        return sum(self.costs[part][name] * value for name, value in self.counts(part, one).items() if here or name != SHARED)

    def work(self, one: Pass) -> float:
        return self.seconds("reading", one) + self.seconds("scanning", one)

    def process(self, name: str, one: Pass) -> float:
        """Seconds of the workers together, of the scheduler, or of the driver."""
        return self.seconds(name, one) + (self.work(one) if name == "workers" else 0.0)


def limits(model: Model, one: Pass, storage: str, options: Namespace) -> dict[str, float]:
    """Seconds of each part of a pass on a cluster."""
    network, disk = options.network_gbit * 1e9 / 8, options.disk_gb_per_second * 1e9
    longest = int(np.diff(one.edges).max()) * -(-one.ranges // one.workers) / one.blocks  # share of a worker
    machine = longest * one.bytes * min(options.workers_per_machine, one.workers)
    device = machine / {"disk": disk, "network": network, "memory": np.inf}[storage]
    scan = longest * model.work(one) + model.seconds("workers", one, here=False) / one.workers
    merging = sum(FAN_IN * nodes(edges) / (len(edges) - 1) for edges in one.levels)
    sent = one.scattered * one.workers * one.question_bytes + (merging + HOPS * one.gathered) * one.node_bytes
    found = {"disk": 0.0, "scan": 0.0, "network": sent / network}
    found["scan" if scan >= device else storage] += max(scan, device)
    return found | {name: model.process(name, one) for name in ("scheduler", "driver")}


def stored(folder: Path, one: Pass) -> Path:
    """The points of a pass."""
    path = folder / f"{one.m}-{one.rows}-{one.chunks}"
    if not path.exists():
        generate(Instance("halfspace", one.m, one.points, block_rows=one.rows), path)
    blocks = open_source(Source(DataSpec(path, intercept=False))).blocks
    assert blocks == one.blocks, f"{path.name} has {blocks} blocks, and {one.blocks} are counted"
    return path


def softmin(m: int, k: int) -> Softmin:
    Y = np.random.default_rng(0).standard_normal((m, k))
    return Softmin(Y / np.linalg.norm(Y, axis=0), np.full(k, 0.1))


def whole(m: int, k: int, megabytes: float, part: int = 1, workers: int = 1) -> Pass:
    """A pass as the engine cuts it, over chunks as ingest makes them, or a part of that."""
    rows = max(1, default_block_rows(m, WIDTH, sys.maxsize) // part)
    return Pass(m, k, rows, max(2, round(megabytes * 1e6 / (rows * m * WIDTH))), workers)


def least(actions: Sequence[Callable[[], Sequence[float]]], turns: int) -> NDArray[np.float64]:
    """The least of each figure; every turn goes through all actions, so that a busy moment spoils no action for good."""
    for action in actions:
        action()  # modules are loaded, and checksums verified
    return np.min([[action() for action in actions] for _ in range(turns)], axis=0)


def apart(path: str, m: int, k: int) -> tuple[float, float]:
    """Processor seconds of reading, and of the rest of a scan, in the thread of a worker."""
    dataset, buffers, clocks = open_source(Source(DataSpec(path, intercept=False))), Buffers(), [0.0]
    for _ in range(2):  # the first time checksums are verified
        clocks = [thread_time()]
        for _ in dataset.read_blocks(range(dataset.blocks), Cost(), buffers=buffers):
            pass
        clocks.append(thread_time())
        scan_range(dataset, 0, dataset.blocks, softmin(m, k))
        clocks.append(thread_time())
    reading, both = np.diff(clocks).tolist()
    return reading, max(1e-9, both - reading)


def measure_work(client: Client, folder: Path, model: Model, options: Namespace) -> None:
    """What reading and scanning take a worker that does nothing else."""
    passes = [whole(m, k, options.mb, part) for m, k in SHAPES for part in (1, 2 * PART)]
    passes += [Pass(m, k, ROWS, max(options.blocks)) for m, k in SHAPES]
    tasks = [partial(client.submit, apart, str(stored(folder, one)), one.m, one.k, pure=False) for one in passes]
    reading, scanning = least([lambda task=task: task().result() for task in tasks], options.turns).T
    model.fit("reading", passes, reading)
    model.fit("scanning", passes, scanning)


@dataclass
class Cluster:
    """A scheduler and workers of one thread, in processes of their own, whose numbers these are."""

    client: Client
    scheduler: int
    workers: list[int]
    idle: NDArray[np.float64]  # processor seconds a second

    @classmethod
    def of(cls, client: Client, workers: int) -> Cluster:
        """As many workers as that."""
        client.cluster.scale(workers)
        client.wait_for_workers(workers, timeout=300)
        here = cls(client, client.run_on_scheduler(os.getpid), list(client.run(os.getpid).values()), np.zeros(3))
        before = here.clocks()
        sleep(REST)
        here.idle = (here.clocks() - before) / REST
        return here

    def clocks(self) -> NDArray[np.float64]:
        """Processor seconds of the workers, the scheduler, and this process: Linux has a clock for each process, which
        clock_getcpuclockid(3) names so.
        """
        scheduler, *workers = (clock_gettime((~process << 3) | 2) for process in (self.scheduler, *self.workers))
        return np.array([sum(workers), scheduler, process_time()])

    def run(self, engine: DaskEngine, one: Pass) -> NDArray[np.float64]:
        """Processor seconds of a pass; short ones are repeated."""
        question, passes = softmin(one.m, one.k), max(1, MANY // one.ranges)
        with ExitStack() as stack:
            if one.asked:
                stack.enter_context(patch("dfeas.engine.scan.SHORT_BYTES", 0))
                stack.enter_context(patch("dfeas.engine.anchors.RANGES_PER_THREAD", one.asked))
            before, began = self.clocks(), perf_counter()
            for _ in range(passes):
                engine.run(question)
            return (self.clocks() - before - self.idle * (perf_counter() - began)) / passes


@contextmanager
def subprocesses() -> Iterator[Client]:
    """A cluster without workers, as we ship its configuration."""
    with ExitStack() as stack:
        shipped = stack.enter_context(resources.as_file(resources.files("dfeas.engine") / "dask.yaml"))
        allocation = {name.split(".")[-1]: str(value) for name, value in load_configuration().items() if "pre-spawn" in name}
        paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
        more = {**allocation, **QUIET, "DASK_CONFIG": str(shipped), "PYTHONPATH": paths}
        stack.enter_context(patch.dict(os.environ, more))
        own = {"memory_limit": 0, "local_directory": stack.enter_context(tempfile.TemporaryDirectory())}
        how = {"threads_per_worker": 1, "dashboard_address": None, "worker_class": "distributed.Worker", "worker_kwargs": own}
        yield stack.enter_context(Client(stack.enter_context(SubprocessCluster(n_workers=0, **how))))


def measure(folder: Path, model: Model, options: Namespace) -> list[Measured]:
    """Fit the model; passes over data that takes nothing to read, but those on the largest cluster, and over other data."""
    found: list[Measured] = []
    with subprocesses() as client:
        for workers in options.workers:
            here = Cluster.of(client, workers)
            if not found:
                measure_work(client, folder, model, options)
            asked = {blocks: blocks // min(options.blocks) for blocks in options.blocks}
            tasks = [Pass(m, k, ROWS, blocks, workers, each) for blocks, each in asked.items() for m, k in SHAPES]
            fitted = [*tasks, *(whole(m, k, options.mb, workers=workers) for m, k in SHAPES)]
            over = [whole(m, k, options.mb, part, workers) for part in (1, PART) for m, k in HELD_OUT]
            actions = []
            for one in fitted + over:
                source = Source(DataSpec(stored(folder, one), intercept=False))
                actions.append(partial(here.run, DaskEngine(client, source, open_source(source)), one))
            seconds, last = least(actions, options.turns), workers == max(options.workers)
            held = [last] * len(fitted) + [True] * len(over)
            found += list(zip(fitted + over, seconds, held, strict=True))
    for number, name in enumerate(PROCESSES):
        model.fit(name, *zip(*[(one, took[number]) for one, took, held in found if not held], strict=True))
    shares = ", ".join(f"{name} {100 * share:.1f} %" for name, share in zip(PROCESSES, here.idle, strict=True))
    print(f"{workers} workers, when there is nothing to do, of a processor: {shares}. It was taken off.")
    return found


def print_costs(model: Model) -> None:
    print("\n### Costs\n\n| of | each | microseconds of the processor |\n|---|---|---|")
    for part, name, seconds in ((part, *cost) for part, costs in model.costs.items() for cost in costs.items()):
        print(f"| {part} | {name} | {seconds * 1e6:.3g} |")


def print_errors(model: Model, measured: Sequence[Measured]) -> None:
    """What was predicted beside what was measured."""
    print("\n### Passes that the fit has not seen: milliseconds, predicted / measured, and the error of their sum\n")
    print(f"| m | k | MB | chunks | blocks | workers | ranges | merges | {' | '.join(PROCESSES)} | sum | error |")
    print("|---|---|---|---|---|---|---|---|" + "---|" * (len(PROCESSES) + 2))
    errors: list[NDArray[np.float64]] = []
    for one, took, _ in (each for each in measured if each[2]):
        said = np.array([model.process(name, one) for name in PROCESSES])
        pairs = [*zip(said, took, strict=True), (said.sum(), took.sum())]
        errors.append(np.array([a / b - 1 for a, b in pairs]))
        sizes = f"{one.bytes / 1e6:.0f} | {one.chunks} | {one.blocks} | {one.workers} | {one.ranges} | {one.merges}"
        cells = " | ".join(f"{1e3 * a:.3g} / {1e3 * b:.3g}" for a, b in pairs)
        print(f"| {one.m} | {one.k} | {sizes} | {cells} | {100 * errors[-1][-1]:+.0f} % |")
    size = np.abs(errors)
    print(f"\n| error | {' | '.join(PROCESSES)} | sum |\n|---|---|---|---|---|")
    print(f"| within {CLOSE:.0%} | {' | '.join(f'{n} of {len(size)}' for n in (size <= CLOSE).sum(axis=0))} |")
    for name, cells in (("median", np.median(size, axis=0)), ("greatest", size.max(axis=0))):
        print(f"| {name} | {' | '.join(f'{cell:.0%}' for cell in cells)} |")


def print_predictions(model: Model, options: Namespace) -> None:
    print("\n### Extrapolated: seconds of a pass, and its limit\n")
    rates = f"links of {options.network_gbit:g} Gbit/s, disks of {options.disk_gb_per_second:g} GB/s"
    print(f"Machines of {options.workers_per_machine} workers of one thread, {rates},")
    print(f"page caches of {options.memory_gb:g} GB; - where the points would not fit there.\n")
    print("| TB | points come from | m | k |", *(f"{count} workers |" for count in options.cluster))
    print("|---|---|---|---|" + "---|" * len(options.cluster))
    for size, storage, (m, k) in product(options.tb, ("disk", "network", "memory"), ((100, 1), (1000, 10), (10_000, 10))):
        cells = []
        for workers in options.cluster:
            found = limits(model, whole(m, k, 1e6 * size, 1, workers), storage, options)
            fits = storage != "memory" or -(-workers // options.workers_per_machine) * options.memory_gb >= 1000 * size
            cells.append(f"{sum(found.values()):.3g} {max(found, key=found.__getitem__)}" if fits else "-")
        print(f"| {size} | {storage} | {m} | {k} | {' | '.join(cells)} |")


def main(words: list[str] | None = None) -> None:
    def numbers(text: str) -> list[int]:
        return [int(word) for word in text.split(",")]

    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=numbers, default=[1, 2, 4, 8, 16, 32], help="ascending; the last is held out")
    parser.add_argument("--mb", type=float, default=256.0, help="of data to read and scan")
    parser.add_argument(
        "--blocks", type=numbers, default=[32, 256], help="of passes over little data: a range a worker, and more"
    )
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--dir", default=None, help="where the data is made")
    parser.add_argument("--cluster", type=numbers, default=[10, 100, 1000], help="workers to predict")
    parser.add_argument("--tb", type=numbers, default=[1, 10, 100], help="to predict")
    parser.add_argument("--workers-per-machine", type=int, default=8, help="which share its link and disk")
    parser.add_argument("--network-gbit", type=float, default=10.0)
    parser.add_argument("--disk-gb-per-second", type=float, default=2.0)
    parser.add_argument("--memory-gb", type=float, default=256.0, help="of a machine, for its page cache")
    options = parser.parse_args(words)
    model = Model()
    with tempfile.TemporaryDirectory(dir=options.dir) as folder:
        measured = measure(Path(folder), model, options)
    print_costs(model)
    print_errors(model, measured)
    print_predictions(model, options)


if __name__ == "__main__":
    main()
