"""``dfeas.in_hull``: is a point in the convex hull of n points?

The same question about the points as they are seen from there, x_j - p without labels: some y has y'(x_j - p) > 0 for all j, a
hyperplane with p on one side and all points on the other, exactly when p is outside. Weights w >= 0 whose sum of the directions
(x_j - p) / |x_j - p| is zero show that it is inside: in proportion to w_j / |x_j - p| the points make p. The differences are
formed when a block is read; nothing is written anew. The checker decides from x_j and p as they are stored.

Where float64 can tell neither, ``dfeas.exact_search`` decides about the points (x_j, 1) and -(p, 1), in integers: p is inside
exactly when they conflict, and the weights of the conflict are those that make it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dfeas.analysis.separation import Separation, said
from dfeas.data.dataset import signed_rows
from dfeas.data.storage.npy import load_npy
from dfeas.engine.memory import DEFAULT_MEMORY
from dfeas.errors import BadInputError
from dfeas.problem import request
from dfeas.run.driver import never
from dfeas.run.exact_search import search
from dfeas.run.exact_verdict import floats, until
from dfeas.run.results import Result
from dfeas.run.session import open_data, set_up
from dfeas.run.solve import solve
from dfeas.run.termination import FEASIBLE, INFEASIBLE, RESUMABLE
from dfeas.verify.separation import COMPLETE

EPS = 1e-9
"""|Ax| up to this ends a run in float64; integers go on from there."""


@dataclass(frozen=True)
class Hull:
    """Where a point is, with evidence."""

    inside: bool | None  # None: not decided
    proof: str  # "exact" | "rigorous" | "none"
    support: NDArray[np.int64] | None  # (s,) points that make it, when it is inside or as good as
    weights: NDArray[np.float64] | None  # (s,) of the convex combination, up to rounding
    distance: float | None  # between the point and the combination, as float64 computes it
    y: NDArray[np.float64] | None  # (m,) normal of a hyperplane through the point, all points are on its positive side
    result: Result  # of the points seen from the point: bracket, proof, cost
    exactly: Separation | None = None  # of the points (x_j, 1) and -(p, 1), where float64 could not tell, and has no y

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; the vectors are in the certificate."""
        size = None if self.support is None else len(self.support)
        own = {"inside": self.inside, "points": size, "distance": self.distance}
        return {**own, **self.result.to_json(), "proof": self.proof}


def in_hull(point: ArrayLike | str | Path, X: Any, *, eps: float = EPS, **options: Any) -> Hull:
    """Decide whether a point (m,) is in the convex hull of the points X (n, m), the boundary included.

    ``point`` is an array, or the path of one as .npy. X is what ``dfeas.solve`` takes, without labels: those of a dataset
    do not matter. ``options`` are its others. It is undecided only when a limit of time or passes ends it, or where a larger
    eps is enough: no hyperplane through the point leaves a margin above eps, and it is within ``distance`` of the hull.

    Raises what ``dfeas.solve`` does.
    """
    p = _point(point)
    result = solve(X, point=p, eps=eps, **options)
    inside = {FEASIBLE: False, INFEASIBLE: True}.get(result.verdict)
    if inside is None and eps <= EPS and result.stopped not in RESUMABLE:
        return _exactly(p, X, result, options)
    if result.support is None or result.weights is None or not result.success:
        return Hull(inside, result.proof, None, None, None, result.y if result.verdict == FEASIBLE else None, result)
    seen = signed_rows(open_data(X, None, None, False, point=p)[1], result.support)
    length = np.linalg.norm(seen, axis=1)
    here = length == 0
    weights = here.astype(np.float64) if here.any() else result.weights / length
    return _made_of(inside, result.proof, result.support, weights, seen, result)


def _exactly(p: list[float], X: Any, result: Result, options: dict[str, Any]) -> Hull:
    """What integers say where float64 could not tell."""
    data = open_data(X, None, None, False, point=p, cache_dir=options.get("cache_dir"))
    asked = request(EPS, None, options.get("max_passes"), options.get("time_limit"), options.get("memory", DEFAULT_MEMORY))
    asked = replace(asked, began=asked.began - result.seconds)  # limits hold for everything together
    with ExitStack() as stack:
        checking = set_up(stack, data, asked.memory, options.get("client"), None).checking
        checking.dataset.fingerprint = result.fingerprint
        start = np.empty(0, np.int64) if result.support is None else result.support
        left = math.inf if asked.max_passes is None else asked.max_passes - result.passes
        face = search(checking, start, until(asked, options.get("stop", never)), left)
    found = said(face, result)
    if isinstance(face, str):
        return Hull(None, "none", None, None, None, None, result, found)
    if options.get("out") is not None:
        found.save(Path(options["out"]))
    if face.kind == COMPLETE:
        return Hull(False, found.proof, None, None, None, None, result, found)
    stored = face.support < data[1].n
    support = face.support[stored]
    seen = signed_rows(data[1], support)
    return _made_of(True, found.proof, support, floats(face.weights[stored]), seen, result, found)


def _made_of(
    inside: bool | None,
    proof: str,
    support: NDArray[np.int64],
    weights: NDArray[np.float64],
    seen: NDArray[np.float64],
    result: Result,
    exactly: Separation | None = None,
) -> Hull:
    """A point that is a combination of some, or nearly; ``seen`` (s, m) are these as they are seen from it."""
    weights = weights / weights.sum()
    return Hull(inside, proof, support, weights, float(np.linalg.norm(weights @ seen)), None, result, exactly)


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
