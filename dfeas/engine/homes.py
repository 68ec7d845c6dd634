"""Homes: which worker went through which blocks in the last pass, and may have them in its cache.

A home is a wish. The scheduler gives a task to someone else when its home is gone or busy, and that worker is the home then.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

Range = tuple[int, int]


class Homes:
    """Workers of ranges of blocks."""

    def __init__(self) -> None:
        self._stops: list[int] = []  # of the ranges of the last pass, ascending
        self._workers: list[str] = []  # who went through each

    @property
    def known(self) -> bool:
        """Whether there was a pass."""
        return bool(self._workers)

    def remember(self, ranges: Sequence[Range], workers: Sequence[str]) -> None:
        """Who went through which range; the ranges cover all blocks in order."""
        self._stops, self._workers = [stop for _, stop in ranges], list(workers)

    def place(self, ranges: Sequence[Range], threads: Mapping[str, int]) -> list[str]:
        """A worker for each range, from workers and their threads.

        It is the one that had the middle of the range, unless it is gone or has its share already: no worker gets more ranges
        than its threads are worth.
        """
        total = sum(threads.values())
        share = {worker: -(-len(ranges) * count // total) for worker, count in threads.items()}
        given = dict.fromkeys(threads, 0)
        placed: list[str | None] = []
        for first, stop in ranges:
            home = self._home((first + stop) // 2)
            if home is not None and given.get(home, 0) < share.get(home, 0):
                given[home] += 1
                placed.append(home)
            else:
                placed.append(None)
        found = []
        for worker in placed:
            if worker is None:
                worker = min(given, key=lambda w: given[w] / threads[w])
                given[worker] += 1
            found.append(worker)
        return found

    def _home(self, block: int) -> str | None:
        at = bisect_right(self._stops, block)
        return self._workers[at] if at < len(self._workers) else None
