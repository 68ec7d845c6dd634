"""Watching a Dask cluster while waiting for it: whatever dies or freezes there, the waiting ends."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from threading import Semaphore
from typing import TYPE_CHECKING, Any

from dfeas.engine.clusters import mend
from dfeas.errors import ClusterLostError

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as Task

logger = logging.getLogger("dfeas")

LOOK_SECONDS = 5.0
"""How often a waiting driver looks whether the cluster is still there."""
ANSWER_SECONDS = 20.0
"""How long a scheduler may take to say what workers it has."""
PATIENCE_SECONDS = 600.0
"""How long the driver waits for a worker when there is none."""
GONE_SECONDS = 1.0
"""How often a driver that waits for results looks whether a worker is gone."""
_STEP_SECONDS = 0.1


@dataclass(frozen=True)
class Watch:
    """Waits for a cluster.

    Every wait raises ConnectionError or TimeoutError when the scheduler is gone or does not answer, and ClusterLostError when
    there has been no worker for ``PATIENCE_SECONDS``.
    """

    client: Client

    def threads(self) -> dict[str, int]:
        """Threads of each worker now."""
        if self.client.status != "running":
            raise ConnectionError("the connection to the scheduler was lost")
        try:
            found = self.client.nthreads(callback_timeout=ANSWER_SECONDS)
        except TimeoutError:
            raise TimeoutError("the scheduler does not answer any more") from None
        mend(self.client, len(found))
        return {str(worker): int(threads) for worker, threads in found.items()}

    def workers(self) -> dict[str, int]:
        """Threads of each worker, at least one: waits for the first worker."""
        threads = self.threads()
        if not threads:
            logger.warning("no Dask worker; waiting for one")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not threads:
            if time.monotonic() > deadline:
                raise ClusterLostError("the Dask cluster has no workers; start some with dask worker")
            time.sleep(_STEP_SECONDS)
            threads = self.threads()
        return threads

    def settled(self, futures: Sequence[Task], seconds: float | None = None) -> None:
        """Wait until each has a result, or an error; with ``seconds``, no longer than that."""
        done = Semaphore(0)
        for future in futures:
            future.add_done_callback(lambda _: done.release())
        if seconds is not None:
            deadline = time.monotonic() + seconds
            for _ in futures:
                done.acquire(timeout=max(0.0, deadline - time.monotonic()))
            return
        for _ in futures:
            self._until(lambda seconds: done.acquire(timeout=seconds))

    def answer(self, call: Callable[..., Awaitable[Any]], *args: Any, **options: Any) -> Any:
        """What a method of the client returns that may be called again, such as gather.

        Dask goes on asking a worker that has just died for a minute and more: when one is gone, another call is made, which
        asks those that are left. The wait is not in the client's event loop: an interrupt leaves nothing there.
        """

        async def called() -> Any:
            return await call(*args, asynchronous=True, **options)

        while True:
            coming = asyncio.run_coroutine_threadsafe(called(), self.client.loop.asyncio_loop)
            try:
                self._until(partial(self._came, coming, set(self.threads())))
                if coming.done():
                    return coming.result()
            finally:
                coming.cancel()

    def _came(self, coming: Future[Any], asked: set[str], seconds: float) -> bool:
        """Whether it has come, or will not, for one of those asked is gone."""
        return not wait([coming], min(seconds, GONE_SECONDS)).not_done or not asked <= set(self.threads())

    def _until(self, done: Callable[[float], bool]) -> None:
        """Wait until ``done``, which waits for so many seconds at most, and look at the cluster meanwhile."""
        alone: float | None = None  # since when there has been no worker
        while not done(LOOK_SECONDS):
            if self.threads():
                alone = None
                continue
            if alone is None:
                alone = time.monotonic()
                logger.warning("the Dask cluster has lost all workers; waiting for new ones")
            if time.monotonic() - alone > PATIENCE_SECONDS:
                raise ClusterLostError(f"the Dask cluster has had no worker for {PATIENCE_SECONDS:.0f} s")

    def recovers(self) -> bool:
        """Whether the client is connected, or is again: it looks for a lost scheduler as long as for the first time."""
        while self.client.status == "connecting":
            time.sleep(_STEP_SECONDS)
        return bool(self.client.status == "running")
