"""The Dask engine: a pass is a few tasks, each a range of blocks that its worker reads itself."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import dask.config
import yaml
from distributed import Client, Future, LocalCluster
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker, NoValidWorkerError, NoWorkerError

from dfeas.blas import controller
from dfeas.engine.ranges import cut, fold_blocks, join, parts, scan_range
from dfeas.engine.watch import Watch
from dfeas.errors import ClusterLostError, CorruptDataError, UsageError
from dfeas.passes import Fold, OnVectors, Ordered, Question
from dfeas.passes.block import Block
from dfeas.store import Dataset, Source
from dfeas.store.opening import open_cached
from dfeas.store.reading import Cost
from dfeas.store.scratch import Scratch

R = TypeVar("R")

RANGES_PER_THREAD = 2
TRIES = 3
CONNECT_SECONDS = 10
ENOUGH_DEATHS = 10
"""A task on which more workers than that have died is to blame."""
HOLD_SECONDS = 5.0
"""How often the carry of a fold is brought to the driver: what a lost worker costs beyond its own task."""
FOLD_BYTES = 32 << 20
"""What a worker reads ahead for a fold, at a time."""
INLINE_BYTES = 1 << 16
"""Questions up to this size travel in each task; larger ones are scattered once a pass."""


# CommClosedError, ConnectionError and TimeoutError are OSErrors
_LOST = (OSError, FutureCancelledError, KilledWorker, NoValidWorkerError, NoWorkerError)


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
    here = {
        "distributed.worker.preload": ["dfeas.engine.uninterrupted"],
        "distributed.deploy.lost-worker-timeout": "10 minutes",  # a busy machine takes its time to start a worker again
    }
    with dask.config.set({**configuration(), **here}):
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


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


@lru_cache(maxsize=1)
def _one_blas_thread() -> None:
    """For the whole life of a worker process: its threads would undo each other's limits."""
    controller().limit(limits=1, user_api="blas")


@contextmanager
def _reading(source: Source) -> Iterator[None]:
    """What storage raises on a worker is no loss of the cluster. Raises CorruptDataError."""
    try:
        yield
    except OSError as error:
        raise CorruptDataError(f"{source.path}: cannot be read on a worker: {_line(error)}") from None


def _on_worker(function: Callable[..., R], source: Source, first: int, stop: int, args: tuple[Any, ...]) -> R:
    _one_blas_thread()
    with _reading(source):
        return function(open_cached(source), first, stop, *args)


@dataclass(frozen=True)
class _Held:
    """Blocks that a worker has read and waits to fold."""

    blocks: list[Block]
    cost: Cost

    def __sizeof__(self) -> int:
        """Bytes of the points, so that the scheduler brings the carry to them."""
        return sum(block.points.nbytes for block in self.blocks)


def _read_range(source: Source, first: int, stop: int) -> _Held:
    """Read some blocks, and keep them: buffers are used again, so points are copied."""
    _one_blas_thread()
    cost = Cost()
    with _reading(source):
        blocks = open_cached(source).read_blocks(range(first, stop), cost)
        return _Held([replace(block, points=block.points.copy(), sides=block.sides.copy()) for block in blocks], cost)


@dataclass
class _Carried:
    """How far a fold is, as the driver knows it."""

    carry: tuple[Any, Cost]
    done: int = 0  # ranges


def _fold_range(fold: Fold[Any, Any], link: tuple[Any, Cost], held: _Held) -> tuple[Any, Cost]:
    """The next carry, and all cost so far."""
    _one_blas_thread()
    carry, before = link
    cost = Cost()
    cost.add(before)
    cost.add(held.cost)
    carry = fold_blocks(fold, carry, iter(held.blocks), cost)
    return carry, cost


