"""Separation decided before anything is solved: small tables, and sparse points whose features are levels of one effect.

A solve takes features as they come; with levels by the ten thousand it takes long, or ends undecided. Where they can be
eliminated (``dfeas.run.exact``) the kind comes from one read into memory, and is proved from the data as the checker does.
Of a small table, all of which the exact search takes at once, a solve is most of the time, and says nothing that it needs.
"""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from dfeas.data.dataset import Dataset
from dfeas.data.open import open_data
from dfeas.data.storage.places import local
from dfeas.methods.protocol import Bracket, Evidence
from dfeas.problem import Goal, Problem
from dfeas.run.checkpoint.folder import require_free, run_folder
from dfeas.run.exact.effects import decide_effects
from dfeas.run.exact.search import Face, certificate_of, decide_table, require_proved
from dfeas.run.execute import open_sinks, report_start
from dfeas.run.resources import Limits, Output, Resources
from dfeas.run.results import Result
from dfeas.run.session import Session, Surveyed, open_session, source_for, survey
from dfeas.run.spec import Request, RunSpec, require_labels
from dfeas.run.task import Outcome, blank
from dfeas.run.termination import EPS_INFEASIBLE, Decision
from dfeas.run.trace import RunOptions
from dfeas.run.verdict import result_of
from dfeas.verify.certificate import Certificate, Check
from dfeas.verify.separation import OVERLAP, rows

NAME, TABLE = "fixed-effects", "exact"
SMALL, NARROW = 1 << 16, 128
"""Entries and features of a small table, at most."""
WIDE = 256
"""Features below which a solve is as fast."""
ENTRY_BYTES, POINT_BYTES = 160, 100
"""Of memory for each entry and each point: they are held in several orders, beside bounds."""


def decide_early(
    problem: Problem, goal: Goal, limits: Limits, resources: Resources, output: Output, *, small: bool = False
) -> tuple[Face, Result] | None:
    """The kind with its evidence, of a ``small`` table or of one with levels, and a result that says no more than the checker
    proves; None where this is not for the data, or a limit was reached. With ``out`` its folder is written.
    """
    asked = Request.begun(goal, limits, resources)
    if resources.client is not None or not (small or _fits(open_data(source_for(problem.spec, resources))[1], asked.memory)):
        return None
    if output.out is not None:
        require_free(local(output.out, "out"))
    until = limits.until(output.stop, asked.began)
    with ExitStack() as stack:
        session = stack.enter_context(open_session(problem, resources))
        n, d, checked = session.dataset.n, session.dataset.dimension, session.checking.dataset
        if small and (n * d > SMALL or d > NARROW):
            return None
        require_labels(problem.spec, session.dataset)
        surveyed = survey(session)
        if small:
            left = math.inf if limits.max_passes is None else limits.max_passes - surveyed.reads
            face = decide_table(session.checking, until, left)
            if isinstance(face, str):
                return None
            near, how = face, (TABLE, "a table that is small enough to be decided at once")
        else:
            decided = decide_effects(rows(checked, np.arange(checked.n)), until)
            if decided is None:
                return None
            face, (support, weights) = decided
            require_proved(session.checking, face)
            near = replace(face, support=support, weights=weights)
            how = NAME, f"{d} features, most of them levels of effects, which are eliminated"
        return face, _write_result(stack, session, asked, near, surveyed, output, how)


def _fits(dataset: Dataset, memory: int) -> bool:
    if dataset.entries is None or dataset.dimension < WIDE:
        return False
    return ENTRY_BYTES * dataset.entries.count + POINT_BYTES * dataset.n <= memory


def _write_result(
    stack: ExitStack, session: Session, asked: Request, face: Face, surveyed: Surveyed, output: Output, method: tuple[str, str]
) -> Result:
    folder = None if output.out is None else stack.enter_context(run_folder(local(output.out, "out")))
    dataset, (name, why) = session.dataset, method
    job = RunSpec(asked, (name,), (why,), race=False, to_the_end=False, data=session.source.spec.without_memory())
    how = RunOptions.of(0.0, Output(progress=output.progress))
    report_start(open_sinks(stack, session, job, {name: folder}, how, None)[0], dataset, job, None)
    empty = Certificate("gordan", dataset.fingerprint, view=dataset.view)
    certificate = certificate_of(session.checking.dataset, face, empty)
    checked = session.checking([certificate])
    (proved,) = checked.answers
    check = proved if isinstance(proved, Check) else None
    if check is not None and check.verdict == EPS_INFEASIBLE and check.margin_upper > asked.eps:
        check = None
    decision = Decision("stalled") if check is None else Decision("verdict", check.verdict)
    record = replace(blank(name, 1.0), passes=1.0, iterations=face.reads)
    looks = int(face.kind != OVERLAP or bool(face.flat.shape[1])) + checked.reads
    outcome = Outcome(decision, record, Evidence(Bracket(), None, face.reads), certificate, check, 1.0 + looks)
    result = result_of(session, job, outcome, why, surveyed.reads + outcome.reads, surveyed.positive)
    return result if folder is None else result.save(folder)
