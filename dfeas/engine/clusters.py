"""Dask clusters: one of this machine, or one that runs already; and the configuration of Dask that we ship."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module, resources
from multiprocessing import resource_tracker
from pathlib import Path
from pkgutil import resolve_name
from threading import Event, Thread
from typing import Any

import dask.config
import yaml
from dask.utils import parse_timedelta
from distributed import Client, LocalCluster, default_client, get_client, get_worker, worker_client
from distributed.client import FutureCancelledError
from distributed.comm import connect as comm_connect
from distributed.core import Status
from distributed.deploy.spec import close_clusters
from distributed.scheduler import KilledWorker, NoValidWorkerError, NoWorkerError
from distributed.security import Security

from dfeas.data.storage.files import atomic_write, refused_by_system
from dfeas.data.storage.patience import at_most
from dfeas.engine.signals import LOOK_SECONDS, SIGNALS, pause
from dfeas.errors import ClusterLostError, DfeasError, UndecidedError, UsageError, brief, spell

FILE = "dfeas.yaml"
"""Our configuration, in a folder of Dask's."""
GATEWAY = "gateway://"
ANSWER_SECONDS = 20.0
"""How long a scheduler may take to answer."""

# CommClosedError, ConnectionError and TimeoutError are OSErrors
LOST = (OSError, FutureCancelledError, KilledWorker, NoValidWorkerError, NoWorkerError)
"""What Dask raises when workers or the scheduler went away."""


def read_configuration() -> str:
    """As it is shipped, with its comments."""
    return resources.files("dfeas.engine").joinpath("dask.yaml").read_text("utf-8")


def load_configuration() -> dict[str, Any]:
    """What we ship, by the dotted names of Dask."""
    return dict(_join_names("", yaml.safe_load(read_configuration())))


