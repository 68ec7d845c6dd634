"""Separate columns in memory: a separator with its margin, or weights on few columns that sum to zero.

Method: finite Newton for growing C, stopped as soon as every score exceeds 0.3. Many columns are not solved at once: some are,
all are scored by one product, the lowest join, and it goes on from where it stands until none is wrong (cutting planes in
memory; ``Round``). Where that does not end, because the margin is tiny, there is none, or the widest margin is wanted, the
same is done in float64 on a subset that grows by the columns which its separator has wrong, as the passes do with the data: its
active columns fit a dense factorisation, and a subset in conflict is a conflict of all. Soft margins with C -> infinity meet
either a separator (every xi below 1) or, as A x = w / (C sum(xi)), weights x = xi / sum(xi) with |Ax| -> 0, which are polished
to a basic solution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy  # loads its parts when they are used

from dfeas.linalg.basic import among_heavy, basic, conflict, independent, solve_gram
from dfeas.linalg.blas import one_thread
from dfeas.linalg.columns import ColumnMatrix, multiply_out
from dfeas.linalg.newton import Newton
from dfeas.linalg.points import Floats, Indices

SEPARATED, CONFLICT, UNRESOLVED = "separated", "conflict", "unresolved"

ENOUGH = 0.3
"""Scores above this (1 would be outside of the soft margin) are good enough for a separator."""

EARLY = 0.1
"""The same while columns wait that have not been looked at, and are many: of few the margin found is worth some steps."""

CLEAR = 0.25
"""Columns that wait are right if they score above this share of the lowest score of the others."""

FIRST = 4
"""Columns for each feature that are solved first; later there are twice as many as before."""

ROUGH = 0.05
"""Share of active columns that may still change when C is raised."""

FIRST_C, FACTOR, FAST_C, LAST_C = 1.0, 100.0, 1e8, 1e20

COSTLY = 2000
"""Columns of a basis up to which the few that conflict are looked for, also when |Ax| is a verdict already: 2000 x 20,000 with
one wrong label takes 20 s instead of 4, and 4000 x 20,000 did not end in 70.
"""

LONGER = 3
"""Where |Ax| is below eps it is no longer looked for a separator than so many times the products that took; below ``SMALL`` no
more at all.
"""

NEAR = 1e-3
"""Share by which |Ax| of a soft margin may be wrong."""

SMALL = 3e-6
"""|Ax| below which columns are looked at in float64, if at all: the margin is tiny, or there is none."""


DEAR = 1e9
"""Flops of a factorisation, of which few are made."""

CLOSE = 1e-9
"""|Ax| below which a conflict is looked for where that is dear: near less exact weights the columns of a basis often
have a negative one.
"""


@dataclass(frozen=True, slots=True)
class Solution:
    """What is known of c columns of dimension d."""

    outcome: str  # "separated": y has them all | "conflict": |Ax| is rounding | "unresolved": neither could be told
    w: Floats  # (d,) separator or the best soft one, of the solver's own length: where to start again
    margin: float  # min_j a_j'w / |w|; -1 when w = 0
    rows: Indices  # (s,) ascending
    weight: Floats  # (s,) on the simplex
    upper: float  # |Ax|: no unit vector has a larger margin on these columns
    C: float  # at which the solver ended
    steps: int  # of Newton

    @property
    def y(self) -> Floats:
        """The direction of w (d,), of length 1; zero when w is."""
        length = float(np.linalg.norm(self.w))
        return self.w / length if length > 0 else self.w

    def with_upper(self, other: Solution | None) -> Solution:
        """With the other's weights, if their |Ax| is smaller."""
        if other is None or other.upper >= self.upper:
            return self
        return replace(self, rows=other.rows, weight=other.weight, upper=other.upper)


def solve(matrix: ColumnMatrix, start: Solution | None = None, tolerance: float | None = None, eps: float = 0.0) -> Solution:
    """Separate all columns, or find a conflict among them.

    Parameters
    ----------
    matrix : c >= 1 signed unit columns; a zero column is a conflict.
    start : what was known of fewer columns, to start from.
    tolerance : None for any separator; otherwise near the widest margin: margin >= (1 - tolerance) upper.
    eps : |Ax| that is a verdict. Where there is no room for a basis (``wide``), a separator is not looked for much longer then.

    Source: the L2 soft margin of ``newton``; Caratheodory for the conflict.
    """
    with one_thread(of_scipy=True):
        return _solve(matrix, start, tolerance, eps)


