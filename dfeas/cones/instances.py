"""Generated products of cones with a known answer. Any block can be made again from the seed alone.

cones             a planted y has A*y inside every cone, at a margin of R or more of its norm; pairs of cones of one size are at
                  R exactly and add up to a multiple of y: the best margin is R, up to the rounding of the type
cones-infeasible  the same, and one cone that is minus the planted direction: with any such pair it makes Ax = 0
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.cones.groups import Group, groups_of
from dfeas.cones.product import Placing, Product
from dfeas.cones.scaling import norms_of
from dfeas.cones.spectrum import unit
from dfeas.cones.writing import write
from dfeas.errors import UsageError
from dfeas.passes.block import Floats
from dfeas.store.filling import Progress
from dfeas.store.layout import Header

CONE_KINDS = ("cones", "cones-infeasible")

ROUNDS = 6
"""Of the fixed point of a margin and the norm that it is a share of."""


@dataclass(frozen=True)
class ConeInstance:
    """A generated dataset of cones: what, how large, from which seed."""

    kind: str
    m: int
    cones: str  # as l:30,q:5x1000,s:6x200
    margin: float = 0.01
    seed: int = 0
    dtype: str = "float64"
    block_rows: int = 0  # 0: the default

    def __post_init__(self) -> None:
        if self.kind not in CONE_KINDS:
            raise UsageError(f"unknown kind {self.kind}; expected one of {', '.join(CONE_KINDS)}")
        if self.m < 2 or self.seed < 0 or self.dtype not in ("float32", "float64"):
            raise UsageError("cones need two features, a seed of at least 0, and float32 or float64")
        most = 0.5 / sqrt(max(size if kind == "s" else 1 for kind, size, _ in self.product.table.counts))
        if not 0 < self.margin < most:
            raise UsageError(f"margin {self.margin}: expected a number above 0 and below {most:.3g} for these cones")
        if self.kind == "cones-infeasible" and max(many for _, _, many in self.product.runs) < 3:
            raise UsageError("cones-infeasible needs three cones of one size")

    @cached_property
    def product(self) -> Product:
        """The cones."""
        return Product.from_text(self.cones)

    @cached_property
    def placing(self) -> Placing:
        """Where they lie."""
        return Placing(self.product, self.block_rows or self.product.block_rows(self.m, np.dtype(self.dtype).itemsize))

    def _random(self, stream: int, index: int = 0) -> np.random.Generator:
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence((self.seed, stream, index))))

    def planted(self) -> Floats:
        """The unit y (m,)."""
        y = self._random(0).standard_normal(self.m)
        return np.asarray(y / np.linalg.norm(y))

    def block(self, index: int) -> NDArray[Any]:
        """Rows (b, m) of one block, padding included."""
        here = slice(index * self.placing.block_rows, (index + 1) * self.placing.block_rows)
        label, random = self.placing.label[here], self._random(1, index)
        points = np.zeros((len(label), self.m), self.dtype)
        against = None
        for group in groups_of(label):
            points[group.rows()] = self._rows(group, random)
            if against is None and len(group.starts) >= 3:
                against = group
        if self.kind == "cones-infeasible" and against is not None:
            rows = against.rows(slice(len(against.starts) - 1, None))[0]
            points[rows] = -np.outer(unit(against.kind, against.size), self.planted())
        return points

    def _rows(self, group: Group, random: np.random.Generator) -> Floats:
        """Rows (c, d, m) of some cones; the first ones are pairs."""
        y, e, count = self.planted(), unit(group.kind, group.size), len(group.starts)
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


def generate_cones(instance: ConeInstance, out: str | Path, progress: Progress | None = None) -> Header:
    """Write the instance as a dataset; memory does not depend on the rows. Raises UsageError when OUT exists."""
    about = {"kind": instance.kind, "seed": instance.seed, "margin": instance.margin, "cones": instance.cones}
    return write(instance.placing, instance.block, instance.m, np.dtype(instance.dtype), out, about, progress)
