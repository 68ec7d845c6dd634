"""The loop: ask, read, tell, decide. One loop, one exit; a verdict leaves only when the checker has agreed.

Several methods may run in it side by side: their questions ride on the same reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dfeas.engine import Engine
from dfeas.errors import ClusterLostError
from dfeas.lane import Kept, Lane, Outcome, Verify
from dfeas.passes import Alone, AnyPass, OnPairs, Question, Together
from dfeas.termination import Limits, decide


@dataclass(frozen=True)
class Moment:
    """All lanes between two reads."""

    lanes: tuple[Kept, ...]
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
    lanes: Sequence[Lane],
    limits: Limits,
    *,
    fingerprint: str,
    verify: Verify,
    to_the_end: bool = False,
    shared: float = 0,
    keep: Keep = no_keep,
    stop: Callable[[], bool] = never,
    began: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[list[Outcome], float]:
    """Run several methods on the same reads until the first has a verdict, or each has ended; and the reads in all.

    Limits of passes hold for each method; seconds count from ``began`` on the clock. Questions that read in a way of their own
    are asked on reads of their own. Evidence that the checker refuses does not end a lane: the bar rises and it goes on.
    ``stop`` is asked between reads, ``KeyboardInterrupt`` ends the run at once; both with the best evidence so far.
    """
    start = clock() if began is None else began

    def now() -> float:
        return clock() - start

    for lane in lanes:
        if not lane.over:
            lane.decision = decide(lane.record, lane.goal, limits)
    moment = _moment(lanes, shared)
    try:
        for lane in lanes:
            if not lane.over:
                lane.settle(engine, limits, fingerprint, verify)
        while going := [lane for lane in lanes if not lane.over]:
            if stop():
                _give_up(lanes, "interrupted", now(), "asked to stop")
                break
            for group, question in _groups(going):
                answer = engine.run(question)
                answers = answer if len(group) > 1 else (answer,)
                shared += (len(group) - 1) * engine.cost.points / engine.shape[1]
                for lane, part in zip(group, answers, strict=True):
                    lane.tell(part, engine, limits, now)
                for lane in group:
                    lane.settle(engine, limits, fingerprint, verify)
                    lane.ended = now() if lane.over else None
                if not to_the_end and any(lane.proved for lane in group):
                    _give_up(lanes, "outrun", now())
                    break
            else:
                moment = _moment(lanes, shared)
                keep(moment, False)
    except (KeyboardInterrupt, ClusterLostError) as error:
        _give_up(lanes, "interrupted", now(), str(error) or "interrupted")
    if not all(lane.proved for lane in lanes):
        keep(moment, True)
    outcomes = [lane.outcome(fingerprint) for lane in lanes]
    return outcomes, sum(outcome.reads for outcome in outcomes) - shared


def _moment(lanes: Sequence[Lane], shared: float) -> Moment:
    return Moment(tuple(lane.kept() for lane in lanes), shared)


def _give_up(lanes: Sequence[Lane], stopped: str, now: float, why: str = "") -> None:
    """End all lanes that are not over."""
    for lane in lanes:
        if not lane.over:
            if why:
                lane.note(stopped, why)
            lane.give_up(stopped)
            lane.ended = now


def _groups(lanes: Sequence[Lane]) -> list[tuple[list[Lane], Question]]:
    """Who reads together, and what: one group for all plain passes, one for each company of pairs, and one for each question
    that reads alone.
    """
    groups: list[tuple[list[Lane], Question]] = []
    riders: list[tuple[Lane, AnyPass]] = []
    companies: dict[Hashable, list[tuple[Lane, OnPairs]]] = {}
    for lane in lanes:
        question = lane.method.ask(lane.state)
        if isinstance(question, OnPairs):
            companies.setdefault(question.company, []).append((lane, question))
        elif isinstance(question, Alone):
            groups.append(([lane], question))
        else:
            riders.append((lane, question))
    for company in companies.values():
        first, asked = company[0][1], [question for _, question in company]
        groups.append(([lane for lane, _ in company], first if len(asked) == 1 else first.joined(asked)))
    if len(riders) == 1:
        groups.append(([riders[0][0]], riders[0][1]))
    elif riders:
        groups.append(([lane for lane, _ in riders], Together(tuple(question for _, question in riders))))
    return groups
