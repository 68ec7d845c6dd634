"""``dfeas.soft_margin``: the support vector machine of points that do not fit in memory, with a proved gap."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dfeas.driver import never, run
from dfeas.errors import BadInputError, UsageError
from dfeas.keeping import EVERY, Checkpoint, Job, keeping, where
from dfeas.margin_lane import MarginKept, MarginLane, MarginOutcome, ending
from dfeas.memory import DEFAULT_MEMORY
from dfeas.passes.block import Floats
from dfeas.request import LEAST_EPS, SoftMarginOptions, facts_of, request
from dfeas.result import versions
from dfeas.running import surveyed
from dfeas.setting import Setting, Surveyed, open_data, run_folder, set_up
from dfeas.showing import How, announce, run_sinks
from dfeas.soft_margin_result import Fit, SoftMarginResult, Validation
from dfeas.store import Dataset
from dfeas.store.places import local
from dfeas.svm import HingeMargin, SoftMargin, SquaredHingeMargin, StochasticMargin, counted, least_memory
from dfeas.termination import RESUMABLE, Limits

if TYPE_CHECKING:
    from distributed import Client

LOSSES = ("hinge", "squared_hinge")
METHODS = ("auto", "sgd")
GAP = 1e-3
"""Relative gap at which a run ends, if nothing else is asked for."""

PATH = "path.svg"
"""In the folder of a run with several C, where matplotlib is installed."""

ClassWeight = str | Sequence[float] | None


def soft_margin(
    X: Any,
    labels: Any = None,
    *,
    C: float | Sequence[float] = 1.0,
    loss: str = "hinge",
    method: str = "auto",
    gap: float = GAP,
    folds: int = 0,
    class_weight: ClassWeight = None,
    weights: Any = None,
    intercept: bool = False,
    positive: str | None = None,
    also: Sequence[str | Path] = (),
    mask: Any = None,
    max_passes: int | None = None,
    time_limit: float | None = None,
    memory: str | int = DEFAULT_MEMORY,
    out: str | Path | None = None,
    cache_dir: str | Path | None = None,
    checkpoint_every: float = EVERY,
    client: Client | None = None,
    progress: bool = False,
    stop: Callable[[], bool] = never,
    seed: int = 0,
    start: Any = None,
) -> SoftMarginResult:
    """Minimise |w|^2/2 + C sum_j c_j loss(1 - l_j x_j'w) over labelled points as they are stored, up to a relative gap.

    Parameters
    ----------
    X, labels, positive, also, mask, memory, out, cache_dir, checkpoint_every, client, progress, stop : as for ``dfeas.solve``.
    C : > 0; of several, all are found on the same reads. With folds the one of least error on the points that were left out is
        chosen, of equals the smallest; without folds the greatest.
    loss : ``hinge``, max(0, z), or ``squared_hinge``, its square; as LIBLINEAR, without a factor of one half.
    method : ``auto``, or ``sgd``: stochastic steps for the hinge loss and one C, to compare with.
    gap : (objective - lower bound of the minimum) / objective at which it ends.
    folds : of cross-validation, at least 2; each point is in one, by its index and ``seed``. 0: none.
    class_weight : weights of the classes -1 and +1, or ``balanced``: n / (2 n_class).
    weights : (n,) of the points that count, >= 0, or the path of a .npy file.
    intercept : a feature equal to 1; its weight is in |w| like the others, as LIBLINEAR has it.
    start : (m,) or (m+1,) a hyperplane to begin from, as a result has it in y.
    max_passes, time_limit : when to give up, in reads of the data and in seconds.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError : see ``dfeas.errors``; their text is one line that says what to do.
    """
    if not (isinstance(gap, int | float | np.number) and LEAST_EPS <= gap < 1):
        raise UsageError(f"gap {gap}: expected a number from {LEAST_EPS:g} to below 1")
    asked = request(gap, None, max_passes, time_limit, memory)
    data = open_data(X, labels, positive, intercept, also=also, mask=mask, cache_dir=cache_dir)
    if len(data[1].classes) > 2:
        raise UsageError(f"{data[1].where} has {len(data[1].classes)} classes: set one against the rest with positive")
    options = SoftMarginOptions(
        _values(C),
        _one_of(loss, LOSSES, "loss"),
        _folds(folds, data[1].n),
        _classes(class_weight),
        _weights(weights, data[1].n),
        seed,
        _start(start, data[1].dimension),
    )
    name, why = _method(method, options)
    require(data[1], options, asked.memory)
    with ExitStack() as stack:
        setting = set_up(stack, data, asked.memory, client, out)
        folder = None if out is None else stack.enter_context(run_folder(local(out, "--out")))
        job = Job(
            asked,
            (name,),
            (why,),
            race=False,
            to_the_end=False,
            positive=positive,
            intercept=intercept,
            soft=options,
            **where(setting),
        )
        return fitted(setting, job, folder, How(checkpoint_every, progress, stop))


def fitted(setting: Setting, job: Job, folder: Path | None, how: How, earlier: Checkpoint | None = None) -> SoftMarginResult:
    """Carry out the job of a soft margin, from its beginning or from a checkpoint."""
    (name,), (why,), asked, dataset = job.methods, job.whys, job.asked, setting.dataset
    with ExitStack() as stack:
        sinks = run_sinks(stack, setting, job, folder, how, earlier)
        keeper = stack.enter_context(keeping(setting, job, {name: sinks}, folder, how.checkpoint_every, earlier))
        announce(sinks, dataset, name, why, earlier)
        found = surveyed(setting, keeper, earlier)
        method = method_of(job, dataset.n, found)
        lane = MarginLane(method, method.init(facts_of(dataset, asked.memory, None, found.radius)), asked.eps, sinks)
        moment = None if earlier is None else earlier.moment
        if moment is not None:
            (kept,) = moment.lanes
            assert isinstance(kept, MarginKept), "lanes of a job are of one kind"
            lane.restore(kept)
        ((outcome,), reads) = run(
            setting.engine,
            [lane],
            Limits(asked.max_passes, asked.time_limit),
            fingerprint=dataset.fingerprint,
            verify=setting.checking,
            keep=keeper,
            stop=how.stop,
            began=asked.began,
        )
        result = result_of(setting, job, outcome, found.reads + reads)
        if folder is not None:
            result = result.save(folder)
            if len({fit.C for fit in result.fits}) > 1 and find_spec("matplotlib") is not None:
                from dfeas.report.soft_path import draw_path

                draw_path(result.to_json(), folder / PATH)
        keeper.finished = result.stopped not in RESUMABLE
        return result


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


def method_of(job: Job, n: int, found: Surveyed) -> SoftMargin:
    """The method, with the costs of all problems."""
    options = job.soft
    assert options is not None, "a soft margin has its options"
    classes = options.classes
    if classes is None:
        classes = n / (2 * max(1, n - found.positive)), n / (2 * max(1, found.positive))
    costs = counted(options.C, options.folds, classes, options.weight, options.seed)
    if job.methods == ("sgd",):
        return StochasticMargin(costs)
    start = None if options.start is None else np.repeat(options.start[:, None], len(costs.C), axis=1)
    if options.loss == "hinge":
        return HingeMargin(costs, job.asked.eps, start=start)
    return SquaredHingeMargin(costs, job.asked.eps, start=start)


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


def _method(method: str, options: SoftMarginOptions) -> tuple[str, str]:
    if _one_of(method, METHODS, "method") == "sgd":
        if options.loss != "hinge" or options.folds or len(options.C) > 1:
            raise UsageError("method sgd is for the hinge loss, one C and no folds")
        return "sgd", "a soft margin by stochastic steps, asked for"
    if options.loss == "hinge":
        return "hinge", "a soft margin, whose nearest points are kept in memory"
    return "squared-hinge", "a soft margin by Newton steps"


def _one_of(value: str, names: tuple[str, ...], what: str) -> str:
    if value not in names:
        raise UsageError(f"{what} {value}: expected {' or '.join(names)}")
    return value


def _values(C: float | Sequence[float]) -> tuple[float, ...]:
    try:
        values = sorted({float(value) for value in np.atleast_1d(np.asarray(C, np.float64))})
    except (TypeError, ValueError):
        raise UsageError(f"C {C}: expected a number above 0, or several") from None
    if not values or not all(1e-30 <= value <= 1e30 for value in values):
        raise UsageError(f"C {C}: expected numbers from 1e-30 to 1e30")
    return tuple(values)


def _folds(folds: int, n: int) -> int:
    if folds and not 2 <= folds <= n:
        raise UsageError(f"folds {folds}: expected 0 for none, or 2 to the number of points, {n}")
    return folds


def _classes(weight: ClassWeight) -> tuple[float, float] | None:
    if weight is None:
        return 1.0, 1.0
    if isinstance(weight, str):
        _one_of(weight, ("balanced",), "class weight")
        return None
    both = tuple(float(value) for value in weight)
    if len(both) != 2 or not all(0 <= value < np.inf for value in both):
        raise UsageError(f"class weights {weight}: expected two numbers of at least 0, for the classes -1 and +1, or balanced")
    return both


def _weights(weights: Any, n: int) -> Floats | None:
    if weights is None:
        return None
    name = "weights"
    if isinstance(weights, str | Path):
        name = str(weights)
        if not Path(name).is_file():
            raise BadInputError(f"{name}: no such file of weights")
        try:
            weights = np.load(name, allow_pickle=False)
        except ValueError as error:
            raise BadInputError(f"{name}: expected a .npy file of weights: {error}") from None
    found = np.asarray(weights)
    if found.shape != (n,) or found.dtype.kind not in "biuf":
        raise BadInputError(f"{name}: expected {n} numbers, one for each point, got {found.dtype} of shape {found.shape}")
    found = found.astype(np.float64)
    bad = ~(np.isfinite(found) & (found >= 0))
    if bad.any():
        point = int(bad.argmax())
        raise BadInputError(f"{name}: point {point} has the weight {found[point]}; expected numbers of at least 0")
    return found


def _start(start: Any, m: int) -> Floats | None:
    if start is None:
        return None
    found = np.asarray(start)
    if found.shape != (m,) or found.dtype.kind not in "biuf" or not np.isfinite(found).all():
        raise UsageError(f"start: expected {m} finite numbers, got {found.dtype} of shape {found.shape}")
    return found.astype(np.float64)
