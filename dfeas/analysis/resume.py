"""``dfeas.resume``: go on with a run that was interrupted or reached a limit, from its last checkpoint."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfeas.analysis.hard_margin import HARD_MARGIN, HardMargin, widest
from dfeas.analysis.separation import Separation, separated
from dfeas.data.storage.scratch import Scratch
from dfeas.data.transform import Transform
from dfeas.errors import BadInputError, CorruptDataError, UsageError, visible
from dfeas.geometry.kernel.kernel import Function
from dfeas.problem import request
from dfeas.run.checkpoint.folder import Checkpoints
from dfeas.run.checkpoint.job import EVERY, Checkpoint, Job, where
from dfeas.run.driver import never
from dfeas.run.one_vs_rest import OneVsRest, classes_solved
from dfeas.run.progress import RunOptions
from dfeas.run.race import Race, raced
from dfeas.run.results import CHECKPOINT, RACE, RESULT, Result, versions
from dfeas.run.session import open_data, run_folder_again, set_up
from dfeas.run.soft_margin.fit import fitted
from dfeas.run.soft_margin.result import SoftMarginResult
from dfeas.run.solve import solved
from dfeas.run.transform import with_transform
from dfeas.verify.separation import SEPARATED

if TYPE_CHECKING:
    from distributed import Client

logger = logging.getLogger("dfeas")


def resume(
    run: str | Path,
    X: Any = None,
    labels: Any = None,
    *,
    mask: Any = None,
    max_passes: int | None = None,
    time_limit: float | None = None,
    cache_dir: str | Path | None = None,
    scratch: str | Path | None = None,
    checkpoint_every: float = EVERY,
    client: Client | None = None,
    progress: bool = False,
    kernel: Function | None = None,
    stop: Callable[[], bool] = never,
) -> Result | Race | OneVsRest | SoftMarginResult | HardMargin | Separation:
    """Go on with a run from its last checkpoint; the result has the same bits as if it had never been interrupted.

    Parameters
    ----------
    run : folder of a run of ``dfeas.solve``, ``dfeas.race``, ``dfeas.soft_margin``, ``dfeas.hard_margin`` or
        ``dfeas.separation``; it may have been moved.
    X, labels, mask : the data, if it was in memory or has been moved; it must be the same data.
    max_passes, time_limit : new limits, counted from the beginning of the run; None keeps those it had.
    client : a Dask client, or None for threads of this process, whatever it was before.
    kernel : the function of Python that was the kernel, if one was.

    ``cache_dir``, ``scratch``, ``checkpoint_every``, ``progress`` and ``stop`` are those of ``dfeas.solve``.

    Raises
    ------
    BadInputError : there is nothing to resume.
    UsageError : another process is working on the run, or the data is not known.
    CorruptDataError : no checkpoint can be read, or the data is not what it was.
    """
    path = Path(run)
    if not path.is_dir():
        raise BadInputError(f"{path}: no such run")
    if finished(path):
        raise BadInputError(f"{path}: the run is finished, nothing to resume")
    with ExitStack() as stack:
        folder = stack.enter_context(run_folder_again(path))
        found = Checkpoints(folder / CHECKPOINT).load(Scratch(folder / "scratch"))
        if not isinstance(found, Checkpoint):
            raise CorruptDataError(f"{folder / CHECKPOINT}: not a checkpoint of a run")
        job, here = found.job, versions()
        other = [f"{name} {was}, now {here.get(name)}" for name, was in found.versions.items() if here.get(name) != was]
        if other:
            logger.warning("%s: begun with %s: the bits may differ", path, visible("; ".join(other)))
        if X is None:
            if job.path is None:
                raise UsageError(f"{path}: the data of this run was in memory; call dfeas.resume(run, X, labels)")
            X, labels = job.path, job.labels
        asked = request(
            job.asked.eps,
            job.asked.margin_tolerance,
            job.asked.max_passes if max_passes is None else max_passes,
            job.asked.time_limit if time_limit is None else time_limit,
            job.asked.memory,
        )
        mask = job.mask if mask is None else mask
        data = open_data(X, labels, job.positive, job.intercept, job.point, bool(job.classes), job.also, mask, cache_dir, True)
        data = with_transform(data, job.transform or Transform(), asked.memory, client, progress)
        if job.classes and data[1].classes != job.classes:
            raise CorruptDataError(f"{data[1].where}: its classes are not those that this run began with")
        setting = set_up(stack, data, asked.memory, client, folder, kernel, scratch)
        job = replace(job, asked=replace(asked, began=asked.began - found.seconds), **where(setting))
        how = RunOptions(checkpoint_every, progress, stop)
        if job.soft is not None:
            return fitted(setting, job, folder, how, found)
        if job.classes or job.race:
            return (classes_solved if job.classes else raced)(setting, job, folder, how, found)
        result = solved(setting, job, folder, how, found)
    options = {"memory": asked.memory, "cache_dir": cache_dir, "client": client, "progress": progress, "stop": stop}
    options |= {"max_passes": asked.max_passes, "time_limit": asked.time_limit, "positive": job.positive}
    return _answered(job, result, X, labels, {**options, "intercept": job.intercept, "also": job.also, "mask": mask}, path)


def _answered(
    job: Job, result: Result, X: Any, labels: Any, options: dict[str, Any], run: Path
) -> Result | HardMargin | Separation:
    """What the solve was for."""
    if job.then == HARD_MARGIN:
        assert job.asked.margin_tolerance is not None, "it was asked for"
        return widest(result, job.asked.margin_tolerance, X, labels, options, run)
    return separated(result, X, labels, options, run) if job.then == SEPARATED else result


def resumable(run: Path) -> bool:
    """Whether there is something to go on from."""
    return bool(Checkpoints(run / CHECKPOINT).numbers)


def finished(run: Path) -> bool:
    """Whether a run has ended, and nothing is left to go on from."""
    return not resumable(run) and any((run / name).is_file() for name in (RESULT, RACE))
