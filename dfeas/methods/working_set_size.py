"""How large a working set is: what memory holds, what the sample takes, what the first full pass adds."""

from __future__ import annotations

from math import isqrt

from dfeas.methods.protocol import Facts
from dfeas.passes import Partial, sample

SAMPLE_LEAST = 20
"""Columns of the sample per feature, at least."""

FILL = 5
"""The first full pass takes so many times the sample."""

ROW_OVERHEAD = 100
"""Bytes of a column in memory beside its entries: index, factor, score and what the solver keeps of it."""

FROM_EACH = 16
"""Blocks of the sample, at least, where there are many: neighbours are often alike."""


DIRECT_SPARSE = 1000
"""Largest system of sparse columns that the solver in memory factorises."""


def column_bytes(facts: Facts) -> int:
    """Bytes of a column in memory."""
    return int(facts.column_bytes) + ROW_OVERHEAD


def solver_bytes(facts: Facts) -> int:
    """Bytes of the systems that the solver in memory works on, whatever W: about twenty of m x m in float64."""
    size = min(facts.m, facts.n, DIRECT_SPARSE) if facts.entries else min(facts.m, facts.n)
    return 160 * size**2 + 160 * facts.m * bool(facts.entries)


def capacity(facts: Facts) -> int:
    """Columns that W may hold."""
    return max(0, min(facts.n, (facts.memory - solver_bytes(facts) // 4) // column_bytes(facts)))


def least_memory(facts: Facts) -> int:
    """Bytes without which the method does not work well: for all columns, or for four times a basis."""
    return min(facts.n, 4 * (facts.m + 1)) * column_bytes(facts) + solver_bytes(facts) // 4


def fits(facts: Facts) -> bool:
    """Whether they are there."""
    return facts.memory >= least_memory(facts)


def holds(facts: Facts) -> bool:
    """Whether memory holds what it usually takes, so that few columns are dropped, if any."""
    return fits(facts) and capacity(facts) >= usual_columns(facts) // 2


def sample_size(facts: Facts, cap: int) -> int:
    """About sqrt(m n) columns, at least 20 m; all of them, when the first pass would take them anyway."""
    count = max(isqrt(facts.m * facts.n), SAMPLE_LEAST * facts.m, 1000)
    return facts.n if facts.n <= min(cap, FILL * count) else min(count, max(1, cap // 2))


def first_question(facts: Facts, cap: int, seed: int) -> Partial:
    """The question for the sample."""
    least = min(FROM_EACH, -(-facts.blocks // 8))
    return sample(facts.m, sample_size(facts, cap), facts.n, facts.blocks, least, seed)


def sample_share(facts: Facts) -> float:
    """Share of the blocks that the sample reads."""
    return len(first_question(facts, capacity(facts), 0).blocks) / facts.blocks


def usual_columns(facts: Facts) -> int:
    """Columns of W after the first full pass."""
    return min(facts.n, (1 + FILL) * sample_size(facts, capacity(facts)))
