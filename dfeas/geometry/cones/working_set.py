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
from dfeas.geometry.cones.select import Kept, SelectCones, Selected
from dfeas.linalg.points import Floats
from dfeas.methods.protocol import Bracket, Facts, Sparse, Traits
from dfeas.methods.working_set import WorkingSet, WorkingSetState
from dfeas.passes.classes import together
from dfeas.passes.protocol import Partial, Question
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ConeWorkingSetState(WorkingSetState):
    """With the y that is the widest on W; ``cap`` counts rows."""

    columns: Kept | None = None
    y: Floats  # (m,) to ask
    low: float = -1.0  # its least eigenvalue on W
    separated: bool = True  # W has a separator, and lacks cones

    @property
    def share(self) -> float:
        """Of the best margin on W that y must have."""
        return SHARE if self.facts.tolerance is None else 1 - self.facts.tolerance / 2


@dataclass(frozen=True, slots=True)
class ConeWorkingSet(WorkingSet[ConeWorkingSetState]):
    """No parameters."""

    traits: Traits = Traits("working-set", cones=1.0, columns=True)

    def init(self, facts: Facts) -> ConeWorkingSetState:
        return ConeWorkingSetState(facts=facts, cap=Rows(facts.m, facts.memory).most, y=np.zeros(facts.m))

    def ask(self, state: ConeWorkingSetState) -> Question:
        """A sample, or what W lacks."""
        m, blocks, kept = state.facts.m, state.facts.blocks, state.columns
        if kept is None:
            count = min(blocks, SAMPLE_BLOCKS)
            cap = min(max(1, state.cap // 2), SAMPLED * m)
            select = SelectCones(state.y, np.inf, cap, max(1, -(-cap // count)))
            return Partial(select, tuple(sorted({blocks * i // count for i in range(count)})))
        cap = max(1, min(state.cap - len(kept.index), Rows(m, state.facts.memory).answered))
        return together([Softmin(state.y[:, None], np.zeros(1)), SelectCones(state.y, state.low * state.share, cap, cap)])

    def sampled(self, state: ConeWorkingSetState, answer: Selected) -> Kept:
        return answer.cones

    def scored(self, state: ConeWorkingSetState, answer: Any) -> tuple[Bracket, int]:
        softmin, selected = answer
        return state.bracket.with_separator(state.y, float(softmin.low[0])), selected.violated

    def grown(self, state: ConeWorkingSetState, answer: Any, before: Bracket) -> ConeWorkingSetState:
        """With the cones that were taken, as many as memory holds."""
        kept: Any = state.columns
        more = answer[1].cones.without(kept)
        if not len(more.index):
            return replace(state, stalled="no cone that memory lacks is lower", separated=False)
        if len(kept.index) + len(more.index) > state.cap:
            return replace(state, stalled="memory holds no more cones; raise --memory, or use mirror-prox", separated=False)
        return self.solved(replace(state, columns=kept.joined(more)))

    def solved(self, state: ConeWorkingSetState) -> ConeWorkingSetState:
        kept: Any = state.columns
        solution = widest(kept, state.share)
        if solution.upper < state.bracket.upper:
            best = Sparse(kept.index, solution.x)
            state = replace(state, best=best, bracket=state.bracket.with_upper(solution.upper))
        return replace(
            state,
            y=solution.y,
            low=solution.low,
            separated=solution.low > 0 and solution.upper > SETTLED,
            stalled="" if solution.low > 0 else f"the cones in memory have no separator, |Ax| = {solution.upper:.3g}",
            steps=state.steps + 1,
        )

    def hopeful(self, state: ConeWorkingSetState) -> bool:
        return state.separated

    def bound(self, facts: Facts, margin: float) -> float:
        """One for each growth: all rows, by so many at a time, at most."""
        return 2 + facts.n / (GATHERED * facts.m)
