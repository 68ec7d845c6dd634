"""What workers do: open data once, scan a range of blocks, or read some and fold them in order."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import dask
from distributed import Worker, get_worker
from tornado.ioloop import PeriodicCallback

from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source
from dfeas.data.source import Source
from dfeas.data.storage.patience import SHORT_SECONDS, wait_by
from dfeas.data.storage.readers import Cost
from dfeas.engine.clusters import name_worker
from dfeas.engine.memory import cache_bytes
from dfeas.engine.scan import fold_blocks, merge_scans, scan_pairs
from dfeas.engine.tile_cache import TileCache
from dfeas.errors import UsageError
from dfeas.linalg.blas import controller, in_child
from dfeas.linalg.csr import is_csr, nbytes
from dfeas.machine import free_at_once, memory_bytes, used_bytes
from dfeas.passes.block import Block
from dfeas.passes.protocol import OnPairs
from dfeas.records import replace

R = TypeVar("R")

_opened: dict[Source, Dataset] = {}
_tile_caches: dict[str, TileCache] = {}  # by run
_opening, _tile_caches_lock = Lock(), Lock()


def _forget_all() -> None:
    """A forked process opens its own: readers and caches have locks, too, and somebody may have been at work in any."""
    global _opening, _tile_caches_lock
    _opening, _tile_caches_lock = Lock(), Lock()
    _opened.clear()
    _tile_caches.clear()


in_child(_forget_all)

_missed: dict[str, int] = {}  # by run: how often the scheduler did not know its lease


@lru_cache(maxsize=1)
def _one_blas_thread() -> None:
    """For the whole life of a worker process: its threads would undo each other's limits."""
    controller().limit(limits=1, user_api="blas")
    free_at_once()


@contextmanager
def _reading(source: Source) -> Iterator[None]:
    """Raises CorruptDataError, UsageError for credentials, and StorageAwayError soon: the driver waits."""
    _mind(source.run)
    try:
        with wait_by(time.sleep, SHORT_SECONDS):
            yield
    except UsageError as error:
        raise UsageError(f"on a worker: {error}") from None
    except OSError as error:  # also ours of stored data
        raise name_worker(error, source.spec.where) from None


def _room(dataset: Dataset) -> int:
    """Bytes of blocks that this worker may keep: what its own limit leaves, which may be lower than the budget of the run.
    Above that limit Dask pauses a worker, and ends it.
    """
    manager = get_worker().memory_manager
    if not manager.memory_limit:
        return sys.maxsize
    share = manager.memory_pause_fraction or manager.memory_terminate_fraction or 1.0
    left = int(share * min(manager.memory_limit, memory_bytes())) - used_bytes()[1]
    return cache_bytes(dataset, max(0, left), get_worker().state.nthreads, worker=True)


def open_cached(source: Source, room: Callable[[Dataset], int] | None = None) -> Dataset:
    """``open_source``, once a process and run. One dataset of a process keeps blocks: the one that was opened last. It keeps no
    more bytes of them than a process has ``room`` for, where that is limited.
    """
    with _opening:
        dataset = _opened.get(source)
        if dataset is None:
            known = {replace(other, run=source.run, cache_bytes=source.cache_bytes): each for other, each in _opened.items()}
            same = known.get(source) if source.fingerprint else None
            dataset = open_source(source) if same is None else same.without_cache()
            if source.cache_bytes > 0:
                for other in _opened.values():
                    other.kept.close()
                dataset.enable_cache(source.cache_bytes if room is None else min(source.cache_bytes, room(dataset)))
            _opened[source] = dataset
            for oldest in list(_opened)[:-8]:
                del _opened[oldest]
        return dataset


class Parcel:
    """What tasks need beside their ranges. No data class, through whose fields Dask would look for what it could compute."""

    def __init__(self, *contents: Any) -> None:
        self.contents = contents

    def __sizeof__(self) -> int:
        return size(self.contents)


def on_worker(parcel: Parcel, anchor: Any, first: int, stop: int) -> Any:
    """``function(dataset, first, stop, *args)`` of a source, where the ``anchor`` of the range lies."""
    source, function, args = parcel.contents
    _one_blas_thread()
    with _reading(source):
        return function(open_cached(source, _room), first, stop, *args)


def merge_ranges(parcel: Parcel, *scanned: tuple[Any, ...]) -> tuple[Any, ...]:
    """What some ranges that follow each other come to, as far as the tree merges them; of pairs also which blocks were read."""
    _, _, args = parcel.contents
    merged = merge_scans(args[0], [(each[0], each[1]) for each in scanned])
    return (*merged, [block for each in scanned for block in each[2]]) if len(scanned[0]) > 2 else merged


def on_partition(parcel: Parcel, first: int, stop: int, window: Callable[..., Dataset], X: Any, labels: Any) -> Any:
    """As ``on_worker`` of a partition, of which a ``window`` makes a dataset; it knows labels that are no partition."""
    _, function, args = parcel.contents
    _one_blas_thread()
    return function(window(X) if labels is None else window(X, labels=labels), first, stop, *args)


