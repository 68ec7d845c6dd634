"""Scaled scores of the rows of a block of cones: s = X y / norm."""

from __future__ import annotations

import numpy as np

from dfeas.passes.block import Array, Block, Floats, Indices
from dfeas.passes.points import dots, times


def factors(block: Block) -> Floats:
    """One over the norm of its cone (b,) of each row; 0 for a cone of zeros."""
    norm = block.norm
    if norm.min(initial=np.inf) > 0:
        return np.asarray(1 / norm)
    return np.divide(1.0, norm, out=np.zeros(len(norm)), where=norm > 0)


def fast_scores(block: Block, questions: Array, factor: Floats, single: bool) -> Array:
    """Scores (k, b) of questions (m, k) by products in their precision."""
    scores: Array = np.empty((questions.shape[1], block.size), questions.dtype)
    for rows in block.tiles():
        scores[:, rows] = times(block.tile(rows, single), questions)
    scores *= factor.astype(scores.dtype)
    return scores


def exact_scores(block: Block, rows: Indices, y: Floats, factor: Floats) -> Floats:
    """Scores (c, d) of rows (c, d) in float64, each by one fixed order of summation: the same bits in any partition."""
    flat = rows.reshape(-1)
    return np.asarray(dots(block.points[flat], y) * factor[flat]).reshape(rows.shape)


def combined(block: Block, rows: Indices, weights: Floats, factor: Floats) -> Floats:
    """sum of weights (r,) times scaled rows (r,), a vector (m,), in float64."""
    return np.asarray((weights * factor[rows]) @ block.points[rows].astype(np.float64))
