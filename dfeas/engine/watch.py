"""Watching a Dask cluster while waiting for it: whatever dies or freezes there, the waiting ends, or it is tried again.

A scheduler tells of workers that come and go, and is asked now and then whom it hears of.
"""

from __future__ import annotations

import logging
import math
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field
from functools import cached_property, partial
from threading import Semaphore
from typing import Any, TypeVar

from distributed import Client
from distributed import Future as Task
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker, heartbeat_interval

from dfeas.data.storage.patience import Patience, at_most, wait_by
from dfeas.engine.clusters import ANSWER_SECONDS, LOST, answer_within, begin_call, line, mend
from dfeas.engine.crew import Crew
from dfeas.engine.signals import interrupts_held, pause
from dfeas.engine.turnover import describe_loss, listen, turnovers
from dfeas.errors import ClusterLostError, CorruptDataError, DfeasError, StorageAwayError, UndecidedError, UsageError

R = TypeVar("R")

logger = logging.getLogger("dfeas")

_STEP_SECONDS = 0.1


async def ask_for_workers(client: Client, asynchronous: bool = True) -> dict[str, dict[str, Any]]:
    """What a scheduler says of each worker, and whether it is silent beside others: it waits for them for minutes."""
    workers = (await client.scheduler.identity(n_workers=-1))["workers"]
    heard = max((worker["last_seen"] for worker in workers.values()), default=0.0)
    # a worker that a scheduler has not heard of for so long, and three times the usual, is as good as gone
    patience = 8.0 + 3 * heartbeat_interval(len(workers))
    return {str(worker): {**each, "silent": heard - each["last_seen"] >= patience} for worker, each in workers.items()}


async def await_tasks(futures: Iterable[Task], asynchronous: bool = True) -> None:
    """Wait until each has a result, or an error, which is not raised."""
    for future in futures:
        await future.exception()


async def fetch(client: Client, futures: Sequence[Task], asynchronous: bool = True) -> list[Any] | None:
    """Results, or None when the scheduler cannot get one of them from the workers just now. Raises what a task raised. A gather
    of the client is shared by all who ask at the same moment: where one of them gives up, all of them, and at a bad moment
    whoever asks later, find it cancelled.
    """
    await await_tasks(futures)
    for future in futures:
        error = await future.exception() if future.status == "error" else None
        if isinstance(error, OSError) and not isinstance(error, DfeasError):  # of what a task reads: no loss of the cluster
            raise CorruptDataError(f"X: Dask cannot compute a part of it: {type(error).__name__}: {line(error)}")
        if future.status in ("error", "cancelled"):
            await future
    keys = [future.key for future in futures]
    answer = await client.scheduler.gather(keys=keys)
    return [answer["data"][key] for key in keys] if answer["status"] == "OK" else None


