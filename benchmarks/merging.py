"""What reaches the driver of a pass with large answers, merged by the workers or at the driver: bytes and seconds.

    python benchmarks/merging.py --turns 9

The answer to k questions about m features has m k numbers, and each range of blocks has one or a few. Workers merge them, eight
at a time, where they are, and one reaches the driver; here an engine that leaves this to the driver takes turns with it on the
same workers, two processes of many threads, with a scheduler in a process of its own: seconds of the processor are those of the
driver alone. Bytes are those of pickled answers. The data is in the page cache, and so small that every range has two blocks:
what is measured is the merging, not the scan.
"""

from __future__ import annotations

import argparse
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

from dfeas.data.generate.points import Instance, generate
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine.distributed import DaskEngine
from dfeas.engine.watch import Watch
from dfeas.passes.softmin import Softmin


class AtTheDriver(DaskEngine):
    """All answers of ranges reach the driver."""

    def _merge(self, tasks: Sequence[Any], parcel: Any) -> Sequence[Any]:
        return tasks


KINDS: dict[str, type[DaskEngine]] = {"at the driver": AtTheDriver, "by the workers": DaskEngine}


@dataclass
class Weighing(Watch):
    """A watch that remembers what was gathered."""

    brought: list[Any] = field(default_factory=list)

    def gather(self, futures: Sequence[Any]) -> list[Any] | None:
        found = super().gather(futures)
        self.brought[:] = found or []
        return found


def hold(workers: int, threads: int) -> None:
    """A cluster until the standard input ends; its address is printed."""
    where = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "memory_limit": 0}
    with LocalCluster(n_workers=workers, threads_per_worker=threads, **where) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()


@contextmanager
def elsewhere(workers: int, threads: int) -> Iterator[Client]:
    """A client of a cluster whose scheduler is in another process."""
    words = [sys.executable, __file__, "--hold", str(workers), str(threads)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        with Client(child.stdout.readline().strip()) as client:
            client.wait_for_workers(workers)
            yield client
        child.stdin.close()
        child.wait()


def measured(engine: DaskEngine, question: Softmin) -> tuple[float, float, Any]:
    """Seconds of a pass, of the driver's processor in it, and the answer."""
    began, busy = perf_counter(), process_time()
    answer = engine.run(question)
    return perf_counter() - began, process_time() - busy, answer


def compare(data: Path, client: Client, k: int, turns: int) -> None:
    source, rng = Source(DataSpec(data, intercept=False)), np.random.default_rng(0)
    dataset, watch = open_source(source), Weighing(client)
    question = Softmin(rng.standard_normal((dataset.m, k)), np.full(k, 0.1))
    engines = {kind: engine(client, source, dataset, watch=watch) for kind, engine in KINDS.items()}
    taken: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    size, answers = {}, set()
    for turn in range(turns + 1):
        for kind in list(KINDS)[:: 1 if turn % 2 else -1]:
            seconds, busy, answer = measured(engines[kind], question)
            answers.add(answer.mean.tobytes() + answer.low.tobytes())
            size[kind] = sum(len(pickle.dumps(result, protocol=5)) for result in watch.brought)
            if turn:  # the first one loads modules and blocks
                taken[kind].append((seconds, busy))
    print("| merged | MB at the driver | pass s | of them the driver's processor s |")
    print("|---|---|---|---|")
    for kind, turned in taken.items():
        middle = [median(each) for each in zip(*turned, strict=True)]
        print(f"| {kind} | {size[kind] / 1e6:.2f} | {middle[0]:.3f} | {middle[1]:.3f} |")
    print(f"\nthe same bits: {'yes' if len(answers) == 1 else 'no'}")
    for engine in engines.values():
        engine.close()


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=10)
    parser.add_argument("--ranges", type=int, default=64)
    parser.add_argument("--rows", type=int, default=32, help="points of a block")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--dir", default=None, help="where the data is made")
    parser.add_argument("--hold", nargs=2, type=int, metavar=("WORKERS", "THREADS"), help="be the cluster")
    options = parser.parse_args(words)
    if options.hold:
        hold(*options.hold)
        return
    with tempfile.TemporaryDirectory(dir=options.dir) as made:
        data = Path(made) / "data"
        points = 2 * options.ranges * options.rows
        generate(Instance("halfspace", options.features, points, block_rows=options.rows), data)
        # a small pass has a range for each thread
        with elsewhere(options.workers, options.ranges // options.workers) as client:
            print(
                f"{options.features} features, {options.questions} questions, {options.ranges} ranges; {options.turns} turns\n"
            )
            compare(data, client, options.questions, options.turns)


if __name__ == "__main__":
    main()
