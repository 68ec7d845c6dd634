"""Batches: the blocks that columns in memory meet before all blocks are read, and how many columns each meeting adds.

Reference: own; the leave-one-out bound of Vapnik and Chapelle 2000. The widest separator of N columns in random order rests on
at most m of them, so that on average no more than a share of m / (N + 1) of further columns is wrong. Hence

    W <- a random sample of 8 m columns, from a few blocks
    repeat, until a quarter of all columns is met, or a batch has none wrong
      separate W, and look at a batch of other blocks: N grows by one factor r <= 5, and (r - 1) m are wrong, or fewer
      W <- W + the 4 m lowest-scoring columns of the batch
    the first full pass, with 3 m wrong, or fewer, adds the 30 m lowest-scoring columns of all; the next one has none wrong

needs a quarter of a pass more than a sample of sqrt(m n) columns and a band of five times as many, and a W whose size does not
grow with n: 50 m columns on halfspace, for 130 m where n is 500 m. A band of 18 m was too narrow for 3 runs of 12. It is
chosen where the columns that it saves are more work than a quarter of a pass; or where memory has no room for a band without
it, and then begins with a third of what there is room for, until a tenth is met, and has the widest band that is left; and,
until half is met, where the first full pass would have more wrong than W may take: the lowest that there is room for stay after
each batch.

Memory holds ``copies`` of W while it grows, and while it is solved ``solved_copies``, and beside them ``systems`` of a basis,
which its solver factorises. Where a basis leaves too few columns room, W gets all of it, and the solver takes conjugate
gradients. A conflict that these find is named all the same, in about five systems while W is there: the checker, which proves
it, takes more.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import ceil, isqrt, log

import numpy as np
from msgspec import Struct

from dfeas.errors import enough
from dfeas.linalg import separation
from dfeas.methods.protocol import Facts
from dfeas.methods.working_set import AT
from dfeas.passes.protocol import Blocks, Partial
from dfeas.passes.select import sample, shuffle_others
from dfeas.records import replace


def column_bytes(facts: Facts) -> int:
    """Bytes of a column in memory."""
    return int(facts.column_bytes) + AT.row_overhead


def at_once(facts: Facts) -> bool:
    """Whether all columns are so few that a pass less is worth more than what it takes to solve all of them."""
    return facts.n * column_bytes(facts) <= AT.small_bytes


class Schedule(Struct, frozen=True):
    """What W meets one after the other, before and on the first full pass."""

    sample: Partial
    count: int  # columns of the sample
    batches: tuple[Blocks, ...]  # disjoint ones
    taken: int  # columns of each batch
    band: int  # columns of the first full pass

    @property
    def columns(self) -> int:
        """Of W after the first full pass."""
        return self.count + len(self.batches) * self.taken + self.band

    def share(self, blocks: int) -> float:
        """Of a pass, before the first full one."""
        return sum(map(len, (self.sample.blocks, *self.batches))) / blocks


@lru_cache(maxsize=8)
def schedule(facts: Facts, cap: int, seed: int) -> Schedule:
    """With batches where W without them is so large that they are worth their share of a pass and W with them fits, or where a
    full W leaves more wrong than it may take; all columns at once, when the first pass would take them anyway, or they are few.
    """
    m, n = facts.m, facts.n
    count = max(isqrt(m * n), AT.sample_least * m, 1000)
    if n <= cap and (n <= AT.fill * count or at_once(facts)):
        return Schedule(_draw_sample(facts, n, seed), n, (), 0, 0)
    heavy = min(n, (1 + AT.fill) * count) * column_bytes(facts) > AT.heavy_bytes and AT.worth * count > n
    if (heavy or (1 + AT.fill) * count > cap) and facts.tolerance is None:
        first = AT.sample * m if heavy else max(AT.sample * m, min(count, cap // AT.cramped_sample))
        drawn = _draw_sample(facts, first, seed)
        batches = _cut_batches(facts, first, drawn.blocks, seed, AT.met if heavy else AT.cramped_met)
        found = Schedule(drawn, first, batches, AT.taken * m, AT.band * m)
        if found.columns <= cap:
            return found if heavy else replace(found, band=min(AT.fill * count, cap - (found.columns - found.band)))
    crowded = cap < n and cap * cap < 2 * m * n  # a sample of cap leaves m n / cap wrong, and a pass may take cap / 2
    count = min(count, cap if crowded else max(1, cap // 2))
    drawn = _draw_sample(facts, count, seed)
    batches = _cut_batches(facts, count, drawn.blocks, seed, AT.full_met) if crowded else ()
    return Schedule(drawn, count, batches, cap // 2 if crowded else 0, AT.fill * count)


def _draw_sample(facts: Facts, count: int, seed: int) -> Partial:
    return sample(facts.m, count, facts.n, facts.blocks, min(AT.from_each, -(-facts.blocks // 8)), seed)


def _cut_batches(facts: Facts, count: int, drawn: Blocks, seed: int, share: float) -> tuple[Blocks, ...]:
    """Blocks in random order until a share is met, without those of a sample of ``count`` columns."""
    others = shuffle_others(facts.blocks, drawn, seed)
    most = max(1.0, share * facts.n / count)
    steps = max(1, ceil(log(most, AT.growth)))
    met = [round(count * (most ** (step / steps) - 1) * facts.blocks / facts.n) for step in range(steps + 1)]
    edges = sorted({min(len(others), place) for place in met})
    return tuple(tuple(np.sort(others[first:stop]).tolist()) for first, stop in pairwise(edges))


def holds_basis(facts: Facts) -> bool:
    """Whether there is room for a basis of dense columns in float64."""
    return 8 * min(facts.m, facts.n) * facts.m <= separation.AT.basis_bytes


def basis_bytes(facts: Facts) -> int:
    """Bytes of a basis of columns in float64, or of the largest system of sparse ones that is factorised."""
    size = min(facts.m, facts.n)
    return 8 * (min(size, separation.AT.direct_sparse) ** 2 if facts.entries else size * facts.m)


def capacity(facts: Facts) -> int:
    """Columns that W may hold: fewer where that leaves room for a basis, as long as they are the least that is useful."""
    most = min(facts.n, facts.memory // column_bytes(facts))
    basis = min(basis_bytes(facts), separation.AT.basis_bytes)
    beside = int((AT.copies * facts.memory - AT.systems * basis) / AT.solved_copies) // column_bytes(facts)
    return min(most, beside) if beside >= least_columns(facts) else most


def solver_room(facts: Facts) -> int:
    """Bytes of the largest basis of columns, or other copy of them in float64, that the solver in memory may have beside W."""
    left = AT.copies * facts.memory - AT.solved_copies * capacity(facts) * column_bytes(facts)
    return max(AT.least_room, min(separation.AT.basis_bytes, int(left / AT.systems)))


def least_columns(facts: Facts) -> int:
    """Columns without which the method does not work well: all, or four times a basis."""
    return min(facts.n, 4 * (facts.m + 1))


def least_bytes(facts: Facts) -> int:
    """Bytes of these."""
    return least_columns(facts) * column_bytes(facts)


def fits(facts: Facts) -> bool:
    """Whether memory has the least bytes."""
    return facts.memory >= least_bytes(facts)


def usual_columns(facts: Facts) -> int:
    """Columns of W after the first full pass."""
    return min(facts.n, schedule(facts, capacity(facts), 0).columns)


def held_columns(facts: Facts) -> int:
    """Columns that W usually gets."""
    return min(capacity(facts), usual_columns(facts))


def kept_bytes(facts: Facts) -> float:
    """Bytes of what is kept of them at the peak, and of the solver's systems."""
    held = held_columns(facts) * column_bytes(facts)
    return max(AT.copies * held, AT.solved_copies * held + AT.systems * min(basis_bytes(facts), solver_room(facts)))


