"""Some cones in memory, of one kind and size, and what a step asks of their rows.

Rows are an array, or a CSR matrix where that is less work (``dfeas.geometry.cones.curvature``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from dfeas.data.cones import Group, least, unit
from dfeas.geometry.cones.scaling import NesterovTodd
from dfeas.linalg.points import Floats

AT_ONCE = 1 << 18
"""Entries of cones whose curvature is found at a time."""


@dataclass(frozen=True)
class ConePart(ABC):
    """Cones of one kind and size, with rows D of m + 1 entries: those of A, and -e for t."""

    group: Group

    @abstractmethod
    def element(self, z: Floats) -> Floats:
        """Dz = A*y - t e (c, d), of z = (y, t)."""

    @abstractmethod
    def pull_back(self, x: Floats) -> Floats:
        """The rows times x (c, d), D'x (m + 1,)."""

    @abstractmethod
    def curvature(self, scaling: NesterovTodd) -> Floats:
        """D'F''D (m + 1, m + 1), F'' the Hessian of the barrier in the w of a scaling."""

    def low(self, y: Floats) -> float:
        """The least eigenvalue of A*y."""
        return float(least(self.group.kind, self.group.size, self.element(np.append(y, 0.0))).min())

    def first(self) -> Floats:
        """Minus the gradient of the barrier in e (c, d)."""
        e = unit(self.group.kind, self.group.size)
        return np.tile(2 * e if self.group.kind == "q" else e, (len(self.group.starts), 1))


@dataclass(frozen=True)
class DensePart(ConePart):
    """With rows (c, d, m + 1)."""

    D: Floats

    @classmethod
    def of(cls, group: Group, rows: Floats) -> DensePart:
        """Of rows (c, d, m)."""
        down = np.broadcast_to(-unit(group.kind, group.size)[:, None], (*rows.shape[:2], 1))
        return cls(group, np.concatenate([rows, down], axis=2))

    def element(self, z: Floats) -> Floats:
        return np.asarray(self.D @ z)

    def pull_back(self, x: Floats) -> Floats:
        return np.asarray(self.D.reshape(-1, self.D.shape[2]).T @ x.reshape(-1))

    def curvature(self, scaling: NesterovTodd) -> Floats:
        count, d, width = self.D.shape
        at_once = max(1, AT_ONCE // (d * width))
        total = np.zeros((width, width))
        for first in range(0, count, at_once):
            some = slice(first, first + at_once)
            total += scaling.gram(self.D[some], some)
        return total
