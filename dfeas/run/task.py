"""What the loop knows of a method on its way, whatever it looks for: a margin bracket, or a soft margin."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, TypeVar

from dfeas.engine.protocol import Engine
from dfeas.errors import CheckFailedError
from dfeas.methods.protocol import AnyMethod, Bracket, Evidence
from dfeas.passes.protocol import Question, of_class
from dfeas.run.recovery import recover, separator
from dfeas.run.termination import FEASIBLE, UNDECIDED, Decision, Goal, Limits, ProgressRecord, Record, decide, ending
from dfeas.run.trace import Sink, resident_bytes
from dfeas.verify.certificate import Certificate, Check

E = TypeVar("E", bound="Ended")
E_co = TypeVar("E_co", bound="Ended", covariant=True)


class Ended(Protocol):
    """How a lane ended."""

    @property
    def reads(self) -> float:
        """Of the data."""


class BetweenReads(Protocol):
    """A lane between two reads: a frozen dataclass."""

    @property
    def passes(self) -> float:
        """So far."""

    @property
    def record(self) -> ProgressRecord:
        """Of the last pass."""


class Task(Protocol[E_co]):
    """A method on its way, as the loop knows it: a lane of ``dfeas.run.task``, or one of a soft margin."""

    ended: float | None
    over: bool  # it has ended
    state: Any
    decision: Decision | None
    code: int | None  # of the class that is set against the rest; None for labels as they are

    @property
    def method(self) -> Asking:
        """What asks."""

    @property
    def proved(self) -> bool:
        """Whether it ended with what it was asked for."""

    def begin(self, limits: Limits) -> None:
        """Decide before the first read."""

    def expire(self, limits: Limits, seconds: float) -> None:
        """Decide without an answer, as time has passed."""

    def tell(self, answer: Any, engine: Engine, limits: Limits, now: Callable[[], float]) -> None:
        """Take an answer, and decide."""

    @property
    def claim(self) -> str | None:
        """A verdict whose evidence must be checked; None for none."""

    def evidence(self, verdict: str, engine: Engine, fingerprint: str) -> Certificate:
        """The certificate of a verdict."""

    def judge(self, certificate: Certificate, check: Check | CheckFailedError, limits: Limits, seconds: float) -> None:
        """Take what the checker says of it, so many seconds after the start. What it refuses is not claimed again."""

    def give_up(self, stopped: str) -> None:
        """End without a verdict."""

    def note(self, event: str, text: str, **values: Any) -> None:
        """Tell the sinks."""

    def kept(self) -> BetweenReads:
        """What there is now."""

    def restore(self, kept: Any) -> None:
        """Go on from there."""

    def outcome(self, fingerprint: str) -> E_co:
        """How it ended."""


class Asking(Protocol):
    """What asks."""

    def ask(self, state: Any) -> Question:
        """The question of the next pass."""


Verify = Callable[[Sequence[Certificate]], list[Check | CheckFailedError]]
"""Checks certificates in one read: what is proved of each, or why it is refused."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended, with the evidence that passed its check, or the best there is."""

    decision: Decision
    record: Record
    evidence: Evidence
    certificate: Certificate | None  # checked for a verdict; without one, the best separator so far, unchecked
    check: Check | None
    reads: float  # of the data, by passes, recovery and checks of this method
    ended: float | None = None  # when, in seconds since the start


@dataclass(frozen=True)
class TaskState:
    """A lane between two reads: what it needs to go on later, elsewhere."""

    state: Any  # of the method
    goal: Goal
    passes: float
    reads: float
    record: Record
    certificate: Certificate | None
    check: Check | None
    decision: Decision | None
    ended: float | None
    over: bool


