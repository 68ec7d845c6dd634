"""The working set of cones: whole cones in memory, and a pass only to find what they lack.

    W <- cones of some blocks
    repeat   y, x <- the widest y and its x on W (``barrier.widest``)
             one pass with y: the cones whose least eigenvalue is below half of the least one on W join it, the lowest first

There are finitely many cones, and each pass that does not separate adds some, so it ends. Evidence: y with its least eigenvalue
over all cones; x on the cones of W, whose |Ax| bounds every margin. Where some features are only in cones that x is on the
boundary of, and the others conflict without these, x is on the others alone. Passes: a sample, and one for each growth of W.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dfeas.cones.algebra import groups_of, least
from dfeas.cones.barrier import SETTLED, ScaledCones, widest
from dfeas.cones.batch import ConeBatch
from dfeas.cones.curvature import DENSE_BYTES, MOST_PAIRED
from dfeas.cones.softmin import factors, fast_scores
from dfeas.linalg.points import Floats, Indices, Tile, dense, is_dense, take_rows, times_rows
from dfeas.methods.protocol import Bracket, Facts, Sparse, Traits
from dfeas.methods.working_set import AT, WorkingSet, WorkingSetState
from dfeas.passes.block import Block
from dfeas.passes.protocol import Partial, Question, together
from dfeas.passes.softmin import Softmin
from dfeas.records import replace


@dataclass(frozen=True, slots=True)
class RowLimit:
    """Rows of whole cones that memory holds, and needs."""

    m: int
    memory: int  # bytes for what a method keeps
    largest: int = 1  # rows of the largest cone
    entries: float = 0.0  # stored ones of a sparse row, on average; 0 of dense ones
    gathered: ClassVar[int] = 60  # rows that join after a pass, at most, for each entry of y
    copies: ClassVar[int] = 6  # of the rows in memory, while the solver works
    answered: ClassVar[int] = 8  # of the rows that memory holds one in so many is in an answer: some wait to be merged

    @property
    def row_bytes(self) -> float:
        return 12 * self.entries + 24 if self.entries else 8 * self.m

    @property
    def solver_bytes(self) -> int:
        """Bytes of the solver that do not depend on how many sparse rows there are."""
        arrays = max(MOST_PAIRED, min(8 * DENSE_BYTES, 48 * self.largest * self.m))
        newton = 32 * (self.m + 1) ** 2  # the matrix of a Newton step, and what is made of it; dense rows take more
        matrices = 192 * self.largest  # a dozen of the order of the largest cone whose rows are sparse
        return newton + matrices + arrays if self.entries else 0

    @property
    def most(self) -> int:
        return max(1, int((self.memory - self.solver_bytes) / (self.row_bytes * self.copies)))

    @property
    def answer_rows(self) -> int:
        """Of an answer, at most; a larger cone comes alone."""
        return max(1, min(self.gathered * self.m, self.most // self.answered))

    @property
    def least_memory(self) -> int:
        """Bytes without which it is of no use: for a sample, and for three of the largest cones."""
        # with fewer rows than 4 for each entry of y a sample says little
        return int(self.row_bytes * self.copies * max(4 * self.m, 3 * self.largest)) + self.solver_bytes

    @property
    def fits(self) -> bool:
        return self.memory >= self.least_memory

    @property
    def usual(self) -> int:
        """That it usually has in the end."""
        # 20 to 90 rows for each entry of y were there in the end of trials of all kinds with m = 50
        return min(self.most, max(200 * self.m, 3 * self.largest))

    @property
    def usual_bytes(self) -> int:
        """Bytes that these take, with answers."""
        return int(self.row_bytes * (self.copies * self.usual + self.answered * self.answer_rows)) + self.solver_bytes


@dataclass(frozen=True, slots=True)
class Selected:
    """Cones at or below the threshold (partial and answer alike)."""

    violated: int  # cones with a least eigenvalue of at most 0, kept or not
    least: Floats  # (c,) least eigenvalues of those that are kept
    cones: ScaledCones


@dataclass(frozen=True, slots=True)
class SelectCones:
    """Of each block the lowest cones of at most ``quota`` rows, of all blocks those of at most ``cap`` rows. With y = 0 they
    are spread evenly over the block. At least one cone is kept, whatever its size.
    """

    y: Floats  # (m,)
    threshold: float  # may be inf
    cap: int
    quota: int

    def scan(self, block: Block) -> Selected:
        factor = factors(block)
        (scores,) = fast_scores(block, self.y[:, None], factor, False)
        starts, values, sizes = [], [], []
        for group in groups_of(block.label):
            some, value = np.arange(len(group.starts)), np.zeros(len(group.starts))
            if self.y.any():
                batch = ConeBatch.of(group, scores)
                some = batch.up_to(some, self.threshold)
                value = batch.least(some)
            kept = value <= self.threshold
            starts.append(group.starts[some[kept]])
            values.append(value[kept])
            sizes.append(np.full(int(kept.sum()), group.dimension))
        if not starts:
            none = np.zeros(0, np.int64)
            return Selected(0, np.empty(0), _keep_rows(block, none, factor))
        start, value, size = np.concatenate(starts), np.concatenate(values), np.concatenate(sizes)
        quota = min(self.quota, self.cap)
        order = np.lexsort((start, value)) if self.y.any() else _spread(start, size, quota)
        chosen = order[_within(size[order], quota)]
        chosen = chosen[np.argsort(start[chosen])]
        rows = np.concatenate(
            [np.arange(a, a + d) for a, d in zip(start[chosen], size[chosen], strict=True)] or [np.empty(0, np.int64)]
        )
        return Selected(int((value <= 0).sum()), value[chosen], _keep_rows(block, rows, factor))

    def merge(self, first: Selected, second: Selected) -> Selected:
        if len(first.least) and len(second.least) and first.cones.index[0] > second.cones.index[0]:
            first, second = second, first
        cones, value = first.cones.merge(second.cones), np.concatenate([first.least, second.least])
        violated = first.violated + second.violated
        if len(cones.index) <= self.cap:
            return Selected(violated, value, cones)
        size = np.bincount(cones.cones())
        evenly = (np.arange(len(value)) * 0.6180339887498949) % 1.0  # numbers that spread over 0 .. 1, the same each time
        order = np.lexsort((np.flatnonzero(cones.label > 0), value)) if self.y.any() else np.argsort(evenly)
        kept = np.zeros(len(value), bool)
        kept[order[_within(size[order], self.cap)]] = True
        return Selected(violated, value[kept], cones.take(kept))

    def finish(self, partial: Selected) -> Selected:
        return partial


def _inside(kept: ScaledCones, x: Floats) -> ScaledCones | None:
    """The cones that x is well inside of, if they lack a feature, so that the rows of all prove nothing exact; else None."""
    room = np.empty(len(x))
    for group in groups_of(kept.label):
        rows = group.rows()
        room[rows] = least(group.kind, group.size, x[rows])[:, None]
    room = room[kept.label > 0]
    deep = room > 1e-4 * room.max()  # as the checker takes them for cones that x may be changed in
    alone = kept.take(deep)
    return alone if room.max() > 0 and (_features(kept.rows) & ~_features(alone.rows)).any() else None


def _features(rows: Tile) -> NDArray[np.bool_]:
    """Features (m,) with entries."""
    if isinstance(rows, np.ndarray):
        return np.asarray(rows.any(axis=0))
    return np.bincount(rows.indices, minlength=rows.shape[1]) > 0


def _keep_rows(block: Block, rows: Indices, factor: Floats) -> ScaledCones:
    some = take_rows(block.points, rows)
    scaled = dense(some) * factor[rows, None] if is_dense(some) else times_rows(some, factor[rows])
    return ScaledCones(block.start + rows, block.label[rows].astype(np.int32), scaled)


def _within(size: Indices, most: int) -> NDArray[np.bool_]:
    """Which of some sizes, one after the other, stay within ``most`` rows; the first one always does."""
    within = np.cumsum(size) <= most
    within[:1] = True
    return np.asarray(within)


def _spread(start: Indices, size: Indices, quota: int) -> Indices:
    """Positions of about ``quota`` rows of cones, spread evenly over a block, and then the others."""
    place = np.argsort(start)
    step = max(1, int(-(-size.sum() // quota)))
    return np.concatenate([place[first::step] for first in range(step)])


class ConeWorkingSetState(WorkingSetState, frozen=True, kw_only=True):
    """With the y that is the widest on W; ``cap`` counts rows."""

    columns: ScaledCones | None = None
    y: Floats  # (m,) to ask
    low: float = -1.0  # its least eigenvalue on W
    separated: bool = True  # W has a separator, and a further pass may help

    @property
    def share(self) -> float:
        """Of the best margin on W that y must have."""
        return 0.5 if self.facts.tolerance is None else 1 - self.facts.tolerance / 2

    @property
    def settled_upper(self) -> float:
        """|Ax| on W that needs no smaller one."""
        return min(SETTLED, (1 - AT.slack) * (self.facts.eps or SETTLED))


@dataclass(frozen=True, slots=True)
class ConeWorkingSet(WorkingSet[ConeWorkingSetState]):
    """Whole cones in memory; how many rows of them is a matter of the facts."""

    traits: Traits = Traits("working-set", cones=1.0, columns=True)

    def init(self, facts: Facts) -> ConeWorkingSetState:
        return ConeWorkingSetState(facts=facts, cap=RowLimit(facts.m, facts.memory, 1, facts.entries).most, y=np.zeros(facts.m))

    def ask(self, state: ConeWorkingSetState) -> Question:
        m, blocks, kept = state.facts.m, state.facts.blocks, state.columns
        if kept is None:
            count = min(blocks, 8)  # blocks that the sample is drawn from, at most
            cap = min(max(1, state.cap // 2), 20 * m)  # rows of the sample for each entry of y
            select = SelectCones(state.y, np.inf, cap, max(1, -(-cap // count)))
            return Partial(select, tuple(sorted({blocks * i // count for i in range(count)})))
        cap = max(1, min(state.cap - len(kept.index), RowLimit(m, state.facts.memory, 1, state.facts.entries).answer_rows))
        return together([Softmin(state.y[:, None], np.zeros(1)), SelectCones(state.y, state.low * state.share, cap, cap)])

    def take_sample(self, state: ConeWorkingSetState, answer: Selected) -> ScaledCones:
        return answer.cones

    def update_bracket(self, state: ConeWorkingSetState, answer: Any) -> tuple[Bracket, int]:
        softmin, selected = answer
        return state.bracket.with_separator(state.y, float(softmin.low[0])), selected.violated

    def grow(self, state: ConeWorkingSetState, answer: Any, before: Bracket) -> ConeWorkingSetState:
        kept = state.columns
        assert kept is not None
        more = answer[1].cones.without(kept)
        if not len(more.index):
            return replace(state, stalled="no cone that memory lacks is lower", separated=False)
        if len(kept.index) + len(more.index) > state.cap:
            return replace(state, stalled="memory holds no more cones; raise --memory, or use mirror-prox", separated=False)
        return self.solve_columns(replace(state, columns=kept.merge(more)))

    def solve_columns(self, state: ConeWorkingSetState) -> ConeWorkingSetState:
        kept = state.columns
        assert kept is not None
        solution, x = widest(kept, state.share, state.settled_upper)
        if solution.upper < state.bracket.upper:
            alone = _inside(kept, x) if solution.low <= 0 else None
            if alone is not None:
                fewer, weights = widest(alone, state.share, state.settled_upper)
                if fewer.upper <= state.settled_upper:
                    kept, x, solution = alone, weights, replace(solution, upper=fewer.upper)
            best = Sparse(kept.index, x)
            state = replace(state, best=best, bracket=state.bracket.with_upper(solution.upper))
        stalled = "" if solution.low > 0 else f"the cones in memory have no separator, |Ax| = {solution.upper:.3g}"
        if stalled and solution.upper > state.settled_upper:
            stalled += ", which float64 brings no lower" + "; ask for a larger eps (--eps)" * (state.facts.eps > 0)
        separated = solution.low > 0 and solution.upper > state.settled_upper
        state = replace(state, steps=state.steps + 1)
        return replace(state, y=solution.y, low=solution.low, separated=separated, stalled=stalled)

    def hopeful(self, state: ConeWorkingSetState) -> bool:
        return state.separated

    def bound(self, facts: Facts, margin: float) -> float:
        """One for each growth: all rows, by so many at a time, at most."""
        return 2 + facts.n / (RowLimit.gathered * facts.m)
