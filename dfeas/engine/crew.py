"""The workers that may work: each is asked who it is before its first task, and who cannot do it is never sent one.

A task whose functions cannot be unpickled ends a worker with its nanny, for all who use the cluster.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import resources
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import dask
from distributed import Client, span

from dfeas.data.source import DataSpec
from dfeas.data.storage.patience import at_most
from dfeas.data.storage.places import is_url
from dfeas.engine.clusters import ANSWER_SECONDS, LOST, answer_within, line
from dfeas.engine.question import answer, look
from dfeas.engine.signals import LOOK_SECONDS, pause
from dfeas.errors import BadInputError, CorruptDataError, DfeasError, UsageError, install, spell
from dfeas.settings import read_setting

logger = logging.getLogger("dfeas")

REFUSED_SECONDS = 20.0
"""How long a run whose workers are gone waits for others than those there are, which may not work: nannies start them again."""
WORKS = "dfeas.engine.worker"
"""The module that tasks are of."""
MOST_LISTED, MOST_PLACES = 8, 8
"""Workers in an error, and data for which a client remembers answers."""
Answer = dict[str, Any]
Places = tuple[tuple[str, str], ...]
"""Where data is, and what this process sees there."""
Fault = tuple[type[DfeasError], str]
"""Why a worker may not work, as an error would say it."""
_asked: WeakKeyDictionary[Client, dict[Places, dict[str, tuple[Future[Answer], float]]]] = WeakKeyDictionary()
"""What workers answer, and when they were asked."""
_told: WeakKeyDictionary[Client, set[tuple[str, str]]] = WeakKeyDictionary()
_fit: WeakSet[Client] = WeakSet()
"""Those whose scheduler was asked."""
_span: ContextVar[Any] = ContextVar("span", default=None)


@cache
def here() -> Answer:
    """What this process answers."""
    return answer("", (), WORKS)


def places_of(spec: DataSpec) -> tuple[str, ...]:
    """What workers must see to read the data by themselves; what is a path among it this process sees, too."""
    beside = (each for each in (spec.mask, spec.labels) if isinstance(each, str))
    return (spec.where, *spec.also, *beside) if spec.by_path else ()


def asked_of_tasks() -> dict[str, Any]:
    """What ``dask.annotate``, or Dask's configuration, says of the tasks of a run."""
    names, given = ("workers", "resources", "priority"), dask.get_annotations()
    found = {name: given.get(name, dask.config.get(f"dfeas.{name}", None)) for name in names}
    asked = {name: value for name, value in found.items() if value is not None}
    forms: dict[str, tuple[Any, str]] = {
        "workers": (str | list | tuple | set, "an address, host or name, or a list of them"),
        "resources": (dict, "a number for each name"),
        "priority": (int | float, "a number"),
    }
    for name, value in asked.items():
        numbers = value.values() if name == "resources" and isinstance(value, dict) else ()
        if not isinstance(value, forms[name][0]) or not all(isinstance(each, int | float) for each in numbers):
            raise UsageError(f"{name} of dask.annotate or dfeas.{name} of Dask's configuration: expected {forms[name][1]}")
    return asked


async def _ask(call: Any, places: Places, asynchronous: bool = True, **options: Any) -> Any:
    """The question is text, and all functions are of the standard library: a stranger can read it, whatever its Python is."""
    asked = text_call("answer", here()["digest"], [place for place, _ in places], WORKS)
    return await call(asyncio.to_thread, eval, *asked, asynchronous=True, **options)


def text_call(name: str, *arguments: Any) -> tuple[str, dict[str, Any]]:
    """What ``eval`` takes to call a function of ``dfeas.engine.question`` where that may not be."""
    source = resources.files("dfeas.engine").joinpath("question.py").read_text("utf-8")
    scope = {"__name__": "dfeas_question", "source": source, "arguments": arguments}
    return f"(exec(source, globals()), {name}(*arguments))[1]", scope


