"""Where a command writes: a name of its own for a run, what is replaced where that is asked for, and how far a run is."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from dfeas.data.storage import files as formats
from dfeas.data.storage.files import LOCK, read_json
from dfeas.data.storage.locks import being_written
from dfeas.data.storage.places import Place, place
from dfeas.data.storage.stored_array import MARKER, looks_like_dataset
from dfeas.display import Displayed, Part, Row
from dfeas.errors import BadInputError, UsageError
from dfeas.run.checkpoint.folder import Checkpoints, can_go_on, is_finished
from dfeas.run.result_files import CERTIFICATE, CHECKPOINT, NEAREST, RACE, RESULT, SEPARATION, TRACE
from dfeas.run.trace import last_pass

Kind = Callable[[Path], bool]
"""Whether something is an output of a kind, and nothing else."""
OF_RUN = {RESULT, RACE, CERTIFICATE, NEAREST, TRACE, CHECKPOINT, LOCK, SEPARATION, "margin.json", "report.html", "path.svg"}
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


@dataclass(frozen=True, repr=False)
class RunStatus(Displayed):
    """How far a run is."""

    run: str  # folder, or the id of a submitted run
    state: str  # "running", "finished", "resumable" or "abandoned"; "not begun" where no folder is seen
    passes: float | None = None  # these four as the last pass says; None before the first
    margin_lower: float | None = None
    margin_upper: float | None = None
    seconds: float | None = None
    checkpoint_age: float | None = None  # seconds since the last checkpoint
    verdict: str | None = None  # of a run that is finished
    stopped: str | None = None  # why it ended
    gap: float | None = None  # relative, of a soft margin
    out: str | None = None  # the folder of a submitted run, as workers see it
    task: str | None = None  # its driver, as Dask says: "processing", "memory" when it has ended, "lost", ..; or "cancelled"
    error: str | None = None  # why the task is "erred"

    def _parts(self) -> Iterator[Part]:
        driver = "" if self.task is None else f"  (driver {self.task}, {self.out})"
        yield Row(None, f"{self.run}: {self.error or self._describe_state()}{driver}")

    def _describe_state(self) -> str:
        parts = [self.verdict or self.state if self.state == "finished" else self.state]
        if self.passes is not None:
            margins = self.margin_lower, self.margin_upper
            ends = "margin {:+.3e} .. {:.3e}".format(*margins) if self.gap is None else f"gap {self.gap:.2e}"
            parts += [f"pass {self.passes:.4g}", ends, f"{self.seconds:.1f} s"]
        if self.checkpoint_age is not None:
            parts.append(f"checkpoint {self.checkpoint_age:.0f} s old")
        return ", ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Without what says where it is driven, of a run that was not submitted."""
        driver = ("out", "task", "error") if self.task is None else ()
        return {name: value for name, value in super().to_json().items() if name not in driver}


def run_status(run: str | Path) -> RunStatus:
    """How far a run is, without waiting. Raises BadInputError for no folder of a run, CorruptDataError for damaged files."""
    path = place(run)
    if not path.is_dir() or not any((path / name).exists() for name in (TRACE, RESULT, RACE, CHECKPOINT)):
        raise BadInputError(f"{path}: no such run")
    known = last_pass(path / TRACE)
    if being_written(path):
        state = "running"
    elif can_go_on(path):
        state = "resumable"
    else:
        state = "finished" if is_finished(path) else "abandoned"
    if state != "running" and (path / RESULT).is_file():
        ended = read_json(path / RESULT, {"verdict?": str, "stopped?": str}, "result", formats.RESULT)
        known |= {name: ended.get(name) for name in ("verdict", "stopped")}
    saved = Checkpoints(path / CHECKPOINT).newest
    names = ("passes", "margin_lower", "margin_upper", "seconds", "gap", "verdict", "stopped")
    age = None if saved is None else max(0.0, time.time() - saved)
    return RunStatus(str(path), state, checkpoint_age=age, **{name: known.get(name) for name in names})