class DaskEngine:
    """Runs passes on the workers of a Dask cluster, which must see the data under the same path."""

    def __init__(self, client: Client, source: Source, dataset: Dataset, scratch: Scratch | None = None) -> None:
        self.client = client
        self.dataset = dataset
        self.scratch = scratch
        self.source = replace(source, run=uuid.uuid4().hex)
        self.cost = Cost()
        self._sent = 0
        self._threads = 1
        self._watch = Watch(client)

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n) of A."""
        return self.dataset.dimension, self.dataset.n

    @property
    def parallel(self) -> int:
        """Threads of all workers when the last pass began."""
        return self._threads

    def run(self, question: Question) -> Any:
        """One read of the data, or of what the question asks."""
        began = perf_counter()
        if isinstance(question, Ordered):
            held = _Carried((question.fold.start(), Cost()))
            answer, self.cost = self._persist(lambda: self._fold(question.fold, held))
        else:
            blocks = parts(question)[1]
            count = None if blocks is None else len(blocks)
            answer, self.cost = join(question, self.map(scan_range, question, self.scratch, count=count))
        if isinstance(question, OnVectors) and question.keeps is not None and self.scratch is not None:
            self.scratch.keep(question.keeps)
        self.cost.wall_seconds = perf_counter() - began
        return answer

    def map(self, function: Callable[..., R], *args: Any, count: int | None = None) -> list[R]:
        """``function(dataset, first, stop, *args)`` over ranges of all blocks, or of ``count``, in order.

        Lost work is asked for again.
        """
        return self._persist(lambda: self._attempt(function, args, self.dataset.blocks if count is None else count))

    def _persist(self, attempt: Callable[[], R]) -> R:
        """What an attempt returns; lost work is asked for again. Raises ClusterLostError in the end."""
        last: BaseException | None = None
        deaths = 0
        for _ in range(TRIES):
            try:
                return attempt()
            except KilledWorker as error:
                deaths += error.allowed_failures + 1
                if deaths > ENOUGH_DEATHS:
                    raise ClusterLostError(
                        f"{deaths} Dask workers died, one after the other, at the same piece of work; their logs may say why "
                        "(often: not enough memory)"
                    ) from None
                last = error
            except _LOST as error:
                last = error
            if not self._watch.recovers():
                raise ClusterLostError("the Dask cluster was lost: its scheduler cannot be reached any more")
        raise ClusterLostError(f"the Dask cluster was lost: {_line(last or TimeoutError())}")

    def _begin(self) -> None:
        """Before tasks are sent."""
        self._sent += 1
        self._threads = self._watch.workers()

    def _fold(self, fold: Fold[Any, Any], held: _Carried) -> tuple[Any, Cost]:
        """The carry travels, the points do not: ranges are read ahead by all workers, and folded where they were read.

        Goes on from what is held, and brings it forward now and then.
        """
        self._begin()
        ahead = self._threads * RANGES_PER_THREAD
        ranges = cut(self.dataset.blocks, -(-self.dataset.bytes // FOLD_BYTES))
        mark = f"dfeas-{self.source.run[:8]}-{self._sent}"
        reads: dict[int, Any] = {}
        link = self._sendable(held.carry)
        sent, at = held.done, perf_counter()
        try:
            for i in range(held.done, len(ranges)):
                while sent < min(i + ahead, len(ranges)):
                    reads[sent] = self.client.submit(
                        _read_range, self.source, *ranges[sent], key=f"{mark}-read-{sent}", pure=False
                    )
                    sent += 1
                link = self.client.submit(_fold_range, fold, link, reads[i], key=f"{mark}-fold-{i}", pure=False)
                self._watch.settled([link])
                reads[i] = None
                if link.status == "error" or i + 1 == len(ranges) or perf_counter() - at > HOLD_SECONDS:
                    held.carry, held.done = self._watch.answer(self.client.gather, link), i + 1
                    link, at = self._sendable(held.carry), perf_counter()
        except BaseException:
            if self.client.status == "running":
                self.client.cancel([*_futures([link]), *_futures(reads.values())], force=True)
            raise
        carry, cost = held.carry
        return fold.finish(carry), cost

    def _sendable(self, value: Any) -> Any:
        """A value to be an argument of tasks: itself when it is small."""
        return self._watch.answer(self.client.scatter, [value], hash=False)[0] if _size(value) > INLINE_BYTES else value

    def _attempt(self, function: Callable[..., R], args: tuple[Any, ...], count: int) -> list[R]:
        self._begin()
        ranges = cut(count, self._threads * RANGES_PER_THREAD)
        sent = self._sendable(args)
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
            )
            for first, stop in ranges
        ]
        try:
            self._watch.settled(futures)
            return list(self._watch.answer(self.client.gather, futures))
        except BaseException:
            if self.client.status == "running":
                self.client.cancel(futures, force=True)
            raise

    def close(self) -> None:
        """Nothing is kept on the workers but their cached datasets."""


def _futures(values: Iterable[Any]) -> list[Future]:
    return [value for value in values if isinstance(value, Future)]


def _size(value: Any) -> int:
    """Bytes of the arrays in a pass or an argument, near enough."""
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if isinstance(value, tuple | list):
        return sum(_size(v) for v in value)
    names = getattr(value, "__dataclass_fields__", ())
    return sum(_size(getattr(value, name)) for name in names)
