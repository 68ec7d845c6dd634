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

Two kinds of data are decided before anything is solved, from one read into memory, and proved as the checker does it.
Of sparse points many of whose features are levels of effects, by the ten thousand, a solve takes long, or ends undecided: the
levels are eliminated (``dfeas.run.exact``). Of a small table, all of which the exact search takes at once, a solve is most of
the time, and says nothing that it needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dfeas.answers.result import Result
from dfeas.answers.separation import Separation
from dfeas.answers.words import EPS_INFEASIBLE, FEASIBLE, RESUMABLE, Proof, Stop
from dfeas.data.dataset import Dataset
from dfeas.data.open import open_data
from dfeas.data.storage.places import place
from dfeas.exact.dyadic import Integers
from dfeas.geometry.registry import require_points
from dfeas.methods.protocol import Bracket, Evidence
from dfeas.problem import Goal, Problem
from dfeas.records import replace
from dfeas.run.checkpoint.folder import discard_checkpoints, require_free, run_folder
from dfeas.run.exact.effects import decide_effects
from dfeas.run.exact.search import Face, certificate_of, decide_table, find_ending, is_proved, search
from dfeas.run.execute import Log, open_sinks, report_start
from dfeas.run.resources import Limits, Output, Resources, RunOptions, choose_client
from dfeas.run.session import Session, Surveyed, open_session, source_for, survey
from dfeas.run.solve import decide, run_terms
from dfeas.run.solver_thread import Abandoned, run_solver
from dfeas.run.spec import SEPARATED, Request, RunSpec, require_labels
from dfeas.run.task import Outcome, blank
from dfeas.run.termination import Decision, describe_ending
from dfeas.run.verdict import result_of
from dfeas.verify.certificate import Certificate, Check
from dfeas.verify.separation import COMPLETE, OVERLAP, QUASI, rows

if TYPE_CHECKING:
    from dfeas.engine.protocol import Workers

NAME = "fixed-effects"
AT_ONCE = "exact", "a table that is small enough to be decided at once"
"""The method of a small table, and why."""
SMALL, NARROW = 1 << 16, 128
"""Entries and features of a small table, at most."""


