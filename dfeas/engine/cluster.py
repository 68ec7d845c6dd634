"""The Dask engine: a pass is a few tasks, each a range of blocks that its worker reads itself."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from threading import Semaphore
from time import perf_counter
from typing import Any, TypeVar

import dask.config
import yaml
from distributed import Client, LocalCluster, get_worker, worker_client
from distributed.client import FutureCancelledError
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker, NoValidWorkerError, NoWorkerError

from dfeas.blas import controller
from dfeas.engine.homes import Homes
from dfeas.engine.ranges import cut, fold_blocks, join, parts, scan_range
from dfeas.errors import ClusterLostError, CorruptDataError, UsageError
from dfeas.passes import Fold, OnVectors, Ordered, Question
from dfeas.passes.block import Block
from dfeas.store import Dataset, Source
from dfeas.store.opened import forget, open_cached
from dfeas.store.reading import Cost
from dfeas.store.scratch import Scratch

R = TypeVar("R")

logger = logging.getLogger("dfeas")

RANGES_PER_THREAD = 2
TRIES = 3
CONNECT_SECONDS = 10
LOOK_SECONDS = 5.0
"""How often a waiting driver looks whether the cluster is still there."""
PATIENCE_SECONDS = 600.0
"""How long it waits for a worker when there is none."""
FOLD_BYTES = 32 << 20
"""What a worker reads ahead for a fold, at a time."""
CARRY_SHARE = 12
"""A carry of more than this share of the cache, of which a worker has several copies, gets the memory of the cache."""
FORGET_SECONDS = 5.0
"""How long the end of a run waits for workers to forget its blocks."""
INLINE_BYTES = 1 << 16
"""Questions up to this size travel in each task; larger ones are scattered once a pass."""


# CommClosedError and TimeoutError are OSErrors
LOST = (OSError, FutureCancelledError, KilledWorker, NoValidWorkerError, NoWorkerError)
"""What Dask raises when workers or the scheduler went away."""


def configuration() -> dict[str, Any]:
    """The Dask configuration that we ship, by dotted names."""
    text = resources.files("dfeas.engine").joinpath("dask.yaml").read_text()
    return dict(_flat("", yaml.safe_load(text)))


def _flat(prefix: str, values: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(values, dict):
        yield prefix, values
        return
    for name, value in values.items():
        yield from _flat(f"{prefix}.{name}" if prefix else name, value)


@contextmanager
def local_cluster(workers: int) -> Iterator[Client]:
    """A client of a LocalCluster of single-threaded processes; everything listens on loopback only.

    Raises ClusterLostError when it does not start.
    """
    with dask.config.set({**configuration(), "distributed.worker.preload": ["dfeas.engine.uninterrupted"]}):
        try:
            started = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                memory_limit=0,
            )
        except (RuntimeError, OSError) as error:
            raise ClusterLostError(f"a cluster of {workers} worker processes did not start here: {_line(error)}") from None
        with started as cluster, Client(cluster) as client:
            yield client


@contextmanager
def connect(address: str | None = None, scheduler_file: str | None = None) -> Iterator[Client]:
    """A client of a running scheduler. Raises UsageError when it does not answer, or when versions differ."""
    where = address or scheduler_file
    if scheduler_file is not None:
        try:
            address = json.loads(Path(scheduler_file).read_text())["address"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"no Dask scheduler answers at {where}: not a scheduler file: {_line(error)}") from None
    if not isinstance(address, str) or not address:
        raise UsageError(f"no Dask scheduler answers at {where!r}: expected an address such as tcp://host:8786")
    try:
        client = Client(address, timeout=CONNECT_SECONDS)
    except (TimeoutError, OSError, ValueError, TypeError, RuntimeError) as error:
        raise UsageError(f"no Dask scheduler answers at {where}: {_line(error)}; is it running and reachable?") from None
    with client:
        try:
            client.get_versions(check=True)
        except ValueError as error:
            raise UsageError(f"Dask versions differ between here and {where}: {_line(error)}") from None
        yield client


@contextmanager
def inside() -> Iterator[Client]:
    """The client of a task that runs on a worker; while it waits, its thread is given to other tasks."""
    with worker_client() as client:
        yield client


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


@lru_cache(maxsize=1)
def _one_blas_thread() -> None:
    """For the whole life of a worker process: its threads would undo each other's limits."""
    controller().limit(limits=1, user_api="blas")


def _on_worker(function: Callable[..., R], source: Source, first: int, stop: int, args: tuple[Any, ...]) -> tuple[str, R]:
    """Who did it, and the answer."""
    _one_blas_thread()
    return get_worker().address, function(open_cached(source), first, stop, *args)


@dataclass(frozen=True)
class _Held:
    """Blocks that a worker has read and waits to fold."""

    blocks: list[Block]
    cost: Cost

    def __sizeof__(self) -> int:
        """Bytes of the points, so that the scheduler brings the carry to them."""
        return sum(block.points.nbytes for block in self.blocks)