def _solve(matrix: ColumnMatrix, start: Solution | None, tolerance: float | None, eps: float) -> Solution:
    matrix = multiply_out(matrix)
    evened = [matrix] if tolerance is not None else matrix.equilibrate()
    w = np.zeros(matrix.shape[1]) if start is None else start.w
    C = FIRST_C
    if start is not None and (matrix.large or tolerance is None):
        C = min(FAST_C, start.C) if matrix.large and tolerance is None else max(FIRST_C, start.C / FACTOR)
    for even in evened:
        some = Round(even, w / even.feature, at_once=tolerance is not None)
        # so that few weigh as much as all would: the separator is as wide then
        weight = 1.0 if matrix.large or start is not None else matrix.shape[0] / len(some.rows)
        solution = None if tolerance is not None else fast(matrix, some, C * weight, eps)
        if solution is not None:
            return solution
    if tolerance is None and len(some.rows) <= FIRST * matrix.shape[1]:
        solution = _among_first(matrix, some, C)
        if solution is not None:
            return solution
    return _grow(matrix, some, C if matrix.large and tolerance is not None else FIRST_C, tolerance)


class Round:
    """Columns that are solved, and those that wait; more are solved from one round to the next, and none leaves."""

    def __init__(self, matrix: ColumnMatrix, v: Floats, *, at_once: bool) -> None:
        """Begin with the lowest under v, or with columns from all over where v is zero."""
        self.matrix = matrix
        c, d = matrix.shape
        first = FIRST * d
        if at_once or 2 * first > c:
            self.rows = np.arange(c)
            self.newton = Newton(matrix, v)
            return
        self.rows = np.sort(_lowest(matrix.scores(v), first)) if v.any() else np.arange(first) * c // first
        self.newton = Newton(multiply_out(matrix.some(self.rows)), v)

    @property
    def whole(self) -> bool:
        return len(self.rows) == self.matrix.shape[0]

    @property
    def enough(self) -> float:
        """Scores above this are good enough for now."""
        return EARLY if self.matrix.large and not self.whole else ENOUGH

    def scores(self) -> Floats:
        """Of all columns (c,); in float64 at least where they are not clearly above the lowest that is solved."""
        point = self.newton.point
        return point.score if self.whole else self.matrix.scores(point.v, point.low)

    def grow(self, score: Floats) -> None:
        """Take the lowest of those that wait, as many as there are; all, if that makes more than half."""
        c = self.matrix.shape[0]
        chosen = np.zeros(c, bool)
        chosen[self.rows] = True
        place = np.flatnonzero(~chosen)
        some = 4 * len(self.rows) <= c
        chosen[place[_lowest(score[place], len(self.rows))] if some else place] = True
        rows, before = np.flatnonzero(chosen), self.rows
        self.newton.extend(lambda: multiply_out(self.matrix.some(rows)) if some else self.matrix, np.searchsorted(rows, before))
        self.rows = rows


def fast(matrix: ColumnMatrix, some: Round, C: float, eps: float = 0.0) -> Solution | None:
    """Any separator of all columns, if moderate C have one; an answer in any case where there is no room for a basis, or where
    one is costly and |Ax| is a verdict.

    At the optimum for C either a separator is found or |Ax| <= 1 / sqrt(C): |w|^2 + C sum xi^2 = C sum xi, so that
    |Ax| = |w| / (C sum xi) <= 1 / sqrt(C sum xi), and some xi >= 1. So C = 1 / eps^2 decides, if not before.
    """
    limited = matrix.large and (matrix.wide or (eps > 0 and min(matrix.shape) > COSTLY))
    last = max(FAST_C, eps**-2) if limited and eps else FAST_C
    best: Solution | None = None
    while True:
        newton, enough = some.newton, some.enough
        newton.minimise(C, enough, ROUGH)
        best = solution = _describe(matrix, newton, some.rows, C, NEAR).with_upper(best)
        if newton.point.low > enough:
            if some.whole:
                return _settle_upper(matrix, solution)
            score = some.scores()
            least = float(score.min())
            if least > CLEAR * newton.point.low:
                margin = min(solution.margin, least / float(np.linalg.norm(solution.w)))
                return replace(_settle_upper(matrix, solution), margin=margin)
            some.grow(score)
            continue
        best = solution = _among_heavy(matrix, some, solution)
        if solution.outcome == CONFLICT:
            return solution
        if limited and solution.upper <= eps:
            longer = LONGER if solution.upper > SMALL else 1
            newton.most_products = min(newton.most_products, longer * newton.products)
        if limited and (last <= C or newton.products >= newton.most_products):
            solution = _settle_upper(matrix, solution)
            if solution.upper > eps and not matrix.wide:
                return None
            return solution if some.whole else replace(solution, outcome=UNRESOLVED)
        if not limited and (last <= C or solution.upper < SMALL):
            return None
        C *= FACTOR