@dataclass
class Watch:
    """Waits for a cluster. Every wait raises ConnectionError or TimeoutError when the scheduler is gone or does not answer, and
    ClusterLostError when there has been no worker for ``patience_seconds``.
    """

    client: Client
    look_seconds: float = 0.25  # how often a waiting driver looks at what it was told
    answer_seconds: float = ANSWER_SECONDS
    patience_seconds: float = 600.0  # how long the driver waits for a worker when there is none
    most_deaths: int = 10  # work at which more workers than that have died is to blame
    places: Sequence[str] = ()  # what workers must see
    run: str = ""  # what the keys of its tasks have in them
    # how often it asks the scheduler which workers there are, beside being told of those that come and go
    ask_seconds: float = 3.0
    _known: dict[str, dict[str, Any]] = field(default_factory=dict)  # what the scheduler says of each worker
    _asked: float = -math.inf  # when, in monotonic seconds
    _told: int = 0  # of the turnover, then
    _silent: set[str] = field(default_factory=set)  # workers that the scheduler does not hear
    _missed: dict[str, float] = field(default_factory=dict)  # workers that are gone, since when, of which nothing was said

    @cached_property
    def crew(self) -> Crew:
        """Who may get tasks, which are sent ``with watch.crew.annotate_tasks()``."""
        return Crew(self.client, self.places)

    def threads(self) -> dict[str, int]:
        """Of the workers that may work. The scheduler is asked when one came or went, when there was none, and now and then. A
        signal or a beat may end whatever waits for them.
        """
        pause(0)
        if self.client.status != "running":
            raise ConnectionError("the connection to the scheduler was lost")
        told, now = turnovers.get(self.client), time.monotonic()
        if told is None or not self._known or told.count != self._told or now - self._asked > self.ask_seconds:
            if self._asked == -math.inf:
                answer_within(self.answer_seconds, self.client, listen, self.client)
                told = turnovers.get(self.client)
            self._told, self._asked = 0 if told is None else told.count, now
            listed = answer_within(self.answer_seconds, self.client, ask_for_workers, self.client)
            self._silent = {worker for worker, each in listed.items() if each["silent"]}
            self._known = {worker: each for worker, each in listed.items() if not each["silent"]}
        mend(self.client, len(self._known))
        before, admitted = set(self.crew.workers), self.crew.admit(self._known)
        self._missed |= dict.fromkeys(before - self._known.keys(), time.time())
        self._say_lost()
        return admitted

    def _say_lost(self) -> None:
        """Of each worker that is gone, once it is known how: nothing of one that has retired, as adaptive clusters have it."""
        told = turnovers.get(self.client)
        left, wait = ({}, 0.0) if told is None else (told.left, self.ask_seconds)
        for worker, since in list(self._missed.items()):
            moment, said = left.get(worker, (since, {}))
            if worker in self._silent:
                self.crew.tell({worker: "does not answer any more: other workers do what it had"}, "silent")
            elif not said and time.time() < since + wait:
                continue  # what the scheduler tells is on its way
            elif not said.get("expected"):
                self.crew.tell({worker: describe_loss(self.run, moment, said)}, f"lost at {moment:.0f}")
            del self._missed[worker]

    def look_anew(self) -> None:
        """Something was lost: what is known may be wrong, and a scheduler that came back tells nobody yet."""
        self._asked = -math.inf

    def workers(self) -> dict[str, int]:
        """Threads of each worker, at least one: waits for the first worker. An adaptive cluster starts workers for tasks that
        wait, and for nothing else, so that one does.
        """
        threads = self.threads()
        if threads:
            return threads
        logger.warning("no Dask worker; waiting for one")
        patience = at_most(self.patience_seconds)
        deadline = time.monotonic() + patience
        waiting = self.client.submit(int, pure=False, key=f"dfeas-wake-{uuid.uuid4().hex}")  # any worker can do that
        while not threads:
            if time.monotonic() > deadline:
                waiting.release()
                raise self._miss_workers(patience)
            time.sleep(_STEP_SECONDS)
            threads = self.threads()
        waiting.release()
        return threads

    def results(
        self, futures: Sequence[Task], told: Callable[[], Any] = lambda: None, crew: Collection[str] | None = None
    ) -> list[Any]:
        """What all of them come to; who is ``told`` looks now and then meanwhile. Raises GoneError when it is lost to the crew
        that they were sent to, which is that of now where none is given.
        """
        sent_to = set(self.crew.workers if crew is None else crew)
        while self.settle(futures, told, sent_to):
            found = self.gather(futures)
            if found is not None:
                return found
            self.look_anew()
            time.sleep(_STEP_SECONDS)
            if self._is_lost(sent_to, self.threads()):
                break
        raise GoneError

    def settle(self, futures: Sequence[Task], told: Callable[[], Any], crew: set[str]) -> bool:
        """Wait until each has a result, or an error. False when it is lost to its crew, or one of the results is lost."""
        done = Semaphore(0)
        for future in futures:
            future.add_done_callback(lambda _: done.release())

        def gone(now: dict[str, int]) -> bool:
            told()
            return self._is_lost(crew, now)

        def come(future: Task, seconds: float) -> bool:
            """Dask calls back once: a result that is lost before it is seen, and made again, says nothing."""
            return future.done() or done.acquire(timeout=seconds)

        waited = True
        for future in futures:
            while waited and not future.done():
                waited = self._until(partial(come, future), gone)
        if any(future.status == "lost" for future in futures):  # which is no reason for Dask not to call back
            time.sleep(_STEP_SECONDS)
            return False
        return waited

    def gather(self, futures: Sequence[Task]) -> list[Any] | None:
        """Results of futures that were settled; None when workers are gone meanwhile, which may have had some of them. Dask
        goes on asking a worker that has just died for a minute and more, and computes what was lost again.
        """
        found: list[Any] | None = self._call(fetch, self.client, futures)
        return found

    def first(self, futures: Mapping[Task, Collection[str]], woken: Semaphore) -> Task:
        """Wait until one, of those sent to crews, has a result, or an error, and return it; ``woken`` is released whenever that
        may be so. Raises GoneError when one is lost to its crew.
        """

        def found(seconds: float) -> bool:
            return any(future.done() for future in futures) or woken.acquire(timeout=seconds)

        def gone(now: dict[str, int]) -> bool:
            return any(self._is_lost(set(crew), now) for crew in futures.values())

        while not (ended := [future for future in futures if future.done()]):
            if not self._until(found, gone):
                raise GoneError
        return ended[0]

    def _is_lost(self, crew: set[str], now: Mapping[str, int]) -> bool:
        """Whether nobody is left of a crew, while others are there, or one of it is silent: Dask gives what was at a worker
        that is gone to others of the crew, but waits for a silent one for minutes.
        """
        return bool(now) and (crew.isdisjoint(now) or bool(crew & self._silent))

    def cancel(self, values: Iterable[Any]) -> None:
        """Nobody wants the tasks among them any more: they would keep to workers that are gone."""
        if self.client.status == "running":
            self.client.cancel([value for value in values if isinstance(value, Task)], force=True)

    def scatter(self, value: Any) -> Task:
        """A value as data on a worker. Raises GoneError when a worker is gone meanwhile."""
        found: list[Task] | None = self._call(self.client.scatter, [value], hash=False, workers=list(self.crew.workers))
        if found is None:
            raise GoneError
        return found[0]

    def _call(self, call: Callable[..., Awaitable[Any]], *args: Any, **options: Any) -> Any:
        """What a method of the client returns, or None when workers have gone meanwhile, which may have had it."""
        crew = set(self.crew.workers)
        with begin_call(self.client, call, *args, **options) as coming:
            come = self._until(lambda seconds: not wait([coming], seconds).not_done, lambda now: not now.keys() >= crew)
            return coming.result() if come else None

    def _until(self, done: Callable[[float], bool], gone: Callable[[dict[str, int]], bool]) -> bool:
        """Wait until ``done``, which waits for so many seconds at most, or until what is waited for is ``gone``."""
        until, patience = math.inf, 0.0  # when it has been without a worker for too long
        while not done(self.look_seconds):
            now = self.threads()
            if now and gone(now):
                return done(0)
            if now:
                until = math.inf
                continue
            if until == math.inf:
                patience = at_most(self.patience_seconds)
                until = time.monotonic() + patience
                logger.warning("the Dask cluster has lost all workers; waiting for new ones")
            if time.monotonic() > until:
                raise self._miss_workers(patience)
        return True

    def _miss_workers(self, seconds: float) -> DfeasError:
        """After so many without one."""
        if seconds < self.patience_seconds:
            return UndecidedError("the Dask cluster has no workers, and the time limit is over; start some with dask worker")
        return ClusterLostError(f"the Dask cluster has had no worker for {seconds:.0f} s; start some with dask worker")

    def bear(self, deaths: int) -> None:
        """Raise ClusterLostError when so many workers died at one piece of work that it is to blame."""
        if deaths > self.most_deaths:
            raise ClusterLostError(
                f"Dask workers died {deaths} times, one after the other, at the same piece of work; their logs may say why "
                "(often: not enough memory)"
            ) from None

    def recovers(self) -> bool:
        """Whether the client is connected, or is again: it looks for a lost scheduler as long as for the first time."""
        while self.client.status == "connecting":
            pause(_STEP_SECONDS)
        return bool(self.client.status == "running")


