"""A method on its way, whatever it looks for, and one that looks for a verdict: both ends of a bracket, and their evidence."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from msgspec import Struct, structs

from dfeas.answers.trace import ProgressRecord, Sink
from dfeas.answers.words import EPS_INFEASIBLE, FEASIBLE, UNDECIDED, Stop
from dfeas.engine.protocol import Engine
from dfeas.errors import CheckFailedError
from dfeas.linalg.points import Floats
from dfeas.machine import used_bytes
from dfeas.methods.protocol import Bracket, Evidence
from dfeas.passes.inspection import Look, add_look, take_look
from dfeas.passes.protocol import Question, of_class
from dfeas.passes.softmin import Softmin
from dfeas.records import replace
from dfeas.run.recovery import Checking, Portions, recover, separator
from dfeas.run.resources import Limits, never
from dfeas.run.solver_thread import run_solver, run_solver_here
from dfeas.run.termination import NEARLY_ZERO, SLACK, Decision, Goal, Record, decide, describe_ending, limit_reached
from dfeas.verify.certificate import Answer, Certificate, Check


class Ended(Protocol):
    """How a task ended, whatever it looked for."""

    @property
    def reads(self) -> float:
        """Of the data, by all that was done for the task."""


class BetweenReads(Protocol):
    """A task between two reads: a frozen dataclass."""

    @property
    def passes(self) -> float:
        """That the method asked for, so far."""


E = TypeVar("E", bound=Ended)


class Task(Struct, Generic[E], eq=False):
    """A method on its way to a goal. One that claims verdicts says what their evidence is, and takes what the checker says."""

    KEPT: ClassVar[type[Struct]]
    """What there is of it between two reads: a struct whose fields are attributes."""

    method: Any
    state: Any
    goal: Any
    sinks: Sequence[Sink] = ()
    code: int | None = None  # of the class against the rest; None for labels as they are
    passes: float = 0
    reads: float = 0
    brief: bool = False  # its solver in memory takes less than a thread does to begin
    decision: Decision | None = None
    ended: float | None = None  # when it was over, in seconds since the start
    over: bool = False  # the decision stands: its evidence was checked, if it is a verdict
    record: Any = None  # of the last pass

    @property
    @abstractmethod
    def is_proved(self) -> bool:
        """Whether it ended with what it was asked for."""

    @abstractmethod
    def decide(self, limits: Limits) -> None:
        """Whether it ends here, as its record is."""

    @abstractmethod
    def measure(self, engine: Engine, cost: Mapping[str, Any]) -> ProgressRecord:
        """What is known after a pass of an engine; ``cost`` are the fields of all records, which say what it took."""

    @abstractmethod
    def outcome(self) -> E:
        """How it ended; the sinks are told."""

    @property
    def claim(self) -> str | None:
        """A verdict whose evidence must be checked before the decision stands; None for none."""
        return None

    def evidence(self, verdict: str, engine: Engine) -> Certificate:
        """The evidence for a verdict, rebuilt."""
        raise AssertionError(f"nothing claims to be {verdict}")

    def judge(self, certificate: Certificate, check: Check | CheckFailedError, limits: Limits, seconds: float) -> None:
        """Take what the checker says of it, so many seconds after the start. What it refuses is not claimed again."""
        raise AssertionError(f"nothing has a {certificate.kind}")

    def recall_answer(self, certificate: Certificate) -> Answer | None:
        """What the checker has said of it already, on a read of a pass."""
        return None

    def question(self) -> Question:
        """What the method asks the data now, of the labels that it is about."""
        return self._of_labels(self.method.ask(self.state))

    def _of_labels(self, question: Question) -> Question:
        return question if self.code is None else of_class(question, self.code)

    def tell(
        self, answer: Any, engine: Engine, limits: Limits, now: Callable[[], float], stop: Callable[[], bool] = never
    ) -> None:
        """Take an answer, and decide; ``engine.cost`` is what it took, ``now`` seconds since the start. Raises Abandoned when
        ``stop`` says so before a solver in memory has ended; the state is that before the answer.
        """
        cost, n = engine.cost, engine.shape[1]
        share = 1 if cost.points == n else cost.points / n
        # where all points meet all points they are read several times in one pass
        self.passes, self.reads = self.passes + min(1, share), self.reads + share
        began = now()
        if self.solver_in_memory:
            self.state = run_solver(lambda: self.method.tell(self.state, answer), stop, self._show)
        else:
            self.state = run_solver_here(lambda: self.method.tell(self.state, answer), stop)
        seconds = now()
        self.record = self.measure(engine, self._cost(engine, seconds, seconds - began))
        for sink in self.sinks:
            sink.record(self.record)
        self.decide(limits)

    @property
    def solver_in_memory(self) -> bool:
        """Whether the method may work for long between two reads."""
        return not self.brief

    def _show(self, text: str, seconds: float) -> None:
        for sink in self.sinks:
            sink.show_solver(text, seconds)

    def _cost(self, engine: Engine, seconds: float, method_seconds: float) -> dict[str, Any]:
        return {
            "method": self.method.name,
            "passes": self.passes,
            "reads": self.reads,
            "seconds": seconds,
            "pass_seconds": engine.cost.wall_seconds,
            "read_seconds": engine.cost.read_seconds,
            "scan_seconds": engine.cost.scan_seconds,
            "bytes_read": engine.cost.bytes_read,
            "cached_bytes": engine.cost.cached_bytes,
            "memory_bytes": self.record.memory_bytes if self.brief else used_bytes()[1],  # which then did not change
            "method_seconds": method_seconds,
        }

    def expire(self, limits: Limits, seconds: float) -> None:
        """Decide without an answer, as time has passed."""
        self.record = replace(self.record, seconds=seconds)
        self.decide(limits)

    def give_up(self, stopped: str) -> None:
        """End without a verdict, for a reason of ``Stop``."""
        self.decision, self.over = Decision(stopped), True

    def note(self, event: str, text: str, **values: Any) -> None:
        """Tell the sinks what happens between passes."""
        for sink in self.sinks:
            sink.note(event, text, **values)

    def to_state(self) -> Any:
        """What there is now; states are frozen, so nothing is copied."""
        return self.KEPT(**{name: getattr(self, name) for name in self.KEPT.__struct_fields__})

    def restore(self, kept: Any) -> None:
        """Go on from there. A limit that ended it is looked at again, what was proved stands."""
        for name, value in structs.asdict(kept).items():
            setattr(self, name, value)
        self.over = self.is_proved
        if not self.over:
            self.decision, self.ended = None, None


class Outcome(Struct, frozen=True):
    """How a run ended, with the evidence that passed its check, or the best there is."""

    decision: Decision
    record: Record
    evidence: Evidence
    certificate: Certificate | None  # checked for a verdict; without one, the best separator so far, unchecked
    check: Check | None
    reads: float  # of the data, by passes, recovery and checks of this method
    ended: float | None = None  # when, in seconds since the start

    @property
    def is_open(self) -> bool:
        """Whether float64 went as far as it can, and left a verdict open."""
        if self.check is None:
            return self.decision.stopped == "stalled"
        return self.check.verdict == EPS_INFEASIBLE and self.check.margin_upper <= NEARLY_ZERO


class TaskState(Struct, frozen=True):
    """A task between two reads: what it needs to go on later, elsewhere."""

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


class VerdictTask(Task[Outcome], eq=False):
    """One that looks for a verdict."""

    KEPT = TaskState

    kernel: str = ""  # as certificates keep it
    view: str = ""  # as certificates keep it
    fingerprint: str = ""  # of the data as it is seen
    portions: Portions = Portions()  # blocks whose weights fit in memory
    rounded: float = 0.0  # what its upper end may be off by
    inspector: Checking | None = None
    inspected: tuple[Certificate, Answer] | None = None  # the best that was seen on a pass
    certificate: Certificate | None = None
    check: Check | None = None

    def __post_init__(self) -> None:
        self.record = blank(self.method.name, 1.0)

    def to_state(self) -> TaskState:
        kept: TaskState = super().to_state()
        return replace(kept, state=self.method.to_values(self.state))

    def restore(self, kept: TaskState) -> None:
        super().restore(kept)
        self.state = self.method.from_values(kept.state)
        if not self.over:
            self.certificate, self.check = None, None

    @property
    def solver_in_memory(self) -> bool:
        return bool(self.method.traits.columns) and super().solver_in_memory

    @property
    def is_proved(self) -> bool:
        """Whether it ended with what it was asked for, checked; a separator that is not as wide as asked is not."""
        return self.over and self.check is not None and self.decision is not None and self.decision.stopped == "verdict"

    def decide(self, limits: Limits) -> None:
        self.decision = decide(self.record, self.goal, limits)
        if self.decision == Decision(Stop.VERDICT, EPS_INFEASIBLE) and self.method.evidence(self.state).gordan is None:
            self.record = replace(self.record, stalled="its upper end is small, and no weights show that")
            self.decision = Decision(Stop.STALLED)

    def expire(self, limits: Limits, seconds: float) -> None:
        """At a limit a separator stands that was proved on a read whose answer the method had no time to take."""
        super().expire(limits, seconds)
        certificate, check = self.inspected or (None, None)
        reached = limit_reached(self.record, limits)
        if self.decision is None or self.decision.verdict == FEASIBLE or not reached or not isinstance(check, Check):
            return
        if check.margin_lower > max(self.record.margin_lower, self.goal.feasible_above):
            self.note("check", f"check: {check.message}", proof=check.proof)
            self.certificate, self.check, self.over = certificate, check, True
            self.decision = Decision(reached, FEASIBLE)

    def question(self) -> Question:
        """With a look at its separator by the checker, where one is expected to be found. Where both ends of a margin are
        wanted, sums over points are in float64.
        """
        question = self.method.ask(self.state)
        if self.goal.tolerance is not None and isinstance(question, Softmin):
            question = replace(question, exact=True)
        if self.inspector is not None and self.method.evidence(self.state).hopeful:
            question = add_look(question, self._look)
        return self._of_labels(question)

    def _look(self, y: Floats) -> Look | None:
        certificate = self._separator(y)
        return None if certificate is None or self.inspector is None else self.inspector.look(certificate)

    def tell(
        self, answer: Any, engine: Engine, limits: Limits, now: Callable[[], float], stop: Callable[[], bool] = never
    ) -> None:
        answer, seen = take_look(answer)
        if seen is not None and seen.shown is not None and self.inspector is not None:
            certificate = self._separator(seen.y)
            if certificate is not None:
                self._take(certificate, self.inspector.conclude(certificate, seen.shown))
        super().tell(answer, engine, limits, now, stop)

    def _separator(self, y: Floats) -> Certificate | None:
        """The evidence that y would be, if it separates."""
        bracket = Bracket().with_separator(y, math.inf)
        if bracket.y is None:
            return None
        return replace(separator(bracket.y, self.fingerprint, self.kernel), view=self.view)

    def _take(self, certificate: Certificate, answer: Answer) -> None:
        best = None if self.inspected is None else self.inspected[1]
        if not isinstance(best, Check) or (isinstance(answer, Check) and answer.margin_lower >= best.margin_lower):
            self.inspected = certificate, answer

    def recall_answer(self, certificate: Certificate) -> Answer | None:
        if self.inspected is None or certificate.kind != self.inspected[0].kind:
            return None
        return self.inspected[1] if np.array_equal(certificate.y, self.inspected[0].y) else None

    def measure(self, engine: Engine, cost: Mapping[str, Any]) -> Record:
        evidence, took = self.method.evidence(self.state), engine.cost
        busy = (took.read_seconds + took.scan_seconds) / max(1, engine.parallel)
        upper = float(evidence.bracket.upper)
        # 4: roundings of a step that adds what it has found to an average
        off = self.rounded and self.rounded + 4 * evidence.iterations * 2.0**-53
        wider = max(upper, min(1.0, upper + off))
        return Record(
            iterations=evidence.iterations,
            margin_lower=evidence.bracket.lower,
            margin_upper=wider,
            rounded=wider - upper,
            violated=evidence.violated,
            engine_seconds=max(0.0, took.wall_seconds - busy),
            stalled=evidence.stalled,
            hopeful=evidence.hopeful,
            refining=evidence.refining,
            **cost,
        )

    @property
    def claim(self) -> str | None:
        if self.over or self.decision is None:
            return None
        if self.decision.verdict != UNDECIDED:
            return self.decision.verdict
        # not as wide as asked, but a separator
        return FEASIBLE if self.goal.feasible_above < self.record.margin_lower < math.inf else None

    def evidence(self, verdict: str, engine: Engine) -> Certificate:
        evidence = self.method.evidence(self.state)
        # what is left out weighs at most SLACK bar / 2 in all, so |Ax| grows by no more than that
        slack = SLACK * self.goal.bar / 2 / engine.shape[1]
        about = verdict, slack, self.fingerprint, self.kernel, self.portions
        certificate, more = recover(lambda question: engine.run(self._of_labels(question)), evidence, *about)
        self.reads += more
        return replace(certificate, view=self.view)

    def judge(self, certificate: Certificate, check: Check | CheckFailedError, limits: Limits, seconds: float) -> None:
        """Evidence that is refused does not end the task: the bar rises and it goes on."""
        assert self.decision is not None, "evidence is checked for a decision"
        refused = self._refuse(check)
        if isinstance(check, Check) and not refused:
            if self._lacks(check):
                self.decide(limits)
                if self.decision is None:
                    return
            self.note("check", f"check: {check.message}", proof=check.proof)
            self.certificate, self.check, self.over = certificate, check, True
            if self.decision.verdict == UNDECIDED:
                self.decision = Decision(self.decision.stopped, FEASIBLE)
            return
        self.note("refused", f"evidence refused, going on: {refused}")
        if self.decision.verdict == UNDECIDED:
            self.over = True
            return
        self.goal = _raise_goal(self.goal, self.record, self.decision)
        upper = check.margin_upper if isinstance(check, Check) else self.record.margin_upper
        why = f"the evidence is refused, {refused}"
        stalled = replace(self.record, seconds=seconds, margin_upper=upper, rounded=0.0, stalled=why)
        late = limits.time_limit is not None and seconds >= limits.time_limit  # a proof may have been given up
        if self.goal.eps is None and isinstance(check, Check) and upper <= NEARLY_ZERO and not late:
            self.record = stalled  # no pass brings float64 nearer to zero
        self.expire(limits, seconds)
        if self.decision == Decision(Stop.STALLED) and late:
            self.decision = Decision(Stop.TIME_LIMIT)
        elif self.decision == Decision(Stop.STALLED) and not self.record.stalled:
            self.record = stalled

    def _lacks(self, check: Check) -> bool:
        """Whether what is proved is not as near to the maximum as promised; then the goal counts what rounding takes."""
        tolerance, upper = self.goal.tolerance, self.record.margin_upper
        wide = tolerance is None or self.decision != Decision("verdict", FEASIBLE)
        if wide or upper - check.margin_lower <= (tolerance or 0.0) * upper:
            return False
        self.goal = replace(self.goal, unproved=(self.record.margin_lower - check.margin_lower) / upper)
        return True

    def _refuse(self, check: Check | CheckFailedError) -> str:
        """Why what the checker says is no proof of what is claimed; empty where it is one."""
        if isinstance(check, CheckFailedError):
            return str(check)
        assert self.decision is not None
        weak = self.decision.verdict not in (FEASIBLE, UNDECIDED) and not check.margin_upper <= (self.goal.eps or 0.0)
        if weak and self.goal.eps is None:
            return "no weights are proved to sum to zero exactly"
        return f"|Ax| <= {check.margin_upper:.6g} only" if weak else ""

    def outcome(self) -> Outcome:
        """How it ended; without a certificate, the best separator so far stands for one, unchecked."""
        assert self.decision is not None
        evidence, certificate = self.method.evidence(self.state), self.certificate
        if certificate is None and evidence.bracket.y is not None:
            certificate = separator(evidence.bracket.y, self.fingerprint, self.kernel)
            certificate = replace(certificate, view=self.view)
        text = describe_ending(self.decision, self.record)
        verdict = self.decision.verdict if self.check is None else self.check.verdict  # which may prove more
        self.note("stopped", text, stopped=self.decision.stopped, verdict=verdict)
        return Outcome(self.decision, self.record, evidence, certificate, self.check, self.reads, self.ended)


def without_a_pass(method: str, certificate: Certificate, check: Check, reads: float) -> Outcome:
    """The outcome when the survey alone gave a certificate, so that nothing but the check was read."""
    record = blank(method, check.margin_upper)
    evidence = Evidence(Bracket(), None, 0)
    return Outcome(Decision("verdict", check.verdict), record, evidence, certificate, check, reads)


def blank(method: str, upper: float) -> Record:
    """The record before any pass."""
    return Record(method, 0, 0, -1.0, upper, None, 0.0, 0.0, 0.0, 0.0, 0.0, 0, used_bytes()[1])


def _raise_goal(goal: Goal, record: Record, decision: Decision) -> Goal:
    """The goal after refused evidence: it must get twice as good before it is checked again, and what was refused is not."""
    if decision.verdict == FEASIBLE:
        return replace(goal, feasible_above=2 * record.margin_lower)
    return replace(goal, infeasible_below=min(record.sums, record.sums / 2))
