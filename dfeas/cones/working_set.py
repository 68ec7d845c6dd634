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

from dfeas.cones.barrier import SETTLED, widest
from dfeas.cones.select import Kept, SelectCones, none
from dfeas.cones.working_set_size import GATHERED, SAMPLED, Rows
from dfeas.methods.protocol import Bracket, Evidence, Facts, Sparse
from dfeas.passes import Partial, Question, Softmin, together
from dfeas.passes.block import Floats

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
class ConeWorkingSet:
    """No parameters."""

    name: str = "working-set"

    def init(self, facts: Facts) -> ConeWorkingSetState:
        """W is empty."""
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
        """Both ends of the bracket."""
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
