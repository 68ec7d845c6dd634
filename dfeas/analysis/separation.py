"""``dfeas.separation``: complete, quasi-complete, or overlap, as statisticians ask before they fit a logistic regression.

* complete: y'a_j > 0 for all signed points a_j. The likelihood has no maximum.
* quasi-complete: y'a_j >= 0 for all j, and not all of them zero, but no y makes all positive. There is no maximum either.
* overlap: neither; there is one (Albert and Anderson, Biometrika 1984). Where features depend on each other it is not unique.

A kind is said only when it is proved. Where ``dfeas.solve`` proves a separator, points are separated completely. Otherwise
``dfeas.exact_search`` decides in integers, by facial reduction, with evidence that ``dfeas verify`` proves again:

* complete: y in integers with all points strictly beyond its hyperplane.
* quasi-complete: such a y with points on its hyperplane and beyond it, and integer weights x > 0 on points, sum x_j a_j = 0,
  which show that no y has all points beyond (Gordan).
* overlap: integer weights x > 0 with a zero sum on points that span what all points span (Stiemke). Where that is not the whole
  space, a basis of what is orthogonal to all points shows it: how features depend on each other.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dfeas.analysis.presolve import decide_early
from dfeas.data.dataset import Dataset
from dfeas.data.storage import files
from dfeas.display import Part, Row
from dfeas.geometry.cones.space import require_points
from dfeas.problem import Goal, Problem
from dfeas.run.checkpoint.folder import discard_checkpoints
from dfeas.run.exact.search import Face, search
from dfeas.run.resources import Limits, Output, Resources, run_terms
from dfeas.run.result_files import Saved
from dfeas.run.results import Result
from dfeas.run.session import open_session
from dfeas.run.solve import decide
from dfeas.run.termination import FEASIBLE, RESUMABLE, Proof
from dfeas.verify.dyadic import Integers
from dfeas.verify.separation import COMPLETE, QUASI, SEPARATED, SEPARATION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dfeas.engine.protocol import Workers

EPS = 1e-9
LEAST = 1e-3
"""Seconds that a solve is given at least."""


@dataclass(frozen=True, repr=False)
class Separation(Saved):
    """Which of the three, with evidence.

    Attributes
    ----------
    kind : str, optional
        "complete", "quasi-complete" or "overlap"; None: not decided.
    proof : Proof
        Rigorous only of complete, whose separator ``result`` has; none: not decided.
    on : int
        Points on the hyperplane of y, when it is quasi-complete: no other has fewer.
    rank : int, optional
        Of the points that conflict; of all points when they overlap.
    message : str
        What was found, in words.
    y : list of int, optional
        (d,) with y'a_j >= 0 for all j, exactly; with an intercept it comes last.
    support : array of int64, optional
        Points that conflict.
    weights : list of int, optional
        (s,) positive, with an exactly zero sum of the signed points of the support.
    flat : list of list
        Vectors (d,) orthogonal to all points that overlap, a basis: features that depend on each other.
    result : Result
        Of the solve that came first.

    Examples
    --------
    >>> import dfeas
    >>> answer = dfeas.separation([[1.0], [2.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> answer.kind, answer.on, answer.y
    ('quasi-complete', 2, [1, -2])
    """

    FILE: ClassVar = SEPARATION
    FORMAT: ClassVar = files.SEPARATION
    HIDDEN: ClassVar = ("result",)
    DERIVED: ClassVar = ("fingerprint",)

    kind: str | None
    proof: Proof
    on: int
    rank: int | None
    message: str
    y: list[int] | None
    support: NDArray[np.int64] | None
    weights: list[int] | None
    flat: list[list[int]]
    result: Result

    def _parts(self) -> Iterator[Part]:
        yield Row("separation", f"{self.kind or 'not decided'} (proof: {self.proof})")
        yield Row("", self.message)
        yield from self.result._parts()

    @property
    def fingerprint(self) -> str:
        """Hash of the data, that of the solve."""
        return self.result.fingerprint


def separation(
    X: Any,
    labels: Any = None,
    *,
    method: str = "auto",
    positive: str | None = None,
    intercept: bool | None = None,
    max_passes: int | None = None,
    time_limit: float | None = None,
    memory: str | int | None = None,
    client: Workers | None = None,
    out: str | Path | None = None,
    callback: Callable[[Any], object] | None = None,
) -> Separation:
    """Say whether labelled points are completely separated, quasi-completely separated, or overlap.

    With ``out`` the folder gets ``separation.json``, too. Limits of time and passes hold
    for everything together.

    Parameters
    ----------
    X, labels : array (n, m), data frame, or path
        As of ``dfeas.solve``.
    method, positive, intercept, max_passes, time_limit, memory, client, out, callback : optional
        As of ``dfeas.solve``.

    Returns
    -------
    Separation
        Which of the three, with evidence in integers where float64 could not tell.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError
        As ``dfeas.solve``.

    References
    ----------
    .. [1] A. Albert and J. A. Anderson, On the existence of maximum likelihood estimates in logistic regression models,
       Biometrika 71 (1984).

    Examples
    --------
    >>> import dfeas
    >>> print(dfeas.separation([[1.0], [2.0], [2.0], [3.0]], [0, 0, 1, 1]).kind)
    quasi-complete
    """
    problem = Problem.of(X, labels, positive=positive, intercept=intercept)
    with run_terms(max_passes, time_limit, memory, client, out, callback) as terms:
        return separate(problem, method, *terms)


def separate(problem: Problem, method: str, limits: Limits, resources: Resources, output: Output) -> Separation:
    """The answer to ``dfeas.separation``."""
    require_points(problem.spec.where, "separation")
    began, goal = time.monotonic(), Goal(eps=EPS)
    early = decide_early(problem, goal, limits, resources, output)
    if early is not None:
        kind = describe_face(*early)
        if output.out is not None:
            kind.save(Path(output.out))
        return kind
    left = limits
    if limits.time_limit is not None:
        left = replace(limits, time_limit=max(LEAST, limits.time_limit - (time.monotonic() - began)))
    result = decide(problem, method, goal, left, resources, output, then=SEPARATED)
    return conclude_separation(result, problem, limits, resources, output, began)


def separate_table(problem: Problem, limits: Limits, resources: Resources, output: Output) -> Separation:
    """The same of a table in memory; the result of a small one says no more than what is proved, as nothing was solved."""
    early = decide_early(problem, Goal(eps=EPS), limits, resources, output, small=True)
    return separate(problem, "auto", limits, resources, output) if early is None else describe_face(*early)


def conclude_separation(
    result: Result, problem: Problem, limits: Limits, resources: Resources, output: Output, began: float | None = None
) -> Separation:
    """What follows from the solve, also from one that went on; written to its folder."""
    until = limits.until(output.stop, time.monotonic() if began is None else began)
    if result.verdict == FEASIBLE:
        text = "a hyperplane separates all points: the likelihood has no maximum"
        kind = Separation(COMPLETE, result.proof, 0, None, text, None, None, None, [], result)
    elif result.stopped in RESUMABLE:
        kind = _leave_undecided(result.message, result)
    else:
        kind = describe_face(search_integers(problem, result, until, limits, resources)[0], result)
    if output.out is not None and kind.kind is not None:
        kind.save(Path(output.out))
    cut_off = kind.kind is None and output.stop()
    discard_checkpoints(output.out, "interrupted" if cut_off else result.stopped)
    return kind


def search_integers(
    problem: Problem, result: Result, until: Callable[[], bool], limits: Limits, resources: Resources
) -> tuple[Face | str, Dataset]:
    """What integers say where the solve left it open, or why nothing; and the data."""
    with open_session(problem, resources) as session:
        session.checking.dataset.fingerprint = result.fingerprint
        start = np.empty(0, np.int64) if result.support is None else result.support
        left = math.inf if limits.max_passes is None else limits.max_passes - result.passes
        return search(session.checking, start, until, left), session.dataset


def _leave_undecided(why: str, result: Result) -> Separation:
    return Separation(None, Proof.NONE, 0, None, f"not decided: {why}", None, result.support, None, [], result)


def describe_face(face: Face | str, result: Result) -> Separation:
    """What is proved, in words; or why nothing is."""
    if isinstance(face, str):
        return _leave_undecided(face, result)
    if face.kind == COMPLETE:
        text = "a hyperplane separates all points: the likelihood has no maximum"
    elif face.kind == QUASI:
        count = len(face.support)
        text = f"a hyperplane has {face.on} points on it and all others on their side, and {count} points conflict on it"
    elif face.flat.shape[1]:
        text = (
            f"the points overlap in the {face.rank} dimensions that they span: the likelihood has a maximum, not a unique one, "
            f"as features depend on each other in {face.flat.shape[1]} ways"
        )
    else:
        count = len(face.support)
        text = f"{count} points that span the space have positive weights with a zero sum: the likelihood has a maximum"
    weighs = bool(len(face.support))
    return Separation(
        kind=face.kind,
        proof=Proof.EXACT,
        on=face.on,
        rank=face.rank if weighs else None,
        y=None if face.y is None else _integers(face.y),
        support=face.support if weighs else None,
        weights=_integers(face.weights) if weighs else None,
        flat=[_integers(vector) for vector in face.flat.T],
        message=text,
        result=result,
    )


def _integers(values: Integers) -> list[int]:
    return [int(v) for v in values]
