"""Signed points seen across a subspace: their coordinates in its complement, formed when a block is read.

A point that lies in the subspace has none, and is replaced by a reference point, which makes no difference to the question
whether all others are on one side of a hyperplane.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfeas.store.reading import AnyArray, Buffers, Cost
from dfeas.store.view import OfDataset

WITHIN = 1e-11
"""What is below such a share of a length is rounding of zero."""


@dataclass(frozen=True)
class View:
    """What is seen: small enough to travel with every task."""

    basis: bytes  # (d, k) float64, orthonormal columns; with an intercept its row is the last
    reference: bytes = b""  # (k,) float64 coordinates for points of the subspace; none: zeros

    @classmethod
    def of(cls, basis: NDArray[np.float64], reference: NDArray[np.float64] | None = None) -> View:
        """From arrays."""
        return cls(np.ascontiguousarray(basis).tobytes(), b"" if reference is None else reference.tobytes())


@dataclass(frozen=True)
class Across(OfDataset):
    """A reader of coordinates (b, k) in float64 of signed points."""

    basis: NDArray[np.float64]  # (d, k) orthonormal; with an intercept its row is the last
    reference: NDArray[np.float64] | None = None  # (k,); None leaves points of the subspace as zeros

    def read(self, index: int, buffers: Buffers) -> AnyArray:
        """Coordinates of a block."""
        block = self.inner.read(index, buffers, Cost())
        m = self.inner.m
        seen = block.points @ self.basis[:m]
        if block.intercept:
            seen += self.basis[m]
        seen *= block.label[:, None]
        within = np.linalg.norm(seen, axis=1) <= WITHIN * block.sides.lengths()
        seen[within] = 0.0 if self.reference is None else self.reference
        return np.asarray(seen)

    def advise(self, index: int) -> None:
        """As they are stored."""
        super().advise(index)
        self.inner.labels.advise(index)

    def stamp(self, index: int) -> int | None:
        """As they are stored."""
        points, labels = super().stamp(index), self.inner.labels.stamp(index)
        return None if points is None and labels is None else hash((points, labels))
