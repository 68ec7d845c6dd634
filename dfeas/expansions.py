"""Expansions of finished runs with a kernel: sums over points of their data, which are read again to score other points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them
from numpy.typing import NDArray

from dfeas.certificate import Certificate
from dfeas.kernels import Kernel
from dfeas.kernels.kernel import Function, seen
from dfeas.kernels.select import scores
from dfeas.passes.block import against
from dfeas.passes.points import Points, dense, in_type, is_dense
from dfeas.store import Dataset
from dfeas.store.rows import stored_rows

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Expansions:
    """Separators y = sum_i amount_i a_i of one kernel."""

    kernel: Kernel
    points: Points  # (s, m) of all of them
    amounts: Floats  # (s, k) of unit vectors without signs

    @classmethod
    def of(
        cls,
        trained: Dataset,
        certificates: Sequence[Certificate],
        codes: Sequence[int | None],
        function: Function | None = None,
    ) -> Expansions:
        """Those of certificates on data, each about the class of a code; None: labels are as the data is seen."""
        index = np.unique(np.concatenate([certificate.support for certificate in certificates]))
        points, labels = stored_rows(trained, index)
        amounts = np.zeros((len(index), len(certificates)))
        for column, (certificate, code) in enumerate(zip(certificates, codes, strict=True)):
            rows = np.searchsorted(index, certificate.support)
            signs = trained.signs(labels) if code is None else against(labels, code)
            amounts[rows, column] = certificate.weights * signs[rows]
        return cls(Kernel.from_text(certificates[0].kernel, function), seen(points), amounts)

    def scores(self, points: Points) -> Floats:
        """Scores (b, k) of points (b, m), which may be sparse or not, whatever those of the expansion are."""
        others = seen(points)
        if is_dense(others) != is_dense(self.points):
            others = scipy.sparse.csr_array(others) if is_dense(others) else dense(others)
        return scores(self.kernel, in_type(self.points, np.float64), self.amounts, others, False)
