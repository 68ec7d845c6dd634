"""A pass over sparse points that look like text against SciPy's products on the same blocks; verdicts by ``auto``.

    python benchmarks/sparse_pass.py --points 700000 --features 47000 --density 0.0016

The reference multiplies ``X @ y`` and ``X.T @ p`` block by block in one process, with as many threads as the pass, on blocks in
memory. The pass asks the central question, softmin: the same two products, the exponentials and exact scores near the minimum.
"Kept" are passes whose blocks stay in memory, "read" those that read every block from its files. Turns alternate.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

import dfeas
from dfeas.data.generate.points import SparseInstance, generate
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.readers import Cost
from dfeas.engine.local import LocalEngine
from dfeas.machine import processors
from dfeas.passes.softmin import Softmin


def timed(action: Callable[[], object]) -> float:
    began = perf_counter()
    action()
    return perf_counter() - began


def products(blocks: list, y: np.ndarray, p: list[np.ndarray]) -> None:
    """Both products of all blocks, by as many threads as the engine has."""

    def some(thread: int) -> None:
        for i in range(thread, len(blocks), processors()):
            blocks[i] @ y
            blocks[i].T @ p[i]

    with ThreadPoolExecutor(processors()) as pool:
        list(pool.map(some, range(processors())))


def passes(path: Path, turns: int) -> list[tuple[str, float]]:
    """Seconds of the reference, and of passes."""
    dataset = open_source(Source(DataSpec(path, intercept=False)))
    blocks = [block.points.copy() for block in dataset.read_blocks(range(dataset.blocks), Cost())]
    rng = np.random.default_rng(0)
    y = rng.standard_normal(dataset.m).astype(np.float32)
    y /= np.linalg.norm(y)
    p = [rng.random(block.shape[0]).astype(np.float32) for block in blocks]
    question = Softmin(y.astype(np.float64)[:, None], np.full(1, 0.01))
    kept, read = open_source(Source(DataSpec(path, intercept=False))), open_source(Source(DataSpec(path, intercept=False)))
    kept.enable_cache(2 * dataset.bytes + 20 * dataset.n)
    engines = {"kept": LocalEngine(kept), "read": LocalEngine(read)}
    took: dict[str, list[float]] = {"SciPy": [], "kept": [], "read": []}
    for engine in engines.values():
        engine.run(question)
    for _ in range(turns):
        took["SciPy"].append(timed(lambda: products(blocks, y, p)))
        for name, engine in engines.items():
            took[name].append(timed(lambda e=engine: e.run(question)))
    for engine in engines.values():
        engine.close()
    return [(name, median(seconds)) for name, seconds in took.items()]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=5_000)
    parser.add_argument("--density", type=float, default=0.005)
    parser.add_argument("--margin", type=float, default=0.002)
    parser.add_argument("--kinds", default="planted,one-flip")
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the data is written")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for place, kind in enumerate(options.kinds.split(",")):
            path = Path(folder) / kind
            header = generate(SparseInstance(kind, options.features, options.points, options.density, options.margin), path)
            if place == 0:
                print("| pass | seconds | million entries a second | of SciPy's throughput |")
                print("|---|---|---|---|")
                found = passes(path, options.turns)
                for name, seconds in found:
                    speed = (header.entries or 0) / seconds / 1e6
                    print(f"| {name} | {seconds:.3g} | {speed:.3g} | {found[0][1] / seconds:.2f} |")
                print()
                print("| kind | verdict | proof | passes | reads | seconds |")
                print("|---|---|---|---|---|---|")
            began = perf_counter()
            solved = dfeas.solve(path, intercept=False, memory=options.memory)
            seconds = perf_counter() - began
            print(f"| {kind} | {solved.verdict} | {solved.proof} | {solved.passes:.3g} | {solved.reads:.3g} | {seconds:.3g} |")


if __name__ == "__main__":
    main()
