"""Work of a run on points, in bytes that products with vectors read from memory: what ``auto`` compares.

The reference is halfspace: n points on both sides of a random plane, whose margin is as thin as chance makes it. On easier
points both methods end sooner. Numbers are ratios of processor time in one thread: a byte of a product with a vector takes
0.04 ns, and two flops of a product of float64 matrices as much. They come from a few single runs on a busy machine.
"""

from __future__ import annotations

from math import sqrt

from dfeas.linalg.columns import DIRECT
from dfeas.methods.protocol import Facts
from dfeas.methods.working_set import column_bytes, held_columns

PASS, STEPS, START = 18.0, 6.0, 2.0
"""A byte of a pass of mirror prox, with five steps tried and two candidates; its passes over sqrt(n / m), and those before it
knows anything: 7 on halfspace 20,000 x 20,000, 22 on 4000 x 100,000, 127 on 100 x 50,000.
"""

SELECT = 4.0
"""A byte of a pass of the working set."""

FEW_PRODUCTS, MOST_PRODUCTS = 60.0, 225.0
"""Products by which conjugate gradients separate W, over sqrt(n / m), and at most."""

SQUARES, PRODUCTS = 8.0, 60.0
"""Gram matrices and products of all W that its solver computes where it factorises."""

NAMED = 1 << 37
"""A few seconds of work that a working set may take more: it names the points of a conflict, and proves it exactly."""


def iterated(facts: Facts) -> bool:
    """Whether the solver in memory works by products with vectors: on float32, on sparse columns, and where a factor is too
    large.
    """
    return facts.entries > 0 or facts.itemsize <= 4 or min(facts.m, facts.n) > DIRECT


def products(facts: Facts) -> float:
    """Products of W with vectors, as a rule."""
    return min(MOST_PRODUCTS, FEW_PRODUCTS * sqrt(max(1.0, facts.n / facts.m))) if iterated(facts) else PRODUCTS


def working_set(facts: Facts) -> float:
    """Of two passes and the solver in memory."""
    columns = held_columns(facts)
    squares = 0.0 if iterated(facts) else SQUARES * columns * facts.m * min(facts.m, columns)
    return 2 * SELECT * facts.n * facts.column_bytes + products(facts) * columns * column_bytes(facts) + squares


def mirror_prox(facts: Facts) -> float:
    """Of the passes of mirror prox in one pass a step."""
    return (START + STEPS * sqrt(facts.n / facts.m)) * PASS * facts.n * facts.column_bytes
