"""The Gram pass, a product with a kernel matrix that is never stored, against what it cannot do without and what people do.

    python benchmarks/gram_pass.py

Beside it: the bare matrix products of the same prepared tiles; the pass when an earlier one has kept its tiles (half of the
matrix in memory); scikit-learn's rbf_kernel and a product with what it returns;
and ten classes, each against the rest, from one product: of one column each, and of the six that mirror prox asks for, which
are beside six of one class. One thread each, points in memory in float32. All take turns; figures are medians, ratios medians
of the ratios of the turns. Memory is the peak of what is allocated beyond the points, in runs of their own.
"""

from __future__ import annotations

import argparse
import tracemalloc
from collections.abc import Callable
from statistics import median
from time import perf_counter

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine.local import LocalEngine
from dfeas.engine.scan import runs
from dfeas.engine.tile_cache import TileCache
from dfeas.kernels.distances import Prepared
from dfeas.kernels.gram import GramProduct, TileRun
from dfeas.kernels.kernel import kernel_of, usual_gamma
from dfeas.linalg.points import norms
from dfeas.passes.block import Block

MIRROR_PROX = 6
"""Columns of its products."""


def bare(tiles: list[list[tuple[Prepared, Prepared]]]) -> None:
    """The product of each tile that the pass computes."""
    for i, ours in enumerate(tiles):
        for j, theirs in enumerate(tiles[i:], i):
            for a, (one, _) in enumerate(ours):
                for _, other in theirs[a:] if i == j else theirs:
                    one.features @ other.features.T


def prepared(dataset: Dataset, run: TileRun) -> list[list[tuple[Prepared, Prepared]]]:
    """The tiles of all runs."""
    found = [
        TileRun(run.kernel, rows.start, run.points[rows.start : rows.stop], run.label[rows.start : rows.stop])
        for rows in runs(dataset.n, dataset.m, dataset.block_rows)
    ]
    assert all(part.safe for part in found)
    return [part.tiles(True) for part in found]


def classes(engine: LocalEngine, question: GramProduct, count: int) -> tuple[np.ndarray, ...]:
    """The products of all classes, from one."""
    answers: tuple[np.ndarray, ...] = engine.run(question.batch([question.of_class(code) for code in range(count)]))
    return answers


def peak(action: Callable[[], object]) -> float:
    """Bytes allocated at most."""
    tracemalloc.start()
    action()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=784)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--classes", type=int, default=10)
    options = parser.parse_args(words)
    n, m = options.points, options.features
    rng = np.random.default_rng(0)
    X = rng.random((n, m), dtype=np.float32)
    labels = np.where(rng.random(n) < 0.5, -1, 1)
    open_kernel = kernel_of("rbf")[0]
    kernel = kernel_of("rbf", usual_gamma(open_kernel, X[:500]))[0]
    dataset = open_source(Source(DataSpec(X, labels, intercept=False)))
    V = rng.standard_normal((n, MIRROR_PROX))
    one, six = GramProduct(kernel, V[:, :1].copy()), GramProduct(kernel, V)
    tiles = prepared(dataset, TileRun.of(kernel, Block.of(0, X, labels, norms(X))))
    narrow = (labels * V[:, 0]).astype(np.float32)
    engine, keeping = LocalEngine(dataset, 1), LocalEngine(dataset, 1)
    every = LocalEngine(open_source(Source(DataSpec(X, np.arange(n) % options.classes, intercept=False, one_vs_rest=True))), 1)
    keeping.tile_cache = TileCache(4 * n * (n + 512) // 2)
    keeping.run(one)
    names = [f"{options.classes} classes, {columns} each" for columns in ("one column", "six columns")]
    actions: dict[str, Callable[[], object]] = {
        "Gram pass, one column": lambda: engine.run(one),
        names[0]: lambda: classes(every, one, options.classes),
        "Gram pass, six columns": lambda: engine.run(six),
        names[1]: lambda: classes(every, six, options.classes),
        "Gram pass, tiles kept": lambda: keeping.run(one),
        "bare products of the same tiles": lambda: bare(tiles),
        "rbf_kernel, then a product": lambda: labels * (rbf_kernel(X, gamma=kernel.gamma) @ narrow),
    }
    with threadpool_limits(1):
        taken = report(actions, options.turns)
    for alone, all_classes in (("Gram pass, one column", names[0]), ("Gram pass, six columns", names[1])):
        ratio = median(a / b for a, b in zip(taken[all_classes], taken[alone], strict=True))
        print(f"\n{all_classes}: {ratio:.2f} times as long as one class")
    print(f"\nReads of the data in one product: {engine.cost.points / n:.1f}")


def report(actions: dict[str, Callable[[], object]], turns: int) -> dict[str, list[float]]:
    """Print the table; returns the seconds of each turn."""
    taken: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(turns):
        for name, action in actions.items():
            began = perf_counter()
            action()
            taken[name].append(perf_counter() - began)
    print("| what | seconds | Gram pass / this | peak memory, MB |")
    print("|---|---|---|---|")
    pass_seconds = taken["Gram pass, one column"]
    for name, seconds in taken.items():
        ratio = median(a / b for a, b in zip(pass_seconds, seconds, strict=True))
        print(f"| {name} | {median(seconds):.3g} | {ratio:.2f} | {peak(actions[name]) / 1e6:.4g} |")
    return taken


if __name__ == "__main__":
    main()
