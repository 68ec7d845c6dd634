"""The least eigenvalue of a block, from products in any order, and then from products in a fixed order.

Every cone that could attain it, by the rounding bounds of product and eigenvalues, is looked at again in float64: the answer
does not depend on how the cones are cut into blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dfeas.cones.batch import Batch
from dfeas.cones.groups import Group
from dfeas.cones.scores import exact_scores
from dfeas.cones.spectrum import Spectrum
from dfeas.passes.block import Block, Floats, Indices


@dataclass
class Lowest:
    """For a question y, what some cones of a block have shown."""

    y: Floats  # (m,)
    length: float  # |y|
    terms: int  # of a product
    single: bool  # products are in float32
    best: float = np.inf  # the least eigenvalue so far, as it was computed
    _near: list[tuple[Group, Indices, Floats, float]] = field(default_factory=list)  # first rows, eigenvalues, their error

    def add(self, start: int, batch: Batch) -> None:
        """Look at cones whose rows are counted from row ``start`` of the block."""
        group = batch.group
        if self.length == 0:  # every cone scores 0, and the first one of a kind stands for all
            some, value, slack = np.zeros(1, np.int64), np.zeros(1), 0.0
        else:
            off, slack = self._errors(group)
            some, value = batch.lowest(self.best, off, slack)
        if len(some):
            self.best = min(self.best, float(value.min()))
            kept = value <= self.best + 2 * slack
            self._near.append((group, start + group.starts[some[kept]], value[kept], slack))

    def _errors(self, group: Group) -> tuple[float, float]:
        """What bounds of eigenvalues, and eigenvalues themselves, are off from those of products in a fixed order, at most."""
        # the rows of a scaled cone together are at most as long as sqrt(min(d, m)) of its columns, and those as 1
        d, fine = group.dimension, 2.0**-53
        spread = 1.02 * np.sqrt(min(d, self.terms)) * self.length * (2.0**-24 if self.single else fine)
        product, sums = (self.terms + 6) * spread, (d + 8) * spread
        return sums, product + 20 * np.sqrt(d) * d * fine * self.length + (0.0 if group.kind == "s" else sums)

    def exact(self, block: Block, factor: Floats) -> tuple[float, int, Floats]:
        """The least eigenvalue, the first row of its cone, and its extreme point; ``factor`` (b,) scales rows."""
        found: list[tuple[float, int, Floats]] = []
        for group, starts, value, slack in self._near:
            near = starts[value <= self.best + 2 * slack]
            if len(near):
                rows = near[:, None] + np.arange(group.dimension)
                exact = Spectrum.of(group.kind, group.size, exact_scores(block, rows, self.y, factor))
                first = int(exact.least.argmin())
                point = exact.take(np.array([first])).extreme()[0]
                found.append((float(exact.least[first]), int(near[first]), point))
        return min(found, key=lambda each: each[:2])
