"""Runs whose driver is a task of the cluster itself, and what the folder of a run says of it."""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfeas.analysis.hard_margin import HardMargin
from dfeas.analysis.separation import Separation
from dfeas.api import resume, soft_margin, solve
from dfeas.cli.status import RunStatus, Submitted, run_status
from dfeas.data.open import resolve
from dfeas.data.source import ALL_POSITIVE, DataSpec
from dfeas.data.storage.files import atomic_write
from dfeas.data.storage.places import absolute, local, paths_of, require_apart
from dfeas.errors import BadInputError, ClusterLostError, DfeasError, UsageError, format_bytes
from dfeas.geometry.registry import kernel_options, known_method
from dfeas.keywords import like
from dfeas.problem import Goal, Kernel, Objective, View, check
from dfeas.run.checkpoint.folder import finished, resumable
from dfeas.run.resources import Limits
from dfeas.run.result_files import CERTIFICATE, RESULT, TRACE
from dfeas.run.results import Result
from dfeas.run.soft_margin.result import SoftMarginResult
from dfeas.run.verdict import OneVsRest, Race
from dfeas.settings import parse_bytes

if TYPE_CHECKING:
    from distributed import Client

RUNS = "dfeas-runs"
"""Where the scheduler keeps what was submitted."""

CANCELLED = "cancelled"
"""Of a run there, and the word for its driver when it has not begun."""

ENDED = ("memory", "erred", "lost", CANCELLED)
"""Drivers that do nothing any more."""

ASK_SECONDS = 0.5
"""Between two looks of a driver whether its run was cancelled."""

PATIENCE = 30.0
"""Seconds to wait for a worker that answers."""

FETCHED_BYTES = 1 << 30
"""Larger results are copied from where they are."""


@like(solve, soft_margin, without=("y", "progress", "callback", "stop"))  # type: ignore[has-type, unused-ignore]  # the stub imports this
def submit(
    X: str | Path,
    labels: str | Path | None = None,
    *,
    out: str | Path,
    client: Any = True,
    C: float | Sequence[float] | None = None,
    **options: Any,
) -> str:
    """Have a worker of a cluster drive ``dfeas.solve``, and return the id of the run at once.

    Should the driving worker die, another one goes on from the last checkpoint.

    Parameters
    ----------
    X : path
        The data, under a path that all workers see.
    labels : path, optional
        Likewise.
    out : path
        Folder for the run, likewise.
    client : dask.distributed Client or cluster, str, or bool
        That of ``dfeas.solve``: by default the current client, else the cluster of Dask's ``scheduler-address``.
    C : float or sequence of float, optional
        Of a soft margin, which is then what is driven; None: a solve.

    Returns
    -------
    str
        The id, which ``dfeas.status``, ``dfeas.cancel`` and ``dfeas.fetch`` take.

    Raises
    ------
    UsageError
        Options that make no sense, or no scheduler answers.

    Examples
    --------
    >>> import dfeas
    >>> dfeas.submit("/shared/mail.data", out="/shared/run", client="tcp://head:8786")  # doctest: +SKIP
    'c56c787c'
    """
    if not all(isinstance(each, str | Path | None) for each in (X, labels)):
        raise UsageError("a cluster reads the data by path: ingest the arrays first")
    options |= {"labels": labels} if C is None else {"labels": labels, "C": C}
    check(options, View, Limits, Objective if "C" in options else Goal)
    if "C" not in options:
        _require_solvable(options)
    parse_bytes(options.get("memory"))
    require_apart(out, X, *paths_of(options.get("also", ()), "--also"))
    run = secrets.token_hex(4)
    data, folder = absolute(X), str(local(out, "--out").absolute())
    options = {**options, **_absolute_paths(data, options)}
    with _reached(client) as there:
        there.set_metadata([RUNS, run], {"out": folder, "data": data, "submitted": time.time()})
        future = there.submit(_drive, run, data, folder, options, key=_task(run), pure=False)
        there.publish_dataset(future, name=_task(run))
    return run


def _reached(client: Any) -> AbstractContextManager[Client]:
    from dfeas.engine.clusters import client_of

    return client_of(True if client is None else client)


