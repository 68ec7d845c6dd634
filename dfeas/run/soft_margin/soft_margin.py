"""``dfeas.soft_margin``: the support vector machine of points that do not fit in memory, with a proved gap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfeas.data.storage.places import local, require_apart
from dfeas.engine.memory import DEFAULT_MEMORY
from dfeas.errors import UsageError
from dfeas.problem import classes_to_share, request
from dfeas.run.checkpoint.job import EVERY, keeping
from dfeas.run.driver import never
from dfeas.run.progress import report_start, run_options, terminal
from dfeas.run.session import open_data, run_folder, set_up
from dfeas.run.soft_margin.fit import fit_lanes, fitted, job_of, result_of
from dfeas.run.soft_margin.options import GAP, ClassWeight, method_for, options_of, require, require_gap
from dfeas.run.soft_margin.result import SoftMarginResult, dual_place
from dfeas.run.termination import ProgressRecord
from dfeas.run.trace import Sink

if TYPE_CHECKING:
    from distributed import Client


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
    dual: str | Path | None = None,
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
    callback: Callable[[ProgressRecord], object] | None = None,
    stop: Callable[[], bool] = never,
    seed: int = 0,
    start: Any = None,
) -> SoftMarginResult:
    """Minimise |w|^2/2 + C sum_j c_j loss(1 - l_j x_j'w) over labelled points as they are stored, up to a relative gap.

    Parameters
    ----------
    X, labels, positive, also, mask, memory, out, cache_dir, checkpoint_every, client, progress, callback, stop : as
        for ``dfeas.solve``.
    C : > 0; of several, all are found on the same reads. With folds the one of least error on the points that were left out is
        chosen, of equals the smallest; without folds the greatest.
    loss : ``hinge``, max(0, z), or ``squared_hinge``, its square; as LIBLINEAR, without a factor of one half.
    method : ``auto``, or ``sgd``: stochastic steps for the hinge loss and one C, to compare with.
    gap : (objective - lower bound of the minimum) / objective at which it ends.
    folds : of cross-validation, at least 2; each point is in one, by its index and ``seed``. 0: none.
    class_weight : weights of the classes -1 and +1, or ``balanced``: n / (2 n_class).
    weights : (n,) of the points that count, >= 0, or the path of a .npy file.
    intercept : a feature equal to 1; its weight is in |w| like the others, as LIBLINEAR has it.
    dual : a .npy file for the dual variables alpha (n,) of the chosen C, those that prove ``lower``, written in one more read
        without keeping them: 0 <= alpha_j <= c_j for the hinge, 0 <= alpha_j for its square, and y is the sum of alpha_j l_j
        x_j up to ``dual.residual``. At a limit they are those of the bound so far. Not for ``sgd``.
    start : (m,) or (m+1,) a hyperplane to begin from, as a result has it in y.
    max_passes, time_limit : when to give up, in reads of the data and in seconds.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError : see ``dfeas.errors``; their text is one line that says what to do.
    """
    asked = request(require_gap(gap), None, max_passes, time_limit, memory)
    data = open_data(X, labels, positive, intercept, also=also, mask=mask, cache_dir=cache_dir)
    if len(data[1].classes) > 2:
        raise UsageError(f"{data[1].where} has {len(data[1].classes)} classes: set one against the rest with positive")
    place = None if dual is None else dual_place(dual, out)
    if place is not None:
        require_apart(place, X)
    given = {"C": C, "loss": loss, "folds": folds, "class_weight": class_weight, "weights": weights}
    options = options_of(data[1], **given, seed=seed, start=start, dual=place)
    chosen = method_for(method, options)
    require(data[1], options, asked.memory)
    with ExitStack() as stack:
        setting = set_up(stack, data, asked.memory, client, out)
        folder = None if out is None else stack.enter_context(run_folder(local(out, "--out")))
        job = job_of(setting, asked, options, chosen, positive=positive)
        return fitted(setting, job, folder, run_options(checkpoint_every, progress, stop, callback))


@dataclass(frozen=True)
class SoftMarginClasses:
    """One soft margin for each class, and what was read for all of them together."""

    results: dict[str, SoftMarginResult]  # in the order of the classes
    reads: float  # of the data: what several classes asked at once counts once


def soft_margin_classes(
    X: Any,
    labels: Any = None,
    *,
    C: float | Sequence[float] = 1.0,
    loss: str = "hinge",
    gap: float = GAP,
    folds: int = 0,
    class_weight: ClassWeight = None,
    weights: Any = None,
    intercept: bool = False,
    also: Sequence[str | Path] = (),
    mask: Any = None,
    max_passes: int | None = None,
    time_limit: float | None = None,
    memory: str | int = DEFAULT_MEMORY,
    cache_dir: str | Path | None = None,
    client: Client | None = None,
    progress: bool = False,
    callback: Callable[[ProgressRecord], object] | None = None,
    stop: Callable[[], bool] = never,
    seed: int = 0,
    start: Any = None,
) -> SoftMarginClasses:
    """``dfeas.soft_margin`` of each class of the labels against the rest.

    Arguments are those of ``dfeas.soft_margin``; limits of passes hold for each class, ``class_weight`` are weights of the rest
    and of the class, and ``start`` (classes, m) has a hyperplane for each. The classes share the memory; where it cannot hold
    what all of them keep, some wait.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError : see ``dfeas.errors``; their text is one line that says what to do.
    """
    asked = request(require_gap(gap), None, max_passes, time_limit, memory)
    data = open_data(X, labels, None, intercept, many=True, also=also, mask=mask, cache_dir=cache_dir)
    dataset = data[1]
    classes = classes_to_share(dataset)
    given = {"C": C, "loss": loss, "folds": folds, "class_weight": class_weight, "weights": weights, "seed": seed}
    options = options_of(dataset, **given, start=start, many=True)
    if options.classes is None:
        raise UsageError("balanced weights are of two classes: give weights of points")
    name, why = method_for("auto", options)
    require(dataset, options, asked.memory)
    with ExitStack() as stack:
        setting = set_up(stack, data, asked.memory, client, None)
        job = job_of(setting, asked, options, (name, why), classes=classes)
        shown = terminal(progress, asked.eps)
        how = run_options(EVERY, progress, stop, callback)
        sinks: dict[str, list[Sink]] = {each: [*([shown] if shown is not None else []), *how.more] for each in classes}
        if shown is not None:
            stack.callback(shown.close)
        keeper = stack.enter_context(keeping(setting, job, sinks, None, EVERY, None))
        for each, own in sinks.items():
            report_start(own, dataset, name, f"{each} against the rest: {why}", None, each)
        found = fit_lanes(setting, job, sinks, keeper, None, how.stop)
        results = {}
        for each, outcome in found.outcomes.items():
            seen = replace(setting, dataset=dataset.against_rest(each))
            results[each] = result_of(seen, job, outcome, found.survey_reads + outcome.reads)
        return SoftMarginClasses(results, found.survey_reads + found.reads)
