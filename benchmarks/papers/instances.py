"""The instances of Yu, Kilinc-Karzan and Carbonell 2014, section 7.1, as far as the paper tells what they are.

It says: columns of length 1; 20 feasible instances (LDFP) and 20 infeasible ones (LAP) of each size; and a number kappa, 1 in
table 2, that stands for the condition number rho(A) and grows with it. The generator is in an appendix that is not published
with the paper. Here LDFP is ``halfspace`` of ``dfeas generate``: random unit points, each on its side of a random plane with
normal w. kappa stretches them along it: a + (kappa - 1) (a'w) w, over its length, so that kappa = 1 leaves them as they are and
the margin grows with kappa. LAP is ``gaussian``: as many random points that no plane separates, n being 5 m or more.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfeas.data.generate.points import Instance

LDFP, LAP, KAPPA = "LDFP", "LAP", "kappa"
PARTS = (LDFP, LAP, KAPPA)
SIZES = [(100, 5_000), (1000, 5_000), (100, 50_000), (1000, 50_000), (100, 500_000), (1000, 500_000)]
"""Those of table 2: m, n."""
SWEEP = (100, 5_000)
"""That of figure 1."""
KAPPAS = range(1, 11)


class Group(NamedTuple):
    """Instances that differ by their seed alone."""

    part: str
    m: int
    n: int
    kappa: int = 1

    @property
    def title(self) -> str:
        return f"{self.m} x {self.n}" + (f", kappa {self.kappa}" if self.part == KAPPA else "")


def groups(parts: list[str], scale: float = 1.0) -> list[Group]:
    """All that the paper has, of a share of its points."""
    points = {n: max(200, int(n * scale)) for _, n in SIZES}
    sizes = [Group(part, m, points[n]) for part in (LDFP, LAP) for m, n in SIZES]
    return [group for group in [*sizes, *(Group(KAPPA, SWEEP[0], points[SWEEP[1]], k) for k in KAPPAS)] if group.part in parts]


@lru_cache(maxsize=1)
def arrays(group: Group, seed: int) -> tuple[NDArray[Any], NDArray[np.int8]]:
    """Points (n, m) and labels (n,)."""
    instance = Instance("gaussian" if group.part == LAP else "halfspace", group.m, group.n, seed=seed)
    X, labels = np.empty((group.n, group.m), np.float32), np.empty(group.n, np.int8)
    for first in range(0, group.n, instance.rows):
        some = slice(first, first + instance.rows)
        X[some], labels[some] = instance.block(first // instance.rows)
    if group.kappa > 1:
        w = instance.plane()
        stretched = X + (group.kappa - 1) * np.outer(X @ w, w)
        X = (stretched / np.linalg.norm(stretched, axis=1)[:, None]).astype(np.float32)
        assert (labels * (X @ w) > 0).all(), "a stretched point is on its side"
    return X, labels
