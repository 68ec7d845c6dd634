"""Select: the columns whose score is at most a threshold, lowest first, at most ``cap`` of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfeas.passes.block import Block, Floats, Indices


@dataclass(frozen=True, slots=True)
class Selection:
    """Columns at or below the threshold (partial and answer alike)."""

    count: int  # how many there are, kept or not
    low: float  # min_j a_j'y over all points, inf when there is none
    arg: int  # an index that attains it, -1 when there is none
    index: Indices  # (c,) indices of the kept ones, by (score, index)
    score: Floats  # (c,) a_j'y
    columns: Floats  # (c, m) signed unit columns


@dataclass(frozen=True, slots=True)
class Select:
    """All columns with a_j'y <= threshold; ``cap`` of them, the lowest scores first, are kept."""

    y: Floats  # (m,)
    threshold: float
    cap: int

    def scan(self, block: Block) -> Selection:
        """Select from one block."""
        m = block.points.shape[1]
        score = np.empty(block.size)
        for rows in block.tiles():
            score[rows] = block.points[rows].astype(np.float64, copy=False) @ self.y[:m]
        if block.intercept:
            score += self.y[m]
        score *= block.sides.scale()
        rows_kept = np.flatnonzero(score <= self.threshold)
        count = len(rows_kept)
        rows_kept = rows_kept[np.lexsort((rows_kept, score[rows_kept]))[: self.cap]]
        arg = int(score.argmin()) if block.size else -1
        return Selection(
            count,
            float(score[arg]) if block.size else np.inf,
            block.start + arg if block.size else -1,
            block.start + rows_kept,
            score[rows_kept],
            block.columns(rows_kept),
        )

    def merge(self, first: Selection, second: Selection) -> Selection:
        """Keep the ``cap`` lowest of both."""
        best = min((s for s in (first, second) if s.arg >= 0), key=lambda s: (s.low, s.arg), default=first)
        index = np.concatenate([first.index, second.index])
        score = np.concatenate([first.score, second.score])
        order = np.lexsort((index, score))[: self.cap]
        columns = np.concatenate([first.columns, second.columns])[order]
        return Selection(first.count + second.count, best.low, best.arg, index[order], score[order], columns)

    def finish(self, partial: Selection) -> Selection:
        """The selection of all points."""
        return partial
