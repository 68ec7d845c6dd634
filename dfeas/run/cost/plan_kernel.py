"""What a run with a kernel would cost: memory, products and time of each method."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import ceil

import numpy as np

from dfeas.data.dataset import Dataset
from dfeas.data.storage.readers import Cost
from dfeas.engine.scan import reads
from dfeas.geometry.kernel.distances import Array
from dfeas.geometry.kernel.kernel import Kernel, seen
from dfeas.geometry.kernel.tiles import TILE_ROWS, Run
from dfeas.geometry.kernel.working_set import capacity
from dfeas.linalg.blas import one_thread
from dfeas.methods.protocol import Facts
from dfeas.problem import facts_of
from dfeas.run.cost.estimate import Estimate, Plan, in_turns
from dfeas.run.cost.kernel import WHOLE, all_tile_bytes, expansion, project_kernel, tile_bytes, usual_products, values
from dfeas.run.kernel_choice import KERNEL_METHODS, choose_kernel_method, kernels_abreast, missing

SOLVES = 60
"""Factorisations of the Gram matrix of the expansion that a working set usually computes."""
TURNS = 3
"""A tile is timed so often; the best counts."""


def kernel_plan(
    dataset: Dataset,
    kernel: Kernel,
    method: str | None,
    margin: float,
    budget: int,
    threads: int,
    pass_seconds: tuple[float, float],
    classes: int = 1,
) -> Plan:
    """Estimates of one method or of all, for some classes on the same reads. Raises UsageError when the one asked for does not
    fit the budget.
    """
    facts = facts_of(dataset, budget)
    auto = choose_kernel_method("auto", facts, threads)[0]
    if method is not None:
        method = choose_kernel_method(method, facts, threads)[0]
    computed, kept = (seconds / threads for seconds in value_seconds(dataset, kernel))
    estimates = []
    for name in KERNEL_METHODS if method is None else [method]:
        together = kernels_abreast(name, classes, dataset, budget)
        rounds = ceil(classes / together)
        most = rounds * KERNEL_METHODS[name](kernel).bound(facts, margin)
        products = rounds * usual_products(name, facts, most / rounds)
        first, later = pass_seconds
        reading = first + (products - 1) * later if name == "working-set" else products * reads(dataset) * later
        thinking = classes * solver_seconds(facts) if name == "working-set" else 0.0
        share = kept_share(dataset, kernel, name, budget, threads, together)
        again = kept * share + computed * (1 - share)
        seconds = reading + values(name, facts) * (computed + (products - 1) * again) + thinking
        memory = project_kernel(dataset, kernel, [name], budget, threads=threads, classes=together).memory_bytes
        remark = "; ".join(text for text in (in_turns(together, classes), _remark(name, facts, threads)) if text)
        estimates.append(Estimate(name, name == auto, memory, products, most, seconds, remark))
    later_bytes = project_kernel(dataset, kernel, ["working-set"], budget, threads=threads).later_bytes
    product_bytes = project_kernel(dataset, kernel, ["mirror-prox"], budget, threads=threads).later_bytes
    return Plan(
        dataset.n,
        dataset.m,
        dataset.bytes,
        later_bytes,
        threads,
        *pass_seconds,
        margin,
        tuple(estimates),
        classes,
        str(kernel),
        product_bytes,
        computed,
    )


def _remark(name: str, facts: Facts, threads: int) -> str:
    if name == "working-set":
        return f"an expansion of at most {capacity(facts)} points" if capacity(facts) < facts.n else ""
    need = missing(name, facts, threads)
    return f"does not fit: --memory {ceil(need / 1e6)}MB is needed" if need else ""


def solver_seconds(facts: Facts) -> float:
    """Seconds of the solver in memory, from the speed of a product."""
    trial = np.ones((TILE_ROWS, TILE_ROWS))
    seconds = min(_elapsed(lambda: trial @ trial) for _ in range(TURNS))
    return SOLVES * seconds / 6 * (expansion(facts) / TILE_ROWS) ** 3


def kept_share(dataset: Dataset, kernel: Kernel, method: str, budget: int, threads: int, classes: int = 1) -> float:
    """Share of the tiles that a later product of all points finds in memory."""
    if method not in WHOLE:
        return 0.0
    return tile_bytes(dataset, kernel, [method], budget, threads=threads, classes=classes) / all_tile_bytes(dataset, kernel)


def value_seconds(dataset: Dataset, kernel: Kernel) -> tuple[float, float]:
    """Seconds of a thread for one value of the kernel and its products with one column, from the first points; and for the
    products alone.
    """
    block = next(iter(dataset.read_blocks(range(1), Cost())))
    points = seen(block.points[:TILE_ROWS]).copy()
    count = points.shape[0]
    run = Run(kernel, 0, points, block.label[:TILE_ROWS].astype(np.float64))
    with one_thread():
        ((left, right),) = run.tiles(run.safe)
        kept = kernel.tile(left, right)
        column = np.ones((count, 1), kept.dtype)
        computing = min(_elapsed(lambda: _multiplied(kernel.tile(left, right), column)) for _ in range(TURNS))
        multiplying = min(_elapsed(lambda: _multiplied(kept, column)) for _ in range(TURNS))
    return computing / count**2, multiplying / count**2


def _multiplied(tile: Array, column: Array) -> tuple[Array, Array]:
    return tile @ column, tile.T @ column


def _elapsed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
