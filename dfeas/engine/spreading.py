"""Independent pieces of work spread over the workers of a cluster, some at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from distributed import Client, Future, as_completed

from dfeas.engine.clusters import LOST, line
from dfeas.errors import ClusterLostError, CorruptDataError, DfeasError

T = TypeVar("T")
R = TypeVar("R")

AHEAD = 2
"""Pieces for each thread that are sent at a time: one is worked on, one waits."""

WAIT_SECONDS = 600
"""For a first worker."""


class Spreading:
    """Does work on the workers of a client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __call__(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """``work(item)`` of each item, in any order; a piece of a worker that died is done again.

        Raises what the work does, and ClusterLostError when the cluster goes away.
        """
        waiting, sent = iter(items), as_completed()
        try:
            self._client.wait_for_workers(1, timeout=WAIT_SECONDS)
            threads = sum(self._client.nthreads().values())
            for item in islice(waiting, AHEAD * max(1, threads)):
                sent.add(self._submit(work, item))
            for future in sent:
                found = future.result()
                future.release()
                if isinstance(found, DfeasError):
                    raise found
                yield found
                for item in islice(waiting, 1):
                    sent.add(self._submit(work, item))
        except LOST as error:
            raise ClusterLostError(f"the Dask cluster was lost: {line(error)}; run the same again") from None
        finally:
            if self._client.status == "running":
                self._client.cancel(list(sent.futures), force=True)

    def _submit(self, work: Callable[[T], R], item: T) -> Future:
        return self._client.submit(_on_worker, work, item, pure=False)


def _on_worker(work: Callable[[T], R], item: T) -> R | DfeasError:
    """What it gives, or why it failed: a worker would write the traceback of what is raised.

    What storage raises there is no loss of the cluster.
    """
    try:
        return work(item)
    except OSError as error:
        return CorruptDataError(f"on a worker: {line(error)}; let all workers see source and output under their paths")
    except DfeasError as error:
        return error
