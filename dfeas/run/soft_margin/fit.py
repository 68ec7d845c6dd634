"""Runs of soft margins: their tasks, what they will take, and what is returned of how a task ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dfeas.errors import ClusterLostError
from dfeas.geometry.protocol import facts_of
from dfeas.linalg.points import Floats
from dfeas.methods.soft_margin.memory import fits
from dfeas.methods.soft_margin.problem import STEEP, SoftMargin, counted
from dfeas.methods.soft_margin.registry import SOFT_MARGINS
from dfeas.passes.slacks import SampleCosts
from dfeas.run.checkpoint.job import Job
from dfeas.run.cost.projection import Projection, project_soft
from dfeas.run.margin_task import MarginLane, MarginOutcome, ending
from dfeas.run.progress import RunOptions
from dfeas.run.request import SoftMarginOptions
from dfeas.run.results import versions
from dfeas.run.session import Setting, Surveyed
from dfeas.run.soft_margin.result import Fit, SoftMarginResult, Validation, write_dual_variables
from dfeas.run.termination import Stop
from dfeas.run.trace import Sink


@dataclass(frozen=True)
class SoftMarginTarget:
    """A soft margin for each task: of the labels as they are, or of each class against the rest."""

    setting: Setting
    job: Job

    @property
    def options(self) -> SoftMarginOptions:
        assert self.job.soft is not None, "a soft margin has its options"
        return self.job.soft

    @property
    def abreast(self) -> int:
        """As many classes as leave each what it wants, or needs."""
        tasks, k = len(self.job.lanes), len(self.options.C) * (1 + self.options.folds)
        counts = list(dict.fromkeys(-(-tasks // turns) for turns in range(1, tasks + 1)))
        for enough in (SOFT_MARGINS[self.job.methods[0]].enough, fits):
            for count in counts:
                if enough(facts_of(self.setting.dataset, self.job.asked.memory // count), k):
                    return count
        return 1

    def projected(self) -> Projection:
        """Of one task."""
        sizes = {"workers": self.setting.workers, "threads": self.setting.threads}
        return project_soft(self.setting.dataset, self.job.methods[0], self.options, self.job.asked.memory, **sizes)

    def settled(self, surveyed: Surveyed) -> None:
        """Losses are finite at any point."""

    def tasks(self, surveyed: Surveyed, sinks: dict[str, list[Sink]]) -> list[MarginLane]:
        """One for each class, or one."""
        job, dataset = self.job, self.setting.dataset
        facts, tasks = facts_of(dataset, job.asked.memory // self.abreast, None, surveyed.radius), []
        for place, name in enumerate(job.lanes):
            method = self._method(surveyed, place)
            tasks.append(MarginLane(method, method.init(facts), job.asked.eps, sinks[name]))
            if job.classes:
                tasks[-1].code = dataset.codes[dataset.classes.index(name)]
        return tasks

    def _method(self, surveyed: Surveyed, place: int) -> SoftMargin:
        """The method, with the costs of all problems, of the class at this place where there are several."""
        options, n = self.options, self.setting.dataset.n
        classes = options.classes
        if classes is None:
            classes = n / (2 * max(1, n - surveyed.positive)), n / (2 * max(1, surveyed.positive))
        start = options.start[place] if options.start is not None and options.start.ndim == 2 else options.start
        return margin_method(self.job.methods[0], options, classes, self.job.asked.eps, start)

    def result(self, name: str, outcome: MarginOutcome, surveyed: Surveyed, how: RunOptions) -> SoftMarginResult:
        """With the dual variables in one more read, where they are asked for."""
        setting, job = self.setting, self.job
        if job.classes:
            setting = replace(setting, dataset=setting.dataset.against_rest(name))
        result = result_of(setting, job, outcome, surveyed.reads + outcome.reads)
        if self.options.dual is None or result.stopped == "interrupted":
            return result
        return with_dual_variables(setting, job, outcome, self._method(surveyed, 0).counted, result, how.stop)


def with_dual_variables(
    setting: Setting,
    job: Job,
    outcome: MarginOutcome,
    costs: SampleCosts,
    result: SoftMarginResult,
    stop: Callable[[], bool],
) -> SoftMarginResult:
    """One more read, which writes those of the chosen C on all points; a run that is interrupted then can go on."""
    options, dataset = job.soft, setting.dataset
    assert options is not None
    assert options.dual is not None
    problem = next(i for i, fit in enumerate(result.fits) if fit.C == result.C and fit.fold is None)
    question = outcome.progress.duals[problem].question(costs.take(np.array([problem])))
    try:
        dual = write_dual_variables(setting.engine, dataset, question, result.y, result.objective, Path(options.dual), stop)
    except (KeyboardInterrupt, ClusterLostError) as error:
        text = f"interrupted before all dual variables were written: {error}"
        return replace(result, stopped=Stop.INTERRUPTED, message=text)
    reads = result.reads + 1
    seconds = time.monotonic() - job.asked.began
    result = replace(result, dual=dual, reads=reads, bytes_read=round(reads * dataset.bytes), seconds=seconds)
    gap = (result.objective - dual.value) / result.objective if result.objective else 0.0
    if result.stopped != "verdict" or gap <= result.target:
        return result
    # scores that are summed in another order are other ones by rounding, which costs as large as these do not forgive
    fits = [replace(fit, lower=dual.value, gap=gap) if i == problem else fit for i, fit in enumerate(result.fits)]
    text = f"{Stop.STALLED.sentence}: the dual variables prove a relative gap of {gap:.2g} only, {STEEP}"
    return replace(result, stopped=Stop.STALLED, message=text, lower=dual.value, gap=gap, fits=fits)


def margin_method(
    name: str, options: SoftMarginOptions, classes: tuple[float, float], gap: float, start: Floats | None
) -> SoftMargin:
    """A method of this name, with weights of the classes -1 and +1, that begins at ``start`` (m,) if there is one."""
    costs = counted(options.C, options.folds, classes, options.weight, options.seed)
    begin = None if start is None else np.repeat(start[:, None], len(costs.C), axis=1)
    return SOFT_MARGINS[name].of(costs, gap, begin)


def result_of(setting: Setting, job: Job, outcome: MarginOutcome, reads: float) -> SoftMarginResult:
    """What is returned of an outcome."""
    dataset, options, best = setting.dataset, job.soft, outcome.progress.best
    assert options is not None, "a soft margin has its options"
    folds = options.folds
    each = range(len(options.C) * (1 + folds))
    fits = [
        Fit(
            C=options.C[i // (1 + folds)],
            fold=None if i % (1 + folds) == 0 else i % (1 + folds) - 1,
            objective=float(best.objective[i]),
            lower=float(best.lower[i]),
            gap=float(best.gap[i]),
            support=int(best.support[i]),
            error=None if np.isnan(best.error[i]) else float(best.error[i]),
        )
        for i in each
    ]
    validation = (
        [validated(C, [fit for fit in fits if C == fit.C and fit.fold is not None]) for C in options.C] if folds else []
    )
    chosen = int(np.argmin([entry.error for entry in validation])) if folds else len(options.C) - 1
    fit, y = fits[chosen * (1 + folds)], best.Y[:, chosen * (1 + folds)].copy()
    length = float(np.linalg.norm(y))
    return SoftMarginResult(
        stopped=Stop(outcome.stopped),
        message=ending(outcome.stopped, outcome.record),
        C=fit.C,
        loss=options.loss,
        objective=fit.objective,
        lower=fit.lower,
        gap=fit.gap,
        margin=1 / length if length > 0 else float("inf"),
        support=fit.support,
        error=fit.error,
        fits=fits,
        validation=validation,
        method=outcome.record.method,
        m=dataset.m,
        n=dataset.n,
        intercept=dataset.intercept,
        target=job.asked.eps,
        passes=outcome.record.passes,
        reads=reads,
        iterations=outcome.record.iterations,
        bytes_read=round(reads * dataset.bytes),
        seconds=time.monotonic() - job.asked.began if outcome.ended is None else outcome.ended,
        fingerprint=dataset.fingerprint,
        versions=versions(),
        data=setting.place,
        y=y,
        path=best.Y.T.copy(),
    )


def validated(C: float, fits: Sequence[Fit]) -> Validation:
    """The errors of one C on all folds; inf where a fold had nothing to test."""
    errors = [np.inf if fit.error is None else fit.error for fit in fits]
    return Validation(C, float(np.mean(errors)), float(np.std(errors)) if np.isfinite(errors).all() else float("inf"))
