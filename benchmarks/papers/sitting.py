"""A sitting: runs that were not begun, the shortest first, then those that were put aside, until its time is over."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

import dfeas
from benchmarks.papers.effort import MOST_ITERATIONS, MOST_SECONDS, estimate
from benchmarks.papers.instances import LAP, Group, arrays
from benchmarks.papers.record import ASIDE, TIMEOUT, Key, Record, Run
from dfeas.answers.result import Result

LDFP_EPS, LAP_EPS = 1e-9, 1e-3
"""No run on separable points is to end because the margin is small. What the paper took for infeasible ones it does not say."""
KEPT = 5_000_000
"""Instances of so many entries and more have runs that are kept in a folder, and go on from their last checkpoint."""
LEAST_NOTE = 20.0
"""Processor seconds between two notes of what a run has had: a kill loses so many at most."""
READS = {"ispvn": 2}
"""Of a step, where it is not one."""


class Limits(NamedTuple):
    """When a sitting ends, and when it puts a run aside."""

    end: float  # of time.monotonic
    slice: float  # processor seconds of one visit
    passes: int  # of a run, in this sitting


class Meter:
    """Processor seconds that a run had, in a file beside it, and whether it is to be put aside."""

    def __init__(self, file: Path, limits: Limits, ended: Callable[[], bool]) -> None:
        self._file, self._limits, self._ended = file, limits, ended
        self._before = json.loads(file.read_text()) if file.exists() else 0.0
        self._began = self._noted = time.process_time()

    @property
    def seconds(self) -> float:
        return self._before + time.process_time() - self._began

    def __call__(self, record: Any) -> bool:
        """Whether the run is to stop after this read."""
        now = time.process_time()
        if now - self._noted > LEAST_NOTE and self._file.parent.exists():
            self.note()
        visit_over = now - self._began > self._limits.slice or time.monotonic() > self._limits.end
        return visit_over or self.seconds > MOST_SECONDS or self._ended()

    def note(self) -> None:
        self._noted = time.process_time()
        self._file.write_text(json.dumps(self.seconds))


@contextmanager
def asked_to_end() -> Iterator[Callable[[], bool]]:
    """Whether a signal came; a second one is not waited for."""
    came: list[int] = []
    names = (signal.SIGTERM, signal.SIGINT)
    before = {name: signal.getsignal(name) for name in names}

    def take(number: int, frame: Any) -> None:
        came.append(number)
        signal.signal(number, before[signal.Signals(number)])

    for name in names:
        signal.signal(name, take)
    try:
        yield lambda: bool(came)
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


@dataclass(frozen=True)
class Plan:
    """What is to be run; which of it comes next follows from what is on record."""

    groups: list[Group]
    methods: list[str]
    seeds: int

    def next_key(self, record: Record, visited: set[Key]) -> Key | None:
        """Of the runs that were not begun the one with the least effort, times the instances of its cell that come before it;
        then, of those that were put aside, the one that had the least.
        """
        effort = estimate(record, self.groups, self.methods)
        keys = [(group, method, seed) for group, method in effort for seed in range(self.seeds)]
        new = [key for key in keys if key not in record.runs]
        if new:
            return min(new, key=lambda key: (key[2] + 1) * effort[key[0], key[1]])
        aside = [key for key in keys if not record.runs[key].ended and key not in visited]
        return min(aside, key=lambda key: record.runs[key].processor, default=None)


def sit(record: Record, plan: Plan, folder: Path, limits: Limits) -> None:
    """Visit runs until the sitting ends, each once."""
    visited: set[Key] = set()
    with asked_to_end() as ended:
        while not ended() and time.monotonic() < limits.end:
            key = plan.next_key(record, visited)
            if key is None:
                break
            visited.add(key)
            run = visit(key, folder, limits, ended)
            record.add(run)
            done = f"{run.ending}, {run.iterations} iterations, {run.processor:.1f} s"
            print(f"{run.part} {run.group.title}, seed {run.seed}, {run.method}: {done}", flush=True)


def visit(key: Key, folder: Path, limits: Limits, ended: Callable[[], bool]) -> Run:
    """Begin a run, or go on with it."""
    group, method, seed = key
    X, labels = arrays(group, seed)
    place = folder / f"{group.part}-{group.m}-{group.n}-{group.kappa}-{seed}-{method}"
    kept, goes_on = X.size >= KEPT, any(place.glob("run/checkpoint/*.state"))
    if kept and not goes_on:
        rmtree(place, ignore_errors=True)  # of a kill before the first checkpoint
        place.mkdir(parents=True)
    meter, passes = Meter(place / "processor.json", limits, ended), limits.passes * READS.get(method, 1)
    if goes_on:
        result = dfeas.resume(place / "run", X, labels, max_passes=passes, callback=meter)
    else:
        eps, out = LAP_EPS if group.part == LAP else LDFP_EPS, place / "run" if kept else None
        result = dfeas.solve(
            X, labels, intercept=False, method=method, eps=eps, max_passes=passes, out=out, callback=meter
        )  # fmt: skip
    assert isinstance(result, Result)
    ending = _ending(result, meter.seconds, limits.passes)
    if kept and ending == ASIDE:
        meter.note()
    elif kept:
        rmtree(place)
    return Run(
        *group, seed, method, ending, result.iterations, round(result.passes, 3), round(meter.seconds, 3),
        result.margin_lower, result.margin_upper,
    )  # fmt: skip


def _ending(result: Result, seconds: float, passes: int) -> str:
    if result.success:
        return result.verdict
    if seconds > MOST_SECONDS or (result.stopped == "pass_limit" and passes >= MOST_ITERATIONS):
        return TIMEOUT
    return ASIDE if result.stopped in ("pass_limit", "interrupted") else result.stopped
