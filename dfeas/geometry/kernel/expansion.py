"""Directions that are sums of points in the space of a kernel, and the scores under them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them

from dfeas.data.views import stored_rows
from dfeas.geometry.kernel.kernel import Kernel, as_floating, scores
from dfeas.geometry.protocol import Trained
from dfeas.linalg.points import Floats, Points, dense, in_type, is_dense
from dfeas.methods.vector import Expansion
from dfeas.passes.block import against


@dataclass(frozen=True)
class KernelDirections:
    """Directions y = sum_i amount_i a_i of one kernel."""

    mend: ClassVar[None] = None

    kernel: Kernel
    points: Points  # (s, m) of all of them
    amounts: Floats  # (s, k) of unit vectors without signs

    @classmethod
    def of(cls, kernel: Kernel, trained: Trained) -> KernelDirections:
        """Those of a run, whose data is needed: each is about a class, or about labels as the data is seen."""
        data, sums = trained.data, [y for y in trained.directions if isinstance(y, Expansion)]
        assert data is not None, "a kernel needs its points"
        index = np.unique(np.concatenate([each.index for each in sums]))
        points, labels = stored_rows(data, index)
        amounts = np.zeros((len(index), len(sums)))
        for column, each in enumerate(sums):
            rows = np.searchsorted(index, each.index)
            if trained.classes is None:
                signs = data.signs(labels)
            else:
                signs = against(labels, data.codes[data.classes.index(trained.classes[column])])
            amounts[rows, column] = each.amount * signs[rows]
        return cls(kernel, as_floating(points), amounts)

    @property
    def width(self) -> int:
        return int(max(self.amounts.shape))

    def scores(self, points: Points) -> Floats:
        """Scores (b, k) of points (b, m), which may be sparse or not, whatever those of the expansion are."""
        others = as_floating(points)
        if is_dense(others) != is_dense(self.points):
            others = scipy.sparse.csr_array(others) if is_dense(others) else dense(others)
        return scores(self.kernel, in_type(self.points, np.float64), self.amounts, others, False)
