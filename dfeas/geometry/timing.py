"""Seconds of work in memory, from short trials of the products that it consists of."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from dfeas.linalg.csr import csr
from dfeas.methods.protocol import Facts

TURNS = 3
"""Work is timed so often; the best counts."""

PROBED_FEATURES = 1000
"""Products are timed with at most so many features."""

SQUARES, PRODUCTS = 8, 60
"""Gram matrices and products of the whole working set that its solver usually computes."""

SPARSE_PRODUCTS = 1000
"""Products of all sparse columns that conjugate gradients usually take: text 47,000 x 700,000."""


def least_seconds(work: Callable[[], object], turns: int = TURNS) -> float:
    """Of some turns of the same work."""
    taken = []
    for _ in range(turns):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken)


def solver_seconds(columns: int, facts: Facts) -> float:
    """Time of the solver in memory of points, from the speed of products of a part of the columns."""
    if facts.entries:
        probe_entries = 1_000_000
        indices = np.random.default_rng(0).integers(0, facts.m, probe_entries).astype(np.int32)
        many = csr(np.ones(probe_entries), indices, np.arange(0, probe_entries + 1, 100, dtype=np.int32), facts.m)
        once = least_seconds(lambda: many @ np.ones(facts.m), 1)
        return columns * facts.entries / probe_entries * SPARSE_PRODUCTS * once
    d = min(facts.m, PROBED_FEATURES)
    rows = max(16, min(columns, 1_000_000 // d))
    trial = np.ones((rows, d))
    square, product = least_seconds(lambda: trial.T @ trial), least_seconds(lambda: trial @ trial[0])
    wider = facts.m / d
    return columns / rows * wider * (SQUARES * square * min(wider, columns / d) + PRODUCTS * product)
