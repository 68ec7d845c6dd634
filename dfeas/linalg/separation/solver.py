"""The two stages of a separation: in the precision of the points, and in float64 as far as that tells."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from dfeas.linalg.basic import basic, independent
from dfeas.linalg.blas import one_thread
from dfeas.linalg.points import Floats, Indices
from dfeas.linalg.separation import AT
from dfeas.linalg.separation.columns import ColumnMatrix, multiply_out
from dfeas.linalg.separation.conflict import among_heavy, conflict, find_conflict, solve_gram
from dfeas.linalg.separation.newton import Newton
from dfeas.linalg.separation.rescaling import RescaledColumns
from dfeas.linalg.separation.rounds import Round, lowest
from dfeas.records import replace

SEPARATED, CONFLICT, UNRESOLVED = "separated", "conflict", "unresolved"


class Solution(Struct, frozen=True):
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

    def add(self, before: Solution | None) -> Solution:
        """With what was found, and the steps that were taken, before."""
        return self if before is None else replace(self.with_upper(before), steps=before.steps + self.steps)

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
    with one_thread():
        even = matrix.even_units() if tolerance is None else None
        return _solve(matrix, start, tolerance, eps) if even is None else _solve_in_units(matrix, even, start)


def separate_from(matrix: ColumnMatrix, y: Floats, score: Floats, most: int) -> tuple[Solution, Floats]:
    """Any separator of all columns, from where y (d,) stands with scores (c,), if moderate C find one and no more than so many
    columns need to be solved for it; what else was found is unresolved. Returns scores (c,) by w, too.
    """
    with one_thread():
        even = matrix.even_out()
        some = Round(even, even.coordinates(y), at_once=False, score=score)
        C, last = some.near_c, AT.plain_c * AT.factor if some.light else AT.thin_c
        few = 0.0 if some.whole else AT.few_wrong  # what waits tells more than they do
        some.begin(C)
        while True:
            newton = some.newton
            newton.minimise(C, some.enough, AT.rough, wrong=few)
            wrong = float((newton.point.score <= 0).mean())
            if newton.point.low <= some.enough and not 0 < wrong <= few:
                if last < C * AT.factor or (wrong > AT.hopeless and (some.light or not some.whole)):
                    score, outcome = even.scores(newton.point.v, within=math.inf), UNRESOLVED
                    break
                C *= AT.factor
                continue
            score = newton.point.score if some.whole else even.scores(newton.point.v, within=math.inf)
            outcome = SEPARATED if some.has_right(score) else UNRESOLVED
            if outcome == SEPARATED or len(some.rows) > most:
                break
            some.grow(score)
            few = 0.0
        part = matrix if some.whole else matrix.some(some.rows)
        solution = _describe(part, newton, np.arange(len(some.rows)), C, 1e-3 if matrix.large else 0.0)
        upper = solution.upper + AT.narrow if matrix.large and matrix.single else solution.upper
        margin = min(solution.margin, float(score.min()) / max(float(np.linalg.norm(solution.w)), np.finfo(np.float64).tiny))
        return replace(solution, rows=some.rows[solution.rows], margin=margin, upper=min(1.0, upper), outcome=outcome), score


def _solve_in_units(matrix: ColumnMatrix, even: ColumnMatrix, start: Solution | None) -> Solution:
    """A separator that does without features as small as rounding, or what is known in units in which none is small."""
    plain, w = matrix.equilibrate(), np.zeros(matrix.shape[1]) if start is None else start.w
    first = fast(matrix, Round(plain, plain.coordinates(w), at_once=False), AT.first_c)
    if first is not None and first.outcome == SEPARATED:
        return first
    solution = _solve(even, start, None, 0.0)
    weight = solution.weight * np.abs(even.scale / matrix.scale)[solution.rows]
    margin = float(matrix.scores(solution.y, np.inf).min()) if solution.w.any() else -1.0
    return replace(_set_weights(matrix, solution, solution.rows, weight / weight.sum()), margin=margin)


def _solve(matrix: ColumnMatrix, start: Solution | None, tolerance: float | None, eps: float) -> Solution:
    matrix = multiply_out(matrix)
    even = matrix if tolerance is not None else matrix.equilibrate()
    w = np.zeros(matrix.shape[1]) if start is None else start.w
    C = AT.first_c
    if start is not None and (matrix.large or tolerance is None):
        C = min(AT.moderate_c, start.C) if matrix.large and tolerance is None else max(AT.first_c, start.C / AT.factor)
    some = Round(even, even.coordinates(w), at_once=tolerance is not None)
    # so that few weigh as much as all would: the separator is as wide then
    weight = 1.0 if matrix.large or start is not None else matrix.shape[0] / len(some.rows)
    solution = None if tolerance is not None else fast(matrix, some, C * weight, eps)
    if solution is not None:
        return solution
    some.newton.matrix.forget_active()
    if tolerance is None and len(some.rows) <= AT.first * matrix.shape[1]:
        solution = _among_first(matrix, some, C)
        if solution is not None:
            return solution
    return _grow(matrix, some, C if matrix.large and tolerance is not None else AT.first_c, tolerance)


def fast(matrix: ColumnMatrix, some: Round, C: float, eps: float = 0.0) -> Solution | None:
    """Any separator of all columns, if moderate C have one; an answer in any case where there is no room for a basis, or where
    one is costly and |Ax| is a verdict. At the optimum for C either a separator is found or |Ax| <= 1 / sqrt(C): |w|^2 + C sum
    xi^2 = C sum xi, so that |Ax| = |w| / (C sum xi) <= 1 / sqrt(C sum xi), and some xi >= 1. So C = 1 / eps^2 decides, if not
    before.
    """
    limited = matrix.large and (matrix.wide or (eps > 0 and min(matrix.shape) > AT.costly))
    last = AT.plain_c if matrix.shape[0] <= RescaledColumns.most(matrix) else AT.moderate_c
    last = max(AT.moderate_c, eps**-2) if limited and eps else last
    best: Solution | None = None
    while True:
        newton, enough = some.newton, some.enough
        newton.minimise(C, enough, AT.rough)
        # 1e-3: the share by which |Ax| of a soft margin may be wrong
        best = solution = _describe(matrix, newton, some.rows, C, 1e-3 if matrix.large else 0.0).with_upper(best)
        if newton.point.low > enough:
            score = some.scores()
            if some.has_right(score):
                margin = min(solution.margin, float(score.min()) / float(np.linalg.norm(solution.w)))
                return replace(_set_weights(matrix, solution, solution.rows, solution.weight), margin=margin)
            some.grow(score)
            continue
        best = solution = _among_heavy(matrix, some, solution)
        if solution.outcome == CONFLICT:
            return solution
        if some.is_promising:
            some.grow(some.scores())
            continue
        if limited and solution.upper <= eps:
            longer = AT.longer if solution.upper > AT.small else 1
            newton.most_products = min(newton.most_products, longer * newton.products)
        if limited and (last <= C or newton.products >= newton.most_products):
            solution = _set_weights(matrix, solution, solution.rows, solution.weight)
            if solution.upper > eps and not matrix.wide:
                return None
            solution = solution if some.whole else replace(solution, outcome=UNRESOLVED)
            return solution if solution.outcome == SEPARATED or solution.upper <= eps else _name_conflict(matrix, solution)
        if not limited and (last <= C or solution.upper < AT.small):
            return None
        C *= AT.factor


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


def _name_conflict(matrix: ColumnMatrix, solution: Solution) -> Solution:
    """With a conflict of the columns that weigh, whether or not there was room to solve them directly: its proof takes more."""
    roomy, x = replace(matrix, room=AT.basis_bytes), np.zeros(matrix.shape[0])
    x[solution.rows] = solution.weight
    found = None if roomy.wide else conflict(roomy, x)
    return solution if found is None else replace(_set_weights(matrix, solution, *found), outcome=CONFLICT)


def _among_first(matrix: ColumnMatrix, some: Round, C: float) -> Solution | None:
    """A conflict among the few columns that are solved, if there is one; where that is dear, if their |Ax| says so. By exact
    weights: near others it often has a negative one, with 400 to 1000 features for every second overlap.
    """
    solved, slack = some.newton.matrix, some.newton.point.slack()
    if not slack.any():
        return None
    dear = int((slack > 0).sum()) * matrix.shape[1] ** 2 > AT.dear
    if dear and float(np.linalg.norm(solved.combine(slack / slack.sum()))) >= AT.small:
        return None
    if not solved.exact:
        some.newton.minimise(AT.plain_c, math.inf, 0.0, 5)
        slack = some.newton.point.slack()
    found = conflict(solved, slack / slack.sum()) if slack.any() else None
    if found is None:
        return None
    solution = _describe(matrix, some.newton, some.rows, C)
    return replace(_set_weights(matrix, solution, some.rows[found[0]], found[1]), outcome=CONFLICT)


def _set_weights(plain: ColumnMatrix, solution: Solution, rows: Indices, weight: Floats) -> Solution:
    """The solution with weights on some rows, and their |Ax| in float64."""
    return replace(solution, rows=rows, weight=weight, upper=min(1.0, float(np.linalg.norm(plain.combine_rows(rows, weight)))))


def _grow(matrix: ColumnMatrix, some: Round, C: float, tolerance: float | None) -> Solution:
    """Solve a subset in float64 from C on, and let it grow until its answer is one for all columns. Where no more can be
    rescaled at once, the lowest of all in those coordinates take its place, ``exchanges`` times at most.
    """
    (c, d), even = matrix.shape, some.matrix
    whole, score, v, steps = replace(even, exact=True), some.scores(), some.newton.point.v, some.newton.steps
    most, left = RescaledColumns.most(even), AT.exchanges
    most = most if tolerance is None and 2 * d <= most < c else 4 * c
    chosen = np.zeros(c, bool)
    chosen[lowest(score, min(max(200, 4 * d), most // 2))] = True
    if tolerance is None:
        # columns on one side of a soft separator never conflict: take some of all that weigh
        weighing = np.flatnonzero(score < 1)
        chosen[weighing[:: max(1, len(weighing) // min(max(200, 3 * d), most // 4))]] = True
    solution: Solution | None = None
    while True:
        rows = np.flatnonzero(chosen)
        solved, rescaled = _in_float64(matrix, even, rows, v, C, tolerance)
        v, steps = even.coordinates(solved.w), steps + solved.steps
        if matrix.large:
            C = max(AT.first_c, solved.C / AT.factor)
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
        more = place[lowest(score[place], max(200, 2 * d, len(rows)))]
        if len(rows) + len(more) > most and rescaled is not None and left:
            # half of what was solved stays, or two parts take turns
            score, left = score / rescaled.lengths_of(whole), left - 1
            chosen[rows] = False
            chosen[rows[lowest(score[rows], most // 2)]] = True
            place = np.flatnonzero(~chosen)
            more = place[lowest(score[place], most - most // 2)]
        elif len(rows) + len(more) > most:
            most = 4 * c
        chosen[more] = True


def _in_float64(
    matrix: ColumnMatrix, even: ColumnMatrix, rows: Indices, v: Floats, C: float, tolerance: float | None
) -> tuple[Solution, RescaledColumns | None]:
    """Separate a subset from C on, as far as float64 can tell, and as it was rescaled."""
    part = even.part(rows)
    plain = part if even is matrix else matrix.part(rows)
    if tolerance is None and part.shape[0] * part.shape[1] ** 2 > AT.dear and part.scores(v).min() < AT.far:
        # from where ``fast`` has ended: lower C take steps, and tell nothing more
        solution = _raise_C(plain, Newton(part, v), max(C, AT.plain_c), AT.moderate_c, None)
        if solution.outcome == CONFLICT:
            return replace(solution, rows=rows[solution.rows]), None
    rescaled = RescaledColumns.rescale(part) if tolerance is None else None
    if rescaled is None:
        solution = _raise_C(plain, Newton(part, v), C, AT.last_c, tolerance)
    else:
        solution, rescaled = _rescale(plain, rescaled, even.vector(v))
    return replace(solution, rows=rows[solution.rows]), rescaled


def _rescale(plain: ColumnMatrix, rescaled: RescaledColumns, w: Floats) -> tuple[Solution, RescaledColumns]:
    """Separate columns, which are rescaled by those inside of the soft margin until one solution tells."""
    before: Solution | None = None
    for _ in range(AT.rescalings):
        newton = Newton(rescaled, rescaled.coordinates(w))
        solution = _raise_C(plain, newton, AT.first_c, AT.moderate_c, None).add(before)
        closer = rescaled.turn(newton.point.score < 1, AT.moderate_c) if solution.outcome == UNRESOLVED else None
        if closer is None:
            break
        rescaled, before, w = closer, solution, solution.w
    if solution.outcome == CONFLICT:
        # rounding of other coordinates is not small in these
        basis = conflict(plain.part(solution.rows), solution.weight)
        if basis is not None:
            return _set_weights(plain, solution, solution.rows[basis[0]], basis[1]), rescaled
        if solution.upper > AT.small:  # it is one of rounding in a direction that the columns do not have
            inner = rescaled.inner
            return _raise_C(plain, Newton(inner, inner.coordinates(w)), AT.first_c, AT.last_c, None), rescaled
    return solution, rescaled


def _raise_C(plain: ColumnMatrix, newton: Newton, C: float, last: float, tolerance: float | None) -> Solution:
    """Separate columns, as the solver sees them, from C on up to the last one."""
    best: Solution | None = None
    tried = np.inf
    while True:
        if tolerance is None:
            newton.minimise(C, AT.enough, AT.rough)
        else:
            newton.minimise(C, np.inf, 0.0)
        solution = _describe(plain, newton, np.arange(plain.shape[0]), C)
        if tolerance is not None:
            solution = _polish(plain, solution, newton.point.score)
        best = solution = solution.with_upper(best)
        if solution.outcome == SEPARATED and (
            newton.point.low > AT.enough if tolerance is None else solution.margin >= (1 - tolerance / 2) * solution.upper
        ):
            return solution
        basis, tried = find_conflict(newton.matrix, newton.point.slack(), tried, last <= C)
        if basis is not None:
            weight = newton.matrix.weights(basis[1], basis[0])
            return replace(_set_weights(plain, solution, basis[0], weight / weight.sum()), outcome=CONFLICT)
        if last <= C:
            return solution
        C *= AT.factor


def _polish(plain: ColumnMatrix, solution: Solution, score: Floats) -> Solution:
    """The widest margin if the columns that now touch the margin are those that do in the end; otherwise what was found. With B
    independent columns on the margin, w = B alpha and B'w = 1: alpha >= 0 makes both ends of their bracket 1 / |w|. Slacks 1 -
    a_j'w say the same only until they are lost in the rounding of the scores.
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


def _describe(plain: ColumnMatrix, newton: Newton, solved: Indices, C: float, share: float = 0.0) -> Solution:
    """The solution of an iterate on ``solved`` columns, without feature factors; its |Ax| is wrong by a share of it."""
    point = newton.point
    w = newton.matrix.vector(point.v)
    length = float(np.linalg.norm(w))
    low = newton.matrix.lowest(point.score)
    slack = np.zeros(plain.shape[0])
    slack[solved] = newton.matrix.weights(point.slack())
    rows = np.flatnonzero(slack)
    if len(rows):
        slack /= slack.sum()
        upper, weight = float(np.linalg.norm(plain.combine(slack, share=share))), slack[rows]
    else:
        rows, weight, upper = np.zeros(1, np.int64), np.ones(1), 1.0
    margin = low / length if length > 0 else -1.0
    outcome = SEPARATED if margin > 0 else UNRESOLVED
    return Solution(outcome, w, margin, rows, weight, min(1.0, upper), C, newton.steps)
