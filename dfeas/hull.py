"""``dfeas.in_hull``: is a point in the convex hull of n points?

The same question about the points as they are seen from there, x_j - p without labels: some y has y'(x_j - p) > 0 for all j, a
hyperplane with p on one side and all points on the other, exactly when p is outside. Weights w >= 0 whose sum of the directions
(x_j - p) / |x_j - p| is zero show that it is inside: in proportion to w_j / |x_j - p| the points make p. The differences are
formed when a block is read; nothing is written anew. The checker decides from x_j and p as they are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dfeas.errors import BadInputError
from dfeas.result import Result
from dfeas.setting import open_data
from dfeas.solving import solve
from dfeas.store.npy import load_npy
from dfeas.store.rows import signed_rows
from dfeas.termination import FEASIBLE, INFEASIBLE

EPS = 1e-9
"""Where no proof is found, |Ax| up to this ends a run."""


@dataclass(frozen=True)
class Hull:
    """Where a point is, with evidence."""

    inside: bool | None  # None: not decided
    support: NDArray[np.int64] | None  # (s,) points that make it, when it is inside or as good as
    weights: NDArray[np.float64] | None  # (s,) of the convex combination, up to rounding
    distance: float | None  # between the point and the combination, as float64 computes it
    y: NDArray[np.float64] | None  # (m,) normal of a hyperplane through the point with all points on its positive side
    result: Result  # of the points seen from the point: bracket, proof, cost

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; the vectors are in the certificate."""
        size = None if self.support is None else len(self.support)
        return {"inside": self.inside, "points": size, "distance": self.distance, **self.result.to_json()}


def in_hull(point: ArrayLike | str | Path, X: Any, *, eps: float = EPS, **options: Any) -> Hull:
    """Decide whether a point (m,) is in the convex hull of the points X (n, m), the boundary included.

    ``point`` is an array, or the path of one as .npy. X is what ``dfeas.solve`` takes, without labels: those of a dataset
    do not matter. ``options`` are its others. ``eps-infeasible`` stands for neither: no hyperplane through the point leaves a
    margin above eps, and the point is within ``distance`` of the hull.

    Raises what ``dfeas.solve`` does.
    """
    p = _point(point)
    result = solve(X, point=p, eps=eps, **options)
    inside = {FEASIBLE: False, INFEASIBLE: True}.get(result.verdict)
    if result.support is None or result.weights is None or not result.success:
        return Hull(inside, None, None, None, result.y if result.verdict == FEASIBLE else None, result)
    seen = signed_rows(open_data(X, None, None, False, point=p)[1], result.support)
    length = np.linalg.norm(seen, axis=1)
    here = length == 0
    weights = here.astype(np.float64) if here.any() else result.weights / length
    weights /= weights.sum()
    return Hull(inside, result.support, weights, float(np.linalg.norm(weights @ seen)), None, result)


def _point(point: ArrayLike | str | Path) -> list[float]:
    if isinstance(point, str | Path):
        if not Path(point).is_file():
            raise BadInputError(f"{point}: no such file")
        point = load_npy(Path(point))
    try:
        values: Sequence[float] = np.asarray(point, np.float64).reshape(-1).tolist()
    except (TypeError, ValueError):
        raise BadInputError(f"the point {point!r}: expected numbers") from None
    return list(values)
