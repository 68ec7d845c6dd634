"""The folder of a run's checkpoints: the last two, each with the n-vectors that it needs.

RUN/checkpoint/00000012.zip       a value, see codec, and checksums of the vectors; put in its place whole
RUN/checkpoint/00000012.vectors/  the scratch vectors of that moment, as further names of the same files

A vector is written once, so a second name keeps what a checkpoint needs while the run goes on and forgets the first.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dfeas.data.storage.files import placed, sync
from dfeas.data.storage.layout import LOCK
from dfeas.data.storage.scratch import Scratch, Seal, abandon, claim, reclaim, release
from dfeas.errors import BadInputError, CorruptDataError, NewerFormatError, UsageError
from dfeas.run.checkpoint.codec import dump, load
from dfeas.run.results import CHECKPOINT, RACE, RESULT

KEPT = 2

logger = logging.getLogger("dfeas")


@dataclass(frozen=True)
class Sealed:
    """What a file holds."""

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
        return sorted(int(path.stem) for path in self.folder.glob("*.zip") if path.stem.isdigit())

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
        with placed(self._file(number)) as file:
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
                    found = load(file, str(self._file(number)))
                sealed = found if isinstance(found, Sealed) else Sealed(found, {})  # format 0 began without seals
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
            found = vectors.seal(name)
            if (found.size, found.crc) != (seal.size, seal.crc):
                raise CorruptDataError(f"{vectors.folder}: the vector {name} is damaged, its checksum is another")

    def remove(self) -> None:
        """All of them: the run is finished."""
        shutil.rmtree(self.folder, ignore_errors=True)


def resumable(run: Path) -> bool:
    """Whether there is something to go on from."""
    return bool(Checkpoints(run / CHECKPOINT).numbers)


def finished(run: Path) -> bool:
    """Whether a run has ended, and nothing is left to go on from."""
    return not resumable(run) and any((run / name).is_file() for name in (RESULT, RACE))


def require_free(path: Path, last: str = RESULT) -> None:
    """Raise UsageError for an output that ``run_folder`` would refuse, before anything is read; nothing is written."""
    if resumable(path):
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
    with _locked(path, claim(path, last)) as folder:
        yield folder


@contextmanager
def run_folder_again(path: Path) -> Iterator[Path]:
    """The folder of a run that goes on, locked. Raises UsageError when another process works on it."""
    with _locked(path, reclaim(path)) as folder:
        for left in folder.rglob(".*.part"):  # files that were being written when the run was killed
            if left.is_file():
                left.unlink(missing_ok=True)
        yield folder


@contextmanager
def _locked(path: Path, lock: int) -> Iterator[Path]:
    try:
        yield path.absolute()
    except BaseException:
        abandon(lock)
        raise
    release(path, lock)
