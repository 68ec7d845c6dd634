"""Carry out a run: one task or several side by side, from the beginning or from a checkpoint. There is no other way."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from dfeas.errors import CorruptDataError
from dfeas.run.checkpoint.job import Checkpoint, Checkpointer, RunSpec, checkpointing
from dfeas.run.cost.projection import Projection
from dfeas.run.driver import run
from dfeas.run.progress import RunOptions, Scoreboard, lane_sinks, report_cost, report_start, run_sinks, terminal
from dfeas.run.result_sets import OneVsRest, Race, SoftMarginClasses, folder_of
from dfeas.run.results import Result
from dfeas.run.session import Session, Surveyed, survey
from dfeas.run.soft_margin.fit import SoftMarginTarget
from dfeas.run.soft_margin.result import SoftMarginResult
from dfeas.run.task import Task
from dfeas.run.termination import RESUMABLE, Limits
from dfeas.run.trace import Sink
from dfeas.run.verdict import VerdictTarget

Answer = Result | Race | OneVsRest | SoftMarginResult | SoftMarginClasses


class Target(Protocol):
    """What the tasks of a run look for."""

    @property
    def abreast(self) -> int:
        """RunOptions many tasks share the memory side by side; others wait."""

    def projected(self) -> Projection:
        """What the run will take."""

    def settled(self, surveyed: Surveyed) -> dict[str, Any] | None:
        """Outcomes by name that follow from the survey alone, if they do."""

    def tasks(self, surveyed: Surveyed, sinks: dict[str, list[Sink]]) -> Sequence[Task[Any]]:
        """Before the first read."""

    def result(self, name: str, outcome: Any, surveyed: Surveyed, how: RunOptions) -> Any:
        """What is returned of the outcome of a task, not written yet."""


def execute(
    session: Session, job: RunSpec, how: RunOptions, folder: Path | None = None, earlier: Checkpoint | None = None
) -> Any:
    """An ``Answer``: the tasks of a job are run until the first has what it looks for, or each has ended, and it is written.

    Raises CorruptDataError when the data is not what it was at the earlier moment.
    """
    target: Target = VerdictTarget(session, job) if job.soft is None else SoftMarginTarget(session, job)
    folders = _folders(job, folder)
    with ExitStack() as stack:
        board = Scoreboard(sys.stderr, "class" if job.classes else "method") if _tabled(job, how) else None
        sinks = _sinks(stack, session, job, folders, how, earlier, board)
        keeper = stack.enter_context(checkpointing(session, job, sinks, folder, how.checkpoint_every, earlier))
        _start(session, job, sinks, earlier, target, board)
        surveyed = _surveyed(session, keeper, earlier)
        outcomes, reads = target.settled(surveyed), 1.0
        if outcomes is None:
            outcomes, reads = _run(session, job, target.tasks(surveyed, sinks), target.abreast, keeper, earlier, how)
        results = {}
        for name, outcome in outcomes.items():
            result, place = target.result(name, outcome, surveyed, how), folders[name]
            results[name] = result if place is None else result.save(place)
        keeper.finished = not ({result.stopped for result in results.values()} & set(RESUMABLE) or job.then)
        return _answer(session, job, results, surveyed.reads + reads, folder)


def _folders(job: RunSpec, folder: Path | None) -> dict[str, Path | None]:
    """Of each task: that of the run where it is one, or one below it."""
    if folder is None or not (job.race or job.classes):
        return dict.fromkeys(job.lanes, folder)
    return {name: folder / (folder_of(name, place) if job.classes else name) for place, name in enumerate(job.lanes)}


def _tabled(job: RunSpec, how: RunOptions) -> bool:
    """Whether progress is a table: of several tasks with margins."""
    return how.progress and sys.stderr is not None and (job.race or bool(job.classes)) and job.soft is None


def _sinks(
    stack: ExitStack,
    session: Session,
    job: RunSpec,
    folders: dict[str, Path | None],
    how: RunOptions,
    earlier: Checkpoint | None,
    board: Scoreboard | None,
) -> dict[str, list[Sink]]:
    """Of each task; the stack closes them."""
    if not (job.race or job.classes):
        (name,) = job.lanes
        return {name: run_sinks(stack, session, job, folders[name], how, earlier)}
    shown = terminal(how.progress, job) if board is None else None
    if shown is not None:
        stack.callback(shown.close)
    return lane_sinks(stack, session, folders, board, earlier, (*([shown] if shown is not None else []), *how.more))


def _start(
    session: Session,
    job: RunSpec,
    sinks: dict[str, list[Sink]],
    earlier: Checkpoint | None,
    target: Target,
    board: Scoreboard | None,
) -> None:
    """Say what begins, or goes on, and what it will take."""
    dataset, whys = session.dataset, dict(zip(job.methods, job.whys, strict=True))
    for name, own in sinks.items():
        if job.classes:
            ((method, why),) = whys.items()
            report_start(own, dataset, method, f"{name} against the rest: {why}", earlier, name)
        else:
            report_start(own, dataset, name, whys[name], earlier)
    expected = target.projected()
    if board is not None:
        board.say(
            f"{dataset.where}: {len(job.classes)} classes, {job.methods[0]}\n{expected}" if job.classes else str(expected)
        )
    for own in sinks.values():
        report_cost(own, expected)


def _surveyed(session: Session, keeper: Checkpointer, earlier: Checkpoint | None) -> Surveyed:
    """One look at the data. Raises CorruptDataError when it is not what it was at an earlier moment."""
    dataset = session.dataset
    seen = survey(session)
    if earlier is not None and earlier.fingerprint not in ("", dataset.fingerprint):
        raise CorruptDataError(
            f"{dataset.where}: not the data that this run began with (fingerprint {dataset.fingerprint[:12]}, "
            f"expected {earlier.fingerprint[:12]}); restore it, or begin another run"
        )
    if earlier is not None and earlier.survey is not None:
        seen = replace(seen, reads=seen.reads + earlier.survey.reads)
    keeper.fingerprint, keeper.survey = dataset.fingerprint, seen
    return seen


def _run(
    session: Session,
    job: RunSpec,
    tasks: Sequence[Task[Any]],
    abreast: int,
    keeper: Checkpointer,
    earlier: Checkpoint | None,
    how: RunOptions,
) -> tuple[dict[str, Any], float]:
    """RunOptions the tasks of a job ended, from an earlier moment if there is one, and all reads."""
    asked, moment = job.asked, None if earlier is None else earlier.moment
    if moment is not None:
        for task, kept in zip(tasks, moment.lanes, strict=True):
            task.restore(kept)
    ended, reads = run(
        session.engine,
        tasks,
        Limits(asked.max_passes, asked.time_limit),
        fingerprint=session.dataset.fingerprint,
        verify=session.checking,
        to_the_end=job.to_the_end,
        abreast=abreast,
        shared=0 if moment is None else moment.shared,
        keep=keeper,
        stop=how.stop,
        began=asked.began,
    )
    return dict(zip(job.lanes, ended, strict=True)), reads


def _answer(session: Session, job: RunSpec, results: dict[str, Any], reads: float, folder: Path | None) -> Answer:
    """The result of a single task, or those of several, which are written."""
    if not (job.race or job.classes):
        (result,) = results.values()
        answer: Answer = result
        return answer
    if job.soft is not None:
        return SoftMarginClasses(results, reads)
    if job.race:
        several: Race | OneVsRest = Race(results, reads)
    else:
        seconds = max(result.seconds for result in results.values())
        several = OneVsRest(results, reads, seconds, session.dataset.fingerprint)
    if folder is not None:
        several.save(folder)
    return several
