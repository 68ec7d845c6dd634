"""Points as the checker computes with them: float64, dense or sparse, with the intercept. Shares nothing with passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

NARROW_ROWS = 64
"""Sparse points that are looked at without the features that none of them has."""


class Checked(Protocol):
    """Some points (r, d)."""

    @property
    def size(self) -> int:
        """Number of points."""

    @property
    def terms(self) -> int:
        """Terms of a product with one, at most."""

    def score(self, y: Floats) -> Floats:
        """Products (r,) with y (d,)."""

    def magnitude(self, rows: Rows, y: Floats) -> Floats:
        """Products (s,) of magnitudes, |x|'|y|, of some rows."""

    def norm(self) -> Floats:
        """Euclidean norms (r,)."""

    def nonzero(self) -> NDArray[np.bool_]:
        """Which points (r,) are not zero."""

    def sums(self, factor: Floats) -> tuple[Floats, Floats]:
        """sum_j factor_j x_j and sum_j |factor_j| |x_j|, (d,) each."""

    def scaled(self, factor: Floats) -> Any:
        """Points times factors (r,), as an array or a sparse matrix."""

    def narrow(self, rows: Rows, y: Floats) -> Iterator[tuple[Rows, Floats, Floats]]:
        """Some rows in pieces: (rows, points (s, u), y (u,)) with the features that matter to them."""


@dataclass(frozen=True)
class DensePoints:
    """An array."""

    points: Floats  # (r, d)

    @property
    def size(self) -> int:
        return len(self.points)

    @property
    def terms(self) -> int:
        return int(self.points.shape[1])

    def score(self, y: Floats) -> Floats:
        return np.asarray(self.points @ y)

    def magnitude(self, rows: Rows, y: Floats) -> Floats:
        return np.asarray(np.abs(self.points[rows]) @ np.abs(y))

    def norm(self) -> Floats:
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", self.points, self.points)))

    def nonzero(self) -> NDArray[np.bool_]:
        return np.asarray(self.points.any(axis=1))

    def sums(self, factor: Floats) -> tuple[Floats, Floats]:
        return factor @ self.points, np.abs(factor) @ np.abs(self.points)

    def scaled(self, factor: Floats) -> Floats:
        return self.points * factor[:, None]

    def narrow(self, rows: Rows, y: Floats) -> Iterator[tuple[Rows, Floats, Floats]]:
        yield rows, self.points[rows], y


@dataclass(frozen=True)
class SparsePoints:
    """A CSR matrix; what it does not store is zero and adds nothing to a sum, rounding neither."""

    points: Any  # (r, m) float64

    @property
    def size(self) -> int:
        return int(self.points.shape[0])

    @property
    def terms(self) -> int:
        return int(np.diff(self.points.indptr).max(initial=0))

    def _like(self, data: Floats) -> Any:
        return scipy.sparse.csr_array((data, self.points.indices, self.points.indptr), shape=self.points.shape)

    def score(self, y: Floats) -> Floats:
        return np.asarray(self.points @ y)

    def magnitude(self, rows: Rows, y: Floats) -> Floats:
        return np.asarray(abs(self.points[rows]) @ np.abs(y))

    def norm(self) -> Floats:
        return np.asarray(np.sqrt(self._like(self.points.data**2) @ np.ones(self.points.shape[1])))

    def nonzero(self) -> NDArray[np.bool_]:
        return np.asarray(self._like((self.points.data != 0).astype(np.float64)) @ np.ones(self.points.shape[1]) > 0)

    def sums(self, factor: Floats) -> tuple[Floats, Floats]:
        return self.points.T @ factor, abs(self.points).T @ np.abs(factor)

    def scaled(self, factor: Floats) -> Any:
        return self._like(self.points.data * np.repeat(factor, np.diff(self.points.indptr)))

    def narrow(self, rows: Rows, y: Floats) -> Iterator[tuple[Rows, Floats, Floats]]:
        for first in range(0, len(rows), NARROW_ROWS):
            some = rows[first : first + NARROW_ROWS]
            points, used = without_zeros(self.points[some])
            yield some, points.toarray(), y[used]


def without_zeros(points: Any) -> tuple[Any, Rows]:
    """A CSR matrix without the features that no point has, and those that are left; one stays in any case."""
    used, place = np.unique(points.indices, return_inverse=True)
    if not len(used):
        used = np.zeros(1, np.int64)
    shape = (points.shape[0], len(used))
    return scipy.sparse.csr_array((points.data, place.reshape(-1), points.indptr), shape=shape), used


def joined(parts: list[Any], most: int) -> Floats | None:
    """Points of several pieces in one array, sparse ones without the features that none has; None above ``most`` entries."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    points, used = without_zeros(scipy.sparse.vstack(parts, format="csr"))
    return None if points.shape[0] * len(used) > most else np.asarray(points.toarray())