def _task(run: str) -> str:
    """The key of the task that drives a run."""
    return f"dfeas-run-{run}"


def _require_solvable(options: dict[str, Any]) -> None:
    """Raise UsageError for options of a solve that make no sense."""
    method, kernel = options.get("method", "auto"), options.get("kernel")
    asked = Kernel(kernel=kernel, **{name: options.get(name) for name in ("gamma", "degree", "coef0")})
    space = kernel_options(asked, options.get("scratch"))
    known_method(method, space, ("auto",))


def _absolute_paths(data: str, options: dict[str, Any]) -> dict[str, Any]:
    """Paths among the options, as workers in other folders find them."""
    paths: dict[str, Any] = {}
    if options.get("labels") not in (None, ALL_POSITIVE):
        paths["labels"] = resolve(DataSpec(data, options["labels"])).labels
    if options.get("also"):
        paths["also"] = tuple(absolute(each) for each in paths_of(options["also"], "--also"))
    for name in ("mask", "weights", "dual"):
        if isinstance(options.get(name), str | Path):
            paths[name] = str(local(options[name], f"--{name}").absolute())
    return paths


def status(run: str | None = None, *, client: Any = True) -> list[Submitted]:
    """How submitted runs are, one or all of them.

    Parameters
    ----------
    run : str, optional
        The id of one.
    client : dask.distributed Client or cluster, str, or bool
        That of ``dfeas.solve``: by default the current client, else the cluster of Dask's ``scheduler-address``.

    Returns
    -------
    list of Submitted
        What the driver of each does, and how far its run is.

    Raises
    ------
    BadInputError
        The cluster knows no such run.

    Examples
    --------
    >>> import dfeas
    >>> print(*dfeas.status(client="tcp://head:8786"), sep="\\n")  # doctest: +SKIP
    c56c787c: running, pass 12, margin -1.204e-02 .. 3.100e-02, 41.5 s  (driver processing, /shared/run)
    """
    with _reached(client) as there:
        return [_status(there, name, known) for name, known in _known(there, run).items()]


def _known(client: Client, run: str | None) -> dict[str, dict[str, Any]]:
    """What the cluster keeps of one run, or of all."""
    runs: dict[str, Any] = client.get_metadata([RUNS], {})
    if run is not None and run not in runs:
        raise BadInputError(f"run {run}: not known to this cluster ({', '.join(runs) or 'no run was submitted to it'})")
    return runs if run is None else {run: runs[run]}


def cancel(run: str, *, client: Any = True) -> Submitted:
    """End a submitted run after the read that it is at, with a checkpoint from which ``dfeas.resume`` goes on with its folder.

    Parameters
    ----------
    run : str
        The id.
    client : dask.distributed Client or cluster, str, or bool
        That of ``dfeas.solve``: by default the current client, else the cluster of Dask's ``scheduler-address``.

    Returns
    -------
    Submitted
        At once: its driver is still "processing" where it had begun, otherwise "cancelled", and will not begin.

    Raises
    ------
    BadInputError
        The cluster knows no such run, or it has ended.

    Examples
    --------
    >>> import dfeas
    >>> dfeas.cancel("c56c787c", client="tcp://head:8786").task  # doctest: +SKIP
    'processing'
    """
    with _reached(client) as there:
        known, name = _known(there, run)[run], _task(run)
        task, _ = _driver(there, run, known)
        if task in ENDED:
            raise BadInputError(f"run {run}: has ended already ({task})")
        there.set_metadata([RUNS, run, CANCELLED], time.time())
        if task != "processing":
            there.cancel([there.get_dataset(name)], force=True)
            there.unpublish_dataset(name)
            task = CANCELLED
    return Submitted(run, known["out"], task, "", None)


