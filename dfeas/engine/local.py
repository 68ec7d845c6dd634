"""The in-process engine: threads that each read and scan a range of blocks at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from threading import Event, Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from dfeas.data.dataset import Dataset
from dfeas.data.storage.patience import wait_by
from dfeas.data.storage.readers import Buffers, Cost, StoppedError
from dfeas.data.storage.scratch import Scratch
from dfeas.engine.memory import threads_that_fit
from dfeas.engine.ranges import RangeEngine
from dfeas.engine.scan import RangeMerge, cut, fold_blocks, parts, pieces, scan_pairs
from dfeas.engine.signals import LOOK_SECONDS, interrupts_held, pause, raise_held
from dfeas.linalg.blas import beat, hear_first, heard, one_thread
from dfeas.machine import threads_here
from dfeas.passes.block import Block
from dfeas.passes.protocol import Fold, OnPairs, OnVectors, Partial, Question, sums_bytes, width

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from dfeas.engine.tile_cache import TileCache

R = TypeVar("R")

SMALL_BYTES = 16 << 20
"""Of points in memory that one thread looks at: 8 MB and a thread for the solver took a fifth of a solve more with two."""


@contextmanager
def _interrupts_at_beats() -> Iterator[None]:
    """What comes between two beats of this thread waits for the next: it would break the locks of a pool, for good."""
    with interrupts_held(), hear_first(lambda text: raise_held()):
        yield


class _Begun:
    """Asked before each block whether to stop; how many blocks were begun with."""

    def __init__(self, stop: Event, told: Callable[[int], None] | None = None) -> None:
        self.blocks = 0
        self._stop, self._told, self._lock = stop, told, Lock()

    def __call__(self) -> bool:
        with self._lock:
            self.blocks += 1
        if self._told is not None:
            self._told(self.blocks - 1)
        return self._stop.is_set()


class LocalEngine(RangeEngine):
    """Runs passes in this process."""

    def __init__(
        self, dataset: Dataset, threads: int | None = None, scratch: Scratch | None = None, answer_bytes: int = sys.maxsize
    ) -> None:
        self.dataset = dataset
        self.scratch = scratch
        self._answer_bytes = answer_bytes  # for sums of all threads; one alone may take more
        self._threads = threads or threads_here()
        self.parallel = max(1, min(self._threads, dataset.blocks))
        self.cost = Cost()
        self.tile_cache: TileCache | None = None  # what questions to pairs can use again
        self._stop, self._long = Event(), Event()

    @property
    def _is_short(self) -> bool:
        """Whether all is one block of points in memory, of which ranges, threads and signals take more than the scan."""
        return self.dataset.blocks == 1 and self.dataset.in_memory and self.dataset.kind == "points"

    @property
    def _is_small(self) -> bool:
        """Whether points in memory are so few that other processors take longer to fetch them than this one to look at them."""
        return self.dataset.in_memory and self.dataset.kind == "points" and self.dataset.bytes <= SMALL_BYTES

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(self._threads, "dfeas-scan")

    def _fold(self, fold: Fold[Any, Any]) -> tuple[Any, Cost]:
        """In this thread; a thread or the kernel reads ahead."""
        cost = Cost()
        with _interrupts_at_beats(), one_thread(), wait_by(pause):
            blocks = self.dataset.read_blocks(range(self.dataset.blocks), cost, keep=True)
            carry = fold_blocks(fold, fold.start(), self._observe_blocks(blocks), cost)
        return fold.finish(carry), cost

    def _observe_blocks(self, blocks: Iterator[Block]) -> Iterator[Block]:
        for done, block in enumerate(blocks):
            raise_held()
            self.observe(done, self.dataset.blocks)
            yield block

    def _scan(self, question: Question, count: int | None) -> tuple[Any, Cost]:
        if self._is_short and not isinstance(question, OnVectors):
            return self._scan_block(parts(question)[0], not isinstance(question, Partial))
        merge, dataset = RangeMerge(question), self.dataset
        each = sums_bytes(dataset.dimension, dataset.blocks, width(parts(question)[0]))
        self._map(self._answer_bytes // max(1, each), merge.scan, (question, self.scratch), count)
        return merge.finish()

    def _scan_block(self, pass_: Any, keep: bool) -> tuple[Any, Cost]:
        """The answer of all points, which are one block."""
        cost, began = Cost(), perf_counter()
        self.observe(0, 1)
        with one_thread():
            block = self.dataset.read(0, Buffers(), cost, keep)
            cost.read_seconds = perf_counter() - began
            answer = pass_.finish(pass_.scan(block))
        cost.scan_seconds = perf_counter() - began - cost.read_seconds
        return answer, cost

    def _scan_pairs(self, question: OnPairs, pairs: int) -> list[tuple[Any, Cost, list[int]]]:
        return self.map(scan_pairs, question, self.tile_cache, count=pairs)

    def _compare(self, blocks: Sequence[int] | None) -> None:
        """This process verifies blocks as it reads them."""

    def map(self, function: Callable[..., R], *args: Any, count: int | None = None) -> list[R]:
        """``function(dataset, first, stop, *args, stopped=...)`` over ranges of all blocks, or of ``count``, in order. An
        interrupt waits for no more than the block that each thread looks at: ``stopped()`` is true then. Where a block takes
        long, it waits for the next ``beat`` of each; whoever hears those of this thread may interrupt there, too.
        """
        return self._map(1 if count is None and self._is_small else self._threads, function, args, count)

    def _map(self, most: int, function: Callable[..., R], args: tuple[Any, ...], count: int | None) -> list[R]:
        blocks = self.dataset.blocks if count is None else count
        if count is None and self._is_short:
            self.observe(0, 1)
            with one_thread():
                return [function(self.dataset, 0, 1, *args, stopped=_Begun(Event()))]
        threads = max(1, min(self._threads, most, blocks))
        # more ranges than threads, so that a slow one does not hold the pass up, or as many as threads run at once
        more = 4 if threads > 1 and self._threads <= most else 1
        ranges = cut(blocks, pieces(blocks * self.dataset.block_bytes, threads, more))
        self.observe(0, blocks)

        def tell(begun: int) -> None:
            raise_held()
            self.observe(begun, blocks)

        with _interrupts_at_beats(), one_thread(), wait_by(pause):
            self._stop.clear()
            if len(ranges) == 1:
                stopped = _Begun(self._stop, tell)
                return [function(self.dataset, *ranges[0], *args, stopped=stopped)]
            stopped = _Begun(self._stop)
            futures = [
                self._pool.submit(self._heard, function, self.dataset, *range_, *args, stopped=stopped) for range_ in ranges
            ]
            try:
                done = self._wait_for(futures, stopped, blocks)
                failed = [future for future in futures if future in done and future.exception() is not None]
                return [future.result() for future in failed or futures]
            except BaseException:
                from concurrent.futures import wait

                self._stop.set()
                for future in futures:
                    future.cancel()
                wait(futures)
                raise

    def _heard(self, function: Callable[..., R], *args: Any, **options: Any) -> R:
        """In a thread of its own; it ends at its next beat when it should."""

        def listen(text: str) -> None:
            self._long.set()
            if self._stop.is_set():
                raise StoppedError

        with heard(listen), wait_by(pause):
            return function(*args, **options)

    def _wait_for(self, futures: Sequence[Future[R]], begun: _Begun, blocks: int) -> set[Future[R]]:
        """Those that have ended, when all have, or one has failed. Who observes, and who hears, is told in this thread."""
        from concurrent.futures import FIRST_EXCEPTION, wait

        while True:
            done, waiting = wait(futures, LOOK_SECONDS, FIRST_EXCEPTION)
            if not waiting or any(future.exception() is not None for future in done):
                return done
            raise_held()
            self.observe(begun.blocks, blocks)
            if self._long.is_set():
                self._long.clear()
                beat()

    def keep_pairs(self, budget: int, scratch: Path | None = None) -> None:
        from dfeas.engine.tile_cache import TileCache

        self.tile_cache = TileCache(budget, scratch)

    def close(self) -> None:
        self._stop.set()
        if "_pool" in vars(self):
            self._pool.shutdown(cancel_futures=True)
        if self.tile_cache is not None:
            self.tile_cache.close()


@contextmanager
def local_engine(dataset: Dataset, memory: int) -> Iterator[LocalEngine]:
    """As many threads as read within so many bytes. Raises UsageError when not even one does."""
    with closing(LocalEngine(dataset, threads_that_fit(dataset, memory, threads_here()))) as engine:
        yield engine
