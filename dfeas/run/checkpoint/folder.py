"""The folder of a run's checkpoints: the last two, each with the n-vectors that it needs.

RUN/checkpoint/00000012.state     a value, see codec, and checksums of the vectors; put in its place whole
RUN/checkpoint/00000012.vectors/  the scratch vectors of that moment, as further names of the same files

A vector is written once, so a second name keeps what a checkpoint needs while the run goes on and forgets the first. In an
object store they are copies.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from dfeas.answers.files import CHECKPOINT, RACE, RESULT, SUSPECTS, versions
from dfeas.answers.trace import Sink, TraceFile
from dfeas.answers.words import RESUMABLE
from dfeas.data.storage.files import LOCK, atomic_write, sync
from dfeas.data.storage.patience import wait_by
from dfeas.data.storage.places import Place, names_in, place, remove
from dfeas.data.storage.scratch import Scratch, Seal
from dfeas.errors import AwayError, BadInputError, CorruptDataError, DfeasError, NewerFormatError, UsageError, log_warning
from dfeas.run.driver import RunState
from dfeas.run.session import Session, Surveyed
from dfeas.run.spec import RunSpec

KEPT = 2
SUFFIX = ".state"


class Sealed(Struct, frozen=True):
    """What the file of a checkpoint holds."""

    value: Any
    vectors: dict[str, Seal]  # those that it needs


class Checkpoints(Struct, eq=False):
    """Saves and loads; one writer at a time."""

    folder: Place
    _seals: dict[tuple[str, int, int], Seal] = field(default_factory=dict)  # of the last checkpoint, by name, file and its time

    @property
    def numbers(self) -> list[int]:
        """Of the checkpoints that are there, the newest last."""
        stems = [name.removesuffix(SUFFIX) for name in names_in(self.folder) if name.endswith(SUFFIX)]
        return sorted(int(stem) for stem in stems if stem.isdigit())

    @property
    def newest(self) -> float | None:
        """When the newest was written, in seconds since the epoch; None without one. The run may remove them meanwhile."""
        for number in reversed(self.numbers):
            with suppress(FileNotFoundError):
                return self._file(number).stat().st_mtime
        return None

    def _file(self, number: int) -> Place:
        return self.folder / f"{number:08d}{SUFFIX}"

    def save(self, value: Any, scratch: Scratch) -> None:
        """One more, with all vectors on scratch storage; older ones than the last two go."""
        from dfeas.run.checkpoint.codec import dump

        numbers = self.numbers
        if not numbers and isinstance(self.folder, Path):
            self.folder.mkdir(exist_ok=True)
            sync(self.folder.parent)
        number = numbers[-1] + 1 if numbers else 1
        marks = {name: (name, *scratch.mark(name)) for name in scratch.names}  # they are written once
        self._seals = {mark: self._seals.get(mark) or scratch.seal(name) for name, mark in marks.items()}
        vectors, seals = self.folder / f"{number:08d}.vectors", {name: self._seals[mark] for name, mark in marks.items()}
        if isinstance(vectors, Path):
            Scratch(vectors).remove()
            Scratch(vectors).take(scratch)
        else:
            scratch.upload(vectors)
        with atomic_write(self._file(number)) as file:
            dump(Sealed(value, seals), file)
        for old in numbers[: 1 - KEPT]:
            self._file(old).unlink(missing_ok=True)
            if seals:
                _remove(self.folder / f"{old:08d}.vectors")

    def load(self, scratch: Scratch) -> Any:
        """The newest that can be read; its vectors are put on scratch storage.

        Raises BadInputError when there is none, CorruptDataError when none can be read, NewerFormatError for a newer one.
        """
        from dfeas.run.checkpoint.codec import load

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
                self._restore(number, sealed.vectors, scratch)
            except NewerFormatError:
                raise
            except CorruptDataError as error:
                wrong.append(str(error))
                continue
            except OSError as error:
                wrong.append(f"{self._file(number)}: {error.strerror or error}")
                continue
            for text in wrong:
                log_warning("%s; going on from the one before", text)
            return sealed.value
        raise CorruptDataError("; ".join(wrong))

    def _restore(self, number: int, seals: dict[str, Seal], scratch: Scratch) -> None:
        """Put vectors on scratch storage. Raises CorruptDataError when one is missing or damaged."""
        folder = self.folder / f"{number:08d}.vectors"
        scratch.remove()
        if isinstance(folder, Path):
            scratch.take(Scratch(folder))
        elif seals:
            scratch.download(folder)
        for name, seal in seals.items():
            if not scratch.has(name) or scratch.seal(name) != seal:
                raise CorruptDataError(f"{folder}: the vector {name} is missing or damaged")

    def remove(self) -> None:
        _remove(self.folder)


def _remove(folder: Place) -> None:
    """Remove a folder, if it is there and storage lets that be done."""
    try:
        remove(folder)
    except FileNotFoundError:
        return
    except (OSError, DfeasError) as error:
        log_warning("%s: cannot be removed: %s", folder, error)


def can_go_on(run: Place) -> bool:
    """Whether there is something to go on from."""
    return bool(Checkpoints(run / CHECKPOINT).numbers)


def is_finished(run: Place) -> bool:
    """Whether a run has ended, and nothing is left to go on from."""
    return not can_go_on(run) and any((run / name).is_file() for name in (RESULT, RACE, SUSPECTS))


def require_free(path: Place, last: str = RESULT) -> None:
    """Raise UsageError for an output that ``run_folder`` would refuse, before anything is read; nothing is written."""
    if not isinstance(path, Path):
        path.require_writable()
    if can_go_on(path):
        raise UsageError(f"{path}: holds a run that can go on: dfeas resume {path}; or choose another output or remove it")
    if (path / last).exists() or (path.exists() and not (path / LOCK).exists()):
        raise UsageError(f"{path}: exists already; choose another output or remove it")
    if isinstance(path, Path) and not path.absolute().parent.is_dir():
        raise UsageError(f"{path.parent}: no such folder to write to")


@contextmanager
def run_folder(path: Place, last: str = RESULT) -> Iterator[Place]:
    """A locked folder for a result. Raises UsageError when it holds ``last``, the last file, or a run that can be resumed."""
    from dfeas.data.storage.locks import hold

    require_free(path, last)
    with hold(path, last, partial(require_free, path, last)) as folder:
        yield folder


@contextmanager
def run_folder_again(path: Place) -> Iterator[Place]:
    """The folder of a run that goes on, locked. Raises UsageError when another process works on it."""
    from dfeas.data.storage.locks import hold

    with hold(path) as folder:
        for left in folder.rglob(".*.part") if isinstance(folder, Path) else ():  # was being written when the run was killed
            if left.is_file():
                left.unlink(missing_ok=True)
        yield folder


Sinks = Mapping[str, Sequence[Sink]]
"""Of each method, or class."""


class Checkpoint(Struct, frozen=True):
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


class Checkpointer(Struct, eq=False):
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
            with nullcontext() if last else wait_by(time.sleep, 0.0):  # the next one is soon
                self._save(state)
            self._written = state
        except (OSError, DfeasError, TypeError) as error:  # a state of the caller's method may hold what no file can
            self._require_held()
            self.note("checkpoint", f"no checkpoint could be written: {error}")
        took = self._seconds() - began
        # a checkpoint may take 5 % of the time between two
        self._due = self._seconds() + max(self.every, 20 * took)

    def _seconds(self) -> float:
        return time.monotonic() - self.job.asked.began

    def _save(self, state: RunState | None) -> None:
        if self.checkpoints is None:
            return
        self.save_traces()
        traces = {name: self._size(name, trace) for name, trace in self._traces()}
        value = Checkpoint(self.job, self._seconds(), self.fingerprint, self.survey, state, traces)
        self.checkpoints.save(value, self.scratch)

    def save_traces(self) -> None:
        """Let others read all traces so far. Raises UsageError when another process has taken the run over."""
        self._require_held()
        for _, trace in self._traces():
            trace.save()

    def _require_held(self) -> None:
        if self.checkpoints is not None:
            from dfeas.data.storage.locks import require_held

            require_held(self.checkpoints.folder.parent)

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
        Checkpoints(place(folder) / CHECKPOINT).remove()


@contextmanager
def open_checkpointer(
    session: Session, job: RunSpec, sinks: Sinks, folder: Place | None, every: float, earlier: Checkpoint | None
) -> Iterator[Checkpointer]:
    """A checkpointer for the length of a run. None is left of one that ended, or did not begin; with states that cannot be
    written it writes none.
    """
    checkpoints = None if folder is None or not session.resumable else Checkpoints(folder / CHECKPOINT)
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
        if job.soft is None:  # otherwise nothing lies there
            session.scratch.remove()  # a checkpoint has its vectors under names of its own
