"""Memory that methods for kernels take: n-vectors and what a product makes of them, or points in memory."""

from __future__ import annotations

from dfeas.geometry.kernel.perceptrons import KernelPerceptron
from dfeas.geometry.kernel.working_set import FIRST, capacity, point_bytes
from dfeas.methods.protocol import Facts

STATE = 40
"""Bytes of each point that a method keeps of its own, beside copies of the columns of a product."""
COPIES, NODES, MOST_COPIES = 4.0, 1.5, 40.0
"""Copies of the columns of a product: in question and answer, for each range of pairs, and at most."""
COLUMNS = {"mirror-prox": 6, "mirror-prox-fixed": 2}
"""Of a product; one where nothing is said. All measured with tracemalloc."""
MATRICES = 6
"""Gram matrices of the points in memory, at the peak, with their factors."""


def product_columns(method: str, facts: Facts) -> int:
    """Columns of a product of a method."""
    if method == "perceptron":
        return KernelPerceptron.columns(facts)
    return COLUMNS.get(method, 1)


def vector_bytes(method: str, facts: Facts, threads: int) -> int:
    """Bytes of a method that keeps n-vectors, with so many threads that compute products."""
    ranges = 4 * threads if threads > 1 else 1
    copies = min(COPIES + NODES * ranges, MOST_COPIES)
    return int(facts.n * (STATE + 8 * copies * product_columns(method, facts)))


def points_bytes(facts: Facts, classes: int = 1) -> int:
    """Bytes of the working sets of some classes that fill the memory they may have, or hold all points."""
    cap = min(facts.n, max(capacity(facts, classes), 2 * FIRST))
    return cap * (8 * MATRICES * cap + 2 * classes * point_bytes(facts))