def _among_heavy(matrix: ColumnMatrix, some: Round, solution: Solution) -> Solution:
    """With a conflict among the heaviest of the columns that are solved, such as two equal points with different labels, or
    less |Ax| on them; of wide ones that is looked for no longer than the solver took until now.
    """
    newton, slack = some.newton, some.newton.point.slack()
    found = among_heavy(newton.matrix, slack, newton.products if matrix.wide else 0) if slack.any() else None
    if found is None:
        return solution
    closer = _set_weights(matrix, solution, some.rows[found[0]], found[1])
    return replace(closer, outcome=CONFLICT) if found[2] else closer.with_upper(solution)


def _among_first(matrix: ColumnMatrix, some: Round, C: float) -> Solution | None:
    """A conflict among the few columns that are solved, if there is one."""
    slack = some.newton.point.slack()
    found = conflict(some.newton.matrix, slack / slack.sum()) if slack.any() else None
    if found is None:
        return None
    solution = _describe(matrix, some.newton, some.rows, C)
    return replace(_set_weights(matrix, solution, some.rows[found[0]], found[1]), outcome=CONFLICT)


def _set_weights(plain: ColumnMatrix, solution: Solution, rows: Indices, weight: Floats) -> Solution:
    """The solution with weights on some rows, and their |Ax|."""
    x = np.zeros(plain.shape[0])
    x[rows] = weight
    return replace(solution, rows=rows, weight=weight, upper=float(np.linalg.norm(plain.combine(x))))


