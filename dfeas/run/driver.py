"""The loop: ask, read, tell, decide. One loop, one exit; a verdict leaves only when the checker has agreed.

Several methods may run in it side by side: their questions ride on the same reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from msgspec import Struct, field

from dfeas.data.storage.patience import give_up_when
from dfeas.engine.protocol import Engine
from dfeas.errors import AwayError
from dfeas.passes.protocol import AnyPass, Batchable, Blocks, Exclusive, Partial, Question, together
from dfeas.run.recovery import Checking
from dfeas.run.resources import Limits, never
from dfeas.run.solver_thread import Abandoned, end_long_reads
from dfeas.run.task import BetweenReads, E, Task
from dfeas.verify.certificate import Certificate

Claim = tuple[Task[Any], str]
"""Who claims which verdict."""


class RunState(Struct, frozen=True):
    """All tasks between two reads."""

    lanes: tuple[BetweenReads, ...]
    shared: float  # reads that were counted by more than one task


Keep = Callable[[RunState, bool], None]
"""Takes a state to go on from after each read; and the last one, if the run ends before all have a checked verdict."""


def no_keep(state: RunState, last: bool) -> None:
    """Keep nothing: the run cannot go on later."""


class Course(Struct, frozen=True, eq=False):
    """How tasks run side by side, and when they give up."""

    limits: Limits  # passes of each task, seconds of all
    to_the_end: bool = False  # of all tasks; otherwise until the first has a verdict
    abreast: int | None = None  # so many tasks are asked at a time, the others wait
    shared: float = 0  # reads so far that were counted by more than one task
    keep: Keep = no_keep
    stop: Callable[[], bool] = never  # asked between reads, and while a solver in memory works
    clock: Callable[[], float] = time.monotonic
    began: float | None = None  # on the clock; None: now
    interruptions: list[BaseException] = field(default_factory=list)  # gets what ended the run from outside


def run(engine: Engine, tasks: Sequence[Task[E]], verify: Checking, course: Course) -> tuple[list[E], float]:
    """Run several methods on the same reads until the first has a verdict, or each has ended; and the reads in all. Questions
    that read in a way of their own are asked on reads of their own. Evidence that the checker refuses does not end a task: the
    bar rises and it goes on. ``KeyboardInterrupt`` ends the run at once, as ``stop`` does between reads and while a solver in
    memory works; both with the best evidence so far.
    """
    start = course.clock() if course.began is None else course.began
    loop = _Loop(engine, verify, course, lambda: course.clock() - start, course.shared)
    for task in tasks:
        if not task.over:
            task.decide(course.limits)
    state = RunState(tuple(task.to_state() for task in tasks), loop.shared)
    try:
        loop.settle(tasks)
        while going := [task for task in tasks if not task.over]:
            if course.stop():
                loop.give_up(tasks, "interrupted", "asked to stop")
                break
            wave = going[: course.abreast]
            whole = loop.wave(wave)
            if loop.won(wave):
                loop.give_up(tasks, "outrun")
                break
            if loop.late:
                loop.expire(wave)
                loop.give_up(going[len(wave) :], "time_limit")
            elif not whole:
                loop.give_up(tasks, "interrupted", "asked to stop")
                break
            if whole:  # tasks that are out of step would ask in another batch, and get other bits
                state = RunState(tuple(task.to_state() for task in tasks), loop.shared)
                course.keep(state, False)
    except (KeyboardInterrupt, AwayError) as error:
        loop.give_up(tasks, "interrupted", str(error) or "interrupted")
        course.interruptions.append(error)
    if not all(task.is_proved for task in tasks):
        course.keep(state, True)
    outcomes = [task.outcome() for task in tasks]
    return outcomes, sum(outcome.reads for outcome in outcomes) - loop.shared


class _Loop(Struct, eq=False):
    """What tasks are asked, told and checked with, and the reads that they shared."""

    engine: Engine
    verify: Checking
    course: Course
    now: Callable[[], float]  # seconds since the start
    shared: float

    @property
    def late(self) -> bool:
        limit = self.course.limits.time_limit
        return limit is not None and self.now() >= limit

    def is_ending(self) -> bool:
        """Whether somebody asks to stop, or time is up."""
        return self.course.stop() or self.late

    def won(self, tasks: Sequence[Task[Any]]) -> bool:
        """Whether one of them ends the run for all."""
        return not self.course.to_the_end and any(task.is_proved for task in tasks)

    def wave(self, tasks: Sequence[Task[Any]]) -> bool:
        """Ask tasks and tell them their answers, group by group; whether all were told. It ends when time is up, somebody asks
        to stop, or one has won; before a read has ended where that takes long, and the tasks stay what they were.
        """
        for group, question in _groups(tasks):
            try:
                with end_long_reads(self.is_ending):
                    answer = self.engine.run(question)
            except Abandoned:
                return False
            count = self._tell(group, answer if len(group) > 1 else (answer,))
            self.shared += max(0, count - 1) * self.engine.cost.points / self.engine.shape[1]
            self.settle(group[:count])
            for task in group[:count]:
                task.ended = self.now() if task.over else None
            if count < len(group) or self.won(group):
                return False
        return True

    def _tell(self, tasks: Sequence[Task[Any]], answers: Sequence[Any]) -> int:
        """Tell tasks their answers until somebody asks to stop, or time is up; how many were told."""
        for place, (task, answer) in enumerate(zip(tasks, answers, strict=True)):
            if place and self.is_ending():
                return place
            try:
                task.tell(answer, self.engine, self.course.limits, self.now, self.is_ending)
            except Abandoned:
                return place
        return len(tasks)

    def expire(self, tasks: Sequence[Task[Any]]) -> None:
        """Time is up for tasks that are not over."""
        late = [task for task in tasks if not task.over]
        for task in late:
            task.expire(self.course.limits, self.now())
        self.settle(late)
        for task in late:
            task.ended = self.now()

    def give_up(self, tasks: Sequence[Task[Any]], stopped: str, why: str = "") -> None:
        for task in tasks:
            if not task.over:
                if why:
                    task.note(stopped, why)
                task.give_up(stopped)
                task.ended = self.now()

    def settle(self, tasks: Sequence[Task[Any]]) -> None:
        """Check the evidence of all decisions until each stands or is gone. Evidence of another kind, after a refusal, is
        checked as long as no limit is reached, and a check that takes long ends there.
        """
        checked = False
        while claims := [(task, verdict) for task in tasks if (verdict := task.claim) is not None]:
            ended = checked and self.is_ending()
            try:
                if not ended:
                    with end_long_reads(self.is_ending), give_up_when(self.is_ending):
                        self._check(claims)
            except Abandoned:
                ended = True
            if ended:
                self.give_up([task for task, _ in claims], "time_limit" if self.late else "interrupted")
                break
            checked = True
        for task in tasks:
            task.over = task.decision is not None

    def _check(self, claims: Sequence[Claim]) -> None:
        """Have the evidence of all claims checked, as many as memory allows for in one read, if it was not on the last pass."""
        batch: list[tuple[Task[Any], Certificate]] = []
        for task, verdict in claims:
            certificate = task.evidence(verdict, self.engine)
            seen = task.recall_answer(certificate)
            if seen is not None:
                task.judge(certificate, seen, self.course.limits, self.now())
                continue
            # entries of points that the checker may keep for certificates checked in one read: 320 MB
            if batch and sum(self._entries(each) for _, each in batch) + self._entries(certificate) > 40_000_000:
                self._judge(batch)
                batch = []
            batch.append((task, certificate))
        if batch:
            self._judge(batch)

    def _judge(self, batch: Sequence[tuple[Task[Any], Certificate]]) -> None:
        """Have some certificates checked in one read, which is counted for each."""
        certificates = [certificate for _, certificate in batch]
        checked = self.verify(certificates)
        alone = [checked.reads] if len(batch) == 1 else [self.verify.reads([certificate]) for certificate in certificates]
        self.shared += sum(alone) - checked.reads
        for (task, _), reads in zip(batch, alone, strict=True):
            task.reads += reads
        for (task, certificate), check in zip(batch, checked.answers, strict=True):
            task.judge(certificate, check, self.course.limits, self.now())

    def _entries(self, certificate: Certificate) -> int:
        """What the checker may keep of the points of a certificate."""
        return len(certificate.support) * self.engine.shape[0]


def _groups(tasks: Sequence[Task[E]]) -> list[tuple[list[Task[E]], Question]]:
    """Who reads together, and what: all plain passes, those on the same blocks, each batch, and each other question."""
    groups: list[tuple[list[Task[E]], Question]] = []
    riders: dict[Blocks | None, list[tuple[Task[E], AnyPass]]] = {}
    batches: dict[Hashable, list[tuple[Task[E], Any]]] = {}
    for task in tasks:
        question = task.question()
        if isinstance(question, Partial):
            riders.setdefault(question.blocks, []).append((task, question.pass_))
        elif isinstance(question, Batchable):
            batches.setdefault(question.batch_key, []).append((task, question))
        elif isinstance(question, Exclusive):
            groups.append(([task], question))
        else:
            riders.setdefault(None, []).append((task, question))
    for batch in batches.values():
        questions = [question for _, question in batch]
        groups.append(([task for task, _ in batch], questions[0] if len(batch) == 1 else questions[0].batch(questions)))
    for blocks in sorted(riders, key=lambda blocks: blocks is None):
        passes = [pass_ for _, pass_ in riders[blocks]]
        pass_ = passes[0] if len(passes) == 1 else together(passes)
        groups.append(([task for task, _ in riders[blocks]], pass_ if blocks is None else Partial(pass_, blocks)))
    return groups
