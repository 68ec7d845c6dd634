"""Where a command writes a run that was given no name, and how far a run is."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from dfeas.answers.files import CHECKPOINT, RACE, RESULT, SUSPECTS, TRACE, read_separation
from dfeas.answers.trace import last_pass, read_beginning
from dfeas.data.storage import files as formats
from dfeas.data.storage.files import Number, read_json
from dfeas.data.storage.locks import being_written
from dfeas.data.storage.places import Place, names_in, place
from dfeas.display import Displayed, Part, Row
from dfeas.errors import BadInputError, DfeasError, format_bytes
from dfeas.run.checkpoint.folder import Checkpoints, can_go_on, is_finished


def choose_folder(data: str) -> Path:
    """For a run without a name: ``DATA-run-1``, or the first number that is free."""
    stem = data.rstrip("/").rsplit("/", 1)[-1].partition(".")[0] or "data"
    return next(path for number in count(1) if not (path := Path(f"{stem}-run-{number}")).exists())


MEASURED = ("passes", "margin_lower", "margin_upper", "seconds")
"""What the trace of a run says after each pass, and its result in the end."""

DRIVERS = {"memory": "ended", "erred": "failed", "processing": "running", "no-worker": "waiting for a worker"}
"""What Dask calls the state of the task that drives a run, in words of people: "memory" has nothing to do with a lack of it."""


@dataclass(frozen=True, repr=False)
class RunStatus(Displayed):
    """How far a run is."""

    run: str  # folder, or the id of a submitted run
    # "running", "finished", "resumable" or "abandoned"; "not begun" where no folder is seen, "damaged" and "unreadable" with an
    # error, "unknown" where no worker answers
    state: str
    passes: float | None = None  # these four as the last pass says; None before the first
    margin_lower: float | None = None
    margin_upper: float | None = None
    seconds: float | None = None
    checkpoint_age: float | None = None  # seconds since the last checkpoint
    verdict: str | None = None  # of a run that is finished
    stopped: str | None = None  # why it ended
    gap: float | None = None  # relative, of a soft margin
    separation: str | None = None  # of a run that was asked for it, and has a result: its kind, or "not decided"
    out: str | None = None  # the folder of a submitted run, as workers see it
    task: str | None = None  # its driver, as Dask says: "processing", "memory" when it has ended, "lost", ..; or "cancelled"
    error: str | None = None  # why the task is "erred", or the run is damaged or unreadable
    user: str | None = None  # whose folder it is, or who submitted it
    host: str | None = None  # where its driver is, of a run that uses a cluster and was not submitted to it
    data: str | None = None
    method: str | None = None
    memory_bytes: int | None = None  # that its process may take, as projected
    began: str | None = None  # date and time, in UTC

    def _parts(self) -> Iterator[Part]:
        driver = "" if self.task is None else f"  (driver {DRIVERS.get(self.task, self.task)}, {self.out})"
        driver = driver if self.host is None else f"  (driver on {self.host}, {self.out or 'without a folder'})"
        yield Row(None, f"{self.run}: {self.error or self._describe_state()}{self._describe_origin()}{driver}")

    def _describe_state(self) -> str:
        parts = [self.verdict or self.state if self.state == "finished" else self.state]
        parts += [f"separation {self.separation}"] * (self.separation is not None)
        if self.passes is not None:
            margins = self.margin_lower, self.margin_upper
            ends = "margin {:+.3e} .. {:.3e}".format(*margins) if self.gap is None else f"gap {self.gap:.2e}"
            parts += [f"pass {self.passes:.4g}", ends, f"{self.seconds:.1f} s"]
        if self.checkpoint_age is not None:
            parts.append(f"checkpoint {self.checkpoint_age:.0f} s old")
        return ", ".join(parts)

    def _describe_origin(self) -> str:
        """Who began it, when, what it does, and the memory that it may take, as far as that is known."""
        when = "" if self.began is None else f" since {self.began.removesuffix('+00:00')} UTC"
        what = " of ".join(filter(None, (self.method, self.data)))
        memory = "" if self.memory_bytes is None else f"at most {format_bytes(self.memory_bytes)}"
        return "".join(f"; {part}" for part in (f"{self.user or ''}{when}".strip(), what, memory) if part)

    def to_json(self) -> dict[str, Any]:
        """Without what says where it is driven, of a run that no cluster drives, and without the error of one that has none."""
        without = {"error"} if self.task is None and self.error is None else set()
        without |= {"out", "task"} if self.task is None and self.host is None else set()
        return {name: value for name, value in super().to_json().items() if name not in without}


def run_status(run: str | Place) -> RunStatus:
    """How far a run is, without waiting. Raises BadInputError for no folder of a run, CorruptDataError for damaged files."""
    path = place(run)
    if not _is_begun(path):
        raise BadInputError(f"{path}: no such run")
    last = last_pass(path / TRACE)
    known = {name: last[name] for name in (*MEASURED, "gap") if name in last} | _describe_beginning(path)
    if being_written(path):
        state = "running"
    elif can_go_on(path):
        state = "resumable"
    else:
        state = "finished" if is_finished(path) else "abandoned"
    if state != "running" and (path / RESULT).is_file():
        number = Number(-math.inf, math.inf)
        shape = {"verdict?": str, "stopped?": str, **dict.fromkeys((f"{name}?" for name in MEASURED), number)}
        ended = read_json(path / RESULT, shape, "result", formats.RESULT)
        known |= {name: ended.get(name) for name in ("verdict", "stopped")}
        known |= {name: ended[name] for name in MEASURED if name in ended and state == "finished"}
        known |= {"separation": found["kind"]} if (found := read_separation(path)) else {}
    saved = Checkpoints(path / CHECKPOINT).newest
    names = (*MEASURED, "gap", "verdict", "stopped", "separation", "data", "method", "memory_bytes", "began")
    age = None if saved is None else max(0.0, time.time() - saved)
    return RunStatus(str(path), state, checkpoint_age=age, user=_owner(path), **{name: known.get(name) for name in names})


def _describe_beginning(path: Place) -> dict[str, Any]:
    """What the trace of a run says; of several methods or classes that of one, but for its method."""
    if known := read_beginning(path / TRACE):
        return known
    below = (name for name in names_in(path) if name.endswith(f"/{TRACE}"))
    return read_beginning(path / min(below, default=TRACE)) | {"method": None}


def _owner(path: Place) -> str | None:
    """The name of a user, or the number of one without a name; None where storage knows no users."""
    if not isinstance(path, Path):
        return None
    try:
        return path.owner()
    except KeyError:
        return str(path.stat().st_uid)


def look_at(run: str | Place) -> RunStatus:
    """How far a run is; the error of one whose files are damaged, or cannot be read. Raises BadInputError for no run."""
    try:
        return run_status(run)
    except BadInputError:
        raise
    except DfeasError as error:
        return RunStatus(str(run), "damaged", error=str(error), user=_owner(place(run)))
    except OSError as error:
        return _unreadable(place(run), error)


def _unreadable(path: Place, error: OSError) -> RunStatus:
    return RunStatus(str(path), "unreadable", error=f"cannot be read: {error.strerror or error}", user=_owner(path))


def runs_below(folder: Place, *, required: bool = True) -> list[RunStatus]:
    """How far the runs in folders below one are, or it itself. Raises BadInputError where one is ``required`` and none is."""
    if _is_begun(folder):
        return [run_status(folder)]
    found = list(_find_below(folder))
    if required and not found:
        raise BadInputError(f"{folder.resolve()}: no run here or below; of submitted runs say the cluster, by --scheduler")
    return found


def _find_below(folder: Place) -> Iterator[RunStatus]:
    """Those in its folders, by their names; a race stands for its runs."""
    try:
        folders = sorted(each for each in folder.iterdir() if not each.name.startswith(".") and _is_folder(each))
    except OSError as error:
        yield _unreadable(folder, error)
        return
    for each in folders:
        if _is_begun(each):
            yield look_at(each)
        else:
            yield from _find_below(each)


def _is_folder(path: Any) -> bool:
    return bool(path.is_dir()) and not (isinstance(path, Path) and path.is_symlink())


def _is_begun(path: Place) -> bool:
    try:
        return path.is_dir() and any((path / name).exists() for name in (TRACE, RESULT, RACE, SUSPECTS, CHECKPOINT))
    except PermissionError:
        return False
