"""Independent pieces of work spread over the workers of a cluster, some at a time."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from threading import Semaphore
from typing import Any, Generic, TypeVar

from dask.delayed import delayed
from distributed import Client, Future

from dfeas.data.collections import in_partitions
from dfeas.data.ingest.ingest import Piece, write_piece
from dfeas.data.storage.files import FULL
from dfeas.engine.clusters import line
from dfeas.engine.watch import Retry, Watch
from dfeas.errors import CorruptDataError, DfeasError

T = TypeVar("T")
R = TypeVar("R")

AHEAD = 2
"""Pieces for each thread that are sent at a time: one is worked on, one waits."""


class TaskPool:
    """Does work on the workers of a client."""

    def __init__(self, client: Client, places: Sequence[str] = ()) -> None:
        self._client, self._places = client, places

    def __call__(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """``work(item)`` of each item, in any order; a piece of a worker that died is done again. Raises what the work does,
        and ClusterLostError when the cluster goes away, or when many workers die at a piece.
        """
        watch = Watch(self._client, places=self._places)
        sent, persist = _SentPieces(watch, self._submit, work, iter(items)), Retry(watch)
        try:
            while found := persist(sent.next, lambda: sent.done):
                if isinstance(found[0], DfeasError):
                    raise found[0]
                yield found[0]
        finally:
            sent.cancel()

    def _submit(self, work: Callable[[T], R], item: T, key: str) -> Future:
        return self._client.submit(_on_worker, work, item, key=key, pure=False)


class PartitionPool(TaskPool):
    """Pieces of an ingest whose points are in the partitions of a Dask array: each goes where its points are, or they to it."""

    def __init__(self, client: Client, X: Any) -> None:
        super().__init__(client)
        self._X = X
        self._rows: list[Any] = []  # those of each piece

    def _submit(self, work: Callable[[T], R], item: T, key: str) -> Future:
        assert isinstance(item, Piece), "a dense dataset is written piece by piece"
        first, stop = item.part.first, item.part.stop or int(self._X.shape[0])
        if not self._rows:  # the first one has no less than the others
            self._size = stop - first
            self._rows = in_partitions(self._X, self._size).to_delayed().ravel().tolist()
        write = delayed(_on_worker, pure=False)
        return self._client.compute(write(partial(write_piece, item), self._rows[first // self._size], dask_key_name=key))


class _SentPieces(Generic[T, R]):
    def __init__(self, watch: Watch, submit: Callable[..., Future], work: Callable[[T], R], items: Iterator[T]) -> None:
        self._watch, self._submit, self._work, self._items = watch, submit, work, items
        self._again: deque[T] = deque()  # were sent, and are lost
        self._sent: dict[Future, tuple[T, set[str]]] = {}  # with the workers that may do it
        self._woken = Semaphore(0)
        self.done = 0

    def next(self) -> tuple[R | DfeasError] | None:
        """What came of one of them; None when there are no more. Raises one of ``LOST`` for what must be sent again."""
        try:
            found = None
            while found is None:
                workers = self._watch.workers()
                self._take_back(workers)
                self._send(sum(workers.values()))
                if not self._sent:
                    return None
                future = self._watch.first(self._sent, self._woken, lambda there: bool(self._find_stuck(there)))
                found = future and self._watch.gather([future], workers)
        except BaseException:
            self._take_back({})
            raise
        del self._sent[future]
        self.done += 1
        return (found[0],)

    def _send(self, threads: int) -> None:
        """As many as so many threads want; what was lost first."""
        while len(self._sent) < AHEAD * threads:
            some = [self._again.popleft()] if self._again else list(islice(self._items, 1))
            if not some:
                return
            name = self._work.__name__.strip("_").replace("_", "-")  # Dask's bars have what stands before a word that is none
            with self._watch.crew.annotate_tasks():
                future = self._submit(self._work, some[0], f"dfeas-{name}-{uuid.uuid4().hex}")
            self._sent[future] = some[0], set(self._watch.crew.workers)
            future.add_done_callback(lambda _: self._woken.release())

    def _find_stuck(self, workers: dict[str, int]) -> list[Future]:
        """What waits for workers that are gone, all of them."""
        return [future for future, (_, crew) in self._sent.items() if crew.isdisjoint(workers) and not future.done()]

    def _take_back(self, workers: dict[str, int]) -> None:
        """What the scheduler will not do any more: it gave it up, does not know it, or nobody is left for it."""
        stuck = self._find_stuck(workers) if workers else []
        if stuck:
            self._watch.cancel(stuck)
        for future in [*stuck, *(each for each in self._sent if each.status in ("error", "cancelled"))]:
            if future in self._sent:
                self._again.append(self._sent.pop(future)[0])

    def cancel(self) -> None:
        self._watch.cancel(self._sent)


def _on_worker(work: Callable[[T], R], item: T) -> R | DfeasError:
    """What it gives, or why it failed: a worker would write a traceback. What storage raises is no loss of the cluster."""
    try:
        return work(item)
    except DfeasError as error:
        return error
    except OSError as error:
        if error.errno in FULL:
            return CorruptDataError(f"on a worker: {error.filename or 'storage'}: {error.strerror}; free space and run again")
        return CorruptDataError(f"on a worker: {line(error)}; let all workers see source and output under their paths")
