"""What a run with a kernel will take, before it begins: memory of each process, and bytes of a pass."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from dfeas.engine.pairs import points_read, runs
from dfeas.kernels.select import TILE_BYTES
from dfeas.kernels.sizes import points_bytes, product_columns, vector_bytes
from dfeas.kernels.tiles import TILE_ROWS
from dfeas.memory import cache_bytes, thread_bytes
from dfeas.methods import Facts
from dfeas.projection import CLIENT_BYTES, PROCESS_BYTES, Projection, read_bytes
from dfeas.request import facts_of
from dfeas.store import Dataset

PREPARED = 20
"""Bytes of a feature of a run: as stored, and for the left and the right of tiles in float64."""

USUAL = {
    "mirror-prox": 0.2,
    "mirror-prox-fixed": 0.5,
    "smooth-perceptron": 0.25,
    "perceptron": 0.2,
    "normalized-perceptron": 0.5,
    "von-neumann": 0.4,
    "snkpvn": 0.03,
    "ispvn": 0.02,
}
"""Products that a run takes, as a share of the bound of its theorem: the largest on problems of 100 and 300 points, rounded
up.
"""
WHOLE = ("mirror-prox", "mirror-prox-fixed", "smooth-perceptron", "snkpvn", "ispvn")
"""Methods whose products are of all points; those of the others are of a few unit vectors."""
FULL_PASSES = 6.0
"""Of a working set, as a rule."""
EXPANSION = 30.0
"""Points of its expansion, as a rule, over the square root of n: benchmarks/kernel_working_set.py."""


def project_kernel(dataset: Dataset, methods: Sequence[str], memory: int, *, workers: int = 0, threads: int = 1) -> Projection:
    """Project a run of methods side by side in a kernel's space, with a budget for each process.

    ``threads`` are those of each process that reads, ``workers`` worker processes. Raises UsageError when the budget is too
    small for a block.
    """
    facts = facts_of(dataset, memory // len(methods))
    total = threads * max(1, workers)
    own = own_bytes(facts, methods, total)
    scanning = PROCESS_BYTES + threads * (thread_bytes(dataset) + scan_bytes(dataset, methods))
    kept = cache_bytes(dataset, memory, threads, worker=workers > 0)
    pairs = any(name != "working-set" for name in methods)
    first, later = read_bytes(dataset, kept, workers)
    if pairs and later:
        later = int(points_read(dataset) / dataset.n * later)
        first = max(first, later)
    if not workers:
        kept_tiles = tile_bytes(dataset, methods, memory, threads)
        return Projection(int(scanning + own + kept + kept_tiles), 0, kept, first, later)
    columns = sum(product_columns(name, facts) for name in methods if name != "working-set")
    answers = min(own, 8 * dataset.n * columns * 4)
    return Projection(int(PROCESS_BYTES + CLIENT_BYTES + own), int(scanning + answers + kept), kept, first, later)


def own_bytes(facts: Facts, methods: Sequence[str], threads: int) -> int:
    """What methods keep, and what their questions make of it; ``facts`` are those of each."""
    return sum(points_bytes(facts) if name == "working-set" else vector_bytes(name, facts, threads) for name in methods)


def tile_bytes(dataset: Dataset, methods: Sequence[str], memory: int, threads: int) -> int:
    """What the budget leaves for tiles, from one product to the next, in a process that keeps n-vectors: at most all of them.

    In float64 where products in float32 may not be safe.
    """
    if not set(methods) & set(WHOLE):
        return 0
    own = own_bytes(facts_of(dataset, memory // len(methods)), methods, threads)
    scanning = threads * (thread_bytes(dataset) + scan_bytes(dataset, methods))
    left = memory - own - scanning - cache_bytes(dataset, memory, threads, worker=False)
    return max(0, min(left, dataset.dtype.itemsize * (dataset.n + TILE_ROWS) ** 2 // 2))


def scan_bytes(dataset: Dataset, methods: Sequence[str]) -> int:
    """What a thread holds beside blocks: two prepared runs; or kernel values of some points with those of an expansion."""
    longest = max(len(run) for run in runs(dataset.n, dataset.m, dataset.block_rows))
    pairs = 2 * longest * dataset.m * PREPARED
    scores = 2 * TILE_BYTES + PREPARED * dataset.m * dataset.block_rows
    return max(scores if name == "working-set" else pairs for name in methods)


def usual_products(method: str, facts: Facts, most: float) -> float:
    """Products, or passes of a working set, that are usual, where the theorem says ``most``."""
    return min(most, FULL_PASSES) if method == "working-set" else min(most, max(2.0, USUAL[method] * most))


def expansion(facts: Facts) -> float:
    """Points of the expansion of a working set, as a rule."""
    return min(float(facts.n), EXPANSION * sqrt(facts.n))


def values(method: str, facts: Facts) -> float:
    """Values of the kernel that a product, or a pass of a working set, evaluates as a rule."""
    n = float(facts.n)
    if method == "working-set":
        return n * expansion(facts)
    return n * n / 2 if method in WHOLE else min(n * n / 2, n * product_columns(method, facts))
