"""A run, from its beginning or from a checkpoint: survey, methods, driver. What ``solve``, ``race`` and ``resume`` share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dfeas.errors import CheckFailedError, CorruptDataError
from dfeas.geometry.protocol import Load, facts_of
from dfeas.run.checkpoint.job import Checkpoint, Job, Keeper, Sinks
from dfeas.run.driver import never, run
from dfeas.run.session import Setting, Surveyed, survey
from dfeas.run.task import E, Lane, Outcome, Runner, without_a_pass
from dfeas.run.termination import Goal, Limits
from dfeas.verify.certificate import Certificate


@dataclass(frozen=True)
class Ran:
    """How a run ended."""

    outcomes: dict[str, Outcome]  # of each method, or of each class
    survey_reads: int
    reads: float  # all others


def surveyed(setting: Setting, keeper: Keeper, earlier: Checkpoint | None) -> Surveyed:
    """One look at the data. Raises CorruptDataError when it is not what it was at an earlier moment."""
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
    return found


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
    found = surveyed(setting, keeper, earlier)
    geometry = setting.geometry(job.kernel)
    if found.zero is not None and not dataset.intercept and geometry.zero_is_origin:
        return zero_point(setting, job, found)
    asked = job.asked
    count = lanes_abreast(setting, job)
    make = geometry.maker(dataset, asked.memory, count if job.classes else None)
    load = Load(dataset, job.methods, asked.memory, setting.workers, setting.threads, count if job.classes else 1)
    geometry.prepare(setting.engine, load, setting.tiles)
    facts = facts_of(dataset, asked.memory // count, asked.margin_tolerance, found.radius)
    lanes = []
    for name in job.lanes:
        method_name = job.methods[0] if job.classes else name
        method = make(method_name)
        lane = Lane(method, method.init(facts), Goal(asked.eps, asked.margin_tolerance), sinks[name], job.kernel)
        if job.classes:
            seen = dataset.against_rest(name)
            lane.code, lane.view, lane.fingerprint = dataset.codes[dataset.classes.index(name)], seen.view, seen.fingerprint
        else:
            lane.view = dataset.view
        lanes.append(lane)
    ended, reads = run_lanes(setting, job, lanes, count, keeper, earlier, stop)
    return Ran(dict(zip(job.lanes, ended, strict=True)), found.reads, reads)


def run_lanes(
    setting: Setting,
    job: Job,
    lanes: Sequence[Runner[E]],
    count: int,
    keeper: Keeper,
    earlier: Checkpoint | None,
    stop: Callable[[], bool],
) -> tuple[list[E], float]:
    """Run the lanes of a job, ``count`` side by side, from an earlier moment if there is one; how they ended, and all reads."""
    asked, moment = job.asked, None if earlier is None else earlier.moment
    if moment is not None:
        for lane, kept in zip(lanes, moment.lanes, strict=True):
            lane.restore(kept)
    return run(
        setting.engine,
        lanes,
        Limits(asked.max_passes, asked.time_limit),
        fingerprint=setting.dataset.fingerprint,
        verify=setting.checking,
        to_the_end=job.to_the_end,
        abreast=count,
        shared=0 if moment is None else moment.shared,
        keep=keeper,
        stop=stop,
        began=asked.began,
    )


def lanes_abreast(setting: Setting, job: Job) -> int:
    """How many lanes of a job share the memory side by side; others wait, and only classes do."""
    if not job.classes:
        return len(job.lanes)
    return setting.geometry(job.kernel).abreast(job.methods[0], len(job.classes), setting.dataset, job.asked.memory)


def zero_point(setting: Setting, job: Job, found: Surveyed) -> Ran:
    """A zero point is a Gordan certificate by itself, for any labels. Raises CheckFailedError when the checker sees none."""
    certificates = []
    for name in job.lanes:
        seen = setting.dataset.against_rest(name) if job.classes else setting.dataset
        weights = {"support": np.array([found.zero]), "weights": np.ones(1)}
        certificates.append(Certificate("gordan", seen.fingerprint, **weights, kernel=job.kernel, view=seen.view))
    outcomes = {}
    for name, certificate, check in zip(job.lanes, certificates, setting.checking(certificates), strict=True):
        if isinstance(check, CheckFailedError):
            raise check
        outcomes[name] = without_a_pass(job.methods[0] if job.classes else name, certificate, check)
    return Ran(outcomes, found.reads, 1)
