"""A soft margin on its way, as the driver knows it: both ends after every read, and when that is enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np

from dfeas.engine.protocol import Engine
from dfeas.errors import CheckFailedError
from dfeas.methods.soft_margin.problem import Progress, SoftMargin
from dfeas.run.termination import Decision, Limits, Stop
from dfeas.run.trace import Sink, resident_bytes
from dfeas.verify.certificate import Certificate, Check


@dataclass(frozen=True, slots=True)
class SoftMarginRecord:
    """What is known after a read; of several problems, of the one with the widest gap."""

    method: str
    passes: float  # a partial read counts as its share
    iterations: int
    objective: float  # |w|^2/2 + sum c_j loss_j at the best w
    lower: float  # of its minimum
    gap: float  # (objective - lower) / objective
    done: int  # problems whose gap is small enough
    kept: int  # points in memory
    seconds: float  # since the start of the run
    pass_seconds: float
    read_seconds: float  # all threads or workers together
    scan_seconds: float
    bytes_read: int  # by this pass, from storage
    cached_bytes: int  # of this pass, from memory
    memory_bytes: int  # resident memory of the driver's process
    method_seconds: float = 0.0  # of the method, between the passes
    stalled: str = ""

    @property
    def ends(self) -> str:
        if math.isinf(self.objective):
            return "objective not known yet"
        return f"objective {self.objective:.6g}, minimum at least {self.lower:.6g}, gap {self.gap:.2e}"

    def to_json(self) -> dict[str, Any]:
        """All fields; what is not known yet is null."""
        return {name: None if value == math.inf else value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class SoftMarginOutcome:
    """How it ended."""

    stopped: str  # "verdict" when all gaps are small enough
    record: SoftMarginRecord
    progress: Progress
    reads: float
    ended: float | None  # seconds since the start


@dataclass(frozen=True)
class SoftMarginState:
    """Between two reads: what is needed to go on."""

    state: Any
    passes: float
    record: SoftMarginRecord
    decision: Decision | None
    ended: float | None


@dataclass
class SoftMarginTask:
    """A soft margin and how far it is."""

    method: SoftMargin
    state: Any
    gap: float
    sinks: Sequence[Sink] = ()
    passes: float = 0
    decision: Decision | None = None
    ended: float | None = None
    over: bool = False
    code: int | None = None  # labels are as they are
    record: SoftMarginRecord = field(init=False)

    def __post_init__(self) -> None:
        self.record = self._record(None, 0.0, 0.0)

    @property
    def proved(self) -> bool:
        """Whether it ended with gaps that are small enough."""
        return self.decision is not None and self.decision.stopped == "verdict"

    def begin(self, limits: Limits) -> None:
        """Decide before the first read."""
        self.decision = decide(self.record, self.gap, limits)

    def expire(self, limits: Limits, seconds: float) -> None:
        """Decide without an answer, as time has passed."""
        self.record = replace(self.record, seconds=seconds)
        self.begin(limits)

    def tell(self, answer: Any, engine: Engine, limits: Limits, now: Callable[[], float]) -> None:
        """Take an answer; ``engine.cost`` is what it took."""
        self.passes += engine.cost.points / engine.shape[1]
        told = now()
        self.state = self.method.tell(self.state, answer)
        seconds = now()
        self.record = self._record(engine, seconds, seconds - told)
        for sink in self.sinks:
            sink.record(self.record)
        self.decision = decide(self.record, self.gap, limits)

    @property
    def claim(self) -> None:
        """Both ends were computed in float64 from one read: there is nothing more to check."""
        return None

    def evidence(self, verdict: str, engine: Engine, fingerprint: str) -> Certificate:
        raise AssertionError(f"a soft margin claims no {verdict}")

    def judge(self, certificate: Certificate, check: Check | CheckFailedError, limits: Limits, seconds: float) -> None:
        raise AssertionError(f"a soft margin has no {certificate.kind}")

    def give_up(self, stopped: str) -> None:
        """End before the gap is small enough."""
        self.decision, self.over = Decision(stopped), True

    def note(self, event: str, text: str, **values: Any) -> None:
        for sink in self.sinks:
            sink.note(event, text, **values)

    def kept(self) -> SoftMarginState:
        return SoftMarginState(**{entry.name: getattr(self, entry.name) for entry in fields(SoftMarginState)})

    def restore(self, kept: SoftMarginState) -> None:
        """Go on from there; a limit that ended it is looked at again."""
        for entry in fields(SoftMarginState):
            setattr(self, entry.name, getattr(kept, entry.name))
        if not self.proved:
            self.decision, self.ended = None, None
        self.over = self.decision is not None

    def outcome(self, fingerprint: str) -> SoftMarginOutcome:
        assert self.decision is not None
        stopped = self.decision.stopped
        self.note("stopped", ending(stopped, self.record), stopped=stopped)
        return SoftMarginOutcome(stopped, self.record, self.method.evidence(self.state), self.passes, self.ended)

    def _record(self, engine: Engine | None, seconds: float, method_seconds: float) -> SoftMarginRecord:
        found = self.method.evidence(self.state)
        best, cost = found.best, None if engine is None else engine.cost
        widest = int(np.argmax(best.gap))
        return SoftMarginRecord(
            method=self.method.name,
            passes=self.passes,
            iterations=found.steps,
            objective=float(best.objective[widest]),
            lower=float(best.lower[widest]),
            gap=float(best.gap[widest]),
            done=int((best.gap <= self.gap).sum()),
            kept=found.kept,
            seconds=seconds,
            pass_seconds=0.0 if cost is None else cost.wall_seconds,
            read_seconds=0.0 if cost is None else cost.read_seconds,
            scan_seconds=0.0 if cost is None else cost.scan_seconds,
            bytes_read=0 if cost is None else cost.bytes_read,
            cached_bytes=0 if cost is None else cost.cached_bytes,
            memory_bytes=resident_bytes(),
            method_seconds=method_seconds,
            stalled=found.stalled,
        )


def decide(record: SoftMarginRecord, gap: float, limits: Limits) -> Decision | None:
    """Whether the run ends here; None to go on."""
    if not math.isfinite(record.gap) or math.isnan(record.objective):
        return Decision("numerical_error")
    if record.gap <= gap:
        return Decision("verdict")
    if record.stalled:
        return Decision("stalled")
    if limits.passes is not None and record.passes >= limits.passes:
        return Decision("pass_limit")
    if limits.seconds is not None and record.seconds >= limits.seconds:
        return Decision("time_limit")
    return None


def ending(stopped: str, record: SoftMarginRecord) -> str:
    """Why a run ended, in a sentence."""
    if stopped == "verdict":
        return f"the relative gap is {record.gap:.2g}: both ends were computed in float64 from the stored points"
    more = f": {record.stalled}" if stopped == "stalled" else ""
    return f"{Stop(stopped).sentence}{more}; the relative gap is {record.gap:.2g}"
