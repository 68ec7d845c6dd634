"""What a pass costs on a cluster: costs measured here, a model fitted to them, and what it says of 1 TB and 10 TB.

    python benchmarks/scaling.py --workers 1,2,4,8 --workers-per-machine 8 --network-gbit 10 --disk-gb-per-second 2

Measured, the least of some turns each, with a scheduler and workers in processes of their own on loopback:
1. reading from the page cache and scanning, in one thread, for several m features and k questions;
2. passes that read nothing: their tasks answer with the nodes of the tree that a range of real blocks would leave, so that
   only the scheduler, the client, the questions sent, the answers gathered and the merges of the driver are left. The
   number of tasks, workers and blocks, m and k vary; there may be more workers than cores, as they have little to do;
3. bandwidth of large arrays between the processes, one cold read, and the CPU time of scheduler and driver.

The model is linear in its costs, none below zero, found by least squares of logarithms. It is held against cases that
the fit has not seen: other m, k and sizes, the largest number of workers, and whole passes over data.

    pass    = work + tasks + network + fan-in
    work    = max(device, copies + scans), for the longest ranges: the kernel reads ahead while threads copy and scan
    tasks   = a fixed cost, costs of each task and worker, and of the bytes of small questions, which travel in each task
    network = the bytes of a large question to each worker, all from the one that got it first
    fan-in  = max(CPU, link) of what is gathered, through the scheduler, so twice over a link, + merges at the driver

Extrapolated, not measured: links and disks (the options say how fast they are; a shared storage keeps up with all links),
all counts beyond those measured, and that workers of one machine do not slow each other down. Tasks are assumed not to
overlap with work, and all processes share the cores here: on a cluster both cost less. The scheduler's CPU time, which is
printed, is what stays. No worker fails. It takes five minutes on two busy cores; other load makes every cost larger.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import resources
from pathlib import Path
from time import perf_counter, process_time
from typing import Any
from unittest.mock import patch

import numpy as np
import psutil
from distributed import Client
from scipy.optimize import least_squares, nnls
from threadpoolctl import threadpool_limits

from dfeas.data.dataset import Dataset
from dfeas.data.generate.points import Instance, generate
from dfeas.data.open import open_source
from dfeas.data.source import Source
from dfeas.data.storage.layout import BLOCK_BYTES
from dfeas.data.storage.readers import Cost
from dfeas.engine import distributed
from dfeas.engine.configuration import configuration
from dfeas.engine.local import LocalEngine
from dfeas.engine.scan import cut, join
from dfeas.passes.softmin import Softmin, SoftminPartial

FEATURES, QUESTIONS, WORKERS = (100, 1000, 10_000), (1, 10), (10, 50, 100, 200, 500)
HOPS = 2  # of what is gathered: to the scheduler, and from it
SHAPES = [(m, k) for m in FEATURES for k in QUESTIONS]


@cache
def count_nodes(blocks: int, ranges: int, grain: int) -> int:
    """Nodes of the fixed tree that all ranges leave, their edges rounded to multiples of ``grain`` blocks."""
    edges = np.array([first for first, _ in cut(blocks, ranges)]) // grain * grain
    first, stop, found = edges, np.append(edges[1:], blocks), 0
    while (first < stop).any():
        left, right = (first < stop) & (first % 2 == 1), (first < stop) & (stop % 2 == 1)
        found += int(left.sum() + (right & (first + left < stop)).sum())
        first, stop = (first + left) // 2, (stop - right) // 2
    return found


@dataclass(frozen=True)
class Pass:
    """One softmin pass over float32 points, and how often it meets each cost."""

    m: int
    k: int
    blocks: int
    workers: int
    tasks: int
    bytes: float = 0.0
    grain: int = 1  # edges of ranges are multiples of it
    merged: int = 1  # ranges whose nodes a worker would merge before the driver sees them

    @property
    def question_bytes(self) -> int:
        return 8 * (self.m + 1) * self.k

    @property
    def nodes(self) -> int:
        return count_nodes(self.blocks, -(-self.tasks // self.merged), self.grain)

    @property
    def scattered(self) -> bool:
        return self.question_bytes > distributed.INLINE_BYTES

    @property
    def gathered(self) -> float:
        """Bytes of all nodes."""
        return self.nodes * (8 * self.m + 24) * self.k

    def counts(self, *parts: str) -> dict[str, float]:
        points, mk = self.bytes / (4 * self.m), self.m * self.k
        inline = 0 if self.scattered else self.tasks * self.question_bytes
        tasks = self.tasks * (1 + (self.merged > 1) / self.merged)
        found = {
            "reading": {"byte read": self.bytes + 9 * points},  # labels and norms as if they were read each time
            "scanning": {
                "byte scanned": self.bytes,
                "byte scanned, for each k": self.bytes * self.k,
                "point scanned": points,
                "point scanned, for each k": points * self.k,
                "block scanned, for each m k": self.blocks * mk,
            },
            "tasks": {
                "pass": 1,
                "pass that scatters its question": self.scattered,
                "task": tasks,
                "worker": self.workers,
                "byte of questions in tasks": inline,
            },
            "gathering": {"node gathered": self.nodes, "byte gathered": self.gathered},
            "merging": {"node merged": self.nodes, "m k of a node merged": self.nodes * mk},
        }
        return {name: value for part in parts for name, value in found.get(part, {}).items()}


@dataclass
class Model:
    """Seconds of each cost, and the cases that they are fitted to or held against."""

    cases: list[tuple[tuple[str, ...], Pass, float, bool]] = field(default_factory=list)  # (.., seconds, fitted)
    costs: dict[str, float] = field(default_factory=dict)

    def fit(self) -> None:
        for parts in dict.fromkeys(case[0] for case in self.cases):
            rows = [(what.counts(*parts), seconds) for had, what, seconds, fitted in self.cases if had == parts and fitted]
            matrix = np.array([[value / seconds for value in row.values()] for row, seconds in rows])
            if rows:
                size = np.maximum(matrix.max(axis=0), 1e-300)
                # logarithms: a busy moment counts no more than a quiet one
                start = nnls(matrix / size, np.ones(len(rows)))[0] + 1e-6
                found = least_squares(lambda x, of=matrix / size: np.log(of @ x), start, bounds=(0, np.inf), loss="soft_l1").x
                self.costs |= zip(rows[0][0], np.where(found > 1e-5, found, 0.0) / size, strict=True)

    def seconds(self, what: Pass, *parts: str) -> float:
        return float(sum(self.costs[name] * value for name, value in what.counts(*parts).items()))


@dataclass(frozen=True)
class Place:
    """A cluster. Bandwidths are bytes a second, of a machine."""

    threads: int  # of a worker
    workers_per_machine: int
    network: float
    disk: float
    storage: str = "cache"  # or "disk": each machine's own; or "network"


def terms(what: Pass, model: Model, place: Place) -> dict[str, float]:
    """Seconds that add up to a pass."""
    waves = -(-what.tasks // (what.workers * place.threads))
    share = min(1.0, (-(-what.blocks // what.tasks) + what.grain - 1) * waves / what.blocks)  # of the data, for one thread
    copies, scans = share * model.seconds(what, "reading"), share * model.seconds(what, "scanning")
    machine = share * what.bytes * place.threads * min(what.workers, place.workers_per_machine)
    device = machine / {"network": place.network, "disk": place.disk, "cache": np.inf}[place.storage]
    found = {"reading": copies, "scanning": scans, "network": 0.0}
    if device > copies + scans:
        found = {"reading": 0.0, "scanning": 0.0, "network": 0.0}
        found["network" if place.storage == "network" else "reading"] = device
    found["network"] += what.scattered * what.workers * what.question_bytes / place.network
    found["network"] += (what.merged > 1) * what.merged * what.gathered / what.nodes * np.log2(what.blocks) / place.network
    found["scheduler's tasks"] = model.seconds(what, "tasks")
    gathering = max(model.seconds(what, "gathering"), HOPS * what.gathered / place.network)
    return found | {"driver's fan-in": gathering + model.seconds(what, "merging")}


def without_reading(dataset: Dataset, first: int, stop: int, question: Softmin) -> tuple[Any, Cost]:
    """The nodes that these blocks would leave."""
    (m, k), found = question.Y.shape, []
    while first < stop:
        level = (stop - first).bit_length() - 1
        level = min(level, (first & -first).bit_length() - 1) if first else level
        one = SoftminPartial(np.zeros(k), np.zeros(k, np.int64), np.ones(k), np.ones((k, m)))
        found.append((level, first >> level, one))
        first += 1 << level
    return found, Cost()


def timed(action: Callable[[], object]) -> float:
    began = perf_counter()
    action()
    return perf_counter() - began


def least(actions: Sequence[Callable[[], Sequence[float]]], turns: int) -> list[list[float]]:
    """The least of each figure; every turn goes through all actions, so that a busy moment spoils no action for good."""
    return np.min([[action() for action in actions] for _ in range(turns)], axis=0).tolist()


def softmin(m: int, k: int) -> Softmin:
    Y = np.random.default_rng(0).standard_normal((m, k))
    return Softmin(Y / np.linalg.norm(Y, axis=0), np.full(k, 0.1))


def in_process(engine: LocalEngine, question: Softmin) -> tuple[float, float]:
    """Seconds of reading and of the rest."""
    engine.run(question)
    return engine.cost.read_seconds, engine.cost.wall_seconds - engine.cost.read_seconds


def measure_work(folder: Path, model: Model, megabytes: float, turns: int) -> list[tuple[Pass, Path]]:
    """Reading and scanning, in one thread of this process. Returns what was scanned, and where it is."""
    made, actions = [], []
    for m, k, size in [*((*shape, megabytes) for shape in SHAPES), (300, 3, megabytes), (3000, 5, 4 * megabytes)]:
        path = folder / f"{m}-{size}"
        if not path.exists():
            generate(Instance("halfspace", m, max(200, int(size * 1e6 / 4 / m))), path)
        dataset = open_source(Source(str(path)))
        actions.append(partial(in_process, LocalEngine(dataset, 1), softmin(m, k)))
        actions[-1]()  # checksums are verified on first touch
        made.append((Pass(m, k, dataset.blocks, 1, 1, dataset.bytes), path))
    for (what, _), (reading, scanning) in zip(made, least(actions, turns), strict=True):
        fitted = (what.m, what.k) in SHAPES
        model.cases += [(("reading",), what, reading, fitted), (("scanning",), what, scanning, fitted)]
    return made


def cold_read(path: Path) -> float:
    """Bytes a second, one file after the other."""
    os.sync()
    files = [file for file in (path / "X").glob("c.*") if file.is_file()]
    for file in files:
        with file.open("rb") as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return sum(file.stat().st_size for file in files) / timed(lambda: [file.read_bytes() for file in files])


@contextmanager
def program(environment: dict[str, str], name: str, *words: str) -> Iterator[psutil.Process]:
    """One of Dask's, in a process of its own."""
    command = [sys.executable, "-m", f"distributed.cli.dask_{name}", "--host", "127.0.0.1", "--no-dashboard", *words]
    started = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield psutil.Process(started.pid)
    finally:
        started.kill()  # it has no children, and its files are in a folder of ours
        started.wait()


