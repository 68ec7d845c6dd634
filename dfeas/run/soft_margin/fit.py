"""Runs of soft margins: their options for known data, their tasks, what they will take, and what is returned."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dfeas.data.dataset import Dataset
from dfeas.data.storage.zarr_arrays import load_npy
from dfeas.errors import BadInputError, ClusterLostError, UsageError
from dfeas.geometry.protocol import facts_of
from dfeas.linalg.points import Floats
from dfeas.methods.soft_margin.memory import fits, least_memory
from dfeas.methods.soft_margin.problem import STEEP, SoftMargin, counted
from dfeas.methods.soft_margin.registry import SOFT_MARGINS
from dfeas.passes.slacks import SampleCosts
from dfeas.problem import Objective
from dfeas.run.checkpoint.job import RunSpec, SoftMarginOptions
from dfeas.run.cost.projection import Projection, project_soft
from dfeas.run.margin_task import SoftMarginOutcome, SoftMarginTask, ending
from dfeas.run.progress import RunOptions
from dfeas.run.results import versions
from dfeas.run.session import Session, Surveyed
from dfeas.run.soft_margin.result import Fit, SoftMarginResult, Validation, write_dual_variables
from dfeas.run.termination import Stop
from dfeas.run.trace import Sink

METHODS = ("auto", "sgd")


def options_of(dataset: Dataset, objective: Objective, dual: Path | None = None, classes: int = 0) -> SoftMarginOptions:
    """Those of ``dfeas.soft_margin`` for this data, or of many ``classes``. Raises UsageError and BadInputError."""
    if objective.folds > dataset.n:
        raise UsageError(f"folds {objective.folds}: expected 0 for none, or 2 to the number of points, {dataset.n}")
    return SoftMarginOptions(
        objective.prices,
        objective.loss,
        objective.folds,
        objective.weights_of_classes,
        _point_weights(objective.weights, dataset.n),
        objective.seed,
        _start_of(objective.start, (classes, dataset.dimension) if classes else (dataset.dimension,)),
        None if dual is None else str(dual),
    )


def require(dataset: Dataset, options: SoftMarginOptions, memory: int) -> None:
    """Raise UsageError when the budget is too small, with what is needed."""
    if 8 * dataset.n > memory // 4 and options.weight is not None:
        raise UsageError(f"weights of {dataset.n} points need {32 * dataset.n / 1e6:.0f} MB of memory: raise --memory")
    count = len(options.C) * (1 + options.folds)
    need = least_memory(facts_of(dataset, memory), count)
    if need > memory // 4:
        raise UsageError(
            f"memory {memory / 1e6:.0f} MB is too little for {dataset.m} features and {count} values of C and folds: "
            f"at least {4 * need / 1e6:.0f} MB are needed"
        )


def method_for(method: str, options: SoftMarginOptions) -> tuple[str, str]:
    """The method, and why. Raises UsageError when it cannot do what is asked."""
    if method not in METHODS:
        raise UsageError(f"method {method}: expected {' or '.join(METHODS)}")
    if method == "sgd":
        if options.loss != "hinge" or options.folds or len(options.C) > 1:
            raise UsageError("method sgd is for the hinge loss, one C and no folds")
        if options.dual is not None:
            raise UsageError("method sgd keeps nothing from which dual variables follow; leave out dual, or take method auto")
        return "sgd", "a soft margin by stochastic steps, asked for"
    if options.loss == "hinge":
        return "hinge", "a soft margin, whose nearest points are kept in memory"
    return "squared-hinge", "a soft margin by Newton steps"


def _point_weights(weights: Any, n: int) -> Floats | None:
    if weights is None:
        return None
    name = "weights"
    if isinstance(weights, str | Path):
        name = str(weights)
        if not Path(name).is_file():
            raise BadInputError(f"{name}: no such file of weights")
        weights = load_npy(Path(name))
    found = np.asarray(weights)
    if found.shape != (n,) or found.dtype.kind not in "biuf":
        raise BadInputError(f"{name}: expected {n} numbers, one for each point, got {found.dtype} of shape {found.shape}")
    found = found.astype(np.float64)
    bad = ~(np.isfinite(found) & (found >= 0))
    if bad.any():
        point = int(bad.argmax())
        raise BadInputError(f"{name}: point {point} has the weight {found[point]}; expected numbers of at least 0")
    return found


def _start_of(start: Any, shape: tuple[int, ...]) -> Floats | None:
    if start is None:
        return None
    found = np.asarray(start)
    if found.shape != shape or found.dtype.kind not in "biuf" or not np.isfinite(found).all():
        raise UsageError(
            f"start: expected {' x '.join(map(str, shape))} finite numbers, got {found.dtype} of shape {found.shape}"
        )
    return found.astype(np.float64)


@dataclass(frozen=True)
class SoftMarginTarget:
    """A soft margin for each task: of the labels as they are, or of each class against the rest."""

    session: Session
    job: RunSpec

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
                if enough(facts_of(self.session.dataset, self.job.asked.memory // count), k):
                    return count
        return 1

    def projected(self) -> Projection:
        """Of one task."""
        sizes = {"workers": self.session.workers, "threads": self.session.threads}
        return project_soft(self.session.dataset, self.job.methods[0], self.options, self.job.asked.memory, **sizes)

    def settled(self, surveyed: Surveyed) -> None:
        """Losses are finite at any point."""

    def tasks(self, surveyed: Surveyed, sinks: dict[str, list[Sink]]) -> list[SoftMarginTask]:
        """One for each class, or one."""
        job, dataset = self.job, self.session.dataset
        facts, tasks = facts_of(dataset, job.asked.memory // self.abreast, None, surveyed.radius), []
        for place, name in enumerate(job.lanes):
            method = self._method(surveyed, place)
            tasks.append(SoftMarginTask(method, method.init(facts), job.asked.eps, sinks[name]))
            if job.classes:
                tasks[-1].code = dataset.codes[dataset.classes.index(name)]
        return tasks

    def _method(self, surveyed: Surveyed, place: int) -> SoftMargin:
        """The method, with the costs of all problems, of the class at this place where there are several."""
        options, n = self.options, self.session.dataset.n
        classes = options.classes
        if classes is None:
            classes = n / (2 * max(1, n - surveyed.positive)), n / (2 * max(1, surveyed.positive))
        start = options.start[place] if options.start is not None and options.start.ndim == 2 else options.start
        return margin_method(self.job.methods[0], options, classes, self.job.asked.eps, start)

    def result(self, name: str, outcome: SoftMarginOutcome, surveyed: Surveyed, how: RunOptions) -> SoftMarginResult:
        """With the dual variables in one more read, where they are asked for."""
        session, job = self.session, self.job
        if job.classes:
            session = replace(session, dataset=session.dataset.against_rest(name))
        result = result_of(session, job, outcome, surveyed.reads + outcome.reads)
        if self.options.dual is None or result.stopped == "interrupted":
            return result
        return with_dual_variables(session, job, outcome, self._method(surveyed, 0).counted, result, how.stop)


def with_dual_variables(
    session: Session,
    job: RunSpec,
    outcome: SoftMarginOutcome,
    costs: SampleCosts,
    result: SoftMarginResult,
    stop: Callable[[], bool],
) -> SoftMarginResult:
    """One more read, which writes those of the chosen C on all points; a run that is interrupted then can go on."""
    options, dataset = job.soft, session.dataset
    assert options is not None
    assert options.dual is not None
    problem = next(i for i, fit in enumerate(result.fits) if fit.C == result.C and fit.fold is None)
    question = outcome.progress.duals[problem].question(costs.take(np.array([problem])))
    try:
        dual = write_dual_variables(session.engine, dataset, question, result.y, result.objective, Path(options.dual), stop)
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


def result_of(session: Session, job: RunSpec, outcome: SoftMarginOutcome, reads: float) -> SoftMarginResult:
    """What is returned of an outcome."""
    dataset, options, best = session.dataset, job.soft, outcome.progress.best
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
        data=session.place,
        y=y,
        path=best.Y.T.copy(),
    )


def validated(C: float, fits: Sequence[Fit]) -> Validation:
    """The errors of one C on all folds; inf where a fold had nothing to test."""
    errors = [np.inf if fit.error is None else fit.error for fit in fits]
    return Validation(C, float(np.mean(errors)), float(np.std(errors)) if np.isfinite(errors).all() else float("inf"))
