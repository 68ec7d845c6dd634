"""A soft margin on its way: both ends after every read, when that is enough, what a run will take, and what it returns."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, structs

from dfeas.answers.files import versions
from dfeas.answers.result import Side
from dfeas.answers.soft_margin import Fit, SoftMarginClasses, SoftMarginResult, Validation
from dfeas.answers.trace import Sink
from dfeas.answers.words import Stop
from dfeas.data.cache import Kept
from dfeas.data.source import view_text
from dfeas.engine.protocol import Engine
from dfeas.errors import AwayError
from dfeas.geometry.protocol import LoadCost, facts_of
from dfeas.machine import used_bytes
from dfeas.methods.registry import SOFT_MARGINS, base_name
from dfeas.methods.soft_margin.band import Width
from dfeas.methods.soft_margin.problem import STEEP, Progress, SoftMargin, least_memory
from dfeas.passes.protocol import Question, of_class
from dfeas.passes.slacks import Losses, SampleCosts
from dfeas.records import replace
from dfeas.run.cost import Projection, find_abreast, project_soft
from dfeas.run.resources import Limits, RunOptions
from dfeas.run.session import Session, Surveyed
from dfeas.run.soft_margin.dual import write_dual_variables
from dfeas.run.spec import RunSpec, SoftMarginOptions, margin_method
from dfeas.run.task import Task
from dfeas.run.termination import Decision, limit_reached


class SoftMarginRecord(Struct, frozen=True):
    """What is known after a read; of several problems, of the one with the widest gap."""

    method: str
    passes: float  # a partial read counts as its share
    iterations: int
    objective: float  # |w|^2/2 + sum c_j loss_j at the best w
    lower: float  # of its minimum
    gap: float  # (objective - lower) / objective
    done: int  # problems whose gap is small enough
    kept: int  # points in memory
    seconds: float = 0.0  # since the start of the run
    pass_seconds: float = 0.0
    read_seconds: float = 0.0  # all threads or workers together
    scan_seconds: float = 0.0
    bytes_read: int = 0  # by this pass, from storage
    cached_bytes: int = 0  # of this pass, from memory
    memory_bytes: int = 0  # resident memory of the driver's process
    method_seconds: float = 0.0  # of the method, between the passes
    stalled: str = ""
    reads: float = 0.0  # of the data so far
    warnings: tuple[str, ...] = ()  # since the read before, for a callback

    @property
    def ends(self) -> str:
        if math.isinf(self.objective):
            return "objective not known yet"
        return f"objective {self.objective:.6g}, minimum at least {self.lower:.6g}, gap {self.gap:.2e}"

    def to_json(self) -> dict[str, Any]:
        """What is known; what is not known yet is null, and warnings are events of their own."""
        known = {name: None if value == math.inf else value for name, value in structs.asdict(self).items()}
        return {name: value for name, value in known.items() if name != "warnings"}


class SoftMarginOutcome(Struct, frozen=True):
    """How a soft margin ended, with all that its method can show."""

    stopped: str  # "verdict" when all gaps are small enough
    record: SoftMarginRecord
    progress: Progress
    reads: float
    ended: float | None  # seconds since the start
    compared: bool  # whether the last read found the data as the survey had
    costs: SampleCosts  # of all problems


class SoftMarginState(Struct, frozen=True):
    """Between two reads: what is needed to go on."""

    state: Any
    passes: float
    record: SoftMarginRecord
    decision: Decision | None
    ended: float | None


class SoftMarginTask(Task[SoftMarginOutcome], eq=False):
    """A soft margin and how far it is; its goal is a gap, of ends in float64 from one read: nothing needs a check."""

    KEPT = SoftMarginState

    passes: float = 0.0
    kept: Kept | None = None  # of data that may change meanwhile
    compared: bool = False  # whether the last question had it compared

    def __post_init__(self) -> None:
        self.record = SoftMarginRecord(self.method.name, 0, 0, math.inf, 0.0, 1.0, 0, 0, memory_bytes=used_bytes()[1])

    @property
    def is_proved(self) -> bool:
        return self.decision is not None and self.decision.stopped == "verdict"

    def decide(self, limits: Limits) -> None:
        self.decision = decide(self.record, self.goal, limits)

    def question(self) -> Question:
        """What may be the last one has the data compared, which then need not be read once more."""
        self.compared = self.kept is not None and self.method.confirms(self.state)
        if self.kept is not None and self.compared:
            self.kept.doubt()
        return super().question()

    def measure(self, engine: Engine, cost: Mapping[str, Any]) -> SoftMarginRecord:
        return self._record(cost)

    def _record(self, cost: Mapping[str, Any]) -> SoftMarginRecord:
        progress = self.method.evidence(self.state)
        best, gap = progress.best, progress.best.gap
        widest = int(np.argmax(gap))
        return SoftMarginRecord(
            iterations=progress.steps,
            objective=float(best.objective[widest]),
            lower=float(best.lower[widest]),
            gap=float(gap[widest]),
            done=int((gap <= self.goal).sum()),
            kept=progress.kept,
            stalled=progress.stalled,
            **cost,
        )

    def outcome(self) -> SoftMarginOutcome:
        assert self.decision is not None
        stopped = self.decision.stopped
        self.note("stopped", describe_ending(stopped, self.record), stopped=stopped)
        evidence = self.method.evidence(self.state)
        costs = self.method.counted
        return SoftMarginOutcome(stopped, self.record, evidence, self.passes, self.ended, self.compared, costs)


def decide(record: SoftMarginRecord, gap: float, limits: Limits) -> Decision | None:
    """Whether the run ends here; None to go on."""
    if not math.isfinite(record.gap) or math.isnan(record.objective):
        return Decision(Stop.NUMERICAL_ERROR)
    if record.gap <= gap:
        return Decision(Stop.VERDICT)
    ended = Stop.STALLED if record.stalled else limit_reached(record, limits)
    return Decision(ended) if ended else None


def describe_ending(stopped: str, record: SoftMarginRecord) -> str:
    """Why a run ended, in a sentence."""
    if stopped == "verdict":
        return f"the relative gap is at most {record.gap:.2g}: both ends were computed in float64 from the stored points"
    more = f": {record.stalled}" if stopped == "stalled" else ""
    return f"{Stop(stopped).sentence}{more}; the relative gap is at most {record.gap:.2g}"


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
        if not self.job.classes:
            return 1
        k, method, memory = self.options.problems, SOFT_MARGINS[base_name(self.job.methods[0])], self.job.asked.memory

        def cost_of(count: int) -> LoadCost:
            facts = facts_of(self.session.dataset, memory // count)
            cost = method.cost(facts, k)
            least = 0 if cost.enough else 4 * count * least_memory(facts, k, self.options.loss != "hinge")
            return LoadCost(own=cost.kept, asked=cost.kept, least=least, enough=cost.enough)

        return find_abreast(len(self.job.names), memory, cost_of)

    def together(self, results: dict[str, Any], reads: float) -> SoftMarginClasses:
        seconds = max(result.seconds for result in results.values())
        return SoftMarginClasses(results, reads, seconds, self.session.dataset.fingerprint)

    def project_cost(self) -> Projection:
        sizes = {"workers": self.session.workers, "threads": self.session.threads}
        return project_soft(self.session.dataset, self.job.methods[0], self.options, self.job.asked.memory, **sizes)

    def ask_first(self) -> tuple[None, None]:
        """A soft margin takes passes."""
        return None, None

    def settle(self, surveyed: Surveyed) -> None:
        """Losses are finite at any point."""

    def tasks(self, surveyed: Surveyed, sinks: dict[str, list[Sink]]) -> list[SoftMarginTask]:
        job, dataset = self.job, self.session.dataset
        facts, tasks = facts_of(dataset, job.asked.memory // self.abreast, None, surveyed.radius), []
        entries = facts.n * (facts.entries or facts.m) * self.options.problems
        # steps of the hinge on so many entries, or of the squared hinge on twice as many, with so many products for the
        # curvature, usually take 60 ms at most
        most = 1 << (15 if self.options.loss == "hinge" else 16)
        brief = entries <= most and facts.m * (entries + facts.m**2 / 3) <= 1 << 24
        for place, name in enumerate(job.names):
            method = self._method(surveyed, place)
            code = dataset.codes[dataset.classes.index(name)] if job.classes else None
            task = SoftMarginTask(method, method.init(facts), self.options.gap, sinks[name], code=code, brief=brief)
            task.kept = dataset.base.kept if dataset.base.in_memory else None
            tasks.append(task)
        return tasks

    def _method(self, surveyed: Surveyed, place: int) -> SoftMargin:
        """The method, with the costs of all problems, of the class at this place where there are several."""
        options, n = self.options, self.session.dataset.n
        classes = options.classes
        if classes is None:
            classes = n / (2 * max(1, n - surveyed.positive)), n / (2 * max(1, surveyed.positive))
        start = options.start[place] if options.start is not None and options.start.ndim == 2 else options.start
        return margin_method(self.job.methods[0], options, classes, start)

    def result(self, name: str, outcome: SoftMarginOutcome, surveyed: Surveyed, how: RunOptions) -> SoftMarginResult:
        """With the dual variables in one more read, where they are asked for."""
        session, job = self.session, self.job
        place = session.dataset.classes.index(name) if job.classes else 0
        code = self.session.dataset.codes[place] if job.classes else None
        if outcome.stopped not in (Stop.INTERRUPTED, Stop.TIME_LIMIT) and outcome.reads:
            outcome = look_again(session, self.options, outcome, surveyed.radius, code)
        if job.classes:
            session = replace(session, dataset=session.dataset.against_rest(name))
        positive = session.dataset.count(code) if code is not None else surveyed.positive
        result = result_of(session, job, outcome, surveyed.reads + outcome.reads, positive)
        if not outcome.reads:
            return result
        if self.options.probability and result.stopped != "interrupted":
            result = with_probabilities(session, outcome.costs, code, result)
        if self.options.dual is None or result.stopped == "interrupted":
            return result
        return with_dual_variables(session, job, outcome, surveyed.radius, result, how)


OVERSHOOTS = (0.0, 2.0**-48, 2.0**-44, 2.0**-40, 2.0**-36, 2.0**-32)
"""Shares by which a hyperplane is made longer, so that points at their margin are not short of it by rounding."""


def look_again(
    session: Session,
    options: SoftMarginOptions,
    outcome: SoftMarginOutcome,
    radius: float,
    code: int | None,
) -> SoftMarginOutcome:
    """One more read where rounding could be as large as the gap that is asked for, which tells the objective of hyperplanes as
    they are returned, unless a limit ended the run; and one of an array in memory, which may have been changed, unless its
    last read has compared it, or that of another class. Raises CorruptDataError where it was.
    """
    costs, best, data = outcome.costs, outcome.progress.best, session.checking.dataset.base
    unseen = data.in_memory and not outcome.compared and not data.kept.is_verified(0, data.stamp(0))
    most = 1.0 if costs.weight is None else float(costs.weight.max(initial=0.0))
    each = costs.C * max(costs.negative, costs.positive) * most * best.support
    rounding = (len(best.Y) + 4) * np.finfo(np.float64).eps * each * radius * np.linalg.norm(best.Y, axis=0)
    ended = outcome.stopped in (Stop.VERDICT, Stop.STALLED)
    steep = np.flatnonzero((rounding > options.gap / 16 * best.objective) & ended)
    if not (len(steep) or unseen) or not np.isfinite(best.objective).all():
        return outcome
    tried = np.repeat(steep, len(OVERSHOOTS))  # none: the blocks are read, and compared
    Y = best.Y[:, tried] * (1 + np.resize(OVERSHOOTS, len(tried)))
    question: Question = Losses(Y, costs.take(tried), options.loss != "hinge")
    engine = session.checking.engine if unseen else session.engine
    losses = engine.run(question if code is None else of_class(question, code))
    if len(steep):
        objective, Y_best = best.objective.copy(), best.Y.copy()
        found = (np.einsum("i,ij,ij->j", best.squares, Y, Y) / 2 + losses).reshape(len(steep), -1)
        chosen = found.argmin(axis=1)
        objective[steep], Y_best[:, steep] = found.min(axis=1), Y[:, np.arange(len(steep)) * len(OVERSHOOTS) + chosen]
        best = replace(best, Y=Y_best, objective=objective, lower=np.minimum(best.lower, objective))
    widest, stopped, record = int(np.argmax(best.gap)), outcome.stopped, outcome.record
    ends = float(best.objective[widest]), float(best.lower[widest]), float(best.gap[widest])
    record = replace(record, objective=ends[0], lower=ends[1], gap=ends[2])
    if stopped == Stop.STALLED and ends[2] <= options.gap:
        stopped = Stop.VERDICT
    elif stopped == Stop.VERDICT and ends[2] > options.gap:
        stopped, record = Stop.STALLED, replace(record, stalled=f"float64 tells the minimum no better, as {STEEP}")
    progress = replace(outcome.progress, best=best)
    return replace(outcome, progress=progress, stopped=stopped, record=record, reads=outcome.reads + 1)


def with_probabilities(session: Session, costs: SampleCosts, code: int | None, result: SoftMarginResult) -> SoftMarginResult:
    """One more read, of the scores of the chosen C that folds left out."""
    from dfeas.run.soft_margin.calibration import calibrate

    folds = [place for place, fit in enumerate(result.fits) if fit.C == result.C and fit.fold is not None]
    found = calibrate(session.engine, result.path[folds].T, costs, code)
    reads = result.reads + 1
    return replace(result, calibration=found, reads=reads, bytes_read=round(reads * session.dataset.stored_bytes))


def with_dual_variables(
    session: Session,
    job: RunSpec,
    outcome: SoftMarginOutcome,
    radius: float,
    result: SoftMarginResult,
    how: RunOptions,
) -> SoftMarginResult:
    """One more read, which writes those of the chosen C on all points; a run that is interrupted then can go on."""
    options, dataset = job.soft, session.dataset
    assert options is not None
    assert options.dual is not None
    problem = next(i for i, fit in enumerate(result.fits) if fit.C == result.C and fit.fold is None)
    question = outcome.progress.duals[problem].question(outcome.costs.take(np.array([problem])))
    try:
        width = Width(options.squares, radius, result.objective)
        dual = write_dual_variables(session.engine, dataset, question, result.y, width, Path(options.dual), how.stop)
    except (KeyboardInterrupt, AwayError) as error:
        if not how.stop():
            how.interruptions.append(error)
        text = f"interrupted before all dual variables were written: {error}"
        return replace(result, stopped=Stop.INTERRUPTED, message=text)
    reads = result.reads + 1
    seconds = time.monotonic() - job.asked.began
    result = replace(result, dual=dual, reads=reads, bytes_read=round(reads * dataset.stored_bytes), seconds=seconds)
    gap = (result.objective - dual.value) / result.objective if result.objective else 0.0
    if result.stopped != "verdict" or gap <= result.target:
        return result
    # scores that are summed in another order are other ones by rounding, which costs as large as these do not forgive
    fits = [replace(fit, lower=dual.value, gap=gap) if i == problem else fit for i, fit in enumerate(result.fits)]
    text = f"{Stop.STALLED.sentence}: the dual variables prove a relative gap of {gap:.2g} only, {STEEP}"
    return replace(result, stopped=Stop.STALLED, message=text, lower=dual.value, gap=gap, fits=fits)


def result_of(session: Session, job: RunSpec, outcome: SoftMarginOutcome, reads: float, positive: int) -> SoftMarginResult:
    """What is returned of an outcome; so many points have the label +1."""
    dataset, options, best = session.dataset, job.soft, outcome.progress.best
    assert options is not None, "a soft margin has its options"
    folds = options.folds
    fits = [
        Fit(
            C=C,
            fold=fold,
            objective=float(best.objective[i]),
            lower=float(best.lower[i]),
            gap=float(best.gap[i]),
            support=int(best.support[i]),
            error=None if np.isnan(best.error[i]) else float(best.error[i]),
        )
        for i, (C, fold) in enumerate(product(options.C, (None, *range(folds))))
    ]
    validation = [validate(C, [fit for fit in fits if C == fit.C and fit.fold is not None]) for C in options.C] if folds else []
    chosen = (int(np.argmin([entry.error for entry in validation])) if folds else len(options.C) - 1) * (1 + folds)
    fit, y = fits[chosen], best.Y[:, chosen].copy()
    length = float(np.linalg.norm(y[: dataset.m]))
    return SoftMarginResult(
        stopped=Stop(outcome.stopped),
        message=describe_ending(outcome.stopped, outcome.record),
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
        target=options.gap,
        passes=outcome.record.passes,
        reads=reads,
        iterations=outcome.record.iterations,
        bytes_read=round(reads * dataset.stored_bytes),
        seconds=time.monotonic() - job.asked.began if outcome.ended is None else outcome.ended,
        fingerprint=dataset.fingerprint,
        versions=versions(),
        **session.crew(),
        data=session.source.spec.to_json(),
        y=y,
        path=best.Y.T.copy(),
        weighed=outcome.progress.duals[chosen].sparse() if outcome.progress.duals else None,
        view=view_text(None, dataset.transform),
        sides={label: Side(*side) for label, side in dataset.sides(positive).items()},
        features=list(dataset.features) or None,
    )


def validate(C: float, fits: Sequence[Fit]) -> Validation:
    """The errors of one C on all folds that have points to test, of which few points leave some without; inf before a read."""
    if any(math.isinf(fit.objective) for fit in fits):
        return Validation(C, math.inf, math.inf)
    errors = [fit.error for fit in fits if fit.error is not None] or [0.0]  # weights of zero leave nothing to be wrong
    return Validation(C, float(np.mean(errors)), float(np.std(errors)))
