"""The folder of a run's checkpoints: the last two, each with the n-vectors that it needs.

RUN/checkpoint/00000012.zip       a value, see codec, and checksums of the vectors; put in its place whole
RUN/checkpoint/00000012.vectors/  the scratch vectors of that moment, as further names of the same files

A vector is written once, so a second name keeps what a checkpoint needs while the run goes on and forgets the first.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dfeas.data.storage.files import LOCK, atomic_write, sync
from dfeas.data.storage.locks import abandon, claim, reclaim, release
from dfeas.data.storage.scratch import Scratch, Seal
from dfeas.errors import AwayError, BadInputError, CorruptDataError, DfeasError, NewerFormatError, UsageError
from dfeas.run.checkpoint.codec import dump, load
from dfeas.run.driver import RunState
from dfeas.run.result_files import CHECKPOINT, RACE, RESULT, versions
from dfeas.run.session import Session, Surveyed
from dfeas.run.spec import RunSpec
from dfeas.run.termination import RESUMABLE
from dfeas.run.trace import Sink, TraceFile

KEPT = 2

logger = logging.getLogger("dfeas")


@dataclass(frozen=True)
class Sealed:
    """What the file of a checkpoint holds."""

    value: Any
    vectors: dict[str, Seal]  # those that it needs


@dataclass
class Checkpoints:
    """Saves and loads; one writer at a time."""

    folder: Path
    _seals: dict[str, Seal] = field(default_factory=dict)  # of the last checkpoint that was saved

    @property
    def numbers(self) -> list[int]:
        """Of the checkpoints that are there, the newest last."""
        try:
            stems = [name.removesuffix(".zip") for name in os.listdir(self.folder) if name.endswith(".zip")]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(int(stem) for stem in stems if stem.isdigit())

    @property
    def newest(self) -> float | None:
        """When the newest was written, in seconds since the epoch; None without one. The run may remove them meanwhile."""
        for number in reversed(self.numbers):
            with suppress(FileNotFoundError):
                return self._file(number).stat().st_mtime
        return None

    def _file(self, number: int) -> Path:
        return self.folder / f"{number:08d}.zip"

    def _vectors(self, number: int) -> Scratch:
        return Scratch(self.folder / f"{number:08d}.vectors")

    def save(self, value: Any, scratch: Scratch) -> None:
        """One more, with all vectors on scratch storage; older ones than the last two go.

        Where there is a folder, there is a checkpoint in it.
        """
        if not self.folder.is_dir():
            first = Checkpoints(self.folder.with_name(f".{self.folder.name}.part"))
            first.remove()
            first.folder.mkdir()
            first.save(value, scratch)
            first.folder.rename(self.folder)
            sync(self.folder.parent)
            return
        numbers = self.numbers
        number = numbers[-1] + 1 if numbers else 1
        vectors = self._vectors(number)
        vectors.remove()
        vectors.take(scratch)
        known = {name: seal for name, seal in self._seals.items() if name in vectors.names and vectors.same(name, seal)}
        self._seals = {name: known.get(name) or vectors.seal(name) for name in vectors.names}
        with atomic_write(self._file(number)) as file:
            dump(Sealed(value, self._seals), file)
        for old in numbers[: 1 - KEPT]:
            self._file(old).unlink(missing_ok=True)
            self._vectors(old).remove()

    def load(self, scratch: Scratch) -> Any:
        """The newest that can be read; its vectors are put on scratch storage.

        Raises BadInputError when there is none, CorruptDataError when none can be read, NewerFormatError for a newer one.
        """
        numbers = self.numbers
        if not numbers:
            raise BadInputError(f"{self.folder.parent}: no checkpoint, nothing to resume")
        wrong: list[str] = []
        for number in reversed(numbers):
            try:
                with self._file(number).open("rb") as file:
                    sealed = load(file, str(self._file(number)))
                if not isinstance(sealed, Sealed):
                    raise CorruptDataError(f"{self._file(number)}: not a readable checkpoint")
                self._require_whole(number, sealed.vectors)
            except NewerFormatError:
                raise
            except CorruptDataError as error:
                wrong.append(str(error))
                continue
            except OSError as error:
                wrong.append(f"{self._file(number)}: {error.strerror}")
                continue
            for text in wrong:
                logger.warning("%s; going on from the one before", text)
            scratch.remove()
            scratch.take(self._vectors(number))
            return sealed.value
        raise CorruptDataError("; ".join(wrong))

    def _require_whole(self, number: int, seals: dict[str, Seal]) -> None:
        """Raise CorruptDataError when a vector of a checkpoint is missing or damaged."""
        vectors = self._vectors(number)
        for name, seal in seals.items():
            actual = vectors.seal(name)
            if (actual.size, actual.crc) != (seal.size, seal.crc):
                raise CorruptDataError(f"{vectors.folder}: the vector {name} is damaged, its checksum is another")

    def remove(self) -> None:
        """All of them: the run is finished."""
        shutil.rmtree(self.folder, ignore_errors=True)


def can_go_on(run: Path) -> bool:
    """Whether there is something to go on from."""
    return bool(Checkpoints(run / CHECKPOINT).numbers)


def is_finished(run: Path) -> bool:
    """Whether a run has ended, and nothing is left to go on from."""
    return not can_go_on(run) and any((run / name).is_file() for name in (RESULT, RACE))


def require_free(path: Path, last: str = RESULT) -> None:
    """Raise UsageError for an output that ``run_folder`` would refuse, before anything is read; nothing is written."""
    if can_go_on(path):
        raise UsageError(f"{path}: holds a run that can go on: dfeas resume {path}; or choose another output or remove it")
    if (path / last).exists() or (path.exists() and not (path / LOCK).exists()):
        raise UsageError(f"{path}: exists already; choose another output or remove it")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path.parent}: no such folder to write to")


@contextmanager
def run_folder(path: Path, last: str = RESULT) -> Iterator[Path]:
    """A folder for a result, locked while it is worked on.

    Raises UsageError when it holds ``last``, which is written last, or a run that can be resumed.
    """
    require_free(path, last)
    with _hold_lock(path, claim(path, last)) as folder:
        yield folder


@contextmanager
def run_folder_again(path: Path) -> Iterator[Path]:
    """The folder of a run that goes on, locked. Raises UsageError when another process works on it."""
    with _hold_lock(path, reclaim(path)) as folder:
        for left in folder.rglob(".*.part"):  # files that were being written when the run was killed
            if left.is_file():
                left.unlink(missing_ok=True)
        yield folder


@contextmanager
def _hold_lock(path: Path, lock: int) -> Iterator[Path]:
    try:
        yield path.absolute()
    except BaseException:
        abandon(lock)
        raise
    release(path, lock)


SELDOM = 20
"""A checkpoint may take this share of the time between two: 5 %."""

Sinks = Mapping[str, Sequence[Sink]]
"""Of each method, or class."""


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
        tasks = () if self.moment is None else self.moment.lanes
        return sum(task.passes for each, task in zip(self.job.names, tasks, strict=False) if each == name)


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

    def __call__(self, state: RunState, last: bool) -> None:
        """Write this state when it is time, or when it is the last; it is no reason for a run to end if that fails."""
        if not last:
            self._note_traces()
        if state is self._written or not (last or self._seconds() >= self._due):
            return
        began = self._seconds()
        try:
            self._save(state)
            self._written = state
        except (OSError, CorruptDataError) as error:
            self.note("checkpoint", f"no checkpoint could be written: {error}")
        took = self._seconds() - began
        self._due = self._seconds() + max(self.every, SELDOM * took)

    def _seconds(self) -> float:
        return time.monotonic() - self.job.asked.began

    def _save(self, state: RunState | None) -> None:
        if self.checkpoints is None:
            return
        traces = {name: self._size(name, trace) for name, trace in self._traces()}
        value = Checkpoint(self.job, self._seconds(), self.fingerprint, self.survey, state, traces)
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
def open_checkpointer(
    session: Session, job: RunSpec, sinks: Sinks, folder: Path | None, every: float, earlier: Checkpoint | None
) -> Iterator[Checkpointer]:
    """A checkpointer for the length of a run. Nothing is left to resume when it is finished, or could not even begin."""
    checkpoints = None if folder is None else Checkpoints(folder / CHECKPOINT)
    checkpointer = Checkpointer(checkpoints, session.scratch, every, job, sinks, session.dataset.fingerprint)
    checkpointer.first(earlier)
    try:
        yield checkpointer
    except DfeasError as error:
        if earlier is None and checkpointer.survey is None and not isinstance(error, AwayError):
            checkpointer.finished = True
        raise
    except OSError as error:
        if checkpoints is None or not checkpoints.numbers:
            raise
        where = error.filename or folder
        raise CorruptDataError(f"{where}: {error.strerror or error}; mend that, then go on: dfeas resume {folder}") from None
    finally:
        if checkpoints is not None and checkpointer.finished:
            checkpoints.remove()
        session.scratch.remove()  # a checkpoint has its vectors under names of its own