class Crew:
    """Workers of a client that may get tasks of a run, as they come and go: of ``workers`` and with the ``resources`` of
    ``dask.annotate`` or Dask's configuration.
    """

    def __init__(self, client: Client, places: Sequence[str] = ()) -> None:
        self._client = client
        self._places: Places = tuple((place, seen) for place in places if (seen := look(place)))
        self._options = asked_of_tasks() | ({} if _span.get() is None else {"span": _span.get()})
        chosen = self._options.pop("workers", None)
        self._chosen = {chosen} if isinstance(chosen, str) else None if chosen is None else set(map(str, chosen))
        self._same_bits = bool(read_setting("same_bits"))
        self.workers: dict[str, int] = {}  # threads of each
        self.left_out: dict[str, tuple[str, str]] = {}  # host and reason
        self._met: dict[str, Answer] = {}  # of all that have been in it
        self._refused_since = math.inf  # when nobody was left, and others were there
        answers = _asked.setdefault(client, {})
        while len(answers) > MOST_PLACES:
            del answers[next(iter(answers))]
        self._answers = answers.setdefault(self._places, {})
        for worker, (known, _) in list(self._answers.items()):
            if known.done() and self._find_fault(known.result()) is not None:
                del self._answers[worker]  # it may have been mended

    def admit(self, listed: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
        """Those of the workers that a scheduler lists, with their threads, who may get tasks. The first time it waits for
        answers. Raises UsageError, BadInputError or CorruptDataError where all have answered and none may work in this run;
        when it has had workers, after ``REFUSED_SECONDS``.
        """
        first_seconds = 10.0  # how long a run waits for answers before it begins; who answers later works from then on
        for worker, (coming, when) in list(self._answers.items()):
            failed = coming.done() and "failed" in coming.result() and time.monotonic() > when + first_seconds
            if worker not in listed or failed:
                self._answers.pop(worker, None)
        for worker in listed.keys() - self._answers.keys():
            coming = asyncio.run_coroutine_threadsafe(self._ask_worker(worker, listed[worker]), self._client.loop.asyncio_loop)
            self._answers[worker] = coming, time.monotonic()
        asked = {worker: known for worker, known in list(self._answers.items()) if worker in listed}
        if not self._met and asked:
            until = min(first_seconds + max(when for _, when in asked.values()), time.monotonic() + at_most())
            while wait([coming for coming, _ in asked.values()], LOOK_SECONDS).not_done and time.monotonic() < until:
                pause(0)
        known = {worker: coming.result() for worker, (coming, _) in asked.items() if coming.done()}
        faults = {worker: self._find_fault(there) for worker, there in known.items() if self._is_chosen(worker, there)}
        self.workers = {worker: int(listed[worker]["nthreads"]) for worker, fault in faults.items() if fault is None}
        self.left_out = {w: (known[w]["host"], fault[1]) for w, fault in faults.items() if fault is not None}
        kinds = {fault[0] for fault in faults.values() if fault is not None}
        if not asked or self.workers or len(known) < len(asked):
            self._refused_since = math.inf
        else:
            self._refused_since = min(self._refused_since, time.monotonic())
        silent = any("failed" in there for there in known.values())  # one that has just died, maybe
        patience = REFUSED_SECONDS if self._met or silent else 0
        if (not self._met and _OtherBits in kinds) or time.monotonic() >= self._refused_since + patience:
            raise self._refuse(kinds)
        self._met |= {worker: known[worker] for worker in self.workers}
        self._tell_faults()
        return self.workers

    async def _ask_worker(self, worker: str, listed: Mapping[str, Any]) -> Answer:
        """What it says, or why it has ``failed``, with its name and resources, which the scheduler knows."""
        try:
            found = (await _ask(self._client.run, self._places, workers=[worker], on_error="return")).get(worker)
        except LOST as error:
            found = error
        if not isinstance(found, dict):
            found = {"host": "?", "failed": line(found or ConnectionError("it left"))}
        return {**found, "name": str(listed["name"]), "resources": listed["resources"]}

    def _is_chosen(self, worker: str, there: Answer) -> bool:
        """Whether it is one of those that were asked for, by address, host or name, and has the resources."""
        address, has, wanted = worker.rpartition("://")[2], there["resources"], self._options.get("resources", {})
        names = {worker, address, address.rpartition(":")[0], there["host"], there["name"]}
        return (self._chosen is None or bool(names & self._chosen)) and all(has.get(k, 0) >= v for k, v in wanted.items())

    def _find_fault(self, there: Answer) -> Fault | None:
        if "failed" in there:
            return UsageError, f"it did not answer: {there['failed']}"
        software = find_difference(there)
        if software:
            return UsageError, software
        for (place, seen_here), seen in zip(self._places, there["seen"], strict=True):
            if not seen and is_url(place):
                return UsageError, f"no object store can be read there: {install('object-stores')}"
            if not seen:
                return BadInputError, f"{place}: no such file or folder there"
            if seen != seen_here:
                return CorruptDataError, f"{place}: not the data there that is here"
        if self._same_bits and there["arithmetic"] != here()["arithmetic"]:
            return _OtherBits, f"other bits: {_describe_bits(there)}"
        return None

    def _refuse(self, kinds: set[type[DfeasError]]) -> DfeasError:
        """Of different reasons software comes first."""
        listed = [f"{worker} on {host}: {reason}" for worker, (host, reason) in self.left_out.items()]
        more = f"; and {len(listed) - MOST_LISTED} more" if len(listed) > MOST_LISTED else ""
        text = f"no worker of the cluster can do this run: {'; '.join(listed[:MOST_LISTED])}{more}"
        if _OtherBits in kinds:
            return UsageError(
                f"{spell('same_bits', True)}: {'; '.join(listed[:MOST_LISTED])}{more}; use workers of one kind, or leave it out"
            )
        if not kinds:
            wanted = self._options.get("resources", {})
            return UsageError(f"no worker of the cluster is one of {sorted(self._chosen or ['all'])} with resources {wanted}")
        if UsageError in kinds:
            return UsageError(
                f"{text}; start workers with the dfeas that is installed here; if they lack nothing but dfeas, send an archive "
                "of its folder: client.upload_file('dfeas.zip')"
            )
        kind = CorruptDataError if CorruptDataError in kinds else BadInputError
        return kind(f"{text}; let all workers see the same data under this path")

    def _tell_faults(self) -> None:
        self.tell({worker: f"gets no work: {reason}" for worker, (_, reason) in self.left_out.items()})
        self.tell({each["worker"]: f"may give other bits: {each['differs']}" for each in self._find_mixed()})

    def tell(self, words: Mapping[str, str], once: str = "") -> None:
        """Log a warning of workers, once for a client: the same text, or what is the same by ``once``."""
        told = _told.setdefault(self._client, set())
        for worker, text in words.items():
            if (worker, once or text) not in told:
                told.add((worker, once or text))
                host = self.left_out[worker][0] if worker in self.left_out else self._met[worker]["host"]
                logger.warning("worker %s on %s %s", worker, host, text)

    def _find_mixed(self) -> list[dict[str, str]]:
        """Workers that compute by other software or on other processors than this process."""
        found = {worker: there for worker, there in self._met.items() if there["arithmetic"] != here()["arithmetic"]}
        return [{"worker": w, "host": there["host"], "differs": _describe_bits(there)} for w, there in found.items()]

    def to_json(self) -> dict[str, Any]:
        """What a result says of it: whether all have computed alike, who has not, and who was left out."""
        mixed = self._find_mixed()
        out = [{"worker": worker, "host": host, "left_out": reason} for worker, (host, reason) in self.left_out.items()]
        return {"bits": "mixed" if mixed else "same", "workers": [*mixed, *out] or None}

    @contextmanager
    def annotate_tasks(self, workers: Iterable[str] | None = None) -> Iterator[None]:
        """Tasks that are sent meanwhile go to the crew, or those of it with which an attempt began, and to nobody else.
        The order is strict: a worker that joins is given what is not, before anybody has asked it. A task waits for ever when
        all of them are gone, so whoever sends it sends it again then.
        """
        with dask.annotate(
            workers=list(self.workers if workers is None else workers), allow_other_workers=False, **self._options
        ):
            yield


class _OtherBits(UsageError):
    """A kind of fault, which ends a run that has not begun."""


def find_difference(there: Answer) -> str:
    """What of the software there cannot work with what is here; empty text for nothing."""
    if not there["digest"]:
        return "dfeas is not installed there"
    if there["digest"] != here()["digest"]:
        other, mine = there["dfeas"], here()["dfeas"]
        return f"dfeas {mine}, with other source files than here" if other == mine else f"dfeas {other} there, {mine} here"
    return f"dfeas cannot be imported there: {there['broken']}" if there["broken"] else ""


def _describe_bits(there: Answer) -> str:
    told = []
    for name, mine in here()["arithmetic"].items():
        theirs = str(there["arithmetic"].get(name, "none"))
        if theirs != mine and name == "vectors":
            a, b = set(theirs.split()), set(mine.split())
            theirs, mine = " ".join(sorted(a - b)) or "fewer", " ".join(sorted(b - a)) or "fewer"
        if theirs != mine:
            told.append(f"{name} {theirs} there, {mine} here")
    return ", ".join(told)


@contextmanager
def begin_span() -> Iterator[None]:
    """Tasks of crews that are made meanwhile belong together on Dask's pages; around other work Dask would warn."""
    with span("dfeas"):
        made = _span.get() or dask.get_annotations()["span"]
    token = _span.set(made)
    try:
        yield
    finally:
        _span.reset(token)


def require_scheduler(client: Client) -> None:
    """Raise UsageError for a client that is closed, and for a scheduler that does not answer or cannot read tasks of dfeas."""
    deadline = time.monotonic() + at_most(ANSWER_SECONDS)
    while client.status == "connecting" and time.monotonic() < deadline:  # as that of a worker that another task has begun
        pause(LOOK_SECONDS)
    if client.status != "running":
        raise UsageError(f"the Dask client is {client.status}, and not connected; make another one")
    if client in _fit:
        return
    address = client.scheduler.address
    try:
        there = answer_within(ANSWER_SECONDS, client, _ask, client.run_on_scheduler, ())
    except ValueError:  # it takes no code
        return
    except LOST as error:
        raise UsageError(f"the scheduler at {address} does not answer: {line(error)}; make another client") from None
    minor = [each["arithmetic"]["Python"] for each in (there, here())]
    different = find_difference(there)
    if minor[0] != minor[1]:  # plugins travel as the bytes of one Python
        different = f"Python {minor[0]} there, {minor[1]} here"
    if different:
        raise UsageError(f"the scheduler at {address} on {there['host']}: {different}; start it where workers are started")
    _fit.add(client)
