"""Runs whose driver is a task of the cluster itself."""

from __future__ import annotations

import math
import pickle
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfeas.answers.files import CERTIFICATE, RESULT, RUN, TRACE
from dfeas.api import resume, soft_margin, solve
from dfeas.cli.outputs import DRIVERS, RunStatus, look_at
from dfeas.data.ingest.options import is_file
from dfeas.data.open import resolve
from dfeas.data.source import ALL_POSITIVE, ChosenTable, DataSpec, Source
from dfeas.data.storage.files import atomic_write
from dfeas.data.storage.locks import exists_error
from dfeas.data.storage.outputs import replace_output
from dfeas.data.storage.places import absolute, is_url, local, place, require_apart
from dfeas.engine.protocol import open_client
from dfeas.errors import BadInputError, ClusterLostError, DfeasError, UsageError
from dfeas.geometry.protocol import Load
from dfeas.geometry.registry import geometry_of, kernel_options, known_method
from dfeas.problem import Goal, Objective, Problem, check
from dfeas.records import replace
from dfeas.run.checkpoint.folder import can_go_on, is_finished, require_free
from dfeas.run.cost import choose_method
from dfeas.run.resources import Limits, Resources, attend_runs
from dfeas.run.session import open_session
from dfeas.run.spec import require_labels
from dfeas.settings import parse_bytes

if TYPE_CHECKING:
    from distributed import Client, Future

    from dfeas.engine.watch import Watch

RUNS = "dfeas-runs"
"""Where the scheduler keeps what was submitted: the folder of each, and whether it was cancelled."""
CANCELLED, BEGUN = "cancelled", "begun"
PATIENCE = 30.0
"""Seconds to wait for a worker that answers."""


def submit(
    X: str | Path | Sequence[str | Path] | ChosenTable,
    y: str | Path | None = None,
    *,
    out: str | Path,
    client: Any = True,
    C: float | Sequence[float] | None = None,
    **options: Any,
) -> str:
    """Have a worker of a cluster drive ``dfeas.solve``, and return the id of the run at once.

    If the driving worker dies, another one goes on from the last checkpoint.

    Parameters
    ----------
    X : path, or paths
        The data, under a path that all workers see; or a table of it, as ``dfeas.table`` returns.
    y : path, optional
        Likewise.
    out : path
        Folder for the run, likewise.
    client : dask.distributed Client or cluster, str, or bool
        That of ``dfeas.solve``: by default the current client, else the cluster of Dask's ``scheduler-address``.
    C : float or sequence of float, optional
        Fit a soft margin with this C; None: a solve.
    **options : any
        Those of ``dfeas.solve`` or ``dfeas.soft_margin``, except ``callback`` and ``force``.

    Returns
    -------
    str
        The id, which ``status``, ``cancel`` and ``fetch`` take.

    Raises
    ------
    UsageError
        Options do not fit together or what data says, ``out`` exists or lies in the data, or no scheduler answers.
    BadInputError, CorruptDataError
        What a path names is not in its folder, where that is a folder here, too, or is no data that can be used.

    Examples
    --------
    >>> from dfeas.cli.remote import submit
    >>> submit("/shared/mail.data", out="/shared/run", client="tcp://head:8786")  # doctest: +SKIP
    'c56c787c'
    """
    return prepare(X, y, out=out, C=C, **options)(client)