def drops(facts: Facts) -> bool:
    """Whether W holds so few of the columns it wants that it drops some."""
    return 2 * held_columns(facts) < usual_columns(facts)


def left_columns(facts: Facts) -> int:
    """Columns nearest to the separator that a run leaves; 0 where there is room for so few that they tell nothing."""
    count = min(AT.left * facts.m, AT.left_bytes // column_bytes(facts))
    return count if count >= 2 * facts.m else 0


def passes_ahead(facts: Facts) -> int:
    """How many passes a method that keeps nothing leads: where W has all columns, and its solver no room for a basis of them,
    a few products separate many of them before the solver has begun. An earlier run's direction is better than these.
    """
    wide = not facts.entries and not holds_basis(facts) and facts.n <= capacity(facts)
    return AT.lead if wide and facts.tolerance is None and facts.start is None else 0


def describe_unresolved(facts: Facts) -> str:
    """Why a solver in memory told nothing of its columns: of many features, maybe for want of room for a basis."""
    basis = basis_bytes(facts)
    if facts.entries or solver_room(facts) >= basis or not holds_basis(facts):
        return "the columns in memory have a margin below the rounding of float64, if any"
    least = (AT.systems * basis + AT.solved_copies * least_bytes(facts)) / AT.copies
    room = enough(4 * least)
    return f"the columns in memory are too near to a conflict without a basis, which has room with --memory {room}"
