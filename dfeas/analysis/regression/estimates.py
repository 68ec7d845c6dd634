"""Which estimates of a regression are finite, which run away with which sign, and which are not identified: its table.

The likelihood never falls along a direction d of the cone C = {d : a_i'd >= 0 for all signed rows a_i}. A row is *on* it where
a_i'd = 0 for all of them. C spans L, all that is orthogonal to the rows that are on it (a y of C that has all others beyond it
is in the interior); N is what is orthogonal to all rows. The estimate of coefficient j is

* not identified, where some d of N has d_j != 0: columns depend on each other (R says NA);
* finite, where all d of L have d_j = 0: it is that of the regression on the rows that are on it (Albert and Anderson 1984,
  Geyer 2009);
* infinite otherwise: of either sign where the d_j of one in the interior is 0, as some d of L with d_j != 0 leads away from it
  both ways. It has the sign of d_j where that is the same along all of C, which it is where L has one dimension more than N,
  and where weights x >= 0 have sum x_i a_i = e_j or -e_j, by Farkas.

All of it is linear algebra in whole numbers. L and N are found while rows go by: no row is read for them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.analysis.regression.design import Design, Floats, Matrix
from dfeas.analysis.regression.outcome import IN_ORDER, Codes, Regression, Response, sign_rows
from dfeas.display import Grid, Part, Row
from dfeas.exact.dyadic import Integers, common, find_orthogonal, integer_signs
from dfeas.exact.integers import independent, orthogonal, unscale_vectors
from dfeas.linalg.points import Indices
from dfeas.run.exact.guesses import SURE, CentredPoints, equilibrate, weigh_nearest
from dfeas.run.exact.partition import partition
from dfeas.run.exact.search import settle_direction
from dfeas.run.resources import never
from dfeas.run.solver_thread import Abandoned, run_solver_here

if TYPE_CHECKING:
    from dfeas.analysis.regression.blame import Direction
    from dfeas.analysis.regression.blame import Part as Rows

FINITE, PLUS, MINUS, EITHER = "finite", "+Inf", "-Inf", "+Inf or -Inf"
UNIDENTIFIED, NOT_FINITE, UNDECIDED = "not identified", "not finite", "not decided"
INTERCEPT = "intercept"


class CoefficientEstimate(Struct, frozen=True):
    """What is proved of the estimate of one coefficient."""

    name: Any
    estimate: str  # "finite", "+Inf", "-Inf", "+Inf or -Inf" (there are directions of both), "not identified", ..
    certain: bool  # whether the sign is that of all directions, or proved to be either, not only that of the one shown
    direction: float  # along which the likelihood rises for ever
    of: str | None = None  # the class, of a regression on several

    @property
    def remark(self) -> str:
        if self.certain or self.estimate == UNDECIDED:
            return ""
        return "its sign is open" if self.estimate == NOT_FINITE else "along this direction; others may have another sign"


class RowSpan(Struct):
    """Rows that span all that went by, and a basis (d, k) of what is orthogonal to all of these."""

    across: Integers
    rows: Floats

    @classmethod
    def of(cls, d: int) -> RowSpan:
        return cls(np.eye(d, dtype=object), np.zeros((0, d)))

    def add(self, rows: Matrix) -> None:
        while self.across.shape[1]:
            missed = np.flatnonzero(~find_orthogonal(rows, self.across))[: rows.shape[1]]
            if not len(missed):
                break
            more = rows[missed] if isinstance(rows, np.ndarray) else rows[missed].toarray()
            some = np.vstack([self.rows, more])
            digits, exponent = common(some)
            basis = independent(digits)
            self.rows, self.across = some[basis], unscale_vectors(orthogonal(digits[basis]), exponent)


@dataclass
class Extent:
    """How far the cone of directions extends, as rows beside its y show it."""

    design: Design
    outcome: Response
    y: Integers | None  # (d,) that has every row beyond it or on it; None: all are beyond
    rank: int | None  # of the rows on it that are proved to be on all of the cone; None: there is none
    within: int = field(init=False)  # thresholds that are no coefficients, of which each row has one
    wide: bool = field(init=False)
    every: RowSpan = field(init=False)
    on: RowSpan = field(init=False)

    def __post_init__(self) -> None:
        d = self.outcome.blocks * (len(self.design.columns) + int(self.design.intercept))
        self.within = sum(not column.own for column in self.design.columns) if self.outcome.kind not in IN_ORDER else 0
        self.wide = d - self.within > 300  # too many to look for rows that span all others
        self.every, self.on = (RowSpan.of(0 if self.wide or self.within else d) for _ in range(2))

    def watch(self, parts: Iterable[Rows]) -> Iterator[Rows]:
        rows = 1 << 12  # at a time
        for part in parts:
            if self.within and not self.wide:
                self._look_within(part[0])
            for first in range(0, 0 if self.wide or self.within else len(part[1]), rows):
                self._look(part[0][first : first + rows], part[1][first : first + rows])
            yield part

    def _look(self, points: Matrix, codes: Codes) -> None:
        if self.y is None and not self.every.across.shape[1]:
            return
        rows, _ = sign_rows(points, codes, self.outcome, self.design.intercept, positive=True)
        self.every.add(rows)
        if self.y is not None:
            self.on.add(rows[np.flatnonzero(integer_signs(rows, self.y)[0] == 0)])

    def _look_within(self, points: Matrix) -> None:
        """All rows at once, in whole numbers less one with the same threshold: who is orthogonal to these is so to all rows, by
        thresholds that follow.
        """
        import scipy

        points, q = scipy.sparse.csr_array(points), self.within
        cut, (digits, exponent) = points[:, :q].indices, common(points[:, q:].toarray())
        on = np.zeros(0, np.int64) if self.y is None else np.flatnonzero(integer_signs(points, self.y)[0] == 0)
        for span, rows in ((self.every, np.arange(len(cut))), (self.on, on)):
            _, first, group = np.unique(cut[rows], return_index=True, return_inverse=True)
            less = digits[rows] - digits[rows[first]][group]
            free = unscale_vectors(orthogonal(less), exponent)
            span.across = np.vstack([np.zeros((q, free.shape[1]), object), free])
            span.rows = np.zeros((len(digits[0]) - free.shape[1] + len(first), 0))  # of their rank

    def estimates(
        self, direction: Direction, regression: Regression | None = None, stop: Callable[[], bool] = never
    ) -> list[CoefficientEstimate]:
        """Of all coefficients; in rows that are given signs are looked for, until ``stop``, that those shown do not prove."""
        along = (direction.values if self.design.intercept else direction.values[:, :-1]).ravel()
        signs = None if regression is None else SignSearch.of(regression, along, self.y, stop)
        return table_of(self.design, self.outcome, [(*self._say(j, d, signs), d) for j, d in enumerate(along.tolist())])

    def _say(self, j: int, along: float, signs: SignSearch | None) -> tuple[str, bool]:
        shown = PLUS if along > 0 else MINUS
        if self.wide:
            return NOT_FINITE if along else UNDECIDED, False
        if self.every.across[j].any():
            return UNIDENTIFIED, True
        if not self.on.across[j].any():
            proved = self.rank in (None, len(self.on.rows))
            return FINITE if proved else UNDECIDED, proved
        if not along:
            return EITHER, True
        if self.on.across.shape[1] == self.every.across.shape[1] + 1:
            return shown, True
        other = None if signs is None else signs.reaches(j, -1 if along > 0 else 1)
        return EITHER if other else shown, other is not None


def table_of(design: Design, outcome: Response, said: Sequence[tuple[str, bool, float]]) -> list[CoefficientEstimate]:
    """What is said of all coefficients, block after block."""
    names = [each.name if each.own or outcome.kind in IN_ORDER else None for each in design.columns]
    names += [INTERCEPT] if design.intercept else []
    classes: Sequence[str | None] = outcome.classes[1:] if outcome.kind == "multinomial" else [None]
    each = [(name, of) for of in classes for name in names]
    return [CoefficientEstimate(name, *what, of) for (name, of), what in zip(each, said, strict=True) if name is not None]


def show_estimates(found: Sequence[CoefficientEstimate], directed: bool) -> Iterator[Part]:
    """As a table, ``directed`` where something separates; of many those first that are not finite."""
    lines = 30  # coefficients that are printed
    order = found if len(found) <= lines else sorted(found, key=lambda each: each.estimate == FINITE)
    rows = [
        [*([each.of] if each.of else []), str(each.name), each.estimate]
        + ([f"{each.direction:.6g}", *([each.remark] if each.remark else [])] if directed else [])
        for each in order[:lines]
    ]
    if rows:
        words = [*(["class"] if order[0].of else []), "coefficient", "estimate"]
        yield Grid([*words, *(["direction"] if directed else [])], rows, left=len(words))
    if order[lines:]:
        ends = "all finite" if all(each.estimate == FINITE for each in order[lines:]) else "not all of them finite"
        yield Row(None, f"and {len(order) - lines} more coefficients, {ends}")


class SignSearch(Struct, frozen=True):
    """Whether some direction has another sign than the one that is shown, as integers decide."""

    rows: Floats  # (s, d) each once; none of a large table
    conflict: Indices  # those of them that are on the hyperplane
    along: Floats  # (d,) has all others beyond it
    even: CentredPoints | None
    stop: Callable[[], bool]

    @classmethod
    def of(cls, regression: Regression, along: Floats, y: Integers | None, stop: Callable[[], bool]) -> SignSearch:
        points, codes, intercept = regression.points, regression.codes, regression.design.intercept
        # entries of a table up to which signs are looked for along other directions than the one that was found
        small = points.shape[0] * (points.shape[1] + 1) * regression.outcome.blocks**2 <= 1 << 16
        rows = sign_rows(points, codes, regression.outcome, intercept, positive=True)[0] if small else np.zeros((0, len(along)))
        rows = np.unique(rows if isinstance(rows, np.ndarray) else rows.toarray(), axis=0)
        conflict = np.zeros(0, np.int64) if y is None else np.flatnonzero(integer_signs(rows, y)[0] == 0)
        return cls(rows, conflict, along, equilibrate(rows, centred=intercept) if small else None, stop)

    def reaches(self, j: int, sign: int) -> bool | None:
        """Whether some direction has the sign of coefficient j; None for a large table, and when it is to stop."""
        if not len(self.rows) or self.stop():
            return None
        more = np.zeros((1, len(self.along)))
        more[0, j] = sign
        found, few = (None, None) if self.even is None else self._guess(self.even, more)
        if found is not None and self._is_along(found, j, sign):
            return True
        try:
            if few is not None and (balances(self.rows[few], more[0]) or not self._is_beyond(self.rows[few], more)):
                return False
            return self._is_beyond(self.rows, more)
        except Abandoned:
            return None

    def _guess(self, even: CentredPoints, more: Floats) -> tuple[Floats | None, NDArray[np.bool_] | None]:
        """Float64's: such a direction, or the rows, weights of which sum to the opposite of ``more`` (1, d), with those on the
        hyperplane. The cone of the rows has a point that is nearest to it, which is either it, or off in such a direction.
        """
        with np.errstate(all="ignore"):
            wanted = -even.take(more)[0]
            wanted /= np.abs(wanted).max()
            wanted /= np.linalg.norm(wanted)
        try:
            x = weigh_nearest(even.points, wanted)
        except (RuntimeError, ValueError):  # it does not end, or numbers are too large
            return None, None
        z = even.points.T @ x - wanted
        if np.linalg.norm(z) > SURE:
            return even.direction(z), None
        few = x > 0
        few[self.conflict] = True
        return None, few

    def _is_along(self, y: Floats, j: int, sign: int) -> bool:
        """Whether y, moved a little to where all rows are strictly beyond, has the sign, and every row on its side."""
        if not np.isfinite(y).all() or not y[j] * sign > 0:
            return False
        with np.errstate(all="ignore"):
            inside = y + self.along * abs(y[j] / self.along[j]) / 2
        inner = settle_direction(self.rows, self.conflict, inside)
        return inner is not None and inner[j] * sign > 0 and bool((integer_signs(self.rows, inner)[0] >= 0).all())

    def _is_beyond(self, rows: Floats, more: Floats) -> bool:
        split = run_solver_here(partial(partition, common(np.vstack([rows, more]))[0]), self.stop)
        return bool(split.beyond[-1])


def balances(rows: Floats, more: Floats) -> bool:
    """Whether weights > 0 of rows (d, d) sum to the opposite of ``more`` (d,), proved in float64: an approximate inverse shows
    that the system is regular, and how far its solution is from the one at hand at most (Rump 2010, Acta Numerica 19). Then no
    direction has every row on its side and ``more`` beyond it.
    """
    d = len(more)
    if rows.shape != (d, d) or d > 1000:
        return False
    with np.errstate(all="ignore"):
        size = np.exp2(np.round(np.log2(np.abs(rows).max(axis=0))))  # powers of two, by which all is divided without rounding
        B, wanted = (rows / size).T, -more / size
        if not (np.array_equal(B.T * size, rows) and np.array_equal(wanted * size, -more)):
            return False
        try:
            inverse = np.linalg.inv(B)
        except np.linalg.LinAlgError:
            return False
        # of sums of d products, and of the few operations around them; and what underflow takes
        u, tiny = 2.0**-53 * (d + 8), 2.0**-1000
        gap = np.abs(np.eye(d) - inverse @ B) + u * (np.abs(inverse) @ np.abs(B) + 1) + tiny
        rate = float(gap.sum(axis=1).max()) * (1 + u)
        x = inverse @ wanted
        rest = np.abs(B @ x - wanted) + u * (np.abs(B) @ np.abs(x) + np.abs(wanted)) + tiny
        error = float((np.abs(inverse) @ rest).max()) * (1 + 4 * u) / (1 - rate)
        return bool(rate < 0.5 and x.min() > 1.01 * error)