def prepare(
    X: str | Path | Sequence[str | Path] | ChosenTable,
    y: str | Path | None = None,
    *,
    out: str | Path,
    C: float | Sequence[float] | None = None,
    **options: Any,
) -> Callable[[Any], str]:
    """What sends a run to the cluster of a client, and returns its id, for a run that was found to be one, as far as that is
    seen without a worker. Nothing is asked of a cluster, and no points are read.
    """
    seen = ("positive", "intercept", "mask", "transform", "kernel")
    problem = Problem.of(X, y, **{name: options[name] for name in seen if name in options})
    spec = problem.spec
    if isinstance(X, ChosenTable):
        X, y = replace(X, y=None), spec.labels
    if not (spec.by_path and isinstance(y, str | Path | None)):
        raise UsageError("a cluster reads the data by path: ingest the arrays first")
    options |= {"y": y} if C is None else {"y": y, "C": C}
    check(options, Limits, Objective if "C" in options else Goal)
    if "C" not in options:
        known_method(options.get("method", "auto"), kernel_options(problem.kernel), ("auto",))
    parse_bytes(options.get("memory"))
    require_apart(out, spec.where, *spec.also)
    folder = place(out).absolute()
    if folder.exists():
        require_free(folder)
    named = [spec.where, *spec.also, spec.mask, options.get("weights"), options.get("start")]
    for path in (Path(each) for each in named if isinstance(each, str | Path) and not is_url(each)):
        if not path.exists() and path.absolute().parent.is_dir():
            raise BadInputError(f"{path}: no such file or folder")
    if not is_url(spec.where) and Path(spec.where).exists():
        _require_usable(problem, options)
    options = {**options, **_absolute_paths(spec, options)}
    return partial(_submit, X if isinstance(X, ChosenTable) else [spec.where, *spec.also], str(folder), options)


def _submit(X: ChosenTable | list[str], out: str, options: dict[str, Any], client: Any) -> str:
    run = secrets.token_hex(4)
    with _reach(client) as there:
        from dfeas.engine.crew import asked_of_tasks
        from dfeas.engine.watch import Watch
        from dfeas.run.progress.cluster_log import user_name

        watch = Watch(there, places=[X.X] if isinstance(X, ChosenTable) else X)
        watch.threads()  # who is refused has submitted nothing
        began = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
        there.set_metadata([RUNS, run], {"out": out, "user": user_name(), "began": began})
        work = partial(_drive, run, X, out, options, asked_of_tasks())
        future = _send(watch, work, _task(run))
        there.publish_dataset(future, name=_task(run))
    return run


def _require_usable(problem: Problem, options: dict[str, Any]) -> None:
    """Raise what a run on data that is here, too, would raise before its first pass. A file of points is not read for that, and
    a memory that was not given is that of the workers.
    """
    spec, resources = problem.spec, Resources(memory=options.get("memory") or 1 << 60)  # bytes that nobody has
    if is_file(place(spec.where)):
        return
    with open_session(replace(problem, spec=replace(spec, transform=None)), resources, cones=True) as session:
        require_labels(spec, session.dataset)
        if "C" not in options:
            geometry = geometry_of(session.dataset, kernel_options(problem.kernel))
            load = Load(session.dataset, resources.memory_bytes)
            choose_method(geometry, options.get("method", "auto"), load, options.get("margin_tolerance"))


def _reach(client: Any) -> AbstractContextManager[Any]:
    return open_client(True if client is None else client)


def _send(watch: Watch, work: Callable[[], Any], key: str, **options: Any) -> Future:
    """Some work to a worker that can do it, if it is known who cannot: others may join when nobody here looks, and hand it on.
    It travels as bytes, which only a task of this dfeas opens, so that nobody is harmed by it.
    """
    from dfeas.engine.crew import here, text_call

    client, asked = watch.client, text_call("begin", here()["digest"], pickle.dumps(work))
    chosen = 0 < len(watch.threads()) < len(client.nthreads())
    with watch.crew.annotate_tasks() if chosen else nullcontext():
        return client.submit(eval, *asked, key=key, pure=False, **options)


def _task(run: str) -> str:
    return f"dfeas-run-{run}"


def _absolute_paths(spec: DataSpec, options: dict[str, Any]) -> dict[str, Any]:
    """Paths among the options, as workers in other folders find them."""
    names = [name for name in ("mask", "weights", "dual") if isinstance(options.get(name), str | Path)]
    paths: dict[str, Any] = {name: str(local(options[name], name).absolute()) for name in names}
    if options.get("start") is not None:
        paths["start"] = absolute(options["start"])
    if options.get("y") not in (None, ALL_POSITIVE):
        paths["y"] = resolve(Source(DataSpec(spec.where, options["y"], choice=spec.choice))).spec.labels
    return paths


