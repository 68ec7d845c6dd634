"""What runs take: iterations and processor seconds of what was not run, extrapolated from what was."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.papers.instances import LDFP, SIZES, Group
from benchmarks.papers.record import Record, Run

MOST_ITERATIONS = 1_000_000
MOST_SECONDS = 50_000.0
"""The paper's limits of a run. Its seconds are counted as those of the processor."""

_FIRST = np.log(SIZES[0])
_SURENESS = 0.1
"""Weight of what is assumed beside one measured mean: iterations grow like n, work of an iteration like m n."""


class Effort:
    """Powers of m and n, of each part and method, by least squares over the means that were measured."""

    def __init__(self, record: Record, part: str, method: str) -> None:
        runs = [run for run in record.runs.values() if (run.part, run.method) == (part, method) and run.iterations]
        found = {group: [run for run in runs if run.group == group] for group in {run.group for run in runs}}
        self.iterations = _fit(
            {group: _expect(some) for group, some in found.items()}, (500.0, 0.0, 1.0 if part == LDFP else 0.0)
        )
        self.work = _fit(
            {group: np.mean([run.processor / run.iterations for run in some]) for group, some in found.items()},
            (2e-3, 1.0, 1.0),
        )

    def seconds(self, group: Group) -> float:
        """Processor seconds of one run, at most those of the paper's limits."""
        return min(self.work(group) * min(self.iterations(group), MOST_ITERATIONS), MOST_SECONDS)


def _expect(runs: list[Run]) -> float:
    """Mean iterations of runs with a verdict; where there is none, twice what the longest had."""
    solved = [run.iterations for run in runs if run.solved]
    return float(np.mean(solved)) if solved else 2.0 * max(run.iterations for run in runs)


def _fit(found: dict[Group, float], assumed: tuple[float, float, float]) -> Callable[[Group], float]:
    """c m^p n^q, in units of the first size."""
    prior = np.array([np.log(assumed[0]), *assumed[1:]])
    rows = [_place(group) for group in found]
    left = np.array([*rows, *(_SURENESS * np.eye(3))])
    right = np.array([*np.log(list(found.values())), *(_SURENESS * prior)])
    powers = np.linalg.lstsq(left, right)[0]
    return lambda group: float(np.exp(np.dot(_place(group), powers)))


def _place(group: Group) -> list[float]:
    return [1.0, *(np.log((group.m, group.n)) - _FIRST)]


def estimate(record: Record, groups: list[Group], methods: list[str]) -> dict[tuple[Group, str], float]:
    """Processor seconds of one run of each."""
    effort = {(part, method): Effort(record, part, method) for part in {group.part for group in groups} for method in methods}
    return {(group, method): effort[group.part, method].seconds(group) for group in groups for method in methods}


def remaining(record: Record, groups: list[Group], methods: list[str], seeds: int) -> dict[tuple[Group, str], float]:
    """Processor seconds of what has not ended."""
    left = {}
    for (group, method), each in estimate(record, groups, methods).items():
        runs = record.of(group, method)
        had = sum(each if run.ended else min(each, run.processor) for run in runs)
        left[group, method] = max(0.0, seeds * each - had) if sum(run.ended for run in runs) < seeds else 0.0
    return left
