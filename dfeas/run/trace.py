"""Events of a run: JSON lines in a file, and a line or a live line on the terminal."""

from __future__ import annotations

import errno
import json
import logging
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any, Protocol

import psutil

from dfeas.data.storage import formats
from dfeas.errors import visible
from dfeas.run.termination import Record, Told, remaining_passes

logger = logging.getLogger("dfeas")

FORESEEABLE = 100 * 86400.0
"""Seconds; a longer guess of the time left says nothing."""


class Sink(Protocol):
    """Takes the events of a run."""

    def record(self, record: Told) -> None:
        """After each pass."""

    def note(self, event: str, text: str, **values: Any) -> None:
        """Between passes: start, recovery, check, verdict."""

    def close(self) -> None:
        """No event will come."""


class TraceFile:
    """``trace.jsonl``: one JSON object a line, flushed at once; ``event`` is ``pass`` or the name of a note.
    The first has the number of the format.

    With ``size`` a file goes on after so many bytes: what a run wrote after its last checkpoint is written again. What storage
    does not take is lost, which is said once in the log and by a ``gap`` in its place; a run does not end for it.
    """

    def __init__(self, path: Path, size: int = 0) -> None:
        self._path = path.absolute()
        self.passes = 0  # that were written here
        self._empty = size == 0
        self._lost = 0  # lines since the last one that was written
        with path.open("ab") as file:
            if file.tell() > size:
                file.truncate(size)

    @property
    def size(self) -> int:
        return self._path.stat().st_size

    def record(self, record: Told) -> None:
        self.passes += 1
        self._write({"event": "pass", **record.to_json()})

    def note(self, event: str, text: str, **values: Any) -> None:
        self._write({"event": event, "text": text, **values})

    def _write(self, values: dict[str, Any]) -> None:
        lines = [values]
        if self._lost:
            text = f"{self._lost} events are missing: they could not be written"
            lines.insert(0, {"event": "gap", "text": text, "events": self._lost})
        if self._empty:
            lines[0] = {"event": lines[0]["event"], formats.KEY: formats.TRACE, **lines[0]}
        try:
            self._append("".join(f"{json.dumps(line)}\n" for line in lines).encode())
            self._empty, self._lost = False, 0
        except OSError as error:
            if not self._lost:
                logger.warning("%s: %s; the run goes on, its trace has a gap", self._path, error.strerror)
            self._lost += 1

    def _append(self, text: bytes) -> None:
        """All of it or nothing."""
        with self._path.open("ab", buffering=0) as file:
            end = file.tell()
            if file.write(text) < len(text):
                file.truncate(end)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        """Nothing is kept open: a run may have a thousand classes."""


@dataclass
class Output:
    """A stream that may be lost: a terminal that nobody reads any more does not end a run."""

    stream: IO[str]
    lost: bool = False

    @property
    def live(self) -> bool:
        """Whether what is written can be written over."""
        return not self.lost and self.stream.isatty()

    def write(self, text: str) -> None:
        """Write, until nobody reads any more."""
        if self.lost:
            return
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):
            self.lost = True


@dataclass
class Terminal:
    """Progress for a person: a live line on a terminal, a plain line now and then in a pipe."""

    stream: IO[str]
    eps: float
    every: float = 5.0  # seconds between plain lines
    clock: Callable[[], float] = time.monotonic
    _records: list[Told] = field(default_factory=list)
    _shown: float = -math.inf
    _unseen: bool = False
    _width: int = 0
    _out: Output = field(init=False)

    def __post_init__(self) -> None:
        self._out = Output(self.stream)

    def record(self, record: Told) -> None:
        """Show the last pass, if it is time."""
        self._records.append(record)
        if len(self._records) > 4096:
            del self._records[1:-2048:2]
        live = self._out.live
        now = self.clock()
        self._unseen = now - self._shown < (0.1 if live else self.every)
        if self._unseen:
            return
        self._shown = now
        text = describe(self._records, self.eps)
        if live:
            self._out.write("\r" + text.ljust(self._width))
            self._width = len(text)
        else:
            self._out.write(text + "\n")

    def note(self, event: str, text: str, **values: Any) -> None:
        """A line of its own, after the last pass."""
        if self._unseen and not self._width:
            self._out.write(describe(self._records, self.eps) + "\n")
        self._unseen = False
        if self._width:
            self._out.write("\r" + " " * self._width + "\r")
            self._width = 0
        self._out.write(text + "\n")

    def close(self) -> None:
        if self._width:
            self._out.write("\n")
            self._width = 0


def describe(records: Sequence[Told], eps: float) -> str:
    """One line: passes, bracket, violated points, speed, time left."""
    last = records[-1]
    speed = (last.bytes_read + last.cached_bytes) / last.pass_seconds / 1e9 if last.pass_seconds > 0 else 0.0
    parts = [
        f"pass {last.passes:.4g}",
        last.ends,
        f"{speed:.2f} GB/s",
        f"{last.seconds:.1f} s",
    ]
    if not isinstance(last, Record):
        return "  ".join(parts)
    if last.violated is not None:
        parts.insert(2, f"{last.violated} violated")
    left = (
        remaining_passes([record for record in records if isinstance(record, Record)], eps) * last.seconds / max(1, last.passes)
    )
    if left < FORESEEABLE and not last.hopeful:
        parts.append(f"about {left:.0f} s left" if left < 5400 else f"about {left / 3600:.1f} h left")
    return "  ".join(parts)


def resident_bytes() -> int:
    """Memory of this process."""
    return int(_process(os.getpid()).memory_info().rss)


@cache
def _process(pid: int) -> psutil.Process:
    """To find out when a process began takes longer than a pass over small data."""
    return psutil.Process(pid)


def say(progress: bool, text: str) -> None:
    """A line on stderr, where progress is shown: of what comes before a run has sinks."""
    if progress and sys.stderr is not None:
        Output(sys.stderr).write(f"{visible(text)}\n")
