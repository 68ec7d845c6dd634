"""Where a command writes: a name of its own for a run, and what is replaced where that is asked for."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from dfeas.data.storage.files import LOCK
from dfeas.data.storage.layout import MARKER, looks_like_dataset
from dfeas.data.storage.locks import being_written
from dfeas.data.storage.places import Place
from dfeas.errors import UsageError
from dfeas.run.result_files import CERTIFICATE, CHECKPOINT, RACE, RESULT, TRACE
from dfeas.verify.separation import SEPARATION

Kind = Callable[[Path], bool]
"""Whether something is an output of a kind, and nothing else."""

OF_RUN = {RESULT, RACE, CERTIFICATE, TRACE, CHECKPOINT, LOCK, SEPARATION, "margin.json", "report.html", "path.svg"}
"""Names in the folder of a run, beside runs."""
OF_DATASET = {MARKER, LOCK, "X", "label", "norm", "checksum", "offset", "code"}
"""Names in the folder of a dataset."""
NUMPY = b"\x93NUMPY"


def is_run(path: Path) -> bool:
    """A folder with a result, a checkpoint to go on from, or what was killed before there was one, and what belongs to it."""
    begun = any((path / name).exists() for name in (RESULT, RACE, CHECKPOINT, TRACE, LOCK))
    if path.is_symlink() or not path.is_dir() or not begun:
        return False
    return all(each.name in OF_RUN or _is_scratch(each) or is_run(each) for each in path.iterdir())


def _is_scratch(path: Path) -> bool:
    """Vectors that a run which was killed left behind."""
    return path.name == "scratch" and path.is_dir() and all(each.suffix == ".f64" for each in path.iterdir())


def is_dataset(path: Path) -> bool:
    """A dataset that was finished."""
    if path.is_symlink() or not (path / MARKER).is_file() or not looks_like_dataset(path):
        return False
    return all(each.name in OF_DATASET for each in path.iterdir())


def is_array(path: Path) -> bool:
    """Whether it is a .npy file."""
    if path.is_symlink() or path.suffix != ".npy" or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(NUMPY)) == NUMPY


@contextmanager
def replace_output(path: Place, kind: Kind, force: bool) -> Iterator[None]:
    """With ``force`` what is at the path makes room, and is removed when something new is there; otherwise it comes back.

    Raises UsageError for what is no output of the kind, is in an object store, or is being written, and without ``force`` for a
    finished output.
    """
    if not isinstance(path, Path):
        if force:
            raise UsageError(f"{path}: --force is for folders of this machine; choose another output or remove it")
        yield
        return
    if not force and kind(path) and _is_finished(path):
        raise UsageError(f"{path}: exists already; say --force to replace it, or choose another output")
    if not force or not (path.exists() or path.is_symlink()):
        yield
        return
    empty = path.is_dir() and not path.is_symlink() and not any(path.iterdir())
    if not empty and not kind(path):
        raise UsageError(f"{path}: it holds what this command did not write, which --force leaves alone; choose another output")
    if being_written(path):
        raise UsageError(f"{path}: another process is writing it; wait for it or choose another output")
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.old")
    path.rename(aside)
    try:
        yield
    finally:
        old = aside
        if not _is_finished(path):
            if path.exists():  # what was begun a moment ago
                old = aside.with_suffix(".part")
                path.rename(old)
            aside.rename(path)
        if old.is_dir():
            shutil.rmtree(old)
        else:
            old.unlink(missing_ok=True)


def _is_finished(path: Path) -> bool:
    return path.is_file() or any((path / name).exists() for name in (RESULT, RACE, MARKER))


def choose_folder(data: str) -> Path:
    """For a run without a name: ``DATA-run-1``, or the first number that is free."""
    stem = data.rstrip("/").rsplit("/", 1)[-1].partition(".")[0] or "data"
    return next(path for number in count(1) if not (path := Path(f"{stem}-run-{number}")).exists())