@dataclass
class VerdictTask:
    """A method and how far it is."""

    method: AnyMethod
    state: Any
    goal: Goal
    sinks: Sequence[Sink] = ()
    kernel: str = ""  # as certificates keep it
    code: int | None = None  # of the class that it is about, where it is one against the rest
    view: str = ""  # as certificates keep it
    fingerprint: str = ""  # of the data as it is seen, if other than that of the run
    passes: float = 0
    reads: float = 0
    certificate: Certificate | None = None
    check: Check | None = None
    decision: Decision | None = None
    ended: float | None = None  # when it was over, in seconds since the start
    over: bool = False  # the decision stands: its evidence was checked, if it is a verdict
    record: Record = field(init=False)

    def __post_init__(self) -> None:
        self.record = blank(self.method.name, 1.0)

    def kept(self) -> TaskState:
        """What there is now; states are frozen, so nothing is copied."""
        return TaskState(**{entry.name: getattr(self, entry.name) for entry in fields(TaskState)})

    def restore(self, kept: TaskState) -> None:
        """Go on from there. A limit that ended it is looked at again, a checked verdict stands."""
        for entry in fields(TaskState):
            setattr(self, entry.name, getattr(kept, entry.name))
        if not self.proved:
            self.decision, self.certificate, self.check, self.ended, self.over = None, None, None, None, False

    @property
    def proved(self) -> bool:
        """Whether it ended with what it was asked for, checked; a separator that is not as wide as asked is not."""
        return self.over and self.check is not None and self.decision is not None and self.decision.stopped == "verdict"

    def begin(self, limits: Limits) -> None:
        """Decide before the first read."""
        self.decision = decide(self.record, self.goal, limits)

    def expire(self, limits: Limits, seconds: float) -> None:
        """Decide without an answer, as time has passed."""
        self.record = replace(self.record, seconds=seconds)
        self.begin(limits)

    def tell(self, answer: Any, engine: Engine, limits: Limits, now: Callable[[], float]) -> None:
        """Take the answer to what the method asked; ``engine.cost`` is what it took, ``now`` seconds since the start."""
        share = 1 if engine.cost.points == engine.shape[1] else engine.cost.points / engine.shape[1]
        # where all points meet all points they are read several times in one pass
        self.passes, self.reads = self.passes + min(1, share), self.reads + share
        told = now()
        self.state = self.method.tell(self.state, answer)
        seconds = now()
        self.record = _record(self.method.name, self.method.evidence(self.state), engine, self.passes, seconds, seconds - told)
        for sink in self.sinks:
            sink.record(self.record)
        self.decision = decide(self.record, self.goal, limits)

    @property
    def claim(self) -> str | None:
        """The verdict that is to be checked before the decision stands; None when there is none."""
        if self.over or self.decision is None:
            return None
        if self.decision.verdict != UNDECIDED:
            return self.decision.verdict
        # not as wide as asked, but a separator
        return FEASIBLE if self.goal.feasible_above < self.record.margin_lower < math.inf else None

    def evidence(self, verdict: str, engine: Engine, fingerprint: str) -> Certificate:
        """The evidence for a verdict, rebuilt; the read of the checker that follows is counted."""
        seen = engine if self.code is None else ClassEngine(engine, self.code)
        found = self.method.evidence(self.state)
        certificate, more = recover(seen, found, verdict, self.goal.eps, self.fingerprint or fingerprint, self.kernel)
        self.reads += more + 1
        return replace(certificate, view=self.view)

    def judge(self, certificate: Certificate, check: Check | CheckFailedError, limits: Limits, seconds: float) -> None:
        """Take what the checker says. Evidence that it refuses does not end the lane: the bar rises and it goes on."""
        assert self.decision is not None, "evidence is checked for a decision"
        refused = str(check) if isinstance(check, CheckFailedError) else ""
        if (
            isinstance(check, Check)
            and self.decision.verdict not in (FEASIBLE, UNDECIDED)
            and not check.margin_upper <= self.goal.eps
        ):
            refused = f"|Ax| <= {check.margin_upper:.6g} only"
        if isinstance(check, Check) and not refused:
            self.note("check", f"check: {check.message}", proof=check.proof)
            self.certificate, self.check, self.over = certificate, check, True
            if self.decision.verdict == UNDECIDED:
                self.decision = Decision(self.decision.stopped, FEASIBLE)
            return
        self.note("refused", f"evidence refused, going on: {refused}")
        if self.decision.verdict == UNDECIDED:
            self.over = True
            return
        self.goal, self.record = _raised(self.goal, self.record, self.decision), replace(self.record, seconds=seconds)
        self.decision = decide(self.record, self.goal, limits)
        if self.decision == Decision("stalled") and not self.record.stalled:
            upper = check.margin_upper if isinstance(check, Check) else self.record.margin_upper
            self.record = replace(self.record, margin_upper=upper, stalled=f"the evidence is refused, {refused}")

    def give_up(self, stopped: str) -> None:
        self.decision, self.certificate, self.check, self.over = Decision(stopped), None, None, True

    def outcome(self, fingerprint: str) -> Outcome:
        """How it ended; without a certificate, the best separator so far stands for one, unchecked."""
        assert self.decision is not None
        evidence, certificate = self.method.evidence(self.state), self.certificate
        if certificate is None and evidence.bracket.y is not None:
            certificate = separator(evidence.bracket.y, self.fingerprint or fingerprint, self.kernel)
            certificate = replace(certificate, view=self.view)
        text = ending(self.decision, self.record)
        self.note("stopped", text, stopped=self.decision.stopped, verdict=self.decision.verdict)
        return Outcome(self.decision, self.record, evidence, certificate, self.check, self.reads, self.ended)

    def note(self, event: str, text: str, **values: Any) -> None:
        for sink in self.sinks:
            sink.note(event, text, **values)


@dataclass(frozen=True)
class ClassEngine:
    """Asks what it is asked of one class against the rest."""

    engine: Engine
    code: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.engine.shape

    def run(self, question: Question) -> Any:
        """One read of the data."""
        return self.engine.run(of_class(question, self.code))


def without_a_pass(method: str, certificate: Certificate, check: Check) -> Outcome:
    """The outcome when the survey alone gave a certificate; the check was the only read."""
    record = blank(method, check.margin_upper)
    evidence = Evidence(Bracket(), None, 0)
    return Outcome(Decision("verdict", check.verdict), record, evidence, certificate, check, 1)


def blank(method: str, upper: float) -> Record:
    """The record before any pass."""
    return Record(method, 0, 0, -1.0, upper, None, 0.0, 0.0, 0.0, 0.0, 0.0, 0, resident_bytes())


def _record(method: str, evidence: Evidence, engine: Engine, passes: float, seconds: float, method_seconds: float) -> Record:
    cost = engine.cost
    busy = (cost.read_seconds + cost.scan_seconds) / max(1, engine.parallel)
    return Record(
        method=method,
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
        memory_bytes=resident_bytes(),
        method_seconds=method_seconds,
        stalled=evidence.stalled,
        hopeful=evidence.hopeful,
        refining=evidence.refining,
        cached_bytes=cost.cached_bytes,
    )


def _raised(goal: Goal, record: Record, decision: Decision) -> Goal:
    """The goal after refused evidence: it must get twice as good before it is checked again, and what was refused is not."""
    if decision.verdict == FEASIBLE:
        return replace(goal, feasible_above=2 * record.margin_lower)
    return replace(goal, infeasible_below=min(record.margin_upper, record.margin_upper / 2))
