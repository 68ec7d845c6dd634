"""``dfeas.separation``: complete, quasi-complete, or overlap, as statisticians ask before they fit a logistic regression; and
``dfeas.check_separation``: will its coefficients run away, and because of which columns?

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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dfeas.analysis.presolve import presolved
from dfeas.data.dataset import Dataset
from dfeas.data.storage import files
from dfeas.engine.client import takes_client
from dfeas.errors import BadInputError, UsageError
from dfeas.geometry.cones.space import require_points
from dfeas.problem import Goal, Kernel, Limits, Output, Problem, Resources, View, takes
from dfeas.run.checkpoint.folder import discard_checkpoints
from dfeas.run.exact.search import Face, search
from dfeas.run.result_files import Saved
from dfeas.run.results import Result
from dfeas.run.session import open_session
from dfeas.run.solve import decide
from dfeas.run.termination import FEASIBLE, RESUMABLE, Proof
from dfeas.verify.dyadic import Integers, integer_signs
from dfeas.verify.integers import eye, independent, product, solve
from dfeas.verify.separation import COMPLETE, OVERLAP, QUASI, SEPARATED, SEPARATION

if TYPE_CHECKING:
    from collections.abc import Callable

EPS = 1e-9
LEAST = 1e-3
"""Seconds that a solve is given at least."""


@dataclass(frozen=True)
class Separation(Saved):
    """Which of the three, with evidence."""

    FILE: ClassVar = SEPARATION
    FORMAT: ClassVar = files.SEPARATION
    HIDDEN: ClassVar = ("result",)
    DERIVED: ClassVar = ("fingerprint",)

    kind: str | None  # "complete" | "quasi-complete" | "overlap"; None: not decided
    proof: Proof  # rigorous only of complete, whose separator ``result`` has; none: not decided
    on: int  # points on the hyperplane of y, when it is quasi-complete: no other has fewer
    rank: int | None  # of the points that conflict; of all points when they overlap
    message: str
    y: list[int] | None  # (d,) with y'a_j >= 0 for all j, exactly; with an intercept it comes last
    support: NDArray[np.int64] | None  # points that conflict
    weights: list[int] | None  # (s,) positive, with an exactly zero sum of the signed points of the support
    flat: list[list[int]]  # vectors (d,) orthogonal to all points that overlap, a basis: features that depend on each other
    result: Result  # of the solve that came first

    @property
    def fingerprint(self) -> str:
        """Hash of the data, that of the solve."""
        return self.result.fingerprint


@takes(View, Kernel, Goal, Limits, Resources, Output, without=("point",))
@takes_client
def separation(
    problem: Problem, *, method: str = "auto", goal: Goal, limits: Limits, resources: Resources, output: Output
) -> Separation:
    """Say whether labelled points are completely separated, quasi-completely separated, or overlap.

    Arguments and errors are those of ``dfeas.solve``; ``eps`` is 1e-9, whatever is given. With ``out`` the folder gets
    ``separation.json``, too. Limits of time and passes hold for everything together.
    """
    view = problem.view
    if problem.kernel.kernel is not None:
        raise UsageError("separation asks about the points as they are: leave out the kernel")
    if view.also or view.mask is not None or view.one_vs_rest:
        raise UsageError("separation asks about two classes of one dataset: leave out also, mask and one_vs_rest")
    if view.transform:
        raise UsageError("separation asks about the points as they are stored: leave out scale, center and normalize")
    require_points(problem.X, "separation")
    began, goal = time.monotonic(), replace(goal, eps=EPS)
    early = presolved(problem, goal, limits, resources, output)
    if early is not None:
        kind = said(*early)
        if output.out is not None:
            kind.save(Path(output.out))
        return kind
    left = limits
    if limits.time_limit is not None:
        left = replace(limits, time_limit=max(LEAST, limits.time_limit - (time.monotonic() - began)))
    result = decide(problem, (method,), goal, left, resources, output, then=SEPARATED)
    return separated(result, problem, limits, resources, output, began)


def separated(
    result: Result, problem: Problem, limits: Limits, resources: Resources, output: Output, began: float | None = None
) -> Separation:
    """What follows from the solve, also from one that went on; written to its folder."""
    until = limits.until(output.stop, time.monotonic() if began is None else began)
    if result.verdict == FEASIBLE:
        text = "a hyperplane separates all points: the likelihood has no maximum"
        kind = Separation(COMPLETE, result.proof, 0, None, text, None, None, None, [], result)
    elif result.stopped in RESUMABLE:
        kind = _undecided(result.message, result)
    else:
        kind = said(searched(problem, result, until, limits, resources)[0], result)
    if output.out is not None and kind.kind is not None:
        kind.save(Path(output.out))
    cut_off = kind.kind is None and output.stop()
    discard_checkpoints(output.out, "interrupted" if cut_off else result.stopped)
    return kind


def searched(
    problem: Problem, result: Result, until: Callable[[], bool], limits: Limits, resources: Resources
) -> tuple[Face | str, Dataset]:
    """What integers say where the solve left it open, or why nothing; and the data."""
    with open_session(problem, resources) as session:
        session.checking.dataset.fingerprint = result.fingerprint
        start = np.empty(0, np.int64) if result.support is None else result.support
        left = math.inf if limits.max_passes is None else limits.max_passes - result.passes
        return search(session.checking, start, until, left), session.dataset


def _undecided(why: str, result: Result) -> Separation:
    return Separation(None, Proof.NONE, 0, None, f"not decided: {why}", None, result.support, None, [], result)


def said(face: Face | str, result: Result) -> Separation:
    """What is proved, in words; or why nothing is."""
    if isinstance(face, str):
        return _undecided(face, result)
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


SHOWN = 5
"""Columns and points that the text names."""

RESPONSIBLE = 1e-9
"""Share of the largest coefficient, times the size of the column, below which a column is not responsible."""


@dataclass(frozen=True)
class Separated:
    """What was found. Print it for a sentence."""

    kind: str | None  # "complete" | "quasi-complete" | "overlap"; None: not decided
    columns: list[Any]  # names (of a frame) or indices of the columns whose coefficients run away; none for overlap
    points: list[Any]  # labels of rows (of a frame) or indices: separated for good, or, of an overlap, in conflict
    direction: dict[Any, float]  # coefficients along which the likelihood rises for ever, by column; the largest is 1 or -1
    intercept: float  # of the direction
    depending: list[tuple[Any, list[Any]]]  # of an overlap: columns that follow from others, and these ("intercept" is one)
    proof: str  # "exact" | "rigorous" | "none": not decided
    found: Separation  # with all evidence

    @property
    def finite(self) -> bool | None:
        """Whether the maximum of the likelihood exists; None when it was not decided."""
        return None if self.kind is None else self.kind == OVERLAP

    def __str__(self) -> str:
        if self.kind is None:
            return f"separation was {self.found.message}"
        if self.kind == OVERLAP:
            unique = f", not a unique one: {self._dependence}" if self.depending else ""
            points = f"points {_some(self.points)} are in conflict"
            return f"the classes overlap: the maximum of the likelihood exists{unique} ({points})"
        what = "all points" if self.kind == COMPLETE else f"{len(self.points)} points ({_some(self.points)}) from the others"
        one = len(self.columns) == 1
        who = f"column {_some(self.columns)} separates" if one else f"columns {_some(self.columns)} separate"
        whose = "its coefficient has" if one else "their coefficients have"
        advice = "Leave out what separates, merge rare levels, or use a penalty (Firth, ridge)"
        return f"{self.kind} separation: {who} {what}; {whose} no finite estimate. {advice}"

    @property
    def _dependence(self) -> str:
        shown = [f"{name} depends on {_some(others) or 'nothing: it is zero'}" for name, others in self.depending[:SHOWN]]
        return "; ".join(shown) + (f"; and {len(self.depending) - SHOWN} more" if len(self.depending) > SHOWN else "")


def check_separation(X: Any, y: Any, *, intercept: bool = True, **options: Any) -> Separated:
    """Say whether a logistic regression of y on X has finite estimates, and which columns and points are to blame.

    For a Poisson regression give ``y > 0``: what separates the zeros is what makes its estimates run away.

    Parameters
    ----------
    X : a pandas frame of numbers, or an array (n, m) in memory.
    y : (n,) two values; of a frame with the same rows.
    intercept : whether the regression has one.
    options : those of ``dfeas.solve``, such as ``memory`` and ``time_limit``.

    Raises
    ------
    BadInputError : a column that is not a number, values that are missing, labels that are not two.
    """
    names, rows = list(getattr(X, "columns", range(np.shape(X)[1] if np.ndim(X) == 2 else 0))), getattr(X, "index", None)
    for name in names if hasattr(X, "columns") else []:
        if X[name].dtype.kind not in "biuf":
            raise BadInputError(f"column {name!r} holds {X[name].dtype}: code it by numbers, such as pandas.get_dummies does")
    if rows is not None and hasattr(y, "index") and not rows.equals(y.index):
        raise BadInputError("X and y have other rows, or the same in another order: align them")
    points = np.asarray(X.to_numpy(dtype=np.float64) if hasattr(X, "to_numpy") else X)
    answer = separation(points, np.asarray(y), intercept=intercept, **options)
    labels = np.arange(len(points)) if rows is None else rows

    def called(index: NDArray[np.int64]) -> list[Any]:
        return [labels[i] for i in index]

    direction = _direction(answer)
    if answer.kind not in (COMPLETE, QUASI) or direction is None:
        support = np.empty(0, np.int64) if answer.support is None else answer.support
        depending = _depending(answer.flat, [*names, "intercept"])
        return Separated(answer.kind, [], called(support), {}, 0.0, depending, answer.proof, answer)
    m = points.shape[1]
    alone = _alone(points, np.asarray(y), intercept) if answer.kind == COMPLETE else []
    size = np.abs(direction[:m]) * np.abs(points).max(axis=0, initial=0.0)
    columns = alone or [int(i) for i in np.flatnonzero(size > RESPONSIBLE * size.max(initial=0.0))]
    separated = np.arange(len(points))
    if answer.kind == QUASI:
        wide = np.hstack([points, np.ones((len(points), 1))]) if intercept else np.asarray(points, np.float64)
        separated = np.flatnonzero(integer_signs(wide, np.array(answer.y, object))[0])
    by_name = {names[i]: float(direction[i]) for i in range(m) if direction[i] != 0}
    return Separated(
        kind=answer.kind,
        columns=[names[i] for i in columns],
        points=called(separated),
        direction=by_name,
        intercept=float(direction[m:].sum()),
        depending=[],
        proof=answer.proof,
        found=answer,
    )


def _depending(flat: list[list[int]], names: list[Any]) -> list[tuple[Any, list[Any]]]:
    """Columns that follow from others, one for each vector of a basis of what vanishes on all points, and these others.

    The basis is brought to echelon form from the last column on, so that no column follows from one that follows itself.
    """
    if not flat:
        return []
    basis = np.array(flat, object)
    if len(flat[0]) == len(names):  # the intercept is the last that is said to follow
        basis, names = np.roll(basis, 1, axis=1), [names[-1], *names[:-1]]
    backwards = basis[:, ::-1]
    last = [len(flat[0]) - 1 - int(i) for i in independent(backwards.T)]
    given, _ = solve(basis[:, last].T, eye(len(last)))
    echelon = product(given.T, basis)
    others = np.setdiff1d(np.arange(basis.shape[1]), last)
    return [(names[i], [names[j] for j in others if row[j]]) for i, row in zip(last, echelon, strict=True)]


def _direction(answer: Separation) -> NDArray[np.float64] | None:
    """The direction with a largest entry of 1 or -1."""
    whole: Sequence[int] | NDArray[np.float64] | None = answer.result.y if answer.y is None else answer.y
    if whole is None:
        return None
    most = max(abs(value) for value in whole)
    return np.array([float(value / most) if isinstance(value, float) else value / most for value in whole])


def _alone(points: NDArray[np.float64], y: NDArray[Any], intercept: bool) -> list[int]:
    """Columns that separate the classes by themselves."""
    one = y == y[0]
    first, second = points[one], points[~one]
    if not len(second):
        return []
    below, above = first.max(axis=0) < second.min(axis=0), second.max(axis=0) < first.min(axis=0)
    if not intercept:
        below &= (first.max(axis=0) < 0) & (second.min(axis=0) > 0)
        above &= (second.max(axis=0) < 0) & (first.min(axis=0) > 0)
    return [int(i) for i in np.flatnonzero(below | above)]


def _some(names: list[Any]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(str(name) for name in names[:SHOWN]) + more