class GoneError(Exception):
    """A worker is gone that an attempt cannot do without."""


@dataclass
class Retry:
    """Makes attempts at one piece of work, or at several, until too much was lost since something got done."""

    watch: Watch
    tries: int = 0
    deaths: int = 0
    before: int = 0  # what was done at the last loss

    def __call__(self, attempt: Callable[[], R], done: Callable[[], int] = int) -> R:
        """What an attempt returns; lost work is asked for again, and what storage did not give that is away. Raises
        ClusterLostError when nothing more gets ``done``, StorageAwayError when patience is over.
        """
        patience = Patience()
        while True:
            try:
                with interrupts_held():
                    return attempt()
            except CorruptDataError:  # an OSError, and what was read is not lost
                raise
            except StorageAwayError as error:
                with wait_by(pause):
                    patience.bear(error)
                continue
            except (GoneError, *LOST) as error:
                self._count(error, done())
            except RuntimeError as error:
                if "deserialization of the task graph" not in str(error):
                    raise
                reason = line(error.__cause__ or error)
                raise UsageError(
                    f"the Dask scheduler cannot read a task: {reason}; start it where workers are started"
                ) from None
            with interrupts_held():
                recovers = self.watch.recovers()
            if not recovers:
                raise ClusterLostError("the Dask cluster was lost: its scheduler cannot be reached any more")

    def _count(self, error: Exception, done: int) -> None:
        """One more loss. Raises ClusterLostError when it is one too many."""
        self.watch.look_anew()
        if done > self.before:
            self.before, self.tries, self.deaths = done, 0, 0
        if isinstance(error, GoneError):
            self.deaths += 1
        elif isinstance(error, KilledWorker):
            self.deaths += error.allowed_failures + 1
        else:
            self.tries += 1
        if self.tries == 3:
            cancelled = isinstance(error, FutureCancelledError) and self.watch.crew.workers
            lost = "lost what it was to compute, though it has workers" if cancelled else "was lost"
            raise ClusterLostError(f"the Dask cluster {lost}: {line(error)}") from None
        self.watch.bear(self.deaths)