def separation(
    X: Any,
    y: Any = None,
    *,
    method: str = "auto",
    positive: str | None = None,
    intercept: bool | None = None,
    max_passes: int | None = None,
    time_limit: float | None = None,
    memory: str | int | None = None,
    client: Workers | None = None,
    out: str | Path | None = None,
    force: bool = False,
    callback: Callable[[Any], object] | None = None,
) -> Separation:
    """Decide whether labelled points are completely separated, quasi-completely separated, or overlap.

    With ``out`` the folder also gets ``separation.json``. Limits of time and passes
    hold for everything together.

    Parameters
    ----------
    X, y : array (n, m), data frame, or path
        As in ``dfeas.solve``.
    method, positive, intercept, max_passes, time_limit, memory, client, out, force, callback : optional
        As in ``dfeas.solve``.

    Returns
    -------
    Separation
        Which of the three, with evidence in integers if float64 could not decide.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError
        As in ``dfeas.solve``.

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
    problem = Problem.of(X, y, positive=positive, intercept=intercept)
    with run_terms(max_passes, time_limit, memory, choose_client(client, X), out, callback, force) as terms:
        return separate(problem, method, *terms)


def separate(problem: Problem, method: str, limits: Limits, resources: Resources, output: Output) -> Separation:
    """The answer to ``dfeas.separation``."""
    require_points(problem.spec.where, "separation")
    goal = Goal()
    early = decide_early(problem, goal, limits, resources, output, False)
    if early is not None:
        kind = describe_face(*early)
        if output.out is not None:
            kind.save(place(output.out))
        return kind
    result = decide(problem, method, goal, limits, resources, output, then=SEPARATED)
    return conclude_separation(result, problem, limits, resources, output)


Found: TypeAlias = tuple[Face, Face, Surveyed, tuple[str, str]]
"""What is proved; the same with the points and weights that its result has; of what data; by which method, and why by that."""


def decide_early(
    problem: Problem, goal: Goal, limits: Limits, resources: Resources, output: Output, small: bool
) -> tuple[Face, Result] | None:
    """The kind with its evidence, of a ``small`` table or of one with levels, and a result that says no more than the checker
    proves; None where this is not for the data, or a limit was reached. With ``out`` its folder is written.
    """
    if small:
        return decide_by(partial(_decide_small, problem, limits), problem, goal, limits, resources, output)
    if resources.client is not None:
        return None
    asked = Request.begun(goal, limits, resources)
    if not _fits(open_data(source_for(problem.spec, resources))[1], asked.memory):
        return None
    return decide_by(partial(_decide_levels, problem), problem, goal, limits, resources, output)


def decide_by(
    find: Callable[[Session, Callable[[], bool]], Found | None],
    problem: Problem,
    goal: Goal,
    limits: Limits,
    resources: Resources,
    output: Output,
) -> tuple[Face, Result] | None:
    """What is found in memory until it is to stop, and a result; None where nothing is, and where others hold the data."""
    if resources.client is not None:
        return None
    asked = Request.begun(goal, limits, resources)
    if output.out is not None:
        require_free(place(output.out))
    with ExitStack() as stack:
        session = stack.enter_context(open_session(problem, resources))
        found = find(session, limits.until(output.stop))
        if found is None:
            return None
        face, near, surveyed, how = found
        return face, _write_result(stack, session, asked, near, surveyed, output, how)


def _decide_small(problem: Problem, limits: Limits, session: Session, until: Callable[[], bool]) -> Found | None:
    found = _find_face(session, problem, limits, until)
    if found is None:
        return None
    face, surveyed = found
    return face, face, surveyed, AT_ONCE


def _decide_levels(problem: Problem, session: Session, until: Callable[[], bool]) -> Found | None:
    checked = session.checking.dataset
    require_labels(problem.spec, session.dataset)
    surveyed = survey(session)
    try:
        decided = run_solver(partial(decide_effects, rows(checked, np.arange(checked.n))), until)
    except Abandoned:
        return None
    if decided is None:
        return None
    face, (support, weights) = decided
    if not is_proved(session.checking, face):
        return None
    why = f"{session.dataset.dimension} features, most of them levels of effects, which are eliminated"
    return face, replace(face, support=support, weights=weights), surveyed, (NAME, why)


def find_face(problem: Problem, limits: Limits, resources: Resources) -> Face | None:
    """What is proved of a small table, without a result beside it; None where it is none, or a limit was reached."""
    with open_session(problem, resources) as session:
        found = _find_face(session, problem, limits, limits.until(Output().stop))
    return None if found is None else found[0]


def separate_table(problem: Problem, limits: Limits, resources: Resources) -> Separation | None:
    """What is proved of a small table, with a result that is made when it is asked for, of a copy, unless somebody follows the
    run; None where it is none, or a limit was reached.
    """
    output, asked = Output(), Request.begun(Goal(), limits, resources)
    followed = output.shows_progress or Log.is_heard()
    face = None if followed else find_face(problem, limits, resources)
    if face is None:
        early = decide_early(problem, Goal(), limits, resources, output, True) if followed else None
        return None if early is None else describe_face(*early)
    spec, ended = problem.spec, limits.seconds
    copied = replace(problem, spec=replace(spec, where=_copy(spec.where), labels=_copy(spec.labels)))

    def make() -> Result:
        with ExitStack() as stack:
            session = stack.enter_context(open_session(copied, resources))
            return _write_result(stack, session, asked, face, survey(session), output, AT_ONCE, ended)

    return describe_face(face, None)._put_off(make)


def _copy(values: Any) -> Any:
    return values.copy() if hasattr(values, "copy") else values


def _find_face(session: Session, problem: Problem, limits: Limits, until: Callable[[], bool]) -> tuple[Face, Surveyed] | None:
    n, d = session.dataset.n, session.dataset.dimension
    if n * d > SMALL or d > NARROW:
        return None
    require_labels(problem.spec, session.dataset)
    surveyed = survey(session)
    face = decide_table(session.checking, until, math.inf if limits.max_passes is None else limits.max_passes - surveyed.reads)
    return None if isinstance(face, str) else (face, surveyed)


def _fits(dataset: Dataset, memory: int) -> bool:
    # of fewer features a solve is as fast
    if dataset.entries is None or dataset.dimension < 256:
        return False
    # bytes of each entry and each point, which are held in several orders, beside bounds
    return 160 * dataset.entries.count + 100 * dataset.n <= memory


def _write_result(
    stack: ExitStack,
    session: Session,
    asked: Request,
    face: Face,
    surveyed: Surveyed,
    output: Output,
    method: tuple[str, str],
    ended: float | None = None,
) -> Result:
    """The result of what is proved, so many seconds after the start; None: now."""
    folder = None if output.out is None else stack.enter_context(run_folder(place(output.out)))
    dataset, (name, why) = session.dataset, method
    job = RunSpec(asked, (name,), (why,), race=False, to_the_end=False, data=session.source.spec.without_memory())
    how = RunOptions.of(0.0, Output(progress=output.progress))
    sinks, _ = open_sinks(stack, session, job, {name: folder}, how, None)
    report_start(sinks, dataset, job, None)
    empty = Certificate("gordan", dataset.fingerprint, view=dataset.view)
    certificate = certificate_of(session.checking.dataset, face, empty)
    checked = session.checking([certificate])
    (proved,) = checked.answers
    check = proved if isinstance(proved, Check) else None
    if check is not None and check.verdict == EPS_INFEASIBLE:
        check = None
    decision = Decision("stalled") if check is None else Decision("verdict", check.verdict)
    record = replace(blank(name, 1.0), passes=1.0, iterations=face.reads)
    for sink in sinks[name]:
        text = describe_ending(decision, record)
        sink.note("stopped", text, stopped=decision.stopped, verdict=decision.verdict)
    looks = int(face.kind != OVERLAP or bool(face.flat.shape[1])) + checked.reads
    outcome = Outcome(decision, record, Evidence(Bracket(), None, face.reads), certificate, check, 1.0 + looks, ended)
    result = result_of(session, job, outcome, why, surveyed.reads + outcome.reads, surveyed.positive)
    return result if folder is None else result.save(folder)


def conclude_separation(result: Result, problem: Problem, limits: Limits, resources: Resources, output: Output) -> Separation:
    """What follows from the solve, also from one that went on; written to its folder."""
    until = limits.until(output.stop)
    if result.verdict == FEASIBLE:
        text = "a hyperplane separates all points: the likelihood has no maximum"
        kind = Separation(kind=COMPLETE, proof=result.proof, message=text, result=result)
    elif result.stopped in RESUMABLE:
        kind = _leave_undecided(result.message, result, Stop(result.stopped))
    else:
        kind = describe_face(search_integers(problem, result, until, limits, resources)[0], result, output.stop())
    if output.out is not None and result.stopped not in RESUMABLE:
        kind.save(place(output.out))
    discard_checkpoints(output.out, kind.stopped)
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


def _leave_undecided(why: str, result: Result, stopped: Stop) -> Separation:
    return Separation(message=f"not decided: {why}", stopped=stopped, support=result.support, result=result)


def describe_face(face: Face | str, result: Any, stop: bool = False) -> Separation:
    """What is proved, in words, with a result, or None for one that follows; or why nothing is, where somebody asks to ``stop``
    or not.
    """
    if isinstance(face, str):
        return _leave_undecided(face, result, find_ending(face, stop))
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
