"""A pass over blocks in shards against the same blocks in files of their own, and writing both, in turns of one run.

    python benchmarks/shard_speed.py --gb 2 --shard 250MB

The ratio is the speed in shards over the speed in files: the median over the turns, and of the processor time of all of them.
Warm passes come from the page cache; before a cold one all files of both are dropped from it. "First" opens the data again and
compares all checksums. "Read" is what the readers alone take, without a question.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np
from threadpoolctl import threadpool_limits

from dfeas.data.dataset import Dataset
from dfeas.data.generate.points import Instance, generate
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.readers import Buffers
from dfeas.engine.local import LocalEngine
from dfeas.passes.softmin import Softmin

THREADS = 2
NAMES = ("files", "shards")

Action = Callable[[], object]


def drop(folder: Path) -> None:
    """Put the clean files of a folder out of the page cache."""
    for file in folder.rglob("*"):
        if file.is_file():
            descriptor = os.open(file, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def read(dataset: Dataset) -> None:
    """All blocks by the reader of points."""

    def some(first: int) -> None:
        buffers = Buffers()
        for index in range(first, dataset.blocks, THREADS):
            dataset.points.read(index, buffers)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(some, range(THREADS)))


def compared(what: str, turns: int, actions: dict[str, tuple[Action, Action]]) -> None:
    """A line: seconds of each, which take turns, and the ratios. Before an action another one is done that is not counted."""
    wall: dict[str, list[float]] = {name: [] for name in actions}
    spent = dict.fromkeys(actions, 0.0)
    for turn in range(turns):
        for name in NAMES if turn % 2 else reversed(NAMES):
            before, action = actions[name]
            before()
            began, began_process = perf_counter(), process_time()
            action()
            wall[name].append(perf_counter() - began)
            spent[name] += process_time() - began_process
    files, shards = (median(wall[name]) for name in NAMES)
    ratio = median(one / other for one, other in zip(*wall.values(), strict=True))
    busy = spent["files"] / spent["shards"]
    print(f"| {what} | {files:.3f} | {shards:.3f} | {ratio:.3f} | {busy:.3f} |", flush=True)


def nothing() -> None:
    """What is done before a warm turn."""


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, default=2.0)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--shard", default="1GB")
    parser.add_argument("--turns", type=int, default=11)
    parser.add_argument("--dir", default=None, help="where the data is made")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(dir=options.dir) as made, threadpool_limits(1):
        instance = Instance("halfspace", options.features, int(options.gb * 1e9 / 4 / options.features))
        paths = {name: Path(made) / name for name in NAMES}
        sizes = {"files": "0", "shards": options.shard}
        seconds = {}
        for name in NAMES:
            began = perf_counter()
            generate(instance, paths[name], shard=sizes[name])
            os.sync()
            seconds[name] = perf_counter() - began
        stored = {name: open_source(Source(DataSpec(path, intercept=False))) for name, path in paths.items()}
        assert stored["files"].fingerprint == stored["shards"].fingerprint
        one = stored["files"]
        counts = {name: sum(file.is_file() for file in path.rglob("*")) for name, path in paths.items()}
        print(f"{one.bytes / 1e9:.2f} GB, {one.blocks} blocks, {THREADS} threads; {counts['files']} files, {counts['shards']}")
        print("| what | files s | shards s | ratio | ratio of processor time |")
        print("|---|---|---|---|---|")
        print(f"| generate, once | {seconds['files']:.3f} | {seconds['shards']:.3f} | | |")
        question = Softmin(np.full((one.m, 1), one.m**-0.5), np.zeros(1))
        engines = {name: LocalEngine(dataset, THREADS) for name, dataset in stored.items()}
        for engine in engines.values():
            engine.run(question)
        report(options.turns, paths, stored, engines, question)


def report(
    turns: int, paths: dict[str, Path], stored: dict[str, Dataset], engines: dict[str, LocalEngine], question: Softmin
) -> None:
    def first(name: str) -> None:
        LocalEngine(open_source(Source(DataSpec(paths[name], intercept=False))), THREADS).run(question)

    for where, before in (("warm", nothing), ("cold", lambda: [drop(path) for path in paths.values()])):
        for what, action in (
            ("read", lambda name: read(stored[name])),
            ("pass", lambda name: engines[name].run(question)),
            ("first", first),
        ):
            pairs = {name: (before, lambda name=name, action=action: action(name)) for name in NAMES}
            compared(f"{what}, {where}", turns, pairs)


if __name__ == "__main__":
    main()
