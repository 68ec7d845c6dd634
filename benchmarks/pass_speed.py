"""A pass over data on disk against plainly reading the same files, and against products in memory; the fixed cost of a pass.

    python benchmarks/pass_speed.py --gb 8

Cold means that the files were dropped from the page cache before each turn. "Read" reads every chunk file with readinto
into one reused buffer a thread, "X @ y" multiplies points that are in memory, "scan alone" scans blocks that are in memory;
all with as many threads as the pass, in turns. "Selection" asks for the points on the wrong side, as a working set does, and
"scores" for the least score and its column: one product with the points each, as X @ y is; "softmin" is the central question,
two products and the exponentials, "of 8" asks it of eight y at once.
The last columns are of a pass that keeps up to 2 GB of the blocks in memory.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from dfeas.data.generate.points import Instance, generate
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.readers import Buffers, Cost
from dfeas.engine.clusters import local_cluster
from dfeas.engine.distributed import DaskEngine
from dfeas.engine.local import LocalEngine
from dfeas.engine.protocol import Engine
from dfeas.passes.block import Block
from dfeas.passes.select import Select
from dfeas.passes.softmin import Softmin

KEPT_BYTES = 2 * 10**9


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


def read(files: list[Path], size: int, threads: int) -> None:
    def some(mine: list[Path]) -> None:
        buffer = Buffers().take("X", size)
        for file in mine:
            with file.open("rb", buffering=0) as stream:
                stream.readinto(buffer)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(some, [files[i * len(files) // threads : (i + 1) * len(files) // threads] for i in range(threads)]))


def scan_alone(blocks: list[Block], question: Softmin | Select, threads: int) -> None:
    def some(mine: list[Block]) -> None:
        for block in mine:
            question.scan(block)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(some, [blocks[i::threads] for i in range(threads)]))


def multiply(blocks: list[Block], y: np.ndarray, threads: int) -> None:
    narrow = y[:, 0].astype(np.float32)

    def some(mine: list[Block]) -> None:
        for block in mine:
            block.points @ narrow

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(some, [blocks[i::threads] for i in range(threads)]))


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
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dir", default=None, help="where the data is made")
    options = parser.parse_args(words)
    with data(options.gb, options.features, options.dir) as path, threadpool_limits(1):
        report(path, options.turns, options.threads)
        fixed_cost(options.dir, options.turns, options.threads)


def report(path: Path, count: int, threads: int) -> None:
    dataset = open_source(Source(DataSpec(path, intercept=False)))
    files = sorted(file for file in (path / "X").glob("c.*"))
    everything = [p for p in path.rglob("*") if p.is_file()]
    held = min(dataset.blocks, 128)
    memory = [
        Block.of(b.start, b.points.copy(), b.label.copy(), b.norm.copy()) for b in dataset.read_blocks(range(0, held), Cost())
    ]
    share = dataset.n / sum(block.size for block in memory)
    engine = LocalEngine(dataset, threads)
    keeping = open_source(Source(DataSpec(path, intercept=False)))
    keeping.enable_cache(KEPT_BYTES)
    keeper = LocalEngine(keeping, threads)
    y = np.full((dataset.m, 1), dataset.m**-0.5)
    for each in (engine, keeper):
        each.run(Softmin(y, np.zeros(1)))  # checksums are verified on first touch
    print(f"{dataset.bytes / 1e9:.2f} GB, {dataset.m} features, {dataset.blocks} blocks, {threads} threads; {count} turns")
    head = "question | page cache | read s | X @ y s | scan s | pass s | pass / read | X @ y / pass | keeping | X @ y / it"
    print(f"| {head} |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    cases = {"warm": nothing, "cold": lambda: drop(everything)}
    eight = np.linalg.qr(np.random.default_rng(0).standard_normal((dataset.m, 8)))[0]
    questions: dict[str, Softmin | Select] = {
        "selection": Select(y[:, 0], -1.0, 100, 100),
        "scores": Softmin(y, np.zeros(1)),
        "softmin": Softmin(y, np.full(1, 0.1)),
        "softmin of 8": Softmin(eight, np.full(eight.shape[1], 0.1)),
    }
    for (where, before), (what, question) in product(cases.items(), questions.items()):
        actions: tuple[tuple[float, Callable[[], object], Callable[[], object]], ...] = (
            (1.0, lambda: read(files, files[0].stat().st_size, threads), before),
            (share, lambda: multiply(memory, y, threads), nothing),
            (share, lambda question=question: scan_alone(memory, question, threads), nothing),
            (1.0, lambda question=question: engine.run(question), before),
            (1.0, lambda question=question: keeper.run(question), before),
        )
        turns = np.array([[scale * timed(action, first) for scale, action, first in actions] for _ in range(count)])
        reading, products, scans, passes, kept = turns.T
        ratios = [np.median(passes / reading), np.median(products / passes), np.median(products / kept)]
        seconds = [np.median(column) for column in (reading, products, scans, passes)]
        told = " | ".join(f"{value:.3f}" for value in seconds)
        print(f"| {what} | {where} | {told} | {ratios[0]:.2f} | {ratios[1]:.2f} | {np.median(kept):.3f} | {ratios[2]:.2f} |")
    first = LocalEngine(open_source(Source(DataSpec(path, intercept=False))), threads)
    verified = timed(lambda: first.run(questions["scores"]), lambda: drop(everything))
    print(f"first pass of a run, cold, with every checksum verified: {verified:.3f} s")


def fixed_cost(folder: str | None, count: int, threads: int) -> None:
    """Passes over almost no data: a block for each of two threads, and many more blocks."""
    with tempfile.TemporaryDirectory(dir=folder) as made, local_cluster(2) as client:
        sources = []
        for blocks in (2, 66):
            path = Path(made) / f"{blocks}"
            generate(Instance("halfspace", 100, 50 * blocks, block_rows=50), path)
            sources.append(Source(DataSpec(path, intercept=False)))
        question = Softmin(np.ones((100, 1)), np.ones(1))
        print("| engine | fixed cost of a pass, ms | of each block more, us |")
        print("|---|---|---|")
        for name, make in (
            ("in-process", lambda source: LocalEngine(open_source(source), threads)),
            ("2 workers", lambda source: DaskEngine(client, source, open_source(source))),
        ):
            few, many = (spent(make(source), question, 5 * count) for source in sources)
            print(f"| {name} | {few * 1e3:.1f} | {(many - few) / 64 * 1e6:.0f} |")


def spent(engine: Engine, question: Softmin, count: int) -> float:
    """Median seconds of a pass."""
    engine.run(question)
    return median(timed(lambda: engine.run(question), nothing) for _ in range(count))


if __name__ == "__main__":
    main()
