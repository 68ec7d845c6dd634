"""Signed points seen across a subspace: their coordinates in its complement, formed when a block is read.

A point that lies in the subspace has none, and is replaced by a reference point, which makes no difference to the question
whether all others are on one side of a hyperplane.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfeas.store.reading import AnyArray, Buffers, RowReader


@dataclass(frozen=True)
class View:
    """What is seen: small enough to travel with every task."""

    basis: bytes  # (d, k) float64, orthonormal columns; with an intercept its row is the last
    reference: bytes = b""  # (k,) float64 coordinates for points of the subspace; none: zeros

    @classmethod
    def of(cls, basis: NDArray[np.float64], reference: NDArray[np.float64] | None = None) -> View:
        """From arrays."""
        return cls(np.ascontiguousarray(basis).tobytes(), b"" if reference is None else reference.tobytes())


WITHIN = 1e-11
"""Points whose coordinates are below such a share of their length lie in the subspace, as far as floating point tells."""


@dataclass(frozen=True)
class Across:
    """A reader of coordinates (b, k) in float64 of signed points."""

    points: RowReader
    labels: RowReader
    basis: NDArray[np.float64]  # (d, k) orthonormal; with an intercept its row is the last
    intercept: bool
    reference: NDArray[np.float64] | None = None  # (k,); None leaves points of the subspace as zeros

    @property
    def overlaps(self) -> bool:
        """As they are stored."""
        return self.points.overlaps

    def read(self, index: int, buffers: Buffers) -> AnyArray:
        """Coordinates of a block."""
        rows = self.points.read(index, buffers)
        sign = self.labels.read(index, buffers).astype(np.float64)
        m = rows.shape[1]
        seen = rows @ self.basis[:m]
        square = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        if self.intercept:
            seen += self.basis[m]
            square += 1
        within = np.einsum("ij,ij->i", seen, seen) <= WITHIN**2 * square
        seen *= sign[:, None]
        seen[within] = 0.0 if self.reference is None else self.reference
        return np.asarray(seen)

    def advise(self, index: int) -> None:
        """As they are stored."""
        self.points.advise(index)
        self.labels.advise(index)

    def stamp(self, index: int) -> int | None:
        """As they are stored."""
        points, labels = self.points.stamp(index), self.labels.stamp(index)
        return None if points is None and labels is None else hash((points, labels))