def _grow(matrix: ColumnMatrix, some: Round, C: float, tolerance: float | None) -> Solution:
    """Solve a subset in float64 from C on, and let it grow until its answer is one for all columns."""
    (c, d), even = matrix.shape, some.matrix
    whole, score, v, steps = replace(even, exact=True), some.scores(), some.newton.point.v, some.newton.steps
    chosen = np.zeros(c, bool)
    chosen[_lowest(score, max(200, 4 * d))] = True
    if tolerance is None:
        # columns on one side of a soft separator never conflict: take some of all that weigh
        weighing = np.flatnonzero(score < 1)
        chosen[weighing[:: max(1, len(weighing) // max(200, 3 * d))]] = True
    solution: Solution | None = None
    while True:
        rows = np.flatnonzero(chosen)
        solved, v = _in_float64(matrix, even, rows, v, C, tolerance)
        steps += solved.steps
        if matrix.large:
            C = max(FIRST_C, solved.C / FACTOR)
        # weights on a part are weights on all
        solution = replace(solved.with_upper(solution), steps=steps)
        if solution.outcome != SEPARATED or len(rows) == c:
            return solution
        score = whole.scores(v, np.inf)
        margin = float(score.min()) / float(np.linalg.norm(solution.w))
        bar = 0.5 if tolerance is None else 1 - tolerance / 4
        missing = ~chosen & (score < bar * solution.margin * float(np.linalg.norm(solution.w)))
        if not missing.any():
            return replace(solution, margin=min(margin, solution.margin))
        place = np.flatnonzero(missing)
        chosen[place[_lowest(score[place], max(200, 2 * d, len(rows)))]] = True


def _in_float64(
    matrix: ColumnMatrix, even: ColumnMatrix, rows: Indices, v: Floats, C: float, tolerance: float | None
) -> tuple[Solution, Floats]:
    """Separate a subset from C on, as far as float64 can tell; also the separator as the evened columns see it."""
    part, plain = even.part(rows), matrix.part(rows)
    newton = Newton(part, v if tolerance is not None else _interpolate(part, v))
    tried = np.inf
    best: Solution | None = None
    while True:
        if tolerance is None:
            newton.minimise(C, ENOUGH, ROUGH)
        else:
            newton.minimise(C, np.inf, 0.0)
        solution = _describe(plain, newton, np.arange(len(rows)), C)
        if tolerance is not None:
            solution = _polish(plain, solution, newton.point.score)
        best = solution = solution.with_upper(best)
        if solution.outcome == SEPARATED and (
            newton.point.low > ENOUGH if tolerance is None else solution.margin >= (1 - tolerance / 2) * solution.upper
        ):
            break
        slack = newton.point.slack()
        heavy = among_heavy(part, slack) if slack.any() else None
        basis = heavy[:2] if heavy is not None and heavy[2] else None
        small = CLOSE if int((slack > 0).sum()) * part.shape[1] ** 2 > DEAR else SMALL
        if solution.upper < min(small, tried / FACTOR) or C >= LAST_C:
            tried = solution.upper
            basis = conflict(part, slack / slack.sum()) if basis is None and slack.any() else basis
        if basis is not None:
            solution = replace(_set_weights(plain, solution, *basis), outcome=CONFLICT)
            break
        if C >= LAST_C:
            break
        C *= FACTOR
    return replace(solution, rows=rows[solution.rows]), solution.w / part.feature


def _interpolate(part: ColumnMatrix, v: Floats) -> Floats:
    """The shortest w that gives every column the score 1, where float64 finds one for no more columns than features, and steps
    to a wider margin are dear; else v.
    """
    c, d = part.shape
    if c > min(d, part.direct) or c * d**2 < DEAR:
        return v
    basis, factor = np.linalg.qr(part.gather(slice(None)).T)
    if not factor.diagonal().all():
        return v
    w = basis @ scipy.linalg.solve_triangular(factor, np.ones(c), trans=1, check_finite=False)
    return w if np.isfinite(w).all() and float(part.scores(w).min()) > ENOUGH else v


def _polish(plain: ColumnMatrix, solution: Solution, score: Floats) -> Solution:
    """The widest margin if the columns that now touch the margin are those that do in the end; otherwise what was found.

    With B independent columns on the margin, w = B alpha and B'w = 1: alpha >= 0 makes both ends of their bracket 1 / |w|.
    Slacks 1 - a_j'w say the same only until they are lost in the rounding of the scores.
    """
    slack = np.maximum(0.0, 1 - score)
    if plain.wide or not slack.any():
        return solution
    kept, weight = basic(plain.gather, plain.shape[1], slack / slack.sum())
    columns = plain.gather(kept)
    some, _ = independent(columns, weight)
    kept, columns = kept[some], columns[some]
    alpha = solve_gram(columns, 1e-12)
    if alpha is None or not np.isfinite(alpha).all() or not (alpha > 0).all():
        return solution
    w = alpha @ columns
    margin = float(plain.scores(w).min()) / float(np.linalg.norm(w))
    closer = _set_weights(plain, solution, kept, alpha / alpha.sum()).with_upper(solution)
    return replace(closer, w=w, margin=margin, outcome=SEPARATED) if margin > max(0.0, solution.margin) else closer


def _settle_upper(matrix: ColumnMatrix, solution: Solution) -> Solution:
    """With |Ax| in float64."""
    weight = np.zeros(matrix.shape[0])
    weight[solution.rows] = solution.weight
    return replace(solution, upper=min(1.0, float(np.linalg.norm(matrix.combine(weight)))))


def _describe(plain: ColumnMatrix, newton: Newton, solved: Indices, C: float, share: float = 0.0) -> Solution:
    """The solution that an iterate on ``solved`` columns gives, in terms of the columns without feature factors; its |Ax| is
    wrong by a share of it.
    """
    point = newton.point
    w = newton.matrix.feature * point.v
    length = float(np.linalg.norm(w))
    low = point.low
    slack = np.zeros(plain.shape[0])
    slack[solved] = point.slack()
    rows = np.flatnonzero(slack)
    if len(rows):
        slack /= slack.sum()
        upper, weight = float(np.linalg.norm(plain.combine(slack, share=share))), slack[rows]
    else:
        rows, weight, upper = np.zeros(1, np.int64), np.ones(1), 1.0
    margin = low / length if length > 0 else -1.0
    outcome = SEPARATED if margin > 0 else UNRESOLVED
    return Solution(outcome, w, margin, rows, weight, min(1.0, upper), C, newton.steps)


def _lowest(score: Floats, count: int) -> Indices:
    if count >= len(score):
        return np.arange(len(score))
    return np.argpartition(score, count - 1)[:count]
