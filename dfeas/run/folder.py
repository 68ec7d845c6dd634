"""The folder of a run: locked while somebody works on it, and whether there is something to go on from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dfeas.data.storage.layout import LOCK
from dfeas.data.storage.lock import claim, reclaim, release
from dfeas.errors import UsageError
from dfeas.run.checkpoint.folder import Checkpoints
from dfeas.run.results import CHECKPOINT, RACE, RESULT


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
        os.close(lock)  # the lock file stays: the next run takes the folder over
        raise
    release(path, lock)
