"""Who is told of a run: the caller, the log, its trace, and whoever looks at its progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from dfeas.data.dataset import Dataset
from dfeas.errors import visible
from dfeas.geometry.registry import geometry_of
from dfeas.run.budget import Projection
from dfeas.run.checkpoint.folder import Checkpoint
from dfeas.run.progress import Scoreboard, Terminal, Watched, logger
from dfeas.run.resources import Output, never
from dfeas.run.result_files import TRACE
from dfeas.run.session import Session
from dfeas.run.spec import RunSpec
from dfeas.run.termination import Goal, ProgressRecord, passes_to_gap, remaining_passes
from dfeas.run.trace import RunOptions, Sink, TraceFile


class Callback(Sink):
    """A function of the caller that is given each record, and may end the run: it returns True, or raises StopIteration."""

    def __init__(self, function: Callable[[ProgressRecord], object]) -> None:
        self.function = function
        self.ends = False

    def record(self, record: ProgressRecord) -> None:
        try:
            self.ends = self.function(record) is True or self.ends
        except StopIteration:
            self.ends = True


def run_options(checkpoint_every: float, output: Output) -> RunOptions:
    """With the callback of the caller, if there is one."""
    progress, stop, returns = output.shows_progress, output.stop, output.stop is not never
    if output.callback is None:
        return RunOptions(checkpoint_every, progress, stop, returns=returns)
    sink = Callback(output.callback)
    return RunOptions(checkpoint_every, progress, lambda: sink.ends or stop(), (sink,), returns)


class Log(Sink):
    """What is no progress, by the logging module."""

    def note(self, event: str, text: str, **values: Any) -> None:
        logger.info("%s", visible(text))


def terminal(progress: bool, job: RunSpec) -> Terminal | None:
    """A line of progress on stderr, where it is shown."""
    if not progress or sys.stderr is None:
        return None
    asked = job.asked
    left: Any = partial(remaining_passes, goal=Goal(asked.eps, asked.margin_tolerance))
    return Terminal(sys.stderr, left if job.soft is None else partial(passes_to_gap, goal=asked.eps))


def run_sinks(
    stack: ExitStack, session: Session, job: RunSpec, folder: Path | None, options: RunOptions, earlier: Checkpoint | None
) -> list[Sink]:
    """Those of a job that is one method; the stack closes them."""
    shown = terminal(options.progress, job)
    size = 0 if earlier is None else earlier.traces.get(job.methods[0], 0)
    _watch(session, shown)
    return [*_sinks(stack, session, folder, shown, size), *options.more]


def _watch(session: Session, shown: Sink | None) -> None:
    if isinstance(shown, Watched):
        session.engine.watch(shown.observe)
        session.checking.engine.watch(shown.observe)


def lane_sinks(
    stack: ExitStack,
    session: Session,
    folders: Mapping[str, Path | None],
    board: Scoreboard | None,
    earlier: Checkpoint | None,
    more: Sequence[Sink] = (),
) -> dict[str, list[Sink]]:
    """Those of each of several methods, or classes, that run side by side, with their folders; the stack closes them."""
    sizes = {} if earlier is None else earlier.traces
    _watch(session, next((each for each in (board, *more) if isinstance(each, Watched)), None))
    if board is not None:
        stack.callback(board.close)
    return {
        name: [*_sinks(stack, session, folder, None if board is None else board.row(name), sizes.get(name, 0)), *more]
        for name, folder in folders.items()
    }


def _sinks(stack: ExitStack, session: Session, folder: Path | None, shown: Sink | None, size: int) -> list[Sink]:
    """The trace in a folder, which goes on after ``size`` bytes, what is shown, and the log of the cluster."""
    sinks: list[Sink] = []
    if folder is not None:
        folder.mkdir(exist_ok=True)
        sinks.append(TraceFile(folder / TRACE, size))
    if shown is not None:
        sinks.append(shown)
    for sink in sinks:
        stack.callback(sink.close)
    sinks.append(Log())
    return sinks if session.log is None else [*sinks, session.log]


def report_start(
    sinks: Sequence[Sink], dataset: Dataset, method: str, why: str, earlier: Checkpoint | None, lane: str = ""
) -> None:
    """Say what begins, or goes on; ``lane`` is its name in the job, if that is not the method's."""
    features = f"{dataset.m} features{' and an intercept' if dataset.intercept else ''}"
    if dataset.transform is not None:
        features += f", {dataset.transform.words}"
    what = geometry_of(dataset).describe(dataset)
    for sink in sinks:
        text = f"{dataset.where}: {what}, {features}, {method}"
        sink.note("start", text, n=dataset.n, m=dataset.m, method=method)
        sink.note("method", f"{method}: {why}", method=method, why=why)
        if earlier is not None:
            done = earlier.passes(lane or method)
            sink.note("resume", f"going on after pass {done:.4g} and {earlier.seconds:.1f} s", passes=done)


def report_cost(sinks: Sequence[Sink], projection: Projection, **circumstances: Any) -> None:
    """Say what the run will take; its circumstances stand beside that in the trace."""
    for sink in sinks:
        sink.note("projection", str(projection), **projection.to_json(), **circumstances)
