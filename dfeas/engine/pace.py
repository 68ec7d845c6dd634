"""Tasks of a pass, and how long workers take for them beside each other: what goes to a second worker, and who rests."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, median_low
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distributed import Future

LATE_SECONDS = 5.0
"""No range is late before that, and a worker may cost that much beside others before it rests."""
LATE_TIMES = 4.0
"""A range is late when it has taken so many times as long as those that are done, in the middle."""
REST_SECONDS = 60.0
"""How long a worker that held passes up gets no ranges; each time it is twice as long."""


class Pace:
    """What was seen of the workers of a run. Seconds are those since the tasks of a pass were sent."""

    def __init__(self) -> None:
        self.usual = LATE_SECONDS  # for a range, in the last pass
        self._lag: dict[str, float] = {}  # seconds that a worker has cost in its last passes
        self._rests: dict[str, tuple[float, float]] = {}  # until when, and for how long

    def is_late(self, seconds: float, done: Collection[float]) -> bool:
        """Whether what has not ended after so long is late beside what has."""
        return seconds > max(LATE_SECONDS, LATE_TIMES * (median(done) if done else self.usual))

    def note(self, took: Mapping[str, float]) -> None:
        """How long each worker took for its ranges of a pass."""
        self.usual = median_low(took.values())
        for worker, seconds in took.items():
            excess = seconds - LATE_TIMES * self.usual
            self._lag[worker] = self._lag.get(worker, 0.0) + excess if excess > 0 else 0.0
            if self._lag[worker] > LATE_SECONDS:
                self.rest(worker)

    def rest(self, worker: str) -> None:
        until, seconds = self._rests.get(worker, (-math.inf, REST_SECONDS / 2))
        if until <= monotonic():
            self._rests[worker], self._lag[worker] = (monotonic() + 2 * seconds, 2 * seconds), 0.0

    def fit(self, threads: Mapping[str, int]) -> dict[str, int]:
        """Workers that do not rest; all of them when all do."""
        now = monotonic()
        return {w: n for w, n in threads.items() if self._rests.get(w, (now, 0.0))[0] <= now} or dict(threads)


@dataclass
class Sent:
    """Tasks, each at a home where nobody takes it from. What has homes can be sent again."""

    futures: list[Future]
    sizes: Sequence[int]  # blocks of each
    homes: list[str] = field(default_factory=list)
    send: Callable[[int, str, str], Future] | None = None  # a task anew: which one, what its key ends with, its home
    bound: Collection[str] = ()  # workers that may have what all tasks need
    earlier: Sequence[float] = ()  # what such tasks took before
    copies: dict[int, tuple[Future, str]] = field(default_factory=dict)  # of what is late, and their homes
    began: float = field(default_factory=monotonic)
    ended: dict[str, float] = field(default_factory=dict)  # when, by key
    again: int = 0  # how many were sent anew
    deaths: Counter[int] = field(default_factory=Counter)  # of workers at each

    @property
    def done(self) -> int:
        return sum(size for size, future in zip(self.sizes, self.futures, strict=True) if future.done())

    def send_anew(self, i: int, home: str) -> tuple[Future, str]:
        assert self.send is not None, "what has a home can be sent"
        self.again += 1
        return self.send(i, f"{i}-again-{self.again}", home), home

    def find_late(self, pace: Pace, threads: Mapping[str, int]) -> list[tuple[int, str]]:
        """What is late, or at a worker that rests, each with another worker that has nothing to do."""
        late = bool(self.homes) and pace.is_late(monotonic() - self.began, [*self.earlier, *self._took.values()])
        fit = pace.fit(threads)
        waiting = {i: home for i, home in enumerate(self.homes) if (late or home not in fit) and not self.futures[i].done()}
        if not waiting:
            return []
        busy = {home for i, home in enumerate(self.homes) if not self.futures[i].done()} | {
            home for _, home in self.copies.values()
        }
        idle = [worker for worker, many in fit.items() if worker not in busy for _ in range(many)]
        return list(zip(waiting.keys() - self.copies.keys(), idle, strict=False))

    @property
    def _took(self) -> dict[int, float]:
        ended = {i: self.ended.get(future.key) for i, future in enumerate(self.futures)}
        return {i: end - self.began for i, end in ended.items() if end is not None}

    def replace_gone(self, pace: Pace, threads: Mapping[str, int]) -> list[Future]:
        """Send what is at workers that are gone to others, or let its copy stand for it; returns what nobody wants then."""
        unwanted, load = [], Counter(dict.fromkeys(pace.fit(threads), 0))
        for i, home in enumerate(self.homes):
            if i in self.copies and self.copies[i][1] not in threads:
                unwanted.append(self.copies.pop(i)[0])
            if home not in threads:
                unwanted.append(self.futures[i])
                self.deaths[i] += not self.futures[i].done()
                least = min(load, key=load.__getitem__)
                self.futures[i], self.homes[i] = self.copies.pop(i) if i in self.copies else self.send_anew(i, least)
            load[self.homes[i]] += 1
        return unwanted

    def decide(self, pace: Pace) -> list[Future]:
        """Let the first of two answers count; returns the tasks whose answers do not. Who held the others up rests."""
        took, now, lost, slowest = self._took, monotonic() - self.began, [], dict[str, float]()
        for i, home in enumerate(self.homes):
            copy, other = self.copies.pop(i, (None, home))
            if copy is None:
                slowest[home] = max(slowest.get(home, 0.0), took.get(i, now))
                continue
            if copy.done() and not self.futures[i].done():
                copy, self.futures[i], self.homes[i] = self.futures[i], copy, other
                pace.rest(home)
            lost.append(copy)
        if len(slowest) > 1 and not self.again:
            pace.note(slowest)
        return lost
