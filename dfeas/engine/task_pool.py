"""Independent pieces of work spread over the workers of a cluster, some at a time."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from threading import Semaphore
from typing import Any, TypeVar

from dask.delayed import delayed
from distributed import Client, Future

from dfeas.data.collections import in_partitions
from dfeas.data.ingest.ingest import Piece, write_piece
from dfeas.engine.clusters import name_worker
from dfeas.engine.watch import Retry, Watch
from dfeas.errors import DfeasError

T = TypeVar("T")
R = TypeVar("R")


class TaskPool:
    """Does work on the workers of a client."""

    def __init__(self, client: Client, places: Sequence[str] = ()) -> None:
        self._client, self._places = client, places

    def __call__(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """``work(item)`` of each item, in any order; Dask does a piece of a worker that died again. Raises what the work does,
        and ClusterLostError when the cluster goes away, or when many workers die at a piece.
        """
        watch, woken = Watch(self._client, places=self._places), Semaphore(0)
        waiting, again = iter(items), list[T]()
        sent, crews, done = dict[Future, T](), dict[Future, set[str]](), list[int]()
        name = work.__name__.strip("_").replace("_", "-")  # Dask's bars have what stands before a word that is none

        def fill(most: int) -> None:
            while len(sent) < most and (some := again[-1:] or list(islice(waiting, 1))):
                del again[-1:]
                with watch.crew.annotate_tasks():
                    future = self._submit(work, some[0], f"dfeas-{name}-{uuid.uuid4().hex}")
                sent[future], crews[future] = some[0], set(watch.crew.workers)
                future.add_done_callback(lambda _: woken.release())

        def next_result() -> tuple[R | DfeasError] | None:
            try:
                # pieces for each thread that are sent at a time: one is worked on, one waits
                fill(2 * sum(watch.workers().values()))
                if not sent:
                    return None
                future = watch.first(crews, woken)
                found: R | DfeasError = watch.results([future], crew=crews[future])[0]
            except BaseException:  # all are sent once more: those of a worker that is silent cannot be told from others
                watch.cancel(sent)
                again.extend(sent.values())
                sent.clear()
                crews.clear()
                raise
            del sent[future], crews[future]
            return (found,)

        retry = Retry(watch)
        try:
            while found := retry(next_result, done.__len__):
                if isinstance(found[0], DfeasError):
                    raise found[0]
                done.append(1)
                yield found[0]
        finally:
            watch.cancel(sent)

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
            self._rows = in_partitions(self._X, self._size).to_delayed(optimize_graph=False).ravel().tolist()
        write = delayed(_on_worker, pure=False)
        return self._client.compute(write(partial(write_piece, item), self._rows[first // self._size], dask_key_name=key))


def _on_worker(work: Callable[[T], R], item: T) -> R | DfeasError:
    """What it gives, or why it failed: a worker would write a traceback."""
    try:
        return work(item)
    except OSError as error:  # also ours of stored data
        return name_worker(error)
    except DfeasError as error:
        return error