def fetch(run: str, to: str | Path | None = None, *, client: Any = True) -> Path:
    """Copy result, certificate and trace of a submitted run into a new folder here, whole or not at all.

    Parameters
    ----------
    run : str
        The id.
    to : path, optional
        The folder; by default one named by the id.
    client : dask.distributed Client or cluster, str, or bool
        That of ``dfeas.solve``: by default the current client, else the cluster of Dask's ``scheduler-address``.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    BadInputError
        There is no result yet.
    UsageError
        The folder exists, or the files are too large.

    Examples
    --------
    >>> import dfeas
    >>> dfeas.fetch("c56c787c", client="tcp://head:8786")  # doctest: +SKIP
    PosixPath('c56c787c')
    """
    folder = Path(run if to is None else to)
    if folder.exists():
        raise UsageError(f"{folder}: exists already; choose another output or remove it")
    with _reached(client) as there:
        (submitted,) = status(run, client=there)
        if submitted.task == "erred":
            raise BadInputError(f"run {run}: it failed: {submitted.error}")
        files = _ask(there, _files, submitted.out)
    if files is None:
        raise ClusterLostError(f"no worker answered within {PATIENCE:.0f} s")
    if RESULT not in files:
        raise BadInputError(f"run {run}: no result yet, see dfeas status {run}")
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for name, content in files.items():
        with atomic_write(part / name) as file:
            file.write(content)
    part.rename(folder)
    return folder


def _drive(run: str, X: str, out: str, options: dict[str, Any]) -> str:
    """On a worker: begin the run, or go on with it when another worker had begun."""
    from dfeas.engine.clusters import inside

    with inside() as client:
        cancelled = Cancelled(client, run)
        if finished(Path(out)):
            return "finished"
        if cancelled():
            return CANCELLED
        result: Result | Race | OneVsRest | SoftMarginResult | HardMargin | Separation
        if resumable(Path(out)):
            more: dict[str, Any] = {name: options[name] for name in ("checkpoint_every", "scratch") if name in options}
            kernel = options.get("kernel")
            result = resume(out, client=client, kernel=kernel if callable(kernel) else None, stop=cancelled, **more)
        else:
            begin = soft_margin if "C" in options else solve
            result = begin(X, out=out, client=client, stop=cancelled, **options)
    return result.verdict.value if isinstance(result, Result) else "finished"


class Cancelled:
    """Whether somebody has cancelled a run; the scheduler is asked now and then."""

    def __init__(self, client: Client, run: str) -> None:
        self._client, self._run = client, run
        self._asked, self._found = -ASK_SECONDS, False

    def __call__(self) -> bool:
        now = time.monotonic()
        if not self._found and now - self._asked >= ASK_SECONDS:
            self._asked = now
            with suppress(OSError):  # of a scheduler that is gone the engine will hear
                self._found = bool(self._client.get_metadata([RUNS, self._run, CANCELLED], False))
        return self._found


def _status(client: Client, run: str, known: dict[str, Any]) -> Submitted:
    task, error = _driver(client, run, known)
    reached = _ask(client, _run_status, known["out"])
    return Submitted(run, known["out"], task, error, None if reached is None else replace(reached, run=run))


def _driver(client: Client, run: str, known: dict[str, Any]) -> tuple[str, str]:
    """What its task does, and why it failed."""

    def state(dask_scheduler: Any, key: str) -> str:
        return str(dask_scheduler.tasks[key].state) if key in dask_scheduler.tasks else "lost"

    task = client.run_on_scheduler(state, key=_task(run))
    if task == "erred":
        reason = client.get_dataset(_task(run)).exception(timeout=PATIENCE)
        return task, str(reason) if isinstance(reason, DfeasError) else f"{type(reason).__name__}: {reason}"
    return CANCELLED if task == "lost" and CANCELLED in known else task, ""


def _ask(client: Client, question: Any, out: str) -> Any:
    """What a worker says of a folder; None when none answers in time."""
    future = client.submit(question, out, key=f"dfeas-look-{secrets.token_hex(8)}", pure=False, priority=100)
    try:
        return future.result(timeout=PATIENCE)
    except TimeoutError:
        return None
    finally:
        future.release()


def _run_status(out: str) -> RunStatus | None:
    try:
        return run_status(out)
    except BadInputError:
        return None


def _files(out: str) -> dict[str, bytes]:
    """The files of a result, if there is one."""
    present = [path for path in (Path(out) / name for name in (RESULT, CERTIFICATE, TRACE)) if path.is_file()]
    size = sum(path.stat().st_size for path in present)
    if size > FETCHED_BYTES:
        raise UsageError(f"the result has {format_bytes(size)}; copy it from {out}")
    return {path.name: path.read_bytes() for path in present}