@dataclass(frozen=True)
class Held:
    """Blocks that a worker has read and waits to fold."""

    blocks: list[Block]
    cost: Cost

    def __sizeof__(self) -> int:
        """Bytes of the points, so that the scheduler brings the carry to them."""
        return sum(block.nbytes for block in self.blocks)


def scan_with_cache(
    dataset: Dataset, first: int, stop: int, question: OnPairs, run: str, budget: int, scratch: str | None
) -> tuple[Any, Cost, list[int]]:
    """``scan_pairs`` with the tile cache of a run."""
    return scan_pairs(dataset, first, stop, question, _tile_cache_of(run, min(budget, _room(dataset)), scratch))


def _tile_cache_of(run: str, budget: int, scratch: str | None) -> TileCache:
    """One run of a process has a tile cache: the last one that asked."""
    with _tile_caches_lock:
        if run not in _tile_caches:
            _forget_tile_caches(list(_tile_caches))
            folder = scratch or dask.config.get("temporary-directory", None)
            _tile_caches[run] = TileCache(budget, None if folder is None else Path(folder))
        return _tile_caches[run]


def _forget_tile_caches(runs: list[str]) -> None:
    for run in _tile_caches.keys() & set(runs):
        _tile_caches.pop(run).close()


def lease_of(run: str) -> str:
    """The key of a task that the driver of a run wants as long as it lives: with the client a scheduler forgets its tasks."""
    return f"dfeas-lease-{run}"


def _mind(run: str) -> None:
    """From now on, forget the run when its driver is gone."""
    worker = get_worker()
    _missed.setdefault(run, 0)
    if "dfeas-leases" not in worker.periodic_callbacks:
        # how often a worker looks whether the drivers live whose runs it has something of
        callback = PeriodicCallback(partial(_forget_left_behind, worker), 1000 * 10.0)
        worker.periodic_callbacks["dfeas-leases"] = callback
        worker.loop.add_callback(callback.start)


async def _forget_left_behind(worker: Worker) -> None:
    """Forget runs whose leases a scheduler twice did not know: a client that reconnects has had time to say that it lives."""
    keys = {run: lease_of(run) for run in list(_missed)}  # threads add theirs meanwhile
    try:
        states = await worker.scheduler.get_task_status(keys=list(keys.values())) if keys else {}
    except OSError:
        return
    for run, key in keys.items():
        _missed[run] = 0 if states[key] is not None else _missed.get(run, 0) + 1
        if _missed[run] > 1:
            await asyncio.to_thread(forget_run, run)


def forget_run(run: str) -> None:
    """A run is over: what this process keeps of its data goes."""
    _missed.pop(run, None)
    with _tile_caches_lock:
        _forget_tile_caches([run])
    with _opening:
        for source in [each for each in _opened if each.run == run]:
            _opened.pop(source).kept.close()


def read_range(parcel: Parcel, anchor: Any, first: int, stop: int) -> Held:
    """Read some blocks, and hold them: buffers are used again, so points are copied, except those of the cache."""
    source: Source = parcel.contents[0]
    _one_blas_thread()
    cost = Cost()
    held = []
    with _reading(source):
        dataset = open_cached(source, _room)
        for index, block in zip(range(first, stop), dataset.read_blocks(range(first, stop), cost, keep=True), strict=True):
            copied = block if index in dataset.kept else replace(block, points=block.points.copy(), sides=block.sides.copy())
            held.append(copied)
    return Held(held, cost)


def fold_range(parcel: Parcel, link: Parcel, held: Held) -> Parcel:
    """The next carry, and all cost so far."""
    source, fold = parcel.contents
    _one_blas_thread()
    carry, before = link.contents
    cost = Cost()
    cost.add(before)
    cost.add(held.cost)
    carry = fold_blocks(fold, carry, iter(held.blocks), cost)
    kept = open_cached(source, _room).kept
    # a carry of more than this share of the cache, of which a worker has several copies, gets the memory of the cache
    if kept.budget and 12 * size(carry) > kept.budget:
        kept.close()
    return Parcel(carry, cost)


def fold_partition(
    parcel: Parcel, link: Parcel, first: int, stop: int, window: Callable[..., Dataset], X: Any, labels: Any
) -> Parcel:
    """As ``fold_range``, of a partition."""
    _, fold = parcel.contents
    _one_blas_thread()
    carry, before = link.contents
    cost = Cost()
    cost.add(before)
    dataset = window(X) if labels is None else window(X, labels=labels)
    return Parcel(fold_blocks(fold, carry, dataset.read_blocks(range(first, stop), cost), cost), cost)


def size(value: Any) -> int:
    """Bytes of the arrays in a pass or an argument, near enough."""
    if is_csr(value):
        return nbytes(value)
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if isinstance(value, tuple | list):
        if all(isinstance(v, int) for v in value):
            return 8 * len(value)
        return sum(size(v) for v in value)
    return sum(size(getattr(value, name)) for name in getattr(type(value), "__match_args__", ()))  # of a record
