"""Carry out a run: one task or several side by side, from the beginning or from a checkpoint. There is no other way."""

from __future__ import annotations

import math
import platform
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from dfeas.answers.files import NEAREST, TRACE, folder_of
from dfeas.answers.trace import Sink, Trace, TraceFile, note_warnings
from dfeas.answers.words import RESUMABLE, Stop
from dfeas.data.dataset import Dataset
from dfeas.data.storage.files import atomic_write
from dfeas.data.storage.patience import ends_at
from dfeas.engine.memory import addresses_limited, require_addresses
from dfeas.errors import AwayError, CorruptDataError, visible
from dfeas.geometry.registry import geometry_of
from dfeas.linalg.blas import heard, one_thread
from dfeas.machine import memory_bytes, processors
from dfeas.records import replace
from dfeas.run.checkpoint.folder import Checkpoint, Checkpointer, open_checkpointer
from dfeas.run.cost import PROCESS_BYTES, Projection
from dfeas.run.driver import Course, run
from dfeas.run.resources import Limits, RunOptions, never
from dfeas.run.session import UNSEEN, Session, Surveyed, survey
from dfeas.run.solver_thread import Abandoned, end_long_reads
from dfeas.run.spec import HARD_MARGIN, SOLVABLE, WIDEST, RunSpec
from dfeas.run.task import Task
from dfeas.run.termination import Goal, before_limits, passes_to_gap, remaining_passes

if TYPE_CHECKING:
    from dfeas.answers.base import Answer
    from dfeas.data.storage.places import Place
    from dfeas.run.progress.terminal import Scoreboard, Watched


class Target(Protocol):
    """What the tasks of a run look for."""

    @property
    def abreast(self) -> int:
        """How many tasks share the memory side by side; others wait."""

    def project_cost(self) -> Projection:
        """What the run will take."""

    def ask_first(self) -> tuple[Surveyed | None, dict[str, Any] | None]:
        """What takes the place of a survey of data that needs no method, with its outcomes by name; of other data what goes
        beside one, if anything was asked.
        """

    def settle(self, surveyed: Surveyed) -> dict[str, Any] | None:
        """Outcomes by name that follow from the survey alone, if they do."""

    def tasks(self, surveyed: Surveyed, sinks: dict[str, list[Sink]]) -> Sequence[Task[Any]]:
        """The tasks as they are before the first read, one for each name of the job."""

    def result(self, name: str, outcome: Any, surveyed: Surveyed, how: RunOptions) -> Any:
        """What is returned of the outcome of a task, not written yet."""

    def together(self, results: dict[str, Any], reads: float) -> Answer:
        """What is returned of the results of several tasks, not written yet."""


def execute(
    session: Session, job: RunSpec, how: RunOptions, folder: Place | None = None, earlier: Checkpoint | None = None
) -> Any:
    """The result of a job, written: its tasks are run until the first has what it looks for, or each has ended. Raises
    CorruptDataError when the data is not what it was at the earlier moment.
    """
    return _Execution(session, job, how, folder, earlier).answer()


