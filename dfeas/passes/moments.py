"""Moments: least and greatest value, mean and spread of each feature, from one read.

Means and sums of squares of blocks are joined as Chan, Golub and LeVeque do (Algorithms for computing the sample variance, The
American Statistician 1983): differences from a mean are squared, never large numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dfeas import csr
from dfeas.passes.block import Block, Floats
from dfeas.passes.points import Tile


@dataclass(frozen=True, slots=True)
class MomentsAnswer:
    """Of some points (partial and answer alike)."""

    points: int
    least: Floats  # (m,) inf when there is no point
    greatest: Floats  # (m,) -inf when there is no point
    mean: Floats  # (m,)
    squares: Floats  # (m,) sums of squared differences from the mean

    @property
    def std(self) -> Floats:
        """Standard deviations (m,) of these points: the root of the mean square."""
        return np.sqrt(self.squares / max(1, self.points))


@dataclass(frozen=True, slots=True)
class Moments:
    """Of the points as they are stored, whatever their labels."""

    def scan(self, block: Block) -> MomentsAnswer:
        """Of one block, tile by tile."""
        m = block.points.shape[1]
        found = MomentsAnswer(0, np.full(m, np.inf), np.full(m, -np.inf), np.zeros(m), np.zeros(m))
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):  # of entries that the survey refuses
            for rows in block.tiles():
                found = self.merge(found, _of(block.tile(rows, False)))
        return found

    def merge(self, first: MomentsAnswer, second: MomentsAnswer) -> MomentsAnswer:
        """Of both."""
        points = first.points + second.points
        if not first.points or not second.points:
            return first if first.points else second
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            apart, share = second.mean - first.mean, second.points / points
            return MomentsAnswer(
                points,
                np.minimum(first.least, second.least),
                np.maximum(first.greatest, second.greatest),
                first.mean + apart * share,
                first.squares + second.squares + apart * apart * (first.points * share),
            )

    def finish(self, partial: MomentsAnswer) -> MomentsAnswer:
        """Of all points."""
        return partial


def _of(points: Tile) -> MomentsAnswer:
    """Of points (t, m) in float64, t > 0."""
    if not isinstance(points, np.ndarray):
        return _of_sparse(points)
    mean = points.mean(axis=0)
    apart = points - mean
    return MomentsAnswer(len(points), points.min(axis=0), points.max(axis=0), mean, np.einsum("ij,ij->j", apart, apart))


def _of_sparse(points: Tile) -> MomentsAnswer:
    """What is not stored is zero."""
    assert not isinstance(points, np.ndarray), "an array is dense"
    t, m = points.shape
    columns = csr.transposed(points)
    stored = np.bincount(points.indices, minlength=m)
    mean = np.asarray(columns @ np.full(t, 1 / t))
    apart = points.data - mean[points.indices]
    squares = np.bincount(points.indices, weights=apart * apart, minlength=m) + (t - stored) * mean * mean
    least, greatest = np.where(stored < t, 0.0, np.inf), np.where(stored < t, 0.0, -np.inf)
    np.minimum.at(least, points.indices, points.data)
    np.maximum.at(greatest, points.indices, points.data)
    return MomentsAnswer(t, least, greatest, mean, squares)
