"""``dfeas.check_separation``: before a logistic regression, will its coefficients run away, and because of what?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.analysis.separation import Separation, separation
from dfeas.errors import BadInputError
from dfeas.verify.exact.linear import eye, independent, product, solve
from dfeas.verify.exact.products import signs
from dfeas.verify.separation import COMPLETE, OVERLAP, QUASI

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
        separated = np.flatnonzero(signs(wide, np.array(answer.y, object))[0])
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
