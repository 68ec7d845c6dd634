"""A run, from its beginning or from a checkpoint: survey, methods, driver. What ``solve``, ``race`` and ``resume`` share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dfeas.certificate import Certificate
from dfeas.driver import never, run
from dfeas.errors import CorruptDataError
from dfeas.keeping import Checkpoint, Job, Keeper, Sinks
from dfeas.kernelled import KERNEL_METHODS
from dfeas.kernels import Kernel
from dfeas.lane import Lane, Outcome, without_a_pass
from dfeas.methods import METHODS
from dfeas.projection_kernel import tile_bytes
from dfeas.request import facts_of
from dfeas.setting import Setting, survey
from dfeas.termination import Goal, Limits


@dataclass(frozen=True)
class Ran:
    """How a run ended."""

    outcomes: dict[str, Outcome]  # of each method
    survey_reads: int
    reads: float  # all others


def ran(
    setting: Setting,
    job: Job,
    sinks: Sinks,
    keeper: Keeper,
    earlier: Checkpoint | None,
    stop: Callable[[], bool] = never,
) -> Ran:
    """Run the methods of a job, from an earlier moment if there is one.

    Raises CorruptDataError when the data is not what it was at that moment.
    """
    dataset = setting.dataset
    found = survey(setting)
    if earlier is not None and earlier.fingerprint not in ("", dataset.fingerprint):
        raise CorruptDataError(
            f"{dataset.where}: not the data that this run began with (fingerprint {dataset.fingerprint[:12]}, "
            f"expected {earlier.fingerprint[:12]}); restore it, or begin another run"
        )
    if earlier is not None and earlier.survey is not None:
        found = replace(found, reads=found.reads + earlier.survey.reads)
    keeper.fingerprint, keeper.survey = dataset.fingerprint, found
    kernel = Kernel.from_text(job.kernel, setting.checking.function) if job.kernel else None
    if found.zero is not None and not dataset.intercept and (kernel is None or kernel.zero_at_zero):
        outcomes = {name: zero_point(setting, name, found.zero, job.kernel) for name in job.methods}
        return Ran(outcomes, found.reads, sum(outcome.reads for outcome in outcomes.values()))
    asked = job.asked
    if kernel is not None:
        setting.engine.keep_pairs(
            tile_bytes(dataset, kernel, job.methods, asked.memory, workers=setting.workers, threads=setting.threads)
        )
    facts = facts_of(dataset, asked.memory // len(job.methods), asked.margin_tolerance, found.radius)
    lanes = []
    for name in job.methods:
        method = METHODS[name]() if kernel is None else KERNEL_METHODS[name](kernel)
        goal = Goal(asked.eps, asked.margin_tolerance)
        lanes.append(Lane(method, method.init(facts), goal, sinks[name], job.kernel))
    moment = None if earlier is None else earlier.moment
    if moment is not None:
        for lane, kept in zip(lanes, moment.lanes, strict=True):
            lane.restore(kept)
    ended, reads = run(
        setting.engine,
        lanes,
        Limits(asked.max_passes, asked.time_limit),
        fingerprint=dataset.fingerprint,
        verify=setting.checking,
        to_the_end=job.to_the_end,
        shared=0 if moment is None else moment.shared,
        keep=keeper,
        stop=stop,
        began=asked.began,
    )
    return Ran(dict(zip(job.methods, ended, strict=True)), found.reads, reads)


def zero_point(setting: Setting, method: str, zero: int, kernel: str = "") -> Outcome:
    """A zero point is a Gordan certificate by itself."""
    mark = setting.dataset.fingerprint
    certificate = Certificate("gordan", mark, support=np.array([zero]), weights=np.ones(1), kernel=kernel)
    return without_a_pass(method, certificate, setting.checking(certificate))
