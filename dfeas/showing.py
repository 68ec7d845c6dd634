"""How a run is kept and shown: its trace, its line or table of progress, the log of the cluster, and what they say first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dfeas.keeping import Checkpoint, Job
from dfeas.projection.points import Projection
from dfeas.result import TRACE
from dfeas.scoreboard import Scoreboard
from dfeas.setting import Setting
from dfeas.store import Dataset
from dfeas.termination import Told
from dfeas.trace import Output, Sink, Terminal, TraceFile
from dfeas.visible import visible


@dataclass(frozen=True)
class How:
    """How a run is kept and shown; the result does not depend on it."""

    checkpoint_every: float  # seconds
    progress: bool
    stop: Callable[[], bool]
    more: tuple[Sink, ...] = ()  # sinks that the caller gave


class Calls:
    """A function of the caller that is given each record, and may end the run: it returns True, or raises StopIteration."""

    def __init__(self, function: Callable[[Told], object]) -> None:
        self.function = function
        self.ends = False

    def record(self, record: Told) -> None:
        """Call it."""
        try:
            self.ends = self.function(record) is True or self.ends
        except StopIteration:
            self.ends = True

    def note(self, event: str, text: str, **values: Any) -> None:
        """It is told of reads only."""

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True)
class Visible:
    """A sink that people look at: notes quote names from the data, and say them without steering the terminal."""

    inner: Sink

    def record(self, record: Told) -> None:
        """It has numbers only."""
        self.inner.record(record)

    def note(self, event: str, text: str, **values: Any) -> None:
        """The text, made visible."""
        self.inner.note(event, visible(text), **values)

    def close(self) -> None:
        """Pass it on."""
        self.inner.close()


def terminal(progress: bool, eps: float) -> Sink | None:
    """A line of progress on stderr, where it is shown."""
    return Visible(Terminal(sys.stderr, eps)) if progress and sys.stderr is not None else None


def how_of(checkpoint_every: float, progress: bool, stop: Callable[[], bool], callback: Callable[[Told], object] | None) -> How:
    """With a ``callback`` of the caller, if there is one."""
    if callback is None:
        return How(checkpoint_every, progress, stop)
    calls = Calls(callback)
    return How(checkpoint_every, progress, lambda: calls.ends or stop(), (calls,))


def run_sinks(
    stack: ExitStack, setting: Setting, job: Job, folder: Path | None, how: How, earlier: Checkpoint | None
) -> list[Sink]:
    """Those of a job that is one method; the stack closes them."""
    shown = terminal(how.progress, job.asked.eps)
    size = 0 if earlier is None else earlier.traces.get(job.methods[0], 0)
    return [*_sinks(stack, setting, folder, shown, size), *how.more]


def lane_sinks(
    stack: ExitStack,
    setting: Setting,
    folders: Mapping[str, Path | None],
    board: Scoreboard | None,
    earlier: Checkpoint | None,
    more: Sequence[Sink] = (),
) -> dict[str, list[Sink]]:
    """Those of each of several methods, or classes, that run side by side, with their folders; the stack closes them."""
    sizes = {} if earlier is None else earlier.traces
    return {
        name: [*_sinks(stack, setting, folder, None if board is None else board.row(name), sizes.get(name, 0)), *more]
        for name, folder in folders.items()
    }


def _sinks(stack: ExitStack, setting: Setting, folder: Path | None, shown: Sink | None, size: int) -> list[Sink]:
    """The trace in a folder, which goes on after ``size`` bytes, what is shown, and the log of the cluster."""
    sinks: list[Sink] = []
    if folder is not None:
        folder.mkdir(exist_ok=True)
        sinks.append(TraceFile(folder / TRACE, size))
    if shown is not None:
        sinks.append(shown)
    for sink in sinks:
        stack.callback(sink.close)
    return sinks if setting.log is None else [*sinks, Visible(setting.log)]


def announce(
    sinks: Sequence[Sink], dataset: Dataset, method: str, why: str, earlier: Checkpoint | None, lane: str = ""
) -> None:
    """Say what begins, or goes on; ``lane`` is its name in the job, if that is not the method's."""
    features = f"{dataset.m} features{' and an intercept' if dataset.intercept else ''}"
    if dataset.transform is not None:
        features += f", {dataset.transform.words}"
    what = f"{dataset.n} points" if dataset.cones is None else f"{dataset.n} rows of cones ({dataset.cones})"
    for sink in sinks:
        text = f"{dataset.where}: {what}, {features}, {method}"
        sink.note("start", text, n=dataset.n, m=dataset.m, method=method)
        sink.note("method", f"{method}: {why}", method=method, why=why)
        if earlier is not None:
            done = earlier.passes(lane or method)
            sink.note("resume", f"going on after pass {done:.4g} and {earlier.seconds:.1f} s", passes=done)


def tell(sinks: Sequence[Sink], found: Projection) -> None:
    """Say what the run will take."""
    for sink in sinks:
        sink.note("projection", str(found), **found.to_json())


def say(progress: bool, text: str) -> None:
    """A line on stderr, where progress is shown: of what comes before a run has sinks."""
    if progress and sys.stderr is not None:
        Output(sys.stderr).write(f"{visible(text)}\n")
