"""The loop: ask, read, tell, decide. One loop, one exit; a verdict leaves only when the checker has agreed.

Several methods may run in it side by side: their questions ride on the same reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from dfeas.engine import Engine
from dfeas.errors import ClusterLostError
from dfeas.lane import Lane, Outcome, Verify
from dfeas.methods import AnyMethod
from dfeas.passes import Alone, AnyPass, Question, Together
from dfeas.termination import Goal, Limits, decide
from dfeas.trace import Sink


def run(
    engine: Engine,
    method: AnyMethod,
    state: Any,
    goal: Goal,
    limits: Limits,
    *,
    fingerprint: str,
    verify: Verify,
    sinks: Sequence[Sink] = (),
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Run a method from a state until a verdict is proved or a limit is reached.

    Evidence that the checker refuses does not end the run: the bar rises and the run goes on. ``KeyboardInterrupt`` ends it
    with the best evidence so far.
    """
    lane = Lane(method, state, goal, sinks)
    return race(engine, [lane], limits, fingerprint=fingerprint, verify=verify, clock=clock)[0][0]


def race(
    engine: Engine,
    lanes: Sequence[Lane],
    limits: Limits,
    *,
    fingerprint: str,
    verify: Verify,
    to_the_end: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[list[Outcome], float]:
    """Run several methods on the same reads until the first has a verdict, or each has ended; and the reads in all.

    Limits of passes hold for each method. Questions that read in a way of their own are asked on reads of their own.
    """
    began = clock()
    shared: float = 0  # reads that were counted by more than one lane
    for lane in lanes:
        lane.decision = decide(lane.record, lane.goal, limits)
        lane.over = lane.decision is not None
    while going := [lane for lane in lanes if not lane.over]:
        try:
            for group, question in _groups(going):
                answer = engine.run(question)
                answers = answer if len(group) > 1 else (answer,)
                shared += (len(group) - 1) * engine.cost.points / engine.shape[1]
                for lane, part in zip(group, answers, strict=True):
                    lane.tell(part, engine, limits, lambda: clock() - began)
                for lane in group:
                    lane.settle(engine, limits, fingerprint, verify)
                    lane.ended = clock() if lane.over else None
                if not to_the_end and any(lane.proved for lane in group):
                    _give_up(lanes, "outrun", clock())
                    break
        except (KeyboardInterrupt, ClusterLostError) as error:
            _give_up(lanes, "interrupted", clock(), str(error) or "interrupted")
    outcomes = [lane.outcome(fingerprint) for lane in lanes]
    return outcomes, sum(outcome.reads for outcome in outcomes) - shared


def _give_up(lanes: Sequence[Lane], stopped: str, now: float, why: str = "") -> None:
    """End all lanes that are not over."""
    for lane in lanes:
        if not lane.over:
            if why:
                lane.note(stopped, why)
            lane.give_up(stopped)
            lane.ended = now


def _groups(lanes: Sequence[Lane]) -> list[tuple[list[Lane], Question]]:
    """Who reads together, and what: one group for all plain passes, one for each question that reads alone."""
    asked = [(lane, lane.method.ask(lane.state)) for lane in lanes]
    groups: list[tuple[list[Lane], Question]] = [([lane], question) for lane, question in asked if isinstance(question, Alone)]
    riders: list[tuple[Lane, AnyPass]] = [(lane, q) for lane, q in asked if not isinstance(q, Alone)]
    if len(riders) == 1:
        groups.append(([riders[0][0]], riders[0][1]))
    elif riders:
        groups.append(([lane for lane, _ in riders], Together(tuple(question for _, question in riders))))
    return groups