def whole_pass(engine: distributed.DaskEngine, what: Pass) -> list[float]:
    return [timed(lambda: engine.run(softmin(what.m, what.k)))]


def empty_pass(engine: distributed.DaskEngine, what: Pass) -> tuple[float, float]:
    """Seconds of sending and gathering, and of merging, for a pass that reads nothing."""
    # by reference, as the engine's own functions travel, also when this file is the main program
    function = importlib.import_module("scaling").without_reading
    question = softmin(what.m, what.k)
    with patch.object(distributed, "RANGES_PER_THREAD", what.tasks // what.workers):
        began = perf_counter()
        scanned = engine.map(function, question, count=what.blocks)
        sent = perf_counter()
    join(question, scanned)
    return sent - began, perf_counter() - sent


def empty_passes(workers: int, tasks: list[int]) -> Iterator[Pass]:
    """Many tasks with small answers, fewer with larger ones."""
    for count in (max(1, count // workers) * workers for count in tasks):
        yield from (Pass(*shape, workers, count) for shape in ((10, 1, count), (10, 1, 61 * count), (1000, 1, count)))
        larger = (Pass(m, k, 61 * count, workers, count) for m, k in SHAPES)
        yield from (what for what in larger if what.gathered < 5e7 and what.nodes < 500)


def bandwidths(client: Client) -> list[float]:
    """Seconds for 64 MB: worker to driver through the scheduler, straight, and worker to worker."""
    array = np.zeros(8_000_000)
    first, *_, last = [*client.nthreads()] * 2
    held = [client.scatter(array, workers=[first], hash=False) for _ in range(3)]
    found = [timed(lambda direct=direct, i=i: client.gather(held[i], direct=direct)) for i, direct in enumerate((False, True))]
    return [*found, timed(client.submit(np.size, held[2], workers=[last], pure=False).result)]


def measure_passes(
    client: Client, made: list[tuple[Pass, Path]], model: Model, tasks: list[int], turns: int, fitted: bool
) -> Pass:
    """Passes that read nothing, and whole ones with one and two workers. Returns the one that gathers much."""
    workers = len(client.nthreads())
    engines = [distributed.DaskEngine(client, s, open_source(s)) for s in (Source(str(path)) for _, path in made)]
    cases = [*empty_passes(workers, tasks), heavy := Pass(3000, 5, 244 * workers, workers, 4 * workers)]
    actions = [partial(empty_pass, engines[0], what) for what in cases]
    least(actions, 1)
    for what, (sending, merging) in zip(cases, least(actions, turns), strict=True):
        seen = fitted and what is not heavy
        model.cases += [(("tasks", "gathering"), what, sending, seen), (("merging",), what, merging, seen)]
    if workers <= 2:
        actions = [partial(whole_pass, engine, what) for engine, (what, _) in zip(engines, made, strict=True)]
        least(actions, 1)
        for (what, _), (seconds,) in zip(made, least(actions, turns), strict=True):
            ranges = len(cut(what.blocks, distributed.RANGES_PER_THREAD * workers))
            model.cases.append((("whole pass",), replace(what, workers=workers, tasks=ranges), seconds, False))
    return heavy


def measure_links(client: Client, scheduler: psutil.Process, path: Path, heavy: Pass, tasks: int, turns: int) -> None:
    """Prints CPU times and bandwidths."""
    engine = distributed.DaskEngine(client, Source(str(path)), open_source(Source(str(path))))
    workers = heavy.workers
    many = Pass(10, 1, 61 * tasks, workers, max(1, tasks // workers) * workers)
    clocks = (perf_counter, lambda: sum(scheduler.cpu_times()[:2]), process_time)
    before = [clock() for clock in clocks]
    for _ in range(turns):
        empty_pass(engine, many)
    used = " | ".join(f"{(clock() - then) / turns * 1e3:.0f}" for clock, then in zip(clocks, before, strict=True))
    print("\n| tasks | workers | mean wall ms | scheduler's CPU ms | driver's CPU ms |\n|---|---|---|---|---|")
    print(f"| {many.tasks} | {workers} | {used} |\n\n| 64 MB between processes on loopback | GB/s |\n|---|---|")
    ways = ("worker to driver, through the scheduler", "worker to driver, straight", "worker to worker")
    for way, seconds in zip(ways, *least([partial(bandwidths, client)], turns), strict=True):
        print(f"| {way} | {0.064 / seconds:.2f} |")
    seconds = []
    for straight in (False, True):
        client.direct_to_workers = straight
        seconds += least([partial(empty_pass, engine, heavy)], turns)
    ratio = seconds[1][0] / seconds[0][0]
    print(f"\n{heavy.gathered / 1e6:.0f} MB of nodes from {workers} workers: straight / through the scheduler {ratio:.2f}")


def measure_cluster(made: list[tuple[Pass, Path]], model: Model, counts: list[int], tasks: list[int], turns: int) -> None:
    """Everything that takes more and more workers."""
    with ExitStack() as stack:
        stack.enter_context(patch("dfeas.engine.scan.SHORT_BYTES", 0))  # as many tasks as are asked for
        shipped = stack.enter_context(resources.as_file(resources.files("dfeas.engine") / "dask.yaml"))
        allocation = {name.split(".")[-1]: str(value) for name, value in configuration().items() if "pre-spawn" in name}
        paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
        start = partial(program, {**os.environ, **allocation, "DASK_CONFIG": str(shipped), "PYTHONPATH": paths})
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        file = f"{folder}/scheduler.json"
        scheduler = stack.enter_context(start("scheduler", "--port", "0", "--scheduler-file", file))
        client = stack.enter_context(Client(scheduler_file=file, timeout=60))
        heavy = Pass(1, 1, 1, 0, 1)
        for workers in counts:
            for _ in range(workers - heavy.workers):
                words = ("--no-nanny", "--nthreads", "1", "--memory-limit", "0", "--local-directory", folder)
                stack.enter_context(start("worker", *words, "--scheduler-file", file))
            client.wait_for_workers(workers, timeout=300)
            heavy = measure_passes(client, made, model, tasks, turns, workers < max(counts))
        measure_links(client, scheduler, made[0][1], heavy, max(tasks), turns)


def print_model(model: Model) -> None:
    """The costs, and how far the model is from what it has not seen."""
    print("\n| each | costs |\n|---|---|")
    for name, seconds in model.costs.items():
        scale, unit = (1e9, "ns") if "byte" in name or "m k" in name else (1e6, "us")
        print(f"| {name} | {seconds * scale:.3g} {unit} |")
    here = Place(1, 1, np.inf, np.inf)
    rows = []
    for parts, what, seconds, fitted in model.cases:
        predicted = sum(terms(what, model, here).values()) if parts == ("whole pass",) else model.seconds(what, *parts)
        rows.append((" and ".join(parts), what, seconds, predicted / seconds, fitted))
    print("\n## Predicted / measured\n\n| part | cases | | least | median | greatest |\n|---|---|---|---|---|---|")
    for part, fitted in dict.fromkeys((row[0], row[4]) for row in rows):
        ratios = [row[3] for row in rows if (row[0], row[4]) == (part, fitted)]
        figures = f"{min(ratios):.2f} | {np.median(ratios):.2f} | {max(ratios):.2f}"
        print(f"| {part} | {len(ratios)} | {'fitted' if fitted else 'held out'} | {figures} |")
    print("\n| held out | m | k | MB | workers | tasks | MB gathered | ms | predicted / measured |")
    print("|---|---|---|---|---|---|---|---|---|")
    for part, what, seconds, ratio, _ in (row for row in rows if not row[4] and row[0] != "merging"):
        sizes = f"{what.bytes / 1e6:.0f} | {what.workers} | {what.tasks} | {what.gathered / 1e6:.2g}"
        print(f"| {part} | {what.m} | {what.k} | {sizes} | {seconds * 1e3:.1f} | {ratio:.2f} |")


def on(size: float, m: int, k: int, workers: int, place: Place, pieces: int = distributed.RANGES_PER_THREAD) -> Pass:
    """A pass over ``size`` bytes as the engine cuts it."""
    blocks = round(size / (BLOCK_BYTES // (4 * m) * 4 * m))
    return Pass(m, k, blocks, workers, min(blocks, workers * place.threads * pieces), size)


def print_predictions(model: Model, place: Place, memory: float) -> None:
    print(f"\n## Extrapolated: seconds of a pass, and what takes most of it; {place.workers_per_machine} workers a machine")
    grid = [int(10 * 1.15**i) for i in range(39)]
    for storage, words in (
        ("network", f"points come over the network, {place.network * 8e-9:g} Gbit/s a machine"),
        ("disk", f"points come from a disk in each machine, {place.disk / 1e9:g} GB/s"),
        ("cache", f"points lie in page caches, {memory / 1e9:g} GB a machine; * where they would not fit"),
    ):
        print(f"\n### {words}\n\n| TB | m | k |", *(f"{workers} workers |" for workers in WORKERS), "best | within 10 % from |")
        print("|---|---|---|" + "---|" * len(WORKERS) + "---|---|")
        there = replace(place, storage=storage)
        for size, m, k in ((size, *shape) for size in (1e12, 1e13) for shape in SHAPES):
            found = {w: terms(on(size, m, k, w, there), model, there) for w in (*WORKERS, *grid)}
            totals = {w: sum(one.values()) for w, one in found.items()}
            misfit = {w: "*" * (storage == "cache" and -(-w // place.workers_per_machine) * memory < size) for w in WORKERS}
            cells = (f"{totals[w]:.3g}{misfit[w]} {max(found[w], key=found[w].__getitem__)}" for w in WORKERS)
            best = min(grid, key=totals.__getitem__)
            enough = next(w for w in grid if totals[w] <= 1.1 * totals[best])
            last = f"{totals[best]:.3g} at {'over ' * (best == grid[-1])}{best} | {enough}"
            print(f"| {size / 1e12:g} | {m} | {k} | {' | '.join(cells)} | {last} |")


def print_moves(model: Model, place: Place) -> None:
    """What changes of the engine would do; none of them is built."""
    print("\n## What would move the bottleneck: seconds with 500 workers, points in page caches\n")
    print("| TB | m | k | GB gathered | as it is | A | B | C | A, B and C |\n|---|---|---|---|---|---|---|---|---|")
    for size, m, k in ((size, *shape) for size in (1e12, 1e13) for shape in SHAPES):
        now, half = on(size, m, k, 500, place), on(size, m, k, 500, place, 1)
        # powers of two, an eighth of a range or less
        B, AB = ({"grain": max(1, 1 << ((what.blocks // what.tasks).bit_length() - 4))} for what in (now, half))
        engines = [now, half, replace(now, **B), replace(now, merged=8), replace(half, merged=8, **AB)]
        cells = " | ".join(f"{sum(terms(engine, model, place).values()):.3g}" for engine in engines)
        print(f"| {size / 1e12:g} | {m} | {k} | {now.gathered / 1e9:.2g} | {cells} |")
    print("\nA: one range a thread, not two. B: ranges begin at multiples of a power of two of blocks, an eighth of a range at")
    print("most: fewer nodes of the same tree. C: the nodes of 8 ranges are merged on a worker before the driver has them.")
    print("What is gathered is held by the scheduler and by the driver at once.")
    column = max(model.costs["byte gathered"], HOPS / place.network) * 1e9
    print(f"\nThe columns that a select pass brings go the same way: {column:.2g} s more for each GB of them.")


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=numbers, default=[1, 2, 4, 8], help="ascending; the last is kept from the fit")
    parser.add_argument("--tasks", type=numbers, default=[8, 32, 128, 256], help="of a pass that reads nothing")
    parser.add_argument("--mb", type=float, default=128.0, help="of data to read and scan")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--dir", default=None, help="where the data is made")
    parser.add_argument("--threads", type=int, default=1, help="of a worker of the cluster to predict")
    parser.add_argument("--workers-per-machine", type=int, default=8, help="which share its link and disk")
    parser.add_argument("--network-gbit", type=float, default=10.0)
    parser.add_argument("--disk-gb-per-second", type=float, default=2.0)
    parser.add_argument("--memory-gb", type=float, default=256.0, help="of a machine, for its page cache")
    options = parser.parse_args(words)
    model = Model()
    print("## Measured here")
    with tempfile.TemporaryDirectory(dir=options.dir) as folder, threadpool_limits(1):
        made = measure_work(Path(folder), model, options.mb, options.turns)
        measure_cluster(made, model, options.workers, options.tasks, options.turns)
        print(f"Reading from disk, cold, in one thread: {cold_read(made[-1][1]) / 1e9:.2f} GB/s")
    model.fit()
    print_model(model)
    network, disk = options.network_gbit * 1e9 / 8, options.disk_gb_per_second * 1e9
    place = Place(options.threads, options.workers_per_machine, network, disk)
    print_predictions(model, place, options.memory_gb * 1e9)
    print_moves(model, place)


if __name__ == "__main__":
    main()
