"""Work of a run on points, in bytes that products with vectors read from memory: what ``auto`` compares.

A prediction is a sum of terms, bytes that follow from the sizes of the data, times constants, from processor time by
``benchmarks/wide.py --calibrate``. A byte of a product with a vector takes 0.04 ns in one thread.
"""

from __future__ import annotations

from math import sqrt

from dfeas.linalg.columns import DIRECT
from dfeas.methods.protocol import Facts
from dfeas.methods.working_set import column_bytes, held_columns

Terms = tuple[float, ...]

MIRROR_PROX = (215.0, 75.0)
"""A byte of the data, with five steps tried and two candidates in each pass; and the same times sqrt(n / m). From halfspace of
the grid, on a busy machine: 269, 237, 484 and 737 in all where sqrt(n / m) is 0.5, 0.7, 3.2 and 7.1.
"""

SELECT, HELD, PRODUCTS, STEPS, SQUARES = 34.0, 230.0, 7.5, 60.0, 8.0
"""A byte of the data, read twice; of W, taken and joined in memory that was not touched before; products by which conjugate
gradients separate W, over sqrt(n / m); products, and Gram matrices of all W, where it is factorised. The first three fit the
grid, where points without a wrong label take 0.6 to 1.4 times what they predict; the grid has no float64.
"""

MOST = 3.75
"""sqrt(n / m) from which conjugate gradients need no more products."""

NAMED = 1 << 38
"""Ten seconds of work that a working set may take more: it names the points of a conflict, and proves it exactly."""


def solves_by_products(facts: Facts) -> bool:
    """Whether the solver in memory works by products with vectors: on float32, on sparse columns, and where a factor is too
    large.
    """
    return facts.entries > 0 or facts.itemsize <= 4 or min(facts.m, facts.n) > DIRECT


def products(facts: Facts) -> float:
    """Products of W with vectors, as a rule."""
    return PRODUCTS * _spread(facts) if solves_by_products(facts) else STEPS


def working_set_terms(facts: Facts) -> Terms:
    """Bytes of the data, of W, and for conjugate gradients of W times sqrt(n / m); or of W, and of its Gram matrices."""
    columns = held_columns(facts)
    held, data = columns * column_bytes(facts), facts.n * facts.column_bytes
    if solves_by_products(facts):
        return data, held, held * _spread(facts), 0.0, 0.0
    return data, held, 0.0, held, columns * facts.m * min(facts.m, columns)


def mirror_prox_terms(facts: Facts) -> Terms:
    """Bytes of the data, and the same times sqrt(n / m)."""
    data = facts.n * facts.column_bytes
    return data, data * sqrt(facts.n / facts.m)


def working_set(facts: Facts) -> float:
    """Of two passes and the solver in memory."""
    return _sum((SELECT, HELD, PRODUCTS, STEPS, SQUARES), working_set_terms(facts))


def mirror_prox(facts: Facts) -> float:
    """Of the passes of mirror prox in one pass a step."""
    return _sum(MIRROR_PROX, mirror_prox_terms(facts))


def _spread(facts: Facts) -> float:
    """sqrt(n / m), between 1 and where it matters no more."""
    return min(MOST, sqrt(max(1.0, facts.n / facts.m)))


def _sum(constants: Terms, terms: Terms) -> float:
    return sum(constant * term for constant, term in zip(constants, terms, strict=True))