class _Execution(Struct, frozen=True, eq=False, dict=True):
    session: Session
    job: RunSpec
    how: RunOptions
    folder: Place | None
    earlier: Checkpoint | None

    def answer(self) -> Any:
        """All of it; files and sinks are closed."""
        job, target = self.job, self.target
        with ExitStack() as stack:
            stack.enter_context(ends_at(math.inf))  # a limit ends the run from here on, with a result
            stack.enter_context(heard(lambda text: None))
            stack.enter_context(one_thread())  # the sums of methods, too, depend on how many there are
            sinks, board = open_sinks(stack, self.session, job, self.folders, self.how, self.earlier)
            followed = any(sinks.values())
            traces = {name: Trace(sharers=len(self.folders)) for name, place in self.folders.items() if place is None}
            for name, trace in traces.items():
                sinks[name].append(trace)
            saving = open_checkpointer(self.session, job, sinks, self.folder, self.how.checkpoint_every, self.earlier)
            checkpointer = stack.enter_context(saving)
            surveyed = (self.earlier and self.earlier.survey) or UNSEEN
            try:
                with end_long_reads(self.limits.until(never)):
                    if followed or addresses_limited():
                        self._report_start(sinks, board)
                    surveyed, outcomes = self._survey(checkpointer)
            except Abandoned:
                outcomes = self._give_up(self._begin(surveyed, sinks))
            if outcomes is not None:
                reads = max(outcome.reads for outcome in outcomes.values())
            else:
                outcomes, reads = self._run(self._begin(surveyed, sinks), checkpointer)
            checkpointer.save_traces()
            results = {}
            for name, outcome in outcomes.items():
                result, place = target.result(name, outcome, surveyed, self.how), self.folders[name]
                result = replace(result, trace=traces[name] if place is None else Trace(place / TRACE))
                result = replace(result, sides=None) if surveyed is UNSEEN else result
                ended = result.stopped == Stop.INTERRUPTED or job.then not in (HARD_MARGIN, WIDEST)
                results[name] = _save(result, place) if place is not None and ended else result
                reads += max(0.0, result.reads - (surveyed.reads + outcome.reads))  # of an exact search
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
        more = "" if self.folder is None or not self.session.resumable else f"; dfeas.resume({str(self.folder)!r}) goes on"
        error = self.how.interruptions[0]
        kind = type(error) if isinstance(error, AwayError) else KeyboardInterrupt
        raise kind(f"{str(error) or 'interrupted'}{more}") from None

    @cached_property
    def limits(self) -> Limits:
        return self.job.asked.limits

    @cached_property
    def target(self) -> Target:
        if self.job.soft is None:
            from dfeas.run.verdict import VerdictTarget

            return VerdictTarget(self.session, self.job)
        from dfeas.run.soft_margin.fit import SoftMarginTarget

        return SoftMarginTarget(self.session, self.job)

    @cached_property
    def folders(self) -> dict[str, Place | None]:
        """Of each task: that of the run where it is one, or one below it."""
        job, folder = self.job, self.folder
        if folder is None or not job.several:
            return dict.fromkeys(job.names, folder)
        return {name: folder / (folder_of(name, place) if job.classes else name) for place, name in enumerate(job.names)}

    def _report_start(self, sinks: Mapping[str, Sequence[Sink]], board: Scoreboard | None) -> None:
        job, dataset = self.job, self.session.dataset
        report_start(sinks, dataset, job, self.earlier)
        expected = self.target.project_cost()
        require_addresses(expected.memory_bytes - PROCESS_BYTES)
        if board is not None:
            classes = f"{dataset.where}: {len(job.classes)} classes, {job.methods[0]}\n" if job.classes else ""
            board.say(f"{classes}{expected}")
        around = circumstances(self.session.workers)
        for sink in chain.from_iterable(sinks.values()):
            sink.note("projection", str(expected), **expected.to_json(), **around)

    def _survey(self, checkpointer: Checkpointer) -> tuple[Surveyed, dict[str, Any] | None]:
        """What the data is, and outcomes by name that follow from that alone, if they do."""
        dataset, earlier = self.session.dataset, self.earlier
        first, outcomes = (None, None) if earlier is not None else self.target.ask_first()
        if first is not None and outcomes is not None:
            return first, outcomes
        surveyed = survey(self.session)
        if earlier is not None and earlier.fingerprint not in ("", dataset.fingerprint):
            raise CorruptDataError(
                f"{dataset.where}: not the data that this run began with (fingerprint {dataset.fingerprint[:12]}, "
                f"expected {earlier.fingerprint[:12]}); restore it, or begin another run"
            )
        if earlier is not None and earlier.survey is not None:
            surveyed = replace(surveyed, reads=surveyed.reads + earlier.survey.reads)
        checkpointer.fingerprint, checkpointer.survey = dataset.fingerprint, surveyed
        if first is not None:
            surveyed = replace(surveyed, reads=surveyed.reads + first.reads)
        return surveyed, self.target.settle(surveyed)

    def _give_up(self, tasks: Sequence[Task[Any]]) -> dict[str, Any]:
        """How tasks end that can ask nothing before time is up: their run can go on from where it was."""
        for task in tasks:
            task.give_up(Stop.TIME_LIMIT)
        return {name: task.outcome() for name, task in zip(self.job.names, tasks, strict=True)}

    def _begin(self, surveyed: Surveyed, sinks: dict[str, list[Sink]]) -> Sequence[Task[Any]]:
        """The tasks, as they were at an earlier moment if there is one."""
        tasks = self.target.tasks(surveyed, sinks)
        if self.earlier is not None and self.earlier.moment is not None:
            for task, kept in zip(tasks, self.earlier.moment.lanes, strict=True):
                task.restore(kept)
        return tasks

    def _run(self, tasks: Sequence[Task[Any]], checkpointer: Checkpointer) -> tuple[dict[str, Any], float]:
        """How the tasks ended, and all reads."""
        request, moment = self.job.asked, None if self.earlier is None else self.earlier.moment
        course = Course(
            self.limits,
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

    def _together(self, results: dict[str, Any], reads: float) -> Any:
        if not self.job.several:
            (result,) = results.values()
            return result
        several = self.target.together(results, reads)
        if self.folder is not None:
            several.save(self.folder)
        return several


def _save(result: Any, folder: Place) -> Any:
    """Write a result, with the points that a run may begin from if there are some."""
    from dfeas.run.checkpoint.codec import dump

    if (nearest := getattr(result, "nearest", None)) is not None:
        with atomic_write(folder / NEAREST) as file:
            dump(nearest, file)
    return result.save(folder)


def open_sinks(
    stack: ExitStack,
    session: Session,
    job: RunSpec,
    folders: Mapping[str, Place | None],
    how: RunOptions,
    earlier: Checkpoint | None,
) -> tuple[dict[str, list[Sink]], Scoreboard | None]:
    """Who is told of each task, and the table of several, where shown, until the stack closes; traces go on from a moment."""
    board: Scoreboard | None = None
    shown: Watched | None = None
    if how.progress and sys.stderr is not None:
        from dfeas.run.progress.terminal import Scoreboard, Terminal  # not loaded where nothing is shown

        if job.several and job.soft is None:
            board = shown = Scoreboard(sys.stderr, "class" if job.classes else "method")
        else:
            goal = Goal(job.asked.eps, job.tolerance)
            left: Any = partial(remaining_passes, goal=goal)
            if job.soft is not None:
                left = partial(passes_to_gap, goal=job.soft.gap)
            limits = job.asked.limits
            shown = Terminal(sys.stderr, lambda records: before_limits(left(records), records[-1], limits))
        stack.callback(shown.close)
        for engine in (session.engine, session.checking.engine):
            engine.watch(shown.observe)
    told = [*filter(None, [session.log]), *how.more]
    logs = (*([Log()] if Log.is_heard() else []), *told)
    sinks: dict[str, list[Sink]] = {}
    for name, folder in folders.items():
        row: Sink | None = shown if board is None else board.row(name)
        sinks[name] = [*filter(None, [row]), *logs]
        if folder is not None:
            folder.mkdir(exist_ok=True)
            trace = TraceFile(folder / TRACE, None if earlier is None else earlier.traces.get(name, 0))
            stack.callback(trace.close)
            sinks[name].insert(0, trace)
            told.insert(0, trace)
    stack.enter_context(note_warnings(told, None if shown is None else shown.screen.say))
    return sinks, board


def report_start(sinks: Mapping[str, Sequence[Sink]], dataset: Dataset, job: RunSpec, earlier: Checkpoint | None) -> None:
    """Say what begins, or goes on, of each task."""
    features = f"{dataset.m} features{' and an intercept' if dataset.intercept else ''}"
    if dataset.transform is not None:
        features += f", {dataset.transform.words}"
    what = f"{dataset.where}: {geometry_of(dataset).describe(dataset)}, {features}"
    if job.then == SOLVABLE:
        what = f"{dataset.where}: a system in {dataset.m - 1} variables, as {dataset.n} points"
    for name, own in sinks.items():
        method, why = job.method_of(name)
        why = f"{name} against the rest: {why}" if job.classes else why
        for sink in own:
            sink.note("start", f"{what}, {method}", n=dataset.n, m=dataset.m, method=method, data=str(dataset.where))
            sink.note("method", f"method: {method} ({why})", method=method, why=why)
            if earlier is not None:
                done = earlier.passes(name)
                sink.note("resume", f"going on after pass {done:.4g} and {earlier.seconds:.1f} s", passes=done)


class Log(Sink):
    """What is no progress, by the logging module."""

    @staticmethod
    def is_heard() -> bool:
        """Whether somebody listens: not where nobody in this process has loaded that module."""
        logging = sys.modules.get("logging")
        return logging is not None and bool(logging.getLogger("dfeas").isEnabledFor(logging.INFO))

    def note(self, event: str, text: str, **values: Any) -> None:
        sys.modules["logging"].getLogger("dfeas").info("%s", visible(text))


def circumstances(workers: int) -> dict[str, Any]:
    """When a run began, on what kind of machine, and with how many ``workers`` of a cluster; no name of a machine or a user."""
    return {
        "began": datetime.now(UTC).isoformat(sep=" ", timespec="seconds"),
        "workers": workers,
        "machine": {
            "system": platform.system(),
            "processor": platform.machine(),
            "cores": processors(),  # that this process may use
            "memory_bytes": memory_bytes(),  # likewise
        },
    }
