"""The loop: ask, read, tell, decide. One loop, one exit; a verdict leaves only when the checker has agreed.

Several methods may run in it side by side: their questions ride on the same reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dfeas.engine.protocol import Engine
from dfeas.errors import ClusterLostError
from dfeas.passes.protocol import AnyPass, Batchable, Exclusive, Partial, Question, of_class, together
from dfeas.run.task import BetweenReads, E, Task, Verify
from dfeas.run.termination import Limits
from dfeas.verify.certificate import Certificate

CHECKED_ENTRIES = 40_000_000
"""Entries of points that the checker may keep for certificates that are checked in one read."""

Claim = tuple[Task[Any], str]
"""Who claims which verdict."""


@dataclass(frozen=True)
class RunState:
    """All lanes between two reads."""

    lanes: tuple[BetweenReads, ...]
    shared: float  # reads that were counted by more than one lane


class Keep(Protocol):
    """Takes moments to go on from, should the run not end."""

    def __call__(self, moment: RunState, last: bool) -> None:
        """After each read; ``last`` when the run ends before all have a checked verdict."""


def no_keep(moment: RunState, last: bool) -> None:
    """Nothing is kept."""


def never() -> bool:
    """Nobody asks to stop."""
    return False


def run(
    engine: Engine,
    lanes: Sequence[Task[E]],
    limits: Limits,
    *,
    fingerprint: str,
    verify: Verify,
    to_the_end: bool = False,
    abreast: int | None = None,
    shared: float = 0,
    keep: Keep = no_keep,
    stop: Callable[[], bool] = never,
    began: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[list[E], float]:
    """Run several methods on the same reads until the first has a verdict, or each has ended; and the reads in all.

    Limits of passes hold for each method; seconds count from ``began`` on the clock. Questions that read in a way of their own
    are asked on reads of their own. At most ``abreast`` lanes are asked at a time, the others wait. Evidence that the checker
    refuses does not end a lane: the bar rises and it goes on.
    ``stop`` is asked between reads, ``KeyboardInterrupt`` ends the run at once; both with the best evidence so far.
    """
    start = clock() if began is None else began
    loop = _Loop(engine, limits, fingerprint, verify, stop, lambda: clock() - start, shared)
    for lane in lanes:
        if not lane.over:
            lane.begin(limits)
    moment = _moment(lanes, loop.shared)
    try:
        loop.settle(lanes)
        while going := [lane for lane in lanes if not lane.over]:
            if stop():
                loop.give_up(lanes, "interrupted", "asked to stop")
                break
            asked = going[:abreast]
            whole = loop.wave(asked, to_the_end)
            if not to_the_end and any(lane.proved for lane in asked):
                loop.give_up(lanes, "outrun")
                break
            if loop.late:
                loop.expire(asked)
                loop.give_up(going[len(asked) :], "time_limit")
            elif not whole:
                loop.give_up(lanes, "interrupted", "asked to stop")
                break
            if whole:  # lanes that are out of step would ask in another batch, and get other bits
                moment = _moment(lanes, loop.shared)
                keep(moment, False)
    except (KeyboardInterrupt, ClusterLostError) as error:
        loop.give_up(lanes, "interrupted", str(error) or "interrupted")
    if not all(lane.proved for lane in lanes):
        keep(moment, True)
    outcomes = [lane.outcome(fingerprint) for lane in lanes]
    return outcomes, sum(outcome.reads for outcome in outcomes) - loop.shared


@dataclass
class _Loop:
    """What lanes are asked, told and checked with, and the reads that they shared."""

    engine: Engine
    limits: Limits
    fingerprint: str
    verify: Verify
    stop: Callable[[], bool]
    now: Callable[[], float]  # seconds since the start
    shared: float

    @property
    def late(self) -> bool:
        return self.limits.seconds is not None and self.now() >= self.limits.seconds

    def wave(self, lanes: Sequence[Task[Any]], to_the_end: bool) -> bool:
        """Ask lanes and tell them their answers, group by group; whether all were told. It ends when time is up, somebody asks
        to stop, or one has won.
        """
        for group, question in _groups(lanes):
            answer = self.engine.run(question)
            told = self._tell(group, answer if len(group) > 1 else (answer,))
            self.shared += (told - 1) * self.engine.cost.points / self.engine.shape[1]
            self.settle(group[:told])
            for lane in group[:told]:
                lane.ended = self.now() if lane.over else None
            if told < len(group) or (not to_the_end and any(lane.proved for lane in group)):
                return False
        return True

    def _tell(self, lanes: Sequence[Task[Any]], answers: Sequence[Any]) -> int:
        """Tell lanes their answers, one at least; how many were told."""
        for place, (lane, answer) in enumerate(zip(lanes, answers, strict=True)):
            if place and (self.stop() or self.late):
                return place
            lane.tell(answer, self.engine, self.limits, self.now)
        return len(lanes)

    def expire(self, lanes: Sequence[Task[Any]]) -> None:
        """Time is up for lanes that are not over."""
        late = [lane for lane in lanes if not lane.over]
        for lane in late:
            lane.expire(self.limits, self.now())
        self.settle(late)
        for lane in late:
            lane.ended = self.now()

    def give_up(self, lanes: Sequence[Task[Any]], stopped: str, why: str = "") -> None:
        """End all lanes that are not over."""
        for lane in lanes:
            if not lane.over:
                if why:
                    lane.note(stopped, why)
                lane.give_up(stopped)
                lane.ended = self.now()

    def settle(self, lanes: Sequence[Task[Any]]) -> None:
        """Check the evidence of all decisions until each stands or is gone. Evidence of another kind, after a refusal, is
        checked as long as no limit is reached.
        """
        claims = _claims(lanes)
        while claims:
            self._check(claims)
            claims = _claims(lanes)
            ended = "time_limit" if self.late else "interrupted" if claims and self.stop() else ""
            if claims and ended:
                self.give_up([lane for lane, _ in claims], ended)
                break
        for lane in lanes:
            lane.over = lane.decision is not None

    def _check(self, claims: Sequence[Claim]) -> None:
        """Have the evidence of all claims checked, as many as memory allows for in one read."""
        batch: list[tuple[Task[Any], Certificate]] = []
        for lane, verdict in claims:
            certificate = lane.evidence(verdict, self.engine, self.fingerprint)
            if batch and sum(self._entries(each) for _, each in batch) + self._entries(certificate) > CHECKED_ENTRIES:
                self._judge(batch)
                batch = []
            batch.append((lane, certificate))
        self._judge(batch)

    def _judge(self, batch: Sequence[tuple[Task[Any], Certificate]]) -> None:
        """Have some certificates checked in one read."""
        certificates = [certificate for _, certificate in batch]
        for (lane, certificate), check in zip(batch, self.verify(certificates), strict=True):
            lane.judge(certificate, check, self.limits, self.now())
        reads = [certificate.checking_reads for certificate in certificates]
        self.shared += sum(reads) - max(reads)

    def _entries(self, certificate: Certificate) -> int:
        """What the checker may keep of the points of a certificate."""
        return len(certificate.support) * self.engine.shape[0]


def _claims(lanes: Sequence[Task[Any]]) -> list[Claim]:
    return [(lane, verdict) for lane in lanes if (verdict := lane.claim) is not None]


def _moment(lanes: Sequence[Task[Any]], shared: float) -> RunState:
    return RunState(tuple(lane.kept() for lane in lanes), shared)


def _groups(lanes: Sequence[Task[E]]) -> list[tuple[list[Task[E]], Question]]:
    """Who reads together, and what: all plain passes, those on the same blocks, each batch, and each question that reads in
    another way.
    """
    groups: list[tuple[list[Task[E]], Question]] = []
    riders: dict[tuple[int, ...] | None, list[tuple[Task[E], AnyPass]]] = {}
    batches: dict[Hashable, list[tuple[Task[E], Any]]] = {}
    for lane in lanes:
        question = lane.method.ask(lane.state)
        if lane.code is not None:
            question = of_class(question, lane.code)
        if isinstance(question, Partial):
            riders.setdefault(question.blocks, []).append((lane, question.pass_))
        elif isinstance(question, Batchable):
            batches.setdefault(question.batch_key, []).append((lane, question))
        elif isinstance(question, Exclusive):
            groups.append(([lane], question))
        else:
            riders.setdefault(None, []).append((lane, question))
    for batch in batches.values():
        first, asked = batch[0][1], [question for _, question in batch]
        groups.append(([lane for lane, _ in batch], first if len(asked) == 1 else first.joined(asked)))
    for blocks in sorted(riders, key=lambda blocks: blocks is None):
        some = [lane for lane, _ in riders[blocks]]
        passes = [pass_ for _, pass_ in riders[blocks]]
        pass_ = passes[0] if len(passes) == 1 else together(passes)
        groups.append((some, pass_ if blocks is None else Partial(pass_, blocks)))
    return groups
