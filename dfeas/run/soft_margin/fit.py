"""Fitting soft margins: survey, methods, driver, result. What ``soft_margin`` and ``resume`` share."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from dfeas.data.dataset import Dataset
from dfeas.errors import ClusterLostError
from dfeas.geometry.protocol import facts_of
from dfeas.linalg.points import Floats
from dfeas.methods.soft_margin.memory import fits
from dfeas.methods.soft_margin.problem import STEEP, SoftMargin, counted
from dfeas.methods.soft_margin.registry import SOFT_MARGINS
from dfeas.passes.slacks import Counted
from dfeas.problem import Request, SoftMarginOptions
from dfeas.run.checkpoint.job import Checkpoint, Job, Keeper, Sinks, keeping, where
from dfeas.run.cost.projection import Projection, project_soft
from dfeas.run.execute import run_lanes, surveyed
from dfeas.run.margin_task import MarginLane, MarginOutcome, ending
from dfeas.run.progress import How, announce, run_sinks, tell
from dfeas.run.results import versions
from dfeas.run.session import Setting, Surveyed
from dfeas.run.soft_margin.result import Fit, SoftMarginResult, Validation, write_dual_variables
from dfeas.run.termination import RESUMABLE, STOPPED

PATH = "path.svg"
"""In the folder of a run with several C, where matplotlib is installed."""


@dataclass(frozen=True)
class Fitted:
    """How the lanes of a job ended."""

    outcomes: dict[str, MarginOutcome]  # of the method, or of each class
    counted: Counted  # the costs of all problems of a lane
    survey_reads: int
    reads: float  # all others


def job_of(
    setting: Setting,
    asked: Request,
    options: SoftMarginOptions,
    method: tuple[str, str],
    *,
    positive: str | None = None,
    classes: tuple[str, ...] = (),
) -> Job:
    """A soft margin by a method, of which is said why: of the labels as they are, or of each class against the rest."""
    name, why = method
    return Job(
        asked,
        (name,),
        (why,),
        race=False,
        to_the_end=True,
        positive=positive,
        intercept=setting.dataset.intercept,
        soft=options,
        classes=classes,
        **where(setting),
    )


def fitted(setting: Setting, job: Job, folder: Path | None, how: How, earlier: Checkpoint | None = None) -> SoftMarginResult:
    """Carry out the job of one soft margin, from its beginning or from a checkpoint."""
    (name,), (why,) = job.methods, job.whys
    with ExitStack() as stack:
        sinks = run_sinks(stack, setting, job, folder, how, earlier)
        keeper = stack.enter_context(keeping(setting, job, {name: sinks}, folder, how.checkpoint_every, earlier))
        announce(sinks, setting.dataset, name, why, earlier)
        tell(sinks, projected(setting, job))
        found = fit_lanes(setting, job, {name: sinks}, keeper, earlier, how.stop)
        result = result_of(setting, job, found.outcomes[name], found.survey_reads + found.reads)
        if job.soft is not None and job.soft.dual is not None and result.stopped != "interrupted":
            result = with_dual_variables(setting, job, found, result, how.stop)
        if folder is not None:
            result = saved(result, folder)
        keeper.finished = result.stopped not in RESUMABLE
        return result


def projected(setting: Setting, job: Job) -> Projection:
    """What the run will take."""
    assert job.soft is not None, "a soft margin has its options"
    sizes = {"workers": setting.workers, "threads": setting.threads}
    return project_soft(setting.dataset, job.methods[0], job.soft, job.asked.memory, **sizes)


def saved(result: SoftMarginResult, folder: Path) -> SoftMarginResult:
    """Write the result to its folder, with a figure where there are several C; returns what was written."""
    result = result.save(folder)
    if len({fit.C for fit in result.fits}) > 1 and find_spec("matplotlib") is not None:
        from dfeas.report.evidence import draw_path

        draw_path(result.to_json(), folder / PATH)
    return result


def fit_lanes(
    setting: Setting,
    job: Job,
    sinks: Sinks,
    keeper: Keeper,
    earlier: Checkpoint | None,
    stop: Callable[[], bool],
) -> Fitted:
    """Run the method of a job, from an earlier moment if there is one; of several classes each against the rest."""
    dataset, asked = setting.dataset, job.asked
    found = surveyed(setting, keeper, earlier)
    count, lanes = lanes_abreast(dataset, job), []
    facts = facts_of(dataset, asked.memory // count, None, found.radius)
    for place, name in enumerate(job.lanes):
        method = method_of(job, dataset.n, found, place)
        lanes.append(MarginLane(method, method.init(facts), asked.eps, sinks[name]))
        if job.classes:
            lanes[-1].code = dataset.codes[dataset.classes.index(name)]
    outcomes, reads = run_lanes(setting, job, lanes, count, keeper, earlier, stop)
    return Fitted(dict(zip(job.lanes, outcomes, strict=True)), lanes[0].method.counted, found.reads, reads)


def lanes_abreast(dataset: Dataset, job: Job) -> int:
    """How many classes share the memory side by side, and the others wait: as many as leave each what it wants, or needs."""
    options, lanes = job.soft, len(job.lanes)
    assert options is not None, "a soft margin has its options"
    k = len(options.C) * (1 + options.folds)
    counts = list(dict.fromkeys(-(-lanes // turns) for turns in range(1, lanes + 1)))
    for enough in (SOFT_MARGINS[job.methods[0]].enough, fits):
        for count in counts:
            if enough(facts_of(dataset, job.asked.memory // count), k):
                return count
    return 1


def with_dual_variables(
    setting: Setting, job: Job, found: Fitted, result: SoftMarginResult, stop: Callable[[], bool]
) -> SoftMarginResult:
    """One more read, which writes those of the chosen C on all points; a run that is interrupted then can go on."""
    (outcome,), options, dataset = found.outcomes.values(), job.soft, setting.dataset
    assert options is not None
    assert options.dual is not None
    problem = next(i for i, fit in enumerate(result.fits) if fit.C == result.C and fit.fold is None)
    question = outcome.progress.duals[problem].question(found.counted.take(np.array([problem])))
    try:
        dual = write_dual_variables(setting.engine, dataset, question, result.y, result.objective, Path(options.dual), stop)
    except (KeyboardInterrupt, ClusterLostError) as error:
        text = f"interrupted before all dual variables were written: {error}"
        return replace(result, stopped="interrupted", message=text)
    reads = result.reads + 1
    seconds = time.monotonic() - job.asked.began
    result = replace(result, dual=dual, reads=reads, bytes_read=round(reads * dataset.bytes), seconds=seconds)
    gap = (result.objective - dual.value) / result.objective if result.objective else 0.0
    if result.stopped != "verdict" or gap <= result.target:
        return result
    # scores that are summed in another order are other ones by rounding, which costs as large as these do not forgive
    fits = [replace(fit, lower=dual.value, gap=gap) if i == problem else fit for i, fit in enumerate(result.fits)]
    text = f"{STOPPED['stalled']}: the dual variables prove a relative gap of {gap:.2g} only, {STEEP}"
    return replace(result, stopped="stalled", message=text, lower=dual.value, gap=gap, fits=fits)


def method_of(job: Job, n: int, found: Surveyed, place: int = 0) -> SoftMargin:
    """The method, with the costs of all problems, of the class at this place where there are several."""
    options = job.soft
    assert options is not None, "a soft margin has its options"
    classes = options.classes
    if classes is None:
        classes = n / (2 * max(1, n - found.positive)), n / (2 * max(1, found.positive))
    start = options.start[place] if options.start is not None and options.start.ndim == 2 else options.start
    return margin_method(job.methods[0], options, classes, job.asked.eps, start)


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
        stopped=outcome.stopped,
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
