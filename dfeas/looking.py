"""What the folder of a run says of it, whoever works on it."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dfeas import formats
from dfeas.errors import BadInputError, CorruptDataError
from dfeas.result import CHECKPOINT, RACE, RESULT, TRACE
from dfeas.resuming import resumable
from dfeas.store.claiming import being_written
from dfeas.store.json_file import Number, conform, parsed, read_json

TAIL = 1 << 16
"""Bytes at the end of a trace that are looked at."""


@dataclass(frozen=True)
class Look:
    """How far a run is."""

    run: str
    state: str  # "running" | "finished" | "resumable" | "abandoned"
    passes: float | None = None  # None before the first
    margin_lower: float | None = None
    margin_upper: float | None = None
    seconds: float | None = None
    checkpoint_age: float | None = None  # seconds since the last checkpoint
    verdict: str | None = None
    stopped: str | None = None
    gap: float | None = None  # relative, of a soft margin

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def look(run: str | Path) -> Look:
    """Read what is there, without waiting for anybody. Raises BadInputError when it is no folder of a run, CorruptDataError
    when its files are damaged.
    """
    path = Path(run)
    if not path.is_dir() or not any((path / name).exists() for name in (TRACE, RESULT, RACE, CHECKPOINT)):
        raise BadInputError(f"{path}: no such run")
    last = _last_pass(path / TRACE)
    ended: dict[str, Any] = {}
    if being_written(path):
        state = "running"
    elif resumable(path):
        state = "resumable"
    else:
        state = "finished" if (path / RESULT).is_file() or (path / RACE).is_file() else "abandoned"
    if state != "running" and (path / RESULT).is_file():
        ended = read_json(path / RESULT, {"verdict?": str, "stopped?": str}, "result", formats.RESULT)
    saved = max((file.stat().st_mtime for file in (path / CHECKPOINT).glob("*.zip")), default=None)
    return Look(
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


def _last_pass(trace: Path) -> dict[str, Any]:
    """The last pass in a trace that may be written at this moment."""
    if not trace.is_file():
        return {}
    with trace.open("rb") as file:
        formats.require_readable(trace, _format(file.readline(TAIL)), formats.TRACE)
        file.seek(max(0, trace.stat().st_size - TAIL))
        lines = file.read().split(b"\n")[:-1]
    for line in reversed(lines):
        if line.startswith(b'{"event": "pass"'):
            try:
                last: dict[str, Any] = parsed(line, {"passes": Number(), "seconds": Number()})
                ends = ("gap",) if "gap" in last else ("margin_lower", "margin_upper")
                conform(last, dict.fromkeys(ends, int | float))
            except ValueError as error:
                raise CorruptDataError(f"{trace}: its last pass is damaged: {error}") from None
            return last
    return {}


def _format(first: bytes) -> Any:
    """What the first line of a trace says; 0 where it says nothing, or is not whole."""
    try:
        return parsed(first, dict).get(formats.KEY, 0)
    except ValueError:
        return 0
