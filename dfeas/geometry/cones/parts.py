"""The barriers of some cones in memory, of one kind and size: -log det, its gradient and its Hessian.

Rows are an array, or a CSR matrix where that is less work (``dfeas.geometry.cones.curvature``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from dfeas.data.cones import Group, elements, least, length, matrices, unit
from dfeas.linalg.points import Floats

AT_ONCE = 1 << 18
"""Entries of cones whose curvature is found at a time."""


@dataclass(frozen=True)
class Part(ABC):
    """Cones of one kind and size, with rows of m + 1 entries: those of A, and -e for t."""

    group: Group

    @abstractmethod
    def element(self, z: Floats) -> Floats:
        """A*y - t e (c, d), of z = (y, t)."""

    @abstractmethod
    def pulled(self, x: Floats) -> Floats:
        """The rows times x (c, d), (m + 1,)."""

    @abstractmethod
    def curvature(self, s: Floats) -> Floats:
        """The Hessian of the barrier in (y, t), (m + 1, m + 1)."""

    @abstractmethod
    def low(self, y: Floats, known: float) -> float:
        """The least eigenvalue of A*y; maybe only ``known``, which is not above it, where that is not positive."""

    def trace(self, x: Floats) -> float:
        """<e, x> of x (c, d)."""
        return float((x * unit(self.group.kind, self.group.size)).sum())

    def value(self, s: Floats) -> float:
        """-log det; inf outside the cone."""
        if self.group.kind == "l":
            return float(-np.log(s).sum()) if (s > 0).all() else np.inf
        if self.group.kind == "q":
            radius = length(s[:, 1:])
            inside = (s[:, 0] > radius).all()
            return float(-np.log((s[:, 0] - radius) * (s[:, 0] + radius)).sum()) if inside else np.inf
        try:
            factor = np.linalg.cholesky(matrices(s, self.group.size))
        except np.linalg.LinAlgError:
            return np.inf
        return float(-2 * np.log(np.diagonal(factor, axis1=1, axis2=2)).sum())

    def inverse(self, s: Floats) -> Floats:
        """Minus the gradient of the barrier (c, d): an element of the cone."""
        if self.group.kind == "l":
            return 1 / s
        if self.group.kind == "q":
            radius = length(s[:, 1:])
            mirrored = -s
            mirrored[:, 0] = s[:, 0]
            return np.asarray(2 * mirrored / ((s[:, 0] - radius) * (s[:, 0] + radius))[:, None])
        return elements(self.squares(s))

    def turned(self, s: Floats, u: Floats) -> Floats:
        """The Hessian of the barrier in s, times elements u (c, d)."""
        if self.group.kind == "l":
            return u / s**2
        if self.group.kind == "q":
            inverse, radius = self.inverse(s), length(s[:, 1:])
            image = u.copy()
            image[:, 0] *= -1
            image *= (2 / ((s[:, 0] - radius) * (s[:, 0] + radius)))[:, None]
            return np.asarray(image + inverse * (inverse * u).sum(axis=1)[:, None])
        square = self.squares(s)
        return elements(np.asarray(square @ matrices(u, self.group.size) @ square))

    def squares(self, s: Floats) -> Floats:
        """The inverses (c, k, k) of semidefinite elements."""
        return np.asarray(np.linalg.inv(matrices(s, self.group.size)))


@dataclass(frozen=True)
class DensePart(Part):
    """With rows (c, d, m + 1)."""

    D: Floats

    @classmethod
    def of(cls, group: Group, rows: Floats) -> DensePart:
        """Of rows (c, d, m)."""
        down = np.broadcast_to(-unit(group.kind, group.size)[:, None], (*rows.shape[:2], 1))
        return cls(group, np.concatenate([rows, down], axis=2))

    def element(self, z: Floats) -> Floats:
        return np.asarray(self.D @ z)

    def pulled(self, x: Floats) -> Floats:
        return np.asarray(self.D.reshape(-1, self.D.shape[2]).T @ x.reshape(-1))

    def low(self, y: Floats, known: float) -> float:
        return float(least(self.group.kind, self.group.size, self.D[:, :, :-1] @ y).min())

    def curvature(self, s: Floats) -> Floats:
        count, d, width = self.D.shape
        at_once = max(1, AT_ONCE // (d * width))
        total = np.zeros((width, width))
        for first in range(0, count, at_once):
            some = slice(first, first + at_once)
            total += self._curved(self.D[some], s[some])
        return total

    def _curved(self, D: Floats, s: Floats) -> Floats:
        count, d, width = D.shape
        if self.group.kind == "s":
            half = np.swapaxes(halves(D, s, self.group.size), 0, 1).reshape(width, -1)
            return np.asarray(half @ half.T)
        if self.group.kind == "l":
            half = (D / s[:, :, None]).reshape(count, width)
            return np.asarray(half.T @ half)
        return np.asarray(D.reshape(count * d, width).T @ turned_rows(D, s, self.inverse(s)).reshape(count * d, width))


def halves(D: Floats, s: Floats, k: int) -> Floats:
    """L^-1 F_j L^-T (c, w, k, k) of the columns F_j of semidefinite rows D (c, d, w), for elements s = LL'."""
    below = np.linalg.inv(np.linalg.cholesky(matrices(s, k)))[:, None]
    return np.asarray(below @ matrices(np.swapaxes(D, 1, 2), k) @ np.swapaxes(below, 2, 3))


def turned_rows(D: Floats, s: Floats, inverse: Floats) -> Floats:
    """The Hessian of the barrier of second-order cones in s, times their rows D (c, d, w)."""
    radius = length(s[:, 1:])
    turned = D * (2 / ((s[:, 0] - radius) * (s[:, 0] + radius)))[:, None, None]
    turned[:, 0] = -turned[:, 0]
    turned += inverse[:, :, None] * (inverse[:, None, :] @ D)
    return np.asarray(turned)
