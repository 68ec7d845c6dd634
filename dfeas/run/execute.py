"""Carry out a run: one task or several side by side, from the beginning or from a checkpoint. There is no other way."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from dfeas.engine.memory import require_addresses
from dfeas.errors import ClusterLostError, CorruptDataError
from dfeas.linalg.blas import one_thread
from dfeas.run.budget import PROCESS_BYTES, Projection
from dfeas.run.checkpoint.folder import Checkpoint, Checkpointer, open_checkpointer
from dfeas.run.driver import Course, run
from dfeas.run.progress import Scoreboard
from dfeas.run.results import Result
from dfeas.run.session import Session, Surveyed, survey
from dfeas.run.sinks import lane_sinks, report_cost, report_start, run_sinks, terminal
from dfeas.run.soft_margin.fit import SoftMarginTarget
from dfeas.run.soft_margin.result import SoftMarginClasses, SoftMarginResult
from dfeas.run.spec import RunSpec
from dfeas.run.task import Task
from dfeas.run.termination import RESUMABLE
from dfeas.run.trace import RunOptions, Sink, circumstances
from dfeas.run.verdict import OneVsRest, Race, VerdictTarget, folder_of

Answer: TypeAlias = Result | Race | OneVsRest | SoftMarginResult | SoftMarginClasses


class Target(Protocol):
    """What the tasks of a run look for."""

    @property
    def abreast(self) -> int:
        """How many tasks share the memory side by side; others wait."""

    def project_cost(self) -> Projection:
        """What the run will take."""

    def settle(self, surveyed: Surveyed) -> dict[str, Any] | None:
        """Outcomes by name that follow from the survey alone, if they do."""

    def tasks(self, surveyed: Surveyed, sinks: dict[str, list[Sink]]) -> Sequence[Task[Any]]:
        """The tasks as they are before the first read, one for each name of the job."""

    def result(self, name: str, outcome: Any, surveyed: Surveyed, how: RunOptions) -> Any:
        """What is returned of the outcome of a task, not written yet."""


def execute(
    session: Session, job: RunSpec, how: RunOptions, folder: Path | None = None, earlier: Checkpoint | None = None
) -> Any:
    """An ``Answer``: the tasks of a job are run until the first has what it looks for, or each has ended, and it is written.

    Raises CorruptDataError when the data is not what it was at the earlier moment.
    """
    return _Execution(session, job, how, folder, earlier).answer()


@dataclass(frozen=True)
class _Execution:
    session: Session
    job: RunSpec
    how: RunOptions
    folder: Path | None
    earlier: Checkpoint | None

    def answer(self) -> Answer:
        """All of it; files and sinks are closed."""
        job, target = self.job, self.target
        with one_thread(), ExitStack() as stack:  # the sums of methods, too, depend on how many there are
            board = Scoreboard(sys.stderr, "class" if job.classes else "method") if self._shows_table else None
            sinks = self._sinks(stack, board)
            saving = open_checkpointer(self.session, job, sinks, self.folder, self.how.checkpoint_every, self.earlier)
            checkpointer = stack.enter_context(saving)
            self._report_start(sinks, board)
            surveyed = self._survey(checkpointer)
            outcomes = target.settle(surveyed)
            if outcomes is not None:
                reads = max(outcome.reads for outcome in outcomes.values())
            else:
                outcomes, reads = self._run(target.tasks(surveyed, sinks), checkpointer)
            results = {}
            for name, outcome in outcomes.items():
                result, place = target.result(name, outcome, surveyed, self.how), self.folders[name]
                results[name] = result if place is None else result.save(place)
            checkpointer.finished = not ({result.stopped for result in results.values()} & set(RESUMABLE) or job.then)
            answer = self._together(results, surveyed.reads + reads)
        self._raise_interruption()
        return answer

    def _raise_interruption(self) -> None:
        """Raise what ended the run from outside, now that it is saved: a loop over datasets, or a notebook, would go on. Not
        for a caller who gave ``stop``, and so expects a result.
        """
        if self.how.returns or not self.how.interruptions:
            return
        more = "" if self.folder is None else f"; dfeas.resume({str(self.folder)!r}) goes on"
        error = self.how.interruptions[0]
        kind = ClusterLostError if isinstance(error, ClusterLostError) else KeyboardInterrupt
        raise kind(f"{str(error) or 'interrupted'}{more}") from None

    @cached_property
    def target(self) -> Target:
        return VerdictTarget(self.session, self.job) if self.job.soft is None else SoftMarginTarget(self.session, self.job)

    @property
    def several(self) -> bool:
        """Whether each task has a name, and a folder, of its own."""
        return self.job.race or bool(self.job.classes)

    @cached_property
    def folders(self) -> dict[str, Path | None]:
        """Of each task: that of the run where it is one, or one below it."""
        job, folder = self.job, self.folder
        if folder is None or not self.several:
            return dict.fromkeys(job.names, folder)
        return {name: folder / (folder_of(name, place) if job.classes else name) for place, name in enumerate(job.names)}

    @property
    def _shows_table(self) -> bool:
        """Whether progress is a table: of several tasks with margins."""
        return self.how.progress and sys.stderr is not None and self.several and self.job.soft is None

    def _sinks(self, stack: ExitStack, board: Scoreboard | None) -> dict[str, list[Sink]]:
        how, job = self.how, self.job
        if not self.several:
            (name,) = job.names
            return {name: run_sinks(stack, self.session, job, self.folders[name], how, self.earlier)}
        line = terminal(how.progress, job) if board is None else None
        if line is not None:
            stack.callback(line.close)
        shared = (*([line] if line is not None else []), *how.more)
        return lane_sinks(stack, self.session, self.folders, board, self.earlier, shared)

    def _report_start(self, sinks: dict[str, list[Sink]], board: Scoreboard | None) -> None:
        job, dataset, whys = self.job, self.session.dataset, dict(zip(self.job.methods, self.job.whys, strict=True))
        for name, own in sinks.items():
            if job.classes:
                ((method, why),) = whys.items()
                report_start(own, dataset, method, f"{name} against the rest: {why}", self.earlier, name)
            else:
                report_start(own, dataset, name, whys[name], self.earlier)
        expected = self.target.project_cost()
        require_addresses(expected.memory_bytes - PROCESS_BYTES)
        if board is not None:
            classes = f"{dataset.where}: {len(job.classes)} classes, {job.methods[0]}\n" if job.classes else ""
            board.say(f"{classes}{expected}")
        for own in sinks.values():
            report_cost(own, expected, **circumstances(self.session.workers))

    def _survey(self, checkpointer: Checkpointer) -> Surveyed:
        dataset, earlier = self.session.dataset, self.earlier
        surveyed = survey(self.session)
        if earlier is not None and earlier.fingerprint not in ("", dataset.fingerprint):
            raise CorruptDataError(
                f"{dataset.where}: not the data that this run began with (fingerprint {dataset.fingerprint[:12]}, "
                f"expected {earlier.fingerprint[:12]}); restore it, or begin another run"
            )
        if earlier is not None and earlier.survey is not None:
            surveyed = replace(surveyed, reads=surveyed.reads + earlier.survey.reads)
        checkpointer.fingerprint, checkpointer.survey = dataset.fingerprint, surveyed
        return surveyed

    def _run(self, tasks: Sequence[Task[Any]], checkpointer: Checkpointer) -> tuple[dict[str, Any], float]:
        """How the tasks ended, from an earlier moment if there is one, and all reads."""
        request, moment = self.job.asked, None if self.earlier is None else self.earlier.moment
        if moment is not None:
            for task, kept in zip(tasks, moment.lanes, strict=True):
                task.restore(kept)
        course = Course(
            request.limits,
            to_the_end=self.job.to_the_end,
            abreast=self.target.abreast,
            shared=0 if moment is None else moment.shared,
            keep=checkpointer,
            stop=self.how.stop,
            began=request.began,
            interruptions=self.how.interruptions,
        )
        outcomes, reads = run(self.session.engine, tasks, self.session.checking, course)
        return dict(zip(self.job.names, outcomes, strict=True)), reads

    def _together(self, results: dict[str, Any], reads: float) -> Answer:
        if not self.several:
            (result,) = results.values()
            answer: Answer = result
            return answer
        if self.job.soft is not None:
            return SoftMarginClasses(results, reads)
        if self.job.race:
            several: Race | OneVsRest = Race(results, reads)
        else:
            seconds = max(result.seconds for result in results.values())
            several = OneVsRest(results, reads, seconds, self.session.dataset.fingerprint)
        if self.folder is not None:
            several.save(self.folder)
        return several
