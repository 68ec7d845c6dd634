"""Generated products of cones with a known answer. Any block can be made again from the seed alone.

cones             a planted y has A*y inside every cone, at a margin of R or more of its norm; pairs of cones of one size are at
                  R exactly and add up to a multiple of y: the best margin is R, up to the rounding of the type
cones-infeasible  the same, and one cone that is minus the planted direction: with any such pair it makes Ax = 0
cones-boundary    the best margin is R, and hard to find: A*y is near the boundary of every cone, at R exactly; all columns lean
                  to another direction, which nearly all cones allow; pairs that add up to R y are one in eight blocks
cones-scattered   the same, and m cones v_i'y e whose v_i are the corners of a simplex: together with a pair they make Ax = 0,
                  and without any one of them there is a separator. They lie evenly spread over the data
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dfeas.cones.algebra import Group, elements, groups_of, norms_of, unit
from dfeas.cones.product import Placing, Product
from dfeas.cones.writer import writer_of
from dfeas.data.generate.points import CONE_KINDS, FLOATS, Generated
from dfeas.data.storage.places import Place
from dfeas.data.writers.dataset import DatasetWriter
from dfeas.errors import UsageError
from dfeas.linalg.points import Floats

_HARD = CONE_KINDS[2:]

ROUNDS = 6
"""Of the fixed point of a margin and the norm that it is a share of."""


@dataclass(frozen=True)
class ConeInstance(Generated):
    """A generated dataset of cones: what, how large, from which seed."""

    kind: str
    m: int
    cones: str  # as l:30,q:5x1000,s:6x200
    margin: float = 0.01
    seed: int = 0
    dtype: str = "float64"
    block_rows: int = 0  # 0: the default
    classes: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        self._require(CONE_KINDS, FLOATS, 2)
        most = 0.5 / sqrt(max(size if kind == "s" else 1 for kind, size, _ in self.product.table.counts))
        if not 0 < self.margin < most:
            raise UsageError(f"margin {self.margin}: expected a number above 0 and below {most:.3g} for these cones")
        if self.kind == "cones-infeasible" and max(many for _, _, many in self.product.runs) < 3:
            raise UsageError("cones-infeasible needs three cones of one size")
        if self.kind == "cones-scattered" and self.product.table.many < 4 * (self.m + self.blocks):
            raise UsageError(f"cones-scattered needs {4 * (self.m + self.blocks)} cones or more for {self.m} features")

    @cached_property
    def product(self) -> Product:
        return Product.from_text(self.cones)

    @cached_property
    def layout(self) -> Placing:
        return Placing(self.product, self.block_rows or self.product.block_rows(self.m, np.dtype(self.dtype).itemsize))

    @property
    def blocks(self) -> int:
        return -(-self.layout.n // self.layout.block_rows)

    @property
    def about(self) -> dict[str, Any]:
        return {**super().about, "cones": self.cones}

    def writer(self, path: Place, shard: int | None = None) -> DatasetWriter:
        return writer_of(path, self.layout, self.m, np.dtype(self.dtype), shard=shard)

    def planted_direction(self) -> Floats:
        y = self.random(0).standard_normal(self.m)
        return np.asarray(y / np.linalg.norm(y))

    def block(self, index: int) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Rows (b, m), padding included, and codes (b,) of one block."""
        here = slice(index * self.layout.block_rows, (index + 1) * self.layout.block_rows)
        label, random = self.layout.label[here], self.random(1, index)
        points = np.zeros((len(label), self.m), self.dtype)
        against = None
        groups = groups_of(label)
        for group in groups:
            paired = group is groups[0] and index % 8 == 0  # a pair bounds the margin of a hard kind
            hard = self.kind in _HARD
            points[group.rows()] = self._hard_rows(group, random, paired) if hard else self._rows(group, random)
            if against is None and len(group.starts) >= 3:
                against = group
        if self.kind == "cones-infeasible" and against is not None:
            rows = against.rows(slice(len(against.starts) - 1, None))[0]
            points[rows] = -np.outer(unit(against.kind, against.size), self.planted_direction())
        if self.kind == "cones-scattered":
            self._scatter(points, groups, index)
        return points, label

    def _scatter(self, points: NDArray[Any], groups: list[Group], index: int) -> None:
        """Put the corners of a block in the place of cones that are of no pair."""
        full = max(1, self.blocks - 1)
        mine = np.flatnonzero(np.arange(self.m) * full // self.m == index)
        places = [(group, int(start)) for i, group in enumerate(groups) for start in group.starts[2 if i == 0 else 0 :]]
        for corner, place in zip(mine, np.linspace(0, len(places) - 1, len(mine)).astype(int), strict=True):
            group, start = places[place]
            points[start : start + group.dimension] = np.outer(unit(group.kind, group.size), self.corners[corner])

    @cached_property
    def corners(self) -> Floats:
        """m vectors (m, m), the corners of a simplex around 0 in the space across from y, moved behind it."""
        y, m = self.planted_direction(), self.m
        turn = np.full(m, m**-0.5) - y
        turn /= np.linalg.norm(turn)
        simplex = np.eye(m) - 1 / m
        simplex -= 2 * np.outer(simplex @ turn, turn)  # the reflection that takes (1, .., 1) to y
        simplex /= np.linalg.norm(simplex, axis=1)[:, None]
        # of R / m: how far behind the planted direction the corners of the simplex are
        return np.asarray(simplex - 0.25 * self.margin / m * y)

    def _hard_rows(self, group: Group, random: np.random.Generator, paired: bool) -> Floats:
        """Rows (c, d, m) of some cones near their boundary, that lean to one direction."""
        y, e, count = self.planted_direction(), unit(group.kind, group.size), len(group.starts)
        lean = self.random(2).standard_normal(self.m)
        lean -= (lean @ y) * y
        G = random.standard_normal((count, group.dimension, self.m))
        G -= (G @ y)[:, :, None] * y
        G += np.outer(e, lean)
        # length of what A*y of a hard kind has beside R e, over the norm of the cone
        central = self.margin * e + 0.25 * random.random((count, 1)) * boundary(group.kind, group.size, count, random)
        if paired and count > 1:
            G[1], central[1] = -G[0], central[0]
            if group.kind == "l":
                central[:2] = self.margin
        X = G
        for _ in range(ROUNDS):
            X = G + (norms_of(group.kind, X)[:, None] * central)[:, :, None] * y
        return np.asarray(X * np.repeat(np.exp(0.5 * random.standard_normal(-(-count // 2))), 2)[:count, None, None])

    def _rows(self, group: Group, random: np.random.Generator) -> Floats:
        """Rows (c, d, m) of some cones; the first ones are pairs."""
        y, e, count = self.planted_direction(), unit(group.kind, group.size), len(group.starts)
        G = random.standard_normal((count, group.dimension, self.m))
        G -= (G @ y)[:, :, None] * y
        pairs = max(1, min((count - 1) // 2, 2 * self.m)) if count > 1 else 0
        G[1 : 2 * pairs : 2] = -G[0 : 2 * pairs : 2]
        margin = self.margin * (1 + np.abs(random.standard_normal(count)))
        margin = np.minimum(margin, max(self.margin, 0.5 / sqrt(group.rank)))
        margin[: 2 * pairs] = self.margin
        X = G
        for _ in range(ROUNDS):
            X = G + (margin * norms_of(group.kind, X))[:, None, None] * np.outer(e, y)
        return np.asarray(X * np.repeat(np.exp(0.5 * random.standard_normal(-(-count // 2))), 2)[:count, None, None])


def boundary(kind: str, size: int, count: int, random: np.random.Generator) -> Floats:
    """Unit elements (count, d) on the boundary of a cone; of an orthant they are inside, as its boundary is 0."""
    if kind == "l":
        return np.ones((count, 1))
    u = random.standard_normal((count, size - (kind == "q")))
    u /= np.linalg.norm(u, axis=1)[:, None]
    if kind == "q":
        return np.concatenate([np.ones((count, 1)), u], axis=1) / sqrt(2)
    return elements(np.eye(size) - u[:, :, None] * u[:, None, :]) / sqrt(size - 1)
