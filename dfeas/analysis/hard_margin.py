"""``dfeas.hard_margin``: the hyperplane of maximum margin, and the figures that textbooks derive from it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dfeas.analysis.distance import Widest, find_widest, measure_ball
from dfeas.answers.files import RESULT
from dfeas.answers.hard_margin import Floats, HardMargin, bound, distances
from dfeas.answers.result import Result
from dfeas.answers.words import FEASIBLE, INFEASIBLE
from dfeas.data.source import Transform, parse_view
from dfeas.data.storage.places import place
from dfeas.geometry.registry import require_points
from dfeas.methods.protocol import Sparse
from dfeas.passes.select import Select
from dfeas.problem import Goal, Problem, Transforms
from dfeas.records import replace
from dfeas.run.checkpoint.folder import discard_checkpoints
from dfeas.run.resources import Limits, Output, Resources, choose_client
from dfeas.run.session import open_session, survey
from dfeas.run.solve import decide, run_terms
from dfeas.run.spec import HARD_MARGIN, WIDEST

if TYPE_CHECKING:
    from dfeas.engine.protocol import Workers

TOLERANCE = 1e-3


def hard_margin(
    X: Any,
    y: Any = None,
    *,
    margin_tolerance: float | None = None,
    method: str = "auto",
    positive: str | None = None,
    intercept: bool | None = None,
    mask: Any = None,
    transform: Transforms = (),
    eps: float | None = None,
    max_passes: int | None = None,
    time_limit: float | None = None,
    memory: str | int | None = None,
    client: Workers | None = None,
    out: str | Path | None = None,
    force: bool = False,
    callback: Callable[[Any], object] | None = None,
) -> HardMargin:
    """Find the hyperplane of maximum margin up to a share of it, and what follows from it.

    With an intercept this is the hard-margin support vector machine of the textbooks: of points as they are stored, or centred
    and scaled, with a free bias. It takes a few reads more than ``dfeas.solve``. With ``intercept=False`` points count as unit
    vectors, as elsewhere in dfeas. If the points are infeasible and have up to 50 features, it finds out how infeasible they
    are, in a few reads more: both ends of the bracket come nearer to the negative margin. With ``out`` the folder also gets
    ``margin.json``.

    Parameters
    ----------
    X, y : array (n, m), data frame, or path
        As in ``dfeas.solve``.
    margin_tolerance : float, optional
        The share; by default 0.001.
    method, positive, intercept, mask, transform, eps : optional
        As in ``dfeas.solve``.
    max_passes, time_limit, memory, client, out, force, callback : optional
        As in ``dfeas.solve``.

    Returns
    -------
    HardMargin
        The canonical hyperplane, its margin, and bounds that textbooks derive from it; only the result if there is none.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError
        As in ``dfeas.solve``.

    References
    ----------
    .. [1] V. Vapnik, Statistical Learning Theory, Wiley 1998, section 10: dimension of hyperplanes with a margin,
       leave-one-out.
    .. [2] A. Novikoff, On convergence proofs for perceptrons, 1962: corrections of a perceptron.
    .. [3] K. Bennett and E. Bredensteiner, Duality and geometry in SVM classifiers, ICML 2000: hulls of both classes.

    Examples
    --------
    >>> import dfeas
    >>> answer = dfeas.hard_margin([[1.0, 0.0], [-3.0, 0.0]], [1, -1])
    >>> print(f"{answer.margin:.3f} from the nearest point; w has {len(answer.w)} entries")
    2.000 from the nearest point; w has 2 entries
    """
    problem = Problem.of(X, y, positive=positive, intercept=intercept, mask=mask, transform=transform)
    require_points(problem.spec.where, "a hard margin")
    goal = Goal(eps=eps, margin_tolerance=TOLERANCE if margin_tolerance is None else margin_tolerance)
    with run_terms(max_passes, time_limit, memory, choose_client(client, X), out, callback, force) as terms:
        result = decide(problem, method, goal, *terms, then=HARD_MARGIN if problem.spec.intercept is False else WIDEST)
        return conclude_margin(result, problem, *terms)


def conclude_margin(result: Result, problem: Problem, limits: Limits, resources: Resources, output: Output) -> HardMargin:
    """What follows from the solve, also from one that went on; written to its folder, ``result.json`` last: it says what only
    all files together prove. Nothing is written of one that is to go on at once.
    """
    margin = HardMargin(result)
    if result.verdict == FEASIBLE and result.separator is not None and result.stopped != "interrupted":
        transform = None if result.evidence is None else parse_view(result.evidence.view)[1]
        seen = replace(problem, spec=replace(problem.spec, transform=transform))
        if result.intercept:
            margin = _describe_widest(find_widest(result, seen, limits, resources, output), transform)
        else:
            margin = _derive_margin(result, seen, transform, resources)
    if result.verdict == INFEASIBLE:
        nearer, ball = measure_ball(result, problem, limits, resources)
        margin = HardMargin(nearer)
        if ball is not None:
            margin = replace(margin, w=ball.y, support=ball.support, weights=ball.weights)
    if margin.result.stopped == "interrupted":
        return margin
    if output.out is not None:
        folder = place(output.out)
        (folder / RESULT).unlink(missing_ok=True)  # of an earlier limit
        margin = margin.save(folder)
    discard_checkpoints(output.out, margin.result.stopped)
    return margin


def _canonical(
    y: Floats, least: float, m: int, transform: Transform | None
) -> tuple[Floats, float, float] | tuple[None, None, None]:
    """The hyperplane with a least score of 1, and its margin; nothing where float64 does not hold one."""
    with np.errstate(all="ignore"):
        canonical = y / least if least > 0 else np.full(len(y), np.nan)
        w, bias = (canonical[:m], float(canonical[m:].sum())) if transform is None else transform.restore_plane(canonical, m)
        size = float(np.linalg.norm(w))
    return (w, bias, 1 / size) if np.isfinite([size, bias]).all() and size > 0 else (None, None, None)


def _describe_widest(widest: Widest, transform: Transform | None) -> HardMargin:
    result, reached, hulls = widest
    if reached is None or result.separator is None:
        return HardMargin(result)
    y, m, (support, weights) = result.separator, result.m, hulls or (None, None)
    lower, upper = distances(y, m, reached)
    w, bias, margin = _canonical(y, reached.low, m, transform)
    bounds = bound(result.margin_lower, len(y), support, result.n, lower, reached.longest)
    found = HardMargin(result, lower, upper, bias, margin, reached.longest, w=w, support=support, weights=weights)
    return replace(found, **bounds)


def _derive_margin(result: Result, seen: Problem, transform: Transform | None, resources: Resources) -> HardMargin:
    y, m = result.separator, result.m
    assert y is not None, "a separator has a direction"
    with open_session(seen, resources) as session:
        radius = survey(session).radius
        least = session.engine.run(Select(y, math.inf, 1, 1, raw=True))
    w, bias, margin = _canonical(y, float(least.score[0]), m, transform)
    weighed: Sparse | None = result.weighed
    support, weights = (None, None) if weighed is None else (weighed.index, weighed.weight)
    bounds = bound(result.margin_lower, len(y), support, result.n)
    return HardMargin(result, w=w, bias=bias, margin=margin, radius=radius, support=support, weights=weights, **bounds)