def _drive(run: str, X: ChosenTable | list[str], out: str, options: dict[str, Any], asked: dict[str, Any]) -> None:
    """On a worker: begin the run, or go on with it when another worker had begun."""
    from dfeas.engine.clusters import inside

    with inside(asked) as client:
        cancelled = _Cancelled(client, run)
        if not client.get_metadata([RUNS, run, BEGUN], False):  # what is there is of somebody else
            require_free(place(out))
            client.set_metadata([RUNS, run, BEGUN], True)
        if is_finished(place(out)) or cancelled():
            return
        with attend_runs(cancelled):
            if can_go_on(place(out)):
                resume(out, client=client, kernel=options.get("kernel"))
            else:
                begin = soft_margin if "C" in options else solve
                begin(X, out=out, client=client, **options)


@dataclass
class _Cancelled:
    """Whether somebody has cancelled a run; the scheduler is asked now and then."""

    client: Client
    run: str
    asked: float = -math.inf  # when
    found: bool = False

    def __call__(self) -> bool:
        now = time.monotonic()
        if not self.found and now - self.asked >= 0.5:  # between two looks of a driver whether its run was cancelled
            self.asked = now
            with suppress(OSError):  # of a scheduler that is gone the engine will hear
                self.found = bool(self.client.get_metadata([RUNS, self.run, CANCELLED], False))
        return self.found


def status(run: str | None = None, *, client: Any = True) -> list[RunStatus]:
    """The state of submitted runs, one or all of them, and of all others that use the cluster just now.

    Parameters
    ----------
    run : str, optional
        The id of one that was submitted.
    client : dask.distributed Client or cluster, str, or bool
        That of ``dfeas.solve``: by default the current client, else the cluster of Dask's ``scheduler-address``.

    Returns
    -------
    list of RunStatus
        What the driver of each does, and how far its run is.

    Raises
    ------
    BadInputError
        The cluster knows no such run.

    Examples
    --------
    >>> from dfeas.cli.remote import status
    >>> print(*status(client="tcp://head:8786"), sep="\\n")  # doctest: +SKIP
    c56c787c: running, pass 12, margin -1.204e-02 .. 3.100e-02, 41.5 s  (driver running, /shared/run)
    """
    with _reach(client) as there:
        from dfeas.run.progress.cluster_log import runs_of  # loads Dask, which other commands here may not need

        runs: dict[str, Any] = there.get_metadata([RUNS], {})
        if run is not None and run not in runs:
            raise BadInputError(f"run {run}: not known to this cluster ({', '.join(runs) or 'no run was submitted to it'})")
        asked = {name: known for name, known in runs.items() if run in (None, name)}
        folders = [known["out"] for known in asked.values()]
        try:
            looks = _ask(there, _look, folders) if asked else []
        except (UsageError, ClusterLostError) as error:
            looks = [RunStatus("", "unknown", error=str(error))] * len(asked)
        found = [_describe_run(there, name, known, seen) for (name, known), seen in zip(asked.items(), looks, strict=True)]
        outs = {known["out"] for known in runs.values()}
        others = [each for each in runs_of(there) if each["out"] not in outs] if run is None else []
        return found + [RunStatus(**{"state": "running", **each}) for each in others]


def _describe_run(client: Client, run: str, known: dict[str, Any], seen: RunStatus) -> RunStatus:
    """What the task of a run does, with what a worker reads in its folder."""

    def find_state(dask_scheduler: Any, key: str) -> str:
        return str(dask_scheduler.tasks[key].state) if key in dask_scheduler.tasks else "lost"

    task, error = client.run_on_scheduler(find_state, key=_task(run)), None
    if task == "erred":
        reason = client.get_dataset(_task(run)).exception(timeout=PATIENCE)
        error = str(reason) if isinstance(reason, DfeasError) else f"{type(reason).__name__}: {reason}"
    if task == "lost" and CANCELLED in known:
        task = CANCELLED
    found = replace(seen, user=known.get("user", seen.user), began=seen.began or known.get("began"))
    return replace(found, run=run, out=known["out"], task=task, error=error or found.error)


