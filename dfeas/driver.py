"""The loop: ask, read, tell, decide. One loop, one exit; a verdict leaves only when the checker has agreed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import psutil

from dfeas.certificate import Certificate
from dfeas.engine import Engine
from dfeas.errors import CheckFailedError, ClusterLostError
from dfeas.methods import Bracket, Evidence, Method
from dfeas.recovery import recover
from dfeas.termination import FEASIBLE, UNDECIDED, Decision, Goal, Limits, Record, decide, ending
from dfeas.trace import Sink
from dfeas.verify import Check

S = TypeVar("S")


@dataclass(frozen=True)
class Outcome:
    """How a run ended, with the evidence that passed its check, or the best there is."""

    decision: Decision
    record: Record
    evidence: Evidence
    certificate: Certificate | None  # checked for a verdict; without one, the best separator so far, unchecked
    check: Check | None
    reads: float  # of the data, by passes, recovery and checks


def run(
    engine: Engine,
    method: Method[S],
    state: S,
    goal: Goal,
    limits: Limits,
    *,
    fingerprint: str,
    verify: Callable[[Certificate], Check],
    sinks: Sequence[Sink] = (),
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Run a method from a state until a verdict is proved or a limit is reached.

    Evidence that the checker refuses does not end the run: the bar rises and the run goes on. ``KeyboardInterrupt`` ends it
    with the best evidence so far.
    """
    began = clock()
    passes: float = 0
    reads: float = 0
    record = _blank(method.name, 1.0)
    certificate: Certificate | None = None
    check: Check | None = None
    decision = decide(record, goal, limits)
    while decision is None:
        try:
            answer = engine.run(method.ask(state))
            share = 1 if engine.cost.points == engine.shape[1] else engine.cost.points / engine.shape[1]
            passes, reads = passes + share, reads + share
            told = clock()
            state = method.tell(state, answer)
            record = _record(method, state, engine, passes, clock() - began, clock() - told)
            for sink in sinks:
                sink.record(record)
            decision = decide(record, goal, limits)
            while decision is not None and decision.verdict != UNDECIDED and check is None:
                certificate, more = recover(engine, method.evidence(state), decision.verdict, goal.eps, fingerprint)
                check, refused = _verified(verify, certificate, decision, goal, sinks)
                reads += more + 1
                if refused:
                    certificate, goal = None, _raised(goal, record, decision)
                    decision = decide(record, goal, limits)
            if decision is not None and check is None and record.margin_lower > goal.feasible_above:
                # not as wide as asked, but a separator
                certificate, _ = recover(engine, method.evidence(state), FEASIBLE, goal.eps, fingerprint)
                check, refused = _verified(verify, certificate, Decision(decision.stopped, FEASIBLE), goal, sinks)
                reads += 1
                decision = decision if refused else replace(decision, verdict=FEASIBLE)
        except (KeyboardInterrupt, ClusterLostError) as error:
            for sink in sinks:
                sink.note("interrupted", str(error) or "interrupted")
            decision = Decision("interrupted")
            certificate = check = None
    evidence = method.evidence(state)
    if certificate is None and evidence.bracket.y is not None:
        certificate = Certificate("separator", fingerprint, y=evidence.bracket.y)
    for sink in sinks:
        sink.note("stopped", ending(decision, record), stopped=decision.stopped, verdict=decision.verdict)
    return Outcome(decision, record, evidence, certificate, check, reads)


def without_a_pass(method: str, certificate: Certificate, check: Check) -> Outcome:
    """The outcome when the survey alone gave a certificate; the check was the only read."""
    record = _blank(method, check.margin_upper)
    evidence = Evidence(Bracket(), None, 0)
    return Outcome(Decision("verdict", check.verdict), record, evidence, certificate, check, 1)


def _blank(method: str, upper: float) -> Record:
    """The record before any pass."""
    memory = psutil.Process().memory_info().rss
    return Record(method, 0, 0, -1.0, upper, None, 0.0, 0.0, 0.0, 0.0, 0.0, 0, memory)


def _record(method: Method[S], state: S, engine: Engine, passes: float, seconds: float, method_seconds: float) -> Record:
    evidence, cost = method.evidence(state), engine.cost
    busy = (cost.read_seconds + cost.scan_seconds) / max(1, engine.parallel)
    return Record(
        method=method.name,
        passes=passes,
        iterations=evidence.iterations,
        margin_lower=evidence.bracket.lower,
        margin_upper=evidence.bracket.upper,
        violated=evidence.violated,
        seconds=seconds,
        pass_seconds=cost.wall_seconds,
        read_seconds=cost.read_seconds,
        scan_seconds=cost.scan_seconds,
        engine_seconds=max(0.0, cost.wall_seconds - busy),
        bytes_read=cost.bytes_read,
        memory_bytes=psutil.Process().memory_info().rss,
        method_seconds=method_seconds,
        stalled=evidence.stalled,
        hopeful=evidence.hopeful,
    )


def _verified(
    verify: Callable[[Certificate], Check],
    certificate: Certificate,
    decision: Decision,
    goal: Goal,
    sinks: Sequence[Sink],
) -> tuple[Check | None, bool]:
    """The check, and whether it refused the certificate."""
    try:
        check = verify(certificate)
    except CheckFailedError as error:
        for sink in sinks:
            sink.note("refused", f"evidence refused, going on: {error}")
        return None, True
    if decision.verdict != FEASIBLE and check.margin_upper > goal.eps:
        for sink in sinks:
            sink.note("refused", f"evidence refused, going on: |Ax| <= {check.margin_upper:.6g} only")
        return None, True
    for sink in sinks:
        sink.note("check", f"check: {check.message}", proof=check.proof)
    return check, False


def _raised(goal: Goal, record: Record, decision: Decision) -> Goal:
    """The goal after refused evidence: it must get twice as good before it is checked again."""
    if decision.verdict == FEASIBLE:
        return replace(goal, feasible_above=2 * record.margin_lower)
    return replace(goal, infeasible_below=record.margin_upper / 2)
