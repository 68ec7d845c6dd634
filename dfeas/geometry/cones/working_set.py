"""The working set of cones: whole cones in memory, and a pass only to find what they lack.

    W <- cones of some blocks
    repeat   y, x <- the widest y and its x on W (``dfeas.cones.barrier``)
             one pass with y: the cones whose least eigenvalue is below half of the least one on W join it, the lowest first

There are finitely many cones, and each pass that does not separate adds some, so it ends. Evidence: y with its least eigenvalue
over all cones; x on the cones of W, whose |Ax| bounds every margin. Passes: a sample, and one for each growth of W.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dfeas.geometry.cones.barrier import SETTLED, widest
from dfeas.geometry.cones.select import Kept, SelectCones, none
from dfeas.linalg.points import Floats
from dfeas.methods.protocol import Bracket, Evidence, Facts, Method, Sparse, Traits
from dfeas.passes.protocol import Partial, Question, together
from dfeas.passes.softmin import Softmin

SAMPLED = 20
"""Rows of the sample for each entry of y."""
GATHERED = 60
"""Rows that join after a pass, at most, for each entry of y."""
USUAL = 200
"""Rows that memory is projected for, for each entry of y: 20 to 90 were there in the end of trials of all kinds with m = 50."""
LEAST = 4
"""Rows for each entry of y without which a sample says little."""
COPIES = 6
"""Of the rows in memory, while the solver works."""
ANSWERED = 8
"""Of the rows that memory holds one in so many is in an answer: some answers wait to be merged."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of whole cones that memory holds, and needs."""

    m: int
    memory: int  # bytes for what a method keeps
    largest: int = 1  # rows of the largest cone

    @property
    def most(self) -> int:
        return max(1, self.memory // (8 * self.m * COPIES))

    @property
    def answered(self) -> int:
        """Of an answer, at most; a larger cone comes alone."""
        return max(1, min(GATHERED * self.m, self.most // ANSWERED))

    @property
    def least_memory(self) -> int:
        """Bytes without which it is of no use: for a sample, and for three of the largest cones."""
        return 8 * self.m * COPIES * max(LEAST * self.m, 3 * self.largest)

    @property
    def fits(self) -> bool:
        """Whether it is of use."""
        return self.memory >= self.least_memory

    @property
    def usual(self) -> int:
        """That it usually has in the end."""
        return min(self.most, max(USUAL * self.m, 3 * self.largest))

    @property
    def usual_bytes(self) -> int:
        """Bytes that these take, with answers."""
        return 8 * self.m * (COPIES * self.usual + ANSWERED * self.answered)


SAMPLE_BLOCKS = 8
"""Blocks that the sample is drawn from, at most."""
SHARE = 0.5
"""Of the best margin on W that y must have."""


@dataclass(frozen=True, slots=True)
class ConeWorkingSetState:
    """Between passes."""

    m: int
    blocks: int
    memory: int  # bytes for rows
    share: float  # of the best margin on W that y must have
    sampled: bool
    kept: Kept
    y: Floats  # (m,) to ask
    low: float  # its least eigenvalue on W
    hopeful: bool  # W has a separator
    bracket: Bracket
    best: Sparse | None  # x with |Ax| = bracket.upper
    violated: int | None
    stalled: str
    rounds: int


@dataclass(frozen=True, slots=True)
class ConeWorkingSet(Method[ConeWorkingSetState]):
    """No parameters."""

    traits: Traits = Traits("working-set", cones=1.0, columns=True)

    def init(self, facts: Facts) -> ConeWorkingSetState:
        share = SHARE if facts.tolerance is None else 1 - facts.tolerance / 2
        zero = np.zeros(facts.m)
        return ConeWorkingSetState(
            facts.m, facts.blocks, facts.memory, share, False, none(facts.m), zero, -1.0, True, Bracket(), None, None, "", 0
        )

    def ask(self, state: ConeWorkingSetState) -> Question:
        """A sample, or what W lacks."""
        rows = Rows(state.m, state.memory)
        if not state.sampled:
            count = min(state.blocks, SAMPLE_BLOCKS)
            blocks = tuple(sorted({state.blocks * i // count for i in range(count)}))
            cap = min(max(1, rows.most // 2), SAMPLED * state.m)
            return Partial(SelectCones(state.y, np.inf, cap, max(1, -(-cap // count))), blocks)
        cap = max(1, min(rows.most - len(state.kept.index), rows.answered))
        bar = state.low * (SHARE if state.share == SHARE else state.share)
        return together([Softmin(state.y[:, None], np.zeros(1)), SelectCones(state.y, bar, cap, cap)])

    def tell(self, state: ConeWorkingSetState, answer: Any) -> ConeWorkingSetState:
        """W grows, and is solved."""
        if not state.sampled:
            return _solved(replace(state, sampled=True, kept=answer.cones))
        softmin, selected = answer
        bracket = state.bracket.with_separator(state.y, float(softmin.low[0]))
        state = replace(state, bracket=bracket, violated=selected.violated)
        more = selected.cones.without(state.kept)
        if not len(more.index):
            return replace(state, stalled="no cone that memory lacks is lower", hopeful=False)
        if len(state.kept.index) + len(more.index) > Rows(state.m, state.memory).most:
            return replace(state, stalled="memory holds no more cones; raise --memory, or use mirror-prox", hopeful=False)
        return _solved(replace(state, kept=state.kept.joined(more)))

    def bound(self, facts: Facts, margin: float) -> float:
        """One for each growth: all rows, by so many at a time, at most."""
        return 2 + facts.n / (GATHERED * facts.m)

    def evidence(self, state: ConeWorkingSetState) -> Evidence:
        best = state.best
        return Evidence(
            state.bracket,
            None if best is None else lambda: best,
            state.rounds,
            state.violated,
            state.stalled,
            hopeful=state.hopeful,
        )


def _solved(state: ConeWorkingSetState) -> ConeWorkingSetState:
    found = widest(state.kept, state.share)
    bracket, best = state.bracket, state.best
    if found.upper < bracket.upper:
        bracket, best = bracket.with_upper(found.upper), Sparse(state.kept.index, found.x)
    hopeful = found.low > 0
    stalled = "" if hopeful else f"the cones in memory have no separator, |Ax| = {found.upper:.3g}"
    return replace(
        state,
        y=found.y,
        low=found.low,
        hopeful=hopeful and found.upper > SETTLED,
        bracket=bracket,
        best=best,
        stalled=stalled,
        rounds=state.rounds + 1,
    )
