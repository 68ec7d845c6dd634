"""Where a command writes a run that was given no name, and how far a run is."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from dfeas.answers.files import CHECKPOINT, RACE, RESULT, SUSPECTS, TRACE, read_separation
from dfeas.answers.trace import last_pass
from dfeas.data.storage import files as formats
from dfeas.data.storage.files import Number, read_json
from dfeas.data.storage.locks import being_written
from dfeas.data.storage.places import Place, place
from dfeas.display import Displayed, Part, Row
from dfeas.errors import BadInputError, DfeasError
from dfeas.run.checkpoint.folder import Checkpoints, can_go_on, is_finished


def choose_folder(data: str) -> Path:
    """For a run without a name: ``DATA-run-1``, or the first number that is free."""
    stem = data.rstrip("/").rsplit("/", 1)[-1].partition(".")[0] or "data"
    return next(path for number in count(1) if not (path := Path(f"{stem}-run-{number}")).exists())


MEASURED = ("passes", "margin_lower", "margin_upper", "seconds")
"""What the trace of a run says after each pass, and its result in the end."""


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
    separation: str | None = None  # of a run that was asked for it, and has a result: its kind, or "not decided"
    out: str | None = None  # the folder of a submitted run, as workers see it
    task: str | None = None  # its driver, as Dask says: "processing", "memory" when it has ended, "lost", ..; or "cancelled"
    error: str | None = None  # why the task is "erred"

    def _parts(self) -> Iterator[Part]:
        driver = "" if self.task is None else f"  (driver {self.task}, {self.out})"
        yield Row(None, f"{self.run}: {self.error or self._describe_state()}{driver}")

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

    def to_json(self) -> dict[str, Any]:
        """Without what says where it is driven, of a run that was not submitted."""
        driver = ("out", "task", "error") if self.task is None else ()
        return {name: value for name, value in super().to_json().items() if name not in driver}


def run_status(run: str | Path) -> RunStatus:
    """How far a run is, without waiting. Raises BadInputError for no folder of a run, CorruptDataError for damaged files."""
    path = place(run)
    if not _is_begun(path):
        raise BadInputError(f"{path}: no such run")
    known = last_pass(path / TRACE)
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
    names = (*MEASURED, "gap", "verdict", "stopped", "separation")
    age = None if saved is None else max(0.0, time.time() - saved)
    return RunStatus(str(path), state, checkpoint_age=age, **{name: known.get(name) for name in names})


def runs_below(folder: Path) -> list[RunStatus]:
    """How far the runs in folders below one are, or it itself. Raises BadInputError where there is none."""
    if _is_begun(folder):
        return [run_status(folder)]
    found = []
    for path, folders, _ in os.walk(folder):
        if _is_begun(Path(path)):
            folders.clear()  # a race stands for its runs
            try:
                found.append(run_status(path))
            except DfeasError as error:
                found.append(RunStatus(str(Path(path)), "damaged", error=str(error)))
        folders[:] = sorted(each for each in folders if not each.startswith("."))
    if not found:
        raise BadInputError(f"{folder.resolve()}: no run here or below; of submitted runs say the cluster, by --scheduler")
    return found


def _is_begun(path: Place) -> bool:
    return path.is_dir() and any((path / name).exists() for name in (TRACE, RESULT, RACE, SUSPECTS, CHECKPOINT))
