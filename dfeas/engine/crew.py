"""The workers that may work: each is asked who it is before its first task, and who cannot do it is never sent one.

A task whose functions cannot be unpickled ends a worker with its nanny, for all who use the cluster.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import cache
from importlib import resources
from typing import Any
from weakref import WeakKeyDictionary

import dask
from distributed import Client

from dfeas.data.source import DataSpec
from dfeas.data.storage.places import is_url
from dfeas.engine.clusters import line
from dfeas.engine.question import STORES, answer, look
from dfeas.engine.signals import raise_held
from dfeas.errors import BadInputError, CorruptDataError, DfeasError, UsageError, install

logger = logging.getLogger("dfeas")

FIRST_SECONDS = 10.0
"""How long a run waits for answers before it begins; who answers later works from then on."""
MOST_LISTED = 8
"""Workers that an error lists."""
MOST_PLACES = 8
"""Data for which a client remembers answers."""
_LOOK_SECONDS = 0.1

Answer = dict[str, Any]
Places = tuple[tuple[str, str], ...]
"""Where data is, and what this process sees there."""
Asked = tuple[Future[Answer], float]
"""What a worker will answer, and when it was asked."""
_asked: WeakKeyDictionary[Client, dict[Places, dict[str, Asked]]] = WeakKeyDictionary()
_told: WeakKeyDictionary[Client, set[tuple[str, str]]] = WeakKeyDictionary()


@cache
def here() -> Answer:
    """What this process answers."""
    return answer("", ())


def places_of(spec: DataSpec) -> tuple[str, ...]:
    """What workers must see to read the data by themselves."""
    if not spec.by_path:
        return ()
    beside = [each for each in (spec.mask,) if isinstance(each, str)]
    return (spec.where, *spec.also, *beside)


class Crew:
    """Workers of a client that may get tasks of a run, as they come and go."""

    def __init__(self, client: Client, places: Sequence[str] = ()) -> None:
        self._client = client
        self._places: Places = tuple((place, look(place)) for place in places)
        self.workers: dict[str, int] = {}  # threads of each
        self.left_out: dict[str, tuple[str, str]] = {}  # host and reason
        self._began = False
        answers = _asked.setdefault(client, {})
        while len(answers) > MOST_PLACES:
            del answers[next(iter(answers))]
        self._answers = answers.setdefault(self._places, {})
        for worker, (known, _) in list(self._answers.items()):
            if known.done() and self._find_fault(known)[0] is not None:
                del self._answers[worker]  # it may have been mended

    def admit(self, threads: dict[str, int]) -> dict[str, int]:
        """Those of these workers, with their threads, who may get tasks. The first time it waits for answers.

        Raises UsageError, BadInputError or CorruptDataError where all have answered and none may work in this run.
        """
        for worker in self._answers.keys() - threads.keys():
            self._answers.pop(worker)[0].cancel()
        for worker in threads.keys() - self._answers.keys():
            coming = asyncio.run_coroutine_threadsafe(self._ask(worker), self._client.loop.asyncio_loop)
            self._answers[worker] = coming, time.monotonic()
        if not self._began and threads:
            self._wait()
        known = {worker: self._find_fault(coming) for worker, (coming, _) in self._answers.items() if coming.done()}
        self.workers = {worker: threads[worker] for worker, (kind, _, _) in known.items() if kind is None}
        self.left_out = {worker: (host, reason) for worker, (kind, host, reason) in known.items() if kind is not None}
        self._began = self._began or bool(self.workers)
        if threads and not self._began and len(known) == len(threads):
            raise self._refuse({kind for kind, _, _ in known.values() if kind is not None})
        self._tell()
        return self.workers

    async def _ask(self, worker: str) -> Answer:
        """The question is text, and all functions are of the standard library: a stranger can always read it."""
        arguments = {"digest": here()["digest"], "places": [place for place, _ in self._places]}
        found = await self._client.run(
            asyncio.to_thread, eval, *_as_text(arguments), workers=[worker], on_error="return", asynchronous=True
        )
        if isinstance(found.get(worker), dict):
            return dict(found[worker])
        raise found.get(worker) or ConnectionError("it left")

    def _wait(self) -> None:
        """Until all have answered, or have had their time."""
        while any(time.monotonic() < asked + FIRST_SECONDS for coming, asked in self._answers.values() if not coming.done()):
            wait([coming for coming, _ in self._answers.values()], _LOOK_SECONDS)
            raise_held()

    def _find_fault(self, known: Future[Answer]) -> tuple[type[DfeasError] | None, str, str]:
        """Why a worker that has answered may not work, as a kind of error, with its host and a reason; None where it may."""
        if known.cancelled() or known.exception() is not None:
            return UsageError, "?", f"it did not answer: {line(known.exception() or ConnectionError('cancelled'))}"
        there = known.result()
        software = find_difference(there, "there")
        if software:
            return UsageError, there["host"], software
        for (place, here), seen in zip(self._places, there["seen"], strict=True):
            if not seen and is_url(place):
                return UsageError, there["host"], f"{' and '.join(STORES)} are not there: {install('object-stores')}"
            if not seen:
                return BadInputError, there["host"], f"{place}: no such file or folder there"
            if seen != here:
                return CorruptDataError, there["host"], f"{place}: not the data there that is here"
        return None, there["host"], ""

    def _refuse(self, kinds: set[type[DfeasError]]) -> DfeasError:
        """Of different reasons software comes first."""
        kind = next(each for each in (UsageError, CorruptDataError, BadInputError) if each in kinds)
        listed = [f"{worker} on {host}: {reason}" for worker, (host, reason) in self.left_out.items()]
        more = f"; and {len(listed) - MOST_LISTED} more" if len(listed) > MOST_LISTED else ""
        mend = "; let all workers see the same data under this path"
        if kind is UsageError:
            mend = "; start workers in an environment or image where the dfeas is installed that is here"
        return kind(f"no worker of the cluster can do this run: {'; '.join(listed[:MOST_LISTED])}{more}{mend}")

    def _tell(self) -> None:
        """Each worker once."""
        told = _told.setdefault(self._client, set())
        for worker, (host, reason) in self.left_out.items():
            if (worker, reason) not in told:
                told.add((worker, reason))
                logger.warning("worker %s on %s gets no work: %s", worker, host, reason)

    @contextmanager
    def annotated(self, home: str | Callable[[str], str] | None = None) -> Iterator[None]:
        """Tasks that are sent meanwhile go to the crew and to nobody else, or to one of it, or to that of each by its key.

        The order is strict: a worker that joins is given what is not, before anybody has asked it. A task waits for ever for
        workers that are gone, so whoever sends it sends it again then.
        """
        homes = [home] if isinstance(home, str) else home or list(self.workers)
        with dask.annotate(workers=homes, allow_other_workers=False):
            yield


def find_difference(there: Answer, where: str) -> str:
    """What of the software ``where`` an answer comes from cannot work with what is here; empty text for nothing."""
    if not there["digest"]:
        return f"dfeas is not installed {where}"
    if there["digest"] != here()["digest"]:
        version = here()["dfeas"]
        same = f"dfeas {version}, with other source files than here"
        return same if there["dfeas"] == version else f"dfeas {there['dfeas']} {where}, {version} here"
    return f"dfeas cannot be imported {where}: {there['broken']}" if there["broken"] else ""


@cache
def _source() -> str:
    return resources.files("dfeas.engine").joinpath("question.py").read_text("utf-8")


def _as_text(arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Arguments of ``eval`` which give the answer: a function would be bytes of this Python."""
    scope = {"__name__": "dfeas_question", "source": _source(), "arguments": arguments}
    return "(exec(source, globals()), answer(**arguments))[1]", scope
