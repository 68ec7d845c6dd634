"""The loop: ask, read, tell, decide. One loop, one exit; a verdict leaves only when the checker has agreed.

Several methods may run in it side by side: their questions ride on the same reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dfeas.certificate import Certificate
from dfeas.engine import Engine
from dfeas.errors import ClusterLostError
from dfeas.lane import Verify
from dfeas.passes import Alone, AnyPass, InCompany, Partial, Question, of_class, together
from dfeas.runner import Between, E, Runner
from dfeas.termination import Limits

CHECKED_ENTRIES = 40_000_000
"""Entries of points that the checker may keep for certificates that are checked in one read."""


@dataclass(frozen=True)
class Moment:
    """All lanes between two reads."""

    lanes: tuple[Between, ...]
    shared: float  # reads that were counted by more than one lane


class Keep(Protocol):
    """Takes moments to go on from, should the run not end."""

    def __call__(self, moment: Moment, last: bool) -> None:
        """After each read; ``last`` when the run ends before all have a checked verdict."""


def no_keep(moment: Moment, last: bool) -> None:
    """Nothing is kept."""


def never() -> bool:
    """Nobody asks to stop."""
    return False


def run(
    engine: Engine,
    lanes: Sequence[Runner[E]],
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

    def now() -> float:
        return clock() - start

    for lane in lanes:
        if not lane.over:
            lane.begin(limits)
    moment, outrun = _moment(lanes, shared), False
    try:
        shared += _settle(lanes, engine, limits, fingerprint, verify)
        while going := [lane for lane in lanes if not lane.over]:
            if stop():
                _give_up(lanes, "interrupted", now(), "asked to stop")
                break
            for group, question in _groups(going[:abreast]):
                answer = engine.run(question)
                answers = answer if len(group) > 1 else (answer,)
                share = engine.cost.points / engine.shape[1]
                told = _told(group, answers, engine, limits, now, stop)
                shared += (told - 1) * share + _settle(group[:told], engine, limits, fingerprint, verify)
                for lane in group[:told]:
                    lane.ended = now() if lane.over else None
                outrun = not to_the_end and any(lane.proved for lane in group)
                cut = told < len(group)
                if outrun or cut:
                    break
            if outrun:
                _give_up(lanes, "outrun", now())
                break
            if _late(limits, now):
                late = [lane for lane in going[:abreast] if not lane.over]
                for lane in late:
                    lane.expire(limits, now())
                shared += _settle(late, engine, limits, fingerprint, verify)
                for lane in late:
                    lane.ended = now()
                if abreast is not None:
                    _give_up(going[abreast:], "time_limit", now())
            elif cut:
                _give_up(lanes, "interrupted", now(), "asked to stop")
                break
            if not cut:  # lanes that are out of step would ask in other company, and get other bits
                moment = _moment(lanes, shared)
                keep(moment, False)
    except (KeyboardInterrupt, ClusterLostError) as error:
        _give_up(lanes, "interrupted", now(), str(error) or "interrupted")
    if not all(lane.proved for lane in lanes):
        keep(moment, True)
    outcomes = [lane.outcome(fingerprint) for lane in lanes]
    return outcomes, sum(outcome.reads for outcome in outcomes) - shared


def _told(
    lanes: Sequence[Runner[Any]],
    answers: Sequence[Any],
    engine: Engine,
    limits: Limits,
    now: Callable[[], float],
    stop: Callable[[], bool],
) -> int:
    """Tell lanes their answers, one at least, until time is up or somebody asks to stop; how many were told."""
    for place, (lane, answer) in enumerate(zip(lanes, answers, strict=True)):
        if place and (stop() or _late(limits, now)):
            return place
        lane.tell(answer, engine, limits, now)
    return len(lanes)


def _late(limits: Limits, now: Callable[[], float]) -> bool:
    """Whether time is up."""
    return limits.seconds is not None and now() >= limits.seconds


def _moment(lanes: Sequence[Runner[Any]], shared: float) -> Moment:
    return Moment(tuple(lane.kept() for lane in lanes), shared)


def _give_up(lanes: Sequence[Runner[Any]], stopped: str, now: float, why: str = "") -> None:
    """End all lanes that are not over."""
    for lane in lanes:
        if not lane.over:
            if why:
                lane.note(stopped, why)
            lane.give_up(stopped)
            lane.ended = now


def _settle(lanes: Sequence[Runner[Any]], engine: Engine, limits: Limits, fingerprint: str, verify: Verify) -> float:
    """Check the evidence of all decisions until each stands or is gone; the reads that lanes shared."""
    saved = 0
    while claims := [(lane, verdict) for lane in lanes if (verdict := lane.claim) is not None]:
        batch: list[tuple[Runner[Any], Certificate]] = []
        for lane, verdict in claims:
            certificate = lane.evidence(verdict, engine, fingerprint)
            if batch and sum(entries(each, engine) for _, each in batch) + entries(certificate, engine) > CHECKED_ENTRIES:
                saved += _judged(batch, limits, verify)
                batch = []
            batch.append((lane, certificate))
        saved += _judged(batch, limits, verify)
    for lane in lanes:
        lane.over = lane.decision is not None
    return saved


def _judged(batch: Sequence[tuple[Runner[Any], Certificate]], limits: Limits, verify: Verify) -> int:
    """Have some certificates checked in one read; the reads that this saved."""
    certificates = [certificate for _, certificate in batch]
    for (lane, certificate), check in zip(batch, verify(certificates), strict=True):
        lane.judge(certificate, check, limits)
    reads = [certificate.checking_reads for certificate in certificates]
    return sum(reads) - max(reads)


def entries(certificate: Certificate, engine: Engine) -> int:
    """What the checker may keep of the points of a certificate."""
    return len(certificate.support) * engine.shape[0]


def _groups(lanes: Sequence[Runner[E]]) -> list[tuple[list[Runner[E]], Question]]:
    """Who reads together, and what: all plain passes, those on the same blocks, each company, and each question that reads in
    another way.
    """
    groups: list[tuple[list[Runner[E]], Question]] = []
    riders: dict[tuple[int, ...] | None, list[tuple[Runner[E], AnyPass]]] = {}
    companies: dict[Hashable, list[tuple[Runner[E], Any]]] = {}
    for lane in lanes:
        question = lane.method.ask(lane.state)
        if lane.code is not None:
            question = of_class(question, lane.code)
        if isinstance(question, Partial):
            riders.setdefault(question.blocks, []).append((lane, question.pass_))
        elif isinstance(question, InCompany):
            companies.setdefault(question.company, []).append((lane, question))
        elif isinstance(question, Alone):
            groups.append(([lane], question))
        else:
            riders.setdefault(None, []).append((lane, question))
    for company in companies.values():
        first, asked = company[0][1], [question for _, question in company]
        groups.append(([lane for lane, _ in company], first if len(asked) == 1 else first.joined(asked)))
    for blocks in sorted(riders, key=lambda blocks: blocks is None):
        some = [lane for lane, _ in riders[blocks]]
        passes = [pass_ for _, pass_ in riders[blocks]]
        pass_ = passes[0] if len(passes) == 1 else together(passes)
        groups.append((some, pass_ if blocks is None else Partial(pass_, blocks)))
    return groups
