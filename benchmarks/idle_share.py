"""Passes over many blocks on a cluster: processor time of driver, scheduler and workers, and what the workers spend idle.

    python benchmarks/idle_share.py --blocks 10000,100000 --workers 4

Scheduler, workers and driver are processes of their own. ``idle`` is the share of the workers' threads and of the clock that no
task took, from the stream of tasks that Dask's performance report draws: on fewer cores than processes part of it is waiting
for a core. ``plain`` is what the scheduler takes for as many tasks that do nothing, sent by a plain loop; MB are what its
memory has grown by in all passes, and in that loop. Small blocks that follow each other are read and scanned at once.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import psutil
from distributed import Client, get_task_stream, wait

from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.writers.chunks import SHARD_BYTES
from dfeas.engine.distributed import DaskEngine
from dfeas.passes.softmin import Softmin

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.blocks import made
from benchmarks.scaling import subprocesses

FEATURES = 4


def used() -> tuple[float, float]:
    """Seconds of the processor that this process has taken, and its memory in MB."""
    return process_time(), psutil.Process().memory_info().rss / 1e6


@contextmanager
def measured(client: Client, found: dict[str, float]) -> Iterator[None]:
    """Seconds of each kind of process, and what the scheduler's memory grows by."""

    def look() -> tuple[float, float, float, float]:
        (scheduler, memory), workers = client.run_on_scheduler(used), client.run(used)
        return process_time(), scheduler, sum(seconds for seconds, _ in workers.values()), memory

    before, began = look(), perf_counter()
    yield
    found["wall"] = perf_counter() - began
    for name, old, new in zip(("driver", "scheduler", "workers", "MB"), before, look(), strict=True):
        found[name] = new - old


def measure(client: Client, data: Path, rows: int, passes: int, workers: int) -> str:
    """A line for a dataset."""
    source = Source(DataSpec(str(data), intercept=False))
    dataset = open_source(source)
    engine = DaskEngine(client, source, dataset)
    question = Softmin(np.full((dataset.m, 1), dataset.m**-0.5), np.full(1, 0.1))
    engine.run(question)
    ours, plain = dict[str, float](), dict[str, float]()
    with get_task_stream(client) as stream, measured(client, ours):
        for _ in range(passes):
            engine.run(question)
    engine.close()
    many = round(len(stream.data) / passes)
    busy = sum(each["stop"] - each["start"] for task in stream.data for each in task["startstops"])
    with measured(client, plain):
        for i in range(passes):
            wait([client.submit(int, key=f"plain-{data.name}-{i}-{j}") for j in range(many)])
    idle = 1 - busy / (ours["wall"] * workers)
    each = [1000 * ours[name] / passes for name in ("wall", "driver", "scheduler", "workers")]
    cells = [f"{value:.1f}" for value in (*each, 100 * idle, 1000 * plain["scheduler"] / passes, ours["MB"], plain["MB"])]
    stored = -(-dataset.n // rows)
    return f"| {stored} | {dataset.blocks} | {many} | {' | '.join(cells)} |"


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", default="10000,100000")
    parser.add_argument("--rows", type=int, default=256, help="points of a block")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--passes", type=int, default=100)
    parser.add_argument("--dir", default=None, help="where the data is made")
    options = parser.parse_args(words)
    print(f"{options.workers} workers of one thread, {options.passes} passes, blocks of {options.rows} x {FEATURES}\n")
    columns = (
        "blocks",
        "at once",
        "tasks a pass",
        "a pass ms",
        "driver ms",
        "scheduler ms",
        "workers ms",
        "idle %",
        "plain ms",
        "MB",
    )
    print(f"| {' | '.join(columns)} | plain MB |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory(dir=options.dir) as folder, subprocesses() as client:
        client.cluster.scale(options.workers)
        client.wait_for_workers(options.workers)
        for blocks in map(int, options.blocks.split(",")):
            data = Path(folder) / str(blocks)
            made(data, "points", blocks, options.rows, FEATURES, SHARD_BYTES)
            print(measure(client, data, options.rows, options.passes, options.workers), flush=True)


if __name__ == "__main__":
    main()
