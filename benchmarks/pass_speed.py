"""A pass over data on disk against plainly reading the same files, and against the scan alone; both engines.

    python benchmarks/pass_speed.py --gb 4

Cold means that the files were dropped from the page cache before each turn. "Read" reads every chunk file with readinto
into one reused buffer a thread; "scan alone" scans blocks that are in memory already; both with as many threads as the pass.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from dfeas.engine import LocalEngine
from dfeas.engine.cluster import DaskEngine, local_cluster
from dfeas.instances import Instance, generate
from dfeas.passes import Block, Softmin
from dfeas.store import Source, open_source
from dfeas.store.reading import Cost

THREADS = 2


def timed(action: Callable[[], object], before: Callable[[], object]) -> float:
    before()
    began = perf_counter()
    action()
    return perf_counter() - began


def nothing() -> None:
    """What is done before a warm turn."""


def drop(files: list[Path]) -> None:
    """Put clean files out of the page cache."""
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def read(files: list[Path], size: int) -> None:
    def some(mine: list[Path]) -> None:
        buffer = np.empty(size, np.uint8)
        for file in mine:
            with file.open("rb", buffering=0) as stream:
                stream.readinto(buffer)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(some, [files[i * len(files) // THREADS : (i + 1) * len(files) // THREADS] for i in range(THREADS)]))


def scan_alone(blocks: list[Block], question: Softmin) -> None:
    def some(mine: list[Block]) -> None:
        for block in mine:
            question.scan(block)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(some, [blocks[i::THREADS] for i in range(THREADS)]))


@contextmanager
def data(gb: float, m: int, folder: str | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=folder) as made:
        path = Path(made) / "data"
        generate(Instance("halfspace", m, int(gb * 1e9 / 4 / m)), path)
        os.sync()
        yield path


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, default=4.0)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--turns", type=int, default=11)
    parser.add_argument("--dir", default=None, help="where the data is made")
    options = parser.parse_args(words)
    with data(options.gb, options.features, options.dir) as path, threadpool_limits(1):
        report(path, options.turns)
        fixed_cost(options.dir, options.turns)


def report(path: Path, count: int) -> None:
    source = Source(str(path))
    dataset = open_source(source)
    files = sorted(file for file in (path / "X").glob("c.*"))
    rng = np.random.default_rng(0)
    y = rng.standard_normal((dataset.m, 1))
    question = Softmin(y / np.linalg.norm(y), np.full(1, 0.1))
    size = dataset.bytes / 1e9
    held = min(dataset.blocks, 128)
    kept = [
        Block.of(b.start, b.points.copy(), b.label.copy(), b.norm.copy()) for b in dataset.read_blocks(range(0, held), Cost())
    ]
    share = dataset.blocks / held
    engine = LocalEngine(dataset, THREADS)
    everything = [p for p in path.rglob("*") if p.is_file()]
    print(f"{size:.2f} GB, {dataset.m} features, {dataset.blocks} blocks, {THREADS} threads; medians of {count} turns")
    print(
        "| cache | read s | scan alone s | in-process s | in-process / max(read, scan) | 2 workers s | 2 workers / in-process |"
    )
    print("|---|---|---|---|---|---|---|")
    engine.run(question)  # checksums are verified on first touch
    found: dict[str, tuple[float, float, float, float]] = {}
    cases = {"warm": nothing, "cold": lambda: drop(everything)}
    for name, before in cases.items():
        reading, scanning, here = [], [], []
        for _ in range(count):
            reading.append(timed(lambda: read(files, files[0].stat().st_size), before))
            scanning.append(share * timed(lambda: scan_alone(kept, question), nothing))
            here.append(timed(lambda: engine.run(question), before))
        ratio = median(h / max(r, s) for h, r, s in zip(here, reading, scanning, strict=True))
        found[name] = median(reading), median(scanning), median(here), ratio
    # the threads of a cluster's scheduler would take the interpreter lock from the in-process engine: measured apart
    with local_cluster(2) as client:
        cluster = DaskEngine(client, source, open_source(source))
        cluster.run(question)
        read(files, files[0].stat().st_size)
        for name, before in cases.items():
            there = median(timed(lambda: cluster.run(question), before) for _ in range(count))
            reading_s, scanning_s, here_s, ratio = found[name]
            versus = there / here_s
            print(f"| {name} | {reading_s:.3f} | {scanning_s:.3f} | {here_s:.3f} | {ratio:.2f} | {there:.3f} | {versus:.2f} |")
    first = LocalEngine(open_source(source), THREADS)
    seconds = timed(lambda: first.run(question), lambda: drop(everything))
    print(f"first pass of a run, cold, with every checksum verified: {seconds:.3f} s")


def fixed_cost(folder: str | None, count: int) -> None:
    """Passes over almost no data."""
    with tempfile.TemporaryDirectory(dir=folder) as made, local_cluster(2) as client:
        path = Path(made) / "small"
        generate(Instance("halfspace", 100, 400, block_rows=50), path)
        source = Source(str(path))
        question = Softmin(np.ones((100, 1)), np.ones(1))
        print("| engine | fixed cost of a pass, ms |")
        print("|---|---|")
        for name, engine in (
            ("in-process", LocalEngine(open_source(source), THREADS)),
            ("2 workers", DaskEngine(client, source, open_source(source))),
        ):
            engine.run(question)
            found = median(timed(lambda engine=engine: engine.run(question), nothing) for _ in range(5 * count))
            print(f"| {name} | {found * 1e3:.1f} |")


if __name__ == "__main__":
    main()
