"""A pass on workers under a nanny against the same pass in one process, and what blocks that stay with their workers save.

    python benchmarks/cluster_speed.py --gb 2

Each engine lives in a process of its own, because settings of memory allocation leak from one cluster to the next; the parent
asks them in turns. As many threads in the one process as there are workers. All data is in the page cache. Processor seconds
are those of driver, scheduler and workers together. The last engine reads nothing: it gathers a task that does nothing for each
range of a pass, which is what Dask itself takes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
from distributed import Client, LocalCluster

from dfeas.data.generate.points import Instance, generate
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine.clusters import local_cluster
from dfeas.engine.distributed import DaskEngine
from dfeas.engine.local import LocalEngine
from dfeas.passes.softmin import Softmin

KINDS = ("in-process", "workers, shipped configuration", "workers, default configuration", "workers that do nothing")


@contextmanager
def default_cluster(workers: int) -> Iterator[Client]:
    """As Dask starts it without any configuration of ours."""
    options = {"n_workers": workers, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


def serve(kind: str, path: str, kept: int, workers: int) -> None:
    """Run a pass for each line that comes; print seconds, those of all processors, and bytes read."""
    source = replace(Source(DataSpec(path, intercept=False)), cache_bytes=kept)
    dataset = open_source(source)
    length = dataset.m**-0.5
    question = Softmin(np.full((dataset.m, 1), length), np.full(1, 0.1))
    engine: Any
    with ExitStack() as stack:
        if kind == KINDS[0]:
            dataset.enable_cache(kept)
            engine = LocalEngine(dataset, workers)
        else:
            client = stack.enter_context(default_cluster(workers) if kind == KINDS[2] else local_cluster(workers))
            engine = Nothing(client, 2 * workers) if kind == KINDS[3] else DaskEngine(client, source, dataset)
        print("ready", flush=True)
        for _ in sys.stdin:
            began, busy = perf_counter(), processor_seconds()
            engine.run(question)
            seconds = perf_counter() - began
            print(json.dumps([seconds, processor_seconds() - busy, engine.cost.bytes_read]), flush=True)
        engine.close()


class Nothing:
    """Tasks that do nothing."""

    cost = SimpleNamespace(bytes_read=0)

    def __init__(self, client: Client, tasks: int) -> None:
        self._client, self._tasks = client, tasks

    def run(self, question: object) -> None:
        self._client.gather(self._client.map(abs, range(self._tasks), pure=False))

    def close(self) -> None: ...


def processor_seconds() -> float:
    """Of this process and all that it started."""
    me = psutil.Process()
    times: list[Any] = [each.cpu_times() for each in [me, *me.children(recursive=True)]]
    return float(sum(each.user + each.system for each in times))


@contextmanager
def served(kind: str, path: Path, kept: int, workers: int) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, __file__, "--workers", str(workers), "--serve", kind, str(path), str(kept)]
    clean = {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name and "MALLOC" not in name}
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        assert child.stdout.readline() == "ready\n", kind
        yield child
        child.stdin.close()
        child.wait()


def ask(child: subprocess.Popen[str]) -> tuple[float, float, int]:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write("\n")
    child.stdin.flush()
    seconds, busy, read = json.loads(child.stdout.readline())
    return seconds, busy, read


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, default=2.0)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--workers", type=int, default=2, help="of one thread, and threads of the one process")
    parser.add_argument("--keeping", action=argparse.BooleanOptionalAction, default=True, help="also with caches of blocks")
    parser.add_argument("--dir", default=None, help="where the data is made")
    parser.add_argument("--serve", nargs=3, metavar=("KIND", "DATA", "KEPT"), help="be one of the engines")
    options = parser.parse_args(words)
    if options.serve:
        kind, path, kept = options.serve
        serve(kind, path, int(kept), options.workers)
        return
    with tempfile.TemporaryDirectory(dir=options.dir) as made:
        data = Path(made) / "data"
        size = int(options.gb * 1e9)
        generate(Instance("halfspace", options.features, size // (4 * options.features)), data)
        compare(data, size, options.turns, options.keeping, options.workers)


def compare(data: Path, size: int, turns: int, keeping: bool, workers: int) -> None:
    """Turns of all engines; each worker may keep nothing, a quarter of the data, or all of it."""
    cases = [(kind, 0) for kind in KINDS]
    if keeping:
        cases += [(KINDS[1], size // 4), (KINDS[1], 2 * size), (KINDS[0], 2 * size)]
    print(f"{size / 1e9:.2f} GB, {workers} workers of one thread or {workers} threads; medians of {turns} turns")
    print("| engine | a process keeps GB | pass s | speed / in-process | processor s | first pass reads GB | a later one GB |")
    print("|---|---|---|---|---|---|---|")
    with ExitStack() as stack:
        children = [stack.enter_context(served(kind, data, kept, workers)) for kind, kept in cases]
        first = [ask(child) for child in children]
        later = [[ask(child) for child in children] for _ in range(turns)]
        for number, (kind, kept) in enumerate(cases):
            seconds = median(turn[number][0] for turn in later)
            speed = median(turn[0][0] / turn[number][0] for turn in later)
            busy, read = (median(turn[number][i] for turn in later) for i in (1, 2))
            cells = (f"{kept / 1e9:.2f}", f"{seconds:.3f}", f"{speed:.2f}", f"{busy:.3f}")
            print(f"| {kind} | {' | '.join(cells)} | {first[number][2] / 1e9:.2f} | {read / 1e9:.2f} |")


if __name__ == "__main__":
    main()
