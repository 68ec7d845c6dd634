"""``dfeas.feasible``: has A x <= b a solution, with equalities and bounds?

Points (-a_j, b_j) and (0, 1) are asked whether some y = (x, t) has all of them on its positive side: x / t is then a solution,
one in the interior. Otherwise weights u >= 0 that are not zero bring their sum to zero. Where t has a weight they are Farkas's
certificate: A'u = 0 and b'u < 0. Where it has none, the inequalities of positive weight hold with equality in every solution,
and the exact search goes on: it ends with a y >= 0 on all points that has as many of them beyond as any, so that there is no
solution where t is not among these, and a conflict with t can be solved for in whole numbers. Equalities are two inequalities.

No y has all points beyond its hyperplane where there are equalities. Such systems, and sparse ones, are asked as a linear
programme first, where memory holds them: a vertex that solves its equations exactly is a solution, and multipliers that are
above zero show which points conflict. So are others without an interior, before the exact search.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy  # loads its parts when they are used
from numpy.typing import NDArray

from dfeas.analysis.separation import Found, decide_by, decide_early, search_integers
from dfeas.answers.feasibility import Feasibility, is_irreducible, nearest_floats
from dfeas.answers.result import Result
from dfeas.answers.words import FEASIBLE, INFEASIBLE, RESUMABLE, UNDECIDED, Proof, Stop
from dfeas.data.dataset import Dataset
from dfeas.data.inequalities import Inequalities, call_rows, places_of_system
from dfeas.data.programs import is_program
from dfeas.data.source import ALL_POSITIVE, ChosenTable
from dfeas.data.storage.places import place
from dfeas.errors import DfeasError, UsageError, either
from dfeas.exact.dyadic import Dyadic, Integers, Matrix, common
from dfeas.exact.integers import combine, independent, primitive, solve
from dfeas.linalg.blas import beat
from dfeas.linalg.points import Floats
from dfeas.linalg.routines import nnls
from dfeas.problem import Goal, Problem
from dfeas.records import replace
from dfeas.run.checkpoint.folder import discard_checkpoints
from dfeas.run.exact.guesses import EvenPoints
from dfeas.run.exact.partition import extend_weights, partition
from dfeas.run.exact.programme import ask, narrow, settle
from dfeas.run.exact.search import LIMITED, STOPPED, Face, find_ending
from dfeas.run.resources import Limits, Output, Resources, choose_client
from dfeas.run.session import Session, compute_by, open_session, survey
from dfeas.run.solve import decide, run_terms
from dfeas.run.solver_thread import Abandoned, end_long_reads, run_solver
from dfeas.run.spec import SOLVABLE
from dfeas.verify.separation import QUASI, Wanted, look, rows

if TYPE_CHECKING:
    from dfeas.engine.protocol import Workers

Conflict: TypeAlias = tuple[NDArray[np.int64], Integers, Floats]
"""Points (s,) of constraints, their weights, and the points themselves (s, m + 1)."""
NAME = "programme"
ROUNDED = 50
"""Bits: decimals whose right sides contradict by a smaller share may do so because they were rounded to float64."""
MOST = 1 << 10
"""Inequalities that the rounding of a solution violates, at most, of which it is said by how much."""


def feasible(
    A: Any,
    b: Any = None,
    *,
    equal: Any = None,
    bounds: Any = None,
    max_passes: int | None = None,
    time_limit: float | None = None,
    memory: str | int | None = None,
    client: Workers | None = None,
    out: str | Path | None = None,
    force: bool = False,
    callback: Callable[[Any], object] | None = None,
) -> Feasibility:
    """Decide whether some x has A x <= b, satisfies equalities and keeps to bounds, if these are given.

    Parameters
    ----------
    A : array (n, m), data frame, or path
        What ``dfeas.solve`` takes, dense or sparse, read in blocks; None if there are only equalities. ``dfeas.table`` says
        which columns are variables. Or the path of an MPS or LP file (.mps, .lp, .mps.gz, .lp.gz), which HiGHS reads, or a
        ``cvxpy.Problem`` whose constraints are linear: they have all of the system, and their objectives are left out.
    b : array (n,), series, or path
        Right sides, finite numbers; a series beside a frame has its index.
    equal : (E, f), optional
        E x = f: an array (p, m) and one (p,), or paths, held in memory. Columns with the names of those of A may be in any
        order.
    bounds : (low, high), sequence of m such pairs, ``scipy.optimize.Bounds``, frame, dict, or path, optional
        One pair for all variables, or one for each; None, or an infinite number, is no bound. A dict has pairs by the names of
        the columns of A. So may the index of a frame, whose columns are ``low`` and ``high``, or ``lower`` and ``upper``. The
        path is that of a .npy file (m, 2). Unlike in ``scipy.optimize.linprog``, variables have no bounds by default.
    max_passes, time_limit, memory, client, out, force, callback : optional
        As in ``dfeas.solve``. With a client A is a path, or a Dask array or frame.

    Returns
    -------
    Feasibility
        A solution, or multipliers that prove that there is none.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError
        As in ``dfeas.solve``.

    References
    ----------
    .. [1] J. Farkas, Theorie der einfachen Ungleichungen, Journal für die reine und angewandte Mathematik 124 (1902).
    .. [2] A. Goldman and A. Tucker, Theory of linear programming, 1956: the partition that the exact search finds.
    .. [3] J. Gleeson and J. Ryan, Identifying minimally infeasible subsystems of inequalities, ORSA J. Computing 2 (1990).

    Examples
    --------
    >>> import dfeas
    >>> answer = dfeas.feasible([[1.0, 1.0]], [1.0], equal=([[1.0, -1.0]], [0.0]), bounds=(0.5, None))
    >>> print(answer.verdict, answer.x, answer.violated)
    feasible [0.5 0.5] 0
    """
    if isinstance(A, ChosenTable):
        if A.y is not None:
            raise UsageError("A has no labels: leave out y of the table")
        A = A if isinstance(A.X, str) else A.in_memory()
    terms = run_terms(max_passes, time_limit, memory, choose_client(client, A), out, callback, force)
    with terms as (limits, resources, output):
        asked = Inequalities.of(A, b, equal, bounds, resources.memory_bytes, compute_by(resources.client, A))
        if resources.client is not None and is_program(A):
            raise UsageError(f"{A}: a linear programme is in memory; leave out {either('client', '--local or --scheduler')}")
        problem = Problem.of(asked.X, ALL_POSITIVE)
        if resources.client is not None and asked.there is not None:  # workers read A
            problem = Problem(asked.there)
        with call_rows("A"):
            answer = _decide(asked, problem, limits, resources, output)
        stopped = _why_ended(answer, output.stop())
        answer = replace(
            answer,
            asked=places_of_system(A, b, equal, bounds),
            result=replace(answer.result, stopped=stopped, seconds=limits.seconds, m=asked.m, n=asked.count),
        )
        discard_checkpoints(out, Stop.VERDICT)  # what is in memory is not gone on with
        return answer if out is None else answer.save(place(out))


def _why_ended(answer: Feasibility, stop: bool) -> Stop:
    """A solve that has a verdict of the points says nothing of the search that follows it."""
    if answer.is_decided:
        return Stop.VERDICT
    if answer.message in (STOPPED, LIMITED):
        return find_ending(answer.message, stop)
    return Stop(answer.result.stopped) if answer.result.stopped != Stop.VERDICT else Stop.STALLED


def _decide(asked: Inequalities, problem: Problem, limits: Limits, resources: Resources, output: Output) -> Feasibility:
    until = limits.until(output.stop)
    early: tuple[Face, Result] | None = None
    if resources.client is None or problem.spec.by_path:  # as threads decide it, with their bits
        here = replace(resources, client=None)
        ways = [
            partial(decide_early, small=True),
            partial(decide_by, partial(_ask_programme, asked, limits, here)),
        ]
        # a table of so many entries takes less than to load HiGHS
        for way in reversed(ways) if asked.equal and asked.n * (asked.m + 1) > 1 << 12 else ways:
            early = way(problem, Goal(), limits, here, output)
            if early is not None:
                break
    result: Result = decide(problem, "auto", Goal(), limits, resources, output, then=SOLVABLE) if early is None else early[1]
    unknown = Feasibility(verdict=UNDECIDED, proof=Proof.NONE, message=result.message, result=result)
    if output.out is not None:  # in place of a verdict of the points, which is none of the inequalities
        begun = replace(result, stopped=Stop.INTERRUPTED, m=asked.m, n=asked.count)
        replace(unknown, message=Stop.INTERRUPTED.sentence, result=begun).save(place(output.out))
    if early is None and result.verdict == FEASIBLE and result.evidence is not None:
        near = result.evidence
        y = np.array(near.integers, object) if near.integers else Dyadic.of(near.y).digits
        return _describe_solution(unknown, problem, y, result.proof, resources, until)
    if early is None and result.stopped in RESUMABLE:
        return unknown
    try:
        if early is None and result.verdict == INFEASIBLE and result.support is not None:
            found = _find_multipliers(asked, problem, result.support, resources, until)
            if found is not None:
                return _describe_conflict(unknown, asked, *found)
        face = early[0] if early is not None else _search(asked, problem, result, limits, resources, until)
        if isinstance(face, str):
            return replace(unknown, message=face)
        if face.y is not None and face.y[-1] > 0:
            return _describe_solution(unknown, problem, face.y, Proof.EXACT, resources, until)
        known = face.weights if face.kind == QUASI and face.y is None else None  # of a guess, which is proved
        found = _find_multipliers(asked, problem, face.support, resources, until, known)
    except Abandoned:
        return replace(unknown, message=STOPPED)
    if found is None:
        return replace(unknown, message="it was found which inequalities conflict, and no multipliers: please report this")
    return _describe_conflict(unknown, asked, *found)


def _ask_programme(
    asked: Inequalities, limits: Limits, resources: Resources, session: Session, until: Callable[[], bool]
) -> Found | None:
    """What a linear programme says of a system with equalities, or of sparse rows, and integers prove; None for others."""
    sparse = session.dataset.entries is not None
    if not _fits(asked, session.dataset, resources) or not (asked.equal or sparse):
        return None
    surveyed = survey(session)
    if limits.max_passes is not None and limits.max_passes < surveyed.reads + 1:
        return None
    try:
        points, guess = _guess(asked, session, until)
        if guess is None:
            return None
        x, weights = guess
        how = NAME, "a system with equalities, or sparse: a linear programme guesses, and integers decide"
        y, found = None, None
        if weights.any():
            support = run_solver(partial(narrow, points, *asked.equalities, weights), until)
            found = _find_conflict(points, support, until)
        elif asked.equal:
            y, found = _settle(points, asked, x, until)
        if found is not None:
            return _of_guess(asked, None, *found), _of_guess(asked, None, *found), surveyed, how
        if y is None or not _is_solution(session, y, until):
            return None
    except Abandoned:
        return None
    pair = np.concatenate([side[:1] for side in asked.equalities])
    return _of_guess(asked, y), _of_guess(asked, None, pair, np.array([1, 1], object)), surveyed, how


def _settle(
    points: Any, asked: Inequalities, x: Floats, until: Callable[[], bool]
) -> tuple[Integers | None, tuple[NDArray[np.int64], Integers] | None]:
    """A solution near a guess, or an irreducible conflict with t; neither where none is found."""
    y, found = run_solver(partial(settle, points, *asked.equalities, x), until)
    if found is not None and not _is_conflict(common(points[found[0]].toarray())[0], found[1]):
        found = None
    return y, found


def _of_guess(
    asked: Inequalities, y: Integers | None, support: NDArray[np.int64] | None = None, weights: Integers | None = None
) -> Face:
    """A solution, or points of an irreducible conflict."""
    none, flat = np.zeros(0, np.int64), np.zeros((asked.m + 1, 0), object)
    if support is None or weights is None:
        return Face(QUASI, y, 0, none, none.astype(object), 0, flat, 1)
    return Face(QUASI, y, 0, support, weights, len(support) - 1, flat, 1)


def _fits(asked: Inequalities, dataset: Dataset, resources: Resources) -> bool:
    """Whether all points may be held, and by HiGHS, too."""
    count, dense = asked.given * dataset.dimension + asked.behind, 8 * dataset.n * dataset.dimension
    if dataset.entries is not None:
        count, dense = dataset.entries.count, 0
    # bytes of an entry and of a point, in several orders and in integers
    return dense + 200 * count + 400 * dataset.n <= resources.memory_bytes


def _guess(asked: Inequalities, session: Session, until: Callable[[], bool]) -> tuple[Any, tuple[Floats, Floats] | None]:
    """All points, CSR, and what a linear programme says of them. Raises Abandoned where it is time to stop."""
    if until():
        raise Abandoned
    points = scipy.sparse.csr_array(rows(session.checking.dataset, np.arange(session.dataset.n)))
    points.eliminate_zeros()
    return points, run_solver(partial(ask, points, *asked.equalities), until)


def _is_solution(session: Session, y: Integers, until: Callable[[], bool]) -> bool:
    """Whether the checker has no point on the negative side of y (m + 1,), whose last entry is above 0."""
    data = session.checking.dataset
    with end_long_reads(until):
        return not look(session.checking.engine, data, data.fingerprint, Wanted(y)).wrong


def _search(
    asked: Inequalities, problem: Problem, result: Result, limits: Limits, resources: Resources, until: Callable[[], bool]
) -> Face | str:
    """What integers say of points that conflict without t: a vertex that solves all, or what a search finds."""
    with open_session(problem, resources) as session:
        session.checking.dataset.fingerprint = result.fingerprint
        if resources.client is None and not asked.equal and _fits(asked, session.dataset, resources):
            points, guess = _guess(asked, session, until)
            if guess is not None and not guess[1].any():
                y, found = _settle(points, asked, guess[0], until)
                if found is not None or (y is not None and _is_solution(session, y, until)):
                    return _of_guess(asked, y, *(found or ()))
    return search_integers(problem, result, until, limits, resources)[0]


def _find_multipliers(
    asked: Inequalities,
    problem: Problem,
    support: NDArray[np.int64],
    resources: Resources,
    until: Callable[[], bool],
    known: Integers | None = None,
) -> Conflict | None:
    """Of some points an irreducible conflict with t, which is left out, by weights that are known or found; None without."""
    support = np.union1d(support, [asked.n - 1])
    with open_session(problem, resources) as session:
        some = rows(session.checking.dataset, support)
    found = _find_conflict(some, np.arange(len(support)), until) if known is None else (np.arange(len(support)), known)
    if found is None:
        return None
    held = found[0][:-1]
    dense: Floats = some[held] if isinstance(some, np.ndarray) else some[held].toarray()
    return support[held], found[1][:-1], dense


def _find_conflict(
    points: Matrix, support: NDArray[np.int64], until: Callable[[], bool]
) -> tuple[NDArray[np.int64], Integers] | None:
    """Of some points an irreducible conflict with t, the last of all: which they are, and their weights; None without one."""
    support = np.union1d(support, [points.shape[0] - 1])
    some = points[support]
    digits = common(some if isinstance(some, np.ndarray) else some.toarray())[0]
    weights = run_solver(partial(_find_irreducible, digits), until)
    if weights is None:
        return None
    held = np.flatnonzero(weights)
    if not _is_conflict(digits[held], weights[held]):
        raise DfeasError("the multipliers that were found are none: please report this")
    return support[held], weights[held]


def _is_conflict(points: Integers, weights: Integers) -> bool:
    """Whether points, of which t is the last, cancel by positive weights, and do not without any one of them."""
    return bool((weights > 0).all()) and not combine(weights, points).any() and is_irreducible(points[:-1])


def _find_irreducible(points: Integers) -> Integers | None:
    """Weights (s,) >= 0 of points (s, d) with a zero sum, above zero of the last one and of others that are independent; None
    where there are none. A point that depends on these gives up its weight to them, or takes the place of the one whose weight
    is zero first (Carathéodory).
    """
    weights = _cancel_last(points)
    if weights is None:
        return None
    held = np.flatnonzero(weights[:-1])
    basis = held[independent(points[held])]
    for j in np.setdiff1d(held, basis).tolist():
        beat()
        features = independent(points[basis].T)
        follows, denominator = solve(points[np.ix_(basis, features)].T, points[j][features][:, None])
        along, most = follows[:, 0], Fraction(int(weights[j]), denominator)  # denominator * point = along of the basis
        short = [
            (Fraction(int(weights[i]), -int(step)), k) for k, (i, step) in enumerate(zip(basis, along, strict=True)) if step < 0
        ]
        times, out = min([*short, (most, len(basis))])
        weights = weights * times.denominator
        weights[basis] += times.numerator * along
        weights[j] -= times.numerator * denominator
        weights = np.array(primitive(weights.tolist()), object)
        if out < len(basis):
            basis[out] = j
    return weights


def _cancel_last(points: Integers) -> Integers | None:
    """Weights (s,) >= 0 of points (s, d) with a zero sum, above zero of the last one; None where there are none."""
    weights = _guess_multipliers(points)
    if weights is not None:
        return weights
    split = partition(points)
    if split.beyond[-1] or split.weights[-1]:
        return None if split.beyond[-1] else split.weights
    held = np.flatnonzero(split.weights)
    last = np.append(np.zeros(len(points) - 1, object), 1)
    return extend_weights(points, split.weights, last, held[independent(points[held])])


def _guess_multipliers(points: Integers) -> Integers | None:
    """The same of independent points and the last one: which they are is a guess by least squares, solved in whole numbers."""
    even = EvenPoints.of(points).points
    try:
        chosen = np.flatnonzero(nnls(even[:-1].T, -even[-1]))
    except RuntimeError:
        return None
    if not len(chosen):
        return None
    # an irreducible conflict: the left sides of all but any one are independent, and least follows where that has many terms
    left, sizes = points[chosen, :-1], np.count_nonzero(points[chosen], axis=1)
    first, others = int(sizes.argmax()), np.delete(np.arange(len(chosen)), sizes.argmax())
    features = independent(left[others].T) if len(others) else others
    if len(features) < len(others):
        return None
    weights = np.zeros(len(points), object)
    weights[chosen[first]] = 1
    if len(others):
        follows, denominator = solve(left[np.ix_(others, features)].T, -left[first][features][:, None])
        weights[chosen[first]], weights[chosen[others]] = denominator, follows[:, 0]
    last, short = combine(weights, points), int(points[-1, -1])
    weights = weights * short
    weights[-1] = -last[-1]
    if last[:-1].any() or not (weights >= 0).all() or not weights[-1]:
        return None
    return np.array(primitive(weights.tolist()), object)


def _describe_conflict(
    unknown: Feasibility, asked: Inequalities, support: NDArray[np.int64], weights: Integers, points: Floats
) -> Feasibility:
    u, v, upper, lower = asked.divide(support, weights)
    counts = {
        "inequalities" if asked.kind else "rows of A": len(u),
        "equalities": np.count_nonzero(v),
        "bounds": np.count_nonzero([upper, lower]),
    }
    listed = " and ".join(f"{what} ({count})" for what, count in counts.items() if count)
    text = f"there is no solution: {listed} contradict each other, by Farkas's lemma with integer multipliers"
    text += "; without any one of them the others have a solution" if len(support) > 1 else ""
    digits = common(points[:, -1:])[0][:, 0]  # right sides
    if abs(weights @ digits) << ROUNDED <= weights @ abs(digits) and (points != np.trunc(points)).any():
        text += (
            "; the right sides contradict by so little that rounding to float64 may be the cause: decimals may have a solution"
        )
    found = replace(unknown, verdict=INFEASIBLE, proof=Proof.EXACT, message=text, rows=support[: len(u)])
    found = replace(found, conflict=asked.list_constraints(support, weights, points))
    return replace(found, u=u.tolist(), v=v.tolist(), upper=upper.tolist(), lower=lower.tolist())


def _describe_solution(
    unknown: Feasibility, problem: Problem, y: Integers, proof: Proof, resources: Resources, until: Callable[[], bool]
) -> Feasibility:
    """A solution y / t, of which its rounding is looked at, too."""
    exact = [Fraction(int(over), int(y[-1])) for over in y[:-1]]
    found = replace(unknown, verdict=FEASIBLE, proof=proof, exact=exact)
    rounded = nearest_floats(exact)
    if rounded is None:
        return replace(found, message="a solution is proved, in fractions that float64 does not hold")
    x = np.array(rounded)
    mark, vector = unknown.result.fingerprint, Dyadic.of(np.append(x, 1.0))
    with open_session(problem, resources) as session:
        session.checking.dataset.fingerprint = mark
        try:
            with end_long_reads(until):
                sides = look(session.checking.engine, session.checking.dataset, mark, Wanted(vector.digits), take=MOST)
        except Abandoned:
            text = "a solution is proved, in fractions; the limit came before its rounding was looked at"
            return replace(found, message=text)
        some = rows(session.checking.dataset, np.array(sorted(j for _, j in sides.missed), np.int64))
    if not sides.wrong:
        text = "x is a solution, exactly as it is in float64"
        return replace(found, x=x, exact=[Fraction(value) for value in x.tolist()], proof=Proof.EXACT, message=text)
    dense = some if isinstance(some, np.ndarray) else some.toarray()
    by = np.nextafter(-(Dyadic.of(dense) @ vector).floats().min(), np.inf)
    by = float(Context(3, ROUND_CEILING).create_decimal_from_float(float(by)))  # nothing that is said is below it
    most = f"by at most {by:g}" if sides.wrong <= MOST else f"{MOST} of them by at most {by:g}"
    text = f"a solution is proved, in fractions; its rounding x violates {sides.wrong} of the inequalities, {most}"
    return replace(found, x=x, violated=sides.wrong, message=text)
