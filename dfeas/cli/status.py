"""How far a run is, from what its folder says, and what a cluster says of one that was submitted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dfeas.data.storage import files as formats
from dfeas.data.storage.files import read_json
from dfeas.data.storage.scratch import being_written
from dfeas.display import Displayed, Part, Row
from dfeas.errors import BadInputError
from dfeas.run.checkpoint.folder import Checkpoints, resumable
from dfeas.run.result_files import CHECKPOINT, RACE, RESULT, TRACE
from dfeas.run.trace import last_pass


@dataclass(frozen=True, repr=False)
class RunStatus(Displayed):
    """How far a run is.

    Attributes
    ----------
    run : str
        Folder, or the id of a submitted run.
    state : str
        "running", "finished", "resumable" or "abandoned".
    passes : float, optional
        None before the first.
    margin_lower : float, optional
        Lower end of the bracket.
    margin_upper : float, optional
        Upper end.
    seconds : float, optional
        Of the run, as its last pass says.
    checkpoint_age : float, optional
        Seconds since the last checkpoint.
    verdict : str, optional
        Of a run that is finished.
    stopped : str, optional
        Why it ended.
    gap : float, optional
        Relative, of a soft margin.
    """

    run: str
    state: str
    passes: float | None = None
    margin_lower: float | None = None
    margin_upper: float | None = None
    seconds: float | None = None
    checkpoint_age: float | None = None
    verdict: str | None = None
    stopped: str | None = None
    gap: float | None = None

    def _brief(self) -> str:
        return f"{self.run}: {self.described}"

    def _parts(self) -> Iterator[Part]:
        yield Row(None, f"{self.run}: {self.described}")

    @property
    def described(self) -> str:
        """How far it is, without its name."""
        parts = [self.verdict or self.state if self.state == "finished" else self.state]
        if self.passes is not None:
            margins = self.gap is None
            ends = f"margin {self.margin_lower:+.3e} .. {self.margin_upper:.3e}" if margins else f"gap {self.gap:.2e}"
            parts += [f"pass {self.passes:.4g}, {ends}", f"{self.seconds:.1f} s"]
        if self.checkpoint_age is not None:
            parts.append(f"checkpoint {self.checkpoint_age:.0f} s old")
        return ", ".join(parts)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def run_status(run: str | Path) -> RunStatus:
    """Read what is there, without waiting for anybody. Raises BadInputError when it is no folder of a run, CorruptDataError
    when its files are damaged.
    """
    path = Path(run)
    if not path.is_dir() or not any((path / name).exists() for name in (TRACE, RESULT, RACE, CHECKPOINT)):
        raise BadInputError(f"{path}: no such run")
    last = last_pass(path / TRACE)
    ended: dict[str, Any] = {}
    if being_written(path):
        state = "running"
    elif resumable(path):
        state = "resumable"
    else:
        state = "finished" if (path / RESULT).is_file() or (path / RACE).is_file() else "abandoned"
    if state != "running" and (path / RESULT).is_file():
        ended = read_json(path / RESULT, {"verdict?": str, "stopped?": str}, "result", formats.RESULT)
    saved = Checkpoints(path / CHECKPOINT).saved
    return RunStatus(
        str(path),
        state,
        passes=last.get("passes"),
        margin_lower=last.get("margin_lower"),
        margin_upper=last.get("margin_upper"),
        seconds=last.get("seconds"),
        gap=last.get("gap"),
        checkpoint_age=None if saved is None else max(0.0, time.time() - saved),
        verdict=ended.get("verdict"),
        stopped=ended.get("stopped"),
    )


@dataclass(frozen=True, repr=False)
class Submitted(Displayed):
    """A run on a cluster.

    Attributes
    ----------
    id : str
        The name that ``dfeas.status``, ``dfeas.cancel`` and ``dfeas.fetch`` take.
    out : str
        Its folder, as workers see it.
    task : str
        What the driver does, as Dask calls it: "processing", "memory" when it has ended, "erred", "lost", ..; or "cancelled".
    error : str
        Why, for "erred".
    status : RunStatus, optional
        None when no worker can see the folder, or none answers.
    """

    id: str
    out: str
    task: str
    error: str
    status: RunStatus | None

    def _brief(self) -> str:
        return f"{self.id}: {self._said}"

    def _parts(self) -> Iterator[Part]:
        yield Row(None, f"{self.id}: {self._said}  (driver {self.task}, {self.out})")

    @property
    def _said(self) -> str:
        return self.error or ("not begun" if self.status is None else self.status.described)

    def to_json(self) -> dict[str, Any]:
        plain = {"id": self.id, "out": self.out, "task": self.task, "error": self.error}
        return {**plain, "look": None if self.status is None else self.status.to_json()}
