"""``dfeas.in_hull``: is a point in the convex hull of n points?

The same question about the points as they are seen from there, x_j - p without labels: some y has y'(x_j - p) > 0 for all j, a
hyperplane with p on one side and all points on the other, exactly when p is outside. Weights w >= 0 whose sum of the directions
(x_j - p) / |x_j - p| is zero show that it is inside: in proportion to w_j / |x_j - p| the points make p. The differences are
formed when a block is read; nothing is written anew. The checker decides from x_j and p as they are stored.

Where float64 can tell neither, ``dfeas.exact_search`` decides about the points (x_j, 1) and -(p, 1), in integers: p is inside
exactly when they conflict, and the weights of the conflict are those that make it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dfeas.analysis.separation import describe_face, search_integers
from dfeas.answers.result import Result
from dfeas.answers.separation import Hull
from dfeas.answers.words import FEASIBLE, INFEASIBLE, RESUMABLE, UNDECIDED
from dfeas.data.arrays import accept_stored
from dfeas.data.open import open_source
from dfeas.data.source import Source
from dfeas.data.storage.places import local, place
from dfeas.data.storage.zarr_arrays import load_npy
from dfeas.data.views import signed_rows
from dfeas.errors import BadInputError
from dfeas.problem import Goal, Problem
from dfeas.records import replace
from dfeas.run.exact.search import floats
from dfeas.run.resources import Limits, Output, Resources, choose_client
from dfeas.run.solve import decide, run_terms
from dfeas.verify.separation import COMPLETE

if TYPE_CHECKING:
    from dfeas.engine.protocol import Workers

EPS = 1e-9
"""|Ax| up to this ends a run in float64; integers continue from there."""
INSIDE = {FEASIBLE: False, INFEASIBLE: True}
"""What a verdict about the points as they are seen from the point says; the others leave it open."""


def in_hull(
    point: ArrayLike | str | Path,
    X: Any,
    *,
    method: str = "auto",
    eps: float = EPS,
    max_passes: int | None = None,
    time_limit: float | None = None,
    memory: str | int | None = None,
    client: Workers | None = None,
    out: str | Path | None = None,
    force: bool = False,
    callback: Callable[[Any], object] | None = None,
) -> Hull:
    """Decide whether a point is in the convex hull of others, the boundary included.

    The answer is undecided only if a limit of time or passes ends the run, or a larger eps does: no hyperplane through the
    point has a margin above eps, and the point is within ``distance`` of the hull.

    Parameters
    ----------
    point : array (m,) or (1, m), series, data frame of one row, or path
        The path is that of a .npy file. If entries and features have names, entries are matched by these, in any order.
    X : array (n, m), data frame, or path
        What ``dfeas.solve`` takes, without labels: those of a dataset do not matter.
    method : str
        A name of ``dfeas.METHODS``, or ``auto``.
    eps : float
        |Ax| up to this ends the run in float64; if eps is at most 1e-9, integers continue from there.
    max_passes, time_limit, memory, client, out, force, callback : optional
        As in ``dfeas.solve``.

    Returns
    -------
    Hull
        Where the point is, with the points of the combination, or the hyperplane between.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError
        As in ``dfeas.solve``.

    Examples
    --------
    >>> import dfeas
    >>> corners = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    >>> print(dfeas.in_hull([0.25, 0.25], corners).inside, dfeas.in_hull([1.0, 1.0], corners).inside)
    True False
    """
    if isinstance(point, str | Path):
        if not local(point, "point").is_file():
            raise BadInputError(f"{point}: no such file")
        point = load_npy(Path(point))
    problem, goal = Problem.of(X, point=accept_stored(point, "the point")), Goal(eps=eps)
    with run_terms(max_passes, time_limit, memory, choose_client(client, X), out, callback, force) as terms:
        return conclude_hull(decide(problem, method, goal, *terms), problem, *terms)


def conclude_hull(result: Result, problem: Problem, limits: Limits, resources: Resources, output: Output) -> Hull:
    """What the verdict about the points as they are seen from the point says; limits hold for everything together."""
    inside = INSIDE.get(result.verdict)
    if inside is None and (result.eps or 0.0) <= EPS and result.stopped not in RESUMABLE:
        return _decide_exactly(problem, result, limits, resources, output)
    hull = Hull(inside=inside, proof=result.proof, result=result)
    if result.support is None or result.weights is None or result.verdict == UNDECIDED:
        return replace(hull, coef=result.separator if result.verdict == FEASIBLE else None)
    differences = signed_rows(open_source(Source(problem.spec)), result.support)
    length = np.linalg.norm(differences, axis=1)
    here = length == 0
    weights = here.astype(np.float64) if here.any() else result.weights / length
    return _combine(hull, result.support, weights, differences)


def _decide_exactly(problem: Problem, result: Result, limits: Limits, resources: Resources, output: Output) -> Hull:
    """What integers say where float64 could not tell."""
    until = limits.until(output.stop)
    face, dataset = search_integers(problem, result, until, limits, resources)
    separation = describe_face(face, result)
    if isinstance(face, str):
        return Hull(inside=None, proof="none", result=result, exactly=separation)
    if output.out is not None:
        separation.save(place(output.out))
    if face.kind == COMPLETE:
        return Hull(inside=False, proof=separation.proof, result=result, exactly=separation)
    stored = face.support < dataset.n
    support = face.support[stored]
    hull = Hull(inside=True, proof=separation.proof, result=result, exactly=separation)
    return _combine(hull, support, floats(face.weights[stored]), signed_rows(dataset, support))


def _combine(hull: Hull, support: NDArray[np.int64], weights: NDArray[np.float64], differences: NDArray[np.float64]) -> Hull:
    """With points that make the point, or nearly; ``differences`` (s, m) are these as they are seen from it."""
    weights = weights / weights.sum()
    return replace(hull, support=support, weights=weights, distance=float(np.linalg.norm(weights @ differences)))
