"""The in-process engine: threads that each read and scan a range of blocks at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event
from time import perf_counter
from typing import Any, TypeVar

from dfeas.blas import one_thread, processors
from dfeas.engine.ranges import cut, join, parts, scan_range
from dfeas.passes import Partial, Pass
from dfeas.store import Dataset
from dfeas.store.reading import Cost

A = TypeVar("A")
R = TypeVar("R")

RANGES_PER_THREAD = 4
"""More ranges than threads, so that a slow one does not hold the pass up."""


class LocalEngine:
    """Runs passes in this process."""

    def __init__(self, dataset: Dataset, threads: int | None = None) -> None:
        self.dataset = dataset
        self.parallel = max(1, min(threads or processors(), dataset.blocks))
        self.cost = Cost()
        self._stop = Event()
        self._pool = ThreadPoolExecutor(self.parallel, "dfeas-scan")

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n) of A."""
        return self.dataset.dimension, self.dataset.n

    def run(self, question: Pass[Any, A] | Partial) -> A:
        """One read of the data, or of some blocks."""
        began = perf_counter()
        blocks = parts(question)[1]
        scanned = self.map(scan_range, question, self._stop.is_set, count=None if blocks is None else len(blocks))
        answer: A
        answer, self.cost = join(question, scanned)
        self.cost.wall_seconds = perf_counter() - began
        return answer

    def map(self, function: Callable[..., R], *args: Any, count: int | None = None) -> list[R]:
        """``function(dataset, first, stop, *args)`` over ranges of all blocks, or of ``count``, in order."""
        self._stop.clear()
        pieces = self.parallel * RANGES_PER_THREAD if self.parallel > 1 else 1
        ranges = cut(self.dataset.blocks if count is None else count, pieces)
        with one_thread():
            if len(ranges) == 1:
                return [function(self.dataset, *ranges[0], *args)]
            futures = [self._pool.submit(function, self.dataset, first, stop, *args) for first, stop in ranges]
            try:
                return [future.result() for future in futures]
            except BaseException:
                self._stop.set()
                for future in futures:
                    future.cancel()
                wait(futures)
                raise

    def close(self) -> None:
        """End the threads."""
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)