def _read_range(source: Source, first: int, stop: int) -> _Held:
    """Read some blocks, and hold them: buffers are used again, so points are copied, except those of the cache."""
    _one_blas_thread()
    cost = Cost()
    dataset = open_cached(source)
    kept = dataset.cache if dataset.cache is not None else ()
    held = []
    for index, block in zip(range(first, stop), dataset.read_blocks(range(first, stop), cost, keep=True), strict=True):
        copied = block if index in kept else replace(block, points=block.points.copy(), sides=block.sides.copy())
        held.append(copied)
    return _Held(held, cost)


def _first_carry(fold: Fold[Any, Any]) -> tuple[Any, Cost]:
    return fold.start(), Cost()


def _fold_range(source: Source, fold: Fold[Any, Any], link: tuple[Any, Cost], held: _Held) -> tuple[Any, Cost]:
    """The next carry, and all cost so far."""
    _one_blas_thread()
    carry, before = link
    cost = Cost()
    cost.add(before)
    cost.add(held.cost)
    carry = fold_blocks(fold, carry, iter(held.blocks), cost)
    cache = open_cached(source).cache
    if cache is not None and CARRY_SHARE * _size(carry) > cache.budget:
        cache.close()
    return carry, cost


class DaskEngine:
    """Runs passes on the workers of a Dask cluster, which must see the data under the same path."""

    def __init__(self, client: Client, source: Source, dataset: Dataset, scratch: Scratch | None = None) -> None:
        self.client = client
        self.dataset = dataset
        self.scratch = scratch
        mark = "" if dataset.header is None else dataset.fingerprint
        self.source = replace(source, run=uuid.uuid4().hex, fingerprint=mark)
        self.cost = Cost()
        self._homes = Homes()
        self._workers: dict[str, int] = {}  # threads of each, when the last pass began
        self._sent = 0

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n) of A."""
        return self.dataset.dimension, self.dataset.n

    @property
    def parallel(self) -> int:
        """Threads of all workers when the last pass began."""
        return max(1, sum(self._workers.values()))

    def _look(self) -> dict[str, int]:
        """Threads of each worker now; waits for the first. Raises ClusterLostError when none comes."""
        while not (found := {str(worker): int(threads) for worker, threads in self.client.nthreads().items()}):
            logger.warning("no Dask worker; waiting for one")
            try:
                self.client.wait_for_workers(1, timeout=PATIENCE_SECONDS)
            except TimeoutError:
                raise ClusterLostError("the Dask cluster has no workers; start some with dask worker") from None
        return found

    def run(self, question: Question) -> Any:
        """One read of the data, or of what the question asks."""
        began = perf_counter()
        if isinstance(question, Ordered):
            answer, self.cost = self._persist(lambda: self._fold(question.fold))
            self._compare(None)
        else:
            blocks = parts(question)[1]
            count = None if blocks is None else len(blocks)
            answer, self.cost = join(question, self.map(scan_range, question, self.scratch, count=count))
            if not isinstance(question, OnVectors) or question.points:
                self._compare(blocks)
        if isinstance(question, OnVectors) and question.keeps is not None and self.scratch is not None:
            self.scratch.keep(question.keeps)
        self.cost.wall_seconds = perf_counter() - began
        return answer

    def map(self, function: Callable[..., R], *args: Any, count: int | None = None) -> list[R]:
        """``function(dataset, first, stop, *args)`` over ranges of all blocks, or of ``count``, in order.

        Lost work is asked for again.
        """
        return self._persist(lambda: self._attempt(function, args, count))

    def _compare(self, blocks: Sequence[int] | None) -> None:
        """Raise CorruptDataError when workers did not read what the survey saw."""
        if self.dataset.seen(blocks) not in (None, self.cost.seen):
            raise CorruptDataError(
                f"{self.dataset.where}: workers read other points or labels than at the start of the run; "
                "let all of them see the same data, leave it alone during a run, and run again"
            )

    def _persist(self, attempt: Callable[[], R]) -> R:
        """What an attempt returns; lost work is asked for again. Raises ClusterLostError in the end."""
        last: BaseException | None = None
        for _ in range(TRIES):
            try:
                return attempt()
            except LOST as error:
                last = error
            if self.client.status != "running":
                break
        raise ClusterLostError(f"the Dask cluster was lost: {_line(last or TimeoutError())}")

    def _begin(self) -> None:
        """Before tasks are sent."""
        if self.client.status != "running":
            raise CommClosedError("the scheduler does not answer any more")
        self._sent += 1
        self._workers = self._look()

    @property
    def _fold_bytes(self) -> int:
        """What is held for a fold is small beside the cache, but not so small that the carry travels all the time."""
        kept = self.source.cache_bytes
        return min(FOLD_BYTES, max(FOLD_BYTES // 4, kept // 16)) if kept else FOLD_BYTES

    def _fold(self, fold: Fold[Any, Any]) -> tuple[Any, Cost]:
        """The carry travels, the points do not: ranges are read ahead by all workers, and folded where they were read."""
        self._begin()
        ahead = self.parallel * RANGES_PER_THREAD
        ranges = cut(self.dataset.blocks, -(-self.dataset.bytes // self._fold_bytes))
        homes = self._homes.place(ranges, self._workers)
        if not self._homes.known:
            self._homes.remember(ranges, homes)
        mark = f"dfeas-{self.source.run[:8]}-{self._sent}"
        reads: dict[int, Any] = {}
        link = self.client.submit(_first_carry, fold, key=f"{mark}-carry", pure=False)
        try:
            for i in range(len(ranges)):
                for j in range(len(reads) and max(reads) + 1, min(i + ahead, len(ranges))):
                    key, options = f"{mark}-read-{j}", _wish(homes[j])
                    reads[j] = self.client.submit(_read_range, self.source, *ranges[j], key=key, pure=False, **options)
                link = self.client.submit(_fold_range, self.source, fold, link, reads[i], key=f"{mark}-fold-{i}", pure=False)
                self._wait([link])
                reads[i] = None
            carry, cost = self.client.gather(link)
        except BaseException:
            if self.client.status == "running":
                self.client.cancel([link, *(read for read in reads.values() if read is not None)], force=True)
            raise
        return fold.finish(carry), cost

    def _attempt(self, function: Callable[..., R], args: tuple[Any, ...], count: int | None) -> list[R]:
        self._begin()
        ranges = cut(self.dataset.blocks if count is None else count, self.parallel * RANGES_PER_THREAD)
        wishes = [_wish(home) for home in self._homes.place(ranges, self._workers)] if count is None else [{}] * len(ranges)
        sent: Any = args
        if sum(_size(a) for a in args) > INLINE_BYTES:
            sent = self.client.scatter([args], hash=False)[0]
        futures = [
            self.client.submit(
                _on_worker,
                function,
                self.source,
                first,
                stop,
                sent,
                key=f"dfeas-{self.source.run[:8]}-{self._sent}-{first}",
                pure=False,
                **wish,
            )
            for (first, stop), wish in zip(ranges, wishes, strict=True)
        ]
        try:
            self._wait(futures)
            done: list[tuple[str, R]] = self.client.gather(futures)
        except BaseException:
            if self.client.status == "running":
                self.client.cancel(futures, force=True)
            raise
        if count is None:
            self._homes.remember(ranges, [worker for worker, _ in done])
        return [answer for _, answer in done]

    def _wait(self, futures: list[Any]) -> None:
        """Wait outside the client's event loop, so that an interrupt leaves no half-finished coroutine in it.

        Raises ClusterLostError when the scheduler is gone, or when there has been no worker for ``PATIENCE_SECONDS``.
        """
        settled = Semaphore(0)
        for future in futures:
            future.add_done_callback(lambda _: settled.release())
        alone = 0.0
        for _ in futures:
            while not settled.acquire(timeout=LOOK_SECONDS):
                if self.client.status != "running":
                    raise CommClosedError("the scheduler does not answer any more")
                alone = 0.0 if self.client.nthreads() else alone + LOOK_SECONDS
                if alone == LOOK_SECONDS:
                    logger.warning("the Dask cluster has lost all workers; waiting for new ones")
                if alone > PATIENCE_SECONDS:
                    raise ClusterLostError(f"the Dask cluster has had no worker for {PATIENCE_SECONDS:.0f} s")

    def close(self) -> None:
        """Let the workers forget the blocks of this run; one that does not answer soon is left alone."""
        if self.client.status != "running" or not self.source.cache_bytes:
            return
        settled, asked = Semaphore(0), []
        for worker in self._workers:
            key = f"dfeas-{self.source.run[:8]}-forget-{worker}"
            asked.append(self.client.submit(forget, self.source.run, key=key, pure=False, **_wish(worker)))
            asked[-1].add_done_callback(lambda _: settled.release())
        deadline = perf_counter() + FORGET_SECONDS
        for _ in asked:
            if not settled.acquire(timeout=max(0.0, deadline - perf_counter())):
                break


def _wish(worker: str) -> dict[str, Any]:
    """Options of a task that should go to a worker. Never an order: a task that must wait for a worker that died hangs."""
    return {"workers": [worker], "allow_other_workers": True}


def _size(value: Any) -> int:
    """Bytes of the arrays in a pass or an argument, near enough."""
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if isinstance(value, tuple | list):
        return sum(_size(v) for v in value)
    names = getattr(value, "__dataclass_fields__", ())
    return sum(_size(getattr(value, name)) for name in names)
