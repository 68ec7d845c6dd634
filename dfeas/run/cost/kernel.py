"""What a run with a kernel will take, before it begins: memory of each process, and bytes of a pass."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from dfeas.data.dataset import Dataset
from dfeas.engine.memory import cache_bytes, thread_bytes
from dfeas.engine.scan import reads, runs_of
from dfeas.geometry.kernel.kernel import Kernel
from dfeas.geometry.kernel.select import TILE_BYTES
from dfeas.geometry.kernel.sizes import points_bytes, product_columns, vector_bytes
from dfeas.geometry.kernel.tiles import TILE_ROWS
from dfeas.geometry.kernel.working_set import capacity
from dfeas.linalg.points import working
from dfeas.methods.protocol import Facts
from dfeas.problem import facts_of
from dfeas.run.cost.projection import CLIENT_BYTES, PROCESS_BYTES, Projection, read_bytes

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


def project_kernel(
    dataset: Dataset,
    kernel: Kernel,
    methods: Sequence[str],
    memory: int,
    *,
    workers: int = 0,
    threads: int = 1,
    classes: int = 1,
) -> Projection:
    """Project a run of methods side by side in a kernel's space, with a budget for each process; or one for some classes.

    ``threads`` are those of each process that reads, ``workers`` worker processes. Raises UsageError when the budget is too
    small for a block.
    """
    own, worker_own = own_bytes(dataset, methods, memory, workers, threads, classes)
    kept = cache_bytes(dataset, memory, threads, worker=workers > 0)
    first, later = read_bytes(dataset, kept, workers)
    if later and any(name != "working-set" for name in methods):
        later = int(reads(dataset) * later)
        first = max(first, later)
    scanning = PROCESS_BYTES + threads * (thread_bytes(dataset) + scan_bytes(dataset, methods))
    reading = scanning + kept + tile_bytes(dataset, kernel, methods, memory, workers=workers, threads=threads, classes=classes)
    if not workers:
        return Projection(int(reading + own), 0, kept, first, later)
    return Projection(int(PROCESS_BYTES + CLIENT_BYTES + own), int(reading + worker_own), kept, first, later)


def own_bytes(
    dataset: Dataset, methods: Sequence[str], memory: int, workers: int, threads: int, classes: int = 1
) -> tuple[int, int]:
    """What methods and their questions take: where they live, and in each worker, which has questions and answers only."""
    facts, total = facts_of(dataset, memory // len(methods)), threads * max(1, workers)
    share = facts_of(dataset, memory // len(methods) // classes)  # of each class, where methods keep n-vectors
    own = 0
    for name in methods:
        own += points_bytes(facts, classes) if name == "working-set" else classes * vector_bytes(name, share, total)
    columns = sum(classes * product_columns(name, share) for name in methods if name != "working-set")
    return own, min(own, 8 * dataset.n * columns * 4)


def tile_bytes(
    dataset: Dataset,
    kernel: Kernel,
    methods: Sequence[str],
    memory: int,
    *,
    workers: int = 0,
    threads: int = 1,
    classes: int = 1,
) -> int:
    """What the budget of a process that reads leaves for tiles, from one product to the next; at most all of them."""
    if not set(methods) & set(WHOLE):
        return 0
    own = own_bytes(dataset, methods, memory, workers, threads, classes)[workers > 0]
    scanning = threads * (thread_bytes(dataset) + scan_bytes(dataset, methods))
    left = memory - own - scanning - cache_bytes(dataset, memory, threads, worker=workers > 0)
    return max(0, min(left, all_tile_bytes(dataset, kernel)))


def all_tile_bytes(dataset: Dataset, kernel: Kernel) -> int:
    """Of the upper half of the Gram matrix, if products in float32 are safe wherever they may be."""
    single = working(dataset.dtype) == np.float32 and kernel.of_products and kernel.name != "exponential"
    return (4 if single else 8) * dataset.n * (dataset.n + TILE_ROWS) // 2


def scan_bytes(dataset: Dataset, methods: Sequence[str]) -> int:
    """What a thread holds beside blocks: two prepared runs; or kernel values of some points with those of an expansion."""
    longest = max(len(run) for run in runs_of(dataset))
    entries = dataset.entries
    width = dataset.m if entries is None else min(dataset.m, 2 * entries.count // dataset.n + 2)
    pairs = 2 * longest * width * PREPARED
    scores = 2 * TILE_BYTES + PREPARED * width * dataset.block_rows
    return max(scores if name == "working-set" else pairs for name in methods)


def usual_products(method: str, facts: Facts, most: float) -> float:
    """Products, or passes of a working set, that are usual, where the theorem says ``most``."""
    return min(most, FULL_PASSES) if method == "working-set" else min(most, max(2.0, USUAL[method] * most))


def expansion(facts: Facts) -> float:
    """Points of the expansion of a working set, as a rule: what memory holds, where that is less."""
    return min(float(capacity(facts)), EXPANSION * sqrt(facts.n))


def values(method: str, facts: Facts) -> float:
    """Values of the kernel that a product, or a pass of a working set, evaluates as a rule."""
    n = float(facts.n)
    if method == "working-set":
        return n * expansion(facts)
    return n * n / 2 if method in WHOLE else min(n * n / 2, n * product_columns(method, facts))
