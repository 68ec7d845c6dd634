"""The in-process engine: threads that each read and scan a range of blocks at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Any, TypeVar

from dfeas.data.dataset import Dataset
from dfeas.data.storage.readers import Cost
from dfeas.data.storage.scratch import Scratch
from dfeas.engine.pairs import join_pairs, pairs_of, scan_pairs
from dfeas.engine.ranges import cut, fold_blocks, join, parts, pieces, scan_range
from dfeas.engine.tile_cache import TileCache
from dfeas.linalg.blas import one_thread, processors
from dfeas.passes.protocol import OnPairs, OnVectors, Ordered, Question

R = TypeVar("R")

RANGES_PER_THREAD = 4
"""More ranges than threads, so that a slow one does not hold the pass up."""


class LocalEngine:
    """Runs passes in this process."""

    def __init__(self, dataset: Dataset, threads: int | None = None, scratch: Scratch | None = None) -> None:
        self.dataset = dataset
        self.scratch = scratch
        self._threads = threads or processors()
        self.parallel = max(1, min(self._threads, dataset.blocks))
        self.cost = Cost()
        self.tile_cache: TileCache | None = None  # what questions to pairs can use again
        self._stop = Event()
        self._pool = ThreadPoolExecutor(self._threads, "dfeas-scan")

    @property
    def shape(self) -> tuple[int, int]:
        return self.dataset.dimension, self.dataset.n

    def run(self, question: Question) -> Any:
        """One read of the data, or of what the question asks."""
        began = perf_counter()
        if isinstance(question, Ordered):
            answer = self._fold(question)
        elif isinstance(question, OnPairs):
            pairs = len(pairs_of(self.dataset, question))
            scanned = self.map(scan_pairs, question, self.tile_cache, count=pairs)
            answer, self.cost, _ = join_pairs(question, scanned)
        else:
            blocks = parts(question)[1]
            count = None if blocks is None else len(blocks)
            answer, self.cost = join(question, self.map(scan_range, question, self.scratch, count=count))
        if isinstance(question, OnVectors) and question.keeps is not None and self.scratch is not None:
            self.scratch.keep(question.keeps)
        self.cost.wall_seconds = perf_counter() - began
        return answer

    def _fold(self, question: Ordered) -> Any:
        """In this thread; a thread or the kernel reads ahead."""
        self.cost = Cost()
        with one_thread():
            blocks = self.dataset.read_blocks(range(self.dataset.blocks), self.cost, keep=True)
            carry = fold_blocks(question.fold, question.fold.start(), blocks, self.cost)
        return question.fold.finish(carry)

    def map(self, function: Callable[..., R], *args: Any, count: int | None = None) -> list[R]:
        """``function(dataset, first, stop, *args, stopped=...)`` over ranges of all blocks, or of ``count``, in order.

        An interrupt waits for no more than the block that each thread looks at: ``stopped()`` is true then.
        """
        self._stop.clear()
        blocks = self.dataset.blocks if count is None else count
        threads = max(1, min(self._threads, blocks))
        more = RANGES_PER_THREAD if threads > 1 else 1
        ranges = cut(blocks, pieces(blocks * self.dataset.block_bytes, threads, more))
        with one_thread():
            if len(ranges) == 1:
                return [function(self.dataset, *ranges[0], *args, stopped=None)]
            stopped = self._stop.is_set
            futures = [self._pool.submit(function, self.dataset, *range_, *args, stopped=stopped) for range_ in ranges]
            try:
                done = wait(futures, return_when=FIRST_EXCEPTION).done
                failed = [future for future in futures if future in done and future.exception() is not None]
                return [future.result() for future in failed or futures]
            except BaseException:
                self._stop.set()
                for future in futures:
                    future.cancel()
                wait(futures)
                raise

    def keep_pairs(self, budget: int, scratch: Path | None = None) -> None:
        """Keep so many bytes of what questions to pairs can use again, and more in a ``scratch`` folder."""
        self.tile_cache = TileCache(budget, scratch)

    def close(self) -> None:
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)
        if self.tile_cache is not None:
            self.tile_cache.close()