def _join_names(prefix: str, values: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(values, dict):
        yield prefix, values
        return
    for name, value in values.items():
        yield from _join_names(f"{prefix}.{name}" if prefix else name, value)


def configuration_file() -> Path:
    """The file that Dask reads: that of ``DASK_CONFIG``, or ours in that folder, else in ``~/.config/dask``."""
    where = Path(dask.config.PATH)
    return where if where.is_file() or where.suffix in (".yaml", ".yml") else where / FILE


def write_configuration(*, force: bool = False) -> Path:
    """Put what is shipped in its place, whole or not at all. Raises UsageError where another file stands, without ``force``."""
    path, content = configuration_file(), read_configuration().encode()
    if path.is_file() and path.read_bytes() == content:
        return path
    if path.exists() and not (force and path.is_file()):
        raise UsageError(f"{path}: is there already and says something else; compare them, or replace it: {spell('force')}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(content)
    return path


@contextmanager
def local_cluster(workers: int, more: Mapping[str, Any] | None = None) -> Iterator[Client]:
    """A client of a LocalCluster of single-threaded processes; everything listens on loopback only. ``more`` is configuration
    of Dask besides ours. Raises ClusterLostError when it does not start.
    """
    here = {
        "distributed.worker.preload": ["dfeas.engine.signals"],
        "distributed.deploy.lost-worker-timeout": "10 minutes",  # a busy machine takes its time to start a worker again
    }
    configured = dask.config.set({**load_configuration(), **here, **(more or {})})
    with configured, _start(workers) as cluster, Client(cluster) as client:
        yield client


def _start(workers: int) -> LocalCluster:
    """It starts in a thread that has signals blocked, and so have its processes: Ctrl-C of a terminal reaches them, too. Raises
    UndecidedError where the limit of time comes first.
    """
    made: list[LocalCluster] = []
    failed: list[BaseException] = []
    given_up = Event()

    def start() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            made.append(
                LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    memory_limit=0,
                )
            )
        except (Exception, asyncio.CancelledError) as error:
            failed.append(error)
            if not (given_up.is_set() or isinstance(error, RuntimeError | OSError)):
                raise

    _track_quietly()
    thread = Thread(target=start, daemon=True)
    thread.start()
    until = time.monotonic() + at_most()
    while thread.is_alive():
        thread.join(LOOK_SECONDS)
        if time.monotonic() > until:
            given_up.set()
            atexit.unregister(close_clusters)
            atexit.register(_close_quietly)
            raise UndecidedError(f"the time limit is over before {workers} worker processes have started; nothing was read")
    if not made:
        reason = line(failed[0]) if failed else "its thread died"
        raise ClusterLostError(f"a cluster of {workers} worker processes did not start here: {reason}")
    return made[0]


def _close_quietly() -> None:
    """Dask's end of what was half started, whose loop may be gone: it fails then, and nobody needs to hear of it."""
    with suppress(Exception):
        close_clusters()


def _track_quietly() -> None:
    """Start what removes the semaphores of a process that was ended: nobody needs to hear that it had some. It must not start
    with the first worker: it unblocks signals. It ignores two of them by itself, and the others are blocked in it.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    errors = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        resource_tracker.ensure_running()
    finally:
        os.dup2(errors, 2)
        os.close(errors)
        os.close(nowhere)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def mend(client: Client, workers: int) -> None:
    """Start workers of a local cluster anew whose nannies have ended, too: a nanny ends when a worker dies while it starts, or
    loses its connections. Does nothing for other clusters, or when there are as many ``workers`` as there should be.
    """
    cluster = client.cluster
    if not isinstance(cluster, LocalCluster) or workers >= len(cluster.worker_spec):
        return

    def restart() -> None:
        for name, nanny in list(cluster.workers.items()):
            if nanny.status in (Status.closed, Status.failed):
                del cluster.workers[name]
        cluster.scale(len(cluster.worker_spec))

    cluster.loop.add_callback(restart)


@contextmanager
def client_of(given: Any, address: str | None) -> Iterator[Client]:
    """The client of what is no None: see ``dfeas.engine.protocol.open_client``; ``address`` is that of Dask's configuration."""
    if given is True:
        given = _current() or address
        if given is None:
            raise UsageError("client=True is the current Dask client, and there is none: make one first, or give an address")
    if getattr(given, "asynchronous", False):
        raise UsageError("the client is asynchronous: give a synchronous one, or the address of its scheduler")
    if isinstance(given, Client):
        yield given
    elif isinstance(given, str):
        with connect(given) as client:
            yield client
    elif hasattr(given, "scheduler_address"):  # a LocalCluster, those of dask-jobqueue, of Dask's operator, of a gateway
        with _client_of_cluster(given) as client:
            yield client
    else:
        raise UsageError(
            f"client {brief(given, 60)}: expected a Dask client, a cluster such as LocalCluster, the address of a scheduler, "
            "or True for the current client"
        )


def _current() -> Client | None:
    """Within a task that of its worker, as for Dask's own ``compute``."""
    try:
        return _begin_client(get_client)
    except ValueError:
        return None


def _client_of_cluster(cluster: Any) -> Client:
    """Raises UsageError for one that has ended."""
    try:
        if getattr(cluster, "status", None) in (Status.closing, Status.closed, Status.failed):
            raise RuntimeError("it has ended")
        return _begin_client(lambda: Client(cluster, set_as_default=False, timeout=_connect_seconds()))
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise UsageError(f"no Dask scheduler answers in {cluster!r:.60}: {line(error)}; start another one") from None


@contextmanager
def connect(address: str | None = None, scheduler_file: str | None = None) -> Iterator[Client]:
    """A client of a running scheduler. Raises UsageError when it does not answer within Dask's ``connect`` timeout."""
    where = address if scheduler_file is None else scheduler_file
    if scheduler_file is not None:
        try:
            address = json.loads(Path(scheduler_file).read_text())["address"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"no Dask scheduler answers at {where}: not a scheduler file: {line(error)}") from None
    if not isinstance(address, str) or not address:
        raise UsageError(f"no Dask scheduler answers at {where!r}: expected an address such as tcp://host:8786")
    if "@" in address:
        raise UsageError("the address of a Dask scheduler has no user and no password: expected one such as tcp://host:8786")
    opened = _join_gateway(address) if address.startswith(GATEWAY) else _open_client(address, str(where))
    with opened as client:
        yield client


def _open_client(address: str, where: str, security: Security | None = None) -> Client:
    seconds = _connect_seconds()
    try:
        if not dask.config.get("distributed.client.security-loader", None):  # that is Dask's own affair
            _apart(_handshake(address, seconds, security or Security()))
        return _begin_client(lambda: Client(address, security=security, timeout=_connect_seconds()))
    except (TimeoutError, MemoryError):  # other words are a length for Dask
        raise UsageError(
            f"no Dask scheduler answers at {where}: what accepts connections there did not speak Dask within "
            f"{seconds:g} s; check the port, and where it is forwarded to"
        ) from None
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise UsageError(f"no Dask scheduler answers at {where}: {line(error)}; is it running and reachable?") from None


def _connect_seconds() -> float:
    """Dask's, or less where the limit of time comes first."""
    given = dask.config.get("distributed.comm.timeouts.connect")
    try:
        return at_most(float(parse_timedelta(given)))
    except (KeyError, ValueError, TypeError, AttributeError):
        raise UsageError(f"distributed.comm.timeouts.connect of Dask is {given!r:.60}: expected a time, such as 30s") from None


def _join_gateway(address: str) -> Client:
    """A client of a cluster that runs behind a dask-gateway, by the address of its scheduler, which has its name at the end.
    The gateway itself, and who may use it, is that of Dask's configuration; without one it answers over http at that address.
    """
    host, _, name = address.removeprefix(GATEWAY).partition("/")
    if not name:
        raise UsageError(f"{address}: no cluster is named; expected {GATEWAY}HOST:PORT/CLUSTER, which is its scheduler_address")
    gateway = dask.config.get("gateway.address", None) or f"http://{host}"
    what, seconds = f"no Dask cluster {name!r} behind the gateway {gateway}", _connect_seconds()
    then = "Gateway().list_clusters() names those that run, where gateway.auth of Dask's configuration lets you ask"

    async def ask(kind: Any) -> Any:
        async with kind(gateway, asynchronous=True) as there:  # a synchronous one waits for itself where it is collected
            return await asyncio.wait_for(there.get_cluster(name), seconds)

    with foreign(f"{address} needs the client of that gateway", "pip install dask-gateway"):
        kind = import_module("dask_gateway").Gateway
    with foreign(what, then):
        try:
            found = _apart(ask(kind))
        except TimeoutError:
            raise TimeoutError(f"it did not answer within {seconds:g} s") from None
    if found.scheduler_address is None:
        raise UsageError(f"{what}: it is {found.status.name.lower()}; {then}")
    return _open_client(found.scheduler_address, address, found.security)


@contextmanager
def call_cluster(path: str) -> Iterator[Client]:
    """A client of the cluster that a function, ``module:function`` of this folder, makes; what was made is closed."""
    sys.path.insert(0, os.getcwd())
    with ExitStack() as stack:
        with foreign(spell("cluster", path), "expected module:function, which returns a Dask cluster when it is called"):
            made = stack.enter_context(resolve_name(path)())
        yield stack.enter_context(client_of(made, None))


@contextmanager
def foreign(what: str, then: str) -> Iterator[None]:
    """Code of others runs in here, which raises what it likes: a UsageError of ours."""
    try:
        yield
    except (Exception, SystemExit) as error:
        raise UsageError(f"{what}: {type(error).__name__}: {line(error)}; {then}") from error


def _begin_client(begin: Callable[[], Client]) -> Client:
    """A client that has begun. Dask's asserts that a scheduler greets it with one message, and fails where news for all clients
    come with it, as a busy cluster has them: then once more.
    """
    for _ in range(4):
        try:
            return begin()
        except AssertionError:
            with suppress(ValueError):
                if (failed := default_client()).status != "running":
                    failed.close()
    return begin()


async def _handshake(address: str, seconds: float, security: Security) -> None:
    """Raises TimeoutError where somebody accepts connections and says nothing: a client would wait for ever."""
    reached = comm_connect(address, timeout=seconds, **security.get_connection_args("client"))
    comm = await asyncio.wait_for(reached, seconds + 1)
    await comm.close()


@contextmanager
def inside(asked: Mapping[str, Any]) -> Iterator[Client]:
    """The client of a task that runs on a worker; while it waits, its thread is given to other tasks. What was ``asked`` where
    that task was sent holds for those that it sends.
    """
    _begin_client(get_client)
    with worker_client() as client, dask.annotate(**asked):
        yield client


@contextmanager
def begin_call(client: Client, call: Callable[..., Awaitable[Any]], *args: Any, **options: Any) -> Iterator[Future[Any]]:
    """What a method of the client will return. When the wait for it ends early, nothing is left in the client's event loop;
    the client's own waits, when they are interrupted, may find nothing to cancel yet, and the loop prints a traceback.
    """

    async def call_client() -> Any:
        return await call(*args, asynchronous=True, **options)

    coming = asyncio.run_coroutine_threadsafe(call_client(), client.loop.asyncio_loop)
    try:
        yield coming
    finally:
        coming.cancel()


def answer_within(seconds: float, client: Client, call: Callable[..., Awaitable[Any]], *args: Any) -> Any:
    """What the scheduler answers soon. Raises TimeoutError when it does not."""
    with begin_call(client, call, *args) as coming:
        seconds = at_most(seconds)
        deadline = time.monotonic() + seconds
        while wait([coming], LOOK_SECONDS).not_done:
            pause(0)
            if time.monotonic() > deadline:
                raise TimeoutError(f"no answer from the scheduler within {seconds:g} s")
        return coming.result()


def _apart(awaited: Awaitable[Any]) -> Any:
    """What it returns, in a thread of its own: in a notebook this one runs an event loop already."""
    made: list[Any] = []

    async def run() -> None:
        made.extend(await asyncio.gather(awaited, return_exceptions=True))

    thread = Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(LOOK_SECONDS)
        pause(0)
    if isinstance(made[0], BaseException):
        raise made[0]
    return made[0]


def line(error: BaseException) -> str:
    """Its text in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def name_worker(error: OSError, where: str = "storage") -> DfeasError:
    """What storage raised in a task, which is no loss of the cluster: where it was, and the worker with its host."""
    told: DfeasError = error if isinstance(error, DfeasError) else refused_by_system(error.filename or where, error)
    return type(told)(f"{told.args[0]} (worker {get_worker().address} on {socket.gethostname()})")