def _ask(client: Client, question: Any, asked_of: Any) -> Any:
    """What a worker says of a folder, or of several. Raises UsageError where none can, and ClusterLostError where none does."""
    from dfeas.engine.watch import Watch  # loads Dask, which other commands here may not need

    watch = Watch(client)
    if not watch.threads():
        raise ClusterLostError("the cluster has no worker just now that could look")
    asked = _send(watch, partial(question, asked_of), f"dfeas-look-{secrets.token_hex(8)}", priority=100)
    try:
        return asked.result(timeout=PATIENCE)
    except TimeoutError:
        raise ClusterLostError(f"no worker answered within {PATIENCE:.0f} s") from None


def _look(outs: Sequence[str]) -> list[RunStatus]:
    """On a worker: how far the runs in some folders are."""
    found = []
    for out in outs:
        try:
            found.append(look_at(out))
        except BadInputError:
            found.append(RunStatus(out, "not begun"))
    return found


def cancel(run: str, *, client: Any = True) -> RunStatus:
    """End a submitted run after the read that it is at, with a checkpoint from which ``dfeas.resume`` goes on with its folder.

    Parameters
    ----------
    run : str
        The id.
    client : dask.distributed Client or cluster, str, or bool
        That of ``dfeas.solve``: by default the current client, else the cluster of Dask's ``scheduler-address``.

    Returns
    -------
    RunStatus
        The state at once: the task is still "processing" if it had begun, otherwise "cancelled", and will not begin.

    Raises
    ------
    BadInputError
        The cluster knows no such run, or it has ended.

    Examples
    --------
    >>> from dfeas.cli.remote import cancel
    >>> cancel("c56c787c", client="tcp://head:8786").task  # doctest: +SKIP
    'processing'
    """
    with _reach(client) as there:
        (found,) = status(run, client=there)
        if found.task in ("memory", "erred", "lost", CANCELLED):
            raise BadInputError(f"run {run}: has ended already ({DRIVERS.get(found.task, found.task)})")
        there.set_metadata([RUNS, run, CANCELLED], time.time())
        if found.task == "processing":
            return found
        there.cancel([there.get_dataset(_task(run))], force=True)
        there.unpublish_dataset(_task(run))
        return replace(found, task=CANCELLED)


def fetch(run: str, out: str | Path | None = None, *, force: bool = False, client: Any = True) -> Path:
    """Copy result, certificate and trace of a submitted run into a new folder here, whole or not at all.

    Parameters
    ----------
    run : str
        The id, or the URL of a run in an object store, which needs no cluster.
    out : path, optional
        The folder; by default one named by the id, or as the run is.
    force : bool
        As in ``dfeas.solve``.
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
        The folder exists.

    Examples
    --------
    >>> from dfeas.cli.remote import fetch
    >>> fetch("c56c787c", client="tcp://head:8786")  # doctest: +SKIP
    PosixPath('c56c787c')
    """
    folder = Path(place(run).name) if out is None else local(out, "out")
    with replace_output(folder, RUN, force):
        _copy(run, folder, client)
    return folder


def _copy(run: str, folder: Path, client: Any) -> None:
    if folder.exists():
        raise exists_error(folder)
    if is_url(run):
        files = _read_files(run)
    else:
        with _reach(client) as there:
            (found,) = status(run, client=there)
            if found.error is not None and found.state != "unknown":
                raise BadInputError(f"run {run}: it failed: {found.error}")
            files = _ask(there, _read_files, str(found.out))
    if RESULT not in files:
        raise BadInputError(f"run {run}: no result yet, see dfeas status {run}")
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for name, content in files.items():
        with atomic_write(part / name) as file:
            file.write(content)
    part.rename(folder)


def _read_files(out: str) -> dict[str, bytes]:
    folder = place(out)
    return {name: (folder / name).read_bytes() for name in (RESULT, CERTIFICATE, TRACE) if (folder / name).is_file()}
