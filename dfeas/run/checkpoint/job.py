"""What was asked for: options of a solve, checked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dfeas.data.source import Transform
from dfeas.data.storage.scratch import Scratch
from dfeas.errors import ClusterLostError, CorruptDataError, DfeasError
from dfeas.linalg.points import Floats
from dfeas.problem import Goal, Limits, Resources
from dfeas.run.checkpoint.folder import Checkpoints
from dfeas.run.driver import RunState
from dfeas.run.results import CHECKPOINT, versions
from dfeas.run.session import Session, Surveyed
from dfeas.run.termination import RESUMABLE
from dfeas.run.trace import Sink, TraceFile


@dataclass(frozen=True)
class Request:
    """Options of a solve, as they will be used."""

    eps: float
    margin_tolerance: float | None
    max_passes: int | None
    time_limit: float | None  # seconds
    memory: int  # bytes
    began: float  # monotonic seconds


@dataclass(frozen=True, slots=True)
class SoftMarginOptions:
    """Options of a soft margin, as they will be used."""

    C: tuple[float, ...]  # ascending
    loss: str  # "hinge" | "squared_hinge"
    folds: int  # 0: no cross-validation
    classes: tuple[float, float] | None  # weights of the classes -1 and +1; None: n / (2 n_class)
    weight: Floats | None  # (n,) of points
    seed: int
    start: Floats | None = None  # (m,) where to begin, instead of at the minimum of a sample; (classes, m) of several
    dual: str | None = None  # a .npy file for the dual variables


def request(goal: Goal, limits: Limits, resources: Resources) -> Request:
    """The options, begun now."""
    ends = limits.max_passes, limits.time_limit
    return Request(goal.eps, goal.margin_tolerance, *ends, resources.memory_bytes, time.monotonic())


SELDOM = 20
"""A checkpoint may take this share of the time between two: 5 %."""

Sinks = Mapping[str, Sequence[Sink]]
"""Of each method, or class."""


@dataclass(frozen=True)
class RunSpec:
    """What a run is: the same from its beginning to its end, however often it is interrupted."""

    asked: Request
    methods: tuple[str, ...]
    whys: tuple[str, ...]  # why each of them
    race: bool
    to_the_end: bool  # of a race
    path: str | None  # of the data; None for arrays in memory
    labels: str | None
    positive: str | None
    intercept: bool
    point: tuple[float, ...] | None = None  # from which the points are seen
    kernel: str = ""  # as certificates keep it
    soft: SoftMarginOptions | None = None  # of a soft margin
    also: tuple[str, ...] = ()
    mask: str | None = None
    transform: Transform | None = None  # of the points, with its numbers
    classes: tuple[str, ...] = ()  # each against the rest, with one method; none: the labels as they are
    then: str = ""  # what is asked of the result of a solve: "hard-margin" | "separation"

    @property
    def lanes(self) -> tuple[str, ...]:
        """What runs side by side: methods, or classes."""
        return self.classes or self.methods


def where(session: Session) -> dict[str, Any]:
    """Fields of a job that say where its data is."""
    source, transform = session.source, session.dataset.transform
    if source is None:
        return {"path": None, "labels": None, "transform": transform}
    return {"transform": transform, **{name: getattr(source, name) for name in ("path", "labels", "also", "mask")}}


@dataclass(frozen=True)
class Checkpoint:
    """A run that can go on."""

    job: RunSpec
    seconds: float  # so far
    fingerprint: str  # of the data; empty before the survey of a foreign array
    survey: Surveyed | None = None
    moment: RunState | None = None
    traces: dict[str, int] = field(default_factory=dict)  # bytes of the trace of each method, or class
    versions: dict[str, str] = field(default_factory=versions)

    def passes(self, name: str) -> float:
        """Of one method, or class, so far."""
        lanes = () if self.moment is None else self.moment.lanes
        return sum(lane.passes for each, lane in zip(self.job.lanes, lanes, strict=False) if each == name)


@dataclass
class Checkpointer:
    """Writes checkpoints of a run now and then."""

    checkpoints: Checkpoints | None  # None: nowhere
    scratch: Scratch
    every: float  # seconds
    job: RunSpec
    sinks: Sinks
    fingerprint: str = ""
    survey: Surveyed | None = None
    finished: bool = False
    _due: float = 0.0  # seconds since the run began
    _written: RunState | None = None
    _then: dict[str, tuple[int, int]] = field(default_factory=dict)  # passes and bytes of each trace at the last moment

    def first(self, earlier: Checkpoint | None) -> None:
        """Before anything is read: what is needed to begin again."""
        self._note_traces()
        if earlier is None:
            self._save(None)
        self._due = self._seconds() + self.every

    def __call__(self, moment: RunState, last: bool) -> None:
        """Write this moment when it is time, or when it is the last; it is no reason for a run to end if that fails."""
        if not last:
            self._note_traces()
        if moment is self._written or not (last or self._seconds() >= self._due):
            return
        began = self._seconds()
        try:
            self._save(moment)
            self._written = moment
        except (OSError, CorruptDataError) as error:
            self.note("checkpoint", f"no checkpoint could be written: {error}")
        took = self._seconds() - began
        self._due = self._seconds() + max(self.every, SELDOM * took)

    def _seconds(self) -> float:
        return time.monotonic() - self.job.asked.began

    def _save(self, moment: RunState | None) -> None:
        if self.checkpoints is None:
            return
        traces = {name: self._size(name, trace) for name, trace in self._traces()}
        value = Checkpoint(self.job, self._seconds(), self.fingerprint, self.survey, moment, traces)
        self.checkpoints.save(value, self.scratch)

    def _note_traces(self) -> None:
        self._then = {name: (trace.passes, trace.size) for name, trace in self._traces()}

    def _traces(self) -> Iterator[tuple[str, TraceFile]]:
        return ((name, sink) for name, sinks in self.sinks.items() for sink in sinks if isinstance(sink, TraceFile))

    def _size(self, name: str, trace: TraceFile) -> int:
        """Bytes of a trace without a pass that is read again when the run goes on: one that came after the last moment."""
        passes, size = self._then[name]
        return trace.size if trace.passes == passes else size

    def note(self, event: str, text: str) -> None:
        for sinks in self.sinks.values():
            for sink in sinks:
                sink.note(event, text)


def discard_checkpoints(folder: str | Path | None, stopped: str) -> None:
    """What a solve was for is written, too: nothing is left to resume, unless it may go on itself."""
    if folder is not None and stopped not in RESUMABLE:
        Checkpoints(Path(folder) / CHECKPOINT).remove()


@contextmanager
def checkpointing(
    session: Session, job: RunSpec, sinks: Sinks, folder: Path | None, every: float, earlier: Checkpoint | None
) -> Iterator[Checkpointer]:
    """A keeper for the length of a run. Nothing is left to resume when it is finished, or could not even begin."""
    checkpoints = None if folder is None else Checkpoints(folder / CHECKPOINT)
    keeper = Checkpointer(checkpoints, session.scratch, every, job, sinks, session.dataset.fingerprint)
    keeper.first(earlier)
    try:
        yield keeper
    except OSError as error:
        if checkpoints is None or not checkpoints.numbers:
            raise
        where = error.filename or folder
        raise CorruptDataError(f"{where}: {error.strerror or error}; mend that, then go on: dfeas resume {folder}") from None
    except DfeasError as error:
        if earlier is None and keeper.survey is None and not isinstance(error, ClusterLostError):
            keeper.finished = True
        raise
    finally:
        if checkpoints is not None and keeper.finished:
            checkpoints.remove()
        session.scratch.remove()  # a checkpoint has its vectors under names of its own
