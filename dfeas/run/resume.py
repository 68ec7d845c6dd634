"""Go on with a run that was interrupted or reached a limit, from its last checkpoint."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dfeas.data.source import Transform
from dfeas.data.storage.scratch import Scratch
from dfeas.errors import BadInputError, CorruptDataError, UsageError, visible
from dfeas.problem import Goal, Kernel, Limits, Output, Problem, Resources, View
from dfeas.run.checkpoint.folder import Checkpoints, finished, run_folder_again
from dfeas.run.checkpoint.job import Checkpoint, RunSpec, request, where
from dfeas.run.execute import execute
from dfeas.run.progress import run_options
from dfeas.run.results import CHECKPOINT, versions
from dfeas.run.session import open_session

logger = logging.getLogger("dfeas")


@dataclass(frozen=True)
class Resumed:
    """A run that went on, and what it was asked, for what follows from its answer."""

    answer: Any
    job: RunSpec
    problem: Problem
    limits: Limits
    resources: Resources


def go_on(run: Path, problem: Problem, limits: Limits, resources: Resources, output: Output) -> Resumed:
    """The data of ``problem`` is that of the checkpoint where X is None; its view is that of the run, but for a mask.

    Limits that are None, and the memory, are those of the run.
    """
    if not run.is_dir():
        raise BadInputError(f"{run}: no such run")
    if finished(run):
        raise BadInputError(f"{run}: the run is finished, nothing to resume")
    with ExitStack() as stack:
        folder = stack.enter_context(run_folder_again(run))
        earlier = Checkpoints(folder / CHECKPOINT).load(Scratch(folder / "scratch"))
        if not isinstance(earlier, Checkpoint):
            raise CorruptDataError(f"{folder / CHECKPOINT}: not a checkpoint of a run")
        _warn_of_versions(run, earlier)
        job = earlier.job
        problem = _as_asked(run, job, problem)
        asked = job.asked
        limits = Limits(
            max_passes=asked.max_passes if limits.max_passes is None else limits.max_passes,
            time_limit=asked.time_limit if limits.time_limit is None else limits.time_limit,
        )
        resources = replace(resources, memory=asked.memory)
        renewed = request(Goal(eps=asked.eps, margin_tolerance=asked.margin_tolerance), limits, resources)
        opened = open_session(
            problem, resources, folder, cones=True, progress=output.progress, transform=job.transform or Transform()
        )
        session = stack.enter_context(opened)
        if job.classes and session.dataset.classes != job.classes:
            raise CorruptDataError(f"{session.dataset.where}: its classes are not those that this run began with")
        job = replace(job, asked=replace(renewed, began=renewed.began - earlier.seconds), **where(session))
        answer = execute(session, job, run_options(resources.checkpoint_every, output), folder, earlier)
    return Resumed(answer, job, problem, limits, resources)


def _warn_of_versions(run: Path, earlier: Checkpoint) -> None:
    here = versions()
    other = [f"{name} {was}, now {here.get(name)}" for name, was in earlier.versions.items() if here.get(name) != was]
    if other:
        logger.warning("%s: begun with %s: the bits may differ", run, visible("; ".join(other)))


def _as_asked(run: Path, job: RunSpec, given: Problem) -> Problem:
    """The problem of a job, with data that is given anew, if it is."""
    X, labels = given.X, given.labels
    if X is None:
        if job.path is None:
            raise UsageError(f"{run}: the data of this run was in memory; call dfeas.resume(run, X, labels)")
        X, labels = job.path, job.labels
    view = View(
        intercept=job.intercept,
        positive=job.positive,
        one_vs_rest=bool(job.classes),
        also=job.also,
        mask=job.mask if given.view.mask is None else given.view.mask,
        point=job.point,
    )
    return Problem(X, labels, view, Kernel(kernel=given.kernel.kernel))
